/* SPDX-License-Identifier: MIT */
/* Learning curves from run directories: reads config.yaml and metrics.csv of each run, or the
 * tables of a merge in their place, forms groups of runs, and names them. curves_band.c takes line
 * and band over each group. opc plot and learning_curves.c call it.
 *
 * Invariant: the order of panels and groups is the order in which their first run was named, so
 * that the same command gives the same figure. No label is parsed again: groups are formed from
 * settings, labels are made afterwards. */
#include "study/curves/curves_private.h"

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "num/stats.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/files/rundir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_RUNS = 5000, LAST = 5, MAX_COLUMNS = 6 }; /* LAST: evaluations that make the score */
static const char METHOD[] = "opc.transition:";      /* as it begins a line of `rest` */

/* One message for all arrays of this file. */
static int curves_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the curves");
}

/* ---- one run --------------------------------------------------------------------------------- */

double opc_curve_end(int n, const double *value)
{
    const int from = n > LAST ? n - LAST : 0;
    return n ? opc_mean(n - from, value + from) : (double)NAN;
}

/* Best and final value, of the raw data. */
static void measure_end(struct opc_curve_run *run)
{
    run->best = run->n ? run->raw[0] : (double)NAN;
    for (int i = 0; i < run->n; i++)
        run->best = fmax(run->best, run->raw[i]);
    run->end = opc_curve_end(run->n, run->raw);
}

/* Room for the curve of a run with so many rows. */
static int allocate_curve(struct opc_curve_run *run, int rows, struct opc_err *err)
{
    run->raw = opc_alloc((size_t)rows, sizeof *run->raw);
    run->x = opc_alloc((size_t)rows, sizeof *run->x);
    run->y = opc_alloc((size_t)rows, sizeof *run->y);
    return run->raw && run->x && run->y ? OPC_OK : curves_no_memory(err);
}

/* Appends a row. One that lacks one of the two values is left out: not every epoch is evaluated. */
static void add_point(struct opc_curve_run *run, double over, double of)
{
    if (isnan(over) || isnan(of))
        return;
    run->x[run->n] = over;
    run->raw[run->n++] = of;
}

/* What follows from the points. */
static void finish_curve(struct opc_curve_run *run, const struct opc_curves_plan *plan)
{
    /* Epochs and steps ascend, but any column may be x; value_at then searches linearly. */
    run->ascending = true;
    for (int i = 1; i < run->n; i++)
        run->ascending = run->ascending && run->x[i - 1] <= run->x[i];
    /* Smoothing is for drawing only; scores are those of the raw values. */
    opc_smooth(run->n, run->raw, plan->smooth, run->y);
    measure_end(run);
}

/* Reads two columns of metrics.csv and smooths the curve. */
static int read_table(struct opc_curve_run *run, const struct opc_curves_plan *plan,
                      struct opc_err *err)
{
    struct opc_rundir_table table;
    int x = 0, y = 0;
    int code = opc_rundir_table_read(run->dir, "metrics.csv", &table, err);
    if (code)
        return code;
    /* Both columns must exist, or the error names the ones there are. */
    code = opc_rundir_table_find(&table, plan->over, &x, err);
    if (!code)
        code = opc_rundir_table_find(&table, plan->of, &y, err);
    if (!code)
        code = allocate_curve(run, table.rows, err);
    for (int row = 0; row < table.rows && !code; row++)
        add_point(run, opc_rundir_table_number(&table, row, x),
                  opc_rundir_table_number(&table, row, y));
    if (!code)
        finish_curve(run, plan);
    opc_rundir_table_free(&table);
    return code;
}

