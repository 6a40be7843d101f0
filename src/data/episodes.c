/* SPDX-License-Identifier: MIT */
/* The recorded past D: every episode played on the real environment (opc/episodes.h). run/train.c
 * writes it; model fitting, the transition models and off-policy batches read it. The invariant
 * that all of them rely on: a record never moves and never changes once it is written, and an
 * episode becomes visible as a whole, when it is closed. */
#include "data/episodes_private.h"

#include "opc/mem.h"

#include <limits.h>
#include <math.h>
#include <string.h>

struct opc_episodes {
    int obs, act;
    int max_steps, max_episodes;
    int count;  /* closed episodes */
    bool open;  /* one more episode is being written after them, */
    int length; /* which has this many steps so far */
    size_t stride;
    float *records; /* [max_steps + max_episodes][stride] */
    int *first;     /* [max_episodes + 1] number of each episode's step 0; [count]: all steps */
};

int opc_episodes_create(int obs, int act, int steps, int episodes, struct opc_episodes **out,
                        struct opc_err *err)
{
    if (obs < 1 || act < 1 || steps < 1 || episodes < 1 || steps > INT_MAX - episodes)
        return opc_fail(err, OPC_EBUG, "a past of %d episodes and %d steps (%d + %d numbers each)",
                        episodes, steps, obs, act);
    struct opc_episodes *past = opc_alloc(1, sizeof *past);
    if (!past)
        goto full;
    *past =
        (struct opc_episodes){.obs = obs, .act = act, .max_steps = steps, .max_episodes = episodes};
    past->stride = opc_record_stride(obs, act);
    past->records =
        opc_alloc((size_t)steps + (size_t)episodes, past->stride * sizeof *past->records);
    past->first = opc_alloc((size_t)episodes + 1, sizeof *past->first);
    if (!past->records || !past->first)
        goto full;
    *out = past;
    return OPC_OK;
full:
    opc_episodes_destroy(past);
    return opc_fail(err, OPC_ENOMEM,
                    "not enough memory for %d recorded steps in %d episodes; lower train.epochs",
                    steps, episodes);
}

void opc_episodes_destroy(struct opc_episodes *past)
{
    if (!past)
        return;
    opc_free(past->records);
    opc_free(past->first);
    opc_free(past);
}

/* Record t of episode b, the open one included. */
static float *record_at(const struct opc_episodes *past, int b, int t)
{
    return past->records + opc_episodes_record(past->first[b] + t, b) * past->stride;
}

/* Rounded to float, and -0 to 0: eq. 5 gives back s_ref' + 0, which is never -0, and on-policy it
 * must give back s_ref' to the bit. */
static float round_stored(double x)
{
    return (float)x + 0.0f;
}

/* Rounds a state into a record. The environment's doubles must fit a float. */
static int store_state(const struct opc_episodes *past, float *record, const double *state,
                       struct opc_err *err)
{
    for (int i = 0; i < past->obs; i++) {
        record[i] = round_stored(state[i]);
        if (!isfinite(record[i]))
            return opc_fail(err, OPC_EENV, "entry %d of the observation is %g: too big for a float",
                            i, state[i]);
    }
    return OPC_OK;
}

int opc_episodes_begin(struct opc_episodes *past, const double *state, struct opc_err *err)
{
    if (past->open || past->count == past->max_episodes)
        return opc_fail(err, OPC_EBUG,
                        past->open ? "an episode begins before episode %d is closed"
                                   : "episode %d begins, but there is room for %d",
                        past->count, past->max_episodes);
    if (store_state(past, record_at(past, past->count, 0), state, err))
        return OPC_EENV;
    past->open = true;
    past->length = 0;
    return OPC_OK;
}

int opc_episodes_append(struct opc_episodes *past, const float *action, double reward,
                        const double *next, bool terminal, struct opc_err *err)
{
    if (!past->open || past->first[past->count] + past->length == past->max_steps)
        return opc_fail(err, OPC_EBUG,
                        past->open ? "step %d is recorded, but there is room for %d"
                                   : "step %d is recorded while no episode is open (room for %d)",
                        past->first[past->count] + past->length, past->max_steps);
    /* The step fills its record; its next state opens the record after it. Nothing counts before
     * `length` does, so a failure leaves the episode as it was. */
    float *record = record_at(past, past->count, past->length), *after = record + past->stride;
    const float r = round_stored(reward);
    if (!isfinite(r))
        return opc_fail(err, OPC_EENV, "the reward is %g: too big for a float", reward);
    if (store_state(past, after, next, err))
        return OPC_EENV;
    memcpy(opc_record_action(record, past->obs), action, (size_t)past->act * sizeof *action);
    *opc_record_reward(record, past->obs, past->act) = r;
    *opc_record_mark(record, past->obs, past->act) =
        terminal ? OPC_RECORD_TERMINAL : OPC_RECORD_STEP;
    past->length++;
    return OPC_OK;
}

