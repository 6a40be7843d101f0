/* SPDX-License-Identifier: MIT */
#include "num/adam.h"

#include "test_num.h"

enum { N = 37, STEPS = 200 };

/* adam.h's formulas in double. */
struct plain {
    double m[N], v[N], p[N];
};

static void plain_step(struct plain *a, const struct opc_adam_config *c, int t, double decay,
                       const float *grad)
{
    const double fair1 = 1.0 - pow(c->beta1, t), fair2 = 1.0 - pow(c->beta2, t);
    for (int i = 0; i < N; i++) {
        const double g = grad[i] + decay * a->p[i];
        a->m[i] = c->beta1 * a->m[i] + (1.0 - c->beta1) * g;
        a->v[i] = c->beta2 * a->v[i] + (1.0 - c->beta2) * g * g;
        if (c->torch)
            a->p[i] -= c->learning_rate * (a->m[i] / fair1) / (sqrt(a->v[i] / fair2) + c->eps);
        else
            a->p[i] -= c->learning_rate * sqrt(fair2) / fair1 * a->m[i] / (sqrt(a->v[i]) + c->eps);
    }
}

/* Gradients of very different size; some vanish, so that eps decides. */
static void any_gradient(struct opc_rng *r, float *grad)
{
    for (int i = 0; i < N; i++)
        grad[i] = ldexpf(any_float(r), 4 * (i % 12) - 40);
}

static void steps_agree_with_double_precision(void **state)
{
    (void)state;
    static const double DECAY[] = {0.0, 1e-4, 0.5}, EPS[] = {1e-8, 1e-3};
    struct opc_err err = {0};
    for (int form = 0; form < 12; form++) {
        struct opc_rng r = test_stream(1);
        struct opc_adam_config config = opc_adam_usual(1e-3);
        config.torch = form % 2;
        config.eps = EPS[form / 2 % 2];
        const double decay = DECAY[form / 4];
        struct opc_adam *adam;
        struct plain want = {0};
        float p[N], grad[N];
        assert_ok(opc_adam_create(N, config, &adam, &err), &err);
        for (int i = 0; i < N; i++)
            want.p[i] = p[i] = 0.1f * any_float(&r);
        for (int t = 1; t <= STEPS; t++) {
            any_gradient(&r, grad);
            opc_adam_step(adam, decay, grad, p);
            plain_step(&want, &config, t, decay, grad);
            for (int i = 0; i < N; i++) {
                /* A step is at most about the rate; 0.999 in float leaves v 1.3e-5 of its value
                 * away while the sum is young, and p is a float. */
                const double tolerance =
                    1.5e-5 * config.learning_rate * t + t * 0x1p-24 * (fabs(want.p[i]));
                if (!(fabs(p[i] - want.p[i]) <= tolerance))
                    fail_msg("step %d, form %d: parameter %d is %.9g, should be %.9g", t, form, i,
                             (double)p[i], want.p[i]);
            }
        }
        assert_int_equal(adam->steps, STEPS);
        opc_adam_destroy(adam);
    }
}

/* Where v is tiny: the published form holds eps against the biased sqrt(v), PyTorch against the
 * unbiased one, which is 1 / sqrt(1 - 0.999) = 31.6 times as large after one step. */
static void the_two_forms_differ_where_eps_matters(void **state)
{
    (void)state;
    struct opc_err err = {0};
    float moved[2];
    for (int torch = 0; torch < 2; torch++) {
        struct opc_adam_config config = opc_adam_usual(1.0);
        struct opc_adam *adam;
        const float grad = 1e-8f;
        float p = 0.0f;
        config.torch = torch;
        assert_ok(opc_adam_create(1, config, &adam, &err), &err);
        opc_adam_step(adam, 0.0, &grad, &p);
        moved[torch] = -p;
        opc_adam_destroy(adam);
    }
    const double root = sqrt(0.001);
    assert_true(fabs(moved[0] - root / (root + 1.0)) < 1e-5); /* root g / (root g + eps), g = eps */
    assert_true(fabs(moved[1] - 0.5) < 1e-5);                 /* g / (g + eps) */
}

/* Weights of dead units have no gradient but decay's. They shrink towards 0, must get there, and
 * must not stay among the denormals: products with those are a hundred times slower. */
static void decay_alone_leaves_no_denormals(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_adam *adam;
    float grad[N] = {0}, p[N];
    for (int i = 0; i < N; i++)
        p[i] = (float)(i - N / 2) * 0.01f;
    assert_ok(opc_adam_create(N, opc_adam_usual(1e-3), &adam, &err), &err);
    for (int t = 0; t < 100 * STEPS; t++) {
        opc_adam_step(adam, 1e-4, grad, p);
        for (int i = 0; i < N; i++) {
            assert_int_not_equal(fpclassify(p[i]), FP_SUBNORMAL);
            assert_int_not_equal(fpclassify(adam->m[i]), FP_SUBNORMAL);
            assert_int_not_equal(fpclassify(adam->v[i]), FP_SUBNORMAL);
        }
    }
    for (int i = 0; i < N; i++)
        assert_true(fabsf(p[i]) < 1e-3f);
    opc_adam_destroy(adam);
}

