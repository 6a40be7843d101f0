/* SPDX-License-Identifier: MIT */
/* Proximal policy optimisation on the episodes of one epoch, as CleanRL and OpenAI's baselines do
 * it for continuous actions. With rho the probability of a recorded action now, by what it was when
 * it was chosen, A its advantage and R = A + V:
 *
 *     J_pi = mean max(-A rho, -A clip(rho, 1 - c, 1 + c)) - w_H entropy
 *     J_V  = 1/2 mean max((V - R)^2, (V_old + clip(V - V_old, -c', c') - R)^2)
 *
 * It differs from there in that
 * - an epoch ends with the end of an episode, which may be cut for it; and an episode that ran out
 *   of time, or was cut, is worth what the critic says about its last state;
 * - observations are scaled by the statistics from before the epoch, all along, so that the policy
 *   that acted is known exactly; only the first epoch, whose policy hardly looks at what it sees,
 *   is scaled by its own;
 * - actions are Gaussian in [-1, 1], whatever the task's range. */
#include "agent/ppo.h"

#include "agent/policy.h"
#include "num/adam.h"
#include "num/normal.h"

#include <math.h>
#include <string.h>

#define SELF struct opc_ppo_config
const struct opc_section opc_ppo_section = OPC_SECTION(
    "ppo", "proximal policy optimisation, another agent (train.agent = ppo)", OPC_PPO_FIELDS);
#undef SELF

enum { P = OPC_PANEL, CHUNK = 8, ROWS = CHUNK * P, WHICH_POLICY = 5, WHICH_CRITIC = 6 };

#define HALF_LOG_2PI 0.91893853320467274178

/* Columns of the table behind s and a. */
enum { LOGP, ADVANTAGE, RETURN, VALUE, MORE };

/* Mean and variance of all that was seen, as gym's wrappers keep them. */
struct seen {
    double count, mean, var;
};

struct tally { /* sums over rows */
    double actor_loss, critic_loss, kl, clipped;
};

struct ppo {
    struct opc_agent base;
    struct opc_ppo_config config;
    struct opc_mlp *policy, *critic; /* s to the means of a; s to V */
    float *log_std;                  /* [act] */
    struct opc_adam *policy_adam, *critic_adam, *std_adam;
    struct seen *obs_seen; /* [obs] */
    struct seen returns;   /* discounted, for the scale of rewards */

    int max, columns; /* steps of an improvement; obs + act + MORE */
    float *table;     /* [2 most][columns] scaled s, a and what is known of each; ends of paths
                       * have only s and VALUE */
    int *step;        /* [most] rows of the table that are steps */
    double *reward, *value, *advantage; /* [most + 1] of one path */

    /* one gradient step */
    float *batch; /* [panels][columns][16] */
    struct opc_tape *actor, *critic_tape;
    float *policy_grad, *critic_grad, *std_grad;
    double *by_std; /* [act] */
    struct opc_arena scratch;
};

/* ---- statistics ------------------------------------------------------------------------------ */

static void see(struct seen *s, double count, double mean, double var)
{
    const double gap = mean - s->mean, all = s->count + count;
    s->var = (s->var * s->count + var * count + gap * gap * s->count * count / all) / all;
    s->mean += gap * count / all;
    s->count = all;
}

static float scaled(const struct ppo *c, int k, float s)
{
    if (!c->config.normalize_obs)
        return s;
    const double max = c->config.clip_normalized;
    const double x = ((double)s - c->obs_seen[k].mean) / sqrt(c->obs_seen[k].var + 1e-8);
    return (float)fmin(fmax(x, -max), max);
}

static const float *record(const struct ppo *c, const struct opc_path *path, int t)
{
    return path->records + (size_t)t * (size_t)(c->base.obs + c->base.act + 2);
}

