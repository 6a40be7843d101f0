/* SPDX-License-Identifier: MIT */
#include "num/mlp.h"

#include "base/pool.h"
#include "num/adam.h"
#include "test_num.h"

enum { P = OPC_PANEL, MEMBERS = 7 };

/* ---- the oracle: the same network in double, a row at a time ------------------------------------
 * theta is a member's parameters without padding: layer after layer, weights [out][in], biases. */

static size_t plain_count(const struct opc_mlp_shape *s)
{
    size_t n = 0;
    for (int l = 0; l < s->layers; l++)
        n += (size_t)(s->width[l + 1] * (s->width[l] + 1));
    return n;
}

/* Where parameter i of theta is in a member's run of floats. */
static size_t plain_place(const struct opc_mlp *net, size_t i)
{
    for (int l = 0;; l++) {
        const struct opc_layer *layer = &net->layer[l];
        const size_t in = (size_t)layer->in, weights = (size_t)layer->out * in;
        if (i < weights)
            return layer->weight + i / in * (size_t)layer->ld + i % in;
        if (i < weights + (size_t)layer->out)
            return layer->bias + i - weights;
        i -= weights + (size_t)layer->out;
    }
}

static double *plain_parameters(const struct opc_mlp *net, int member)
{
    const size_t n = plain_count(&net->shape);
    double *theta = calloc(n, sizeof *theta);
    assert_non_null(theta);
    for (size_t i = 0; i < n; i++)
        theta[i] = opc_mlp_member(net, member)[plain_place(net, i)];
    return theta;
}

static double plain_act(enum opc_activation act, double z)
{
    switch (act) {
    case OPC_ACTIVATION_LINEAR: return z;
    case OPC_ACTIVATION_RELU: return z > 0.0 ? z : 0.0;
    case OPC_ACTIVATION_TANH: return tanh(z);
    case OPC_ACTIVATION_SWISH: return z / (1.0 + exp(-z));
    }
    return NAN;
}

enum { WIDEST = 256 };

/* Layer normalisation of n sums. Where they are nearly equal, float does not know their
 * differences: `kink` then falls, too. */
static void plain_norm(int n, double *z, double *kink)
{
    double mean = 0.0, square = 0.0;
    for (int i = 0; i < n; i++)
        mean += z[i] / n;
    for (int i = 0; i < n; i++)
        square += (z[i] - mean) * (z[i] - mean) / n;
    for (int i = 0; i < n; i++)
        z[i] = (z[i] - mean) / sqrt(square + 1e-5);
    if (kink && 1e-3 * sqrt(square) < *kink)
        *kink = 1e-3 * sqrt(square);
}

/* y of one row; kink: how near a hidden sum came to 0, where ReLU has no derivative. */
static void plain_row(const struct opc_mlp_shape *s, const double *theta, const double *x,
                      double *y, double *kink)
{
    double from[WIDEST], to[WIDEST] = {0};
    memcpy(from, x, (size_t)s->width[0] * sizeof *x);
    for (int l = 0; l < s->layers; l++) {
        const int in = s->width[l], out = s->width[l + 1], last = l + 1 == s->layers;
        for (int o = 0; o < out; o++) {
            double z = theta[out * in + o];
            for (int i = 0; i < in; i++)
                z += theta[o * in + i] * from[i];
            to[o] = z;
        }
        if (s->layer_norm && !last)
            plain_norm(out, to, kink);
        for (int o = 0; o < out && !last; o++) {
            if (kink && fabs(to[o]) < *kink)
                *kink = fabs(to[o]);
            to[o] = plain_act(s->activation, to[o]);
        }
        memcpy(from, to, (size_t)out * sizeof *to);
        theta += out * (in + 1);
    }
    memcpy(y, to, (size_t)s->width[s->layers] * sizeof *y);
}

/* sum of c . y over rows: x[rows][in], c[rows][out] */
static double plain_loss(const struct opc_mlp_shape *s, const double *theta, int rows,
                         const double *x, const double *c)
{
    double sum = 0.0, y[WIDEST];
    for (int i = 0; i < rows; i++) {
        plain_row(s, theta, x + i * s->width[0], y, NULL);
        for (int o = 0; o < s->width[s->layers]; o++)
            sum += c[i * s->width[s->layers] + o] * y[o];
    }
    return sum;
}

/* ---- a network with a batch and everything a pass needs -------------------------------------- */

struct bench {
    struct opc_mlp *net;
    struct opc_tape *tape[MEMBERS];
    int rows, panels;
    size_t xs, apart, dxs; /* apart = 0: shared input */
    float *x, *grad, *dx;  /* [members or 1][panels][xs] [members][each] [members][panels][dxs] */
    double *rx[MEMBERS], *rc[MEMBERS]; /* the rows again: inputs, and loss by outputs */
};

static size_t at(int i, int k, size_t stride)
{
    return (size_t)(i / P) * stride + (size_t)(k * P + i % P);
}

static void fill_dy(const struct bench *b)
{
    const struct opc_mlp_shape *s = &b->net->shape;
    const int out = s->width[s->layers];
    for (int m = 0; m < s->members; m++)
        for (int i = 0; i < b->panels * P; i++)
            for (int o = 0; o < out; o++)
                b->tape[m]->dy[s->layers - 1][at(i, o, (size_t)(out * P))] =
                    i < b->rows ? (float)b->rc[m][i * out + o] : 1e3f; /* padding: no matter what */
}

