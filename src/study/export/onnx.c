/* SPDX-License-Identifier: MIT */
/* A policy or model as an ONNX file: a protobuf message (base/format/proto.h) of IR version 7,
 * operator set 13. export.c calls it. The numbers below are those of onnx.proto's fields.
 *
 *     policy  observation [N, obs] -> action [N, act]
 *     model   observation [N, obs], action [N, act] -> next_observation [N, obs], reward [N, 1],
 *             elites [elites, N, obs + 1]
 *
 * where next_observation and reward are means over the elites, and `elites` has those of each.
 *
 * Operators: Sub, Mul, Clip, MatMul, Add, Relu, Tanh, Sigmoid, Max, Min; of a model also Concat,
 * Unsqueeze, ReduceMean, Split. Invariant: a node comes after those whose outputs it reads. */
#include "study/export/export.h"

#include "base/format/proto.h"
#include "opc/mem.h"
#include "opc/version.h"

#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 7, OPSET = 13 };
/* onnx.proto: ModelProto */
enum { MODEL_IR = 1, MODEL_PRODUCER, MODEL_PRODUCER_VERSION, MODEL_GRAPH = 7, MODEL_OPSET };
enum { MODEL_METADATA = 14 };
/* GraphProto */
enum { GRAPH_NODE = 1, GRAPH_NAME, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT };
/* NodeProto and AttributeProto */
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_OP = 4, NODE_ATTRIBUTE };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_INT = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { ATTRIBUTE_IS_INT = 2, ATTRIBUTE_IS_INTS = 7 };
/* TensorProto; of its types FLOAT and INT64 */
enum { TENSOR_DIMS = 1, TENSOR_TYPE, TENSOR_NAME = 8, TENSOR_RAW };
enum { TYPE_FLOAT = 1, TYPE_INT64 = 7 };

struct graph {
    const struct opc_export *export;
    struct opc_text nodes, tensors, inputs, outputs;
    int values;    /* intermediate results so far, which are called v1, v2, ... */
    char at[32];   /* the one that the next layer reads */
    float *buffer; /* transposed weights */
};

/* ---- parts of a graph ------------------------------------------------------------------------ */

/* A constant: dims of -1 end the list. */
static void add_tensor(struct graph *graph, const char *name, int type, const int dims[3],
                       const void *data, size_t bytes)
{
    struct opc_text tensor = {0};
    for (int i = 0; i < 3 && dims[i] >= 0; i++)
        opc_proto_whole(&tensor, TENSOR_DIMS, (uint64_t)dims[i]);
    opc_proto_whole(&tensor, TENSOR_TYPE, (uint64_t)type);
    opc_proto_text(&tensor, TENSOR_NAME, name);
    opc_proto_bytes(&tensor, TENSOR_RAW, data, bytes);
    opc_proto_message(&graph->tensors, GRAPH_INITIALIZER, &tensor);
}

/* A constant of one dimension. */
static void add_vector(struct graph *graph, const char *name, int n, const float *value)
{
    add_tensor(graph, name, TYPE_FLOAT, (const int[]){n, -1, -1}, value, (size_t)n * sizeof *value);
}

/* A constant without dimensions, as Clip wants its bounds. */
static void add_scalar(struct graph *graph, const char *name, float value)
{
    add_tensor(graph, name, TYPE_FLOAT, (const int[]){-1, -1, -1}, &value, sizeof value);
}

/* Inputs, output and operator. Attributes, and more outputs, come between begin and end. */
static void begin_node(struct opc_text *node, const char *op, const char *first, const char *second,
                       const char *output)
{
    opc_proto_text(node, NODE_INPUT, first);
    if (second)
        opc_proto_text(node, NODE_INPUT, second);
    opc_proto_text(node, NODE_OUTPUT, output);
    opc_proto_text(node, NODE_OP, op);
}

static void end_node(struct graph *graph, struct opc_text *node)
{
    opc_proto_message(&graph->nodes, GRAPH_NODE, node);
}

/* A node without attributes. */
static void add_node(struct graph *graph, const char *op, const char *first, const char *second,
                     const char *output)
{
    struct opc_text node = {0};
    begin_node(&node, op, first, second, output);
    end_node(graph, &node);
}

/* An attribute that is a whole number, or a list of one. */
static void add_whole(struct opc_text *node, const char *name, int kind, int value)
{
    struct opc_text attribute = {0};
    opc_proto_text(&attribute, ATTRIBUTE_NAME, name);
    opc_proto_whole(&attribute, kind == ATTRIBUTE_IS_INT ? ATTRIBUTE_INT : ATTRIBUTE_INTS,
                    (uint64_t)value);
    opc_proto_whole(&attribute, ATTRIBUTE_TYPE, (uint64_t)kind);
    opc_proto_message(node, NODE_ATTRIBUTE, &attribute);
}

