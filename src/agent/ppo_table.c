/* SPDX-License-Identifier: MIT */
/* From the trajectories of an epoch to the table that PPO passes over: normalised observations,
 * actions, old log-probabilities and values, advantages and returns (elsewhere it is called the
 * rollout buffer). It also keeps the running statistics with which observations and rewards are
 * normalised. ppo_update.c calls it.
 *
 * Invariant: rows stand in the order in which feed->path gives the trajectories, each with one row
 * more than it has steps, for its last state. Whoever walks through the table relies on it. */
#include "agent/ppo_private.h"

#include "agent/advantages.h"

#include <math.h>
#include <string.h>

/* ---- statistics ------------------------------------------------------------------------------ */

/* Record t of a trajectory: s, a, r, terminal (data/records.h). */
static const float *record_of(const struct ppo *ppo, const struct opc_path *path, int t)
{
    return path->records + (size_t)t * (size_t)(ppo->base.obs + ppo->base.act + 2);
}

/* Two passes over the data: mean, then variance. */
void opc_ppo_update_obs_stats(struct ppo *ppo, const struct opc_feed *feed)
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
 * deviation of the discounted returns seen up to it. The mean is not subtracted, because that would
 * change the task. */
static void normalize_rewards(struct ppo *ppo, int n, double *reward)
{
    const double max = ppo->config.clip_normalized;
    double sum = 0; /* of the rewards so far, the older the more discounted (as in gym) */
    for (int t = 0; t < n; t++) {
        sum = ppo->config.discount * sum + reward[t];
        opc_running_merge(&ppo->return_stats, 1, sum, 0);
        if (ppo->config.normalize_reward)
            reward[t] = fmin(fmax(reward[t] / sqrt(ppo->return_stats.var + 1e-8), -max), max);
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Copies all trajectories into the table with normalised observations. Returns the number of steps,
 * whose rows are listed in ppo->step; *rows counts the last states, too. */
static int copy_trajectories(struct ppo *ppo, const struct opc_feed *feed, int *rows)
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
                row[k] = opc_ppo_normalized_obs(ppo, k, from[k]);
            memcpy(row + obs, from + obs, (size_t)act * sizeof *row);
            if (t < path.steps)
                ppo->step[steps++] = *rows;
            (*rows)++;
        }
    return steps;
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
                (float)opc_ppo_log_probability(ppo, mean + panel * (size_t)act * P + lane,
                                               x + panel * xs + (size_t)obs * P + lane, P);
        }
    }
    opc_arena_rewind(&ppo->scratch, mark);
}

/* Fills ADVANTAGE and RETURN of all steps, trajectory by trajectory. `row` walks through the table
 * in the order copy_trajectories filled it, and skips the row of each last state. */
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

int opc_ppo_fill_table(struct ppo *ppo, const struct opc_feed *feed)
{
    int rows;
    const int steps = copy_trajectories(ppo, feed, &rows);
    evaluate_rows(ppo, rows);
    compute_advantages(ppo, feed);
    return steps;
}
