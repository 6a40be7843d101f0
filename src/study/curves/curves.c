/* SPDX-License-Identifier: MIT */
/* Learning curves from run directories: reads config.yaml and metrics.csv of each run, forms
 * groups of runs, names them, and takes quartiles over each group. opc plot and
 * learning_curves.c call it.
 *
 * Invariant: the order of panels and groups is the order in which their first run was named, so
 * that the same command gives the same figure. No label is parsed again: groups are formed from
 * settings, labels are made afterwards. */
#include "study/curves/curves.h"

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "num/stats.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/config.h"
#include "run/rundir.h"

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

static int out_of_memory(struct opc_err *err)
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
static void measure_end(struct opc_curve_run *r)
{
    r->best = r->n ? r->raw[0] : (double)NAN;
    for (int i = 0; i < r->n; i++)
        r->best = fmax(r->best, r->raw[i]);
    r->end = opc_curve_end(r->n, r->raw);
}

/* Reads two columns of metrics.csv and smooths the curve. */
static int read_table(struct opc_curve_run *r, const struct opc_curves_plan *plan,
                      struct opc_err *err)
{
    struct opc_rundir_table table;
    int x = 0, y = 0;
    int code = opc_rundir_table_read(r->dir, "metrics.csv", &table, err);
    if (code)
        return code;
    code = opc_rundir_table_find(&table, plan->over, &x, err);
    if (!code)
        code = opc_rundir_table_find(&table, plan->of, &y, err);
    r->raw = opc_alloc((size_t)table.rows, sizeof *r->raw);
    r->x = opc_alloc((size_t)table.rows, sizeof *r->x);
    r->y = opc_alloc((size_t)table.rows, sizeof *r->y);
    if (!code && (!r->raw || !r->x || !r->y))
        code = out_of_memory(err);
    /* Rows that lack one of the two values are left out: not every epoch is evaluated. */
    for (int row = 0; row < table.rows && !code; row++) {
        const double over = opc_rundir_table_number(&table, row, x);
        const double of = opc_rundir_table_number(&table, row, y);
        if (isnan(over) || isnan(of))
            continue;
        r->x[r->n] = over;
        r->raw[r->n++] = of;
    }
    /* Epochs and steps ascend, but any column may be x; value_at then searches linearly. */
    if (!code) {
        r->ascending = true;
        for (int i = 1; i < r->n; i++)
            r->ascending = r->ascending && r->x[i - 1] <= r->x[i];
        opc_smooth(r->n, r->raw, plan->smooth, r->y);
        measure_end(r);
    }
    opc_rundir_table_free(&table);
    return code;
}

/* All settings as lines "section.name: value", without seed, number of epochs and environment,
 * which do not distinguish groups. */
static int print_rest(const struct opc_config *config, char **out, struct opc_err *err)
{
    struct opc_text rest = {0};
    char *text, section[64] = "";
    int code = opc_config_print(config, &text, err);
    if (code)
        return code;
    /* A line without indentation begins a section; the others are "  name: value". */
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const int n = (int)strcspn(line, "\n");
        if (*line != ' ') {
            snprintf(section, sizeof section, "%.*s", (int)strcspn(line, ":"), line);
            continue;
        }
        if (strncmp(line, "  seed:", 7) && strncmp(line, "  epochs:", 9) &&
            strcmp(section, "env") != 0)
            opc_text_addf(&rest, "%s.%.*s\n", section, n - 2, line + 2);
    }
    opc_free(text);
    code = opc_text_check(&rest, err);
    if (code)
        opc_text_free(&rest);
    else
        *out = rest.at;
    return code;
}

/* Writes a task for people: "HalfCheetah (MuJoCo)", "InvertedPendulum (RoboSchool), angle raw".
 * Environments of other engines keep their name. */
static void add_task(struct opc_text *t, const char *name)
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
            opc_text_addf(t, "%c", engine && first ? toupper((unsigned char)name[i]) : name[i]);
    }
    if (engine)
        opc_text_addf(t, " (%s)", engine);
    /* "?angle=raw&x=1" becomes ", angle raw, x 1". */
    for (; *options; options++)
        if (strchr("?&", *options))
            opc_text_add(t, ", ");
        else
            opc_text_addf(t, "%c", *options == '=' ? ' ' : *options);
}