/* Applies an operator to the current result, which becomes the new one. */
static void apply(struct graph *graph, const char *op, const char *second)
{
    char next[32];
    snprintf(next, sizeof next, "v%d", ++graph->values);
    add_node(graph, op, graph->at, second, next);
    snprintf(graph->at, sizeof graph->at, "%s", next);
}

/* Clip takes its bounds as two more inputs, both scalars. */
static void apply_clip(struct graph *graph, const char *low, const char *high)
{
    struct opc_text node = {0};
    char next[32];
    snprintf(next, sizeof next, "v%d", ++graph->values);
    opc_proto_text(&node, NODE_INPUT, graph->at);
    opc_proto_text(&node, NODE_INPUT, low);
    opc_proto_text(&node, NODE_INPUT, high);
    opc_proto_text(&node, NODE_OUTPUT, next);
    opc_proto_text(&node, NODE_OP, "Clip");
    end_node(graph, &node);
    snprintf(graph->at, sizeof graph->at, "%s", next);
}

/* An input or output of floats. Dimensions that are 0 are the number of rows, N. */
static void add_value(struct opc_text *graph, int field, const char *name, const int *dims, int n)
{
    struct opc_text value = {0}, type = {0}, tensor = {0}, shape = {0};
    /* the dimensions, innermost message first */
    for (int i = 0; i < n; i++) {
        struct opc_text dim = {0};
        if (dims[i])
            opc_proto_whole(&dim, 1, (uint64_t)dims[i]); /* dim_value */
        else
            opc_proto_text(&dim, 2, "N"); /* dim_param */
        opc_proto_message(&shape, 1, &dim);
    }
    opc_proto_whole(&tensor, 1, TYPE_FLOAT); /* elem_type */
    opc_proto_message(&tensor, 2, &shape);
    opc_proto_message(&type, 1, &tensor); /* tensor_type */
    opc_proto_text(&value, 1, name);
    opc_proto_message(&value, 2, &type);
    opc_proto_message(graph, field, &value);
}

/* ---- the map --------------------------------------------------------------------------------- */

/* The scaling of the inputs, which all networks share. */
static void add_scaling(struct graph *graph)
{
    const struct opc_network *network = &graph->export->network[0];
    /* SAC takes observations as they are. */
    if (!network->mean)
        return;
    add_vector(graph, "mean", graph->export->inputs, network->mean);
    add_vector(graph, "inverse", graph->export->inputs, network->inverse);
    apply(graph, "Sub", "mean");
    apply(graph, "Mul", "inverse");
    if (network->clip > 0) {
        add_scalar(graph, "clip_low", -network->clip);
        add_scalar(graph, "clip_high", network->clip);
        apply_clip(graph, "clip_low", "clip_high");
    }
}

/* Swish has no operator of its own in this operator set. */
static void apply_activation(struct graph *graph, enum opc_activation activation)
{
    char x[32];
    switch (activation) {
    case OPC_ACTIVATION_LINEAR: break;
    case OPC_ACTIVATION_RELU: apply(graph, "Relu", NULL); break;
    case OPC_ACTIVATION_TANH: apply(graph, "Tanh", NULL); break;
    case OPC_ACTIVATION_SWISH: /* x sigmoid(x) */
        memcpy(x, graph->at, sizeof x);
        apply(graph, "Sigmoid", NULL);
        apply(graph, "Mul", x);
        break;
    }
}

/* Layers of network e: rows times the transposed weights, plus biases. */
static void add_layers(struct graph *graph, int e)
{
    const struct opc_network *network = &graph->export->network[e];
    for (int l = 0; l < network->net->shape.layers; l++) {
        const struct opc_layer *layer = &network->net->layer[l];
        const float *w = opc_network_weight(network, l);
        const int out = opc_network_width(network, l);
        char weight[32], bias[32];
        snprintf(weight, sizeof weight, "weight_%d_%d", e, l);
        snprintf(bias, sizeof bias, "bias_%d_%d", e, l);
        /* w[out][ld] here, [in][out] there: MatMul has the rows of the batch on its left */
        for (int i = 0; i < layer->in; i++)
            for (int o = 0; o < out; o++)
                graph->buffer[(size_t)i * (size_t)out + (size_t)o] =
                    w[(size_t)o * (size_t)layer->ld + (size_t)i];
        add_tensor(graph, weight, TYPE_FLOAT, (const int[]){layer->in, out, -1}, graph->buffer,
                   (size_t)layer->in * (size_t)out * sizeof(float));
        add_vector(graph, bias, out, opc_network_bias(network, l));
        apply(graph, "MatMul", weight);
        apply(graph, "Add", bias);
        apply_activation(graph, opc_export_activation_of(network, l));
    }
}

