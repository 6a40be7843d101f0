/* SPDX-License-Identifier: MIT */
/* Trust region policy optimisation against a second implementation in double: objective, gradient,
 * Fisher-vector products and the value function's fit; numbers known in closed form; and, with the
 * true dynamics in place of a model, a pendulum that is swung up. */
#include "agent/trpo.h"

#include "agent/advantages.h"
#include "opc/env.h"
#include "test_net.h"

enum { OBS = 3, ACT = 2, ENVS = 4, LENGTH = 37, N = ENVS * LENGTH };

static const int POLICY[2] = {6, 5}, VALUE[1] = {8};

static struct opc_trpo_options usual(void)
{
    return (struct opc_trpo_options){.obs = OBS,
                                     .act = ACT,
                                     .envs = ENVS,
                                     .length = LENGTH,
                                     .policy_hidden = POLICY,
                                     .policy_depth = 2,
                                     .value_hidden = VALUE,
                                     .value_depth = 1,
                                     .discount = 0.97,
                                     .gae_lambda = 0.9,
                                     .max_kl = 0.01,
                                     .cg_iterations = 10,
                                     .cg_damping = 0.1,
                                     .line_search = 10,
                                     .log_std_init = -0.2,
                                     .value_learning_rate = 1e-3,
                                     .value_passes = 2,
                                     .value_batch = 50,
                                     .seed = 3,
                                     .which = 10};
}

static struct opc_trpo *open_trpo(const struct opc_trpo_options *o)
{
    struct opc_trpo *t;
    struct opc_err err = {0};
    assert_ok(opc_trpo_create(o, &t, &err), &err);
    return t;
}

/* A batch of any numbers; some trajectories end inside a part, one at its very end. */
static void fill_batch(struct opc_trpo *t, uint32_t which)
{
    struct opc_rng r = test_stream(which);
    const int states = t->options.envs * (t->options.length + 1);
    for (int i = 0; i < states * t->options.obs; i++)
        t->state[i] = 2 * any_float(&r);
    for (int i = 0; i < t->rows; i++) {
        for (int k = 0; k < t->options.act; k++)
            t->action[i * t->options.act + k] = 1.5f * any_float(&r);
        t->reward[i] = 3 * (double)any_float(&r) + 1;
        t->done[i] = i % 23 == 22 || i == t->options.length - 1;
    }
}

/* Weights of any size, for a policy that looks at its state. */
static void draw_weights(struct opc_trpo *t, uint32_t which, double size)
{
    struct opc_rng r = test_stream(which);
    const size_t n = plain_count(&t->policy->shape);
    for (size_t i = 0; i < n; i++)
        t->policy->param[plain_place(t->policy, i)] = (float)size * any_float(&r);
    for (int k = 0; k < t->options.act; k++)
        t->log_std[k] = 0.3f * any_float(&r);
}

/* ---- the same once more, in double ----------------------------------------------------------- */

/* Weights without padding, then log_std. */
static double *plain_theta(const struct opc_trpo *t)
{
    const size_t n = plain_count(&t->policy->shape);
    double *weights = plain_get(t->policy, t->policy->param), *theta = doubles_of(n + ACT);
    memcpy(theta, weights, n * sizeof *theta);
    for (int k = 0; k < ACT; k++)
        theta[n + (size_t)k] = (double)t->log_std[k];
    free(weights);
    return theta;
}

static const float *state_of(const struct opc_trpo *t, int i)
{
    return t->state + (i / LENGTH * (LENGTH + 1) + i % LENGTH) * OBS;
}

static void plain_mean(const struct opc_trpo *t, const double *theta, int i, double *mean)
{
    double s[OBS];
    for (int k = 0; k < OBS; k++)
        s[k] = (double)state_of(t, i)[k];
    net_row(&t->policy->shape, theta, s, mean, NULL);
}

static double plain_entropy(double mean, double log_std)
{
    const double std = exp(log_std), h = (2 - mean) / (std * sqrt(2)),
                 l = (-2 - mean) / (std * sqrt(2));
    return 0.5 * (log_std + 0.5 * log(2 * acos(-1))) * (erf(h) - erf(l)) +
           0.5 * (h * exp(-h * h) - l * exp(-l * l));
}

