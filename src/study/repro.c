/* SPDX-License-Identifier: MIT */
#include "study/repro.h"

#include "opc/mem.h"
#include "opc/version.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAMES = 1000, MAX_FILE = 1 << 20 };
static const char USUAL_PLACE[] = "experiments/paper";

/* ---- which there are ------------------------------------------------------------------------- */

int opc_experiments_dir(const char *given, char out[OPC_PATH], struct opc_err *err)
{
    if (*given) {
        const int code = opc_path_join(out, "", given, err);
        return code || opc_is_directory(out)
                   ? code
                   : opc_fail(err, OPC_EUSER, "there is no directory %s", given);
    }
    const int code = opc_path_shipped(out, USUAL_PLACE, err);
    if (code || opc_is_directory(out))
        return code;
    return opc_fail(err, OPC_EUSER,
                    "there is no directory %s, here or installed with the program; say where the "
                    "experiments are: --experiments DIR",
                    USUAL_PLACE);
}

/* Numbers inside names count as numbers. */
static int natural(const void *a, const void *b)
{
    const char *p = *(char *const *)a, *q = *(char *const *)b;
    for (; *p && *q; p++, q++) {
        if (isdigit((unsigned char)*p) && isdigit((unsigned char)*q)) {
            char *p_end, *q_end;
            const unsigned long x = strtoul(p, &p_end, 10), y = strtoul(q, &q_end, 10);
            if (x != y)
                return x < y ? -1 : 1;
            p = p_end - 1;
            q = q_end - 1;
        } else if (*p != *q)
            break;
    }
    return (unsigned char)*p - (unsigned char)*q;
}

/* A file that says neither how to draw nor how to analyse is there to be included. */
static bool makes_exhibit(const char *path)
{
    struct opc_sources *s;
    bool yes = true;
    if (opc_sources_create(&s, NULL))
        return yes;
    if (!opc_sources_read(s, path, NULL))
        yes = opc_sources_extra(s, "probe") || opc_sources_extra(s, "figure");
    opc_sources_destroy(s);
    return yes;
}

int opc_experiments_list(const char *dir, char ***name, int *n, struct opc_err *err)
{
    char path[OPC_PATH];
    DIR *d = opendir(dir);
    if (!d)
        return opc_fail_errno(err, errno, "cannot read %s", dir);
    char **list = opc_alloc(MAX_NAMES, sizeof *list);
    int found = 0,
        code = list ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory for experiments");
    for (struct dirent *e; !code && (e = readdir(d)) && found < MAX_NAMES;) {
        const size_t length = strlen(e->d_name);
        if (e->d_name[0] == '.' || length < 6 || strcmp(e->d_name + length - 5, ".yaml") != 0)
            continue;
        code = opc_path_join(path, dir, e->d_name, err);
        if (code || !makes_exhibit(path))
            continue;
        e->d_name[length - 5] = '\0';
        if (!(list[found] = opc_strdup(e->d_name)))
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for experiments");
        found += !code;
    }
    closedir(d);
    if (code) {
        for (int i = 0; i < found; i++)
            opc_free(list[i]);
        opc_free(list);
        return code;
    }
    qsort(list, (size_t)found, sizeof *list, natural);
    *name = list;
    *n = found;
    return OPC_OK;
}

/* ---- one of them ----------------------------------------------------------------------------- */

static int unknown(const char *dir, const char *name, struct opc_err *err)
{
    char **list;
    const char *meant = NULL;
    int n, nearest = INT_MAX;
    const int code = opc_experiments_list(dir, &list, &n, err);
    if (code)
        return code;
    for (int i = 0; i < n; i++)
        if (opc_nearer(name, list[i], &nearest))
            meant = list[i];
    opc_fail(err, OPC_EUSER, "there is no experiment '%s' in %s%s%s%s", name, dir,
             meant ? "; did you mean '" : "; 'opc repro list' names them", meant ? meant : "",
             meant ? "'?" : "");
    for (int i = 0; i < n; i++)
        opc_free(list[i]);
    opc_free(list);
    return OPC_EUSER;
}

