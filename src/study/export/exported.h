/* SPDX-License-Identifier: MIT */
/* The code of a header that `opc export` writes (header.c): opcx and OPCX become the name of the
 * file, the numbers come where it says "numbers", and of the two parts "policy" and "model" one is
 * left out. It is C99 without memory from the heap, without libm, and without state. */
/* @begin */
#ifndef OPCX_H
#define OPCX_H

#include <stdint.h>

/* a * b + c. With OPCX_FUSED it is rounded once, as opc computes it on processors that can; the
 * networks' outputs are then equal to opc's in every bit. Without, they differ in the last bits.
 * Do not compile this file with -ffast-math: the rounding to whole numbers below needs IEEE 754. */
#ifdef OPCX_FUSED
#include <math.h>
#define OPCX_FMA(a, b, c) fmaf(a, b, c)
#else
#define OPCX_FMA(a, b, c) ((a) * (b) + (c))
#endif

/* @numbers */
/* ---- layers ---------------------------------------------------------------------------------- */

union opcx_word {
    float real;
    uint32_t bits;
};

/* Adding it rounds a small number to a whole one, which is then in the low bits. */
#define OPCX_MAGIC 0x1.8p23f

/* e^x for |x| <= 80: x = k ln 2 + r, a polynomial of r, and k added to the exponent. */
static inline float opcx_exp(float x)
{
    union opcx_word t, p;
    float n, r;
    t.real = OPCX_FMA(x, 0x1.715476p+0f, OPCX_MAGIC);
    n = t.real - OPCX_MAGIC;
    r = OPCX_FMA(n, -0.693359375f, x);
    r = OPCX_FMA(n, 0x1.bd0106p-13f, r);
    p.real = OPCX_FMA(0x1.6a2314p-10f, r, 0x1.123aaep-7f);
    p.real = OPCX_FMA(p.real, r, 0x1.5558f6p-5f);
    p.real = OPCX_FMA(p.real, r, 0x1.555490p-3f);
    p.real = OPCX_FMA(p.real, r, 0x1.fffffcp-2f);
    p.real = OPCX_FMA(p.real, r, 1.0f);
    p.real = OPCX_FMA(p.real, r, 1.0f);
    p.bits += t.bits << 23;
    return p.real;
}

/* Near 0 an odd polynomial; beyond, 1 - 2 / (e^2|x| + 1), which would cancel near 0. */
static inline float opcx_tanh(float x)
{
    const float a = x < 0.0f ? -x : x, z = x * x;
    float p, far;
    if (x != x)
        return x;
    if (a < 0.625f) {
        p = OPCX_FMA(0x1.1974f4p-9f, z, -0x1.0c1f8ep-7f);
        p = OPCX_FMA(p, z, 0x1.639484p-6f);
        p = OPCX_FMA(p, z, -0x1.b9ef76p-5f);
        p = OPCX_FMA(p, z, 0x1.11106cp-3f);
        p = OPCX_FMA(p, z, -0x1.555554p-2f);
        return OPCX_FMA(p * z, x, x);
    }
    far = 1.0f - 2.0f / (opcx_exp(2.0f * a < 40.0f ? 2.0f * a : 40.0f) + 1.0f);
    return x < 0.0f ? -far : far;
}

/* x / (1 + e^-x), with -x = k ln 2 - r. */
static inline float opcx_swish(float x)
{
    const float t = x > 87.0f ? 87.0f : x < -88.0f ? -88.0f : x;
    union opcx_word k, p;
    float r;
    k.real = OPCX_FMA(t, -0x1.715476p+0f, OPCX_MAGIC);
#ifdef OPCX_FUSED
    r = OPCX_FMA(k.real - OPCX_MAGIC, 0x1.62e430p-1f, t);
#else
    r = OPCX_FMA(k.real - OPCX_MAGIC, 0.693359375f, t);
    r = OPCX_FMA(k.real - OPCX_MAGIC, -0x1.bd0106p-13f, r);
#endif
    p.real = OPCX_FMA(-0x1.1061ecp-7f, r, 0x1.572b42p-5f);
    p.real = OPCX_FMA(p.real, r, -0x1.5557b2p-3f);
    p.real = OPCX_FMA(p.real, r, 0x1.fffdfap-2f);
    p.real = OPCX_FMA(p.real, r, -1.0f);
    p.real = OPCX_FMA(p.real, r, 1.0f);
    p.bits += k.bits << 23;
    return x * (1.0f / (1.0f + p.real));
}