/* The same of the rows that run i has in the tables of a merge. */
static int read_rows(struct opc_curve_run *run, const struct opc_sweep_tables *tables, int i,
                     const struct opc_curves_plan *plan, struct opc_err *err)
{
    const struct opc_sweep_run *from = &tables->runs->run[i];
    int x, y;
    OPC_TRY(opc_sweep_tables_find(tables, i, plan->over, &x, err));
    OPC_TRY(opc_sweep_tables_find(tables, i, plan->of, &y, err));
    OPC_TRY(allocate_curve(run, from->rows, err));
    for (int row = 0; row < from->rows; row++)
        add_point(run, opc_sweep_run_number(from, row, x), opc_sweep_run_number(from, row, y));
    finish_curve(run, plan);
    return OPC_OK;
}

/* All settings as lines "section.name: value", without seed, number of epochs and environment,
 * which do not distinguish groups. Of a run in tables the lines of what they do not tell are empty,
 * and the first one names their directory: such a run may differ from all others in any of these.
 */
static int print_rest(const struct opc_config *config, const struct opc_curves_origin *from,
                      char **out, struct opc_err *err)
{
    struct opc_values values = config->set; /* parts are not const */
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_text rest = {0};
    const int parts = opc_config_parts(&values, part);
    opc_text_addf(&rest, "%s\n", from ? from->dir : "");
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < part[i].section->n; k++) {
            const struct opc_field *field = &part[i].section->fields[k];
            char key[OPC_KEY];
            const char *at = (const char *)part[i].values + field->offset;
            if (at == (const char *)&values.train.seed ||
                at == (const char *)&values.train.epochs || part[i].values == (void *)&values.env ||
                !opc_config_counts(part[i].section, field))
                continue;
            snprintf(key, sizeof key, "%s.%s", part[i].section->name, field->name);
            if (!from || opc_sweep_tables_know(from->tables, from->i, key) ||
                at == (const char *)&values.opc.transition) {
                opc_text_addf(&rest, "%s: ", key);
                opc_field_print(field, part[i].values, &rest);
            }
            opc_text_add(&rest, "\n");
        }
    const int code = opc_text_check(&rest, err);
    if (code)
        opc_text_free(&rest);
    else
        *out = rest.at;
    return code;
}

/* Writes a task for people: "HalfCheetah (MuJoCo)", "InvertedPendulum (RoboSchool), angle raw".
 * Environments of other engines keep their name. */
static void add_task(struct opc_text *text, const char *name)
{
    static const char *const ENGINE[][2] = {{"mujoco:", "MuJoCo"}, {"bullet:", "PyBullet"}};
    const char *engine = NULL;
    /* The engine is the prefix, except for RoboSchool's tasks, which are Bullet's with suffix
     * _rs. */
    for (int i = 0; i < 2 && !engine; i++)
        if (strncmp(name, ENGINE[i][0], strlen(ENGINE[i][0])) == 0) {
            engine = ENGINE[i][1];
            name += strlen(ENGINE[i][0]);
        }
    int n = (int)strcspn(name, "?");
    const char *options = name + n;
    if (engine && n > 3 && strncmp(options - 3, "_rs", 3) == 0) {
        engine = "RoboSchool";
        n -= 3;
    }
    /* half_cheetah becomes HalfCheetah. */
    for (int i = 0; i < n; i++) {
        const bool first = i == 0 || name[i - 1] == '_';
        if (!engine || name[i] != '_')
            opc_text_addf(text, "%c", engine && first ? toupper((unsigned char)name[i]) : name[i]);
    }
    if (engine)
        opc_text_addf(text, " (%s)", engine);
    /* "?angle=raw&x=1" becomes ", angle raw, x 1". */
    for (; *options; options++)
        if (strchr("?&", *options))
            opc_text_add(text, ", ");
        else
            opc_text_addf(text, "%c", *options == '=' ? ' ' : *options);
}

