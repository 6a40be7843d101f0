/* SPDX-License-Identifier: MIT */
/* STEVE against a second, plain implementation in double, whose gradients are differences of the
 * losses; targets and weights with known answers; the toy chain of its paper; and what it learns.
 * Networks are read, and set, through the agent's own `state`. */
#include "agent/steve.h"

#include "num/network.h"
#include "test_net.h"

enum { OBS = 3, ACT = 2, IN = OBS + ACT, COLUMNS = 2 * OBS + ACT + 2, RECORDED = 500 };
enum { POLICY, CRITIC, TRANSITION, REWARD, TERMINATION, KINDS };
static const char *const NAME[KINDS] = {"policy", "critic", "transition", "reward", "termination"};

/* ---- an agent and the steps it learns from --------------------------------------------------- */

struct play {
    struct opc_steve_config config;
    struct opc_agent *agent;
    struct opc_pool *pool;
    struct parts parts;
    struct opc_mlp *net[KINDS]; /* only for their layout */
    int obs, act;
    float records[RECORDED * COLUMNS];
    struct opc_feed feed;
};

static void draw(void *ctx, int n, struct opc_rng *rng, const float **step)
{
    const struct play *p = ctx;
    for (int i = 0; i < n; i++)
        step[i] = p->records + any_below(rng, RECORDED) * (2 * p->obs + p->act + 2);
}

static struct opc_steve_config defaults(void)
{
    struct opc_steve_config config;
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_steve_section, &config, &err), &err);
    config.policy_hidden = (struct opc_ints){1, {5}};
    config.critic_hidden = (struct opc_ints){2, {4, 3}};
    config.transition_hidden = (struct opc_ints){2, {6, 5}};
    config.reward_hidden = (struct opc_ints){1, {4}};
    config.termination_hidden = (struct opc_ints){1, {3}};
    config.critic_members = 2;
    config.transition_members = 3;
    config.reward_members = 2;
    config.batch_size = 37; /* more than two panels, the last of them short */
    config.horizon = 2;
    config.pretrain_updates = 0;
    return config;
}

static struct play *play_of(const struct opc_steve_config *config, int obs, int act, int threads)
{
    struct play *p = calloc(1, sizeof *p);
    struct opc_err err = {0};
    assert_non_null(p);
    p->config = *config;
    p->obs = obs;
    p->act = act;
    p->pool = threads ? pool_of(threads) : NULL;
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = obs,
                                        .act = act,
                                        .seed = 3,
                                        .config = &p->config,
                                        .pool = p->pool};
    assert_ok(opc_agent_create("steve", &args, &p->agent, &err), &err);
    assert_ok(p->agent->type->state(p->agent, note_part, &p->parts, &err), &err);
    const enum opc_activation relu = OPC_ACTIVATION_RELU;
    p->net[POLICY] = layout_of(1, obs, &config->policy_hidden, act, relu);
    p->net[CRITIC] = layout_of(config->critic_members, obs + act, &config->critic_hidden, 1, relu);
    p->net[TRANSITION] =
        layout_of(config->transition_members, obs + act, &config->transition_hidden, obs, relu);
    p->net[REWARD] =
        layout_of(config->reward_members, 2 * obs + act, &config->reward_hidden, 1, relu);
    p->net[TERMINATION] =
        layout_of(config->transition_members, 2 * obs + act, &config->termination_hidden, 1, relu);
    p->feed = (struct opc_feed){OPC_SIZED(struct opc_feed), .draw = draw, .ctx = p, .seed = 3,
                                .epoch = 1};
    struct opc_rng r = test_stream(1);
    for (int i = 0; i < RECORDED; i++) {
        float *step = p->records + i * (2 * obs + act + 2);
        for (int k = 0; k < 2 * obs + act + 2; k++)
            step[k] = any_float(&r);
        step[obs + act + 1] = i % 5 == 0 ? 1.0f : 0.0f;
    }
    return p;
}

static void play_close(struct play *p)
{
    opc_agent_destroy(p->agent);
    opc_pool_destroy(p->pool);
    for (int k = 0; k < KINDS; k++)
        opc_mlp_destroy(p->net[k]);
    free(p);
}

/* A block of the state: steve.NAME and what follows it, "" for the parameters. */
static float *block_of(const struct play *p, int kind, const char *tail)
{
    char name[40];
    snprintf(name, sizeof name, "steve.%s%s", NAME[kind], tail);
    return part_of(&p->parts, name);
}

static struct opc_agent_report improve(struct play *p, int updates)
{
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    assert_ok(opc_agent_improve(p->agent, &p->feed, updates, &report, &err), &err);
    assert_int_equal(report.updates, updates);
    p->feed.first += (uint32_t)updates;
    return report;
}

/* Weights and biases of any size, so that no member, and no copy, is like another. */
static void scatter_parameters(struct play *p)
{
    struct opc_rng r = test_stream(2);
    for (int k = 0; k < KINDS; k++)
        for (int copy = 0; copy < 2; copy++) {
            float *param = block_of(p, k, copy ? ".copy" : "");
            const size_t n = plain_count(&p->net[k]->shape);
            for (int m = 0; m < p->net[k]->shape.members; m++)
                for (size_t i = 0; i < n; i++)
                    param[(size_t)m * p->net[k]->each + plain_place(p->net[k], i)] =
                        0.7f * any_float(&r);
        }
}

/* ---- the same once more ---------------------------------------------------------------------- */

struct plain {
    const struct play *p;
    double *theta[KINDS], *copy[KINDS], *m[KINDS], *v[KINDS];
    long steps[KINDS];
    const float *model_step[64], *policy_step[64];
    int member[KINDS][64];
    double target[64], td_weight, model_steps;
    double kink; /* how near a sum came to the kink of ReLU, where differences are wrong */
};

