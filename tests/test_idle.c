/* SPDX-License-Identifier: MIT */
/* Settings that change nothing are named, with what to change; and no run that is shipped has one,
 * or its warning would be in every log of a sweep. */
#include "sweep/sweep.h"

#include "test.h"

#include <glob.h>

static struct opc_config *made(const char *const *set)
{
    struct opc_config *config;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    for (; *set; set++)
        assert_ok(opc_config_set(config, *set, &err), &err);
    return config;
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SAID(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define NOTHING                                                                                    \
    {                                                                                              \
        NULL                                                                                       \
    }
static const struct {
    const char *const *set;
    const char *said[6]; /* in this order, up to NULL: the setting that is named, or the reason */
} CASES[] = {
    {SET(NULL), NOTHING},
    {SET("opc.bounds=true", "opc.max_drift=1", "opc.max_disagreement=2", "opc.reference_epochs=5",
         "opc.reference_terminal=drop", "opc.past_ratio=0.5", "sac.layer_norm=true",
         "sac.bound_targets=true"),
     NOTHING},
    {SET("opc.transition=learned", "opc.bounds=true", "opc.max_drift=1", "opc.max_disagreement=2",
         "opc.reference_epochs=5", "opc.past_ratio=0.5"),
     NOTHING},
    /* nothing is imagined; 0 and 1 are what others have had as default */
    {SET("opc.transition=replay", "sac.layer_norm=true", "sac.bound_targets=true"), NOTHING},
    {SET("opc.transition=replay", "opc.reference_epochs=0", "opc.max_drift=0", "opc.bounds=false"),
     NOTHING},
    {SET("opc.transition=replay", "opc.bounds=true", "opc.max_drift=0.5", "opc.max_disagreement=2",
         "opc.reference_epochs=5", "opc.past_ratio=0.5"),
     {"opc.bounds = true", "opc.max_drift = 0.5", "opc.max_disagreement = 2",
      "opc.reference_epochs = 5", "opc.past_ratio = 0.5", NULL}},
    {SET("opc.transition=replay", "opc.reference_terminal=terminal"),
     SAID("opc.reference_terminal = terminal")},
    {SET("train.agent=pets", "opc.transition=learned", "opc.bounds=true"), SAID("opc.bounds")},
    /* no reference */
    {SET("opc.transition=learned", "opc.reference_terminal=drop"),
     SAID("opc.reference_terminal = drop")},
    {SET("opc.transition=learned", "opc.reference_terminal=terminal"),
     SAID("opc.reference_terminal = terminal")},
    {SET("opc.transition=learned", "opc.reference_terminal=continue"), NOTHING},
    /* no window, or none that a planner leaves */
    {SET("opc.reference_epochs=0", "opc.past_ratio=0.5"), SAID("opc.past_ratio = 0.5")},
    {SET("train.agent=pets", "opc.past_ratio=0.5"), SAID("opc.past_ratio")},
    /* no steps whose reward could be given */
    {SET("train.agent=steve", "opc.transition=replay", "model.reward=given"),
     SAID("model.reward = given")},
    {SET("train.agent=steve", "opc.transition=replay", "model.reward=auto"),
     SAID("model.reward = auto")},
    {SET("opc.transition=replay", "model.reward=given"), SAID("model.reward = given")},
    {SET("train.agent=slbo", "opc.transition=replay", "model.reward=given"), NOTHING},
    {SET("train.agent=pets", "opc.transition=learned", "model.reward=given"), NOTHING},
    {SET("model.reward=given"), NOTHING},
    /* critics of another agent */
    {SET("train.agent=ppo", "opc.transition=replay", "sac.layer_norm=true"),
     SAID("sac.layer_norm = true")},
    {SET("train.agent=ppo", "opc.transition=replay", "sac.lr_decay=0.5"),
     SAID("sac.lr_decay = 0.5")},
    {SET("train.agent=steve", "opc.transition=replay", "sac.bound_targets=true"),
     SAID("sac.bound_targets = true")},
    /* sums without bounds */
    {SET("sac.bound_targets=true", "sac.discount=1"), SAID("sac.discount = 1")},
    {SET("sac.discount=1"), NOTHING},
};

static void a_setting_that_changes_nothing_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct opc_config *config = made(CASES[i].set);
        char text[OPC_IDLE];
        int next = 0;
        for (const char *const *said = CASES[i].said; *said; said++)
            if (!opc_values_idle(&config->set, &next, text) || !strstr(text, *said) ||
                !strstr(text, " changes nothing here: ") || strlen(text) + 1 == sizeof text)
                fail_msg("case %zu does not say %s", i, *said);
        if (opc_values_idle(&config->set, &next, text))
            fail_msg("case %zu also says: %s", i, text);
        opc_config_destroy(config);
    }
}

/* Returns how many runs there are. */
static int listen(const char *path, const char *tier)
{
    const struct opc_sweep_ask ask = {.path = path, .tier = tier};
    struct opc_sweep *sweep;
    struct opc_err err;
    char text[OPC_IDLE];
    if (opc_sweep_open(&ask, &sweep, &err))
        return 0;
    for (int i = 0, next = 0; i < sweep->tasks; i++, next = 0)
        if (opc_values_idle(&sweep->task[i].set, &next, text))
            fail_msg("%s: %s: %s", path, sweep->task[i].name, text);
    const int n = sweep->tasks;
    opc_sweep_close(sweep);
    return n;
}

static void no_run_that_is_shipped_has_one(void **state)
{
    (void)state;
    static const char *const TIERS[] = {"", "smoke", "small", "full"};
    glob_t found = {0};
    int runs = 0;
    assert_int_equal(glob(OPC_TEST_DIR "/../experiments/*.yaml", 0, NULL, &found), 0);
    assert_int_equal(glob(OPC_TEST_DIR "/../experiments/*/*.yaml", GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct opc_config *config;
        char text[OPC_IDLE];
        int next = 0;
        if (strstr(found.gl_pathv[i], "/ilc/") || opc_config_load(found.gl_pathv[i], &config, NULL))
            continue; /* of other programs' settings */
        if (opc_values_idle(&config->set, &next, text))
            fail_msg("%s: %s", found.gl_pathv[i], text);
        opc_config_destroy(config);
        for (size_t k = 0; k < sizeof TIERS / sizeof *TIERS; k++)
            runs += listen(found.gl_pathv[i], TIERS[k]);
    }
    globfree(&found);
    assert_true(runs > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_that_changes_nothing_is_named),
        cmocka_unit_test(no_run_that_is_shipped_has_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
