/* SPDX-License-Identifier: MIT */
#include "opc/mem.h"
#include "study/probe/probe_states.h"

#include <math.h>
#include <string.h>

const char *const OPC_BY_NAME[OPC_BY] = {"MBPO(*), eq. 2", "OPC, eq. 5"};
const char *const OPC_TRUTH_NAME[OPC_TRUTHS] = {"recording", "environment"};

enum { EXPLORING, STEADY }; /* numbers of the streams episodes and rollouts draw from */
enum { STEADY_EPISODES = 3 };

static size_t place(const struct opc_states *s, int row, int h, int k)
{
    return ((size_t)row * ((size_t)s->horizon + 1) + (size_t)h) * (size_t)s->obs + (size_t)k;
}

double opc_states_error(const struct opc_states *s, int truth, int by, int row, int h, int k)
{
    const size_t at = place(s, row, h, k);
    return s->truth[truth][by][at] - s->predicted[by][at];
}

void opc_states_free(struct opc_states *s)
{
    for (int by = 0; by < OPC_BY; by++) {
        opc_free(s->predicted[by]);
        opc_free(s->ended[by]);
        opc_free(s->played_ended[by]);
        for (int truth = 0; truth < OPC_TRUTHS; truth++)
            opc_free(s->truth[truth][by]);
    }
    *s = (struct opc_states){0};
}

static int make(struct opc_states *s, struct opc_err *err)
{
    const size_t all = place(s, s->rows, 0, 0);
    bool allocated = true;
    for (int by = 0; by < OPC_BY; by++) {
        allocated &= (s->predicted[by] = opc_alloc(all, sizeof(double))) != NULL;
        allocated &= (s->ended[by] = opc_alloc((size_t)s->rows, sizeof(int))) != NULL;
        allocated &= (s->played_ended[by] = opc_alloc((size_t)s->rows, sizeof(int))) != NULL;
        for (int truth = 0; truth < OPC_TRUTHS; truth++)
            allocated &= (s->truth[truth][by] = opc_alloc(all, sizeof(double))) != NULL;
    }
    return allocated ? OPC_OK
                     : opc_fail(err, OPC_ENOMEM,
                                "not enough memory for %d rollouts of %d steps; ask for fewer",
                                s->rows, s->horizon);
}

/* The state h steps behind (episode, time); NULL: the recording had ended. */
static const float *recorded(const struct opc_episodes *past, int episode, int time, int h)
{
    const int length = opc_episodes_length(past, episode), t = time + h;
    if (t > length)
        return NULL;
    return t < length ? opc_episodes_at(past, episode, t).state
                      : opc_episodes_at(past, episode, length - 1).next;
}

static void keep(struct opc_states *s, int first, int by, const struct opc_episodes *past,
                 const struct opc_branches *b)
{
    s->lost[by] += opc_branches_ended(b, OPC_END_REFUSED);
    for (int i = 0; i < b->n; i++) {
        s->ended[by][first + i] = b->end[i] == OPC_END_TERMINAL ? b->length[i] : 0;
        for (int h = 0; h <= s->horizon; h++) {
            const float *then = recorded(past, b->episode[i], b->time[i], h);
            for (int k = 0; k < s->obs; k++) {
                const size_t at = place(s, first + i, h, k);
                s->predicted[by][at] = opc_branches_at(b, i, h, k);
                s->truth[OPC_TRUE_RECORDED][by][at] = then ? (double)then[k] : (double)NAN;
            }
        }
    }
}

/* Rollouts of both models from the same starts of recorded episodes, with the same noise. */
static int branch(struct opc_states *s, int run, const struct opc_probe *p,
                  const struct opc_predictor *model, const struct opc_agent *agent,
                  const struct opc_episodes *past, struct opc_err *err)
{
    struct opc_models models = {0};
    struct opc_branches b = {0};
    const int first = run * s->each;
    int code = opc_models_make(p, model, past, &models, err);
    if (!code)
        code = opc_branches_make(s->each, s->horizon, s->obs, p->act, &b, err);
    for (int by = 0; by < OPC_BY && !code; by++) {
        const struct opc_transition *tr = by == OPC_BY_LEARNED ? models.learned : models.corrected;
        opc_probe_from_anywhere(&b, past, p->seed, run);
        code = opc_probe_follow(p, tr, (struct opc_actor){agent, 1}, run, &b, err);
        if (!code)
            code = opc_probe_truth(p, past, EXPLORING, &b,
                                   s->truth[OPC_TRUE_PLAYED][by] + place(s, first, 0, 0),
                                   s->played_ended[by] + first, err);
        if (!code)
            keep(s, first, by, past, &b);
    }
    opc_branches_free(&b);
    opc_models_free(&models);
    return code;
}

