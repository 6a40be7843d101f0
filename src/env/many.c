/* SPDX-License-Identifier: MIT */
/* Many environments of one kind on the pool, and batches of episodes in them (env/many.h).
 *
 * Invariant: only reset_or_step runs on several threads, and only on environments of its own chunk.
 * Players are called on the thread that called opc_env_batch_play, row by row in order, so that
 * what they draw does not depend on the number of threads. */
#include "env/many.h"

#include "env/types.h"
#include "opc/mem.h"

/* n environments and a slot for the result of each. */
struct opc_many {
    int n;
    bool borrowed; /* env[0] belongs to the caller and is not closed here */
    struct opc_pool *pool;
    struct opc_env **env; /* [n] */
    int *code;            /* [n] of the last call */
    struct opc_err *err;  /* [n] */
};

void opc_many_close(struct opc_many *many)
{
    if (!many)
        return;
    for (int i = 0; many->env && i < many->n && !many->borrowed; i++)
        opc_env_close(many->env[i]);
    opc_free(many->env);
    opc_free(many->code);
    opc_free(many->err);
    opc_free(many);
}

/* Allocates for n environments, none of them open yet. */
static int make_many(int n, struct opc_pool *pool, struct opc_many **out, struct opc_err *err)
{
    struct opc_many *many = opc_alloc(1, sizeof *many);
    if (many) {
        *many = (struct opc_many){.n = n, .pool = pool};
        many->env = opc_alloc((size_t)n, sizeof *many->env);
        many->code = opc_alloc((size_t)n, sizeof *many->code);
        many->err = opc_alloc((size_t)n, sizeof *many->err);
    }
    if (!many || !many->env || !many->code || !many->err) {
        opc_many_close(many);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d environments", n);
    }
    *out = many;
    return OPC_OK;
}

int opc_many_open(const char *spec, int n, struct opc_pool *pool, struct opc_many **out,
                  struct opc_err *err)
{
    struct opc_many *many = NULL;
    if (n < 1)
        return opc_fail(err, OPC_EUSER, "%d environments are asked for; at least 1", n);
    int code = make_many(n, pool, &many, err);
    if (!code)
        code = opc_env_open(spec, &many->env[0], err);
    /* Of hardware there is only one. */
    if (!code && many->env[0]->type->machine)
        many->n = 1;
    /* Copies share what the type shares, a compiled model for instance. */
    for (int i = 1; !code && i < many->n; i++)
        code = opc_env_another(many->env[0], &many->env[i], err);
    if (code) {
        opc_many_close(many);
        return code;
    }
    *out = many;
    return OPC_OK;
}

int opc_many_of(struct opc_env *env, struct opc_many **out, struct opc_err *err)
{
    const int code = make_many(1, NULL, out, err);
    if (code)
        return code;
    (*out)->env[0] = env;
    (*out)->borrowed = true;
    return OPC_OK;
}

void opc_many_rest(struct opc_many *many, int i)
{
    opc_env_rest(many->env[i]);
}

int opc_many_count(const struct opc_many *many)
{
    return many->n;
}

const struct opc_env *opc_many_env(const struct opc_many *many, int i)
{
    return many->env[i];
}

struct opc_env *opc_many_borrow(struct opc_many *many, int i)
{
    return many->env[i];
}

/* One call for all environments, as the pool gets it. */
struct work {
    struct opc_many *many;
    const bool *active;
    struct opc_rng *rng;  /* of a reset; NULL means a step */
    double *obs;          /* of a reset */
    const double *action; /* of a step */
    struct opc_outcome *out;
};

/* Each environment has its own error slot, because several may fail at once. */
static void reset_or_step(const struct work *work, int i)
{
    struct opc_many *many = work->many;
    struct opc_env *env = many->env[i];
    const size_t row = (size_t)i;
    many->code[i] = work->rng ? opc_env_reset(env, &work->rng[i],
                                              work->obs + row * (size_t)env->obs, &many->err[i])
                              : opc_env_step(env, work->action + row * (size_t)env->act,
                                             &work->out[i], &many->err[i]);
}

/* A chunk of the pool. Environments that are left out report success. */
static void reset_or_step_range(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct work *work = ctx;
    for (int i = first; i < end; i++) {
        work->many->code[i] = OPC_OK;
        if (!work->active || work->active[i])
            reset_or_step(work, i);
    }
}

static int reset_or_step_all(struct work *work, struct opc_err *err)
{
    struct opc_many *many = work->many;
    opc_pool_each(many->pool, many->n, 1, reset_or_step_range, work);
    /* The error of the lowest index is reported, whichever thread was first. */
    for (int i = 0; i < many->n; i++)
        if (many->code[i])
            return opc_fail(err, many->err[i].code, "environment %d: %s", i, many->err[i].text);
    return OPC_OK;
}

int opc_many_reset(struct opc_many *many, const bool *active, struct opc_rng *rng, double *obs,
                   struct opc_err *err)
{
    return reset_or_step_all(&(struct work){.many = many, .active = active, .rng = rng, .obs = obs},
                             err);
}

