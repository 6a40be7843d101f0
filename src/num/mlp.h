/* SPDX-License-Identifier: MIT */
/* num/mlp.h - multi-layer perceptrons, and ensembles of them as the ordinary case.
 *
 * A network has `members` of one shape (1 for a policy, 2 for twin critics, 7 for a dynamics
 * model). Each member's parameters are one run of floats, layer after layer, weights
 * w[out][ld] then biases, so that Adam, averaging and saving are one pass. Batches are panels
 * (kernel.h). Where something has a `_part` form, that form does a slice of one member on the
 * calling thread and slices may run at once: panels for what goes row by row, outputs for what
 * sums over rows. No result depends on how the work was sliced. */
#ifndef OPC_NUM_MLP_H
#define OPC_NUM_MLP_H

#include "num/kernel.h"
#include "opc/mem.h"

struct opc_pool;

enum { OPC_MLP_LAYERS = 8 };

struct opc_mlp_shape {
    int members, layers;
    int width[OPC_MLP_LAYERS + 1];  /* inputs, hidden ..., outputs: layers + 1 numbers */
    enum opc_activation activation; /* the last layer is linear */
    bool layer_norm; /* hidden layers: W x + b, layer normalisation, activation; ReLU only */
};

struct opc_layer {
    int in, out, ld;
    enum opc_activation activation;
    bool layer_norm;     /* before the activation */
    size_t weight, bias; /* where they start in a member's parameters */
    size_t end;          /* and where the layer ends */
};

struct opc_mlp {
    struct opc_mlp_shape shape;
    struct opc_layer layer[OPC_MLP_LAYERS];
    size_t each;  /* floats of one member, padding included; padding always stays 0 */
    float *param; /* [members][each] */
};

int opc_mlp_create(const struct opc_mlp_shape *, struct opc_mlp **out, struct opc_err *err);
/* Where the layers of such a network lie, in *out, which has no parameters: for sizes that are
 * asked ahead. OPC_EUSER as opc_mlp_create. */
int opc_mlp_layout(const struct opc_mlp_shape *, struct opc_mlp *out, struct opc_err *err);
size_t opc_mlp_bytes(const struct opc_mlp *); /* what create takes */
void opc_mlp_destroy(struct opc_mlp *);       /* NULL is fine */
static inline float *opc_mlp_member(const struct opc_mlp *net, int member)
{
    return net->param + (size_t)member * net->each;
}
/* {inputs, hidden x depth, outputs} */
struct opc_mlp_shape opc_mlp_shape_of(int members, int inputs, int hidden, int depth, int outputs,
                                      enum opc_activation activation);
/* {inputs, hidden[depth], outputs}. OPC_EUSER: more layers than OPC_MLP_LAYERS. */
int opc_mlp_shape_from(int members, int inputs, const int *hidden, int depth, int outputs,
                       enum opc_activation activation, struct opc_mlp_shape *out,
                       struct opc_err *err);

enum opc_init {
    OPC_INIT_TRUNCATED, /* normal, std 1 / (2 sqrt(in)), drawn again outside 2 std; PETS, MBPO */
    OPC_INIT_GLOROT,    /* uniform within sqrt(6 / (in + out)); SAC */
};
/* Fresh weights, zero biases. Member m draws from stream (seed, OPC_USE_INIT, which, m). */
void opc_mlp_init(struct opc_mlp *, enum opc_init, uint64_t seed, uint32_t which);
/* Orthonormal rows or columns, whichever are fewer, times a gain: `last` for the last layer, `gain`
 * for those before it; PPO. From the same streams. */
int opc_mlp_init_orthogonal(struct opc_mlp *, double gain, double last, uint64_t seed,
                            uint32_t which, struct opc_err *err);
/* Each output's weights are Gaussian, scaled to a norm: `last` in the last layer, `gain` in those
 * before it; TRPO. From the same streams. */
void opc_mlp_init_normalized(struct opc_mlp *, double gain, double last, uint64_t seed,
                             uint32_t which);

