/* SPDX-License-Identifier: MIT */
/* The losses of STEVE and their gradient steps; agent/steve.c calls steve_learn_model and
 * steve_learn_policy once in each update. With B rows in a batch,
 *
 *     transition   1/B sum 1/2 |s + Delta(s, a) - s'|^2
 *     reward       1/B sum 1/2 (r^(s', s, a) - r)^2
 *     termination  1/B sum of the cross-entropy of d, at (s', s, a)
 *     critics      1/B sum 1/2 (Q(s, a) - target)^2, targets from steve_target.c
 *     policy       -1/B sum mean_lambda Q_lambda(s, tanh pi(s)) + c mean (pi(s))^2
 *
 * Each row of an ensemble's loss trains one member, drawn at random, and separately for each
 * ensemble: with a target that is common to all critics, this and the first weights are all that
 * makes members differ. The world model has an L2 penalty on all its parameters.
 *
 * The gradient steps of two members have nothing in common. So a thread takes one member at a time,
 * from its rows to Adam, and no bit depends on the number of threads. Targets and the policy's loss
 * go row by row, and threads share out the panels. The gradient of the policy is taken before the
 * critics change. */
#include "agent/steve_private.h"
#include "base/pool.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { P = OPC_PANEL, INFER_PANELS = 8 };

void steve_infer(const struct opc_mlp *net, int member, int panels, const float *x, size_t xs,
                 float *y, size_t ys, struct opc_arena *scratch)
{
    const int outputs = net->shape.width[net->shape.layers];
    for (int p = 0; p < panels; p += INFER_PANELS) {
        const int n = panels - p < INFER_PANELS ? panels - p : INFER_PANELS;
        opc_mlp_infer(net, member, n, x + (size_t)p * xs, xs, outputs, y + (size_t)p * ys, ys,
                      scratch);
    }
}

size_t steve_infer_need(const struct opc_mlp *net)
{
    return opc_mlp_infer_need(net, INFER_PANELS);
}

void steve_assign(struct steve *s, enum steve_kind kind, struct opc_rng *rng)
{
    const uint32_t members = (uint32_t)steve_members(s, kind);
    for (int i = 0; i < s->config.batch_size; i++)
        s->member[kind][i] = (int)opc_rng_below(rng, members);
}

/* ---- one member ------------------------------------------------------------------------------ */

/* Fetches the rows that train this member into the worker's panels; returns how many there are. */
static int gather_rows(const struct steve *s, enum steve_kind kind, int member,
                       struct steve_worker *w)
{
    int n = 0;
    for (int i = 0; i < s->config.batch_size; i++)
        if (s->member[kind][i] == member) {
            w->row[n] = i;
            w->step[n++] = s->step[i];
        }
    if (n)
        opc_kernels()->collect(n, s->columns, w->step, w->batch, (size_t)s->columns * P);
    return n;
}

/* Points the tape at the network's inputs: (s, a) are the first columns of a step; s', s, a are
 * copied together. */
static void set_inputs(const struct steve *s, enum steve_kind kind, int panels,
                       struct steve_worker *w)
{
    const int obs = s->base.obs, in = obs + s->base.act;
    struct opc_tape *tape = w->tape[kind];
    tape->x = w->batch;
    tape->xs = (size_t)s->columns * P;
    if (kind != STEVE_REWARD && kind != STEVE_TERMINATION)
        return;
    tape->x = w->input;
    tape->xs = (size_t)(obs + in) * P;
    for (int p = 0; p < panels; p++) {
        const float *step = w->batch + (size_t)(p * s->columns) * P;
        float *x = w->input + (size_t)p * tape->xs;
        memcpy(x, step + (in + 2) * P, (size_t)(obs * P) * sizeof *x);
        memcpy(x + obs * P, step, (size_t)(in * P) * sizeof *x);
    }
}

/* The transition loss of one panel: outputs y[obs][16] against s' - s, gradient d[obs][16]. */
static double transition_loss(const struct steve *s, const float *step, int rows, const float *y,
                              float *d)
{
    const int obs = s->base.obs, next = obs + s->base.act + 2;
    const float each = 1.0f / (float)s->config.batch_size;
    double loss = 0;
    for (int k = 0; k < obs; k++)
        for (int j = 0; j < rows; j++) {
            const float moved = step[(next + k) * P + j] - step[k * P + j];
            const float gap = y[k * P + j] - moved;
            d[k * P + j] = gap * each;
            loss += 0.5 * (double)gap * (double)gap;
        }
    return loss;
}

/* The loss of one number z of row j of panel p, and its derivative into *d: reward, termination or
 * critic. */
