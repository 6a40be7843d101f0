/* SPDX-License-Identifier: MIT */
/* The identity of a run's settings: a checksum that every checkpoint carries. `opc resume` refuses
 * a checkpoint of other settings, and a sweep compares it to know whether a directory holds the run
 * it wants.
 *
 * A change of this program must not change the identity of runs that exist. So the settings of the
 * first runs are listed here once and for all, under the names and in the order they had then;
 * later renames and moves do not matter. A setting that is not in the list counts only where it
 * differs from its default, so that a new one leaves all older runs alone. Whoever changes the
 * default of a setting adds its old default to UNCHANGED below. A setting that changes no result,
 * only the forms in which it is written or where a file is found, is in FORMS and never counts. */
#include "base/format/crc.h"
#include "run/config/config.h"

#include <stdio.h>
#include <string.h>

struct listed {
    const char *name; /* section and name as of the first runs */
    /* The value at which it does not count, because it was added later; NULL: it always counts. */
    const char *absent;
};

/* clang-format off */
static const struct listed LIST[] = {
    {"train.seed", NULL}, {"train.epochs", NULL}, {"train.steps_per_epoch", NULL},
    {"train.random_steps", NULL}, {"train.agent", "sac"}, {"train.fit_every", NULL},
    {"train.simulate_every", NULL}, {"train.improve_every", NULL}, {"train.updates_per_step", NULL},
    {"train.rounds", "1"}, {"train.least_steps", NULL}, {"train.fit_first", NULL},
    {"train.reset_each_epoch", NULL},
    {"env.name", NULL},
    {"opc.transition", NULL}, {"opc.horizon", NULL}, {"opc.transitions", NULL},
    {"opc.rollouts", NULL}, {"opc.start", NULL}, {"opc.reference_epochs", "0"},
    {"opc.correct_reward", NULL}, {"opc.sample", NULL}, {"opc.elite", NULL},
    {"opc.reference_terminal", NULL},
    {"data.retain", NULL}, {"data.forget", NULL}, {"data.real_ratio", NULL}, {"data.reset", NULL},
    {"model.members", NULL}, {"model.elites", NULL}, {"model.hidden", NULL}, {"model.rate", NULL},
    {"model.adam", NULL}, {"model.decay", NULL}, {"model.decay_biases", NULL},
    {"model.batch", NULL}, {"model.holdout", NULL}, {"model.holdout_most", NULL},
    {"model.patience", NULL}, {"model.improvement", NULL}, {"model.most_passes", NULL},
    {"model.best", NULL}, {"model.snapshot", NULL}, {"model.bootstrap", NULL},
    {"model.warm_start", NULL}, {"model.bounds", NULL}, {"model.bound_penalty", NULL},
    {"model.log_var_max", NULL}, {"model.log_var_min", NULL}, {"model.scale_on", NULL},
    {"model.scale_std", NULL},
    {"sac.policy_hidden", NULL}, {"sac.critic_hidden", NULL}, {"sac.discount", NULL},
    {"sac.rate", NULL}, {"sac.batch", NULL}, {"sac.tau", NULL}, {"sac.target_interval", NULL},
    {"sac.tune_entropy", NULL}, {"sac.alpha", NULL}, {"sac.target_entropy", NULL},
    {"sac.reward_scale", NULL}, {"sac.adam", NULL},
    {"ppo.policy_hidden", NULL}, {"ppo.critic_hidden", NULL}, {"ppo.discount", NULL},
    {"ppo.lambda", NULL}, {"ppo.rate", NULL}, {"ppo.anneal", NULL}, {"ppo.passes", NULL},
    {"ppo.batch", NULL}, {"ppo.clip", NULL}, {"ppo.clip_value", NULL}, {"ppo.value_weight", NULL},
    {"ppo.entropy_weight", NULL}, {"ppo.most_norm", NULL}, {"ppo.log_std", NULL},
    {"ppo.scale_obs", NULL}, {"ppo.scale_reward", NULL}, {"ppo.most_scaled", NULL},
    {"eval.episodes", NULL}, {"eval.every", NULL},
    {"record.snapshots", NULL},
};
/* clang-format on */
enum { LISTED = sizeof LIST / sizeof *LIST };

/* Settings outside the list whose default has changed since runs were made with it, with the value
 * that stands for the older program. None so far. */
static const struct listed UNCHANGED[] = {{NULL, NULL}};

/* Settings that never count. */
static const char *const FORMS[] = {"record.tensorboard", "record.json_lines", "env.directory"};

bool opc_config_counts(const struct opc_section *s, const struct opc_field *f)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", s->name, f->name);
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (strcmp(FORMS[i], key) == 0)
            return false;
    return true;
}

/* An agent's settings count only if the run has that agent; those of the first agent always do, as
 * they did when there was no other. */