/* The objective of `theta` where `old` has acted, and the mean KL(old || theta). */
static double plain_objective(const struct opc_trpo *t, const double *old, const double *theta,
                              double ent_coef, double *kl)
{
    const size_t n = plain_count(&t->policy->shape);
    double gain = 0, far = 0;
    for (int i = 0; i < N; i++) {
        double a[ACT], b[ACT], log_ratio = 0, entropy = 0;
        plain_mean(t, old, i, a);
        plain_mean(t, theta, i, b);
        for (int k = 0; k < ACT; k++) {
            const double la = old[n + (size_t)k], lb = theta[n + (size_t)k];
            const double u = (double)t->action[i * ACT + k];
            log_ratio += -0.5 * pow((u - b[k]) / exp(lb), 2) - lb;
            log_ratio -= -0.5 * pow((u - a[k]) / exp(la), 2) - la;
            far += lb - la + (exp(2 * la) + pow(a[k] - b[k], 2)) / (2 * exp(2 * lb)) - 0.5;
            entropy += plain_entropy(b[k], lb);
        }
        gain += exp(log_ratio) * t->advantage[i] + ent_coef * entropy;
    }
    if (kl)
        *kl = far / N;
    return gain / N;
}

/* A vector of parameters with padding, from one without. */
static void to_padded(const struct opc_trpo *t, const double *plain, double *padded)
{
    const size_t n = plain_count(&t->policy->shape);
    memset(padded, 0, t->params * sizeof *padded);
    for (size_t i = 0; i < n; i++)
        padded[plain_place(t->policy, i)] = plain[i];
    for (size_t k = 0; k < ACT; k++)
        padded[t->policy->each + k] = plain[n + k];
}

/* ---- numbers that are known ------------------------------------------------------------------ */

static void the_published_entropy_and_its_slopes(void **state)
{
    (void)state;
    assert_near(opc_clipped_entropy(0, 0, NULL, NULL), 1.0685196, 1e-7);
    assert_near(opc_clipped_entropy(0, log(0.5), NULL, NULL), 0.2267259, 1e-7);
    assert_near(opc_clipped_entropy(0.5, 0, NULL, NULL), 1.0628486, 1e-7);
    const double h = 1e-6;
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 6; j++) {
            const double mean = -3 + 0.7 * i, l = -2 + 0.6 * j;
            double by_mean, by_log_std;
            opc_clipped_entropy(mean, l, &by_mean, &by_log_std);
            assert_near(by_mean,
                        (plain_entropy(mean + h, l) - plain_entropy(mean - h, l)) / (2 * h), 1e-7);
            assert_near(by_log_std,
                        (plain_entropy(mean, l + h) - plain_entropy(mean, l - h)) / (2 * h), 1e-7);
        }
}

/* N(0, 1) against N(0.1, e^0.05), every action component alike. */
static void a_known_kl_divergence(void **state)
{
    (void)state;
    struct opc_trpo_options o = usual();
    o.log_std_init = 0;
    struct opc_trpo *t = open_trpo(&o);
    double kl;
    fill_batch(t, 1);
    memset(t->policy->param, 0, t->policy->each * sizeof(float));
    opc_trpo_advantages(t);
    opc_trpo_remember(t);
    opc_trpo_objective(t, 0, &kl);
    assert_near(kl, 0, 0);
    /* To second order, 1/2 v^T F v, it is 1/2 (0.1^2 + 2 * 0.05^2) = 0.0075. */
    double *v = doubles_of(t->params), *product = doubles_of(t->params), form = 0;
    opc_trpo_gradient(t, 0);
    t->options.cg_damping = 0;
    for (size_t k = 0; k < ACT; k++) {
        v[t->policy->layer[2].bias + k] = 0.1;
        v[t->policy->each + k] = 0.05;
    }
    opc_trpo_fisher(t, v, product);
    for (size_t k = 0; k < t->params; k++)
        form += 0.5 * v[k] * product[k];
    assert_near(form, ACT * 0.0075, 1e-6);
    free(v);
    free(product);
    for (int k = 0; k < ACT; k++) {
        t->policy->param[t->policy->layer[2].bias + (size_t)k] = 0.1f;
        t->log_std[k] = 0.05f;
    }
    opc_trpo_objective(t, 0, &kl);
    assert_near(kl, ACT * 0.0069428961, 1e-8);
    opc_trpo_destroy(t);
}

