/* SPDX-License-Identifier: MIT */
/* Episodes as numpy arrays (base/format/npy.h), one element or row for each step, in time order:
 *
 *     observation [steps, obs], action [steps, act], reward [steps], next_observation [steps, obs],
 *     terminated [steps], truncated [steps], time [steps], episode [steps]
 *
 * D4RL's names are read, too. dataset.c calls it. Invariant: inside an episode, next_observation of
 * a step is the observation of the next; a file where it is not is refused. */
#include "study/dataset/dataset.h"

#include "base/format/npy.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum array { OBSERVATION, ACTION, REWARD, NEXT, TERMINATED, TRUNCATED, TIME, EPISODE, ARRAYS };

/* clang-format off */
static const struct {
    const char *name, *also; /* ours, D4RL's */
    bool needed;
} LIST[ARRAYS] = {
    [OBSERVATION] = {"observation", "observations", true},
    [ACTION] = {"action", "actions", true},
    [REWARD] = {"reward", "rewards", true},
    [NEXT] = {"next_observation", "next_observations", true},
    [TERMINATED] = {"terminated", "terminals", true},
    [TRUNCATED] = {"truncated", "timeouts", false},
    [TIME] = {"time", "time", false},
    [EPISODE] = {"episode", "episode", false},
};
/* clang-format on */

/* ---- writing --------------------------------------------------------------------------------- */

/* One array of all steps, filled step by step. */
struct column {
    enum opc_npy_type type;
    size_t width; /* elements of a step */
    char *data;
};

/* Of the three types that are written here. */
static size_t element_size(enum opc_npy_type type)
{
    return type == OPC_NPY_BOOL ? 1 : type == OPC_NPY_FLOAT ? 4 : 8;
}

/* Fills element i of every array. Elements are copied as bytes, because the arrays are of
 * several types. */
static void put_step(const struct opc_env *env, const struct opc_step *step, int b, int t,
                     bool last, size_t i, struct column *column)
{
    const size_t obs = (size_t)env->obs, act = (size_t)env->act;
    const int64_t episode = b + 1;
    const double time = opc_dataset_time(env, t);
    memcpy(column[OBSERVATION].data + i * obs * sizeof(float), step->state, obs * sizeof(float));
    memcpy(column[NEXT].data + i * obs * sizeof(float), step->next, obs * sizeof(float));
    /* actions in double, so that they come back to the same float */
    for (size_t k = 0; k < act; k++) {
        const double a = opc_dataset_action(env, step->action, (int)k);
        memcpy(column[ACTION].data + (i * act + k) * sizeof a, &a, sizeof a);
    }
    memcpy(column[REWARD].data + i * sizeof(float), &step->reward, sizeof(float));
    column[TERMINATED].data[i] = step->terminal;
    column[TRUNCATED].data[i] = last && !step->terminal;
    memcpy(column[TIME].data + i * sizeof time, &time, sizeof time);
    memcpy(column[EPISODE].data + i * sizeof episode, &episode, sizeof episode);
}

