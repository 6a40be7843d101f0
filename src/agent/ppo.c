/* SPDX-License-Identifier: MIT */
/* Proximal policy optimisation on the episodes of one epoch, as CleanRL and OpenAI's baselines do
 * it for continuous actions. run/improve.c calls ppo_improve through opc_agent_type. Let rho be the
 * probability of a recorded action under the new policy divided by that under the policy that chose
 * it, A the advantage and R = A + V. The actor loss and the critic loss are
 *
 *     J_pi = mean max(-A rho, -A clip(rho, 1 - c, 1 + c)) - w_H entropy
 *     J_V  = 1/2 mean max((V - R)^2, (V_old + clip(V - V_old, -c', c') - R)^2)
 *
 * It differs from those two in three points:
 * - An epoch ends with the end of an episode, which may be cut for it. Where an episode ran out of
 *   time or was cut, the critic's value of its last state stands for the rewards that are missing.
 * - Observations are normalised by the statistics from before the epoch, in acting and in learning,
 *   so that log pi of the policy that acted is exact. Only the first epoch, whose policy hardly
 *   looks at its observations, is normalised by its own statistics.
 * - Actions are Gaussian in the scale [-1, 1], whatever the task's range. They may lie outside; the
 *   environment clips them, and the record keeps them as drawn.
 *
 * Everything runs on one thread: networks and batches are small. A change must keep the order in
 * which ppo_improve reads the statistics (first epoch) or updates them (later epochs). */
#include "agent/ppo.h"

#include "agent/advantages.h"
#include "agent/policy.h"
#include "num/adam.h"
#include "num/network.h"
#include "num/normal.h"
#include "num/running.h"

#include <math.h>
#include <string.h>

#define SELF struct opc_ppo_config
const struct opc_section opc_ppo_section = OPC_SECTION(
    "ppo", "proximal policy optimisation, another agent (train.agent = ppo)", OPC_PPO_FIELDS);
#undef SELF

enum { P = OPC_PANEL, CHUNK = 8, ROWS = CHUNK * P, WHICH_POLICY = 5, WHICH_CRITIC = 6 };

#define HALF_LOG_2PI 0.91893853320467274178

/* Columns of the table after s and a. LOGP and VALUE come from the networks before the improvement,
 * ADVANTAGE is A and RETURN is R. */
enum { LOGP, ADVANTAGE, RETURN, VALUE, EXTRA };

/* Sums over the rows of all gradient steps, for the report. actor_loss is without the entropy. */
struct tally {
    double actor_loss, critic_loss, kl, clipped;
};

struct ppo {
    struct opc_agent base;
    struct opc_ppo_config config;
    struct opc_mlp *policy, *critic; /* s to the means of a; s to V */
    float *log_std;                  /* [act] */
    struct opc_adam *policy_adam, *critic_adam, *std_adam;
    /* As in gym's normalisation wrappers. */
    struct opc_running *obs_stats;   /* [obs] */
    struct opc_running return_stats; /* discounted, for the scale of rewards */

    int max_steps; /* of one improvement */
    int columns;   /* obs + act + EXTRA */
    /* [2 max_steps][columns] normalised s, a and the EXTRA columns, trajectory after trajectory.
     * The last state of a trajectory has a row, too, of which only s and VALUE mean anything. */
    float *table;
    int *step;                          /* [max_steps] rows of the table that are steps */
    double *reward, *value, *advantage; /* [max_steps + 1] of one trajectory */

    /* What one gradient step works on. */
    float *batch; /* [panels][columns][16] */
    struct opc_tape *policy_tape, *critic_tape;
    float *policy_grad, *critic_grad, *std_grad;
    double *dlog_std; /* [act] */
    struct opc_arena scratch;
};

/* ---- statistics ------------------------------------------------------------------------------ */

/* Entry k of an observation, normalised and clipped at clip_normalized standard deviations. */
static float normalized_obs(const struct ppo *ppo, int k, float s)
{
    if (!ppo->config.normalize_obs)
        return s;
    const double max = ppo->config.clip_normalized;
    const double x = ((double)s - ppo->obs_stats[k].mean) / sqrt(ppo->obs_stats[k].var + 1e-8);
    return (float)fmin(fmax(x, -max), max);
}

/* Record t of a trajectory: s, a, r, terminal (data/records.h). */
static const float *record_of(const struct ppo *ppo, const struct opc_path *path, int t)
{
    return path->records + (size_t)t * (size_t)(ppo->base.obs + ppo->base.act + 2);
}

/* Updates the statistics of the observations by the states an action was chosen in; the last state
 * of a trajectory is not one of them. Two passes over the data: mean, then variance. */
