/* SPDX-License-Identifier: MIT */
/* Trains a policy on a task of the program's own, and lets it act. Public headers only:
 *
 *     cc -o embed embed.c $(pkg-config --cflags --libs opc)
 *     ./embed DIR
 *
 * DIR gets what `opc train` would leave there. The task: a cart on a rail is pushed to the middle.
 */
#include <opc/opc.h>

#include <stdio.h>

/* ---- the task -------------------------------------------------------------------------------- */

static const double DT = 0.1, LOW[] = {-1}, HIGH[] = {1}; /* seconds, newtons on 1 kg */

struct cart {
    struct opc_env env; /* comes first */
    double x, v;
};

static int cart_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                     struct opc_err *err)
{
    (void)arg;
    struct cart *cart = opc_alloc(1, sizeof *cart);
    if (!cart)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", type->name);
    cart->env = (struct opc_env){.obs = 2, .act = 1, .steps = 50, .low = LOW, .high = HIGH};
    *out = &cart->env;
    return OPC_OK;
}

static int cart_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    (void)err;
    struct cart *cart = (struct cart *)env;
    obs[0] = cart->x = 2 * opc_rng_unit_double(rng) - 1;
    obs[1] = cart->v = 0;
    return OPC_OK;
}

static int cart_step(struct opc_env *env, const double *force, struct opc_outcome *out,
                     struct opc_err *err)
{
    (void)err;
    struct cart *cart = (struct cart *)env;
    const double f = force[0] < LOW[0] ? LOW[0] : force[0] > HIGH[0] ? HIGH[0] : force[0];
    cart->x += DT * cart->v;
    cart->v += DT * (f - 0.1 * cart->v);
    out->obs[0] = cart->x;
    out->obs[1] = cart->v;
    out->reward = -cart->x * cart->x - 0.01 * f * f;
    out->terminated = false;
    return OPC_OK;
}

static void cart_close(struct opc_env *env)
{
    opc_free(env);
}

static const struct opc_env_page PAGE = {"push a cart to the middle", "position, speed", "force",
                                         "-x^2 - 0.01 f^2",           "it does not end", "at rest"};
static const struct opc_env_type CART = {.name = "cart",
                                         .page = &PAGE,
                                         .open = cart_open,
                                         .reset = cart_reset,
                                         .step = cart_step,
                                         .close = cart_close};
static const struct opc_env_plugin OURS = OPC_ENV_PLUGIN_OF(&CART);

/* ---- training -------------------------------------------------------------------------------- */

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
        "env.name=cart",          "opc.transition=corrected",
        "train.epochs=3",         "train.steps_per_epoch=200",
        "train.random_steps=200", "train.updates_per_step=10",
        "opc.transitions=5000",   "model.max_epochs=20",
        "model.hidden=[64, 64]",  "model.weight_decay=1e-5",
    };
    int code = opc_config_create(config, err);
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS && !code; i++)
        code = opc_config_set(*config, SETTINGS[i], err);
    return code;
}

/* ---- acting ---------------------------------------------------------------------------------- */

/* One episode without exploration. */
static int play(struct opc_agent *policy, struct opc_err *err)
{
    double obs[2], force, total = 0;
    float state[2], a;
    struct opc_env *env;
    struct opc_outcome out = {.obs = obs};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_EVAL, 0, 0);
    OPC_TRY(opc_env_open("cart", &env, err));
    int code = opc_env_reset(env, &rng, obs, err);
    while (!code && !out.terminated && !out.truncated) {
        state[0] = (float)obs[0];
        state[1] = (float)obs[1];
        opc_agent_act(policy, 1, state, false, NULL, &a);
        opc_env_scale(env, &a, &force);
        code = opc_env_step(env, &force, &out, err);
        total += out.reward;
    }
    opc_env_close(env);
    if (!code)
        printf("one episode: return %.1f, the cart stops at %.2f\n", total, obs[0]);
    return code;
}

/* policy.opc is all that is needed: it could be on another machine. */
static int act_with(const char *dir, struct opc_err *err)
{
    char path[4096];
    int obs, act;
    struct opc_agent *policy;
    snprintf(path, sizeof path, "%s/policy.opc", dir);
    OPC_TRY(opc_policy_load(path, &policy, err));
    opc_agent_dimensions(policy, &obs, &act);
    printf("policy.opc: %d observations, %d action\n", obs, act);
    const int code = play(policy, err);
    opc_agent_destroy(policy);
    return code;
}

int main(int argc, char **argv)
{
    struct opc_err err = {0};
    struct opc_config *config = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: embed DIR\n");
        return 2;
    }
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = argv[1],
                                        .progress = show};
    int code = opc_env_register(&OURS, &err);
    if (!code)
        code = configure(&config, &err);
    if (!code)
        code = opc_train(config, &plan, &err);
    if (!code)
        code = act_with(argv[1], &err);
    if (code)
        fprintf(stderr, "embed: %s\n", err.text);
    opc_config_destroy(config);
    return opc_exit_status(code);
}
