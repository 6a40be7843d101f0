/* SPDX-License-Identifier: MIT */
/* The on-policy errors of metrics.csv, once an epoch (train.c). Rollouts by eq. 2 and by eq. 5
 * start from the same recorded states with the same noise of the policy; the environment is then
 * given the actions of each, and the states are compared.
 *
 * Invariant: nothing here changes what training does. Random numbers come from streams of
 * OPC_USE_STUDY, and an error that cannot be measured is NaN, not a failure. */
#include "run/real/onpolicy.h"

#include "data/episodes_private.h"
#include "opc/branches.h"
#include "opc/mem.h"
#include "opc/nearest.h"
#include "run/real/retrace.h"

#include <math.h>
#include <string.h>

/* MAX_STEPS: recorded steps among which starts are chosen; MAX_HORIZON: the last of
 * OPC_ERROR_STEPS. */
enum { MAX_STEPS = 2000, MAX_STARTS = 32, MAX_HORIZON = 10 };

struct sample {
    const struct opc_onpolicy_plan *plan;
    int first, end;               /* starts are in episodes first .. end-1 of the past, ... */
    int steps;                    /* ... which have this many steps */
    double *scale;                /* [obs] 1 / standard deviation over the past */
    struct opc_branches branches; /* the starts, and the rollouts of a model from them */
    /* the same by the environment */
    struct opc_rng *reset; /* [starts] the stream from which the episode was reset */
    int *ended;            /* [starts] step at which the task ended; 0: it did not */
    double *truth;         /* [starts][MAX_HORIZON + 1][obs] */
};

static void free_sample(struct sample *sample)
{
    opc_branches_free(&sample->branches);
    opc_free(sample->scale);
    opc_free(sample->reset);
    opc_free(sample->ended);
    opc_free(sample->truth);
}

static int make_sample(struct sample *sample, struct opc_err *err)
{
    const int obs = opc_episodes_obs(sample->plan->past),
              act = opc_episodes_act(sample->plan->past);
    const size_t n = MAX_STARTS;
    const struct opc_block blocks[] = {
        {&sample->scale, (size_t)obs, sizeof *sample->scale},
        {&sample->reset, n, sizeof *sample->reset},
        {&sample->ended, n, sizeof *sample->ended},
        {&sample->truth, n * (MAX_HORIZON + 1), (size_t)obs * sizeof *sample->truth},
    };
    if (!opc_alloc_all(blocks, sizeof blocks / sizeof *blocks))
        return opc_fail(err, OPC_ENOMEM, "out of memory to measure the model's errors");
    return opc_branches_make(MAX_STARTS, MAX_HORIZON, obs, act, &sample->branches, err);
}

/* Whole episodes of this epoch, from the newest on, as many as fit into MAX_STEPS, but at least
 * one: there the policy has just been. */
static void choose_window(struct sample *sample)
{
    const struct opc_episodes *past = sample->plan->past;
    sample->end = opc_episodes_count(past);
    sample->first = sample->end - 1;
    sample->steps = opc_episodes_length(past, sample->first);
    while (sample->first > sample->plan->newest &&
           sample->steps + opc_episodes_length(past, sample->first - 1) <= MAX_STEPS)
        sample->steps += opc_episodes_length(past, --sample->first);
}

/* The unit of the errors: the standard deviation of each entry of the state over the past. An entry
 * that never changes is not scaled. */
static void measure_spread(struct sample *sample)
{
    const struct opc_records all = opc_episodes_records(sample->plan->past);
    for (int k = 0; k < opc_episodes_obs(sample->plan->past); k++) {
        double sum = 0, squares = 0;
        const double about = (double)all.at[k]; /* near the mean, so that little cancels */
        for (size_t i = 0; i < all.n; i++) {
            const double d = (double)all.at[i * all.stride + (size_t)k] - about;
            sum += d;
            squares += d * d;
        }
        const double mean = sum / (double)all.n;
        const double variance = squares / (double)all.n - mean * mean;
        sample->scale[k] = variance > 1e-16 ? 1 / sqrt(variance) : 1;
    }
}

/* ---- where they start ------------------------------------------------------------------------ */