static void update_obs_stats(struct ppo *ppo, const struct opc_feed *feed)
{
    struct opc_path path;
    for (int k = 0; k < ppo->base.obs; k++) {
        double n = 0, sum = 0, squares = 0;
        for (uint64_t at = 0; feed->path(feed->ctx, &at, &path); n += path.steps)
            for (int t = 0; t < path.steps; t++)
                sum += (double)record_of(ppo, &path, t)[k];
        for (uint64_t at = 0; feed->path(feed->ctx, &at, &path);)
            for (int t = 0; t < path.steps; t++) {
                const double gap = (double)record_of(ppo, &path, t)[k] - sum / n;
                squares += gap * gap;
            }
        opc_running_merge(&ppo->obs_stats[k], n, sum / n, squares / n);
    }
}

/* Normalises the rewards of one trajectory, in time order: each is divided by the standard
 * deviation of the discounted returns seen up to it. The mean is not subtracted: that
 * would change the task. */
static void normalize_rewards(struct ppo *ppo, int n, double *reward)
{
    const double max = ppo->config.clip_normalized;
    double sum = 0; /* the return so far, discounted backwards */
    for (int t = 0; t < n; t++) {
        sum = ppo->config.discount * sum + reward[t];
        opc_running_merge(&ppo->return_stats, 1, sum, 0);
        if (ppo->config.normalize_reward)
            reward[t] = fmin(fmax(reward[t] / sqrt(ppo->return_stats.var + 1e-8), -max), max);
    }
}

/* ---- the table of an epoch ------------------------------------------------------------------- */

/* log pi(a) of the diagonal Gaussian; `stride` floats lie between the entries of mean and of a. */
static double log_probability(const struct ppo *ppo, const float *mean, const float *a,
                              size_t stride)
{
    double sum = 0;
    for (int k = 0; k < ppo->base.act; k++) {
        const double l = (double)ppo->log_std[k];
        const double z =
            ((double)a[(size_t)k * stride] - (double)mean[(size_t)k * stride]) / exp(l);
        sum -= 0.5 * z * z + l + HALF_LOG_2PI;
    }
    return sum;
}

/* Fills VALUE and LOGP of all rows from the networks before any update, ROWS at a time. The last
 * state of a trajectory has no action; its LOGP is never read. */
static void evaluate_rows(struct ppo *ppo, int rows)
{
    const int obs = ppo->base.obs, act = ppo->base.act;
    const size_t columns = (size_t)ppo->columns, xs = columns * P, mark = ppo->scratch.used;
    float *x = opc_floats(&ppo->scratch, columns, ROWS), *v = opc_floats(&ppo->scratch, 1, ROWS);
    float *mean = opc_floats(&ppo->scratch, (size_t)act, ROWS);
    for (int first = 0; first < rows; first += ROWS) {
        const int n = rows - first < ROWS ? rows - first : ROWS;
        float *row = ppo->table + (size_t)first * columns;
        opc_kernels()->gather(n, ppo->columns, row, columns, NULL, x, xs);
        opc_mlp_infer(ppo->critic, 0, opc_panels(n), x, xs, 1, v, P, &ppo->scratch);
        opc_mlp_infer(ppo->policy, 0, opc_panels(n), x, xs, act, mean, (size_t)act * P,
                      &ppo->scratch);
        for (int i = 0; i < n; i++, row += columns) {
            const size_t panel = (size_t)(i / P), lane = (size_t)(i % P);
            row[obs + act + VALUE] = v[i];
            row[obs + act + LOGP] =
                (float)log_probability(ppo, mean + panel * (size_t)act * P + lane,
                                       x + panel * xs + (size_t)obs * P + lane, P);
        }
    }
    opc_arena_rewind(&ppo->scratch, mark);
}

/* Copies all trajectories into the table with normalised observations. Returns the number of steps,
 * whose rows are listed in ppo->step; *rows counts the last states, too. */
static int build_batch(struct ppo *ppo, const struct opc_feed *feed, int *rows)
{
    const int obs = ppo->base.obs, act = ppo->base.act;
    struct opc_path path;
    int steps = 0;
    *rows = 0;
    for (uint64_t at = 0; feed->path(feed->ctx, &at, &path);)
        for (int t = 0; t <= path.steps; t++) {
            const float *from = record_of(ppo, &path, t);
            float *row = ppo->table + (size_t)*rows * (size_t)ppo->columns;
            for (int k = 0; k < obs; k++)
                row[k] = normalized_obs(ppo, k, from[k]);
            memcpy(row + obs, from + obs, (size_t)act * sizeof *row);
            if (t < path.steps)
                ppo->step[steps++] = *rows;
            (*rows)++;
        }
    return steps;
}

