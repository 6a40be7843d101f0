/* SPDX-License-Identifier: MIT */
/* Networks: parameters, first weights, forward and backward passes. Agents and the ensemble call
 * the `_part` forms on slices of a batch from their own threads. A change must keep two things: no
 * result depends on how the work was sliced, and padding of the parameters stays 0, because Adam,
 * weight decay and checkpoints run over it, too. */
#include "num/mlp.h"

#include "base/pool.h"
#include "num/normal.h"

#include <math.h>

/* Rounds up to whole cache lines of 16 floats: weights and biases of each layer start on one. */
static size_t round_to_line(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

/* Floats from one row of weights to the next. Rows start at multiples of 32 bytes; a power of two
 * would put them all into the same cache sets. */
static int leading_dimension(int in)
{
    int ld = (in + 7) / 8 * 8;
    return ld >= 64 && (ld & (ld - 1)) == 0 ? ld + 8 : ld;
}

struct opc_mlp_shape opc_mlp_shape_of(int members, int inputs, int hidden, int depth, int outputs,
                                      enum opc_activation activation)
{
    struct opc_mlp_shape shape = {
        .members = members, .layers = depth + 1, .activation = activation};
    shape.width[0] = inputs;
    for (int i = 1; i <= depth && i < OPC_MLP_LAYERS; i++)
        shape.width[i] = hidden;
    if (depth + 1 <= OPC_MLP_LAYERS)
        shape.width[depth + 1] = outputs;
    return shape;
}

int opc_mlp_shape_from(int members, int inputs, const int *hidden, int depth, int outputs,
                       enum opc_activation activation, struct opc_mlp_shape *out,
                       struct opc_err *err)
{
    if (depth + 1 > OPC_MLP_LAYERS)
        return opc_fail(err, OPC_EUSER, "%d hidden layers are too many; at most %d", depth,
                        OPC_MLP_LAYERS - 1);
    *out = opc_mlp_shape_of(members, inputs, 0, depth, outputs, activation);
    for (int i = 0; i < depth; i++)
        out->width[i + 1] = hidden[i];
    return OPC_OK;
}

/* Layer after layer in one run of parameters: weights w[out][ld], then biases. */
int opc_mlp_layout(const struct opc_mlp_shape *shape, struct opc_mlp *net, struct opc_err *err)
{
    if (shape->layers < 1 || shape->layers > OPC_MLP_LAYERS)
        return opc_fail(err, OPC_EUSER, "a network of %d layers; 1 to %d are possible",
                        shape->layers, OPC_MLP_LAYERS);
    if (shape->members < 1)
        return opc_fail(err, OPC_EUSER, "a network of %d members; at least 1", shape->members);
    if (shape->layer_norm && shape->activation != OPC_ACTIVATION_RELU)
        return opc_fail(err, OPC_EUSER,
                        "layer normalisation before an activation that is not ReLU");
    *net = (struct opc_mlp){.shape = *shape};
    for (int l = 0; l < shape->layers; l++) {
        struct opc_layer *layer = &net->layer[l];
        const int in = shape->width[l], wide = shape->width[l + 1];
        if (in < 1 || wide < 1 || in > 65536 || wide > 65536)
            return opc_fail(err, OPC_EUSER, "layer %d has %d inputs and %d outputs; 1 to 65536",
                            l + 1, in, wide);
        *layer = (struct opc_layer){
            .in = in, .out = wide, .ld = leading_dimension(in), .weight = net->each};
        layer->activation = l + 1 < shape->layers ? shape->activation : OPC_ACTIVATION_LINEAR;
        layer->layer_norm = shape->layer_norm && l + 1 < shape->layers;
        layer->bias = layer->weight + round_to_line((size_t)wide * (size_t)layer->ld);
        layer->end = layer->bias + round_to_line((size_t)wide);
        net->each = layer->end;
    }
    return OPC_OK;
}

size_t opc_mlp_bytes(const struct opc_mlp *net)
{
    return opc_alloc_need(1, sizeof *net) +
           opc_alloc_need((size_t)net->shape.members, net->each * sizeof *net->param);
}

int opc_mlp_create(const struct opc_mlp_shape *shape, struct opc_mlp **out, struct opc_err *err)
{
    struct opc_mlp layout;
    OPC_TRY(opc_mlp_layout(shape, &layout, err));
    struct opc_mlp *net = opc_alloc(1, sizeof *net);
    if (net) {
        *net = layout;
        net->param = opc_alloc((size_t)shape->members, net->each * sizeof *net->param);
        if (net->param) {
            *out = net;
            return OPC_OK;
        }
    }
    opc_mlp_destroy(net);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for a network of %d members and %d layers",
                    shape->members, shape->layers);
}

