/* SPDX-License-Identifier: MIT */
#include "study/ilc/ilc_run.h"

#include "model/ensemble.h"
#include "num/dense.h"
#include "num/normal.h"
#include "opc/episodes.h"
#include "opc/mem.h"
#include "study/ilc/ilc_opc.h"

#include <string.h>

static const double PI = 3.14159265358979323846;
enum { HOLD = 5 }; /* steps a random action lasts: what changes each step moves nothing */

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

int opc_ilc_example(int form, struct opc_ilc_config *c, struct opc_err *err)
{
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
    int code = opc_section_defaults(&opc_ilc_section, c, err);
    if (!code)
        code = opc_section_set(&opc_ilc_section, c, "form", FORM[form], err);
    for (int i = 0; i < 12 && SET[form][i][0] && !code; i++)
        code = opc_section_set(&opc_ilc_section, c, SET[form][i][0], SET[form][i][1], err);
    return code;
}

/* ---- the settings, spread out over a trial --------------------------------------------------- */

/* Everything of a run that does not change from repeat to repeat. */
struct run {
    const struct opc_ilc_config *c;
    struct opc_ilc_trials *out;
    struct opc_plant *plant;
    struct opc_pool *pool;
    const struct opc_ilc_watch *watch;
    int n, m, T, N, U; /* N = (T+1) n, U = T m */
    double *M, *W;
    struct opc_ilc_limits limits;
    double *u_low, *u_high, *s_low, *s_high, *G, *h;
    double *Omega, *Xi; /* [N][N] */
    struct opc_ilc *ilc;
    struct opc_ilc_filter *filter;
    double *A, *B;
    double *s, *clean, *e, *d, *u, *next, *other;
    struct opc_episodes *past; /* learned: all that was seen */
    struct opc_predictor *model;
    float *sa, *y;
};

static int wrong_count(const char *name, int got, int want, struct opc_err *err)
{
    return opc_fail(err, OPC_EUSER, "%s lists %d numbers; this plant needs %d, or one for all",
                    name, got, want);
}

/* to[count] from a list of `each` numbers, one, or none (`fallback`). */
static int spread(const char *name, const struct opc_reals *list, int each, int count,
                  double fallback, double *to, struct opc_err *err)
{
    if (list->n > 1 && list->n != each)
        return wrong_count(name, list->n, each, err);
    for (int i = 0; i < count; i++)
        to[i] = list->n == 0 ? fallback : list->at[list->n == 1 ? 0 : i % each];
    return OPC_OK;
}

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

static int spread_faces(struct run *r, struct opc_err *err)
{
    const struct opc_reals *list = &r->c->faces;
    const int each = r->n + 1, faces = list->n / each;
    if (list->n % each)
        return opc_fail(err, OPC_EUSER,
                        "faces lists %d numbers; each face of this plant is %d: g_1 .. g_%d, h",
                        list->n, each, r->n);
    for (int f = 0; f < faces; f++)
        for (int t = 0; t <= r->T; t++) {
            const int row = f * (r->T + 1) + t;
            memcpy(r->G + (size_t)row * (size_t)r->N + t * r->n, list->at + f * each,
                   (size_t)r->n * sizeof(double));
            r->h[row] = list->at[f * each + r->n];
        }
    r->limits.faces = faces * (r->T + 1);
    r->limits.G = r->G;
    r->limits.h = r->h;
    return OPC_OK;
}

