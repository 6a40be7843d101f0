/* SPDX-License-Identifier: MIT */
/* What is a fit worth? The recording of a run is fitted again, epoch by epoch as in training, under
 * several rules (settings of `model`), and each model predicts what the next epoch recorded: the
 * states that imagined rollouts will meet. Called by `opc probe RUN fit`.
 *
 * Starts are recorded steps of the next epoch. From each, H actions are the recorded ones plus
 * noise; without noise eq. 5 would be exact whatever the model. The environment is brought to the
 * start by playing the episode again (run/real/retrace.h) and takes the same actions: that is the
 * truth, the same for all rules. So rules differ in nothing but the fit. */
#include "study/probe/probe_fit.h"

#include "base/clock.h"
#include "model/ensemble.h"
#include "num/normal.h"
#include "num/scaler.h"
#include "num/stats.h"
#include "opc/mem.h"
#include "opc/transition_type.h"
#include "run/real/retrace.h"
#include "run/recorded.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The rules that are compared if none are given: cheaper ways to fit. */
static const char *const USUAL_RULE[] = {
    "",
    "max_epochs=1",
    "holdout_every=200",
    "max_steps=600 holdout_every=200 min_improvement=0",
    "max_steps=600 holdout_every=200 min_improvement=0 new_ratio=0.3",
    "batch_size=1024 learning_rate=2e-3",
    "members=3 elites=3",
};

struct testbed {
    const struct opc_probe *probe;
    const struct opc_probe_fit_config *set;
    struct opc_recorded recorded;
    float *sa, *y; /* [steps][obs + act], [steps][obs + 1]: the recording in its order */
    struct opc_scaler *scaler; /* of recorded states: errors are in their standard deviations */
    int first, fits;           /* fits after epochs first .. first + fits - 1 */
    int rules;
    const char *rule[OPC_FIT_RULES];
    /* Of a rule in the legend, without what all rules share; and what that is, "" for nothing. */
    char label[OPC_FIT_RULES][OPC_TEXT_SIZE], shared[OPC_TEXT_SIZE];
    struct opc_fit_outcome *outcome; /* [rules][fits] */
    /* [rules] models after the first fit of a rule, for later rules that have the same networks */
    struct opc_predictor *first_fit[OPC_FIT_RULES];
    int alike[OPC_FIT_RULES]; /* the first rule that has the same networks */
    /* the test of one epoch */
    int starts, horizon;
    int *episode, *time, *length, *ended; /* [starts] */
    struct opc_rng *reset;                /* [starts] what its episode was reset from */
    float *action;                        /* [starts][horizon][act] */
    double *truth;                        /* [starts][horizon + 1][obs] */
    /* rows that advance together */
    int *now, *elite;                          /* [starts] recorded step, member */
    float *state, *act, *next, *reward, *work; /* [starts][obs], [act], [obs], [1], [obs + 1] */
};

/* ---- memory ---------------------------------------------------------------------------------- */

static int allocate_testbed(struct testbed *t, struct opc_err *err)
{
    const size_t obs = (size_t)t->probe->obs, act = (size_t)t->probe->act;
    const size_t steps = (size_t)opc_episodes_steps(t->recorded.past), n = (size_t)t->starts;
    const size_t H = (size_t)t->horizon, f = sizeof(float);
    const struct opc_block blocks[] = {
        {&t->sa, steps, (obs + act) * f},
        {&t->y, steps, (obs + 1) * f},
        {&t->outcome, (size_t)t->rules * (size_t)t->fits, sizeof *t->outcome},
        {&t->episode, n, sizeof(int)},
        {&t->time, n, sizeof(int)},
        {&t->length, n, sizeof(int)},
        {&t->ended, n, sizeof(int)},
        {&t->now, n, sizeof(int)},
        {&t->elite, n, sizeof(int)},
        {&t->reset, n, sizeof *t->reset},
        {&t->action, n * H, act * f},
        {&t->truth, n * (H + 1), obs * sizeof(double)},
        {&t->state, n, obs * f},
        {&t->act, n, act * f},
        {&t->next, n, obs * f},
        {&t->reward, n, f},
        {&t->work, n, (obs + 1) * f},
    };
    return opc_alloc_all(blocks, sizeof blocks / sizeof *blocks)
               ? OPC_OK
               : opc_fail(err, OPC_ENOMEM, "not enough memory to fit %zu recorded steps", steps);
}

