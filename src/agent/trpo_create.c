/* SPDX-License-Identifier: MIT */
/* Building and freeing what agent/trpo.c computes with: networks, tapes and the memory of a batch.
 * Everything is allocated here, so that an update cannot fail for lack of memory. */
#include "agent/trpo.h"

#include "base/pool.h"

#include <math.h>

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

/* Networks with tanh layers; each output's first weights have the norm 1, those of the policy's
 * last layer 0.01, so that it starts close to the same action everywhere. */
static int make_networks(struct opc_trpo *t, const struct opc_trpo_options *o, struct opc_err *err)
{
    struct opc_mlp_shape shape;
    OPC_TRY(opc_mlp_shape_from(1, o->obs, o->policy_hidden, o->policy_depth, o->act,
                               OPC_ACTIVATION_TANH, &shape, err));
    OPC_TRY(opc_mlp_create(&shape, &t->policy, err));
    OPC_TRY(opc_mlp_shape_from(1, o->obs, o->value_hidden, o->value_depth, 1, OPC_ACTIVATION_TANH,
                               &shape, err));
    OPC_TRY(opc_mlp_create(&shape, &t->value, err));
    opc_mlp_init_normalized(t->policy, 1, 0.01, o->seed, o->which);
    opc_mlp_init_normalized(t->value, 1, 1, o->seed, o->which + 1);
    OPC_TRY(opc_adam_create(t->value->each, opc_adam_usual(o->value_learning_rate), &t->value_adam,
                            err));
    OPC_TRY(opc_tape_create(t->policy, t->rows, &t->policy_tape, err));
    return opc_tape_create(t->value, o->value_batch, &t->value_tape, err);
}

static int make_batch(struct opc_trpo *t, struct opc_err *err)
{
    const struct opc_trpo_options *o = &t->options;
    const size_t n = (size_t)t->rows, obs = (size_t)o->obs, act = (size_t)o->act;
    const size_t states = (size_t)o->envs * (size_t)(o->length + 1), f = sizeof(float);
    const size_t padded = (size_t)opc_panels(t->rows) * P, real = sizeof(double);
    const struct opc_block blocks[] = {
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
    if (!opc_alloc_all(blocks, sizeof blocks / sizeof *blocks))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a batch of %d steps", t->rows);
    for (int e = 0, i = 0; e < o->envs; e++)
        for (int k = 0; k < o->length; k++, i++)
            t->row[i] = e * (o->length + 1) + k;
    for (size_t k = 0; k < act; k++)
        t->log_std[k] = (float)o->log_std_init;
    t->policy_tape->x = t->x;
    t->policy_tape->xs = obs * P;
    t->value_tape->x = t->value_x;
    t->value_tape->xs = obs * P;
    return OPC_OK;
}

/* Transposed inputs of the policy's layers, a bias of zeros for the widest, and scratch of the
 * threads: one of values_chunk, act_some and product_chunk at a time. */
static int make_scratch(struct opc_trpo *t, struct opc_err *err)
{
    const struct opc_mlp *net = t->policy;
    const size_t wide = ROWS * sizeof(float), obs = (size_t)t->options.obs,
                 act = (size_t)t->options.act;
    size_t product = 0, widest = 0;
    for (int l = 0; l < net->shape.layers; l++) {
        const struct opc_layer *layer = &net->layer[l];
        product += 2 * opc_arena_need((size_t)layer->out, wide);
        widest = (size_t)layer->out > widest ? (size_t)layer->out : widest;
        t->transposed[l] =
            opc_alloc(opc_transposed_size(opc_panels(t->rows), layer->in), sizeof(float));
        if (!t->transposed[l])
            return opc_fail(err, OPC_ENOMEM, "not enough memory for a batch of %d steps", t->rows);
    }
    const size_t a = opc_mlp_infer_need(net, CHUNK), b = opc_mlp_infer_need(t->value, CHUNK);
    const size_t infer = (a > b ? a : b) + opc_arena_need(obs, wide) + opc_arena_need(1, wide) +
                         2 * opc_arena_need(act, wide);
    t->zeros = opc_alloc(widest + P, sizeof(float));
    t->scratch = opc_alloc((size_t)t->threads, sizeof *t->scratch);
    if (!t->zeros || !t->scratch)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    for (int i = 0; i < t->threads; i++)
        OPC_TRY(opc_arena_create(product > infer ? product : infer, &t->scratch[i], err));
    return OPC_OK;
}

int opc_trpo_create(const struct opc_trpo_options *o, struct opc_trpo **out, struct opc_err *err)
{
    struct opc_trpo *t = opc_alloc(1, sizeof *t);
    if (!t)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    t->options = *o;
    t->options.policy_hidden = t->options.value_hidden = NULL;
    t->rows = o->envs * o->length;
    t->threads = opc_pool_threads(o->pool);
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

double opc_trpo_need(const struct opc_trpo_options *o)
{
    const double rows = (double)o->envs * (o->length + 1), f = sizeof(float);
    double units = o->act, inputs = 16 + o->obs;
    for (int i = 0; i < o->policy_depth; i++) {
        units += o->policy_hidden[i];
        inputs += 16 + o->policy_hidden[i];
    }
    /* the batch, what the policy remembers of it, and its layers' transposed inputs */
    return rows * (f * (2.0 * o->obs + 2.0 * o->act + 2 * units + 2 * inputs) + 72);
}