static int read_limits(struct run *r, struct opc_err *err)
{
    const struct opc_ilc_config *c = r->c;
    int code = spread("action_low", &c->action_low, r->m, r->U, -INFINITY, r->u_low, err);
    if (!code)
        code = spread("action_high", &c->action_high, r->m, r->U, INFINITY, r->u_high, err);
    if (!code)
        code = spread("state_low", &c->state_low, r->n, r->N, -INFINITY, r->s_low, err);
    if (!code)
        code = spread("state_high", &c->state_high, r->n, r->N, INFINITY, r->s_high, err);
    if (!code)
        code = check_order("action_low", "action_high", r->u_low, r->u_high, r->m, err);
    if (!code)
        code = check_order("state_low", "state_high", r->s_low, r->s_high, r->n, err);
    if (!code)
        code = spread_faces(r, err);
    if (code)
        return code;
    r->limits.u_low = r->u_low;
    r->limits.u_high = r->u_high;
    r->limits.s_low = r->s_low;
    r->limits.s_high = r->s_high;
    r->limits.trust = c->trust;
    r->out->limited = c->action_low.n || c->action_high.n || c->state_low.n || c->state_high.n ||
                      c->faces.n || c->trust > 0.0;
    if (c->form == OPC_ILC_CONSTRAINED && !r->out->limited)
        return opc_fail(err, OPC_EUSER,
                        "form = constrained, but there is no bound; set one of action_low, "
                        "action_high, state_low, state_high, faces or trust");
    return OPC_OK;
}

static int read_weights(struct run *r, struct opc_err *err)
{
    if (r->c->weight_state.n == 0 || r->c->weight_action.n == 0)
        return opc_fail(err, OPC_EUSER, "%s is empty; one number or one for each is needed",
                        r->c->weight_state.n ? "weight_action" : "weight_state");
    const int code = spread("weight_state", &r->c->weight_state, r->n, r->N, 0.0, r->M, err);
    return code ? code : spread("weight_action", &r->c->weight_action, r->m, r->U, 0.0, r->W, err);
}

/* The reference, around where the plant starts. */
static int make_reference(struct run *r, struct opc_err *err)
{
    const struct opc_ilc_config *c = r->c;
    if (c->reference == OPC_REFERENCE_SWING) {
        for (int t = 0; t < r->T; t++)
            for (int j = 0; j < r->m; j++)
                r->u[t * r->m + j] = c->amplitude * sin(2 * PI * t * r->plant->dt / c->period);
        return opc_plant_try(r->plant, r->T, r->u, NULL, r->out->ref, err);
    }
    for (int t = 0; t <= r->T; t++) {
        const double at = PI * t / r->T;
        double *ref = r->out->ref + t * r->n;
        ref[0] = r->plant->s0[0] + c->amplitude * sin(at) * sin(at);
        ref[1] = c->amplitude * 2 * PI / (r->T * r->plant->dt) * sin(at) * cos(at);
    }
    return OPC_OK;
}

/* Xi = L Sigma L^T + sensor noise, Omega = drift: of the model of the first trial, which stays. */
static int make_covariances(struct run *r, struct opc_err *err)
{
    const size_t N = (size_t)r->N, columns = (size_t)(r->T * r->n);
    const double process = r->c->process_noise, sensor = r->c->sensor_noise, drift = r->c->drift;
    double *I = opc_alloc(columns * (size_t)r->n, sizeof *I);
    double *L = opc_alloc(N * columns, sizeof *L);
    int code = OPC_OK;
    if (!I || !L) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the noise of %d steps", r->T);
    } else {
        for (size_t i = 0; i < columns; i++)
            I[i * (size_t)r->n + i % (size_t)r->n] = process;
        opc_lift(r->n, r->n, r->T, r->A, I, L);
        opc_dense_mul_tb(r->N, (int)columns, r->N, L, L, r->Xi);
        for (size_t i = 0; i < N; i++) {
            r->Xi[i * N + i] += i < (size_t)r->n ? 0.0 : sensor * sensor; /* s_0 is known */
            r->Omega[i * N + i] = drift * drift;
        }
    }
    opc_free(I);
    opc_free(L);
    return code;
}

/* ---- the learned model ----------------------------------------------------------------------- */

static void to_unit(const struct run *r, const double *a, float *to)
{
    for (int j = 0; j < r->m; j++)
        to[j] =
            (float)(2.0 * (a[j] - r->plant->low[j]) / (r->plant->high[j] - r->plant->low[j]) - 1.0);
}

