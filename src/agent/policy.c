/* SPDX-License-Identifier: MIT */
#include "agent/policy.h"

#include "base/pool.h"
#include "num/normal.h"

enum { CHUNK = 8, ROWS = CHUNK * OPC_PANEL };

int opc_shape_from(int members, int in, const int *hidden, int depth, int out,
                   enum opc_activation activation, struct opc_mlp_shape *shape, struct opc_err *err)
{
    if (depth + 1 > OPC_MLP_LAYERS)
        return opc_fail(err, OPC_EUSER, "%d hidden layers are too many; at most %d", depth,
                        OPC_MLP_LAYERS - 1);
    *shape =
        (struct opc_mlp_shape){.members = members, .layers = depth + 1, .activation = activation};
    shape->width[0] = in;
    for (int i = 0; i < depth; i++)
        shape->width[i + 1] = hidden[i];
    shape->width[depth + 1] = out;
    return OPC_OK;
}

static size_t need(const struct opc_policy *p)
{
    return opc_mlp_infer_need(p->net, CHUNK) + opc_squash_need(p->act) +
           opc_arena_need((size_t)p->obs, ROWS * sizeof(float)) +
           4 * opc_arena_need((size_t)p->act, ROWS * sizeof(float));
}

int opc_policy_create(int obs, int act, const int *hidden, int depth, int threads,
                      struct opc_policy **out, struct opc_err *err)
{
    struct opc_mlp_shape shape;
    int code = opc_shape_from(1, obs, hidden, depth, 2 * act, OPC_ACTIVATION_RELU, &shape, err);
    if (code)
        return code;
    struct opc_policy *p = opc_alloc(1, sizeof *p);
    if (!p)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a policy");
    p->obs = obs;
    p->act = act;
    p->threads = threads;
    code = opc_mlp_create(&shape, &p->net, err);
    if (!code) {
        p->scratch = opc_alloc((size_t)threads, sizeof *p->scratch);
        if (!p->scratch)
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for a policy");
    }
    for (int i = 0; !code && i < threads; i++)
        code = opc_arena_create(need(p), &p->scratch[i], err);
    if (code) {
        opc_policy_destroy(p);
        return code;
    }
    *out = p;
    return OPC_OK;
}

void opc_policy_destroy(struct opc_policy *p)
{
    if (!p)
        return;
    for (int i = 0; p->scratch && i < p->threads; i++)
        opc_arena_destroy(&p->scratch[i]);
    opc_free(p->scratch);
    opc_mlp_destroy(p->net);
    opc_free(p);
}

struct asked {
    const struct opc_policy *p;
    const float *state;
    struct opc_rng *rng; /* NULL: the mode */
    float spread;        /* factor on the deviation */
    float *action;
};

static void act_on(void *ctx, int first, int end, int worker)
{
    const struct asked *q = ctx;
    const struct opc_policy *p = q->p;
    const struct opc_kernels *k = opc_kernels();
    struct opc_arena *scratch = &p->scratch[worker];
    const size_t mark = scratch->used, obs = (size_t)p->obs, act = (size_t)p->act;
    const int rows = end - first, panels = opc_panels(rows);
    float *x = opc_floats(scratch, obs, ROWS), *out = opc_floats(scratch, 2 * act, ROWS);
    float *eps = opc_floats(scratch, act, ROWS), *a = opc_floats(scratch, act, ROWS);
    k->gather(rows, p->obs, q->state + (size_t)first * obs, obs, NULL, x, obs * OPC_PANEL);
    opc_mlp_infer(p->net, 0, panels, x, obs * OPC_PANEL, 2 * p->act, out, 2 * act * OPC_PANEL,
                  scratch);
    if (q->rng)
        opc_rng_normals_rows(q->rng + first, rows, p->act, eps);
    for (size_t i = 0; q->rng && q->spread != 1 && i < (size_t)panels * act * OPC_PANEL; i++)
        eps[i] *= q->spread;
    for (int i = 0; i < panels; i++)
        opc_squash(p->act, out + (size_t)i * 2 * act * OPC_PANEL,
                   q->rng ? eps + (size_t)i * act * OPC_PANEL : NULL,
                   a + (size_t)i * act * OPC_PANEL, NULL, NULL, scratch);
    k->scatter(rows, p->act, a, act * OPC_PANEL, q->action + (size_t)first * act, act);
    opc_arena_rewind(scratch, mark);
}

void opc_policy_act(const struct opc_policy *p, int n, const float *state, bool explore,
                    struct opc_rng *rng, float *action, struct opc_pool *pool)
{
    struct asked q = {p, state, explore ? rng : NULL, 1, action};
    opc_pool_each(pool, n, ROWS, act_on, &q);
}

void opc_policy_act_spread(const struct opc_policy *p, int n, const float *state, float spread,
                           struct opc_rng *rng, float *action, struct opc_pool *pool)
{
    struct asked q = {p, state, rng, spread, action};
    opc_pool_each(pool, n, ROWS, act_on, &q);
}