/* One of the vectors that scale actions. */
static void add_limit(struct graph *graph, const char *name, enum opc_limit_value value)
{
    for (int k = 0; k < graph->export->act; k++)
        graph->buffer[k] = opc_export_limit(graph->export, value, k);
    add_vector(graph, name, graph->export->act, graph->buffer);
}

/* observation -> scaling -> layers -> limits -> action */
static void add_policy(struct graph *graph)
{
    const struct opc_export *export = graph->export;
    add_value(&graph->inputs, GRAPH_INPUT, "observation", (const int[]){0, export->obs}, 2);
    add_value(&graph->outputs, GRAPH_OUTPUT, "action", (const int[]){0, export->act}, 2);
    snprintf(graph->at, sizeof graph->at, "observation");
    add_scaling(graph);
    add_layers(graph, 0);
    /* action = centre + half a, within its limits */
    add_limit(graph, "half", OPC_LIMIT_HALF);
    add_limit(graph, "centre", OPC_LIMIT_CENTRE);
    add_limit(graph, "low", OPC_LIMIT_LOW);
    add_limit(graph, "high", OPC_LIMIT_HIGH);
    apply(graph, "Mul", "half");
    apply(graph, "Add", "centre");
    apply(graph, "Max", "low");
    add_node(graph, "Min", graph->at, "high", "action");
}

/* x = [s, a] with a in [-1, 1]. */
static void join_inputs(struct graph *graph)
{
    struct opc_text join = {0};
    snprintf(graph->at, sizeof graph->at, "action");
    add_limit(graph, "centre", OPC_LIMIT_CENTRE);
    add_limit(graph, "inverse_half", OPC_LIMIT_INVERSE_HALF);
    add_scalar(graph, "minus_one", -1);
    add_scalar(graph, "one", 1);
    apply(graph, "Sub", "centre");
    apply(graph, "Mul", "inverse_half");
    apply_clip(graph, "minus_one", "one");
    begin_node(&join, "Concat", "observation", graph->at, "joined");
    add_whole(&join, "axis", ATTRIBUTE_IS_INT, 1);
    end_node(graph, &join);
    snprintf(graph->at, sizeof graph->at, "joined");
}

/* [s, 0] by a product with a matrix of zeros and ones: added to a network's outputs [s' - s, r], it
 * makes them [s', r]. */
static void add_state(struct graph *graph)
{
    const int obs = graph->export->obs, dim = graph->export->outputs;
    const size_t n = (size_t)obs * (size_t)dim;
    memset(graph->buffer, 0, n * sizeof *graph->buffer);
    for (int k = 0; k < obs; k++)
        graph->buffer[k * dim + k] = 1;
    add_tensor(graph, "widen", TYPE_FLOAT, (const int[]){obs, dim, -1}, graph->buffer,
               n * sizeof *graph->buffer);
    add_node(graph, "MatMul", "observation", "widen", "state");
}

/* The current result [N, 2 dim] of elite e becomes its means; its log-variances become
 * log_std_E [1, N, dim]. */
static void split_variances(struct graph *graph, int e, struct opc_text *stack)
{
    const struct opc_network *network = &graph->export->network[e];
    const int dim = graph->export->outputs;
    struct opc_text split = {0};
    char mean[32], raw[32], max[32], min[32], shift[32], name[32];
    snprintf(mean, sizeof mean, "mean_%d", e);
    snprintf(raw, sizeof raw, "raw_%d", e);
    snprintf(max, sizeof max, "log_var_max_%d", e);
    snprintf(min, sizeof min, "log_var_min_%d", e);
    snprintf(shift, sizeof shift, "log_std_shift_%d", e);
    snprintf(name, sizeof name, "log_std_%d", e);
    begin_node(&split, "Split", graph->at, "halves", mean);
    opc_proto_text(&split, NODE_OUTPUT, raw);
    add_whole(&split, "axis", ATTRIBUTE_IS_INT, 1);
    end_node(graph, &split);
    add_vector(graph, max, dim, network->log_var_max);
    add_vector(graph, min, dim, network->log_var_min);
    add_vector(graph, shift, dim, network->log_std_shift);
    /* l1 = max - softplus(max - raw) */
    snprintf(graph->at, sizeof graph->at, "%s", max);
    apply(graph, "Sub", raw);
    apply(graph, "Softplus", NULL);
    snprintf(raw, sizeof raw, "v%d", ++graph->values);
    add_node(graph, "Sub", max, graph->at, raw);
    snprintf(graph->at, sizeof graph->at, "%s", raw);
    /* l = min + softplus(l1 - min), half of it and the scale */
    apply(graph, "Sub", min);
    apply(graph, "Softplus", NULL);
    apply(graph, "Add", min);
    apply(graph, "Mul", "a_half");
    apply(graph, "Add", shift);
    add_node(graph, "Unsqueeze", graph->at, "first_axis", name);
    opc_proto_text(stack, NODE_INPUT, name);
    snprintf(graph->at, sizeof graph->at, "%s", mean);
}

