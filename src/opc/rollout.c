/* SPDX-License-Identifier: MIT */
/* Algorithm 2. Rollouts advance together (opc/walk.h), a round of them at a time. Each writes its
 * records (data/records.h) into a slot of its own; when the last of a round has ended, the slots
 * are appended to D_sim in the order they were started.
 *
 * A change must keep this: which rollouts are made does not depend on how many advance together. A
 * round starts no more than are missing even if all of them reach the horizon, so together the
 * rounds make the first rollouts that hold N transitions, and no others. */
#include "opc/algorithm2.h"

#include "base/pool.h"
#include "data/imagined.h"
#include "num/scaler.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A call gives up after so many rollouts without a step, if fewer than one in MIN_KEPT had any. */
enum { MAX_EMPTY = 100000, MIN_KEPT = 100 };

/* Counts and extremes of one step of a chunk of rows; each chunk has its own. */
struct tally {
    int terminal, end[OPC_ENDS];
    int not_finite; /* the first row whose state or reward is not finite; -1: none */
    float reward_min, reward_max, state_max_std;
};

struct opc_rollout {
    int horizon;
    struct opc_rows *rows;
    struct tally *tally; /* [chunks of the rows] */
    size_t stride;       /* floats of a record */
    float *records;      /* [capacity][horizon + 1][stride] a slot for each rollout of a round */
    int *steps;          /* [capacity] */
};

/* The rollouts that advance together. */
struct round {
    struct opc_rollout *rollout;
    const struct opc_rollout_plan *plan;
    uint32_t index; /* of slot 0 */
};

/* Record h of a slot. */
static float *record_at(const struct opc_rollout *rollout, int slot, int h)
{
    const size_t record = (size_t)slot * ((size_t)rollout->horizon + 1) + (size_t)h;
    return rollout->records + record * rollout->stride;
}

/* ---- b ~ U{episodes of the window}, t ~ U{its steps} ----------------------------------------- */

static void draw_start(const struct opc_rollout_plan *plan, struct opc_rng rng, int *b, int *t)
{
    const struct opc_episodes *past = plan->transition->past;
    int oldest = plan->transition->first_episode;
    if (plan->past_ratio > 0 && opc_rng_unit_double(&rng) >= plan->past_ratio)
        oldest = plan->recent;
    if (plan->start == OPC_START_UNIFORM) {
        const int first = opc_episodes_first(past, oldest);
        const uint32_t steps = (uint32_t)(opc_episodes_steps(past) - first);
        opc_episodes_find(past, first + (int)opc_rng_below(&rng, steps), b, t);
        return;
    }
    /* The paper's start: an episode, then a step with H recorded ones from it on; 0 if T < H. */
    const int episodes = opc_episodes_count(past) - oldest;
    *b = oldest + (int)opc_rng_below(&rng, (uint32_t)episodes);
    const int starts = opc_episodes_length(past, *b) - plan->horizon + 1;
    *t = starts > 1 ? (int)opc_rng_below(&rng, (uint32_t)starts) : 0;
}

/* A rollout's number names its streams: one for the start, one for everything after it. */
static void draw_starts(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct round *round = ctx;
    const struct opc_rollout_plan *plan = round->plan;
    struct opc_rows *rows = round->rollout->rows;
    for (int i = first; i < end; i++) {
        const uint32_t number = round->index + (uint32_t)i;
        draw_start(plan, opc_rng_stream(plan->seed, OPC_USE_START, plan->epoch, number),
                   &rows->episode[i], &rows->time[i]);
        rows->rng[i] = opc_rng_stream(plan->seed, OPC_USE_ROLLOUT, plan->epoch, number);
    }
}

/* ---- store (s, a, r, s', d) ------------------------------------------------------------------ */

/* Updates the extremes of rewards and of states, the latter in standard deviations of the
 * recording. */
static void note_extremes(const struct round *round, int i, struct tally *tally)
{
    const struct opc_rows *rows = round->rollout->rows;
    const struct opc_scaler *states = round->plan->states;
    const float *next = rows->next + (size_t)i * (size_t)rows->obs, r = rows->reward[i];
    tally->reward_min = r < tally->reward_min ? r : tally->reward_min;
    tally->reward_max = r > tally->reward_max ? r : tally->reward_max;
    float max = tally->state_max_std;
    for (int k = 0; states && k < rows->obs; k++) {
        const float distance = fabsf(next[k] - states->mean[k]) * states->inverse[k];
        max = distance > max ? distance : max;
    }
    tally->state_max_std = max;
}

