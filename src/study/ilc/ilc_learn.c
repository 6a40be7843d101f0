/* SPDX-License-Identifier: MIT */
/* opc_ilc_learn: iterative learning control on a program's own plant. The updates are those of
 * ilc.c; ilc_run.c does the same for the plants and settings of `opc ilc`. */
#include "opc/ilc.h"

#include "base/sized.h"
#include "opc/mem.h"
#include "study/ilc/ilc.h"

#include <math.h>
#include <string.h>

/* The plan, and its parts as ilc.c wants them: one entry for every step of the trial. */
struct learner {
    const struct opc_ilc_plan *plan;
    int n, m, T;
    double *A, *B;       /* [T][n][n], [T][n][m] */
    double *M, *W;       /* [(T+1) n], [T m] */
    double *low, *high;  /* [T m] */
    double *s, *e;       /* [(T+1) n] states of the last trial, s_ref - s */
    double *d, *next;    /* [(T+1) n] disturbance, [T m] updated inputs */
    struct opc_ilc *ilc; /* the update */
};

/* `from` again and again, `times` times; NULL stands for n times `usual`. */
static void repeat(const double *from, size_t n, double usual, int times, double *out)
{
    for (int t = 0; t < times; t++)
        for (size_t k = 0; k < n; k++)
            out[(size_t)t * n + k] = from ? from[k] : usual;
}

static int check_plan(const struct opc_ilc_plan *p, const double *u, struct opc_err *err)
{
    const bool model = (p->A && p->B) || (p->A_each && p->B_each);
    if (p->states < 1 || p->actions < 1 || p->steps < 1 || p->iterations < 0)
        return opc_fail(err, OPC_EUSER,
                        "a trial of %d steps with %d states and %d actions, updated %d times, "
                        "cannot be",
                        p->steps, p->states, p->actions, p->iterations);
    if (!model || !p->s_ref || !p->trial || !u)
        return opc_fail(err, OPC_EUSER, "learning control needs %s",
                        !model      ? "a model: A and B, or A_each and B_each"
                        : !p->s_ref ? "a reference, s_ref"
                        : !p->trial ? "a function that makes a trial"
                                    : "inputs for the first trial");
    return OPC_OK;
}

static int prepare(struct learner *l, struct opc_err *err)
{
    const struct opc_ilc_plan *p = l->plan;
    const size_t n = (size_t)l->n, m = (size_t)l->m, T = (size_t)l->T, N = (T + 1) * n;
    const struct opc_block blocks[] = {
        {&l->A, T * n * n, sizeof(double)}, {&l->B, T * n * m, sizeof(double)},
        {&l->M, N, sizeof(double)},         {&l->W, T * m, sizeof(double)},
        {&l->low, T * m, sizeof(double)},   {&l->high, T * m, sizeof(double)},
        {&l->s, N, sizeof(double)},         {&l->e, N, sizeof(double)},
        {&l->d, N, sizeof(double)},         {&l->next, T * m, sizeof(double)},
    };
    if (!opc_alloc_all(blocks, sizeof blocks / sizeof *blocks))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for trials of %d steps", l->T);
    if (p->A_each && p->B_each) {
        memcpy(l->A, p->A_each, T * n * n * sizeof *l->A);
        memcpy(l->B, p->B_each, T * n * m * sizeof *l->B);
    } else {
        repeat(p->A, n * n, 0, l->T, l->A);
        repeat(p->B, n * m, 0, l->T, l->B);
    }
    repeat(p->weight_state, n, 1, l->T + 1, l->M);
    repeat(p->weight_action, m, 1e-3, l->T, l->W);
    repeat(p->low, m, -(double)INFINITY, l->T, l->low);
    repeat(p->high, m, (double)INFINITY, l->T, l->high);
    OPC_TRY(opc_ilc_create(l->n, l->m, l->T, l->M, l->W, &l->ilc, err));
    return opc_ilc_model(l->ilc, l->A, l->B, err);
}

/* One trial: its states, their errors, and the root of their mean square. */
static int try_inputs(struct learner *l, int trial, const double *u, double *rms,
                      struct opc_err *err)
{
    const int N = (l->T + 1) * l->n;
    double sum = 0;
    OPC_TRY(l->plan->trial(l->plan->ctx, u, l->s, err));
    for (int i = 0; i < N; i++) {
        l->e[i] = l->plan->s_ref[i] - l->s[i];
        sum += l->e[i] * l->e[i];
    }
    if (!isfinite(sum))
        return opc_fail(err, OPC_EDIVERGED, "the states of trial %d are not finite", trial);
    if (rms)
        rms[trial] = sqrt(sum / N);
    return OPC_OK;
}

/* The inputs of the next trial, within bounds if there are any. */
static int improve_inputs(struct learner *l, double *u, struct opc_err *err)
{
    if (l->plan->low || l->plan->high) {
        const struct opc_ilc_limits limits = {.u_low = l->low, .u_high = l->high};
        struct opc_ilc_kept kept;
        opc_ilc_disturbance(l->ilc, l->s, u, l->d);
        OPC_TRY(
            opc_ilc_update_within(l->ilc, l->plan->s_ref, l->d, u, &limits, l->next, &kept, err));
    } else {
        opc_ilc_update(l->ilc, l->e, u, l->next);
    }
    memcpy(u, l->next, (size_t)l->T * (size_t)l->m * sizeof *u);
    return OPC_OK;
}

static void clean_up(struct learner *l)
{
    double *const all[] = {l->A, l->B, l->M, l->W, l->low, l->high, l->s, l->e, l->d, l->next};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        opc_free(all[i]);
    opc_ilc_destroy(l->ilc);
}

int opc_ilc_learn(const struct opc_ilc_plan *given, double *u, double *s, double *rms,
                  struct opc_err *err)
{
    struct opc_ilc_plan plan;
    OPC_TRY(opc_sized_read(given, "opc_ilc_plan", &plan, sizeof plan, err));
    OPC_TRY(check_plan(&plan, u, err));
    struct learner l = {.plan = &plan, .n = plan.states, .m = plan.actions, .T = plan.steps};
    int code = prepare(&l, err);
    if (!code)
        code = try_inputs(&l, 0, u, rms, err);
    for (int i = 1; i <= plan.iterations && !code; i++) {
        code = improve_inputs(&l, u, err);
        if (!code)
            code = try_inputs(&l, i, u, rms, err);
    }
    if (!code && s)
        memcpy(s, l.s, ((size_t)l.T + 1) * (size_t)l.n * sizeof *s);
    clean_up(&l);
    return code;
}