static double scalar_loss(const struct steve *s, enum steve_kind kind, const struct steve_worker *w,
                          int p, int j, double z, double *d)
{
    const float *r =
        w->batch + (size_t)(p * s->columns + s->base.obs + s->base.act) * P; /* then the mark */
    if (kind == STEVE_TERMINATION) {
        /* -d log sigmoid(z) - (1 - d) log(1 - sigmoid(z)), without overflow */
        const double end = (double)r[P + j];
        *d = 1 / (1 + exp(-z)) - end;
        return fmax(z, 0) - z * end + log1p(exp(-fabs(z)));
    }
    const double goal = kind == STEVE_REWARD ? s->config.reward_scale * (double)r[j]
                                             : (double)s->target[w->row[p * P + j]];
    *d = z - goal;
    return 0.5 * (z - goal) * (z - goal);
}

/* Losses of a member's n rows, and their gradient by the network's outputs; 0 in the padding, which
 * must not reach any sum. */
static struct steve_sums losses(const struct steve *s, enum steve_kind kind, int n,
                                struct steve_worker *w)
{
    struct opc_tape *tape = w->tape[kind];
    const struct opc_mlp *net = s->ensemble[kind].net;
    const int last = net->shape.layers - 1, out = net->layer[last].out;
    struct steve_sums sums = {0};
    memset(tape->dy[last], 0, (size_t)(opc_panels(n) * out * P) * sizeof(float));
    for (int p = 0; p < opc_panels(n); p++) {
        const int rows = steve_real_rows(n, p);
        const float *y = tape->y[last] + (size_t)(p * out) * P;
        float *dy = tape->dy[last] + (size_t)(p * out) * P;
        if (kind == STEVE_TRANSITION) {
            sums.loss += transition_loss(s, w->batch + (size_t)(p * s->columns) * P, rows, y, dy);
            continue;
        }
        for (int j = 0; j < rows; j++) {
            double d;
            sums.loss += scalar_loss(s, kind, w, p, j, (double)y[j], &d);
            sums.value += (double)y[j];
            dy[j] = (float)(d / s->config.batch_size);
        }
    }
    return sums;
}

/* One gradient step of one member. A member without rows still decays and moves on with Adam's
 * momentum, as a gradient of 0 would have it. */
static void train_member(struct steve *s, enum steve_kind kind, int member, struct steve_worker *w)
{
    const struct steve_ensemble *e = &s->ensemble[kind];
    const int n = gather_rows(s, kind, member, w), panels = opc_panels(n);
    struct steve_sums *sums = steve_member_sums(s, kind, member);
    /* Padding between the layers belongs to no layer's gradient, and must be 0. */
    memset(w->grad, 0, e->net->each * sizeof *w->grad);
    *sums = (struct steve_sums){0};
    if (n) {
        set_inputs(s, kind, panels, w);
        opc_mlp_forward_part(e->net, member, 0, panels, w->tape[kind]);
        *sums = losses(s, kind, n, w);
        opc_mlp_backward_part(e->net, member, 0, panels, w->tape[kind]);
        opc_mlp_weight_gradient(e->net, n, w->tape[kind], w->grad);
    }
    opc_adam_range(e->adam, (size_t)member * e->net->each, e->net->each,
                   kind == STEVE_CRITIC ? 0.0 : s->config.weight_decay, w->grad,
                   opc_mlp_member(e->net, member));
}

/* ---- world model ----------------------------------------------------------------------------- */

/* Item i of the pool is a member of the transitions, then of the rewards, then of the
 * terminations: the largest first. */
static void model_members(void *ctx, int first, int end, int worker)
{
    struct steve *s = ctx;
    for (int i = first; i < end; i++) {
        int kind = STEVE_TRANSITION, m = i;
        while (m >= steve_members(s, (enum steve_kind)kind))
            m -= steve_members(s, (enum steve_kind)kind++);
        train_member(s, (enum steve_kind)kind, m, &s->worker[worker]);
    }
}

/* Adam's step is opened once for all members, before the threads take them. */
void steve_learn_model(struct steve *s)
{
    int items = 0;
    for (int k = STEVE_TRANSITION; k < STEVE_KINDS; k++) {
        opc_adam_begin(s->ensemble[k].adam);
        items += steve_members(s, (enum steve_kind)k);
    }
    opc_pool_each(s->pool, items, 1, model_members, s);
}

/* ---- policy and critics ---------------------------------------------------------------------- */

/* The policy's loss on panels p0 .. p1-1: forward at s, through every critic, and back to the dy of
 * every layer of the policy. The critics are held: only dQ / da is taken from them. */