static void free_testbed(struct testbed *t)
{
    void *const blocks[] = {t->sa,    t->y,   t->outcome, t->episode, t->time,   t->length,
                            t->ended, t->now, t->elite,   t->reset,   t->action, t->truth,
                            t->state, t->act, t->next,    t->reward,  t->work};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        opc_free(blocks[i]);
    for (int i = 0; i < OPC_FIT_RULES; i++)
        opc_predictor_destroy(t->first_fit[i]);
    opc_scaler_destroy(t->scaler);
    opc_recorded_free(&t->recorded);
}

/* ---- the test of an epoch -------------------------------------------------------------------- */

/* Recorded steps of an epoch with H of them to go. */
static int count_starts(const struct testbed *t, int epoch)
{
    int all = 0;
    for (int b = t->recorded.episodes[epoch - 1]; b < t->recorded.episodes[epoch]; b++) {
        const int starts = opc_episodes_length(t->recorded.past, b) - t->horizon + 1;
        all += starts > 0 ? starts : 0;
    }
    return all;
}

/* Draws starts from the episodes of an epoch, all alike. false: there are none. */
static bool draw_starts(struct testbed *t, int epoch)
{
    const struct opc_episodes *past = t->recorded.past;
    const int from = t->recorded.episodes[epoch - 1], all = count_starts(t, epoch);
    for (int i = 0; i < t->starts && all > 0; i++) {
        struct opc_rng rng = opc_probe_stream(t->probe->seed, OPC_DRAW_START, epoch, i);
        int at = (int)opc_rng_below(&rng, (uint32_t)all), b = from;
        for (;; b++) {
            const int starts = opc_episodes_length(past, b) - t->horizon + 1;
            if (at < starts)
                break;
            at -= starts > 0 ? starts : 0;
        }
        t->episode[i] = b;
        t->time[i] = at;
        t->length[i] = t->horizon;
        t->reset[i] = opc_rng_stream((uint64_t)t->probe->config->set.train.seed, OPC_USE_RESET, 0,
                                     (uint32_t)b);
    }
    return all > 0;
}

/* The recorded actions plus noise, cut to [-1, 1]. */
static void draw_test_actions(struct testbed *t, int epoch)
{
    const int act = t->probe->act;
    for (int i = 0; i < t->starts; i++) {
        struct opc_rng rng = opc_probe_stream(t->probe->seed, OPC_DRAW_ROLLOUT, epoch, i);
        float *a = t->action + (size_t)i * (size_t)t->horizon * (size_t)act;
        opc_rng_normals(&rng, t->horizon * act, a);
        for (int h = 0; h < t->horizon; h++)
            for (int k = 0; k < act; k++) {
                const struct opc_step step =
                    opc_episodes_at(t->recorded.past, t->episode[i], t->time[i] + h);
                float *one = a + h * act + k;
                *one = fminf(fmaxf(step.action[k] + (float)t->set->noise * *one, -1.0f), 1.0f);
            }
    }
}

/* Starts, actions and truth for the recordings of an epoch. false in *usable: there is nothing. */
static int prepare_test(struct testbed *t, int epoch, bool *usable, struct opc_err *err)
{
    *usable = draw_starts(t, epoch);
    if (!*usable)
        return OPC_OK;
    draw_test_actions(t, epoch);
    struct opc_retrace truth = {
        .worlds = t->probe->worlds,
        .past = t->recorded.past,
        .n = t->starts,
        .horizon = t->horizon,
        .episode = t->episode,
        .time = t->time,
        .reset = t->reset,
        .action = t->action,
        .length = t->length,
        .truth = t->truth,
        .ended = t->ended,
    };
    return opc_retrace(&truth, err);
}

/* Root mean square over starts and state entries, in standard deviations; starts whose task has
 * ended by then on the environment do not count. */
static double error_after(const struct testbed *t, int h, const float *state)
{
    const int obs = t->probe->obs;
    double sum = 0;
    long n = 0;
    for (int i = 0; i < t->starts; i++) {
        const double *truth =
            t->truth + ((size_t)i * ((size_t)t->horizon + 1) + (size_t)h) * (size_t)obs;
        for (int k = 0; k < obs && !isnan(truth[0]); k++, n++) {
            const double d = ((double)state[(size_t)i * (size_t)obs + (size_t)k] - truth[k]) *
                             (double)t->scaler->inverse[k];
            sum += d * d;
        }
    }
    return n > 0 ? sqrt(sum / (double)n) : (double)NAN;
}

/* Follows a transition model with the test's actions and compares its states with the truth. Every
 * row stays with one elite, the same for eq. 2 and eq. 5. */
