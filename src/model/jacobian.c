/* SPDX-License-Identifier: MIT */
/* The derivatives of an ensemble's mean by s and a, for iterative learning control
 * (study/ilc/ilc.c, through opc_predictor_jacobian).
 *
 * They come from backward passes: each row stands in the batch once for each of its outputs, with
 * the gradient 1 at that output and 0 at the others, so that one backward pass gives the Jacobians
 * of many rows. The chain rule goes on through the scales of inputs and targets, and s' = s +
 * (learned difference) adds the identity. It is not for inner loops: it allocates, and runs on one
 * thread. */
#include "model/ensemble_private.h"

#include <string.h>

enum { PIECE = 64 }; /* rows in one pass, each as often as there are outputs */

struct piece {
    const struct opc_ensemble *ensemble;
    struct opc_tape *tape;
    float *flat;   /* [PIECE * dim][in] rows */
    float *x, *dx; /* the same in panels: inputs, and gradients by the inputs */
};

/* The Jacobians of rows row[0 .. n-1], all of one member, into J[row][dim][in]. */
static void jacobian_of_piece(const struct piece *piece, int member, int n, const int *row,
                              const float *s, const float *a, float *J)
{
    const struct opc_ensemble *ensemble = piece->ensemble;
    const struct opc_kernels *k = opc_kernels();
    const int obs = ensemble->base.obs, act = ensemble->base.act, dim = ensemble->dim,
              asked = n * dim;
    const int panels = opc_panels(asked), last = ensemble->net->shape.layers - 1;
    const size_t in = (size_t)ensemble->in, xs = in * OPC_PANEL,
                 out = (size_t)(2 * dim) * OPC_PANEL;

    /* The inputs (s, a) of row i / dim, `dim` times over; then the forward pass. */
    for (int i = 0; i < asked; i++) {
        float *to = piece->flat + (size_t)i * in;
        memcpy(to, s + (size_t)row[i / dim] * (size_t)obs, (size_t)obs * sizeof *to);
        memcpy(to + obs, a + (size_t)row[i / dim] * (size_t)act, (size_t)act * sizeof *to);
    }
    k->gather(asked, ensemble->in, piece->flat, in, NULL, piece->x, xs);
    opc_scaler_apply(ensemble->scaler, panels, piece->x, xs);
    piece->tape->x = piece->x;
    piece->tape->xs = xs;
    opc_mlp_forward_part(ensemble->net, member, 0, panels, piece->tape);

    /* dy[i] is 1 at output i % dim, among the means alone: the log-variances get no gradient. */
    float *dy = piece->tape->dy[last];
    memset(dy, 0, (size_t)panels * out * sizeof *dy);
    for (int i = 0; i < asked; i++)
        dy[(size_t)(i / OPC_PANEL) * out + (size_t)(i % dim * OPC_PANEL + i % OPC_PANEL)] = 1.0f;
    opc_mlp_backward_part(ensemble->net, member, 0, panels, piece->tape);
    opc_mlp_inputs_part(ensemble->net, member, 0, panels, 0, ensemble->in, piece->tape, piece->dx,
                        xs);
    k->scatter(asked, ensemble->in, piece->dx, xs, piece->flat, in);

    /* Through the input scale (x - mean) / std and the targets' d, and + 1 where s' = s +
     * difference. */
    for (int i = 0; i < asked; i++) {
        const int output = i % dim;
        const float d = ensemble->target ? (float)opc_scaler_std(ensemble->target, output) : 1.0f;
        float *to = J + ((size_t)row[i / dim] * (size_t)dim + (size_t)output) * in;
        for (size_t j = 0; j < in; j++)
            to[j] = piece->flat[(size_t)i * in + j] * ensemble->scaler->inverse[j] * d;
        if (output < obs)
            to[output] += 1.0f;
    }
}

int opc_ensemble_jacobian(const struct opc_predictor *p, int n, const float *s, const float *a,
                          const int *elite, float *J, struct opc_pool *pool, struct opc_err *err)
{
    (void)pool;
    const struct opc_ensemble *ensemble = (const struct opc_ensemble *)p;
    const int max = PIECE * ensemble->dim;
    const size_t count = (size_t)opc_panels(max) * OPC_PANEL * (size_t)ensemble->in;
    struct piece piece = {.ensemble = ensemble,
                          .flat = opc_alloc(count, sizeof(float)),
                          .x = opc_alloc(count, sizeof(float)),
                          .dx = opc_alloc(count, sizeof(float))};
    int code = OPC_OK;
    if (!piece.flat || !piece.x || !piece.dx)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to differentiate the model");
    else
        code = opc_tape_create(ensemble->net, max, &piece.tape, err);
    /* Elite by elite, PIECE of its rows at a time. */
    for (int k = 0; !code && k < p->elites; k++)
        for (int i = 0; i < n;) {
            int row[PIECE], found = 0;
            for (; i < n && found < PIECE; i++)
                if (elite[i] == k)
                    row[found++] = i;
            if (found)
                jacobian_of_piece(&piece, p->elite[k], found, row, s, a, J);
        }
    opc_tape_destroy(piece.tape);
    opc_free(piece.flat);
    opc_free(piece.x);
    opc_free(piece.dx);
    return code;
}
