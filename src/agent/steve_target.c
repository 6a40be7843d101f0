/* SPDX-License-Identifier: MIT */
/* The critics' targets of STEVE: value expansion of 0 to H steps through the world model, weighted
 * by how well the ensembles agree. agent/steve_learn.c calls it for a batch of recorded steps
 * (s_0, a_0, r_0, s_1, d_1). For each transition member mu,
 *
 *     x_0 = s_1,  D_0 = d_1,   u_k = tanh pi(x_k),   x_k+1 = x_k + Delta_mu(x_k, u_k),
 *     D_k+1 = sigmoid(term_mu(x_k+1, x_k, u_k)),     C_k = (1 - D_0) ... (1 - D_k),
 *
 * and for each reward member nu and critic lambda a candidate for each horizon i = 0 .. H:
 *
 *     T_i = r_0 + sum_{k=1..i} gamma^k C_k-1 r_nu(x_k, x_k-1, u_k-1)
 *               + gamma^(i+1) C_i Q_lambda(x_i, u_i)
 *
 * The target is sum_i w_i mean(T_i) with w_i proportional to 1 / (var(T_i) + 1e-8); mean and
 * (population) variance are over all combinations of members. The policy is the current one, the
 * critics and the world model are copies. No gradient flows through a target.
 *
 * Invariant: x_0 is the recorded state, so T_0 does not depend on the world model, and however
 * wrong that is, the target cannot become worse than T_0 where the ensembles notice it. */
#include "agent/steve_private.h"
#include "num/solve/dense.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { P = OPC_PANEL };
static const double VARIANCE_FLOOR = 1e-8, RIDGE = 1e-3; /* as published */

/* ---- weights --------------------------------------------------------------------------------- */

/* w = (S + ridge I)^-1 1 over the horizons whose variance is finite, before it is normalised. S is
 * the scatter matrix of the candidates, not divided by their number, as published. */
static void covariance_weights(int horizons, int n, const double *candidate, const double *mean,
                               const double *variance, double *weight, double *scratch)
{
    int index[64], used = 0;
    double *S = scratch, *w = scratch + horizons * horizons;
    for (int i = 0; i < horizons; i++)
        if (isfinite(variance[i]))
            index[used++] = i;
    for (int a = 0; a < used; a++) {
        const double *Ta = candidate + index[a] * n, ma = mean[index[a]];
        for (int b = 0; b <= a; b++) {
            const double *Tb = candidate + index[b] * n, mb = mean[index[b]];
            double sum = a == b ? RIDGE : 0;
            for (int c = 0; c < n; c++)
                sum += (Ta[c] - ma) * (Tb[c] - mb);
            S[a * used + b] = sum;
        }
        w[a] = 1;
    }
    /* A matrix that is singular in spite of the ridge (huge values) leaves T_0 alone. */
    const bool solved = opc_chol_factor(used, S);
    if (solved)
        opc_chol_solve(used, S, 1, w);
    for (int a = 0; a < used; a++)
        weight[index[a]] = solved ? w[a] : index[a] == 0;
}

double opc_steve_weigh(int horizons, int n, const double *candidate, enum opc_steve_weighting how,
                       double *weight, double *scratch)
{
    double *mean = scratch, *variance = scratch + horizons, sum = 0, target = 0;
    /* Mean and population variance of each horizon, in two passes: a one-pass formula would lose
     * the small variances that decide. */
    for (int i = 0; i < horizons; i++) {
        const double *T = candidate + i * n;
        double total = 0, squares = 0;
        for (int c = 0; c < n; c++)
            total += T[c];
        mean[i] = total / n;
        for (int c = 0; c < n; c++)
            squares += (T[c] - mean[i]) * (T[c] - mean[i]);
        variance[i] = squares / n;
        weight[i] = isfinite(variance[i]) ? 1 / (variance[i] + VARIANCE_FLOOR) : 0;
    }
    if (how == OPC_STEVE_COVARIANCE)
        covariance_weights(horizons, n, candidate, mean, variance, weight, scratch + 2 * horizons);
    for (int i = 0; i < horizons; i++)
        sum += weight[i];
    /* A horizon without weight may have a mean that is not a number: it is left out, not
     * multiplied by 0. Without any weight the target is T_0, whatever that is. */
    if (sum == 0)
        weight[0] = sum = 1;
    for (int i = 0; i < horizons; i++) {
        weight[i] /= sum;
        if (weight[i] != 0)
            target += weight[i] * mean[i];
    }
    return target;
}

/* ---- expansion ------------------------------------------------------------------------------- */

/* What the expansion of n panels leaves for the candidates. z holds the trajectory of one member
 * at a time: step k has x_k+1, x_k, u_k, in the order of the inputs of reward and termination, so
 * that (x_k, u_k), the inputs of all other networks, are its last columns. */
