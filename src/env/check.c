/* SPDX-License-Identifier: MIT */
#include "env/check.h"

#include "base/clock.h"
#include "opc/mem.h"

#include <math.h>
#include <string.h>

enum {
    REPEATED = 100, /* steps played twice to compare bits */
    PAST = 10,      /* steps an episode goes on past its end, to see more terminal states */
    ULPS = 4,       /* float neighbours that still count as rounding */
};

struct check {
    struct opc_env *env;
    const struct opc_check_plan *plan;
    struct opc_env_report *report;
    double *obs, *obs_too;       /* [obs] */
    double *action;              /* [act] */
    float *s, *a, *next, *moved; /* [obs] [act] [obs] [obs] */
};

static int alloc_check(struct check *c, struct opc_err *err)
{
    const size_t obs = (size_t)c->env->obs, act = (size_t)c->env->act;
    c->obs = opc_alloc(obs, sizeof *c->obs);
    c->obs_too = opc_alloc(obs, sizeof *c->obs_too);
    c->action = opc_alloc(act, sizeof *c->action);
    c->s = opc_alloc(obs, sizeof *c->s);
    c->a = opc_alloc(act, sizeof *c->a);
    c->next = opc_alloc(obs, sizeof *c->next);
    c->moved = opc_alloc(obs, sizeof *c->moved);
    if (c->obs && c->obs_too && c->action && c->s && c->a && c->next && c->moved)
        return OPC_OK;
    return opc_fail(err, OPC_ENOMEM, "not enough memory to check %s", c->env->spec);
}

static void free_check(struct check *c)
{
    opc_free(c->obs);
    opc_free(c->obs_too);
    opc_free(c->action);
    opc_free(c->s);
    opc_free(c->a);
    opc_free(c->next);
    opc_free(c->moved);
}

static void draw_action(struct check *c, struct opc_rng *rng)
{
    for (int i = 0; i < c->env->act; i++)
        c->a[i] = 2 * opc_rng_unit(rng) - 1;
    opc_env_scale(c->env, c->a, c->action);
}

int opc_env_check_sizes(const struct opc_env *env, const char *spec, struct opc_err *err)
{
    if (env->obs < 1 || env->act < 1 || env->steps < 0 || !env->low || !env->high)
        return opc_fail(err, OPC_EENV,
                        "%s: open must set obs, act, low, high, and a steps that is "
                        "not negative",
                        spec);
    for (int i = 0; i < env->act; i++)
        if (!(isfinite(env->low[i]) && isfinite(env->high[i]) && env->low[i] < env->high[i]))
            return opc_fail(err, OPC_EENV, "%s: the range [%g, %g] of action %d will not do", spec,
                            env->low[i], env->high[i], i);
    for (int i = 0; i < env->n_angles; i++)
        if (!env->angles || env->angles[i].at < 0 || env->angles[i].at >= env->obs ||
            env->angles[i].sine < -1 || env->angles[i].sine >= env->obs)
            return opc_fail(err, OPC_EENV, "%s: angle %d is no part of the observation", spec, i);
    return OPC_OK;
}

/* Both ends of the action range are reached and can be played. */
static int check_range(struct check *c, struct opc_err *err)
{
    const struct opc_env *env = c->env;
    struct opc_outcome out = {.obs = c->obs};
    for (int end = -1; end <= 1; end += 2) {
        struct opc_rng rng = opc_rng_stream(c->plan->seed, OPC_USE_RESET, 0, 0);
        for (int i = 0; i < env->act; i++)
            c->a[i] = (float)end;
        opc_env_scale(env, c->a, c->action);
        for (int i = 0; i < env->act; i++)
            if (c->action[i] != (end < 0 ? env->low[i] : env->high[i]))
                return opc_fail(err, OPC_EENV, "%s: %d does not scale to the end of action %d",
                                env->spec, end, i);
        int code = opc_env_reset(c->env, &rng, c->obs, err);
        if (!code)
            code = opc_env_step(c->env, c->action, &out, err);
        if (code)
            return code;
    }
    return OPC_OK;
}

/* The same start and actions give the same bits, here again and in a fresh environment. */
static int check_repeats(struct check *c, struct opc_env *other, struct opc_err *err)
{
    const size_t bytes = (size_t)c->env->obs * sizeof *c->obs;
    struct opc_outcome one = {.obs = c->obs}, two = {.obs = c->obs_too};
    struct opc_rng r1 = opc_rng_stream(c->plan->seed, OPC_USE_RESET, 0, 1), r2 = r1;
    struct opc_rng actions = opc_rng_stream(c->plan->seed, OPC_USE_RANDOM, 0, 1);
    int code = opc_env_reset(c->env, &r1, c->obs, err);
    if (!code)
        code = opc_env_reset(other, &r2, c->obs_too, err);
    for (int t = 0; !code; t++) {
        if (memcmp(c->obs, c->obs_too, bytes) != 0 ||
            memcmp(&one.reward, &two.reward, sizeof one.reward) != 0 ||
            one.terminated != two.terminated)
            return opc_fail(err, OPC_EENV,
                            "%s: a used environment differs from a fresh one %d steps after the "
                            "same reset",
                            c->env->spec, t);
        if (t == REPEATED)
            break;
        draw_action(c, &actions);
        code = opc_env_step(c->env, c->action, &one, err);
        if (!code)
            code = opc_env_step(other, c->action, &two, err);
    }
    return code;
}

