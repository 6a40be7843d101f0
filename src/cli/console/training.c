/* SPDX-License-Identifier: MIT */
/* A run in the foreground: its table, its bar and Ctrl-C. Called by `opc train` and `opc resume`.
 *
 * Invariant: the display only reads; whether there is one, and how often it is called, changes
 * nothing in the run. */
#include "cli/console/training.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/console/display.h"
#include "opc/train.h"
#include "run/estimate.h"
#include "run/files/rundir.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* ---- display --------------------------------------------------------------------------------- */

struct display {
    bool quiet;
    bool missing_error_shown; /* that the model's error is not known */
    int lines;                /* of the table, so far */
    double last;              /* seconds the last epoch took; 0: no epoch was measured */
    int parent;               /* stop once this process is no longer our parent; 0: never */
};

/* Ctrl-C, or the sweep that started us has died. */
static bool stop_asked(void *ctx)
{
    const struct display *display = ctx;
    return opc_stop_wanted() || (display->parent && getppid() != display->parent);
}

/* Seconds of all phases of an epoch; the random phase is not repeated. */
static double sum_of(const double seconds[OPC_PHASES])
{
    double sum = 0;
    for (int p = OPC_PHASE_ACT; p < OPC_PHASES; p++)
        sum += seconds[p];
    return sum;
}

/* Writes a number in few characters, and NaN as "-". */
static const char *print_brief(double v, char out[32])
{
    if (isnan(v))
        snprintf(out, 32, "-");
    else if (fabs(v) >= 0.1 || v == 0)
        snprintf(out, 32, "%.1f", v);
    else
        snprintf(out, 32, "%.4f", v);
    return out;
}

/* The columns of seconds are left out on a terminal that they do not fit on. */
static bool shows_seconds(void)
{
    return opc_terminal_width() >= 84;
}

/* The model's error is that of the equation by which it is used. A column of seconds for each phase
 * of an epoch, with the first letters of its name. */
static void print_table_head(const struct opc_progress *p)
{
    char of[16] = "";
    const bool seconds = shows_seconds();
    if (p->error_equation)
        snprintf(of, sizeof of, "eq. %d", p->error_equation);
    printf("%5s %8s %9s %6s %7s%s\n%5s %8s %9s %6s %7s%s", "", "real", "", "", of,
           seconds ? " | seconds:" : "", "epoch", "steps", "return", "length", "error",
           seconds ? " |" : "");
    for (int k = OPC_PHASE_ACT; seconds && k < OPC_PHASES; k++)
        printf(" %5.4s", opc_phase_name((enum opc_phase)k));
    putchar('\n');
}

/* One row for each epoch; the head is repeated every 40 rows. */
static void print_table_line(struct display *display, const struct opc_progress *p)
{
    char a[32], b[32], c[32];
    const bool seconds = shows_seconds();
    opc_bar_wipe();
    if (display->lines++ % 40 == 0)
        print_table_head(p);
    printf("%5d %8ld %9s %6s %7s%s", p->epoch, p->env_steps, print_brief(p->eval_return, a),
           print_brief(p->eval_length, b), print_brief(p->model_error, c), seconds ? " |" : "");
    for (int k = OPC_PHASE_ACT; seconds && k < OPC_PHASES; k++)
        printf(" %5.*f", p->seconds[k] < 100 ? 1 : 0, p->seconds[k]);
    putchar('\n');
    /* A machine, or a task that does not repeat itself. */
    if (p->error_equation && isnan(p->model_error) && !display->missing_error_shown) {
        display->missing_error_shown = true;
        opc_print_wrapped(0,
                          "(-: the model's error is not known, because the task cannot be played "
                          "again from a recorded state)");
    }
}

/* The phase and how far it is: "improve 40 %", "fit pass 12, held-out error 0.0031, about 60 %". */
static void print_phase(const struct opc_progress *p, char *out, size_t size)
{
    if (p->phase == OPC_PHASE_FIT && p->fit_passes > 0)
        snprintf(out, size, "fit pass %d, held-out error %.3g, about %.0f %%", p->fit_passes,
                 p->fit_holdout, 100 * p->share);
    else
        snprintf(out, size, "%s %.0f %%", opc_phase_name(p->phase), 100 * p->share);
}

