/* SPDX-License-Identifier: MIT */
/* A plain run as an exhibit, RUN/report/NAME.json: its returns, the errors of its model, where it
 * stands, and its settings. `opc report RUN` calls it and then makes a page of it, with the film of
 * the run, if there is one (RUN/film.mp4, .gif or .png).
 *
 * Invariant: everything comes from files of the run directory, so a run that is at work, stopped or
 * on another machine's disk is shown as far as it has got. */
#include "base/file.h"
#include "base/log.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/config/config.h"
#include "run/files/rundir.h"
#include "study/report/report.h"
#include "study/report/report_private.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FILM = 64 << 20, MAX_SETTINGS = 1 << 20 };

/* A curve of metrics.csv over env_steps. */
struct series {
    const char *column, *label;
    int colour, dash;
    int n;
    double *x, *y;
};

/* Rows in which the column is empty are left out. A column that an older run lacks has no values.
 */
static int read_series(const struct opc_rundir_table *table, struct series *s, struct opc_err *err)
{
    int x, y;
    s->x = opc_alloc((size_t)table->rows + 1, sizeof *s->x);
    s->y = opc_alloc((size_t)table->rows + 1, sizeof *s->y);
    if (!s->x || !s->y)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the curves of a run");
    OPC_TRY(opc_rundir_table_find(table, "env_steps", &x, err));
    if (opc_rundir_table_find(table, s->column, &y, NULL))
        return OPC_OK;
    for (int row = 0; row < table->rows; row++) {
        const double at = opc_rundir_table_number(table, row, x);
        const double value = opc_rundir_table_number(table, row, y);
        if (isnan(at) || isnan(value))
            continue;
        s->x[s->n] = at;
        s->y[s->n++] = value;
    }
    return OPC_OK;
}

/* One picture of up to two series; nothing is drawn if neither has values. */
static int add_picture(struct opc_exhibit *e, const char *part, const char *title,
                       const char *y_label, bool log_y, const struct series *series, int n,
                       struct opc_err *err)
{
    struct opc_figure_layer layer[2];
    int layers = 0;
    for (int i = 0; i < n; i++)
        if (series[i].n > 0)
            layer[layers++] = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                                        .colour = series[i].colour,
                                                        .dash = series[i].dash,
                                                        .label = series[i].label,
                                                        .n = series[i].n,
                                                        .x = series[i].x,
                                                        .y = series[i].y};
    const struct opc_panel panel = {.x_label = "environment steps",
                                    .y_label = y_label,
                                    .log_y = log_y,
                                    .layers = layers,
                                    .layer = layer};
    const struct opc_figure figure = {.panels = 1, .panel = &panel};
    return layers ? opc_exhibit_figure(e, part, title, &figure, err) : OPC_OK;
}

/* Where the run stands: last, best, and how long it took. */
static int add_state(struct opc_exhibit *e, const char *dir, const struct series *returns,
                     struct opc_err *err)
{
    struct opc_rundir_status status;
    struct opc_rundir_seconds seconds;
    struct opc_table *table;
    opc_rundir_status(dir, &status);
    opc_rundir_seconds(dir, &seconds);
    int best = 0;
    for (int i = 1; i < returns->n; i++)
        best = returns->y[i] > returns->y[best] ? i : best;
    OPC_TRY(opc_table_create("epochs,real steps,last return,best return,steps at the best,minutes",
                             &table, err));
    const bool any = returns->n > 0;
    opc_table_int(table, status.epoch);
    opc_table_real(table, any ? returns->x[returns->n - 1] : (double)NAN);
    opc_table_real(table, any ? returns->y[returns->n - 1] : (double)NAN);
    opc_table_real(table, any ? returns->y[best] : (double)NAN);
    opc_table_real(table, any ? returns->x[best] : (double)NAN);
    opc_table_fixed(table, seconds.total / 60, 1);
    const int code = opc_exhibit_table(e, "state", "Where it stands", table, err);
    opc_table_free(table);
    return code;
}

/* The four curves, by the colours that they have in every figure. */
static int add_curves(struct opc_exhibit *e, const char *dir, const struct opc_values *v,
                      struct opc_err *err)
{
    const unsigned colour = opc_method_colour(v);
    struct opc_rundir_table table = {0};
    struct series s[] = {
        {.column = "eval_return",
         .label = "evaluation",
         .colour = colour ? OPC_COLOUR_RGB | (int)colour : OPC_COLOUR_AUTO},
        {.column = "train_return", .label = "while training", .colour = OPC_COLOUR_GREY, .dash = 1},
        {.column = "learned_1", .label = "eq. 2", .colour = OPC_COLOUR_MODEL, .dash = 1},
        {.column = "corrected_1", .label = "eq. 5", .colour = OPC_COLOUR_OPC},
    };
    int code = opc_rundir_table_read(dir, "metrics.csv", &table, err);
    for (int i = 0; i < 4 && !code; i++)
        code = read_series(&table, &s[i], err);
    if (!code && s[0].n + s[1].n == 0)
        code = opc_fail(err, OPC_EUSER, "%s has no complete epoch yet, so there is nothing to show",
                        dir);
    if (!code)
        code = add_picture(e, NULL, "Return", "return", false, s, 2, err);
    if (!code)
        code = add_picture(e, "errors", "Error of the model after one step, on the newest episodes",
                           "error / standard deviation", true, s + 2, 2, err);
    if (!code)
        code = add_state(e, dir, &s[0], err);
    for (int i = 0; i < 4; i++) {
        opc_free(s[i].x);
        opc_free(s[i].y);
    }
    opc_rundir_table_free(&table);
    return code;
}

