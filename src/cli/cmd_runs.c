/* SPDX-License-Identifier: MIT */
/* opc runs - a list of runs to look through: filtered by state, name and settings, sorted, as a
 * table or as JSON.
 *
 * `opc status` shows how far runs are; this finds some of many. Invariant: nothing is opened but
 * files of run directories, so a run that came from elsewhere starts no code, and ten thousand
 * runs take less than two seconds. */
#include "base/file.h"
#include "cli/console/command.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "run/files/rundir.h"
#include "run/files/summary.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(CHOICE, state, "any",  "any|running|done|stopped|interrupted|diverged|failed|begun", , "keep the runs in this state") \
    X(TEXT,   name,  "*",    1, 255, "keep the runs whose directory's name matches this pattern (* and ? as in a shell)") \
    X(CHOICE, sort,  "path", "path|return|best|epoch|steps|speed|time|left", , "order of the list: by path, or by a number, the largest first") \
    X(INT,    limit, "0",    0, 1e6, "print this many runs at most; 0: all")                       \
    X(BOOL,   paths, "false", 0, 1,  "print nothing but the directories, one per line")            \
    X(BOOL,   json,  "false", 0, 1,  "print one JSON object per run and line")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF
enum { SORT_PATH, SORT_RETURN, SORT_BEST, SORT_EPOCH, SORT_STEPS, SORT_SPEED, SORT_TIME };

/* A run of the list. */
struct row {
    const char *dir;
    const struct opc_summary *run;
    double key; /* what it is sorted by; NaN: last */
};

/* ---- filters --------------------------------------------------------------------------------- */

enum { MAX_FILTERS = 16 };
struct filter { /* KEY=PATTERN of the command line */
    char key[OPC_KEY];
    struct opc_yaml pattern;
};

/* A word KEY=PATTERN as a filter; the key is the setting's present name. */
static int parse_filter(char *word, struct filter *out, struct opc_values *defaults,
                        struct opc_err *err)
{
    char *is = strchr(word, '=');
    *is = '\0';
    *out = (struct filter){.pattern = {.kind = OPC_YAML_WORD, .text = is + 1}};
    if (opc_config_key(word, out->key))
        return OPC_OK;
    opc_config_field(defaults, word, NULL, err); /* says what is meant */
    return OPC_EUSER;
}

/* Do the settings of a run match all filters? Settings that cannot be read match none. */
static int matches(const char *dir, int n, struct filter *filter, const struct opc_values *defaults,
                   bool *out, struct opc_err *err)
{
    const char *key[MAX_FILTERS];
    char path[OPC_PATH], *text = NULL;
    struct opc_values values = *defaults;
    *out = false;
    for (int i = 0; i < n; i++)
        key[i] = filter[i].key;
    /* As in a summary: only what was edited, or is old, is read in full. */
    const bool scanned = !opc_path_join(path, dir, "config.yaml", NULL) &&
                         !opc_file_read(path, 1000000, &text, NULL, NULL) &&
                         opc_values_scan(text, n, key, &values);
    opc_free(text);
    if (!scanned) {
        struct opc_config *config;
        if (opc_config_of_run(dir, &config, NULL))
            return OPC_OK;
        values = config->set;
        opc_config_destroy(config);
    }
    *out = true;
    for (int i = 0; i < n && *out; i++)
        OPC_TRY(opc_config_matches(&values, key[i], &filter[i].pattern, out, err));
    return OPC_OK;
}

/* ---- order ----------------------------------------------------------------------------------- */

static double sort_key(const struct opc_summary *run, int sort)
{
    switch (sort) {
    case SORT_RETURN: return run->last;
    case SORT_BEST: return run->best;
    case SORT_EPOCH: return run->epoch;
    case SORT_STEPS: return run->steps;
    case SORT_SPEED: return opc_summary_speed(run);
    case SORT_TIME: return run->spent;
    default: return run->left;
    }
}

