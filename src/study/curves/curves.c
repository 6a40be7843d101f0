/* SPDX-License-Identifier: MIT */
/* Learning curves from run directories, or from the tables of a merge in their place, and their
 * groups: from finding the runs to the band over each line. opc plot, opc compare and
 * learning_curves.c call it.
 *
 *     curves_find.c    which runs there are
 *     curves_only.c    which of them are wanted
 *     curves_run.c     settings and curve of one (curves_minutes.c)
 *     curves_groups.c  which of them are a line, and its name (curves_words.c)
 *     curves_band.c    line and band over each group
 *
 * Invariant: the order of panels and groups is the order in which their first run was named, so
 * that the same command gives the same figure. */
#include "base/log.h"
#include "opc/mem.h"
#include "study/curves/curves_private.h"

#include <string.h>

/* Leaves out the runs without a time; if there are no others, that is OPC_EUSER. */
static int drop_untimed(struct opc_curves *curves, struct opc_err *err)
{
    const int runs = curves->runs;
    int timed = 0;
    for (int i = 0; i < runs; i++)
        timed += !curves->run[i].untimed;
    if (runs > 0 && timed == 0)
        return opc_fail(err, OPC_EUSER,
                        "%s: no timing.csv tells how long its epochs took%s; merge again where the "
                        "run directories still are ('opc sweep FILE merge'), or draw over "
                        "env_steps",
                        curves->run[0].dir, runs > 1 ? ", nor those of any other run" : "");
    curves->runs = 0;
    for (int i = 0; i < runs; i++) {
        struct opc_curve_run run = curves->run[i];
        if (!run.untimed) {
            curves->run[curves->runs++] = run;
            continue;
        }
        opc_log(OPC_LEVEL_WARN, "%s: no timing.csv tells how long its epochs took; it is left out",
                run.dir);
        opc_curves_run_free(&run);
    }
    return OPC_OK;
}

int opc_curves_read(int n, char *const dir[], const struct opc_curves_plan *plan,
                    struct opc_curves **out, struct opc_err *err)
{
    struct opc_curves *curves = opc_alloc(1, sizeof *curves);
    if (!curves)
        return opc_curves_no_memory(err);
    /* The random phase ends with an episode, so total_steps differ between seeds, and no two epochs
     * take the same time. */
    curves->between = strcmp(plan->over, "total_steps") == 0 || opc_curves_over_minutes(plan);
    curves->band = plan->band;
    /* Arrays for the largest number of runs; groups and panels cannot be more. */
    double *scratch = opc_alloc(OPC_CURVES_MAX, sizeof *scratch);
    curves->run = opc_alloc(OPC_CURVES_MAX, sizeof *curves->run);
    curves->group = opc_alloc(OPC_CURVES_MAX, sizeof *curves->group);
    curves->panel = opc_alloc(OPC_CURVES_MAX, sizeof *curves->panel);
    curves->title = opc_alloc(OPC_CURVES_MAX, sizeof *curves->title);
    int code = scratch && curves->run && curves->group && curves->panel && curves->title
                   ? OPC_OK
                   : opc_curves_no_memory(err);
    struct opc_curves_reading reading = {.curves = curves, .plan = plan};
    if (!code)
        code = opc_curves_find(&reading, n, dir, err);
    if (!code && curves->runs == 0)
        code = *reading.nearest ? opc_curves_only_none(&reading, err)
                                : opc_fail(err, OPC_EUSER, "there are no runs to draw");
    if (!code)
        code = drop_untimed(curves, err);
    /* Groups with their names, then their bands. */
    if (!code)
        code = opc_curves_form_groups(curves, plan, err);
    for (int g = 0; g < curves->groups && !code; g++)
        code = opc_curves_make_band(curves, g, scratch, err);
    opc_free(scratch);
    if (code)
        opc_curves_free(curves);
    else
        *out = curves;
    return code;
}

/* Accepts curves that were read only in part. */
void opc_curves_free(struct opc_curves *curves)
{
    if (!curves)
        return;
    for (int i = 0; i < curves->runs; i++)
        opc_curves_run_free(&curves->run[i]);
    for (int g = 0; g < curves->groups; g++) {
        opc_free(curves->group[g].x);
        opc_free(curves->group[g].low);
        opc_free(curves->group[g].middle);
        opc_free(curves->group[g].high);
    }
    opc_free(curves->run);
    opc_free(curves->group);
    opc_free(curves->panel);
    opc_free(curves->title);
    opc_free(curves);
}