static int find_file(const char *dir, const char *name, struct opc_experiment *x,
                     struct opc_err *err)
{
    char file[256];
    const char *last = opc_path_name(name), *dot = strrchr(last, '.');
    x->by_path = strchr(name, '/') != NULL;
    const bool has_end = dot && (x->by_path || strcmp(dot, ".yaml") == 0);
    snprintf(x->name, sizeof x->name, "%.*s", (int)(has_end ? dot - last : (long)strlen(last)),
             last);
    if (x->by_path)
        return opc_path_join(x->path, "", name, err);
    snprintf(file, sizeof file, "%.127s.yaml", x->name);
    const int code = opc_path_join(x->path, dir, file, err);
    return code || opc_file_exists(x->path) ? code : unknown(dir, name, err);
}

static int find_analysis(struct opc_experiment *x, struct opc_err *err)
{
    const struct opc_yaml *probe = x->file->probe;
    const char *name = "learning_curves";
    if (probe) {
        const struct opc_yaml *which = opc_yaml_find(probe, "analysis");
        if (!which || which->kind != OPC_YAML_WORD)
            return opc_fail(err, OPC_EUSER, "%s:%d: name the analysis: probe: {analysis: NAME}",
                            x->path, probe->line);
        name = which->text;
    } else if (!x->file->figure)
        return opc_fail(err, OPC_EUSER,
                        "%s makes no exhibit: it has neither 'probe' nor 'figure'; 'opc sweep' and "
                        "'opc train' run it",
                        x->path);
    x->analysis = opc_analysis_find(name, err);
    if (!x->analysis || opc_analysis_check(x->analysis, probe, x->file->figure, err))
        return opc_within(err, "%s", x->path);
    return OPC_OK;
}

/* What is to be run first: nothing for a probe that varies nothing. */
static int find_runs(struct opc_experiment *x, const char *tier, struct opc_err *err)
{
    char folder[OPC_PATH], below[256];
    const char *name = *x->file->runs ? x->file->runs : x->name;
    int code = OPC_OK;
    if (*x->file->runs) {
        char path[OPC_PATH], file[256];
        snprintf(file, sizeof file, "%.200s.yaml", name);
        code = opc_path_parent(folder, x->path, err);
        if (!code)
            code = opc_path_join(path, folder, file, err);
        const struct opc_sweep_ask ask = {.path = path, .tier = tier, .any_tier = true};
        if (!code && opc_sweep_open(&ask, &x->other, err))
            code = opc_within(err, "%s: runs", x->path);
        if (!code && *x->other->runs)
            code = opc_fail(err, OPC_EUSER, "%s: the runs of %s are those of %s: name that",
                            x->path, name, x->other->runs);
        x->runs = x->other;
    } else if (opc_sweep_has_runs(x->file))
        x->runs = x->file;
    x->tier = *x->file->tier || !x->other ? x->file->tier : x->other->tier;
    snprintf(below, sizeof below, "runs/%.200s", name);
    return code ? code : opc_path_join(x->runs_dir, x->out, below, err);
}

int opc_experiment_open(const char *dir, const char *name, const char *tier, const char *out,
                        struct opc_experiment **result, struct opc_err *err)
{
    struct opc_experiment *x = opc_alloc(1, sizeof *x);
    if (!x)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the experiment %s", name);
    x->out = out;
    int code = find_file(dir, name, x, err);
    x->by_path = x->by_path || (*dir != '/' && strcmp(dir, USUAL_PLACE) != 0);
    const struct opc_sweep_ask ask = {.path = x->path, .tier = tier, .any_tier = true};
    if (!code)
        code = opc_sweep_open(&ask, &x->file, err);
    if (!code)
        code = find_analysis(x, err);
    if (!code)
        code = find_runs(x, tier, err);
    if (code)
        opc_experiment_close(x);
    else
        *result = x;
    return code;
}

void opc_experiment_close(struct opc_experiment *x)
{
    if (!x)
        return;
    opc_sweep_close(x->file);
    opc_sweep_close(x->other);
    opc_free(x);
}

/* ---- how it stands --------------------------------------------------------------------------- */

