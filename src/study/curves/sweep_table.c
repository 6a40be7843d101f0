/* SPDX-License-Identifier: MIT */
/* What the runs of a sweep come to, a row for each group of seeds; `opc sweep FILE merge` writes it
 * beside the merged table. It speaks of complete runs only: the score of one that is under way is
 * that of another number of steps. */
#include "study/curves/sweep_table.h"

#include "num/stats.h"
#include "opc/mem.h"
#include "study/curves/curves.h"
#include "sweep/look.h"

#include <math.h>
#include <string.h>

static int out_of_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the table of the sweep");
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Does a varied setting have a column of its own? Seeds are what a row is taken over; the task,
 * what makes the method's name and reference_epochs have theirs. */
static bool is_extra(const char *key)
{
    static const char *const KNOWN[] = {"train.seed", "env.name", "opc.transition", "train.agent",
                                        "opc.reference_epochs"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strcmp(key, KNOWN[i]) == 0)
            return false;
    return true;
}

static int create(const struct opc_sweep *s, struct opc_table **out, struct opc_err *err)
{
    struct opc_text columns = {0};
    opc_text_add(&columns, "task,method,reference_epochs,seeds,env_steps,median,low,high,minutes");
    for (int k = 0; k < s->keys; k++)
        if (is_extra(s->vary[k].key))
            opc_text_addf(&columns, ",%s", s->vary[k].key);
    int code = opc_text_check(&columns, err);
    if (!code)
        code = opc_table_create(opc_text_get(&columns), out, err);
    opc_text_free(&columns);
    return code;
}

/* ---- one group ------------------------------------------------------------------------------- */

/* What the evaluated runs of a group ended with, and what those with a timing.csv took. */
struct group {
    double *score;   /* [runs] mean of the last five evaluations */
    double *minutes; /* [timed] by the clock, resumed or not: every epoch has its own line */
    int runs, timed;
    double env_steps; /* of the shortest */
};

static void measure(const struct opc_curves *c, struct group *g)
{
    g->runs = g->timed = 0;
    g->env_steps = HUGE_VAL;
    for (int i = 0; i < c->runs; i++) {
        const struct opc_curve_run *r = &c->run[i];
        int epochs;
        if (r->n == 0)
            continue;
        g->env_steps = fmin(g->env_steps, r->x[r->n - 1]);
        g->score[g->runs++] = r->end;
        g->minutes[g->timed] = opc_look_seconds(r->dir, &epochs) / 60;
        g->timed += epochs > 0;
    }
}

/* Without rollouts there are no references, and no epochs that they come from. */
static void add_reference_epochs(const struct opc_values *set, struct opc_table *t)
{
    if (opc_transition_of(set)->needs_model)
        opc_table_int(t, set->opc.reference_epochs);
    else
        opc_table_word(t, "");
}

static int add_row(const struct opc_sweep *s, const struct opc_task *task, char *const *dir, int n,
                   struct group *g, struct opc_table *t, struct opc_err *err)
{
    static const struct opc_curves_plan PLAN = {
        .of = "eval_return", .over = "env_steps", .smooth = 1};
    struct opc_curves *c;
    const int code = opc_curves_read(n, dir, &PLAN, &c, err);
    if (code)
        return code;
    measure(c, g);
    if (g->runs > 0) {
        opc_table_word(t, task->set.env.name);
        opc_table_word(t, c->run[0].method_name);
        add_reference_epochs(&task->set, t);
        opc_table_int(t, g->runs);
        opc_table_fixed(t, g->env_steps, 0);
        opc_table_fixed(t, opc_quantile(g->runs, g->score, 0.5), 2);
        opc_table_fixed(t, g->score[0], 2); /* they are sorted now */
        opc_table_fixed(t, g->score[g->runs - 1], 2);
        opc_table_fixed(t, g->timed ? opc_quantile(g->timed, g->minutes, 0.5) : (double)NAN, 2);
        for (int k = 0; k < s->keys; k++)
            if (is_extra(s->vary[k].key))
                opc_table_word(t, opc_task_value(s, task, k));
    }
    opc_curves_free(c);
    return OPC_OK;
}

/* The directories of the complete runs of task i's group; none if an earlier task has told of it.
 */
static int complete_runs(const struct opc_sweep *s, int i, char *const *dir, const bool *complete,
                         char **out)
{
    int n = 0;
    for (int k = 0; k < s->tasks; k++) {
        if (s->task[k].group != s->task[i].group)
            continue;
        if (k < i)
            return 0;
        if (dir[k] && complete[k])
            out[n++] = dir[k];
    }
    return n;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_sweep_table(const struct opc_sweep *s, char *const *dir, const bool *complete,
                    struct opc_table **out, struct opc_err *err)
{
    const size_t tasks = (size_t)s->tasks + 1;
    struct opc_table *t = NULL;
    char **of_group = opc_alloc(tasks, sizeof *of_group);
    struct group g = {.score = opc_alloc(tasks, sizeof *g.score),
                      .minutes = opc_alloc(tasks, sizeof *g.minutes)};
    int code = of_group && g.score && g.minutes ? create(s, &t, err) : out_of_memory(err);
    for (int i = 0; i < s->tasks && !code; i++) {
        const int n = complete_runs(s, i, dir, complete, of_group);
        if (n > 0)
            code = add_row(s, &s->task[i], of_group, n, &g, t, err);
    }
    opc_free(of_group);
    opc_free(g.score);
    opc_free(g.minutes);
    if (code)
        opc_table_free(t);
    else
        *out = t;
    return code;
}
