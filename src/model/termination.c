/* SPDX-License-Identifier: MIT */
/* A classifier of terminal states, learned from the ends of a recording (model/termination.h).
 *
 * Invariant: what is learned depends on the states, their order and the named stream alone, and
 * what is predicted for a state not on its place among others: rows do not know each other in the
 * kernels. */
#include "model/termination.h"

#include "opc/mem.h"
#include "opc/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    P = OPC_PANEL,
    WIDTH = 64, /* of two hidden layers */
    BATCH = 128,
    FIRST_STEPS = 2000, /* gradient steps of the first fit, and of a later one */
    LATER_STEPS = 400,
    MIN_HELD_OUT = 5, /* ends among the states that are held out, or none are */
    CHUNK = 8,        /* panels that are predicted at once */
};
static const double LEARNING_RATE = 1e-3;

/* ---- life ------------------------------------------------------------------------------------ */

void opc_termination_destroy(struct opc_termination *t)
{
    if (!t)
        return;
    opc_mlp_destroy(t->net);
    opc_adam_destroy(t->adam);
    opc_scaler_destroy(t->scaler);
    opc_tape_destroy(t->tape);
    opc_arena_destroy(&t->scratch);
    if (t->has_lock)
        pthread_mutex_destroy(&t->lock);
    opc_free(t->x);
    opc_free(t->grad);
    opc_free(t);
}

static int make_parts(struct opc_termination *t, uint64_t seed, uint32_t which, struct opc_err *err)
{
    const struct opc_mlp_shape shape =
        opc_mlp_shape_of(1, t->obs, WIDTH, 2, 1, OPC_ACTIVATION_RELU);
    OPC_TRY(opc_mlp_create(&shape, &t->net, err));
    opc_mlp_init(t->net, OPC_INIT_TRUNCATED, seed, which);
    OPC_TRY(opc_adam_create(t->net->each, opc_adam_usual(LEARNING_RATE), &t->adam, err));
    OPC_TRY(opc_scaler_create(t->obs, &t->scaler, err));
    OPC_TRY(opc_tape_create(t->net, BATCH, &t->tape, err));
    OPC_TRY(opc_arena_create(opc_mlp_infer_need(t->net, CHUNK) +
                                 opc_arena_need((size_t)t->obs, CHUNK * P * sizeof(float)) +
                                 opc_arena_need(1, CHUNK * P * sizeof(float)),
                             &t->scratch, err));
    const struct opc_block blocks[] = {
        {&t->x, (size_t)opc_panels(BATCH) * P, (size_t)t->obs * sizeof(float)},
        {&t->grad, t->net->each, sizeof(float)},
    };
    t->has_lock = pthread_mutex_init(&t->lock, NULL) == 0;
    if (!opc_alloc_all(blocks, sizeof blocks / sizeof *blocks) || !t->has_lock)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to learn where the task ends");
    return OPC_OK;
}

int opc_termination_create(int obs, uint64_t seed, uint32_t which, struct opc_termination **out,
                           struct opc_err *err)
{
    struct opc_termination *t = opc_alloc(1, sizeof *t);
    if (!t)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to learn where the task ends");
    t->obs = obs;
    t->threshold = (double)INFINITY;
    const int code = make_parts(t, seed, which, err);
    if (code) {
        opc_termination_destroy(t);
        return code;
    }
    *out = t;
    return OPC_OK;
}