/* Fills ADVANTAGE and RETURN of all steps, trajectory by trajectory. `row` walks through the table
 * in the order build_batch filled it, and skips the row of each last state. */
static void compute_advantages(struct ppo *ppo, const struct opc_feed *feed)
{
    const int extra = ppo->base.obs + ppo->base.act;
    struct opc_path path;
    float *row = ppo->table + extra;
    for (uint64_t at = 0; feed->path(feed->ctx, &at, &path); row += ppo->columns) {
        for (int t = 0; t <= path.steps; t++) {
            ppo->reward[t] = (double)record_of(ppo, &path, t)[extra];
            ppo->value[t] = (double)row[(size_t)t * (size_t)ppo->columns + VALUE];
        }
        normalize_rewards(ppo, path.steps, ppo->reward);
        const bool terminal = record_of(ppo, &path, path.steps - 1)[extra + 1] != 0;
        opc_advantages(path.steps, ppo->reward, ppo->value, terminal, ppo->config.discount,
                       ppo->config.gae_lambda, ppo->advantage);
        for (int t = 0; t < path.steps; t++, row += ppo->columns) {
            row[ADVANTAGE] = (float)ppo->advantage[t];
            row[RETURN] = (float)(ppo->advantage[t] + ppo->value[t]);
        }
    }
}

/* ---- one gradient step ----------------------------------------------------------------------- */

/* Column k of row `row` of the batch, which is in panels. */
static float *column(const struct ppo *ppo, int row, int k)
{
    return ppo->batch + (size_t)(row / P) * (size_t)ppo->columns * P + (size_t)(k * P + row % P);
}

/* Normalises the advantages of a minibatch to mean 0 and standard deviation 1. The deviation is
 * that of the sample, as in PyTorch. */
static void normalize_advantages(const struct ppo *ppo, int n)
{
    const int k = ppo->base.obs + ppo->base.act + ADVANTAGE;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += (double)*column(ppo, i, k);
    for (int i = 0; i < n; i++) {
        const double gap = (double)*column(ppo, i, k) - sum / n;
        squares += gap * gap;
    }
    const double std = n > 1 ? sqrt(squares / (n - 1)) : 0;
    for (int i = 0; i < n; i++)
        *column(ppo, i, k) = (float)(((double)*column(ppo, i, k) - sum / n) / (std + 1e-8));
}

/* The actor loss J_pi, and its gradient by the policy's means (into dy of the last layer) and by
 * log_std (into std_grad). log_std is a parameter of its own and not an output of the network. */
static void policy_gradient(struct ppo *ppo, int n, struct tally *sum)
{
    const int obs = ppo->base.obs, act = ppo->base.act, last = ppo->policy->shape.layers - 1;
    const double clip = ppo->config.clip_range;
    memset(ppo->dlog_std, 0, (size_t)act * sizeof *ppo->dlog_std);
    for (int i = 0; i < opc_panels(n) * P; i++) {
        const size_t at = (size_t)(i / P * act) * P + (size_t)(i % P);
        const float *mean = ppo->policy_tape->y[last] + at;
        float *dmean = ppo->policy_tape->dy[last] + at;
        /* Rows of padding, and rows whose clipped loss is the larger, have no gradient. */
        for (int k = 0; k < act; k++)
            dmean[k * P] = 0;
        if (i >= n)
            continue;
        /* The surrogate: the larger of the two losses is the pessimistic one. */
        const float *a = column(ppo, i, obs);
        const double old = (double)*column(ppo, i, obs + act + LOGP);
        const double advantage = (double)*column(ppo, i, obs + act + ADVANTAGE);
        const double log_ratio = log_probability(ppo, mean, a, P) - old, rho = exp(log_ratio);
        const double clipped = fmin(fmax(rho, 1 - clip), 1 + clip);
        sum->actor_loss += fmax(-advantage * rho, -advantage * clipped);
        /* The estimator (rho - 1) - log rho of the KL divergence; it is never negative. */
        sum->kl += rho - 1 - log_ratio;
        sum->clipped += fabs(rho - 1) > clip;
        /* The clipped loss is constant, so there is no gradient. */
        if (-advantage * rho < -advantage * clipped)
            continue;
        /* d rho / d mean = rho z / std, d rho / d log_std = rho (z^2 - 1). */
        for (int k = 0; k < act; k++) {
            const double std = exp((double)ppo->log_std[k]);
            const double z = ((double)a[k * P] - (double)mean[k * P]) / std;
            dmean[k * P] = (float)(-advantage * rho * z / std / n);
            ppo->dlog_std[k] += -advantage * rho * (z * z - 1) / n;
        }
    }
    /* The entropy of a Gaussian is sum log_std plus a constant: its derivative is 1. */
    for (int k = 0; k < act; k++)
        ppo->std_grad[k] = (float)(ppo->dlog_std[k] - ppo->config.ent_coef);
}

