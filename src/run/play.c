/* SPDX-License-Identifier: MIT */
#include "run/play.h"

#include "opc/mem.h"

#include <string.h>

int opc_play_create(const char *spec, uint64_t seed, int limit_if_none, struct opc_play **out,
                    struct opc_err *err)
{
    struct opc_play *p = opc_alloc(1, sizeof *p);
    if (!p)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the environment");
    int code = opc_env_open(spec, &p->env, err);
    if (code) {
        opc_play_destroy(p);
        return opc_within(err, "env.name");
    }
    const size_t obs = (size_t)p->env->obs, act = (size_t)p->env->act;
    p->seed = seed;
    p->limit = p->env->steps > 0 ? p->env->steps : limit_if_none;
    p->s = opc_alloc(obs, sizeof *p->s);
    p->state = opc_alloc(obs, sizeof *p->state);
    p->actions = opc_alloc((size_t)p->limit, act * sizeof *p->actions);
    p->scaled = opc_alloc(act, sizeof *p->scaled);
    if (!p->s || !p->state || !p->actions || !p->scaled) {
        opc_fail(err, OPC_ENOMEM, "not enough memory for an episode of %d steps", p->limit);
        opc_play_destroy(p);
        return OPC_ENOMEM;
    }
    *out = p;
    return OPC_OK;
}

void opc_play_destroy(struct opc_play *p)
{
    if (!p)
        return;
    opc_env_close(p->env);
    opc_free(p->s);
    opc_free(p->state);
    opc_free(p->actions);
    opc_free(p->scaled);
    opc_free(p);
}

bool opc_play_running(const struct opc_play *p)
{
    return opc_episodes_open(p->past);
}

void opc_play_count_anew(struct opc_play *p)
{
    p->ended = 0;
    p->returns = p->lengths = 0;
}

static void look(struct opc_play *p)
{
    for (int k = 0; k < p->env->obs; k++)
        p->s[k] = (float)p->state[k];
}

int opc_play_start(struct opc_play *p, struct opc_err *err)
{
    struct opc_rng rng = opc_rng_stream(p->seed, OPC_USE_RESET, 0, (uint32_t)p->number);
    int code = opc_env_reset(p->env, &rng, p->state, err);
    if (!code)
        code = opc_episodes_begin(p->past, p->state, err);
    if (code)
        return opc_within(err, "start of episode %lld", (long long)p->number + 1);
    p->number++;
    p->t = 0;
    p->total = 0;
    look(p);
    return OPC_OK;
}

void opc_play_cut(struct opc_play *p)
{
    if (!opc_play_running(p))
        return;
    opc_episodes_close(p->past);
    opc_env_rest(p->env);
    if (p->t == 0)
        return;
    p->ended++;
    p->returns += p->total;
    p->lengths += p->t;
    p->t = 0;
}

int opc_play_step(struct opc_play *p, const float *a, struct opc_err *err)
{
    const size_t act = (size_t)p->env->act;
    struct opc_outcome out = {.obs = p->state};
    memcpy(p->actions + (size_t)p->t * act, a, act * sizeof *a);
    opc_env_scale(p->env, a, p->scaled);
    int code = opc_env_step(p->env, p->scaled, &out, err);
    if (!code)
        code = opc_episodes_append(p->past, a, out.reward, out.obs, out.terminated, err);
    if (code)
        return opc_within(err, "step %d of episode %lld", p->t + 1, (long long)p->number);
    p->total += out.reward;
    p->t++;
    look(p);
    if (out.terminated || out.truncated || p->t == p->limit)
        opc_play_cut(p);
    return OPC_OK;
}

int opc_play_again(struct opc_play *p, int64_t number, int t, const float *actions,
                   const double *state, struct opc_err *err)
{
    p->number = number;
    int code = opc_play_start(p, err);
    for (int i = 0; i < t && !code; i++)
        code =
            opc_play_running(p)
                ? opc_play_step(p, actions + (size_t)i * (size_t)p->env->act, err)
                : opc_fail(err, OPC_EENV, "it ended after %d steps instead of more than %d", i, t);
    if (!code && memcmp(p->state, state, (size_t)p->env->obs * sizeof *state) != 0)
        code = opc_fail(err, OPC_EENV, "it leads to another state than before");
    return code ? opc_within(err,
                             "the environment does not repeat episode %lld (same program, same "
                             "machine?)",
                             (long long)number + 1)
                : OPC_OK;
}
