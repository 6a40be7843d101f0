/* SPDX-License-Identifier: MIT */
/* Settings that change nothing in the run they are set in, because another setting leaves nothing
 * for them to do. That is no mistake, as one file may serve several methods, so the run only says
 * so when it starts (session.c). A setting has a row below, and says the first of its reasons that
 * holds.
 *
 * Invariant: a setting that has its default says nothing. */
#include "agent/sac.h"
#include "agent/slbo.h"
#include "base/text.h"
#include "run/config/config.h"

#include <stdio.h>
#include <string.h>

static bool is_replay(const struct opc_values *v)
{
    return !opc_transition_of(v)->needs_model;
}

static bool has_no_reference(const struct opc_values *v)
{
    return !opc_transition_of(v)->needs_reference;
}

static bool has_no_past_to_mix(const struct opc_values *v)
{
    return is_replay(v) || !opc_mixes_past(v);
}

static bool is_not_sac(const struct opc_values *v)
{
    return opc_agent_of(v) != &opc_sac_type;
}

/* Agents that learn from recorded steps alone, or that, as STEVE, imagine steps with a reward of
 * their own; SLBO asks for it. */
static bool has_no_imagined_reward(const struct opc_values *v)
{
    return is_replay(v) && opc_agent_of(v) != &opc_slbo_type;
}

static bool knows_the_reward(const struct opc_values *v)
{
    return v->model.reward == OPC_REWARD_GIVEN;
}

static bool does_not_discount(const struct opc_values *v)
{
    for (int i = 0; opc_agent_type(i); i++)
        if (opc_agent_type(i) == &opc_sac_type) {
            const struct opc_sac_config *sac = opc_values_agent(v, i);
            return sac->discount == 1;
        }
    return false;
}

struct reason {
    bool (*holds)(const struct opc_values *);
    const char *why;
};
static const struct reason REPLAY = {is_replay,
                                     "it is for imagined rollouts, and opc.transition = replay "
                                     "makes none; leave it out, or set another opc.transition"};
static const struct reason PLANNER = {opc_plans,
                                      "it is for imagined rollouts that are learned from, and a "
                                      "planner makes none; leave it out"};
static const struct reason NO_REFERENCE = {has_no_reference,
                                           "it is for imagined steps with a reference; leave it "
                                           "out, or set opc.transition = corrected"};
static const struct reason NO_WINDOW = {has_no_past_to_mix,
                                        "it is for imagined rollouts beside a window, "
                                        "opc.reference_epochs of 1 or more"};
static const struct reason NOT_SAC = {is_not_sac, "it is for train.agent = sac; leave it out"};
static const struct reason NO_DISCOUNT = {does_not_discount,
                                          "with sac.discount = 1 a sum of rewards has no bounds; "
                                          "leave it out, or set a discount below 1"};

static const struct reason NO_REWARD = {
    has_no_imagined_reward, "it is for steps that the run's model imagines, or slbo, and "
                            "opc.transition = replay makes none; leave it out"};

static const struct reason KNOWN_REWARD = {
    knows_the_reward, "it limits what a model says of rewards, and with model.reward = given none "
                      "does; leave it out"};

enum { MAX_REASONS = 3 };
static const struct {
    const char *setting;
    const char *off; /* a value at which it is not asked for, besides its default; NULL: none */
    const struct reason *reason[MAX_REASONS]; /* the rest is NULL */
} IDLE[] = {
    {"opc.bounds", NULL, {&REPLAY, &PLANNER}},
    {"opc.max_drift", NULL, {&REPLAY, &PLANNER}},
    {"opc.max_disagreement", NULL, {&REPLAY, &PLANNER}},
    {"opc.reference_terminal", NULL, {&REPLAY, &PLANNER, &NO_REFERENCE}},
    {"opc.reference_epochs", "0", {&REPLAY}},
    {"opc.past_ratio", NULL, {&NO_WINDOW}},
    {"model.reward", NULL, {&NO_REWARD}},
    {"model.termination", NULL, {&REPLAY}},
    {"pets.bound_reward", NULL, {&KNOWN_REWARD}},
    {"sac.bound_targets", NULL, {&NOT_SAC, &NO_DISCOUNT}},
    {"sac.layer_norm", NULL, {&NOT_SAC}},
    {"sac.lr_decay", NULL, {&NOT_SAC}},
};
enum { IDLES = sizeof IDLE / sizeof *IDLE };

bool opc_values_idle(const struct opc_values *v, int *next, char out[OPC_IDLE])
{
    struct opc_values copy = *v; /* sections are not const */
    while (*next < IDLES) {
        const int i = (*next)++;
        void *section;
        const struct opc_field *f = opc_config_field(&copy, IDLE[i].setting, &section, NULL);
        if (!f || opc_field_equals(f, section, f->fallback) ||
            (IDLE[i].off && opc_field_equals(f, section, IDLE[i].off)))
            continue;
        for (int k = 0; k < MAX_REASONS && IDLE[i].reason[k]; k++) {
            struct opc_text value = {0};
            if (!IDLE[i].reason[k]->holds(v))
                continue;
            opc_field_print(f, section, &value);
            snprintf(out, OPC_IDLE, "%s = %s changes nothing here: %s", IDLE[i].setting,
                     opc_text_get(&value), IDLE[i].reason[k]->why);
            opc_text_free(&value);
            return true;
        }
    }
    return false;
}
