/* SPDX-License-Identifier: MIT */
/* Trains a policy from a program of your own, and lets it act. Public headers only:
 *
 *     cc -o embed embed.c $(pkg-config --cflags --libs opc)
 *     ./embed DIR
 *
 * DIR gets what `opc train` would leave there. */
#include <opc/config.h>
#include <opc/env.h>
#include <opc/train.h>

#include <stdio.h>

static void show(void *ctx, const struct opc_progress *p)
{
    (void)ctx;
    if (p->epoch_done)
        printf("epoch %d of %d: %ld steps, return %.1f\n", p->epoch, p->epochs, p->env_steps,
               p->eval_return);
}

/* Settings as in a file; opc_config_load reads one. */
static int configure(struct opc_config **config, struct opc_err *err)
{
    static const char *const SETTINGS[] = {
        "env.name=cartpole",         "opc.transition=corrected", "train.epochs=3",
        "train.steps_per_epoch=250", "train.random_steps=500",   "train.updates_per_step=2",
        "opc.transitions=5000",      "model.max_epochs=20",      "model.hidden=[64, 64]",
        "model.weight_decay=1e-5",
    };
    int code = opc_config_create(config, err);
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS && !code; i++)
        code = opc_config_set(*config, SETTINGS[i], err);
    return code;
}

/* One episode without exploration. */
static int play(struct opc_agent *agent, struct opc_err *err)
{
    enum { OBS = 4 }; /* of CartPole, which has one action */
    double obs[OBS], action, total = 0;
    float state[OBS], a;
    struct opc_env *env;
    struct opc_outcome out = {.obs = obs};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_EVAL, 0, 0);
    int code = opc_env_open("cartpole", &env, err);
    if (code)
        return code;
    code = opc_env_reset(env, &rng, obs, err);
    while (!code && !out.terminated && !out.truncated) {
        for (int k = 0; k < OBS; k++)
            state[k] = (float)obs[k];
        opc_agent_act(agent, 1, state, false, NULL, &a);
        opc_env_scale(env, &a, &action);
        code = opc_env_step(env, &action, &out, err);
        total += out.reward;
    }
    opc_env_close(env);
    if (!code)
        printf("the policy keeps the pole up for %.0f steps\n", total);
    return code;
}

int main(int argc, char **argv)
{
    struct opc_err err = {0};
    struct opc_config *config = NULL;
    struct opc_agent *agent = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: embed DIR\n");
        return 2;
    }
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = argv[1],
                                        .progress = show};
    int code = configure(&config, &err);
    if (!code)
        code = opc_train(config, &plan, &err);
    if (!code)
        code = opc_policy_load(argv[1], &agent, &err);
    if (!code)
        code = play(agent, &err);
    if (code)
        fprintf(stderr, "embed: %s\n", err.text);
    opc_agent_destroy(agent);
    opc_config_destroy(config);
    return opc_exit_status(code);
}
