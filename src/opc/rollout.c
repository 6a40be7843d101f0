/* SPDX-License-Identifier: MIT */
/* Algorithm 2. Rollouts advance together, one step at a time, so that policy and model see many
 * states at once. A row is a rollout that still goes on; it writes its records (data/records.h)
 * into a slot of its own. Rows that ended are dropped, the others keep their order; when none is
 * left the slots are appended to D_sim in the order they were started.
 *
 * Which rollouts there are does not depend on how many advance together: a round starts no more
 * than are missing even if all of them reach the horizon, so together the rounds make the first
 * rollouts that hold N transitions, and no others. */
#include "opc/rollout.h"

#include "base/pool.h"
#include "data/imagined.h"
#include "num/scaler.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 512,          /* done by one thread in one go */
    MOST_EMPTY = 100000, /* rollouts in a row without a step */
};

struct tally { /* of one step of ROWS rows */
    int terminal, end[OPC_ENDS];
    int odd; /* the first row whose state or reward is not finite; -1: none */
    float reward_min, reward_max, state_max_std;
};

struct opc_rollout {
    int obs, act, horizon, rows; /* room */
    size_t stride, path;         /* floats of a record, of a slot */

    /* the rows */
    int n;
    int *episode, *time, *elite; /* [rows] */
    int *slot;                   /* [rows] */
    struct opc_rng *rng;         /* [rows] */
    float *state, *next;         /* [rows][obs] */
    float *action;               /* [rows][act] */
    float *reward;               /* [rows] */
    float *work;                 /* [rows][obs + 1] */
    bool *ended, *refused;       /* [rows] */
    struct tally *tally;         /* [rows / ROWS, rounded up] */

    /* the slots */
    float *records; /* [rows][horizon + 1][stride] */
    int *steps;     /* [rows] */
};

/* What the rows of one step need to know. */
struct step {
    struct opc_rollout *w;
    const struct opc_rollout_plan *plan;
    uint32_t index; /* of slot 0 */
    int h;
};

static float *record_at(const struct opc_rollout *w, int slot, int h)
{
    return w->records + (size_t)slot * w->path + (size_t)h * w->stride;
}

static int draw_elite(const struct opc_transition *tr, struct opc_rng *rng)
{
    return tr->model ? (int)opc_rng_below(rng, (uint32_t)tr->model->elites) : 0;
}

/* ---- b ~ U{episodes of the window}, t ~ U{its steps};  s = s_t of b -------------------------- */

static void draw_start(const struct opc_rollout_plan *plan, struct opc_rng rng, int *b, int *t)
{
    const struct opc_transition *tr = plan->transition;
    const struct opc_episodes *past = tr->past;
    if (plan->start == OPC_START_UNIFORM) {
        int first;
        const uint32_t steps = (uint32_t)opc_transition_window(tr, &first);
        opc_episodes_find(past, first + (int)opc_rng_below(&rng, steps), b, t);
        return;
    }
    const int episodes = opc_episodes_count(past) - tr->first_episode;
    *b = tr->first_episode + (int)opc_rng_below(&rng, (uint32_t)episodes);
    const int starts = opc_episodes_length(past, *b) - plan->horizon + 1;
    *t = starts > 1 ? (int)opc_rng_below(&rng, (uint32_t)starts) : 0;
}

static void start(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct step *c = ctx;
    const struct opc_rollout_plan *plan = c->plan;
    struct opc_rollout *w = c->w;
    for (int i = first; i < end; i++) {
        const uint32_t number = c->index + (uint32_t)i;
        draw_start(plan, opc_rng_stream(plan->seed, OPC_USE_START, plan->epoch, number),
                   &w->episode[i], &w->time[i]);
        w->slot[i] = i;
        w->rng[i] = opc_rng_stream(plan->seed, OPC_USE_ROLLOUT, plan->epoch, number);
        w->elite[i] = plan->elite_per_rollout ? draw_elite(plan->transition, &w->rng[i]) : 0;
        const struct opc_step ref =
            opc_episodes_at(plan->transition->past, w->episode[i], w->time[i]);
        memcpy(w->state + (size_t)i * (size_t)w->obs, ref.state, (size_t)w->obs * sizeof(float));
        memcpy(record_at(w, i, 0), ref.state, (size_t)w->obs * sizeof(float));
    }
}

/* ---- a ~ pi(. | s);  s' by eq. 5 (or 2, or 3) ------------------------------------------------ */

static void draw_elites(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct step *c = ctx;
    for (int i = first; i < end; i++)
        c->w->elite[i] = draw_elite(c->plan->transition, &c->w->rng[i]);
}

