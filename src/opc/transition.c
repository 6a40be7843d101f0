/* SPDX-License-Identifier: MIT */
/* The idea of the paper. A row of a walk is in state s, has chosen action a, and has a recorded
 * step as its reference: in s_ref the real environment was given a_ref and answered with s_ref'.
 * Three answers to "where does the row go?":
 *
 *     replay      eq. 3    s' = s_ref'                        exact, but ignores a
 *     learned     eq. 2    s' ~ p~(. | s, a)                  depends on a, but p~ is wrong
 *     corrected   eq. 5    s' = s_ref' + [ f(s, a) - f(s_ref, a_ref) ],    f = E[p~]
 *
 * The third takes from the recording what happened, noise and all, and from the model only what
 * changes when s and a are not the recorded ones. On-policy (s = s_ref, a = a_ref) the bracket is
 * 0 and the row retraces the recording, however wrong the model is; off-policy a model error
 * counts only as far as it differs between the two points.
 *
 * f stands for one elite of the ensemble, the same in both places: each sample is corrected by
 * its own error, so that the members agree on-policy (section 3.4). The reward is column obs of
 * f, and the equations treat it as one more state.
 *
 * opc/walk.c calls opc_transition_step for every step of every rollout. */
#include "opc/transition_type.h"

#include "base/pool.h"
#include "base/sized.h"
#include "data/episodes_private.h"

#include <stdio.h>
#include <string.h>

enum {
    ROWS = 512,   /* rows of a walk that one thread does in one go */
    AHEAD = 12,   /* a reference is prefetched this many rows before its use */
    PIECE = 8192, /* recorded steps that refresh_references predicts in one go */
};

/* What all chunks of one step share. */
struct job {
    const struct opc_transition *tr;
    struct opc_walk *walk;
};

/* The reference of row i. */
static struct opc_step reference_step(const struct job *job, int i)
{
    return opc_episodes_at(job->tr->past, job->walk->episode[i], job->walk->time[i]);
}

/* eq. 3: the recorded step again, with the action that belongs to it. */
static void replay_rows(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    const size_t obs = (size_t)job->tr->obs, act = (size_t)job->tr->act;
    for (int i = first; i < end; i++) {
        const struct opc_step ref = reference_step(job, i);
        memcpy(job->walk->action + (size_t)i * act, ref.action, act * sizeof(float));
        memcpy(job->walk->next + (size_t)i * obs, ref.next, obs * sizeof(float));
        job->walk->reward[i] = ref.reward;
    }
}

static void step_replay(const struct opc_transition *tr, struct opc_walk *walk,
                        struct opc_pool *pool)
{
    opc_pool_each(pool, walk->n, ROWS, replay_rows, &(struct job){tr, walk});
}

/* eq. 2: the model's prediction, drawn from its Gaussian or its mean. Its rows [s', reward] are in
 * walk->work and are copied apart here. */
static void copy_predictions(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    const size_t obs = (size_t)job->tr->obs;
    for (int i = first; i < end; i++) {
        const float *y = job->walk->work + (size_t)i * (obs + 1);
        memcpy(job->walk->next + (size_t)i * obs, y, obs * sizeof(float));
        job->walk->reward[i] = y[obs];
    }
}

static void step_learned(const struct opc_transition *tr, struct opc_walk *walk,
                         struct opc_pool *pool)
{
    if (tr->sample)
        opc_predictor_sample(tr->model, walk->n, walk->state, walk->action, walk->elite, walk->rng,
                             walk->work, pool);
    else
        opc_predictor_mean(tr->model, walk->n, walk->state, walk->action, walk->elite, walk->work,
                           pool);
    opc_pool_each(pool, walk->n, ROWS, copy_predictions, &(struct job){tr, walk});
}

/* f(s_ref, a_ref) by the row's elite, from the table. */
static const float *f_reference(const struct job *job, int i)
{
    const struct opc_walk *walk = job->walk;
    return opc_transition_f_ref(job->tr, walk->episode[i], walk->time[i], walk->elite[i]);
}

/* References lie all over the recorded past, so their memory is prefetched AHEAD rows early. */
static void prefetch_reference(const struct job *job, int i)
{
    const float *f_ref = f_reference(job, i);
    opc_episodes_prefetch(job->tr->past, job->walk->episode[i], job->walk->time[i]);
    for (int k = 0; k <= job->tr->obs; k += 16)
        __builtin_prefetch(f_ref + k);
    __builtin_prefetch(f_ref + job->tr->obs);
}

/* eq. 5. Bracket first: on-policy it is 0 to the last bit, because equal rows have equal bits
 * wherever they stand in a batch (num/kernel.h), and s_ref' + 0 is s_ref'. In any other order of
 * the three terms it would be off by a rounding. */
