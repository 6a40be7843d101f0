/* SPDX-License-Identifier: MIT */
/* toy.h - a small nonlinear world and models of it, right and wrong, for tests of data and opc. */
#ifndef OPC_TEST_TOY_H
#define OPC_TEST_TOY_H

#include "test.h"

#include "base/pool.h"
#include "opc/episodes.h"
#include "opc/predictor.h"

enum { OBS = 3, ACT = 2, COLUMNS = OBS + 1 };

/* F(s, a) = [s', r], without noise. */
static inline void toy_truth(const float *s, const float *a, double y[COLUMNS])
{
    const double s0 = (double)s[0], s1 = (double)s[1], s2 = (double)s[2];
    const double a0 = (double)a[0], a1 = (double)a[1];
    y[0] = 0.9 * s0 + 0.2 * sin(s1) + 0.3 * a0;
    y[1] = 0.8 * s1 - 0.1 * s0 * s2 + 0.2 * a1 * cos(s2);
    y[2] = 0.7 * s2 + 0.1 * tanh(s0) + 0.1 * a0 * a1;
    y[3] = 1 - s0 * s0 - 0.5 * s1 * s1 + 0.1 * a0;
}

/* A deterministic policy. It looks at the float state, as recorded. */
static inline void toy_policy(const float *s, float *a)
{
    a[0] = tanhf(0.5f * s[1] - 0.8f * s[0]);
    a[1] = tanhf(0.3f * s[2] + 0.4f * s[0] - 0.1f);
}

static inline double toy_noise(struct opc_rng *rng, double size)
{
    return size * (opc_rng_unit_double(rng) + opc_rng_unit_double(rng) - 1);
}

/* One episode of `steps` steps played by the policy with additive noise, or if `wander` by random
 * actions. */
static inline void toy_play(struct opc_episodes *past, int steps, bool terminal, bool wander,
                            double noise, uint32_t number)
{
    struct opc_err err;
    struct opc_rng rng = opc_rng_stream(7, OPC_USE_TEST, 0, number);
    double s[OBS];
    float sf[OBS], a[ACT];
    for (int k = 0; k < OBS; k++)
        s[k] = toy_noise(&rng, 1);
    assert_ok(opc_episodes_begin(past, s, &err), &err);
    for (int t = 0; t < steps; t++) {
        double y[COLUMNS];
        for (int k = 0; k < OBS; k++)
            sf[k] = (float)s[k];
        toy_policy(sf, a);
        for (int k = 0; wander && k < ACT; k++)
            a[k] = 2 * opc_rng_unit(&rng) - 1;
        toy_truth(sf, a, y);
        for (int k = 0; k < OBS; k++)
            s[k] = (double)(float)(y[k] + toy_noise(&rng, noise));
        assert_ok(opc_episodes_append(past, a, y[OBS], s, terminal && t == steps - 1, &err), &err);
    }
    opc_episodes_close(past);
}

/* ---- models ---------------------------------------------------------------------------------- */
enum toy_kind {
    TOY_LINEAR,   /* wrong everywhere, differently for each elite */
    TOY_NONSENSE, /* not even smooth */
    TOY_TRUTH,
    TOY_SHIFTED, /* truth plus a constant */
    TOY_RICH,    /* truth, but for elite 0, which promises a reward of 1e6 */
    TOY_ELITE,   /* s' = s + 1 + elite, reward = elite: says who answered */
    TOY_BROKEN,  /* not a number, for rows with a negative first entry */
    TOY_GREEDY,  /* infinite reward */
    TOY_TORN,    /* elite 0 stays where it is, the others do not know a number */
};

struct toy_model {
    struct opc_predictor base;
    enum toy_kind kind;
};

static inline void toy_f(enum toy_kind kind, const float *s, const float *a, int elite, float *y)
{
    double x[COLUMNS];
    for (int k = 0; k < COLUMNS; k++) {
        const double sk = (double)s[k % OBS], sj = (double)s[(k + 1) % OBS];
        const double ak = (double)a[k % ACT], aj = (double)a[(k + 1) % ACT];
        switch (kind) {
        case TOY_LINEAR: x[k] = 3 * sk - 2 * ak + 0.1 * (1 + elite) * (sj - aj) + 1 + elite; break;
        case TOY_NONSENSE:
            x[k] = 1e3 * sin(37 * sk + 11 * elite) * exp(3 * aj) + floor(50 * sj) +
                   1 / (0.01 + ak * ak);
            break;
        case TOY_ELITE: x[k] = k == OBS ? elite : sk + 1 + elite; break;
        case TOY_BROKEN: x[k] = s[0] < 0 && k == 1 ? (double)NAN : 1; break;
        case TOY_GREEDY: x[k] = k == OBS ? HUGE_VAL : 0; break;
        case TOY_TORN: x[k] = elite ? (double)NAN : sk; break;
        default: break;
        }
    }
    if (kind == TOY_TRUTH || kind == TOY_SHIFTED || kind == TOY_RICH)
        toy_truth(s, a, x);
    if (kind == TOY_RICH && elite == 0)
        x[OBS] = 1e6;
    for (int k = 0; k < COLUMNS; k++)
        y[k] = (float)(kind == TOY_SHIFTED ? x[k] + 0.25 * (k + 1) : x[k]);
}

struct toy_rows {
    const struct toy_model *model;
    const float *s, *a;
    const int *elite;
    struct opc_rng *rng;
    float *y;
};

static inline void toy_rows(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct toy_rows *r = ctx;
    for (int i = first; i < end; i++) {
        float *y = r->y + i * COLUMNS;
        toy_f(r->model->kind, r->s + i * OBS, r->a + i * ACT, r->elite[i], y);
        for (int k = 0; r->rng && k < COLUMNS; k++)
            y[k] += opc_rng_unit(&r->rng[i]) - 0.5f;
    }
}

static inline void toy_predict(const struct opc_predictor *p, int n, const float *s, const float *a,
                               const int *elite, struct opc_rng *rng, float *y,
                               struct opc_pool *pool)
{
    struct toy_rows rows = {(const struct toy_model *)p, s, a, elite, rng, y};
    opc_pool_each(pool, n, 16, toy_rows, &rows);
}

static const struct opc_predictor_type toy_type = {.name = "toy", .predict = toy_predict};

static inline struct toy_model toy_model(enum toy_kind kind, int elites)
{
    return (struct toy_model){
        {.type = &toy_type, .obs = OBS, .act = ACT, .members = elites, .elites = elites}, kind};
}

#endif
