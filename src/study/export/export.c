/* SPDX-License-Identifier: MIT */
/* Takes a policy or a model out of a run, with the limits of its actions, and computes the
 * self-test that goes with it. Called by `opc export`; header.c, onnx.c and npz.c write what is
 * gathered here.
 *
 * Invariant: the expected results of the self-test come from opc_agent_act, opc_predictor_mean and
 * opc_gauss_bound, the functions that training and evaluation call, and not from a second
 * implementation. */
#include "study/export/export.h"

#include "base/file.h"
#include "num/gauss.h"
#include "num/normal.h"
#include "opc/env.h"
#include "opc/mem.h"
#include "opc/version.h"
#include "run/files/rundir.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Names the stream of the self-test's inputs: the same for every export. */
enum { TEST_SEED = 1 };

/* ---- what the formats share ------------------------------------------------------------------ */

/* Rounded once from double: rounding low and high first would move the centre. */
float opc_export_limit(const struct opc_export *export, enum opc_limit_value value, int k)
{
    const double low = export->low[k], high = export->high[k], half = (high - low) / 2;
    switch (value) {
    case OPC_LIMIT_LOW: return (float)low;
    case OPC_LIMIT_HIGH: return (float)high;
    case OPC_LIMIT_CENTRE: return (float)((low + high) / 2);
    case OPC_LIMIT_HALF: return (float)half;
    case OPC_LIMIT_INVERSE_HALF: break;
    }
    return half > 0 ? (float)(1 / half) : 0; /* an action without a range is always 0 */
}

/* The words that docs/export.md lists. */
const char *opc_export_activation(enum opc_activation activation)
{
    static const char *const NAME[] = {[OPC_ACTIVATION_LINEAR] = "linear",
                                       [OPC_ACTIVATION_RELU] = "relu",
                                       [OPC_ACTIVATION_TANH] = "tanh",
                                       [OPC_ACTIVATION_SWISH] = "swish"};
    return NAME[activation];
}

enum opc_activation opc_export_activation_of(const struct opc_network *network, int l)
{
    const bool last = l + 1 == network->net->shape.layers;
    return last && network->squash ? OPC_ACTIVATION_TANH : network->net->layer[l].activation;
}

/* The same line in every format: what, of which task, how far trained, by which program. */
void opc_export_about(const struct opc_export *export, struct opc_text *out)
{
    opc_text_addf(out, "%s for %s after epoch %d, exported by opc %s",
                  export->is_model ? "dynamics model" : "policy", export->task, export->epoch,
                  OPC_VERSION);
}

/* ---- the self-test --------------------------------------------------------------------------- */

/* Inputs about where the network was trained, as far as its scaling tells; actions within their
 * limits. */
static void draw_inputs(const struct opc_export *export)
{
    const struct opc_network *network = &export->network[0];
    struct opc_rng rng = opc_rng_stream(TEST_SEED, OPC_USE_TEST, 0, 0);
    const int inputs = export->inputs, even = (inputs + 1) / 2 * 2;
    /* An even number of draws for each row, so that the rows of one network are the same whether
     * its number of inputs is odd or not. */
    for (int i = 0; i < OPC_EXPORT_TESTS; i++) {
        float *x = export->test_input + (size_t)i * (size_t)inputs;
        for (int k = 0; k < even; k++) {
            /* uniform in [-2, 2]: two deviations, where there is a scale */
            const float z = 4 * opc_rng_unit(&rng) - 2;
            if (k >= inputs)
                continue;
            x[k] = network->mean ? network->mean[k] + z / network->inverse[k] : z;
            /* A model's last inputs are actions, outside of the network in the task's units: all of
             * their range, and not two deviations. */
            if (k >= export->obs)
                x[k] = opc_export_limit(export, OPC_LIMIT_CENTRE, k - export->obs) +
                       z / 2 * opc_export_limit(export, OPC_LIMIT_HALF, k - export->obs);
        }
    }
}

/* Actions in the task's units, as opc_env_scale makes them. */
static void test_policy(const struct opc_export *export)
{
    float *action = export->test_output;
    /* The mode in [-1, 1], as `opc evaluate` takes it, ... */
    opc_agent_act(export->trained.agent, OPC_EXPORT_TESTS, export->test_input, false, NULL, action);
    /* ... and the formula of opc_env_scale, for which no environment has to be open. */
    for (int i = 0; i < OPC_EXPORT_TESTS * export->act; i++) {
        const double low = export->low[i % export->act], high = export->high[i % export->act];
        const double x = low + ((double)action[i] + 1) * (high - low) / 2;
        action[i] = (float)(x < low ? low : x > high ? high : x);
    }
}