static struct plain *plain_open(const struct play *p)
{
    struct plain *q = calloc(1, sizeof *q);
    assert_non_null(q);
    q->p = p;
    q->kink = 1;
    for (int k = 0; k < KINDS; k++) {
        const size_t n = plain_count(&p->net[k]->shape) * (size_t)p->net[k]->shape.members;
        q->theta[k] = plain_get(p->net[k], block_of(p, k, ""));
        q->copy[k] = plain_get(p->net[k], block_of(p, k, ".copy"));
        q->m[k] = doubles_of(n);
        q->v[k] = doubles_of(n);
    }
    return q;
}

static void plain_close(struct plain *q)
{
    for (int k = 0; k < KINDS; k++) {
        free(q->theta[k]);
        free(q->copy[k]);
        free(q->m[k]);
        free(q->v[k]);
    }
    free(q);
}

/* One member of one ensemble at one row. */
static void plain_row(struct plain *q, int kind, int member, bool copy, const double *x, double *y)
{
    const struct opc_mlp_shape *shape = &q->p->net[kind]->shape;
    const double *theta = copy ? q->copy[kind] : q->theta[kind];
    net_row(shape, theta + (size_t)member * plain_count(shape), x, y, copy ? NULL : &q->kink);
}

static void plain_act(struct plain *q, const double *s, double *pre, double *a)
{
    plain_row(q, POLICY, 0, false, s, pre);
    for (int k = 0; k < ACT; k++)
        a[k] = tanh(pre[k]);
}

/* Every candidate of every horizon by its definition, each with its own rollout. */
static double plain_candidate(struct plain *q, const float *step, int i, int mu, int nu, int la)
{
    const struct opc_steve_config *c = &q->p->config;
    double x[OBS], u[ACT], pre[ACT], sum = c->reward_scale * (double)step[IN];
    double alive = 1 - (double)step[IN + 1];
    for (int k = 0; k < OBS; k++)
        x[k] = (double)step[IN + 2 + k];
    plain_act(q, x, pre, u);
    for (int k = 1; k <= i; k++) {
        double sa[IN], moved[OBS], all[OBS + IN], r, end;
        memcpy(sa, x, sizeof x);
        memcpy(sa + OBS, u, sizeof u);
        memcpy(all + OBS, sa, sizeof sa);
        plain_row(q, TRANSITION, mu, true, sa, moved);
        for (int d = 0; d < OBS; d++)
            all[d] = x[d] += moved[d];
        plain_row(q, REWARD, nu, true, all, &r);
        plain_row(q, TERMINATION, mu, true, all, &end);
        sum += pow(c->discount, k) * alive * r;
        alive *= 1 - 1 / (1 + exp(-end));
        plain_act(q, x, pre, u);
    }
    double sa[IN], value;
    memcpy(sa, x, sizeof x);
    memcpy(sa + OBS, u, sizeof u);
    plain_row(q, CRITIC, la, true, sa, &value);
    return sum + pow(c->discount, i + 1) * alive * value;
}

static double plain_target(struct plain *q, const float *step)
{
    const struct opc_steve_config *c = &q->p->config;
    const int n = c->transition_members * c->reward_members * c->critic_members;
    double mean[8] = {0}, weight[8] = {0}, all = 0, target = 0;
    for (int i = 0; i <= c->horizon; i++) {
        double squares = 0;
        for (int j = 0; j < n; j++) {
            const double T =
                plain_candidate(q, step, i, j / c->critic_members / c->reward_members,
                                j / c->critic_members % c->reward_members, j % c->critic_members);
            mean[i] += T / n;
            squares += T * T / n;
        }
        weight[i] = 1 / (squares - mean[i] * mean[i] + 1e-8);
        all += weight[i];
    }
    for (int i = 0; i <= c->horizon; i++) {
        target += weight[i] / all * mean[i];
        q->model_steps += i * weight[i] / all / c->batch_size;
    }
    q->td_weight += weight[0] / all / c->batch_size;
    return target;
}

/* The loss of one ensemble on the rows it has been dealt, without the penalty. */
static double plain_loss(struct plain *q, int kind)
{
    const struct opc_steve_config *c = &q->p->config;
    double sum = 0;
    for (int j = 0; j < c->batch_size; j++) {
        const float *step = kind <= CRITIC ? q->policy_step[j] : q->model_step[j];
        double x[OBS + IN], y[OBS], s[OBS], a[ACT];
        for (int k = 0; k < OBS; k++) {
            s[k] = (double)step[k];
            x[k] = (double)step[IN + 2 + k];
        }
        for (int k = 0; k < IN; k++)
            x[OBS + k] = (double)step[k]; /* s', s, a; (s, a) from OBS on */
        if (kind == POLICY) {
            plain_act(q, s, y, a);
            memcpy(x + OBS + OBS, a, sizeof a);
            for (int k = 0; k < ACT; k++)
                sum += c->action_penalty * y[k] * y[k] / ACT;
            for (int l = 0; l < c->critic_members; l++) {
                plain_row(q, CRITIC, l, false, x + OBS, y);
                sum -= y[0] / c->critic_members;
            }
            continue;
        }
        plain_row(q, kind, q->member[kind][j], false, kind <= TRANSITION ? x + OBS : x, y);
        if (kind == CRITIC)
            sum += 0.5 * pow(y[0] - q->target[j], 2);
        else if (kind == REWARD)
            sum += 0.5 * pow(y[0] - c->reward_scale * (double)step[IN], 2);
        else if (kind == TERMINATION)
            sum -= step[IN + 1] != 0 ? log(1 / (1 + exp(-y[0]))) : log(1 - 1 / (1 + exp(-y[0])));
        else
            for (int k = 0; k < OBS; k++)
                sum += 0.5 * pow(s[k] + y[k] - x[k], 2);
    }
    return sum / c->batch_size;
}

