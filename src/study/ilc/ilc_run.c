/* SPDX-License-Identifier: MIT */
/* Learning control from settings: reads weights and limits, makes the reference, and repeats
 * trial, model, update. opc ilc and the analysis `ilc` call opc_ilc_run.
 *
 * Invariant: noise and random actions come from streams named by repeat and trial, so that a
 * repeat with the filter and one without it see the same noise. */
#include "study/ilc/ilc_run.h"

#include "model/ensemble.h"
#include "num/normal.h"
#include "num/solve/dense.h"
#include "opc/episodes.h"
#include "opc/mem.h"
#include "study/ilc/ilc_opc.h"

#include <string.h>

static const double PI = 3.14159265358979323846;
/* Steps that a random action is held: one that changes in every step hardly moves the plant. */
enum { HOLD = 5 };

#define SELF struct opc_ilc_config
const struct opc_section opc_ilc_section = OPC_SECTION(
    "ilc", "norm-optimal iterative learning control: opc ilc, docs/ilc.md", OPC_ILC_FIELDS);
#undef SELF

static const char *const FORM[OPC_ILC_FORMS] = {"linear", "nonlinear", "learned", "constrained",
                                                "stochastic"};

const char *opc_ilc_form_name(int form)
{
    return FORM[form];
}

int opc_ilc_example(int form, struct opc_ilc_config *config, struct opc_err *err)
{
    /* Only what differs from the defaults. */
    static const char *const SET[OPC_ILC_FORMS][12][2] = {
        [OPC_ILC_NONLINEAR] = {{"plant", "pendulum"},
                               {"steps", "60"},
                               {"reference", "swing"},
                               {"amplitude", "1.5"},
                               {"weight_action", "[0.01]"}},
        [OPC_ILC_LEARNED] = {{"plant", "pendulum"},
                             {"steps", "60"},
                             {"reference", "swing"},
                             {"amplitude", "1.5"},
                             {"weight_action", "[0.01]"}},
        [OPC_ILC_CONSTRAINED] = {{"action_low", "[-6]"},
                                 {"action_high", "[6]"},
                                 {"state_high", "[inf, 1.3]"},
                                 {"trust", "9"}},
        [OPC_ILC_STOCHASTIC] = {{"iterations", "20"},
                                {"process_noise", "0.01"},
                                {"sensor_noise", "0.2"},
                                {"drift", "0.1"},
                                {"repeats", "20"}},
    };
    OPC_TRY(opc_section_defaults(&opc_ilc_section, config, err));
    OPC_TRY(opc_section_set(&opc_ilc_section, config, "form", FORM[form], err));
    for (int i = 0; i < 12 && SET[form][i][0]; i++)
        OPC_TRY(opc_section_set(&opc_ilc_section, config, SET[form][i][0], SET[form][i][1], err));
    return OPC_OK;
}

/* ---- settings, spread over a trial ----------------------------------------------------------- */

/* Everything about a run that stays the same from repeat to repeat, and scratch. */
struct run {
    const struct opc_ilc_config *config;
    struct opc_ilc_trials *out;
    struct opc_plant *plant;
    struct opc_pool *pool;
    const struct opc_ilc_watch *watch;
    int n, m, T, N, U; /* N = (T+1) n, U = T m */
    double *M, *W;     /* [N] [U] weights */
    struct opc_ilc_limits limits;
    /* [U] [U] [N] [N] and the polytope [faces][N] [faces]; limits points at them. */
    double *u_low, *u_high, *s_low, *s_high, *G, *h;
    double *Omega, *Xi; /* [N][N] */
    struct opc_ilc *ilc;
    struct opc_ilc_filter *filter;
    double *A, *B; /* [T][n][n] [T][n][m] the model along the last trial */
    /* [N] measured and clean states, error and disturbance; [U] actions, update, update by eq. 5 */
    double *s, *clean, *e, *d, *u, *next, *other;
    struct opc_episodes *past; /* learned: everything that was measured */
    struct opc_predictor *model;
    float *sa, *y; /* learned: inputs and targets of the fit */
};

/* The message for a list of the wrong length. */
static int wrong_count(const char *name, int got, int want, struct opc_err *err)
{
    return opc_fail(err, OPC_EUSER, "%s lists %d numbers; this plant needs %d, or one for all",
                    name, got, want);
}