/* Lemma 1: what a policy without noise recorded, eq. 5 gives back with that policy, to the bit. */
static int check_lemma(struct opc_states *s, const struct opc_probe *p,
                       const struct opc_predictor *model, const struct opc_agent *agent,
                       struct opc_err *err)
{
    const struct opc_actor steady = {agent, 0};
    struct opc_episodes *past = NULL;
    struct opc_models models = {0};
    struct opc_branches b = {0};
    int code = opc_probe_play(p, steady, STEADY, STEADY_EPISODES, &past, err);
    if (!code)
        code = opc_models_make(p, model, past, &models, err);
    if (!code)
        code = opc_branches_make(s->each, s->horizon, s->obs, p->act, &b, err);
    if (!code) {
        opc_probe_from_anywhere(&b, past, p->seed, s->runs);
        code = opc_probe_follow(p, models.corrected, steady, s->runs, &b, err);
    }
    for (int i = 0; i < b.n && !code; i++)
        for (int h = 0; h <= b.length[i]; h++)
            for (int k = 0; k < s->obs; k++) {
                const float *then = recorded(past, b.episode[i], b.time[i], h);
                s->without_noise =
                    fmax(s->without_noise,
                         then ? fabs((double)then[k] - opc_branches_at(&b, i, h, k)) : HUGE_VAL);
            }
    opc_branches_free(&b);
    opc_models_free(&models);
    opc_episodes_destroy(past);
    return code;
}

static int collect_run(const struct opc_request *request, const struct opc_probe_states_config *set,
                       int run, struct opc_states *s, struct opc_err *err)
{
    struct opc_probe p;
    struct opc_trained model = {0}, policy = {0};
    struct opc_episodes *past = NULL;
    int code = opc_probe_open(request->run[run], request->pool, request->seed, &p, err);
    if (code)
        return code;
    code = opc_probe_needs_model(&p, err);
    if (!code && run == 0) {
        s->obs = p.obs;
        code = make(s, err);
    } else if (!code && p.obs != s->obs) {
        code = opc_fail(err, OPC_EUSER, "%s has %d state entries and %s has %d: not the same task",
                        request->run[0], s->obs, p.dir, p.obs);
    }
    if (!code)
        code = opc_probe_load(&p, set->epoch, &model, err);
    if (!code)
        code = opc_probe_load(&p, set->policy, &policy, err);
    if (!code)
        code = opc_probe_play(&p, (struct opc_actor){policy.agent, 1}, EXPLORING, set->references,
                              &past, err);
    if (!code)
        code = branch(s, run, &p, model.model, policy.agent, past, err);
    if (!code)
        code = check_lemma(s, &p, model.model, policy.agent, err);
    if (!code && run == 0) {
        s->epoch_of_model = model.epoch;
        s->epoch_of_policy = policy.epoch;
    }
    opc_episodes_destroy(past);
    opc_trained_free(&model);
    opc_trained_free(&policy);
    opc_probe_close(&p);
    return code;
}

int opc_states_collect(const struct opc_request *request, const struct opc_probe_states_config *set,
                       struct opc_states *out, struct opc_err *err)
{
    struct opc_states s = {
        .runs = request->runs,
        .each = set->samples,
        .rows = request->runs * set->samples,
        .horizon = set->horizon,
    };
    int code = request->runs > 0 ? OPC_OK : opc_fail(err, OPC_EUSER, "there is no run to probe");
    for (int run = 0; run < request->runs && !code; run++) {
        if (request->progress)
            request->progress(request->ctx, (double)run / request->runs, request->run[run]);
        code = collect_run(request, set, run, &s, err);
    }
    if (code)
        opc_states_free(&s);
    else
        *out = s;
    return code;
}

void opc_states_notes(const struct opc_states *s, struct opc_exhibit *e)
{
    opc_exhibit_note(e,
                     "%d rollouts of %d steps from each of %d run%s; model after epoch %d, policy "
                     "after epoch %d; actions drawn from the policy",
                     s->each, s->horizon, s->runs, s->runs == 1 ? "" : "s", s->epoch_of_model,
                     s->epoch_of_policy);
    opc_exhibit_note(e, "Both models are the same network: eq. 2 draws from it, eq. 5 corrects its "
                        "mean. A rollout that ended (terminal state, end of its recording) leaves "
                        "the statistics from there on.");
    for (int by = 0; by < OPC_BY; by++)
        if (s->lost[by])
            opc_exhibit_note(e, "%d rollouts by %s became infinite and end before that",
                             s->lost[by], OPC_BY_NAME[by]);
}
