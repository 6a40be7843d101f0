/* SPDX-License-Identifier: MIT */
/* The multi-step model of SLBO: its loss on errors that are known, its gradient against differences
 * of a second implementation in double, its statistics, and what it learns. */
#include "model/multistep.h"

#include "test_net.h"

enum { OBS = 3, ACT = 2, COLUMNS = 2 * OBS + ACT + 2, REWARD = OBS + ACT, NEXT = REWARD + 2 };
enum { ROWS = 64, BATCH = 21, WINDOW = 3 };

static const int HIDDEN[2] = {7, 6};

/* A model, and recorded rows in their order: row i + 1 follows on row i unless `last` says that row
 * i ends an episode. */
struct bench {
    struct opc_multistep *model;
    float table[ROWS][COLUMNS];
    bool last[ROWS];
    const float *row[WINDOW * BATCH];
    bool cut[WINDOW * BATCH];
    int n, H;
};

static struct opc_multistep_options usual(void)
{
    return (struct opc_multistep_options){.obs = OBS,
                                          .act = ACT,
                                          .hidden = HIDDEN,
                                          .depth = 2,
                                          .window = 2,
                                          .batch = BATCH,
                                          .reward = true,
                                          .learning_rate = 1e-3,
                                          .weight_decay = 1e-3,
                                          .max_grad_norm = 2,
                                          .seed = 3,
                                          .which = 9};
}

static void open_bench(struct bench *b, const struct opc_multistep_options *options)
{
    struct opc_err err = {0};
    struct opc_rng r = test_stream(4);
    *b = (struct bench){.H = options->window, .n = options->batch};
    assert_ok(opc_multistep_create(options, &b->model, &err), &err);
    const float *all[ROWS];
    for (int i = 0; i < ROWS; i++) {
        float *row = b->table[i];
        all[i] = row;
        for (int k = 0; k < OBS; k++)
            row[k] = i > 0 && !b->last[i - 1] ? b->table[i - 1][NEXT + k] : 2 * any_float(&r);
        for (int k = 0; k < ACT; k++)
            row[OBS + k] = 1.5f * any_float(&r); /* some have to be clipped */
        row[REWARD] = 3 * any_float(&r) + 1;
        for (int k = 0; k < OBS; k++)
            row[NEXT + k] = 0.9f * row[k] + 0.3f * any_float(&r) + 0.1f * (float)k;
        b->last[i] = i % 9 == 8;
    }
    opc_multistep_observe(b->model, ROWS, all);
    for (int w = 0; w < b->n; w++)
        for (int i = 0, at = any_below(&r, ROWS); i < b->H; i++, at = (at + 1) % ROWS) {
            b->row[i * b->n + w] = b->table[at];
            b->cut[i * b->n + w] = b->last[at];
        }
}

/* Weights as if it had been trained: large enough for hidden units to matter. */
static void draw_weights(struct opc_multistep *m)
{
    struct opc_rng r = test_stream(5);
    const size_t n = plain_count(&m->net->shape);
    for (size_t i = 0; i < n; i++)
        m->net->param[plain_place(m->net, i)] = 0.5f * any_float(&r);
}

static void close_bench(struct bench *b)
{
    opc_multistep_destroy(b->model);
}

