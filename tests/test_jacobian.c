/* SPDX-License-Identifier: MIT */
/* The derivatives of a predictor's mean against central differences of the same network in double.
 */
#include "model/ensemble_private.h"

#include "model/linear.h"
#include "test_net.h"

enum { OBS = 3, ACT = 2, IN = OBS + ACT, DIM = OBS + 1, ELITES = 3, ROWS = 150 };

/* An ensemble whose scale, elites and weights are none of the obvious ones. */
static struct opc_ensemble *ensemble(void)
{
    struct opc_ensemble_config c;
    struct opc_predictor *p;
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_ensemble_section, &c, &err), &err);
    c.members = 5;
    c.elites = ELITES;
    c.hidden = (struct opc_ints){3, {12, 20, 9}};
    c.weight_decay = (struct opc_reals){1, {0}};
    assert_ok(opc_ensemble_make(&c, OBS, ACT, 1, 3, 0, &p, &err), &err);
    struct opc_ensemble *e = opc_ensemble_of(p);
    struct opc_rng r = test_stream(1);
    for (int i = 0; i < IN; i++) {
        e->scaler->mean[i] = 2.0f * opc_rng_unit(&r) - 1.0f;
        e->scaler->inverse[i] = 0.2f + 2.0f * opc_rng_unit(&r);
    }
    for (size_t i = 0; i < (size_t)c.members * e->net->each; i++)
        e->net->param[i] *= 3.0f; /* away from where a network is nearly linear */
    const int elite[ELITES] = {4, 0, 2};
    memcpy(p->elite, elite, sizeof elite);
    return e;
}

/* [s', reward] of one row in double. */
static void mean(const struct opc_ensemble *e, const double *theta, int member, const double *sa,
                 double *y)
{
    double x[IN], out[NET_WIDEST];
    for (int i = 0; i < IN; i++)
        x[i] = (sa[i] - (double)e->scaler->mean[i]) * (double)e->scaler->inverse[i];
    net_row(&e->net->shape, theta + (size_t)member * plain_count(&e->net->shape), x, out, NULL);
    for (int j = 0; j < DIM; j++)
        y[j] = out[j] + (j < OBS ? sa[j] : 0.0);
}

static void the_ensemble_s_jacobian_is_the_slope_of_its_mean(void **state)
{
    (void)state;
    struct opc_ensemble *e = ensemble();
    struct opc_rng r = test_stream(2);
    double *theta = plain_get(e->net, e->net->param), largest = 0.0;
    static float s[ROWS][OBS], a[ROWS][ACT], J[ROWS][DIM][IN];
    int elite[ROWS];
    struct opc_err err = {0};
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < OBS; j++)
            s[i][j] = 4.0f * opc_rng_unit(&r) - 2.0f;
        for (int j = 0; j < ACT; j++)
            a[i][j] = 2.0f * opc_rng_unit(&r) - 1.0f;
        elite[i] = i * 7 % 5 % ELITES;
    }
    assert_ok(opc_predictor_jacobian(&e->base, ROWS, s[0], a[0], elite, J[0][0], NULL, &err), &err);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < IN; k++) {
            double sa[IN], plus[DIM], minus[DIM];
            const double h = 1e-5;
            for (int j = 0; j < IN; j++)
                sa[j] = (double)(j < OBS ? s[i][j] : a[i][j - OBS]);
            const double at = sa[k];
            sa[k] = at + h;
            mean(e, theta, e->base.elite[elite[i]], sa, plus);
            sa[k] = at - h;
            mean(e, theta, e->base.elite[elite[i]], sa, minus);
            for (int j = 0; j < DIM; j++) {
                const double slope = (plus[j] - minus[j]) / (2.0 * h);
                assert_near((double)J[i][j][k], slope, 2e-5 * (1.0 + fabs(slope)));
                largest = fmax(largest, fabs(slope - (double)(j == k)));
            }
        }
    assert_true(largest > 1.0); /* more than the identity was compared */
    free(theta);
    opc_predictor_destroy(&e->base);
}

/* A row's Jacobian does not depend on the rows beside it. */
static void rows_are_answered_alike_alone_and_together(void **state)
{
    (void)state;
    struct opc_ensemble *e = ensemble();
    static float s[ROWS][OBS], a[ROWS][ACT], J[ROWS][DIM][IN], one[DIM][IN];
    int elite[ROWS];
    struct opc_err err = {0};
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < OBS; j++)
            s[i][j] = (float)(i + j) / 100.0f;
        a[i][0] = a[i][1] = 0.5f;
        elite[i] = i % ELITES;
    }
    assert_ok(opc_predictor_jacobian(&e->base, ROWS, s[0], a[0], elite, J[0][0], NULL, &err), &err);
    for (int i = 0; i < ROWS; i += 11) {
        assert_ok(opc_predictor_jacobian(&e->base, 1, s[i], a[i], elite + i, one[0], NULL, &err),
                  &err);
        assert_same_bits(J[i], one, sizeof one);
    }
    opc_predictor_destroy(&e->base);
}

static void the_linear_model_s_jacobian_is_a_and_b(void **state)
{
    (void)state;
    struct opc_predictor *p;
    struct opc_err err = {0};
    assert_ok(opc_linear_create(0.8, -0.3, &p, &err), &err);
    const float s[] = {0.02f, -0.07f}, a[] = {1, 2};
    float J[2][2][2];
    assert_ok(opc_predictor_jacobian(p, 2, s, a, (int[]){0, 0}, J[0][0], NULL, &err), &err);
    for (int i = 0; i < 2; i++) {
        const double x = (double)s[i], h = 1e-6;
        const double slope = (exp(-pow((x + h) / .05, 2)) - exp(-pow((x - h) / .05, 2))) / (2 * h);
        assert_true(J[i][0][0] == 0.8f && J[i][0][1] == -0.3f && J[i][1][1] == 0.0f);
        assert_near((double)J[i][1][0], slope, 1e-5);
    }
    opc_predictor_destroy(p);
}

static int differentiate(void *ctx, struct opc_err *err)
{
    const struct opc_ensemble *e = ctx;
    const float s[OBS] = {0}, a[ACT] = {0};
    float J[DIM * IN];
    return opc_predictor_jacobian(&e->base, 1, s, a, (int[]){0}, J, NULL, err);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    struct opc_ensemble *e = ensemble();
    assert_survives_lack_of_memory(differentiate, e);
    opc_predictor_destroy(&e->base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(the_ensemble_s_jacobian_is_the_slope_of_its_mean),
        each_backend(rows_are_answered_alike_alone_and_together),
        once(the_linear_model_s_jacobian_is_a_and_b),
        once(lack_of_memory_is_reported),
    };
    return run_num_tests(tests);
}