/* The mean over the elites; in float and in their order, as the exported code adds. */
static int test_model(const struct opc_export *export, struct opc_err *err)
{
    const size_t obs = (size_t) export->obs, act = (size_t) export->act, n = OPC_EXPORT_TESTS,
                 dim = (size_t) export->outputs;
    float *s = NULL, *a = NULL, *y = NULL;
    const struct opc_block blocks[] = {
        {&s, n, obs * sizeof *s}, {&a, n, act * sizeof *a}, {&y, n, dim * sizeof *y}};
    int elite[OPC_EXPORT_TESTS], code = OPC_OK;
    if (!opc_alloc_all(blocks, 3))
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for a self-test");
    /* States as they are; actions back to [-1, 1], by the same operations as in exported.h. */
    for (size_t i = 0; i < n && !code; i++) {
        const float *x = export->test_input + i * (obs + act);
        memcpy(s + i * obs, x, obs * sizeof *s);
        for (size_t k = 0; k < act; k++) {
            const float centre = opc_export_limit(export, OPC_LIMIT_CENTRE, (int)k);
            const float u =
                (x[obs + k] - centre) * opc_export_limit(export, OPC_LIMIT_INVERSE_HALF, (int)k);
            a[i * act + k] = u < -1 ? -1 : u > 1 ? 1 : u;
        }
    }
    /* Every elite answers all rows; the sum is divided at the end. */
    for (int e = 0; e < export->networks && !code; e++) {
        for (size_t i = 0; i < n; i++)
            elite[i] = e;
        opc_predictor_mean(export->trained.model, (int)n, s, a, elite, y, NULL);
        for (size_t i = 0; i < n * dim; i++)
            export->test_output[i] += y[i];
    }
    for (size_t i = 0; i < n * dim; i++)
        export->test_output[i] /= (float)export->networks;
    opc_free(s);
    opc_free(a);
    opc_free(y);
    return code;
}

/* The log-deviations of elite 0, by the functions that draw from it. */
static int test_deviations(struct opc_export *export, struct opc_err *err)
{
    enum { P = OPC_PANEL };
    _Static_assert((int)OPC_EXPORT_TESTS == (int)P, "the tests are one panel");
    const struct opc_network *network = &export->network[0];
    const size_t in = (size_t) export->inputs, dim = (size_t) export->outputs, f = sizeof(float);
    struct opc_arena scratch = {0};
    /* opc_gauss_bound takes as much as the log-variances it bounds */
    OPC_TRY(opc_arena_create(opc_mlp_infer_need(network->net, 1) + opc_arena_need(in, P * f) +
                                 4 * opc_arena_need(2 * dim, P * f),
                             &scratch, err));
    float *x = opc_floats(&scratch, in, P), *y = opc_floats(&scratch, 2 * dim, P);
    for (int i = 0; i < P; i++)
        for (int k = 0; k < export->inputs; k++) {
            float v = export->test_input[i * export->inputs + k];
            if (k >= export->obs) { /* to [-1, 1], as in test_model */
                const int a = k - export->obs;
                v = (v - opc_export_limit(export, OPC_LIMIT_CENTRE, a)) *
                    opc_export_limit(export, OPC_LIMIT_INVERSE_HALF, a);
                v = v < -1 ? -1 : v > 1 ? 1 : v;
            }
            x[opc_panel_place(i, export->inputs, k)] = (v - network->mean[k]) * network->inverse[k];
        }
    opc_mlp_infer(network->net, network->member, 1, x, in * P, 2 * (int)dim, y, 2 * dim * P,
                  &scratch);
    float *l = y + dim * P;
    opc_gauss_bound((int)dim, network->log_var_max, network->log_var_min, l, l, &scratch);
    double max = 1;
    for (int i = 0; i < P; i++)
        for (size_t k = 0; k < dim; k++) {
            const float log_std = 0.5f * l[k * P + (size_t)i] + network->log_std_shift[k];
            export->test_log_std[(size_t)i * dim + k] = log_std;
            max = fmax(max, fabs((double)log_std));
        }
    /* two softplus more than a mean has */
    export->log_std_tolerance = (float)(4 * OPC_EXPORT_ULPS * (double)FLT_EPSILON * max);
    opc_arena_destroy(&scratch);
    return OPC_OK;
}

