/* SPDX-License-Identifier: MIT */
#include "study/export/export.h"

#include "num/normal.h"
#include "run/files/checkpoint.h"

#include "base/file.h"
#include "opc/train.h"
#include "test.h"

static const char *const TINY[] = {
    "env.name=pendulum",     "train.epochs=1",           "train.steps_per_epoch=20",
    "train.random_steps=40", "train.updates_per_step=1", "opc.transitions=50",
    "opc.horizon=2",         "model.members=2",          "model.elites=2",
    "model.hidden=[5]",      "model.weight_decay=[0]",   "model.max_epochs=1",
    "sac.policy_hidden=[6]", "sac.critic_hidden=[6]",    "sac.batch_size=8",
    "eval.episodes=1",
};

/* DIR/run, with settings of its own. */
static const char *train(void **state, const char *setting)
{
    static char dir[OPC_PATH];
    struct opc_config *config;
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    assert_ok(opc_config_create(&config, &err), &err);
    for (size_t i = 0; i < sizeof TINY / sizeof *TINY; i++)
        assert_ok(opc_config_set(config, TINY[i], &err), &err);
    assert_ok(opc_config_set(config, setting, &err), &err);
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = dir, .threads = 1};
    assert_ok(opc_train(config, &plan, &err), &err);
    opc_config_destroy(config);
    return dir;
}

/* Weights once without their padding, biases, scaling: what the formats write is what acts. The
 * outputs are computed here in double. */
static double relu_network(const struct opc_network *network, const float *x)
{
    double hidden[8], out = opc_network_bias(network, 1)[0];
    const struct opc_layer *layer = network->net->layer;
    for (int o = 0; o < layer[0].out; o++) {
        hidden[o] = (double)opc_network_bias(network, 0)[o];
        for (int i = 0; i < layer[0].in; i++)
            hidden[o] += (double)opc_network_weight(network, 0)[o * layer[0].ld + i] * (double)x[i];
        out += (double)opc_network_weight(network, 1)[o] * fmax(hidden[o], 0);
    }
    return out;
}

static void the_self_test_of_a_policy_is_its_network_scaled_to_the_task(void **state)
{
    struct opc_export export;
    struct opc_err err;
    assert_ok(opc_export_policy(train(state, "train.seed=4"), &export, &err), &err);
    assert_false(export.is_model);
    assert_string_equal(export.task, "pendulum");
    assert_int_equal(export.epoch, 1);
    assert_true(export.low[0] == -2 && export.high[0] == 2);
    for (int i = 0; i < OPC_EXPORT_TESTS; i++) {
        const double a = tanh(relu_network(&export.network[0], export.test_input + 3 * i));
        assert_true(fabs(2 * a - (double)export.test_output[i]) < 1e-6);
    }
    opc_export_free(&export);
}

static void a_model_has_its_elites_and_their_mean(void **state)
{
    struct opc_export export;
    struct opc_err err;
    float y[4], sum[4] = {0};
    assert_ok(opc_export_model(train(state, "train.seed=5"), &export, &err), &err);
    assert_true(export.is_model);
    assert_int_equal(export.networks, 2);
    assert_int_equal(export.inputs, 4);
    assert_int_equal(export.outputs, 4);
    /* test 0: the action is in [-2, 2] outside and in [-1, 1] inside */
    const float *x = export.test_input;
    assert_true(fabsf(x[3]) <= 2);
    for (int e = 0; e < 2; e++) {
        const float a = x[3] / 2;
        opc_predictor_mean(export.trained.model, 1, x, &a, &e, y, NULL);
        for (int k = 0; k < 4; k++)
            sum[k] += y[k] / 2;
    }
    assert_floats_near(sum, export.test_output, 4, 1e-5);
    opc_export_free(&export);
}