int opc_many_step(struct opc_many *many, const bool *active, const double *action,
                  struct opc_outcome *out, struct opc_err *err)
{
    /* Programs get their questions before we wait for the first answer, and compute at once. */
    for (int i = 0; many->n > 1 && i < many->n; i++)
        if (!active || active[i])
            opc_process_step_ahead(many->env[i], action + (size_t)i * (size_t)many->env[i]->act);
    return reset_or_step_all(
        &(struct work){.many = many, .active = active, .action = action, .out = out}, err);
}

/* ---- a batch of episodes --------------------------------------------------------------------- */

void opc_env_batch_free(struct opc_env_batch *batch)
{
    opc_free(batch->active);
    opc_free(batch->length);
    opc_free(batch->rng);
    opc_free(batch->state);
    opc_free(batch->input);
    opc_free(batch->action);
    opc_free(batch->task_action);
    opc_free(batch->outcome);
    *batch = (struct opc_env_batch){0};
}

int opc_env_batch_create(struct opc_many *worlds, struct opc_env_batch *out, struct opc_err *err)
{
    struct opc_env_batch batch = {
        .worlds = worlds, .n = worlds->n, .obs = worlds->env[0]->obs, .act = worlds->env[0]->act};
    /* One row for each environment in every array. */
    const size_t n = (size_t)batch.n, states = n * (size_t)batch.obs,
                 actions = n * (size_t)batch.act;
    batch.active = opc_alloc(n, sizeof *batch.active);
    batch.length = opc_alloc(n, sizeof *batch.length);
    batch.rng = opc_alloc(n, sizeof *batch.rng);
    batch.state = opc_alloc(states, sizeof *batch.state);
    batch.input = opc_alloc(states, sizeof *batch.input);
    batch.action = opc_alloc(actions, sizeof *batch.action);
    batch.task_action = opc_alloc(actions, sizeof *batch.task_action);
    batch.outcome = opc_alloc(n, sizeof *batch.outcome);
    if (!batch.active || !batch.length || !batch.rng || !batch.state || !batch.input ||
        !batch.action || !batch.task_action || !batch.outcome) {
        opc_env_batch_free(&batch);
        return opc_fail(err, OPC_ENOMEM, "not enough memory to play %d episodes at once",
                        worlds->n);
    }
    *out = batch;
    return OPC_OK;
}

/* Starts episodes first .. end - 1. Rows beyond them, as in the last batch, are never active. */
static int reset_batch(struct opc_env_batch *batch, int first, int end,
                       const struct opc_env_player *player, struct opc_err *err)
{
    batch->first = first;
    for (int i = 0; i < batch->n; i++) {
        batch->active[i] = i < end - first;
        batch->length[i] = 0;
        /* Outcomes write their observation straight into the row of the state. */
        batch->outcome[i] =
            (struct opc_outcome){.obs = batch->state + (size_t)i * (size_t)batch->obs};
        if (batch->active[i])
            batch->rng[i] = player->stream(player->ctx, first + i);
    }
    return opc_many_reset(batch->worlds, batch->active, batch->rng, batch->state, err);
}

/* Shows each active row to the player; a row whose episode ends with that rests from here on. */
static int observe_batch(struct opc_env_batch *batch, const struct opc_env_player *player,
                         struct opc_err *err)
{
    for (int i = 0; i < batch->n; i++) {
        bool more = true;
        if (!batch->active[i])
            continue;
        const int code = player->observe(player->ctx, batch, i, &more, err);
        if (code)
            return code;
        if (!more) {
            opc_many_rest(batch->worlds, i);
            batch->active[i] = false;
        }
    }
    return OPC_OK;
}

static int step_batch(struct opc_env_batch *batch, const struct opc_env_player *player,
                      struct opc_err *err)
{
    /* All rows, ended ones included: they cost little, and the others keep their places. */
    for (int k = 0; k < batch->n * batch->obs; k++)
        batch->input[k] = (float)batch->state[k];
    int code = player->act(player->ctx, batch, err);
    if (code)
        return code;
    /* From [-1, 1] to the units of the task. */
    for (int i = 0; i < batch->n; i++) {
        const size_t at = (size_t)i * (size_t)batch->act;
        opc_env_scale(batch->worlds->env[0], batch->action + at, batch->task_action + at);
    }
    /* This writes the new states as well, because the outcomes point at them. */
    code = opc_many_step(batch->worlds, batch->active, batch->task_action, batch->outcome, err);
    /* Only rows that have made a step are a step longer. */
    for (int i = 0; i < batch->n; i++)
        batch->length[i] += batch->active[i];
    return code;
}

/* Is there still an episode under way? */
static bool any_active(const struct opc_env_batch *batch)
{
    for (int i = 0; i < batch->n; i++)
        if (batch->active[i])
            return true;
    return false;
}

int opc_env_batch_play(struct opc_env_batch *batch, int first, int end,
                       const struct opc_env_player *player, struct opc_err *err)
{
    int code = reset_batch(batch, first, end, player, err);
    if (!code)
        code = observe_batch(batch, player, err);
    /* observe decides whether a row goes on, so it is asked before the first step as well. */
    while (!code && any_active(batch)) {
        code = step_batch(batch, player, err);
        if (!code)
            code = observe_batch(batch, player, err);
    }
    return code;
}
