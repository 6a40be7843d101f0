/* SPDX-License-Identifier: MIT */
/* The derivatives of an ensemble's mean, by backward passes: a row is asked once for each of its
 * outputs, with the gradient 1 at that output and 0 at the others, so that one pass down gives the
 * Jacobians of a whole piece. The chain goes on through the input scale, and s' = s + (learned
 * difference) adds the identity. */
#include "model/ensemble_private.h"

#include <string.h>

enum { PIECE = 64 }; /* rows in one pass, each as often as there are outputs */

struct piece {
    const struct opc_ensemble *e;
    struct opc_tape *tape;
    float *flat, *x, *dx; /* [PIECE * dim][in], and in panels */
};

/* Rows row[0 .. n-1], all of one member, into J. */
static void differentiate(const struct piece *c, int member, int n, const int *row, const float *s,
                          const float *a, float *J)
{
    const struct opc_ensemble *e = c->e;
    const struct opc_kernels *k = opc_kernels();
    const int obs = e->base.obs, act = e->base.act, dim = e->dim, asked = n * dim;
    const int panels = opc_panels(asked), last = e->net->shape.layers - 1;
    const size_t in = (size_t)e->in, xs = in * OPC_PANEL, out = (size_t)(2 * dim) * OPC_PANEL;

    for (int i = 0; i < asked; i++) {
        float *to = c->flat + (size_t)i * in;
        memcpy(to, s + (size_t)row[i / dim] * (size_t)obs, (size_t)obs * sizeof *to);
        memcpy(to + obs, a + (size_t)row[i / dim] * (size_t)act, (size_t)act * sizeof *to);
    }
    k->gather(asked, e->in, c->flat, in, NULL, c->x, xs);
    opc_scaler_apply(e->scaler, panels, c->x, xs);
    c->tape->x = c->x;
    c->tape->xs = xs;
    opc_mlp_forward_part(e->net, member, 0, panels, c->tape);

    float *dy = c->tape->dy[last];
    memset(dy, 0, (size_t)panels * out * sizeof *dy);
    for (int i = 0; i < asked; i++)
        dy[(size_t)(i / OPC_PANEL) * out + (size_t)(i % dim * OPC_PANEL + i % OPC_PANEL)] = 1.0f;
    opc_mlp_backward_part(e->net, member, 0, panels, c->tape);
    opc_mlp_inputs_part(e->net, member, 0, panels, 0, e->in, c->tape, c->dx, xs);
    k->scatter(asked, e->in, c->dx, xs, c->flat, in);

    for (int i = 0; i < asked; i++) {
        const int output = i % dim;
        float *to = J + ((size_t)row[i / dim] * (size_t)dim + (size_t)output) * in;
        for (size_t j = 0; j < in; j++)
            to[j] = c->flat[(size_t)i * in + j] * e->scaler->inverse[j];
        if (output < obs)
            to[output] += 1.0f;
    }
}

int opc_ensemble_jacobian(const struct opc_predictor *p, int n, const float *s, const float *a,
                          const int *elite, float *J, struct opc_pool *pool, struct opc_err *err)
{
    (void)pool;
    const struct opc_ensemble *e = (const struct opc_ensemble *)p;
    const int max = PIECE * e->dim;
    const size_t count = (size_t)opc_panels(max) * OPC_PANEL * (size_t)e->in;
    struct piece c = {.e = e,
                      .flat = opc_alloc(count, sizeof(float)),
                      .x = opc_alloc(count, sizeof(float)),
                      .dx = opc_alloc(count, sizeof(float))};
    int code = OPC_OK;
    if (!c.flat || !c.x || !c.dx)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to differentiate the model");
    else
        code = opc_tape_create(e->net, max, &c.tape, err);
    for (int k = 0; !code && k < p->elites; k++)
        for (int i = 0; i < n;) {
            int row[PIECE], found = 0;
            for (; i < n && found < PIECE; i++)
                if (elite[i] == k)
                    row[found++] = i;
            if (found)
                differentiate(&c, p->elite[k], found, row, s, a, J);
        }
    opc_tape_destroy(c.tape);
    opc_free(c.flat);
    opc_free(c.x);
    opc_free(c.dx);
    return code;
}