/* The critic loss J_V, and the gradient of vf_coef J_V by the values, into dy of the last layer. */
static void value_gradient(struct ppo *ppo, int n, struct tally *sum)
{
    const int extra = ppo->base.obs + ppo->base.act, last = ppo->critic->shape.layers - 1;
    const double clip = ppo->config.clip_range_vf, weight = ppo->config.vf_coef;
    for (int i = 0; i < opc_panels(n) * P; i++) {
        float *dvalue = ppo->critic_tape->dy[last] + i;
        *dvalue = 0;
        if (i >= n)
            continue;
        /* `gap` is the error of the new value, `clipped` that of the new value held near the old
         * one. */
        const double v = (double)ppo->critic_tape->y[last][i],
                     old = (double)*column(ppo, i, extra + VALUE);
        const double gap = v - (double)*column(ppo, i, extra + RETURN);
        const double moved = clip > 0 ? fmin(fmax(v - old, -clip), clip) : v - old;
        const double clipped = old + moved - (double)*column(ppo, i, extra + RETURN);
        const bool unclipped = clip == 0 || gap * gap >= clipped * clipped;
        /* The larger loss counts. A value that the clipping moved has no gradient. */
        sum->critic_loss += 0.5 * (unclipped ? gap * gap : clipped * clipped);
        if (unclipped || fabs(v - old) < clip)
            *dvalue = (float)(weight * (unclipped ? gap : clipped) / n);
    }
}

/* Backward pass and gradient of all weights, from dy of the last layer. */
static void network_gradient(const struct opc_mlp *net, int rows, struct opc_tape *tape,
                             float *grad)
{
    opc_mlp_backward_part(net, 0, 0, opc_panels(rows), tape);
    opc_mlp_weight_gradient(net, rows, tape, grad);
}

static double sum_of_squares(size_t n, const float *x)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Scales the gradients of policy, critic and log_std so that their common norm is at most
 * max_grad_norm (1e-6 as in PyTorch's clip_grad_norm_). */
static void clip_grad_norm(struct ppo *ppo)
{
    const struct {
        float *at;
        size_t n;
    } part[] = {{ppo->policy_grad, ppo->policy->each},
                {ppo->critic_grad, ppo->critic->each},
                {ppo->std_grad, (size_t)ppo->base.act}};
    double squares = 0;
    for (int i = 0; i < 3; i++)
        squares += sum_of_squares(part[i].n, part[i].at);
    const double factor = ppo->config.max_grad_norm / (sqrt(squares) + 1e-6);
    if (ppo->config.max_grad_norm == 0 || factor >= 1)
        return;
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < part[i].n; k++)
            part[i].at[k] *= (float)factor;
}

/* One gradient step on the minibatch of these n rows of the table. */
static void ppo_update(struct ppo *ppo, int n, const int *rows, struct tally *sum)
{
    const size_t columns = (size_t)ppo->columns;
    opc_kernels()->gather(n, ppo->columns, ppo->table, columns, rows, ppo->batch, columns * P);
    normalize_advantages(ppo, n);
    /* Losses, and their gradients down to the weights. */
    opc_mlp_forward_part(ppo->policy, 0, 0, opc_panels(n), ppo->policy_tape);
    opc_mlp_forward_part(ppo->critic, 0, 0, opc_panels(n), ppo->critic_tape);
    policy_gradient(ppo, n, sum);
    value_gradient(ppo, n, sum);
    network_gradient(ppo->policy, n, ppo->policy_tape, ppo->policy_grad);
    network_gradient(ppo->critic, n, ppo->critic_tape, ppo->critic_grad);
    /* One Adam step for each of the three groups of parameters. */
    clip_grad_norm(ppo);
    opc_adam_step(ppo->policy_adam, 0.0, ppo->policy_grad, ppo->policy->param);
    opc_adam_step(ppo->critic_adam, 0.0, ppo->critic_grad, ppo->critic->param);
    opc_adam_step(ppo->std_adam, 0.0, ppo->std_grad, ppo->log_std);
}

/* ---- improve --------------------------------------------------------------------------------- */

