/* SPDX-License-Identifier: MIT */
/* Data of Figures 13 and 14: the last policy of a run plays, both models are rolled out from
 * recorded states, and the environment repeats their actions. probe_states.c and
 * probe_trajectories.c call it.
 *
 * Both equations use one network, so that their difference is due to eq. 5 alone; or each has the
 * model that its own method logged, as in the paper, where runs of both methods are given.
 *
 * Invariant: both models branch from the same starts with the same noise, in either case. */
#include "opc/mem.h"
#include "study/probe/probe_states.h"

#include <math.h>
#include <string.h>

/* Labels in figures and tables; the order is that of the enums in probe_states.h. */
const char *const OPC_BY_NAME[OPC_BY] = {"MBPO(*), eq. 2", "OPC, eq. 5"};
const char *const OPC_TRUTH_NAME[OPC_TRUTHS] = {"recording", "environment"};

enum { EXPLORING, STEADY };   /* numbers of the streams that episodes draw from */
enum { STEADY_EPISODES = 3 }; /* for the check of Lemma 1 */

/* ---- which runs ------------------------------------------------------------------------------ */

void opc_states_runs_free(struct opc_states_runs *runs)
{
    opc_free(runs->run);
    opc_free(runs->opc);
    opc_free(runs->mbpo);
    *runs = (struct opc_states_runs){0};
}

/* The settings of every run, in the order of the request. */
static int read_settings(const struct opc_request *request, struct opc_config **config,
                         struct opc_err *err)
{
    for (int i = 0; i < request->runs; i++)
        OPC_TRY(opc_config_of_run(request->run[i], &config[i], err));
    return OPC_OK;
}

/* True if two runs have the same task and seed. */
static bool is_partner(const struct opc_values *a, const struct opc_values *b)
{
    return strcmp(a->env.name, b->env.name) == 0 && a->train.seed == b->train.seed;
}

/* Lists the runs of OPC, each with its partner among those of MBPO(*) if there is one. */
static void pair_runs(const struct opc_request *request, struct opc_config *const *config,
                      struct opc_states_runs *runs)
{
    for (int i = 0; i < request->runs; i++) {
        if (!opc_transition_of(&config[i]->set)->corrects)
            continue;
        runs->run[runs->n++] = request->run[i];
        for (int j = 0; j < request->runs; j++)
            if (!opc_transition_of(&config[j]->set)->corrects &&
                is_partner(&config[i]->set, &config[j]->set)) {
                runs->opc[runs->pairs] = request->run[i];
                runs->mbpo[runs->pairs++] = request->run[j];
                break;
            }
    }
}

int opc_states_runs_find(const struct opc_request *request, struct opc_states_runs *out,
                         struct opc_err *err)
{
    struct opc_states_runs runs = {0};
    struct opc_config **config = NULL;
    const size_t n = (size_t)request->runs;
    if (n == 0)
        return opc_fail(err, OPC_EUSER, "there is no run to probe");
    struct opc_block block[] = {{&runs.run, n, sizeof *runs.run},
                                {&runs.opc, n, sizeof *runs.opc},
                                {&runs.mbpo, n, sizeof *runs.mbpo},
                                {&config, n, sizeof(struct opc_config *)}};
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a list of %d runs", request->runs);
    const int code = read_settings(request, config, err);
    /* Without a run of MBPO(*), or without one of OPC, all of them are probed alike. */
    if (!code)
        pair_runs(request, config, &runs);
    if (!code && runs.pairs == 0 && (runs.n == 0 || runs.n == request->runs)) {
        runs.n = request->runs;
        memcpy(runs.run, request->run, n * sizeof *runs.run);
    }
    for (int i = 0; i < request->runs; i++)
        opc_config_destroy(config[i]);
    opc_free(config);
    if (code)
        opc_states_runs_free(&runs);
    else
        *out = runs;
    return code;
}

/* ---- rollouts -------------------------------------------------------------------------------- */

/* Offset of entry k after h steps of a rollout. */
static size_t state_offset(const struct opc_states *states, int row, int h, int k)
{
    return ((size_t)row * ((size_t)states->horizon + 1) + (size_t)h) * (size_t)states->obs +
           (size_t)k;
}