/* Gradients of all losses by differences, from one set of parameters, then Adam. loss[KINDS]. */
static void plain_update(struct plain *q, double *loss)
{
    const struct play *p = q->p;
    const int first = (int)p->feed.first;
    double *grad[KINDS];
    struct opc_rng pick = opc_rng_stream(3, OPC_USE_BATCH, 1, (uint32_t)first);
    struct opc_rng deal = opc_rng_stream(3, OPC_USE_UPDATE, 1, (uint32_t)first);
    draw((void *)p, p->config.batch_size, &pick, q->model_step);
    draw((void *)p, p->config.batch_size, &pick, q->policy_step);
    static const int ORDER[] = {TRANSITION, REWARD, TERMINATION, CRITIC};
    for (int o = 0; o < 4; o++)
        for (int j = 0; j < p->config.batch_size; j++)
            q->member[ORDER[o]][j] = any_below(&deal, p->net[ORDER[o]]->shape.members);
    q->td_weight = q->model_steps = 0;
    for (int j = 0; j < p->config.batch_size; j++)
        q->target[j] = plain_target(q, q->policy_step[j]);
    for (int k = 0; k < KINDS; k++) {
        const size_t n = plain_count(&p->net[k]->shape) * (size_t)p->net[k]->shape.members;
        const double h = 1e-6;
        grad[k] = doubles_of(n);
        loss[k] = plain_loss(q, k);
        for (size_t i = 0; i < n; i++) {
            const double theta = q->theta[k][i];
            q->theta[k][i] = theta + h;
            const double up = plain_loss(q, k);
            q->theta[k][i] = theta - h;
            grad[k][i] = (up - plain_loss(q, k)) / (2 * h);
            q->theta[k][i] = theta;
            if (k >= TRANSITION)
                grad[k][i] += p->config.weight_decay * theta;
        }
    }
    for (int k = 0; k < KINDS; k++) {
        const size_t n = plain_count(&p->net[k]->shape) * (size_t)p->net[k]->shape.members;
        const double t = (double)++q->steps[k];
        const double rate = p->config.learning_rate * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t));
        for (size_t i = 0; i < n; i++) {
            q->m[k][i] = 0.9 * q->m[k][i] + 0.1 * grad[k][i];
            q->v[k][i] = 0.999 * q->v[k][i] + 0.001 * grad[k][i] * grad[k][i];
            q->theta[k][i] -= rate * q->m[k][i] / (sqrt(q->v[k][i]) + 1e-8);
        }
        free(grad[k]);
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* After the first update Adam's first moment is a tenth of the gradient; after three, all
 * parameters have moved as those of the plain implementation. */
static void updates_are_those_of_a_plain_implementation(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct opc_steve_config config = defaults();
        config.learning_rate = 1e-3;
        config.action_penalty = which == 1 ? 0.3 : 1e-3;
        config.weight_decay = which == 1 ? 0.1 : 1e-4;
        config.reward_scale = which == 2 ? 3 : 1;
        config.horizon = which == 2 ? 3 : 2;
        struct play *p = play_of(&config, OBS, ACT, 0);
        scatter_parameters(p);
        struct plain *q = plain_open(p);
        for (int update = 0; update < 3; update++) {
            double loss[KINDS], target = 0;
            plain_update(q, loss);
            const struct opc_agent_report r = improve(p, 1);
            assert_true(q->kink > 3e-6); /* else choose other numbers */
            for (int k = 0; k < KINDS; k++) {
                const size_t n = plain_count(&p->net[k]->shape) * (size_t)p->net[k]->shape.members;
                double *m = plain_get(p->net[k], block_of(p, k, ".m"));
                double *theta = plain_get(p->net[k], block_of(p, k, ""));
                assert_doubles_near(m, q->m[k], n, 2e-6);
                assert_doubles_near(theta, q->theta[k], n, 2e-5);
                free(m);
                free(theta);
            }
            for (int j = 0; j < config.batch_size; j++)
                target += q->target[j] / config.batch_size;
            assert_near(r.value[OPC_STEVE_Q_TARGET], target, 1e-5);
            assert_near(r.value[OPC_STEVE_TD_WEIGHT], q->td_weight, 1e-4);
            assert_near(r.value[OPC_STEVE_MODEL_STEPS], q->model_steps, 1e-4);
            assert_near(r.value[OPC_STEVE_CRITIC_LOSS], loss[CRITIC], 1e-5);
            assert_near(r.value[OPC_STEVE_ACTOR_LOSS], loss[POLICY], 1e-5);
            assert_near(r.value[OPC_STEVE_TRANSITION_LOSS], loss[TRANSITION], 1e-5);
            assert_near(r.value[OPC_STEVE_REWARD_LOSS], loss[REWARD], 1e-5);
            assert_near(r.value[OPC_STEVE_TERMINATION_LOSS], loss[TERMINATION], 1e-5);
        }
        plain_close(q);
        play_close(p);
    }
}

/* Glorot's for the policy and half of that for ensembles, biases 0. */
static void first_weights_are_as_published(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    config.policy_hidden = config.critic_hidden = config.transition_hidden =
        (struct opc_ints){2, {40, 40}};
    struct play *p = play_of(&config, OBS, ACT, 0);
    for (int k = POLICY; k <= TRANSITION; k++)
        for (int m = 0; m < p->net[k]->shape.members; m++) {
            const struct opc_layer *layer = &p->net[k]->layer[1]; /* 40 x 40 */
            const float *param = block_of(p, k, "") + (size_t)m * p->net[k]->each;
            const double limit = sqrt(6.0 / 80) / (k == POLICY ? 1 : 2);
            double max = 0;
            for (int o = 0; o < layer->out; o++) {
                for (int i = 0; i < layer->in; i++)
                    max =
                        fmax(max, fabs((double)param[layer->weight + (size_t)(o * layer->ld + i)]));
                assert_true(param[layer->bias + (size_t)o] == 0);
            }
            assert_true(max <= limit * (1 + 1e-6) && max > 0.98 * limit);
        }
    play_close(p);
}

/* ---- weights --------------------------------------------------------------------------------- */