/* Fills to[count] from a list of `each` numbers, of one, or of none (`fallback`). */
static int spread_list(const char *name, const struct opc_reals *list, int each, int count,
                       double fallback, double *to, struct opc_err *err)
{
    if (list->n > 1 && list->n != each)
        return wrong_count(name, list->n, each, err);
    for (int i = 0; i < count; i++)
        to[i] = list->n == 0 ? fallback : list->at[list->n == 1 ? 0 : i % each];
    return OPC_OK;
}

/* Bounds must leave something between them; the first `each` entries repeat in time. */
static int check_order(const char *low_name, const char *high_name, const double *low,
                       const double *high, int each, struct opc_err *err)
{
    for (int i = 0; i < each; i++)
        if (!(low[i] <= high[i]))
            return opc_fail(err, OPC_EUSER,
                            "%s = %g is above %s = %g (entry %d): nothing is between them",
                            low_name, low[i], high_name, high[i], i + 1);
    return OPC_OK;
}

/* A face holds at every time, so it becomes T + 1 rows, each about the state of one time. */
static int spread_faces(struct run *run, struct opc_err *err)
{
    const struct opc_reals *list = &run->config->faces;
    const int each = run->n + 1, faces = list->n / each;
    if (list->n % each)
        return opc_fail(err, OPC_EUSER,
                        "faces lists %d numbers; each face of this plant is %d: g_1 .. g_%d, h",
                        list->n, each, run->n);
    /* Row (f, t) of G holds g_f at the columns of s_t, and zeros elsewhere. */
    for (int f = 0; f < faces; f++)
        for (int t = 0; t <= run->T; t++) {
            const int row = f * (run->T + 1) + t;
            memcpy(run->G + (size_t)row * (size_t)run->N + t * run->n, list->at + f * each,
                   (size_t)run->n * sizeof(double));
            run->h[row] = list->at[f * each + run->n];
        }
    run->limits.faces = faces * (run->T + 1);
    run->limits.G = run->G;
    run->limits.h = run->h;
    return OPC_OK;
}

/* All limits; `limited` says whether there is any. */
static int read_limits(struct run *run, struct opc_err *err)
{
    const struct opc_ilc_config *config = run->config;
    OPC_TRY(
        spread_list("action_low", &config->action_low, run->m, run->U, -INFINITY, run->u_low, err));
    OPC_TRY(spread_list("action_high", &config->action_high, run->m, run->U, INFINITY, run->u_high,
                        err));
    OPC_TRY(
        spread_list("state_low", &config->state_low, run->n, run->N, -INFINITY, run->s_low, err));
    OPC_TRY(
        spread_list("state_high", &config->state_high, run->n, run->N, INFINITY, run->s_high, err));
    OPC_TRY(check_order("action_low", "action_high", run->u_low, run->u_high, run->m, err));
    OPC_TRY(check_order("state_low", "state_high", run->s_low, run->s_high, run->n, err));
    OPC_TRY(spread_faces(run, err));
    /* Pointers stay valid for the whole run. */
    run->limits.u_low = run->u_low;
    run->limits.u_high = run->u_high;
    run->limits.s_low = run->s_low;
    run->limits.s_high = run->s_high;
    run->limits.trust = config->trust;
    run->out->limited = config->action_low.n || config->action_high.n || config->state_low.n ||
                        config->state_high.n || config->faces.n || config->trust > 0.0;
    if (config->form == OPC_ILC_CONSTRAINED && !run->out->limited)
        return opc_fail(err, OPC_EUSER,
                        "form = constrained, but there is no bound; set one of action_low, "
                        "action_high, state_low, state_high, faces or trust");
    return OPC_OK;
}

/* Weights on states and actions; an empty list would mean no weight at all. */
static int read_weights(struct run *run, struct opc_err *err)
{
    if (run->config->weight_state.n == 0 || run->config->weight_action.n == 0)
        return opc_fail(err, OPC_EUSER, "%s is empty; one number or one for each is needed",
                        run->config->weight_state.n ? "weight_action" : "weight_state");
    const int code =
        spread_list("weight_state", &run->config->weight_state, run->n, run->N, 0.0, run->M, err);
    return code ? code
                : spread_list("weight_action", &run->config->weight_action, run->m, run->U, 0.0,
                              run->W, err);
}