void opc_mlp_destroy(struct opc_mlp *net)
{
    if (!net)
        return;
    opc_free(net->param);
    opc_free(net);
}

/* Standard normal, drawn again outside 2 standard deviations; a pair is drawn each time and its
 * second number dropped. */
static float truncated_normal(struct opc_rng *r)
{
    float z[2];
    do
        opc_rng_normals(r, 2, z);
    while (fabsf(z[0]) > 2.0f);
    return z[0];
}

void opc_mlp_init(struct opc_mlp *net, enum opc_init how, uint64_t seed, uint32_t which)
{
    for (int m = 0; m < net->shape.members; m++) {
        struct opc_rng r = opc_rng_stream(seed, OPC_USE_INIT, which, (uint32_t)m);
        for (int l = 0; l < net->shape.layers; l++) {
            const struct opc_layer *layer = &net->layer[l];
            /* PETS and MBPO: std 1 / (2 sqrt(in)); Glorot and Bengio (2010): uniform within
             * `limit`. */
            const float std = 0.5f / sqrtf((float)layer->in);
            const float limit = sqrtf(6.0f / (float)(layer->in + layer->out));
            float *w = opc_mlp_member(net, m) + layer->weight;
            for (int o = 0; o < layer->out; o++)
                for (int i = 0; i < layer->in; i++)
                    w[(size_t)o * (size_t)layer->ld + (size_t)i] =
                        how == OPC_INIT_TRUNCATED ? std * truncated_normal(&r)
                                                  : limit * (2.0f * opc_rng_unit(&r) - 1.0f);
            float *b = opc_mlp_member(net, m) + layer->bias;
            for (int o = 0; o < layer->out; o++)
                b[o] = 0.0f;
        }
    }
}

/* n vectors of `dim` >= n numbers, drawn and made orthonormal one after the other (Gram and
 * Schmidt; twice, because once leaves a rest when vectors were nearly parallel). */
static void draw_orthonormal(int n, int dim, struct opc_rng *r, double *v)
{
    for (int i = 0; i < n; i++) {
        double *vi = v + (size_t)i * (size_t)dim, length = 0;
        for (int k = 0; k < dim; k += 2) {
            float z[2];
            opc_rng_normals(r, 2, z);
            for (int j = 0; j < 2 && k + j < dim; j++)
                vi[k + j] = (double)z[j];
        }
        /* Subtract the parts along the vectors before it, all of them twice. */
        for (int j = 0; j < 2 * i; j++) {
            const double *vj = v + (size_t)(j % i) * (size_t)dim;
            double along = 0;
            for (int k = 0; k < dim; k++)
                along += vi[k] * vj[k];
            for (int k = 0; k < dim; k++)
                vi[k] -= along * vj[k];
        }
        for (int k = 0; k < dim; k++)
            length += vi[k] * vi[k];
        for (int k = 0; k < dim; k++)
            vi[k] /= sqrt(length);
    }
}

int opc_mlp_init_orthogonal(struct opc_mlp *net, double gain, double last, uint64_t seed,
                            uint32_t which, struct opc_err *err)
{
    /* Memory for the largest layer, in double. */
    size_t max = 0;
    for (int l = 0; l < net->shape.layers; l++) {
        const size_t all = (size_t)net->layer[l].in * (size_t)net->layer[l].out;
        max = all > max ? all : max;
    }
    double *v = opc_alloc(max, sizeof *v);
    if (!v)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw the weights of a network");
    for (int m = 0; m < net->shape.members; m++) {
        struct opc_rng r = opc_rng_stream(seed, OPC_USE_INIT, which, (uint32_t)m);
        for (int l = 0; l < net->shape.layers; l++) {
            const struct opc_layer *layer = &net->layer[l];
            const int in = layer->in, out = layer->out;
            const double factor = l + 1 < net->shape.layers ? gain : last;
            float *w = opc_mlp_member(net, m) + layer->weight;
            float *b = opc_mlp_member(net, m) + layer->bias;
            /* The shorter dimension has the orthonormal vectors: columns of W if in < out, else its
             * rows. */
            draw_orthonormal(in < out ? in : out, in < out ? out : in, &r, v);
            for (int o = 0; o < out; o++) {
                for (int i = 0; i < in; i++)
                    w[(size_t)o * (size_t)layer->ld + (size_t)i] =
                        (float)(factor * (in < out ? v[(size_t)i * (size_t)out + (size_t)o]
                                                   : v[(size_t)o * (size_t)in + (size_t)i]));
                b[o] = 0.0f;
            }
        }
    }
    opc_free(v);
    return OPC_OK;
}

