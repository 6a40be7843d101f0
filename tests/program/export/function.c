/* SPDX-License-Identifier: MIT */
/* An exported policy and model in a C99 program, behind functions that play.c calls. */
#include "model.h"
#include "policy.h"

void exported_policy(const float *observation, float *action);
void exported_model(const float *observation, const float *action, float *next, float *reward);
int exported_tests(void);

void exported_policy(const float *observation, float *action)
{
    policy(observation, action);
}

void exported_model(const float *observation, const float *action, float *next, float *reward)
{
    model(-1, observation, action, next, reward);
}

int exported_tests(void)
{
    return 100 * policy_self_test() + model_self_test();
}
