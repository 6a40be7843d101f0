/* SPDX-License-Identifier: MIT */
#include "data/episodes_private.h"

#include "opc/mem.h"

#include <limits.h>
#include <math.h>
#include <string.h>

struct opc_episodes {
    int obs, act;
    int steps, episodes; /* room */
    int count;           /* closed episodes */
    bool open;           /* one more is being written behind them, */
    int length;          /* of so many steps so far */
    size_t stride;
    float *records; /* [steps + episodes][stride] */
    int *first;     /* [episodes + 1] number of each one's step 0; behind the last: all steps */
};

int opc_episodes_create(int obs, int act, int steps, int episodes, struct opc_episodes **out,
                        struct opc_err *err)
{
    if (obs < 1 || act < 1 || steps < 1 || episodes < 1 || steps > INT_MAX - episodes)
        return opc_fail(err, OPC_EBUG, "a past of %d episodes and %d steps (%d + %d numbers each)",
                        episodes, steps, obs, act);
    struct opc_episodes *e = opc_alloc(1, sizeof *e);
    if (!e)
        goto full;
    *e = (struct opc_episodes){.obs = obs, .act = act, .steps = steps, .episodes = episodes};
    e->stride = opc_record_stride(obs, act);
    e->records = opc_alloc((size_t)steps + (size_t)episodes, e->stride * sizeof *e->records);
    e->first = opc_alloc((size_t)episodes + 1, sizeof *e->first);
    if (!e->records || !e->first)
        goto full;
    *out = e;
    return OPC_OK;
full:
    opc_episodes_destroy(e);
    return opc_fail(err, OPC_ENOMEM,
                    "not enough memory for %d recorded steps in %d episodes; lower train.epochs",
                    steps, episodes);
}

void opc_episodes_destroy(struct opc_episodes *e)
{
    if (!e)
        return;
    opc_free(e->records);
    opc_free(e->first);
    opc_free(e);
}

/* Record t of episode b, the open one included. */
static float *record_at(const struct opc_episodes *e, int b, int t)
{
    return e->records + opc_episodes_record(e->first[b] + t, b) * e->stride;
}

/* Rounded to float, and -0 to 0: eq. 5 gives back s_ref' + 0, which is never -0, and on-policy it
 * must give back s_ref' to the bit. */
static float stored(double x)
{
    return (float)x + 0.0f;
}

static int store_state(const struct opc_episodes *e, float *record, const double *state,
                       struct opc_err *err)
{
    for (int i = 0; i < e->obs; i++) {
        record[i] = stored(state[i]);
        if (!isfinite(record[i]))
            return opc_fail(err, OPC_EENV, "entry %d of the observation is %g: too big for a float",
                            i, state[i]);
    }
    return OPC_OK;
}

int opc_episodes_begin(struct opc_episodes *e, const double *state, struct opc_err *err)
{
    if (e->open || e->count == e->episodes)
        return opc_fail(err, OPC_EBUG,
                        e->open ? "an episode begins before episode %d is closed"
                                : "episode %d begins, but there is room for %d",
                        e->count, e->episodes);
    if (store_state(e, record_at(e, e->count, 0), state, err))
        return OPC_EENV;
    e->open = true;
    e->length = 0;
    return OPC_OK;
}

int opc_episodes_append(struct opc_episodes *e, const float *action, double reward,
                        const double *next, bool terminal, struct opc_err *err)
{
    if (!e->open || e->first[e->count] + e->length == e->steps)
        return opc_fail(err, OPC_EBUG,
                        e->open ? "step %d is recorded, but there is room for %d"
                                : "step %d is recorded while no episode is open (room for %d)",
                        e->first[e->count] + e->length, e->steps);
    float *record = record_at(e, e->count, e->length), *after = record + e->stride;
    const float r = stored(reward);
    if (!isfinite(r))
        return opc_fail(err, OPC_EENV, "the reward is %g: too big for a float", reward);
    if (store_state(e, after, next, err))
        return OPC_EENV;
    memcpy(opc_record_action(record, e->obs), action, (size_t)e->act * sizeof *action);
    *opc_record_reward(record, e->obs, e->act) = r;
    *opc_record_mark(record, e->obs, e->act) = terminal ? OPC_RECORD_TERMINAL : OPC_RECORD_STEP;
    e->length++;
    return OPC_OK;
}