/* Spreads the starts evenly over the first `early` steps of the episodes. Returns the steps on the
 * environment this takes: to reach each start and MAX_HORIZON on, for both models. */
static long spread_starts(struct sample *sample, int early)
{
    const struct opc_episodes *past = sample->plan->past;
    struct opc_branches *starts = &sample->branches;
    long all = 0, cost = 0;
    /* how many steps there are to choose from */
    for (int b = sample->first; b < sample->end; b++) {
        const int length = opc_episodes_length(past, b);
        all += length < early ? length : early;
    }
    starts->n = all < MAX_STARTS ? (int)all : MAX_STARTS;
    /* start i is step i / n of them all, which is found episode by episode */
    long before = 0; /* early steps of the episodes before b */
    for (int i = 0, b = sample->first; i < starts->n; i++) {
        const long step = (long)i * all / starts->n;
        for (;; b++) {
            const int length = opc_episodes_length(past, b);
            const int here = length < early ? length : early;
            if (step < before + here)
                break;
            before += here;
        }
        starts->episode[i] = b;
        starts->time[i] = (int)(step - before);
        cost += 2 * (starts->time[i] + MAX_HORIZON);
    }
    return cost;
}

/* Starts late in an episode cost more, because the episode is played again up to there. They are as
 * late as OPC_ONPOLICY_STEPS allow. */
static void choose_starts(struct sample *sample)
{
    const struct opc_branches *starts = &sample->branches;
    /* all of the longest episode, then less and less */
    int early = 1;
    for (int b = sample->first; b < sample->end; b++)
        if (early < opc_episodes_length(sample->plan->past, b))
            early = opc_episodes_length(sample->plan->past, b);
    while (spread_starts(sample, early) > OPC_ONPOLICY_STEPS && early > 1)
        early = early * 7 / 8;
    for (int i = 0; i < starts->n; i++)
        sample->reset[i] =
            opc_rng_stream(sample->plan->seed, OPC_USE_RESET, 0, (uint32_t)starts->episode[i]);
}

/* ---- along a model --------------------------------------------------------------------------- */

/* a ~ pi(s), as in training */
static void act_by_agent(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    const struct sample *sample = ctx;
    opc_agent_act(sample->plan->agent, n, state, true, rng, action);
}

/* The recorded actions. A planner would take minutes for the thousands of states of a measurement,
 * and what it did is recorded. */
static void act_as_recorded(void *ctx, int n, const float *state, struct opc_rng *rng,
                            float *action)
{
    (void)state, (void)rng;
    const struct sample *sample = ctx;
    const struct opc_rows *rows = sample->branches.rows;
    const size_t act = (size_t)rows->act;
    for (int i = 0; i < n; i++)
        memcpy(action + (size_t)i * act,
               opc_episodes_at(sample->plan->past, rows->episode[i], rows->time[i]).action,
               act * sizeof *action);
}

/* Rollouts of a model from the starts. `rng` draws members and actions, `noise` the Gaussian of
 * eq. 2. The streams do not depend on the model, so the policy's noise is the same for both. */
static int follow_model(struct sample *sample, const struct opc_transition *tr, struct opc_err *err)
{
    const struct opc_onpolicy_plan *plan = sample->plan;
    struct opc_branches *b = &sample->branches;
    const struct opc_walk_plan walk = {
        .transition = tr,
        .act = plan->agent->type->act_in ? act_as_recorded : act_by_agent,
        .act_ctx = sample,
        /* Where the task ends is the environment's to say (opc_retrace), not the model's: a state
         * that is predicted wrong and terminal is an error to be measured. */
        .terminal = NULL,
        /* Eq. 2 could go on without a recording, but errors are compared over the same steps. */
        .end_with_reference = true,
        .elite_per_rollout = plan->elite_per_rollout,
        .horizon = MAX_HORIZON,
        .pool = plan->pool,
    };
    for (uint32_t i = 0; i < (uint32_t)b->n; i++) {
        b->rng[i] = opc_rng_stream(plan->seed, OPC_USE_STUDY, plan->epoch, i);
        b->noise[i] = opc_rng_stream(plan->seed, OPC_USE_STUDY, plan->epoch, MAX_STARTS + i);
    }
    return opc_branches_follow(b, &walk, err);
}

