/* SPDX-License-Identifier: MIT */
/* Estimates the cost of a run from its settings.
 *
 * Nearly all of it is matrix products: gradient steps of SAC, gradient steps of the ensemble, and
 * imagined steps. All three reach about the same share of what a core can do, so that one measured
 * number, RATE, turns their operations into seconds (docs/experiments.md has the measurements and
 * how to repeat them). Sizes of observations and actions are those of the half-cheetah for all
 * tasks; they hardly matter next to the hidden layers. */
#include "study/cost.h"

#include "agent/pets.h"
#include "agent/sac.h"
#include "agent/steve.h"
#include "opc/transition_type.h"

#include <math.h>
#include <string.h>

/* Operations per second on one core: `opc bench sac` (2x64: 0.567 ms, 2x256: 6.63 ms), `opc bench
 * fit` (7 of 4x200: 16.9 ms) and `opc bench rollout` (100,000 states: 332 ms) make 79 to 89e9. */
static const double RATE = 82e9;
static const double ENV_STEP = 50e-6;  /* seconds of a step on MuJoCo or Bullet, with the policy */
static const double PPO_STEP = 150e-6; /* all of PPO, for each real step (results/ppo) */
/* Passes over the rows: of a first fit (docs/learning-details.md), and of one that goes on with the
 * last one's weights. */
static const double FIRST_PASSES = 200, PASSES = 10;
enum { OBS = 17, ACT = 6 };

/* Weights of a network. */
static double weights(int in, const struct opc_ints *hidden, int out)
{
    double sum = 0;
    for (int i = 0; i < hidden->n; i++) {
        sum += (double)in * hidden->at[i];
        in = hidden->at[i];
    }
    return sum + (double)in * out;
}

/* A product with a matrix of w weights is 2 w operations a row; backwards twice that. */
static double forward(double w)
{
    return 2 * w;
}

/* Weights of one member: it predicts mean and log-variance of next state and reward. */
static double member_weights(const struct opc_values *v)
{
    return weights(OBS + ACT, &v->model.hidden, 2 * (OBS + 1));
}

/* One gradient step of SAC. For each row: two target critics and the policy forwards, two critics
 * there and back; then the policy there and back through both critics. */
static double sac_update(const struct opc_sac_config *sac)
{
    const double policy = weights(OBS, &sac->policy_hidden, 2 * ACT);
    const double critic = weights(OBS + ACT, &sac->critic_hidden, 1);
    return sac->batch_size * (4 * forward(policy) + 12 * forward(critic));
}

/* All fits of a run: gradient steps times members times rows, there and back. Rows grow with the
 * epochs, so the mean over the run counts. */
static double all_fits(const struct opc_values *v)
{
    const double steps = (double)v->train.epochs * v->train.steps_per_epoch;
    const double fits = v->train.fit_every > 0 ? steps / v->train.fit_every : v->train.epochs;
    const double batch = v->model.batch_size;
    double first = FIRST_PASSES * v->train.random_steps / batch;
    double later = PASSES * (v->train.random_steps + steps / 2) / batch;
    /* What limits a fit. */
    if (v->model.max_epochs > 0) {
        first *= fmin(1, v->model.max_epochs / FIRST_PASSES);
        later *= fmin(1, v->model.max_epochs / PASSES);
    }
    if (v->model.max_steps > 0) {
        first = fmin(first, v->model.max_steps);
        later = fmin(later, v->model.max_steps);
    }
    return (first + fits * later) * batch * v->model.members * 3 * forward(member_weights(v));
}

/* All imagined steps: the model and the policy forwards. Rollouts may grow from epoch to epoch; the
 * last length counts. */
static double all_rollouts(const struct opc_values *v, const struct opc_sac_config *sac)
{
    const struct opc_ints *horizon = &v->opc.horizon;
    const double length = horizon->n ? horizon->at[horizon->n - 1] : 1;
    const double times = v->train.simulate_every > 0
                             ? (double)v->train.steps_per_epoch / v->train.simulate_every
                             : 1;
    const double states = v->opc.rollouts > 0 ? v->opc.rollouts * length : v->opc.transitions;
    return v->train.epochs * times * states *
           (forward(member_weights(v)) + forward(weights(OBS, &sac->policy_hidden, 2 * ACT)));
}

/* One plan of PETS: every particle of every candidate through the model. */
static double pets_plan(const struct opc_values *v, const struct opc_pets_config *pets)
{
    return (double)pets->population * pets->iterations * pets->particles * pets->horizon *
           forward(member_weights(v));
}

/* One update of STEVE. For each row: H steps of every transition member; at each of them every
 * member of rewards and critics and one termination; then one member of each ensemble there and
 * back, and the policy there and back through all critics. */
static double steve_update(const struct opc_steve_config *steve)
{
    const double transition = forward(weights(OBS + ACT, &steve->transition_hidden, OBS));
    const double reward = forward(weights(2 * OBS + ACT, &steve->reward_hidden, 1));
    const double termination = forward(weights(2 * OBS + ACT, &steve->termination_hidden, 1));
    const double critic = forward(weights(OBS + ACT, &steve->critic_hidden, 1));
    const double policy = forward(weights(OBS, &steve->policy_hidden, ACT));
    const double imagined = (double)steve->transition_members * steve->horizon;
    const double target = transition + steve->reward_members * reward + termination +
                          steve->critic_members * critic + policy;
    const double learning = 3 * (transition + reward + termination + critic + policy) +
                            2 * steve->critic_members * critic;
    return steve->batch_size * (imagined * target + learning);
}

/* The settings of an agent, found by its name. */
static const void *settings_of(const struct opc_values *v, const struct opc_agent_type *type)
{
    for (int i = 0; opc_agent_type(i); i++)
        if (opc_agent_type(i) == type)
            return opc_values_agent(v, i);
    return NULL;
}

double opc_cost_seconds(const struct opc_values *v)
{
    const struct opc_agent_type *agent = opc_agent_type(v->train.agent);
    const struct opc_sac_config *sac = settings_of(v, &opc_sac_type);
    const double steps = (double)v->train.epochs * v->train.steps_per_epoch;
    const double updates = steps * v->train.updates_per_step;
    /* Episodes of an evaluation have up to 1,000 steps. */
    const double tested = 1000.0 * v->eval.episodes * v->train.epochs / v->eval.every;
    double work = 0, seconds = ENV_STEP * (v->train.random_steps + steps + tested);
    if (agent == &opc_pets_type)
        work = all_fits(v) + (steps + tested) * pets_plan(v, settings_of(v, &opc_pets_type));
    else if (agent == &opc_steve_type)
        work = updates * steve_update(settings_of(v, &opc_steve_type));
    else if (agent == &opc_sac_type)
        work = updates * sac_update(sac) + (opc_transition_type(v->opc.transition)->needs_model
                                                ? all_fits(v) + all_rollouts(v, sac)
                                                : 0);
    else if (strcmp(agent->name, "ppo") == 0)
        seconds += PPO_STEP * steps;
    else
        return (double)NAN;
    return seconds + work / RATE;
}
