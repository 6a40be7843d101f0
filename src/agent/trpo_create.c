/* SPDX-License-Identifier: MIT */
/* Building and freeing what agent/trpo.c computes with: networks, tapes and the memory of a batch.
 * Everything is allocated here, so that an update cannot fail for lack of memory. */
#include "agent/trpo.h"

#include "base/pool.h"

#include <string.h>

enum { P = OPC_PANEL, CHUNK = 8, ROWS = CHUNK * P }; /* as in trpo.c */

void opc_trpo_destroy(struct opc_trpo *t)
{
    if (!t)
        return;
    opc_mlp_destroy(t->policy);
    opc_mlp_destroy(t->value);
    opc_adam_destroy(t->value_adam);
    opc_tape_destroy(t->policy_tape);
    opc_tape_destroy(t->value_tape);
    for (int l = 0; l < OPC_MLP_LAYERS; l++)
        opc_free(t->transposed[l]);
    for (int i = 0; t->scratch && i < t->threads; i++)
        opc_arena_destroy(&t->scratch[i]);
    void *const block[] = {t->log_std,  t->state,     t->action,      t->reward,     t->done,
                           t->values,   t->advantage, t->target,      t->row,        t->order,
                           t->x,        t->old_mean,  t->old_logp,    t->row_gain,   t->old_log_std,
                           t->row_kl,   t->direction, t->grad,        t->value_grad, t->value_x,
                           t->zeros,    t->gradient,  t->step,        t->work,       t->kept,
                           t->dlog_std, t->scratch,   t->inverse_std, t->var_ratio};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        opc_free(block[i]);
    opc_free(t);
}

/* The shapes of the two networks, with tanh layers. */
static int shapes_of(const struct opc_trpo_options *o, struct opc_mlp_shape *policy,
                     struct opc_mlp_shape *value, struct opc_err *err)
{
    OPC_TRY(opc_mlp_shape_from(1, o->obs, o->policy_hidden, o->policy_depth, o->act,
                               OPC_ACTIVATION_TANH, policy, err));
    return opc_mlp_shape_from(1, o->obs, o->value_hidden, o->value_depth, 1, OPC_ACTIVATION_TANH,
                              value, err);
}

/* Each output's first weights have the norm 1, those of the policy's last layer 0.01, so that it
 * starts close to the same action everywhere. */
static int make_networks(struct opc_trpo *t, const struct opc_trpo_options *o, struct opc_err *err)
{
    struct opc_mlp_shape policy, value;
    OPC_TRY(shapes_of(o, &policy, &value, err));
    OPC_TRY(opc_mlp_create(&policy, &t->policy, err));
    OPC_TRY(opc_mlp_create(&value, &t->value, err));
    opc_mlp_init_normalized(t->policy, 1, 0.01, o->seed, o->which);
    opc_mlp_init_normalized(t->value, 1, 1, o->seed, o->which + 1);
    OPC_TRY(opc_adam_create(t->value->each, opc_adam_usual(o->value_learning_rate), &t->value_adam,
                            err));
    OPC_TRY(opc_tape_create(t->policy, t->rows, &t->policy_tape, err));
    return opc_tape_create(t->value, o->value_batch, &t->value_tape, err);
}

/* What a batch and an update are kept in. */
enum { BLOCKS = 27 };
static void list_blocks(struct opc_trpo *t, struct opc_block blocks[BLOCKS])
{
    const struct opc_trpo_options *o = &t->options;
    const size_t n = (size_t)t->rows, obs = (size_t)o->obs, act = (size_t)o->act;
    const size_t states = (size_t)o->envs * (size_t)(o->length + 1), f = sizeof(float);
    const size_t padded = (size_t)opc_panels(t->rows) * P, real = sizeof(double);
    const struct opc_block all[BLOCKS] = {
        {&t->state, states, obs * f},
        {&t->action, n, act * f},
        {&t->reward, n, real},
        {&t->done, n, sizeof(bool)},
        {&t->values, states, real},
        {&t->advantage, n, real},
        {&t->target, n, real},
        {&t->row, n, sizeof(int)},
        {&t->order, n, sizeof(int)},
        {&t->x, padded, obs * f},
        {&t->old_mean, padded, act * f},
        {&t->old_log_std, act, f},
        {&t->old_logp, n, real},
        {&t->row_gain, n, real},
        {&t->row_kl, n, real},
        {&t->value_x, (size_t)opc_panels(o->value_batch) * P, obs * f},
        {&t->log_std, act, f},
        {&t->dlog_std, act, real},
        {&t->inverse_std, act, real},
        {&t->var_ratio, act, real},
        {&t->direction, t->policy->each, f},
        {&t->grad, t->policy->each, f},
        {&t->value_grad, t->value->each, f},
        {&t->gradient, t->params, real},
        {&t->step, t->params, real},
        {&t->work, 3 * t->params, real},
        {&t->kept, t->params, f},
    };
    memcpy(blocks, all, sizeof all);
}

