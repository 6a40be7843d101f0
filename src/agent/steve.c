/* SPDX-License-Identifier: MIT */
/* STEVE, stochastic ensemble value expansion (Buckman et al. 2018): its networks, how it acts, and
 * the order of an update. run/improve.c calls steve_improve through opc_agent_type with batches of
 * recorded steps. The first call trains the world model alone for steve.pretrain_updates steps.
 * Then each update is
 *
 *     one gradient step of the world model      (steve_learn.c)
 *     one of policy and critics, on another batch, with targets through the copied world model
 *                                               (steve_learn.c, steve_target.c)
 *     every steve.copy_interval updates: copy all networks
 *
 * In the original, world model and policy are trained by two processes at the same rate. Targets
 * use the copies of critics and world model and the current policy; the copy of the policy acts, so
 * it is up to copy_interval updates old.
 *
 * Invariant: every random number of an update comes from streams named by its index, and the state
 * that is saved is all that a later update depends on. */
#include "agent/steve.h"

#include "agent/policy.h"
#include "agent/steve_private.h"
#include "base/pool.h"
#include "num/network.h"
#include "num/normal.h"
#include "num/vec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SELF struct opc_steve_config
const struct opc_section opc_steve_section = OPC_SECTION(
    "steve", "stochastic ensemble value expansion, an agent with a world model of its own",
    OPC_STEVE_FIELDS);
#undef SELF

/* CHUNK panels go through the policy together when it acts. WHICH: the stream of the policy's first
 * weights, followed by those of the other networks. PRETRAINING: pre-training steps number their
 * streams from here on, above all updates of an epoch. */
enum { P = OPC_PANEL, CHUNK = 8, ROWS = CHUNK * P, WHICH = 11 };
static const uint32_t PRETRAINING = 1u << 31;

/* As in the settings steve.NAME_hidden and in the names of saved state. */
static const char *const NAME[STEVE_KINDS] = {"policy", "critic", "transition", "reward",
                                              "termination"};

/* ---- updates --------------------------------------------------------------------------------- */

/* One gradient step of the world model, on a batch and an assignment of rows to members from these
 * streams. */
static void model_update(struct steve *s, const struct opc_feed *feed, struct opc_rng *pick,
                         struct opc_rng *assign)
{
    feed->draw(feed->ctx, s->config.batch_size, pick, s->step);
    /* The three ensembles share the batch, but not which member a row trains. */
    for (int k = STEVE_TRANSITION; k < STEVE_KINDS; k++)
        steve_assign(s, (enum steve_kind)k, assign);
    steve_learn_model(s);
}

/* A hard copy, not an average: what targets and actions see changes at once, and then stays. */
static void copy_networks(struct steve *s)
{
    for (int k = 0; k < STEVE_KINDS; k++) {
        const struct opc_mlp *net = s->ensemble[k].net;
        memcpy(s->ensemble[k].copy->param, net->param,
               (size_t)net->shape.members * net->each * sizeof(float));
    }
}

/* Adds the sums of one ensemble's members, in their order. */
static struct steve_sums member_totals(const struct steve *s, enum steve_kind kind)
{
    struct steve_sums all = {0};
    for (int m = 0; m < steve_members(s, kind); m++) {
        all.loss += steve_member_sums(s, kind, m)->loss;
        all.value += steve_member_sums(s, kind, m)->value;
    }
    return all;
}

/* The report of one update: sums in the order of panels and members, over the batch size. */
static void report_update(const struct steve *s, double v[OPC_STEVE_COLUMNS])
{
    static const struct {
        enum steve_kind kind;
        int column;
    } LOSS[] = {{STEVE_CRITIC, OPC_STEVE_CRITIC_LOSS},
                {STEVE_TRANSITION, OPC_STEVE_TRANSITION_LOSS},
                {STEVE_REWARD, OPC_STEVE_REWARD_LOSS},
                {STEVE_TERMINATION, OPC_STEVE_TERMINATION_LOSS}};
    const double n = s->config.batch_size;
    /* Targets and the policy's loss were summed by panel ... */
    memset(v, 0, OPC_STEVE_COLUMNS * sizeof *v);
    v[OPC_STEVE_TARGET_MIN] = INFINITY;
    v[OPC_STEVE_TARGET_MAX] = -INFINITY;
    for (int p = 0; p < s->panels; p++) {
        const struct steve_sums *sums = &s->panel_sums[p];
        v[OPC_STEVE_Q_TARGET] += sums->target / n;
        v[OPC_STEVE_ACTOR_LOSS] += sums->loss / n;
        v[OPC_STEVE_TD_WEIGHT] += sums->td_weight / n;
        v[OPC_STEVE_MODEL_STEPS] += sums->model_steps / n;
        v[OPC_STEVE_TARGET_MIN] = fmin(v[OPC_STEVE_TARGET_MIN], sums->target_min);
        v[OPC_STEVE_TARGET_MAX] = fmax(v[OPC_STEVE_TARGET_MAX], sums->target_max);
    }
    /* ... and the losses of the ensembles by member, each over the rows that trained it. */
    v[OPC_STEVE_Q] = member_totals(s, STEVE_CRITIC).value / n;
    for (size_t i = 0; i < sizeof LOSS / sizeof *LOSS; i++)
        v[LOSS[i].column] = member_totals(s, LOSS[i].kind).loss / n;
}

