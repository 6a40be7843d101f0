/* SPDX-License-Identifier: MIT */
/* The checks of `opc env check`, and of every plugin that is opened (opc_env_check_sizes).
 * Tests run them on every environment we ship.
 *
 * Each check tests one promise of opc/env.h that training relies on. The first broken promise ends
 * the check with OPC_EENV and a message that names it; numbers in the report are counts up to then.
 */
#include "env/check.h"

#include "base/clock.h"
#include "env/types.h"
#include "opc/mem.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    REPEATED = 100, /* steps played twice to compare bits */
    PAST = 10,      /* steps played past the end of an episode, to see more terminal states */
    ULPS = 4,       /* float neighbours that still count as rounding */
    FENCE = 16,     /* numbers after an observation that nobody may write */
    ROWS = 32,      /* transitions that are asked about once more, together */
};
/* No environment observes exactly this; it is finite, so that it is ours to find it. */
static const double UNWRITTEN = -1.2345678901234567e77;

/* What all checks share: the environment under test and buffers for one transition. */
struct check {
    struct opc_env *env;
    const struct opc_check_plan *plan;
    struct opc_env_report *report;
    double *obs, *obs_too;       /* [obs + FENCE] of this environment, of a fresh one */
    double *action;              /* [act] */
    float *s, *a, *next, *moved; /* [obs] [act] [obs] [obs] */
    double until;                /* opc_now() at which it is cut short; 0: never */
    /* Transitions since they were last asked about together, and what was said about each. */
    struct {
        int n;
        float *s, *a, *next; /* [ROWS][obs] [ROWS][act] [ROWS][obs] */
        bool terminal[ROWS];
        float reward[ROWS];
    } rows;
};

static int alloc_check(struct check *check, struct opc_err *err)
{
    const size_t obs = (size_t)check->env->obs, act = (size_t)check->env->act;
    check->obs = opc_alloc(obs + FENCE, sizeof *check->obs);
    check->obs_too = opc_alloc(obs + FENCE, sizeof *check->obs_too);
    check->action = opc_alloc(act, sizeof *check->action);
    check->s = opc_alloc(obs, sizeof *check->s);
    check->a = opc_alloc(act, sizeof *check->a);
    check->next = opc_alloc(obs, sizeof *check->next);
    check->moved = opc_alloc(obs, sizeof *check->moved);
    check->rows.s = opc_alloc(ROWS * obs, sizeof *check->rows.s);
    check->rows.a = opc_alloc(ROWS * act, sizeof *check->rows.a);
    check->rows.next = opc_alloc(ROWS * obs, sizeof *check->rows.next);
    if (check->obs && check->obs_too && check->action && check->s && check->a && check->next &&
        check->moved && check->rows.s && check->rows.a && check->rows.next)
        return OPC_OK;
    return opc_fail(err, OPC_ENOMEM, "not enough memory to check %s", check->env->spec);
}

static void free_check(struct check *check)
{
    opc_free(check->obs);
    opc_free(check->obs_too);
    opc_free(check->action);
    opc_free(check->s);
    opc_free(check->a);
    opc_free(check->next);
    opc_free(check->moved);
    opc_free(check->rows.s);
    opc_free(check->rows.a);
    opc_free(check->rows.next);
}

static bool out_of_time(const struct check *check)
{
    return check->until > 0 && opc_now() >= check->until;
}

/* ---- playing, with an eye on what is written ------------------------------------------------- */

/* An observation that is about to be written, and the fence after it. */
static void mark_unwritten(const struct opc_env *env, double *obs)
{
    for (int i = 0; i < env->obs + FENCE; i++)
        obs[i] = UNWRITTEN;
}