/* ---- the same once more, in double ----------------------------------------------------------- */

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static double plain_loss(const struct bench *b, const double *theta, double *kink)
{
    const struct opc_multistep *m = b->model;
    const int N = OBS + m->options.reward;
    double sum = 0, squares = 0;
    for (int w = 0; w < b->n; w++) {
        double s[OBS];
        for (int i = 0; i < b->H; i++) {
            const float *row = b->row[i * b->n + w];
            double x[OBS + ACT], y[OBS + 1], next[OBS], error = 0;
            for (int k = 0; k < OBS; k++) {
                if (i == 0 || b->cut[(i - 1) * b->n + w])
                    s[k] = (double)row[k];
                x[k] = (s[k] - m->stats[k].mean) / sqrt(m->stats[k].var);
            }
            for (int k = 0; k < ACT; k++)
                x[OBS + k] = clamp((double)row[OBS + k], -1, 1);
            net_row(&m->net->shape, theta, x, y, kink);
            for (int k = 0; k <= OBS; k++) {
                const struct opc_running *d = &m->stats[OBS + k];
                y[k] = sqrt(d->var) * y[k] + d->mean;
                double e = y[OBS] - (double)row[REWARD];
                if (k < OBS) {
                    const double limit = 100 * sqrt(m->stats[k].var);
                    next[k] =
                        clamp(s[k] + y[k], m->stats[k].mean - limit, m->stats[k].mean + limit);
                    e = (next[k] - s[k]) - ((double)row[NEXT + k] - (double)row[k]);
                }
                if (k < N)
                    error += e * e / d->var / N;
            }
            memcpy(s, next, sizeof s);
            sum += sqrt(error) / b->H / b->n;
        }
    }
    for (size_t i = 0; i < plain_count(&m->net->shape); i++)
        squares += theta[i] * theta[i];
    return sum + m->options.weight_decay / 2 * squares;
}

/* Central differences; parameters next to a kink of ReLU are given up, and must be few. */
static int compare_gradient(struct bench *b, double tolerance)
{
    struct opc_multistep *m = b->model;
    const size_t n = plain_count(&m->net->shape);
    double *theta = plain_get(m->net, m->net->param), largest = 0;
    const double loss = opc_multistep_gradient(m, b->n, b->row, b->cut);
    double *grad = plain_get(m->net, m->grad), decay = 0;
    for (size_t i = 0; i < n; i++) {
        decay += m->options.weight_decay / 2 * theta[i] * theta[i];
        largest = fmax(largest, fabs(grad[i]));
    }
    assert_near(loss + decay, plain_loss(b, theta, NULL), 1e-5);
    assert_true(largest > 1e-3);
    int compared = 0;
    for (size_t i = 0; i < n; i++) {
        const double at = theta[i], h = 1e-6;
        double kink = 1;
        theta[i] = at + h;
        const double up = plain_loss(b, theta, &kink);
        theta[i] = at - h;
        const double down = plain_loss(b, theta, &kink);
        theta[i] = at;
        if (kink < 1e-5)
            continue;
        assert_near(grad[i], (up - down) / (2 * h), tolerance * largest);
        compared++;
    }
    free(theta);
    free(grad);
    return compared;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Two entries with deviations 0.5 and 2; weights of 0 predict the mean difference, which is 0. */
static void the_loss_is_that_of_known_errors(void **state)
{
    (void)state;
    struct opc_multistep_options o = usual();
    struct opc_multistep *m;
    struct opc_err err = {0};
    o.obs = 2;
    o.act = 1;
    o.batch = 1;
    o.reward = false;
    assert_ok(opc_multistep_create(&o, &m, &err), &err);
    memset(m->net->param, 0, m->net->each * sizeof(float));
    const struct opc_multistep_scales scales = opc_multistep_scales(m);
    scales.diff_std[0] = 0.5f;
    scales.diff_std[1] = 2;
    scales.weight[0] = 2;
    scales.weight[1] = 0.5f;
    /* e = 0 - (s' - s): (0.1, 0.4), then (-0.2, 1) */
    const float a[7] = {0, 0, 0, 5, 0, -0.1f, -0.4f}, b[7] = {1, 1, 0, 5, 0, 1.2f, 0};
    const float *const row[2] = {a, b};
    const bool cut[2] = {false, false};
    assert_near(opc_multistep_gradient(m, 1, row, cut), 0.3263846, 1e-7);
    assert_near(m->loss[0][0], 0.2, 1e-7);
    assert_near(m->loss[1][0], 0.4527693, 1e-7);
    opc_multistep_destroy(m);
}

static void an_exact_prediction_has_no_gradient_and_no_nan(void **state)
{
    (void)state;
    struct opc_multistep_options o = usual();
    struct opc_multistep *m;
    struct opc_err err = {0};
    o.batch = 1;
    o.weight_decay = 0;
    o.reward = false;
    assert_ok(opc_multistep_create(&o, &m, &err), &err);
    memset(m->net->param, 0, m->net->each * sizeof(float));
    const float still[COLUMNS] = {1, 2, 3, 0, 0, 0, 0, 1, 2, 3}, *const row[2] = {still, still};
    const bool cut[2] = {false, false};
    assert_near(opc_multistep_train(m, 1, row, cut), 0, 0);
    for (size_t i = 0; i < m->net->each; i++)
        assert_true(m->grad[i] == 0 && m->net->param[i] == 0);
    opc_multistep_destroy(m);
}

static void statistics_are_those_of_all_rows(void **state)
{
    (void)state;
    struct opc_running s = {0};
    opc_running_merge(&s, 4, 2.5, 1.25); /* 1, 2, 3, 4 */
    assert_near(sqrt(s.var), 1.1180340, 1e-7);
    opc_running_merge(&s, 2, 15, 25); /* 10, 20 */
    assert_near(s.mean, 6.6666667, 1e-7);
    assert_near(sqrt(s.var), 6.6248690, 1e-7);

    /* In one piece or in several, and against the definition. */
    struct opc_multistep_options o = usual();
    struct opc_multistep *pieces;
    struct opc_err err = {0};
    struct bench b;
    open_bench(&b, &o);
    assert_ok(opc_multistep_create(&o, &pieces, &err), &err);
    const float *row[ROWS];
    for (int i = 0; i < ROWS; i++)
        row[i] = b.table[i];
    opc_multistep_observe(pieces, 10, row);
    opc_multistep_observe(pieces, 1, row + 10);
    opc_multistep_observe(pieces, 0, row + 11);
    opc_multistep_observe(pieces, ROWS - 11, row + 11);
    for (int k = 0; k <= 2 * OBS; k++) {
        double mean = 0, var = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < ROWS; i++) {
                const double v = k < OBS ? (double)row[i][k]
                                 : k < 2 * OBS
                                     ? (double)row[i][NEXT + k - OBS] - (double)row[i][k - OBS]
                                     : (double)row[i][REWARD];
                if (pass == 0)
                    mean += v / ROWS;
                else
                    var += (v - mean) * (v - mean) / ROWS;
            }
        assert_near(b.model->stats[k].mean, mean, 1e-6);
        assert_near(b.model->stats[k].var, var, 1e-6);
        assert_near(pieces->stats[k].mean, mean, 1e-6);
        assert_near(pieces->stats[k].var, var, 1e-6);
        assert_near(pieces->stats[k].count, ROWS, 0);
    }
    opc_multistep_destroy(pieces);
    close_bench(&b);
}