double opc_states_error(const struct opc_states *states, int truth, int by, int row, int h, int k)
{
    const size_t at = state_offset(states, row, h, k);
    return states->truth[truth][by][at] - states->predicted[by][at];
}

/* Accepts states of which nothing was allocated. */
void opc_states_free(struct opc_states *states)
{
    for (int by = 0; by < OPC_BY; by++) {
        opc_free(states->predicted[by]);
        opc_free(states->ended[by]);
        opc_free(states->played_ended[by]);
        for (int truth = 0; truth < OPC_TRUTHS; truth++)
            opc_free(states->truth[truth][by]);
    }
    *states = (struct opc_states){0};
}

/* Arrays for all runs at once; obs must be known. Everything is zero, and NaN is filled in
 * later. */
static int states_allocate(struct opc_states *states, struct opc_err *err)
{
    const size_t all = state_offset(states, states->rows, 0, 0);
    const size_t rows = (size_t)states->rows;
    struct opc_block block[OPC_BY * (3 + OPC_TRUTHS)], *at = block;
    for (int by = 0; by < OPC_BY; by++) {
        *at++ = (struct opc_block){&states->predicted[by], all, sizeof(double)};
        *at++ = (struct opc_block){&states->ended[by], rows, sizeof(int)};
        *at++ = (struct opc_block){&states->played_ended[by], rows, sizeof(int)};
        for (int truth = 0; truth < OPC_TRUTHS; truth++)
            *at++ = (struct opc_block){&states->truth[truth][by], all, sizeof(double)};
    }
    if (opc_alloc_all(block, sizeof block / sizeof *block))
        return OPC_OK;
    return opc_fail(err, OPC_ENOMEM, "not enough memory for %d rollouts of %d steps; ask for fewer",
                    states->rows, states->horizon);
}

/* The state h steps after (episode, time); NULL if the recording had ended by then. */
static const float *recorded_state(const struct opc_episodes *past, int episode, int time, int h)
{
    /* The recording has length + 1 states: one before each step, and the last step's next. */
    const int length = opc_episodes_length(past, episode), t = time + h;
    if (t > length)
        return NULL;
    return t < length ? opc_episodes_at(past, episode, t).state
                      : opc_episodes_at(past, episode, length - 1).next;
}

/* Stores the rollouts of one run and one model, with the recorded continuation next to them. */
static void keep_rollouts(struct opc_states *states, int first, int by,
                          const struct opc_episodes *past, const struct opc_branches *branches)
{
    /* Rollouts that became infinite stop there; they are counted for a note. */
    states->lost[by] += opc_branches_ended(branches, OPC_END_REFUSED);
    for (int i = 0; i < branches->n; i++) {
        /* Only a terminal state counts as an end; the horizon and the end of the recording do
         * not. */
        states->ended[by][first + i] =
            branches->end[i] == OPC_END_TERMINAL ? branches->length[i] : 0;
        /* NaN after the end of the rollout (opc_branches_at) or of the recording. */
        for (int h = 0; h <= states->horizon; h++) {
            const float *then = recorded_state(past, branches->episode[i], branches->time[i], h);
            for (int k = 0; k < states->obs; k++) {
                const size_t at = state_offset(states, first + i, h, k);
                states->predicted[by][at] = opc_branches_at(branches, i, h, k);
                states->truth[OPC_TRUE_RECORDED][by][at] = then ? (double)then[k] : (double)NAN;
            }
        }
    }
}

/* Rolls out both models from the same starts of recorded episodes, with the same noise. model[by]:
 * the network of each equation, twice the same unless each has its own. */
