/* SPDX-License-Identifier: MIT */
/* Do the settings of a run fit each other? Each is checked against its own range when it is set
 * (base/field.c); here are the rules between two or more of them. Called by opc_config_check,
 * before anything is built.
 *
 * Invariant: a message names the settings at fault apart from its words, in err->settings, so that
 * file and line can be reported without parsing it. */
#include "run/config/config.h"

#include <math.h>
#include <stdio.h>

/* Fits, simulations and improvements come at the same steps of every epoch. */
static int check_every(const struct opc_values *v, const char *name, int every, struct opc_err *err)
{
    const int steps = v->train.steps_per_epoch;
    char settings[64];
    if (steps % opc_every(v, every) == 0)
        return OPC_OK;
    snprintf(settings, sizeof settings, "train.%s train.steps_per_epoch", name);
    return opc_fail_settings(
        err, settings,
        "train.%s = %d does not divide train.steps_per_epoch = %d; 0 means once an "
        "epoch",
        name, every, steps);
}

/* H is constant, or grows from h0 to h1 between epochs e0 and e1. */
static int check_horizon(const struct opc_values *v, struct opc_err *err)
{
    const struct opc_ints *h = &v->opc.horizon;
    if (h->n == 1 && h->at[0] >= 1)
        return OPC_OK;
    if (h->n == 4 && h->at[0] < h->at[1] && h->at[2] >= 1 && h->at[3] >= 1)
        return OPC_OK;
    return opc_fail_settings(
        err, "opc.horizon",
        "opc.horizon is either one number of at least 1, or [e0, e1, h0, h1] with "
        "epochs e0 < e1 and horizons of at least 1");
}

/* Rounds divide one simulation and one improvement, so each simulation must have its
 * improvement. */
static int check_rounds(const struct opc_values *v, struct opc_err *err)
{
    const struct opc_train_config *t = &v->train;
    const int imagined = v->opc.rollouts ? v->opc.rollouts : v->opc.transitions;
    const int updates = opc_updates(v);
    if (t->rounds == 1)
        return OPC_OK;
    if (opc_every(v, t->simulate_every) != opc_every(v, t->improve_every))
        return opc_fail_settings(
            err, "train.rounds train.simulate_every train.improve_every",
            "train.rounds = %d shares out what one improvement and one simulation make: "
            "train.simulate_every and train.improve_every must be the same",
            t->rounds);
    if (t->rounds > updates || t->rounds > imagined)
        return opc_fail_settings(err, "train.rounds",
                                 "train.rounds = %d is more than the %d %s there are to share out",
                                 t->rounds, updates < imagined ? updates : imagined,
                                 updates < imagined    ? "gradient steps"
                                 : v->opc.rollouts > 0 ? "rollouts"
                                                       : "imagined steps");
    return OPC_OK;
}

static int check_model(const struct opc_values *v, struct opc_err *err)
{
    const struct opc_train_config *t = &v->train;
    /* elites are chosen among the members */
    if (v->model.elites > v->model.members)
        return opc_fail_settings(err, "model.elites model.members",
                                 "model.elites = %d is more than model.members = %d",
                                 v->model.elites, v->model.members);
    /* disagreement takes two */
    if (v->opc.max_disagreement > 0 && v->model.elites < 2)
        return opc_fail_settings(
            err, "opc.max_disagreement model.elites",
            "opc.max_disagreement = %g compares the elites of the ensemble, and model.elites = %d; "
            "set at least 2, or opc.max_disagreement = 0",
            v->opc.max_disagreement, v->model.elites);
    /* real_ratio = 1 would draw nothing from the imagined data */
    if (v->data.real_ratio == 1)
        return opc_fail_settings(
            err, "data.real_ratio",
            "data.real_ratio = 1 leaves no share of a batch to imagined steps; for training "
            "without a model set opc.transition=replay");
    /* the first fit comes before the first step of the policy */
    if (t->fit_first && t->random_steps == 0 && !*t->prefill)
        return opc_fail_settings(
            err, "train.fit_first train.random_steps",
            "train.fit_first = true needs recorded steps before the first epoch; raise "
            "train.random_steps or name a train.prefill");
    /* so that a simulation comes right after a fit, or uses the same fit several times */
    if (opc_every(v, t->simulate_every) % opc_every(v, t->fit_every) != 0 &&
        opc_every(v, t->fit_every) % opc_every(v, t->simulate_every) != 0)
        return opc_fail_settings(
            err, "train.fit_every train.simulate_every",
            "train.fit_every = %d and train.simulate_every = %d: one must be a "
            "multiple of the other",
            t->fit_every, t->simulate_every);
    OPC_TRY(check_rounds(v, err));
    return check_horizon(v, err);
}

