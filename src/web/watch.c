/* SPDX-License-Identifier: MIT */
/* Keeps the list of runs of opc serve up to date (web/watch.h). The loop of web/serve.c calls
 * opc_watch_step between requests.
 *
 * A run is read again only when its files have changed: metrics.csv by size or time, status.json by
 * time, or the lock of a run that was going on. Runs that are done are looked at in every tenth
 * pass only. Invariant: whatever changes in a run raises `version`, so a page that asks for what is
 * newer than the version it has misses nothing. */
#include "web/watch.h"

#include "base/clock.h"
#include "base/file.h"
#include "opc/mem.h"
#include "run/files/rundir.h"

#include <string.h>

enum { EVERY = 2, SEARCH_EVERY = 5, DONE_PASSES = 10 }; /* seconds, seconds, passes */
static const double SHARE = 0.05;                       /* of one processor, at most */

static int watch_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "out of memory for the list of runs");
}

/* ---- one run --------------------------------------------------------------------------------- */

/* The time a file was changed and its size; zeros where it is not there. */
static struct timespec changed_at(const char *dir, const char *name, off_t *size)
{
    char path[OPC_PATH];
    struct stat st;
    if (opc_path_join(path, dir, name, NULL) || stat(path, &st))
        memset(&st, 0, sizeof st);
    if (size)
        *size = st.st_size;
    return st.st_mtim;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Reads the run and notes what its files looked like before: a change while it is being read is
 * seen by the next pass. */
static void read_run(struct opc_watch *watch, struct opc_watch_run *run)
{
    run->metrics = changed_at(run->dir, "metrics.csv", &run->size);
    run->status = changed_at(run->dir, "status.json", NULL);
    opc_summary_read(run->dir, watch->defaults, &run->now);
    run->version = watch->version;
}

/* Looks whether a run has changed, and reads it again if so. */
static void look_at(struct opc_watch *watch, struct opc_watch_run *run)
{
    off_t size;
    const struct timespec metrics = changed_at(run->dir, "metrics.csv", &size);
    const struct timespec status = changed_at(run->dir, "status.json", NULL);
    bool changed =
        size != run->size || !same_time(metrics, run->metrics) || !same_time(status, run->status);
    /* A process that was killed changes no file; a resumed one may not have yet. */
    if (!changed && run->now.state != OPC_SUMMARY_DONE)
        changed = opc_rundir_is_locked(run->dir) != (run->now.state == OPC_SUMMARY_RUNNING);
    if (!changed && run->now.state != OPC_SUMMARY_DONE && run->now.state != OPC_SUMMARY_RUNNING)
        changed = opc_rundir_has(run->dir, "result.json");
    const bool gone = metrics.tv_sec == 0 && !opc_rundir_is_run(run->dir);
    if (gone != run->gone) {
        run->gone = gone;
        changed = true;
    }
    if (changed) {
        watch->version++;
        read_run(watch, run);
    }
}

/* ---- finding runs ---------------------------------------------------------------------------- */

/* The place in `order` where a directory is, or would be; *found says which. */
static int place_of(const struct opc_watch *watch, const char *dir, bool *found)
{
    int low = 0, high = watch->runs;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (strcmp(watch->run[watch->order[middle]].dir, dir) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < watch->runs && strcmp(watch->run[watch->order[low]].dir, dir) == 0;
    return low;
}

static int grow(struct opc_watch *watch, struct opc_err *err)
{
    if (watch->runs < watch->capacity)
        return OPC_OK;
    const int capacity = watch->capacity ? 2 * watch->capacity : 64;
    struct opc_watch_run *run = opc_alloc((size_t)capacity, sizeof *run);
    int *order = opc_alloc((size_t)capacity, sizeof *order);
    if (!run || !order) {
        opc_free(run);
        opc_free(order);
        return watch_no_memory(err);
    }
    if (watch->runs > 0) {
        memcpy(run, watch->run, (size_t)watch->runs * sizeof *run);
        memcpy(order, watch->order, (size_t)watch->runs * sizeof *order);
    }
    opc_free(watch->run);
    opc_free(watch->order);
    watch->run = run;
    watch->order = order;
    watch->capacity = capacity;
    return OPC_OK;
}

/* Adds a directory that is not known yet; it is read by the next pass, or here. */
static int add_run(struct opc_watch *watch, const char *dir, struct opc_err *err)
{
    bool found;
    const int place = place_of(watch, dir, &found);
    if (found)
        return OPC_OK;
    OPC_TRY(grow(watch, err));
    char *own = opc_strdup(dir);
    if (!own)
        return watch_no_memory(err);
    memmove(watch->order + place + 1, watch->order + place,
            (size_t)(watch->runs - place) * sizeof *watch->order);
    watch->order[place] = watch->runs;
    watch->run[watch->runs] = (struct opc_watch_run){.dir = own};
    watch->version++;
    read_run(watch, &watch->run[watch->runs++]);
    return OPC_OK;
}

/* Looks for runs below all roots. */
static int search(struct opc_watch *watch, struct opc_err *err)
{
    struct opc_found found = {0};
    int code = OPC_OK;
    for (int i = 0; i < watch->roots && !code; i++)
        code = opc_found_add_any(&found, watch->root[i], err);
    for (int i = 0; i < found.n && !code; i++)
        code = add_run(watch, found.dir[i], err);
    opc_found_free(&found);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_watch_open(int roots, char *const root[], struct opc_watch **out, struct opc_err *err)
{
    struct opc_watch *watch = opc_alloc(1, sizeof *watch);
    if (!watch)
        return watch_no_memory(err);
    watch->root = opc_alloc((size_t)roots, sizeof *watch->root);
    watch->defaults = opc_alloc(1, sizeof *watch->defaults);
    int code = watch->root && watch->defaults ? OPC_OK : watch_no_memory(err);
    if (!code)
        code = opc_summary_defaults(watch->defaults, err);
    for (int i = 0; i < roots && !code; i++) {
        watch->root[i] = opc_strdup(root[i]);
        code = watch->root[i] ? OPC_OK : watch_no_memory(err);
        watch->roots++;
    }
    watch->version = 1;
    if (!code)
        code = search(watch, err);
    watch->search_at = watch->rest_until = opc_now() + EVERY;
    if (code)
        opc_watch_close(watch);
    else
        *out = watch;
    return code;
}

void opc_watch_close(struct opc_watch *watch)
{
    if (!watch)
        return;
    for (int i = 0; i < watch->runs; i++)
        opc_free(watch->run[i].dir);
    for (int i = 0; watch->root && i < watch->roots; i++)
        opc_free(watch->root[i]);
    opc_free(watch->root);
    opc_free(watch->run);
    opc_free(watch->order);
    opc_free(watch->defaults);
    opc_free(watch);
}

/* Is it this run's turn in this pass? */
static bool is_due(const struct opc_watch *watch, int i)
{
    return (watch->run[i].now.state != OPC_SUMMARY_DONE && !watch->run[i].gone) ||
           (i + watch->pass) % DONE_PASSES == 0;
}

double opc_watch_step(struct opc_watch *watch, double seconds)
{
    const double began = opc_now();
    if (began < watch->rest_until)
        return watch->rest_until - began;
    /* A search is one piece: it opens directories and reads what is new. A lack of memory, or a
     * root that is not there at the moment, is tried again. */
    if (watch->next == 0 && began >= watch->search_at) {
        (void)search(watch, NULL);
        const double spent = opc_now() - began;
        watch->search_at =
            opc_now() + (spent / SHARE > SEARCH_EVERY ? spent / SHARE : SEARCH_EVERY);
    }
    for (; watch->next < watch->runs && opc_now() - began < seconds; watch->next++)
        if (is_due(watch, watch->next))
            look_at(watch, &watch->run[watch->next]);
    watch->pass_spent += opc_now() - began;
    if (watch->next < watch->runs)
        return 0;
    /* The pass is complete: rest, the longer the more it took. */
    const double rest = watch->pass_spent / SHARE;
    watch->rest_until = opc_now() + (rest > EVERY ? rest : EVERY);
    watch->pass_spent = 0;
    watch->next = 0;
    watch->pass++;
    return watch->rest_until - opc_now();
}

int opc_watch_pass(struct opc_watch *watch, struct opc_err *err)
{
    for (int i = 0; i < watch->runs; i++)
        look_at(watch, &watch->run[i]);
    return search(watch, err);
}

const struct opc_watch_run *opc_watch_find(const struct opc_watch *watch, int number)
{
    return number >= 0 && number < watch->runs && !watch->run[number].gone ? &watch->run[number]
                                                                           : NULL;
}