void opc_mlp_init_normalized(struct opc_mlp *net, double gain, double last, uint64_t seed,
                             uint32_t which)
{
    for (int m = 0; m < net->shape.members; m++) {
        struct opc_rng r = opc_rng_stream(seed, OPC_USE_INIT, which, (uint32_t)m);
        for (int l = 0; l < net->shape.layers; l++) {
            const struct opc_layer *layer = &net->layer[l];
            const double norm = l + 1 < net->shape.layers ? gain : last;
            float *b = opc_mlp_member(net, m) + layer->bias;
            for (int o = 0; o < layer->out; o++) {
                float *w = opc_mlp_member(net, m) + layer->weight + (size_t)o * (size_t)layer->ld;
                double squares = 0;
                opc_rng_normals(&r, layer->in, w);
                for (int i = 0; i < layer->in; i++)
                    squares += (double)w[i] * (double)w[i];
                for (int i = 0; i < layer->in; i++)
                    w[i] = (float)(norm / sqrt(squares) * (double)w[i]);
                b[o] = 0.0f;
            }
        }
    }
}

/* ---- tape ------------------------------------------------------------------------------------ */

int opc_tape_create(const struct opc_mlp *net, int rows, struct opc_tape **out, struct opc_err *err)
{
    struct opc_tape *tape = opc_alloc(1, sizeof *tape);
    if (!tape)
        goto full;
    tape->rows = rows;
    tape->panels = opc_panels(rows);
    size_t transposed = 0;
    for (int l = 0; l < net->shape.layers; l++) {
        const struct opc_layer *layer = &net->layer[l];
        const size_t size = (size_t)tape->panels * (size_t)layer->out * OPC_PANEL;
        tape->y[l] = opc_alloc(size, sizeof(float));
        tape->dy[l] = opc_alloc(size, sizeof(float));
        if (!tape->y[l] || !tape->dy[l])
            goto full;
        /* A slope is used once, in the place where dy is written: they share their memory, and
         * so do normalised values. */
        if (layer->activation == OPC_ACTIVATION_SWISH)
            tape->slope[l] = tape->dy[l];
        if (layer->layer_norm) {
            tape->normalized[l] = tape->dy[l];
            tape->inv_std[l] = opc_alloc((size_t)tape->panels, OPC_PANEL * sizeof(float));
            if (!tape->inv_std[l])
                goto full;
        }
        if (opc_transposed_size(tape->panels, layer->in) > transposed)
            transposed = opc_transposed_size(tape->panels, layer->in);
    }
    tape->transposed = opc_alloc(transposed, sizeof(float));
    if (!tape->transposed)
        goto full;
    *out = tape;
    return OPC_OK;
full:
    opc_tape_destroy(tape);
    return opc_fail(err, OPC_ENOMEM, "not enough memory to remember a batch of %d rows", rows);
}

size_t opc_tape_bytes(const struct opc_mlp *net, int rows)
{
    const size_t panels = (size_t)opc_panels(rows), f = sizeof(float);
    size_t bytes = opc_alloc_need(1, sizeof(struct opc_tape)), transposed = 0;
    for (int l = 0; l < net->shape.layers; l++) {
        const struct opc_layer *layer = &net->layer[l];
        const size_t inputs = opc_transposed_size((int)panels, layer->in);
        bytes += 2 * opc_alloc_need(panels * (size_t)layer->out, OPC_PANEL * f);
        bytes += layer->layer_norm ? opc_alloc_need(panels, OPC_PANEL * f) : 0;
        transposed = inputs > transposed ? inputs : transposed;
    }
    return bytes + opc_alloc_need(transposed, f);
}

