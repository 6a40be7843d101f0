/* SPDX-License-Identifier: MIT */
/* test_net.h - what the tests of learning networks share: golden files (tools/golden_net.py tells
 * their format), parameters without padding, the same network in double, and saved states. */
#ifndef OPC_TEST_NET_H
#define OPC_TEST_NET_H

#include "test_num.h"

#include "base/field.h"
#include "base/pool.h"
#include "num/mlp.h"

#ifndef assert_near
#define assert_near(a, b, tolerance)                                                               \
    do {                                                                                           \
        const double near_a = (a), near_b = (b);                                                   \
        assert_doubles_near(&near_a, &near_b, 1, tolerance);                                       \
    } while (0)
#endif

/* n zeros; never NULL. */
static inline double *doubles_of(size_t n)
{
    double *p = calloc(n ? n : 1, sizeof *p);
    if (!p)
        abort();
    return p;
}

/* A member of a list for run_num_tests: the test runs once, on this processor's best backend. */
#define once(test)                                                                                 \
    {                                                                                              \
#test, test, use_best, NULL, NULL                                                          \
    }

static inline int use_best(void **state)
{
    const struct opc_kernels *backend[8];
    struct opc_err err = {0};
    (void)state;
    return opc_kernels_list(backend) < 1 || opc_kernels_use(backend[0]->name, &err);
}

/* ---- golden files --------------------------------------------------------------------------- */

struct golden_entry {
    char name[32];
    int rows, columns;
    double *at; /* [rows][columns] */
};
struct golden {
    int n;
    struct golden_entry entry[96];
};

static inline struct golden *golden_read(const char *file)
{
    char path[512], word[256];
    snprintf(path, sizeof path, "%s/golden/%s", OPC_TEST_DIR, file);
    FILE *f = fopen(path, "r");
    struct golden *g = calloc(1, sizeof *g);
    if (!f || !g) {
        print_error("cannot read %s\n", path);
        abort();
    }
    while (fscanf(f, " %255s", word) == 1) {
        if (word[0] == '#') {
            for (int c = 0; c != '\n' && c != EOF;)
                c = fgetc(f);
            continue;
        }
        struct golden_entry *e = &g->entry[g->n++];
        assert_true(g->n <= (int)(sizeof g->entry / sizeof *g->entry));
        snprintf(e->name, sizeof e->name, "%.31s", word);
        assert_int_equal(fscanf(f, "%d %d", &e->rows, &e->columns), 2);
        const size_t n = (size_t)(e->rows * e->columns);
        e->at = doubles_of(n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(fscanf(f, "%lf", &e->at[i]), 1);
    }
    fclose(f);
    return g;
}

static inline void golden_free(struct golden *g)
{
    for (int i = 0; i < g->n; i++)
        free(g->entry[i].at);
    free(g);
}

/* Entry `name`, or name followed by a number when step >= 0. */
static inline const struct golden_entry *golden_find(const struct golden *g, const char *name,
                                                     int step)
{
    char full[48];
    snprintf(full, sizeof full, step < 0 ? "%s" : "%s%d", name, step);
    for (int i = 0; i < g->n; i++)
        if (strcmp(g->entry[i].name, full) == 0)
            return &g->entry[i];
    fail_msg("the golden file has no %s", full);
    return NULL;
}

static inline double golden_real(const struct golden *g, const char *name)
{
    return golden_find(g, name, -1)->at[0];
}

static inline int golden_int(const struct golden *g, const char *name)
{
    return (int)golden_real(g, name);
}

/* No number further than `tolerance` from the golden one, relative to it where it is above
 * `unit`. */
static inline void assert_golden(const struct golden_entry *e, const double *got, double tolerance,
                                 double unit)
{
    for (int i = 0; i < e->rows * e->columns; i++) {
        const double scale = fabs(e->at[i]) > unit ? fabs(e->at[i]) : unit;
        const double gap = fabs(got[i] - e->at[i]) / scale;
        if (!(gap <= tolerance))
            fail_msg("%s: number %d of %d is %.9g instead of %.9g, apart by %.2g > %.2g", e->name,
                     i, e->rows * e->columns, got[i], e->at[i], gap, tolerance);
    }
}

/* A network that is only asked for its layout. */
static inline struct opc_mlp *layout_of(int members, int in, const struct opc_ints *hidden, int out,
                                        enum opc_activation act)
{
    struct opc_mlp_shape shape = {.members = members, .layers = hidden->n + 1, .activation = act};
    struct opc_mlp *net = NULL;
    struct opc_err err = {0};
    shape.width[0] = in;
    for (int i = 0; i < hidden->n; i++)
        shape.width[i + 1] = hidden->at[i];
    shape.width[shape.layers] = out;
    assert_ok(opc_mlp_create(&shape, &net, &err), &err);
    return net;
}

/* ---- parameters without padding ----------------------------------------------------------------
 * Layer after layer, weights [out][in], then biases: as in the golden files and in test_mlp.c. */

static inline size_t plain_count(const struct opc_mlp_shape *s)
{
    size_t n = 0;
    for (int l = 0; l < s->layers; l++)
        n += (size_t)(s->width[l + 1] * (s->width[l] + 1));
    return n;
}

/* Where plain parameter i is in a member's run of floats. */
static inline size_t plain_place(const struct opc_mlp *net, size_t i)
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

/* All members; `net` tells the layout of the padded run (parameters, moments), and is not read. */
static inline void plain_set(const struct opc_mlp *net, const double *plain, float *padded)
{
    const size_t n = plain_count(&net->shape);
    for (size_t m = 0; m < (size_t)net->shape.members; m++)
        for (size_t i = 0; i < n; i++)
            padded[m * net->each + plain_place(net, i)] = (float)plain[m * n + i];
}

static inline double *plain_get(const struct opc_mlp *net, const float *padded)
{
    const size_t n = plain_count(&net->shape), members = (size_t)net->shape.members;
    double *plain = doubles_of(members * n);
    for (size_t m = 0; m < members; m++)
        for (size_t i = 0; i < n; i++)
            plain[m * n + i] = (double)padded[m * net->each + plain_place(net, i)];
    return plain;
}

/* ---- the same network in double, a row at a time -------------------------------------------- */

enum { NET_WIDEST = 64 };

/* Layer normalisation of n sums: (z - m) / sqrt(mean (z - m)^2 + 1e-5). */
static inline void net_norm(int n, double *z)
{
    double mean = 0.0, square = 0.0;
    for (int i = 0; i < n; i++)
        mean += z[i] / n;
    for (int i = 0; i < n; i++)
        square += (z[i] - mean) * (z[i] - mean) / n;
    for (int i = 0; i < n; i++)
        z[i] = (z[i] - mean) / sqrt(square + 1e-5);
}

static inline double net_act(enum opc_activation act, double z)
{
    return act == OPC_ACTIVATION_RELU   ? (z > 0.0 ? z : 0.0)
           : act == OPC_ACTIVATION_TANH ? tanh(z)
                                        : z / (1.0 + exp(-z));
}

/* y of one row; *kink falls to how near a hidden sum came to 0, where ReLU has no derivative. */
static inline void net_row(const struct opc_mlp_shape *s, const double *theta, const double *x,
                           double *y, double *kink)
{
    double from[NET_WIDEST], to[NET_WIDEST] = {0};
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
            net_norm(out, to);
        for (int o = 0; o < out && !last; o++) {
            if (kink && fabs(to[o]) < *kink)
                *kink = fabs(to[o]);
            to[o] = net_act(s->activation, to[o]);
        }
        memcpy(from, to, (size_t)out * sizeof *to);
        theta += out * (in + 1);
    }
    memcpy(y, to, (size_t)s->width[s->layers] * sizeof *y);
}