void opc_episodes_close(struct opc_episodes *e)
{
    if (e->open && e->length > 0) {
        float *last = record_at(e, e->count, e->length);
        memset(last + e->obs, 0, (e->stride - (size_t)e->obs) * sizeof *last);
        *opc_record_mark(last, e->obs, e->act) = OPC_RECORD_END;
        e->first[e->count + 1] = e->first[e->count] + e->length;
        e->count++;
    }
    e->open = false;
}

bool opc_episodes_open(const struct opc_episodes *e)
{
    return e->open;
}

int opc_episodes_obs(const struct opc_episodes *e)
{
    return e->obs;
}

int opc_episodes_act(const struct opc_episodes *e)
{
    return e->act;
}

int opc_episodes_count(const struct opc_episodes *e)
{
    return e->count;
}

int opc_episodes_steps(const struct opc_episodes *e)
{
    return e->first[e->count];
}

int opc_episodes_length(const struct opc_episodes *e, int b)
{
    return e->first[b + 1] - e->first[b];
}

struct opc_step opc_episodes_at(const struct opc_episodes *e, int b, int t)
{
    float *record = record_at(e, b, t);
    return (struct opc_step){
        .state = record,
        .action = opc_record_action(record, e->obs),
        .next = record + e->stride,
        .reward = *opc_record_reward(record, e->obs, e->act),
        .terminal = *opc_record_mark(record, e->obs, e->act) == (float)OPC_RECORD_TERMINAL,
    };
}

void opc_episodes_prefetch(const struct opc_episodes *e, int b, int t)
{
    enum { LINE = 64 };
    const char *outcome = (const char *)opc_record_reward(record_at(e, b, t), e->obs, e->act);
    const size_t bytes = (2 + (size_t)e->obs) * sizeof(float);
    for (size_t k = 0; k < bytes; k += LINE)
        __builtin_prefetch(outcome + k);
    __builtin_prefetch(outcome + bytes - 1);
}

const float *opc_episodes_path(const struct opc_episodes *e, int b)
{
    return record_at(e, b, 0);
}

int opc_episodes_first(const struct opc_episodes *e, int b)
{
    return e->first[b];
}

void opc_episodes_find(const struct opc_episodes *e, int step, int *b, int *t)
{
    int low = 0, high = e->count; /* first[low] <= step < first[high] */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (e->first[middle] <= step)
            low = middle;
        else
            high = middle;
    }
    *b = low;
    *t = step - e->first[low];
}

void opc_episodes_flatten(const struct opc_episodes *e, float *sa, float *y)
{
    const size_t features = (size_t)(e->obs + e->act);
    for (int b = 0; b < e->count; b++)
        for (int t = 0; t < opc_episodes_length(e, b); t++) {
            const float *s = record_at(e, b, t), *next = s + e->stride;
            memcpy(sa, s, features * sizeof *sa);
            for (int i = 0; i < e->obs; i++)
                y[i] = next[i] - s[i];
            y[e->obs] = s[features];
            sa += features;
            y += e->obs + 1;
        }
}

struct opc_records opc_episodes_records(const struct opc_episodes *e)
{
    return (struct opc_records){.at = e->records,
                                .n = opc_episodes_record(e->first[e->count], e->count),
                                .stride = e->stride};
}

int opc_episodes_restore(struct opc_episodes *e, const float *records, size_t n,
                         struct opc_err *err)
{
    if (e->open)
        return opc_fail(err, OPC_EBUG, "episodes are restored while one is open");
    /* Look at all of it before any of it counts. */
    int count = e->count, length = 0;
    for (size_t i = 0; i < n; i++) {
        const float mark = records[(i + 1) * e->stride - 1];
        if (mark == (float)OPC_RECORD_STEP || mark == (float)OPC_RECORD_TERMINAL) {
            length++;
            continue;
        }
        if (mark != (float)OPC_RECORD_END || length == 0)
            return opc_fail(err, OPC_EDAMAGED, "record %zu of %zu is of no episode", i, n);
        if (count == e->episodes || e->first[count] + length > e->steps)
            return opc_fail(err, OPC_EDAMAGED,
                            "there are more recorded steps than the %d in %d episodes of this run",
                            e->steps, e->episodes);
        e->first[count + 1] = e->first[count] + length;
        count++;
        length = 0;
    }
    if (length > 0)
        return opc_fail(err, OPC_EDAMAGED, "the last of %zu records does not end its episode", n);
    if (n > 0)
        memcpy(record_at(e, e->count, 0), records, n * e->stride * sizeof *records);
    e->count = count;
    return OPC_OK;
}