static void without_weights_it_predicts_the_mean_difference(void **state)
{
    (void)state;
    struct opc_multistep_options o = usual();
    struct bench b;
    open_bench(&b, &o);
    memset(b.model->net->param, 0, b.model->net->each * sizeof(float));
    const struct opc_multistep_scales scales = opc_multistep_scales(b.model);
    float next[OBS], reward;
    for (int i = 0; i < ROWS; i++) {
        opc_multistep_predict(b.model, 1, b.table[i], b.table[i] + OBS, next, &reward);
        for (int k = 0; k < OBS; k++)
            assert_true(next[k] == b.table[i][k] + scales.diff_mean[k]);
        assert_true(reward == scales.diff_mean[OBS]);
    }
    close_bench(&b);
}

/* Truncated normal, 2 deviations at most. */
static void first_weights_are_almost_nothing(void **state)
{
    (void)state;
    struct opc_multistep_options o = usual();
    const int wide[2] = {200, 200};
    struct opc_multistep *m;
    struct opc_err err = {0};
    o.hidden = wide;
    assert_ok(opc_multistep_create(&o, &m, &err), &err);
    const struct opc_layer *layer = &m->net->layer[1];
    double squares = 0;
    for (int i = 0; i < layer->out; i++)
        for (int k = 0; k < layer->in; k++) {
            const double w = (double)m->net->param[layer->weight + (size_t)(i * layer->ld + k)];
            assert_true(fabs(w) <= 2.00001e-5);
            squares += w * w;
        }
    assert_near(sqrt(squares / (200 * 200)), 0.8796257e-5, 1e-7);
    opc_multistep_destroy(m);
}