/* The reference: what the plant does under a sine of torque, or a smooth way there and back,
 * starting where the plant starts. */
static int make_reference(struct run *run, struct opc_err *err)
{
    const struct opc_ilc_config *config = run->config;
    if (config->reference == OPC_REFERENCE_SWING) {
        for (int t = 0; t < run->T; t++)
            for (int j = 0; j < run->m; j++)
                run->u[t * run->m + j] =
                    config->amplitude * sin(2 * PI * t * run->plant->dt / config->period);
        return opc_plant_try(run->plant, run->T, run->u, NULL, run->out->ref, err);
    }
    /* x(t) = amplitude sin^2(pi t / T), and its derivative for the velocity. */
    for (int t = 0; t <= run->T; t++) {
        const double at = PI * t / run->T;
        double *ref = run->out->ref + t * run->n;
        ref[0] = run->plant->s0[0] + config->amplitude * sin(at) * sin(at);
        ref[1] = config->amplitude * 2 * PI / (run->T * run->plant->dt) * sin(at) * cos(at);
    }
    return OPC_OK;
}

/* Xi = L Sigma L^T + sensor noise, Omega = drift. Made once from the first trial's model. */
static int make_covariances(struct run *run, struct opc_err *err)
{
    const size_t N = (size_t)run->N, columns = (size_t)(run->T * run->n);
    const double process = run->config->process_noise, sensor = run->config->sensor_noise,
                 drift = run->config->drift;
    double *I = opc_alloc(columns * (size_t)run->n, sizeof *I);
    double *L = opc_alloc(N * columns, sizeof *L);
    int code = OPC_OK;
    if (!I || !L) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the noise of %d steps", run->T);
    } else {
        /* L maps process noise in each step to all later states, scaled by its standard
         * deviation. */
        for (size_t i = 0; i < columns; i++)
            I[i * (size_t)run->n + i % (size_t)run->n] = process;
        opc_lift(run->n, run->n, run->T, run->A, I, L);
        opc_dense_mul_tb(run->N, (int)columns, run->N, L, L, run->Xi);
        for (size_t i = 0; i < N; i++) {
            run->Xi[i * N + i] += i < (size_t)run->n ? 0.0 : sensor * sensor; /* s_0 is known */
            run->Omega[i * N + i] = drift * drift;
        }
    }
    opc_free(I);
    opc_free(L);
    return code;
}

/* ---- the learned model ----------------------------------------------------------------------- */

/* Scales an action from the plant's range to [-1, 1]. */
static void to_unit(const struct run *run, const double *a, float *to)
{
    for (int j = 0; j < run->m; j++)
        to[j] =
            (float)(2.0 * (a[j] - run->plant->low[j]) / (run->plant->high[j] - run->plant->low[j]) -
                    1.0);
}

/* Adds a trial to the data of the learned model. */
static int remember_trial(struct run *run, const double *s, const double *u, struct opc_err *err)
{
    int code = opc_episodes_begin(run->past, s, err);
    /* Actions are stored scaled, as the network takes them. No reward is predicted, and no trial
     * ends early. */
    for (int t = 0; t < run->T && !code; t++) {
        float a[OPC_PLANT_ACTIONS];
        to_unit(run, u + t * run->m, a);
        code = opc_episodes_append(run->past, a, 0.0, s + (t + 1) * run->n, false, err);
    }
    if (!code)
        opc_episodes_close(run->past);
    return code;
}

