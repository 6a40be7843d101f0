/* SPDX-License-Identifier: MIT */
/* Opens a trained run for probing: its settings, snapshots and environments, the names of state
 * entries, random streams, and episodes played with its policies. The analyses of this folder
 * call it; probe_branch.c has the rollouts.
 *
 * Invariant: episodes are appended in the order of their numbers and each draws from its own
 * stream, so the recording does not depend on how many environments run in parallel. */
#include "study/probe/probe.h"

#include "base/file.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/real/episode_states.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { WORLDS = 64 }; /* environments that play in parallel */

/* ---- the run --------------------------------------------------------------------------------- */

/* Opens the run's settings, snapshots and environments. *out is set only if everything worked. */
int opc_probe_open(const char *dir, struct opc_pool *pool, uint64_t seed, struct opc_probe *out,
                   struct opc_err *err)
{
    char task[OPC_TASK_NAME];
    struct opc_probe probe = {.dir = dir, .pool = pool, .seed = seed};
    int code = opc_config_of_run(dir, &probe.config, err);
    if (!code)
        code = opc_trained_snapshots(dir, &probe.snapshot, &probe.snapshots, err);
    if (!code)
        code = opc_many_open(opc_values_task(&probe.config->set, task), WORLDS, pool, &probe.worlds,
                             err);
    /* Hardware cannot be brought back to a state to try other actions. */
    if (!code && opc_many_env(probe.worlds, 0)->type->machine)
        code = opc_fail(err, OPC_EUSER,
                        "%s is a machine, which cannot try what else would have happened; probes "
                        "need a simulation",
                        probe.config->set.env.name);
    if (code) {
        opc_probe_close(&probe);
        return opc_within(err, "%s", dir);
    }
    probe.env = opc_many_env(probe.worlds, 0);
    probe.obs = probe.env->obs;
    probe.act = probe.env->act;
    /* A task without a time limit is cut like training episodes. */
    probe.limit = probe.env->steps > 0 ? probe.env->steps : probe.config->set.train.steps_per_epoch;
    *out = probe;
    return OPC_OK;
}

/* Accepts a probe of which only a part was opened. */
void opc_probe_close(struct opc_probe *probe)
{
    opc_many_close(probe->worlds);
    opc_free(probe->snapshot);
    opc_config_destroy(probe->config);
    *probe = (struct opc_probe){0};
}

int opc_probe_load(const struct opc_probe *probe, int epoch, struct opc_trained *out,
                   struct opc_err *err)
{
    /* Snapshots are sorted: take the last one that is not newer. */
    int which = OPC_TRAINED_NEWEST;
    if (epoch > 0 && probe->snapshots > 0) {
        int i = probe->snapshots - 1;
        while (i >= 0 && probe->snapshot[i] > epoch)
            i--;
        if (i < 0)
            return opc_fail(err, OPC_EUSER, "%s has no snapshot up to epoch %d; the first is of %d",
                            probe->dir, epoch, probe->snapshot[0]);
        which = probe->snapshot[i];
    }
    int code = opc_trained_load(probe->dir, probe->config, probe->obs, probe->act, which,
                                probe->pool, out, err);
    /* Without snapshots only the checkpoint remains, which may be too new. */
    if (!code && epoch > 0 && probe->snapshots == 0 && out->epoch > epoch) {
        code = opc_fail(err, OPC_EUSER,
                        "%s has no snapshots, only its checkpoint of epoch %d; train with "
                        "record.snapshots=1 to have those before it",
                        probe->dir, out->epoch);
        opc_trained_free(out);
    }
    /* Probes scale the policy's noise, which needs the agent's cooperation. A planner has none to
     * scale, and plans as it is. */
    if (!code && !out->agent->type->act_spread && !out->agent->type->act_in) {
        code = opc_fail(err, OPC_EUSER, "%s: the deviation of this agent's policy cannot be scaled",
                        probe->dir);
        opc_trained_free(out);
    }
    return code;
}

int opc_probe_needs_model(const struct opc_probe *probe, struct opc_err *err)
{
    if (opc_transition_of(&probe->config->set)->needs_model)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER,
                    "%s has no model to probe: it was trained with opc.transition = replay",
                    probe->dir);
}

/* ---- state entries --------------------------------------------------------------------------- */

/* What an entry of the state is, by the environment's own declaration. */
enum kind { PLAIN, ANGLE, COSINE, SINE };