/* ---- against the environment ----------------------------------------------------------------- */

/* The environment, from the same starts with the actions the model's rollouts took. */
static int retrace_branches(struct sample *sample, long *steps, struct opc_err *err)
{
    const struct opc_branches *b = &sample->branches;
    struct opc_retrace again = {
        .worlds = sample->plan->worlds,
        .past = sample->plan->past,
        .n = b->n,
        .horizon = b->horizon,
        .episode = b->episode,
        .time = b->time,
        .reset = sample->reset,
        .action = b->action,
        .length = b->length,
        .truth = sample->truth,
        .ended = sample->ended,
    };
    const int code = opc_retrace(&again, err);
    *steps += again.steps;
    return code;
}

/* error[k]: root mean square over the starts that count, and over the scaled entries of the state,
 * after OPC_ERROR_STEPS[k] steps. */
static void compare_with_truth(const struct sample *sample, double error[OPC_ERRORS])
{
    const struct opc_branches *b = &sample->branches;
    for (int k = 0; k < OPC_ERRORS; k++) {
        const int h = OPC_ERROR_STEPS[k];
        double sum = 0;
        int n = 0;
        for (int i = 0; i < b->n; i++) {
            const double *truth =
                sample->truth + ((size_t)i * (MAX_HORIZON + 1) + (size_t)h) * (size_t)b->obs;
            /* the recording or the task ended before step h */
            if (b->length[i] < h || isnan(truth[0]))
                continue;
            n++;
            for (int j = 0; j < b->obs; j++) {
                const double e = (opc_branches_at(b, i, h, j) - truth[j]) * sample->scale[j];
                sum += e * e;
            }
        }
        if (n > 0)
            error[k] = sqrt(sum / n / b->obs);
    }
}

/* name: of the transition, "learned" (eq. 2) or "corrected" (eq. 5). */
static int measure_model(struct sample *sample, const char *name, double error[OPC_ERRORS],
                         long *steps, struct opc_err *err)
{
    const struct opc_transition_options options = {
        OPC_SIZED(struct opc_transition_options),
        .name = name,
        .past = sample->plan->past,
        .model = sample->plan->model,
        .steps = sample->steps,
        .first_episode = sample->first, /* eq. 5 needs no table of all the past */
        .mean = !sample->plan->sample,
    };
    struct opc_transition *tr;
    OPC_TRY(opc_transition_create(&options, &tr, err));
    int code = opc_transition_refresh(tr, sample->plan->pool, err);
    if (!code)
        code = follow_model(sample, tr, err);
    if (!code)
        code = retrace_branches(sample, steps, err);
    if (!code)
        compare_with_truth(sample, error);
    opc_transition_destroy(tr);
    return code;
}

/* ---- eq. 5 of a planner ----------------------------------------------------------------------
 * A plan walks along another recording than the one that comes of it: the one whose state was
 * nearest to the current one. So do the rollouts here, with the recorded actions. The recording of
 * what then happened is the truth, so no environment is needed. */

/* The rollouts, at most one for each start. */
struct planned {
    int n;
    int *start;               /* [n] which of the sample's starts */
    int *left;                /* [n] steps that the reference lasts */
    int *episode, *time;      /* [n] where they walk along */
    int *elite;               /* [n] */
    struct opc_rng *rng;      /* [n] draws the elites */
    double *scale;            /* [obs] units in which the reference is the nearest */
    float *state, *next;      /* [n][obs] */
    float *action, *reward;   /* [n][act], [n] */
    float *work;              /* [n][obs + 1] scratch */
    double sum[OPC_ERRORS];   /* of the squares of scaled errors after OPC_ERROR_STEPS */
    long counted[OPC_ERRORS]; /* entries of the state in them */
};

static void free_planned(struct planned *p)
{
    opc_free(p->start);
    opc_free(p->left);
    opc_free(p->episode);
    opc_free(p->time);
    opc_free(p->elite);
    opc_free(p->rng);
    opc_free(p->scale);
    opc_free(p->state);
    opc_free(p->next);
    opc_free(p->action);
    opc_free(p->reward);
    opc_free(p->work);
}

