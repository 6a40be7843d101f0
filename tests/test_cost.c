/* SPDX-License-Identifier: MIT */
#include "study/cost.h"

#include "test.h"

/* Seconds of a run with these settings; NULL at the end. */
static double cost_of(const char *const *set)
{
    struct opc_config *config;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    for (; *set; set++)
        assert_ok(opc_config_set(config, *set, &err), &err);
    const double seconds = opc_cost_seconds(&config->set);
    opc_config_destroy(config);
    return seconds;
}
#define COST(...) cost_of((const char *const[]){__VA_ARGS__, NULL})

/* Updates alone: the difference of two runs that differ in nothing else. docs/performance.md has
 * 0.567 ms for 2x64 and 6.63 ms for 2x256. */
static void updates_cost_what_was_measured(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *critic;
        double seconds;
    } WANT[] = {{"sac.policy_hidden=[64, 64]", "sac.critic_hidden=[64, 64]", 0.567e-3},
                {"sac.policy_hidden=[256, 256]", "sac.critic_hidden=[256, 256]", 6.63e-3}};
    for (int i = 0; i < 2; i++) {
        const double one =
            COST("opc.transition=replay", "train.epochs=10", "train.steps_per_epoch=1000",
                 "train.updates_per_step=20", WANT[i].policy, WANT[i].critic);
        const double none =
            COST("opc.transition=replay", "train.epochs=10", "train.steps_per_epoch=1000",
                 "train.updates_per_step=0", WANT[i].policy, WANT[i].critic);
        assert_in_range((long)(100 * (one - none) / (200000 * WANT[i].seconds)), 85, 115);
    }
}

/* 2,000 gradient steps of 7 members of 4x200 at 16.9 ms, and 1e6 imagined steps at 3.3 us. */
static void fits_and_rollouts_cost_what_was_measured(void **state)
{
    (void)state;
    const char *same[] = {"train.epochs=10",
                          "train.random_steps=50000",
                          "model.max_steps=200",
                          "train.updates_per_step=0",
                          "opc.transitions=1",
                          "sac.policy_hidden=[64, 64]",
                          "model.hidden=[200, 200, 200, 200]",
                          NULL,
                          NULL};
    const double fit = cost_of(same);
    same[2] = "model.max_steps=400";
    const double twice = cost_of(same);
    assert_in_range((long)(100 * (twice - fit) / (11 * 200 * 16.9e-3)), 85, 115);
    same[2] = "model.max_steps=200";
    same[4] = "opc.transitions=100000";
    assert_in_range((long)(100 * (cost_of(same) - fit) / (10 * 0.332)), 85, 115);
}

/* A planner costs more with each candidate, SLBO has never been counted, an epoch more costs more.
 */
static void other_agents_are_counted_or_said_not_to_be(void **state)
{
    (void)state;
    const double few = COST("train.agent=pets", "opc.transition=learned", "pets.population=100");
    const double many = COST("train.agent=pets", "opc.transition=learned", "pets.population=200");
    assert_true(few > 0 && many > 1.5 * few && many < 2 * few);
    /* Tier small of experiments/steve: 18 ms an update (docs/steve.md). */
#define STEVE(updates)                                                                             \
    COST("train.agent=steve", "opc.transition=replay", "train.epochs=1",                           \
         "train.steps_per_epoch=1000", updates, "steve.batch_size=256",                            \
         "steve.policy_hidden=[64,64]", "steve.critic_hidden=[64,64]",                             \
         "steve.transition_hidden=[200,200,200,200]", "steve.reward_hidden=[64,64]",               \
         "steve.termination_hidden=[64,64]")
    assert_in_range((long)(STEVE("train.updates_per_step=5") - STEVE("train.updates_per_step=4")),
                    13, 23);
    assert_true(COST("train.agent=ppo", "opc.transition=replay") > 0);
    assert_true(isnan(COST("train.agent=slbo", "opc.transition=replay")));
    assert_true(COST("train.epochs=20") > 1.9 * COST("train.epochs=10"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_cost_what_was_measured),
        cmocka_unit_test(fits_and_rollouts_cost_what_was_measured),
        cmocka_unit_test(other_agents_are_counted_or_said_not_to_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