static struct bench bench_make(struct opc_rng *r, const struct opc_mlp_shape *s, int rows,
                               bool shared)
{
    struct opc_err err = {0};
    struct bench b = {.rows = rows, .panels = opc_panels(rows)};
    const int in = s->width[0], out = s->width[s->layers];
    assert_ok(opc_mlp_create(s, &b.net, &err), &err);
    opc_mlp_init(b.net, OPC_INIT_GLOROT, opc_rng_bits(r), 0);
    for (int m = 0; m < s->members; m++)
        for (int l = 0; l < s->layers; l++)
            for (int o = 0; o < s->width[l + 1]; o++)
                opc_mlp_member(b.net, m)[b.net->layer[l].bias + (size_t)o] = any_float(r);
    b.xs = (size_t)(in * P + any_below(r, 20));
    b.dxs = (size_t)(in * P + any_below(r, 20));
    b.apart = shared ? 0 : (size_t)b.panels * b.xs + 3;
    b.x = floats_of((size_t)s->members * ((size_t)b.panels * b.xs + 3), NAN);
    b.grad = floats_of((size_t)s->members * b.net->each, 0.0f);
    b.dx = floats_of((size_t)s->members * (size_t)b.panels * b.dxs, 1234.5f);
    for (int m = 0; m < s->members; m++) {
        assert_ok(opc_tape_create(b.net, rows, &b.tape[m], &err), &err);
        b.rx[m] = calloc((size_t)(rows * in), sizeof(double));
        b.rc[m] = calloc((size_t)(rows * out), sizeof(double));
        assert_true(b.rx[m] && b.rc[m]);
        for (int i = 0; i < rows * out; i++)
            b.rc[m][i] = any_float(r);
    }
    double *theta[MEMBERS];
    for (int m = 0; m < s->members; m++)
        theta[m] = plain_parameters(b.net, m);
    for (int m = 0; m < (shared ? 1 : s->members); m++)
        for (int i = 0; i < b.panels * P; i++) {
            float row[WIDEST];
            double wide[WIDEST], y[WIDEST], kink;
            do { /* again while a sum is so near ReLU's corner that float may be on its other side
                  */
                kink = s->activation == OPC_ACTIVATION_RELU ? 1e-4 : 0.0;
                for (int k = 0; k < in; k++)
                    wide[k] = row[k] = any_float(r);
                for (int n = shared ? 0 : m; n < (shared ? s->members : m + 1); n++)
                    plain_row(s, theta[n], wide, y, &kink);
            } while (s->activation == OPC_ACTIVATION_RELU && kink < 1e-4);
            for (int k = 0; k < in; k++)
                b.x[(size_t)m * b.apart + at(i, k, b.xs)] = row[k];
            for (int n = shared ? 0 : m; i < rows && n < (shared ? s->members : m + 1); n++)
                memcpy(b.rx[n] + i * in, wide, (size_t)in * sizeof *wide);
        }
    for (int m = 0; m < s->members; m++)
        free(theta[m]);
    return b;
}

static void bench_pass(struct bench *b, struct opc_pool *pool)
{
    opc_mlp_forward(b->net, b->rows, b->x, b->xs, b->apart, b->tape, pool);
    fill_dy(b);
    opc_mlp_backward(b->net, b->rows, b->tape, b->grad, b->dx, b->dxs, pool);
}

static void bench_free(struct bench *b)
{
    for (int m = 0; m < b->net->shape.members; m++) {
        opc_tape_destroy(b->tape[m]);
        free(b->rx[m]);
        free(b->rc[m]);
    }
    opc_mlp_destroy(b->net);
    free(b->x);
    free(b->grad);
    free(b->dx);
}

/* The same with layer normalisation, of which one feature alone would leave nothing. */
static struct opc_mlp_shape with_layer_norm(struct opc_mlp_shape s)
{
    s.layer_norm = true;
    s.activation = OPC_ACTIVATION_RELU;
    for (int l = 1; l < s.layers; l++)
        s.width[l] = s.width[l] < 2 ? 6 : s.width[l];
    return s;
}

static struct opc_mlp_shape random_shape(struct opc_rng *r, int trial)
{
    static const int WIDTH[] = {1, 2, 3, 5, 7, 8, 13, 17, 23};
    static const int MEMBER_COUNT[] = {1, 2, 7};
    const int members = MEMBER_COUNT[trial % 3];
    struct opc_mlp_shape s = {.members = members,
                              .layers = 1 + any_below(r, 4),
                              .activation = (enum opc_activation)(trial / 3 % 4)};
    const int choices = members == 7 ? 4 : members == 2 ? 7 : 9;
    for (int l = 0; l <= s.layers; l++)
        s.width[l] = trial < 12 && trial % 2 ? 1 : WIDTH[any_below(r, choices)];
    /* ReLU comes without and with layer normalisation. */
    return trial / 3 % 8 == 5 ? with_layer_norm(s) : s;
}

static int random_rows(struct opc_rng *r)
{
    static const int ROWS[] = {1, 2, 7, 15, 16, 17, 23, 33};
    return ROWS[any_below(r, 8)];
}