/* For log_std alone F is 2, so g = 1 gives x = 0.5, a length of sqrt(2 * 0.01 / 0.5) = 0.2 and a
 * step of 0.1, whose KL is 0.01 to second order. */
static void a_step_has_the_length_that_the_limit_allows(void **state)
{
    (void)state;
    struct opc_trpo_options o = usual();
    o.cg_damping = 0;
    struct opc_trpo *t = open_trpo(&o);
    double gain, kl;
    fill_batch(t, 2);
    opc_trpo_remember(t); /* all advantages are still 0: any step is as good */
    opc_trpo_objective(t, 0, NULL);
    opc_trpo_gradient(t, 0);
    memset(t->gradient, 0, t->params * sizeof(double));
    t->gradient[t->policy->each] = 1;
    assert_true(opc_trpo_line_search(t, 0, 0, &gain, &kl));
    assert_near((double)t->log_std[0], o.log_std_init + 0.1, 1e-6);
    assert_near((double)t->log_std[1], o.log_std_init, 1e-7);
    assert_near(kl, 0.1 + exp(-0.2) / 2 - 0.5, 1e-6);
    opc_trpo_destroy(t);
}

/* One log_std alone, along a gradient of `slope`; every step is as good, so the KL decides. Returns
 * where it is led to. */
static double line_search_of_a_deviation(double max_kl, double damping, double slope, double *kl)
{
    struct opc_trpo_options o = usual();
    o.max_kl = max_kl;
    o.cg_damping = damping;
    o.log_std_init = 0;
    struct opc_trpo *t = open_trpo(&o);
    double gain;
    fill_batch(t, 2);
    opc_trpo_remember(t);
    opc_trpo_objective(t, 0, NULL);
    opc_trpo_gradient(t, 0);
    memset(t->gradient, 0, t->params * sizeof(double));
    t->gradient[t->policy->each] = slope;
    assert_true(opc_trpo_line_search(t, 0, 0, &gain, kl));
    const double at = (double)t->log_std[0];
    opc_trpo_destroy(t);
    return at;
}

/* With damping d, x = g / (2 + d) and the length is sqrt(2 max_kl (2 + d)), d counted in both. */
static void damping_shortens_a_step(void **state)
{
    (void)state;
    double kl;
    assert_near(line_search_of_a_deviation(0.01, 2, 1, &kl), sqrt(0.02 / 4), 1e-6);
    assert_near(line_search_of_a_deviation(0.01, 6, 1, &kl), sqrt(0.02 / 8), 1e-6);
}

/* A deviation that shrinks by e^-x is away by a KL of e^2x / 2 - x - 1/2, more than the x^2 of the
 * second-order form. Half as much again is allowed, and not more: then the step is halved. */
static void a_step_is_halved_where_its_kl_is_too_large(void **state)
{
    (void)state;
    double kl;
    /* x = 0.5: 0.359 of 0.25, 1.44 times as much */
    assert_near(line_search_of_a_deviation(0.25, 0, -1, &kl), -0.5, 1e-6);
    assert_near(kl, exp(1) / 2 - 1, 1e-6);
    /* x = 0.6: 0.560 of 0.36, 1.56 times as much, so 0.3 */
    assert_near(line_search_of_a_deviation(0.36, 0, -1, &kl), -0.3, 1e-6);
    assert_near(kl, exp(0.6) / 2 - 0.8, 1e-6);
    /* x = 2: 24.8 of 4; with 1 it is 2.19 */
    assert_near(line_search_of_a_deviation(4, 0, -1, &kl), -1, 1e-6);
}

static void first_weights_have_their_norms(void **state)
{
    (void)state;
    struct opc_trpo_options o = usual();
    struct opc_trpo *t = open_trpo(&o);
    const struct opc_mlp *net[2] = {t->policy, t->value};
    for (int i = 0; i < 2; i++)
        for (int l = 0; l < net[i]->shape.layers; l++) {
            const struct opc_layer *layer = &net[i]->layer[l];
            const bool last = l + 1 == net[i]->shape.layers;
            for (int k = 0; k < layer->out; k++) {
                double squares = 0;
                for (int j = 0; j < layer->ld; j++)
                    squares +=
                        pow((double)net[i]->param[layer->weight + (size_t)(k * layer->ld + j)], 2);
                assert_near(sqrt(squares), last && i == 0 ? 0.01 : 1, 1e-6);
            }
        }
    assert_true(t->policy->param[0] != t->value->param[0]);
    opc_trpo_destroy(t);
}