/* Was every number written, none after the last, and none that a float cannot hold? */
static int check_written(const struct opc_env *env, const char *doing, const double *obs,
                         struct opc_err *err)
{
    for (int i = 0; i < env->obs + FENCE; i++) {
        const bool written = obs[i] != UNWRITTEN;
        if (written && i >= env->obs)
            return opc_fail(err, OPC_EENV,
                            "%s: %s writes entry %d of the observation, which has %d (obs = %d)",
                            env->spec, doing, i, env->obs, env->obs);
        if (!written && i < env->obs)
            return opc_fail(err, OPC_EENV,
                            "%s: %s does not write entry %d of the observation (obs = %d)",
                            env->spec, doing, i, env->obs);
        if (i < env->obs && fabs(obs[i]) > (double)FLT_MAX)
            return opc_fail(err, OPC_EENV,
                            "%s: %s: entry %d of the observation is %g; states are kept as floats, "
                            "of which the largest is %g",
                            env->spec, doing, i, obs[i], (double)FLT_MAX);
    }
    return OPC_OK;
}

static int play_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    mark_unwritten(env, obs);
    OPC_TRY(opc_env_reset(env, rng, obs, err));
    return check_written(env, "reset", obs, err);
}

static int play_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                     struct opc_err *err)
{
    mark_unwritten(env, out->obs);
    OPC_TRY(opc_env_step(env, action, out, err));
    return check_written(env, "step", out->obs, err);
}

/* Uniform in [-1, 1] into check->a, and the same in the task's units into check->action. */
static void draw_action(struct check *check, struct opc_rng *rng)
{
    for (int i = 0; i < check->env->act; i++)
        check->a[i] = 2 * opc_rng_unit(rng) - 1;
    opc_env_scale(check->env, check->a, check->action);
}

/* The declarations that open has made, before anything is allocated or indexed by them. */
int opc_env_check_sizes(const struct opc_env *env, const char *spec, struct opc_err *err)
{
    if (env->obs < 1 || env->act < 1 || env->steps < 0 || !env->low || !env->high)
        return opc_fail(err, OPC_EENV,
                        "%s: open must set obs, act, low, high, and a steps that is "
                        "not negative",
                        spec);
    /* Scaling needs a finite range with its ends in order. */
    for (int i = 0; i < env->act; i++)
        if (!(isfinite(env->low[i]) && isfinite(env->high[i]) && env->low[i] < env->high[i]))
            return opc_fail(err, OPC_EENV, "%s: the range [%g, %g] of action %d will not do", spec,
                            env->low[i], env->high[i], i);
    /* An angle is one entry (sine = -1) or a pair, both inside the observation. */
    for (int i = 0; i < env->n_angles; i++)
        if (!env->angles || env->angles[i].at < 0 || env->angles[i].at >= env->obs ||
            env->angles[i].sine < -1 || env->angles[i].sine >= env->obs)
            return opc_fail(err, OPC_EENV, "%s: angle %d is not part of the observation", spec, i);
    return OPC_OK;
}

/* -1 and 1 scale to exactly the ends of the action range, and a step with either works. */
static int check_range(struct check *check, struct opc_err *err)
{
    const struct opc_env *env = check->env;
    struct opc_outcome out = {.obs = check->obs};
    /* Every entry of the action at its low end, then every entry at its high end. */
    for (int end = -1; end <= 1; end += 2) {
        struct opc_rng rng = opc_rng_stream(check->plan->seed, OPC_USE_RESET, 0, 0);
        for (int i = 0; i < env->act; i++)
            check->a[i] = (float)end;
        opc_env_scale(env, check->a, check->action);
        for (int i = 0; i < env->act; i++)
            if (check->action[i] != (end < 0 ? env->low[i] : env->high[i]))
                return opc_fail(err, OPC_EENV, "%s: %d does not scale to the end of action %d",
                                env->spec, end, i);
        int code = play_reset(check->env, &rng, check->obs, err);
        if (!code)
            code = play_step(check->env, check->action, &out, err);
        if (code)
            return code;
    }
    return OPC_OK;
}