/* d, whether s' is terminal. Where only the recording ended in a terminal state, the imagined s' is
 * not terminal by itself, so d = 0 unless plan->reference_terminal. In a replay s' is the recorded
 * state, and so is d. */
static bool is_terminal(const struct opc_rollout_plan *plan, const struct opc_rows *rows, int i)
{
    const struct opc_transition *tr = plan->transition;
    if (rows->end[i] == OPC_END_TERMINAL)
        return true;
    return (tr->type->replays || (tr->type->needs_reference && plan->reference_terminal)) &&
           opc_rows_reference_terminal(rows, i, tr->past);
}

/* Closes a slot: the rollout has this many steps and ends in this state. */
static void end_rollout(struct opc_rollout *rollout, int slot, int steps, const float *state)
{
    const struct opc_rows *rows = rollout->rows;
    const size_t obs = (size_t)rows->obs;
    float *last = record_at(rollout, slot, steps);
    memcpy(last, state, obs * sizeof(float));
    memset(last + obs, 0, (rollout->stride - obs) * sizeof(float));
    *opc_record_mark(last, rows->obs, rows->act) = OPC_RECORD_END;
    rollout->steps[slot] = steps;
}

/* Stores the step that row i has just taken into its slot. */
static void store_step(const struct round *round, int i, struct tally *tally)
{
    struct opc_rollout *rollout = round->rollout;
    const struct opc_rows *rows = rollout->rows;
    const int slot = rows->start[i], h = rows->h;
    const size_t obs = (size_t)rows->obs, act = (size_t)rows->act;
    const float *state = rows->state + (size_t)i * obs, *next = rows->next + (size_t)i * obs;
    const enum opc_end end = rows->end[i];
    if (end != OPC_END_NONE)
        tally->end[end]++;
    if (!opc_end_keeps_step(end)) {
        end_rollout(rollout, slot, h, state);
        return;
    }
    /* (s, a, r, d); s' follows as the s of the next record, or by end_rollout. */
    const bool terminal = is_terminal(round->plan, rows, i);
    float *record = record_at(rollout, slot, h);
    memcpy(record, state, obs * sizeof(float));
    memcpy(opc_record_action(record, rows->obs), rows->action + (size_t)i * act,
           act * sizeof(float));
    const struct opc_bounds *bounds = round->plan->limits.bounds;
    *opc_record_reward(record, rows->obs, rows->act) =
        bounds ? opc_bounds_clip_reward(bounds, rows->reward[i]) : rows->reward[i];
    *opc_record_mark(record, rows->obs, rows->act) =
        terminal ? OPC_RECORD_TERMINAL : OPC_RECORD_STEP;
    tally->terminal += terminal;
    note_extremes(round, i, tally);
    if (end != OPC_END_NONE)
        end_rollout(rollout, slot, h + 1, next);
}

static void store_steps(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct round *round = ctx;
    struct tally *tally = &round->rollout->tally[first / OPC_WALK_CHUNK];
    *tally = (struct tally){.not_finite = -1, .reward_min = INFINITY, .reward_max = -INFINITY};
    for (int i = first; i < end; i++) {
        if (tally->not_finite < 0 && !opc_rows_finite(round->rollout->rows, i))
            tally->not_finite = i;
        store_step(round, i, tally);
    }
}

static int report_divergence(const struct round *round, int row, struct opc_err *err)
{
    const struct opc_rows *rows = round->rollout->rows;
    const float *next = rows->next + (size_t)row * (size_t)rows->obs;
    int k = 0;
    while (k < rows->obs && isfinite(next[k]))
        k++;
    const unsigned number = (unsigned)(round->index + (uint32_t)rows->start[row]);
    if (k == rows->obs)
        return opc_fail(err, OPC_EDIVERGED,
                        "the reward is not finite in step %d of imagined rollout %u", rows->h + 1,
                        number);
    return opc_fail(err, OPC_EDIVERGED,
                    "entry %d of the state is not finite after step %d of imagined rollout %u", k,
                    rows->h + 1, number);
}

