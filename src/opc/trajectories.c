/* SPDX-License-Identifier: MIT */
/* The public face of rollouts (opc/rollout.h): checks a plan once and then follows it by
 * opc/branches.c, which keeps rollouts whole, or by opc/rollout.c, which is Algorithm 2. Called by
 * programs only; training uses those two directly. */
#include "opc/rollout.h"

#include "base/sized.h"
#include "data/imagined.h"
#include "opc/algorithm2.h"
#include "opc/branches.h"

#include <string.h>

struct opc_trajectories {
    struct opc_branches b;
};

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_transition(const struct opc_transition *tr, struct opc_err *err)
{
    int first;
    if (!tr)
        return opc_fail(err, OPC_EUSER, "the plan of rollouts has no transition model");
    const int steps = opc_transition_window(tr, &first);
    if (steps == 0)
        return opc_fail(err, OPC_EUSER,
                        "rollouts start in recorded steps, and nothing is recorded");
    if (tr->f_ref && (tr->filled != steps || tr->first != first))
        return opc_fail(err, OPC_EBUG,
                        "the past or its window has changed since the transition model was "
                        "prepared; call opc_transition_refresh");
    return OPC_OK;
}

static int check_starts(const struct opc_imagine_plan *plan, struct opc_err *err)
{
    const struct opc_transition *tr = plan->transition;
    const int episodes = opc_episodes_count(tr->past);
    if (!plan->episode != !plan->time)
        return opc_fail(err, OPC_EUSER, "starts need both, episode and time, or neither");
    for (int i = 0; plan->episode && i < plan->n; i++) {
        const int b = plan->episode[i], t = plan->time[i];
        if (b < tr->first_episode || b >= episodes)
            return opc_fail(err, OPC_EUSER,
                            "rollout %d starts in episode %d, but episodes %d to %d are there", i,
                            b, tr->first_episode, episodes - 1);
        if (t < 0 || t >= opc_episodes_length(tr->past, b))
            return opc_fail(err, OPC_EUSER,
                            "rollout %d starts in step %d of episode %d, which has %d steps", i, t,
                            b, opc_episodes_length(tr->past, b));
    }
    return OPC_OK;
}

static int read_plan(const struct opc_imagine_plan *given, struct opc_imagine_plan *plan,
                     struct opc_err *err)
{
    OPC_TRY(opc_sized_read(given, "opc_imagine_plan", plan, sizeof *plan, err));
    if (plan->n < 1 || plan->horizon < 1)
        return opc_fail(err, OPC_EUSER, "a plan of n = %d and horizon = %d has no rollouts",
                        plan->n, plan->horizon);
    OPC_TRY(check_transition(plan->transition, err));
    return check_starts(plan, err);
}

/* ---- who acts -------------------------------------------------------------------------------- */

/* What the functions below look at. */
struct scripted {
    const struct opc_imagine_plan *plan;
    const struct opc_branches *b;
};

/* Row i is rollout rows->start[i] in its step rows->h. */
static void act_as_given(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    (void)state, (void)rng;
    const struct scripted *script = ctx;
    const struct opc_rows *rows = script->b->rows;
    const size_t act = (size_t)rows->act, horizon = (size_t)script->plan->horizon;
    for (int i = 0; i < n; i++) {
        const size_t step = (size_t)rows->start[i] * horizon + (size_t)rows->h;
        memcpy(action + (size_t)i * act, script->plan->actions + step * act, act * sizeof *action);
    }
}

static void act_as_recorded(void *ctx, int n, const float *state, struct opc_rng *rng,
                            float *action)
{
    (void)state, (void)rng;
    const struct scripted *script = ctx;
    const struct opc_rows *rows = script->b->rows;
    const size_t act = (size_t)rows->act;
    for (int i = 0; i < n; i++) {
        const struct opc_step ref =
            opc_episodes_at(script->plan->transition->past, rows->episode[i], rows->time[i]);
        memcpy(action + (size_t)i * act, ref.action, act * sizeof *action);
    }
}

/* ---- rollouts that are kept apart ------------------------------------------------------------ */

static void set_starts(const struct opc_imagine_plan *plan, struct opc_branches *b)
{
    int first;
    const uint32_t steps = (uint32_t)opc_transition_window(plan->transition, &first);
    for (int i = 0; i < plan->n; i++) {
        const uint32_t number = plan->index + (uint32_t)i;
        b->rng[i] = opc_rng_stream(plan->seed, OPC_USE_ROLLOUT, plan->epoch, number);
        b->noise[i] = opc_rng_stream(plan->seed, OPC_USE_NOISE, plan->epoch, number);
        if (plan->episode) {
            b->episode[i] = plan->episode[i];
            b->time[i] = plan->time[i];
        } else { /* as Algorithm 2 draws them */
            struct opc_rng rng = opc_rng_stream(plan->seed, OPC_USE_START, plan->epoch, number);
            const int step = first + (int)opc_rng_below(&rng, steps);
            opc_episodes_find(plan->transition->past, step, &b->episode[i], &b->time[i]);
        }
    }
}