/* The largest first, unknown ones last, equal ones by path. */
static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (isnan(x->key) != isnan(y->key))
        return isnan(x->key) ? 1 : -1;
    if (x->key != y->key && !isnan(x->key))
        return x->key > y->key ? -1 : 1;
    return strcmp(x->dir, y->dir);
}

/* ---- printing -------------------------------------------------------------------------------- */

/* "%.4g", or "-" for what is not known. */
static const char *print_number(double v, char out[OPC_PRINTED])
{
    snprintf(out, OPC_PRINTED, isnan(v) ? "-" : "%.4g", v);
    return out;
}

static void print_row(const struct row *row, int path, int task)
{
    const struct opc_summary *r = row->run;
    char epoch[32], seed[OPC_PRINTED] = "-", last[OPC_PRINTED], best[OPC_PRINTED];
    char steps[OPC_PRINTED] = "-", speed[OPC_PRINTED], spent[OPC_PRINTED] = "-",
         left[OPC_PRINTED] = "-";
    snprintf(epoch, sizeof epoch, r->epochs ? "%d/%d" : "%d", r->epoch, r->epochs);
    if (*r->task)
        snprintf(seed, sizeof seed, "%d", r->seed);
    if (!isnan(r->steps))
        snprintf(steps, sizeof steps, "%.0f", r->steps);
    if (r->spent > 0)
        opc_print_duration(r->spent, spent);
    if (r->left > 0)
        opc_print_duration(r->left, left);
    printf("%-*s  %-11s  %-*s  %-8s  %5s  %11s  %9s  %9s  %9s  %8s  %11s  %11s%s%s\n", path,
           row->dir, opc_summary_state_name(r->state), task, *r->task ? r->task : "-",
           r->method ? r->method : "-", seed, epoch, print_number(r->last, last),
           print_number(r->best, best), steps, print_number(opc_summary_speed(r), speed), spent,
           left, *r->why ? "  " : "", r->why);
}

/* A table whose first columns are as wide as they have to be, and the number of runs by state. */
static void print_table(const struct row *row, int n, int all)
{
    int path = 3, task = 4, count[OPC_SUMMARY_STATES] = {0};
    for (int i = 0; i < n; i++) {
        const int a = (int)strlen(row[i].dir), b = (int)strlen(row[i].run->task);
        path = a > path ? a : path;
        task = b > task ? b : task;
    }
    printf("%-*s  %-11s  %-*s  %-8s  %5s  %11s  %9s  %9s  %9s  %8s  %11s  %11s\n", path, "run",
           "state", task, "task", "method", "seed", "epoch", "return", "best", "steps", "steps/s",
           "time", "left");
    for (int i = 0; i < n; i++) {
        print_row(&row[i], path, task);
        count[row[i].run->state]++;
    }
    printf("%d of %d run%s", n, all, all == 1 ? "" : "s");
    for (int s = 0; s < OPC_SUMMARY_STATES; s++)
        if (count[s])
            printf(", %d %s", count[s], opc_summary_state_name((enum opc_summary_state)s));
    putchar('\n');
}