/* Adds the chunks' tallies in order, so that the first row that diverged is the one reported. */
static int add_tallies(const struct round *round, struct opc_rollout_report *done,
                       struct opc_err *err)
{
    const struct opc_rollout *rollout = round->rollout;
    for (int i = 0; i * OPC_WALK_CHUNK < rollout->rows->n; i++) {
        const struct tally *t = &rollout->tally[i];
        if (t->not_finite >= 0)
            return report_divergence(round, t->not_finite, err);
        done->terminal += (size_t)t->terminal;
        for (int k = 0; k < OPC_ENDS; k++)
            done->end[k] += (size_t)t->end[k];
        done->reward_min = fminf(done->reward_min, t->reward_min);
        done->reward_max = fmaxf(done->reward_max, t->reward_max);
        done->state_max_std = fmaxf(done->state_max_std, t->state_max_std);
    }
    return OPC_OK;
}

/* ---- for h = 0 .. H-1 ------------------------------------------------------------------------ */

/* A step that is not finite is an error here, not a refusal: such a model teaches nothing. */
static struct opc_walk_plan walk_of(const struct opc_rollout_plan *plan)
{
    return (struct opc_walk_plan){
        .transition = plan->transition,
        .act = plan->act,
        .act_ctx = plan->act_ctx,
        .terminal = plan->terminal,
        .terminal_ctx = plan->terminal_ctx,
        .refuse = plan->refuse,
        .refuse_ctx = plan->refuse_ctx,
        .limits = plan->limits,
        .elite_per_rollout = plan->elite_per_rollout,
        .horizon = plan->horizon,
        .pool = plan->pool,
    };
}

/* Rolls out `count` rollouts to their ends, all of them step by step together. */
static int imagine_round(struct round *round, int count, struct opc_rollout_report *done,
                         struct opc_err *err)
{
    const struct opc_walk_plan walk = walk_of(round->plan);
    struct opc_rows *rows = round->rollout->rows;
    int code = OPC_OK;
    rows->n = count;
    opc_pool_each(walk.pool, count, OPC_WALK_CHUNK, draw_starts, round);
    for (opc_walk_start(&walk, rows); rows->n > 0 && !code; opc_walk_drop_ended(rows)) {
        opc_walk_step(&walk, rows);
        opc_pool_each(walk.pool, rows->n, OPC_WALK_CHUNK, store_steps, round);
        code = add_tallies(round, done, err);
    }
    return code;
}

int opc_rollout_refused(const size_t end[OPC_ENDS], size_t rollouts, size_t empty,
                        struct opc_err *err)
{
    static const struct {
        const char *by, *advice;
    } END[OPC_ENDS] = {
        [OPC_END_REFUSED] = {"because the plan refused a step", ""},
        [OPC_END_BOUND] = {"by opc.bounds (end_bound)", "; set it to false"},
        [OPC_END_DRIFT] = {"by opc.max_drift (end_drift)", "; raise it, or set it to 0"},
        [OPC_END_DISAGREEMENT] = {"by opc.max_disagreement (end_disagreement)",
                                  "; raise it, or set it to 0"},
        [OPC_END_DROPPED] = {"by opc.reference_terminal = drop (end_reference)",
                             "; set it to continue"},
        [OPC_END_TERMINAL] = {"in a terminal state (end_terminal)", ""},
        [OPC_END_HORIZON] = {"at the horizon (end_horizon)", ""},
        [OPC_END_REFERENCE] = {"with their reference (end_reference)", ""},
    };
    enum { NAMED = 3 }; /* of the ends, the most frequent ones: a message has room for them */
    char shares[240] = "";
    bool named[OPC_ENDS] = {false};
    int limit = OPC_END_REFUSED; /* the one that ended the most of them */
    size_t ended = 0;            /* with a round of rollouts under way, those ended are more */
    for (int k = 0; k < OPC_ENDS; k++)
        ended += end[k];
    for (int k = OPC_END_REFUSED; k < OPC_END_TERMINAL; k++)
        limit = end[k] > end[limit] ? k : limit;
    for (int i = 0; i < NAMED; i++) {
        int most = -1;
        for (int k = 0; k < OPC_ENDS; k++)
            if (!named[k] && end[k] > 0 && (most < 0 || end[k] > end[most]))
                most = k;
        if (most < 0)
            break;
        named[most] = true;
        const size_t n = strlen(shares);
        snprintf(shares + n, sizeof shares - n, "%s%.3g %%%s %s", i ? ", " : "",
                 100 * (double)end[most] / (double)ended, i ? "" : " ended", END[most].by);
    }
    return opc_fail(err, OPC_EREFUSED,
                    "%zu of %zu imagined rollouts were refused their first step, so there is too "
                    "little to learn from: %s%s",
                    empty, rollouts, shares, END[limit].advice);
}