static void weights_are_the_inverse_variances(void **state)
{
    (void)state;
    const double T[3][4] = {{10, 12, 11, 13}, {9, 9.5, 10, 10.5}, {12, 18, 6, 15}};
    const double want[3] = {0.1974922, 0.7899686, 0.0125392};
    double w[3], scratch[18];
    assert_near(opc_steve_weigh(3, 4, T[0], OPC_STEVE_VARIANCE, w, scratch), 10.1332288, 1e-7);
    assert_doubles_near(w, want, 3, 1e-7);
    /* Equal variances: the plain mean. */
    const double same[3][2] = {{1, 3}, {5, 7}, {0, 2}};
    assert_near(opc_steve_weigh(3, 2, same[0], OPC_STEVE_VARIANCE, w, scratch), 3, 1e-12);
    for (int i = 0; i < 3; i++)
        assert_near(w[i], 1.0 / 3, 1e-12);
    /* One variance of 0: 1 / (1 + sum over the others of 1e-8 / var). */
    const double sure[3][2] = {{1, 3}, {5, 5}, {0, 4}};
    assert_near(opc_steve_weigh(3, 2, sure[0], OPC_STEVE_VARIANCE, w, scratch), 5, 1e-6);
    assert_near(w[1], 1 / (1 + 1e-8 / 1 + 1e-8 / 4), 1e-12);
}

/* (S + 1e-3 I)^-1 1, normalised; S is not divided by the number of candidates. */
static void covariance_weights_solve_their_equation(void **state)
{
    (void)state;
    const double T[2][3] = {{1, 2, 3}, {4, 4, 7}};
    double w[2], scratch[10];
    const double target = opc_steve_weigh(2, 3, T[0], OPC_STEVE_COVARIANCE, w, scratch);
    /* S = [[2, 3], [3, 6]] + 1e-3: solved by Cramer's rule. */
    const double a = 2.001, b = 3, d = 6.001, det = a * d - b * b;
    const double w0 = (d - b) / det, w1 = (a - b) / det;
    assert_near(w[0], w0 / (w0 + w1), 1e-9);
    assert_near(w[1], w1 / (w0 + w1), 1e-9);
    assert_near(target, w[0] * 2 + w[1] * 5, 1e-9);
}

static void a_model_that_has_diverged_has_no_weight(void **state)
{
    (void)state;
    const double inf = INFINITY, nan = (double)NAN;
    const double T[4][2] = {{1, 3}, {inf, 2}, {nan, 0}, {inf, -inf}};
    double w[4], scratch[28];
    for (int how = 0; how < 2; how++) {
        assert_near(opc_steve_weigh(4, 2, T[0], (enum opc_steve_weighting)how, w, scratch), 2, 0);
        assert_true(w[0] == 1 && w[1] == 0 && w[2] == 0 && w[3] == 0);
    }
    /* Nothing is left: the target says so, and the update reports a divergence. */
    const double lost[2][2] = {{nan, nan}, {inf, 1}};
    assert_true(isnan(opc_steve_weigh(2, 2, lost[0], OPC_STEVE_VARIANCE, w, scratch)));
}

/* ---- targets with known answers -------------------------------------------------------------- */

/* One observation, one action, one recorded step; networks that are linear: c . x + bias =
 * relu(c . x) - relu(-c . x) + bias. */
static struct play *linear_play(int members, int horizon, double discount, int weighting,
                                const float step[5])
{
    struct opc_steve_config config = defaults();
    config.policy_hidden = config.critic_hidden = config.transition_hidden = config.reward_hidden =
        config.termination_hidden = (struct opc_ints){1, {2}};
    config.critic_members = config.transition_members = config.reward_members = members;
    config.horizon = horizon;
    config.discount = discount;
    config.weighting = weighting;
    config.batch_size = 1;
    config.learning_rate = 0; /* so that nothing moves */
    struct play *p = play_of(&config, 1, 1, 0);
    for (int i = 0; i < RECORDED; i++)
        memcpy(p->records + i * 5, step, 5 * sizeof *step);
    return p;
}

static void set_linear(struct play *p, int kind, int member, const double c[3], double bias)
{
    const struct opc_mlp *net = p->net[kind];
    for (int copy = 0; copy < 2; copy++) {
        float *param = block_of(p, kind, copy ? ".copy" : "") + (size_t)member * net->each;
        memset(param, 0, net->each * sizeof *param);
        for (int i = 0; i < 3 && i < net->layer[0].in; i++) {
            param[net->layer[0].weight + (size_t)i] = (float)c[i];
            param[net->layer[0].weight + (size_t)(net->layer[0].ld + i)] = (float)-c[i];
        }
        param[net->layer[1].weight] = 1;
        param[net->layer[1].weight + 1] = -1;
        param[net->layer[1].bias] = (float)bias;
    }
}

/* x' = 0.9 x + 0.2 u, r = 2 x' - x + 0.5 u, u = tanh 0.3 always, no end. V is linear in x. Returns
 * r_0 + gamma V(s_1). */
static double set_linear_system(struct play *p, double s1, double r0)
{
    const double gamma = p->config.discount, u = tanh(0.3), zero[3] = {0};
    const double alpha = 0.8 / (1 - 0.9 * gamma);
    const double beta = (0.9 * u + gamma * alpha * 0.2 * u) / (1 - gamma);
    const double move[3] = {-0.1, 0.2}, pay[3] = {2, -1, 0.5};
    const double q[3] = {0.8 + gamma * alpha * 0.9, 0.9 + gamma * alpha * 0.2};
    set_linear(p, POLICY, 0, zero, 0.3);
    for (int m = 0; m < p->config.critic_members; m++) {
        set_linear(p, CRITIC, m, q, gamma * beta);
        set_linear(p, TRANSITION, m, move, 0);
        set_linear(p, REWARD, m, pay, 0);
        set_linear(p, TERMINATION, m, zero, -40);
    }
    return r0 + gamma * (alpha * s1 + beta);
}

