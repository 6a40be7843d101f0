/* SPDX-License-Identifier: MIT */
/* Eq. 2 and eq. 5 side by side: records a pendulum, fits an ensemble to too little data, rolls it
 * out with the recorded actions and with changed ones, and prints how far each is from the truth.
 *
 *     cc -o eq5 eq5.c $(pkg-config --cflags --libs opc) -lm && ./eq5
 */
#include <opc/opc.h>

#include <math.h>
#include <stdio.h>

enum { OBS = 3, N = 6, H = 60 }; /* cos, sin, speed (one torque acts); episodes, steps of each */

static struct opc_env *env;
static struct opc_episodes *past;
static struct opc_predictor *model;
static float truth[2][N][(H + 1) * OBS], changed[N][H]; /* states as recorded, and if changed */

/* Episode i on the real pendulum: recorded, while a noisy policy pumps energy in; or with the
 * recorded actions changed by 0.1. */
static int play(int i, bool change, struct opc_err *err)
{
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_RESET, 0, (uint32_t)i);
    double obs[OBS], torque;
    struct opc_outcome out = {.obs = obs};
    OPC_TRY(opc_env_reset(env, &rng, obs, err));
    if (!change)
        OPC_TRY(opc_episodes_begin(past, obs, err));
    for (int t = 0; t <= H; t++) {
        for (int k = 0; k < OBS; k++)
            truth[change][i][t * OBS + k] = (float)obs[k];
        if (t == H)
            break;
        float a = 0.08f * (float)obs[2] + 0.4f * (opc_rng_unit(&rng) - 0.5f); /* |speed| <= 8 */
        if (change)
            a = changed[i][t] = opc_episodes_at(past, i, t).action[0] + 0.1f;
        opc_env_scale(env, &a, &torque); /* from [-1, 1] to Nm */
        OPC_TRY(opc_env_step(env, &torque, &out, err));
        if (!change)
            OPC_TRY(opc_episodes_append(past, &a, out.reward, obs, out.terminated, err));
    }
    if (!change)
        opc_episodes_close(past);
    return OPC_OK;
}

static int fit(struct opc_err *err)
{
    static const char *const SETTINGS[] = {
        "members=3",         "elites=2", "hidden=[32, 32]", "batch_size=32", "patience=20",
        "weight_decay=1e-5", NULL};
    static float sa[N * H][OBS + 1], y[N * H][OBS + 1];
    const struct opc_ensemble_options options = {OPC_SIZED(struct opc_ensemble_options), .obs = OBS,
                                                 .act = 1, .settings = SETTINGS};
    OPC_TRY(opc_ensemble_create(&options, &model, err));
    opc_episodes_flatten(past, sa[0], y[0]);
    return opc_predictor_fit(model, N * H, sa[0], y[0], NULL, NULL, err);
}

/* Along every episode from its start on; prints the root mean square distance from the truth. */
static int roll_out(const char *equation, const char *name, bool change, struct opc_err *err)
{
    static const int EPISODE[N] = {0, 1, 2, 3, 4, 5}, TIME[N] = {0};
    struct opc_transition *tr;
    struct opc_trajectories *paths = NULL;
    OPC_TRY(opc_transition_create(
        &(struct opc_transition_options){OPC_SIZED(struct opc_transition_options), .name = name,
                                         .past = past, .model = model, .mean = 1},
        &tr, err));
    struct opc_imagine_plan plan = {OPC_SIZED(struct opc_imagine_plan),
                                    .transition = tr,
                                    .n = N,
                                    .episode = EPISODE,
                                    .time = TIME,
                                    .horizon = H};
    if (change) /* otherwise the recorded actions are taken */
        plan.actions = changed[0];
    int code = opc_transition_refresh(tr, NULL, err);
    if (!code)
        code = opc_imagine(&plan, &paths, err);
    double sum = 0;
    for (int i = 0; i < N && !code; i++)
        for (int k = 0; k < (H + 1) * OBS; k++)
            sum += pow((double)(opc_trajectories_states(paths, i)[k] - truth[change][i][k]), 2);
    if (!code)
        printf("%s, %-10s %-9s %.6g\n", equation, name, change ? "changed" : "recorded",
               sqrt(sum / (N * H * OBS)));
    opc_trajectories_destroy(paths);
    opc_transition_destroy(tr);
    return code;
}

static int run(struct opc_err *err)
{
    OPC_TRY(opc_env_open("pendulum", &env, err));
    OPC_TRY(opc_episodes_create(OBS, 1, N * H, N, &past, err));
    for (int i = 0; i < 2 * N; i++)
        OPC_TRY(play(i % N, i >= N, err));
    OPC_TRY(fit(err));
    printf("%d steps on     actions   distance from the real pendulum\n", H);
    for (int change = 0; change < 2; change++) {
        OPC_TRY(roll_out("eq. 2", "learned", change, err));
        OPC_TRY(roll_out("eq. 5", "corrected", change, err));
    }
    return OPC_OK;
}

int main(void)
{
    struct opc_err err;
    const int code = run(&err);
    if (code)
        fprintf(stderr, "eq5: %s\n", err.text);
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
    opc_env_close(env);
    return opc_exit_status(code);
}