static int make_planned(struct planned *p, int obs, int act, struct opc_err *err)
{
    const size_t n = MAX_STARTS, row = (size_t)obs * sizeof(float);
    const struct opc_block blocks[] = {
        {&p->start, n, sizeof *p->start},
        {&p->left, n, sizeof *p->left},
        {&p->episode, n, sizeof *p->episode},
        {&p->time, n, sizeof *p->time},
        {&p->elite, n, sizeof *p->elite},
        {&p->rng, n, sizeof *p->rng},
        {&p->scale, (size_t)obs, sizeof *p->scale},
        {&p->state, n, row},
        {&p->next, n, row},
        {&p->action, n, (size_t)act * sizeof(float)},
        {&p->reward, n, sizeof *p->reward},
        {&p->work, n, row + sizeof *p->work},
    };
    if (!opc_alloc_all(blocks, sizeof blocks / sizeof *blocks))
        return opc_fail(err, OPC_ENOMEM, "out of memory to measure the planner's errors");
    return OPC_OK;
}

/* The first episode that plans may have walked along when episode b was played. */
static int oldest_reference(const struct opc_onpolicy_plan *plan, int b)
{
    return plan->oldest ? plan->oldest(plan->oldest_ctx, b) : 0;
}

/* A rollout from each start that has a reference. Returns the first episode of them all. */
static int start_planned(const struct sample *sample, struct planned *p)
{
    const struct opc_onpolicy_plan *plan = sample->plan;
    const struct opc_agent_type *agent = plan->agent->type;
    const struct opc_episodes *past = plan->past;
    const size_t obs = (size_t)opc_episodes_obs(past);
    const int horizon = agent->looks_ahead ? agent->looks_ahead(plan->agent) : MAX_HORIZON;
    int first = 0, scaled = -1; /* the episode that p->scale is of */
    for (int i = 0; i < sample->branches.n; i++) {
        const int b = sample->branches.episode[i], n = p->n, oldest = oldest_reference(plan, b);
        const float *s = opc_episodes_at(past, b, sample->branches.time[i]).state;
        if (oldest >= b)
            continue;
        if (b != scaled)
            opc_nearest_scale(past, oldest, b, p->scale);
        scaled = b;
        const struct opc_nearest ref = opc_nearest_find(past, oldest, b, p->scale, s, horizon);
        first = n == 0 || oldest < first ? oldest : first;
        p->start[n] = i;
        p->left[n] = opc_episodes_length(past, ref.episode) - ref.time;
        p->episode[n] = ref.episode;
        p->time[n] = ref.time;
        p->rng[n] =
            opc_rng_stream(plan->seed, OPC_USE_STUDY, plan->epoch, 2 * MAX_STARTS + (uint32_t)i);
        memcpy(p->state + (size_t)n * obs, s, obs * sizeof *s);
        p->n++;
    }
    return first;
}

/* Squared distance of two states in standard deviations. */
static double distance(const struct sample *sample, const float *a, const float *b)
{
    double sum = 0;
    for (int k = 0; k < opc_episodes_obs(sample->plan->past); k++) {
        const double gap = ((double)a[k] - (double)b[k]) * sample->scale[k];
        sum += gap * gap;
    }
    return sum;
}

/* The errors of all rollouts whose recording, and whose reference, has step h, the h-th from the
 * start. */
static void add_errors(const struct sample *sample, struct planned *p, int h)
{
    const struct opc_episodes *past = sample->plan->past;
    const int obs = opc_episodes_obs(past);
    for (int k = 0; k < OPC_ERRORS; k++)
        for (int i = 0; i < p->n && OPC_ERROR_STEPS[k] == h; i++) {
            const int b = sample->branches.episode[p->start[i]],
                      t = sample->branches.time[p->start[i]] + h - 1;
            if (h > p->left[i] || t >= opc_episodes_length(past, b))
                continue;
            p->sum[k] += distance(sample, p->state + i * obs, opc_episodes_at(past, b, t).next);
            p->counted[k] += obs;
        }
}