struct expansion {
    int panels, H, M, N, L; /* members: M transitions, N rewards, L critics */
    size_t stride;          /* floats of a panel of z: (2 obs + act) 16 */
    float *z;               /* [H + 1][panels][2 obs + act][16] */
    float *q0;              /* [L][panels][16] Q(x_0, u_0), the same for all transitions */
    float *q;               /* [M][L][H][panels][16] Q(x_i, u_i), i = 1 .. H */
    float *r;               /* [M][N][H][panels][16] rewards of x_1 .. x_H */
    float *end;             /* [M][H][panels][16] D_1 .. D_H */
};

/* u_k = tanh pi(x_k), next to x_k in step k of z. */
static void choose_actions(const struct steve *s, const struct expansion *e, int k,
                           struct opc_arena *scratch)
{
    const int obs = s->base.obs, act = s->base.act;
    float *z = e->z + (size_t)(k * e->panels) * e->stride;
    steve_infer(s->ensemble[STEVE_POLICY].net, 0, e->panels, z + obs * P, e->stride,
                z + 2 * obs * P, e->stride, scratch);
    for (int p = 0; p < e->panels; p++) {
        float *u = z + (size_t)p * e->stride + 2 * obs * P;
        opc_vec_tanh((size_t)(act * P), u, u);
    }
}

/* Follows transition member m for H steps, from x_0 and u_0, which are in z. */
static void roll_out(const struct steve *s, const struct expansion *e, int m,
                     struct opc_arena *scratch)
{
    const int obs = s->base.obs;
    for (int k = 0; k < e->H; k++) {
        float *z = e->z + (size_t)(k * e->panels) * e->stride;
        /* Delta(x_k, u_k) goes where x_k+1 is to be, and x_k is added. */
        steve_infer(s->ensemble[STEVE_TRANSITION].copy, m, e->panels, z + obs * P, e->stride, z,
                    e->stride, scratch);
        for (int p = 0; p < e->panels; p++) {
            float *next = z + (size_t)p * e->stride;
            const float *x = next + obs * P;
            for (int i = 0; i < obs * P; i++)
                next[i] += x[i];
            /* The next step starts from it. */
            memcpy(next + (size_t)e->panels * e->stride + obs * P, next,
                   (size_t)(obs * P) * sizeof *next);
        }
        choose_actions(s, e, k + 1, scratch);
    }
}

/* All members along s_1 of panels p0 .. . Rewards, terminations and critics see the steps of one
 * trajectory in one batch. */
static void expand(const struct steve *s, const struct expansion *e, int p0,
                   struct opc_arena *scratch)
{
    const int obs = s->base.obs, in = obs + s->base.act, steps = e->H * e->panels;
    const size_t block = (size_t)steps * P; /* numbers of one output along one trajectory */
    float *later = e->z + (size_t)e->panels * e->stride; /* steps 1 .. H */
    /* x_0 = s_1, which is the same for all members, and so are u_0 and Q(x_0, u_0). */
    for (int p = 0; p < e->panels; p++)
        memcpy(e->z + (size_t)p * e->stride + obs * P,
               s->batch + ((size_t)(p0 + p) * (size_t)s->columns + (size_t)(in + 2)) * P,
               (size_t)(obs * P) * sizeof(float));
    choose_actions(s, e, 0, scratch);
    for (int l = 0; l < e->L; l++)
        steve_infer(s->ensemble[STEVE_CRITIC].copy, l, e->panels, e->z + obs * P, e->stride,
                    e->q0 + (size_t)(l * e->panels) * P, P, scratch);
    for (int m = 0; m < e->M; m++) {
        roll_out(s, e, m, scratch);
        for (int l = 0; l < e->L; l++)
            steve_infer(s->ensemble[STEVE_CRITIC].copy, l, steps, later + obs * P, e->stride,
                        e->q + (size_t)(m * e->L + l) * block, P, scratch);
        for (int n = 0; n < e->N; n++)
            steve_infer(s->ensemble[STEVE_REWARD].copy, n, steps, e->z, e->stride,
                        e->r + (size_t)(m * e->N + n) * block, P, scratch);
        /* Terminations stay soft: a probability, not a decision. */
        float *end = e->end + (size_t)m * block;
        steve_infer(s->ensemble[STEVE_TERMINATION].copy, m, steps, e->z, e->stride, end, P,
                    scratch);
        opc_vec_sigmoid(block, end, end);
    }
}

