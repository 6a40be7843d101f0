/* SPDX-License-Identifier: MIT */
/* A policy or model as arrays with names, which numpy.load reads (base/format/npy.h). export.c
 * calls it; docs/export.md lists the arrays and has the ten lines of Python that compute with them.
 *
 * Invariant: weights are [out, in] without padding; those of a model have the elites in front. */
#include "study/export/export.h"

#include "base/format/npy.h"
#include "opc/mem.h"

#include <stdio.h>
#include <string.h>

/* [rows, columns], or [columns] if rows is 0. */
static void add_floats(struct opc_zip *zip, const char *name, int rows, int columns,
                       const float *value)
{
    const struct opc_npy array = {.type = OPC_NPY_FLOAT,
                                  .dims = rows ? 2 : 1,
                                  .shape = {(size_t)(rows ? rows : columns), (size_t)columns},
                                  .data = value};
    opc_npz_add(zip, name, &array);
}

/* Limits stay double: they are the task's own. */
static void add_doubles(struct opc_zip *zip, const char *name, int n, const double *value)
{
    opc_npz_add(
        zip, name,
        &(struct opc_npy){.type = OPC_NPY_DOUBLE, .dims = 1, .shape = {(size_t)n}, .data = value});
}

/* Weights and biases of layer l: of the policy, or of all elites. */
static int add_layer(const struct opc_export *export, int l, struct opc_zip *zip,
                     struct opc_err *err)
{
    /* All networks have the shape of the first. */
    const struct opc_layer *layer = &export->network[0].net->layer[l];
    const size_t out = (size_t)opc_network_width(&export->network[0], l), in = (size_t)layer->in,
                 n = (size_t) export->networks;
    float *w = NULL, *b = NULL;
    char name[32];
    const struct opc_block blocks[] = {{&w, n * out, in * sizeof *w}, {&b, n, out * sizeof *b}};
    if (!opc_alloc_all(blocks, 2)) {
        opc_free(w);
        opc_free(b);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a layer");
    }
    /* Rows of weights are padded here to `ld` floats, and not in the file. */
    for (size_t e = 0; e < n; e++) {
        const float *from = opc_network_weight(&export->network[e], l);
        for (size_t o = 0; o < out; o++)
            memcpy(w + (e * out + o) * in, from + o * (size_t)layer->ld, in * sizeof *w);
        memcpy(b + e * out, opc_network_bias(&export->network[e], l), out * sizeof *b);
    }
    struct opc_npy weight = {OPC_NPY_FLOAT, 3, {n, out, in}, w};
    struct opc_npy bias = {OPC_NPY_FLOAT, 2, {n, out}, b};
    /* One network has no axis of elites. */
    if (!export->is_model) {
        weight = (struct opc_npy){OPC_NPY_FLOAT, 2, {out, in}, w};
        bias = (struct opc_npy){OPC_NPY_FLOAT, 1, {out}, b};
    }
    /* named by layer, from 0 */
    snprintf(name, sizeof name, "weight_%d", l);
    opc_npz_add(zip, name, &weight);
    snprintf(name, sizeof name, "bias_%d", l);
    opc_npz_add(zip, name, &bias);
    opc_free(w);
    opc_free(b);
    return OPC_OK;
}

/* Scaling of the inputs, mean 0 and factor 1 where there is none, and the clip, infinite then. */
static int add_scaling(const struct opc_export *export, struct opc_zip *zip, struct opc_err *err)
{
    const struct opc_network *network = &export->network[0];
    const int n = export->inputs;
    const float clip = network->clip > 0 ? network->clip : (float)1e38;
    float *none = opc_alloc((size_t)n * 2, sizeof *none);
    if (!none)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the scaling of the inputs");
    /* none[n] zeros, then none[n] ones */
    for (int k = 0; k < n; k++)
        none[n + k] = 1;
    add_floats(zip, "input_mean", 0, n, network->mean ? network->mean : none);
    add_floats(zip, "input_inverse", 0, n, network->mean ? network->inverse : none + n);
    add_floats(zip, "input_clip", 0, 1, &clip);
    opc_free(none);
    return OPC_OK;
}

/* Bounds of the log-variances [elites, outputs], and the log-deviations of the self-test. */
static int add_variances(const struct opc_export *export, struct opc_zip *zip, struct opc_err *err)
{
    static const char *const NAME[] = {"log_var_max", "log_var_min", "log_std_shift"};
    const size_t dim = (size_t) export->outputs;
    float *all = opc_alloc((size_t) export->networks * dim, sizeof *all);
    if (!all)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the bounds of the variances");
    for (int a = 0; a < 3; a++) {
        for (int e = 0; e < export->networks; e++) {
            const struct opc_network *network = &export->network[e];
            const float *from = a == 0   ? network->log_var_max
                                : a == 1 ? network->log_var_min
                                         : network->log_std_shift;
            memcpy(all + (size_t)e * dim, from, dim * sizeof *all);
        }
        add_floats(zip, NAME[a], export->networks, export->outputs, all);
    }
    opc_free(all);
    add_floats(zip, "self_test_log_std", OPC_EXPORT_TESTS, export->outputs, export->test_log_std);
    add_floats(zip, "self_test_log_std_tolerance", 0, 1, &export->log_std_tolerance);
    return OPC_OK;
}

int opc_export_npz(const struct opc_export *export, const char *name, struct opc_text *out,
                   struct opc_err *err)
{
    struct opc_zip zip = {.entries = 0};
    struct opc_text about = {0};
    const int layers = export->network[0].net->shape.layers;
    /* A network does not have more layers than that. */
    const char *activation[OPC_MLP_LAYERS];
    (void)name;
    /* Scaling, then layer by layer, ... */
    int code = add_scaling(export, &zip, err);
    for (int l = 0; l < layers && !code; l++) {
        activation[l] = opc_export_activation(opc_export_activation_of(&export->network[0], l));
        code = add_layer(export, l, &zip, err);
    }
    if (!code && export->is_model)
        code = add_variances(export, &zip, err);
    if (!code) {
        /* ... the activations by name, the limits, the self-test, and what all of it is. */
        opc_npz_add_texts(&zip, "activation", layers, activation);
        add_doubles(&zip, "action_low", export->act, export->low);
        add_doubles(&zip, "action_high", export->act, export->high);
        add_floats(&zip, "self_test_input", OPC_EXPORT_TESTS, export->inputs, export->test_input);
        add_floats(&zip, "self_test_output", OPC_EXPORT_TESTS, export->outputs,
                   export->test_output);
        add_floats(&zip, "self_test_tolerance", 0, export->outputs, export->tolerance);
        opc_export_about(export, &about);
        const char *text = opc_text_get(&about);
        opc_npz_add_texts(&zip, "about", 1, &text);
        code = opc_text_check(&about, err);
    }
    /* The directory of the archive comes last. */
    if (!code)
        code = opc_zip_finish(&zip, err);
    if (!code)
        opc_text_add_bytes(out, opc_text_get(&zip.bytes), zip.bytes.used);
    opc_text_free(&about);
    opc_zip_free(&zip);
    return code;
}
