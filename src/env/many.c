/* SPDX-License-Identifier: MIT */
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

static int make(int n, struct opc_pool *pool, struct opc_many **out, struct opc_err *err)
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
        return opc_fail(err, OPC_ENOMEM, "no room for %d environments", n);
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
    int code = make(n, pool, &m, err);
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
    const int code = make(1, NULL, out, err);
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

static void do_one(const struct work *w, int i)
{
    struct opc_many *m = w->many;
    struct opc_env *env = m->env[i];
    const size_t row = (size_t)i;
    m->code[i] =
        w->rng ? opc_env_reset(env, &w->rng[i], w->obs + row * (size_t)env->obs, &m->err[i])
               : opc_env_step(env, w->action + row * (size_t)env->act, &w->out[i], &m->err[i]);
}

static void do_some(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct work *w = ctx;
    for (int i = first; i < end; i++) {
        w->many->code[i] = OPC_OK;
        if (!w->active || w->active[i])
            do_one(w, i);
    }
}

static int do_all(struct work *w, struct opc_err *err)
{
    struct opc_many *m = w->many;
    opc_pool_each(m->pool, m->n, 1, do_some, w);
    for (int i = 0; i < m->n; i++)
        if (m->code[i])
            return opc_fail(err, m->err[i].code, "environment %d: %s", i, m->err[i].text);
    return OPC_OK;
}

int opc_many_reset(struct opc_many *m, const bool *active, struct opc_rng *rng, double *obs,
                   struct opc_err *err)
{
    return do_all(&(struct work){.many = m, .active = active, .rng = rng, .obs = obs}, err);
}

int opc_many_step(struct opc_many *m, const bool *active, const double *action,
                  struct opc_outcome *out, struct opc_err *err)
{
    return do_all(&(struct work){.many = m, .active = active, .action = action, .out = out}, err);
}