int opc_dataset_npz(const struct opc_episodes *past, int first, int end, const struct opc_env *env,
                    struct opc_text *out, struct opc_err *err)
{
    const size_t obs = (size_t)env->obs, act = (size_t)env->act;
    struct column column[ARRAYS] = {
        [OBSERVATION] = {OPC_NPY_FLOAT, obs, NULL}, [ACTION] = {OPC_NPY_DOUBLE, act, NULL},
        [REWARD] = {OPC_NPY_FLOAT, 1, NULL},        [NEXT] = {OPC_NPY_FLOAT, obs, NULL},
        [TERMINATED] = {OPC_NPY_BOOL, 1, NULL},     [TRUNCATED] = {OPC_NPY_BOOL, 1, NULL},
        [TIME] = {OPC_NPY_DOUBLE, 1, NULL},         [EPISODE] = {OPC_NPY_LONG, 1, NULL},
    };
    struct opc_zip zip = {.entries = 0};
    size_t steps = 0, i = 0;
    int code = OPC_OK;
    /* How long the arrays are, then their memory. */
    for (int b = first; b < end; b++)
        steps += (size_t)opc_episodes_length(past, b);
    for (int k = 0; k < ARRAYS && !code; k++) {
        column[k].data = opc_alloc(steps * column[k].width, element_size(column[k].type));
        if (!column[k].data)
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for %zu steps", steps);
    }
    /* One step after the other, ... */
    for (int b = first; b < end && !code; b++)
        for (int t = 0; t < opc_episodes_length(past, b); t++, i++) {
            const struct opc_step step = opc_episodes_at(past, b, t);
            put_step(env, &step, b, t, t + 1 == opc_episodes_length(past, b), i, column);
        }
    /* ... and one array after the other into the archive. */
    for (int k = 0; k < ARRAYS && !code; k++) {
        const bool wide = k == OBSERVATION || k == NEXT || k == ACTION;
        opc_npz_add(&zip, LIST[k].name,
                    &(struct opc_npy){.type = column[k].type,
                                      .dims = wide ? 2 : 1,
                                      .shape = {steps, column[k].width},
                                      .data = column[k].data});
    }
    if (!code)
        code = opc_zip_finish(&zip, err);
    if (!code)
        opc_text_add_bytes(out, opc_text_get(&zip.bytes), zip.bytes.used);
    for (int k = 0; k < ARRAYS; k++)
        opc_free(column[k].data);
    opc_zip_free(&zip);
    return code;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct opc_log_table *log;
    int file;
    bool has[ARRAYS];
    struct opc_npy array[ARRAYS];
    size_t steps;
};

/* Which entry is which array. Unknown ones are refused: they may be misspelt. */
static int find_arrays(struct reader *r, const struct opc_zip_entry *entry, int entries,
                       struct opc_err *err)
{
    for (int i = 0; i < entries; i++) {
        /* without .npy */
        char name[OPC_ZIP_NAME];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(entry[i].name, "."), entry[i].name);
        int k = 0;
        while (k < ARRAYS && strcmp(name, LIST[k].name) != 0 && strcmp(name, LIST[k].also) != 0)
            k++;
        if (k == ARRAYS)
            return opc_fail(err, OPC_EUSER, "there is no column %s; docs/data.md has the columns",
                            name);
        if (r->has[k])
            return opc_fail(err, OPC_EUSER, "column %s is there twice", name);
        OPC_TRY(opc_npy_parse(&entry[i], &r->array[k], err));
        r->has[k] = true;
    }
    for (int k = 0; k < ARRAYS; k++)
        if (LIST[k].needed && !r->has[k])
            return opc_fail(err, OPC_EUSER, "column %s is missing", LIST[k].name);
    return OPC_OK;
}

/* [steps, obs], [steps, act], and [steps] or [steps, 1] for the rest. */
static int check_shapes(struct reader *r, struct opc_err *err)
{
    r->steps = r->array[OBSERVATION].dims > 0 ? r->array[OBSERVATION].shape[0] : 0;
    for (int k = 0; k < ARRAYS; k++) {
        const struct opc_npy *a = &r->array[k];
        const size_t width = k == OBSERVATION || k == NEXT ? (size_t)r->log->obs
                             : k == ACTION                 ? (size_t)r->log->act
                                                           : 1;
        if (!r->has[k])
            continue;
        /* [steps] and [steps, 1] are the same to us. */
        const bool flat = a->dims == 1 && width == 1, wide = a->dims == 2 && a->shape[1] == width;
        if ((flat || wide) && a->shape[0] == r->steps)
            continue;
        return opc_fail(err, OPC_EUSER,
                        "column %s has %d dimensions, %zu rows and %zu numbers a row; %s needs %zu "
                        "rows of %zu",
                        LIST[k].name, a->dims, a->dims > 0 ? a->shape[0] : 1,
                        a->dims > 1 ? a->shape[1] : 1, r->log->env->spec, r->steps, width);
    }
    return OPC_OK;
}

/* Does the episode end with step i? */
static bool ends_after(const struct reader *r, size_t i)
{
    if (i + 1 == r->steps)
        return true;
    /* Numbers of episodes decide where there are some; otherwise the flags do. */
    if (r->has[EPISODE])
        return opc_npy_at(&r->array[EPISODE], i) != opc_npy_at(&r->array[EPISODE], i + 1);
    return opc_npy_at(&r->array[TERMINATED], i) != 0 ||
           (r->has[TRUNCATED] && opc_npy_at(&r->array[TRUNCATED], i) != 0);
}

