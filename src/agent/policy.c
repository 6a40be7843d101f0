/* SPDX-License-Identifier: MIT */
/* Acting with a squashed-Gaussian policy. SAC's act calls it for real steps (run/train.c), imagined
 * steps (run/imagine.c) and evaluation (run/real/evaluate.c). The threads of a pool share the rows;
 * a row draws from its own stream, so an action does not depend on the other rows or on the number
 * of threads. Learning is in agent/sac_update.c. */
#include "agent/policy.h"

#include "base/pool.h"
#include "num/normal.h"

/* Panels, and so rows, that go through the network together, small enough to stay in the cache. */
enum { CHUNK = 8, ROWS = CHUNK * OPC_PANEL };

/* Bytes of scratch for one thread in act_on_rows. */
static size_t policy_scratch_need(const struct opc_policy *policy)
{
    return opc_mlp_infer_need(policy->net, CHUNK) + opc_squash_need(policy->act) +
           opc_arena_need((size_t)policy->obs, ROWS * sizeof(float)) +
           4 * opc_arena_need((size_t)policy->act, ROWS * sizeof(float));
}

int opc_policy_create(int obs, int act, const int *hidden, int depth, int threads,
                      struct opc_policy **out, struct opc_err *err)
{
    struct opc_mlp_shape shape;
    int code = opc_mlp_shape_from(1, obs, hidden, depth, 2 * act, OPC_ACTIVATION_RELU, &shape, err);
    if (code)
        return code;
    struct opc_policy *policy = opc_alloc(1, sizeof *policy);
    if (!policy)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a policy");
    policy->obs = obs;
    policy->act = act;
    policy->threads = threads;
    code = opc_mlp_create(&shape, &policy->net, err);
    if (!code) {
        policy->scratch = opc_alloc((size_t)threads, sizeof *policy->scratch);
        if (!policy->scratch)
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for a policy");
    }
    for (int i = 0; !code && i < threads; i++)
        code = opc_arena_create(policy_scratch_need(policy), &policy->scratch[i], err);
    if (code) {
        opc_policy_destroy(policy);
        return code;
    }
    *out = policy;
    return OPC_OK;
}

void opc_policy_destroy(struct opc_policy *policy)
{
    if (!policy)
        return;
    for (int i = 0; policy->scratch && i < policy->threads; i++)
        opc_arena_destroy(&policy->scratch[i]);
    opc_free(policy->scratch);
    opc_mlp_destroy(policy->net);
    opc_free(policy);
}

/* What all chunks of one call share. */
struct request {
    const struct opc_policy *policy;
    const float *state;
    struct opc_rng *rng; /* NULL: the mode */
    float spread;        /* factor on the deviation */
    float *action;
};

/* Takes rows first .. end-1, no more than ROWS, from states to actions. */
static void act_on_rows(void *ctx, int first, int end, int worker)
{
    const struct request *request = ctx;
    const struct opc_policy *policy = request->policy;
    const struct opc_kernels *k = opc_kernels();
    struct opc_arena *scratch = &policy->scratch[worker];
    const size_t mark = scratch->used, obs = (size_t)policy->obs, act = (size_t)policy->act;
    const int rows = end - first, panels = opc_panels(rows);
    float *x = opc_floats(scratch, obs, ROWS), *out = opc_floats(scratch, 2 * act, ROWS);
    float *eps = opc_floats(scratch, act, ROWS), *a = opc_floats(scratch, act, ROWS);
    k->gather(rows, policy->obs, request->state + (size_t)first * obs, obs, NULL, x,
              obs * OPC_PANEL);
    opc_mlp_infer(policy->net, 0, panels, x, obs * OPC_PANEL, 2 * policy->act, out,
                  2 * act * OPC_PANEL, scratch);
    /* The noise, row by row from the rows' own streams, scaled by `spread`. */
    if (request->rng)
        opc_rng_normals_rows(request->rng + first, rows, policy->act, eps);
    for (size_t i = 0; request->rng && request->spread != 1 && i < (size_t)panels * act * OPC_PANEL;
         i++)
        eps[i] *= request->spread;
    /* a = tanh(mean + std eps), or tanh(mean) without noise; then back to rows. */
    for (int i = 0; i < panels; i++)
        opc_squash(policy->act, out + (size_t)i * 2 * act * OPC_PANEL,
                   request->rng ? eps + (size_t)i * act * OPC_PANEL : NULL,
                   a + (size_t)i * act * OPC_PANEL, NULL, NULL, scratch);
    k->scatter(rows, policy->act, a, act * OPC_PANEL, request->action + (size_t)first * act, act);
    opc_arena_rewind(scratch, mark);
}

void opc_policy_act(const struct opc_policy *policy, int n, const float *state, bool explore,
                    struct opc_rng *rng, float *action, struct opc_pool *pool)
{
    struct request request = {policy, state, explore ? rng : NULL, 1, action};
    opc_pool_each(pool, n, ROWS, act_on_rows, &request);
}

void opc_policy_act_spread(const struct opc_policy *policy, int n, const float *state, float spread,
                           struct opc_rng *rng, float *action, struct opc_pool *pool)
{
    struct request request = {policy, state, rng, spread, action};
    opc_pool_each(pool, n, ROWS, act_on_rows, &request);
}