/* A loss that is not finite never recovers: it ends the run. */
static int check_losses(const double v[OPC_STEVE_COLUMNS], uint32_t index,
                        const struct opc_feed *feed, struct opc_err *err)
{
    static const struct {
        int column;
        const char *name;
    } LOSS[] = {{OPC_STEVE_TRANSITION_LOSS, "transition"},
                {OPC_STEVE_REWARD_LOSS, "reward"},
                {OPC_STEVE_TERMINATION_LOSS, "termination"},
                {OPC_STEVE_CRITIC_LOSS, "critics'"},
                {OPC_STEVE_ACTOR_LOSS, "actor's"}};
    for (size_t i = 0; i < sizeof LOSS / sizeof *LOSS; i++)
        if (!isfinite(v[LOSS[i].column]))
            return opc_fail(err, OPC_EDIVERGED,
                            "the %s loss became %g in update %u of epoch %u (mean Q %g); lower "
                            "steve.learning_rate, or look for huge observations or rewards",
                            LOSS[i].name, v[LOSS[i].column], index, feed->epoch, v[OPC_STEVE_Q]);
    return OPC_OK;
}

/* Asks for a stop every 64 gradient steps; `count` of them are done. */
static int stopped(const struct opc_feed *feed, long count, struct opc_err *err)
{
    if (count % 64 == 0 && feed->stop && feed->stop(feed->stop_ctx))
        return opc_fail(err, OPC_ESTOPPED, "stopped while improving the policy");
    return OPC_OK;
}

/* Its losses in the latest step of the pre-training. One that is not finite never recovers. */
static int check_pretraining(const struct steve *s, struct opc_err *err)
{
    for (int k = STEVE_TRANSITION; k < STEVE_KINDS; k++) {
        const double loss = member_totals(s, (enum steve_kind)k).loss / s->config.batch_size;
        if (!isfinite(loss))
            return opc_fail(err, OPC_EDIVERGED,
                            "the %s loss became %g in the first %ld steps of the world model's "
                            "pre-training; lower steve.learning_rate, or look for huge "
                            "observations or rewards",
                            NAME[k], loss, s->pretrained);
    }
    return OPC_OK;
}

/* The world model alone, from where it was stopped, if it was. Then it is copied for the targets.
 */
static int pretrain(struct steve *s, const struct opc_feed *feed, struct opc_err *err)
{
    while (s->pretrained < s->config.pretrain_updates) {
        const uint32_t index = PRETRAINING + (uint32_t)s->pretrained;
        struct opc_rng pick = opc_rng_stream(feed->seed, OPC_USE_BATCH, feed->epoch, index);
        struct opc_rng assign = opc_rng_stream(feed->seed, OPC_USE_UPDATE, feed->epoch, index);
        model_update(s, feed, &pick, &assign);
        s->pretrained++;
        /* Policy and critics have not moved yet, so copying them, too, changes nothing. */
        if (s->pretrained == s->config.pretrain_updates)
            copy_networks(s);
        if (s->pretrained % 64 == 0 || s->pretrained == s->config.pretrain_updates)
            OPC_TRY(check_pretraining(s, err));
        OPC_TRY(stopped(feed, s->pretrained, err));
    }
    return OPC_OK;
}

/* One update of everything. The streams are named by its index, so a resumed run draws what an
 * uninterrupted one would have drawn. */
