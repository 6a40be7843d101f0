/* SPDX-License-Identifier: MIT */
/* Two sets of runs compared by where they end: interquartile means, bootstrap intervals and the
 * probability of improvement (num/stats.h, after Agarwal et al. 2021), task by task. opc compare
 * calls it.
 *
 * Invariant: the same runs give the same numbers. The bootstrap draws from streams that are named
 * by the task's place, so a further task changes no interval of those before it. */
#include "study/curves/compare.h"

#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Streams of random numbers: (SEED, OPC_USE_STUDY, FOR_..., task). */
enum { SEED = 1, FOR_IQM = 101, FOR_IMPROVEMENT = 103, FOR_ALL = 104 };

static int compare_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the comparison");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The runs of a side, one group for each task: whatever else differs, they are one sample. */
static int read_side(const struct opc_compare_runs *side, const struct opc_compare_plan *plan,
                     struct opc_curves **out, struct opc_err *err)
{
    static const char *const TASK[] = {"env.name"};
    const struct opc_curves_plan curves = {.of = plan->of,
                                           .over = plan->over,
                                           .smooth = plan->smooth,
                                           .panel_keys = 1,
                                           .panel_key = TASK};
    return opc_curves_read(side->n, side->dir, &curves, out, err);
}

/* The task of that name; a new one is appended. */
static int task_of(struct opc_compare *c, const char *name)
{
    int i = 0;
    while (i < c->tasks && strcmp(c->task[i].name, name) != 0)
        i++;
    if (i == c->tasks)
        c->task[c->tasks++].name = name;
    return i;
}