static void an_exact_model_gives_the_true_value(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct play *p = linear_play(2, 3, 0.9, how, (const float[]){0.5f, 0.1f, 0.7f, 0, 1.25f});
        const double want = set_linear_system(p, 1.25, 0.7);
        const struct opc_agent_report r = improve(p, 1);
        assert_near(r.value[OPC_STEVE_Q_TARGET], want, 1e-5);
        /* All four targets are equal and certain, so their weights are equal. */
        assert_near(r.value[OPC_STEVE_TD_WEIGHT], 0.25, 1e-3);
        assert_near(r.value[OPC_STEVE_MODEL_STEPS], (1 + 2 + 3) / 4.0, 1e-3);
        play_close(p);
    }
}

static void terminations_are_soft_in_the_model_and_hard_in_the_recording(void **state)
{
    (void)state;
    const double zero[3] = {0};
    for (int ended = 0; ended < 2; ended++) {
        /* D_1 = 1/2, Q = 8, r^ = 1, r_0 = 2, gamma = 1/2: T_0 = 6, T_1 = 3.5, both with variance 0;
         * or r_0 alone. */
        const float step[5] = {0.3f, 0.1f, 2, (float)ended, 0.4f};
        struct play *p = linear_play(1, 1, 0.5, OPC_STEVE_VARIANCE, step);
        set_linear(p, POLICY, 0, zero, 0);
        set_linear(p, CRITIC, 0, zero, 8);
        set_linear(p, TRANSITION, 0, zero, 0.1);
        set_linear(p, REWARD, 0, zero, 1);
        set_linear(p, TERMINATION, 0, zero, 0);
        const struct opc_agent_report r = improve(p, 1);
        assert_near(r.value[OPC_STEVE_Q_TARGET], ended ? 2 : (6 + 3.5) / 2, ended ? 0 : 1e-6);
        assert_near(r.value[OPC_STEVE_TD_WEIGHT], 0.5, 1e-6);
        assert_near(r.value[OPC_STEVE_MODEL_STEPS], 0.5, 1e-6);
        play_close(p);
    }
}

/* One of two transition networks is off by `bias` in each step. The critics disagree by 1, so T_0
 * has a variance of its own. *T0: the target without imagined steps. */
static struct opc_agent_report biased_report(int horizon, double bias, double *T0)
{
    static const double MOVE[3] = {-0.1, 0.2};
    static const float STEP[] = {0.5f, 0.1f, 0.7f, 0, 1.25f};
    struct play *p = linear_play(2, horizon, 0.9, OPC_STEVE_VARIANCE, STEP);
    *T0 = set_linear_system(p, 1.25, 0.7);
    const size_t each = p->net[CRITIC]->each, last = p->net[CRITIC]->layer[1].bias;
    for (int copy = 0; copy < 2; copy++) {
        float *critic = block_of(p, CRITIC, copy ? ".copy" : "");
        critic[last] -= 0.5f;
        critic[each + last] += 0.5f;
    }
    set_linear(p, TRANSITION, 1, MOVE, bias);
    const struct opc_agent_report r = improve(p, 1);
    play_close(p);
    return r;
}

static void a_biased_model_loses_its_weight(void **state)
{
    (void)state;
    const double B[4] = {0, 0.1, 1, 1e6};
    double td[4], target = 0, T0 = 0;
    for (int i = 0; i < 4; i++) {
        const struct opc_agent_report r = biased_report(3, B[i], &T0);
        td[i] = r.value[OPC_STEVE_TD_WEIGHT];
        target = r.value[OPC_STEVE_Q_TARGET];
    }
    /* Without a bias the variance falls with gamma^2(i + 1), so longer targets count more. */
    assert_true(td[0] < 0.25 && td[0] < td[1] && td[1] < td[2] && td[2] < td[3]);
    assert_near(td[3], 1, 1e-9);
    assert_near(target, T0, 1e-5);
}

/* 1 / w_0 = 1 + var_0 / var_1 + ... + var_0 / var_H, so two horizons tell one variance: those of
 * T_1 to T_3 in units of that of T_0. The critics' part of it is gamma^2i. What the bias does to a
 * target of i steps is shift(i) for all candidates of one of the two networks, with x_i off by e_i
 * = 0.9 e_(i-1) + bias, and a variance of shift^2 / 4. */
static void the_variance_of_a_biased_model_grows_with_the_steps(void **state)
{
    (void)state;
    const double gamma = 0.9, bias = 1, alpha = 0.8 / (1 - 0.9 * gamma),
                 q = 0.8 + gamma * alpha * 0.9;
    const double of_critics = gamma * gamma * 0.25;
    double T0, before = 1, e = 0, off = 0, weight = 1;
    for (int i = 1; i <= 3; i++) {
        const double w0 = biased_report(i, bias, &T0).value[OPC_STEVE_TD_WEIGHT];
        const double u = 1 / w0 - before; /* w_i / w_0 */
        /* the reward of step i has 2 x_i - x_(i-1) */
        off += pow(gamma, i) * (2 * (0.9 * e + bias) - e);
        e = 0.9 * e + bias;
        const double shift = off + pow(gamma, i + 1) * q * e;
        const double variance = pow(gamma, 2 * i) * of_critics + shift * shift / 4;
        assert_near(u, of_critics / variance, 1e-4 * u);
        assert_true(u < weight); /* longer targets have less and less */
        weight = u;
        before = 1 / w0;
    }
}

/* ---- the toy chain of the paper -------------------------------------------------------------- */

/* 100 states in a row, -1 for each step and 100 for the last; a table of values in an ensemble of
 * 8; an update moves the value of one random state, in one random table. `noise`: the model jumps
 * to a random state with this probability. */
enum { STATES = 100, TABLES = 8, LONG = 5, TD, MVE, VALUE_EXPANSION };