/* ---- the state of an agent or a predictor ------------------------------------------------------
 * Names and live places of its parts, as its `state` tells them; tests read and set them there. */

struct parts {
    int n;
    struct part {
        char name[32];
        void *data;
        size_t bytes;
    } at[32];
    size_t bytes; /* of all */
};

static inline int note_part(void *ctx, const char *name, void *data, size_t bytes,
                            struct opc_err *err)
{
    (void)err;
    struct parts *p = ctx;
    struct part *part = &p->at[p->n++];
    if (p->n > (int)(sizeof p->at / sizeof *p->at) || strlen(name) >= sizeof part->name)
        abort();
    snprintf(part->name, sizeof part->name, "%.31s", name);
    part->data = data;
    part->bytes = bytes;
    p->bytes += bytes;
    return OPC_OK;
}

static inline void *part_of(const struct parts *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->at[i].name, name) == 0)
            return p->at[i].data;
    fail_msg("the state has no part %s", name);
    return NULL;
}

/* A copy of everything, in order. */
static inline unsigned char *parts_copy(const struct parts *p)
{
    unsigned char *copy = malloc(p->bytes), *to = copy;
    assert_non_null(copy);
    for (int i = 0; i < p->n; to += p->at[i++].bytes)
        memcpy(to, p->at[i].data, p->at[i].bytes);
    return copy;
}

/* As a loader would do it: `state` called with this sets each part from *ctx, in order. */
static inline int load_part(void *ctx, const char *name, void *data, size_t bytes,
                            struct opc_err *err)
{
    (void)name;
    (void)err;
    const unsigned char **from = ctx;
    memcpy(data, *from, bytes);
    *from += bytes;
    return OPC_OK;
}

static inline void assert_parts_are(const struct parts *p, const unsigned char *copy)
{
    for (int i = 0; i < p->n; copy += p->at[i++].bytes)
        if (memcmp(p->at[i].data, copy, p->at[i].bytes) != 0)
            fail_msg("%s differs", p->at[i].name);
}

static inline struct opc_pool *pool_of(int threads)
{
    struct opc_err err = {0};
    struct opc_pool *pool = NULL;
    assert_ok(opc_pool_create(threads, &pool, &err), &err);
    return pool;
}

#endif