/* Writes a setting for people: "OPC", "horizon 20", "no reset". */
static void add_setting(struct opc_text *text, const struct opc_curve_run *run, const char *key,
                        const char *value)
{
    const char *dot = strchr(key, '.');
    const bool no = strcmp(value, "false") == 0, yes = strcmp(value, "true") == 0;
    /* Method and task have names of their own. */
    if (strcmp(key, "opc.transition") == 0) {
        opc_text_add(text, run->method_name);
        return;
    }
    if (strcmp(key, "env.name") == 0) {
        add_task(text, value);
        return;
    }
    /* The name without its section, with blanks instead of underscores. */
    opc_text_add(text, no ? "no " : "");
    for (const char *c = dot ? dot + 1 : key; *c; c++)
        opc_text_addf(text, "%c", *c == '_' ? ' ' : *c);
    const size_t n = strlen(value);
    if (*value == '[' && !strchr(value, ',')) /* a list of one */
        opc_text_addf(text, " %.*s", (int)n - 2, value + 1);
    else if (!yes && !no)
        opc_text_addf(text, " %s", value);
}

/* Hands the text over as a string and frees it, also after a failure. */
static int keep_text(struct opc_text *text, char **out, struct opc_err *err)
{
    int code = opc_text_check(text, err);
    if (!code && !(*out = opc_strdup(opc_text_get(text))))
        code = curves_no_memory(err);
    opc_text_free(text);
    return code;
}

/* Values of n settings, separated by `between`: as they are written, or with `reader` (the run
 * they are of) as a person reads them: "Hopper (MuJoCo), horizon 20". */
static int print_values(const struct opc_config *config, int n, const char *const *key,
                        const char *between, const struct opc_curve_run *reader, char **out,
                        struct opc_err *err)
{
    struct opc_text text = {0};
    for (int i = 0; i < n; i++) {
        char *value;
        const int code = opc_config_get(config, key[i], &value, err);
        if (code) {
            opc_text_free(&text);
            return code;
        }
        opc_text_add(&text, i == 0 ? "" : between);
        if (reader)
            add_setting(&text, reader, key[i], value);
        else
            opc_text_add(&text, value);
        opc_free(value);
    }
    return keep_text(&text, out, err);
}

int opc_curves_names(const struct opc_values *set, const struct opc_curves_plan *plan, char **panel,
                     char **line, struct opc_err *err)
{
    struct opc_config *config;
    *panel = *line = NULL;
    OPC_TRY(opc_config_create(&config, err));
    config->set = *set;
    int code = print_values(config, plan->panel_keys, plan->panel_key, "+", NULL, panel, err);
    if (!code)
        code = print_values(config, plan->line_keys, plan->line_key, "+", NULL, line, err);
    opc_config_destroy(config);
    return code;
}

/* Name and colour of the method. An agent other than SAC is a method of its own. */
static int read_method(struct opc_curve_run *run, const struct opc_config *config,
                       struct opc_err *err)
{
    const struct opc_values *v = &config->set;
    run->method = opc_strdup(v->train.agent ? opc_agent_of(v)->name : opc_transition_of(v)->name);
    run->method_name = opc_method_label(v);
    run->colour = opc_method_colour(v);
    return run->method ? OPC_OK : curves_no_memory(err);
}

/* Method, panel, title, seed, and what distinguishes the run's line. */
static int take_settings(struct opc_curve_run *run, const struct opc_config *config,
                         const struct opc_curves_origin *from, const struct opc_curves_plan *plan,
                         struct opc_err *err)
{
    static const char *const TASK = "env.name";
    /* Without keys the task is the panel and all other settings distinguish lines. */
    const bool found = plan->panel_keys + plan->line_keys == 0;
    const int keys = found ? 1 : plan->panel_keys;
    const char *const *key = found ? &TASK : plan->panel_key;
    char *seed;
    int code = read_method(run, config, err);
    if (from && !from->tables->method[from->i]) {
        run->method_name = "method not known";
        run->colour = 0;
    }
    if (!code)
        code = found ? print_rest(config, from, &run->rest, err)
                     : print_values(config, plan->line_keys, plan->line_key, "\n", NULL, &run->rest,
                                    err);
    if (!code)
        code = print_values(config, keys, key, "+", NULL, &run->panel, err);
    if (!code)
        code = print_values(config, keys, key, ", ", run, &run->title, err);
    if (!code && !(code = opc_config_get(config, "train.seed", &seed, err))) {
        run->seed = atoi(seed);
        opc_free(seed);
    }
    return code;
}