/* A draw is mean + exp(log_std) eps, and eps is known. */
static void compare_draws(const char *run)
{
    struct opc_export export;
    struct opc_err err;
    assert_ok(opc_export_model(run, &export, &err), &err);
    for (int i = 0; i < OPC_EXPORT_TESTS; i++) {
        const float *x = export.test_input + 4 * i, a = x[3] / 2;
        const int elite = 0;
        float mean[4], drawn[4], eps[4];
        struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 3, (uint32_t)i), same = rng;
        opc_rng_normals(&same, 4, eps);
        opc_predictor_mean(export.trained.model, 1, x, &a, &elite, mean, NULL);
        opc_predictor_sample(export.trained.model, 1, x, &a, &elite, &rng, drawn, NULL);
        for (int k = 0; k < 4; k++) {
            const double std = exp((double)export.test_log_std[4 * i + k]);
            assert_true(std > 0);
            assert_true(fabs((double)drawn[k] - (double)mean[k] - std * (double)eps[k]) <
                        1e-4 * (std + fabs((double)mean[k])) + 1e-6);
        }
    }
    opc_export_free(&export);
}

static void the_deviations_of_a_model_are_those_it_draws_with(void **state)
{
    compare_draws(train(state, "train.seed=5"));
}

static void deviations_are_in_the_units_of_the_task(void **state)
{
    compare_draws(train(state, "model.normalize_targets=true"));
}

/* It would pass any comparison, or none. */
static void a_policy_of_nan_does_not_leave(void **state)
{
    const char *run = train(state, "train.seed=6");
    char path[OPC_PATH];
    struct opc_pack *pack;
    struct opc_export export;
    struct opc_err err = {0};
    snprintf(path, sizeof path, "%s/policy.opc", run);
    assert_ok(opc_checkpoint_load(path, OPC_PACK_POLICY, &pack, &err), &err);
    /* all its networks become NaN; the file is whole */
    for (int i = 0; i < pack->parts; i++)
        if (strncmp(pack->part[i].name, "sac.policy", 10) == 0)
            memset((void *)pack->part[i].data, 0xff, pack->part[i].bytes);
    assert_ok(opc_checkpoint_save(path, OPC_PACK_POLICY, pack->hash, pack->epoch, pack->part,
                                  pack->parts, &err),
              &err);
    opc_pack_free(pack);
    assert_fails(opc_export_policy(path, &export, &err), OPC_EDIVERGED, &err, "state 0");
}

static void a_run_without_a_model_has_none_to_export(void **state)
{
    struct opc_export export;
    struct opc_err err;
    const char *run = train(state, "opc.transition=replay");
    assert_fails(opc_export_model(run, &export, &err), OPC_EUSER, &err, "opc.transition = replay");
    assert_ok(opc_export_policy(run, &export, &err), &err);
    assert_fails(opc_export_write(&export, "policy.pt", &err), OPC_EUSER, &err, "policy.pt");
    opc_export_free(&export);
}

/* ---- lack of memory -------------------------------------------------------------------------- */

struct attempt {
    const char *run;
    char file[OPC_PATH];
    bool model;
};

static int export_one(void *ctx, struct opc_err *err)
{
    const struct attempt *attempt = ctx;
    struct opc_export export;
    int code = (attempt->model ? opc_export_model : opc_export_policy)(attempt->run, &export, err);
    if (code)
        return code;
    code = opc_export_write(&export, attempt->file, err);
    opc_export_free(&export);
    return code;
}

static void lack_of_memory_is_survived_in_every_format(void **state)
{
    const char *run = train(state, "train.seed=6"), *ending;
    for (int i = 0; (ending = opc_export_ending(i)); i++)
        for (int model = 0; model < 2; model++) {
            struct attempt attempt = {.run = run, .model = model};
            snprintf(attempt.file, sizeof attempt.file, "%s/exported%s", (const char *)*state,
                     ending);
            assert_survives_lack_of_memory(export_one, &attempt);
        }
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(the_self_test_of_a_policy_is_its_network_scaled_to_the_task),
        WITH_DIR(a_model_has_its_elites_and_their_mean),
        WITH_DIR(the_deviations_of_a_model_are_those_it_draws_with),
        WITH_DIR(deviations_are_in_the_units_of_the_task),
        WITH_DIR(a_policy_of_nan_does_not_leave),
        WITH_DIR(a_run_without_a_model_has_none_to_export),
        WITH_DIR(lack_of_memory_is_survived_in_every_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
