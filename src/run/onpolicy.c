/* SPDX-License-Identifier: MIT */
/* The on-policy errors of metrics.csv, once an epoch. Both models are followed from the same starts
 * with the same noise of the policy, and the environment is given the actions of each.
 *
 * Nothing here may change what training does: what is drawn comes from streams of OPC_USE_STUDY,
 * and what cannot be measured is NaN, not an error. */
#include "run/onpolicy.h"

#include "data/episodes_in.h"
#include "opc/branches.h"
#include "opc/mem.h"
#include "run/retrace.h"

#include <math.h>

enum { MAX_STEPS = 2000, MAX_STARTS = 32, MAX_HORIZON = 10 };

struct sample {
    const struct opc_onpolicy_plan *plan;
    int first, end; /* episodes of the past in which starts are: first .. end-1 */
    int steps;      /* of them */
    double *scale;  /* [obs] 1 / standard deviation */
    /* what a model makes of the starts, and the environment */
    struct opc_branches branches;
    struct opc_rng *reset; /* [starts] what the episode was reset from */
    int *ended;            /* [starts] */
    double *truth;         /* [starts][MAX_HORIZON + 1][obs] */
};

static void free_sample(struct sample *x)
{
    opc_branches_free(&x->branches);
    opc_free(x->scale);
    opc_free(x->reset);
    opc_free(x->ended);
    opc_free(x->truth);
}

static int make_sample(struct sample *x, struct opc_err *err)
{
    const int obs = opc_episodes_obs(x->plan->past), act = opc_episodes_act(x->plan->past);
    const size_t n = MAX_STARTS;
    x->scale = opc_alloc((size_t)obs, sizeof *x->scale);
    x->reset = opc_alloc(n, sizeof *x->reset);
    x->ended = opc_alloc(n, sizeof *x->ended);
    x->truth = opc_alloc(n * (MAX_HORIZON + 1), (size_t)obs * sizeof *x->truth);
    if (!x->scale || !x->reset || !x->ended || !x->truth)
        return opc_fail(err, OPC_ENOMEM, "out of memory to measure the model's errors");
    return opc_branches_make(MAX_STARTS, MAX_HORIZON, obs, act, &x->branches, err);
}

/* Whole episodes from the newest on, as many as fit into MAX_STEPS, but at least one. */
static void choose_window(struct sample *x)
{
    const struct opc_episodes *past = x->plan->past;
    x->end = opc_episodes_count(past);
    x->first = x->end - 1;
    x->steps = opc_episodes_length(past, x->first);
    while (x->first > x->plan->newest &&
           x->steps + opc_episodes_length(past, x->first - 1) <= MAX_STEPS)
        x->steps += opc_episodes_length(past, --x->first);
}

/* The unit of the errors; an entry that never changes counts as it is. */
static void measure_spread(struct sample *x)
{
    const struct opc_records all = opc_episodes_records(x->plan->past);
    for (int k = 0; k < opc_episodes_obs(x->plan->past); k++) {
        double sum = 0, squares = 0;
        const double about = (double)all.at[k]; /* near the mean, so that little cancels */
        for (size_t i = 0; i < all.n; i++) {
            const double d = (double)all.at[i * all.stride + (size_t)k] - about;
            sum += d;
            squares += d * d;
        }
        const double mean = sum / (double)all.n;
        const double variance = squares / (double)all.n - mean * mean;
        x->scale[k] = variance > 1e-16 ? 1 / sqrt(variance) : 1;
    }
}

/* ---- where they start ------------------------------------------------------------------------ */

/* Evenly spread over the first `early` steps of the episodes; returns what it costs to play that
 * with both models' actions. */