static int follow_plan(const struct opc_imagine_plan *plan, struct opc_branches *b,
                       struct opc_err *err)
{
    const bool recorded = !plan->act && !plan->actions;
    struct scripted script = {plan, b};
    const struct opc_walk_plan walk = {
        .transition = plan->transition,
        .act = plan->actions ? act_as_given
               : recorded    ? act_as_recorded
                             : plan->act,
        .act_ctx = plan->actions || recorded ? (void *)&script : plan->act_ctx,
        .terminal = plan->terminal,
        .terminal_ctx = plan->terminal_ctx,
        .refuse_not_finite = true,
        .end_with_reference = recorded || plan->end_with_reference,
        .elite_per_rollout = plan->elite_per_rollout,
        .horizon = plan->horizon,
        .pool = plan->pool,
    };
    set_starts(plan, b);
    return opc_branches_follow(b, &walk, err);
}

int opc_imagine(const struct opc_imagine_plan *given, struct opc_trajectories **out,
                struct opc_err *err)
{
    struct opc_imagine_plan plan;
    OPC_TRY(read_plan(given, &plan, err));
    if (plan.act && plan.actions)
        return opc_fail(err, OPC_EUSER, "a plan has a policy or given actions, not both");
    struct opc_trajectories *t = opc_alloc(1, sizeof *t);
    if (!t)
        return opc_fail(err, OPC_ENOMEM, "out of memory for %d rollouts", plan.n);
    const struct opc_transition *tr = plan.transition;
    int code = opc_branches_make(plan.n, plan.horizon, tr->obs, tr->act, &t->b, err);
    if (!code)
        code = follow_plan(&plan, &t->b, err);
    if (code)
        opc_trajectories_destroy(t);
    else
        *out = t;
    return code;
}

void opc_trajectories_destroy(struct opc_trajectories *t)
{
    if (!t)
        return;
    opc_branches_free(&t->b);
    opc_free(t);
}

int opc_trajectories_count(const struct opc_trajectories *t)
{
    return t->b.n;
}

int opc_trajectories_length(const struct opc_trajectories *t, int i)
{
    return t->b.length[i];
}

enum opc_end opc_trajectories_end(const struct opc_trajectories *t, int i)
{
    return t->b.end[i];
}

void opc_trajectories_start(const struct opc_trajectories *t, int i, int *episode, int *time)
{
    *episode = t->b.episode[i];
    *time = t->b.time[i];
}

const float *opc_trajectories_states(const struct opc_trajectories *t, int i)
{
    return t->b.state + (size_t)i * ((size_t)t->b.horizon + 1) * (size_t)t->b.obs;
}

const float *opc_trajectories_actions(const struct opc_trajectories *t, int i)
{
    return t->b.action + (size_t)i * (size_t)t->b.horizon * (size_t)t->b.act;
}

const float *opc_trajectories_rewards(const struct opc_trajectories *t, int i)
{
    return t->b.reward + (size_t)i * (size_t)t->b.horizon;
}

/* ---- Algorithm 2 ----------------------------------------------------------------------------- */

int opc_imagine_into(const struct opc_imagine_plan *given, struct opc_imagined *into,
                     struct opc_imagine_report *report, struct opc_err *err)
{
    struct opc_imagine_plan plan;
    struct opc_rollout *rollout;
    struct opc_rollout_report done = {0};
    OPC_TRY(read_plan(given, &plan, err));
    OPC_TRY(opc_sized_check(report, "opc_imagine_report", sizeof *report, err));
    const struct opc_transition *tr = plan.transition;
    if (plan.episode || plan.actions || (!plan.act && !tr->type->replays))
        return opc_fail(err, OPC_EUSER,
                        "rollouts into a store need a policy, and neither starts nor actions");
    const int rows = plan.n < OPC_ROLLOUT_ROWS ? plan.n : OPC_ROLLOUT_ROWS;
    OPC_TRY(opc_rollout_create(tr->obs, tr->act, plan.horizon, rows, &rollout, err));
    const struct opc_rollout_plan all = {
        .transition = tr,
        .act = plan.act,
        .act_ctx = plan.act_ctx,
        .terminal = plan.terminal,
        .terminal_ctx = plan.terminal_ctx,
        .horizon = plan.horizon,
        .transitions = (size_t)plan.n,
        .elite_per_rollout = plan.elite_per_rollout,
        .seed = plan.seed,
        .epoch = plan.epoch,
        .index = plan.index,
        .pool = plan.pool,
    };
    const int code = opc_rollout_run(rollout, &all, into, &done, err);
    opc_rollout_destroy(rollout);
    const struct opc_imagine_report whole = {
        .rollouts = done.rollouts,
        .transitions = done.transitions,
        .terminal = done.terminal,
        .length = done.length,
        .index = done.index,
    };
    opc_sized_write(&whole, sizeof whole, report);
    return code;
}