static void measure_errors(struct testbed *t, const struct opc_transition *tr,
                           double out[OPC_FIT_ERRORS])
{
    const int obs = t->probe->obs, act = t->probe->act, H = t->horizon;
    for (int i = 0; i < t->starts; i++) {
        const struct opc_step start = opc_episodes_at(t->recorded.past, t->episode[i], t->time[i]);
        memcpy(t->state + (size_t)i * (size_t)obs, start.state, (size_t)obs * sizeof(float));
        t->elite[i] = i % tr->model->elites;
    }
    for (int h = 0; h < H; h++) {
        for (int i = 0; i < t->starts; i++) {
            t->now[i] = t->time[i] + h;
            memcpy(t->act + (size_t)i * (size_t)act,
                   t->action + ((size_t)i * (size_t)H + (size_t)h) * (size_t)act,
                   (size_t)act * sizeof(float));
        }
        struct opc_walk walk = {
            .n = t->starts,
            .episode = t->episode,
            .time = t->now,
            .elite = t->elite,
            .state = t->state,
            .action = t->act,
            .next = t->next,
            .reward = t->reward,
            .work = t->work,
        };
        opc_transition_step(tr, &walk, t->probe->pool);
        float *swap = t->state;
        t->state = t->next;
        t->next = swap;
        if (h == 0)
            out[OPC_FIT_ONE_STEP] = error_after(t, 1, t->state);
    }
    out[OPC_FIT_H_STEPS] = error_after(t, H, t->state);
}

/* ---- fitting --------------------------------------------------------------------------------- */

/* Copies the next setting of a rule, without "model.", and returns what follows it; NULL: there is
 * none. */
static const char *next_setting(const char *rule, char word[OPC_TEXT_SIZE])
{
    rule += strspn(rule, " ");
    const char *name = rule + (strncmp(rule, "model.", 6) == 0 ? 6 : 0);
    const char *end = rule + strcspn(rule, " ");
    snprintf(word, OPC_TEXT_SIZE, "%.*s", (int)(end - name), name);
    return end > rule ? end : NULL;
}

/* The run's settings with those of a rule: "max_epochs=3 patience=1", names of the section model.
 */
static int read_rule(const struct testbed *t, const char *rule, struct opc_values *out,
                     struct opc_err *err)
{
    *out = t->probe->config->set;
    out->train.agent = 0; /* its settings need not fit a rule: only the model is made */
    char word[OPC_TEXT_SIZE], key[OPC_TEXT_SIZE + 8];
    while ((rule = next_setting(rule, word))) {
        struct opc_part part[OPC_PARTS_MAX];
        char *value = strchr(word, '=');
        if (!value)
            return opc_fail(err, OPC_EUSER,
                            "the rule '%s' is not a list of settings of the model; write "
                            "'max_epochs=3 patience=1'",
                            word);
        *value++ = '\0';
        snprintf(key, sizeof key, "model.%s", word);
        OPC_TRY(opc_parts_set(part, opc_config_parts(out, part), key, value, err));
    }
    return opc_values_check(out, err);
}

/* The last setting of this one's name in a rule: it is the one that counts. "": none. */
static void last_alike(const char *rule, const char *setting, char out[OPC_TEXT_SIZE])
{
    char word[OPC_TEXT_SIZE];
    const size_t name = strcspn(setting, "=") + 1;
    *out = '\0';
    while ((rule = next_setting(rule, word)))
        if (strncmp(word, setting, name) == 0)
            memcpy(out, word, sizeof word);
}

/* Does every rule set this? */
static bool is_shared(const struct testbed *t, const char *setting)
{
    char word[OPC_TEXT_SIZE];
    for (int i = 0; i < t->rules; i++) {
        last_alike(t->rule[i], setting, word);
        if (strcmp(word, setting) != 0)
            return false;
    }
    return t->rules > 1;
}

/* Adds a setting to a list of them, which holds it once. */
static void add_setting(char list[OPC_TEXT_SIZE], const char *setting)
{
    char word[OPC_TEXT_SIZE];
    last_alike(list, setting, word);
    const size_t n = strlen(list);
    if (!*word)
        snprintf(list + n, OPC_TEXT_SIZE - n, "%s%s", n ? " " : "", setting);
}

/* Labels of the rules: what tells them apart. */
static void label_rules(struct testbed *t)
{
    for (int i = 0; i < t->rules; i++) {
        char word[OPC_TEXT_SIZE], counts[OPC_TEXT_SIZE];
        const char *rest = t->rule[i];
        while ((rest = next_setting(rest, word))) {
            last_alike(t->rule[i], word, counts);
            add_setting(is_shared(t, counts) ? t->shared : t->label[i], counts);
        }
        if (!*t->label[i])
            snprintf(t->label[i], sizeof t->label[i], "%s",
                     *t->shared ? "nothing else" : "as in the run");
    }
}

