/* SPDX-License-Identifier: MIT */
/* Only reset_or_step works on several threads, each on environments of its own; players are called
 * on the thread that called opc_env_batch_play. */
#include "env/many.h"

#include "opc/mem.h"

struct opc_many {
    int n;
    bool borrowed; /* the environment */
    struct opc_pool *pool;
    struct opc_env **env; /* [n] */
    int *code;            /* [n] of the last call */
    struct opc_err *err;  /* [n] */
};

void opc_many_close(struct opc_many *m)
{
    if (!m)
        return;
    for (int i = 0; m->env && i < m->n && !m->borrowed; i++)
        opc_env_close(m->env[i]);
    opc_free(m->env);
    opc_free(m->code);
    opc_free(m->err);
    opc_free(m);
}

static int make_many(int n, struct opc_pool *pool, struct opc_many **out, struct opc_err *err)
{
    struct opc_many *m = opc_alloc(1, sizeof *m);
    if (m) {
        *m = (struct opc_many){.n = n, .pool = pool};
        m->env = opc_alloc((size_t)n, sizeof *m->env);
        m->code = opc_alloc((size_t)n, sizeof *m->code);
        m->err = opc_alloc((size_t)n, sizeof *m->err);
    }
    if (!m || !m->env || !m->code || !m->err) {
        opc_many_close(m);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d environments", n);
    }
    *out = m;
    return OPC_OK;
}