/* One JSON object on one line, as opc status --json has it. */
static int print_json(const struct row *row, struct opc_err *err)
{
    struct opc_text text = {0};
    opc_text_add(&text, "{\"run\": ");
    opc_json_add_quoted(&text, row->dir);
    opc_text_add(&text, ", ");
    opc_summary_json(row->run, &text);
    opc_text_add(&text, "}");
    const int code = opc_text_check(&text, err);
    if (!code)
        puts(opc_text_get(&text));
    opc_text_free(&text);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

/* Keeps what the options ask for, and puts it in order. Returns the number of rows. */
static int choose_rows(const struct opc_found *found, const struct opc_summary *run,
                       const struct given *given, struct row *row)
{
    int n = 0;
    for (int i = 0; i < found->n; i++)
        if ((given->state == 0 || (int)run[i].state == given->state - 1) &&
            fnmatch(given->name, opc_path_name(found->dir[i]), 0) == 0)
            row[n++] = (struct row){found->dir[i], &run[i], sort_key(&run[i], given->sort)};
    if (given->sort != SORT_PATH && n > 0)
        qsort(row, (size_t)n, sizeof *row, by_key);
    return given->limit > 0 && given->limit < n ? given->limit : n;
}

/* Drops the runs whose settings do not match; the summaries of the others are read afterwards. */
static int filter_found(struct opc_found *found, int n, struct filter *filter,
                        const struct opc_values *defaults, struct opc_err *err)
{
    int kept = 0, code = OPC_OK;
    for (int i = 0; i < found->n; i++) {
        bool keep = true;
        if (!code && n > 0)
            code = matches(found->dir[i], n, filter, defaults, &keep, err);
        if (keep)
            found->dir[kept++] = found->dir[i];
        else
            opc_free(found->dir[i]);
    }
    found->n = kept;
    return code;
}

static int show_runs(const struct opc_found *found, const struct given *given, int all,
                     struct opc_err *err)
{
    struct opc_summary *run = opc_alloc((size_t)found->n + 1, sizeof *run);
    struct row *row = opc_alloc((size_t)found->n + 1, sizeof *row);
    struct opc_pool *pool = NULL;
    int code = run && row ? OPC_OK : opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    /* Threads pay only for many runs. */
    if (!code && found->n > 64)
        code = opc_pool_create(0, &pool, err);
    if (!code)
        code = opc_summaries_read(found->n, found->dir, pool, run, err);
    if (!code) {
        const int n = choose_rows(found, run, given, row);
        for (int i = 0; i < n && given->json && !code; i++)
            code = print_json(&row[i], err);
        for (int i = 0; i < n && given->paths && !given->json; i++)
            puts(row[i].dir);
        if (!given->json && !given->paths)
            print_table(row, n, all);
    }
    opc_pool_destroy(pool);
    opc_free(row);
    opc_free(run);
    return code;
}

static int runs_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct filter filter[MAX_FILTERS];
    struct opc_found found = {0};
    int first, filters = 0;
    OPC_TRY(opc_options_read(&options, argc, argv, &given, &first, err));
    struct opc_values *defaults = opc_alloc(1, sizeof *defaults);
    int code = defaults ? opc_summary_defaults(defaults, err)
                        : opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    /* A word with '=' is a filter, unless there is a directory of that name. */
    for (int i = first; i < argc && !code; i++) {
        if (!strchr(argv[i], '=') || opc_is_directory(argv[i]))
            code = opc_found_add(&found, argv[i], err);
        else if (filters == MAX_FILTERS)
            code = opc_fail(err, OPC_EUSER, "more than %d settings to filter by", MAX_FILTERS);
        else
            code = parse_filter(argv[i], &filter[filters++], defaults, err);
    }
    if (!code && found.n == 0)
        code = opc_fail(err, OPC_EUSER, "name directories of runs: opc runs DIR");
    const int all = found.n;
    if (!code)
        code = filter_found(&found, filters, filter, defaults, err);
    if (!code)
        code = show_runs(&found, &given, all, err);
    opc_found_free(&found);
    opc_free(defaults);
    return code;
}

const struct opc_command opc_cmd_runs = {
    .name = "runs",
    .usage = "DIR... [KEY=PATTERN...] [OPTION...]",
    .summary = "list runs: filter and sort them",
    .detail =
        "Lists the runs in the directories, five levels deep: state, task, method, seed, epoch, "
        "last and best return, steps, steps in a second, time spent and left. KEY=PATTERN keeps "
        "the runs whose setting matches, as in opc.transition=corrected or env.name='*hopper'; "
        "several of them must all match. 'opc status' explains the states.\n"
        "Nothing but files is read, and no environment is opened. With --paths the list can be "
        "given to another command: opc plot $(opc runs DIR --state done --paths).",
    .options = &options,
    .run = runs_run,
};