/* The environment declares which entries are angles, raw or as cosine and sine. */
static enum kind kind_of(const struct opc_probe *probe, int entry)
{
    for (int i = 0; i < probe->env->n_angles; i++) {
        const struct opc_env_angle *a = &probe->env->angles[i];
        if (a->at == entry)
            return a->sine < 0 ? ANGLE : COSINE;
        if (a->sine == entry)
            return SINE;
    }
    return PLAIN;
}

void opc_probe_entry_name(const struct opc_probe *probe, int entry, char out[32])
{
    static const char *const WORD[] = {"", "angle ", "cosine ", "sine "};
    snprintf(out, 32, "%so%d", WORD[kind_of(probe, entry)], entry);
}

bool opc_probe_is_cosine(const struct opc_probe *probe, int entry)
{
    return kind_of(probe, entry) == COSINE;
}

/* The first entry of a kind. */
static bool first_of(const struct opc_probe *probe, enum kind kind, int *out)
{
    for (int k = 0; k < probe->obs; k++)
        if (kind_of(probe, k) == kind) {
            *out = k;
            return true;
        }
    return false;
}

int opc_probe_entry(const struct opc_probe *probe, const char *name, int *out, struct opc_err *err)
{
    int k;
    /* auto prefers a cosine, as in the paper's figure of the pole. */
    if (strcmp(name, "auto") == 0) {
        if (!first_of(probe, COSINE, out) && !first_of(probe, ANGLE, out))
            *out = 0;
        return OPC_OK;
    }
    /* By kind, then by index. */
    if ((strcmp(name, "cos") == 0 && first_of(probe, COSINE, out)) ||
        (strcmp(name, "sin") == 0 && first_of(probe, SINE, out)) ||
        (strcmp(name, "angle") == 0 && first_of(probe, ANGLE, out)))
        return OPC_OK;
    if (opc_parse_int(*name == 'o' ? name + 1 : name, &k) && k >= 0 && k < probe->obs) {
        *out = k;
        return OPC_OK;
    }
    return opc_fail(err, OPC_EUSER,
                    "%s has no state entry '%s'; there are o0 to o%d, and 'opc env show' tells "
                    "which of them are angles",
                    probe->config->set.env.name, name, probe->obs - 1);
}

/* ---- random streams -------------------------------------------------------------------------- */

/* Purpose and number share the second key of the stream: 16 bits each. */
struct opc_rng opc_probe_stream(uint64_t seed, enum opc_draw draw, int number, int index)
{
    const uint32_t purpose = ((uint32_t)draw << 16) + (uint32_t)number;
    return opc_rng_stream(seed, OPC_USE_PROBE, purpose, (uint32_t)index);
}

/* ---- on the environment ---------------------------------------------------------------------- */

/* The episodes of a batch while they are played; each is kept until its turn to be appended. */
struct recording {
    const struct opc_probe *probe;
    struct opc_actor actor;
    int number; /* distinguishes uses of OPC_DRAW_PLAY */
    size_t obs, act, limit;
    double *state, *reward; /* [n][limit + 1][obs] [n][limit] */
    float *action;          /* [n][limit][act] */
    struct opc_episode_states states;
};

/* Accepts a recording of which nothing was allocated. */
static void recording_free(struct recording *recording)
{
    opc_free(recording->state);
    opc_free(recording->reward);
    opc_free(recording->action);
    opc_episode_states_free(&recording->states);
    *recording = (struct recording){0};
}

/* Space for the n rows of a batch, each as long as an episode may be. */
static int recording_make(const struct opc_probe *probe, struct opc_actor actor, int number, int n,
                          struct recording *recording, struct opc_err *err)
{
    *recording = (struct recording){.probe = probe,
                                    .actor = actor,
                                    .number = number,
                                    .obs = (size_t)probe->obs,
                                    .act = (size_t)probe->act,
                                    .limit = (size_t)probe->limit};
    const size_t rows = (size_t)n;
    recording->state =
        opc_alloc(rows * (recording->limit + 1), recording->obs * sizeof *recording->state);
    recording->reward = opc_alloc(rows * recording->limit, sizeof *recording->reward);
    recording->action =
        opc_alloc(rows * recording->limit, recording->act * sizeof *recording->action);
    if (recording->state && recording->reward && recording->action)
        return opc_episode_states_create(actor.agent, n, &recording->states, err);
    recording_free(recording);
    return opc_fail(err, OPC_ENOMEM, "not enough memory to play %d episodes of %d steps at once", n,
                    probe->limit);
}

/* Episode i has a stream of its own, for its start and its actions. */
static struct opc_rng recording_stream(void *ctx, int episode)
{
    const struct recording *recording = ctx;
    return opc_probe_stream(recording->probe->seed, OPC_DRAW_PLAY, recording->number, episode);
}