static void steve_update(struct steve *s, const struct opc_feed *feed, uint32_t index)
{
    struct opc_rng pick = opc_rng_stream(feed->seed, OPC_USE_BATCH, feed->epoch, index);
    struct opc_rng assign = opc_rng_stream(feed->seed, OPC_USE_UPDATE, feed->epoch, index);
    model_update(s, feed, &pick, &assign);
    /* The policy's batch is the next draw of the same stream, and so is its assignment. */
    feed->draw(feed->ctx, s->config.batch_size, &pick, s->step);
    steve_assign(s, STEVE_CRITIC, &assign);
    steve_learn_policy(s);
    s->updates++;
    if (s->updates % s->config.copy_interval == 0)
        copy_networks(s);
}

/* `updates` gradient steps. The report holds means over them, and the extremes of the targets. */
static int steve_improve(struct opc_agent *a, const struct opc_feed *feed, int updates,
                         struct opc_agent_report *report, struct opc_err *err)
{
    struct steve *s = (struct steve *)a;
    double *v = report->value;
    *report = (struct opc_agent_report){0};
    v[OPC_STEVE_TARGET_MIN] = INFINITY;
    v[OPC_STEVE_TARGET_MAX] = -INFINITY;
    /* Nothing is left to pre-train after the first improvement. */
    if (updates > 0)
        OPC_TRY(pretrain(s, feed, err));
    for (int i = 0; i < updates; i++) {
        const uint32_t index = feed->first + (uint32_t)i;
        double one[OPC_STEVE_COLUMNS];
        steve_update(s, feed, index);
        report_update(s, one);
        OPC_TRY(check_losses(one, index, feed, err));
        /* Extremes of the targets, means of everything else. */
        for (int k = 0; k < OPC_STEVE_COLUMNS; k++)
            if (k == OPC_STEVE_TARGET_MIN)
                v[k] = fmin(v[k], one[k]);
            else if (k == OPC_STEVE_TARGET_MAX)
                v[k] = fmax(v[k], one[k]);
            else
                v[k] += one[k] / updates;
        report->updates = i + 1; /* those made so far are kept */
        OPC_TRY(stopped(feed, i + 1, err));
    }
    return OPC_OK;
}

/* ---- acting ---------------------------------------------------------------------------------- */

/* What all chunks of one call share. */
struct request {
    const struct steve *s;
    const float *state;
    struct opc_rng *rng; /* NULL: the mode */
    float spread;        /* factor on the noise */
    float *action;
};

/* Noise of rows first .. first+rows-1 onto u[panels][act][16]: a component gets it with
 * steve.explore_probability. A row draws from its own stream, its normals and then its chances. */
static void add_noise(const struct request *request, int first, int rows, float *u,
                      struct opc_arena *scratch)
{
    const struct steve *s = request->s;
    const int act = s->base.act;
    float *eps = opc_floats(scratch, (size_t)act, ROWS);
    opc_rng_normals_rows(request->rng + first, rows, act, eps);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < act; k++) {
            const int at = (i / P * act + k) * P + i % P;
            if ((double)opc_rng_unit(&request->rng[first + i]) < s->config.explore_probability)
                u[at] += request->spread * eps[at];
        }
}

/* Takes rows first .. end-1, no more than ROWS, from states to actions. */
static void act_on_rows(void *ctx, int first, int end, int worker)
{
    const struct request *request = ctx;
    const struct steve *s = request->s;
    const struct opc_kernels *k = opc_kernels();
    struct opc_arena *scratch = &s->act_scratch[worker];
    const size_t mark = scratch->used, obs = (size_t)s->base.obs, act = (size_t)s->base.act;
    const int rows = end - first, panels = opc_panels(rows);
    float *x = opc_floats(scratch, obs, ROWS), *u = opc_floats(scratch, act, ROWS);
    /* Rows to panels, through the copied policy, noise, tanh, and back to rows. */
    k->gather(rows, s->base.obs, request->state + (size_t)first * obs, obs, NULL, x, obs * P);
    opc_mlp_infer(s->ensemble[STEVE_POLICY].copy, 0, panels, x, obs * P, s->base.act, u, act * P,
                  scratch);
    if (request->rng)
        add_noise(request, first, rows, u, scratch);
    opc_vec_tanh((size_t)panels * act * P, u, u);
    k->scatter(rows, s->base.act, u, act * P, request->action + (size_t)first * act, act);
    opc_arena_rewind(scratch, mark);
}