/* The states that were acted in. */
static void see_states(struct ppo *c, const struct opc_feed *feed)
{
    struct opc_path path;
    for (int k = 0; k < c->base.obs; k++) {
        double n = 0, sum = 0, squares = 0;
        for (uint64_t at = 0; feed->path(feed->ctx, &at, &path); n += path.steps)
            for (int t = 0; t < path.steps; t++)
                sum += (double)record(c, &path, t)[k];
        for (uint64_t at = 0; feed->path(feed->ctx, &at, &path);)
            for (int t = 0; t < path.steps; t++) {
                const double gap = (double)record(c, &path, t)[k] - sum / n;
                squares += gap * gap;
            }
        see(&c->obs_seen[k], n, sum / n, squares / n);
    }
}

/* Of one path, in time order: each is scaled by what was seen up to it. */
static void scale_rewards(struct ppo *c, int n, double *reward)
{
    const double max = c->config.clip_normalized;
    double sum = 0; /* the return so far, discounted backwards */
    for (int t = 0; t < n; t++) {
        sum = c->config.discount * sum + reward[t];
        see(&c->returns, 1, sum, 0);
        if (c->config.normalize_reward)
            reward[t] = fmin(fmax(reward[t] / sqrt(c->returns.var + 1e-8), -max), max);
    }
}

/* ---- what an epoch says ---------------------------------------------------------------------- */

void opc_advantages(int n, const double *reward, const double *value, bool terminal,
                    double discount, double lambda, double *advantage)
{
    double next = 0;
    for (int t = n - 1; t >= 0; t--) {
        const bool ends = t == n - 1 && terminal;
        const double delta = reward[t] + (ends ? 0 : discount * value[t + 1]) - value[t];
        next = delta + (t == n - 1 ? 0 : discount * lambda * next);
        advantage[t] = next;
    }
}

static double log_probability(const struct ppo *c, const float *mean, const float *a, size_t stride)
{
    double sum = 0;
    for (int k = 0; k < c->base.act; k++) {
        const double l = (double)c->log_std[k];
        const double z =
            ((double)a[(size_t)k * stride] - (double)mean[(size_t)k * stride]) / exp(l);
        sum -= 0.5 * z * z + l + HALF_LOG_2PI;
    }
    return sum;
}

/* VALUE and, where an action was chosen, LOGP of all rows. */
static void decide_rows(struct ppo *c, int rows)
{
    const int obs = c->base.obs, act = c->base.act;
    const size_t columns = (size_t)c->columns, xs = columns * P, mark = c->scratch.used;
    float *x = opc_floats(&c->scratch, columns, ROWS), *v = opc_floats(&c->scratch, 1, ROWS);
    float *mean = opc_floats(&c->scratch, (size_t)act, ROWS);
    for (int first = 0; first < rows; first += ROWS) {
        const int n = rows - first < ROWS ? rows - first : ROWS;
        float *row = c->table + (size_t)first * columns;
        opc_kernels()->gather(n, c->columns, row, columns, NULL, x, xs);
        opc_mlp_infer(c->critic, 0, opc_panels(n), x, xs, 1, v, P, &c->scratch);
        opc_mlp_infer(c->policy, 0, opc_panels(n), x, xs, act, mean, (size_t)act * P, &c->scratch);
        for (int i = 0; i < n; i++, row += columns) {
            const size_t panel = (size_t)(i / P), lane = (size_t)(i % P);
            row[obs + act + VALUE] = v[i];
            row[obs + act + LOGP] =
                (float)log_probability(c, mean + panel * (size_t)act * P + lane,
                                       x + panel * xs + (size_t)obs * P + lane, P);
        }
    }
    opc_arena_rewind(&c->scratch, mark);
}

/* All paths into the table; the number of steps, which are numbered in c->step. */
static int lay_out(struct ppo *c, const struct opc_feed *feed, int *rows)
{
    const int obs = c->base.obs, act = c->base.act;
    struct opc_path path;
    int steps = 0;
    *rows = 0;
    for (uint64_t at = 0; feed->path(feed->ctx, &at, &path);)
        for (int t = 0; t <= path.steps; t++) {
            const float *from = record(c, &path, t);
            float *row = c->table + (size_t)*rows * (size_t)c->columns;
            for (int k = 0; k < obs; k++)
                row[k] = scaled(c, k, from[k]);
            memcpy(row + obs, from + obs, (size_t)act * sizeof *row);
            if (t < path.steps)
                c->step[steps++] = *rows;
            (*rows)++;
        }
    return steps;
}