/* So many ULP of the largest value that an output has: its limit, or what the test met. */
static void set_tolerances(const struct opc_export *export)
{
    for (int k = 0; k < export->outputs; k++) {
        double max = 0;
        for (int i = 0; i < OPC_EXPORT_TESTS; i++)
            max = fmax(max, fabs((double)export->test_output[i * export->outputs + k]));
        /* Actions have a limit, whatever the test has met. */
        if (!export->is_model)
            max = fmax(fabs(export->low[k]), fabs(export->high[k]));
        export->tolerance[k] = (float)(OPC_EXPORT_ULPS * (double)FLT_EPSILON * max);
    }
}

static int make_test(struct opc_export *export, struct opc_err *err)
{
    const size_t n = OPC_EXPORT_TESTS, f = sizeof(float);
    const struct opc_block blocks[] = {
        {&export->test_input, n, (size_t) export->inputs * f},
        {&export->test_output, n, (size_t) export->outputs * f},
        {&export->tolerance, (size_t) export->outputs, f},
        {&export->test_log_std, n, (size_t) export->outputs * f},
    };
    if (!opc_alloc_all(blocks, export->network[0].log_var_max ? 4 : 3))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a self-test");
    /* Inputs first, then what opc makes of them. */
    draw_inputs(export);
    if (export->is_model)
        OPC_TRY(test_model(export, err));
    else
        test_policy(export);
    /* A policy of NaN would pass any comparison, or none: it does not leave. */
    for (int i = 0; i < OPC_EXPORT_TESTS * export->outputs; i++)
        if (!isfinite(export->test_output[i]))
            return opc_fail(err, OPC_EDIVERGED,
                            "its output %d is not a finite number in state %d of the self-test; "
                            "the training diverged",
                            i % export->outputs, i / export->outputs);
    set_tolerances(export);
    if (export->test_log_std)
        OPC_TRY(test_deviations(export, err));
    return OPC_OK;
}

/* ---- from a run ------------------------------------------------------------------------------ */

/* Settings, the task's name, and the limits of the actions. */
static int take_task(const char *path, struct opc_export *out, struct opc_err *err)
{
    /* The settings know the task; a policy.opc has them inside. */
    struct opc_config *config;
    char *name;
    OPC_TRY(opc_policy_config(path, &config, err));
    int code = opc_config_get(config, "env.name", &name, err);
    if (!code) {
        snprintf(out->task, sizeof out->task, "%s", name);
        opc_free(name);
    }
    opc_config_destroy(config);
    const struct opc_block blocks[] = {
        {&out->low, (size_t)out->act, sizeof *out->low},
        {&out->high, (size_t)out->act, sizeof *out->high},
    };
    if (!code && !opc_alloc_all(blocks, 2))
        code =
            opc_fail(err, OPC_ENOMEM, "not enough memory for the limits of %d actions", out->act);
    return code ? code : opc_policy_limits(path, out->act, out->low, out->high, err);
}

/* Loads the policy, and asks its type for the network. A failure leaves what was loaded to
 * opc_export_free. */
static int take_policy(const char *path, struct opc_export *out, struct opc_err *err)
{
    OPC_TRY(opc_policy_load_for(path, NULL, &out->trained.agent, &out->epoch, err));
    struct opc_agent *agent = out->trained.agent;
    /* A planner, say, has no map from states to actions that could be written down. */
    if (!agent->type->network)
        return opc_fail(err, OPC_EUSER,
                        "%s is a policy of %s, which is no network that maps a state to an action, "
                        "so it cannot be exported",
                        path, agent->type->label);
    out->obs = out->inputs = agent->obs;
    out->act = out->outputs = agent->act;
    out->networks = 1;
    OPC_TRY(agent->type->network(agent, &out->network[0], err));
    OPC_TRY(take_task(path, out, err));
    return make_test(out, err);
}

int opc_export_policy(const char *path, struct opc_export *out, struct opc_err *err)
{
    *out = (struct opc_export){.max_change = 1};
    const int code = take_policy(path, out, err);
    if (code)
        opc_export_free(out);
    return code;
}