static void policy_loss(struct steve *s, int p0, int p1)
{
    const int obs = s->base.obs, act = s->base.act, in = obs + act;
    const struct opc_mlp *policy = s->ensemble[STEVE_POLICY].net,
                         *critics = s->ensemble[STEVE_CRITIC].net;
    const int out = policy->shape.layers - 1, last = critics->shape.layers - 1;
    const int members = critics->shape.members, batch = s->config.batch_size;
    /* (s, tanh pi(s)) */
    opc_mlp_forward_part(policy, 0, p0, p1, s->policy_tape);
    for (int p = p0; p < p1; p++) {
        float *x = s->joint + (size_t)(p * in) * P;
        memcpy(x, s->batch + (size_t)(p * s->columns) * P, (size_t)(obs * P) * sizeof *x);
        opc_vec_tanh((size_t)(act * P), s->policy_tape->y[out] + (size_t)(p * act) * P,
                     x + obs * P);
    }
    /* dQ / da, summed over the critics, which share one tape, one after the other. */
    memset(s->dq_da + (size_t)(p0 * act) * P, 0, (size_t)((p1 - p0) * act * P) * sizeof *s->dq_da);
    for (int l = 0; l < members; l++) {
        opc_mlp_forward_part(critics, l, p0, p1, s->critic_tape);
        for (int p = p0; p < p1; p++)
            for (int j = 0; j < P; j++) {
                s->critic_tape->dy[last][p * P + j] = 1.0f;
                if (j < steve_real_rows(batch, p))
                    s->panel_sums[p].loss -= (double)s->critic_tape->y[last][p * P + j] / members;
            }
        opc_mlp_backward_part(critics, l, p0, p1, s->critic_tape);
        opc_mlp_inputs_part(critics, l, p0, p1, obs, act, s->critic_tape, s->dq_one,
                            (size_t)act * P);
        for (int i = p0 * act * P; i < p1 * act * P; i++)
            s->dq_da[i] += s->dq_one[i];
    }
    /* Through tanh, whose derivative is 1 - a^2, and the penalty on what comes before it. */
    const double penalty = s->config.action_penalty;
    const float value = -1.0f / (float)(members * batch),
                size = (float)(2 * penalty / (batch * act));
    for (int p = p0; p < p1; p++)
        for (int k = 0; k < act; k++)
            for (int j = 0; j < P; j++) {
                const int i = (p * act + k) * P + j;
                const float a = s->joint[(p * in + obs + k) * P + j];
                const float before = s->policy_tape->y[out][i];
                const bool real = j < steve_real_rows(batch, p);
                s->policy_tape->dy[out][i] =
                    real ? value * s->dq_da[i] * (1.0f - a * a) + size * before : 0.0f;
                if (real)
                    s->panel_sums[p].loss += penalty * (double)before * (double)before / act;
            }
    opc_mlp_backward_part(policy, 0, p0, p1, s->policy_tape);
}

/* First pass of the pool: part i of the panels. */
static void targets_of_panels(void *ctx, int first, int end, int worker)
{
    struct steve *s = ctx;
    for (int i = first; i < end; i++) {
        const int p0 = opc_cut(s->panels, s->threads, i),
                  p1 = opc_cut(s->panels, s->threads, i + 1);
        if (p0 == p1)
            continue;
        const int rows = (p1 * P < s->config.batch_size ? p1 * P : s->config.batch_size) - p0 * P;
        opc_kernels()->collect(rows, s->columns, s->step + p0 * P,
                               s->batch + (size_t)(p0 * s->columns) * P, (size_t)s->columns * P);
        /* The order matters: policy_loss adds to the sums that steve_targets has reset. */
        steve_targets(s, p0, p1, &s->worker[worker].scratch);
        policy_loss(s, p0, p1);
    }
}

/* Second pass: item 0 is the policy's gradient, item m the critic m - 1. */
static void gradients_of_networks(void *ctx, int first, int end, int worker)
{
    struct steve *s = ctx;
    for (int i = first; i < end; i++) {
        if (i > 0) {
            train_member(s, STEVE_CRITIC, i - 1, &s->worker[worker]);
            continue;
        }
        /* The dy of its layers are complete since the first pass. */
        const struct steve_ensemble *e = &s->ensemble[STEVE_POLICY];
        float *grad = s->worker[worker].grad;
        memset(grad, 0, e->net->each * sizeof *grad);
        opc_mlp_weight_gradient(e->net, s->config.batch_size, s->policy_tape, grad);
        opc_adam_range(e->adam, 0, e->net->each, 0.0, grad, e->net->param);
    }
}

void steve_learn_policy(struct steve *s)
{
    opc_pool_each(s->pool, s->threads, 1, targets_of_panels, s);
    opc_adam_begin(s->ensemble[STEVE_POLICY].adam);
    opc_adam_begin(s->ensemble[STEVE_CRITIC].adam);
    opc_pool_each(s->pool, 1 + steve_members(s, STEVE_CRITIC), 1, gradients_of_networks, s);
}