/* ---- against the second implementation ------------------------------------------------------- */

/* Advantages as sums over what is still to come, which stop where an episode ends. */
static void advantages_do_not_cross_an_end(void **state)
{
    (void)state;
    struct opc_trpo_options o = usual();
    struct opc_trpo *t = open_trpo(&o);
    double advantage[N], mean = 0, var = 0;
    fill_batch(t, 3);
    opc_trpo_advantages(t);
    double *theta = plain_get(t->value, t->value->param);
    for (int i = 0; i < N; i++) {
        double factor = 1, v[LENGTH + 1];
        const int part = i / LENGTH * LENGTH;
        for (int k = 0; k <= LENGTH; k++) {
            double s[OBS];
            for (int j = 0; j < OBS; j++)
                s[j] = (double)t->state[(i / LENGTH * (LENGTH + 1) + k) * OBS + j];
            net_row(&t->value->shape, theta, s, &v[k], NULL);
        }
        advantage[i] = 0;
        for (int k = i; k < part + LENGTH; k++, factor *= o.discount * o.gae_lambda) {
            const int at = k - part;
            advantage[i] +=
                factor * (t->reward[k] + (t->done[k] ? 0 : o.discount * v[at + 1]) - v[at]);
            if (t->done[k])
                break;
        }
        assert_near(t->target[i], advantage[i] + v[i - part], 1e-5);
        mean += advantage[i] / N;
    }
    for (int i = 0; i < N; i++)
        var += pow(advantage[i] - mean, 2) / N;
    for (int i = 0; i < N; i++)
        assert_near(t->advantage[i], (advantage[i] - mean) / sqrt(var), 1e-5);
    free(theta);
    opc_trpo_destroy(t);
}

/* At the policy that acted and away from it, with entropy and without. */
static void gradients_are_differences_of_the_objective(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        struct opc_trpo_options o = usual();
        struct opc_trpo *t = open_trpo(&o);
        const double ent_coef = which % 2 ? 0.3 : 0;
        const size_t n = plain_count(&t->policy->shape) + ACT;
        fill_batch(t, 4);
        draw_weights(t, 5, 0.6);
        opc_trpo_advantages(t);
        opc_trpo_remember(t);
        double *old = plain_theta(t), kl, far;
        if (which >= 2)
            draw_weights(t, 6, 0.6);
        double *theta = plain_theta(t), *padded = doubles_of(t->params);
        const double gain = opc_trpo_objective(t, ent_coef, &kl);
        assert_near(gain, plain_objective(t, old, theta, ent_coef, &far), 1e-5);
        assert_near(kl, far, 1e-5);
        opc_trpo_gradient(t, ent_coef);
        double *want = doubles_of(n);
        for (size_t i = 0; i < n; i++) {
            const double at = theta[i], h = 1e-6;
            theta[i] = at + h;
            want[i] = plain_objective(t, old, theta, ent_coef, NULL);
            theta[i] = at - h;
            want[i] = (want[i] - plain_objective(t, old, theta, ent_coef, NULL)) / (2 * h);
            theta[i] = at;
        }
        to_padded(t, want, padded);
        assert_doubles_near(t->gradient, padded, t->params, 2e-5);
        free(old);
        free(theta);
        free(want);
        free(padded);
        opc_trpo_destroy(t);
    }
}

/* F v is the derivative of the KL's gradient along v: second differences of the KL in double, one
 * parameter after the other; and v^T F v is the curvature of the KL along v. */