/* By how much depends on the sign alone, whatever the gradient's size. */
static void the_first_step_is_the_rate(void **state)
{
    (void)state;
    struct opc_err err = {0};
    const float grad[] = {0.1f, -3.0f, 1e4f, 0.0f};
    const float want[] = {-0.25f, 0.25f, -0.25f, 0.0f};
    float p[4] = {0};
    struct opc_adam *adam;
    assert_ok(opc_adam_create(4, opc_adam_usual(0.25), &adam, &err), &err);
    opc_adam_step(adam, 0.0, grad, p);
    assert_floats_near(p, want, 4, 1e-4);
    assert_true(same_bits(p[3], 0.0f));
    opc_adam_destroy(adam);
}

static void a_parabola_is_descended(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_adam *adam;
    float p = 3.0f;
    assert_ok(opc_adam_create(1, opc_adam_usual(0.05), &adam, &err), &err);
    for (int t = 0; t < 2000; t++) {
        const float grad = 2.0f * (p - 1.0f);
        opc_adam_step(adam, 0.0, &grad, &p);
    }
    assert_true(fabsf(p - 1.0f) < 1e-3f);
    for (int t = 0; t < 4000; t++) { /* with an L2 term of decay p: the least of (p-1)^2 + p^2 */
        const float grad = 2.0f * (p - 1.0f);
        opc_adam_step(adam, 2.0, &grad, &p);
    }
    assert_true(fabsf(p - 0.5f) < 1e-3f);
    opc_adam_destroy(adam);
}

static void ranges_in_any_order_are_the_whole(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(2);
    struct opc_err err = {0};
    for (int size = 1; size <= N; size++) {
        struct opc_adam *whole, *parts;
        float p[N], q[N], grad[N];
        assert_ok(opc_adam_create(N, opc_adam_usual(1e-2), &whole, &err), &err);
        assert_ok(opc_adam_create(N, opc_adam_usual(1e-2), &parts, &err), &err);
        for (int i = 0; i < N; i++)
            p[i] = q[i] = any_float(&r);
        for (int t = 0; t < 4; t++) {
            any_gradient(&r, grad);
            opc_adam_step(whole, 1e-2, grad, p);
            opc_adam_begin(parts);
            for (int end = N; end > 0; end -= size) { /* from the back */
                const int first = end > size ? end - size : 0;
                opc_adam_range(parts, (size_t)first, (size_t)(end - first), 1e-2, grad + first,
                               q + first);
            }
            assert_same_bits(q, p, sizeof p);
            assert_same_bits(parts->m, whole->m, sizeof p);
            assert_same_bits(parts->v, whole->v, sizeof p);
        }
        opc_adam_destroy(whole);
        opc_adam_destroy(parts);
    }
}

/* Layers may decay differently within one step. */
static void each_range_has_its_own_decay(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_adam *adam;
    const float grad[2] = {0.0f, 0.0f};
    float p[2] = {1.0f, 1.0f};
    assert_ok(opc_adam_create(2, opc_adam_usual(0.1), &adam, &err), &err);
    opc_adam_begin(adam);
    opc_adam_range(adam, 0, 1, 0.0, grad, p);
    opc_adam_range(adam, 1, 1, 0.5, grad + 1, p + 1);
    assert_true(p[0] == 1.0f);
    assert_true(fabsf(p[1] - 0.9f) < 1e-5f);
    opc_adam_destroy(adam);
}

static int create(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_adam *adam = NULL;
    const int code = opc_adam_create(N, opc_adam_usual(1e-3), &adam, err);
    assert_true((code == OPC_OK) == (adam != NULL));
    opc_adam_destroy(adam);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_adam *adam = NULL;
    assert_survives_lack_of_memory(create, NULL);
    assert_fails(opc_adam_create(SIZE_MAX, opc_adam_usual(1e-3), &adam, &err), OPC_ENOMEM, &err,
                 "moments");
    assert_null(adam);
    opc_adam_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(steps_agree_with_double_precision),
        each_backend(the_two_forms_differ_where_eps_matters),
        each_backend(decay_alone_leaves_no_denormals),
        each_backend(the_first_step_is_the_rate),
        each_backend(a_parabola_is_descended),
        each_backend(ranges_in_any_order_are_the_whole),
        each_backend(each_range_has_its_own_decay),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };
    return run_num_tests(tests);
}