static int remember(struct run *r, const double *s, const double *u, struct opc_err *err)
{
    int code = opc_episodes_begin(r->past, s, err);
    for (int t = 0; t < r->T && !code; t++) {
        float a[OPC_PLANT_ACTIONS];
        to_unit(r, u + t * r->m, a);
        code = opc_episodes_append(r->past, a, 0.0, s + (t + 1) * r->n, false, err);
    }
    if (!code)
        opc_episodes_close(r->past);
    return code;
}

/* A model that knows nothing, and trials with random actions for it. */
static int begin_learning(struct run *r, int repeat, struct opc_err *err)
{
    const struct opc_ilc_config *c = r->c;
    const int episodes = c->random_trials + c->iterations;
    const uint64_t seed = (uint64_t)c->seed;
    struct opc_ensemble_config e;
    if (!r->plant->low)
        return opc_fail(err, OPC_EUSER,
                        "form = learned needs a plant whose actions have a range to draw from: "
                        "plant = pendulum");
    int code = opc_section_defaults(&opc_ensemble_section, &e, err);
    e.members = e.elites = c->members;
    e.hidden = c->hidden;
    e.weight_decay = (struct opc_reals){1, {1e-5}};
    e.batch_size = 64;
    e.max_epochs = c->passes;
    opc_episodes_destroy(r->past);
    opc_predictor_destroy(r->model);
    r->past = NULL;
    r->model = NULL;
    if (!code)
        code = opc_episodes_create(r->n, r->m, episodes * r->T, episodes, &r->past, err);
    if (!code)
        code = opc_ensemble_make(&e, r->n, r->m, opc_pool_threads(r->pool), seed, (uint32_t)repeat,
                                 &r->model, err);
    for (int k = 0; k < c->random_trials && !code; k++) {
        struct opc_rng rng = opc_rng_stream(seed, OPC_USE_RANDOM, (uint32_t)repeat, (uint32_t)k);
        for (int t = 0; t < r->T; t++)
            for (int j = 0; j < r->m; j++) {
                const double span = r->plant->high[j] - r->plant->low[j];
                r->u[t * r->m + j] = t % HOLD ? r->u[(t - 1) * r->m + j]
                                              : r->plant->low[j] + span * opc_rng_unit_double(&rng);
            }
        struct opc_rng noise =
            opc_rng_stream(seed, OPC_USE_ENV, (uint32_t)repeat, (uint32_t)(1 << 20 | k));
        code = opc_plant_try(r->plant, r->T, r->u, &noise, r->s, err);
        if (!code)
            code = remember(r, r->s, r->u, err);
    }
    return code;
}

static int learn(struct run *r, int repeat, int trial, struct opc_err *err)
{
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = (uint64_t)r->c->seed,
                                      .epoch = (uint32_t)repeat, .index = (uint32_t)trial,
                                      .pool = r->pool};
    int code = remember(r, r->s, r->u, err);
    if (code)
        return code;
    opc_episodes_flatten(r->past, r->sa, r->y);
    code =
        opc_predictor_fit(r->model, opc_episodes_steps(r->past), r->sa, r->y, &plan, &report, err);
    if (code)
        return code;
    r->out->holdout = 0.0;
    for (int i = 0; i < r->c->members; i++)
        r->out->holdout += report.holdout[i] / r->c->members;
    return opc_linearise_learned(r->model, r->T, r->plant->low, r->plant->high, r->s, r->u, r->A,
                                 r->B, r->pool, err);
}

/* ---- trials ---------------------------------------------------------------------------------- */

static double rms(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum / n);
}

/* A and B around the last trial, where they are not already what they will stay. */
static int find_model(struct run *r, int repeat, int trial, struct opc_err *err)
{
    const int form = r->c->form;
    int code;
    if (trial > 0 && (form == OPC_ILC_LINEAR || form == OPC_ILC_STOCHASTIC || r->plant->constant))
        return OPC_OK;
    if (form == OPC_ILC_LEARNED)
        code = learn(r, repeat, trial, err);
    else
        code =
            opc_linearise(r->n, r->m, r->T, r->plant->model, r->plant, r->s, r->u, r->A, r->B, err);
    if (!code)
        code = opc_ilc_model(r->ilc, r->A, r->B, err);
    if (!code && form == OPC_ILC_STOCHASTIC)
        code = make_covariances(r, err);
    return code;
}