void opc_tape_destroy(struct opc_tape *tape)
{
    if (!tape)
        return;
    for (int l = 0; l < OPC_MLP_LAYERS; l++) {
        opc_free(tape->y[l]);
        opc_free(tape->dy[l]);
        opc_free(tape->inv_std[l]);
    }
    opc_free(tape->transposed);
    opc_free(tape);
}

/* ---- slices of one member -------------------------------------------------------------------- */

/* Floats of one panel of a layer's outputs. */
static size_t panel_floats(const struct opc_layer *layer)
{
    return (size_t)layer->out * OPC_PANEL;
}

/* Product and normalisation take turns, so that the second finds in the first-level cache what the
 * first has written: four panels make the big tile of avx512, and two that of avx2. */
enum { NORM_PANELS = 4 };

static int norm_panels(int left)
{
    return left < NORM_PANELS ? left : NORM_PANELS;
}

/* relu(layer_norm(W x + b)) of `panels` panels; the tape's arrays, from the same panel on, or NULL.
 */
static void forward_normalized(const struct opc_layer *layer, const float *param, int panels,
                               const float *x, size_t xs, float *y, float *normalized,
                               float *inv_std)
{
    const struct opc_kernels *k = opc_kernels();
    const size_t ys = panel_floats(layer);
    for (int p = 0; p < panels; p += NORM_PANELS) {
        const int n = norm_panels(panels - p);
        float *yp = y + (size_t)p * ys;
        k->forward(n, layer->in, layer->out, param + layer->weight, layer->ld, param + layer->bias,
                   x + (size_t)p * xs, xs, OPC_ACTIVATION_LINEAR, yp, ys, NULL);
        k->layer_norm_relu(n, layer->out, yp, ys, normalized ? normalized + (size_t)p * ys : NULL,
                           inv_std ? inv_std + (size_t)p * OPC_PANEL : NULL);
    }
}

void opc_mlp_forward_part(const struct opc_mlp *net, int member, int p0, int p1,
                          struct opc_tape *tape)
{
    const struct opc_kernels *k = opc_kernels();
    const float *param = opc_mlp_member(net, member);
    const float *in = tape->x + (size_t)p0 * tape->xs;
    size_t in_stride = tape->xs;
    /* Each layer reads the outputs of the one before it, and keeps its own for the backward
     * pass. */
    for (int l = 0; l < net->shape.layers; l++) {
        const struct opc_layer *layer = &net->layer[l];
        const size_t ys = panel_floats(layer), at = (size_t)p0 * ys;
        if (layer->layer_norm)
            forward_normalized(layer, param, p1 - p0, in, in_stride, tape->y[l] + at,
                               tape->normalized[l] + at, tape->inv_std[l] + (size_t)p0 * OPC_PANEL);
        else
            k->forward(p1 - p0, layer->in, layer->out, param + layer->weight, layer->ld,
                       param + layer->bias, in, in_stride, layer->activation, tape->y[l] + at, ys,
                       tape->slope[l] ? tape->slope[l] + at : NULL);
        in = tape->y[l] + at;
        in_stride = ys;
    }
}

/* The backward pass from a layer to a normalised one below it: through the weights and ReLU, which
 * was 0 where the normalised values in dx are not positive, into y; then through the normalisation,
 * which leaves the derivative in dx and the layer's outputs in y. */
static void backward_normalized(const struct opc_layer *layer, const float *w, int panels,
                                const float *dy, const float *inv_std, float *y, float *dx)
{
    const struct opc_kernels *k = opc_kernels();
    const size_t dys = panel_floats(layer), dxs = (size_t)layer->in * OPC_PANEL;
    for (int p = 0; p < panels; p += NORM_PANELS) {
        const int n = norm_panels(panels - p);
        const size_t at = (size_t)p * dxs;
        k->back_input(n, layer->in, layer->out, w, layer->ld, dy + (size_t)p * dys, dys,
                      OPC_ACTIVATION_RELU, dx + at, y + at, dxs);
        k->back_layer_norm(n, layer->in, inv_std + (size_t)p * OPC_PANEL, y + at, dx + at, dxs);
    }
}

