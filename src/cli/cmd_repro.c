/* SPDX-License-Identifier: MIT */
/* opc repro - reproduces figures and tables of the paper, from nothing.
 *
 * An experiment is a file: its runs are run as by `opc sweep`, and made into an exhibit. Invariant:
 * the command can be stopped and given again at any time; it goes on where it was and does nothing
 * where nothing is missing. */
#include "base/clock.h"
#include "base/log.h"
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "cli/console/sweeping.h"
#include "opc/mem.h"
#include "plot/draw.h"
#include "study/cost.h"
#include "study/repro.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,         "",      0, 4095,  "directory of runs and exhibits; by default repro-TIER, with KEY=VALUE repro-TIER-KEY_VALUE") \
    X(TEXT, tier,        "small", 1, 64,   "how much to spend: smoke (a minute or two), small (hours for a figure of runs), full (the paper's sizes, for a cluster)") \
    OPC_SWEEPING_OPTIONS(X)                                                                        \
    X(PATH, experiments, "",      0, 4095,  "directory of the experiment files; by default experiments/paper, or those installed") \
    X(TEXTS, add,        "",      1, 4095,  "directory with tables of earlier merges, DIR/NAME/merged.csv, DIR/merged.csv or those of other experiments in DIR: complete runs of the same settings are taken over; may be repeated") \
    X(BOOL, draw_only,   "false", 0, 1,    "start no runs, and draw those that are complete")       \
    X(BOOL, redraw,      "false", 0, 1,    "draw exhibits again even if they are up to date")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* What all experiments of one call share. */
struct work {
    const struct given *given;
    struct opc_schedule schedule;
    char out[OPC_PATH], dir[OPC_PATH];
    int sets;
    char *const *set; /* [sets] "section.name=value" */
};

/* One line of the summary that is printed after several experiments. */
struct row {
    const char *name;
    char id[128]; /* of its exhibit: the name without folder and ending; "": it was not opened */
    char result[64];
    double seconds;
    struct opc_standing standing;
};

/* ---- one experiment -------------------------------------------------------------------------- */

struct drawing {
    const char *name; /* of the experiment */
    struct opc_pace pace;
};

static void show_progress(void *ctx, double done, const char *what)
{
    struct drawing *drawing = ctx;
    char text[256];
    snprintf(text, sizeof text, "%s: %s", drawing->name, what);
    opc_pace_show(&drawing->pace, done, text);
}

/* Prints what the experiment is, and how many of its runs there are already. */
static void print_begin(void *ctx, const struct opc_experiment *experiment,
                        const struct opc_standing *standing)
{
    (void)ctx;
    printf("%s: %s", experiment->name, experiment->file->title);
    if (standing->runs)
        printf("%s%d run%s, %d of them done", *experiment->file->title ? "; " : "", standing->runs,
               opc_plural(standing->runs), standing->complete);
    if (standing->restored)
        printf(", %d of these from tables", standing->restored);
    if (standing->runs && strncmp(experiment->runs_dir, "sweep-", 6) == 0)
        printf(", in %s", experiment->runs_dir);
    putchar('\n');
    fflush(stdout);
}

/* The claims of the exhibit that is there, each with its verdict and what was measured. */
static void print_claims(const struct work *work, const struct row *row, bool alone)
{
    static const char *const VERDICT[] = {[OPC_VERDICT_SUPPORTED] = "supported",
                                          [OPC_VERDICT_NOT_SUPPORTED] = "not supported",
                                          [OPC_VERDICT_UNDECIDED] = "undecided"};
    char path[OPC_PATH], file[160];
    struct opc_exhibit_read *read;
    snprintf(file, sizeof file, "%s.json", row->id);
    /* What cannot be read was reported when it was made. */
    if (!row->standing.made || row->standing.queued || opc_path_join(path, work->out, file, NULL) ||
        opc_exhibit_load(path, &read, NULL))
        return;
    if (read->claims)
        printf(alone ? "\n" : "\n%s: %s\n", row->id, read->title);
    for (int i = 0; i < read->claims; i++) {
        struct opc_text text = {0};
        opc_text_addf(&text, "%s (%s)", read->claim[i].claim, read->claim[i].measured);
        printf("  %-13s ", VERDICT[read->claim[i].verdict]);
        opc_print_wrapped(16, opc_text_get(&text));
        opc_text_free(&text);
    }
    opc_exhibit_unload(read);
}

