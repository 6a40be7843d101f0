/* SPDX-License-Identifier: MIT */
/* opc repro - figures and tables of the paper, from nothing. */
#include "base/clock.h"
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "cli/console/sweeping.h"
#include "opc/mem.h"
#include "study/repro.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(TEXT, out,         "",      0, 200,  "directory of runs and exhibits; by default repro-TIER") \
    X(TEXT, tier,        "small", 1, 64,   "how much to spend: smoke (minutes), small (hours for a figure of runs), full (the paper's, days)") \
    X(INT,  jobs,        "0",     0, 4096, "runs at a time; 0: one per processor")                 \
    X(INT,  threads,     "0",     0, 1024, "threads of each run; 0: the processors divided by the runs at a time") \
    X(TEXT, launcher,    "local", 1, 64,   "how runs are started; local: processes on this machine") \
    X(TEXT, experiments, "",      0, 255,  "directory of the experiment files; by default experiments/paper, or those installed") \
    X(BOOL, redraw,      "false", 0, 1,    "make exhibits again that are up to date")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

struct work {
    const struct given *given;
    const struct opc_launcher_type *launcher;
    char out[OPC_TEXT_SIZE], dir[OPC_PATH];
};

struct row { /* of the summary */
    const char *name;
    char result[64];
    double seconds;
    struct opc_standing standing;
};

/* ---- one experiment -------------------------------------------------------------------------- */

static void show(void *ctx, double done, const char *what)
{
    char text[256];
    snprintf(text, sizeof text, "%3.0f %%, %s: %s", 100 * done, (const char *)ctx, what);
    opc_bar_draw(done, text);
}

static int draw(const struct work *w, struct opc_experiment *x, struct opc_err *err)
{
    const int code = opc_experiment_draw(x, w->given->threads, show, x->name, err);
    opc_bar_wipe();
    if (!code)
        printf("%s -> %s/%s.json and its pictures and tables\n", x->name, w->out, x->name);
    fflush(stdout);
    return code;
}

/* Whether runs failed or were stopped, what is complete is drawn. */
static int make(const struct work *w, struct opc_experiment *x, struct row *row,
                struct opc_err *err)
{
    struct opc_standing *s = &row->standing;
    int code = OPC_OK;
    if (s->current && !w->given->redraw) {
        printf("%s is up to date\n", x->name);
        snprintf(row->result, sizeof row->result, "up to date");
        return OPC_OK;
    }
    printf("%s: %s", x->name, x->file->title);
    if (s->runs)
        printf("%s%d run%s, %d of them done", *x->file->title ? "; " : "", s->runs,
               s->runs == 1 ? "" : "s", s->complete);
    putchar('\n');
    fflush(stdout);
    if (s->complete < s->runs) {
        const struct opc_schedule plan = {.out = x->runs_dir,
                                          .jobs = w->given->jobs,
                                          .threads = w->given->threads,
                                          .launcher = w->launcher};
        code = opc_sweeping(x->runs, plan, NULL, err);
    }
    opc_experiment_standing(x, s);
    if (code && code != OPC_EIO && code != OPC_ESTOPPED)
        return code;
    struct opc_err fault = {0};
    if (s->complete > 0 || !x->runs) {
        const int drawn = draw(w, x, &fault);
        if (drawn && !code)
            *err = fault;
        else if (drawn)
            fprintf(stderr, "opc: %s\n", fault.text);
        code = code ? code : drawn;
        opc_experiment_standing(x, s);
    }
    if (code == OPC_ESTOPPED)
        snprintf(row->result, sizeof row->result, "stopped, %d of %d runs", s->complete, s->runs);
    else if (!code)
        snprintf(row->result, sizeof row->result, "made");
    return code;
}

static int reproduce(const struct work *w, struct row *row, struct opc_err *err)
{
    struct opc_experiment *x;
    const double began = opc_now();
    snprintf(row->result, sizeof row->result, "FAILED");
    int code = opc_experiment_open(w->dir, row->name, w->given->tier, w->out, &x, err);
    if (!code) {
        opc_experiment_standing(x, &row->standing);
        code = make(w, x, row, err);
        opc_experiment_close(x);
    }
    row->seconds = opc_now() - began;
    return code;
}

/* ---- many ------------------------------------------------------------------------------------ */

static void print_summary(const struct row *row, int n)
{
    printf("\n%-12s %-26s %14s  %s\n", "experiment", "result", "time",
           "claims: supported, not, undecided");
    for (int i = 0; i < n; i++) {
        char time[OPC_PRINTED];
        const struct opc_standing *s = &row[i].standing;
        printf("%-12s %-26s %14s", row[i].name, row[i].result,
               opc_print_duration(row[i].seconds, time));
        if (s->made)
            printf("  %d, %d, %d", s->supported, s->refuted, s->undecided);
        putchar('\n');
    }
}

