/* SPDX-License-Identifier: MIT */
/* Scores of the runs of a sweep, a row for each group of seeds; `opc sweep FILE merge` writes it
 * next to the merged table.
 *
 * Invariant: only complete runs count. The score of a run that is under way belongs to another
 * number of steps. */
#include "study/curves/sweep_table.h"

#include "num/stats.h"
#include "opc/mem.h"

#include <math.h>
#include <string.h>

static int out_of_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "out of memory for the table of the sweep");
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Whether a varied setting needs a column of its own. A row is taken over seeds; task, method
 * and reference_epochs have fixed columns. */
static bool is_extra(const char *key)
{
    static const char *const KNOWN[] = {"train.seed", "env.name", "opc.transition", "train.agent",
                                        "opc.reference_epochs"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strcmp(key, KNOWN[i]) == 0)
            return false;
    return true;
}

/* The fixed columns, then one for each further setting that varies. */
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

/* Scores of the evaluated runs of a group, and the times of those whose time is known. */
struct group {
    double *score;   /* [runs] mean of the last five evaluations */
    double *minutes; /* [timed] by the clock, resumed or not */
    int runs, timed;
    double env_steps; /* of the shortest */
};

/* Collects the complete runs of task i's group; none if an earlier task already had this group. */
static void measure(const struct opc_sweep_runs *runs, int i, struct group *g)
{
    const struct opc_sweep *s = runs->sweep;
    g->runs = g->timed = 0;
    g->env_steps = HUGE_VAL;
    for (int k = 0; k < s->tasks; k++) {
        const struct opc_sweep_run *r = &runs->run[k];
        if (s->task[k].group != s->task[i].group)
            continue;
        if (k < i)
            return;
        /* Incomplete runs, and runs without an evaluation, have no score. */
        if (!r->rows || !r->complete || isnan(r->score))
            continue;
        g->env_steps = fmin(g->env_steps, r->env_steps);
        g->score[g->runs++] = r->score;
        /* Written first, counted only if it is known. */
        g->minutes[g->timed] = r->minutes;
        g->timed += !isnan(r->minutes);
    }
}

/* Methods without rollouts have no references, so the cell stays empty. */
static void add_reference_epochs(const struct opc_values *set, struct opc_table *t)
{
    if (opc_transition_of(set)->needs_model)
        opc_table_int(t, set->opc.reference_epochs);
    else
        opc_table_word(t, "");
}

/* Adds the row of a group and sorts its values; task is any of its runs. */
static void add_row(const struct opc_sweep *s, const struct opc_task *task, struct group *g,
                    struct opc_table *t)
{
    opc_table_word(t, task->set.env.name);
    opc_table_word(t, opc_method_label(&task->set));
    add_reference_epochs(&task->set, t);
    opc_table_int(t, g->runs);
    opc_table_fixed(t, g->env_steps, 0);
    opc_table_fixed(t, opc_quantile(g->runs, g->score, 0.5), 2);
    opc_table_fixed(t, g->score[0], 2); /* opc_quantile has sorted them */
    opc_table_fixed(t, g->score[g->runs - 1], 2);
    opc_table_fixed(t, g->timed ? opc_quantile(g->timed, g->minutes, 0.5) : (double)NAN, 2);
    for (int k = 0; k < s->keys; k++)
        if (is_extra(s->vary[k].key))
            opc_table_word(t, opc_task_value(s, task, k));
}

/* ---------------------------------------------------------------------------------------------- */

int opc_sweep_table(const struct opc_sweep_runs *runs, struct opc_table **out, struct opc_err *err)
{
    const struct opc_sweep *s = runs->sweep;
    const size_t tasks = (size_t)s->tasks + 1;
    struct group g = {.score = opc_alloc(tasks, sizeof *g.score),
                      .minutes = opc_alloc(tasks, sizeof *g.minutes)};
    const int code = g.score && g.minutes ? create(s, out, err) : out_of_memory(err);
    for (int i = 0; i < s->tasks && !code; i++) {
        measure(runs, i, &g);
        if (g.runs > 0)
            add_row(s, &s->task[i], &g, *out);
    }
    opc_free(g.score);
    opc_free(g.minutes);
    return code;
}