/* An untrained model, and trials with random actions for its first fit. */
static int begin_learning(struct run *run, int repeat, struct opc_err *err)
{
    const struct opc_ilc_config *config = run->config;
    const int episodes = config->random_trials + config->iterations;
    const uint64_t seed = (uint64_t)config->seed;
    struct opc_ensemble_config e;
    if (!run->plant->low)
        return opc_fail(err, OPC_EUSER,
                        "form = learned needs a plant whose actions have a range to draw from: "
                        "plant = pendulum");
    /* A plant has two states and a few hundred steps, so the ensemble is small, and all members
     * are elites: with so little data a selection would be noise. */
    int code = opc_section_defaults(&opc_ensemble_section, &e, err);
    e.members = e.elites = config->members;
    e.hidden = config->hidden;
    e.weight_decay = (struct opc_reals){1, {1e-5}};
    e.batch_size = 64;
    e.max_epochs = config->passes;
    /* A repeat starts afresh. */
    opc_episodes_destroy(run->past);
    opc_predictor_destroy(run->model);
    run->past = NULL;
    run->model = NULL;
    if (!code)
        code = opc_episodes_create(run->n, run->m, episodes * run->T, episodes, &run->past, err);
    if (!code)
        code = opc_ensemble_make(&e, run->n, run->m, opc_pool_threads(run->pool), seed,
                                 (uint32_t)repeat, &run->model, err);
    /* Random actions, held for HOLD steps, on the plant with noise. */
    for (int k = 0; k < config->random_trials && !code; k++) {
        struct opc_rng rng = opc_rng_stream(seed, OPC_USE_RANDOM, (uint32_t)repeat, (uint32_t)k);
        for (int t = 0; t < run->T; t++)
            for (int j = 0; j < run->m; j++) {
                const double span = run->plant->high[j] - run->plant->low[j];
                run->u[t * run->m + j] =
                    t % HOLD ? run->u[(t - 1) * run->m + j]
                             : run->plant->low[j] + span * opc_rng_unit_double(&rng);
            }
        /* Numbers from 2^20 on keep this noise apart from that of the learning trials. */
        struct opc_rng noise =
            opc_rng_stream(seed, OPC_USE_ENV, (uint32_t)repeat, (uint32_t)(1 << 20 | k));
        code = opc_plant_try(run->plant, run->T, run->u, &noise, run->s, err);
        if (!code)
            code = remember_trial(run, run->s, run->u, err);
    }
    return code;
}

/* Adds the last trial, fits the model to everything, and linearises it along that trial. */
static int fit_learned_model(struct run *run, int repeat, int trial, struct opc_err *err)
{
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    const struct opc_fit_plan plan = {
        OPC_SIZED(struct opc_fit_plan), .seed = (uint64_t)run->config->seed,
        .epoch = (uint32_t)repeat, .index = (uint32_t)trial, .pool = run->pool};
    int code = remember_trial(run, run->s, run->u, err);
    if (code)
        return code;
    /* Everything measured so far, as inputs (s, a) and targets. */
    opc_episodes_flatten(run->past, run->sa, run->y);
    code = opc_predictor_fit(run->model, opc_episodes_steps(run->past), run->sa, run->y, &plan,
                             &report, err);
    if (code)
        return code;
    /* Mean over members, for a note in the exhibit. */
    run->out->holdout = 0.0;
    for (int i = 0; i < run->config->members; i++)
        run->out->holdout += report.holdout[i] / run->config->members;
    return opc_linearise_learned(run->model, run->T, run->plant->low, run->plant->high, run->s,
                                 run->u, run->A, run->B, run->pool, err);
}

/* ---- trials ---------------------------------------------------------------------------------- */

/* Root mean square of a - b. */
static double rms_distance(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum / n);
}

/* A and B along the last trial. Forms whose model does not change find them only once. */
static int find_model(struct run *run, int repeat, int trial, struct opc_err *err)
{
    const int form = run->config->form;
    /* A linear model along any trajectory is the same, and the filter assumes that F stays. */
    int code;
    if (trial > 0 && (form == OPC_ILC_LINEAR || form == OPC_ILC_STOCHASTIC || run->plant->constant))
        return OPC_OK;
    if (form == OPC_ILC_LEARNED)
        code = fit_learned_model(run, repeat, trial, err);
    else
        code = opc_linearise(run->n, run->m, run->T, run->plant->model, run->plant, run->s, run->u,
                             run->A, run->B, err);
    if (!code)
        code = opc_ilc_model(run->ilc, run->A, run->B, err);
    if (!code && form == OPC_ILC_STOCHASTIC)
        code = make_covariances(run, err);
    return code;
}

