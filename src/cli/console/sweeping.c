/* SPDX-License-Identifier: MIT */
/* A sweep in the foreground: reads its options, installs the handlers, runs the schedule and draws
 * the bar. Called by `opc sweep ... run` and `opc repro`.
 *
 * Invariant: when it returns, handlers and log level are as before, because `opc repro` calls it
 * once for each experiment. */
#include "cli/console/sweeping.h"

#include "base/log.h"
#include "cli/console/display.h"
#include "env/types.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- options --------------------------------------------------------------------------------- */

int opc_sweeping_plan(const struct opc_sweeping_given *given, struct opc_schedule *plan,
                      struct opc_err *err)
{
    const struct opc_launcher_type *launcher = opc_launcher_find(given->launcher, err);
    if (!launcher)
        return OPC_EUSER;
    const bool detached = opc_launcher_is_detached(launcher);
    /* An option that would do nothing is a misunderstanding. */
    const char *idle = *given->partition  ? "--partition"
                       : *given->time     ? "--time"
                       : *given->memory   ? "--memory"
                       : *given->options  ? "--slurm-options"
                       : given->pack != 1 ? "--pack"
                       : given->wait      ? "--wait"
                                          : NULL;
    if (idle && !detached)
        return opc_fail(err, OPC_EUSER, "%s is for --launcher slurm", idle);
    if (detached && given->shared)
        return opc_fail(err, OPC_EUSER,
                        "--shared is for --launcher local; jobs of %s always share the directory",
                        launcher->name);
    *plan = (struct opc_schedule){.jobs = given->jobs,
                                  .threads = given->threads,
                                  .launcher = launcher,
                                  .shared = given->shared,
                                  .claim_timeout = given->claim_timeout,
                                  .wait = given->wait,
                                  .resources = {.partition = given->partition,
                                                .time = given->time,
                                                .memory = given->memory,
                                                .options = given->options,
                                                .pack = given->pack}};
    return OPC_OK;
}

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t stops_wanted; /* set by the handler: 1 stops in order, 2 at once */
static volatile sig_atomic_t first_signal; /* which signal it was */

/* A second stop counts only if the same signal repeats: logging out sends both SIGTERM and SIGHUP.
 */
static void on_signal(int number)
{
    static const char SAID[] =
        "\nstopping, the runs save themselves; once more ends them at once\n";
    if (stops_wanted > 0) {
        stops_wanted += number == first_signal && number != SIGHUP;
        return;
    }
    stops_wanted = 1;
    first_signal = number;
    if (isatty(STDERR_FILENO) && write(STDERR_FILENO, SAID, sizeof SAID - 1) < 0)
        return;
}

/* For the schedule, which asks between its steps. */
static int stops_asked(void *ctx)
{
    (void)ctx;
    return stops_wanted;
}

/* ---- display --------------------------------------------------------------------------------- */

/* The bar: share, time left, and counts of runs. When all are done there is nothing left to show.
 */
static void show_tally(void *ctx, const struct opc_tally *t)
{
    char text[256], left[OPC_PRINTED] = "?", failed[32] = "";
    (void)ctx;
    if (t->done == t->tasks)
        return;
    if (t->failed)
        snprintf(failed, sizeof failed, ", %d failed", t->failed);
    if (!isnan(t->left))
        opc_print_duration(ceil(t->left), left);
    snprintf(text, sizeof text, "%3.0f %%, %s left, %d of %d run%s done, %d running%s",
             100 * t->share, left, t->done, t->tasks, opc_plural(t->tasks), t->running, failed);
    opc_bar_draw(t->share, text);
}

/* ---------------------------------------------------------------------------------------------- */

/* Runs whose engine this build lacks fail, each when its turn comes; that is said before hours of
 * computing. The first such task stands for all of its engine. */
static void warn_of_engines(const struct opc_sweep *sweep)
{
    const char *engine = "";
    for (int i = 0; i < sweep->tasks; i++) {
        const char *name = sweep->task[i].set.env.name, *lacks = opc_env_lacks(name);
        int n = 0;
        if (!lacks || strcmp(lacks, engine) == 0)
            continue;
        for (int k = 0; k < sweep->tasks; k++) {
            const char *other = opc_env_lacks(sweep->task[k].set.env.name);
            n += other && strcmp(other, lacks) == 0;
        }
        opc_log(OPC_LEVEL_WARN,
                "%d of %d run%s cannot be made: %s needs %s, which this build lacks; 'opc doctor' "
                "says how to get it",
                n, sweep->tasks, opc_plural(sweep->tasks), name, lacks);
        engine = lacks;
    }
}

int opc_sweeping(const struct opc_sweep *sweep, struct opc_schedule plan, struct opc_tally *tally,
                 struct opc_err *err)
{
    struct sigaction action = {.sa_handler = on_signal}, before[OPC_STOP_SIGNALS];
    sigemptyset(&action.sa_mask);
    stops_wanted = 0;
    /* A SIGHUP that nohup ignores stays ignored. */
    for (int i = 0; i < OPC_STOP_SIGNALS; i++) {
        sigaction(opc_stop_signals[i], &action, &before[i]);
        if (opc_stop_signals[i] == SIGHUP && before[i].sa_handler == SIG_IGN) /* nohup */
            sigaction(SIGHUP, &before[i], NULL);
    }
    /* Without a terminal the lines of the log are the display. */
    opc_display_listen(OPC_LEVEL_INFO);
    warn_of_engines(sweep);
    plan.progress = show_tally;
    plan.stops = stops_asked;
    const int code = opc_schedule_run(sweep, &plan, tally, err);
    opc_display_listen(OPC_LEVEL_WARN);
    opc_bar_wipe();
    for (int i = 0; i < OPC_STOP_SIGNALS; i++)
        sigaction(opc_stop_signals[i], &before[i], NULL);
    return code;
}
