/* SPDX-License-Identifier: MIT */
/* tests/rollouts.h - Algorithm 2 in the toy world, for tests of what it makes: recordings,
 * policies, and stores that are filled and compared. */
#ifndef OPC_TESTS_ROLLOUTS_H
#define OPC_TESTS_ROLLOUTS_H

#include "data/imagined.h"
#include "opc/algorithm2.h"
#include "toy.h"
#include "transitions.h"

enum { STRIDE = OBS + ACT + 2, H = 10, ELITES = 5 };
static const int THREADS[] = {1, 2, 3, 8};

static inline void act_by_policy(void *ctx, int n, const float *state, struct opc_rng *rng,
                                 float *action)
{
    (void)ctx, (void)rng;
    for (int i = 0; i < n; i++)
        toy_policy(state + i * OBS, action + i * ACT);
}

static inline void act_at_random(void *ctx, int n, const float *state, struct opc_rng *rng,
                                 float *action)
{
    (void)ctx;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < ACT; k++)
            action[i * ACT + k] = tanhf(state[i * OBS]) * (2 * opc_rng_unit(&rng[i]) - 1);
}

/* 30 episodes of 1 to 60 steps, every third of which ends in a terminal state. */
static inline struct opc_episodes *played(bool wander, double noise)
{
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, 2000, 100, &past, &err), &err);
    for (int b = 0; b < 30; b++)
        toy_play(past, 1 + b * 7 % 60, b % 3 == 0, wander, noise, (uint32_t)b);
    return past;
}

static inline struct opc_transition *made(const char *name, const struct opc_episodes *past,
                                          const struct opc_predictor *model, struct opc_pool *pool)
{
    struct opc_transition *tr;
    struct opc_err err;
    assert_ok(make_transition(name, past, model, 2000, &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, pool, &err), &err);
    return tr;
}

/* A new store with what the plan says, made with at most `rows` rollouts at a time. */
static inline struct opc_imagined *rollouts_of(const struct opc_rollout_plan *plan, int rows,
                                               struct opc_rollout_report *report)
{
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape), .obs = OBS,  .act = ACT,           .longest = 60,
        .forget = OPC_FORGET_EPOCHS,          .retain = 1, .transitions = 300000};
    struct opc_imagined *d;
    struct opc_rollout *w;
    struct opc_err err;
    assert_ok(opc_imagined_create(&shape, &d, &err), &err);
    assert_ok(opc_rollout_create(OBS, ACT, 60, rows, &w, &err), &err);
    opc_imagined_open_epoch(d, 0);
    assert_ok(opc_rollout_run(w, plan, d, report, &err), &err);
    opc_rollout_destroy(w);
    return d;
}

static inline void assert_same_rollouts(const struct opc_imagined *a, const struct opc_imagined *b)
{
    struct opc_rollout_rows x, y;
    uint64_t at = 0, too = 0;
    while (opc_imagined_next(a, &at, &x)) {
        assert_true(opc_imagined_next(b, &too, &y));
        assert_int_equal(x.steps, y.steps);
        assert_same_bits(x.records, y.records, (size_t)(x.steps + 1) * STRIDE * sizeof(float));
    }
    assert_false(opc_imagined_next(b, &too, &y));
}

#endif