/* What the agent needs must exist: a model, or whole episodes. */
static int check_needs(const struct opc_values *v, struct opc_err *err)
{
    const struct opc_train_config *t = &v->train;
    const struct opc_agent_type *agent = opc_agent_of(v);
    if ((agent->needs & OPC_NEEDS_MODEL) && !opc_transition_of(v)->needs_model)
        return opc_fail_settings(
            err, "train.agent opc.transition",
            "train.agent = %s needs a model, which opc.transition = %s does without", agent->name,
            opc_transition_of(v)->name);
    if ((agent->needs & OPC_NEEDS_RECORDED) && opc_transition_of(v)->needs_model)
        return opc_fail_settings(
            err, "train.agent opc.transition",
            "train.agent = %s has a model of its own and learns from recorded steps; set "
            "opc.transition = replay",
            agent->name);
    if ((agent->needs & OPC_NEEDS_MODEL) && v->model.termination == OPC_TERMINATION_LEARNED)
        return opc_fail_settings(err, "train.agent model.termination",
                                 "model.termination = learned is for rollouts; train.agent = %s "
                                 "plans, and asks the task itself",
                                 agent->name);
    if (!(agent->needs & OPC_NEEDS_TRAJECTORIES))
        return OPC_OK;
    if (*t->prefill)
        return opc_fail_settings(
            err, "train.agent train.prefill",
            "train.agent = %s learns from the episodes of its own policy, so train.prefill = %s "
            "would not be used",
            agent->name, t->prefill);
    if (opc_transition_of(v)->needs_model && !(agent->needs & OPC_NEEDS_MODEL))
        return opc_fail_settings(
            err, "train.agent opc.transition",
            "train.agent = %s learns from recorded episodes, not from rollouts; set "
            "opc.transition = replay",
            agent->name);
    if (opc_every(v, t->improve_every) != t->steps_per_epoch || !t->reset_each_epoch)
        return opc_fail_settings(
            err, "train.agent train.improve_every train.reset_each_epoch",
            "train.agent = %s learns from whole episodes at the end of an epoch; set "
            "train.improve_every = 0 and train.reset_each_epoch = true",
            agent->name);
    return OPC_OK;
}

int opc_values_check(const struct opc_values *v, struct opc_err *err)
{
    const struct opc_train_config *t = &v->train;
    OPC_TRY(check_every(v, "fit_every", t->fit_every, err));
    OPC_TRY(check_every(v, "simulate_every", t->simulate_every, err));
    OPC_TRY(check_every(v, "improve_every", t->improve_every, err));
    OPC_TRY(check_needs(v, err));
    if (opc_agent_of(v)->check)
        OPC_TRY(opc_agent_of(v)->check(opc_values_agent(v, v->train.agent), v->model.elites, err));
    if (*t->prefill_checksum && !*t->prefill)
        return opc_fail_settings(err, "train.prefill_checksum",
                                 "train.prefill_checksum = %s is the checksum of no file: "
                                 "train.prefill is empty",
                                 t->prefill_checksum);
    if (opc_transition_of(v)->needs_model)
        OPC_TRY(check_model(v, err));
    /* Steps are counted by int. */
    const double steps = (double)t->random_steps + (double)t->epochs * t->steps_per_epoch;
    if (steps > 1e9)
        return opc_fail_settings(
            err, "train.epochs train.steps_per_epoch train.random_steps",
            "train.epochs x train.steps_per_epoch and train.random_steps are %.0f real "
            "steps, more than a run can record (1e9)",
            steps);
    if (!(opc_agent_of(v)->needs & OPC_NEEDS_STEPS))
        return OPC_OK; /* its gradient steps follow from the real ones */
    if (opc_updates_exactly(v) > 1e9)
        return opc_fail_settings(
            err, "train.updates_per_step train.improve_every",
            "train.updates_per_step x train.improve_every = %.0f gradient steps at a "
            "time are more than can be meant (1e9); lower either",
            opc_updates_exactly(v));
    if (opc_updates_exactly(v) < 1)
        return opc_fail_settings(
            err, "train.updates_per_step train.improve_every",
            "train.updates_per_step x train.improve_every is below one gradient step; "
            "raise either");
    /* A small number would be rounded to quite another one. */
    const double wanted = t->updates_per_step * opc_every(v, t->improve_every);
    if (fabs(opc_updates_exactly(v) - wanted) > 0.01 * wanted)
        return opc_fail_settings(
            err, "train.updates_per_step train.improve_every",
            "train.updates_per_step x train.improve_every = %g gradient steps at a time is not "
            "a whole number; with a larger train.improve_every it can be",
            wanted);
    return OPC_OK;
}