/* Those of config.yaml, if the run is wanted. */
static int read_settings(struct opc_curves_reading *reading, struct opc_curve_run *run,
                         bool *wanted, struct opc_err *err)
{
    struct opc_config *config;
    OPC_TRY(opc_config_of_run(run->dir, &config, err));
    int code = opc_curves_only_meets(reading, &config->set, NULL, run->dir, wanted, err);
    if (!code && *wanted)
        code = take_settings(run, config, NULL, reading->plan, err);
    opc_config_destroy(config);
    return code;
}

/* ---- which runs ------------------------------------------------------------------------------ */

static void free_run(struct opc_curve_run *run)
{
    opc_free(run->dir);
    opc_free(run->panel);
    opc_free(run->title);
    opc_free(run->method);
    opc_free(run->raw);
    opc_free(run->rest);
    opc_free(run->x);
    opc_free(run->y);
    *run = (struct opc_curve_run){0};
}

/* The run that the last one is a copy of: the same settings, seed and values, to the bit, which two
 * trainings on different machines have, too. Counted twice, it would narrow every interval. */
static const struct opc_curve_run *find_original(const struct opc_curves *curves)
{
    const struct opc_curve_run *copy = &curves->run[curves->runs - 1];
    const size_t bytes = (size_t)copy->n * sizeof *copy->raw;
    for (int i = 0; i < curves->runs - 1 && copy->n > 0; i++) {
        const struct opc_curve_run *run = &curves->run[i];
        if (run->seed == copy->seed && run->n == copy->n && !strcmp(run->panel, copy->panel) &&
            !strcmp(run->rest, copy->rest) && !memcmp(run->x, copy->x, bytes) &&
            !memcmp(run->raw, copy->raw, bytes))
            return run;
    }
    return NULL;
}

/* Adds the run in a directory, unless it is not wanted, the same directory was named before or it
 * holds a copy of a run that is there. */
static int add_run(struct opc_curves_reading *reading, const char *dir, struct opc_err *err)
{
    struct opc_curves *curves = reading->curves;
    struct stat st;
    bool wanted;
    if (stat(dir, &st))
        return opc_fail_errno(err, errno, "cannot look into %s", dir);
    /* A directory may be named twice, or reached through a link. */
    for (int i = 0; i < curves->runs; i++)
        if (curves->run[i].device == st.st_dev && curves->run[i].inode == st.st_ino)
            return OPC_OK; /* named before, perhaps otherwise */
    if (curves->runs == MAX_RUNS)
        return opc_fail(err, OPC_EUSER, "more than %d runs", MAX_RUNS);
    struct opc_curve_run *run = &curves->run[curves->runs++];
    run->device = st.st_dev;
    run->inode = st.st_ino;
    run->dir = opc_strdup(dir);
    if (!run->dir)
        return curves_no_memory(err);
    OPC_TRY(read_settings(reading, run, &wanted, err));
    if (!wanted) {
        free_run(&curves->run[--curves->runs]);
        return OPC_OK;
    }
    OPC_TRY(read_table(run, reading->plan, err));
    const struct opc_curve_run *original = find_original(curves);
    if (original) {
        opc_log(OPC_LEVEL_WARN, "%s is a copy of %s and is left out", dir, original->dir);
        free_run(&curves->run[--curves->runs]);
    }
    return OPC_OK;
}