/* Truncated at the time limit, and only there. */
static int check_time(struct check *c, struct opc_err *err)
{
    struct opc_outcome out = {.obs = c->obs};
    struct opc_rng rng = opc_rng_stream(c->plan->seed, OPC_USE_RESET, 0, 2);
    struct opc_rng actions = opc_rng_stream(c->plan->seed, OPC_USE_RANDOM, 0, 2);
    int code = opc_env_reset(c->env, &rng, c->obs, err);
    for (int t = 1; !code && t <= c->env->steps; t++) {
        draw_action(c, &actions);
        code = opc_env_step(c->env, c->action, &out, err);
        if (!code && out.truncated != (t == c->env->steps))
            return opc_fail(err, OPC_EENV, "%s: step %d of %d says truncated = %d", c->env->spec, t,
                            c->env->steps, out.truncated);
        if (out.terminated && c->env->type->machine) /* which is not played past its end */
            return code;
    }
    return code;
}

static bool terminal(const struct check *c, const float *next)
{
    bool out;
    opc_env_terminal(c->env, 1, c->s, c->a, next, &out);
    return out;
}

/* Would terminal say `wanted` if one number of next had been rounded a little differently? */
static bool within_rounding(struct check *c, bool wanted)
{
    memcpy(c->moved, c->next, (size_t)c->env->obs * sizeof *c->next);
    for (int i = 0; i < c->env->obs; i++) {
        for (int way = -1; way <= 1; way += 2) {
            for (int k = 0; k < ULPS; k++) {
                c->moved[i] = nextafterf(c->moved[i], (float)way * INFINITY);
                if (terminal(c, c->moved) == wanted)
                    return true;
            }
            c->moved[i] = c->next[i];
        }
    }
    return false;
}

static int compare_terminal(struct check *c, const struct opc_outcome *out, struct opc_err *err)
{
    const struct opc_env_type *type = c->env->type;
    c->report->terminated += out->terminated;
    if (terminal(c, c->next) == out->terminated)
        return OPC_OK;
    if (type->distance && fabs(type->distance(c->env, c->next)) < type->blur)
        c->report->blurred++;
    else if (within_rounding(c, out->terminated))
        c->report->rounding++;
    else
        return opc_fail(err, OPC_EENV,
                        "%s: transition %d: step says terminated = %d, but terminal says %d",
                        c->env->spec, c->report->transitions, out->terminated, !out->terminated);
    return OPC_OK;
}

static int compare_reward(struct check *c, const struct opc_outcome *out, struct opc_err *err)
{
    float known;
    c->report->known_reward = opc_env_reward(c->env, 1, c->s, c->a, c->next, &known);
    if (!c->report->known_reward)
        return OPC_OK;
    const double gap = fabs((double)known - out->reward) / (1 + fabs(out->reward));
    if (gap > c->report->reward_gap)
        c->report->reward_gap = gap;
    if (gap > 1e-4)
        return opc_fail(err, OPC_EENV, "%s: transition %d: step pays %g, but reward says %g",
                        c->env->spec, c->report->transitions, out->reward, (double)known);
    return OPC_OK;
}

static void to_float(int n, const double *from, float *to)
{
    for (int i = 0; i < n; i++)
        to[i] = (float)from[i];
}

/* An episode, and a little beyond its end. */
static int play(struct check *c, struct opc_err *err)
{
    struct opc_env_report *r = c->report;
    const int max = c->plan->transitions;
    const uint32_t index = 3 + (uint32_t)r->episodes++;
    struct opc_rng rng = opc_rng_stream(c->plan->seed, OPC_USE_RESET, 0, index);
    struct opc_rng actions = opc_rng_stream(c->plan->seed, OPC_USE_RANDOM, 0, index);
    struct opc_outcome out = {.obs = c->obs};
    int code = opc_env_reset(c->env, &rng, c->obs, err), left = INT32_MAX;
    to_float(c->env->obs, c->obs, c->s);
    while (!code && r->transitions < max && left-- > 0 && !out.truncated) {
        draw_action(c, &actions);
        code = opc_env_step(c->env, c->action, &out, err);
        if (code)
            break;
        r->transitions++;
        to_float(c->env->obs, c->obs, c->next);
        code = compare_terminal(c, &out, err);
        if (!code)
            code = compare_reward(c, &out, err);
        memcpy(c->s, c->next, (size_t)c->env->obs * sizeof *c->s);
        if (out.terminated && left > PAST)
            left = c->env->type->machine ? 0 : PAST;
        if (c->plan->tell)
            c->plan->tell((double)r->transitions / max);
    }
    return code;
}

int opc_env_check_open(struct opc_env *env, const struct opc_check_plan *plan,
                       struct opc_env_report *report, struct opc_err *err)
{
    struct check c = {.env = env, .plan = plan, .report = report};
    struct opc_env *other = NULL;
    *report = (struct opc_env_report){.repeats = !env->type->machine};
    int code = opc_env_check_sizes(env, env->spec, err);
    if (!code)
        code = alloc_check(&c, err);
    if (!code)
        code = check_range(&c, err);
    if (!code)
        code = check_time(&c, err);
    const double start = opc_now();
    while (!code && report->transitions < plan->transitions)
        code = play(&c, err);
    report->steps_per_second = (double)report->transitions / (opc_now() - start);
    /* Last, because an environment that has just been opened has little to remember. */
    if (!code && !env->type->machine)
        code = opc_env_another(env, &other, err);
    if (!code && other)
        code = check_repeats(&c, other, err);
    opc_env_rest(env);
    opc_env_close(other);
    free_check(&c);
    return code;
}

int opc_env_check(const char *spec, const struct opc_check_plan *plan,
                  struct opc_env_report *report, struct opc_err *err)
{
    struct opc_env *env;
    int code = opc_env_open(spec, &env, err);
    if (code)
        return code;
    code = opc_env_check_open(env, plan, report, err);
    opc_env_close(env);
    return code;
}