/* The candidates T[H + 1][M N L] of row j of panel p, out of the expansion. */
static void fill_candidates(const struct steve *s, const struct expansion *e, int p, int j,
                            double reward, double terminal, double *T)
{
    const int n = e->M * e->N * e->L, H = e->H;
    const double gamma = s->config.discount;
    const size_t step = (size_t)e->panels * P; /* from one step of a trajectory to the next */
    const size_t block = (size_t)H * step, at = (size_t)(p * P + j);
    for (int m = 0, c = 0; m < e->M; m++) {
        /* factor[i] = gamma^i C_i-1 of an imagined reward; tail[i] = gamma^(i+1) C_i of a value. */
        double factor[64], tail[64];
        double alive = 1 - terminal, power = gamma;
        tail[0] = power * alive;
        for (int i = 1; i <= H; i++) {
            const size_t k = (size_t)(i - 1) * step + at;
            factor[i] = power * alive;
            alive *= 1 - (double)e->end[(size_t)m * block + k];
            power *= gamma;
            tail[i] = power * alive;
        }
        for (int v = 0; v < e->N; v++) {
            const float *r = e->r + (size_t)(m * e->N + v) * block + at;
            for (int l = 0; l < e->L; l++, c++) {
                const float *q = e->q + (size_t)(m * e->L + l) * block + at;
                double sum = reward;
                T[c] = sum + tail[0] * (double)e->q0[(size_t)l * step + at];
                for (int i = 1; i <= H; i++) {
                    sum += factor[i] * (double)r[(size_t)(i - 1) * step];
                    T[i * n + c] = sum + tail[i] * (double)q[(size_t)(i - 1) * step];
                }
            }
        }
    }
}

/* ---- targets of a batch ---------------------------------------------------------------------- */

static struct expansion expansion_of(const struct steve *s, int panels)
{
    return (struct expansion){.panels = panels,
                              .H = s->config.horizon,
                              .M = s->config.transition_members,
                              .N = s->config.reward_members,
                              .L = s->config.critic_members,
                              .stride = (size_t)(2 * s->base.obs + s->base.act) * P};
}

size_t steve_targets_need(const struct steve *s, int panels)
{
    const struct expansion e = expansion_of(s, panels);
    const size_t wide = (size_t)panels * P * sizeof(float), h = (size_t)e.H + 1;
    size_t infer = 0;
    for (int k = 0; k < STEVE_KINDS; k++) {
        const size_t one = steve_infer_need(s->ensemble[k].net);
        infer = one > infer ? one : infer;
    }
    return opc_arena_need(h * (size_t)panels, e.stride * sizeof(float)) +
           opc_arena_need((size_t)e.L, wide) +
           opc_arena_need((size_t)(e.M * (e.L + e.N + 1) * e.H), wide) + 2 * OPC_ALIGN +
           opc_arena_need(h * (size_t)(e.M * e.N * e.L), sizeof(double)) +
           opc_arena_need(h * (h + 4), sizeof(double)) + OPC_ALIGN + infer;
}

void steve_targets(struct steve *s, int p0, int p1, struct opc_arena *scratch)
{
    const size_t mark = scratch->used, wide = (size_t)(p1 - p0) * P;
    struct expansion e = expansion_of(s, p1 - p0);
    const int n = e.M * e.N * e.L, H = e.H, in = s->base.obs + s->base.act;
    e.z = opc_floats(scratch, (size_t)((H + 1) * e.panels), e.stride);
    e.q0 = opc_floats(scratch, (size_t)e.L, wide);
    e.q = opc_floats(scratch, (size_t)(e.M * e.L * H), wide);
    e.r = opc_floats(scratch, (size_t)(e.M * e.N * H), wide);
    e.end = opc_floats(scratch, (size_t)(e.M * H), wide);
    double *T = opc_arena_take(scratch, (size_t)((H + 1) * n), sizeof *T);
    double *weight = opc_arena_take(scratch, (size_t)(H + 1), sizeof *weight);
    double *work = opc_arena_take(scratch, (size_t)((H + 1) * (H + 4)), sizeof *work);
    expand(s, &e, p0, scratch);
    for (int p = 0; p < e.panels; p++) {
        /* Columns of a step: s, a, r, 1 where the task ended, s'. */
        const float *r = s->batch + ((size_t)(p0 + p) * (size_t)s->columns + (size_t)in) * P;
        const int rows = steve_real_rows(s->config.batch_size, p0 + p);
        struct steve_sums *sums = &s->panel_sums[p0 + p];
        *sums = (struct steve_sums){.target_min = INFINITY, .target_max = -INFINITY};
        for (int j = 0; j < rows; j++) {
            fill_candidates(s, &e, p, j, s->config.reward_scale * (double)r[j], (double)r[P + j],
                            T);
            const double y = opc_steve_weigh(
                H + 1, n, T, (enum opc_steve_weighting)s->config.weighting, weight, work);
            s->target[(size_t)(p0 + p) * P + (size_t)j] = (float)y;
            sums->target += y;
            sums->target_min = fmin(sums->target_min, y);
            sums->target_max = fmax(sums->target_max, y);
            sums->td_weight += weight[0];
            for (int i = 1; i <= H; i++)
                sums->model_steps += i * weight[i];
        }
    }
    opc_arena_rewind(scratch, mark);
}