int opc_many_open(const char *spec, int n, struct opc_pool *pool, struct opc_many **out,
                  struct opc_err *err)
{
    struct opc_many *m = NULL;
    if (n < 1)
        return opc_fail(err, OPC_EUSER, "%d environments are asked for; at least 1", n);
    int code = make_many(n, pool, &m, err);
    if (!code)
        code = opc_env_open(spec, &m->env[0], err);
    if (!code && m->env[0]->type->machine)
        m->n = 1;
    for (int i = 1; !code && i < m->n; i++)
        code = opc_env_another(m->env[0], &m->env[i], err);
    if (code) {
        opc_many_close(m);
        return code;
    }
    *out = m;
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

void opc_many_rest(struct opc_many *m, int i)
{
    opc_env_rest(m->env[i]);
}

int opc_many_count(const struct opc_many *m)
{
    return m->n;
}

const struct opc_env *opc_many_env(const struct opc_many *m, int i)
{
    return m->env[i];
}

struct work {
    struct opc_many *many;
    const bool *active;
    struct opc_rng *rng;  /* a reset, or NULL: a step */
    double *obs;          /* of a reset */
    const double *action; /* of a step, as the next */
    struct opc_outcome *out;
};

static void reset_or_step(const struct work *w, int i)
{
    struct opc_many *m = w->many;
    struct opc_env *env = m->env[i];
    const size_t row = (size_t)i;
    m->code[i] =
        w->rng ? opc_env_reset(env, &w->rng[i], w->obs + row * (size_t)env->obs, &m->err[i])
               : opc_env_step(env, w->action + row * (size_t)env->act, &w->out[i], &m->err[i]);
}

static void reset_or_step_range(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct work *w = ctx;
    for (int i = first; i < end; i++) {
        w->many->code[i] = OPC_OK;
        if (!w->active || w->active[i])
            reset_or_step(w, i);
    }
}

static int reset_or_step_all(struct work *w, struct opc_err *err)
{
    struct opc_many *m = w->many;
    opc_pool_each(m->pool, m->n, 1, reset_or_step_range, w);
    for (int i = 0; i < m->n; i++)
        if (m->code[i])
            return opc_fail(err, m->err[i].code, "environment %d: %s", i, m->err[i].text);
    return OPC_OK;
}

int opc_many_reset(struct opc_many *m, const bool *active, struct opc_rng *rng, double *obs,
                   struct opc_err *err)
{
    return reset_or_step_all(&(struct work){.many = m, .active = active, .rng = rng, .obs = obs},
                             err);
}

int opc_many_step(struct opc_many *m, const bool *active, const double *action,
                  struct opc_outcome *out, struct opc_err *err)
{
    return reset_or_step_all(
        &(struct work){.many = m, .active = active, .action = action, .out = out}, err);
}

/* ---- a batch of episodes --------------------------------------------------------------------- */

void opc_env_batch_free(struct opc_env_batch *b)
{
    opc_free(b->active);
    opc_free(b->length);
    opc_free(b->rng);
    opc_free(b->state);
    opc_free(b->input);
    opc_free(b->action);
    opc_free(b->task_action);
    opc_free(b->outcome);
    *b = (struct opc_env_batch){0};
}

int opc_env_batch_create(struct opc_many *worlds, struct opc_env_batch *out, struct opc_err *err)
{
    struct opc_env_batch b = {
        .worlds = worlds, .n = worlds->n, .obs = worlds->env[0]->obs, .act = worlds->env[0]->act};
    const size_t n = (size_t)b.n, states = n * (size_t)b.obs, actions = n * (size_t)b.act;
    b.active = opc_alloc(n, sizeof *b.active);
    b.length = opc_alloc(n, sizeof *b.length);
    b.rng = opc_alloc(n, sizeof *b.rng);
    b.state = opc_alloc(states, sizeof *b.state);
    b.input = opc_alloc(states, sizeof *b.input);
    b.action = opc_alloc(actions, sizeof *b.action);
    b.task_action = opc_alloc(actions, sizeof *b.task_action);
    b.outcome = opc_alloc(n, sizeof *b.outcome);
    if (!b.active || !b.length || !b.rng || !b.state || !b.input || !b.action || !b.task_action ||
        !b.outcome) {
        opc_env_batch_free(&b);
        return opc_fail(err, OPC_ENOMEM, "not enough memory to play %d episodes at once",
                        worlds->n);
    }
    *out = b;
    return OPC_OK;
}

/* Rows without an episode, as in the last batch of many, are not active from the start. */
static int reset_batch(struct opc_env_batch *b, int first, int end,
                       const struct opc_env_player *player, struct opc_err *err)
{
    b->first = first;
    for (int i = 0; i < b->n; i++) {
        b->active[i] = i < end - first;
        b->length[i] = 0;
        b->outcome[i] = (struct opc_outcome){.obs = b->state + (size_t)i * (size_t)b->obs};
        if (b->active[i])
            b->rng[i] = player->stream(player->ctx, first + i);
    }
    return opc_many_reset(b->worlds, b->active, b->rng, b->state, err);
}

/* Shows each active row to the player, and lets those rest whose episode ends with that. */
static int observe_batch(struct opc_env_batch *b, const struct opc_env_player *player,
                         struct opc_err *err)
{
    for (int i = 0; i < b->n; i++) {
        bool more = true;
        if (!b->active[i])
            continue;
        const int code = player->observe(player->ctx, b, i, &more, err);
        if (code)
            return code;
        if (!more) {
            opc_many_rest(b->worlds, i);
            b->active[i] = false;
        }
    }
    return OPC_OK;
}

static int step_batch(struct opc_env_batch *b, const struct opc_env_player *player,
                      struct opc_err *err)
{
    /* All rows, also those that have ended: they cost little and keep the others in place. */
    for (int k = 0; k < b->n * b->obs; k++)
        b->input[k] = (float)b->state[k];
    int code = player->act(player->ctx, b, err);
    if (code)
        return code;
    for (int i = 0; i < b->n; i++) {
        const size_t at = (size_t)i * (size_t)b->act;
        opc_env_scale(b->worlds->env[0], b->action + at, b->task_action + at);
    }
    /* Writes the new states, too: the outcomes point at them. */
    code = opc_many_step(b->worlds, b->active, b->task_action, b->outcome, err);
    for (int i = 0; i < b->n; i++)
        b->length[i] += b->active[i];
    return code;
}

static bool any_active(const struct opc_env_batch *b)
{
    for (int i = 0; i < b->n; i++)
        if (b->active[i])
            return true;
    return false;
}

int opc_env_batch_play(struct opc_env_batch *b, int first, int end,
                       const struct opc_env_player *player, struct opc_err *err)
{
    int code = reset_batch(b, first, end, player, err);
    if (!code)
        code = observe_batch(b, player, err);
    while (!code && any_active(b)) {
        code = step_batch(b, player, err);
        if (!code)
            code = observe_batch(b, player, err);
    }
    return code;
}