/* The same start and actions give the same bits in this used environment and in a fresh one. */
static int check_repeats(struct check *check, struct opc_env *other, struct opc_err *err)
{
    const size_t bytes = (size_t)check->env->obs * sizeof *check->obs;
    struct opc_outcome one = {.obs = check->obs}, two = {.obs = check->obs_too};
    struct opc_rng r1 = opc_rng_stream(check->plan->seed, OPC_USE_RESET, 0, 1), r2 = r1;
    struct opc_rng actions = opc_rng_stream(check->plan->seed, OPC_USE_RANDOM, 0, 1);
    int code = play_reset(check->env, &r1, check->obs, err);
    if (!code)
        code = play_reset(other, &r2, check->obs_too, err);
    for (int t = 0; !code; t++) {
        /* Bits and not values: -0 and 0, or two NaNs, would otherwise pass for equal. */
        if (memcmp(check->obs, check->obs_too, bytes) != 0 ||
            memcmp(&one.reward, &two.reward, sizeof one.reward) != 0 ||
            one.terminated != two.terminated)
            return opc_fail(err, OPC_EENV,
                            "%s: a used environment differs from a fresh one %d steps after the "
                            "same reset",
                            check->env->spec, t);
        if (t == REPEATED || t == check->plan->transitions || out_of_time(check))
            break;
        /* Both get the same action. */
        draw_action(check, &actions);
        code = play_step(check->env, check->action, &one, err);
        if (!code)
            code = play_step(other, check->action, &two, err);
    }
    return code;
}

/* Truncated at the time limit, and only there. */
static int check_time(struct check *check, struct opc_err *err)
{
    struct opc_outcome out = {.obs = check->obs};
    struct opc_rng rng = opc_rng_stream(check->plan->seed, OPC_USE_RESET, 0, 2);
    struct opc_rng actions = opc_rng_stream(check->plan->seed, OPC_USE_RANDOM, 0, 2);
    int code = play_reset(check->env, &rng, check->obs, err);
    const int max = check->plan->brief && check->plan->transitions < check->env->steps
                        ? check->plan->transitions
                        : check->env->steps;
    opc_ticks_begin(&check->report->ticks);
    for (int t = 1; !code && t <= max && !out_of_time(check); t++) {
        draw_action(check, &actions);
        code = play_step(check->env, check->action, &out, err);
        if (!code)
            opc_ticks_note(&check->report->ticks, check->env);
        /* A child may have reasons of its own to cut an episode. */
        if (!code && out.truncated && t < check->env->steps && opc_env_is_process(check->env->spec))
            return OPC_OK;
        if (!code && out.truncated != (t == check->env->steps))
            return opc_fail(err, OPC_EENV, "%s: step %d of %d says truncated = %d",
                            check->env->spec, t, check->env->steps, out.truncated);
        /* Simulations are stepped on past a termination; hardware is not. */
        if (out.terminated && check->env->type->machine) /* which is not played past its end */
            return code;
    }
    return code;
}

/* The rule for imagined states, asked about one transition from (check->s, check->a). */
static bool imagined_terminal(const struct check *check, const float *next)
{
    bool out;
    opc_env_terminal(check->env, 1, check->s, check->a, next, &out);
    return out;
}

/* Would terminal say `wanted` if one number of next had been rounded a little differently? */
static bool within_rounding(struct check *check, bool wanted)
{
    /* A copy of next, in which one number at a time is moved. */
    memcpy(check->moved, check->next, (size_t)check->env->obs * sizeof *check->next);
    /* Each number alone is moved by up to ULPS float neighbours, down and up. */
    for (int i = 0; i < check->env->obs; i++) {
        for (int way = -1; way <= 1; way += 2) {
            for (int k = 0; k < ULPS; k++) {
                check->moved[i] = nextafterf(check->moved[i], (float)way * INFINITY);
                if (imagined_terminal(check, check->moved) == wanted)
                    return true;
            }
            check->moved[i] = check->next[i];
        }
    }
    return false;
}