/* Computes next from u, with the disturbance as measured or as the filter estimates it. */
static int update_actions(struct run *run, bool filtered, struct opc_err *err)
{
    /* d = s - F u as measured; the filter replaces it by its estimate. */
    opc_ilc_disturbance(run->ilc, run->s, run->u, run->d);
    if (filtered) {
        const int code = opc_ilc_filter_see(run->filter, run->Omega, run->Xi, run->d, err);
        if (code)
            return code;
        memcpy(run->d, run->filter->d, (size_t)run->N * sizeof *run->d);
    }
    /* Within limits the update is a quadratic program; keep the worst of its residuals. */
    if (run->out->limited) {
        struct opc_ilc_kept kept;
        const int code = opc_ilc_update_within(run->ilc, run->out->ref, run->d, run->u,
                                               &run->limits, run->next, &kept, err);
        if (code)
            return code;
        const struct opc_qp_kkt *k = &kept.kkt;
        run->out->kkt = fmax(run->out->kkt, fmax(fmax(k->stationarity, k->primal),
                                                 fmax(k->dual, k->complementarity)));
        if (kept.qp.active > run->out->active)
            run->out->active = kept.qp.active;
        return OPC_OK;
    }
    /* Without limits it has a closed form in the predicted error. */
    opc_ilc_predict(run->ilc, run->u, run->d, run->e);
    for (int i = 0; i < run->N; i++)
        run->e[i] = run->out->ref[i] - run->e[i];
    opc_ilc_update(run->ilc, run->e, run->u, run->next);
    return OPC_OK;
}

/* Compares the update with the one by eq. 5; only the linear form without limits has both. */
static int compare_with_opc(struct run *run, struct opc_err *err)
{
    struct opc_ilc_trials *out = run->out;
    if (run->config->form != OPC_ILC_LINEAR || !run->plant->constant || out->limited)
        return OPC_OK;
    /* The two should agree up to float rounding; the largest difference is reported. */
    const int code = opc_ilc_by_opc(run->n, run->m, run->T, run->A, run->B, run->s, run->u,
                                    out->ref, run->M, run->W, run->other, err);
    if (code)
        return code;
    if (isnan(out->by_opc))
        out->by_opc = 0.0;
    for (int j = 0; j < run->U; j++) {
        out->by_opc = fmax(out->by_opc, fabs(run->other[j] - run->next[j]));
        out->largest = fmax(out->largest, fabs(run->next[j]));
    }
    return OPC_OK;
}

/* How far the states of the last trial are outside of their bounds. */
static void note_bounds(struct run *run)
{
    for (int i = 0; i < run->N; i++)
        run->out->beyond = fmax(
            run->out->beyond, fmax(run->clean[i] - run->s_high[i], run->s_low[i] - run->clean[i]));
}

/* Runs a trial of run->u into run->s and stores its errors under its number; seen may be NULL. */
static int try_once(struct run *run, int repeat, int trial, double *error, double *seen,
                    struct opc_err *err)
{
    /* The same actions with noise, and without it to judge them. */
    struct opc_rng noise =
        opc_rng_stream((uint64_t)run->config->seed, OPC_USE_ENV, (uint32_t)repeat, (uint32_t)trial);
    int code = opc_plant_try(run->plant, run->T, run->u, &noise, run->s, err);
    if (!code)
        code = opc_plant_try(run->plant, run->T, run->u, NULL, run->clean, err);
    if (code)
        return code;
    /* Judged by the actions alone, without noise. */
    error[trial] = rms_distance(run->N, run->out->ref, run->clean);
    const double as_seen = rms_distance(run->N, run->out->ref, run->s);
    if (seen)
        seen[trial] = as_seen;
    /* Actions that change too much make the next trial worse, and so on to infinity. */
    if (!isfinite(as_seen) || as_seen > 1e100)
        return opc_fail(err, OPC_EDIVERGED,
                        "the tracking error grew to %g in trial %d; raise weight_action, or set "
                        "trust, so that actions change less from trial to trial",
                        as_seen, trial);
    return OPC_OK;
}