/* next from u, with d as it was seen or as the filter believes it to be. */
static int update(struct run *r, bool filtered, struct opc_err *err)
{
    opc_ilc_disturbance(r->ilc, r->s, r->u, r->d);
    if (filtered) {
        const int code = opc_ilc_filter_see(r->filter, r->Omega, r->Xi, r->d, err);
        if (code)
            return code;
        memcpy(r->d, r->filter->d, (size_t)r->N * sizeof *r->d);
    }
    if (r->out->limited) {
        struct opc_ilc_kept kept;
        const int code =
            opc_ilc_update_within(r->ilc, r->out->ref, r->d, r->u, &r->limits, r->next, &kept, err);
        if (code)
            return code;
        const struct opc_qp_kkt *k = &kept.kkt;
        r->out->kkt = fmax(
            r->out->kkt, fmax(fmax(k->stationarity, k->primal), fmax(k->dual, k->complementarity)));
        if (kept.qp.active > r->out->active)
            r->out->active = kept.qp.active;
        return OPC_OK;
    }
    opc_ilc_predict(r->ilc, r->u, r->d, r->e);
    for (int i = 0; i < r->N; i++)
        r->e[i] = r->out->ref[i] - r->e[i];
    opc_ilc_update(r->ilc, r->e, r->u, r->next);
    return OPC_OK;
}

/* The update that eq. 5 gives: how far is ours from it? */
static int compare_with_opc(struct run *r, struct opc_err *err)
{
    struct opc_ilc_trials *out = r->out;
    if (r->c->form != OPC_ILC_LINEAR || !r->plant->constant || out->limited)
        return OPC_OK;
    const int code = opc_ilc_by_opc(r->n, r->m, r->T, r->A, r->B, r->s, r->u, out->ref, r->M, r->W,
                                    r->other, err);
    if (code)
        return code;
    if (isnan(out->by_opc))
        out->by_opc = 0.0;
    for (int j = 0; j < r->U; j++) {
        out->by_opc = fmax(out->by_opc, fabs(r->other[j] - r->next[j]));
        out->largest = fmax(out->largest, fabs(r->next[j]));
    }
    return OPC_OK;
}

static void note_bounds(struct run *r)
{
    for (int i = 0; i < r->N; i++)
        r->out->beyond =
            fmax(r->out->beyond, fmax(r->clean[i] - r->s_high[i], r->s_low[i] - r->clean[i]));
}

/* One trial of r->u into r->s, its errors noted under its number; seen may be NULL. */
static int try_once(struct run *r, int repeat, int trial, double *error, double *seen,
                    struct opc_err *err)
{
    struct opc_rng noise =
        opc_rng_stream((uint64_t)r->c->seed, OPC_USE_ENV, (uint32_t)repeat, (uint32_t)trial);
    int code = opc_plant_try(r->plant, r->T, r->u, &noise, r->s, err);
    if (!code)
        code = opc_plant_try(r->plant, r->T, r->u, NULL, r->clean, err);
    if (code)
        return code;
    error[trial] = rms(r->N, r->out->ref, r->clean);
    const double as_seen = rms(r->N, r->out->ref, r->s);
    if (seen)
        seen[trial] = as_seen;
    if (!isfinite(as_seen) || as_seen > 1e100)
        return opc_fail(err, OPC_EDIVERGED,
                        "the tracking error grew to %g in trial %d; raise weight_action, or set "
                        "trust, so that actions change less from trial to trial",
                        as_seen, trial);
    return OPC_OK;
}