/* What one member remembers of a forward pass, for the backward pass. */
struct opc_tape {
    int rows, panels;                  /* capacity */
    const float *x;                    /* borrowed: the batch, in panels */
    size_t xs;                         /* floats from one of its panels to the next */
    float *y[OPC_MLP_LAYERS];          /* [panels][out][16] outputs of each layer */
    float *slope[OPC_MLP_LAYERS];      /* swish only, in dy's memory */
    float *dy[OPC_MLP_LAYERS];         /* [panels][out][16] dloss / d(W x + b), before activation */
    float *normalized[OPC_MLP_LAYERS]; /* layer normalisation's outputs, in dy's memory */
    float *inv_std[OPC_MLP_LAYERS];    /* [panels][16] and its 1 / standard deviation of each row */
    float *transposed;                 /* memory for the transposed inputs of any one layer */
};
int opc_tape_create(const struct opc_mlp *, int rows, struct opc_tape **out, struct opc_err *err);
void opc_tape_destroy(struct opc_tape *);                /* NULL is fine */
size_t opc_tape_bytes(const struct opc_mlp *, int rows); /* what create takes */

/* Forward pass of panels p0 .. p1-1 of tape->x, which the caller has set; the result is tape->y of
 * the last layer. */
void opc_mlp_forward_part(const struct opc_mlp *, int member, int p0, int p1, struct opc_tape *);
/* Backward pass from tape->dy of the last layer, which the caller has filled, down to tape->dy[0].
 * Only once after each forward pass: it overwrites slopes and normalised values. */
void opc_mlp_backward_part(const struct opc_mlp *, int member, int p0, int p1, struct opc_tape *);
/* One layer of that: tape->dy[layer] to tape->dy[layer - 1], layer >= 1. */
void opc_mlp_backward_layer(const struct opc_mlp *, int member, int layer, int p0, int p1,
                            struct opc_tape *);
/* The gradient of the loss by inputs from .. from+count-1, into dx[panels][dxs]. */
void opc_mlp_inputs_part(const struct opc_mlp *, int member, int p0, int p1, int from, int count,
                         const struct opc_tape *, float *dx, size_t dxs);
/* Transposes panels p0 .. p1-1 of a layer's inputs, as opc_mlp_gradient_part wants them, into
 * opc_transposed_size(panels, in) floats. `panels` are those of the whole batch. */
void opc_mlp_transpose_part(const struct opc_mlp *, int layer, int p0, int p1, int panels,
                            const struct opc_tape *, float *transposed);
/* The gradient of the loss by the weights and biases of outputs o0 .. o1-1 of a layer, summed over
 * rows 0 .. rows-1, into a member's gradient, laid out as its parameters. */
void opc_mlp_gradient_part(const struct opc_mlp *, int layer, int o0, int o1, int rows,
                           const struct opc_tape *, const float *transposed, float *grad);
/* The same for all layers of a member, from the dy of every layer. It uses tape->transposed. */
void opc_mlp_weight_gradient(const struct opc_mlp *, int rows, struct opc_tape *, float *grad);

/* All members at once. Member m reads x + m * apart: apart = 0 is one batch shared by all.
 * tape[members]; pool may be NULL. */
void opc_mlp_forward(const struct opc_mlp *, int rows, const float *x, size_t xs, size_t apart,
                     struct opc_tape *const tape[], struct opc_pool *);
/* grad[members][each] or NULL; dx[members][panels * dxs] or NULL. */
void opc_mlp_backward(const struct opc_mlp *, int rows, struct opc_tape *const tape[], float *grad,
                      float *dx, size_t dxs, struct opc_pool *);

/* Forward without a tape: panels of x through one member, its first `outputs` outputs into
 * y[panels][ys]. scratch needs opc_mlp_infer_need. */
void opc_mlp_infer(const struct opc_mlp *, int member, int panels, const float *x, size_t xs,
                   int outputs, float *y, size_t ys, struct opc_arena *scratch);
size_t opc_mlp_infer_need(const struct opc_mlp *, int panels);

#endif