static void advance(struct step *c)
{
    const struct opc_rollout_plan *plan = c->plan;
    struct opc_rollout *w = c->w;
    if (!plan->elite_per_rollout)
        opc_pool_each(plan->pool, w->n, ROWS, draw_elites, c);
    if (!plan->transition->type->replays)
        plan->act(plan->act_ctx, w->n, w->state, w->rng, w->action);
    struct opc_walk walk = {
        .n = w->n,
        .episode = w->episode,
        .time = w->time,
        .elite = w->elite,
        .state = w->state,
        .action = w->action,
        .next = w->next,
        .reward = w->reward,
        .rng = w->rng,
        .work = w->work,
    };
    opc_transition_step(plan->transition, &walk, plan->pool);
}

/* ---- store (s, a, r, s', d);  break if ... --------------------------------------------------- */

static bool all_finite(const float *x, int n)
{
    float zero = 0;
    for (int k = 0; k < n; k++)
        zero += x[k] * 0.0f;
    return zero == 0;
}

static void ask(const struct step *c, opc_terminal_fn *fn, void *ctx, int first, int end, bool *out)
{
    const struct opc_rollout *w = c->w;
    const size_t obs = (size_t)w->obs, act = (size_t)w->act;
    memset(out + first, 0, (size_t)(end - first) * sizeof *out);
    if (fn)
        fn(ctx, end - first, w->state + (size_t)first * obs, w->action + (size_t)first * act,
           w->next + (size_t)first * obs, out + first);
}

/* Of a step that is stored. */
static void look_at(const struct step *c, int i, struct tally *tally)
{
    const struct opc_scaler *states = c->plan->states;
    const float *next = c->w->next + (size_t)i * (size_t)c->w->obs, r = c->w->reward[i];
    float most = tally->state_max_std;
    tally->reward_min = r < tally->reward_min ? r : tally->reward_min;
    tally->reward_max = r > tally->reward_max ? r : tally->reward_max;
    for (int k = 0; states && k < c->w->obs; k++) {
        const float far = fabsf(next[k] - states->mean[k]) * states->inverse[k];
        most = far > most ? far : most;
    }
    tally->state_max_std = most;
}

/* Ends the rollout of a row, which has `steps` steps. */
static void end_row(struct opc_rollout *w, int row, int steps)
{
    float *last = record_at(w, w->slot[row], steps);
    memset(last + w->obs, 0, (w->stride - (size_t)w->obs) * sizeof(float));
    *opc_record_mark(last, w->obs, w->act) = OPC_END;
    w->steps[w->slot[row]] = steps;
}

static enum opc_end why_it_ends(const struct step *c, int i, bool reference_ended)
{
    return c->w->refused[i]               ? OPC_END_REFUSED
           : c->w->ended[i]               ? OPC_END_TERMINAL
           : c->h + 1 == c->plan->horizon ? OPC_END_HORIZON
           : reference_ended              ? OPC_END_REFERENCE
                                          : OPC_ENDS; /* it goes on */
}

static void store_row(const struct step *c, int i, struct tally *tally)
{
    const struct opc_rollout_plan *plan = c->plan;
    const struct opc_transition *tr = plan->transition;
    struct opc_rollout *w = c->w;
    const size_t obs = (size_t)w->obs, act = (size_t)w->act;
    const bool reference_ended =
        tr->type->needs_reference && w->time[i] + 1 == opc_episodes_length(tr->past, w->episode[i]);
    const enum opc_end end = why_it_ends(c, i, reference_ended);
    if (end != OPC_END_REFUSED) {
        /* Only the recording ended: that s' is not terminal by itself, so d = 0 unless asked for.
         * In a replay s' is the recorded one. */
        bool terminal = w->ended[i];
        if (reference_ended && (plan->reference_terminal || tr->type->replays))
            terminal |= opc_episodes_at(tr->past, w->episode[i], w->time[i]).terminal;
        float *record = record_at(w, w->slot[i], c->h);
        memcpy(opc_record_action(record, w->obs), w->action + (size_t)i * act, act * sizeof(float));
        *opc_record_reward(record, w->obs, w->act) = w->reward[i];
        *opc_record_mark(record, w->obs, w->act) = terminal ? OPC_TERMINAL : OPC_GOES_ON;
        memcpy(record + w->stride, w->next + (size_t)i * obs, obs * sizeof(float));
        tally->terminal += terminal;
        look_at(c, i, tally);
    }
    w->ended[i] = end != OPC_ENDS;
    w->time[i]++;
    if (end != OPC_ENDS) {
        tally->end[end]++;
        end_row(w, i, c->h + (end != OPC_END_REFUSED));
    }
}