/* next_observation of step i is the observation of step i + 1. */
static int check_next(const struct reader *r, size_t i, struct opc_err *err)
{
    const size_t obs = (size_t)r->log->obs;
    for (size_t k = 0; k < obs; k++) {
        const double next = opc_npy_at(&r->array[NEXT], i * obs + k),
                     after = opc_npy_at(&r->array[OBSERVATION], (i + 1) * obs + k);
        if ((float)next != (float)after)
            return opc_fail(err, OPC_EUSER,
                            "row %zu, column next_observation_%zu: %.9g is not %.9g, the "
                            "observation of the row after it, in the same episode",
                            i, k, next, after);
    }
    return OPC_OK;
}

/* The row of step i, and after the last step of an episode a row with its last state. */
static int read_step(struct reader *r, size_t i, int episode, struct opc_err *err)
{
    struct opc_log_table *log = r->log;
    const size_t obs = (size_t)log->obs, act = (size_t)log->act;
    double *cells = opc_log_add(log, r->file, i);
    if (!cells)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %zu steps", r->steps);
    cells[OPC_LOG_EPISODE] = episode;
    for (size_t k = 0; k < obs; k++)
        cells[OPC_LOG_STATE + (int)k] = opc_npy_at(&r->array[OBSERVATION], i * obs + k);
    for (size_t k = 0; k < act; k++)
        cells[opc_log_action(log) + (int)k] = opc_npy_at(&r->array[ACTION], i * act + k);
    /* what the step brought; arrays that are not there leave their cells empty */
    cells[opc_log_outcome(log, OPC_LOG_REWARD)] = opc_npy_at(&r->array[REWARD], i);
    cells[opc_log_outcome(log, OPC_LOG_TERMINATED)] = opc_npy_at(&r->array[TERMINATED], i);
    if (r->has[TRUNCATED])
        cells[opc_log_outcome(log, OPC_LOG_TRUNCATED)] = opc_npy_at(&r->array[TRUNCATED], i);
    if (r->has[TIME])
        cells[OPC_LOG_TIME] = opc_npy_at(&r->array[TIME], i);
    /* Inside an episode, the next row has the state that follows. */
    if (!ends_after(r, i))
        return check_next(r, i, err);
    /* the state after the last step, at the time that is to come */
    const double time = cells[OPC_LOG_TIME];
    const double *before = log->rows > 1 ? cells - log->columns : cells;
    const bool first =
        before[OPC_LOG_FILE] != r->file || before[OPC_LOG_EPISODE] != episode || before == cells;
    const double step = log->env->dt > 0 ? log->env->dt : first ? 1 : time - before[OPC_LOG_TIME];
    /* The table may have moved: cells points into the new row from here on. */
    cells = opc_log_add(log, r->file, i);
    if (!cells)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %zu steps", r->steps);
    cells[OPC_LOG_EPISODE] = episode;
    cells[OPC_LOG_TIME] = time + step;
    for (size_t k = 0; k < obs; k++)
        cells[OPC_LOG_STATE + (int)k] = opc_npy_at(&r->array[NEXT], i * obs + k);
    return OPC_OK;
}

int opc_log_read_npz(struct opc_log_table *log, int file, const char *bytes, size_t n,
                     struct opc_err *err)
{
    struct reader r = {.log = log, .file = file};
    struct opc_zip_entry *entry = opc_alloc(OPC_ZIP_MAX, sizeof *entry);
    int entries = 0, episode = 0;
    int code = entry ? opc_zip_read(bytes, n, entry, &entries, err)
                     : opc_fail(err, OPC_ENOMEM, "not enough memory to read an archive");
    if (!code)
        code = find_arrays(&r, entry, entries, err);
    if (!code)
        code = check_shapes(&r, err);
    /* Episodes are numbered anew, so that numbers that come back later do not matter. */
    for (size_t i = 0; i < r.steps && !code; i++) {
        code = read_step(&r, i, episode, err);
        episode += ends_after(&r, i);
    }
    opc_free(entry);
    return code ? opc_within(err, "%s", log->file[file]) : OPC_OK;
}