/* One repeat: trials and updates in turn. error and seen: rows of this repeat in the results. */
static int one_repeat(struct run *run, int repeat, bool filtered, double *error, double *seen,
                      struct opc_err *err)
{
    struct opc_ilc_trials *out = run->out;
    /* Only the first repeat's trajectories are kept, and those with the filter. */
    const bool shown = repeat == 0 && error == out->rms;
    int code = OPC_OK;
    /* Nothing is known from an earlier repeat. */
    if (run->filter)
        run->filter->known = false;
    if (run->config->form == OPC_ILC_LEARNED)
        code = begin_learning(run, repeat, err);
    /* The first trial does nothing. */
    memset(run->u, 0, (size_t)run->U * sizeof *run->u);
    for (int trial = 0; trial < out->trials && !code; trial++) {
        code = try_once(run, repeat, trial, error, seen, err);
        if (code)
            break;
        if (shown) {
            memcpy(out->s + (size_t)(trial * run->N), run->s, (size_t)run->N * sizeof *run->s);
            memcpy(out->clean + (size_t)(trial * run->N), run->clean,
                   (size_t)run->N * sizeof *run->s);
            memcpy(out->u + (size_t)(trial * run->U), run->u, (size_t)run->U * sizeof *run->u);
        }
        /* No update after the last trial. */
        if (trial + 1 == out->trials) {
            if (seen)
                note_bounds(run);
            break;
        }
        /* Model along this trial, update, and the next trial takes it. */
        code = find_model(run, repeat, trial, err);
        if (!code)
            code = update_actions(run, filtered, err);
        if (!code && shown)
            code = compare_with_opc(run, err);
        if (code)
            return opc_within(err, "after trial %d", trial);
        memcpy(run->u, run->next, (size_t)run->U * sizeof *run->u);
        if (run->watch && run->watch->progress)
            run->watch->progress(run->watch->ctx,
                                 (repeat + (trial + 1.0) / out->trials) / run->config->repeats,
                                 FORM[run->config->form]);
    }
    return code;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void opc_ilc_trials_free(struct opc_ilc_trials *trials)
{
    if (!trials)
        return;
    opc_free(trials->ref);
    opc_free(trials->s);
    opc_free(trials->clean);
    opc_free(trials->u);
    opc_free(trials->seen);
    opc_free(trials->rms);
    opc_free(trials->plain);
    opc_free(trials);
}

/* Allocates the results; freed by opc_ilc_trials_free. */
static int make_trials(const struct opc_ilc_config *config, const struct opc_plant *plant,
                       struct opc_ilc_trials **out, struct opc_err *err)
{
    /* Zeroed, so that a failure can free it as it is. */
    struct opc_ilc_trials *t = opc_alloc(1, sizeof *t);
    if (!t)
        goto full;
    *t = (struct opc_ilc_trials){.config = *config,
                                 .n = plant->n,
                                 .m = plant->m,
                                 .T = config->steps,
                                 .trials = config->iterations + 1,
                                 .dt = plant->dt,
                                 .action_name = plant->action_name,
                                 .by_opc = (double)NAN};
    memcpy(t->state_name, plant->state_name, sizeof t->state_name);
    const size_t trials = (size_t)t->trials, all = trials * (size_t)config->repeats;
    const size_t states = (size_t)((t->T + 1) * t->n), actions = (size_t)(t->T * t->m);
    const struct opc_block block[] = {
        {&t->ref, states, sizeof(double)},
        {&t->s, trials * states, sizeof(double)},
        {&t->clean, trials * states, sizeof(double)},
        {&t->u, trials * actions, sizeof(double)},
        {&t->seen, all, sizeof(double)},
        {&t->rms, all, sizeof(double)},
        {&t->plain, all, sizeof(double)}, /* the stochastic form only, hence the last */
    };
    const size_t blocks = sizeof block / sizeof *block;
    if (!opc_alloc_all(block, config->form == OPC_ILC_STOCHASTIC ? blocks : blocks - 1))
        goto full;
    *out = t;
    return OPC_OK;
full:
    opc_ilc_trials_free(t);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for %d trials of %d steps",
                    config->iterations + 1, config->steps);
}