/* Makes an experiment and says what came out, here and in its row of the summary. */
static int make_experiment(const struct work *work, struct opc_experiment *experiment,
                           struct row *row, struct opc_err *err)
{
    struct drawing drawing = {.name = experiment->name};
    const struct opc_experiment_plan plan = {.schedule = work->schedule,
                                             .redraw = work->given->redraw,
                                             .draw_only = work->given->draw_only,
                                             .kept = &work->given->add,
                                             .sweep = opc_sweeping,
                                             .begin = print_begin,
                                             .progress = show_progress,
                                             .ctx = &drawing};
    bool drawn;
    const int code = opc_experiment_make(experiment, &plan, &row->standing, &drawn, err);
    opc_bar_wipe();
    /* After a failure the exhibit that is there may be an older one, of another tier perhaps. */
    if (code && !drawn)
        row->standing.made = false;
    if (drawn)
        printf("%s -> %s/%s.json and its %stables\n", experiment->name, work->out, experiment->name,
               opc_draw_version() ? "pictures and " : "");
    else if (!code && row->standing.queued)
        printf("%s: %d run%s with %s; the same command draws when they are done\n",
               experiment->name, row->standing.queued, row->standing.queued == 1 ? " is" : "s are",
               work->schedule.launcher->name);
    else if (!code)
        printf("%s is up to date\n", experiment->name);
    fflush(stdout);
    /* "FAILED" is there already. */
    if (code == OPC_ESTOPPED)
        snprintf(row->result, sizeof row->result, "stopped, %d of %d run%s", row->standing.complete,
                 row->standing.runs, opc_plural(row->standing.runs));
    else if (!code && row->standing.queued)
        snprintf(row->result, sizeof row->result, "queued, %d of %d run%s done",
                 row->standing.complete, row->standing.runs, opc_plural(row->standing.runs));
    else if (!code)
        snprintf(row->result, sizeof row->result, drawn ? "made" : "up to date");
    return code;
}

static struct opc_experiment_ask ask_for(const struct work *work, const char *name)
{
    return (struct opc_experiment_ask){.dir = work->dir,
                                       .name = name,
                                       .tier = work->given->tier,
                                       .out = work->out,
                                       .sets = work->sets,
                                       .set = work->set,
                                       .no_runs = work->given->draw_only};
}

/* One experiment, with its row of the summary. */
static int reproduce(const struct work *work, struct row *row, struct opc_err *err)
{
    struct opc_experiment *experiment;
    const double began = opc_now();
    /* Until it has gone well. */
    snprintf(row->result, sizeof row->result, "FAILED");
    const struct opc_experiment_ask ask = ask_for(work, row->name);
    int code = opc_experiment_open(&ask, &experiment, err);
    if (!code) {
        snprintf(row->id, sizeof row->id, "%s", experiment->name);
        code = make_experiment(work, experiment, row, err);
        opc_experiment_close(experiment);
    }
    row->seconds = opc_now() - began;
    return code;
}

/* ---- many ------------------------------------------------------------------------------------ */

/* Result, time and verdicts of the claims, experiment by experiment. */
static void print_summary(const struct row *row, int n)
{
    printf("\n%-12s %-26s %14s  %s\n", "experiment", "result", "time",
           "claims: supported, not, undecided");
    for (int i = 0; i < n; i++) {
        char time[OPC_PRINTED];
        const struct opc_standing *standing = &row[i].standing;
        printf("%-12s %-26s %14s", row[i].name, row[i].result,
               opc_print_duration(row[i].seconds, time));
        if (standing->made)
            printf("  %d, %d, %d", standing->supported, standing->refuted, standing->undecided);
        putchar('\n');
    }
}

