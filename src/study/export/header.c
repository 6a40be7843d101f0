/* SPDX-License-Identifier: MIT */
/* A policy or model as one C99 header for microcontrollers: the code of exported.h with the numbers
 * of the networks in front of it. export.c calls it.
 *
 * Invariant: the code computes what src/num/kernel.c computes, operation by operation, so that with
 * fused multiply-adds the results of a network are equal in every bit (tests/program/export.sh). */
#include "study/export/export.h"

#include <ctype.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

/* What the numbers are written for: the text and the names in it. */
struct page {
    const struct opc_export *export;
    struct opc_text *out;
    char name[64], upper[64];
};

/* Appends n bytes of the template, with the file's name for opcx and OPCX. */
static void add_code(const struct page *page, const char *code, size_t n)
{
    static const char SMALL[] = "opcx", LARGE[] = "OPCX";
    enum { LENGTH = sizeof SMALL - 1 };
    for (size_t i = 0; i < n;) {
        const bool small = n - i >= LENGTH && memcmp(code + i, SMALL, LENGTH) == 0;
        const bool large = n - i >= LENGTH && memcmp(code + i, LARGE, LENGTH) == 0;
        if (small || large) {
            opc_text_add(page->out, small ? page->name : page->upper);
            i += LENGTH;
        } else
            opc_text_add_bytes(page->out, code + i++, 1);
    }
}