static bool is_of_another_agent(const struct opc_values *v, const char *section)
{
    for (int i = 1; opc_agent_type(i); i++) {
        const struct opc_section *s = opc_agent_type(i)->settings;
        if (s && strcmp(s->name, section) == 0)
            return v->train.agent != i;
    }
    return false;
}

/* Runs without a model have no references. Those of the first programs had 0 there, those of today
 * have the default. */
static bool means_nothing(const struct opc_values *v, const char *name)
{
    return strcmp(name, "opc.reference_epochs") == 0 && !opc_transition_of(v)->needs_model;
}

/* The checksum of the settings of the list, in its order: old name and value of each. */
static uint32_t hash_listed(const struct opc_part *part, int parts, const struct opc_values *v)
{
    uint32_t crc = 0;
    for (int i = 0; i < LISTED; i++) {
        const char *dot = strchr(LIST[i].name, '.');
        const size_t n = (size_t)(dot - LIST[i].name);
        for (int p = 0; p < parts; p++) {
            const struct opc_section *s = part[p].section;
            if (strlen(s->name) != n || strncmp(s->name, LIST[i].name, n) != 0)
                continue;
            /* opc_section_find knows old names, too; the hash is over the old one. */
            const struct opc_field *f = opc_section_find(s, dot + 1);
            if (!f || is_of_another_agent(v, s->name) || means_nothing(v, LIST[i].name) ||
                (LIST[i].absent && opc_field_equals(f, part[p].values, LIST[i].absent)))
                continue;
            crc = opc_crc32c(crc, dot + 1, strlen(dot + 1) + 1);
            crc = opc_crc32c(crc, (const char *)part[p].values + f->offset, opc_field_size(f));
        }
    }
    return crc;
}

static bool is_listed(const struct opc_section *s, const struct opc_field *f)
{
    for (int i = 0; i < LISTED; i++) {
        const char *dot = strchr(LIST[i].name, '.');
        const size_t n = (size_t)(dot - LIST[i].name);
        if (strlen(s->name) == n && strncmp(s->name, LIST[i].name, n) == 0 &&
            opc_section_find(s, dot + 1) == f)
            return true;
    }
    return false;
}

/* Is a setting outside the list at the value at which it does not count? */
static bool is_at_rest(const struct opc_section *s, const struct opc_field *f, const void *values)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", s->name, f->name);
    for (const struct listed *u = UNCHANGED; u->name; u++)
        if (strcmp(u->name, key) == 0)
            return opc_field_equals(f, values, u->absent);
    return opc_field_equals(f, values, f->fallback);
}

static uint32_t add_setting(uint32_t crc, const char *section, const char *name, const void *value,
                            size_t bytes)
{
    crc = opc_crc32c(crc, section, strlen(section) + 1);
    crc = opc_crc32c(crc, name, strlen(name) + 1);
    return opc_crc32c(crc, value, bytes);
}

/* The rewards of SLBO were its own setting, slbo.reward = auto, learned or given, before slbo.start
 * in its table. In its runs model.reward counts under that name, in that place and by that number.
 */
static uint32_t add_slbo_reward(uint32_t crc, const struct opc_values *v)
{
    const int number = v->model.reward == OPC_REWARD_AUTO ? 0 : v->model.reward + 1;
    return number ? add_setting(crc, "slbo", "reward", &number, sizeof number) : crc;
}

uint32_t opc_config_hash(const struct opc_values *v)
{
    struct opc_values copy = *v;
    struct opc_part part[OPC_PARTS_MAX];
    /* A run that may get more epochs keeps its identity when it does. */
    if (opc_config_may_go_on(v))
        copy.train.epochs = 0;
    /* A file of episodes is known by its content, wherever it is. */
    if (*v->train.prefill_checksum)
        memset(copy.train.prefill, 0, sizeof copy.train.prefill);
    const bool slbo = strcmp(opc_agent_of(v)->name, "slbo") == 0;
    if (slbo)
        copy.model.reward = OPC_REWARD_LEARNED; /* its default, which does not count */
    const int parts = opc_config_parts(&copy, part);
    uint32_t crc = hash_listed(part, parts, v);
    for (int i = 0; i < parts; i++) {
        const struct opc_section *s = part[i].section;
        /* then the settings that came later, where they are not at their default */
        for (int k = 0; k < s->n && !is_of_another_agent(v, s->name); k++) {
            const struct opc_field *f = &s->fields[k];
            if (slbo && strcmp(s->name, "slbo") == 0 && strcmp(f->name, "start") == 0)
                crc = add_slbo_reward(crc, v);
            if (is_listed(s, f) || is_at_rest(s, f, part[i].values) || !opc_config_counts(s, f))
                continue;
            crc = add_setting(crc, s->name, f->name, (const char *)part[i].values + f->offset,
                              opc_field_size(f));
        }
    }
    return crc;
}
