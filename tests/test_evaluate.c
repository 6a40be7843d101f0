/* SPDX-License-Identifier: MIT */
/* An evaluation: every episode from a start of its own, whole, and without exploration. */
#include "run/real/evaluate.h"

#include "test.h"

enum { EPISODES = 7 };

/* Pushes where the pole leans; when it explores, at random. */
static void push(const struct opc_agent *agent, int n, const float *s, bool explore,
                 struct opc_rng *rng, float *a)
{
    for (int i = 0; i < n; i++)
        a[i] = explore ? 2 * opc_rng_unit(&rng[i]) - 1 : s[i * agent->obs + agent->obs - 2] > 0;
}

static const struct opc_agent_type type = {.name = "push", .act = push};

/* The same, one episode after the other. */
static double by_hand(const char *task, const struct opc_agent *agent, uint32_t i, int limit,
                      int *length)
{
    struct opc_env *env;
    struct opc_err err;
    double obs[16], action, total = 0;
    struct opc_outcome out = {.obs = obs};
    struct opc_rng r = opc_rng_stream(5, OPC_USE_EVAL, 3, i);
    assert_ok(opc_env_open(task, &env, &err), &err);
    assert_ok(opc_env_reset(env, &r, obs, &err), &err);
    for (*length = 0; *length < limit && !out.terminated && !out.truncated; ++*length) {
        float s[16], a;
        for (int k = 0; k < env->obs; k++)
            s[k] = (float)obs[k];
        opc_agent_act(agent, 1, s, false, NULL, &a);
        opc_env_scale(env, &a, &action);
        assert_ok(opc_env_step(env, &action, &out, &err), &err);
        total += out.reward;
    }
    opc_env_close(env);
    return total;
}

static void check(const char *task, int obs, int limit)
{
    static const int WORLDS[] = {1, 3, EPISODES};
    const struct opc_agent agent = {.type = &type, .obs = obs, .act = 1};
    double want[EPISODES], mean = 0, length = 0;
    bool all_alike = true;
    for (uint32_t i = 0; i < EPISODES; i++) {
        int steps;
        want[i] = by_hand(task, &agent, i, limit, &steps);
        mean += want[i];
        length += (double)steps / EPISODES;
        all_alike = all_alike && want[i] == want[0];
    }
    mean /= EPISODES;
    assert_false(all_alike);
    for (int k = 0; k < 3; k++) {
        struct opc_many *worlds;
        struct opc_evaluation got = {OPC_SIZED(struct opc_evaluation)};
        struct opc_err err;
        double returns[EPISODES];
        assert_ok(opc_many_open(task, WORLDS[k], NULL, &worlds, &err), &err);
        const struct opc_eval_plan plan = {.agent = &agent,
                                           .worlds = worlds,
                                           .episodes = EPISODES,
                                           .limit = limit,
                                           .seed = 5,
                                           .epoch = 3};
        assert_ok(opc_evaluate(&plan, &got, returns, &err), &err);
        assert_same_bits(returns, want, sizeof want);
        double variance = 0;
        for (int i = 0; i < EPISODES; i++)
            variance += (want[i] - mean) * (want[i] - mean) / EPISODES;
        assert_true(got.mean == mean);
        assert_true(fabs(got.deviation - sqrt(variance)) < 1e-9);
        assert_true(fabs(got.length - length) < 1e-9);
        opc_many_close(worlds);
    }
}

static void episodes_are_those_played_one_by_one(void **state)
{
    (void)state;
    check("cartpole", 4, 1000); /* each ends when its pole falls */
    check("pendulum", 3, 200);  /* none ends before its time is up */
    check("pendulum", 3, 50);   /* or is cut */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(episodes_are_those_played_one_by_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