/* The scores of one side on its group's task. */
static int take_scores(const struct opc_curves *curves, int g, double at, int side,
                       struct opc_compare_task *task, struct opc_err *err)
{
    task->score[side] = opc_alloc((size_t)curves->runs, sizeof(double));
    if (!task->score[side])
        return compare_no_memory(err);
    for (int i = 0; i < curves->runs; i++) {
        const struct opc_curve_run *run = &curves->run[i];
        if (run->group != g || run->n == 0)
            continue;
        const double end = run->x[run->n - 1];
        task->steps[side] = fmax(task->steps[side], end);
        /* Up to `at`: only what was evaluated until then, and only if it got that far. */
        if (at > 0 && (end < at || run->x[0] > at)) {
            task->short_of[side]++;
            continue;
        }
        int n = run->n;
        while (at > 0 && run->x[n - 1] > at)
            n--;
        task->score[side][task->n[side]++] = opc_curve_end(n, run->raw);
    }
    return OPC_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static struct opc_scores scores_of(const struct opc_compare_task *task, int side, const double **v)
{
    *v = task->score[side];
    return (struct opc_scores){1, &task->n[side], v};
}

static int measure_task(struct opc_compare_task *task, uint32_t number, struct opc_err *err)
{
    const double none = (double)NAN, *v[2];
    struct opc_scores scores[2];
    task->improvement = (struct opc_interval){none, none, none};
    for (int s = 0; s < 2; s++) {
        struct opc_rng rng = opc_rng_stream(SEED, OPC_USE_STUDY, FOR_IQM + (uint32_t)s, number);
        scores[s] = scores_of(task, s, &v[s]);
        OPC_TRY(opc_iqm_interval(&scores[s], 0, &rng, &task->iqm[s], err));
    }
    if (task->n[0] == 0 || task->n[1] == 0)
        return OPC_OK;
    struct opc_rng rng = opc_rng_stream(SEED, OPC_USE_STUDY, FOR_IMPROVEMENT, number);
    return opc_improvement(&scores[0], &scores[1], 0, &rng, &task->improvement, err);
}

/* Over the tasks that both sides have; each counts the same. */
static int measure_all(struct opc_compare *c, struct opc_err *err)
{
    const size_t tasks = (size_t)c->tasks;
    int *n = opc_alloc(2 * tasks, sizeof *n), shared = 0;
    const double **v = opc_alloc(2 * tasks, sizeof *v);
    int code = n && v ? OPC_OK : compare_no_memory(err);
    for (int t = 0; t < c->tasks && !code; t++) {
        const struct opc_compare_task *task = &c->task[t];
        if (task->n[0] == 0 || task->n[1] == 0)
            continue;
        for (int s = 0; s < 2; s++) {
            n[(size_t)s * tasks + (size_t)shared] = task->n[s];
            v[(size_t)s * tasks + (size_t)shared] = task->score[s];
        }
        shared++;
    }
    if (!code) {
        const struct opc_scores a = {shared, n, v}, b = {shared, n + tasks, v + tasks};
        struct opc_rng rng = opc_rng_stream(SEED, OPC_USE_STUDY, FOR_ALL, 0);
        code = opc_improvement(&a, &b, 0, &rng, &c->improvement, err);
    }
    opc_free(n);
    opc_free(v);
    return code;
}

/* ---- the curves of both ---------------------------------------------------------------------- */

/* Both sides as one set of curves: a panel for each task, a line for each side that has it. The
 * points belong to the sides. */
static int join_curves(struct opc_compare *c, const struct opc_compare_runs side[2],
                       struct opc_err *err)
{
    struct opc_curves *drawn = &c->drawn;
    const size_t groups = (size_t)(c->curves[0]->groups + c->curves[1]->groups);
    drawn->group = opc_alloc(groups, sizeof *drawn->group);
    drawn->panel = opc_alloc(groups, sizeof *drawn->panel);
    drawn->title = opc_alloc(groups, sizeof *drawn->title);
    if (!drawn->group || !drawn->panel || !drawn->title)
        return compare_no_memory(err);
    drawn->panels = c->tasks;
    for (int s = 0; s < 2; s++)
        for (int g = 0; g < c->curves[s]->groups; g++) {
            struct opc_curve_group *group = &drawn->group[drawn->groups++];
            *group = c->curves[s]->group[g];
            const int panel = task_of(c, c->curves[s]->panel[group->panel]);
            memcpy(drawn->title[panel], c->curves[s]->title[group->panel], sizeof *drawn->title);
            memcpy(drawn->panel[panel], c->curves[s]->panel[group->panel], sizeof *drawn->panel);
            group->panel = panel;
            snprintf(group->label, sizeof group->label, "%s", side[s].name);
        }
    return OPC_OK;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_compare(const struct opc_compare_runs side[2], const struct opc_compare_plan *plan,
                struct opc_compare **out, struct opc_err *err)
{
    struct opc_compare *c = opc_alloc(1, sizeof *c);
    int code = c ? OPC_OK : compare_no_memory(err);
    for (int s = 0; s < 2 && !code; s++)
        code = read_side(&side[s], plan, &c->curves[s], err);
    if (!code) {
        c->task = opc_alloc((size_t)(c->curves[0]->panels + c->curves[1]->panels), sizeof *c->task);
        code = c->task ? OPC_OK : compare_no_memory(err);
    }
    for (int s = 0; s < 2 && !code; s++)
        for (int g = 0; g < c->curves[s]->groups && !code; g++) {
            const int t = task_of(c, c->curves[s]->panel[c->curves[s]->group[g].panel]);
            code = take_scores(c->curves[s], g, plan->at, s, &c->task[t], err);
        }
    for (int t = 0; !code && t < c->tasks; t++)
        code = measure_task(&c->task[t], (uint32_t)t, err);
    if (!code)
        code = measure_all(c, err);
    if (!code)
        code = join_curves(c, side, err);
    if (code)
        opc_compare_free(c);
    else
        *out = c;
    return code;
}

void opc_compare_free(struct opc_compare *c)
{
    if (!c)
        return;
    for (int t = 0; t < c->tasks; t++)
        for (int s = 0; s < 2; s++)
            opc_free(c->task[t].score[s]);
    opc_free(c->task);
    opc_free(c->drawn.group);
    opc_free(c->drawn.panel);
    opc_free(c->drawn.title);
    for (int s = 0; s < 2; s++)
        opc_curves_free(c->curves[s]);
    opc_free(c);
}
