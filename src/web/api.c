/* SPDX-License-Identifier: MIT */
/* Answers the requests of the page (web/api.h): which file, or which numbers. web/http.c calls it
 * for requests that it has let in.
 *
 * Invariant: every answer is made from the list of runs (web/watch.h) and from files of its
 * directories; no part of a request becomes part of a path. */
#include "web/api.h"

#include "opc/mem.h"
#include "run/files/json.h"
#include "run/files/rundir.h"
#include "study/curves/curves_draw.h"
#include "web/assets.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CURVES = 400 }; /* runs of one request; more would keep other requests waiting */
static const char JSON[] = "application/json";

/* What was appended so far is dropped: an answer is either whole or a sentence. */
void opc_web_fail(struct opc_web_answer *out, int status, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    opc_text_clear(&out->own);
    opc_text_add(&out->own, text);
    opc_text_add(&out->own, "\n");
    out->status = status;
    out->type = "text/plain; charset=utf-8";
}

/* Seven digits are more than a screen can show, and half the bytes of seventeen. */
void opc_web_number(struct opc_text *text, double v)
{
    if (isfinite(v))
        opc_text_addf(text, "%.7g", v);
    else
        opc_text_add(text, "null");
}

/* ---- the page's own files -------------------------------------------------------------------- */

/* Browsers are told not to guess it (nosniff), so every file has to have the right one. */
static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".js") == 0)
        return "text/javascript; charset=utf-8";
    if (dot && strcmp(dot, ".css") == 0)
        return "text/css; charset=utf-8";
    return dot && strcmp(dot, ".svg") == 0 ? "image/svg+xml" : "text/html; charset=utf-8";
}

/* The file of the page with that name; names have no folders. */
static bool answer_asset(const char *path, struct opc_web_answer *out)
{
    const char *name = strcmp(path, "/") == 0 ? "index.html" : path + 1;
    const struct opc_asset *const table[] = {opc_page_assets, opc_uplot_assets};
    for (int i = 0; i < 2; i++)
        for (const struct opc_asset *a = table[i]; a->name; a++)
            if (strcmp(a->name, name) == 0) {
                out->type = type_of(name);
                out->fixed = a->data;
                out->fixed_size = a->size;
                return true;
            }
    return false;
}

/* ---- the list of runs ------------------------------------------------------------------------ */

/* One run of the list, with the keys of opc runs --json. */
static void add_run(struct opc_text *text, const struct opc_watch_run *run, int number)
{
    opc_text_addf(text, "{\"id\": %d, ", number);
    if (run->gone) {
        opc_text_add(text, "\"gone\": true}");
        return;
    }
    opc_text_add(text, "\"run\": ");
    opc_json_add_quoted(text, run->dir);
    opc_text_addf(text, ", \"rows\": %d, \"colour\": \"", run->now.rows);
    if (run->now.colour)
        opc_text_addf(text, "#%06x", run->now.colour);
    opc_text_add(text, "\", ");
    opc_summary_json(&run->now, text);
    opc_text_add(text, "}");
}

/* All runs, or what is newer than `since`. A run that has disappeared is told to pages that may
 * still show it, and to no others. */
