/* SPDX-License-Identifier: MIT */
/* Plays a task with the policy of policy.opc, as `opc evaluate` does, and asks the exported policy
 * for its action in every state. Prints the largest difference in ULP of the largest limit, and
 * each state with both actions to a file:
 *
 *     play policy.opc TASK STEPS FILE */
#include <opc/opc.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void exported_policy(const float *observation, float *action);
int exported_tests(void);

enum { MAX = 64 };

/* The largest distance of the two actions, as a share of the limit. */
static double distance(const struct opc_env *env, const double *ours, const float *theirs)
{
    double worst = 0;
    for (int k = 0; k < env->act; k++) {
        const double limit = fmax(fabs(env->low[k]), fabs(env->high[k]));
        worst = fmax(worst, fabs((double)(float)ours[k] - (double)theirs[k]) / limit);
    }
    return worst;
}

static int play(const char *path, const char *task, int steps, FILE *file, struct opc_err *err)
{
    double obs[MAX], action[MAX], worst = 0;
    float state[MAX], a[MAX], exported[MAX];
    struct opc_env *env;
    struct opc_agent *agent;
    struct opc_outcome out = {.obs = obs, .terminated = true};
    OPC_TRY(opc_env_open(task, &env, err));
    OPC_TRY(opc_policy_load(path, &agent, err));
    for (int t = 0, episode = 0; t < steps; t++) {
        if (out.terminated || out.truncated) {
            struct opc_rng rng = opc_rng_stream(7, OPC_USE_EVAL, 0, (uint32_t)episode++);
            OPC_TRY(opc_env_reset(env, &rng, obs, err));
        }
        for (int k = 0; k < env->obs; k++)
            state[k] = (float)obs[k];
        opc_agent_act(agent, 1, state, false, NULL, a);
        opc_env_scale(env, a, action);
        exported_policy(state, exported);
        worst = fmax(worst, distance(env, action, exported));
        for (int k = 0; k < env->obs; k++)
            fprintf(file, "%.9g,", (double)state[k]);
        for (int k = 0; k < env->act; k++)
            fprintf(file, "%.9g%s", (double)(float)action[k], k + 1 < env->act ? "," : "\n");
        OPC_TRY(opc_env_step(env, action, &out, err));
    }
    printf("self-tests %d, worst difference %.3f ULP\n", exported_tests(),
           worst / (double)FLT_EPSILON);
    opc_agent_destroy(agent);
    opc_env_close(env);
    return OPC_OK;
}

int main(int argc, char **argv)
{
    struct opc_err err = {0};
    FILE *file = argc == 5 ? fopen(argv[4], "w") : NULL;
    if (!file)
        return 2;
    const int code = play(argv[1], argv[2], atoi(argv[3]), file, &err);
    if (code)
        fprintf(stderr, "play: %s\n", err.text);
    return fclose(file) || code;
}