static long spread_starts(struct sample *x, int early)
{
    const struct opc_episodes *past = x->plan->past;
    struct opc_branches *starts = &x->branches;
    long all = 0, cost = 0;
    /* how many steps there are to choose from */
    for (int b = x->first; b < x->end; b++) {
        const int length = opc_episodes_length(past, b);
        all += length < early ? length : early;
    }
    starts->n = all < MAX_STARTS ? (int)all : MAX_STARTS;
    /* start i is step i / n of them all, which is found episode by episode */
    long before = 0; /* early steps of the episodes before b */
    for (int i = 0, b = x->first; i < starts->n; i++) {
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

/* As late in their episodes as the steps on the environments allow. */
static void choose_starts(struct sample *x)
{
    const struct opc_branches *starts = &x->branches;
    /* all of the longest episode, then less and less */
    int early = 1;
    for (int b = x->first; b < x->end; b++)
        if (early < opc_episodes_length(x->plan->past, b))
            early = opc_episodes_length(x->plan->past, b);
    while (spread_starts(x, early) > OPC_ONPOLICY_STEPS && early > 1)
        early = early * 7 / 8;
    for (int i = 0; i < starts->n; i++)
        x->reset[i] = opc_rng_stream(x->plan->seed, OPC_USE_RESET, 0, (uint32_t)starts->episode[i]);
}

/* ---- along a model --------------------------------------------------------------------------- */

static void act_by_agent(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    const struct sample *x = ctx;
    opc_agent_act(x->plan->agent, n, state, true, rng, action);
}

static int follow_model(struct sample *x, const struct opc_transition *tr, struct opc_err *err)
{
    const struct opc_onpolicy_plan *plan = x->plan;
    struct opc_branches *b = &x->branches;
    const struct opc_walk_plan walk = {
        .transition = tr,
        .act = act_by_agent,
        .act_ctx = x,
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

static int retrace_branches(struct sample *x, long *steps, struct opc_err *err)
{
    const struct opc_branches *b = &x->branches;
    struct opc_retrace again = {
        .worlds = x->plan->worlds,
        .past = x->plan->past,
        .n = b->n,
        .horizon = b->horizon,
        .episode = b->episode,
        .time = b->time,
        .reset = x->reset,
        .action = b->action,
        .length = b->length,
        .truth = x->truth,
        .ended = x->ended,
    };
    const int code = opc_retrace(&again, err);
    *steps += again.steps;
    return code;
}

/* Root mean square over the starts that count, and over the entries of the state. */
static void compare_with_truth(const struct sample *x, double error[OPC_ERRORS])
{
    const struct opc_branches *b = &x->branches;
    for (int k = 0; k < OPC_ERRORS; k++) {
        const int h = OPC_ERROR_STEPS[k];
        double sum = 0;
        int n = 0;
        for (int i = 0; i < b->n; i++) {
            const double *truth =
                x->truth + ((size_t)i * (MAX_HORIZON + 1) + (size_t)h) * (size_t)b->obs;
            if (b->length[i] < h || isnan(truth[0]))
                continue;
            n++;
            for (int j = 0; j < b->obs; j++) {
                const double e = (opc_branches_at(b, i, h, j) - truth[j]) * x->scale[j];
                sum += e * e;
            }
        }
        if (n > 0)
            error[k] = sqrt(sum / n / b->obs);
    }
}

static int measure_model(struct sample *x, const char *name, double error[OPC_ERRORS], long *steps,
                         struct opc_err *err)
{
    const struct opc_transition_options options = {
        OPC_SIZED(struct opc_transition_options),
        .name = name,
        .past = x->plan->past,
        .model = x->plan->model,
        .steps = x->steps,
        .first_episode = x->first, /* eq. 5 needs no table of all the past */
        .mean = !x->plan->sample,
    };
    struct opc_transition *tr;
    OPC_TRY(opc_transition_create(&options, &tr, err));
    int code = opc_transition_refresh(tr, x->plan->pool, err);
    if (!code)
        code = follow_model(x, tr, err);
    if (!code)
        code = retrace_branches(x, steps, err);
    if (!code)
        compare_with_truth(x, error);
    opc_transition_destroy(tr);
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
    struct sample x = {.plan = plan};
    out->steps = 0;
    set_unknown(out);
    if (opc_episodes_count(plan->past) == 0)
        return OPC_OK;
    int code = make_sample(&x, err);
    if (!code) {
        choose_window(&x);
        measure_spread(&x);
        choose_starts(&x);
        code = measure_model(&x, "learned", out->learned, &out->steps, err);
    }
    if (!code)
        code = measure_model(&x, "corrected", out->corrected, &out->steps, err);
    free_sample(&x);
    /* That a number is missing must not end a run; a model that diverged ends it elsewhere. */
    if (code == OPC_EENV || code == OPC_EDIVERGED) {
        set_unknown(out);
        code = OPC_OK;
    }
    return code;
}