/* Writes a setting for people: "OPC", "horizon 20", "no reset". */
static void add_setting(struct opc_text *t, const struct opc_curve_run *r, const char *key,
                        const char *value)
{
    const char *dot = strchr(key, '.');
    const bool no = strcmp(value, "false") == 0, yes = strcmp(value, "true") == 0;
    if (strcmp(key, "opc.transition") == 0) {
        opc_text_add(t, r->method_name);
        return;
    }
    if (strcmp(key, "env.name") == 0) {
        add_task(t, value);
        return;
    }
    /* The name without its section, with blanks instead of underscores. */
    opc_text_add(t, no ? "no " : "");
    for (const char *c = dot ? dot + 1 : key; *c; c++)
        opc_text_addf(t, "%c", *c == '_' ? ' ' : *c);
    const size_t n = strlen(value);
    if (*value == '[' && !strchr(value, ',')) /* a list of one */
        opc_text_addf(t, " %.*s", (int)n - 2, value + 1);
    else if (!yes && !no)
        opc_text_addf(t, " %s", value);
}

/* Hands the text over as a string and frees it, also after a failure. */
static int keep_text(struct opc_text *text, char **out, struct opc_err *err)
{
    int code = opc_text_check(text, err);
    if (!code && !(*out = opc_strdup(opc_text_get(text))))
        code = out_of_memory(err);
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

/* Name and colour of the method. An agent other than SAC is a method of its own. */
static int read_method(struct opc_curve_run *r, const struct opc_config *config,
                       struct opc_err *err)
{
    const struct opc_values *v = &config->set;
    r->method = opc_strdup(v->train.agent ? opc_agent_of(v)->name : opc_transition_of(v)->name);
    r->method_name = opc_method_label(v);
    r->colour = opc_method_colour(v);
    return r->method ? OPC_OK : out_of_memory(err);
}

/* Reads config.yaml: method, panel, title, seed, and what distinguishes the run's line. */
static int read_settings(struct opc_curve_run *r, const struct opc_curves_plan *plan,
                         struct opc_err *err)
{
    static const char *const TASK = "env.name";
    /* Without keys the task is the panel and all other settings distinguish lines. */
    const bool found = plan->panel_keys + plan->line_keys == 0;
    const int keys = found ? 1 : plan->panel_keys;
    const char *const *key = found ? &TASK : plan->panel_key;
    struct opc_config *config;
    char *seed;
    int code = opc_config_of_run(r->dir, &config, err);
    if (code)
        return code;
    code = read_method(r, config, err);
    if (!code)
        code = found ? print_rest(config, &r->rest, err)
                     : print_values(config, plan->line_keys, plan->line_key, "\n", NULL, &r->rest,
                                    err);
    if (!code)
        code = print_values(config, keys, key, "+", NULL, &r->panel, err);
    if (!code)
        code = print_values(config, keys, key, ", ", r, &r->title, err);
    if (!code && !(code = opc_config_get(config, "train.seed", &seed, err))) {
        r->seed = atoi(seed);
        opc_free(seed);
    }
    opc_config_destroy(config);
    return code;
}

/* ---- which runs ------------------------------------------------------------------------------ */

/* Adds the run in a directory, unless the same directory was named before. */
static int add_run(struct opc_curves *c, const char *dir, const struct opc_curves_plan *plan,
                   struct opc_err *err)
{
    struct stat st;
    if (stat(dir, &st))
        return opc_fail_errno(err, errno, "cannot look into %s", dir);
    for (int i = 0; i < c->runs; i++)
        if (c->run[i].device == st.st_dev && c->run[i].inode == st.st_ino)
            return OPC_OK; /* named before, perhaps otherwise */
    if (c->runs == MAX_RUNS)
        return opc_fail(err, OPC_EUSER, "more than %d runs", MAX_RUNS);
    struct opc_curve_run *r = &c->run[c->runs++];
    r->device = st.st_dev;
    r->inode = st.st_ino;
    r->dir = opc_strdup(dir);
    if (!r->dir)
        return out_of_memory(err);
    const int code = read_settings(r, plan, err);
    return code ? code : read_table(r, plan, err);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Adds the runs in a directory, in the order of their names. */
static int add_inner(struct opc_curves *c, const char *dir, const struct opc_curves_plan *plan,
                     struct opc_err *err)
{
    DIR *d = opendir(dir);
    if (!d && errno != ENOENT && errno != ENOTDIR)
        return opc_fail_errno(err, errno, "cannot look into %s", dir);
    if (!d)
        return opc_fail(err, OPC_EUSER, "%s is neither a run nor a directory of runs", dir);
    char(*inner)[OPC_PATH] = opc_alloc(MAX_RUNS, sizeof *inner);
    int n = 0, code = inner ? OPC_OK : out_of_memory(err);
    for (struct dirent *e; !code && n < MAX_RUNS && (e = readdir(d));)
        if (e->d_name[0] != '.' && !opc_path_join(inner[n], dir, e->d_name, NULL) &&
            opc_rundir_is_run(inner[n]))
            n++;
    closedir(d);
    if (inner)
        qsort(inner, (size_t)n, sizeof *inner, by_name);
    for (int i = 0; i < n && !code; i++)
        code = add_run(c, inner[i], plan, err);
    opc_free(inner);
    if (!code && n == 0)
        code = opc_fail(err, OPC_EUSER,
                        "%s holds no run: neither it nor what is in it has a "
                        "config.yaml",
                        dir);
    return code;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Index of the run's panel, which is created if it is new. Names are cut to the array's size,
 * and compared as cut. */
static int panel_of(struct opc_curves *c, const struct opc_curve_run *r)
{
    char cut[sizeof *c->panel];
    int i = 0;
    snprintf(cut, sizeof cut, "%s", r->panel);
    while (i < c->panels && strcmp(c->panel[i], cut) != 0)
        i++;
    if (i == c->panels) {
        memcpy(c->panel[i], cut, sizeof cut);
        snprintf(c->title[i], sizeof *c->title, "%s", r->title);
        c->panels++;
    }
    return i;
}

/* Runs with equal panel and equal `rest` form a group. */
static void form_groups(struct opc_curves *c)
{
    for (int i = 0; i < c->runs; i++) {
        struct opc_curve_run *r = &c->run[i];
        r->group = -1;
        for (int k = 0; k < i && r->group < 0; k++)
            if (strcmp(r->panel, c->run[k].panel) == 0 && strcmp(r->rest, c->run[k].rest) == 0)
                r->group = c->run[k].group;
        /* The first run of a group sets its panel and its method. */
        if (r->group < 0) {
            r->group = c->groups++;
            c->group[r->group].panel = panel_of(c, r);
            snprintf(c->group[r->group].method, sizeof c->group->method, "%s", r->method);
            c->group[r->group].colour = r->colour;
        }
        c->group[r->group].runs += r->n > 0;
        /* Runs of several methods in one group: the group has no method and no colour of its
         * own. */
        if (strcmp(c->group[r->group].method, r->method) != 0) {
            *c->group[r->group].method = '\0';
            c->group[r->group].colour = 0;
        }
    }
}

/* The first run of a group, whose settings stand for all of them. */
static const struct opc_curve_run *speaker(const struct opc_curves *c, int group)
{
    int i = 0;
    while (c->run[i].group != group)
        i++;
    return &c->run[i];
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
static bool helps(const struct opc_curves *c, int line, int *a)
{
    for (int i = 0; i < c->groups; i++)
        for (int k = 0; k < i; k++)
            if (c->group[i].panel == c->group[k].panel &&
                strcmp(c->group[i].label, c->group[k].label) == 0 &&
                !same_line(line_at(speaker(c, i)->rest, line),
                           line_at(speaker(c, k)->rest, line))) {
                *a = i;
                return true;
            }
    return false;
}

/* Appends line `line` to the label of every group. */
static void append_setting(struct opc_curves *c, int line)
{
    for (int i = 0; i < c->groups; i++) {
        const struct opc_curve_run *r = speaker(c, i);
        const char *setting = line_at(r->rest, line);
        char *label = c->group[i].label;
        const size_t used = strlen(label), left = sizeof c->group[i].label - used;
        const char *comma = used ? ", " : "";
        if (strncmp(setting, METHOD, strlen(METHOD)) == 0)
            snprintf(label + used, left, "%s%s", comma, r->method_name);
        else
            snprintf(label + used, left, "%s%.*s", comma, (int)strcspn(setting, "\n"), setting);
    }
}

/* Labels groups with as few settings as distinguish those of each panel, the transition model
 * first. */
static void label_groups(struct opc_curves *c)
{
    int lines = 0, first = 0, any;
    const char *rest = speaker(c, 0)->rest;
    /* Count the settings, and find the transition model among them. */
    for (; *line_at(rest, lines); lines++)
        if (strncmp(line_at(rest, lines), METHOD, strlen(METHOD)) == 0)
            first = lines;
    append_setting(c, first);
    for (int line = 0; line < lines; line++)
        if (line != first && helps(c, line, &any))
            append_setting(c, line);
    for (int g = 0; g < c->groups; g++)
        memcpy(c->group[g].line, c->group[g].label, sizeof c->group->line);
}

/* Whether value number k distinguishes a group from one with the same label so far. */
static bool distinguishes(const struct opc_curves *c, int g, int k)
{
    const char *value = line_at(speaker(c, g)->rest, k);
    for (int i = 0; i < c->groups; i++)
        if (strcmp(c->group[i].label, c->group[g].label) == 0 &&
            !same_line(line_at(speaker(c, i)->rest, k), value))
            return true;
    return false;
}

/* The label of group g, extended by value k if that is needed. */
static int extend_label(const struct opc_curves *c, int g, const char *key, int k, char **out,
                        struct opc_err *err)
{
    const char *value = line_at(speaker(c, g)->rest, k);
    char word[256];
    struct opc_text text = {0};
    snprintf(word, sizeof word, "%.*s", (int)strcspn(value, "\n"), value);
    opc_text_add(&text, c->group[g].label);
    if (k == 0 || distinguishes(c, g, k)) {
        opc_text_add(&text, text.used ? ", " : "");
        add_setting(&text, speaker(c, g), key, word);
    }
    return keep_text(&text, out, err);
}

/* Labels groups by the plan's line settings, with as many of them as needed: "SAC", "OPC,
 * horizon 20". */
static int label_as_planned(struct opc_curves *c, const struct opc_curves_plan *plan,
                            struct opc_err *err)
{
    char **longer = opc_alloc((size_t)c->groups, sizeof *longer);
    int code = longer ? OPC_OK : out_of_memory(err);
    /* The name of the line is all values, joined by '+'. */
    for (int g = 0; g < c->groups; g++) {
        char *line = c->group[g].line;
        snprintf(line, sizeof c->group->line, "%s", speaker(c, g)->rest);
        for (char *end = line; (end = strchr(end, '\n')); *end = '+')
            ;
    }
    /* All labels are extended before any is replaced: distinguishes() compares the old ones. */
    for (int k = 0; k < plan->line_keys && !code; k++) {
        for (int g = 0; g < c->groups && !code; g++)
            code = extend_label(c, g, plan->line_key[k], k, &longer[g], err);
        for (int g = 0; g < c->groups; g++) {
            if (longer[g])
                snprintf(c->group[g].label, sizeof c->group->label, "%s", longer[g]);
            opc_free(longer[g]);
            longer[g] = NULL;
        }
    }
    opc_free(longer);
    return code;
}

/* Number of panels in a row that differ in their last value only; 0 if the panels do not form a
 * regular grid or it would be too wide. */
static int count_columns(const struct opc_curves *c)
{
    /* row: first panel of the current row. A panel continues the row if all its values but the
     * last are equal. */
    int columns = 0;
    for (int i = 0, row = 0; i < c->panels; i++) {
        const char *last = strrchr(c->panel[i], '+');
        const size_t n = last ? (size_t)(last - c->panel[i]) + 1 : 0;
        const bool alike = n && strncmp(c->panel[i], c->panel[row], n) == 0;
        if (!columns && i > 0 && !alike)
            columns = i;
        if (columns && alike != (i % columns != 0))
            return 0;
        row = alike ? row : i;
    }
    return columns > 1 && columns <= MAX_COLUMNS && c->panels % columns == 0 ? columns : 0;
}

/* ---- bands ----------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first value of a run at x, or one between two values; NaN if it has none there. */
static double value_at(const struct opc_curves *c, const struct opc_curve_run *r, double x)
{
    if (c->between && r->ascending)
        return opc_interpolate(r->n, r->x, r->y, x);
    int at = r->ascending ? opc_lower_bound(r->n, r->x, x) : 0;
    while (at < r->n && r->x[at] != x)
        at = r->ascending ? r->n : at + 1;
    return at < r->n ? r->y[at] : (double)NAN;
}

int opc_curves_at(const struct opc_curves *c, int group, double x, double *out)
{
    int n = 0;
    for (int i = 0; i < c->runs; i++) {
        const double v = c->run[i].group == group ? value_at(c, &c->run[i], x) : (double)NAN;
        if (!isnan(v))
            out[n++] = v;
    }
    return n;
}

int opc_curves_ends(const struct opc_curves *c, int group, double *out)
{
    int n = 0;
    for (int i = 0; i < c->runs; i++)
        if (c->run[i].group == group && c->run[i].n > 0)
            out[n++] = c->run[i].end;
    return n;
}

/* Quartiles of the scores of a group. scratch: [runs]. */
static void end_of(struct opc_curves *c, int g, double *scratch)
{
    const int n = opc_curves_ends(c, g, scratch);
    struct opc_curve_group *group = &c->group[g];
    group->end_low = n ? opc_quantile(n, scratch, 0.25) : (double)NAN;
    group->end_middle = n ? opc_quantile(n, scratch, 0.5) : (double)NAN;
    group->end_high = n ? opc_quantile(n, scratch, 0.75) : (double)NAN;
}

/* Median and quartiles of a group over x. scratch: [runs]. */
static int make_band(struct opc_curves *c, int g, double *scratch, struct opc_err *err)
{
    struct opc_curve_group *group = &c->group[g];
    size_t all = 0;
    for (int i = 0; i < c->runs; i++)
        all += c->run[i].group == g ? (size_t)c->run[i].n : 0;
    double *x = opc_alloc(all + 1, sizeof *x);
    group->x = opc_alloc(all + 1, sizeof *x);
    group->low = opc_alloc(all + 1, sizeof *x);
    group->middle = opc_alloc(all + 1, sizeof *x);
    group->high = opc_alloc(all + 1, sizeof *x);
    if (!x || !group->x || !group->low || !group->middle || !group->high) {
        opc_free(x);
        return out_of_memory(err);
    }
    /* All x of all runs, sorted; each different one is a candidate. */
    all = 0;
    for (int i = 0; i < c->runs; i++)
        for (int k = 0; c->run[i].group == g && k < c->run[i].n; k++)
            x[all++] = c->run[i].x[k];
    qsort(x, all, sizeof *x, by_size);
    for (size_t at = 0; at < all; at++) {
        if (at > 0 && x[at] == x[at - 1])
            continue;
        /* Left out where fewer than half of the runs have a value: the median would jump when
         * runs end. */
        const int n = opc_curves_at(c, g, x[at], scratch);
        if (2 * n < group->runs)
            continue;
        group->x[group->n] = x[at];
        group->low[group->n] = opc_quantile(n, scratch, 0.25);
        group->middle[group->n] = opc_quantile(n, scratch, 0.5);
        group->high[group->n] = opc_quantile(n, scratch, 0.75);
        group->n++;
    }
    opc_free(x);
    end_of(c, g, scratch);
    return OPC_OK;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_curves_read(int n, char *const dir[], const struct opc_curves_plan *plan,
                    struct opc_curves **out, struct opc_err *err)
{
    struct opc_curves *c = opc_alloc(1, sizeof *c);
    if (!c)
        return out_of_memory(err);
    /* The random phase ends with an episode, so total_steps differ between seeds. */
    c->between = strcmp(plan->over, "total_steps") == 0;
    double *scratch = opc_alloc(MAX_RUNS, sizeof *scratch);
    c->run = opc_alloc(MAX_RUNS, sizeof *c->run);
    c->group = opc_alloc(MAX_RUNS, sizeof *c->group);
    c->panel = opc_alloc(MAX_RUNS, sizeof *c->panel);
    c->title = opc_alloc(MAX_RUNS, sizeof *c->title);
    int code = scratch && c->run && c->group && c->panel && c->title ? OPC_OK : out_of_memory(err);
    int files = 0; /* logs of a sweep lie next to its runs, and a shell's star names them, too */
    /* Each argument is a run, a directory of runs, or a file that is skipped. */
    for (int i = 0; i < n && !code; i++) {
        if (opc_rundir_is_run(dir[i]))
            code = add_run(c, dir[i], plan, err);
        else if (n > 1 && is_file(dir[i]))
            files++;
        else
            code = add_inner(c, dir[i], plan, err);
    }
    if (!code && files)
        opc_log(OPC_WARN, "%d of the names are files, not directories, and are left out", files);
    if (!code && c->runs == 0)
        code = opc_fail(err, OPC_EUSER, "there are no runs to draw");
    /* Groups, then their names, then their bands: each needs the one before. */
    if (!code) {
        form_groups(c);
        c->columns = plan->panel_keys > 1 ? count_columns(c) : 0;
        if (plan->panel_keys + plan->line_keys > 0)
            code = label_as_planned(c, plan, err);
        else
            label_groups(c);
    }
    for (int g = 0; g < c->groups && !code; g++)
        code = make_band(c, g, scratch, err);
    opc_free(scratch);
    if (code)
        opc_curves_free(c);
    else
        *out = c;
    return code;
}

void opc_curves_free(struct opc_curves *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->runs; i++) {
        opc_free(c->run[i].dir);
        opc_free(c->run[i].panel);
        opc_free(c->run[i].title);
        opc_free(c->run[i].method);
        opc_free(c->run[i].raw);
        opc_free(c->run[i].rest);
        opc_free(c->run[i].x);
        opc_free(c->run[i].y);
    }
    for (int g = 0; g < c->groups; g++) {
        opc_free(c->group[g].x);
        opc_free(c->group[g].low);
        opc_free(c->group[g].middle);
        opc_free(c->group[g].high);
    }
    opc_free(c->run);
    opc_free(c->group);
    opc_free(c->panel);
    opc_free(c->title);
    opc_free(c);
}