static void assert_derivative(double got, double want, double scale, const struct bench *b,
                              const char *by, size_t i)
{
    if (fabs(got - want) <= 2e-6 * scale)
        return;
    const struct opc_mlp_shape *s = &b->net->shape;
    print_error("%d members, %d rows, activation %d, widths", s->members, b->rows, s->activation);
    for (int l = 0; l <= s->layers; l++)
        print_error(" %d", s->width[l]);
    fail_msg("; by %s %zu: %.9g, should be %.9g", by, i, got, want);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void outputs_and_gradients_agree_with_double_precision(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(1);
    const double h = 1e-5;
    for (int trial = 0; trial < (LIGHT ? 24 : 48); trial++) {
        const struct opc_mlp_shape s = random_shape(&r, trial);
        const int in = s.width[0], out = s.width[s.layers];
        struct bench b = bench_make(&r, &s, random_rows(&r), trial % 2);
        bench_pass(&b, NULL);
        for (int m = 0; m < s.members; m++) {
            double *theta = plain_parameters(b.net, m);
            for (int i = 0; i < b.rows; i++) {
                double y[WIDEST];
                plain_row(&s, theta, b.rx[m] + i * in, y, NULL);
                for (int o = 0; o < out; o++) {
                    const float got = b.tape[m]->y[s.layers - 1][at(i, o, (size_t)(out * P))];
                    assert_derivative(got, y[o], 1.0 + fabs(y[o]), &b, "nothing: output",
                                      (size_t)o);
                }
            }
            for (size_t i = 0; i < plain_count(&s); i++) {
                const double keep = theta[i];
                theta[i] = keep + h;
                const double up = plain_loss(&s, theta, b.rows, b.rx[m], b.rc[m]);
                theta[i] = keep - h;
                const double down = plain_loss(&s, theta, b.rows, b.rx[m], b.rc[m]);
                theta[i] = keep;
                assert_derivative(b.grad[(size_t)m * b.net->each + plain_place(b.net, i)],
                                  (up - down) / (2.0 * h), sqrt(b.rows) * out, &b, "parameter", i);
            }
            for (int i = 0; i < b.rows; i++)
                for (int k = 0; k < in; k++) {
                    double *x = b.rx[m] + i * in, *c = b.rc[m] + i * out, keep = x[k];
                    x[k] = keep + h;
                    const double up = plain_loss(&s, theta, 1, x, c);
                    x[k] = keep - h;
                    const double down = plain_loss(&s, theta, 1, x, c);
                    x[k] = keep;
                    assert_derivative(b.dx[(size_t)(m * b.panels) * b.dxs + at(i, k, b.dxs)],
                                      (up - down) / (2.0 * h), out, &b, "input",
                                      (size_t)(i * in + k));
                }
            free(theta);
        }
        bench_free(&b);
    }
}

/* The shapes that matter are too large to move every parameter: each layer's gradient, and the
 * inputs', along a random direction. */
static void wide_networks_have_the_right_slope_in_every_direction(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(2);
    const double h = 1e-5;
    for (int act = OPC_ACTIVATION_RELU; act <= OPC_ACTIVATION_SWISH + 1; act++) {
        struct opc_mlp_shape s =
            opc_mlp_shape_of(2, 23, LIGHT ? 65 : 200, 3, 36, (enum opc_activation)act);
        if (act > OPC_ACTIVATION_SWISH)
            s = with_layer_norm(s);
        struct bench b = bench_make(&r, &s, LIGHT ? 20 : 100, act == OPC_ACTIVATION_TANH);
        bench_pass(&b, NULL);
        for (int m = 0; m < s.members; m++) {
            const size_t n = plain_count(&s);
            double *theta = plain_parameters(b.net, m), *moved = plain_parameters(b.net, m);
            double *way = calloc(n, sizeof *way);
            assert_non_null(way);
            size_t first = 0;
            for (int l = 0; l < s.layers; l++) {
                const size_t end = first + (size_t)(s.width[l + 1] * (s.width[l] + 1));
                double got = 0.0, scale = 0.0;
                for (size_t i = first; i < end; i++) {
                    const double g = b.grad[(size_t)m * b.net->each + plain_place(b.net, i)];
                    way[i] = (double)any_float(&r) / s.width[l];
                    got += g * way[i];
                    scale += g * g * way[i] * way[i];
                }
                double loss[2];
                for (int side = 0; side < 2; side++) {
                    for (size_t i = first; i < end; i++)
                        moved[i] = theta[i] + (side ? h : -h) * way[i];
                    loss[side] = plain_loss(&s, moved, b.rows, b.rx[m], b.rc[m]);
                }
                for (size_t i = first; i < end; i++)
                    moved[i] = theta[i];
                assert_derivative(got, (loss[1] - loss[0]) / (2.0 * h), 3.0 * sqrt(scale), &b,
                                  "layer", (size_t)l);
                first = end;
            }
            double got = 0.0, scale = 0.0, loss[2] = {0};
            double *x = calloc((size_t)(b.rows * s.width[0]), sizeof *x);
            assert_non_null(x);
            for (int i = 0; i < b.rows * s.width[0]; i++) {
                const int row = i / s.width[0], k = i % s.width[0];
                const double g = b.dx[(size_t)(m * b.panels) * b.dxs + at(row, k, b.dxs)];
                x[i] = any_float(&r);
                got += g * x[i];
                scale += g * g * x[i] * x[i];
            }
            for (int side = 0; side < 2; side++) {
                for (int i = 0; i < b.rows * s.width[0]; i++)
                    b.rx[m][i] += (side ? 2.0 * h : -h) * x[i];
                loss[side] = plain_loss(&s, theta, b.rows, b.rx[m], b.rc[m]);
            }
            assert_derivative(got, (loss[1] - loss[0]) / (2.0 * h), 3.0 * sqrt(scale), &b, "inputs",
                              0);
            free(x);
            free(theta);
            free(moved);
            free(way);
        }
        bench_free(&b);
    }
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* What a pass leaves behind, of the rows that are real. */
struct result {
    float *y[MEMBERS][OPC_MLP_LAYERS], *grad, *dx;
};

static float *copy_of(const float *p, size_t n)
{
    float *copy = floats_of(n, 0.0f);
    memcpy(copy, p, n * sizeof *p);
    return copy;
}

static size_t layer_size(const struct bench *b, int l)
{
    return (size_t)(b->panels * b->net->layer[l].out * P);
}

static struct result result_of(const struct bench *b)
{
    const struct opc_mlp_shape *s = &b->net->shape;
    struct result res = {
        .grad = copy_of(b->grad, (size_t)s->members * b->net->each),
        .dx = copy_of(b->dx, (size_t)(s->members * b->panels) * b->dxs),
    };
    for (int m = 0; m < s->members; m++)
        for (int l = 0; l < s->layers; l++)
            res.y[m][l] = copy_of(b->tape[m]->y[l], layer_size(b, l));
    return res;
}

static void result_free(const struct bench *b, struct result *res)
{
    for (int m = 0; m < b->net->shape.members; m++)
        for (int l = 0; l < b->net->shape.layers; l++)
            free(res->y[m][l]);
    free(res->grad);
    free(res->dx);
}

/* So that a pass that wrote nothing would show. */
static void forget(struct bench *b)
{
    const struct opc_mlp_shape *s = &b->net->shape;
    for (int m = 0; m < s->members; m++)
        for (int l = 0; l < s->layers; l++)
            for (size_t i = 0; i < layer_size(b, l); i++)
                b->tape[m]->y[l][i] = b->tape[m]->dy[l][i] = -7.0f;
    memset(b->grad, 0, (size_t)s->members * b->net->each * sizeof *b->grad);
    for (size_t i = 0; i < (size_t)(s->members * b->panels) * b->dxs; i++)
        b->dx[i] = 1234.5f;
}

static void assert_result(const struct bench *b, const struct result *res)
{
    const struct opc_mlp_shape *s = &b->net->shape;
    for (int m = 0; m < s->members; m++)
        for (int l = 0; l < s->layers; l++)
            assert_same_bits(b->tape[m]->y[l], res->y[m][l], layer_size(b, l) * sizeof(float));
    assert_same_bits(b->grad, res->grad, (size_t)s->members * b->net->each * sizeof(float));
    assert_same_bits(b->dx, res->dx, (size_t)(s->members * b->panels) * b->dxs * sizeof(float));
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    static const int THREADS[] = {1, 2, 3, 8};
    struct opc_rng r = test_stream(3);
    struct opc_err err = {0};
    for (int t = 0; t < 4; t++) {
        struct opc_pool *pool;
        assert_ok(opc_pool_create(THREADS[t], &pool, &err), &err);
        for (int trial = 0; trial < 12; trial++) {
            struct opc_mlp_shape s = random_shape(&r, 24 + trial);
            s.width[0] = 40;
            s = trial % 4 == 1 ? with_layer_norm(s) : s;
            struct bench b = bench_make(&r, &s, trial % 2 ? 100 : random_rows(&r), trial % 4 < 2);
            bench_pass(&b, NULL);
            struct result alone = result_of(&b);
            for (int again = 0; again < 3; again++) {
                forget(&b);
                bench_pass(&b, pool);
                assert_result(&b, &alone);
            }
            result_free(&b, &alone);
            bench_free(&b);
        }
        opc_pool_destroy(pool);
    }
}

static void bits_do_not_depend_on_how_the_work_was_sliced(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(4);
    for (int act = OPC_ACTIVATION_LINEAR; act <= OPC_ACTIVATION_SWISH + 1; act++) {
        struct opc_mlp_shape s = {.members = 2,
                                  .layers = 4,
                                  .width = {9, 21, 1, 14, 5},
                                  .activation = (enum opc_activation)act};
        if (act > OPC_ACTIVATION_SWISH)
            s = with_layer_norm(s);
        struct bench b = bench_make(&r, &s, 75, false);
        bench_pass(&b, NULL);
        struct result whole = result_of(&b);
        float *transposed = floats_of(opc_transposed_size(b.panels, 21), 0.0f);
        for (int step = 1; step <= b.panels; step++) {
            forget(&b);
            for (int m = 0; m < s.members; m++) {
                struct opc_tape *t = b.tape[m];
                for (int p = 0; p < b.panels; p += step)
                    opc_mlp_forward_part(b.net, m, p, p + step < b.panels ? p + step : b.panels, t);
            }
            fill_dy(&b);
            for (int m = 0; m < s.members; m++) {
                struct opc_tape *t = b.tape[m];
                float *dx = b.dx + (size_t)(m * b.panels) * b.dxs;
                for (int p = 0; p < b.panels; p += step) {
                    const int end = p + step < b.panels ? p + step : b.panels;
                    if (step % 2)
                        opc_mlp_backward_part(b.net, m, p, end, t);
                    else
                        for (int l = s.layers - 1; l > 0; l--)
                            opc_mlp_backward_layer(b.net, m, l, p, end, t);
                    for (int from = 0; from < s.width[0]; from += step)
                        opc_mlp_inputs_part(b.net, m, p, end, from,
                                            from + step < s.width[0] ? step : s.width[0] - from, t,
                                            dx + from * P, b.dxs);
                }
                for (int l = s.layers - 1; l >= 0; l--) {
                    for (int p = 0; p < b.panels; p += step)
                        opc_mlp_transpose_part(b.net, l, p,
                                               p + step < b.panels ? p + step : b.panels, b.panels,
                                               t, transposed);
                    for (int o = s.width[l + 1]; o > 0; o -= step) /* the last outputs first */
                        opc_mlp_gradient_part(b.net, l, o > step ? o - step : 0, o, b.rows, t,
                                              transposed, b.grad + (size_t)m * b.net->each);
                }
            }
            assert_result(&b, &whole);
        }
        free(transposed);
        result_free(&b, &whole);
        bench_free(&b);
    }
}

/* One batch shared by all members is the same batch given to each. */
static void a_shared_batch_is_a_copy_for_each_member(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(5);
    const struct opc_mlp_shape s = opc_mlp_shape_of(MEMBERS, 6, 12, 2, 4, OPC_ACTIVATION_SWISH);
    struct bench b = bench_make(&r, &s, 35, true);
    const size_t size = (size_t)b.panels * b.xs;
    bench_pass(&b, NULL);
    struct result shared = result_of(&b);
    forget(&b);
    b.apart = size + 3;
    for (int m = 1; m < s.members; m++)
        memcpy(b.x + (size_t)m * b.apart, b.x, size * sizeof *b.x);
    bench_pass(&b, NULL);
    assert_result(&b, &shared);
    result_free(&b, &shared);
    bench_free(&b);
}

/* Gradients are optional. What is not asked for is not touched, and the rest does not change. */
static void backward_gives_what_it_is_asked_for(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(6);
    const struct opc_mlp_shape s = opc_mlp_shape_of(2, 6, 12, 2, 4, OPC_ACTIVATION_TANH);
    struct bench b = bench_make(&r, &s, 35, true);
    bench_pass(&b, NULL);
    struct result both = result_of(&b);
    for (int ask = 0; ask < 4; ask++) {
        forget(&b);
        opc_mlp_forward(b.net, b.rows, b.x, b.xs, b.apart, b.tape, NULL);
        fill_dy(&b);
        opc_mlp_backward(b.net, b.rows, b.tape, ask & 1 ? b.grad : NULL, ask & 2 ? b.dx : NULL,
                         b.dxs, NULL);
        const size_t grad = 2 * b.net->each * sizeof(float);
        const size_t dx = 2 * (size_t)b.panels * b.dxs * sizeof(float);
        if (ask & 1)
            assert_same_bits(b.grad, both.grad, grad);
        if (ask & 2)
            assert_same_bits(b.dx, both.dx, dx);
        else
            for (size_t i = 0; i < dx / sizeof(float); i++)
                assert_true(b.dx[i] == 1234.5f);
    }
    forget(&b);
    opc_mlp_forward(b.net, 0, b.x, b.xs, b.apart, b.tape, NULL); /* no rows: nothing happens */
    opc_mlp_backward(b.net, 0, b.tape, b.grad, b.dx, b.dxs, NULL);
    assert_true(b.tape[0]->y[0][0] == -7.0f && b.dx[0] == 1234.5f);
    result_free(&b, &both);
    bench_free(&b);
}

/* The backward pass of a normalised layer works in the memory of its outputs, and restores them:
 * weight gradients read them afterwards. */
static void backward_leaves_the_outputs_as_they_were(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(10);
    const struct opc_mlp_shape s =
        with_layer_norm(opc_mlp_shape_of(2, 6, 13, 2, 4, OPC_ACTIVATION_RELU));
    struct bench b = bench_make(&r, &s, 35, true);
    opc_mlp_forward(b.net, b.rows, b.x, b.xs, b.apart, b.tape, NULL);
    struct result before = result_of(&b);
    fill_dy(&b);
    opc_mlp_backward(b.net, b.rows, b.tape, NULL, NULL, 0, NULL);
    for (int m = 0; m < s.members; m++)
        for (int l = 0; l < s.layers; l++)
            assert_same_bits(b.tape[m]->y[l], before.y[m][l], layer_size(&b, l) * sizeof(float));
    result_free(&b, &before);
    bench_free(&b);
}

/* One feature is its own mean: a normalised layer of width 1 is 0, and nothing flows through it. */
static void a_normalised_layer_of_one_feature_is_zero(void **state)
{
    (void)state;
    struct opc_err err = {0};
    const struct opc_mlp_shape s = {.members = 1,
                                    .layers = 2,
                                    .width = {3, 1, 1},
                                    .activation = OPC_ACTIVATION_RELU,
                                    .layer_norm = true};
    struct opc_mlp *net;
    struct opc_tape *tape;
    float x[3 * P], dx[3 * P];
    assert_ok(opc_mlp_create(&s, &net, &err), &err);
    assert_ok(opc_tape_create(net, P, &tape, &err), &err);
    opc_mlp_init(net, OPC_INIT_GLOROT, 1, 0);
    net->param[net->layer[1].bias] = 0.5f;
    for (int i = 0; i < 3 * P; i++)
        x[i] = (float)i - 20.0f;
    opc_mlp_forward(net, P, x, 3 * P, 0, &tape, NULL);
    for (int i = 0; i < P; i++) {
        assert_true(tape->y[1][i] == 0.5f);
        tape->dy[1][i] = 1.0f;
    }
    opc_mlp_backward(net, P, &tape, NULL, dx, 3 * P, NULL);
    for (int i = 0; i < 3 * P; i++)
        assert_true(dx[i] == 0.0f);
    opc_tape_destroy(tape);
    opc_mlp_destroy(net);
}

/* A tape made for many rows serves fewer. */
static void a_smaller_batch_fits_a_larger_tape(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(7);
    const struct opc_mlp_shape s = opc_mlp_shape_of(2, 6, 12, 2, 4, OPC_ACTIVATION_SWISH);
    struct bench b = bench_make(&r, &s, 35, true);
    bench_pass(&b, NULL);
    struct result small = result_of(&b);
    struct opc_err err = {0};
    for (int m = 0; m < s.members; m++) {
        opc_tape_destroy(b.tape[m]);
        assert_ok(opc_tape_create(b.net, 300, &b.tape[m], &err), &err);
        assert_int_equal(b.tape[m]->rows, 300);
        assert_int_equal(b.tape[m]->panels, 19);
    }
    forget(&b);
    bench_pass(&b, NULL);
    assert_result(&b, &small);
    result_free(&b, &small);
    bench_free(&b);
}

static void infer_gives_the_bits_of_forward(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(8);
    for (int trial = 0; trial < 40; trial++) {
        struct opc_mlp_shape s = random_shape(&r, trial);
        struct bench b = bench_make(&r, &s, trial % 2 ? 70 : random_rows(&r), trial % 3 == 0);
        opc_mlp_forward(b.net, b.rows, b.x, b.xs, b.apart, b.tape, NULL);
        const int out = s.width[s.layers];
        for (int m = 0; m < s.members; m++) {
            const int p0 = any_below(&r, b.panels), p1 = p0 + 1 + any_below(&r, b.panels - p0);
            const int outputs = 1 + any_below(&r, out); /* the means, without the variances */
            const size_t ys = (size_t)(outputs * P + any_below(&r, 20));
            float *y = floats_of((size_t)(p1 - p0) * ys, 1234.5f);
            struct opc_err err = {0};
            struct opc_arena scratch;
            assert_ok(opc_arena_create(opc_mlp_infer_need(b.net, p1 - p0), &scratch, &err), &err);
            opc_mlp_infer(b.net, m, p1 - p0, b.x + (size_t)m * b.apart + (size_t)p0 * b.xs, b.xs,
                          outputs, y, ys, &scratch);
            assert_int_equal(scratch.used, 0);
            opc_arena_destroy(&scratch);
            for (int p = p0; p < p1; p++) {
                assert_same_bits(y + (size_t)(p - p0) * ys,
                                 b.tape[m]->y[s.layers - 1] + p * out * P,
                                 (size_t)(outputs * P) * sizeof *y);
                for (size_t i = (size_t)(outputs * P); i < ys; i++)
                    assert_true(y[(size_t)(p - p0) * ys + i] == 1234.5f);
            }
            free(y);
        }
        bench_free(&b);
    }
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Every float that is neither a weight nor a bias. */
static void assert_padding_is_zero(const struct opc_mlp *net)
{
    const size_t count = plain_count(&net->shape);
    bool *used = calloc(net->each, sizeof *used);
    assert_non_null(used);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t place = plain_place(net, i);
        assert_true(place < net->each && !used[place]);
        used[place] = true;
    }
    for (int m = 0; m < net->shape.members; m++)
        for (size_t i = 0; i < net->each; i++)
            if (!used[i]) {
                assert_true(same_bits(opc_mlp_member(net, m)[i], 0.0f));
                n++;
            }
    assert_true(n > 0);
    free(used);
}

static void padding_stays_zero_while_learning(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(9);
    struct opc_err err = {0};
    for (int torch = 0; torch < 2; torch++) {
        const struct opc_mlp_shape s = {
            .members = 2, .layers = 3, .width = {5, 64, 3, 1}, .activation = OPC_ACTIVATION_SWISH};
        struct bench b = bench_make(&r, &s, 20, true);
        assert_padding_is_zero(b.net);
        const size_t count = (size_t)s.members * b.net->each;
        float *before = copy_of(b.net->param, count);
        struct opc_adam_config config = opc_adam_usual(1e-2);
        struct opc_adam *adam;
        config.torch = torch;
        assert_ok(opc_adam_create(count, config, &adam, &err), &err);
        for (int step = 0; step < 5; step++) {
            bench_pass(&b, NULL);
            opc_adam_step(adam, 1e-3, b.grad, b.net->param);
        }
        assert_padding_is_zero(b.net);
        for (size_t i = 0; i < plain_count(&s); i++) {
            const size_t place = plain_place(b.net, i);
            assert_true(before[place] != b.net->param[place]); /* and the rest did learn */
        }
        opc_adam_destroy(adam);
        free(before);
        bench_free(&b);
    }
}

static struct opc_mlp *fresh(const struct opc_mlp_shape *s, enum opc_init how, uint64_t seed,
                             uint32_t which)
{
    struct opc_err err = {0};
    struct opc_mlp *net;
    assert_ok(opc_mlp_create(s, &net, &err), &err);
    for (int m = 0; m < s->members; m++) /* init overwrites what was learned */
        for (size_t i = 0; i < plain_count(s); i++)
            opc_mlp_member(net, m)[plain_place(net, i)] = 5.0f;
    opc_mlp_init(net, how, seed, which);
    assert_padding_is_zero(net);
    return net;
}

/* A normal cut at 2 standard deviations has 0.8796 of its deviation left; a uniform law on
 * [-limit, limit] has limit / sqrt(3). */
static void fresh_weights_have_the_stated_law(void **state)
{
    (void)state;
    const struct opc_mlp_shape s = {.members = 2, .layers = 3, .width = {23, 200, 150, 34}};
    for (int how = OPC_INIT_TRUNCATED; how <= OPC_INIT_GLOROT; how++) {
        struct opc_mlp *net = fresh(&s, (enum opc_init)how, 1, 0);
        for (int m = 0; m < s.members; m++)
            for (int l = 0; l < s.layers; l++) {
                const struct opc_layer *layer = &net->layer[l];
                const float *w = opc_mlp_member(net, m) + layer->weight;
                const float *bias = opc_mlp_member(net, m) + layer->bias;
                const int n = layer->in * layer->out;
                const double truncated = 1.0 / (2.0 * sqrt(layer->in));
                const double limit = how == OPC_INIT_TRUNCATED
                                         ? 2.0 * truncated
                                         : sqrt(6.0 / (layer->in + layer->out));
                const double want =
                    how == OPC_INIT_TRUNCATED ? 0.87963 * truncated : limit / sqrt(3.0);
                double sum = 0.0, squares = 0.0, max = 0.0, inside = 0.0;
                for (int o = 0; o < layer->out; o++)
                    for (int i = 0; i < layer->in; i++) {
                        const double v = w[o * layer->ld + i];
                        sum += v;
                        squares += v * v;
                        max = fmax(max, fabs(v));
                        inside += fabs(v) < limit / 2.0;
                    }
                assert_true(max <= limit * (1.0 + 1e-6) && max > 0.97 * limit);
                assert_true(fabs(sum / n) < 4.0 * want / sqrt(n));
                assert_true(fabs(sqrt(squares / n) / want - 1.0) < 4.0 * sqrt(0.5 / n));
                /* erf(1 / sqrt 2) / erf(2 / sqrt 2) of a cut normal lie within 1 deviation */
                const double part = how == OPC_INIT_TRUNCATED ? 0.715232 : 0.5;
                assert_true(fabs(inside / n - part) < 4.0 * sqrt(part * (1.0 - part) / n));
                for (int o = 0; o < layer->out; o++)
                    assert_true(same_bits(bias[o], 0.0f));
            }
        opc_mlp_destroy(net);
    }
}

/* Rows or columns, whichever are fewer: W W^T or W^T W is gain^2 times the unit matrix. */
static void orthogonal_weights_are_orthogonal(void **state)
{
    (void)state;
    const struct opc_mlp_shape s = {.members = 2, .layers = 5, .width = {11, 64, 64, 7, 1, 3}};
    struct opc_mlp *net, *other;
    struct opc_err err = {0};
    assert_ok(opc_mlp_create(&s, &net, &err), &err);
    assert_ok(opc_mlp_create(&s, &other, &err), &err);
    assert_ok(opc_mlp_init_orthogonal(net, sqrt(2.0), 0.01, 1, 0, &err), &err);
    for (int m = 0; m < s.members; m++)
        for (int l = 0; l < s.layers; l++) {
            const struct opc_layer *layer = &net->layer[l];
            const float *w = opc_mlp_member(net, m) + layer->weight;
            const bool wide = layer->in > layer->out;
            const int n = wide ? layer->out : layer->in, dim = wide ? layer->in : layer->out;
            const double gain = l + 1 < s.layers ? sqrt(2.0) : 0.01;
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++) {
                    double sum = 0;
                    for (int k = 0; k < dim; k++)
                        sum += wide ? (double)w[a * layer->ld + k] * (double)w[b * layer->ld + k]
                                    : (double)w[k * layer->ld + a] * (double)w[k * layer->ld + b];
                    assert_true(fabs(sum / (gain * gain) - (a == b)) < 1e-6);
                }
            for (int o = 0; o < layer->out; o++)
                assert_true(same_bits(opc_mlp_member(net, m)[layer->bias + (size_t)o], 0.0f));
        }
    assert_padding_is_zero(net);
    assert_true(memcmp(net->param, opc_mlp_member(net, 1), net->each * sizeof(float)) != 0);
    const uint64_t name[3][2] = {{1, 0}, {2, 0}, {1, 1}}; /* seed, which */
    for (int i = 0; i < 3; i++) {
        assert_ok(
            opc_mlp_init_orthogonal(other, sqrt(2.0), 0.01, name[i][0], (uint32_t)name[i][1], &err),
            &err);
        assert_true((memcmp(net->param, other->param, 2 * net->each * sizeof(float)) == 0) ==
                    (i == 0));
    }
    opc_mlp_destroy(net);
    opc_mlp_destroy(other);
}

static void fresh_weights_depend_on_seed_network_and_member_alone(void **state)
{
    (void)state;
    for (int how = OPC_INIT_TRUNCATED; how <= OPC_INIT_GLOROT; how++) {
        const struct opc_mlp_shape s = opc_mlp_shape_of(2, 4, 8, 2, 3, OPC_ACTIVATION_RELU);
        const struct opc_mlp_shape more =
            opc_mlp_shape_of(MEMBERS, 4, 8, 2, 3, OPC_ACTIVATION_TANH);
        struct opc_mlp *net[] = {
            fresh(&s, (enum opc_init)how, 1, 0),    fresh(&s, (enum opc_init)how, 2, 0),
            fresh(&s, (enum opc_init)how, 1, 1),    fresh(&s, (enum opc_init)how, 1, 0),
            fresh(&more, (enum opc_init)how, 1, 0),
        };
        const size_t each = net[0]->each, bytes = each * sizeof(float);
        assert_true(memcmp(opc_mlp_member(net[0], 0), opc_mlp_member(net[0], 1), bytes) != 0);
        assert_true(memcmp(net[0]->param, net[1]->param, bytes) != 0);
        assert_true(memcmp(net[0]->param, net[2]->param, bytes) != 0);
        assert_same_bits(net[0]->param, net[3]->param, 2 * bytes);
        assert_same_bits(net[0]->param, net[4]->param, 2 * bytes);
        for (int i = 0; i < 5; i++)
            opc_mlp_destroy(net[i]);
    }
}

static void parameters_start_on_cache_lines_and_avoid_powers_of_two(void **state)
{
    (void)state;
    struct opc_err err = {0};
    for (int width = 1; width <= 512; width += width < 70 ? 1 : 63) {
        const struct opc_mlp_shape s = opc_mlp_shape_of(3, width, 13, 2, 5, OPC_ACTIVATION_RELU);
        struct opc_mlp *net;
        assert_ok(opc_mlp_create(&s, &net, &err), &err);
        for (int m = 0; m < 3; m++)
            for (int l = 0; l < 3; l++) {
                const struct opc_layer *layer = &net->layer[l];
                assert_true((uintptr_t)(opc_mlp_member(net, m) + layer->weight) % 64 == 0);
                assert_true((uintptr_t)(opc_mlp_member(net, m) + layer->bias) % 64 == 0);
                assert_true(layer->ld >= layer->in && layer->ld % 8 == 0);
                assert_true(layer->ld < 64 || (layer->ld & (layer->ld - 1)) != 0);
            }
        assert_int_equal(net->layer[2].end, net->each);
        opc_mlp_destroy(net);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void impossible_shapes_are_refused(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_mlp *net = (struct opc_mlp *)&err; /* left alone on failure */
    struct opc_mlp_shape s = opc_mlp_shape_of(1, 3, 5, 8, 2, OPC_ACTIVATION_RELU);
    assert_fails(opc_mlp_create(&s, &net, &err), OPC_EUSER, &err, "9 layers");
    s = opc_mlp_shape_of(1, 3, 5, -1, 2, OPC_ACTIVATION_RELU);
    assert_fails(opc_mlp_create(&s, &net, &err), OPC_EUSER, &err, "0 layers");
    s = opc_mlp_shape_of(0, 3, 5, 1, 2, OPC_ACTIVATION_RELU);
    assert_fails(opc_mlp_create(&s, &net, &err), OPC_EUSER, &err, "0 members");
    s = opc_mlp_shape_of(1, 0, 5, 1, 2, OPC_ACTIVATION_RELU);
    assert_fails(opc_mlp_create(&s, &net, &err), OPC_EUSER, &err, "0 inputs");
    s = opc_mlp_shape_of(1, 3, 5, 1, -2, OPC_ACTIVATION_RELU);
    assert_fails(opc_mlp_create(&s, &net, &err), OPC_EUSER, &err, "-2 outputs");
    s = opc_mlp_shape_of(1, 3, 5, 1, 2, OPC_ACTIVATION_TANH);
    s.layer_norm = true;
    assert_fails(opc_mlp_create(&s, &net, &err), OPC_EUSER, &err, "ReLU");
    s = opc_mlp_shape_of(1, 3, 65537, 2, 2, OPC_ACTIVATION_RELU);
    assert_fails(opc_mlp_create(&s, &net, &err), OPC_EUSER, &err, "65537 outputs");
    /* more floats than a size_t can count */
    s = opc_mlp_shape_of(0x7fffffff, 65536, 65536, 7, 65536, OPC_ACTIVATION_RELU);
    assert_fails(opc_mlp_create(&s, &net, &err), OPC_ENOMEM, &err, "2147483647");
    assert_ptr_equal(net, &err);
}

static void shape_of_writes_out_what_was_meant(void **state)
{
    (void)state;
    const struct opc_mlp_shape s = opc_mlp_shape_of(7, 23, 200, 4, 36, OPC_ACTIVATION_SWISH);
    const int want[] = {23, 200, 200, 200, 200, 36};
    assert_int_equal(s.members, 7);
    assert_int_equal(s.layers, 5);
    assert_int_equal(s.activation, OPC_ACTIVATION_SWISH);
    assert_memory_equal(s.width, want, sizeof want);
    const struct opc_mlp_shape line = opc_mlp_shape_of(1, 2, 99, 0, 3, OPC_ACTIVATION_RELU);
    assert_int_equal(line.layers, 1);
    assert_int_equal(line.width[0], 2);
    assert_int_equal(line.width[1], 3);
}

static int create_network(void *ctx, struct opc_err *err)
{
    struct opc_mlp *net = NULL;
    const int code = opc_mlp_create(ctx, &net, err);
    assert_true((code == OPC_OK) == (net != NULL));
    opc_mlp_destroy(net);
    return code;
}

static int create_tape(void *ctx, struct opc_err *err)
{
    struct opc_tape *tape = NULL;
    const int code = opc_tape_create(ctx, 33, &tape, err);
    assert_true((code == OPC_OK) == (tape != NULL));
    opc_tape_destroy(tape);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_mlp_shape s = opc_mlp_shape_of(2, 3, 5, 2, 2, OPC_ACTIVATION_SWISH);
    assert_survives_lack_of_memory(create_network, &s);
    for (int norm = 0; norm < 2; norm++) {
        struct opc_mlp *net;
        s = norm ? with_layer_norm(s) : s;
        assert_ok(opc_mlp_create(&s, &net, &err), &err);
        assert_survives_lack_of_memory(create_tape, net);
        opc_mlp_destroy(net);
    }
    opc_mlp_destroy(NULL);
    opc_tape_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(outputs_and_gradients_agree_with_double_precision),
        each_backend(wide_networks_have_the_right_slope_in_every_direction),
        each_backend(bits_do_not_depend_on_the_number_of_threads),
        each_backend(bits_do_not_depend_on_how_the_work_was_sliced),
        each_backend(a_shared_batch_is_a_copy_for_each_member),
        each_backend(backward_gives_what_it_is_asked_for),
        each_backend(backward_leaves_the_outputs_as_they_were),
        each_backend(a_normalised_layer_of_one_feature_is_zero),
        each_backend(a_smaller_batch_fits_a_larger_tape),
        each_backend(infer_gives_the_bits_of_forward),
        each_backend(padding_stays_zero_while_learning),
        cmocka_unit_test(fresh_weights_have_the_stated_law),
        cmocka_unit_test(orthogonal_weights_are_orthogonal),
        cmocka_unit_test(fresh_weights_depend_on_seed_network_and_member_alone),
        cmocka_unit_test(parameters_start_on_cache_lines_and_avoid_powers_of_two),
        cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(shape_of_writes_out_what_was_meant),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };
    return run_num_tests(tests);
}