static int one_repeat(struct run *r, int repeat, bool filtered, double *error, double *seen,
                      struct opc_err *err)
{
    struct opc_ilc_trials *out = r->out;
    const bool shown = repeat == 0 && error == out->rms;
    int code = OPC_OK;
    if (r->filter)
        r->filter->known = false;
    if (r->c->form == OPC_ILC_LEARNED)
        code = begin_learning(r, repeat, err);
    memset(r->u, 0, (size_t)r->U * sizeof *r->u);
    for (int trial = 0; trial < out->trials && !code; trial++) {
        code = try_once(r, repeat, trial, error, seen, err);
        if (code)
            break;
        if (shown) {
            memcpy(out->s + (size_t)(trial * r->N), r->s, (size_t)r->N * sizeof *r->s);
            memcpy(out->clean + (size_t)(trial * r->N), r->clean, (size_t)r->N * sizeof *r->s);
            memcpy(out->u + (size_t)(trial * r->U), r->u, (size_t)r->U * sizeof *r->u);
        }
        if (trial + 1 == out->trials) {
            if (seen)
                note_bounds(r);
            break;
        }
        code = find_model(r, repeat, trial, err);
        if (!code)
            code = update(r, filtered, err);
        if (!code && shown)
            code = compare_with_opc(r, err);
        if (code)
            return opc_within(err, "after trial %d", trial);
        memcpy(r->u, r->next, (size_t)r->U * sizeof *r->u);
        if (r->watch && r->watch->progress)
            r->watch->progress(r->watch->ctx,
                               (repeat + (trial + 1.0) / out->trials) / r->c->repeats,
                               FORM[r->c->form]);
    }
    return code;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void opc_ilc_trials_free(struct opc_ilc_trials *t)
{
    if (!t)
        return;
    opc_free(t->ref);
    opc_free(t->s);
    opc_free(t->clean);
    opc_free(t->u);
    opc_free(t->seen);
    opc_free(t->rms);
    opc_free(t->plain);
    opc_free(t);
}

static int make_trials(const struct opc_ilc_config *c, const struct opc_plant *p,
                       struct opc_ilc_trials **out, struct opc_err *err)
{
    struct opc_ilc_trials *t = opc_alloc(1, sizeof *t);
    if (!t)
        goto full;
    *t = (struct opc_ilc_trials){.config = *c,
                                 .n = p->n,
                                 .m = p->m,
                                 .T = c->steps,
                                 .trials = c->iterations + 1,
                                 .dt = p->dt,
                                 .action_name = p->action_name,
                                 .by_opc = (double)NAN};
    memcpy(t->state_name, p->state_name, sizeof t->state_name);
    const size_t trials = (size_t)t->trials, all = trials * (size_t)c->repeats;
    t->ref = opc_alloc((size_t)((t->T + 1) * t->n), sizeof(double));
    t->s = opc_alloc(trials * (size_t)((t->T + 1) * t->n), sizeof(double));
    t->clean = opc_alloc(trials * (size_t)((t->T + 1) * t->n), sizeof(double));
    t->u = opc_alloc(trials * (size_t)(t->T * t->m), sizeof(double));
    t->seen = opc_alloc(all, sizeof(double));
    t->rms = opc_alloc(all, sizeof(double));
    if (c->form == OPC_ILC_STOCHASTIC)
        t->plain = opc_alloc(all, sizeof(double));
    if (!t->ref || !t->s || !t->clean || !t->u || !t->seen || !t->rms ||
        (c->form == OPC_ILC_STOCHASTIC && !t->plain))
        goto full;
    *out = t;
    return OPC_OK;
full:
    opc_ilc_trials_free(t);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for %d trials of %d steps",
                    c->iterations + 1, c->steps);
}