int opc_termination_state(struct opc_termination *t,
                          int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                          void *ctx, struct opc_err *err)
{
    const size_t each = t->net->each * sizeof(float), obs = (size_t)t->obs * sizeof(float);
    OPC_TRY(visit(ctx, "termination", t->net->param, each, err));
    OPC_TRY(visit(ctx, "termination.m", t->adam->m, each, err));
    OPC_TRY(visit(ctx, "termination.v", t->adam->v, each, err));
    OPC_TRY(visit(ctx, "termination.steps", &t->adam->steps, sizeof t->adam->steps, err));
    OPC_TRY(visit(ctx, "termination.mean", t->scaler->mean, obs, err));
    OPC_TRY(visit(ctx, "termination.inverse", t->scaler->inverse, obs, err));
    return visit(ctx, "termination.threshold", &t->threshold, sizeof t->threshold, err);
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* z of the n states row[i], chunk by chunk. The caller has the lock, or is alone. */
static void outputs(const struct opc_termination *t, int n, const float *const *row, double *z)
{
    struct opc_arena *scratch = (struct opc_arena *)&t->scratch; /* the one thing that changes */
    const size_t mark = scratch->used, obs = (size_t)t->obs;
    float *x = opc_floats(scratch, obs, CHUNK * P), *y = opc_floats(scratch, 1, CHUNK * P);
    for (int first = 0; first < n; first += CHUNK * P) {
        const int some = n - first < CHUNK * P ? n - first : CHUNK * P;
        /* states in panels; rows of padding repeat the first one */
        for (int i = 0; i < opc_panels(some) * P; i++) {
            const int from = first + (i < some ? i : 0);
            const float *s = row[from];
            for (int k = 0; k < t->obs; k++)
                x[opc_panel_place(i, t->obs, k)] = s[k];
        }
        opc_scaler_apply(t->scaler, opc_panels(some), x, obs * P);
        opc_mlp_infer(t->net, 0, opc_panels(some), x, obs * P, 1, y, P, scratch);
        for (int i = 0; i < some; i++)
            z[first + i] = (double)y[i];
    }
    opc_arena_rewind(scratch, mark);
}

void opc_termination_predict(const struct opc_termination *t, int n, const float *state, bool *out)
{
    enum { AT_ONCE = 1024 };
    double z[AT_ONCE];
    const float *row[AT_ONCE];
    memset(out, 0, (size_t)n * sizeof *out);
    if (!isfinite(t->threshold))
        return;
    pthread_mutex_lock((pthread_mutex_t *)&t->lock);
    for (int first = 0; first < n; first += AT_ONCE) {
        const int some = n - first < AT_ONCE ? n - first : AT_ONCE;
        for (int i = 0; i < some; i++)
            row[i] = state + ((size_t)first + (size_t)i) * (size_t)t->obs;
        outputs(t, some, row, z);
        for (int i = 0; i < some; i++)
            out[first + i] = z[i] > t->threshold;
    }
    pthread_mutex_unlock((pthread_mutex_t *)&t->lock);
}

/* ---- learning -------------------------------------------------------------------------------- */

/* The recording, sorted into ends and other states. */
struct recording {
    int n, ends;
    const float *const *state;
    const bool *end;
    /* Every fifth state is left to the threshold, where enough of them are ends; otherwise all
     * serve both. */
    bool holdout;
    int *list; /* [listed] what is trained on: numbers of the ends, then of the others */
    int listed, listed_ends;
};

static bool is_held_out(int i)
{
    return i % 5 == 4;
}

/* One gradient step on a batch whose first half are ends. Returns its loss. */
static double learn_batch(struct opc_termination *t, const struct recording *rec,
                          struct opc_rng *rng)
{
    const int panels = opc_panels(BATCH), last = t->net->shape.layers - 1;
    for (int i = 0; i < BATCH; i++) {
        const bool end = i < BATCH / 2;
        const int from = end ? 0 : rec->listed_ends,
                  n = end ? rec->listed_ends : rec->listed - rec->listed_ends;
        const float *s = rec->state[rec->list[from + (int)opc_rng_below(rng, (uint32_t)n)]];
        for (int k = 0; k < t->obs; k++)
            t->x[opc_panel_place(i, t->obs, k)] = s[k];
    }
    opc_scaler_apply(t->scaler, panels, t->x, (size_t)t->obs * P);
    t->tape->x = t->x;
    t->tape->xs = (size_t)t->obs * P;
    opc_mlp_forward_part(t->net, 0, 0, panels, t->tape);
    /* -log sigmoid(z) of an end, -log(1 - sigmoid(z)) of another state; without overflow */
    double loss = 0;
    for (int i = 0; i < BATCH; i++) {
        const double z = (double)t->tape->y[last][i], end = i < BATCH / 2;
        loss += (fmax(z, 0) - z * end + log1p(exp(-fabs(z)))) / BATCH;
        t->tape->dy[last][i] = (float)((1 / (1 + exp(-z)) - end) / BATCH);
    }
    opc_mlp_backward_part(t->net, 0, 0, panels, t->tape);
    opc_mlp_weight_gradient(t->net, BATCH, t->tape, t->grad);
    opc_adam_step(t->adam, 0.0, t->grad, t->net->param);
    return loss;
}

struct scored {
    double z;
    bool end;
};

/* From the highest z to the lowest; ends first where they are equal. */
static int compare_scores(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    return x->z != y->z ? (x->z < y->z) - (x->z > y->z) : y->end - x->end;
}

/* The threshold with the fewest mistakes: above it are the first `best` states in the order of z.
 * It lies half-way to the next state. */
static void choose_threshold(struct opc_termination *t, int n, int ends, struct scored *score)
{
    qsort(score, (size_t)n, sizeof *score, compare_scores);
    int mistakes = ends, fewest = ends, best = 0;
    for (int i = 0; i < n; i++) {
        mistakes += score[i].end ? -1 : 1;
        /* states of the same z stay together */
        if (mistakes < fewest && (i + 1 == n || score[i + 1].z < score[i].z)) {
            fewest = mistakes;
            best = i + 1;
        }
    }
    t->threshold = best == 0   ? (double)INFINITY
                   : best == n ? score[n - 1].z - 1
                               : (score[best - 1].z + score[best].z) / 2;
}

/* The threshold from the states that were held out, and its mistakes on all of them. */
static int score_recording(struct opc_termination *t, const struct recording *rec,
                           struct opc_termination_report *report, struct opc_err *err)
{
    struct scored *score = opc_alloc((size_t)rec->n, sizeof *score);
    double *z = opc_alloc((size_t)rec->n, sizeof *z);
    int code = OPC_OK;
    if (!score || !z)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to learn where the task ends");
    else {
        outputs(t, rec->n, rec->state, z);
        int n = 0, ends = 0;
        for (int i = 0; i < rec->n; i++)
            if (!rec->holdout || is_held_out(i)) {
                score[n++] = (struct scored){z[i], rec->end[i]};
                ends += rec->end[i];
            }
        choose_threshold(t, n, ends, score);
        report->missed = report->false_alarms = 0;
        for (int i = 0; i < rec->n; i++) {
            report->missed += rec->end[i] && !(z[i] > t->threshold);
            report->false_alarms += !rec->end[i] && z[i] > t->threshold;
        }
    }
    opc_free(score);
    opc_free(z);
    return code;
}

/* Means and deviations of all states, in double and in their order. */
static void fit_scaler(struct opc_termination *t, int n, const float *const *state)
{
    for (int k = 0; k < t->obs; k++) {
        double mean = 0, squares = 0;
        for (int i = 0; i < n; i++)
            mean += (double)state[i][k] / n;
        for (int i = 0; i < n; i++)
            squares += ((double)state[i][k] - mean) * ((double)state[i][k] - mean);
        const double std = sqrt(squares / n);
        t->scaler->mean[k] = (float)mean;
        t->scaler->inverse[k] = std < 1e-12 ? 1.0f : (float)(1 / std);
    }
}

int opc_termination_fit(struct opc_termination *t, int n, const float *const *state,
                        const bool *end, uint64_t seed, uint32_t epoch, uint32_t index,
                        struct opc_termination_report *report, struct opc_err *err)
{
    struct recording rec = {.n = n, .state = state, .end = end};
    struct opc_termination_report got = {.states = n};
    struct opc_rng rng = opc_rng_stream(seed, OPC_USE_END, epoch, index);
    for (int i = 0; i < n; i++)
        rec.ends += end[i];
    got.ends = got.missed = rec.ends;
    int code = OPC_OK;
    if (rec.ends > 0 && rec.ends < n) {
        rec.list = opc_alloc((size_t)n, sizeof *rec.list);
        if (!rec.list)
            return opc_fail(err, OPC_ENOMEM, "not enough memory to learn where the task ends");
        int held_ends = 0;
        for (int i = 0; i < n; i++)
            held_ends += end[i] && is_held_out(i);
        rec.holdout = held_ends >= MIN_HELD_OUT && rec.ends > held_ends;
        rec.listed_ends = rec.holdout ? rec.ends - held_ends : rec.ends;
        for (int i = 0, ends = 0, others = rec.listed_ends; i < n; i++)
            if (!rec.holdout || !is_held_out(i)) {
                rec.list[end[i] ? ends++ : others++] = i;
                rec.listed++;
            }
        fit_scaler(t, n, state);
        double loss = 0;
        for (int steps = t->adam->steps ? LATER_STEPS : FIRST_STEPS; steps > 0; steps--)
            loss = learn_batch(t, &rec, &rng);
        code = isfinite(loss)
                   ? score_recording(t, &rec, &got, err)
                   : opc_fail(err, OPC_EDIVERGED,
                              "learning where the task ends diverged: its loss is %g", loss);
        opc_free(rec.list);
    }
    if (report)
        *report = got;
    return code;
}