static void fisher_products_are_second_differences_of_the_kl(void **state)
{
    (void)state;
    struct opc_trpo_options o = usual();
    o.cg_damping = 0;
    struct opc_trpo *t = open_trpo(&o);
    const size_t n = plain_count(&t->policy->shape) + ACT;
    struct opc_rng r = test_stream(7);
    fill_batch(t, 8);
    draw_weights(t, 9, 0.6);
    opc_trpo_advantages(t);
    opc_trpo_remember(t);
    opc_trpo_objective(t, 0, NULL);
    opc_trpo_gradient(t, 0);
    double *old = plain_theta(t), *v = doubles_of(n), *at = doubles_of(n), *want = doubles_of(n);
    double *padded = doubles_of(t->params), *got = doubles_of(t->params), vFv = 0, kl;
    for (size_t i = 0; i < n; i++)
        v[i] = (double)any_float(&r);
    to_padded(t, v, padded);
    opc_trpo_fisher(t, padded, got);
    for (size_t i = 0; i < t->params; i++)
        vFv += padded[i] * got[i];
    const double h = 1e-3;
    for (size_t i = 0; i < n; i++)
        for (int sign = 0; sign < 4; sign++) {
            for (size_t k = 0; k < n; k++)
                at[k] = old[k] + (sign & 1 ? h : -h) * v[k] + (k == i ? (sign & 2 ? h : -h) : 0);
            plain_objective(t, old, at, 0, &kl);
            want[i] += (sign == 0 || sign == 3 ? kl : -kl) / (4 * h * h);
        }
    to_padded(t, want, padded);
    assert_doubles_near(got, padded, t->params, 2e-4);
    for (size_t i = 0; i < n; i++)
        at[i] = old[i] + 1e-2 * v[i];
    plain_objective(t, old, at, 0, &kl);
    assert_true(fabs(kl * 2 / 1e-4 - vFv) < 0.05 * vFv);
    for (size_t i = 0; i < n; i++)
        at[i] = old[i] + 1e-3 * v[i];
    plain_objective(t, old, at, 0, &kl);
    assert_true(fabs(kl * 2 / 1e-6 - vFv) < 0.01 * vFv);
    /* and damping adds its multiple of v */
    t->options.cg_damping = 0.5;
    double *damped = doubles_of(t->params);
    to_padded(t, v, padded);
    opc_trpo_fisher(t, padded, damped);
    for (size_t i = 0; i < t->params; i++)
        assert_near(damped[i], got[i] + 0.5 * padded[i], 1e-12);
    free(old);
    free(v);
    free(at);
    free(want);
    free(padded);
    free(got);
    free(damped);
    opc_trpo_destroy(t);
}

/* ---- updates --------------------------------------------------------------------------------- */

static void an_update_gains_within_the_trust_region(void **state)
{
    (void)state;
    struct opc_trpo_options o = usual();
    struct opc_trpo *t = open_trpo(&o);
    struct opc_trpo_report report;
    fill_batch(t, 11);
    draw_weights(t, 12, 0.6);
    double *old = plain_theta(t), kl;
    opc_trpo_learn(t, 0.005, 3, 1, 0, &report);
    double *theta = plain_theta(t);
    assert_true(report.accepted);
    assert_true(report.gain > 0.01);
    assert_true(report.kl > 0.005 && report.kl <= 0.015);
    const double before = plain_objective(t, old, old, 0.005, NULL);
    assert_near(report.gain, plain_objective(t, old, theta, 0.005, &kl) - before, 1e-5);
    assert_near(report.kl, kl, 1e-6);
    assert_true(report.target_min < report.target && report.target < report.target_max);
    free(old);
    free(theta);
    opc_trpo_destroy(t);
}

static void a_line_search_that_fails_keeps_the_policy(void **state)
{
    (void)state;
    struct opc_trpo_options o = usual();
    struct opc_trpo *t = open_trpo(&o);
    double gain, kl;
    fill_batch(t, 13);
    draw_weights(t, 14, 0.6);
    opc_trpo_advantages(t);
    float *param = floats_of(t->policy->each, 0), log_std[ACT];
    memcpy(param, t->policy->param, t->policy->each * sizeof(float));
    memcpy(log_std, t->log_std, sizeof log_std);
    opc_trpo_remember(t);
    const double before = opc_trpo_objective(t, 0, NULL);
    opc_trpo_gradient(t, 0);
    for (size_t i = 0; i < t->params; i++)
        t->gradient[i] *= -1; /* downhill */
    assert_false(opc_trpo_line_search(t, 0, before, &gain, &kl));
    assert_same_bits(t->policy->param, param, t->policy->each * sizeof(float));
    assert_same_bits(t->log_std, log_std, sizeof log_std);
    /* Nothing to go along, and numbers that are none. */
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < t->params; i++)
            t->gradient[i] = which ? (double)NAN : 0;
        assert_false(opc_trpo_line_search(t, 0, before, &gain, &kl));
        assert_same_bits(t->policy->param, param, t->policy->each * sizeof(float));
    }
    free(param);
    opc_trpo_destroy(t);
}