static inline float opcx_activate(int activation, float x)
{
    switch (activation) {
    case OPCX_RELU: return x < 0.0f ? 0.0f : x;
    case OPCX_TANH: return opcx_tanh(x);
    case OPCX_SWISH: return opcx_swish(x);
    default: return x;
    }
}

static inline float opcx_clip(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

/* One network, from in[OPCX_INPUTS] to out[OPCX_NETWORK_OUTPUTS]: scaled inputs, then y = act(W x +
 * b), layer by layer. The weights w[out][in] of all layers and networks follow each other. */
static inline void opcx_network(int network, const float *in, float *out)
{
    float memory[2][OPCX_WIDTH];
    const float *w = opcx_weight + network * OPCX_WEIGHTS, *b = opcx_bias + network * OPCX_BIASES;
    const float *x = memory[0];
    int layer, o, i;
    for (i = 0; i < OPCX_INPUTS; i++)
        memory[0][i] =
            opcx_clip((in[i] - opcx_mean[i]) * opcx_inverse[i], -OPCX_INPUT_CLIP, OPCX_INPUT_CLIP);
    for (layer = 0; layer < OPCX_LAYERS; layer++) {
        const int last = layer + 1 == OPCX_LAYERS, inputs = opcx_widths[layer];
        float *y = last ? out : memory[(layer + 1) % 2];
        for (o = 0; o < opcx_widths[layer + 1]; o++, w += inputs) {
            float sum = 0.0f;
            for (i = 0; i < inputs; i++)
                sum = OPCX_FMA(w[i], x[i], sum);
            y[o] = opcx_activate(last ? OPCX_LAST : OPCX_HIDDEN, sum + b[o]);
        }
        b += opcx_widths[layer + 1];
        x = y;
    }
}

/* Is it within the tolerance of opc's own result? */
static inline int opcx_agrees(float got, float want, float tolerance)
{
    return got - want <= tolerance && want - got <= tolerance;
}

/* @policy */
/* ---- the policy ------------------------------------------------------------------------------ */

/* Chooses an action: observation[OPCX_OBSERVATIONS] to action[OPCX_ACTIONS], both in the task's
 * units; the action is within its limits. */
static inline void opcx(const float *observation, float *action)
{
    float a[OPCX_OUTPUTS];
    int k;
    opcx_network(0, observation, a);
    for (k = 0; k < OPCX_ACTIONS; k++)
        action[k] =
            opcx_clip(OPCX_FMA(a[k], opcx_half[k], opcx_centre[k]), opcx_low[k], opcx_high[k]);
}

/* The same for a machine that must not be jerked: no action is further than opcx_max_change from
 * previous[OPCX_ACTIONS], the action of the last step. Before the first step that is what the
 * machine does at rest. Where an observation that is not a number leaves no action, the last one
 * stays. */
static inline void opcx_limited(const float *observation, const float *previous, float *action)
{
    int k;
    opcx(observation, action);
    for (k = 0; k < OPCX_ACTIONS; k++) {
        const float from = previous[k] == previous[k] ? previous[k] : opcx_centre[k];
        const float to = action[k] == action[k] ? action[k] : from;
        action[k] = opcx_clip(opcx_clip(to, from - opcx_max_change[k], from + opcx_max_change[k]),
                              opcx_low[k], opcx_high[k]);
    }
}

/* Computes the actions of OPCX_TESTS observations and compares them with opc's. 0: they agree;
 * otherwise the number of the first one that does not, from 1. */
static inline int opcx_self_test(void)
{
    float action[OPCX_ACTIONS];
    int test, k;
    for (test = 0; test < OPCX_TESTS; test++) {
        opcx(opcx_test_input + test * OPCX_OBSERVATIONS, action);
        for (k = 0; k < OPCX_ACTIONS; k++)
            if (!opcx_agrees(action[k], opcx_test_output[test * OPCX_ACTIONS + k],
                             opcx_tolerance[k]))
                return test + 1;
    }
    return 0;
}
/* @model */
/* ---- the model ------------------------------------------------------------------------------- */

/* The inputs of a network: the observation, and the action in [-1, 1]. */
static inline void opcx_inputs(const float *observation, const float *action, float *in)
{
    int k;
    for (k = 0; k < OPCX_OBSERVATIONS; k++)
        in[k] = observation[k];
    for (k = 0; k < OPCX_ACTIONS; k++)
        in[OPCX_OBSERVATIONS + k] =
            opcx_clip((action[k] - opcx_centre[k]) * opcx_inverse_half[k], -1.0f, 1.0f);
}

/* Predicts a step: from observation[OPCX_OBSERVATIONS] with action[OPCX_ACTIONS], in the task's
 * units, to next[OPCX_OBSERVATIONS] and the reward. elite: 0 .. OPCX_ELITES - 1, the mean that one
 * network of the ensemble predicts; -1: the mean of them all. Actions are clipped to their limits.
 */
static inline void opcx(int elite, const float *observation, const float *action, float *next,
                        float *reward)
{
    float in[OPCX_INPUTS], out[OPCX_NETWORK_OUTPUTS], sum[OPCX_OUTPUTS];
    const int first = elite < 0 ? 0 : elite, end = elite < 0 ? OPCX_ELITES : elite + 1;
    int e, k;
    opcx_inputs(observation, action, in);
    for (k = 0; k < OPCX_OUTPUTS; k++)
        sum[k] = 0.0f;
    for (e = first; e < end; e++) {
        opcx_network(e, in, out);
        /* the networks predict the difference of the states */
        for (k = 0; k < OPCX_OUTPUTS; k++)
            sum[k] += k < OPCX_OBSERVATIONS ? out[k] + observation[k] : out[k];
    }
    for (k = 0; k < OPCX_OBSERVATIONS; k++)
        next[k] = sum[k] / (float)(end - first);
    *reward = sum[OPCX_OBSERVATIONS] / (float)(end - first);
}

/* log(1 + e^x) = max(x, 0) + log(1 + y), y = e^-|x|; the logarithm is 2 atanh(z), z = y / (2 + y)
 * in (0, 1/3], by its series. */
static inline float opcx_softplus(float x)
{
    const float a = x < 0.0f ? -x : x, y = opcx_exp(a < 80.0f ? -a : -80.0f);
    const float z = y / (2.0f + y), q = z * z;
    float p = OPCX_FMA(0x1.111112p-4f, q, 0x1.3b13b2p-4f);
    p = OPCX_FMA(p, q, 0x1.745d18p-4f);
    p = OPCX_FMA(p, q, 0x1.c71c72p-4f);
    p = OPCX_FMA(p, q, 0x1.24924ap-3f);
    p = OPCX_FMA(p, q, 0x1.99999ap-3f);
    p = OPCX_FMA(p, q, 0x1.555556p-2f);
    p = OPCX_FMA(p, q, 1.0f);
    return OPCX_FMA(2.0f * z, p, x < 0.0f ? 0.0f : x);
}

/* The logarithms of the standard deviations that elite 0 .. OPCX_ELITES - 1 predicts for the same
 * step, into log_std[OPCX_OUTPUTS]: of the next observation, then of the reward. */
static inline void opcx_log_std(int elite, const float *observation, const float *action,
                                float *log_std)
{
    float in[OPCX_INPUTS], out[OPCX_NETWORK_OUTPUTS];
    int k;
    opcx_inputs(observation, action, in);
    opcx_network(elite, in, out);
    for (k = 0; k < OPCX_OUTPUTS; k++) {
        const int at = elite * OPCX_OUTPUTS + k;
        float l =
            opcx_log_var_max[at] - opcx_softplus(opcx_log_var_max[at] - out[OPCX_OUTPUTS + k]);
        l = opcx_log_var_min[at] + opcx_softplus(l - opcx_log_var_min[at]);
        log_std[k] = 0.5f * l + opcx_log_std_shift[at];
    }
}

/* Computes OPCX_TESTS steps and compares them with opc's. 0: they agree; otherwise the number of
 * the first one that does not, from 1. */
static inline int opcx_self_test(void)
{
    float y[OPCX_OUTPUTS];
    int test, k;
    for (test = 0; test < OPCX_TESTS; test++) {
        const float *in = opcx_test_input + test * OPCX_INPUTS;
        opcx(-1, in, in + OPCX_OBSERVATIONS, y, y + OPCX_OBSERVATIONS);
        for (k = 0; k < OPCX_OUTPUTS; k++)
            if (!opcx_agrees(y[k], opcx_test_output[test * OPCX_OUTPUTS + k], opcx_tolerance[k]))
                return test + 1;
        opcx_log_std(0, in, in + OPCX_OBSERVATIONS, y);
        for (k = 0; k < OPCX_OUTPUTS; k++)
            if (!opcx_agrees(y[k], opcx_test_log_std[test * OPCX_OUTPUTS + k],
                             OPCX_LOG_STD_TOLERANCE))
                return test + 1;
    }
    return 0;
}
/* @end */
#endif