static void find_advantages(struct ppo *c, const struct opc_feed *feed)
{
    const int more = c->base.obs + c->base.act;
    struct opc_path path;
    float *row = c->table + more;
    for (uint64_t at = 0; feed->path(feed->ctx, &at, &path); row += c->columns) {
        for (int t = 0; t <= path.steps; t++) {
            c->reward[t] = (double)record(c, &path, t)[more];
            c->value[t] = (double)row[(size_t)t * (size_t)c->columns + VALUE];
        }
        scale_rewards(c, path.steps, c->reward);
        const bool terminal = record(c, &path, path.steps - 1)[more + 1] != 0;
        opc_advantages(path.steps, c->reward, c->value, terminal, c->config.discount,
                       c->config.gae_lambda, c->advantage);
        for (int t = 0; t < path.steps; t++, row += c->columns) {
            row[ADVANTAGE] = (float)c->advantage[t];
            row[RETURN] = (float)(c->advantage[t] + c->value[t]);
        }
    }
}

/* ---- one gradient step ----------------------------------------------------------------------- */

static float *column(const struct ppo *c, int row, int k)
{
    return c->batch + (size_t)(row / P) * (size_t)c->columns * P + (size_t)(k * P + row % P);
}

/* To mean 0 and deviation 1 (of the sample, as PyTorch's). */
static void even_out_advantages(const struct ppo *c, int n)
{
    const int k = c->base.obs + c->base.act + ADVANTAGE;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += (double)*column(c, i, k);
    for (int i = 0; i < n; i++) {
        const double gap = (double)*column(c, i, k) - sum / n;
        squares += gap * gap;
    }
    const double std = n > 1 ? sqrt(squares / (n - 1)) : 0;
    for (int i = 0; i < n; i++)
        *column(c, i, k) = (float)(((double)*column(c, i, k) - sum / n) / (std + 1e-8));
}

/* J_pi by the policy's means and deviations. */
static void policy_gradient(struct ppo *c, int n, struct tally *sum)
{
    const int obs = c->base.obs, act = c->base.act, last = c->policy->shape.layers - 1;
    const double clip = c->config.clip_range;
    memset(c->by_std, 0, (size_t)act * sizeof *c->by_std);
    for (int i = 0; i < opc_panels(n) * P; i++) {
        const size_t at = (size_t)(i / P * act) * P + (size_t)(i % P);
        const float *mean = c->actor->y[last] + at;
        float *by_mean = c->actor->dy[last] + at;
        for (int k = 0; k < act; k++)
            by_mean[k * P] = 0;
        if (i >= n)
            continue;
        const float *a = column(c, i, obs);
        const double old = (double)*column(c, i, obs + act + LOGP);
        const double gain = (double)*column(c, i, obs + act + ADVANTAGE);
        const double change = log_probability(c, mean, a, P) - old, rho = exp(change);
        const double held = fmin(fmax(rho, 1 - clip), 1 + clip);
        sum->actor_loss += fmax(-gain * rho, -gain * held);
        sum->kl += rho - 1 - change;
        sum->clipped += fabs(rho - 1) > clip;
        if (-gain * rho < -gain * held)
            continue;
        for (int k = 0; k < act; k++) {
            const double std = exp((double)c->log_std[k]);
            const double z = ((double)a[k * P] - (double)mean[k * P]) / std;
            by_mean[k * P] = (float)(-gain * rho * z / std / n);
            c->by_std[k] += -gain * rho * (z * z - 1) / n;
        }
    }
    for (int k = 0; k < act; k++)
        c->std_grad[k] = (float)(c->by_std[k] - c->config.ent_coef);
}