/* The exhibit's name: that of the directory, as far as it can be one of a file. */
static void name_exhibit(const char *dir, char out[80])
{
    char path[OPC_PATH];
    const char *name = opc_path_absolute(path, dir, NULL) ? dir : opc_path_name(path);
    snprintf(out, 80, "%.79s", *name ? name : "run");
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-", *c))
            *c = '-';
}

int opc_report_run(const char *dir, char into[OPC_PATH], struct opc_err *err)
{
    char path[OPC_PATH], name[80], caption[400], title[300], *settings = NULL;
    struct opc_config *config;
    struct opc_rundir_status status;
    struct opc_rundir_meta meta = {0};
    struct opc_exhibit *e = NULL;
    OPC_TRY(opc_config_of_run(dir, &config, err));
    const struct opc_values *v = &config->set;
    opc_rundir_status(dir, &status);
    (void)opc_rundir_meta(dir, &meta, NULL);
    name_exhibit(dir, name);
    snprintf(title, sizeof title, "%s on %.200s", opc_method_label(v), v->env.name);
    snprintf(caption, sizeof caption,
             "%.200s, %s, seed %d; %d of %d epochs of %d steps; opc %.40s.", v->env.name,
             opc_method_label(v), v->train.seed, status.epoch, v->train.epochs,
             v->train.steps_per_epoch, meta.version);
    int code = opc_path_join(into, dir, "report", err);
    if (!code)
        code = opc_path_join(path, dir, "config.yaml", err);
    if (!code)
        code = opc_file_read(path, MAX_SETTINGS, &settings, NULL, err);
    const struct opc_exhibit_plan plan = {.dir = into,
                                          .name = name,
                                          .title = title,
                                          .caption = caption,
                                          .config = settings,
                                          .missing = status.epoch < v->train.epochs};
    if (!code)
        code = opc_exhibit_begin(&plan, &e, err);
    if (!code)
        code = add_curves(e, dir, v, err);
    if (!code)
        code = opc_exhibit_end(e, err);
    else
        opc_exhibit_drop(e);
    opc_free(settings);
    opc_config_destroy(config);
    return code;
}

/* ---- film ------------------------------------------------------------------------------------ */

/* Three bytes become four characters; '=' fills the last group. */
static void add_base64(struct opc_text *html, const unsigned char *bytes, size_t n)
{
    static const char DIGIT[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const unsigned b = i + 1 < n ? bytes[i + 1] : 0, c = i + 2 < n ? bytes[i + 2] : 0;
        const unsigned group = (unsigned)bytes[i] << 16 | b << 8 | c;
        char four[4] = {DIGIT[group >> 18], DIGIT[group >> 12 & 63], DIGIT[group >> 6 & 63],
                        DIGIT[group & 63]};
        for (size_t k = n - i + 1; k < 4; k++)
            four[k] = '=';
        opc_text_add_bytes(html, four, 4);
    }
}

int opc_report_film(struct opc_text *html, const char *dir, struct opc_err *err)
{
    static const char *const FILM[][2] = {{"film.mp4", "video/mp4"},
                                          {"film.webm", "video/webm"},
                                          {"film.gif", "image/gif"},
                                          {"film.png", "image/png"}};
    char run[OPC_PATH], path[OPC_PATH], *bytes;
    size_t n;
    /* Only the exhibit of a run has the run's directory above it. */
    if (strcmp(opc_path_name(dir), "report") != 0 || opc_path_parent(run, dir, NULL) ||
        !opc_rundir_is_run(run))
        return OPC_OK;
    for (size_t i = 0; i < sizeof FILM / sizeof *FILM; i++) {
        if (opc_path_join(path, run, FILM[i][0], NULL) || !opc_file_exists(path))
            continue;
        struct opc_err why = {0};
        const int code = opc_file_read(path, MAX_FILM, &bytes, &n, &why);
        if (code == OPC_ENOMEM)
            return opc_fail(err, OPC_ENOMEM, "%s", why.text);
        if (code) {
            opc_log(OPC_LEVEL_WARN, "%s; the page is without it", why.text);
            continue;
        }
        const bool video = FILM[i][1][0] == 'v';
        opc_text_addf(html,
                      "<figure>\n<figcaption>The policy plays (%s)</figcaption>\n"
                      "<%s style=\"max-width:100%%\" src=\"data:%s;base64,",
                      FILM[i][0], video ? "video controls" : "img", FILM[i][1]);
        add_base64(html, (const unsigned char *)bytes, n);
        opc_text_addf(html, "\"%s</figure>\n", video ? "></video>" : " alt=\"the policy plays\">");
        opc_free(bytes);
        return OPC_OK;
    }
    return OPC_OK;
}