/* Adds run i of the tables, if it is wanted. */
static int add_table_run(struct opc_curves_reading *reading, const struct opc_curves_origin *from,
                         const struct stat *st, struct opc_err *err)
{
    struct opc_curves *curves = reading->curves;
    const struct opc_task *task = &from->tables->sweep->task[from->i];
    struct opc_config *config;
    struct opc_text name = {0};
    bool wanted;
    if (curves->runs == MAX_RUNS)
        return opc_fail(err, OPC_EUSER, "more than %d runs", MAX_RUNS);
    struct opc_curve_run *run = &curves->run[curves->runs++];
    run->device = st->st_dev;
    run->inode = st->st_ino;
    opc_text_addf(&name, "%s: %s", from->tables->path, task->name);
    OPC_TRY(keep_text(&name, &run->dir, err));
    OPC_TRY(opc_curves_only_meets(reading, &task->set, from, run->dir, &wanted, err));
    if (!wanted) {
        free_run(&curves->run[--curves->runs]);
        return OPC_OK;
    }
    OPC_TRY(opc_config_create(&config, err));
    config->set = task->set;
    int code = take_settings(run, config, from, reading->plan, err);
    opc_config_destroy(config);
    if (!code)
        code = read_rows(run, from->tables, from->i, reading->plan, err);
    return code;
}

/* Adds the runs in the tables of a merge, unless the same directory was named before. */
static int add_tables(struct opc_curves_reading *reading, const char *dir, struct opc_err *err)
{
    const struct opc_curves *curves = reading->curves;
    struct opc_sweep_tables tables;
    struct stat st;
    char named[OPC_PATH];
    if (stat(dir, &st))
        return opc_fail_errno(err, errno, "cannot look into %s", dir);
    for (int i = 0; i < curves->runs; i++)
        if (curves->run[i].device == st.st_dev && curves->run[i].inode == st.st_ino)
            return OPC_OK;
    /* The name that a label may have, without the slash of a completed word. */
    snprintf(named, sizeof named, "%s", dir);
    for (size_t n = strlen(named); n > 1 && named[n - 1] == '/'; n--)
        named[n - 1] = '\0';
    OPC_TRY(opc_sweep_tables_open(dir, &tables, err));
    int code = OPC_OK;
    for (int i = 0; i < tables.sweep->tasks && !code; i++)
        code = add_table_run(reading, &(struct opc_curves_origin){&tables, i, named}, &st, err);
    if (!code)
        opc_curves_only_warn(reading, &tables);
    opc_sweep_tables_close(&tables);
    return code;
}

/* Adds a run of a directory of runs: one that cannot be read is left out with a warning, the reason
 * stays in err. */
static int try_run(struct opc_curves_reading *reading, const char *dir, int *left_out,
                   struct opc_err *err)
{
    struct opc_curves *curves = reading->curves;
    const int before = curves->runs, code = add_run(reading, dir, err);
    if (code != OPC_EDAMAGED && code != OPC_EUSER)
        return code;
    if (curves->runs > before)
        free_run(&curves->run[--curves->runs]);
    opc_log(OPC_LEVEL_WARN, "%s; it is left out", err->text);
    ++*left_out;
    return OPC_OK;
}

/* Whether a path is a regular file. */
static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* For qsort over an array of paths. */
static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Adds the runs in a directory, in the order of their names; if there are none, those in its
 * tables. */