static void correct_rows(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    const struct opc_transition *tr = job->tr;
    const struct opc_walk *walk = job->walk;
    const size_t obs = (size_t)tr->obs;
    for (int i = first; i < end; i++) {
        if (i + AHEAD < end)
            prefetch_reference(job, i + AHEAD);
        const struct opc_step ref = reference_step(job, i);
        const float *f = walk->work + (size_t)i * (obs + 1), *f_ref = f_reference(job, i);
        float *next = walk->next + (size_t)i * obs;
        for (size_t k = 0; k < obs; k++)
            next[k] = ref.next[k] + (f[k] - f_ref[k]);
        walk->reward[i] = tr->correct_reward ? ref.reward + (f[obs] - f_ref[obs]) : f[obs];
    }
}

static void step_corrected(const struct opc_transition *tr, struct opc_walk *walk,
                           struct opc_pool *pool)
{
    opc_predictor_mean(tr->model, walk->n, walk->state, walk->action, walk->elite, walk->work,
                       pool);
    opc_pool_each(pool, walk->n, ROWS, correct_rows, &(struct job){tr, walk});
}

/* ---- the table f_ref ---------------------------------------------------------------------------
 * f(s_ref, a_ref) depends on the recorded step and the elite alone. Computed once after each fit,
 * it leaves one pass through the network for a step of eq. 5, as for a step of eq. 2. */
static int refresh_references(struct opc_transition *tr, struct opc_pool *pool, struct opc_err *err)
{
    const int steps = opc_transition_window(tr, &tr->first);
    if (steps > tr->capacity)
        return opc_fail(err, OPC_EBUG,
                        "%d steps were recorded, but the table of references holds %d", steps,
                        tr->capacity);
    const size_t obs = (size_t)tr->obs, act = (size_t)tr->act;
    /* PIECE recorded steps at a time: gather s_ref and a_ref, and predict them with every elite. */
    int b = tr->first_episode, t = 0;
    for (int first = 0, n; first < steps; first += n) {
        for (n = 0; n < PIECE && first + n < steps; n++) {
            const struct opc_step ref = opc_episodes_at(tr->past, b, t);
            memcpy(tr->s_ref + (size_t)n * obs, ref.state, obs * sizeof(float));
            memcpy(tr->a_ref + (size_t)n * act, ref.action, act * sizeof(float));
            if (++t == opc_episodes_length(tr->past, b)) {
                b++;
                t = 0;
            }
        }
        for (int e = 0; e < tr->model->elites; e++) {
            for (int i = 0; i < n; i++)
                tr->elite[i] = e;
            const size_t row = (size_t)e * (size_t)tr->capacity + (size_t)first;
            opc_predictor_mean(tr->model, n, tr->s_ref, tr->a_ref, tr->elite,
                               tr->f_ref + row * (obs + 1), pool);
        }
    }
    tr->filled = steps;
    return OPC_OK;
}

/* f_ref[elites][steps][obs + 1], and the inputs of one PIECE. */
static int allocate_references(struct opc_transition *tr, int steps, struct opc_err *err)
{
    const size_t columns = (size_t)tr->obs + 1, elites = (size_t)tr->model->elites;
    tr->capacity = steps;
    tr->f_ref = opc_alloc(elites * (size_t)steps, columns * sizeof *tr->f_ref);
    tr->s_ref = opc_alloc(PIECE, (size_t)tr->obs * sizeof *tr->s_ref);
    tr->a_ref = opc_alloc(PIECE, (size_t)tr->act * sizeof *tr->a_ref);
    tr->elite = opc_alloc(PIECE, sizeof *tr->elite);
    if (tr->f_ref && tr->s_ref && tr->a_ref && tr->elite)
        return OPC_OK;
    return opc_fail(err, OPC_ENOMEM,
                    "not enough memory for the predictions of %d recorded steps by %d elites",
                    steps, tr->model->elites);
}

static size_t reference_bytes(int steps, int obs, int act, int elites)
{
    (void)act;
    return (size_t)steps * (size_t)elites * ((size_t)obs + 1) * sizeof(float);
}

/* ---- the table of transition models ---------------------------------------------------------- */

static const struct opc_transition_type REPLAY = {
    .name = "replay",
    .equation = "eq. 3",
    .needs_reference = true,
    .replays = true,
    .step = step_replay,
};

static const struct opc_transition_type LEARNED = {
    .name = "learned",
    .equation = "eq. 2",
    .label = "MBPO(*)", /* MBPO in the loop of OPC, where the policy learns once an epoch */
    .original_label = "MBPO",
    .colour = 0xd55e00,
    .needs_model = true,
    .step = step_learned,
};