static int make_batch(struct opc_trpo *t, struct opc_err *err)
{
    const struct opc_trpo_options *o = &t->options;
    struct opc_block blocks[BLOCKS];
    list_blocks(t, blocks);
    if (!opc_alloc_all(blocks, BLOCKS))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a batch of %d steps", t->rows);
    for (int e = 0, i = 0; e < o->envs; e++)
        for (int k = 0; k < o->length; k++, i++)
            t->row[i] = e * (o->length + 1) + k;
    for (int k = 0; k < o->act; k++)
        t->log_std[k] = (float)o->log_std_init;
    t->policy_tape->x = t->x;
    t->value_tape->x = t->value_x;
    t->policy_tape->xs = t->value_tape->xs = (size_t)o->obs * P;
    return OPC_OK;
}

/* Scratch of one thread: one of values_chunk, act_some and product_chunk at a time. */
static size_t scratch_of(const struct opc_trpo *t)
{
    const struct opc_mlp *net = t->policy;
    const size_t wide = ROWS * sizeof(float), obs = (size_t)t->options.obs,
                 act = (size_t)t->options.act;
    size_t product = 0;
    for (int l = 0; l < net->shape.layers; l++)
        product += 2 * opc_arena_need((size_t)net->layer[l].out, wide);
    const size_t a = opc_mlp_infer_need(net, CHUNK), b = opc_mlp_infer_need(t->value, CHUNK);
    const size_t infer = (a > b ? a : b) + opc_arena_need(obs, wide) + opc_arena_need(1, wide) +
                         2 * opc_arena_need(act, wide);
    return product > infer ? product : infer;
}

/* Floats of a bias of zeros for the policy's widest layer. */
static size_t zeros_of(const struct opc_trpo *t)
{
    int widest = 0;
    for (int l = 0; l < t->policy->shape.layers; l++)
        widest = t->policy->layer[l].out > widest ? t->policy->layer[l].out : widest;
    return (size_t)widest + P;
}

/* Transposed inputs of the policy's layers, the zeros, and scratch of the threads. */
static int make_scratch(struct opc_trpo *t, struct opc_err *err)
{
    const struct opc_mlp *net = t->policy;
    for (int l = 0; l < net->shape.layers; l++) {
        t->transposed[l] =
            opc_alloc(opc_transposed_size(opc_panels(t->rows), net->layer[l].in), sizeof(float));
        if (!t->transposed[l])
            return opc_fail(err, OPC_ENOMEM, "not enough memory for a batch of %d steps", t->rows);
    }
    t->zeros = opc_alloc(zeros_of(t), sizeof(float));
    t->scratch = opc_alloc((size_t)t->threads, sizeof *t->scratch);
    if (!t->zeros || !t->scratch)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    for (int i = 0; i < t->threads; i++)
        OPC_TRY(opc_arena_create(scratch_of(t), &t->scratch[i], err));
    return OPC_OK;
}

/* Sizes that everything else is allocated by. */
static void set_sizes(struct opc_trpo *t, const struct opc_trpo_options *o)
{
    t->options = *o;
    t->options.policy_hidden = t->options.value_hidden = NULL;
    t->rows = o->envs * o->length;
    t->threads = opc_pool_threads(o->pool);
}

int opc_trpo_create(const struct opc_trpo_options *o, struct opc_trpo **out, struct opc_err *err)
{
    struct opc_trpo *t = opc_alloc(1, sizeof *t);
    if (!t)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    set_sizes(t, o);
    int code = make_networks(t, o, err);
    if (!code) {
        t->params = t->policy->each + (size_t)o->act;
        code = make_batch(t, err);
    }
    if (!code)
        code = make_scratch(t, err);
    if (code) {
        opc_trpo_destroy(t);
        return code;
    }
    *out = t;
    return OPC_OK;
}

size_t opc_trpo_need(const struct opc_trpo_options *o)
{
    struct opc_mlp_shape shape[2];
    struct opc_mlp policy, value;
    struct opc_err ignored;
    if (shapes_of(o, &shape[0], &shape[1], &ignored) ||
        opc_mlp_layout(&shape[0], &policy, &ignored) || opc_mlp_layout(&shape[1], &value, &ignored))
        return 0; /* create refuses these options */
    struct opc_trpo t = {.policy = &policy, .value = &value};
    struct opc_block blocks[BLOCKS];
    set_sizes(&t, o);
    t.params = policy.each + (size_t)o->act;
    list_blocks(&t, blocks);
    size_t bytes = opc_alloc_need(1, sizeof t) + opc_mlp_bytes(&policy) + opc_mlp_bytes(&value) +
                   opc_adam_bytes(value.each) + opc_tape_bytes(&policy, t.rows) +
                   opc_tape_bytes(&value, o->value_batch) + opc_blocks_need(blocks, BLOCKS) +
                   opc_alloc_need(zeros_of(&t), sizeof(float));
    for (int l = 0; l < policy.shape.layers; l++)
        bytes += opc_alloc_need(opc_transposed_size(opc_panels(t.rows), policy.layer[l].in),
                                sizeof(float));
    return bytes + (size_t)t.threads *
                       (opc_alloc_need(1, sizeof *t.scratch) + opc_alloc_need(scratch_of(&t), 1));
}
