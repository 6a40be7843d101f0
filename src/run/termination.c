/* SPDX-License-Identifier: MIT */
/* Where imagined steps end: by the task's own function, or, where it has none and
 * model.termination = learned, by what the recording says about it (model/termination.h). train.c
 * fits it together with the model, imagine.c asks.
 *
 * Invariant: a task that has a function is always asked itself. */
#include "model/termination.h"
#include "opc/mem.h"
#include "run/train.h"

enum { WHICH_TERMINATION = 20 }; /* the stream of its first weights; others: run/assemble.c */

int opc_run_make_termination(struct opc_run *run, struct opc_err *err)
{
    if (run->set->model.termination != OPC_TERMINATION_LEARNED || run->play->env->type->terminal)
        return OPC_OK;
    return opc_termination_create(run->obs, run->seed, WHICH_TERMINATION, &run->termination, err);
}

int opc_run_fit_termination(struct opc_run *run, struct opc_err *err)
{
    const int n = opc_episodes_steps(run->past);
    struct opc_termination_report report;
    if (!run->termination)
        return OPC_OK;
    const float **state = opc_alloc((size_t)n, sizeof *state);
    bool *end = opc_alloc((size_t)n, sizeof *end);
    int code = OPC_OK;
    if (!state || !end)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to learn where the task ends");
    /* the states that steps led to, in the order they were played */
    for (int b = 0, i = 0; b < opc_episodes_count(run->past) && !code; b++)
        for (int t = 0; t < opc_episodes_length(run->past, b); t++, i++) {
            const struct opc_step step = opc_episodes_at(run->past, b, t);
            state[i] = step.next;
            end[i] = step.terminal;
        }
    if (!code)
        code = opc_termination_fit(run->termination, n, state, end, run->seed,
                                   opc_epoch_number(run), (uint32_t)run->row.fits, &report, err);
    opc_free(state);
    opc_free(end);
    if (!code && run->log)
        opc_runlog_message(run->log, OPC_LEVEL_DEBUG,
                           "termination: %d of %d recorded steps end the task; %d of them are not "
                           "predicted, and %d others are",
                           report.ends, report.states, report.missed, report.false_alarms);
    return code;
}

void opc_run_is_terminal(void *ctx, int n, const float *s, const float *a, const float *next,
                         bool *out)
{
    const struct opc_run *run = ctx;
    if (run->termination)
        opc_termination_predict(run->termination, n, next, out);
    else
        opc_env_terminal(run->play->env, n, s, a, next, out);
}