/* Arrays of struct run; release frees them. */
static int ilc_run_allocate(struct run *run, struct opc_err *err)
{
    const size_t n = (size_t)run->n, m = (size_t)run->m, T = (size_t)run->T;
    const size_t N = (size_t)run->N, U = (size_t)run->U;
    const size_t faces = (size_t)run->config->faces.n / (n + 1) * (T + 1);
    /* Only the stochastic and the learned form need the last four. */
    const size_t square = run->config->form == OPC_ILC_STOCHASTIC ? N * N : 0;
    const size_t data = run->config->form == OPC_ILC_LEARNED
                            ? (size_t)(run->config->random_trials + run->config->iterations) * T
                            : 0;
    const size_t real = sizeof(double);
    const struct opc_block block[] = {
        {&run->M, N, real},
        {&run->W, U, real},
        {&run->u_low, U, real},
        {&run->u_high, U, real},
        {&run->s_low, N, real},
        {&run->s_high, N, real},
        {&run->h, faces, real},
        {&run->G, faces * N, real},
        {&run->s, N, real},
        {&run->clean, N, real},
        {&run->e, N, real},
        {&run->d, N, real},
        {&run->u, U, real},
        {&run->next, U, real},
        {&run->other, U, real},
        {&run->A, T * n * n, real},
        {&run->B, T * n * m, real},
        {&run->Omega, square, real},
        {&run->Xi, square, real},
        {&run->sa, data * (n + m), sizeof(float)},
        {&run->y, data * (n + 1), sizeof(float)},
    };
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for trials of %d steps; lower steps",
                        run->T);
    return OPC_OK;
}

/* Frees everything but the results. */
static void ilc_run_release(struct run *run)
{
    void *all[] = {run->M,  run->W, run->u_low, run->u_high, run->s_low, run->s_high, run->G,
                   run->h,  run->s, run->e,     run->clean,  run->next,  run->other,  run->Omega,
                   run->Xi, run->d, run->u,     run->A,      run->B,     run->sa,     run->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        opc_free(all[i]);
    opc_ilc_destroy(run->ilc);
    opc_ilc_filter_destroy(run->filter);
    opc_episodes_destroy(run->past);
    opc_predictor_destroy(run->model);
    opc_plant_close(run->plant);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Opens the plant, reads the settings and allocates everything. */
static int ilc_run_prepare(struct run *run, struct opc_err *err)
{
    const struct opc_ilc_config *config = run->config;
    const struct opc_plant_plan plan = {.kind = (enum opc_plant_kind)config->plant,
                                        .gravity = config->model_gravity,
                                        .torque = config->model_torque,
                                        .process_noise = config->process_noise,
                                        .sensor_noise = config->sensor_noise};
    OPC_TRY(opc_plant_open(&plan, &run->plant, err));
    /* Sizes: N stacked states, U stacked actions. */
    run->n = run->plant->n;
    run->m = run->plant->m;
    run->T = config->steps;
    run->N = (run->T + 1) * run->n;
    run->U = run->T * run->m;
    /* After a failure the caller releases everything. */
    OPC_TRY(make_trials(config, run->plant, &run->out, err));
    OPC_TRY(ilc_run_allocate(run, err));
    OPC_TRY(read_weights(run, err));
    OPC_TRY(read_limits(run, err));
    OPC_TRY(make_reference(run, err));
    OPC_TRY(opc_ilc_create(run->n, run->m, run->T, run->M, run->W, &run->ilc, err));
    if (config->form == OPC_ILC_STOCHASTIC)
        OPC_TRY(opc_ilc_filter_create(run->N, &run->filter, err));
    return OPC_OK;
}

int opc_ilc_run(const struct opc_ilc_config *config, struct opc_pool *pool,
                const struct opc_ilc_watch *watch, struct opc_ilc_trials **out, struct opc_err *err)
{
    struct run run = {.config = config, .pool = pool, .watch = watch};
    int code = ilc_run_prepare(&run, err);
    /* Every repeat fills its rows of the results. */
    for (int k = 0; k < config->repeats && !code; k++) {
        const size_t at = (size_t)k * (size_t)run.out->trials;
        code = one_repeat(&run, k, run.filter != NULL, run.out->rms + at, run.out->seen + at, err);
        if (!code && run.out->plain) /* the same noise again, without the filter */
            code = one_repeat(&run, k, false, run.out->plain + at, NULL, err);
    }
    ilc_run_release(&run);
    if (code) {
        opc_ilc_trials_free(run.out);
        return code;
    }
    *out = run.out;
    return OPC_OK;
}