/* Recorded steps up to the end of an epoch. */
static int steps_until(const struct testbed *t, int epoch)
{
    const int episodes = t->recorded.episodes[epoch];
    return episodes < opc_episodes_count(t->recorded.past)
               ? opc_episodes_first(t->recorded.past, episodes)
               : opc_episodes_steps(t->recorded.past);
}

/* Both transition models of a fitted predictor, on the test of the next epoch. */
static int test_model(struct testbed *t, struct opc_predictor *model, struct opc_fit_outcome *out,
                      struct opc_err *err)
{
    struct opc_models models;
    OPC_TRY(opc_models_make(t->probe, model, t->recorded.past, &models, err));
    models.learned->sample = false; /* the mean: the noise is the same for all rules */
    measure_errors(t, models.learned, out->error[OPC_FIT_LEARNED]);
    measure_errors(t, models.corrected, out->error[OPC_FIT_CORRECTED]);
    opc_models_free(&models);
    return OPC_OK;
}

/* Settings of the model that only say how a fit goes on and when it stops. */
static bool is_of_the_fit(const char *name)
{
    static const char *const NAME[] = {
        "learning_rate", "batch_size", "patience", "min_improvement", "max_epochs", "max_steps",
        "holdout_every", "new_ratio",  "best",     "snapshot",        NULL};
    for (int i = 0; NAME[i]; i++)
        if (strcmp(NAME[i], name) == 0)
            return true;
    return false;
}

/* The first of the rules that has the same networks as this one, and differs in the fit alone. */
static int first_alike(const struct testbed *t, int rule, int *out, struct opc_err *err)
{
    struct opc_values own, other;
    OPC_TRY(read_rule(t, t->rule[rule], &own, err));
    for (*out = 0; *out < rule; ++*out) {
        bool same = true;
        OPC_TRY(read_rule(t, t->rule[*out], &other, err));
        for (int i = 0; i < opc_ensemble_section.n; i++) {
            const struct opc_field *f = &opc_ensemble_section.fields[i];
            same = same && (is_of_the_fit(f->name) ||
                            memcmp((const char *)&own.model + f->offset,
                                   (const char *)&other.model + f->offset, opc_field_size(f)) == 0);
        }
        if (same)
            break;
    }
    return OPC_OK;
}

/* Fits the recording up to an epoch and tests the model on the next one. */
static int fit_and_test(struct testbed *t, const struct opc_request *request,
                        struct opc_predictor *model, int epoch, struct opc_fit_outcome *out,
                        struct opc_err *err)
{
    bool usable = false;
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = t->probe->seed,
                                      .epoch = (uint32_t)epoch,       .pool = t->probe->pool,
                                      .stop = request->stop,          .stop_ctx = request->ctx};
    out->rows = steps_until(t, epoch);
    const double began = opc_processor_seconds();
    OPC_TRY(opc_predictor_fit(model, out->rows, t->sa, t->y, &plan, &report, err));
    out->seconds = opc_processor_seconds() - began;
    out->passes = report.passes;
    out->steps = report.steps;
    for (int way = 0; way < OPC_FIT_WAYS; way++)
        out->error[way][OPC_FIT_ONE_STEP] = out->error[way][OPC_FIT_H_STEPS] = (double)NAN;
    OPC_TRY(prepare_test(t, epoch + 1, &usable, err));
    return usable ? test_model(t, model, out, err) : OPC_OK;
}

/* One rule: a fit after each epoch. The first starts from new weights; rules with the same networks
 * share it, so that they differ in how they go on. */
static int try_rule(struct testbed *t, const struct opc_request *request, int rule,
                    struct opc_err *err)
{
    struct opc_values set = {0};
    struct opc_predictor *fresh;
    const struct opc_probe *p = t->probe;
    struct opc_fit_outcome *out = &t->outcome[rule * t->fits];
    OPC_TRY(read_rule(t, t->rule[rule], &set, err));
    OPC_TRY(first_alike(t, rule, &t->alike[rule], err));
    const int alike = t->alike[rule];
    OPC_TRY(opc_run_model(&set, p->obs, p->act, p->pool, &fresh, err));
    int code = OPC_OK;
    for (int i = 0; i < t->fits && !code; i++) {
        char what[80];
        snprintf(what, sizeof what, "rule %d of %d, epoch %d", rule + 1, t->rules, t->first + i);
        if (request->progress)
            request->progress(request->ctx, (rule + (double)i / t->fits) / t->rules, what);
        if (request->stop && request->stop(request->ctx)) {
            code = opc_fail(err, OPC_ESTOPPED, "stopped before the first rule was complete");
            break;
        }
        if (i > 0 || alike == rule) {
            code = fit_and_test(t, request, fresh, t->first + i, &out[i], err);
        } else {
            code = opc_ensemble_copy(t->first_fit[alike], fresh, err);
            out[0] = t->outcome[alike * t->fits];
        }
        /* A model of its own keeps what the first fit made. */
        if (!code && i == 0 && alike == rule) {
            code = opc_run_model(&set, p->obs, p->act, p->pool, &t->first_fit[rule], err);
            if (!code)
                code = opc_ensemble_copy(fresh, t->first_fit[rule], err);
        }
    }
    opc_predictor_destroy(fresh);
    return code;
}