static int branch_run(struct opc_states *states, int run, const struct opc_probe *probe,
                      const struct opc_predictor *const model[OPC_BY],
                      const struct opc_agent *agent, const struct opc_episodes *past,
                      struct opc_err *err)
{
    struct opc_models models[OPC_BY] = {0};
    struct opc_branches branches = {0};
    const int first = run * states->each;
    int code = OPC_OK;
    for (int by = 0; by < OPC_BY && !code; by++)
        code = opc_models_make(probe, model[by], past, &models[by], err);
    if (!code)
        code = opc_branches_make(states->each, states->horizon, states->obs, probe->act, &branches,
                                 err);
    /* Starts are drawn again for each model from the same streams, hence are the same. */
    for (int by = 0; by < OPC_BY && !code; by++) {
        const struct opc_transition *tr =
            by == OPC_BY_LEARNED ? models[by].learned : models[by].corrected;
        opc_probe_from_anywhere(&branches, past, probe->seed, run);
        code = opc_probe_follow(probe, tr, (struct opc_actor){agent, 1}, run, &branches, err);
        /* The environment repeats the rollout's actions from the same start, as the second
         * truth. */
        if (!code)
            code = opc_probe_truth(probe, past, EXPLORING, &branches,
                                   states->truth[OPC_TRUE_PLAYED][by] +
                                       state_offset(states, first, 0, 0),
                                   states->played_ended[by] + first, err);
        if (!code)
            keep_rollouts(states, first, by, past, &branches);
    }
    opc_branches_free(&branches);
    for (int by = 0; by < OPC_BY; by++)
        opc_models_free(&models[by]);
    return code;
}

/* Lemma 1: without exploration noise, eq. 5 gives back what the policy recorded, to the bit. It is
 * about policies that take the same action whenever they are in the same state, which a planner
 * does not: its plan depends on the one before. */
static int check_lemma(struct opc_states *states, const struct opc_probe *probe,
                       const struct opc_predictor *model, const struct opc_agent *agent,
                       struct opc_err *err)
{
    /* spread 0: the policy's mode, without exploration noise. */
    const struct opc_actor steady = {agent, 0};
    struct opc_episodes *past = NULL;
    struct opc_models models = {0};
    struct opc_branches branches = {0};
    if (agent->type->act_in) {
        states->without_noise = (double)NAN;
        return OPC_OK;
    }
    int code = opc_probe_play(probe, steady, STEADY, STEADY_EPISODES, &past, err);
    if (!code)
        code = opc_models_make(probe, model, past, &models, err);
    if (!code)
        code = opc_branches_make(states->each, states->horizon, states->obs, probe->act, &branches,
                                 err);
    if (!code) {
        opc_probe_from_anywhere(&branches, past, probe->seed, states->runs);
        code = opc_probe_follow(probe, models.corrected, steady, states->runs, &branches, err);
    }
    /* Compare every state of every rollout with the recording. A rollout that outlives its
     * recording is an error of our own, which infinity makes visible. */
    for (int i = 0; i < branches.n && !code; i++)
        for (int h = 0; h <= branches.length[i]; h++)
            for (int k = 0; k < states->obs; k++) {
                const float *then = recorded_state(past, branches.episode[i], branches.time[i], h);
                states->without_noise = fmax(
                    states->without_noise,
                    then ? fabs((double)then[k] - opc_branches_at(&branches, i, h, k)) : HUGE_VAL);
            }
    opc_branches_free(&branches);
    opc_models_free(&models);
    opc_episodes_destroy(past);
    return code;
}

/* Loads the model of another run of the same task, as it was after set->epoch. */
static int load_own_model(const struct opc_request *request, const char *dir,
                          const struct opc_probe_states_config *set, int obs,
                          struct opc_trained *out, struct opc_err *err)
{
    struct opc_probe probe;
    OPC_TRY(opc_probe_open(dir, request->pool, request->seed, &probe, err));
    int code = opc_probe_needs_model(&probe, err);
    if (!code && probe.obs != obs)
        code = opc_fail(err, OPC_EUSER, "%s has %d state entries, not %d: it is another task", dir,
                        probe.obs, obs);
    if (!code)
        code = opc_probe_load(&probe, set->epoch, out, err);
    opc_probe_close(&probe);
    return code;
}

/* Everything for one run: load model and policy, play, branch, check. other: the run whose model
 * eq. 2 has; NULL: this one's. */