static int exhibit_path(const struct opc_experiment *x, char path[OPC_PATH], struct opc_err *err)
{
    char file[160];
    snprintf(file, sizeof file, "%s.json", x->name);
    return opc_path_join(path, x->out, file, err);
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

void opc_experiment_standing(const struct opc_experiment *x, struct opc_standing *s)
{
    char path[OPC_PATH], *text = NULL;
    struct stat exhibit, result;
    struct opc_exhibit_read *read = NULL;
    *s = (struct opc_standing){.runs = x->runs ? x->runs->tasks : 0};
    s->made = !exhibit_path(x, path, NULL) && stat(path, &exhibit) == 0 &&
              !opc_exhibit_load(path, &read, NULL);
    s->current = s->made;
    for (int i = 0; i < s->runs; i++) {
        struct opc_look look;
        opc_schedule_look(x->runs_dir, &x->runs->task[i], &look);
        if (look.state != OPC_STATE_DONE ||
            opc_schedule_path(x->runs_dir, &x->runs->task[i], "/result.json", path, NULL) ||
            stat(path, &result))
            continue;
        s->complete++;
        if (s->made && is_newer(&result.st_mtim, &exhibit.st_mtim))
            s->current = false;
    }
    if (!s->made)
        return;
    /* That a run is older than the exhibit does not mean that it was there: it may have been made
     * elsewhere. */
    s->current = s->current && read->missing == 0;
    s->current = s->current && s->complete == s->runs && strcmp(read->tier, x->tier) == 0 &&
                 !opc_file_read(x->path, MAX_FILE, &text, NULL, NULL) &&
                 strcmp(read->config, text) == 0;
    opc_free(text);
    snprintf(s->tier, sizeof s->tier, "%s", read->tier);
    for (int i = 0; i < read->claims; i++) {
        s->supported += read->claim[i].verdict == OPC_SUPPORTED;
        s->refuted += read->claim[i].verdict == OPC_NOT_SUPPORTED;
        s->undecided += read->claim[i].verdict == OPC_UNDECIDED;
    }
    opc_exhibit_unload(read);
}

/* ---- the caption ----------------------------------------------------------------------------- */

struct seen { /* over the runs of an experiment */
    int complete;
    struct opc_text engines, versions; /* different ones, ", " between */
    int epochs[2], steps[2];           /* least and most */
};

static void note_word(struct opc_text *list, const char *word)
{
    const char *at = opc_text_get(list);
    const size_t n = strlen(word);
    for (; *at; at += strcspn(at, ","), at += strspn(at, ", "))
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || !at[n]))
            return;
    opc_text_addf(list, "%s%s", list->used ? ", " : "", word);
}

static void widen(int range[2], int value)
{
    range[0] = !range[0] || value < range[0] ? value : range[0];
    range[1] = value > range[1] ? value : range[1];
}

static void add_range(struct opc_text *t, const int range[2], const char *unit)
{
    if (range[0] == range[1])
        opc_text_addf(t, "%d %s", range[0], unit);
    else
        opc_text_addf(t, "%d to %d %s", range[0], range[1], unit);
}