/* rng NULL: the mode, whatever `spread` is. */
static void steve_act_spread(const struct opc_agent *a, int n, const float *state, float spread,
                             struct opc_rng *rng, float *action)
{
    const struct steve *s = (const struct steve *)a;
    struct request request = {s, state, rng, spread, action};
    opc_pool_each(s->pool, n, ROWS, act_on_rows, &request);
}

/* For real steps and evaluation. */
static void steve_act(const struct opc_agent *a, int n, const float *state, bool explore,
                      struct opc_rng *rng, float *action)
{
    steve_act_spread(a, n, state, 1, explore ? rng : NULL, action);
}

/* The mode is tanh of the copy that acts. */
static int steve_network(const struct opc_agent *a, struct opc_network *out, struct opc_err *err)
{
    const struct steve *s = (const struct steve *)a;
    (void)err;
    *out = (struct opc_network){
        .net = s->ensemble[STEVE_POLICY].copy, .outputs = a->act, .squash = true};
    return OPC_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Accepts a half-built agent: every destroy below takes NULL. */
static void steve_destroy(struct opc_agent *a)
{
    struct steve *s = (struct steve *)a;
    for (int k = 0; k < STEVE_KINDS; k++) {
        opc_mlp_destroy(s->ensemble[k].net);
        opc_mlp_destroy(s->ensemble[k].copy);
        opc_adam_destroy(s->ensemble[k].adam);
        opc_free(s->member[k]);
    }
    /* What the threads have, if they were made; those that were not are all NULL. */
    for (int i = 0; i < s->threads && s->worker; i++) {
        struct steve_worker *w = &s->worker[i];
        for (int k = 0; k < STEVE_KINDS; k++)
            opc_tape_destroy(w->tape[k]);
        opc_free(w->row);
        opc_free(w->step);
        opc_free(w->batch);
        opc_free(w->input);
        opc_free(w->grad);
        opc_arena_destroy(&w->scratch);
    }
    for (int i = 0; i < s->threads && s->act_scratch; i++)
        opc_arena_destroy(&s->act_scratch[i]);
    /* What one update works on. */
    opc_tape_destroy(s->policy_tape);
    opc_tape_destroy(s->critic_tape);
    opc_free(s->worker);
    opc_free(s->act_scratch);
    opc_free(s->step);
    opc_free(s->batch);
    opc_free(s->target);
    opc_free(s->joint);
    opc_free(s->dq_da);
    opc_free(s->dq_one);
    opc_free(s->panel_sums);
    opc_free(s->member_sums);
    opc_free(s);
}

/* Everything a later update depends on, by name, for checkpoints: of each ensemble the parameters,
 * Adam's moments and steps, and the copy. Names and order are part of the file format. */
static int steve_state(struct opc_agent *a,
                       int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                       void *ctx, struct opc_err *err)
{
    struct steve *s = (struct steve *)a;
    for (int k = 0; k < STEVE_KINDS; k++) {
        const struct steve_ensemble *e = &s->ensemble[k];
        const size_t bytes = e->adam->count * sizeof(float);
        /* Visitors copy names, so they may live on the stack. */
        char name[5][32];
        static const char *const TAIL[5] = {"", ".m", ".v", ".steps", ".copy"};
        for (int i = 0; i < 5; i++)
            snprintf(name[i], sizeof name[i], "steve.%s%s", NAME[k], TAIL[i]);
        const struct opc_state_part part[] = {
            {name[0], e->net->param, bytes},  {name[1], e->adam->m, bytes},
            {name[2], e->adam->v, bytes},     {name[3], &e->adam->steps, sizeof(long)},
            {name[4], e->copy->param, bytes},
        };
        OPC_TRY(opc_visit_parts(part, 5, visit, ctx, err));
    }
    /* When to copy next, and whether the world model has been pre-trained. */
    const struct opc_state_part counts[] = {
        {"steve.updates", &s->updates, sizeof s->updates},
        {"steve.pretrained", &s->pretrained, sizeof s->pretrained},
    };
    return opc_visit_parts(counts, 2, visit, ctx, err);
}

/* The shapes of all networks; OPC_EUSER names the setting that has too many layers. */
static int shapes_of(const struct opc_steve_config *config, int obs, int act,
                     struct opc_mlp_shape shape[STEVE_KINDS], struct opc_err *err)
{
    const int in = obs + act;
    /* Inputs and outputs as in steve_private.h; each transition has its own termination. */
    const struct {
        int members, in, out;
        const struct opc_ints *hidden;
    } want[STEVE_KINDS] = {
        [STEVE_POLICY] = {1, obs, act, &config->policy_hidden},
        [STEVE_CRITIC] = {config->critic_members, in, 1, &config->critic_hidden},
        [STEVE_TRANSITION] = {config->transition_members, in, obs, &config->transition_hidden},
        [STEVE_REWARD] = {config->reward_members, in + obs, 1, &config->reward_hidden},
        [STEVE_TERMINATION] = {config->transition_members, in + obs, 1,
                               &config->termination_hidden},
    };
    for (int k = 0; k < STEVE_KINDS; k++)
        if (opc_mlp_shape_from(want[k].members, want[k].in, want[k].hidden->at, want[k].hidden->n,
                               want[k].out, OPC_ACTIVATION_RELU, &shape[k], NULL)) {
            char setting[40];
            snprintf(setting, sizeof setting, "steve.%s_hidden", NAME[k]);
            return opc_fail_settings(err, setting, "%s: %d hidden layers are too many; at most %d",
                                     setting, want[k].hidden->n, OPC_MLP_LAYERS - 1);
        }
    return OPC_OK;
}

/* Settings that do not fit each other; neither sizes nor elites matter. */
static int steve_check(const void *config, int elites, struct opc_err *err)
{
    (void)elites;
    struct opc_mlp_shape shape[STEVE_KINDS];
    return shapes_of(config, 1, 1, shape, err);
}

/* All networks with their copies and optimisers. First weights are Glorot's, halved for ensembles:
 * the published initialiser counts the ensemble's axis as part of both fans. */
static int steve_make_networks(struct steve *s, uint64_t seed, struct opc_err *err)
{
    /* A failure leaves a part of the networks, which steve_destroy frees. */
    struct opc_mlp_shape shape[STEVE_KINDS];
    OPC_TRY(shapes_of(&s->config, s->base.obs, s->base.act, shape, err));
    for (int k = 0; k < STEVE_KINDS; k++) {
        struct steve_ensemble *e = &s->ensemble[k];
        OPC_TRY(opc_mlp_create(&shape[k], &e->net, err));
        OPC_TRY(opc_mlp_create(&shape[k], &e->copy, err));
        /* One optimiser for all members: their steps are always taken together. */
        const size_t floats = (size_t)shape[k].members * e->net->each;
        OPC_TRY(opc_adam_create(floats, opc_adam_usual(s->config.learning_rate), &e->adam, err));
        opc_mlp_init(e->net, OPC_INIT_GLOROT, seed, (uint32_t)(WHICH + k));
        for (size_t i = 0; k != STEVE_POLICY && i < floats; i++)
            e->net->param[i] *= 0.5f;
    }
    copy_networks(s);
    return OPC_OK;
}

/* What one thread keeps, besides tapes and scratch. One gradient serves all networks in turn, so it
 * is as long as the largest member. */
enum { WORKER_BLOCKS = 5, BLOCKS = 14 };
static void list_worker_blocks(const struct steve *s, struct steve_worker *w,
                               struct opc_block blocks[WORKER_BLOCKS])
{
    const size_t batch = (size_t)s->config.batch_size, wide = (size_t)s->panels * P;
    size_t each = 0;
    for (int k = 0; k < STEVE_KINDS; k++) {
        const size_t one = s->ensemble[k].net->each;
        each = one > each ? one : each;
    }
    const struct opc_block all[WORKER_BLOCKS] = {
        {&w->row, batch, sizeof *w->row},
        {&w->step, batch, sizeof *w->step},
        {&w->batch, wide * (size_t)s->columns, sizeof *w->batch},
        {&w->input, wide * (size_t)(2 * s->base.obs + s->base.act), sizeof *w->input},
        {&w->grad, each, sizeof *w->grad},
    };
    memcpy(blocks, all, sizeof all);
}

/* What an update works on, besides networks, tapes and threads. */
static void list_blocks(struct steve *s, struct opc_block blocks[BLOCKS])
{
    const size_t batch = (size_t)s->config.batch_size, wide = (size_t)s->panels * P;
    const size_t act = (size_t)s->base.act, in = (size_t)s->base.obs + act;
    const struct opc_block all[BLOCKS] = {
        {&s->step, batch, sizeof *s->step},
        {&s->batch, wide * (size_t)s->columns, sizeof *s->batch},
        {&s->target, wide, sizeof *s->target},
        {&s->joint, wide * in, sizeof *s->joint},
        {&s->dq_da, wide * act, sizeof *s->dq_da},
        {&s->dq_one, wide * act, sizeof *s->dq_one},
        {&s->panel_sums, (size_t)s->panels, sizeof *s->panel_sums},
        {&s->member_sums, STEVE_KINDS * STEVE_MEMBERS_MAX, sizeof *s->member_sums},
        {&s->member[STEVE_CRITIC], batch, sizeof(int)},
        {&s->member[STEVE_TRANSITION], batch, sizeof(int)},
        {&s->member[STEVE_REWARD], batch, sizeof(int)},
        {&s->member[STEVE_TERMINATION], batch, sizeof(int)},
        {&s->worker, (size_t)s->threads, sizeof *s->worker},
        {&s->act_scratch, (size_t)s->threads, sizeof *s->act_scratch},
    };
    memcpy(blocks, all, sizeof all);
}

/* Panels of targets of one thread, at most. */
static int panels_of_thread(const struct steve *s)
{
    const int share = s->panels / s->threads + 1;
    return share < s->panels ? share : s->panels;
}

/* The memory of one thread. */
static int make_worker(const struct steve *s, struct steve_worker *w, struct opc_err *err)
{
    struct opc_block blocks[WORKER_BLOCKS];
    list_worker_blocks(s, w, blocks);
    if (!opc_alloc_all(blocks, WORKER_BLOCKS))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for batches of %d steps; lower steve.batch_size",
                        s->config.batch_size);
    /* A member may get all rows of a batch, however unlikely that is. */
    for (int k = STEVE_CRITIC; k < STEVE_KINDS; k++)
        OPC_TRY(opc_tape_create(s->ensemble[k].net, s->config.batch_size, &w->tape[k], err));
    return opc_arena_create(steve_targets_need(s, panels_of_thread(s)), &w->scratch, err);
}