static double chain_error(int method, double noise, int updates)
{
    double V[TABLES][STATES + 1], error = 0;
    struct opc_rng r = test_stream(30);
    for (int l = 0; l < TABLES; l++) {
        for (int s = 0; s < STATES; s++)
            V[l][s] = 10 * (double)any_float(&r);
        V[l][STATES] = 0; /* the end */
    }
    for (int n = 0; n < updates * TABLES; n++) {
        const int s = any_below(&r, STATES), learner = n % TABLES;
        double T[LONG + 1][TABLES * TABLES], w[LONG + 1], scratch[(LONG + 1) * (LONG + 4)];
        /* The recorded step is true; rollout m of the model starts after it. */
        for (int m = 0; m < TABLES; m++) {
            double sum = s + 1 == STATES ? 100 : -1;
            for (int i = 0, x = s + 1; i <= LONG; i++) {
                for (int l = 0; l < TABLES; l++)
                    T[i][m * TABLES + l] = sum + V[l][x];
                if (x == STATES)
                    continue; /* nothing comes after the end */
                sum += x + 1 == STATES ? 100 : -1;
                x = (double)opc_rng_unit(&r) < noise ? any_below(&r, STATES) : x + 1;
            }
        }
        double y = opc_steve_weigh(LONG + 1, TABLES * TABLES, T[0], OPC_STEVE_VARIANCE, w, scratch);
        if (method != VALUE_EXPANSION) {
            y = 0;
            for (int c = 0; c < TABLES * TABLES; c++)
                y += T[method == TD ? 0 : LONG][c] / (TABLES * TABLES);
        }
        V[learner][s] += 0.5 * (y - V[learner][s]);
    }
    for (int l = 0; l < TABLES; l++)
        for (int s = 0; s < STATES; s++)
            error += fabs(V[l][s] - (100 - (STATES - 1 - s))) / (TABLES * STATES);
    return error;
}

static void on_the_chain_it_uses_a_good_model_and_survives_a_bad_one(void **state)
{
    (void)state;
    const double td = chain_error(TD, 0, 10000), good = chain_error(VALUE_EXPANSION, 0, 10000);
    print_message("true model, 10,000 updates: TD %.2f, STEVE %.2f\n", td, good);
    assert_true(good < 0.7 * td);
    const int many = 20000;
    const double bad_td = chain_error(TD, 0.1, many), bad_mve = chain_error(MVE, 0.1, many);
    const double bad = chain_error(VALUE_EXPANSION, 0.1, many);
    print_message("model that jumps, %d updates: TD %.2f, STEVE %.2f, MVE %.2f\n", many, bad_td,
                  bad, bad_mve);
    assert_true(bad <= bad_td);
    assert_true(bad_mve > 5 * bad && bad_mve > 5);
}

/* ---- copies, pre-training, acting ------------------------------------------------------------ */

static bool is_copied(const struct play *p, int kind)
{
    return memcmp(block_of(p, kind, ""), block_of(p, kind, ".copy"),
                  p->net[kind]->each * sizeof(float)) == 0;
}

static void networks_are_copied_at_their_interval(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    config.copy_interval = 3;
    struct play *p = play_of(&config, OBS, ACT, 0);
    for (int n = 0; n <= 6; n++) {
        for (int k = 0; k < KINDS; k++)
            assert_int_equal(is_copied(p, k), n % 3 == 0);
        improve(p, 1);
    }
    play_close(p);
}

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

/* The world model alone, and then it is what targets see. A stop in the middle loses nothing. */
static void the_world_model_is_trained_first(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    config.pretrain_updates = 100;
    struct play *p = play_of(&config, OBS, ACT, 0), *other = play_of(&config, OBS, ACT, 0);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    float policy[64];
    assert_true(p->net[POLICY]->each >= 64);
    memcpy(policy, block_of(p, POLICY, ""), sizeof policy);
    p->feed.stop = at_once;
    assert_fails(opc_agent_improve(p->agent, &p->feed, 1, &report, &err), OPC_ESTOPPED, &err,
                 "stopped");
    assert_int_equal(*(long *)part_of(&p->parts, "steve.pretrained"), 64);
    assert_int_equal(report.updates, 0);
    assert_same_bits(policy, block_of(p, POLICY, ""), sizeof policy);
    assert_false(is_copied(p, TRANSITION));
    p->feed.stop = NULL;
    improve(p, 1);
    assert_int_equal(*(long *)part_of(&p->parts, "steve.pretrained"), 100);
    improve(other, 1);
    unsigned char *copy = parts_copy(&p->parts);
    assert_parts_are(&other->parts, copy);
    free(copy);
    play_close(p);
    play_close(other);
}

/* Stopped at the very end of the pre-training: all networks are copied, the trained world model and
 * the others, which have not moved. */
static void the_pretrained_world_model_is_copied(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    config.pretrain_updates = 128;
    struct play *p = play_of(&config, OBS, ACT, 0);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    p->feed.stop = at_once;
    for (int steps = 64; steps <= 128; steps += 64) {
        assert_fails(opc_agent_improve(p->agent, &p->feed, 1, &report, &err), OPC_ESTOPPED, &err,
                     "stopped");
        assert_int_equal(*(long *)part_of(&p->parts, "steve.pretrained"), steps);
        for (int k = 0; k < KINDS; k++)
            assert_int_equal(is_copied(p, k), k < TRANSITION || steps == 128);
    }
    play_close(p);
}