static const struct opc_transition_type CORRECTED = {
    .name = "corrected",
    .equation = "eq. 5",
    .label = "OPC",
    .original_label = "OPC",
    .colour = 0x0072b2,
    .needs_model = true,
    .needs_reference = true,
    .corrects = true,
    .step = step_corrected,
    .prepare = allocate_references,
    .bytes = reference_bytes,
    .refresh = refresh_references,
};

#ifdef OPC_ONE_MORE_TRANSITION
extern const struct opc_transition_type OPC_ONE_MORE_TRANSITION;
#endif

/* A new one is a line here, and a file of its own if it does not belong on this page. */
static const struct opc_transition_type *const TYPES[] = {
    &REPLAY,
    &LEARNED,
    &CORRECTED,
#ifdef OPC_ONE_MORE_TRANSITION /* tests/test_extending.c adds one this way */
    &OPC_ONE_MORE_TRANSITION,
#endif
};

const struct opc_transition_type *opc_transition_type(int i)
{
    return i >= 0 && i < (int)(sizeof TYPES / sizeof *TYPES) ? TYPES[i] : NULL;
}

const char *opc_transition_name(int i)
{
    const struct opc_transition_type *type = opc_transition_type(i);
    return type ? type->name : NULL;
}

/* The message lists the names there are. */
static int no_such_type(const char *name, struct opc_err *err)
{
    char known[200] = "";
    for (int i = 0; opc_transition_name(i); i++) {
        const size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", opc_transition_name(i));
    }
    return opc_fail(err, OPC_EUSER, "there is no transition model '%s'; there are: %s", name,
                    known);
}

/* ---- a transition model ---------------------------------------------------------------------- */

static int transition_init(const struct opc_transition_options *o, struct opc_transition *tr,
                           struct opc_err *err)
{
    const int steps = o->steps > 0 ? o->steps : opc_episodes_steps(o->past);
    *tr = (struct opc_transition){
        .past = o->past,
        .model = o->model,
        .obs = opc_episodes_obs(o->past),
        .act = opc_episodes_act(o->past),
        .correct_reward = !o->reward_by_model,
        .sample = !o->mean,
        .reward = o->reward,
        .reward_ctx = o->reward_ctx,
        .first_episode = o->first_episode,
    };
    for (int i = 0; opc_transition_name(i) && !tr->type; i++)
        if (strcmp(o->name, opc_transition_name(i)) == 0)
            tr->type = opc_transition_type(i);
    if (!tr->type)
        return no_such_type(o->name, err);
    if (tr->type->needs_model &&
        (!o->model || o->model->obs != tr->obs || o->model->act != tr->act || steps < 1))
        return opc_fail(err, OPC_EBUG, "the transition model '%s' has no dynamics model to match",
                        o->name);
    return tr->type->prepare ? tr->type->prepare(tr, steps, err) : OPC_OK;
}

int opc_transition_create(const struct opc_transition_options *given, struct opc_transition **out,
                          struct opc_err *err)
{
    struct opc_transition_options o;
    OPC_TRY(opc_sized_read(given, "opc_transition_options", &o, sizeof o, err));
    if (!o.name || !o.past)
        return opc_fail(err, OPC_EUSER, "a transition model needs a name and a recorded past");
    struct opc_transition *tr = opc_alloc(1, sizeof *tr);
    if (!tr)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a transition model");
    const int code = transition_init(&o, tr, err);
    if (code)
        opc_transition_destroy(tr);
    else
        *out = tr;
    return code;
}

void opc_transition_move_window(struct opc_transition *tr, int first_episode)
{
    tr->first_episode = first_episode;
}

/* The reward that is known, of where the step has led. */
static void reward_rows(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    const size_t obs = (size_t)job->tr->obs, act = (size_t)job->tr->act, at = (size_t)first;
    job->tr->reward(job->tr->reward_ctx, end - first, job->walk->state + at * obs,
                    job->walk->action + at * act, job->walk->next + at * obs,
                    job->walk->reward + first);
}

void opc_transition_step(const struct opc_transition *tr, struct opc_walk *walk,
                         struct opc_pool *pool)
{
    tr->type->step(tr, walk, pool);
    if (tr->reward && !tr->type->replays)
        opc_pool_each(pool, walk->n, ROWS, reward_rows, &(struct job){tr, walk});
}

int opc_transition_window(const struct opc_transition *tr, int *first)
{
    *first = opc_episodes_first(tr->past, tr->first_episode);
    return opc_episodes_steps(tr->past) - *first;
}

int opc_transition_refresh(struct opc_transition *tr, struct opc_pool *pool, struct opc_err *err)
{
    return tr->type->refresh ? tr->type->refresh(tr, pool, err) : OPC_OK;
}

void opc_transition_destroy(struct opc_transition *tr)
{
    if (!tr)
        return;
    opc_free(tr->f_ref);
    opc_free(tr->s_ref);
    opc_free(tr->a_ref);
    opc_free(tr->elite);
    opc_free(tr);
}