/* ---- the analysis ---------------------------------------------------------------------------- */

/* Which rules and epochs, and the recording as fits want it. */
static int set_up_testbed(struct testbed *t, struct opc_err *err)
{
    const struct opc_probe *p = t->probe;
    OPC_TRY(opc_recorded_load(p->dir, p->config, p->obs, p->act, &t->recorded, err));
    if (t->recorded.epochs < 2)
        return opc_fail(err, OPC_EUSER,
                        "%s has %d complete epochs; a fit is tested on the epoch after it, so two "
                        "are needed",
                        p->dir, t->recorded.epochs);
    t->fits = t->set->epochs < t->recorded.epochs - 1 ? t->set->epochs : t->recorded.epochs - 1;
    t->first = t->recorded.epochs - t->fits;
    t->starts = t->set->samples;
    t->horizon = t->set->steps;
    t->rules = t->set->rule.n ? t->set->rule.n : (int)(sizeof USUAL_RULE / sizeof *USUAL_RULE);
    for (int i = 0; i < t->rules; i++) {
        struct opc_values values;
        t->rule[i] = t->set->rule.n ? t->set->rule.at[i] : USUAL_RULE[i];
        OPC_TRY(read_rule(t, t->rule[i], &values, err)); /* before anything is computed */
    }
    bool usable = false;
    for (int i = 0; i < t->fits && !usable; i++)
        usable = count_starts(t, t->first + i + 1) > 0;
    if (!usable)
        return opc_fail(
            err, OPC_EUSER,
            "no episode of epochs %d to %d of %s has %d steps, so no fit can be tested; "
            "lower --steps",
            t->first + 1, t->first + t->fits, p->dir, t->horizon);
    label_rules(t);
    OPC_TRY(allocate_testbed(t, err));
    opc_episodes_flatten(t->recorded.past, t->sa, t->y);

    /* The unit of the errors: the states are the first columns of the inputs. */
    OPC_TRY(opc_scaler_create(p->obs, &t->scaler, err));
    opc_scaler_fit(t->scaler, opc_episodes_steps(t->recorded.past), t->sa,
                   (size_t)(p->obs + p->act), NULL, false);
    return OPC_OK;
}

static int make_fit_exhibit(const struct opc_request *request, const void *settings,
                            struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_probe probe;
    struct testbed t = {.probe = &probe, .set = settings};
    if (request->runs != 1)
        return opc_fail(err, OPC_EUSER, "probe_fit looks at one run, and there are %d",
                        request->runs);
    OPC_TRY(opc_probe_open(request->run[0], request->pool, request->seed, &probe, err));
    int code = opc_probe_needs_model(&probe, err);
    if (!code)
        code = set_up_testbed(&t, err);
    const int asked = t.rules;
    for (int rule = 0; rule < t.rules && !code; rule++) {
        code = try_rule(&t, request, rule, err);
        /* Stopped: the rules before this one are whole, and worth keeping. */
        if (code == OPC_ESTOPPED && rule > 0) {
            t.rules = rule;
            code = OPC_OK;
        }
    }
    const struct opc_fit_results results = {.rules = t.rules,
                                            .asked = asked,
                                            .rule = t.rule,
                                            .label = t.label,
                                            .shared = t.shared,
                                            .alike = t.alike,
                                            .first = t.first,
                                            .fits = t.fits,
                                            .outcome = t.outcome,
                                            .starts = t.starts,
                                            .horizon = t.horizon,
                                            .noise = t.set->noise,
                                            .seed = request->seed};
    if (!code)
        code = opc_probe_fit_show(&results, exhibit, err);
    free_testbed(&t);
    opc_probe_close(&probe);
    return code;
}

#define SELF struct opc_probe_fit_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_FIT_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_fit = {
    .name = "probe_fit",
    .help = "what a fit of the model costs and what it is worth, under several rules",
    .settings = &section,
    .make = make_fit_exhibit,
};