/* Appends the rollouts of a round to D_sim, but for those whose first step was refused. */
static int append_round(const struct round *round, int count, struct opc_imagined *into,
                        struct opc_rollout_report *done, struct opc_err *err)
{
    int code = OPC_OK;
    for (int slot = 0; !code && slot < count; slot++) {
        const int steps = round->rollout->steps[slot];
        done->rollouts++;
        done->index++;
        done->empty += steps == 0;
        done->transitions += (size_t)steps;
        if (steps)
            code = opc_imagined_append(into, steps, record_at(round->rollout, slot, 0), err);
        else if (!round->plan->rollouts && done->empty >= MAX_EMPTY &&
                 (done->rollouts - done->empty) * MIN_KEPT < done->rollouts)
            code = opc_rollout_refused(done->end, done->rollouts, done->empty, err);
    }
    return code;
}

/* ---- until the new data holds N transitions -------------------------------------------------- */

/* How many rollouts are missing even if all of them reach the horizon, or `max` if that is less. */
static int rollouts_missing(const struct opc_rollout_plan *plan,
                            const struct opc_rollout_report *done, int max)
{
    size_t missing = 0;
    if (plan->rollouts > 0)
        missing = (size_t)plan->rollouts - done->rollouts;
    else if (done->transitions < plan->transitions)
        missing = (plan->transitions - done->transitions - 1) / (size_t)plan->horizon + 1;
    return missing < (size_t)max ? (int)missing : max;
}

/* Sets the limit of disagreement from the first steps of the first rollouts. Their number does not
 * depend on how many advance together, so they cannot be those of the first round: they are made
 * here, in portions, and again with their rollouts. */
static int limit_disagreement(struct opc_rollout *rollout, const struct opc_rollout_plan *plan,
                              struct opc_err *err)
{
    struct opc_disagreement *d = plan->limits.disagreement;
    struct opc_rows *rows = rollout->rows;
    const struct opc_walk_plan walk = walk_of(plan);
    const int n = rollouts_missing(plan, &(struct opc_rollout_report){0}, OPC_DISAGREEMENT_SAMPLE);
    for (int done = 0; done < n; done += rows->n) {
        struct round round = {rollout, plan, plan->index + (uint32_t)done};
        rows->n = n - done < rows->capacity ? n - done : rows->capacity;
        opc_pool_each(walk.pool, rows->n, OPC_WALK_CHUNK, draw_starts, &round);
        opc_walk_start(&walk, rows);
        opc_walk_step(&walk, rows);
        for (int i = 0; i < rows->n; i++) {
            if (!opc_rows_finite(rows, i))
                return report_divergence(&round, i, err);
            if (!isfinite(d->u[i]))
                return opc_fail(err, OPC_EDIVERGED,
                                "a member of the model predicts what is not finite in step 1 of "
                                "imagined rollout %u",
                                (unsigned)(round.index + (uint32_t)i));
            d->first[done + i] = d->u[i];
        }
    }
    if (n > 0)
        opc_disagreement_set_limit(d, n);
    return OPC_OK;
}

/* Bugs of the caller: sizes that do not fit, no recorded steps, a table f_ref older than the
 * data. */
