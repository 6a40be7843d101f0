/* SPDX-License-Identifier: MIT */
/* Experiments of the paper: finds their files, says how far each has got, and makes its exhibit
 * from finished runs. opc repro (cli/cmd_repro.c) calls it; sweep/schedule.c does the running in
 * between.
 *
 * Invariant: everything in an exhibit (caption, command, settings) is free of times and machine
 * paths, so that the same runs give the same bytes. */
#include "study/repro.h"

#include "base/log.h"
#include "opc/mem.h"
#include "opc/version.h"
#include "study/borrow.h"
#include "study/caption.h"
#include "study/kept.h"

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

/* ---- the list of experiments ----------------------------------------------------------------- */

int opc_experiments_dir(const char *given, char out[OPC_PATH], struct opc_err *err)
{
    /* A directory that was given must exist; otherwise the usual one, here or installed. */
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

/* Order of names in which numbers count as numbers: fig2 before fig10. */
static int natural_order(const void *a, const void *b)
{
    const char *p = *(char *const *)a, *q = *(char *const *)b;
    for (; *p && *q; p++, q++) {
        /* Compare runs of digits as numbers, and continue after them. */
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

/* Whether a file makes an exhibit. One with neither `probe` nor `figure` is only there to be
 * included; one that cannot be read is listed, so that opening it reports why. */
static bool makes_exhibit(const char *path)
{
    /* Only the two keys matter here; errors are reported when the experiment is opened. */
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
    /* Names end with .yaml and do not start with a dot. */
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
    /* A failure frees what was collected so far. */
    if (code) {
        for (int i = 0; i < found; i++)
            opc_free(list[i]);
        opc_free(list);
        return code;
    }
    qsort(list, (size_t)found, sizeof *list, natural_order);
    *name = list;
    *n = found;
    return OPC_OK;
}

/* ---- one experiment -------------------------------------------------------------------------- */

/* Refuses an unknown name and suggests the nearest. */
static int refuse_unknown(const char *dir, const char *name, struct opc_err *err)
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

/* Sets name and path. A name with a slash is a path. */
static int find_file(const char *dir, const char *name, struct opc_experiment *experiment,
                     struct opc_err *err)
{
    char file[256];
    const char *last = opc_path_name(name), *dot = strrchr(last, '.');
    /* Of a path any ending is removed from the name, of a name only .yaml. */
    experiment->by_path = strchr(name, '/') != NULL;
    const bool has_end = dot && (experiment->by_path || strcmp(dot, ".yaml") == 0);
    snprintf(experiment->name, sizeof experiment->name, "%.*s",
             (int)(has_end ? dot - last : (long)strlen(last)), last);
    if (experiment->by_path)
        return opc_path_join(experiment->path, "", name, err);
    snprintf(file, sizeof file, "%.127s.yaml", experiment->name);
    const int code = opc_path_join(experiment->path, dir, file, err);
    return code || opc_file_exists(experiment->path) ? code : refuse_unknown(dir, name, err);
}

/* Finds the analysis that the file asks for and checks its settings. */
static int find_analysis(struct opc_experiment *experiment, struct opc_err *err)
{
    const struct opc_yaml *probe = experiment->file->probe;
    /* A file with `figure` alone is drawn as learning curves. */
    const char *name = "learning_curves";
    if (probe) {
        const struct opc_yaml *which = opc_yaml_find(probe, "analysis");
        if (!which || which->kind != OPC_YAML_WORD)
            return opc_fail(err, OPC_EUSER, "%s:%d: name the analysis: probe: {analysis: NAME}",
                            experiment->path, probe->line);
        name = which->text;
    } else if (!experiment->file->figure)
        return opc_fail(err, OPC_EUSER,
                        "%s makes no exhibit: it has neither 'probe' nor 'figure'; 'opc sweep' and "
                        "'opc train' run it",
                        experiment->path);
    experiment->analysis = opc_analysis_find(name, err);
    if (!experiment->analysis ||
        opc_analysis_check(experiment->analysis, probe, experiment->file->figure, err))
        return opc_within(err, "%s", experiment->path);
    return OPC_OK;
}

/* What 'opc sweep FILE run' has made, where it puts it by default, is not made again: without runs
 * of our own, those of a directory sweep-NAME-TIER or sweep-NAME are taken and completed, if they
 * are of these settings. */
static void share_runs(struct opc_experiment *experiment, const char *name)
{
    char dir[2][OPC_PATH];
    if (opc_is_directory(experiment->runs_dir))
        return;
    snprintf(dir[0], OPC_PATH, "sweep-%.200s-%.60s", name, experiment->tier);
    snprintf(dir[1], OPC_PATH, "sweep-%.200s", name);
    for (int k = 0; k < 2; k++) {
        int same = 0;
        if (!opc_is_directory(dir[k]))
            continue;
        opc_sweep_adopt(experiment->other ? experiment->other : experiment->file, dir[k]);
        for (int i = 0; i < experiment->runs->tasks; i++) {
            struct opc_look look;
            opc_schedule_look(dir[k], &experiment->runs->task[i], &look);
            same += look.begun;
            if (look.state == OPC_STATE_FOREIGN) { /* other settings: it is another sweep */
                same = 0;
                break;
            }
        }
        if (same > 0) {
            memcpy(experiment->runs_dir, dir[k], sizeof dir[k]);
            return;
        }
    }
}

/* Finds the sweep that must be run first: the one that the file names under `runs`, its own, or
 * none for a probe that varies nothing. */
static int find_runs(struct opc_experiment *experiment, const struct opc_experiment_ask *asked,
                     struct opc_err *err)
{
    char folder[OPC_PATH], below[256];
    const char *name = *experiment->file->runs ? experiment->file->runs : experiment->name;
    int code = OPC_OK;
    /* Runs of another file, which must have runs of its own. */
    if (*experiment->file->runs) {
        char path[OPC_PATH], file[256];
        snprintf(file, sizeof file, "%.200s.yaml", name);
        code = opc_path_parent(folder, experiment->path, err);
        if (!code)
            code = opc_path_join(path, folder, file, err);
        const struct opc_sweep_ask ask = {.path = path,
                                          .tier = asked->tier,
                                          .any_tier = true,
                                          .sets = asked->sets,
                                          .set = asked->set,
                                          .no_runs = asked->no_runs};
        if (!code && opc_sweep_open(&ask, &experiment->other, err))
            code = opc_within(err, "%s: runs", experiment->path);
        if (!code && *experiment->other->runs)
            code = opc_fail(err, OPC_EUSER, "%s: the runs of %s are those of %s: name that",
                            experiment->path, name, experiment->other->runs);
        experiment->runs = experiment->other;
    } else if (opc_sweep_has_runs(experiment->file))
        experiment->runs = experiment->file;
    if (!code && asked->sets && !experiment->runs)
        code = opc_fail(err, OPC_EUSER,
                        "%s: %s has no runs, whose setting it could be; change a copy of %s",
                        asked->set[0], experiment->name, experiment->path);
    /* The tier is that of the file, or of the runs it borrows. */
    experiment->tier = *experiment->file->tier || !experiment->other ? experiment->file->tier
                                                                     : experiment->other->tier;
    snprintf(below, sizeof below, "runs/%.200s", name);
    if (!code)
        code = opc_path_join(experiment->runs_dir, experiment->out, below, err);
    if (code || !experiment->runs)
        return code;
    share_runs(experiment, name);
    opc_sweep_adopt(experiment->other ? experiment->other : experiment->file, experiment->runs_dir);
    return OPC_OK;
}

int opc_experiment_open(const struct opc_experiment_ask *asked, struct opc_experiment **result,
                        struct opc_err *err)
{
    struct opc_experiment *experiment = opc_alloc(1, sizeof *experiment);
    if (!experiment)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the experiment %s", asked->name);
    experiment->out = asked->out;
    int code = find_file(asked->dir, asked->name, experiment, err);
    /* A command can name the experiment if it is in the usual place or an installed one. */
    experiment->by_path =
        experiment->by_path || (*asked->dir != '/' && strcmp(asked->dir, USUAL_PLACE) != 0);
    for (int i = 0; i < asked->sets; i++)
        opc_text_addf(&experiment->given, " %s", asked->set[i]);
    if (!code)
        code = opc_text_check(&experiment->given, err);
    const struct opc_sweep_ask ask = {.path = experiment->path,
                                      .tier = asked->tier,
                                      .any_tier = true,
                                      .sets = asked->sets,
                                      .set = asked->set,
                                      .no_runs = asked->no_runs};
    if (!code)
        code = opc_sweep_open(&ask, &experiment->file, err);
    if (!code)
        code = find_analysis(experiment, err);
    if (!code)
        code = find_runs(experiment, asked, err);
    if (code)
        opc_experiment_close(experiment);
    else
        *result = experiment;
    return code;
}

/* Accepts an experiment of which only a part was opened. */
void opc_experiment_close(struct opc_experiment *experiment)
{
    if (!experiment)
        return;
    opc_sweep_close(experiment->file);
    opc_sweep_close(experiment->other);
    opc_text_free(&experiment->given);
    opc_free(experiment);
}

/* ---- progress -------------------------------------------------------------------------------- */

int opc_experiment_exhibit(const struct opc_experiment *experiment, char path[OPC_PATH],
                           struct opc_err *err)
{
    char file[160];
    snprintf(file, sizeof file, "%s.json", experiment->name);
    return opc_path_join(path, experiment->out, file, err);
}

/* The settings of an exhibit: its file as it is, and below it, as a comment, those of the command
 * line. An exhibit of other settings is out of date. */
static int read_config(const struct opc_experiment *experiment, struct opc_text *out,
                       struct opc_err *err)
{
    char *text;
    OPC_TRY(opc_file_read(experiment->path, MAX_FILE, &text, NULL, err));
    opc_text_add(out, text);
    opc_free(text);
    if (experiment->given.used)
        opc_text_addf(out, "\n# on the command line:%s\n", opc_text_get(&experiment->given));
    return opc_text_check(out, err);
}

/* Times to the nanosecond: a small experiment is made within a second. */
static bool is_newer(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

void opc_experiment_standing(const struct opc_experiment *experiment, struct opc_standing *standing)
{
    char path[OPC_PATH];
    struct opc_text config = {0};
    struct stat exhibit, result;
    struct opc_exhibit_read *read = NULL;
    /* Load the exhibit that is there, if any. */
    *standing = (struct opc_standing){.runs = experiment->runs ? experiment->runs->tasks : 0};
    standing->made = !opc_experiment_exhibit(experiment, path, NULL) && stat(path, &exhibit) == 0 &&
                     !opc_exhibit_load(path, &read, NULL);
    standing->current = standing->made;
    /* Count complete runs; a result newer than the exhibit makes that outdated. */
    for (int i = 0; i < standing->runs; i++) {
        struct opc_look look;
        opc_schedule_look(experiment->runs_dir, &experiment->runs->task[i], &look);
        if (look.state != OPC_STATE_DONE ||
            opc_schedule_path(experiment->runs_dir, &experiment->runs->task[i], "/result.json",
                              path, NULL) ||
            stat(path, &result))
            continue;
        standing->complete++;
        if (standing->made && is_newer(&result.st_mtim, &exhibit.st_mtim))
            standing->current = false;
    }
    if (!standing->made)
        return;
    /* A run that is older than the exhibit was not necessarily part of it: it may have been
     * copied here later. So the exhibit itself must say that no run was missing. */
    standing->current = standing->current && read->missing == 0;
    standing->current = standing->current && standing->complete == standing->runs &&
                        strcmp(read->tier, experiment->tier) == 0 &&
                        !read_config(experiment, &config, NULL) &&
                        strcmp(read->config, opc_text_get(&config)) == 0;
    /* Counts of the claims, whether or not the exhibit is current. */
    opc_text_free(&config);
    snprintf(standing->tier, sizeof standing->tier, "%s", read->tier);
    for (int i = 0; i < read->claims; i++) {
        standing->supported += read->claim[i].verdict == OPC_VERDICT_SUPPORTED;
        standing->refuted += read->claim[i].verdict == OPC_VERDICT_NOT_SUPPORTED;
        standing->undecided += read->claim[i].verdict == OPC_VERDICT_UNDECIDED;
    }
    opc_exhibit_unload(read);
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* The runs of an experiment as an analysis gets them, [tasks] each. */
struct gathered {
    char **dir;                                  /* of the complete ones */
    const struct opc_values **absent, **planned; /* settings of the others, and of all */
};

/* Collects the directories of complete runs and the settings of the others, in order, and what the
 * caption says about the complete ones. */
static int gather_runs(const struct opc_experiment *experiment, const struct gathered *out,
                       struct opc_caption *caption, struct opc_err *err)
{
    char path[OPC_PATH];
    int missing = 0;
    for (int i = 0; experiment->runs && i < experiment->runs->tasks; i++) {
        const struct opc_task *task = &experiment->runs->task[i];
        struct opc_look look;
        out->planned[i] = &task->set;
        opc_schedule_look(experiment->runs_dir, task, &look);
        if (look.state != OPC_STATE_DONE) {
            out->absent[missing++] = &task->set;
            continue;
        }
        const int code = opc_schedule_path(experiment->runs_dir, task, "", path, err);
        if (code)
            return code;
        if (!(out->dir[caption->complete] = opc_strdup(path)))
            return opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of %s",
                            experiment->name);
        opc_caption_note(caption, task, &look);
    }
    if (experiment->runs && caption->complete == 0)
        return opc_fail(err, OPC_EIO,
                        "none of the %d runs is complete, so there is nothing to draw",
                        experiment->runs->tasks);
    return OPC_OK;
}

/* Writes the exhibit: begin, analysis, end. A failed analysis leaves no NAME.json. */
static int make_exhibit(const struct opc_experiment *experiment, const struct opc_request *request,
                        const char *caption, struct opc_err *err)
{
    struct opc_text command = {0}, config = {0};
    struct opc_exhibit *exhibit;
    const char *asked = experiment->by_path ? opc_path_display(experiment->path) : experiment->name;
    opc_text_addf(&command, "opc repro %s%s%s%s", asked, opc_text_get(&experiment->given),
                  *experiment->tier ? " --tier " : "", experiment->tier);
    int code = read_config(experiment, &config, err);
    if (!code)
        code = opc_text_check(&command, err);
    const struct opc_exhibit_plan plan = {
        .dir = experiment->out,
        .name = experiment->name,
        .title = *experiment->file->title ? experiment->file->title : experiment->name,
        .tier = *experiment->tier ? experiment->tier : NULL,
        .caption = caption,
        .command = opc_text_get(&command),
        .config = opc_text_get(&config),
        .missing = request->missing,
    };
    if (!code)
        code = opc_exhibit_begin(&plan, &exhibit, err);
    opc_text_free(&command);
    opc_text_free(&config);
    if (code)
        return code;
    code = opc_analysis_run(experiment->analysis, request, exhibit, err);
    if (code) {
        opc_exhibit_drop(exhibit);
        return opc_within(err, "%s", experiment->path);
    }
    return opc_exhibit_end(exhibit, err);
}

/* Collects the runs, writes the caption and makes the exhibit with a pool of its own. */
int opc_experiment_draw(const struct opc_experiment *experiment, int threads,
                        void (*progress)(void *ctx, double done, const char *what), void *ctx,
                        struct opc_err *err)
{
    struct opc_caption seen;
    struct opc_text caption = {0};
    struct opc_pool *pool = NULL;
    char folder[OPC_PATH];
    const size_t tasks = experiment->runs ? (size_t)experiment->runs->tasks : 1;
    const struct gathered gathered = {.dir = opc_alloc(tasks, sizeof *gathered.dir),
                                      .absent = opc_alloc(tasks, sizeof *gathered.absent),
                                      .planned = opc_alloc(tasks, sizeof *gathered.planned)};
    int code = opc_caption_begin(&seen, (int)tasks, err);
    if (!code)
        code = gathered.dir && gathered.absent && gathered.planned
                   ? gather_runs(experiment, &gathered, &seen, err)
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of %s",
                              experiment->name);
    if (!code)
        code = opc_caption_write(experiment, &seen, &caption, err);
    if (!code)
        code = opc_path_parent(folder, experiment->path, err);
    if (!code)
        code = opc_pool_create(threads, &pool, err);
    const struct opc_request request = {
        .ask = experiment->file->probe,
        .figure = experiment->file->figure,
        .runs = seen.complete,
        .missing = experiment->runs ? experiment->runs->tasks - seen.complete : 0,
        .run = gathered.dir,
        .absent = gathered.absent,
        .planned = experiment->runs ? gathered.planned : NULL,
        .folder = folder,
        .pool = pool,
        .seed = (uint64_t)experiment->file->seed,
        .progress = progress,
        .ctx = ctx,
    };
    if (!code)
        code = make_exhibit(experiment, &request, opc_text_get(&caption), err);
    opc_pool_destroy(pool);
    for (int i = 0; gathered.dir && i < seen.complete; i++)
        opc_free(gathered.dir[i]);
    opc_free(gathered.dir);
    opc_free(gathered.absent);
    opc_free(gathered.planned);
    opc_text_free(&caption);
    opc_caption_free(&seen);
    return code;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Starts the runs that are missing and returns when none is under way, or when a cluster has taken
 * them; *queued is how many it has. */
static int run_missing(const struct opc_experiment *experiment,
                       const struct opc_experiment_plan *plan, int *queued, struct opc_err *err)
{
    struct opc_schedule schedule = plan->schedule;
    struct opc_tally tally = {0};
    schedule.out = experiment->runs_dir;
    const int code = plan->sweep ? plan->sweep(experiment->runs, schedule, &tally, err)
                                 : opc_schedule_run(experiment->runs, &schedule, &tally, err);
    *queued = code ? 0 : tally.running;
    return code;
}

/* Takes over the runs of earlier merges; *taken is how many. */
static int restore_kept(const struct opc_experiment *experiment, const struct opc_texts *kept,
                        int *taken, struct opc_err *err)
{
    *taken = 0;
    for (int i = 0; kept && i < kept->n; i++) {
        int restored;
        OPC_TRY(opc_experiment_restore(experiment, kept->at[i], &restored, err));
        *taken += restored;
    }
    return OPC_OK;
}

int opc_experiment_make(const struct opc_experiment *experiment,
                        const struct opc_experiment_plan *plan, struct opc_standing *standing,
                        bool *drawn, struct opc_err *err)
{
    int code = OPC_OK, queued = 0, borrowed = 0, restored = 0;
    *drawn = false;
    /* Before anything is counted: what another figure has made, or another machine, is not missing
     * here. */
    OPC_TRY(restore_kept(experiment, plan->kept, &restored, err));
    OPC_TRY(opc_experiment_borrow(experiment, &borrowed, err));
    if (borrowed > 0)
        opc_log(OPC_LEVEL_INFO, "%s: %d run%s of other experiments in %s", experiment->name,
                borrowed, borrowed == 1 ? " is" : "s are", experiment->out);
    opc_experiment_standing(experiment, standing);
    /* Nothing has changed since the exhibit was drawn. */
    if (standing->current && !plan->redraw)
        return OPC_OK;
    standing->restored = restored;
    if (plan->begin)
        plan->begin(plan->ctx, experiment, standing);
    if (plan->draw_only && experiment->runs && standing->complete == 0)
        return opc_fail(err, OPC_EUSER, "none of the %d runs is complete, and no run is to be made",
                        standing->runs);
    if (standing->complete < standing->runs && !plan->draw_only)
        code = run_missing(experiment, plan, &queued, err);
    opc_experiment_standing(experiment, standing);
    standing->queued = queued;
    if (queued > 0)
        return OPC_OK;
    /* Failed or stopped runs may have left complete ones; after any other error nothing has run. */
    if ((code && code != OPC_EIO && code != OPC_ESTOPPED) ||
        (standing->complete == 0 && experiment->runs))
        return code;
    /* The first error is the one that is returned; one of drawing after that is only logged. */
    struct opc_err fault = {0};
    const int failed =
        opc_experiment_draw(experiment, plan->schedule.threads, plan->progress, plan->ctx, &fault);
    if (failed && code)
        opc_log(OPC_LEVEL_WARN, "%s", fault.text);
    else if (failed && err)
        *err = fault;
    *drawn = !failed;
    opc_experiment_standing(experiment, standing);
    return code ? code : failed;
}