static void store(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct step *c = ctx;
    const struct opc_rollout_plan *plan = c->plan;
    struct opc_rollout *w = c->w;
    struct tally *tally = &w->tally[first / ROWS];
    *tally = (struct tally){.odd = -1, .reward_min = INFINITY, .reward_max = -INFINITY};
    ask(c, plan->terminal, plan->terminal_ctx, first, end, w->ended);
    ask(c, plan->refuse, plan->refuse_ctx, first, end, w->refused);
    for (int i = first; i < end; i++) {
        const float *next = w->next + (size_t)i * (size_t)w->obs;
        if (tally->odd < 0 && !(all_finite(next, w->obs) && all_finite(&w->reward[i], 1)))
            tally->odd = i;
        store_row(c, i, tally);
    }
}

static void add_tally(struct opc_rollout_report *done, const struct tally *t)
{
    done->terminal += (size_t)t->terminal;
    for (int k = 0; k < OPC_ENDS; k++)
        done->end[k] += (size_t)t->end[k];
    done->reward_min = fminf(done->reward_min, t->reward_min);
    done->reward_max = fmaxf(done->reward_max, t->reward_max);
    done->state_max_std = fmaxf(done->state_max_std, t->state_max_std);
}

/* s = s' for the rows that go on; the others leave. */
static void drop_ended(struct opc_rollout *w)
{
    float *s = w->next;
    w->next = w->state;
    w->state = s;
    const size_t obs = (size_t)w->obs;
    int kept = 0;
    for (int i = 0; i < w->n; i++) {
        if (w->ended[i])
            continue;
        if (kept < i) {
            w->episode[kept] = w->episode[i];
            w->time[kept] = w->time[i];
            w->elite[kept] = w->elite[i];
            w->slot[kept] = w->slot[i];
            w->rng[kept] = w->rng[i];
            memcpy(s + (size_t)kept * obs, s + (size_t)i * obs, obs * sizeof(float));
        }
        kept++;
    }
    w->n = kept;
}

/* ---- until the new data holds N transitions -------------------------------------------------- */

static int rows_to_start(const struct opc_rollout *w, const struct opc_rollout_plan *plan,
                         const struct opc_rollout_report *done)
{
    size_t missing;
    if (plan->rollouts > 0)
        missing = (size_t)plan->rollouts - done->rollouts;
    else if (done->transitions < plan->transitions)
        missing = (plan->transitions - done->transitions - 1) / (size_t)plan->horizon + 1;
    else
        missing = 0;
    return missing < (size_t)w->rows ? (int)missing : w->rows;
}

static int diverged(const struct step *c, int row, struct opc_err *err)
{
    const struct opc_rollout *w = c->w;
    const float *next = w->next + (size_t)row * (size_t)w->obs;
    int k = 0;
    while (k < w->obs && isfinite(next[k]))
        k++;
    const unsigned number = (unsigned)(c->index + (uint32_t)w->slot[row]);
    if (k == w->obs)
        return opc_fail(err, OPC_EDIVERGED,
                        "the reward is not finite in step %d of imagined rollout %u", c->h + 1,
                        number);
    return opc_fail(err, OPC_EDIVERGED,
                    "entry %d of the state is not finite after step %d of imagined rollout %u", k,
                    c->h + 1, number);
}

static int check(const struct opc_rollout *w, const struct opc_rollout_plan *plan,
                 const struct opc_imagined *into, struct opc_err *err)
{
    const struct opc_transition *tr = plan->transition;
    int first;
    const int steps = opc_transition_window(tr, &first);
    if (plan->horizon < 1 || plan->horizon > w->horizon || tr->obs != w->obs || tr->act != w->act ||
        opc_imagined_obs(into) != w->obs || opc_imagined_act(into) != w->act)
        return opc_fail(err, OPC_EBUG, "rollouts of %d steps (%d + %d) were prepared, not of %d",
                        w->horizon, w->obs, w->act, plan->horizon);
    if (steps == 0)
        return opc_fail(err, OPC_EBUG, "rollouts start before anything was recorded");
    if (tr->f_ref && (tr->filled != steps || tr->first != first))
        return opc_fail(err, OPC_EBUG,
                        "%d recorded steps from number %d on can be corrected, not %d from %d on; "
                        "refresh first",
                        tr->filled, tr->first, steps, first);
    return OPC_OK;
}