/* value_weight J_V by the values. */
static void value_gradient(struct ppo *c, int n, struct tally *sum)
{
    const int more = c->base.obs + c->base.act, last = c->critic->shape.layers - 1;
    const double clip = c->config.clip_range_vf, weight = c->config.vf_coef;
    for (int i = 0; i < opc_panels(n) * P; i++) {
        float *by_value = c->critic_tape->dy[last] + i;
        *by_value = 0;
        if (i >= n)
            continue;
        const double v = (double)c->critic_tape->y[last][i],
                     old = (double)*column(c, i, more + VALUE);
        const double gap = v - (double)*column(c, i, more + RETURN);
        const double moved = clip > 0 ? fmin(fmax(v - old, -clip), clip) : v - old;
        const double held = old + moved - (double)*column(c, i, more + RETURN);
        const bool free = clip == 0 || gap * gap >= held * held;
        sum->critic_loss += 0.5 * (free ? gap * gap : held * held);
        if (free || fabs(v - old) < clip)
            *by_value = (float)(weight * (free ? gap : held) / n);
    }
}

static void differentiate(const struct opc_mlp *net, int rows, struct opc_tape *tape, float *grad)
{
    const int panels = opc_panels(rows);
    opc_mlp_backward_part(net, 0, 0, panels, tape);
    for (int l = 0; l < net->shape.layers; l++) {
        opc_mlp_transpose_part(net, l, 0, panels, panels, tape, tape->transposed);
        opc_mlp_gradient_part(net, l, 0, net->layer[l].out, rows, tape, tape->transposed, grad);
    }
}

static double squares_of(size_t n, const float *x)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static void clip_grad_norm(struct ppo *c)
{
    const struct {
        float *at;
        size_t n;
    } part[] = {{c->policy_grad, c->policy->each},
                {c->critic_grad, c->critic->each},
                {c->std_grad, (size_t)c->base.act}};
    double squares = 0;
    for (int i = 0; i < 3; i++)
        squares += squares_of(part[i].n, part[i].at);
    const double factor = c->config.max_grad_norm / (sqrt(squares) + 1e-6);
    if (c->config.max_grad_norm == 0 || factor >= 1)
        return;
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < part[i].n; k++)
            part[i].at[k] *= (float)factor;
}

static void update(struct ppo *c, int n, const int *rows, struct tally *sum)
{
    const size_t columns = (size_t)c->columns;
    opc_kernels()->gather(n, c->columns, c->table, columns, rows, c->batch, columns * P);
    even_out_advantages(c, n);
    opc_mlp_forward_part(c->policy, 0, 0, opc_panels(n), c->actor);
    opc_mlp_forward_part(c->critic, 0, 0, opc_panels(n), c->critic_tape);
    policy_gradient(c, n, sum);
    value_gradient(c, n, sum);
    differentiate(c->policy, n, c->actor, c->policy_grad);
    differentiate(c->critic, n, c->critic_tape, c->critic_grad);
    clip_grad_norm(c);
    opc_adam_step(c->policy_adam, 0.0, c->policy_grad, c->policy->param);
    opc_adam_step(c->critic_adam, 0.0, c->critic_grad, c->critic->param);
    opc_adam_step(c->std_adam, 0.0, c->std_grad, c->log_std);
}

/* ---- improve --------------------------------------------------------------------------------- */

static void shuffle(int n, int *rows, struct opc_rng *rng)
{
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)opc_rng_below(rng, (uint32_t)i + 1), row = rows[i];
        rows[i] = rows[k];
        rows[k] = row;
    }
}

static void report_on(const struct ppo *c, int steps, int updates, const struct tally *sum,
                      struct opc_agent_report *out)
{
    const int more = c->base.obs + c->base.act;
    const double rows = (double)steps * c->config.update_epochs;
    double *v = out->value;
    *out = (struct opc_agent_report){.updates = updates};
    v[OPC_PPO_CRITIC_LOSS] = sum->critic_loss / rows;
    v[OPC_PPO_ACTOR_LOSS] = sum->actor_loss / rows;
    v[OPC_PPO_KL] = sum->kl / rows;
    v[OPC_PPO_CLIPPED] = sum->clipped / rows;
    v[OPC_PPO_TARGET_MIN] = INFINITY;
    v[OPC_PPO_TARGET_MAX] = -INFINITY;
    for (int i = 0; i < steps; i++) {
        const float *row = c->table + (size_t)c->step[i] * (size_t)c->columns + more;
        const double target = (double)row[RETURN];
        v[OPC_PPO_TARGET_MIN] = fmin(v[OPC_PPO_TARGET_MIN], target);
        v[OPC_PPO_TARGET_MAX] = fmax(v[OPC_PPO_TARGET_MAX], target);
        v[OPC_PPO_Q] += (double)row[VALUE] / steps;
        v[OPC_PPO_Q_TARGET] += target / steps;
    }
    for (int k = 0; k < c->base.act; k++)
        v[OPC_PPO_ENTROPY] += (double)c->log_std[k] + HALF_LOG_2PI + 0.5;
}