/* Squared errors of two passes in batches of 50, of which the last 48 rows of 148 are left out. */
static void the_value_function_is_fitted_to_its_targets(void **state)
{
    (void)state;
    struct opc_trpo_options o = usual();
    struct opc_trpo *t = open_trpo(&o);
    struct opc_trpo_report report;
    fill_batch(t, 15);
    double *theta = plain_get(t->value, t->value->param), *fitted, loss = 0;
    const size_t n = plain_count(&t->value->shape);
    double *m = doubles_of(n), *v = doubles_of(n), *g = doubles_of(n);
    int order[N];
    for (int i = 0; i < N; i++)
        order[i] = i;
    opc_trpo_learn(t, 0, 3, 5, 40, &report);
    for (int pass = 0, steps = 0; pass < 2; pass++) {
        struct opc_rng r = opc_rng_stream(3, OPC_USE_UPDATE, 5, 40 + (uint32_t)pass);
        for (int i = N - 1; i > 0; i--) {
            const int k = any_below(&r, i + 1), at = order[i];
            order[i] = order[k];
            order[k] = at;
        }
        for (int from = 0; from + 50 <= N; from += 50) {
            for (size_t p = 0; p <= n; p++) { /* the loss, then its differences */
                double sum[2] = {0, 0};
                for (int sign = 0; sign < 2; sign++) {
                    if (p < n)
                        theta[p] += sign ? -2e-6 : 1e-6;
                    for (int i = from; i < from + 50; i++) {
                        double s[OBS], y;
                        for (int k = 0; k < OBS; k++)
                            s[k] = (double)state_of(t, order[i])[k];
                        net_row(&t->value->shape, theta, s, &y, NULL);
                        sum[sign] += pow(y - t->target[order[i]], 2) / 50;
                    }
                }
                if (p == n)
                    loss += sum[0] / 4;
                else {
                    theta[p] += 1e-6;
                    g[p] = (sum[0] - sum[1]) / 2e-6;
                }
            }
            steps++;
            for (size_t p = 0; p < n; p++) {
                m[p] = 0.9 * m[p] + 0.1 * g[p];
                v[p] = 0.999 * v[p] + 0.001 * g[p] * g[p];
                theta[p] -= 1e-3 * sqrt(1 - pow(0.999, steps)) / (1 - pow(0.9, steps)) * m[p] /
                            (sqrt(v[p]) + 1e-8);
            }
        }
    }
    fitted = plain_get(t->value, t->value->param);
    assert_doubles_near(fitted, theta, n, 2e-5);
    assert_near(report.critic_loss, loss, 1e-3 * loss);
    free(theta);
    free(fitted);
    free(m);
    free(v);
    free(g);
    opc_trpo_destroy(t);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    float *want = NULL;
    for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        struct opc_trpo_options o = usual();
        struct opc_pool *pool = pool_of(threads);
        struct opc_trpo_report report;
        o.pool = pool;
        o.envs = 16;
        o.length = 40; /* for several chunks of rows */
        struct opc_trpo *t = open_trpo(&o);
        for (uint32_t k = 0; k < 2; k++) {
            fill_batch(t, 16 + k);
            opc_trpo_learn(t, 0.005, 3, 1, 2 * k, &report);
            assert_true(report.accepted);
        }
        const size_t policy = t->policy->each, value = t->value->each;
        if (!want) {
            want = floats_of(policy + value, 0);
            memcpy(want, t->policy->param, policy * sizeof(float));
            memcpy(want + policy, t->value->param, value * sizeof(float));
        }
        assert_same_bits(t->policy->param, want, policy * sizeof(float));
        assert_same_bits(t->value->param, want + policy, value * sizeof(float));
        opc_trpo_destroy(t);
        opc_pool_destroy(pool);
    }
    free(want);
}

/* ---- with the true dynamics ------------------------------------------------------------------ */