/* Means over all rows of all passes; values and targets are those of before the improvement. */
static void ppo_report(const struct ppo *ppo, int steps, int updates, const struct tally *sum,
                       struct opc_agent_report *out)
{
    const int extra = ppo->base.obs + ppo->base.act;
    const double rows = (double)steps * ppo->config.update_epochs;
    double *v = out->value;
    *out = (struct opc_agent_report){.updates = updates};
    v[OPC_PPO_CRITIC_LOSS] = sum->critic_loss / rows;
    v[OPC_PPO_ACTOR_LOSS] = sum->actor_loss / rows;
    v[OPC_PPO_KL] = sum->kl / rows;
    v[OPC_PPO_CLIPPED] = sum->clipped / rows;
    v[OPC_PPO_TARGET_MIN] = INFINITY;
    v[OPC_PPO_TARGET_MAX] = -INFINITY;
    for (int i = 0; i < steps; i++) {
        const float *row = ppo->table + (size_t)ppo->step[i] * (size_t)ppo->columns + extra;
        const double target = (double)row[RETURN];
        v[OPC_PPO_TARGET_MIN] = fmin(v[OPC_PPO_TARGET_MIN], target);
        v[OPC_PPO_TARGET_MAX] = fmax(v[OPC_PPO_TARGET_MAX], target);
        v[OPC_PPO_Q] += (double)row[VALUE] / steps;
        v[OPC_PPO_Q_TARGET] += target / steps;
    }
    for (int k = 0; k < ppo->base.act; k++)
        v[OPC_PPO_ENTROPY] += (double)ppo->log_std[k] + HALF_LOG_2PI + 0.5;
}

static uint64_t count_steps(const struct opc_feed *feed)
{
    struct opc_path path;
    uint64_t n = 0;
    for (uint64_t at = 0; feed->path(feed->ctx, &at, &path);)
        n += (uint64_t)path.steps;
    return n;
}

/* Asks every 64 gradient steps. */
static bool asked_to_stop(const struct opc_feed *feed, int made)
{
    return made % 64 == 0 && feed->stop && feed->stop(feed->stop_ctx);
}

/* One improvement: the trajectories of this epoch become a table, which is passed over
 * update_epochs times in minibatches. */
static int ppo_improve(struct opc_agent *a, const struct opc_feed *feed, int updates,
                       struct opc_agent_report *report, struct opc_err *err)
{
    (void)updates; /* follow from the number of steps */
    struct ppo *ppo = (struct ppo *)a;
    const bool first = ppo->policy_adam->steps == 0;
    const uint64_t given = count_steps(feed);
    if (given == 0 || given > (uint64_t)ppo->max_steps)
        return opc_fail(err, OPC_EBUG, "%llu steps to learn from, where 1 to %d are possible",
                        (unsigned long long)given, ppo->max_steps);
    /* The learning rate falls linearly to 0 over the run; feed->done is the share of it that is
     * over. */
    const double rate = ppo->config.learning_rate * (ppo->config.anneal_lr ? 1 - feed->done : 1);
    struct tally sum = {0};
    int rows, made = 0;
    /* Table with old values, old log-probabilities and advantages, all fixed for the passes
     * below. */
    if (first)
        update_obs_stats(ppo, feed);
    const int steps = build_batch(ppo, feed, &rows);
    evaluate_rows(ppo, rows);
    compute_advantages(ppo, feed);
    ppo->policy_adam->config.learning_rate = ppo->critic_adam->config.learning_rate =
        ppo->std_adam->config.learning_rate = rate;
    /* Passes over the table, each in its own order. */
    for (int pass = 0; pass < ppo->config.update_epochs; pass++) {
        struct opc_rng rng = opc_rng_stream(feed->seed, OPC_USE_BATCH, feed->epoch, (uint32_t)pass);
        opc_rng_shuffle(&rng, steps, ppo->step);
        for (int from = 0; from < steps; from += ppo->config.batch_size) {
            ppo_update(
                ppo, steps - from < ppo->config.batch_size ? steps - from : ppo->config.batch_size,
                ppo->step + from, &sum);
            if (asked_to_stop(feed, ++made))
                return opc_fail(err, OPC_ESTOPPED, "stopped while improving the policy");
        }
        if (!isfinite(sum.actor_loss) || !isfinite(sum.critic_loss))
            return opc_fail(
                err, OPC_EDIVERGED,
                "the %s loss became %g in pass %d over epoch %u; lower ppo.learning_rate, or "
                "look for huge rewards",
                isfinite(sum.critic_loss) ? "policy's" : "critic's",
                isfinite(sum.critic_loss) ? sum.actor_loss : sum.critic_loss, pass + 1,
                feed->epoch);
    }
    /* Only now: while this epoch was played, observations were normalised by the older
     * statistics. */
    if (!first)
        update_obs_stats(ppo, feed);
    ppo_report(ppo, steps, made, &sum, report);
    return OPC_OK;
}

