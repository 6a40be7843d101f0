/* SPDX-License-Identifier: MIT */
/* opc_train: makes a run or brings it back, lets Algorithm 1 (train.c) move it, and leaves the
 * result or the reason of a failure in its directory. */
#include "base/clock.h"
#include "base/sized.h"
#include "num/kernel.h"
#include "run/json.h"
#include "run/progress.h"
#include "run/train.h"

#include <math.h>
#include <unistd.h>

int opc_run_tell_status(struct opc_run *run, struct opc_err *err)
{
    opc_progress_update(run);
    run->reported = run->progress;
    return opc_record_status(run->record, "running", NULL, &run->reported, err);
}

static int write_result(struct opc_run *run, struct opc_err *err)
{
    char path[OPC_PATH];
    if (!run->record)
        return OPC_OK;
    int code = opc_run_save_policy(run, err);
    if (!code)
        code = opc_record_status(run->record, "done", NULL, &run->progress, err);
    if (!code)
        code = opc_record_path(run->record, "result.json", path, err);
    if (code)
        return code;
    struct opc_json *j = opc_json_begin();
    opc_json_text(j, "env", run->set->env.name);
    opc_json_whole(j, "seed", run->set->train.seed);
    opc_json_whole(j, "epochs", run->now.epoch);
    opc_json_whole(j, "env_steps", run->now.env_steps);
    opc_json_whole(j, "total_steps", run->now.total_steps);
    opc_json_whole(j, "updates", run->now.updates);
    opc_json_real(j, "eval_return", run->now.eval_return);
    opc_json_real(j, "best_return", run->now.best_return);
    return opc_json_write(j, path, err);
}

/* Makes the run and brings it to where it is to go on. */
static int set_up_run(struct opc_run *run, const struct opc_values *v,
                      const struct opc_train_plan *plan, struct opc_err *err)
{
    char path[OPC_PATH];
    run->began = run->entered = opc_now();
    run->now = (struct opc_whereabouts){.eval_return = (double)NAN,
                                        .eval_length = (double)NAN,
                                        .best_return = (double)NAN,
                                        .model_error = (double)NAN};
    /* A new directory is made only for a run that can begin. */
    int code = plan->resume ? opc_record_open(plan->dir, NULL, &run->record, err) : OPC_OK;
    if (!code)
        code = opc_run_make(run, v, plan, err);
    if (!code && plan->dir && !plan->resume)
        code = opc_record_open(plan->dir, v, &run->record, err);
    if (!code && run->record)
        code = opc_run_open_directory(run, err);
    if (!code && run->record)
        code = opc_run_restore(run, err);
    if (code)
        return code;
    run->progress.epochs = v->train.epochs;
    run->progress.steps_per_epoch = v->train.steps_per_epoch;
    run->progress.epoch = (int)run->now.epoch;
    opc_progress_update(run);
    /* It was raised train.epochs that made the run incomplete again. */
    static const char *const LAST[] = {"result.json", "policy.opc"};
    for (int i = 0; i < 2 && run->now.epoch < v->train.epochs && run->record; i++)
        if (!opc_record_path(run->record, LAST[i], path, NULL))
            unlink(path);
    opc_record_log(run->record, OPC_INFO, "%s: %d observations, %d actions, seed %d, %d threads",
                   v->env.name, run->obs, run->act, v->train.seed, opc_pool_threads(run->pool));
    opc_record_log(run->record, OPC_INFO, "%s", run->memory);
    if (run->model && v->opc.reference_epochs > v->train.epochs)
        opc_record_log(run->record, OPC_WARN,
                       "opc.reference_epochs = %d is more than train.epochs = %d: the window will "
                       "never leave anything out, as with 0",
                       v->opc.reference_epochs, v->train.epochs);
    if (run->now.epoch > 0)
        opc_record_log(run->record, OPC_INFO, "going on after epoch %lld of %d",
                       (long long)run->now.epoch, v->train.epochs);
    else if (run->now.total_steps > 0)
        opc_record_log(run->record, OPC_INFO, "going on after the random phase");
    return opc_run_tell_status(run, err);
}

/* The reason of a failure goes into the directory, too, with how far the run can be resumed from;
 * that this works is not taken for granted. */
static void note_failure(struct opc_run *run, int code, const struct opc_err *err)
{
    struct opc_err ignored;
    const char *state = code == OPC_ESTOPPED    ? "stopped"
                        : code == OPC_EDIVERGED ? "diverged"
                                                : "failed";
    opc_record_log(run->record, OPC_DEBUG, "%s: %s", state, err->text);
    opc_record_status(run->record, state, err->text, &run->reported, &ignored);
}

int opc_train(const struct opc_config *config, const struct opc_train_plan *given,
              struct opc_err *err)
{
    struct opc_run run = {0};
    struct opc_train_plan whole, *plan = &whole;
    struct opc_err own = {0};
    err = err ? err : &own;
    OPC_TRY(opc_sized_read(given, "opc_train_plan", &whole, sizeof whole, err));
    int code = opc_kernels_check(err);
    if (!code)
        code = opc_config_check(config, err);
    if (!code && plan->resume && !plan->dir)
        code = opc_fail(err, OPC_EUSER, "there is no directory to resume a run from");
    if (!code)
        code = set_up_run(&run, &config->set, plan, err);
    const bool began = code == OPC_OK;
    if (!code)
        code = opc_algorithm_1(&run, err);
    if (run.play)
        opc_env_rest(run.play->env); /* before anything is written or freed */
    if (!code)
        code = write_result(&run, err);
    if (code && began)
        note_failure(&run, code, err);
    opc_run_free(&run);
    opc_record_close(run.record);
    return code;
}