/* The same of the dynamics model, which only a run directory has. */
static int take_model(const char *path, struct opc_export *out, struct opc_err *err)
{
    struct opc_config *config;
    struct opc_rundir_meta meta;
    if (!opc_is_directory(path))
        return opc_fail(err, OPC_EUSER,
                        "%s is not a run directory, and the model is in a run's checkpoints", path);
    OPC_TRY(opc_config_of_run(path, &config, err));
    int code = opc_rundir_meta(path, &meta, err);
    if (!code && !opc_transition_of(&config->set)->needs_model)
        code = opc_fail(err, OPC_EUSER, "%s has no model: it was trained with opc.transition = %s",
                        path, opc_transition_of(&config->set)->name);
    if (!code)
        code = opc_trained_load(path, config, meta.obs, meta.act, OPC_TRAINED_NEWEST, NULL,
                                &out->trained, err);
    opc_config_destroy(config);
    if (code)
        return code;
    const struct opc_predictor *model = out->trained.model;
    if (!model->type->network)
        return opc_fail(err, OPC_EUSER, "a model of type %s cannot be exported", model->type->name);
    out->is_model = true;
    out->epoch = out->trained.epoch;
    out->obs = model->obs;
    out->act = model->act;
    out->inputs = model->obs + model->act;
    out->outputs = model->obs + 1;
    /* One network for each elite; they share the scaling, and each has a copy of it. */
    for (int e = 0; e < model->elites; e++) {
        OPC_TRY(model->type->network(model, e, &out->network[e], err));
        out->networks++;
    }
    OPC_TRY(take_task(path, out, err));
    return make_test(out, err);
}

int opc_export_model(const char *path, struct opc_export *out, struct opc_err *err)
{
    *out = (struct opc_export){0};
    const int code = take_model(path, out, err);
    if (code)
        opc_export_free(out);
    return code;
}

void opc_export_free(struct opc_export *export)
{
    /* Networks before what they belong to. */
    for (int i = 0; i < OPC_MEMBERS; i++)
        opc_network_free(&export->network[i]);
    opc_free(export->low);
    opc_free(export->high);
    opc_free(export->test_input);
    opc_free(export->test_output);
    opc_free(export->tolerance);
    opc_free(export->test_log_std);
    opc_trained_free(&export->trained);
    *export = (struct opc_export){0};
}

/* ---- to a file ------------------------------------------------------------------------------- */

/* A new format is a file of its own and a line here. */
/* clang-format off */
static const struct {
    const char *ending;
    int (*write)(const struct opc_export *, const char *name, struct opc_text *, struct opc_err *);
} FORMATS[] = {
    {".h", opc_export_header},
    {".onnx", opc_export_onnx},
    {".npz", opc_export_npz},
};
/* clang-format on */
enum { FORMATS_COUNT = sizeof FORMATS / sizeof *FORMATS };

const char *opc_export_ending(int i)
{
    return i < FORMATS_COUNT ? FORMATS[i].ending : NULL;
}

/* "runs/my-policy.v2.h" is called my_policy_v2: letters, digits and underscores of the file's name,
 * with a letter in front. */
static void name_of(const char *file, const char *ending, char name[64])
{
    const char *base = opc_path_name(file);
    size_t n = strlen(base) - strlen(ending), used = 0;
    if (n == 0 || isdigit((unsigned char)*base))
        used = (size_t)snprintf(name, 64, "opc_");
    for (size_t i = 0; i < n && used < 63; i++, used++)
        name[used] = (char)(isalnum((unsigned char)base[i]) ? base[i] : '_');
    name[used] = '\0';
}

int opc_export_write(const struct opc_export *export, const char *file, struct opc_err *err)
{
    const char *base = opc_path_name(file);
    struct opc_text out = {0};
    char name[64];
    /* The ending decides; all is written in memory first, so that a file is whole or not there. */
    for (int i = 0; i < FORMATS_COUNT; i++) {
        const size_t n = strlen(base), ending = strlen(FORMATS[i].ending);
        if (n < ending || strcmp(base + n - ending, FORMATS[i].ending) != 0)
            continue;
        name_of(file, FORMATS[i].ending, name);
        int code = FORMATS[i].write(export, name, &out, err);
        if (!code)
            code = opc_text_check(&out, err);
        if (!code)
            code = opc_file_write(file, opc_text_get(&out), out.used, err);
        opc_text_free(&out);
        return code;
    }
    return opc_fail(err, OPC_EUSER,
                    "%s: the ending of a file's name says its format: .h (C99), .onnx or .npz "
                    "(numpy)",
                    file);
}