void opc_mlp_backward_layer(const struct opc_mlp *net, int member, int l, int p0, int p1,
                            struct opc_tape *tape)
{
    const struct opc_layer *layer = &net->layer[l], *below = &net->layer[l - 1];
    const size_t dxs = panel_floats(below), at = (size_t)p0 * dxs;
    const float *w = opc_mlp_member(net, member) + layer->weight;
    const float *dy = tape->dy[l] + (size_t)p0 * panel_floats(layer);
    if (below->layer_norm) {
        backward_normalized(layer, w, p1 - p0, dy, tape->inv_std[l - 1] + (size_t)p0 * OPC_PANEL,
                            tape->y[l - 1] + at, tape->dy[l - 1] + at);
        return;
    }
    /* What the layer below kept for its derivative: slopes of swish, or else its outputs. */
    const float *left =
        below->activation == OPC_ACTIVATION_SWISH ? tape->slope[l - 1] : tape->y[l - 1];
    opc_kernels()->back_input(p1 - p0, layer->in, layer->out, w, layer->ld, dy, panel_floats(layer),
                              below->activation, left + at, tape->dy[l - 1] + at, dxs);
}

void opc_mlp_backward_part(const struct opc_mlp *net, int member, int p0, int p1,
                           struct opc_tape *tape)
{
    for (int l = net->shape.layers - 1; l > 0; l--)
        opc_mlp_backward_layer(net, member, l, p0, p1, tape);
}

void opc_mlp_inputs_part(const struct opc_mlp *net, int member, int p0, int p1, int from, int count,
                         const struct opc_tape *tape, float *dx, size_t dxs)
{
    /* The first layer's inputs have no activation below them. */
    const struct opc_layer *first = &net->layer[0];
    opc_kernels()->back_input(p1 - p0, count, first->out,
                              opc_mlp_member(net, member) + first->weight + from, first->ld,
                              tape->dy[0] + (size_t)p0 * panel_floats(first), panel_floats(first),
                              OPC_ACTIVATION_LINEAR, NULL, dx + (size_t)p0 * dxs, dxs);
}

void opc_mlp_transpose_part(const struct opc_mlp *net, int l, int p0, int p1, int panels,
                            const struct opc_tape *tape, float *transposed)
{
    opc_kernels()->transpose(p0, p1, panels, net->layer[l].in, l ? tape->y[l - 1] : tape->x,
                             l ? panel_floats(&net->layer[l - 1]) : tape->xs, transposed);
}

void opc_mlp_gradient_part(const struct opc_mlp *net, int l, int o0, int o1, int rows,
                           const struct opc_tape *tape, const float *transposed, float *grad)
{
    const struct opc_kernels *k = opc_kernels();
    const struct opc_layer *layer = &net->layer[l];
    k->back_weight(rows, opc_panels(rows), layer->in, o0, o1, transposed, tape->dy[l],
                   panel_floats(layer), grad + layer->weight, layer->ld);
    k->back_bias(rows, o0, o1, tape->dy[l], panel_floats(layer), grad + layer->bias);
}

void opc_mlp_weight_gradient(const struct opc_mlp *net, int rows, struct opc_tape *tape,
                             float *grad)
{
    const int panels = opc_panels(rows);
    for (int l = 0; l < net->shape.layers; l++) {
        opc_mlp_transpose_part(net, l, 0, panels, panels, tape, tape->transposed);
        opc_mlp_gradient_part(net, l, 0, net->layer[l].out, rows, tape, tape->transposed, grad);
    }
}

/* ---- all members ----------------------------------------------------------------------------- */

/* One call of opc_mlp_forward or opc_mlp_backward. Work items are (member, part of panels). */
struct pass {
    const struct opc_mlp *net;
    int rows, panels, parts; /* each member's panels are cut into this many parts */
    struct opc_tape *const *tape;
    float *grad, *dx;
    size_t dxs;
};

static void forward_chunk(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct pass *pass = ctx;
    for (int i = first; i < end; i++) {
        const int m = i / pass->parts, part = i % pass->parts;
        opc_mlp_forward_part(pass->net, m, opc_cut(pass->panels, pass->parts, part),
                             opc_cut(pass->panels, pass->parts, part + 1), pass->tape[m]);
    }
}