/* Bytes of scratch for one thread in act_on_rows. */
static size_t act_need(const struct steve *s)
{
    return opc_mlp_infer_need(s->ensemble[STEVE_POLICY].net, CHUNK) +
           opc_arena_need((size_t)s->base.obs, ROWS * sizeof(float)) +
           2 * opc_arena_need((size_t)s->base.act, ROWS * sizeof(float));
}

/* Memory of an update, sized by the batch, so that updates allocate nothing. */
static int steve_make_batch(struct steve *s, struct opc_err *err)
{
    struct opc_block blocks[BLOCKS];
    list_blocks(s, blocks);
    if (!opc_alloc_all(blocks, BLOCKS))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for batches of %d steps; lower steve.batch_size",
                        s->config.batch_size);
    for (int i = 0; i < s->threads; i++) {
        OPC_TRY(make_worker(s, &s->worker[i], err));
        OPC_TRY(opc_arena_create(act_need(s), &s->act_scratch[i], err));
    }
    /* Tapes of the policy's loss; threads fill the rows of their own panels. */
    OPC_TRY(
        opc_tape_create(s->ensemble[STEVE_POLICY].net, s->config.batch_size, &s->policy_tape, err));
    OPC_TRY(
        opc_tape_create(s->ensemble[STEVE_CRITIC].net, s->config.batch_size, &s->critic_tape, err));
    /* The policy reads s, the first columns of a step; the critics read s and its action. */
    s->policy_tape->x = s->batch;
    s->policy_tape->xs = (size_t)s->columns * P;
    s->critic_tape->x = s->joint;
    s->critic_tape->xs = (size_t)(s->base.obs + s->base.act) * P;
    return OPC_OK;
}