/* Appends the part of the template after the line of one marker and up to the next marker. */
static int add_part(const struct page *page, const char *marker, struct opc_err *err)
{
    const char *code = (const char *)opc_export_assets[0].data;
    const char *at = strstr(code, marker);
    const char *line = at ? strchr(at, '\n') : NULL;
    if (!line)
        return opc_fail(err, OPC_EBUG, "exported.h has no line %s", marker);
    const char *end = strstr(line, "\n/* @");
    end = end ? end + 1 : code + opc_export_assets[0].size;
    add_code(page, line + 1, (size_t)(end - line - 1));
    return OPC_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void begin_array(const struct page *page, const char *what, size_t n)
{
    opc_text_addf(page->out, "static const float %s_%s[%zu] = {", page->name, what, n);
}

/* A constant of type float: its suffix needs a point or an exponent before it. */
static void add_literal(const struct page *page, float value)
{
    struct opc_text digits = {0};
    opc_text_add_float(&digits, value);
    opc_text_addf(page->out, "%s%sf", opc_text_get(&digits),
                  strpbrk(opc_text_get(&digits), ".e") ? "" : ".0");
    page->out->failed |= digits.failed;
    opc_text_free(&digits);
}

/* Element i of an array, six to a line. */
static void add_element(const struct page *page, size_t i, float value)
{
    opc_text_add(page->out, i % 6 == 0 ? "\n    " : " ");
    add_literal(page, value);
    opc_text_add(page->out, ",");
}

static void end_array(const struct page *page)
{
    opc_text_add(page->out, "\n};\n");
}

static void add_array(const struct page *page, const char *what, size_t n, const float *value)
{
    begin_array(page, what, n);
    for (size_t i = 0; i < n; i++)
        add_element(page, i, value[i]);
    end_array(page);
}

static void add_limits(const struct page *page)
{
    static const struct {
        const char *what;
        enum opc_limit_value value;
        bool of_policy, of_model;
    } LIST[] = {
        {"centre", OPC_LIMIT_CENTRE, true, true},
        {"half", OPC_LIMIT_HALF, true, false},
        {"low", OPC_LIMIT_LOW, true, false},
        {"high", OPC_LIMIT_HIGH, true, false},
        {"inverse_half", OPC_LIMIT_INVERSE_HALF, false, true},
    };
    opc_text_add(page->out,
                 "\n/* Limits of the actions: action = centre + half a, a in [-1, 1]. */\n");
    for (size_t i = 0; i < sizeof LIST / sizeof *LIST; i++) {
        if (page->export->is_model ? !LIST[i].of_model : !LIST[i].of_policy)
            continue;
        begin_array(page, LIST[i].what, (size_t)page->export->act);
        for (int k = 0; k < page->export->act; k++)
            add_element(page, (size_t)k, opc_export_limit(page->export, LIST[i].value, k));
        end_array(page);
    }
    if (page->export->is_model)
        return;
    opc_text_add(page->out, "\n/* How far an action may be from the last one. */\n");
    begin_array(page, "max_change", (size_t)page->export->act);
    for (int k = 0; k < page->export->act; k++)
        add_element(
            page, (size_t)k,
            (float)(page->export->max_change * (page->export->high[k] - page->export->low[k])));
    end_array(page);
}

/* Weights w[out][in] without the padding they have here, layer after layer, network after
 * network; then the biases in the same order. */
static void add_weights(const struct page *page, size_t weights, size_t biases)
{
    const struct opc_export *export = page->export;
    size_t at = 0;
    begin_array(page, "weight", weights * (size_t) export->networks);
    for (int e = 0; e < export->networks; e++)
        for (int l = 0; l < export->network[e].net->shape.layers; l++) {
            const struct opc_layer *layer = &export->network[e].net->layer[l];
            const float *w = opc_network_weight(&export->network[e], l);
            for (int o = 0; o < opc_network_width(&export->network[e], l); o++)
                for (int i = 0; i < layer->in; i++)
                    add_element(page, at++, w[(size_t)o * (size_t)layer->ld + (size_t)i]);
        }
    end_array(page);
    at = 0;
    begin_array(page, "bias", biases * (size_t) export->networks);
    for (int e = 0; e < export->networks; e++)
        for (int l = 0; l < export->network[e].net->shape.layers; l++)
            for (int o = 0; o < opc_network_width(&export->network[e], l); o++)
                add_element(page, at++, opc_network_bias(&export->network[e], l)[o]);
    end_array(page);
}

/* Inputs that are not scaled have mean 0 and factor 1, which changes no bit. */
static void add_scaling(const struct page *page)
{
    const struct opc_network *network = &page->export->network[0];
    const size_t inputs = (size_t)page->export->inputs;
    opc_text_add(page->out, "\n/* Inputs are scaled: (x - mean) inverse. */\n");
    begin_array(page, "mean", inputs);
    for (size_t k = 0; k < inputs; k++)
        add_element(page, k, network->mean ? network->mean[k] : 0);
    end_array(page);
    begin_array(page, "inverse", inputs);
    for (size_t k = 0; k < inputs; k++)
        add_element(page, k, network->mean ? network->inverse[k] : 1);
    end_array(page);
}

/* Bounds of the log-variances of each elite, and what the scale of the targets adds. */
static void add_variances(const struct page *page)
{
    const struct opc_export *export = page->export;
    const size_t dim = (size_t) export->outputs, n = dim * (size_t) export->networks;
    static const char *const NAME[] = {"log_var_max", "log_var_min", "log_std_shift"};
    opc_text_add(page->out,
                 "\n/* Bounds of the log-variances, and the scale of the deviations. */\n");
    for (int a = 0; a < 3; a++) {
        begin_array(page, NAME[a], n);
        for (size_t i = 0; i < n; i++) {
            const struct opc_network *network = &export->network[i / dim];
            const float *from = a == 0   ? network->log_var_max
                                : a == 1 ? network->log_var_min
                                         : network->log_std_shift;
            add_element(page, i, from[i % dim]);
        }
        end_array(page);
    }
    add_array(page, "test_log_std", OPC_EXPORT_TESTS * dim, export->test_log_std);
    opc_text_addf(page->out, "#define %s_LOG_STD_TOLERANCE ", page->upper);
    add_literal(page, export->log_std_tolerance);
    opc_text_add(page->out, "\n");
}

/* The dimensions, as constants. */
static void add_sizes(const struct page *page, size_t weights, size_t biases)
{
    const struct opc_export *export = page->export;
    const struct opc_network *network = &export->network[0];
    const int layers = network->net->shape.layers;
    const char *u = page->upper;
    int width = export->inputs;
    for (int l = 0; l < layers; l++)
        width = opc_network_width(network, l) > width ? opc_network_width(network, l) : width;
    opc_text_addf(page->out, "enum {\n    %s_OBSERVATIONS = %d,\n    %s_ACTIONS = %d,\n", u,
                  export->obs, u, export->act);
    opc_text_addf(page->out, "    %s_INPUTS = %d,\n    %s_OUTPUTS = %d,\n", u, export->inputs, u,
                  export->outputs);
    opc_text_addf(page->out, "    %s_NETWORK_OUTPUTS = %d,\n", u, network->outputs);
    if (export->is_model)
        opc_text_addf(page->out, "    %s_ELITES = %d,\n", u, export->networks);
    opc_text_addf(page->out, "    %s_LAYERS = %d,\n    %s_WIDTH = %d,\n", u, layers, u, width);
    opc_text_addf(page->out, "    %s_WEIGHTS = %zu,\n    %s_BIASES = %zu,\n", u, weights, u,
                  biases);
    opc_text_addf(page->out, "    %s_TESTS = %d\n};\n", u, OPC_EXPORT_TESTS);
    /* The activations, in the order of enum opc_activation: which one hidden layers have, and
     * which the last. */
    opc_text_addf(page->out, "enum { %s_LINEAR, %s_RELU, %s_TANH, %s_SWISH };\n", u, u, u, u);
    opc_text_addf(page->out, "enum { %s_HIDDEN = %d, %s_LAST = %d };\n", u,
                  (int)network->net->shape.activation, u,
                  (int)opc_export_activation_of(network, layers - 1));
    opc_text_addf(page->out, "#define %s_INPUT_CLIP ", u);
    add_literal(page, network->clip > 0 ? network->clip : FLT_MAX);
    opc_text_addf(page->out, "\nstatic const int %s_widths[%d] = {%d", page->name, layers + 1,
                  export->inputs);
    for (int l = 0; l < layers; l++)
        opc_text_addf(page->out, ", %d", opc_network_width(network, l));
    opc_text_add(page->out, "};\n");
}

static void add_numbers(const struct page *page)
{
    const struct opc_export *export = page->export;
    const struct opc_network *network = &export->network[0];
    const size_t tests = OPC_EXPORT_TESTS;
    size_t weights = 0, biases = 0;
    for (int l = 0; l < network->net->shape.layers; l++) {
        const size_t out = (size_t)opc_network_width(network, l);
        weights += out * (size_t)network->net->layer[l].in;
        biases += out;
    }
    add_sizes(page, weights, biases);
    add_limits(page);
    add_scaling(page);
    opc_text_add(page->out, "\n/* w[out][in] of every layer, then the biases. */\n");
    add_weights(page, weights, biases);
    opc_text_add(page->out, "\n/* The self-test: inputs, what opc computed, and how far results "
                            "may be off. */\n");
    add_array(page, "test_input", tests * (size_t) export->inputs, export->test_input);
    add_array(page, "test_output", tests * (size_t) export->outputs, export->test_output);
    add_array(page, "tolerance", (size_t) export->outputs, export->tolerance);
    if (export->is_model)
        add_variances(page);
    opc_text_add(page->out, "\n");
}

/* ---- the file -------------------------------------------------------------------------------- */

int opc_export_header(const struct opc_export *export, const char *name, struct opc_text *out,
                      struct opc_err *err)
{
    struct page page = {.export = export, .out = out};
    snprintf(page.name, sizeof page.name, "%s", name);
    for (size_t i = 0; name[i]; i++)
        page.upper[i] = (char)toupper((unsigned char)name[i]);
    opc_text_addf(out, "/* %s.h - ", name);
    opc_export_about(export, out);
    opc_text_addf(out,
                  ".\n * C99, no heap, no libm. Include it where it is called, and call "
                  "%s_self_test once: it returns 0\n * if this build computes what opc computed. "
                  "docs/export.md of opc explains the rest. */\n",
                  name);
    OPC_TRY(add_part(&page, "/* @begin */", err));
    add_numbers(&page);
    OPC_TRY(add_part(&page, "/* @numbers */", err));
    OPC_TRY(add_part(&page, export->is_model ? "/* @model */" : "/* @policy */", err));
    return add_part(&page, "/* @end */", err);
}