/* The imagined rule sees `next` rounded to float, step sees doubles. They may disagree within that
 * rounding, and within type->blur of the boundary; anywhere else the rule is wrong. */
static int compare_terminal(struct check *check, const struct opc_outcome *out, struct opc_err *err)
{
    const struct opc_env_type *type = check->env->type;
    check->report->terminated += out->terminated;
    check->rows.terminal[check->rows.n] = false;
    /* A program may end a task by a rule that it cannot tell; imagined states then never end. */
    if (!type->terminal && out->terminated && opc_env_is_process(check->env->spec)) {
        check->report->unforeseen++;
        return OPC_OK;
    }
    const bool imagined = imagined_terminal(check, check->next);
    OPC_TRY(opc_env_failure(check->env, err));
    check->rows.terminal[check->rows.n] = imagined;
    if (imagined == out->terminated)
        return OPC_OK;
    if (type->distance && fabs(type->distance(check->env, check->next)) < type->blur)
        check->report->blurred++;
    else if (within_rounding(check, out->terminated))
        check->report->rounding++;
    else
        return opc_fail(
            err, OPC_EENV, "%s: transition %d: step says terminated = %d, but terminal says %d",
            check->env->spec, check->report->transitions, out->terminated, !out->terminated);
    return OPC_OK;
}

static int compare_reward(struct check *check, const struct opc_outcome *out, struct opc_err *err)
{
    float known;
    check->report->known_reward =
        opc_env_reward(check->env, 1, check->s, check->a, check->next, &known);
    OPC_TRY(opc_env_failure(check->env, err));
    if (!check->report->known_reward)
        return OPC_OK;
    check->rows.reward[check->rows.n] = known;
    /* Relative where rewards are large; 1e-4 is far above the rounding of float inputs. */
    const double gap = fabs((double)known - out->reward) / (1 + fabs(out->reward));
    if (gap > check->report->reward_gap)
        check->report->reward_gap = gap;
    if (gap > 1e-4)
        return opc_fail(err, OPC_EENV, "%s: transition %d: step pays %g, but reward says %g",
                        check->env->spec, check->report->transitions, out->reward, (double)known);
    return OPC_OK;
}

/* Rollouts ask about many rows at once: what is said about each must be what was said about it
 * alone. */
static int compare_rows(struct check *check, struct opc_err *err)
{
    struct opc_env *env = check->env;
    const int n = check->rows.n;
    bool terminal[ROWS];
    float reward[ROWS];
    check->rows.n = 0;
    if (n == 0)
        return OPC_OK;
    opc_env_terminal(env, n, check->rows.s, check->rows.a, check->rows.next, terminal);
    const bool known =
        opc_env_reward(env, n, check->rows.s, check->rows.a, check->rows.next, reward);
    OPC_TRY(opc_env_failure(env, err));
    for (int i = 0; i < n; i++) {
        if (terminal[i] != check->rows.terminal[i])
            return opc_fail(err, OPC_EENV,
                            "%s: terminal says %d of a transition alone, but %d where it is row %d "
                            "of %d",
                            env->spec, !terminal[i], terminal[i], i, n);
        /* As far apart as a sum in another order. */
        const double alone = (double)check->rows.reward[i];
        if (known && !(fabs((double)reward[i] - alone) <= 1e-4 * (1 + fabs(alone))))
            return opc_fail(err, OPC_EENV,
                            "%s: reward says %g of a transition alone, but %g where it is row %d "
                            "of %d",
                            env->spec, alone, (double)reward[i], i, n);
    }
    return OPC_OK;
}

/* Keeps the transition for compare_rows, with what is said about it alone. */
static int note_row(struct check *check, struct opc_err *err)
{
    const size_t obs = (size_t)check->env->obs, act = (size_t)check->env->act;
    const size_t i = (size_t)check->rows.n++;
    memcpy(check->rows.s + i * obs, check->s, obs * sizeof *check->s);
    memcpy(check->rows.a + i * act, check->a, act * sizeof *check->a);
    memcpy(check->rows.next + i * obs, check->next, obs * sizeof *check->next);
    return check->rows.n == ROWS ? compare_rows(check, err) : OPC_OK;
}

