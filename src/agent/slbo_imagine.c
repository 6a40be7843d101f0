/* SPDX-License-Identifier: MIT */
/* Trajectories of SLBO's policy in SLBO's model: rollout_envs of them side by side, as many steps
 * of each as make rollout_steps. A trajectory that ends, because the task would end in the
 * predicted state, is followed by another one. slbo.c calls it before each TRPO update.
 *
 * A simulator may take longer for a reset than the model for ten steps, so an epoch has
 * OPC_SLBO_STARTS reset states, in which later trajectories start again.
 *
 * Invariant: reset state number k of an epoch comes from stream (seed, OPC_USE_START, epoch, k),
 * and so does a recorded one that trajectory k starts in; its actions come from (seed,
 * OPC_USE_ROLLOUT, epoch, k). */
#include "agent/slbo_private.h"

#include <math.h>
#include <string.h>

/* Row i begins a new trajectory: in a state that the task's reset gives, or in a recorded one. */
static int begin_trajectory(struct slbo *slbo, const struct opc_feed *feed, int i,
                            struct opc_err *err)
{
    struct slbo_rollouts *r = &slbo->rollouts;
    const int obs = slbo->base.obs;
    float *state = r->state + i * obs;
    struct opc_rng rng = opc_rng_stream(feed->seed, OPC_USE_START, feed->epoch, r->starts);
    r->rng[i] = opc_rng_stream(feed->seed, OPC_USE_ROLLOUT, feed->epoch, r->starts);
    r->starts++;
    if (slbo->config.start == OPC_SLBO_START_RESET) {
        const uint32_t number = (r->starts - 1) % OPC_SLBO_STARTS;
        float *kept = r->starts_of_epoch + number * (uint32_t)obs;
        if (number + 1 == r->starts) { /* the first time */
            if (opc_env_reset(slbo->resets, &rng, r->start, err))
                return opc_within(err, "start of an imagined trajectory");
            for (int k = 0; k < obs; k++)
                kept[k] = (float)r->start[k];
        }
        memcpy(state, kept, (size_t)obs * sizeof *state);
        return OPC_OK;
    }
    int b, t;
    const int first = opc_slbo_first_step(slbo), n = opc_episodes_steps(slbo->past) - first;
    opc_episodes_find(slbo->past, first + (int)opc_rng_below(&rng, (uint32_t)n), &b, &t);
    memcpy(state, opc_episodes_at(slbo->past, b, t).state, (size_t)obs * sizeof *state);
    return OPC_OK;
}

/* The state of row i as step t of the batch, normalised. */
static void note_state(struct slbo *slbo, int i, int t)
{
    const struct opc_multistep_scales scales = opc_multistep_scales(slbo->model);
    const int obs = slbo->base.obs, length = slbo->trpo->options.length;
    float *to = slbo->trpo->state + (size_t)(i * (length + 1) + t) * (size_t)obs;
    const float *state = slbo->rollouts.state + i * obs;
    for (int k = 0; k < obs; k++)
        to[k] = (state[k] - scales.mean[k]) * scales.inverse[k];
}

/* One step of all rows: a ~ pi(s), s' and r from the model or the task. */
static void imagine_step(struct slbo *slbo, int t)
{
    struct slbo_rollouts *r = &slbo->rollouts;
    struct opc_trpo *trpo = slbo->trpo;
    const int envs = trpo->options.envs, length = trpo->options.length, act = slbo->base.act;
    const struct opc_multistep_scales scales = opc_multistep_scales(slbo->model);
    opc_trpo_act(trpo, scales.mean, scales.inverse, envs, r->state, 1, r->rng, r->action);
    for (int i = 0; i < envs * act; i++)
        r->clipped[i] = fminf(fmaxf(r->action[i], -1), 1);
    opc_multistep_predict(slbo->model, envs, r->state, r->clipped, r->next, r->reward);
    if (slbo->given_reward)
        opc_env_reward(slbo->env, envs, r->state, r->clipped, r->next, r->reward);
    opc_env_terminal(slbo->env, envs, r->state, r->clipped, r->next, r->done);
    for (int i = 0; i < envs; i++) {
        const int step = i * length + t;
        note_state(slbo, i, t);
        memcpy(trpo->action + (size_t)step * (size_t)act, r->action + i * act,
               (size_t)act * sizeof(float));
        trpo->reward[step] = (double)r->reward[i];
        trpo->done[step] = r->done[i];
    }
}

int opc_slbo_imagine(struct slbo *slbo, const struct opc_feed *feed, struct slbo_imagined *out,
                     struct opc_err *err)
{
    struct slbo_rollouts *r = &slbo->rollouts;
    const int envs = slbo->trpo->options.envs, length = slbo->trpo->options.length;
    const uint32_t before = r->starts;
    *out = (struct slbo_imagined){0};
    for (int i = 0; i < envs; i++)
        OPC_TRY(begin_trajectory(slbo, feed, i, err));
    for (int t = 0; t < length; t++) {
        imagine_step(slbo, t);
        memcpy(r->state, r->next, (size_t)(envs * slbo->base.obs) * sizeof(float));
        for (int i = 0; i < envs; i++) {
            out->rewards += (double)r->reward[i];
            if (t + 1 == length)
                note_state(slbo, i, length); /* where the last step led */
            else if (r->done[i])
                OPC_TRY(begin_trajectory(slbo, feed, i, err));
        }
    }
    out->trajectories = (int)(r->starts - before);
    if (!isfinite(out->rewards))
        return opc_fail(err, OPC_EDIVERGED,
                        "the imagined rewards of epoch %u sum to %g; lower slbo.learning_rate",
                        feed->epoch, out->rewards);
    return OPC_OK;
}