static int reproduce_all(const struct work *w, char *const *name, int n, struct opc_err *err)
{
    struct opc_text failed = {0};
    int failures = 0, done = 0, code = OPC_OK;
    struct row *row = opc_alloc((size_t)n, sizeof *row);
    if (!row)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d experiments", n);
    for (; done < n && code != OPC_ESTOPPED; done++) {
        row[done].name = name[done];
        code = reproduce(w, &row[done], err);
        if (!code || code == OPC_ESTOPPED || n == 1)
            continue;
        fflush(stdout);
        fprintf(stderr, "opc: %s: %s\n", name[done], err->text);
        if (failures++ < 8)
            opc_text_addf(&failed, "%s%.40s", failures > 1 ? ", " : "", name[done]);
    }
    if (n > 1)
        print_summary(row, done);
    if (n > 1 && code != OPC_ESTOPPED)
        code = failures ? opc_fail(err, OPC_EIO, "%d of %d experiments failed: %s%s", failures, n,
                                   opc_text_get(&failed), failures > 8 ? ", ..." : "")
                        : OPC_OK;
    opc_text_free(&failed);
    opc_free(row);
    return code;
}

static bool list_one(const struct work *w, const char *name)
{
    struct opc_experiment *x;
    struct opc_standing s;
    struct opc_err err = {0};
    char state[96];
    if (opc_experiment_open(w->dir, name, w->given->tier, w->out, &x, &err)) {
        printf("%-12s %-34s %s\n", name, "cannot be made", err.text);
        return false;
    }
    opc_experiment_standing(x, &s);
    if (s.current)
        snprintf(state, sizeof state, "made");
    else if (s.made && *s.tier && *x->tier && strcmp(s.tier, x->tier) != 0)
        snprintf(state, sizeof state, "made of tier %.20s", s.tier);
    else
        snprintf(state, sizeof state, "%s", s.made ? "made, out of date" : "-");
    const size_t used = strlen(state);
    if (s.runs)
        snprintf(state + used, sizeof state - used, ", %d of %d runs", s.complete, s.runs);
    printf("%-12s %-34s %s\n", name, state, x->file->title);
    opc_experiment_close(x);
    return true;
}

static int list(const struct work *w, char *const *name, int n, struct opc_err *err)
{
    char in[OPC_TEXT_SIZE + 8];
    int good = 0;
    snprintf(in, sizeof in, "in %s", w->out);
    printf("%-12s %-34s %s\n", "experiment", in, "title");
    for (int i = 0; i < n; i++)
        good += list_one(w, name[i]);
    return n == 0 || good ? OPC_OK
                          : opc_fail(err, OPC_EUSER, "none of the %d experiments can be made", n);
}

static int run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct work w = {.given = &given};
    int first, n = 0;
    char **known = NULL;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (first == argc)
        return opc_fail(err, OPC_EUSER,
                        "name experiments, or 'all'; 'opc repro list' shows what there is");
    const bool all = strcmp(argv[first], "all") == 0, only_list = !strcmp(argv[first], "list");
    if ((all || only_list) && argc - first > 1)
        return opc_fail(err, OPC_EUSER, "'%s' stands alone; '%s' is one word too many", argv[first],
                        argv[first + 1]);
    w.launcher = opc_launcher_find(given.launcher, err);
    if (!w.launcher)
        return OPC_EUSER;
    if (*given.out)
        snprintf(w.out, sizeof w.out, "%s", given.out);
    else
        snprintf(w.out, sizeof w.out, "repro-%.200s", given.tier);
    /* Paths of files need no directory to look in. */
    bool only_paths = !all && !only_list && !*given.experiments;
    for (int i = first; i < argc; i++)
        only_paths = only_paths && strchr(argv[i], '/');
    if (!only_paths)
        code = opc_experiments_dir(given.experiments, w.dir, err);
    if (!code && (all || only_list))
        code = opc_experiments_list(w.dir, &known, &n, err);
    if (code)
        return code;
    if (all && n == 0)
        code = opc_fail(err, OPC_EUSER, "%s has no experiments", w.dir);
    else if (only_list)
        code = list(&w, known, n, err);
    else
        code = reproduce_all(&w, all ? known : argv + first, all ? n : argc - first, err);
    for (int i = 0; i < n; i++)
        opc_free(known[i]);
    opc_free(known);
    return code;
}

const struct opc_command opc_cmd_repro = {
    .name = "repro",
    .usage = "NAME... | all | list [OPTION...]",
    .summary = "reproduce figures and tables of the paper",
    .detail =
        "NAME is an experiment, a file NAME.yaml: its runs are run, as by 'opc sweep', in "
        "OUT/runs/NAME, and made into an exhibit: pictures OUT/NAME.svg, .pdf and .png, the "
        "numbers behind them as OUT/NAME.csv, and the paper's claims with what was measured in "
        "OUT/NAME.json. all: every experiment, going on after one that failed. list: what there "
        "is, and how it stands in OUT.\n"
        "The same command goes on after Ctrl-C or a failure, and does nothing where nothing is "
        "missing. What is drawn while runs are missing says so in its caption.",
    .words = "all list",
    .options = &options,
    .run = run,
};