/* Goes on after a failure, but not after a stop. A single experiment returns its own error. */
static int reproduce_all(const struct work *work, char *const *name, int n, struct opc_err *err)
{
    struct opc_text failed = {0};
    int failures = 0, done = 0, code = OPC_OK;
    /* Said before hours of computing, not after them. */
    if (!opc_draw_version())
        opc_log(OPC_LEVEL_WARN,
                "this build lacks cairo: tables and claims are made, and no pictures; install "
                "libcairo2-dev, configure with -D OPC_WITH_CAIRO=ON, and the same command with "
                "--redraw draws them");
    struct row *row = opc_alloc((size_t)n, sizeof *row);
    if (!row)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d experiments", n);
    for (; done < n && code != OPC_ESTOPPED; done++) {
        row[done].name = name[done];
        code = reproduce(work, &row[done], err);
        if (!code || code == OPC_ESTOPPED || n == 1)
            continue;
        fflush(stdout);
        fprintf(stderr, "opc: %s: %s\n", name[done], err->text);
        /* The message has room for a few names. */
        if (failures++ < 8)
            opc_text_addf(&failed, "%s%.40s", failures > 1 ? ", " : "", name[done]);
    }
    /* A summary, and for several experiments one error for all failures. */
    if (n > 1 || !code)
        print_summary(row, done);
    for (int i = 0; i < done; i++)
        print_claims(work, &row[i], n == 1);
    if (n > 1 && code != OPC_ESTOPPED)
        code = failures ? opc_fail(err, OPC_EIO, "%d of %d experiments failed: %s%s", failures, n,
                                   opc_text_get(&failed), failures > 8 ? ", ..." : "")
                        : OPC_OK;
    opc_text_free(&failed);
    opc_free(row);
    return code;
}

/* Sum of what runs cost, each counted once although several experiments may have it. */
struct bill {
    double hours;
    int n, capacity;
    bool unknown; /* runs of an agent whose cost is not known are left out */
    struct {
        uint32_t hash;
        int epochs;
    } * seen; /* [capacity] */
};

/* Hours of a run, or 0 if it has been counted; not enough memory counts it again. */
static double bill_run(struct bill *bill, const struct opc_values *set, double hours)
{
    const uint32_t hash = opc_config_hash(set);
    for (int i = 0; i < bill->n; i++)
        if (bill->seen[i].hash == hash && bill->seen[i].epochs == set->train.epochs)
            return 0;
    if (bill->n == bill->capacity) {
        const int capacity = bill->capacity ? 2 * bill->capacity : 256;
        void *more = opc_alloc((size_t)capacity, sizeof *bill->seen);
        if (!more)
            return hours;
        if (bill->n)
            memcpy(more, bill->seen, (size_t)bill->n * sizeof *bill->seen);
        opc_free(bill->seen);
        bill->seen = more;
        bill->capacity = capacity;
    }
    bill->seen[bill->n].hash = hash;
    bill->seen[bill->n++].epochs = set->train.epochs;
    return hours;
}

/* The estimated core-hours of all runs of an experiment, done or not: "3.2", or "3.2+" where a run
 * of unknown cost is left out. */
static void print_hours(const struct opc_experiment *experiment, struct bill *bill, char out[32])
{
    double hours = 0;
    bool unknown = false;
    for (int i = 0; experiment->runs && i < experiment->runs->tasks; i++) {
        const struct opc_values *set = &experiment->runs->task[i].set;
        const double one = opc_cost_seconds(set) / 3600;
        if (isnan(one)) {
            unknown = true;
            continue;
        }
        hours += one;
        bill->hours += bill_run(bill, set, one);
    }
    bill->unknown = bill->unknown || unknown;
    if (!experiment->runs)
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, hours < 10 ? "%.2g%s" : "%.0f%s", hours < 0.01 ? 0.01 : hours,
                 unknown ? "+" : "");
}