/* ---- act ------------------------------------------------------------------------------------- */

/* Actions of up to ROWS states. rng NULL: the mode, which is the mean. */
static void act_some(struct ppo *ppo, int n, const float *state, float spread, struct opc_rng *rng,
                     float *action)
{
    const int obs = ppo->base.obs, act = ppo->base.act;
    const size_t mark = ppo->scratch.used;
    float *x = opc_floats(&ppo->scratch, (size_t)obs, ROWS);
    float *mean = opc_floats(&ppo->scratch, (size_t)act, ROWS);
    float *eps = opc_floats(&ppo->scratch, (size_t)act, ROWS);
    /* Normalised observations in panels; the padding is 0. */
    for (int i = 0; i < opc_panels(n) * P; i++)
        for (int k = 0; k < obs; k++)
            x[(size_t)(i / P * obs + k) * P + (size_t)(i % P)] =
                i < n ? normalized_obs(ppo, k, state[i * obs + k]) : 0;
    opc_mlp_infer(ppo->policy, 0, opc_panels(n), x, (size_t)obs * P, act, mean, (size_t)act * P,
                  &ppo->scratch);
    if (rng)
        opc_rng_normals_rows(rng, n, act, eps);
    /* a = mean + spread exp(log_std) eps */
    for (int i = 0; i < n; i++)
        for (int k = 0; k < act; k++) {
            const size_t at = (size_t)(i / P * act + k) * P + (size_t)(i % P);
            action[i * act + k] = mean[at];
            if (rng)
                action[i * act + k] += spread * expf(ppo->log_std[k]) * eps[at];
        }
    opc_arena_rewind(&ppo->scratch, mark);
}

static void ppo_act_spread(const struct opc_agent *a, int n, const float *state, float spread,
                           struct opc_rng *rng, float *action)
{
    struct ppo *ppo = (struct ppo *)a; /* its scratch */
    for (int i = 0; i < n; i += ROWS)
        act_some(ppo, n - i < ROWS ? n - i : ROWS, state + (size_t)i * (size_t)ppo->base.obs,
                 spread, rng ? rng + i : NULL, action + (size_t)i * (size_t)ppo->base.act);
}

static void ppo_act(const struct opc_agent *a, int n, const float *state, bool explore,
                    struct opc_rng *rng, float *action)
{
    ppo_act_spread(a, n, state, 1, explore ? rng : NULL, action);
}