/* Noise on one component in twenty, before tanh; a row's action does not depend on other rows. */
static void actions_are_the_copied_policys(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct opc_steve_config config = defaults();
    struct play *p = play_of(&config, OBS, ACT, 0);
    scatter_parameters(p);
    double *theta = plain_get(p->net[POLICY], block_of(p, POLICY, ".copy"));
    float *s = floats_of(N * OBS, 0), *mode = floats_of(N * ACT, 0), *drawn = floats_of(N * ACT, 0);
    struct opc_rng r = test_stream(7), *rng = calloc(N, sizeof *rng);
    assert_non_null(rng);
    for (int i = 0; i < N * OBS; i++)
        s[i] = any_float(&r);
    opc_agent_act(p->agent, N, s, false, NULL, mode);
    for (int i = 0; i < N; i++)
        rng[i] = opc_rng_stream(1, OPC_USE_TEST, 2, (uint32_t)i);
    opc_agent_act(p->agent, N, s, true, rng, drawn);
    int noisy = 0;
    double squares = 0;
    for (int i = 0; i < N; i++) {
        double x[OBS], pre[ACT];
        float one[ACT], spread[ACT];
        struct opc_rng mine = opc_rng_stream(1, OPC_USE_TEST, 2, (uint32_t)i), again = mine;
        for (int k = 0; k < OBS; k++)
            x[k] = (double)s[i * OBS + k];
        net_row(&p->net[POLICY]->shape, theta, x, pre, NULL);
        opc_agent_act(p->agent, 1, s + i * OBS, true, &mine, one);
        opc_agent_act_spread(p->agent, 1, s + i * OBS, 0, &again, spread);
        assert_same_bits(one, drawn + i * ACT, sizeof one);
        assert_same_bits(spread, mode + i * ACT, sizeof spread);
        for (int k = 0; k < ACT; k++) {
            assert_near((double)mode[i * ACT + k], tanh(pre[k]), 1e-5);
            if (same_bits(one[k], mode[i * ACT + k]))
                continue;
            noisy++;
            squares += pow(atanh((double)one[k]) - pre[k], 2);
        }
    }
    /* Four deviations of what so many draws give. */
    assert_near(noisy / (double)(N * ACT), 0.05, 4 * sqrt(0.05 * 0.95 / (N * ACT)));
    assert_near(squares / noisy, 1, 4 * sqrt(2.0 / noisy));
    free(theta);
    free(s);
    free(mode);
    free(drawn);
    free(rng);
    play_close(p);
}

/* What `opc export` writes: the copy that acts, not the policy in training. */
static void its_network_is_the_mode_of_its_actions(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    struct play *p = play_of(&config, OBS, ACT, 0);
    struct opc_network network;
    struct opc_err err = {0};
    scatter_parameters(p);
    assert_ok(opc_steve_type.network(p->agent, &network, &err), &err);
    assert_true(network.squash && network.outputs == ACT && !network.mean);
    double *theta = plain_get(network.net, network.net->param);
    struct opc_rng r = test_stream(8);
    for (int i = 0; i < 20; i++) {
        float s[OBS], mode[ACT];
        double x[OBS], y[ACT];
        for (int k = 0; k < OBS; k++)
            x[k] = (double)(s[k] = any_float(&r));
        opc_agent_act(p->agent, 1, s, false, NULL, mode);
        net_row(&network.net->shape, theta, x, y, NULL);
        for (int k = 0; k < ACT; k++)
            assert_near((double)mode[k], tanh(y[k]), 1e-5);
    }
    free(theta);
    play_close(p);
}

/* ---- threads, saving, failures --------------------------------------------------------------- */

static void bits_do_not_depend_on_threads_or_portions(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    config.pretrain_updates = 3;
    config.copy_interval = 2;
    config.batch_size = 150;
    struct play *p = play_of(&config, OBS, ACT, 0);
    improve(p, 5);
    unsigned char *copy = parts_copy(&p->parts);
    static const int THREADS[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++) {
        struct play *other = play_of(&config, OBS, ACT, THREADS[i]);
        improve(other, 2);
        improve(other, 3);
        assert_parts_are(&other->parts, copy);
        play_close(other);
    }
    free(copy);
    play_close(p);
}

static void a_saved_agent_goes_on_as_if_nothing_had_been(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    config.copy_interval = 5;
    config.pretrain_updates = 2;
    struct play *p = play_of(&config, OBS, ACT, 0), *other = play_of(&config, OBS, ACT, 2);
    struct opc_err err = {0};
    improve(p, 3);
    unsigned char *copy = parts_copy(&p->parts);
    const unsigned char *from = copy;
    assert_ok(other->agent->type->state(other->agent, load_part, &from, &err), &err);
    other->feed.first = p->feed.first;
    improve(p, 4);
    improve(other, 4);
    free(copy);
    copy = parts_copy(&p->parts);
    assert_parts_are(&other->parts, copy);
    free(copy);
    play_close(p);
    play_close(other);
}

static void a_divergence_is_reported(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    struct play *p = play_of(&config, OBS, ACT, 0);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    for (int i = 0; i < RECORDED; i++)
        p->records[i * COLUMNS + IN] = INFINITY;
    assert_fails(opc_agent_improve(p->agent, &p->feed, 1, &report, &err), OPC_EDIVERGED, &err,
                 "steve.learning_rate");
    play_close(p);
}

/* Each loss of the world model alone, in an update and after 64 steps of a long pre-training. */
static void the_world_models_divergence_is_reported_early(void **state)
{
    (void)state;
    for (int which = TRANSITION; which < KINDS; which++)
        for (int early = 0; early < 2; early++) {
            struct opc_steve_config config = defaults();
            config.pretrain_updates = early ? 100000 : 0;
            struct play *p = play_of(&config, OBS, ACT, 0);
            struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
            struct opc_err err = {0};
            float *param = block_of(p, which, "");
            for (int m = 0; m < p->net[which]->shape.members; m++)
                param[(size_t)m * p->net[which]->each] = NAN;
            assert_fails(opc_agent_improve(p->agent, &p->feed, 1, &report, &err), OPC_EDIVERGED,
                         &err, NAME[which]);
            assert_mentions(&err, "steve.learning_rate");
            assert_int_equal(*(long *)part_of(&p->parts, "steve.pretrained"), early ? 64 : 0);
            play_close(p);
        }
    /* A pre-training of less than that is looked at when it ends. */
    struct opc_steve_config config = defaults();
    config.pretrain_updates = 3;
    struct play *p = play_of(&config, OBS, ACT, 0);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    for (int i = 0; i < RECORDED; i++)
        p->records[i * COLUMNS + IN] = INFINITY;
    assert_fails(opc_agent_improve(p->agent, &p->feed, 1, &report, &err), OPC_EDIVERGED, &err,
                 "pre-training");
    assert_mentions(&err, "reward");
    play_close(p);
}