/* A line for one experiment; false if its file cannot be used. */
static bool list_one(const struct work *work, const char *name, struct bill *bill)
{
    struct opc_experiment *experiment;
    struct opc_standing standing;
    struct opc_err err = {0};
    char state[96], hours[32];
    const struct opc_experiment_ask ask = ask_for(work, name);
    if (opc_experiment_open(&ask, &experiment, &err)) {
        printf("%-12s %-34s %10s  %s\n", name, "cannot be made", "", err.text);
        return false;
    }
    opc_experiment_standing(experiment, &standing);
    print_hours(experiment, bill, hours);
    /* Made and current, made of another tier, out of date, or not made. */
    if (standing.current)
        snprintf(state, sizeof state, "made");
    else if (standing.made && *standing.tier && *experiment->tier &&
             strcmp(standing.tier, experiment->tier) != 0)
        snprintf(state, sizeof state, "made of tier %.20s", standing.tier);
    else
        snprintf(state, sizeof state, "%s", standing.made ? "made, out of date" : "-");
    /* How far its runs are. */
    const size_t used = strlen(state);
    if (standing.runs)
        snprintf(state + used, sizeof state - used, ", %d of %d run%s", standing.complete,
                 standing.runs, opc_plural(standing.runs));
    printf("%-12s %-34s %10s  ", name, state, hours);
    opc_print_wrapped(60, experiment->file->title);
    opc_experiment_close(experiment);
    return true;
}

/* Every experiment with its state in OUT and its cost; an error only if none can be used. */
static int list_experiments(const struct work *work, char *const *name, int n, struct opc_err *err)
{
    char in[OPC_PATH + 8];
    struct bill bill = {0};
    int good = 0;
    snprintf(in, sizeof in, "in %s", work->out);
    printf("%-12s %-34s %10s  %s\n", "experiment", in, "core-hours", "title");
    for (int i = 0; i < n; i++)
        good += list_one(work, name[i], &bill);
    if (bill.n > 0)
        printf("tier %s: about %.0f core-hours in all, of idle cores; runs that several "
               "experiments have are made once%s\n",
               work->given->tier, ceil(bill.hours),
               bill.unknown ? "; + stands for runs whose cost is not known" : "");
    opc_free(bill.seen);
    return n == 0 || good ? OPC_OK
                          : opc_fail(err, OPC_EUSER, "none of the %d experiments can be made", n);
}

/* Is the word a setting? A path may have an equals sign, too, but only after a slash. */
static bool is_setting(const char *word)
{
    const char *equals = strchr(word, '=');
    return equals && !memchr(word, '/', (size_t)(equals - word));
}

/* Moves settings after the names, each in their order; returns the number of names. */
static int sort_words(char **word, int n)
{
    int names = 0;
    for (int i = 0; i < n; i++) {
        char *const one = word[i];
        if (is_setting(one))
            continue;
        memmove(word + names + 1, word + names, (size_t)(i - names) * sizeof *word);
        word[names++] = one;
    }
    return names;
}

/* One directory for each tier by default, and for each choice of settings, so that they do not
 * overwrite each other. */
static int name_out(struct work *work, struct opc_err *err)
{
    struct opc_text name = {0};
    if (*work->given->out)
        return opc_path_join(work->out, "", work->given->out, err);
    opc_text_addf(&name, "repro-%.200s", work->given->tier);
    for (int i = 0; i < work->sets; i++)
        opc_text_addf(&name, "-%s", work->set[i]);
    int code = opc_text_check(&name, err);
    /* Whatever a shell, or the command line of a run, would read in another way. */
    for (size_t i = 0; i < name.used && !code; i++)
        if (!isalnum((unsigned char)name.at[i]) && !strchr("-_.,+", name.at[i]))
            name.at[i] = '_';
    /* It is one name, and names have at most 255 bytes. */
    if (!code && name.used > 255)
        code = opc_fail(err, OPC_EUSER,
                        "the settings are too long for the name of a directory; choose one with "
                        "--out DIR");
    if (!code)
        code = opc_path_join(work->out, "", opc_text_get(&name), err);
    opc_text_free(&name);
    return code;
}