static int check_plan(const struct opc_rollout *rollout, const struct opc_rollout_plan *plan,
                      const struct opc_imagined *into, struct opc_err *err)
{
    const struct opc_transition *tr = plan->transition;
    const int obs = rollout->rows->obs, act = rollout->rows->act;
    int first;
    const int steps = opc_transition_window(tr, &first);
    const struct opc_disagreement *d = plan->limits.disagreement;
    if (plan->horizon < 1 || plan->horizon > rollout->horizon || tr->obs != obs || tr->act != act ||
        opc_imagined_obs(into) != obs || opc_imagined_act(into) != act)
        return opc_fail(err, OPC_EBUG, "rollouts of %d steps (%d + %d) were prepared, not of %d",
                        rollout->horizon, obs, act, plan->horizon);
    if (d && (d->capacity < rollout->rows->capacity || d->obs != obs))
        return opc_fail(err, OPC_EBUG, "elites can be compared on %d rollouts, not on %d",
                        d->capacity, rollout->rows->capacity);
    if (plan->past_ratio > 0 && plan->recent >= opc_episodes_count(tr->past))
        return opc_fail(err, OPC_EBUG, "there is no recent episode for rollouts to start in");
    if (steps == 0)
        return opc_fail(err, OPC_EBUG, "rollouts start before anything was recorded");
    if (tr->f_ref && (tr->filled != steps || tr->first != first))
        return opc_fail(err, OPC_EBUG,
                        "%d recorded steps from number %d on can be corrected, not %d from %d on; "
                        "refresh first",
                        tr->filled, tr->first, steps, first);
    return OPC_OK;
}

int opc_rollout_run(struct opc_rollout *rollout, const struct opc_rollout_plan *plan,
                    struct opc_imagined *into, struct opc_rollout_report *report,
                    struct opc_err *err)
{
    struct opc_rollout_report done = {
        .index = plan->index, .reward_min = INFINITY, .reward_max = -INFINITY};
    const int capacity = rollout->rows->capacity;
    int code = check_plan(rollout, plan, into, err);
    if (!code && plan->limits.disagreement)
        code = limit_disagreement(rollout, plan, err);
    for (int count; !code && (count = rollouts_missing(plan, &done, capacity)) > 0;) {
        struct round round = {rollout, plan, done.index};
        if (plan->stop && plan->stop(plan->stop_ctx))
            return opc_fail(err, OPC_ESTOPPED, "stopped while imagining");
        code = imagine_round(&round, count, &done, err);
        if (!code)
            code = append_round(&round, count, into, &done, err);
    }
    if (done.rollouts > 0)
        done.length = (double)done.transitions / (double)done.rollouts;
    *report = done;
    return code;
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t opc_rollout_need(int obs, int act, int horizon, int capacity)
{
    const size_t floats = ((size_t)horizon + 1) * opc_record_stride(obs, act);
    return opc_rows_need(obs, act, capacity) +
           (size_t)capacity * (floats * sizeof(float) + sizeof(int));
}

int opc_rollout_create(int obs, int act, int horizon, int capacity, struct opc_rollout **out,
                       struct opc_err *err)
{
    if (obs < 1 || act < 1 || horizon < 1 || capacity < 1)
        return opc_fail(err, OPC_EBUG, "%d rollouts of %d steps (%d + %d)", capacity, horizon, obs,
                        act);
    const size_t n = (size_t)capacity;
    struct opc_rollout *rollout = opc_alloc(1, sizeof *rollout);
    if (!rollout)
        goto full;
    *rollout = (struct opc_rollout){.horizon = horizon, .stride = opc_record_stride(obs, act)};
    rollout->tally = opc_alloc((n - 1) / OPC_WALK_CHUNK + 1, sizeof *rollout->tally);
    rollout->records =
        opc_alloc(n * ((size_t)horizon + 1), rollout->stride * sizeof *rollout->records);
    rollout->steps = opc_alloc(n, sizeof *rollout->steps);
    if (!rollout->tally || !rollout->records || !rollout->steps ||
        opc_rows_create(obs, act, capacity, false, &rollout->rows, err))
        goto full;
    *out = rollout;
    return OPC_OK;
full:
    opc_rollout_destroy(rollout);
    return opc_fail(err, OPC_ENOMEM, "out of memory for %d rollouts of %d steps at a time",
                    capacity, horizon);
}

void opc_rollout_destroy(struct opc_rollout *rollout)
{
    if (!rollout)
        return;
    opc_rows_destroy(rollout->rows);
    opc_free(rollout->tally);
    opc_free(rollout->records);
    opc_free(rollout->steps);
    opc_free(rollout);
}