static int add_inner(struct opc_curves_reading *reading, const char *dir, struct opc_err *err)
{
    DIR *d = opendir(dir);
    if (!d && errno != ENOENT && errno != ENOTDIR)
        return opc_fail_errno(err, errno, "cannot look into %s", dir);
    if (!d)
        return opc_fail(err, OPC_EUSER, "%s is neither a run nor a directory of runs", dir);
    char(*inner)[OPC_PATH] = opc_alloc(MAX_RUNS, sizeof *inner);
    int n = 0, left_out = 0, code = inner ? OPC_OK : curves_no_memory(err);
    /* Collect the names first: readdir has no order. */
    for (struct dirent *e; !code && n < MAX_RUNS && (e = readdir(d));)
        if (e->d_name[0] != '.' && !opc_path_join(inner[n], dir, e->d_name, NULL) &&
            opc_rundir_is_run(inner[n]))
            n++;
    closedir(d);
    if (inner)
        qsort(inner, (size_t)n, sizeof *inner, by_name);
    for (int i = 0; i < n && !code; i++)
        code = try_run(reading, inner[i], &left_out, err);
    opc_free(inner);
    if (!code && n > 0 && left_out == n)
        return err ? (int)err->code : OPC_EUSER; /* with the reason of the last one */
    if (!code && n == 0 && opc_sweep_tables_are(dir))
        return add_tables(reading, dir, err);
    if (!code && n == 0)
        code =
            opc_fail(err, OPC_EUSER,
                     "%s holds no run: neither it nor what is in it has a config.yaml, and there "
                     "is no merged.csv of opc sweep",
                     dir);
    return code;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Index of the run's panel, which is created if it is new. Names are cut to the array's size,
 * and compared as cut. */
static int panel_of(struct opc_curves *curves, const struct opc_curve_run *run)
{
    char cut[sizeof *curves->panel];
    int i = 0;
    snprintf(cut, sizeof cut, "%s", run->panel);
    while (i < curves->panels && strcmp(curves->panel[i], cut) != 0)
        i++;
    if (i == curves->panels) {
        memcpy(curves->panel[i], cut, sizeof cut);
        snprintf(curves->title[i], sizeof *curves->title, "%s", run->title);
        curves->panels++;
    }
    return i;
}

/* Runs with equal panel and equal `rest` form a group. */
static void form_groups(struct opc_curves *curves)
{
    for (int i = 0; i < curves->runs; i++) {
        struct opc_curve_run *run = &curves->run[i];
        run->group = -1;
        /* Compare with all earlier runs; there are at most a few thousand. */
        for (int k = 0; k < i && run->group < 0; k++)
            if (strcmp(run->panel, curves->run[k].panel) == 0 &&
                strcmp(run->rest, curves->run[k].rest) == 0)
                run->group = curves->run[k].group;
        /* The first run of a group sets its panel and its method. */
        if (run->group < 0) {
            run->group = curves->groups++;
            curves->group[run->group].panel = panel_of(curves, run);
            snprintf(curves->group[run->group].method, sizeof curves->group->method, "%s",
                     run->method);
            curves->group[run->group].colour = run->colour;
        }
        curves->group[run->group].runs += run->n > 0;
        /* Runs of several methods in one group: the group has no method and no colour of its
         * own. */
        if (strcmp(curves->group[run->group].method, run->method) != 0) {
            *curves->group[run->group].method = '\0';
            curves->group[run->group].colour = 0;
        }
    }
}

/* The first run of a group, whose settings stand for all of them. */
static const struct opc_curve_run *speaker(const struct opc_curves *curves, int group)
{
    int i = 0;
    while (curves->run[i].group != group)
        i++;
    return &curves->run[i];
}

/* Line number `line` of `rest`; "" after the last. */
static const char *line_at(const char *rest, int line)
{
    for (; line > 0 && *rest; line--)
        rest += strcspn(rest, "\n") + 1;
    return rest;
}

/* Compares two texts up to the end of the line. */
static bool same_line(const char *a, const char *b)
{
    const size_t n = strcspn(a, "\n");
    return n == strcspn(b, "\n") && strncmp(a, b, n) == 0;
}

/* Whether line `line` of `rest` distinguishes two groups of one panel that have the same label
 * so far; *a is one of them. */
static bool line_distinguishes(const struct opc_curves *curves, int line, int *a)
{
    for (int i = 0; i < curves->groups; i++)
        for (int k = 0; k < i; k++)
            if (curves->group[i].panel == curves->group[k].panel &&
                strcmp(curves->group[i].label, curves->group[k].label) == 0 &&
                !same_line(line_at(speaker(curves, i)->rest, line),
                           line_at(speaker(curves, k)->rest, line))) {
                *a = i;
                return true;
            }
    return false;
}

/* Appends line `line` to the label of every group. */
static void append_setting(struct opc_curves *curves, int line)
{
    for (int i = 0; i < curves->groups; i++) {
        const struct opc_curve_run *run = speaker(curves, i);
        const char *setting = line_at(run->rest, line);
        char *label = curves->group[i].label;
        const size_t used = strlen(label), left = sizeof curves->group[i].label - used;
        const char *comma = used ? ", " : "";
        if (*setting == '\n') /* the tables of the run do not tell it */
            continue;
        if (strncmp(setting, METHOD, strlen(METHOD)) == 0)
            snprintf(label + used, left, "%s%s", comma, run->method_name);
        else
            snprintf(label + used, left, "%s%.*s", comma, (int)strcspn(setting, "\n"), setting);
    }
}

/* Labels groups with as few settings as distinguish those of each panel, the transition model
 * first. */
static void label_groups(struct opc_curves *curves)
{
    int lines = 0, first = 0, any;
    const char *rest = speaker(curves, 0)->rest;
    /* Count the settings, and find the transition model among them. */
    for (; *line_at(rest, lines); lines++)
        if (strncmp(line_at(rest, lines), METHOD, strlen(METHOD)) == 0)
            first = lines;
    /* Further settings are added only while some groups of a panel still have the same label. */
    append_setting(curves, first);
    for (int line = 0; line < lines; line++)
        if (line != first && line_distinguishes(curves, line, &any))
            append_setting(curves, line);
    for (int g = 0; g < curves->groups; g++)
        memcpy(curves->group[g].line, curves->group[g].label, sizeof curves->group->line);
}

/* Whether value number k distinguishes a group from one with the same label so far. */
static bool distinguishes(const struct opc_curves *curves, int g, int k)
{
    const char *value = line_at(speaker(curves, g)->rest, k);
    for (int i = 0; i < curves->groups; i++)
        if (strcmp(curves->group[i].label, curves->group[g].label) == 0 &&
            !same_line(line_at(speaker(curves, i)->rest, k), value))
            return true;
    return false;
}

/* The label of group g, extended by value k if that is needed. */
static int extend_label(const struct opc_curves *curves, int g, const char *key, int k, char **out,
                        struct opc_err *err)
{
    const char *value = line_at(speaker(curves, g)->rest, k);
    char word[256];
    struct opc_text text = {0};
    snprintf(word, sizeof word, "%.*s", (int)strcspn(value, "\n"), value);
    opc_text_add(&text, curves->group[g].label);
    /* The first setting is always part of the label, later ones only where they help. */
    if (k == 0 || distinguishes(curves, g, k)) {
        opc_text_add(&text, text.used ? ", " : "");
        add_setting(&text, speaker(curves, g), key, word);
    }
    return keep_text(&text, out, err);
}

/* Labels groups by the plan's line settings, with as many of them as needed: "SAC", "OPC,
 * horizon 20". */
static int label_as_planned(struct opc_curves *curves, const struct opc_curves_plan *plan,
                            struct opc_err *err)
{
    char **longer = opc_alloc((size_t)curves->groups, sizeof *longer);
    int code = longer ? OPC_OK : curves_no_memory(err);
    /* The name of the line is all values, joined by '+'. */
    for (int g = 0; g < curves->groups; g++) {
        char *line = curves->group[g].line;
        snprintf(line, sizeof curves->group->line, "%s", speaker(curves, g)->rest);
        for (char *end = line; (end = strchr(end, '\n')); *end = '+')
            ;
    }
    /* All labels are extended before any is replaced: distinguishes() compares the old ones. */
    for (int k = 0; k < plan->line_keys && !code; k++) {
        for (int g = 0; g < curves->groups && !code; g++)
            code = extend_label(curves, g, plan->line_key[k], k, &longer[g], err);
        for (int g = 0; g < curves->groups; g++) {
            if (longer[g])
                snprintf(curves->group[g].label, sizeof curves->group->label, "%s", longer[g]);
            opc_free(longer[g]);
            longer[g] = NULL;
        }
    }
    opc_free(longer);
    return code;
}

/* Number of panels in a row that differ in their last value only; 0 if the panels do not form a
 * regular grid or it would be too wide. */
static int count_columns(const struct opc_curves *curves)
{
    /* row: first panel of the current row. A panel continues the row if all its values but the
     * last are equal. */
    int columns = 0;
    for (int i = 0, row = 0; i < curves->panels; i++) {
        const char *last = strrchr(curves->panel[i], '+');
        const size_t n = last ? (size_t)(last - curves->panel[i]) + 1 : 0;
        const bool alike = n && strncmp(curves->panel[i], curves->panel[row], n) == 0;
        if (!columns && i > 0 && !alike)
            columns = i;
        if (columns && alike != (i % columns != 0))
            return 0;
        row = alike ? row : i;
    }
    return columns > 1 && columns <= MAX_COLUMNS && curves->panels % columns == 0 ? columns : 0;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_curves_read(int n, char *const dir[], const struct opc_curves_plan *plan,
                    struct opc_curves **out, struct opc_err *err)
{
    struct opc_curves *curves = opc_alloc(1, sizeof *curves);
    if (!curves)
        return curves_no_memory(err);
    /* The random phase ends with an episode, so total_steps differ between seeds. */
    curves->between = strcmp(plan->over, "total_steps") == 0;
    curves->band = plan->band;
    /* Arrays for the largest number of runs; groups and panels cannot be more. */
    double *scratch = opc_alloc(MAX_RUNS, sizeof *scratch);
    curves->run = opc_alloc(MAX_RUNS, sizeof *curves->run);
    curves->group = opc_alloc(MAX_RUNS, sizeof *curves->group);
    curves->panel = opc_alloc(MAX_RUNS, sizeof *curves->panel);
    curves->title = opc_alloc(MAX_RUNS, sizeof *curves->title);
    int code = scratch && curves->run && curves->group && curves->panel && curves->title
                   ? OPC_OK
                   : curves_no_memory(err);
    struct opc_curves_reading reading = {.curves = curves, .plan = plan};
    int files = 0; /* logs of a sweep lie next to its runs, and a shell's star names them, too */
    /* Each argument is a run, a directory of runs, or a file that is skipped. */
    for (int i = 0; i < n && !code; i++) {
        if (opc_rundir_is_run(dir[i]))
            code = add_run(&reading, dir[i], err);
        else if (n > 1 && is_file(dir[i]))
            files++;
        else
            code = add_inner(&reading, dir[i], err);
    }
    if (!code && files)
        opc_log(OPC_LEVEL_WARN, "%d of the names are files, not directories, and are left out",
                files);
    if (!code && curves->runs == 0)
        code = *reading.nearest ? opc_curves_only_none(&reading, err)
                                : opc_fail(err, OPC_EUSER, "there are no runs to draw");
    /* Groups, then their names, then their bands: each needs the one before. */
    if (!code) {
        form_groups(curves);
        curves->columns = plan->panel_keys > 1 ? count_columns(curves) : 0;
        if (plan->panel_keys + plan->line_keys > 0)
            code = label_as_planned(curves, plan, err);
        else
            label_groups(curves);
    }
    for (int g = 0; g < curves->groups && !code; g++)
        code = opc_curves_make_band(curves, g, scratch, err);
    opc_free(scratch);
    if (code)
        opc_curves_free(curves);
    else
        *out = curves;
    return code;
}

/* Accepts curves that were read only in part. */
void opc_curves_free(struct opc_curves *curves)
{
    if (!curves)
        return;
    for (int i = 0; i < curves->runs; i++)
        free_run(&curves->run[i]);
    for (int g = 0; g < curves->groups; g++) {
        opc_free(curves->group[g].x);
        opc_free(curves->group[g].low);
        opc_free(curves->group[g].middle);
        opc_free(curves->group[g].high);
    }
    opc_free(curves->run);
    opc_free(curves->group);
    opc_free(curves->panel);
    opc_free(curves->title);
    opc_free(curves);
}