static int repro_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct work work = {.given = &given};
    int first, n = 0;
    char **known = NULL;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    const int names = sort_words(argv + first, argc - first);
    work.sets = argc - first - names;
    work.set = argv + first + names;
    if (names == 0)
        return opc_fail(err, OPC_EUSER,
                        "name experiments, or 'all'; 'opc repro list' shows what there is");
    /* "all" and "list" are words, not names of experiments. */
    const bool all = strcmp(argv[first], "all") == 0, only_list = !strcmp(argv[first], "list");
    if ((all || only_list) && names > 1)
        return opc_fail(err, OPC_EUSER, "'%s' stands alone; '%s' is one word too many", argv[first],
                        argv[first + 1]);
    if (only_list && given.add.n)
        return opc_fail(err, OPC_EUSER,
                        "'list' shows what is in OUT; --add takes runs over when an experiment is "
                        "made or drawn (--draw-only)");
    for (int i = 0; i < given.add.n; i++)
        if (!opc_is_directory(given.add.at[i]))
            return opc_fail(err, OPC_EUSER, "there is no directory %s to add", given.add.at[i]);
    /* A wrong launcher is found before anything is run. */
    const struct opc_sweeping_given how = OPC_SWEEPING_GIVEN(&given);
    OPC_TRY(opc_sweeping_plan(&how, &work.schedule, err));
    OPC_TRY(name_out(&work, err));
    /* Paths of files need no directory of experiments, which may not exist. */
    bool only_paths = !all && !only_list && !*given.experiments;
    for (int i = first; i < first + names; i++)
        only_paths = only_paths && strchr(argv[i], '/');
    /* Names are looked up in the directory of experiments. */
    if (!only_paths)
        code = opc_experiments_dir(given.experiments, work.dir, err);
    if (!code && (all || only_list))
        code = opc_experiments_list(work.dir, &known, &n, err);
    if (code)
        return code;
    if (all && n == 0)
        code = opc_fail(err, OPC_EUSER, "%s has no experiments", work.dir);
    else if (only_list)
        code = list_experiments(&work, known, n, err);
    else
        code = reproduce_all(&work, all ? known : argv + first, all ? n : names, err);
    for (int i = 0; i < n; i++)
        opc_free(known[i]);
    opc_free(known);
    return code;
}

const struct opc_command opc_cmd_repro = {
    .name = "repro",
    .usage = "NAME... | all | list [KEY=VALUE...] [OPTION...]",
    .summary = "reproduce figures and tables of the paper",
    .detail =
        "NAME is an experiment, a file NAME.yaml: its runs are run, as by 'opc sweep', in "
        "OUT/runs/NAME, and made into an exhibit: pictures OUT/NAME.svg, .pdf and .png, the "
        "numbers behind them as OUT/NAME.csv, and the paper's claims with what was measured in "
        "OUT/NAME.json; claims and verdicts are printed at the end. A run that another experiment "
        "in OUT has made with the same settings is not made again. With --add DIR neither is one "
        "that 'opc sweep FILE merge' has put into DIR/NAME: the figure is drawn from its table. "
        "all: every experiment, going on "
        "after one that failed. list: what there is, how it stands in OUT, and what the runs of "
        "the tier cost, estimated. KEY=VALUE is a setting of every run; caption and command of "
        "the "
        "exhibit name it.\n"
        "The same command goes on after Ctrl-C or a failure, and does nothing where nothing is "
        "missing. With --launcher slurm it submits the runs and returns; given again when they are "
        "done, or with --wait, it draws. What is drawn while runs are missing says so in its "
        "caption.",
    .words = "all list",
    .takes = OPC_TAKES_SETTINGS,
    .options = &options,
    .run = repro_run,
};