/* Settings, dimensions and threads, of the arguments or by default. */
static int steve_begin(struct steve *s, const struct opc_agent_args *args, struct opc_err *err)
{
    s->base = (struct opc_agent){.type = &opc_steve_type, .obs = args->obs, .act = args->act};
    if (args->config)
        s->config = *(const struct opc_steve_config *)args->config;
    else
        OPC_TRY(opc_section_defaults(&opc_steve_section, &s->config, err));
    /* Sizes that everything else is allocated by. */
    s->pool = args->pool;
    s->threads = opc_pool_threads(args->pool);
    s->panels = opc_panels(s->config.batch_size);
    s->columns = 2 * args->obs + args->act + 2;
    return OPC_OK;
}

/* A whole agent, or none: what a failure leaves half built is destroyed here. */
static int steve_create(const struct opc_agent_args *args, struct opc_agent **out,
                        struct opc_err *err)
{
    struct steve *s = opc_alloc(1, sizeof *s);
    if (!s)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    int code = steve_begin(s, args, err);
    if (!code)
        code = steve_make_networks(s, args->seed, err);
    if (!code)
        code = steve_make_batch(s, err);
    if (code) {
        steve_destroy(&s->base);
        return code;
    }
    *out = &s->base;
    return OPC_OK;
}

