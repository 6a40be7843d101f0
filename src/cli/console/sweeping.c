/* SPDX-License-Identifier: MIT */
#include "cli/console/sweeping.h"

#include "cli/console/display.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t stops_wanted; /* a handler can reach nothing else */
static volatile sig_atomic_t first;        /* which signal it was */

/* Only the same once more is meant as such: who logs out sends SIGTERM and SIGHUP. */
static void on_signal(int number)
{
    static const char SAID[] =
        "\nstopping, the runs save themselves; once more ends them at once\n";
    if (stops_wanted > 0) {
        stops_wanted += number == first && number != SIGHUP;
        return;
    }
    stops_wanted = 1;
    first = number;
    if (isatty(STDERR_FILENO) && write(STDERR_FILENO, SAID, sizeof SAID - 1) < 0)
        return;
}

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof SIGNALS / sizeof *SIGNALS };

static int stops(void *ctx)
{
    (void)ctx;
    return stops_wanted;
}

/* ---- display --------------------------------------------------------------------------------- */

static void show(void *ctx, const struct opc_tally *t)
{
    char text[256], left[OPC_PRINTED] = "?", failed[32] = "";
    (void)ctx;
    if (t->done == t->tasks)
        return;
    if (t->failed)
        snprintf(failed, sizeof failed, ", %d failed", t->failed);
    if (!isnan(t->left))
        opc_print_duration(ceil(t->left), left);
    snprintf(text, sizeof text, "%3.0f %%, %s left, %d of %d runs done, %d running%s",
             100 * t->share, left, t->done, t->tasks, t->running, failed);
    opc_bar_draw(t->share, text);
}

/* ---------------------------------------------------------------------------------------------- */

int opc_sweeping(const struct opc_sweep *sweep, struct opc_schedule plan, struct opc_tally *tally,
                 struct opc_err *err)
{
    struct sigaction action = {.sa_handler = on_signal}, before[N_SIGNALS];
    sigemptyset(&action.sa_mask);
    stops_wanted = 0;
    for (int i = 0; i < N_SIGNALS; i++) {
        sigaction(SIGNALS[i], &action, &before[i]);
        if (SIGNALS[i] == SIGHUP && before[i].sa_handler == SIG_IGN) /* nohup */
            sigaction(SIGHUP, &before[i], NULL);
    }
    opc_display_listen(OPC_INFO);
    plan.progress = show;
    plan.stops = stops;
    const int code = opc_schedule_run(sweep, &plan, tally, err);
    opc_display_listen(OPC_WARN);
    opc_bar_wipe();
    for (int i = 0; i < N_SIGNALS; i++)
        sigaction(SIGNALS[i], &before[i], NULL);
    return code;
}
