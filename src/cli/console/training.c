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

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* ---- display --------------------------------------------------------------------------------- */

struct display {
    bool quiet;
    int lines;   /* of the table, so far */
    double last; /* seconds the last epoch took; 0: no epoch is complete yet */
    int parent;  /* stop once this process is no longer our parent; 0: never */
};

/* Ctrl-C, or the sweep that started us has died. */
static bool stop_asked(void *ctx)
{
    const struct display *display = ctx;
    return opc_stop_wanted() || (display->parent && getppid() != display->parent);
}

/* Seconds of all phases of an epoch. */
static double sum_of(const double seconds[OPC_PHASES])
{
    double sum = 0;
    for (int p = 0; p < OPC_PHASES; p++)
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

/* A column for each phase of an epoch, with the first letters of its name. */
static void print_table_head(void)
{
    printf("%5s %8s %9s %6s %7s | seconds:\n%5s %8s %9s %6s %7s |", "", "real", "", "", "model",
           "epoch", "steps", "return", "length", "error");
    for (int k = OPC_PHASE_ACT; k < OPC_PHASES; k++)
        printf(" %5.4s", opc_phase_name((enum opc_phase)k));
    putchar('\n');
}

/* One row for each epoch; the head is repeated every 40 rows. */
static void print_table_line(struct display *display, const struct opc_progress *p)
{
    char a[32], b[32], c[32];
    opc_bar_wipe();
    if (display->lines++ % 40 == 0)
        print_table_head();
    printf("%5d %8ld %9s %6s %7s |", p->epoch, p->env_steps, print_brief(p->eval_return, a),
           print_brief(p->eval_length, b), print_brief(p->model_error, c));
    for (int k = OPC_PHASE_ACT; k < OPC_PHASES; k++)
        printf(" %5.*f", p->seconds[k] < 100 ? 1 : 0, p->seconds[k]);
    putchar('\n');
}

/* Share of all work that is done, assuming that the current epoch takes as long as the last one. */
static double share_done(const struct display *display, const struct opc_progress *p)
{
    double part = 0;
    if (p->epoch == 0)
        return 0;
    if (display->last > 0)
        part = fmin(sum_of(p->seconds) / display->last, 0.99);
    return (p->epoch - 1 + (p->epoch_done ? 1 : part)) / p->epochs;
}

static void draw_bar(const struct display *display, const struct opc_progress *p)
{
    char line[256], left[OPC_PRINTED] = "?", value[32], error[32];
    /* The time left is estimated from this session only: a resumed run starts at `before`. */
    const double done = share_done(display, p), before = (double)(p->first_epoch - 1) / p->epochs;
    if (done > before && display->last > 0)
        opc_print_duration(p->elapsed * (1 - done) / (done - before), left);
    /* What matters most comes first: the line is cut where the terminal ends. */
    snprintf(line, sizeof line,
             "%3.0f %%, %s left, return %s, epoch %d/%d: %s %.0f %%, %ld steps, model error %s",
             100 * done, left, print_brief(p->eval_return, value), p->epoch, p->epochs,
             opc_phase_name(p->phase), 100 * p->share, p->env_steps,
             print_brief(p->model_error, error));
    opc_bar_draw(done, line);
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
    if (code == OPC_EENV)
        return opc_within(err, "the environment failed%s",
                          kept ? " (what was learned before is kept)" : "");
    if (!code && !quiet)
        printf("done; 'opc plot %s' draws the learning curve, 'opc evaluate %s' plays the policy\n",
               named, named);
    return code;
}