/* Plays one batch on as many pendulums, and returns the mean reward of an episode. */
static double play_batch(struct opc_trpo *t, struct opc_env **env, uint32_t update, bool draw)
{
    const int envs = t->options.envs, length = t->options.length;
    const float mean[3] = {0}, inverse[3] = {1, 1, 0.125f};
    double sum = 0;
    for (int e = 0; e < envs; e++) {
        double obs[3], torque;
        struct opc_err err = {0};
        struct opc_rng r = opc_rng_stream(1, OPC_USE_RESET, update, (uint32_t)e);
        assert_ok(opc_env_reset(env[e], &r, obs, &err), &err);
        for (int i = 0; i <= length; i++) {
            const float s[3] = {(float)obs[0], (float)obs[1], (float)obs[2]};
            float *x = t->state + (e * (length + 1) + i) * 3, a;
            for (int k = 0; k < 3; k++)
                x[k] = (s[k] - mean[k]) * inverse[k];
            if (i == length)
                break;
            opc_trpo_act(t, mean, inverse, 1, s, 1, draw ? &r : NULL, &a);
            struct opc_outcome out = {.obs = obs};
            opc_env_scale(env[e], &a, &torque);
            assert_ok(opc_env_step(env[e], &torque, &out, &err), &err);
            t->action[e * length + i] = a;
            t->reward[e * length + i] = out.reward;
            t->done[e * length + i] = false;
            sum += out.reward / envs;
        }
    }
    return sum;
}

/* From anywhere on the circle the best return is about -150; doing nothing, or anything at random,
 * gets about -1200. */
static void the_pendulum_is_swung_up_and_held(void **state)
{
    (void)state;
    enum { PENDULUMS = 16, UPDATES = 60 };
    const int hidden[1] = {24};
    struct opc_trpo_options o = usual();
    struct opc_env *env[PENDULUMS];
    struct opc_err err = {0};
    struct opc_trpo_report report;
    o.obs = 3;
    o.act = 1;
    o.envs = PENDULUMS;
    o.length = 200;
    o.policy_hidden = o.value_hidden = hidden;
    o.policy_depth = o.value_depth = 1;
    o.discount = 0.95;
    o.gae_lambda = 0.95;
    o.max_kl = 0.03;
    o.log_std_init = 0;
    o.value_passes = 3;
    o.value_learning_rate = 1e-2;
    struct opc_trpo *t = open_trpo(&o);
    for (int e = 0; e < PENDULUMS; e++)
        assert_ok(opc_env_open("pendulum", &env[e], &err), &err);
    assert_true(play_batch(t, env, 0, true) < -700);
    for (uint32_t k = 1; k <= UPDATES; k++) {
        play_batch(t, env, k, true);
        opc_trpo_learn(t, 0, 3, 1, 3 * k, &report);
    }
    double mean = 0;
    for (uint32_t k = 0; k < 4; k++)
        mean += play_batch(t, env, 10000 + k, false) / 4;
    assert_true(mean > -200);
    for (int e = 0; e < PENDULUMS; e++)
        opc_env_close(env[e]);
    opc_trpo_destroy(t);
}

static int create_any(void *ctx, struct opc_err *err)
{
    (void)ctx;
    const struct opc_trpo_options o = usual();
    struct opc_trpo *t;
    const int code = opc_trpo_create(&o, &t, err);
    if (!code)
        opc_trpo_destroy(t);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create_any, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once(the_published_entropy_and_its_slopes),
        once(a_known_kl_divergence),
        once(a_step_has_the_length_that_the_limit_allows),
        once(damping_shortens_a_step),
        once(a_step_is_halved_where_its_kl_is_too_large),
        once(first_weights_have_their_norms),
        once(advantages_do_not_cross_an_end),
        each_backend(gradients_are_differences_of_the_objective),
        each_backend(fisher_products_are_second_differences_of_the_kl),
        once(an_update_gains_within_the_trust_region),
        once(a_line_search_that_fails_keeps_the_policy),
        once(the_value_function_is_fitted_to_its_targets),
        each_backend(any_number_of_threads_gives_the_same_bits),
        once(the_pendulum_is_swung_up_and_held),
        once(lack_of_memory_is_an_error),
    };
    return run_num_tests(tests);
}