static uint64_t count_steps(const struct opc_feed *feed)
{
    struct opc_path path;
    uint64_t n = 0;
    for (uint64_t at = 0; feed->path(feed->ctx, &at, &path);)
        n += (uint64_t)path.steps;
    return n;
}

static bool asked_to_stop(const struct opc_feed *feed, int made)
{
    return made % 64 == 0 && feed->stop && feed->stop(feed->stop_ctx);
}

static int improve(struct opc_agent *a, const struct opc_feed *feed, int updates,
                   struct opc_agent_report *report, struct opc_err *err)
{
    (void)updates; /* follow from the number of steps */
    struct ppo *c = (struct ppo *)a;
    const bool first = c->policy_adam->steps == 0;
    const uint64_t there = count_steps(feed);
    if (there == 0 || there > (uint64_t)c->max)
        return opc_fail(err, OPC_EBUG, "%llu steps to learn from, where 1 to %d are possible",
                        (unsigned long long)there, c->max);
    const double rate = c->config.learning_rate * (c->config.anneal_lr ? 1 - feed->done : 1);
    struct tally sum = {0};
    int rows, made = 0;
    if (first)
        see_states(c, feed);
    const int steps = lay_out(c, feed, &rows);
    decide_rows(c, rows);
    find_advantages(c, feed);
    c->policy_adam->config.learning_rate = c->critic_adam->config.learning_rate =
        c->std_adam->config.learning_rate = rate;
    for (int pass = 0; pass < c->config.update_epochs; pass++) {
        struct opc_rng rng = opc_rng_stream(feed->seed, OPC_USE_BATCH, feed->epoch, (uint32_t)pass);
        shuffle(steps, c->step, &rng);
        for (int from = 0; from < steps; from += c->config.batch_size) {
            update(c, steps - from < c->config.batch_size ? steps - from : c->config.batch_size,
                   c->step + from, &sum);
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
    if (!first)
        see_states(c, feed);
    report_on(c, steps, made, &sum, report);
    return OPC_OK;
}

/* ---- act ------------------------------------------------------------------------------------- */

/* rng NULL: the mode. */
static void act_some(struct ppo *c, int n, const float *state, float spread, struct opc_rng *rng,
                     float *action)
{
    const int obs = c->base.obs, act = c->base.act;
    const size_t mark = c->scratch.used;
    float *x = opc_floats(&c->scratch, (size_t)obs, ROWS);
    float *mean = opc_floats(&c->scratch, (size_t)act, ROWS);
    float *eps = opc_floats(&c->scratch, (size_t)act, ROWS);
    for (int i = 0; i < opc_panels(n) * P; i++)
        for (int k = 0; k < obs; k++)
            x[(size_t)(i / P * obs + k) * P + (size_t)(i % P)] =
                i < n ? scaled(c, k, state[i * obs + k]) : 0;
    opc_mlp_infer(c->policy, 0, opc_panels(n), x, (size_t)obs * P, act, mean, (size_t)act * P,
                  &c->scratch);
    if (rng)
        opc_rng_normals_rows(rng, n, act, eps);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < act; k++) {
            const size_t at = (size_t)(i / P * act + k) * P + (size_t)(i % P);
            action[i * act + k] = mean[at];
            if (rng)
                action[i * act + k] += spread * expf(c->log_std[k]) * eps[at];
        }
    opc_arena_rewind(&c->scratch, mark);
}

static void act_spread(const struct opc_agent *a, int n, const float *state, float spread,
                       struct opc_rng *rng, float *action)
{
    struct ppo *c = (struct ppo *)a; /* its scratch */
    for (int i = 0; i < n; i += ROWS)
        act_some(c, n - i < ROWS ? n - i : ROWS, state + (size_t)i * (size_t)c->base.obs, spread,
                 rng ? rng + i : NULL, action + (size_t)i * (size_t)c->base.act);
}

static void act(const struct opc_agent *a, int n, const float *state, bool explore,
                struct opc_rng *rng, float *action)
{
    act_spread(a, n, state, 1, explore ? rng : NULL, action);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void destroy(struct opc_agent *a)
{
    struct ppo *c = (struct ppo *)a;
    opc_mlp_destroy(c->policy);
    opc_mlp_destroy(c->critic);
    opc_adam_destroy(c->policy_adam);
    opc_adam_destroy(c->critic_adam);
    opc_adam_destroy(c->std_adam);
    opc_tape_destroy(c->actor);
    opc_tape_destroy(c->critic_tape);
    opc_arena_destroy(&c->scratch);
    opc_free(c->log_std);
    opc_free(c->obs_seen);
    opc_free(c->table);
    opc_free(c->step);
    opc_free(c->reward);
    opc_free(c->value);
    opc_free(c->advantage);
    opc_free(c->batch);
    opc_free(c->policy_grad);
    opc_free(c->critic_grad);
    opc_free(c->std_grad);
    opc_free(c->by_std);
    opc_free(c);
}

static int state(struct opc_agent *a,
                 int (*visit)(void *, const char *, void *, size_t, struct opc_err *), void *ctx,
                 struct opc_err *err)
{
    struct ppo *c = (struct ppo *)a;
    const size_t policy = c->policy->each * sizeof(float), critic = c->critic->each * sizeof(float);
    const size_t std = (size_t)c->base.act * sizeof(float);
    const struct opc_state_part part[] = {
        {"ppo.policy", c->policy->param, policy},
        {"ppo.policy.m", c->policy_adam->m, policy},
        {"ppo.policy.v", c->policy_adam->v, policy},
        {"ppo.policy.steps", &c->policy_adam->steps, sizeof(long)},
        {"ppo.critic", c->critic->param, critic},
        {"ppo.critic.m", c->critic_adam->m, critic},
        {"ppo.critic.v", c->critic_adam->v, critic},
        {"ppo.critic.steps", &c->critic_adam->steps, sizeof(long)},
        {"ppo.std", c->log_std, std},
        {"ppo.std.m", c->std_adam->m, std},
        {"ppo.std.v", c->std_adam->v, std},
        {"ppo.std.steps", &c->std_adam->steps, sizeof(long)},
        {"ppo.obs", c->obs_seen, (size_t)c->base.obs * sizeof *c->obs_seen},
        {"ppo.returns", &c->returns, sizeof c->returns},
    };
    return opc_visit_parts(part, sizeof part / sizeof *part, visit, ctx, err);
}

static int make_network(const struct ppo *c, const struct opc_ints *hidden, int out, double gain,
                        uint64_t seed, uint32_t which, struct opc_mlp **net, struct opc_tape **tape,
                        struct opc_err *err)
{
    struct opc_mlp_shape shape;
    int code = opc_shape_from(1, c->base.obs, hidden->at, hidden->n, out, OPC_ACTIVATION_TANH,
                              &shape, err);
    if (!code)
        code = opc_mlp_create(&shape, net, err);
    if (!code)
        code = opc_mlp_init_orthogonal(*net, sqrt(2), gain, seed, which, err);
    if (!code)
        code = opc_tape_create(*net, c->config.batch_size, tape, err);
    if (!code) {
        (*tape)->x = c->batch;
        (*tape)->xs = (size_t)c->columns * P;
    }
    return code;
}

static int make_networks(struct ppo *c, uint64_t seed, struct opc_err *err)
{
    const struct opc_adam_config rates = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-5, .torch = true};
    const size_t act = (size_t)c->base.act;
    int code = make_network(c, &c->config.policy_hidden, c->base.act, 0.01, seed, WHICH_POLICY,
                            &c->policy, &c->actor, err);
    if (!code)
        code = make_network(c, &c->config.critic_hidden, 1, 1, seed, WHICH_CRITIC, &c->critic,
                            &c->critic_tape, err);
    if (!code)
        code = opc_adam_create(c->policy->each, rates, &c->policy_adam, err);
    if (!code)
        code = opc_adam_create(c->critic->each, rates, &c->critic_adam, err);
    if (!code)
        code = opc_adam_create(act, rates, &c->std_adam, err);
    if (code)
        return code;
    c->policy_grad = opc_alloc(c->policy->each, sizeof(float));
    c->critic_grad = opc_alloc(c->critic->each, sizeof(float));
    if (!c->policy_grad || !c->critic_grad)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent's gradients");
    const size_t a = opc_mlp_infer_need(c->policy, CHUNK), b = opc_mlp_infer_need(c->critic, CHUNK);
    const size_t wide = ROWS * sizeof(float);
    return opc_arena_create(opc_arena_need((size_t)c->columns, wide) + opc_arena_need(1, wide) +
                                2 * opc_arena_need(act, wide) + (a > b ? a : b),
                            &c->scratch, err);
}

static int make_table(struct ppo *c, struct opc_err *err)
{
    const size_t max = (size_t)c->max, columns = (size_t)c->columns, act = (size_t)c->base.act;
    c->table = opc_alloc(2 * max, columns * sizeof(float));
    c->step = opc_alloc(max, sizeof *c->step);
    c->reward = opc_alloc(max + 1, sizeof *c->reward);
    c->value = opc_alloc(max + 1, sizeof *c->value);
    c->advantage = opc_alloc(max, sizeof *c->advantage);
    c->batch = opc_alloc((size_t)opc_panels(c->config.batch_size) * P, columns * sizeof(float));
    c->log_std = opc_alloc(act, sizeof *c->log_std);
    c->std_grad = opc_alloc(act, sizeof *c->std_grad);
    c->by_std = opc_alloc(act, sizeof *c->by_std);
    c->obs_seen = opc_alloc((size_t)c->base.obs, sizeof *c->obs_seen);
    if (!c->table || !c->step || !c->reward || !c->value || !c->advantage || !c->batch ||
        !c->log_std || !c->std_grad || !c->by_std || !c->obs_seen)
        return opc_fail(
            err, OPC_ENOMEM,
            "not enough memory to learn from %d steps at once; lower train.steps_per_epoch",
            c->max);
    for (size_t k = 0; k < act; k++)
        c->log_std[k] = (float)c->config.log_std_init;
    c->returns = (struct seen){.count = 1e-4, .var = 1};
    for (int k = 0; k < c->base.obs; k++)
        c->obs_seen[k] = c->returns;
    return OPC_OK;
}

static int create(const struct opc_agent_args *args, struct opc_agent **out, struct opc_err *err)
{
    struct ppo *c = opc_alloc(1, sizeof *c);
    if (!c)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    c->base = (struct opc_agent){.type = &opc_ppo_type, .obs = args->obs, .act = args->act};
    int code = OPC_OK;
    if (args->config)
        c->config = *(const struct opc_ppo_config *)args->config;
    else
        code = opc_section_defaults(&opc_ppo_section, &c->config, err);
    c->max = args->steps;
    c->columns = args->obs + args->act + MORE;
    if (!code)
        code = make_table(c, err);
    if (!code)
        code = make_networks(c, args->seed, err);
    if (code) {
        destroy(&c->base);
        return code;
    }
    *out = &c->base;
    return OPC_OK;
}

/* Its learning rate falls to 0 at the end of train.epochs. */
static bool knows_its_end(const void *config)
{
    return ((const struct opc_ppo_config *)config)->anneal_lr;
}

/* The table of an epoch, where paths of one step have two rows. */
static size_t bytes(int steps, int obs, int act_size)
{
    return (size_t)steps * (2 * (size_t)(obs + act_size + MORE) * sizeof(float) + 32);
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
    .needs = OPC_NEEDS_TRAJECTORIES,
    .settings = &opc_ppo_section,
    .columns = COLUMNS,
    .knows_its_end = knows_its_end,
    .bytes = bytes,
    .create = create,
    .act = act,
    .improve = improve,
    .destroy = destroy,
    .state = state,
    .act_spread = act_spread,
};
