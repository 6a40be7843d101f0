/* SPDX-License-Identifier: MIT */
/* Scores of the runs of a sweep, a row for each group of seeds; `opc sweep FILE merge` writes it
 * next to the merged table.
 *
 * Invariant: only runs that have made the same steps count: the complete ones, or, where the table
 * is asked for at a number of steps, those that have got there. */
#include "study/curves/sweep_table.h"

#include "num/stats.h"
#include "opc/mem.h"

#include <math.h>
#include <string.h>

static int sweep_table_no_memory(struct opc_err *err)
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
static int sweep_table_create(const struct opc_sweep *sweep, struct opc_table **out,
                              struct opc_err *err)
{
    struct opc_text columns = {0};
    opc_text_add(&columns, "task,method,reference_epochs,seeds,env_steps,median,low,high,minutes");
    for (int k = 0; k < sweep->keys; k++)
        if (is_extra(sweep->vary[k].key))
            opc_text_addf(&columns, ",%s", sweep->vary[k].key);
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

/* Collects the runs of task i's group that count; none if an earlier task already had this group.
 */
static int measure_group(const struct opc_sweep_runs *runs, int i, double at, struct group *group,
                         struct opc_err *err)
{
    const struct opc_sweep *sweep = runs->sweep;
    group->runs = group->timed = 0;
    group->env_steps = HUGE_VAL;
    for (int k = 0; k < sweep->tasks; k++) {
        const struct opc_sweep_run *run = &runs->run[k];
        if (sweep->task[k].group != sweep->task[i].group)
            continue;
        if (k < i)
            return OPC_OK;
        struct opc_sweep_measure end = run->end;
        if (at > 0)
            OPC_TRY(opc_sweep_run_measure_at(run, at, &end, err));
        /* Incomplete runs, and runs without an evaluation, have no score. */
        if (!run->metrics.rows || !(at > 0 ? end.reached : run->complete) || isnan(end.score))
            continue;
        group->env_steps = fmin(group->env_steps, end.env_steps);
        group->score[group->runs++] = end.score;
        /* Written first, counted only if it is known. The time is that of a whole run. */
        group->minutes[group->timed] = run->minutes;
        group->timed += !isnan(run->minutes) && at <= 0;
    }
    return OPC_OK;
}

/* Methods without rollouts have no references, so the cell stays empty. */
static void add_reference_epochs(const struct opc_values *set, struct opc_table *table)
{
    if (opc_transition_of(set)->needs_model)
        opc_table_int(table, set->opc.reference_epochs);
    else
        opc_table_word(table, "");
}

/* Adds the row of a group and sorts its values; task is any of its runs. */
static void add_group_row(const struct opc_sweep *sweep, const struct opc_task *task,
                          struct group *group, struct opc_table *table)
{
    opc_table_word(table, task->set.env.name);
    opc_table_word(table, opc_method_label(&task->set));
    add_reference_epochs(&task->set, table);
    opc_table_int(table, group->runs);
    opc_table_fixed(table, group->env_steps, 0);
    opc_table_fixed(table, opc_quantile(group->runs, group->score, 0.5), 2);
    opc_table_fixed(table, group->score[0], 2); /* opc_quantile has sorted them */
    opc_table_fixed(table, group->score[group->runs - 1], 2);
    opc_table_fixed(
        table, group->timed ? opc_quantile(group->timed, group->minutes, 0.5) : (double)NAN, 2);
    for (int k = 0; k < sweep->keys; k++)
        if (is_extra(sweep->vary[k].key))
            opc_table_word(table, opc_task_value(sweep, task, k));
}

/* ---------------------------------------------------------------------------------------------- */

int opc_sweep_table(const struct opc_sweep_runs *runs, double at, struct opc_table **out,
                    struct opc_err *err)
{
    const struct opc_sweep *sweep = runs->sweep;
    const size_t tasks = (size_t)sweep->tasks + 1;
    struct group group = {.score = opc_alloc(tasks, sizeof *group.score),
                          .minutes = opc_alloc(tasks, sizeof *group.minutes)};
    int code = group.score && group.minutes ? sweep_table_create(sweep, out, err)
                                            : sweep_table_no_memory(err);
    for (int i = 0; i < sweep->tasks && !code; i++) {
        code = measure_group(runs, i, at, &group, err);
        if (!code && group.runs > 0)
            add_group_row(sweep, &sweep->task[i], &group, *out);
    }
    opc_free(group.score);
    opc_free(group.minutes);
    return code;
}
