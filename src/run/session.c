/* SPDX-License-Identifier: MIT */
/* opc_train, the library's entry point to a run: builds a run or restores it, lets Algorithm 1
 * (train.c) advance it, and leaves the result, or the reason of a failure, in its directory.
 *
 * Invariant: result.json exists if and only if all epochs are done. It is the last file a run
 * writes, and the first one removed when a finished run is to have more epochs. */
#include "base/clock.h"
#include "base/sized.h"
#include "num/kernel.h"
#include "run/files/json.h"
#include "run/progress.h"
#include "run/train.h"

#include <math.h>
#include <unistd.h>

int opc_run_write_status(struct opc_run *run, struct opc_err *err)
{
    opc_progress_update(run);
    run->reported = run->progress;
    return opc_runlog_status(run->log, "running", NULL, &run->reported, err);
}

/* policy.opc and status.json first: result.json says that they are complete. */
static int write_result(struct opc_run *run, struct opc_err *err)
{
    char path[OPC_PATH];
    if (!run->log)
        return OPC_OK;
    OPC_TRY(opc_run_save_policy(run, "policy.opc", err));
    OPC_TRY(opc_runlog_status(run->log, "done", NULL, &run->progress, err));
    OPC_TRY(opc_runlog_path(run->log, "result.json", path, err));
    struct opc_json *json = opc_json_begin();
    opc_json_text(json, "env", run->set->env.name);
    opc_json_whole(json, "seed", run->set->train.seed);
    opc_json_whole(json, "epochs", run->now.epoch);
    opc_json_whole(json, "env_steps", run->now.env_steps);
    opc_json_whole(json, "total_steps", run->now.total_steps);
    opc_json_whole(json, "updates", run->now.updates);
    opc_json_real(json, "eval_return", run->now.eval_return);
    opc_json_real(json, "best_return", run->now.best_return);
    return opc_json_write(json, path, err);
}

/* What a user wants to know before the first epoch, or where a resumed run goes on. */
static void log_start(const struct opc_run *run)
{
    const struct opc_values *v = run->set;
    opc_runlog_message(
        run->log, OPC_LEVEL_INFO, "%s: %d observation%s, %d action%s, seed %d, %d thread%s",
        v->env.name, run->obs, opc_plural(run->obs), run->act, opc_plural(run->act), v->train.seed,
        opc_pool_threads(run->pool), opc_plural(opc_pool_threads(run->pool)));
    opc_runlog_message(run->log, OPC_LEVEL_INFO, "%s", run->memory);
    if (*run->doubt)
        opc_runlog_message(run->log, OPC_LEVEL_WARN, "%s", run->doubt);
    if (run->model && v->opc.reference_epochs > v->train.epochs)
        opc_runlog_message(run->log, OPC_LEVEL_WARN,
                           "opc.reference_epochs = %d is more than train.epochs = %d: the window "
                           "will never leave anything out, as with 0",
                           v->opc.reference_epochs, v->train.epochs);
    if (run->model && opc_mixes_past(v) && v->opc.past_ratio == 1)
        opc_runlog_message(run->log, OPC_LEVEL_WARN,
                           "opc.past_ratio = 1: every rollout may start anywhere in the past, as "
                           "with opc.reference_epochs = 0, so opc.reference_epochs = %d changes "
                           "nothing",
                           v->opc.reference_epochs);
    if (opc_plans(v) && !v->train.fit_first)
        opc_runlog_message(run->log, OPC_LEVEL_WARN,
                           "train.fit_first = false: the first epoch is planned through networks "
                           "that were never fitted; set train.fit_first = true");
    char idle[OPC_IDLE];
    for (int next = 0; opc_values_idle(v, &next, idle);)
        opc_runlog_message(run->log, OPC_LEVEL_WARN, "%s", idle);
    if (*v->train.prefill && run->now.total_steps == 0)
        opc_runlog_message(run->log, OPC_LEVEL_INFO,
                           "begins with %d steps in %d episodes of %s; %s random ones follow",
                           run->prefill.steps, run->prefill.episodes, v->train.prefill,
                           run->prefill.steps < v->train.random_steps ? "fewer" : "no");
    if (run->now.epoch > 0)
        opc_runlog_message(run->log, OPC_LEVEL_INFO, "going on after epoch %lld of %d",
                           (long long)run->now.epoch, v->train.epochs);
    else if (run->now.total_steps > 0)
        opc_runlog_message(run->log, OPC_LEVEL_INFO, "going on after the random phase");
}