static void answer_runs(const struct opc_watch *watch, const char *since,
                        struct opc_web_answer *out)
{
    int64_t version = 0;
    bool first = true;
    struct opc_text *text = &out->own;
    if (since && !opc_parse_int64(since, &version)) {
        opc_web_fail(out, 400, "since = %.40s is not a version", since);
        return;
    }
    /* The version comes from before the list: what changes meanwhile is told next time. */
    opc_text_addf(text, "{\"version\": %llu, \"roots\": [", (unsigned long long)watch->version);
    for (int i = 0; i < watch->roots; i++) {
        opc_text_add(text, i ? ", " : "");
        opc_json_add_quoted(text, watch->root[i]);
    }
    opc_text_add(text, "], \"runs\": [");
    for (int i = 0; i < watch->runs; i++) {
        if (watch->run[i].version <= (uint64_t)version && version > 0)
            continue;
        if (watch->run[i].gone && version <= 0)
            continue;
        opc_text_add(text, first ? "\n" : ",\n");
        add_run(text, &watch->run[i], i);
        first = false;
    }
    opc_text_add(text, "]}");
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* , "key": [1,2,3] */
static void add_points(struct opc_text *text, const char *key, int n, const double *v)
{
    opc_text_addf(text, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        opc_text_add(text, i ? "," : "");
        opc_web_number(text, v[i]);
    }
    opc_text_add(text, "]");
}

/* The panels with their titles, and a line for each group. */
static void add_curves(struct opc_text *text, const struct opc_curves *curves)
{
    opc_text_add(text, "{\"panels\": [");
    for (int p = 0; p < curves->panels; p++) {
        opc_text_add(text, p ? ", " : "");
        opc_json_add_quoted(text, curves->title[p]);
    }
    opc_text_add(text, "], \"groups\": [");
    bool first = true;
    for (int g = 0; g < curves->groups; g++) {
        const struct opc_curve_group *group = &curves->group[g];
        if (group->n == 0)
            continue;
        opc_text_addf(text, "%s{\"panel\": %d, \"runs\": %d, \"colour\": \"", first ? "" : ",\n",
                      group->panel, group->runs);
        first = false;
        if (group->colour)
            opc_text_addf(text, "#%06x", group->colour);
        opc_text_add(text, "\", \"label\": ");
        opc_json_add_quoted(text, group->label);
        add_points(text, "x", group->n, group->x);
        add_points(text, "low", group->n, group->low);
        add_points(text, "middle", group->n, group->middle);
        add_points(text, "high", group->n, group->high);
        opc_text_add(text, "}");
    }
    opc_text_add(text, "]}");
}

/* The directories of the runs in "3,17,4"; *newest is the version of the run that changed last.
 * Runs without a row, and numbers that mean nothing, are left out. */
static int choose_runs(const struct opc_watch *watch, const char *list, const char *dir[MAX_CURVES],
                       uint64_t *newest)
{
    int n = 0;
    *newest = 0;
    while (list && *list && n < MAX_CURVES) {
        char word[16];
        int number;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(list, ","), list);
        const struct opc_watch_run *run =
            opc_parse_int(word, &number) ? opc_watch_find(watch, number) : NULL;
        if (run && run->now.rows > 0 && *run->now.task) {
            dir[n++] = run->dir;
            *newest = run->version > *newest ? run->version : *newest;
        }
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return n;
}

/* Grouped and named as opc plot does it: runs that differ in their seed only are one line. */
static void make_curves(int n, const char *const dir[], const struct opc_curves_plan *plan,
                        struct opc_web_answer *out)
{
    struct opc_curves *curves = NULL;
    struct opc_err err = {0};
    const int code = opc_curves_read(n, (char *const *)dir, plan, &curves, &err);
    if (code)
        opc_web_fail(out, code == OPC_EUSER ? 404 : 500, "%s", err.text);
    else
        add_curves(&out->own, curves);
    opc_curves_free(curves);
}

static void answer_curves(struct opc_web_api *api, const struct opc_web_request *request,
                          struct opc_web_answer *out)
{
    const char *dir[MAX_CURVES], *of = request->get(request->ctx, "of");
    const char *over = request->get(request->ctx, "over");
    const char *list = request->get(request->ctx, "runs");
    const char *smooth_text = request->get(request->ctx, "smooth");
    struct opc_text query = {0};
    uint64_t newest;
    int smooth = 1;
    if (smooth_text &&
        (!opc_parse_int(smooth_text, &smooth) || smooth < 1 || smooth > 999 || smooth % 2 == 0)) {
        opc_web_fail(out, 400, "smooth = %.40s is not an odd number from 1 to 999", smooth_text);
        return;
    }
    /* Without a run that has a row there is nothing to draw, which is no error. */
    const int n = choose_runs(api->watch, list, dir, &newest);
    if (n == 0) {
        opc_text_add(&out->own, "{\"panels\": [], \"groups\": []}");
        return;
    }
    /* The same question about runs that have not changed has the same answer. */
    opc_text_addf(&query, "%s\n%s\n%d\n%s", of ? of : "", over ? over : "", smooth, list);
    if (api->curves && newest == api->curves_version && api->curves_query &&
        strcmp(api->curves_query, opc_text_get(&query)) == 0) {
        opc_text_add(&out->own, api->curves);
    } else {
        const struct opc_curves_plan plan = {
            .of = of ? of : "eval_return", .over = over ? over : "env_steps", .smooth = smooth};
        /* A failure is not remembered: the next row may mend it. */
        make_curves(n, dir, &plan, out);
        if (out->status == 200) {
            opc_free(api->curves);
            opc_free(api->curves_query);
            api->curves = opc_strdup(opc_text_get(&out->own));
            api->curves_query = opc_strdup(opc_text_get(&query));
            api->curves_version = newest;
        }
    }
    opc_text_free(&query);
}

/* ---------------------------------------------------------------------------------------------- */

const struct opc_watch_run *opc_web_run(const struct opc_watch *watch,
                                        const struct opc_web_request *request, const char *key,
                                        struct opc_web_answer *out)
{
    const char *text = request->get(request->ctx, key);
    int number;
    const struct opc_watch_run *run =
        text && opc_parse_int(text, &number) ? opc_watch_find(watch, number) : NULL;
    if (!run)
        opc_web_fail(out, 404, "there is no run %.40s", text ? text : "without a number");
    return run;
}

/* The directory that run=N or root=N names; NULL, with an answer, if there is none. */
static const char *place_of(const struct opc_watch *watch, const struct opc_web_request *request,
                            struct opc_web_answer *out)
{
    const char *root = request->get(request->ctx, "root");
    int number;
    if (!root) {
        const struct opc_watch_run *run = opc_web_run(watch, request, "run", out);
        return run ? run->dir : NULL;
    }
    if (opc_parse_int(root, &number) && number >= 0 && number < watch->roots)
        return watch->root[number];
    opc_web_fail(out, 404, "there is no directory %.40s", root);
    return NULL;
}

/* metrics, settings or log of the run that the request names. */
static void answer_about_run(const struct opc_watch *watch, const struct opc_web_request *request,
                             const char *what, struct opc_web_answer *out)
{
    const struct opc_watch_run *run = opc_web_run(watch, request, "run", out);
    if (!run)
        return;
    if (strcmp(what, "metrics") == 0)
        opc_web_metrics(run, out);
    else if (strcmp(what, "settings") == 0)
        opc_web_settings(run, watch->defaults, out);
    else
        opc_web_log(run, out);
}

/* What a file request names; the list of files decides whether there is such a file. */
static void answer_file(const struct opc_watch *watch, const struct opc_web_request *request,
                        struct opc_web_answer *out)
{
    const char *dir = place_of(watch, request, out), *name = request->get(request->ctx, "name");
    if (dir && strcmp(request->path, "/file") != 0)
        opc_web_files(dir, out);
    else if (dir)
        opc_web_file(dir, name ? name : "", out);
}

/* Both runs must be there; the first that is not gives the answer. */
static void answer_differences(const struct opc_watch *watch, const struct opc_web_request *request,
                               struct opc_web_answer *out)
{
    const struct opc_watch_run *a = opc_web_run(watch, request, "a", out);
    const struct opc_watch_run *b = a ? opc_web_run(watch, request, "b", out) : NULL;
    if (b)
        opc_web_differences(a, b, out);
}

/* Paths are compared whole: what is not in this list is 404, however it is written. */
void opc_web_answer(struct opc_web_api *api, const struct opc_web_request *request,
                    struct opc_web_answer *out)
{
    const char *path = request->path;
    *out = (struct opc_web_answer){.status = 200, .type = JSON, .fd = -1};
    if (strcmp(path, "/api/runs") == 0)
        answer_runs(api->watch, request->get(request->ctx, "since"), out);
    else if (strcmp(path, "/api/curves") == 0)
        answer_curves(api, request, out);
    else if (strcmp(path, "/api/metrics") == 0 || strcmp(path, "/api/settings") == 0 ||
             strcmp(path, "/api/log") == 0)
        answer_about_run(api->watch, request, path + strlen("/api/"), out);
    else if (strcmp(path, "/api/differences") == 0)
        answer_differences(api->watch, request, out);
    else if (strcmp(path, "/api/files") == 0 || strcmp(path, "/file") == 0)
        answer_file(api->watch, request, out);
    else if (!answer_asset(path, out))
        opc_web_fail(out, 404, "there is nothing here");
    /* A text that was cut for lack of memory is not half an answer. */
    if (opc_text_check(&out->own, NULL)) {
        opc_text_free(&out->own);
        opc_web_fail(out, 503, "out of memory");
    }
}

void opc_web_api_free(struct opc_web_api *api)
{
    opc_free(api->curves);
    opc_free(api->curves_query);
    *api = (struct opc_web_api){0};
}