static int ascending(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* "seeds 1 to 5", "seeds 2, 3, 7", "seed 1" */
static int add_seeds(const struct opc_sweep *s, struct opc_text *t, struct opc_err *err)
{
    int *seed = opc_alloc((size_t)s->tasks, sizeof *seed), n = 1;
    if (!seed)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the caption");
    for (int i = 0; i < s->tasks; i++)
        seed[i] = s->task[i].set.train.seed;
    qsort(seed, (size_t)s->tasks, sizeof *seed, ascending);
    for (int i = 1; i < s->tasks; i++)
        if (seed[i] != seed[n - 1])
            seed[n++] = seed[i];
    opc_text_add(t, n == 1 ? "seed " : "seeds ");
    if (n > 1 && seed[n - 1] - seed[0] == n - 1)
        opc_text_addf(t, "%d to %d", seed[0], seed[n - 1]);
    else
        for (int i = 0; i < n; i++)
            opc_text_addf(t, "%s%d", i ? ", " : "", seed[i]);
    opc_free(seed);
    return OPC_OK;
}

static int compose(const struct opc_experiment *x, const struct seen *seen, struct opc_text *t,
                   struct opc_err *err)
{
    const struct opc_sweep *runs = x->runs;
    int code = OPC_OK;
    if (*x->tier)
        opc_text_addf(t, "Tier %s; ", x->tier);
    if (runs && seen->complete < runs->tasks)
        opc_text_add(t, "INCOMPLETE: ");
    if (runs) {
        opc_text_addf(t, "%d of %d runs complete, ", seen->complete, runs->tasks);
        code = add_seeds(runs, t, err);
        opc_text_add(t, "; ");
        add_range(t, seen->epochs, "epochs");
        opc_text_add(t, " x ");
        add_range(t, seen->steps, "steps");
        opc_text_add(t, "; ");
    }
    opc_text_addf(t, "opc %s", OPC_VERSION);
    if (seen->versions.used && strcmp(opc_text_get(&seen->versions), OPC_VERSION) != 0)
        opc_text_addf(t, " (runs: %s)", opc_text_get(&seen->versions));
    if (seen->engines.used)
        opc_text_addf(t, ", %s", opc_text_get(&seen->engines));
    opc_text_add(t, ".");
    return code ? code : opc_text_check(t, err);
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* The directories of complete runs, in order, and what the caption tells about all. */
static int gather(const struct opc_experiment *x, char **dir, struct seen *seen,
                  struct opc_err *err)
{
    char path[OPC_PATH];
    for (int i = 0; x->runs && i < x->runs->tasks; i++) {
        const struct opc_task *t = &x->runs->task[i];
        struct opc_look look;
        widen(seen->epochs, t->set.train.epochs);
        widen(seen->steps, t->set.train.steps_per_epoch);
        opc_schedule_look(x->runs_dir, t, &look);
        if (look.state != OPC_STATE_DONE)
            continue;
        if (*look.engine)
            note_word(&seen->engines, look.engine);
        if (*look.version)
            note_word(&seen->versions, look.version);
        const int code = opc_schedule_path(x->runs_dir, t, "", path, err);
        if (code)
            return code;
        if (!(dir[seen->complete++] = opc_strdup(path)))
            return opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of %s", x->name);
    }
    if (x->runs && seen->complete == 0)
        return opc_fail(err, OPC_EIO,
                        "none of the %d runs is complete, so there is nothing to draw",
                        x->runs->tasks);
    return OPC_OK;
}

static int make_exhibit(const struct opc_experiment *x, const struct opc_request *request,
                        const char *caption, struct opc_err *err)
{
    char command[OPC_PATH + 128], *config;
    struct opc_exhibit *exhibit;
    const char *asked = x->by_path ? opc_path_display(x->path) : x->name;
    snprintf(command, sizeof command, "opc repro %s%s%s", asked, *x->tier ? " --tier " : "",
             x->tier);
    int code = opc_file_read(x->path, MAX_FILE, &config, NULL, err);
    if (code)
        return code;
    const struct opc_exhibit_plan plan = {
        .dir = x->out,
        .name = x->name,
        .title = *x->file->title ? x->file->title : x->name,
        .tier = *x->tier ? x->tier : NULL,
        .caption = caption,
        .command = command,
        .config = config,
        .missing = request->missing,
    };
    code = opc_exhibit_begin(&plan, &exhibit, err);
    opc_free(config);
    if (code)
        return code;
    code = opc_analysis_run(x->analysis, request, exhibit, err);
    if (code) {
        opc_exhibit_drop(exhibit);
        return opc_within(err, "%s", x->path);
    }
    return opc_exhibit_end(exhibit, err);
}

int opc_experiment_draw(const struct opc_experiment *x, int threads,
                        void (*progress)(void *ctx, double done, const char *what), void *ctx,
                        struct opc_err *err)
{
    struct seen seen = {0};
    struct opc_text caption = {0};
    struct opc_pool *pool = NULL;
    char **dir = opc_alloc(x->runs ? (size_t)x->runs->tasks : 1, sizeof *dir);
    int code = dir ? gather(x, dir, &seen, err)
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of %s", x->name);
    if (!code)
        code = compose(x, &seen, &caption, err);
    if (!code)
        code = opc_pool_create(threads, &pool, err);
    const struct opc_request request = {
        .ask = x->file->probe,
        .figure = x->file->figure,
        .runs = seen.complete,
        .missing = x->runs ? x->runs->tasks - seen.complete : 0,
        .run = dir,
        .pool = pool,
        .seed = (uint64_t)x->file->seed,
        .progress = progress,
        .ctx = ctx,
    };
    if (!code)
        code = make_exhibit(x, &request, opc_text_get(&caption), err);
    opc_pool_destroy(pool);
    for (int i = 0; dir && i < seen.complete; i++)
        opc_free(dir[i]);
    opc_free(dir);
    opc_text_free(&caption);
    opc_text_free(&seen.engines);
    opc_text_free(&seen.versions);
    return code;
}
