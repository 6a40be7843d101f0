/* SPDX-License-Identifier: MIT */
/* Gradient steps of proximal policy optimisation (Schulman et al. 2017), as CleanRL and OpenAI's
 * baselines do them for continuous actions. run/improve.c calls opc_ppo_improve through
 * opc_agent_type. Let rho be the probability of a recorded action under the new policy divided by
 * that under the policy that chose it, A the advantage, and R = A + V_old the critic's target. The
 * actor loss and the critic loss are
 *
 *     J_pi = mean max(-A rho, -A clip(rho, 1 - c, 1 + c)) - w_H entropy
 *     J_V  = 1/2 mean max((V - R)^2, (V_old + clip(V - V_old, -c', c') - R)^2)
 *
 * with c = clip_range, c' = clip_range_vf and w_H = ent_coef; a step descends J_pi + vf_coef J_V.
 * In J_pi, A is normalised over the minibatch. V_old is the critic before the improvement.
 *
 * Everything runs on one thread: networks and batches are small. A change must keep the order in
 * which opc_ppo_improve reads the statistics (first epoch) or updates them (later epochs). */
#include "agent/ppo_private.h"

#include <math.h>
#include <string.h>

/* Sums over the rows of all gradient steps, for the report. actor_loss leaves the entropy out. */
struct tally {
    double actor_loss, critic_loss, kl, clipped;
};

/* ---- one gradient step ----------------------------------------------------------------------- */

/* Column k of row `row` of the batch, which is in panels. */
static float *column(const struct ppo *ppo, int row, int k)
{
    return ppo->batch + (size_t)(row / P) * (size_t)ppo->columns * P + (size_t)(k * P + row % P);
}

/* Normalises the advantages of a minibatch to mean 0 and standard deviation 1. The deviation has
 * n - 1 in its denominator, as in PyTorch. */
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

/* The actor loss J_pi, and its gradient with respect to the policy's means (into dy of the last
 * layer) and to log_std (into std_grad). log_std is a parameter of its own, the same in all states,
 * and not an output of the network. */
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
        const double log_ratio = opc_ppo_log_probability(ppo, mean, a, P) - old,
                     rho = exp(log_ratio);
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

/* The critic loss J_V, and the gradient of vf_coef J_V with respect to the values, into dy of the
 * last layer. */
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

/* It is asked after every 64 gradient steps. */
static bool asked_to_stop(const struct opc_feed *feed, int made)
{
    return made % 64 == 0 && feed->stop && feed->stop(feed->stop_ctx);
}

int opc_ppo_improve(struct opc_agent *a, const struct opc_feed *feed, int updates,
                    struct opc_agent_report *report, struct opc_err *err)
{
    (void)updates; /* their number follows from that of the steps */
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
    int made = 0;
    if (first)
        opc_ppo_update_obs_stats(ppo, feed);
    /* Old values, old log-probabilities and advantages stay fixed during the passes below. */
    const int steps = opc_ppo_fill_table(ppo, feed);
    ppo->policy_adam->config.learning_rate = ppo->critic_adam->config.learning_rate =
        ppo->std_adam->config.learning_rate = rate;
    /* Each pass goes over the table in a new random order. */
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
    /* The statistics are updated only now: while this epoch was played, observations were
     * normalised with the older ones. */
    if (!first)
        opc_ppo_update_obs_stats(ppo, feed);
    ppo_report(ppo, steps, made, &sum, report);
    return OPC_OK;
}