/* Called by opc_env_batch_play for all rows that still play. */
static int recording_act(void *ctx, struct opc_env_batch *batch, struct opc_err *err)
{
    const struct recording *recording = ctx;
    (void)err;
    /* The policy sees states as the recording stores them, with 0 instead of -0. */
    for (size_t k = 0; k < (size_t)batch->n * recording->obs; k++)
        batch->input[k] += 0.0f;
    if (recording->states.row) /* a planner has no noise to scale */
        opc_episode_states_act(&recording->states, recording->actor.agent, batch, true, 0, 0);
    else
        opc_agent_act_spread(recording->actor.agent, batch->n, batch->input,
                             (float)recording->actor.spread, batch->rng, batch->action);
    return OPC_OK;
}

/* Called after reset and after every step of a row; keeps state, action and reward. */
static int recording_observe(void *ctx, const struct opc_env_batch *batch, int row, bool *more,
                             struct opc_err *err)
{
    const struct recording *recording = ctx;
    const size_t i = (size_t)row, t = (size_t)batch->length[row];
    const struct opc_outcome *outcome = &batch->outcome[row];
    (void)err;
    memcpy(recording->state + (i * (recording->limit + 1) + t) * recording->obs,
           batch->state + i * recording->obs, recording->obs * sizeof *recording->state);
    if (t > 0) { /* at t = 0 the row was just reset: no step has led here */
        const size_t at = i * recording->limit + t - 1;
        memcpy(recording->action + at * recording->act, batch->action + i * recording->act,
               recording->act * sizeof *recording->action);
        recording->reward[at] = outcome->reward;
    }
    /* An episode that was cut may continue in principle; here it ends all the same. */
    *more = !outcome->terminated && !outcome->truncated && t < recording->limit;
    return OPC_OK;
}

/* Appends the episode of one row to the recording. */
static int append_episode(const struct recording *recording, const struct opc_env_batch *batch,
                          int row, struct opc_episodes *past, struct opc_err *err)
{
    /* States are stored once more than steps: the last one is the next state of the last step. */
    const double *s = recording->state + (size_t)row * (recording->limit + 1) * recording->obs;
    const int length = batch->length[row];
    int code = opc_episodes_begin(past, s, err);
    for (int t = 0; t < length && !code; t++) {
        const size_t at = (size_t)row * recording->limit + (size_t)t;
        s += recording->obs;
        code = opc_episodes_append(past, recording->action + at * recording->act,
                                   recording->reward[at], s,
                                   batch->outcome[row].terminated && t + 1 == length, err);
    }
    if (!code)
        opc_episodes_close(past);
    return code;
}

int opc_probe_play(const struct opc_probe *probe, struct opc_actor actor, int number, int n,
                   struct opc_episodes **out, struct opc_err *err)
{
    struct recording recording = {0};
    const struct opc_env_player player = {.ctx = &recording,
                                          .stream = recording_stream,
                                          .act = recording_act,
                                          .observe = recording_observe};
    struct opc_env_batch batch;
    struct opc_episodes *past = NULL;
    /* Steps are counted by int in the recording. */
    if ((long)n * probe->limit > INT_MAX)
        return opc_fail(err, OPC_EUSER, "%d episodes of %d steps are too many; ask for fewer", n,
                        probe->limit);
    int code = opc_env_batch_create(probe->worlds, &batch, err);
    if (code)
        return code;
    code = recording_make(probe, actor, number, batch.n, &recording, err);
    if (!code)
        code = opc_episodes_create(probe->obs, probe->act, n * probe->limit, n, &past, err);
    /* Episodes of a batch end in any order; they are appended in the order of their numbers. */
    for (int first = 0; first < n && !code; first += batch.n) {
        code = opc_env_batch_play(&batch, first, n, &player, err);
        for (int i = 0; i < batch.n && first + i < n && !code; i++)
            code = append_episode(&recording, &batch, i, past, err);
    }
    recording_free(&recording);
    opc_env_batch_free(&batch);
    if (code) {
        opc_episodes_destroy(past);
        return opc_within(err, "playing on %s", probe->config->set.env.name);
    }
    *out = past;
    return OPC_OK;
}

/* In float as recorded, summed in double. */
void opc_probe_returns(const struct opc_episodes *past, double *returns)
{
    for (int b = 0; b < opc_episodes_count(past); b++) {
        returns[b] = 0;
        for (int t = 0; t < opc_episodes_length(past, b); t++)
            returns[b] += (double)opc_episodes_at(past, b, t).reward;
    }
}