/* What a model or policy gets to see: real observations are rounded to float. */
static void to_float(int n, const double *from, float *to)
{
    for (int i = 0; i < n; i++)
        to[i] = (float)from[i];
}

/* Plays an episode, and PAST steps beyond its end, and compares each transition. */
static int check_episode(struct check *check, struct opc_err *err)
{
    struct opc_env_report *r = check->report;
    const int max = check->plan->transitions;
    /* Streams 0 to 2 belong to the other checks. */
    const uint32_t index = 3 + (uint32_t)r->episodes++;
    struct opc_rng rng = opc_rng_stream(check->plan->seed, OPC_USE_RESET, 0, index);
    struct opc_rng actions = opc_rng_stream(check->plan->seed, OPC_USE_RANDOM, 0, index);
    struct opc_outcome out = {.obs = check->obs};
    int code = play_reset(check->env, &rng, check->obs, err), left = INT32_MAX;
    to_float(check->env->obs, check->obs, check->s);
    opc_ticks_begin(&r->ticks);
    while (!code && r->transitions < max && left-- > 0 && !out.truncated && !out_of_time(check)) {
        draw_action(check, &actions);
        code = play_step(check->env, check->action, &out, err);
        if (code)
            break;
        opc_ticks_note(&r->ticks, check->env);
        r->transitions++;
        to_float(check->env->obs, check->obs, check->next);
        code = compare_terminal(check, &out, err);
        if (!code)
            code = compare_reward(check, &out, err);
        if (!code)
            code = note_row(check, err);
        /* The next transition starts where this one ended. */
        memcpy(check->s, check->next, (size_t)check->env->obs * sizeof *check->s);
        /* From the first termination on, `left` counts the remaining steps down. */
        if (out.terminated && left > PAST)
            left = check->env->type->machine ? 0 : PAST;
        if (check->plan->tell)
            check->plan->tell((double)r->transitions / max);
    }
    return code;
}

int opc_env_check_repeats(struct opc_env *env, struct opc_env *other,
                          const struct opc_check_plan *plan, struct opc_err *err)
{
    struct opc_env_report report = {0};
    struct check check = {.env = env,
                          .plan = plan,
                          .report = &report,
                          .until = plan->seconds > 0 ? opc_now() + plan->seconds : 0};
    int code = alloc_check(&check, err);
    if (!code)
        code = check_repeats(&check, other, err);
    opc_env_rest(env);
    opc_env_rest(other);
    free_check(&check);
    return code;
}

int opc_env_check_open(struct opc_env *env, const struct opc_check_plan *plan,
                       struct opc_env_report *report, struct opc_err *err)
{
    struct check check = {.env = env, .plan = plan, .report = report};
    struct opc_env *other = NULL;
    *report = (struct opc_env_report){.repeats = !plan->brief && opc_env_repeats(env)};
    check.until = plan->seconds > 0 ? opc_now() + plan->seconds : 0;
    int code = opc_env_check_sizes(env, env->spec, err);
    if (!code)
        code = alloc_check(&check, err);
    if (!code)
        code = check_range(&check, err);
    if (!code)
        code = check_time(&check, err);
    /* Random episodes until enough transitions have been compared. */
    const double start = opc_now();
    while (!code && report->transitions < plan->transitions && !out_of_time(&check))
        code = check_episode(&check, err);
    report->steps_per_second = (double)report->transitions / (opc_now() - start);
    if (!code)
        code = compare_rows(&check, err);
    /* Last, because an environment that has just been opened has no history that could matter. */
    if (!code && report->repeats)
        code = opc_env_another(env, &other, err);
    if (!code && other)
        code = check_repeats(&check, other, err);
    opc_env_rest(env);
    opc_env_close(other);
    free_check(&check);
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