/* One on top of the other: [elites, N, dim]. */
static void end_stack(struct graph *graph, struct opc_text *stack, const char *name)
{
    opc_proto_text(stack, NODE_OUTPUT, name);
    opc_proto_text(stack, NODE_OP, "Concat");
    add_whole(stack, "axis", ATTRIBUTE_IS_INT, 0);
    end_node(graph, stack);
}

/* observation, action -> [s, a] -> scaling -> layers of each elite -> + s -> mean. */
static void add_model(struct graph *graph)
{
    const struct opc_export *export = graph->export;
    struct opc_text stack = {0}, deviations = {0}, mean = {0}, split = {0};
    const int64_t axis = 0, parts[2] = {export->obs, 1},
                  halves[2] = {export->outputs, export->outputs};
    char scaled[32], name[32];
    /* what goes in and comes out */
    add_value(&graph->inputs, GRAPH_INPUT, "observation", (const int[]){0, export->obs}, 2);
    add_value(&graph->inputs, GRAPH_INPUT, "action", (const int[]){0, export->act}, 2);
    add_value(&graph->outputs, GRAPH_OUTPUT, "next_observation", (const int[]){0, export->obs}, 2);
    add_value(&graph->outputs, GRAPH_OUTPUT, "reward", (const int[]){0, 1}, 2);
    add_value(&graph->outputs, GRAPH_OUTPUT, "elites",
              (const int[]){export->networks, 0, export->outputs}, 3);
    add_value(&graph->outputs, GRAPH_OUTPUT, "log_std",
              (const int[]){export->networks, 0, export->outputs}, 3);
    add_state(graph);
    join_inputs(graph);
    add_scaling(graph);
    memcpy(scaled, graph->at, sizeof scaled);
    /* every elite from the same inputs, then one on top of the other: elites[E][N][dim] */
    add_tensor(graph, "first_axis", TYPE_INT64, (const int[]){1, -1, -1}, &axis, sizeof axis);
    add_tensor(graph, "halves", TYPE_INT64, (const int[]){2, -1, -1}, halves, sizeof halves);
    add_scalar(graph, "a_half", 0.5f);
    for (int e = 0; e < export->networks; e++) {
        memcpy(graph->at, scaled, sizeof scaled);
        add_layers(graph, e);
        split_variances(graph, e, &deviations);
        apply(graph, "Add", "state");
        snprintf(name, sizeof name, "elite_%d", e);
        add_node(graph, "Unsqueeze", graph->at, "first_axis", name);
        opc_proto_text(&stack, NODE_INPUT, name);
    }
    end_stack(graph, &stack, "elites");
    end_stack(graph, &deviations, "log_std");
    /* their mean, cut into state and reward */
    begin_node(&mean, "ReduceMean", "elites", NULL, "mean_of_elites");
    add_whole(&mean, "axes", ATTRIBUTE_IS_INTS, 0);
    add_whole(&mean, "keepdims", ATTRIBUTE_IS_INT, 0);
    end_node(graph, &mean);
    add_tensor(graph, "parts", TYPE_INT64, (const int[]){2, -1, -1}, parts, sizeof parts);
    begin_node(&split, "Split", "mean_of_elites", "parts", "next_observation");
    opc_proto_text(&split, NODE_OUTPUT, "reward");
    add_whole(&split, "axis", ATTRIBUTE_IS_INT, 1);
    end_node(graph, &split);
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* A key with its value, which is cleared for the next one. */
static void add_entry(struct opc_text *model, const char *key, struct opc_text *value)
{
    struct opc_text entry = {0};
    opc_proto_text(&entry, 1, key);
    opc_proto_text(&entry, 2, opc_text_get(value));
    opc_proto_message(model, MODEL_METADATA, &entry);
    model->failed |= value->failed;
    opc_text_clear(value);
}

/* "[[1, 2], [3, 4]]" */
static void add_rows(struct opc_text *out, int rows, int columns, const float *value)
{
    opc_text_add(out, "[");
    for (int i = 0; i < rows; i++) {
        opc_text_add(out, i ? ", [" : "[");
        for (int k = 0; k < columns; k++) {
            opc_text_add(out, k ? ", " : "");
            opc_text_add_float(out, value[i * columns + k]);
        }
        opc_text_add(out, "]");
    }
    opc_text_add(out, "]");
}

/* What the file is, the limits of the actions, and the self-test, as JSON. */
static void add_metadata(const struct opc_export *export, struct opc_text *model)
{
    static const char *const LIMIT[2] = {"action_low", "action_high"};
    struct opc_text value = {0};
    opc_export_about(export, &value);
    add_entry(model, "about", &value);
    opc_text_add(&value, export->task);
    add_entry(model, "task", &value);
    for (int i = 0; i < 2; i++) {
        opc_text_add(&value, "[");
        for (int k = 0; k < export->act; k++) {
            opc_text_add(&value, k ? ", " : "");
            opc_text_add_real(&value, i ? export->high[k] : export->low[k]);
        }
        opc_text_add(&value, "]");
        add_entry(model, LIMIT[i], &value);
    }
    opc_text_add(&value, "{\"input\": ");
    add_rows(&value, OPC_EXPORT_TESTS, export->inputs, export->test_input);
    opc_text_add(&value, ", \"output\": ");
    add_rows(&value, OPC_EXPORT_TESTS, export->outputs, export->test_output);
    opc_text_add(&value, ", \"tolerance\": ");
    add_rows(&value, 1, export->outputs, export->tolerance);
    if (export->test_log_std) {
        opc_text_add(&value, ", \"log_std\": ");
        add_rows(&value, OPC_EXPORT_TESTS, export->outputs, export->test_log_std);
        opc_text_add(&value, ", \"log_std_tolerance\": ");
        add_rows(&value, 1, 1, &export->log_std_tolerance);
    }
    opc_text_add(&value, "}");
    add_entry(model, "self_test", &value);
    opc_text_free(&value);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The largest number of floats that a layer, or anything else here, has. */
static size_t buffer_size(const struct opc_export *export)
{
    size_t max = (size_t) export->inputs * (size_t) export->outputs;
    for (int l = 0; l < export->network[0].net->shape.layers; l++) {
        const struct opc_layer *layer = &export->network[0].net->layer[l];
        const size_t n = (size_t)layer->in * (size_t)layer->out;
        max = n > max ? n : max;
    }
    return max;
}

/* Appends one part of the graph to another text, and frees it. */
static void move_text(struct opc_text *to, struct opc_text *from)
{
    opc_text_add_bytes(to, opc_text_get(from), from->used);
    to->failed |= from->failed;
    opc_text_free(from);
}

int opc_export_onnx(const struct opc_export *export, const char *name, struct opc_text *out,
                    struct opc_err *err)
{
    struct graph graph = {.export = export};
    struct opc_text whole = {0}, opset = {0};
    graph.buffer = opc_alloc(buffer_size(export), sizeof *graph.buffer);
    if (!graph.buffer)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to transpose a layer");
    if (export->is_model)
        add_model(&graph);
    else
        add_policy(&graph);
    opc_free(graph.buffer);
    /* nodes, name, constants, inputs, outputs: the order of their numbers */
    move_text(&whole, &graph.nodes);
    opc_proto_text(&whole, GRAPH_NAME, name);
    move_text(&whole, &graph.tensors);
    move_text(&whole, &graph.inputs);
    move_text(&whole, &graph.outputs);
    /* the file: versions, the graph, the operator set, metadata */
    opc_proto_whole(out, MODEL_IR, IR_VERSION);
    opc_proto_text(out, MODEL_PRODUCER, "opc");
    opc_proto_text(out, MODEL_PRODUCER_VERSION, OPC_VERSION);
    opc_proto_message(out, MODEL_GRAPH, &whole);
    opc_proto_text(&opset, 1, ""); /* the domain of the standard operators */
    opc_proto_whole(&opset, 2, OPSET);
    opc_proto_message(out, MODEL_OPSET, &opset);
    add_metadata(export, out);
    return opc_text_check(out, err);
}