int opc_rollout_run(struct opc_rollout *w, const struct opc_rollout_plan *plan,
                    struct opc_imagined *into, struct opc_rollout_report *report,
                    struct opc_err *err)
{
    struct opc_rollout_report done = {
        .index = plan->index, .reward_min = INFINITY, .reward_max = -INFINITY};
    size_t empty = 0; /* rollouts in a row */
    int code = check(w, plan, into, err);
    for (int rows; !code && (rows = rows_to_start(w, plan, &done)) > 0;) {
        if (plan->stop && plan->stop(plan->stop_ctx))
            return opc_fail(err, OPC_ESTOPPED, "stopped while imagining");
        struct step c = {.w = w, .plan = plan, .index = done.index};
        w->n = rows;
        opc_pool_each(plan->pool, rows, ROWS, start, &c);
        for (; w->n > 0; c.h++) {
            advance(&c);
            opc_pool_each(plan->pool, w->n, ROWS, store, &c);
            for (int i = 0; i * ROWS < w->n; i++) {
                if (w->tally[i].odd >= 0)
                    return diverged(&c, w->tally[i].odd, err);
                add_tally(&done, &w->tally[i]);
            }
            drop_ended(w);
        }
        for (int slot = 0; !code && slot < rows; slot++) {
            const int steps = w->steps[slot];
            empty = steps ? 0 : empty + 1;
            if (steps)
                code = opc_imagined_append(into, steps, record_at(w, slot, 0), err);
            done.transitions += (size_t)steps;
        }
        done.rollouts += (size_t)rows;
        done.index += (uint32_t)rows;
        if (!code && (empty >= MOST_EMPTY || (plan->rollouts && empty == (size_t)plan->rollouts)))
            code = opc_fail(err, OPC_EDIVERGED,
                            "the last %zu imagined rollouts were refused their first step: there "
                            "is nothing to learn from",
                            empty);
    }
    if (done.rollouts > 0)
        done.length = (double)done.transitions / (double)done.rollouts;
    *report = done;
    return code;
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t opc_rollout_need(int obs, int act, int horizon, int rows)
{
    const size_t stride = opc_record_stride(obs, act);
    const size_t floats = ((size_t)horizon + 1) * stride + 3 * (size_t)obs + (size_t)act + 2;
    return (size_t)rows * (floats * sizeof(float) + 5 * sizeof(int) + sizeof(struct opc_rng) + 2);
}

int opc_rollout_create(int obs, int act, int horizon, int rows, struct opc_rollout **out,
                       struct opc_err *err)
{
    if (obs < 1 || act < 1 || horizon < 1 || rows < 1)
        return opc_fail(err, OPC_EBUG, "%d rollouts of %d steps (%d + %d)", rows, horizon, obs,
                        act);
    const size_t n = (size_t)rows;
    struct opc_rollout *w = opc_alloc(1, sizeof *w);
    if (!w)
        goto full;
    *w = (struct opc_rollout){.obs = obs, .act = act, .horizon = horizon, .rows = rows};
    w->stride = opc_record_stride(obs, act);
    w->path = ((size_t)horizon + 1) * w->stride;
    w->episode = opc_alloc(n, sizeof *w->episode);
    w->time = opc_alloc(n, sizeof *w->time);
    w->elite = opc_alloc(n, sizeof *w->elite);
    w->slot = opc_alloc(n, sizeof *w->slot);
    w->rng = opc_alloc(n, sizeof *w->rng);
    w->state = opc_alloc(n, (size_t)obs * sizeof *w->state);
    w->next = opc_alloc(n, (size_t)obs * sizeof *w->next);
    w->action = opc_alloc(n, (size_t)act * sizeof *w->action);
    w->reward = opc_alloc(n, sizeof *w->reward);
    w->work = opc_alloc(n, ((size_t)obs + 1) * sizeof *w->work);
    w->ended = opc_alloc(n, sizeof *w->ended);
    w->refused = opc_alloc(n, sizeof *w->refused);
    w->tally = opc_alloc((n - 1) / ROWS + 1, sizeof *w->tally);
    w->records = opc_alloc(n, w->path * sizeof *w->records);
    w->steps = opc_alloc(n, sizeof *w->steps);
    if (!w->episode || !w->time || !w->elite || !w->slot || !w->rng || !w->state || !w->next ||
        !w->action || !w->reward || !w->work || !w->ended || !w->refused || !w->tally ||
        !w->records || !w->steps)
        goto full;
    *out = w;
    return OPC_OK;
full:
    opc_rollout_destroy(w);
    return opc_fail(err, OPC_ENOMEM, "no room for %d rollouts of %d steps at a time", rows,
                    horizon);
}

void opc_rollout_destroy(struct opc_rollout *w)
{
    if (!w)
        return;
    opc_free(w->episode);
    opc_free(w->time);
    opc_free(w->elite);
    opc_free(w->slot);
    opc_free(w->rng);
    opc_free(w->state);
    opc_free(w->next);
    opc_free(w->action);
    opc_free(w->reward);
    opc_free(w->work);
    opc_free(w->ended);
    opc_free(w->refused);
    opc_free(w->tally);
    opc_free(w->records);
    opc_free(w->steps);
    opc_free(w);
}