static int allocate(struct run *r, struct opc_err *err)
{
    const size_t n = (size_t)r->n, m = (size_t)r->m, T = (size_t)r->T;
    const size_t N = (size_t)r->N, U = (size_t)r->U;
    const size_t faces = (size_t)r->c->faces.n / (n + 1) * (T + 1);
    const struct {
        double **at;
        size_t count;
    } part[] = {
        {&r->M, N},         {&r->W, U},         {&r->u_low, U}, {&r->u_high, U}, {&r->s_low, N},
        {&r->s_high, N},    {&r->h, faces},     {&r->s, N},     {&r->clean, N},  {&r->e, N},
        {&r->d, N},         {&r->u, U},         {&r->next, U},  {&r->other, U},  {&r->A, T * n * n},
        {&r->B, T * n * m}, {&r->G, faces * N},
    };
    bool allocated = true;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        allocated = (*part[i].at = opc_alloc(part[i].count, sizeof(double))) && allocated;
    if (allocated && r->c->form == OPC_ILC_STOCHASTIC) {
        r->Omega = opc_alloc(N * N, sizeof(double));
        r->Xi = opc_alloc(N * N, sizeof(double));
        allocated = r->Omega && r->Xi;
    }
    if (allocated && r->c->form == OPC_ILC_LEARNED) {
        const size_t rows = (size_t)(r->c->random_trials + r->c->iterations) * T;
        r->sa = opc_alloc(rows * (n + m), sizeof(float));
        r->y = opc_alloc(rows * (n + 1), sizeof(float));
        allocated = r->sa && r->y;
    }
    if (!allocated)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for trials of %d steps; lower steps",
                        r->T);
    return OPC_OK;
}

static void release(struct run *r)
{
    void *all[] = {r->M,  r->W, r->u_low, r->u_high, r->s_low, r->s_high, r->G,
                   r->h,  r->s, r->e,     r->clean,  r->next,  r->other,  r->Omega,
                   r->Xi, r->d, r->u,     r->A,      r->B,     r->sa,     r->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        opc_free(all[i]);
    opc_ilc_destroy(r->ilc);
    opc_ilc_filter_destroy(r->filter);
    opc_episodes_destroy(r->past);
    opc_predictor_destroy(r->model);
    opc_plant_close(r->plant);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int prepare(struct run *r, struct opc_err *err)
{
    const struct opc_ilc_config *c = r->c;
    const struct opc_plant_plan plan = {.kind = (enum opc_plant_kind)c->plant,
                                        .gravity = c->model_gravity,
                                        .torque = c->model_torque,
                                        .process_noise = c->process_noise,
                                        .sensor_noise = c->sensor_noise};
    int code = opc_plant_open(&plan, &r->plant, err);
    if (code)
        return code;
    r->n = r->plant->n;
    r->m = r->plant->m;
    r->T = c->steps;
    r->N = (r->T + 1) * r->n;
    r->U = r->T * r->m;
    code = make_trials(c, r->plant, &r->out, err);
    if (!code)
        code = allocate(r, err);
    if (!code)
        code = read_weights(r, err);
    if (!code)
        code = read_limits(r, err);
    if (!code)
        code = make_reference(r, err);
    if (!code)
        code = opc_ilc_create(r->n, r->m, r->T, r->M, r->W, &r->ilc, err);
    if (!code && c->form == OPC_ILC_STOCHASTIC)
        code = opc_ilc_filter_create(r->N, &r->filter, err);
    return code;
}

int opc_ilc_run(const struct opc_ilc_config *c, struct opc_pool *pool,
                const struct opc_ilc_watch *watch, struct opc_ilc_trials **out, struct opc_err *err)
{
    struct run r = {.c = c, .pool = pool, .watch = watch};
    int code = prepare(&r, err);
    for (int k = 0; k < c->repeats && !code; k++) {
        const size_t at = (size_t)k * (size_t)r.out->trials;
        code = one_repeat(&r, k, r.filter != NULL, r.out->rms + at, r.out->seen + at, err);
        if (!code && r.out->plain) /* the same noise once more, each trial believed as it is */
            code = one_repeat(&r, k, false, r.out->plain + at, NULL, err);
    }
    release(&r);
    if (code) {
        opc_ilc_trials_free(r.out);
        return code;
    }
    *out = r.out;
    return OPC_OK;
}