static void backward_chunk(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct pass *pass = ctx;
    for (int i = first; i < end; i++) {
        const int m = i / pass->parts, part = i % pass->parts;
        const int p0 = opc_cut(pass->panels, pass->parts, part),
                  p1 = opc_cut(pass->panels, pass->parts, part + 1);
        opc_mlp_backward_part(pass->net, m, p0, p1, pass->tape[m]);
        if (pass->dx)
            opc_mlp_inputs_part(pass->net, m, p0, p1, 0, pass->net->layer[0].in, pass->tape[m],
                                pass->dx + (size_t)m * (size_t)pass->panels * pass->dxs, pass->dxs);
    }
}

/* Whole members: a weight gradient sums over all rows, so panels cannot be shared out. */
static void gradient_chunk(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct pass *pass = ctx;
    for (int m = first; m < end; m++)
        opc_mlp_weight_gradient(pass->net, pass->rows, pass->tape[m],
                                pass->grad + (size_t)m * pass->net->each);
}

/* Members alone keep the threads busy if they divide evenly; otherwise their panels are cut,
 * too. */
static struct pass pass_over(const struct opc_mlp *net, int rows, struct opc_tape *const tape[],
                             const struct opc_pool *pool)
{
    const int members = net->shape.members, threads = opc_pool_threads(pool);
    struct pass pass = {.net = net, .rows = rows, .panels = opc_panels(rows), .tape = tape};
    pass.parts = members % threads == 0 ? 1 : threads;
    if (pass.parts > pass.panels)
        pass.parts = pass.panels;
    return pass;
}

void opc_mlp_forward(const struct opc_mlp *net, int rows, const float *x, size_t xs, size_t apart,
                     struct opc_tape *const tape[], struct opc_pool *pool)
{
    if (rows <= 0)
        return;
    struct pass pass = pass_over(net, rows, tape, pool);
    for (int m = 0; m < net->shape.members; m++) {
        tape[m]->x = x + (size_t)m * apart;
        tape[m]->xs = xs;
    }
    opc_pool_each(pool, net->shape.members * pass.parts, 1, forward_chunk, &pass);
}

void opc_mlp_backward(const struct opc_mlp *net, int rows, struct opc_tape *const tape[],
                      float *grad, float *dx, size_t dxs, struct opc_pool *pool)
{
    if (rows <= 0)
        return;
    struct pass pass = pass_over(net, rows, tape, pool);
    pass.grad = grad;
    pass.dx = dx;
    pass.dxs = dxs;
    opc_pool_each(pool, net->shape.members * pass.parts, 1, backward_chunk, &pass);
    if (grad)
        opc_pool_each(pool, net->shape.members, 1, gradient_chunk, &pass);
}

/* ---- without a tape -------------------------------------------------------------------------- */

/* Floats of one panel of the widest hidden layer. */
static size_t widest_hidden(const struct opc_mlp *net)
{
    size_t widest = 0;
    for (int l = 0; l + 1 < net->shape.layers; l++)
        if (panel_floats(&net->layer[l]) > widest)
            widest = panel_floats(&net->layer[l]);
    return widest;
}

size_t opc_mlp_infer_need(const struct opc_mlp *net, int panels)
{
    return 2 * opc_arena_need((size_t)panels * widest_hidden(net), sizeof(float));
}

void opc_mlp_infer(const struct opc_mlp *net, int member, int panels, const float *x, size_t xs,
                   int outputs, float *y, size_t ys, struct opc_arena *scratch)
{
    const struct opc_kernels *k = opc_kernels();
    const float *param = opc_mlp_member(net, member);
    const size_t mark = scratch->used;
    /* Two buffers in turn hold the hidden layers; the last layer writes into y, its first outputs
     * only. */
    float *hidden[2];
    for (int i = 0; i < 2; i++)
        hidden[i] = opc_floats(scratch, (size_t)panels, widest_hidden(net));
    for (int l = 0; l < net->shape.layers; l++) {
        const struct opc_layer *layer = &net->layer[l];
        const int last = l + 1 == net->shape.layers;
        float *to = last ? y : hidden[l % 2];
        const size_t stride = last ? ys : panel_floats(layer);
        if (layer->layer_norm)
            forward_normalized(layer, param, panels, x, xs, to, NULL, NULL);
        else
            k->forward(panels, layer->in, last ? outputs : layer->out, param + layer->weight,
                       layer->ld, param + layer->bias, x, xs, layer->activation, to, stride, NULL);
        x = to;
        xs = stride;
    }
    opc_arena_rewind(scratch, mark);
}