static int collect_run(const struct opc_request *request, const char *dir, const char *other,
                       const struct opc_probe_states_config *set, int run,
                       struct opc_states *states, struct opc_err *err)
{
    struct opc_probe probe;
    struct opc_trained model = {0}, policy = {0}, own = {0};
    struct opc_episodes *past = NULL;
    int code = opc_probe_open(dir, request->pool, opc_probe_seed(request, run), &probe, err);
    if (code)
        return code;
    code = opc_probe_needs_model(&probe, err);
    /* The first run fixes the size of a state; all runs must be of one task. */
    if (!code && run == 0) {
        states->obs = probe.obs;
        code = states_allocate(states, err);
    } else if (!code && probe.obs != states->obs) {
        code = opc_fail(err, OPC_EUSER, "%s has %d state entries, not %d: it is another task",
                        probe.dir, probe.obs, states->obs);
    }
    /* Model and policy may come from different epochs. */
    if (!code)
        code = opc_probe_load(&probe, set->epoch, &model, err);
    if (!code)
        code = opc_probe_load(&probe, set->policy, &policy, err);
    if (!code && other)
        code = load_own_model(request, other, set, probe.obs, &own, err);
    /* The references: episodes with exploration noise, as in training. */
    if (!code)
        code = opc_probe_play(&probe, (struct opc_actor){policy.agent, 1}, EXPLORING,
                              set->references, &past, err);
    if (!code) {
        const struct opc_predictor *const both[OPC_BY] = {
            [OPC_BY_LEARNED] = other ? own.model : model.model, [OPC_BY_CORRECTED] = model.model};
        code = branch_run(states, run, &probe, both, policy.agent, past, err);
    }
    if (!code)
        code = check_lemma(states, &probe, model.model, policy.agent, err);
    /* The notes name the epochs of the first run; all runs have the same settings. */
    if (!code && run == 0) {
        states->epoch_of_model = model.epoch;
        states->epoch_of_policy = policy.epoch;
    }
    opc_episodes_destroy(past);
    opc_trained_free(&model);
    opc_trained_free(&policy);
    opc_trained_free(&own);
    opc_probe_close(&probe);
    return code;
}

int opc_states_collect(const struct opc_request *request, const struct opc_states_runs *runs,
                       bool own, const struct opc_probe_states_config *set, struct opc_states *out,
                       struct opc_err *err)
{
    const int n = own ? runs->pairs : runs->n;
    char *const *dir = own ? runs->opc : runs->run;
    struct opc_states states = {
        .runs = n,
        .each = set->samples,
        .rows = n * set->samples,
        .horizon = set->horizon,
        .missing = request->missing,
        .own = own,
    };
    int code = OPC_OK;
    /* Runs are rows of the same arrays, one after the other. */
    for (int run = 0; run < n && !code; run++) {
        if (request->progress)
            request->progress(request->ctx, (double)run / n, dir[run]);
        code = collect_run(request, dir[run], own ? runs->mbpo[run] : NULL, set, run, &states, err);
    }
    if (code)
        opc_states_free(&states);
    else
        *out = states;
    return code;
}

/* How the rollouts were made, and what happened to those that ended early. */
void opc_states_notes(const struct opc_states *states, struct opc_exhibit *exhibit)
{
    if (states->own) {
        opc_exhibit_note(exhibit,
                         "With each method's own model (part 'own'): eq. 2 draws from the model "
                         "that a run of MBPO(*) with the same seed logged after epoch %d, eq. 5 "
                         "corrects that of the run of OPC, whose policy and recordings both have; "
                         "%d pair%s of runs.",
                         states->epoch_of_model, states->runs, states->runs == 1 ? "" : "s");
        return;
    }
    opc_exhibit_note(exhibit,
                     "%d rollouts of %d steps from each of %d run%s; model after epoch %d, policy "
                     "after epoch %d; actions drawn from the policy",
                     states->each, states->horizon, states->runs, states->runs == 1 ? "" : "s",
                     states->epoch_of_model, states->epoch_of_policy);
    opc_exhibit_note(exhibit,
                     "Both models are the same network: eq. 2 draws from it, eq. 5 corrects its "
                     "mean. A rollout that ended (terminal state, end of its recording) leaves "
                     "the statistics from there on.");
    for (int by = 0; by < OPC_BY; by++)
        if (states->lost[by])
            opc_exhibit_note(exhibit, "%d rollouts by %s became infinite and end before that",
                             states->lost[by], OPC_BY_NAME[by]);
}
