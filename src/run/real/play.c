/* SPDX-License-Identifier: MIT */
/* The real environment, one episode after the other, each recorded in `past` as it is played.
 * train.c plays with it, and restore.c repeats an episode that was running when the checkpoint was
 * written.
 *
 * Invariant: the state that the policy sees is the recorded one, rounded to float; the
 * environment's own state stays double. Actions are recorded as the agent gave them, before they
 * are clipped. */
#include "run/real/play.h"

#include "opc/mem.h"

#include <string.h>

int opc_play_create(const char *spec, uint64_t seed, int limit_if_none, struct opc_play **out,
                    struct opc_err *err)
{
    struct opc_play *play = opc_alloc(1, sizeof *play);
    if (!play)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the environment");
    int code = opc_env_open(spec, &play->env, err);
    if (code) {
        opc_play_destroy(play);
        return opc_within(err, "env.name");
    }
    const size_t obs = (size_t)play->env->obs, act = (size_t)play->env->act;
    const size_t real = sizeof(double), single = sizeof(float);
    play->seed = seed;
    play->limit = play->env->steps > 0 ? play->env->steps : limit_if_none;
    const struct opc_block blocks[] = {
        {&play->s, obs, single},
        {&play->state, obs, real},
        {&play->actions, (size_t)play->limit, act * single},
        {&play->scaled, act, real},
    };
    if (!opc_alloc_all(blocks, sizeof blocks / sizeof *blocks)) {
        opc_fail(err, OPC_ENOMEM, "not enough memory for an episode of %d steps", play->limit);
        opc_play_destroy(play);
        return OPC_ENOMEM;
    }
    *out = play;
    return OPC_OK;
}

void opc_play_destroy(struct opc_play *play)
{
    if (!play)
        return;
    opc_env_close(play->env);
    opc_free(play->s);
    opc_free(play->state);
    opc_free(play->actions);
    opc_free(play->scaled);
    opc_free(play);
}

bool opc_play_running(const struct opc_play *play)
{
    return opc_episodes_open(play->past);
}

void opc_play_count_anew(struct opc_play *play)
{
    play->ended = 0;
    play->returns = play->lengths = 0;
    opc_ticks_clear(&play->ticks);
}

/* What the policy sees is what is recorded: floats. */
static void round_state(struct opc_play *play)
{
    for (int k = 0; k < play->env->obs; k++)
        play->s[k] = (float)play->state[k];
}

int opc_play_start(struct opc_play *play, struct opc_err *err)
{
    /* Episode `number` starts from the stream of its number, so it can be repeated. */
    struct opc_rng rng = opc_rng_stream(play->seed, OPC_USE_RESET, 0, (uint32_t)play->number);
    int code = opc_env_reset(play->env, &rng, play->state, err);
    if (!code)
        code = opc_episodes_begin(play->past, play->state, err);
    if (code)
        return opc_within(err, "start of episode %lld", (long long)play->number + 1);
    play->number++;
    play->t = 0;
    play->total = 0;
    opc_ticks_begin(&play->ticks);
    round_state(play);
    return OPC_OK;
}

void opc_play_cut(struct opc_play *play)
{
    if (!opc_play_running(play))
        return;
    opc_episodes_close(play->past);
    opc_env_rest(play->env);
    /* An episode without a step is not recorded and does not count. */
    if (play->t == 0)
        return;
    play->ended++;
    play->returns += play->total;
    play->lengths += play->t;
    play->t = 0;
}

int opc_play_step(struct opc_play *play, const float *a, struct opc_err *err)
{
    const size_t act = (size_t)play->env->act;
    struct opc_outcome out = {.obs = play->state};
    /* Keep the action for opc_play_again, scale it from [-1, 1] to the task's range, and step. */
    memcpy(play->actions + (size_t)play->t * act, a, act * sizeof *a);
    opc_env_scale(play->env, a, play->scaled);
    int code = opc_env_step(play->env, play->scaled, &out, err);
    if (!code)
        opc_ticks_note(&play->ticks, play->env);
    if (!code)
        code = opc_episodes_append(play->past, a, out.reward, out.obs, out.terminated, err);
    if (code)
        return opc_within(err, "step %d of episode %lld", play->t + 1, (long long)play->number);
    play->total += out.reward;
    play->t++;
    round_state(play);
    /* Running out of time ends an episode as termination does, but is recorded as not terminal. */
    if (out.terminated || out.truncated || play->t == play->limit)
        opc_play_cut(play);
    return OPC_OK;
}

int opc_play_again(struct opc_play *play, int64_t number, int t, const float *actions,
                   const double *state, struct opc_err *err)
{
    /* Steps are recorded once more, in a past that has just been restored without them. */
    play->number = number;
    int code = opc_play_start(play, err);
    for (int i = 0; i < t && !code; i++)
        code =
            opc_play_running(play)
                ? opc_play_step(play, actions + (size_t)i * (size_t)play->env->act, err)
                : opc_fail(err, OPC_EENV, "it ended after %d steps instead of more than %d", i, t);
    /* To the bit: if the simulator does not repeat itself, the resumed run would be another one. */
    if (!code && memcmp(play->state, state, (size_t)play->env->obs * sizeof *state) != 0)
        code = opc_fail(err, OPC_EENV, "it leads to another state than before");
    return code ? opc_within(err,
                             "the environment does not repeat episode %lld (same program, same "
                             "machine?)",
                             (long long)number + 1)
                : OPC_OK;
}