void opc_episodes_close(struct opc_episodes *past)
{
    if (past->open && past->length > 0) {
        /* The last state has no action; its mark says that no step starts in it. */
        float *last = record_at(past, past->count, past->length);
        memset(last + past->obs, 0, (past->stride - (size_t)past->obs) * sizeof *last);
        *opc_record_mark(last, past->obs, past->act) = OPC_RECORD_END;
        past->first[past->count + 1] = past->first[past->count] + past->length;
        past->count++;
    }
    past->open = false;
}

bool opc_episodes_open(const struct opc_episodes *past)
{
    return past->open;
}

int opc_episodes_obs(const struct opc_episodes *past)
{
    return past->obs;
}

int opc_episodes_act(const struct opc_episodes *past)
{
    return past->act;
}

int opc_episodes_count(const struct opc_episodes *past)
{
    return past->count;
}

int opc_episodes_steps(const struct opc_episodes *past)
{
    return past->first[past->count];
}

int opc_episodes_length(const struct opc_episodes *past, int b)
{
    return past->first[b + 1] - past->first[b];
}

struct opc_step opc_episodes_at(const struct opc_episodes *past, int b, int t)
{
    float *record = record_at(past, b, t);
    return (struct opc_step){
        .state = record,
        .action = opc_record_action(record, past->obs),
        .next = record + past->stride,
        .reward = *opc_record_reward(record, past->obs, past->act),
        .terminal = *opc_record_mark(record, past->obs, past->act) == (float)OPC_RECORD_TERMINAL,
    };
}

void opc_episodes_prefetch(const struct opc_episodes *past, int b, int t)
{
    enum { LINE = 64 };
    const char *outcome =
        (const char *)opc_record_reward(record_at(past, b, t), past->obs, past->act);
    const size_t bytes = (2 + (size_t)past->obs) * sizeof(float);
    for (size_t k = 0; k < bytes; k += LINE)
        __builtin_prefetch(outcome + k);
    __builtin_prefetch(outcome + bytes - 1);
}

const float *opc_episodes_path(const struct opc_episodes *past, int b)
{
    return record_at(past, b, 0);
}

int opc_episodes_first(const struct opc_episodes *past, int b)
{
    return past->first[b];
}

void opc_episodes_find(const struct opc_episodes *past, int step, int *b, int *t)
{
    /* Binary search for the episode. */
    int low = 0, high = past->count; /* first[low] <= step < first[high] */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (past->first[middle] <= step)
            low = middle;
        else
            high = middle;
    }
    *b = low;
    *t = step - past->first[low];
}

void opc_episodes_flatten(const struct opc_episodes *past, float *sa, float *y)
{
    const size_t features = (size_t)(past->obs + past->act);
    for (int b = 0; b < past->count; b++)
        for (int t = 0; t < opc_episodes_length(past, b); t++) {
            const float *s = record_at(past, b, t), *next = s + past->stride;
            /* Inputs s and a are adjacent in a record; targets are s' - s and the reward. */
            memcpy(sa, s, features * sizeof *sa);
            for (int i = 0; i < past->obs; i++)
                y[i] = next[i] - s[i];
            y[past->obs] = s[features];
            sa += features;
            y += past->obs + 1;
        }
}

struct opc_records opc_episodes_records(const struct opc_episodes *past)
{
    return (struct opc_records){.at = past->records,
                                .n = opc_episodes_record(past->first[past->count], past->count),
                                .stride = past->stride};
}

int opc_episodes_restore(struct opc_episodes *past, const float *records, size_t n,
                         struct opc_err *err)
{
    if (past->open)
        return opc_fail(err, OPC_EBUG, "episodes are restored while one is open");
    /* Check all records before any of them counts: `count` is set last. */
    int count = past->count, length = 0;
    for (size_t i = 0; i < n; i++) {
        const float mark = records[(i + 1) * past->stride - 1];
        if (mark == (float)OPC_RECORD_STEP || mark == (float)OPC_RECORD_TERMINAL) {
            length++;
            continue;
        }
        if (mark != (float)OPC_RECORD_END || length == 0)
            return opc_fail(err, OPC_EDAMAGED, "record %zu of %zu does not belong to an episode", i,
                            n);
        if (count == past->max_episodes || past->first[count] + length > past->max_steps)
            return opc_fail(err, OPC_EDAMAGED,
                            "there are more recorded steps than the %d in %d episodes of this run",
                            past->max_steps, past->max_episodes);
        past->first[count + 1] = past->first[count] + length;
        count++;
        length = 0;
    }
    if (length > 0)
        return opc_fail(err, OPC_EDAMAGED, "the last of %zu records does not end its episode", n);
    if (n > 0)
        memcpy(record_at(past, past->count, 0), records, n * past->stride * sizeof *records);
    past->count = count;
    return OPC_OK;
}