static void draw_bar(const struct display *display, const struct opc_progress *p)
{
    char line[320], left[OPC_PRINTED] = "?", value[32], error[32], phase[96];
    const struct opc_estimate e = opc_estimate(p, display->last);
    if (!isnan(e.left))
        opc_print_duration(ceil(e.left), left);
    print_phase(p, phase, sizeof phase);
    /* What matters most comes first: the line is cut where the terminal ends. The time is marked as
     * rough until an epoch was measured, and as a bound while phases are still unknown. */
    snprintf(line, sizeof line,
             "%3.0f %%, %s%s left, epoch %d/%d: %s, return %s, %ld steps, model error %s",
             100 * e.share,
             isnan(e.left) ? ""
             : e.bound     ? ">"
             : e.rough     ? "~"
                           : "",
             left, p->epoch, p->epochs, phase, print_brief(p->eval_return, value), p->env_steps,
             print_brief(p->model_error, error));
    opc_bar_draw(e.share, line);
}

/* After the last epoch the bar is not drawn again. */
static void show_progress(void *ctx, const struct opc_progress *p)
{
    struct display *display = ctx;
    /* Warnings still come through the log. */
    if (display->quiet)
        return;
    if (p->epoch_done) {
        display->last = sum_of(p->seconds);
        print_table_line(display, p);
    }
    if (!(p->epoch_done && p->epoch == p->epochs))
        draw_bar(display, p);
    opc_display_flush();
}

/* ---------------------------------------------------------------------------------------------- */

/* What to do with a run that is done; `dir` as a shell reads it. */
static void print_done(const char *dir)
{
    struct opc_text text = {0};
    opc_text_addf(&text,
                  "done; 'opc plot %s' draws the learning curve, 'opc evaluate %s' plays the "
                  "policy",
                  dir, dir);
    /* A pipe gets one line, for programs that read it. */
    if (isatty(STDOUT_FILENO))
        opc_print_wrapped(0, opc_text_get(&text));
    else
        printf("%s\n", opc_text_get(&text));
    opc_text_free(&text);
}

int opc_training(const struct opc_config *config, const char *dir,
                 const struct opc_training_plan *how, struct opc_err *err)
{
    const bool quiet = how->quiet;
    struct display display = {.quiet = quiet, .parent = how->parent};
    const struct opc_train_plan plan = {
        OPC_SIZED(struct opc_train_plan),
        .dir = dir,
        .resume = how->resume,
        .threads = how->threads,
        .progress = show_progress,
        .stop = stop_asked,
        .ctx = &display,
        .skip_damaged = how->skip_damaged,
    };
    /* A resumed run has epochs that were measured. */
    struct opc_rundir_seconds before = {.epochs = 0};
    if (how->resume)
        opc_rundir_seconds(dir, &before);
    if (before.epochs > 0)
        display.last = before.total / before.epochs;
    /* The first Ctrl-C ends the run in order, the second one at once. */
    opc_stop_catch("\nstopping; once more stops at once\n");
    opc_display_listen(quiet ? OPC_LEVEL_WARN : OPC_LEVEL_INFO);
    int code = opc_train(config, &plan, err);
    opc_bar_wipe();
    /* A stop is not a failure: say how to go on. While a program that plays the task was starting,
     * there is no directory yet. */
    if (code == OPC_ESTOPPED && !opc_is_directory(dir))
        return opc_fail(err, OPC_ESTOPPED, "stopped by request, before the run began");
    char named[OPC_PATH];
    opc_shell_word(dir, named, sizeof named);
    if (code == OPC_ESTOPPED)
        return opc_fail(err, OPC_ESTOPPED, "stopped by request; 'opc resume %s' goes on", named);
    /* Tell the user whether there is a checkpoint to go back to. */
    char a[OPC_PATH], b[OPC_PATH];
    const bool kept = (!opc_path_join(a, dir, "checkpoints/a.opc", NULL) && opc_file_exists(a)) ||
                      (!opc_path_join(b, dir, "checkpoints/b.opc", NULL) && opc_file_exists(b));
    if (code == OPC_EDIVERGED)
        return opc_within(err, "training diverged%s", kept ? " (the last checkpoint is kept)" : "");
    if (code == OPC_EREFUSED)
        return opc_within(err, "training cannot go on, and would end here again if resumed");
    if (code == OPC_EENV)
        return opc_within(err, "the environment failed%s",
                          kept ? " (what was learned before is kept)" : "");
    if (!code && !quiet)
        print_done(named);
    return code;
}