static size_t steve_need(const struct opc_agent_args *args)
{
    struct steve s = {0};
    struct steve_worker worker;
    struct opc_mlp_shape shape[STEVE_KINDS];
    struct opc_mlp net[STEVE_KINDS];
    struct opc_block of_worker[WORKER_BLOCKS], blocks[BLOCKS];
    struct opc_err ignored;
    if (steve_begin(&s, args, &ignored) ||
        shapes_of(&s.config, args->obs, args->act, shape, &ignored))
        return 0; /* create refuses these settings */
    for (int k = 0; k < STEVE_KINDS; k++) {
        if (opc_mlp_layout(&shape[k], &net[k], &ignored))
            return 0;
        s.ensemble[k].net = &net[k];
    }
    list_worker_blocks(&s, &worker, of_worker);
    list_blocks(&s, blocks);
    size_t thread = opc_blocks_need(of_worker, WORKER_BLOCKS) +
                    opc_alloc_need(steve_targets_need(&s, panels_of_thread(&s)), 1) +
                    opc_alloc_need(act_need(&s), 1);
    size_t bytes = opc_alloc_need(1, sizeof s) + opc_blocks_need(blocks, BLOCKS);
    /* Each network twice, as it is and as it was copied, with Adam's moments. */
    for (int k = 0; k < STEVE_KINDS; k++) {
        const size_t tape = opc_tape_bytes(&net[k], s.config.batch_size);
        bytes += 2 * opc_mlp_bytes(&net[k]) +
                 opc_adam_bytes((size_t)shape[k].members * net[k].each) +
                 (k <= STEVE_CRITIC ? tape : 0);
        thread += k >= STEVE_CRITIC ? tape : 0;
    }
    return bytes + (size_t)s.threads * thread;
}

/* Columns that other agents have, too, mean the same there. */
static const struct opc_agent_column COLUMNS[] = {
    [OPC_STEVE_Q] = {"q", OPC_OVER_MEAN},
    [OPC_STEVE_Q_TARGET] = {"q_target", OPC_OVER_MEAN},
    [OPC_STEVE_TARGET_MIN] = {"target_min", OPC_OVER_MIN},
    [OPC_STEVE_TARGET_MAX] = {"target_max", OPC_OVER_MAX},
    [OPC_STEVE_CRITIC_LOSS] = {"critic_loss", OPC_OVER_MEAN},
    [OPC_STEVE_ACTOR_LOSS] = {"actor_loss", OPC_OVER_MEAN},
    [OPC_STEVE_TD_WEIGHT] = {"td_weight", OPC_OVER_MEAN},
    [OPC_STEVE_MODEL_STEPS] = {"model_steps", OPC_OVER_MEAN},
    [OPC_STEVE_TRANSITION_LOSS] = {"transition_loss", OPC_OVER_MEAN},
    [OPC_STEVE_REWARD_LOSS] = {"reward_loss", OPC_OVER_MEAN},
    [OPC_STEVE_TERMINATION_LOSS] = {"termination_loss", OPC_OVER_MEAN},
    [OPC_STEVE_COLUMNS] = {NULL, OPC_OVER_MEAN},
};

const struct opc_agent_type opc_steve_type = {
    .name = "steve",
    .label = "STEVE",
    .colour = 0x8c564b,
    .needs = OPC_NEEDS_STEPS | OPC_NEEDS_RECORDED,
    .settings = &opc_steve_section,
    .columns = COLUMNS,
    .create = steve_create,
    .act = steve_act,
    .improve = steve_improve,
    .destroy = steve_destroy,
    .state = steve_state,
    .act_spread = steve_act_spread,
    .need = steve_need,
    .check = steve_check,
    .network = steve_network,
    .need_settings = "steve.batch_size or steve.*_hidden",
};