/* Builds the run and brings it to the point from which it continues. What was built stays in `run`
 * for opc_run_free, also on failure. */
static int prepare_run(struct opc_run *run, const struct opc_values *v,
                       const struct opc_train_plan *plan, struct opc_err *err)
{
    char path[OPC_PATH];
    /* nothing has been evaluated or measured yet */
    run->began = run->entered = opc_now();
    run->now = (struct opc_run_state){.eval_return = (double)NAN,
                                      .eval_length = (double)NAN,
                                      .best_return = (double)NAN,
                                      .model_error = (double)NAN};
    /* A resumed run locks its directory before anything else. A new directory is made last, only
     * for a run that can begin. */
    if (plan->resume)
        OPC_TRY(opc_runlog_open(plan->dir, NULL, &run->log, err));
    OPC_TRY(opc_run_make(run, v, plan, err));
    if (plan->dir && !plan->resume)
        OPC_TRY(opc_runlog_open(plan->dir, v, &run->log, err));
    if (run->log) {
        OPC_TRY(opc_run_open_directory(run, err));
        OPC_TRY(opc_run_restore(run, err));
    }
    if (run->now.total_steps > 0) /* they are in the run's own recording */
        opc_episodes_file_free(&run->prefill);
    run->progress.epochs = v->train.epochs;
    run->progress.steps_per_epoch = v->train.steps_per_epoch;
    run->progress.epoch = (int)run->now.epoch;
    /* A model that corrects a recording is measured by eq. 5. */
    if (run->model)
        run->progress.error_equation = run->transition->type->corrects ? 5 : 2;
    opc_progress_update(run);
    /* With a larger train.epochs a finished run is incomplete again. */
    static const char *const LAST[] = {"result.json", "policy.opc"};
    for (int i = 0; i < 2 && run->now.epoch < v->train.epochs && run->log; i++)
        if (!opc_runlog_path(run->log, LAST[i], path, NULL))
            unlink(path);
    log_start(run);
    return opc_run_write_status(run, err);
}

/* Writes the reason of a failure to log.txt and status.json, with the epoch from which the run can
 * be resumed. Writing may fail, too (a full disk, say); that is ignored, because the caller reports
 * the first failure. */
static void report_failure(struct opc_run *run, int code, const struct opc_err *err)
{
    struct opc_err ignored;
    const char *state = code == OPC_ESTOPPED    ? "stopped"
                        : code == OPC_EDIVERGED ? "diverged"
                                                : "failed";
    if (code == OPC_ESTOPPED) /* "stopped while fitting the model" */
        opc_runlog_message(run->log, OPC_LEVEL_DEBUG, "%s", err->text);
    else
        opc_runlog_message(run->log, OPC_LEVEL_DEBUG, "%s: %s", state, err->text);
    opc_runlog_status(run->log, state, err->text, &run->reported, &ignored);
}

int opc_train(const struct opc_config *config, const struct opc_train_plan *given,
              struct opc_err *err)
{
    struct opc_run run = {0};
    struct opc_values set = config->set;
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
        code = opc_values_settle(&set, err);
    if (!code)
        code = prepare_run(&run, &set, plan, err);
    /* A directory that was refused must not get our status: it may belong to another process. */
    const bool began = code == OPC_OK;
    if (!code)
        code = opc_algorithm_1(&run, err);
    if (run.play)
        opc_env_rest(run.play->env); /* before anything is written or freed */
    if (!code)
        code = write_result(&run, err);
    if (code && began)
        report_failure(&run, code, err);
    opc_run_free(&run);
    opc_runlog_close(run.log);
    return code;
}