/* Windows of 1, 2 and 3 steps, of which some are cut; with and without the reward. */
static void gradients_are_differences_of_the_loss(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        struct opc_multistep_options o = usual();
        o.window = which < 3 ? which + 1 : 2;
        o.reward = which != 3;
        struct bench b;
        open_bench(&b, &o);
        draw_weights(b.model);
        int cuts = 0;
        for (int i = 0; i < b.n; i++)
            cuts += b.cut[i];
        assert_true(cuts > 0 && cuts < b.n);
        const int compared = compare_gradient(&b, 2e-4);
        assert_true(compared > (int)plain_count(&b.model->net->shape) / 2);
        close_bench(&b);
    }
}

/* What is predicted far away is held at 100 deviations, or where the options say; a state that is
 * held has no gradient. */
static void predictions_are_held_within_deviations(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct opc_multistep_options o = usual();
        o.weight_decay = 0;
        o.clip = which ? 6 : 0;
        const double max = which ? 6 : 100;
        struct bench b;
        open_bench(&b, &o);
        draw_weights(b.model);
        const struct opc_layer *layer = &b.model->net->layer[2];
        b.model->net->param[layer->bias] = 1e4f;        /* entry 0 of the state */
        b.model->net->param[layer->bias + OBS] = -1e4f; /* the reward */
        float next[OBS], reward;
        opc_multistep_predict(b.model, 1, b.table[0], b.table[0] + OBS, next, &reward);
        const struct opc_running *s = b.model->stats;
        assert_near((double)next[0], s[0].mean + max * sqrt(s[0].var), 1e-4);
        assert_true(fabs((double)next[1] - s[1].mean) < max * sqrt(s[1].var));
        assert_near((double)reward, s[2 * OBS].mean - max * sqrt(s[2 * OBS].var), 1e-3);
        opc_multistep_gradient(b.model, b.n, b.row, b.cut);
        assert_true(b.model->grad[layer->bias] == 0);
        assert_true(b.model->grad[layer->bias + 1] != 0);
        close_bench(&b);
    }
}

/* Long gradients are scaled down, then Adam; the first step of Adam is the learning rate. */
static void a_step_is_adams_on_the_clipped_gradient(void **state)
{
    (void)state;
    struct opc_multistep_options o = usual();
    o.max_grad_norm = 0.01;
    struct bench b;
    open_bench(&b, &o);
    draw_weights(b.model);
    struct opc_multistep *m = b.model;
    opc_multistep_gradient(m, b.n, b.row, b.cut);
    double *before = plain_get(m->net, m->net->param), *g = plain_get(m->net, m->grad), norm = 0;
    const size_t n = plain_count(&m->net->shape);
    for (size_t i = 0; i < n; i++)
        norm += g[i] * g[i];
    assert_true(sqrt(norm) > o.max_grad_norm);
    opc_multistep_train(m, b.n, b.row, b.cut);
    double *after = plain_get(m->net, m->net->param), *first = plain_get(m->net, m->adam->m);
    for (size_t i = 0; i < n; i++) {
        const double clipped = g[i] * o.max_grad_norm / sqrt(norm);
        assert_near(first[i], 0.1 * clipped, 1e-7 * o.max_grad_norm);
        if (fabs(clipped) > 1e-4) /* Adam's epsilon shortens the others */
            assert_near(before[i] - after[i], copysign(1e-3, clipped), 5e-6);
    }
    free(before);
    free(after);
    free(g);
    free(first);
    close_bench(&b);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    const int wide[2] = {70, 33};
    float *want = NULL;
    for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        struct opc_pool *pool = pool_of(threads);
        struct opc_multistep_options o = usual();
        o.hidden = wide;
        o.pool = pool;
        struct bench b;
        open_bench(&b, &o);
        draw_weights(b.model);
        for (int k = 0; k < 3; k++)
            opc_multistep_train(b.model, b.n, b.row, b.cut);
        const size_t bytes = b.model->net->each * sizeof(float);
        if (!want) {
            want = malloc(bytes);
            assert_non_null(want);
            memcpy(want, b.model->net->param, bytes);
        }
        assert_same_bits(b.model->net->param, want, bytes);
        close_bench(&b);
        opc_pool_destroy(pool);
    }
    free(want);
}