static void too_many_layers_are_refused_by_name(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    struct opc_agent *agent;
    struct opc_err err = {0};
    config.reward_hidden = (struct opc_ints){8, {2, 2, 2, 2, 2, 2, 2, 2}};
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args), .obs = OBS, .act = ACT,
                                        .config = &config};
    assert_fails(opc_agent_create("steve", &args, &agent, &err), OPC_EUSER, &err,
                 "steve.reward_hidden");
    assert_mentions(&err, "8 hidden layers");
    assert_fails(opc_steve_type.check(&config, 1, &err), OPC_EUSER, &err, "8 hidden layers");
    assert_string_equal(err.settings, "steve.reward_hidden");
    config.reward_hidden.n = 7;
    assert_ok(opc_steve_type.check(&config, 1, &err), &err);
    /* A horizon of 0 would have no model steps at all. */
    assert_fails(opc_section_set(&opc_steve_section, &config, "horizon", "0", &err), OPC_EUSER,
                 &err, "horizon = 0");
}

/* What create_any makes. */
struct made {
    struct opc_steve_config config;
    struct opc_pool *pool;
};

static struct opc_agent_args args_of(const struct made *made)
{
    return (struct opc_agent_args){
        OPC_SIZED(struct opc_agent_args), .obs = OBS,        .act = ACT, .seed = 3,
        .config = &made->config,          .pool = made->pool};
}

static int create_any(void *ctx, struct opc_err *err)
{
    struct opc_agent *agent;
    const struct opc_agent_args args = args_of(ctx);
    const int code = opc_agent_create("steve", &args, &agent, err);
    if (!code)
        opc_agent_destroy(agent);
    return code;
}

/* No less than what is taken, and not much more, whatever it is taken for. */
static void the_estimate_of_memory_covers_what_is_taken(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 8; threads += 7)
        for (int which = 0; which < 5; which++) {
            struct made made = {defaults(), pool_of(threads)};
            if (which == 1)
                made.config.transition_hidden = (struct opc_ints){2, {300, 300}};
            if (which == 2)
                made.config.batch_size = 5000;
            if (which == 3)
                made.config.critic_members = made.config.transition_members =
                    made.config.reward_members = made.config.horizon = 16;
            if (which == 4)
                made.config.policy_hidden = (struct opc_ints){3, {64, 700, 64}};
            const struct opc_agent_args args = args_of(&made);
            const double need = (double)opc_steve_type.need(&args),
                         taken = test_bytes_taken(create_any, &made);
            assert_true(need >= taken && need < 1.1 * taken);
            opc_pool_destroy(made.pool);
        }
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    struct made made = {defaults(), NULL};
    assert_survives_lack_of_memory(create_any, &made);
}

/* ---- learning -------------------------------------------------------------------------------- */

/* The best action is (0.5, -0.3) in every state, and the world goes on: the value of what follows
 * is the same whatever is done, so the targets must keep it apart from the reward. */
static void it_learns_what_is_rewarded(void **state)
{
    (void)state;
    struct opc_steve_config config = defaults();
    config.policy_hidden = config.critic_hidden = (struct opc_ints){1, {24}};
    config.learning_rate = 3e-3;
    config.discount = 0.7;
    config.copy_interval = 50;
    config.batch_size = 32;
    struct play *p = play_of(&config, OBS, ACT, 0);
    for (int i = 0; i < RECORDED; i++) {
        float *step = p->records + i * COLUMNS, *a = step + OBS;
        step[IN] = -(a[0] - 0.5f) * (a[0] - 0.5f) - (a[1] + 0.3f) * (a[1] + 0.3f);
        step[IN + 1] = 0;
    }
    improve(p, 4000);
    float s[OBS] = {0.2f, -0.1f, 0.4f}, a[ACT];
    opc_agent_act(p->agent, 1, s, false, NULL, a);
    assert_near((double)a[0], 0.5, 0.2);
    assert_near((double)a[1], -0.3, 0.2);
    play_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_a_plain_implementation),
        cmocka_unit_test(first_weights_are_as_published),
        cmocka_unit_test(weights_are_the_inverse_variances),
        cmocka_unit_test(covariance_weights_solve_their_equation),
        cmocka_unit_test(a_model_that_has_diverged_has_no_weight),
        cmocka_unit_test(an_exact_model_gives_the_true_value),
        cmocka_unit_test(terminations_are_soft_in_the_model_and_hard_in_the_recording),
        cmocka_unit_test(a_biased_model_loses_its_weight),
        cmocka_unit_test(the_variance_of_a_biased_model_grows_with_the_steps),
        cmocka_unit_test(on_the_chain_it_uses_a_good_model_and_survives_a_bad_one),
        cmocka_unit_test(networks_are_copied_at_their_interval),
        cmocka_unit_test(the_world_model_is_trained_first),
        cmocka_unit_test(the_pretrained_world_model_is_copied),
        cmocka_unit_test(actions_are_the_copied_policys),
        cmocka_unit_test(its_network_is_the_mode_of_its_actions),
        cmocka_unit_test(bits_do_not_depend_on_threads_or_portions),
        cmocka_unit_test(a_saved_agent_goes_on_as_if_nothing_had_been),
        cmocka_unit_test(a_divergence_is_reported),
        cmocka_unit_test(the_world_models_divergence_is_reported_early),
        cmocka_unit_test(too_many_layers_are_refused_by_name),
        cmocka_unit_test(the_estimate_of_memory_covers_what_is_taken),
        cmocka_unit_test(lack_of_memory_is_an_error),
        cmocka_unit_test(it_learns_what_is_rewarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