/* The mode is the mean, of normalised observations. */
static int ppo_network(const struct opc_agent *a, struct opc_network *out, struct opc_err *err)
{
    const struct ppo *ppo = (const struct ppo *)a;
    *out = (struct opc_network){.net = ppo->policy, .outputs = a->act};
    if (!ppo->config.normalize_obs)
        return OPC_OK;
    OPC_TRY(opc_network_scale(out, a->obs, err));
    for (int k = 0; k < a->obs; k++) {
        out->mean[k] = (float)ppo->obs_stats[k].mean;
        out->inverse[k] = (float)(1 / sqrt(ppo->obs_stats[k].var + 1e-8));
    }
    out->clip = (float)ppo->config.clip_normalized;
    return OPC_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Accepts a half-built agent: every destroy below takes NULL. */
static void ppo_destroy(struct opc_agent *a)
{
    struct ppo *ppo = (struct ppo *)a;
    opc_mlp_destroy(ppo->policy);
    opc_mlp_destroy(ppo->critic);
    opc_adam_destroy(ppo->policy_adam);
    opc_adam_destroy(ppo->critic_adam);
    opc_adam_destroy(ppo->std_adam);
    opc_tape_destroy(ppo->policy_tape);
    opc_tape_destroy(ppo->critic_tape);
    opc_arena_destroy(&ppo->scratch);
    opc_free(ppo->log_std);
    opc_free(ppo->obs_stats);
    opc_free(ppo->table);
    opc_free(ppo->step);
    opc_free(ppo->reward);
    opc_free(ppo->value);
    opc_free(ppo->advantage);
    opc_free(ppo->batch);
    opc_free(ppo->policy_grad);
    opc_free(ppo->critic_grad);
    opc_free(ppo->std_grad);
    opc_free(ppo->dlog_std);
    opc_free(ppo);
}

/* Everything a later improvement depends on, by name, for checkpoints. Names and order are part of
 * the file format. */
static int ppo_state(struct opc_agent *a,
                     int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                     void *ctx, struct opc_err *err)
{
    struct ppo *ppo = (struct ppo *)a;
    const size_t policy = ppo->policy->each * sizeof(float),
                 critic = ppo->critic->each * sizeof(float);
    const size_t std = (size_t)ppo->base.act * sizeof(float);
    const struct opc_state_part part[] = {
        {"ppo.policy", ppo->policy->param, policy},
        {"ppo.policy.m", ppo->policy_adam->m, policy},
        {"ppo.policy.v", ppo->policy_adam->v, policy},
        {"ppo.policy.steps", &ppo->policy_adam->steps, sizeof(long)},
        {"ppo.critic", ppo->critic->param, critic},
        {"ppo.critic.m", ppo->critic_adam->m, critic},
        {"ppo.critic.v", ppo->critic_adam->v, critic},
        {"ppo.critic.steps", &ppo->critic_adam->steps, sizeof(long)},
        {"ppo.std", ppo->log_std, std},
        {"ppo.std.m", ppo->std_adam->m, std},
        {"ppo.std.v", ppo->std_adam->v, std},
        {"ppo.std.steps", &ppo->std_adam->steps, sizeof(long)},
        {"ppo.obs", ppo->obs_stats, (size_t)ppo->base.obs * sizeof *ppo->obs_stats},
        {"ppo.returns", &ppo->return_stats, sizeof ppo->return_stats},
    };
    return opc_visit_parts(part, sizeof part / sizeof *part, visit, ctx, err);
}

/* A network with tanh layers and orthogonal weights: gain sqrt(2), and `gain` for the last layer.
 * Its tape reads the batch, of which s are the first columns. */
static int ppo_make_network(const struct ppo *ppo, const struct opc_ints *hidden, int out,
                            double gain, uint64_t seed, uint32_t which, struct opc_mlp **net,
                            struct opc_tape **tape, struct opc_err *err)
{
    struct opc_mlp_shape shape;
    int code = opc_mlp_shape_from(1, ppo->base.obs, hidden->at, hidden->n, out, OPC_ACTIVATION_TANH,
                                  &shape, err);
    if (!code)
        code = opc_mlp_create(&shape, net, err);
    if (!code)
        code = opc_mlp_init_orthogonal(*net, sqrt(2), gain, seed, which, err);
    if (!code)
        code = opc_tape_create(*net, ppo->config.batch_size, tape, err);
    if (!code) {
        (*tape)->x = ppo->batch;
        (*tape)->xs = (size_t)ppo->columns * P;
    }
    return code;
}

/* Policy and critic, their optimisers and gradients, and the scratch of evaluate_rows and act_some.
 * Adam's epsilon of 1e-5 and the last gains of 0.01 and 1 are those of OpenAI's baselines. */
static int ppo_make_networks(struct ppo *ppo, uint64_t seed, struct opc_err *err)
{
    const struct opc_adam_config rates = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-5, .torch = true};
    const size_t act = (size_t)ppo->base.act;
    int code = ppo_make_network(ppo, &ppo->config.policy_hidden, ppo->base.act, 0.01, seed,
                                WHICH_POLICY, &ppo->policy, &ppo->policy_tape, err);
    if (!code)
        code = ppo_make_network(ppo, &ppo->config.critic_hidden, 1, 1, seed, WHICH_CRITIC,
                                &ppo->critic, &ppo->critic_tape, err);
    if (!code)
        code = opc_adam_create(ppo->policy->each, rates, &ppo->policy_adam, err);
    if (!code)
        code = opc_adam_create(ppo->critic->each, rates, &ppo->critic_adam, err);
    if (!code)
        code = opc_adam_create(act, rates, &ppo->std_adam, err);
    if (code)
        return code;
    ppo->policy_grad = opc_alloc(ppo->policy->each, sizeof(float));
    ppo->critic_grad = opc_alloc(ppo->critic->each, sizeof(float));
    if (!ppo->policy_grad || !ppo->critic_grad)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent's gradients");
    const size_t a = opc_mlp_infer_need(ppo->policy, CHUNK),
                 b = opc_mlp_infer_need(ppo->critic, CHUNK);
    const size_t wide = ROWS * sizeof(float);
    return opc_arena_create(opc_arena_need((size_t)ppo->columns, wide) + opc_arena_need(1, wide) +
                                2 * opc_arena_need(act, wide) + (a > b ? a : b),
                            &ppo->scratch, err);
}