/* MAX_HORIZON steps with the recorded actions. A rollout whose recording or reference is over
 * repeats the last step of it, which does not count. */
static void walk_planned(const struct sample *sample, const struct opc_transition *tr,
                         struct planned *p)
{
    const struct opc_episodes *past = sample->plan->past;
    const size_t act = (size_t)opc_episodes_act(past);
    for (int h = 1; h <= MAX_HORIZON; h++) {
        for (int i = 0; i < p->n; i++) {
            const int b = sample->branches.episode[p->start[i]],
                      t = sample->branches.time[p->start[i]] + h - 1,
                      last = opc_episodes_length(past, b) - 1;
            memcpy(p->action + (size_t)i * act,
                   opc_episodes_at(past, b, t < last ? t : last).action, act * sizeof(float));
            if (h == 1 || !sample->plan->elite_per_rollout)
                p->elite[i] = (int)opc_rng_below(&p->rng[i], (uint32_t)sample->plan->model->elites);
        }
        struct opc_walk walk = {.n = p->n,
                                .episode = p->episode,
                                .time = p->time,
                                .elite = p->elite,
                                .state = p->state,
                                .action = p->action,
                                .next = p->next,
                                .reward = p->reward,
                                .rng = p->rng,
                                .work = p->work};
        opc_transition_step(tr, &walk, sample->plan->pool);
        float *s = p->next;
        p->next = p->state;
        p->state = s;
        add_errors(sample, p, h);
        for (int i = 0; i < p->n; i++)
            p->time[i] += h < p->left[i];
    }
}

/* The steps from an episode on. */
static int steps_from(const struct opc_episodes *past, int first)
{
    int steps = 0;
    for (int b = first; b < opc_episodes_count(past); b++)
        steps += opc_episodes_length(past, b);
    return steps;
}

static int measure_planner(const struct sample *sample, double error[OPC_ERRORS],
                           struct opc_err *err)
{
    const struct opc_episodes *past = sample->plan->past;
    struct opc_transition *tr = NULL;
    struct planned p = {0};
    int code = make_planned(&p, opc_episodes_obs(past), opc_episodes_act(past), err);
    const int first = code ? 0 : start_planned(sample, &p);
    const struct opc_transition_options options = {
        OPC_SIZED(struct opc_transition_options),
        .name = "corrected",
        .past = past,
        .model = sample->plan->model,
        .first_episode = first,
        .steps = steps_from(past, first),
    };
    if (!code && p.n > 0)
        code = opc_transition_create(&options, &tr, err);
    if (!code && p.n > 0)
        code = opc_transition_refresh(tr, sample->plan->pool, err);
    if (!code && p.n > 0)
        walk_planned(sample, tr, &p);
    for (int k = 0; k < OPC_ERRORS && !code; k++)
        if (p.counted[k] > 0)
            error[k] = sqrt(p.sum[k] / (double)p.counted[k]);
    opc_transition_destroy(tr);
    free_planned(&p);
    return code;
}

static void set_unknown(struct opc_onpolicy *out)
{
    for (int k = 0; k < OPC_ERRORS; k++)
        out->learned[k] = out->corrected[k] = (double)NAN;
}

int opc_onpolicy_errors(const struct opc_onpolicy_plan *plan, struct opc_onpolicy *out,
                        struct opc_err *err)
{
    struct sample sample = {.plan = plan};
    out->steps = 0;
    set_unknown(out);
    if (opc_episodes_count(plan->past) == 0)
        return OPC_OK;
    int code = make_sample(&sample, err);
    if (!code) {
        choose_window(&sample);
        measure_spread(&sample);
        choose_starts(&sample);
        code = measure_model(&sample, "learned", out->learned, &out->steps, err);
    }
    if (!code && plan->agent->type->act_in)
        code = measure_planner(&sample, out->corrected, err);
    else if (!code)
        code = measure_model(&sample, "corrected", out->corrected, &out->steps, err);
    free_sample(&sample);
    /* A missing number must not end a run; a model that diverged ends it in its own phase. */
    if (code == OPC_EENV || code == OPC_EDIVERGED) {
        set_unknown(out);
        code = OPC_OK;
    }
    return code;
}