/* A row is predicted alike alone and among others. */
static void rows_do_not_know_each_other(void **state)
{
    (void)state;
    struct opc_multistep_options o = usual();
    struct bench b;
    open_bench(&b, &o);
    draw_weights(b.model);
    enum { MANY = 150 };
    float s[MANY * OBS], a[MANY * ACT], next[MANY * OBS], reward[MANY], one[OBS], r;
    for (int i = 0; i < MANY; i++) {
        memcpy(s + i * OBS, b.table[i % ROWS], OBS * sizeof(float));
        memcpy(a + i * ACT, b.table[i % ROWS] + OBS, ACT * sizeof(float));
    }
    opc_multistep_predict(b.model, MANY, s, a, next, reward);
    for (int i = 0; i < MANY; i++) {
        opc_multistep_predict(b.model, 1, s + i * OBS, a + i * ACT, one, &r);
        assert_same_bits(one, next + i * OBS, sizeof one);
        assert_same_bits(&r, &reward[i], sizeof r);
    }
    close_bench(&b);
}

/* s' = 0.9 s + noise-free terms of a; r = s_0. From almost no weights, as published. */
static void it_learns_a_linear_system(void **state)
{
    (void)state;
    struct opc_multistep_options o = usual();
    const int wide[2] = {32, 32};
    o.hidden = wide;
    o.weight_decay = 1e-5;
    struct bench b;
    open_bench(&b, &o);
    for (int i = 0; i < ROWS; i++) {
        float *row = b.table[i];
        for (int k = 0; k < OBS && i > 0 && !b.last[i - 1]; k++)
            row[k] = b.table[i - 1][NEXT + k];
        for (int k = 0; k < ACT; k++)
            row[OBS + k] = fminf(fmaxf(row[OBS + k], -1), 1);
        for (int k = 0; k < OBS; k++)
            row[NEXT + k] = 0.9f * row[k] + 0.2f * row[OBS + k % ACT];
        row[REWARD] = row[0];
    }
    double first = 0, last = 0;
    for (int k = 0; k < 1500; k++) {
        last = opc_multistep_train(b.model, b.n, b.row, b.cut);
        if (k == 0)
            first = last;
    }
    assert_true(first > 0.3);
    assert_true(last < 0.2 * first);
    close_bench(&b);
}

static int create_any(void *ctx, struct opc_err *err)
{
    (void)ctx;
    const struct opc_multistep_options o = usual();
    struct opc_multistep *m;
    const int code = opc_multistep_create(&o, &m, err);
    if (!code)
        opc_multistep_destroy(m);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create_any, NULL);
    struct opc_multistep_options o = usual();
    struct opc_multistep *m;
    struct opc_err err = {0};
    const int deep[OPC_MLP_LAYERS] = {2, 2, 2, 2, 2, 2, 2, 2};
    o.hidden = deep;
    o.depth = OPC_MLP_LAYERS;
    assert_fails(opc_multistep_create(&o, &m, &err), OPC_EUSER, &err, "8 hidden layers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once(the_loss_is_that_of_known_errors),
        once(an_exact_prediction_has_no_gradient_and_no_nan),
        once(statistics_are_those_of_all_rows),
        once(without_weights_it_predicts_the_mean_difference),
        once(first_weights_are_almost_nothing),
        each_backend(gradients_are_differences_of_the_loss),
        once(predictions_are_held_within_deviations),
        once(a_step_is_adams_on_the_clipped_gradient),
        each_backend(any_number_of_threads_gives_the_same_bits),
        once(rows_do_not_know_each_other),
        once(it_learns_a_linear_system),
        once(lack_of_memory_is_an_error),
    };
    return run_num_tests(tests);
}