/* Memory of an improvement, sized by its steps, so that improving allocates nothing. */
static int ppo_make_table(struct ppo *ppo, struct opc_err *err)
{
    const size_t max = (size_t)ppo->max_steps, columns = (size_t)ppo->columns,
                 act = (size_t)ppo->base.act;
    ppo->table = opc_alloc(2 * max, columns * sizeof(float));
    ppo->step = opc_alloc(max, sizeof *ppo->step);
    ppo->reward = opc_alloc(max + 1, sizeof *ppo->reward);
    ppo->value = opc_alloc(max + 1, sizeof *ppo->value);
    ppo->advantage = opc_alloc(max, sizeof *ppo->advantage);
    ppo->batch = opc_alloc((size_t)opc_panels(ppo->config.batch_size) * P, columns * sizeof(float));
    ppo->log_std = opc_alloc(act, sizeof *ppo->log_std);
    ppo->std_grad = opc_alloc(act, sizeof *ppo->std_grad);
    ppo->dlog_std = opc_alloc(act, sizeof *ppo->dlog_std);
    ppo->obs_stats = opc_alloc((size_t)ppo->base.obs, sizeof *ppo->obs_stats);
    if (!ppo->table || !ppo->step || !ppo->reward || !ppo->value || !ppo->advantage ||
        !ppo->batch || !ppo->log_std || !ppo->std_grad || !ppo->dlog_std || !ppo->obs_stats)
        return opc_fail(
            err, OPC_ENOMEM,
            "not enough memory to learn from %d steps at once; lower train.steps_per_epoch",
            ppo->max_steps);
    for (size_t k = 0; k < act; k++)
        ppo->log_std[k] = (float)ppo->config.log_std_init;
    /* The statistics start at mean 0 and variance 1 with almost no weight, as gym's do. */
    ppo->return_stats = (struct opc_running){.count = 1e-4, .var = 1};
    for (int k = 0; k < ppo->base.obs; k++)
        ppo->obs_stats[k] = ppo->return_stats;
    return OPC_OK;
}

static int ppo_create(const struct opc_agent_args *args, struct opc_agent **out,
                      struct opc_err *err)
{
    struct ppo *ppo = opc_alloc(1, sizeof *ppo);
    if (!ppo)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    ppo->base = (struct opc_agent){.type = &opc_ppo_type, .obs = args->obs, .act = args->act};
    int code = OPC_OK;
    if (args->config)
        ppo->config = *(const struct opc_ppo_config *)args->config;
    else
        code = opc_section_defaults(&opc_ppo_section, &ppo->config, err);
    ppo->max_steps = args->steps;
    ppo->columns = args->obs + args->act + EXTRA;
    if (!code)
        code = ppo_make_table(ppo, err);
    if (!code)
        code = ppo_make_networks(ppo, args->seed, err);
    if (code) {
        ppo_destroy(&ppo->base);
        return code;
    }
    *out = &ppo->base;
    return OPC_OK;
}

/* With an annealed learning rate, what it learns depends on train.epochs. */
static bool ppo_knows_its_end(const void *config)
{
    return ((const struct opc_ppo_config *)config)->anneal_lr;
}

/* Bytes of the table of an epoch: at worst every trajectory has one step, and so two rows. */
static size_t ppo_need(const struct opc_agent_args *args)
{
    return (size_t)args->steps * (2 * (size_t)(args->obs + args->act + EXTRA) * sizeof(float) + 32);
}

static const struct opc_agent_column COLUMNS[] = {
    [OPC_PPO_Q] = {"q", OPC_OVER_MEAN},
    [OPC_PPO_Q_TARGET] = {"q_target", OPC_OVER_MEAN},
    [OPC_PPO_TARGET_MIN] = {"target_min", OPC_OVER_MIN},
    [OPC_PPO_TARGET_MAX] = {"target_max", OPC_OVER_MAX},
    [OPC_PPO_CRITIC_LOSS] = {"critic_loss", OPC_OVER_MEAN},
    [OPC_PPO_ACTOR_LOSS] = {"actor_loss", OPC_OVER_MEAN},
    [OPC_PPO_ENTROPY] = {"entropy", OPC_OVER_MEAN},
    [OPC_PPO_KL] = {"kl", OPC_OVER_MEAN},
    [OPC_PPO_CLIPPED] = {"clipped", OPC_OVER_MEAN},
    [OPC_PPO_COLUMNS] = {NULL, OPC_OVER_MEAN},
};

const struct opc_agent_type opc_ppo_type = {
    .name = "ppo",
    .label = "PPO",
    .colour = 0xe69f00,
    .needs = OPC_NEEDS_TRAJECTORIES,
    .settings = &opc_ppo_section,
    .columns = COLUMNS,
    .knows_its_end = ppo_knows_its_end,
    .need = ppo_need,
    .create = ppo_create,
    .act = ppo_act,
    .improve = ppo_improve,
    .destroy = ppo_destroy,
    .state = ppo_state,
    .act_spread = ppo_act_spread,
    .network = ppo_network,
};
