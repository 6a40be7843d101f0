/* SPDX-License-Identifier: MIT */
/* The probabilistic ensemble: gradient steps against golden numbers, whole fits against a plain
 * retelling of algorithms.md 1.5, predictions against the network in double, and bits. */
#include "model/ensemble_private.h"

#include "num/normal.h"
#include "test_net.h"

enum { P = OPC_PANEL, MAX_N = 400 };

/* ---- a model and data ----------------------------------------------------------------------- */

struct setup {
    int obs, act, threads;
    uint64_t seed;
    struct opc_ensemble_config config;
};

struct model {
    struct setup setup;
    struct opc_pool *pool;
    struct opc_predictor *p;
    struct opc_ensemble *e; /* the same */
    struct parts parts;
};

struct data {
    int n, in, dim;
    float *sa, *y;
};

static struct setup setup_of(int obs, int act)
{
    struct setup s = {.obs = obs, .act = act, .threads = 1, .seed = 3};
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_ensemble_section, &s.config, &err), &err);
    s.config.members = 3;
    s.config.elites = 2;
    s.config.hidden = (struct opc_ints){2, {8, 9}};
    s.config.weight_decay = (struct opc_reals){1, {1e-4}};
    s.config.batch_size = 20;
    s.config.learning_rate = 0.01;
    return s;
}

static struct model *model_open(const struct setup *s)
{
    struct model *m = calloc(1, sizeof *m);
    struct opc_err err = {0};
    assert_non_null(m);
    m->setup = *s;
    m->pool = pool_of(s->threads);
    assert_ok(opc_ensemble_make(&s->config, s->obs, s->act, s->threads, s->seed, 9, &m->p, &err),
              &err);
    m->e = opc_ensemble_of(m->p);
    assert_ok(m->p->type->state(m->p, note_part, &m->parts, &err), &err);
    return m;
}

static void model_close(struct model *m)
{
    opc_predictor_destroy(m->p);
    opc_pool_destroy(m->pool);
    free(m);
}

/* y = a smooth function of all inputs, with a little noise; `stream` names the rows. */
static struct data data_of(int obs, int act, int n, uint32_t stream)
{
    struct data d = {.n = n, .in = obs + act, .dim = obs + 1};
    struct opc_rng r = test_stream(stream);
    d.sa = floats_any(&r, (size_t)(n * d.in));
    d.y = floats_of((size_t)(n * d.dim), 0.0f);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < obs; j++)
            d.sa[i * d.in + j] = 2.0f * d.sa[i * d.in + j] + (float)j;
        for (int j = 0; j < d.dim; j++) {
            float sum = 0.0f;
            for (int k = 0; k < d.in; k++)
                sum += d.sa[i * d.in + k] * (float)(1 + (j + 2 * k) % 3) * 0.4f;
            d.y[i * d.dim + j] = sinf(sum) + 0.05f * any_float(&r);
        }
    }
    return d;
}

static void data_free(struct data *d)
{
    free(d->sa);
    free(d->y);
}

static int fit_as(struct model *m, const struct data *d, uint32_t epoch,
                  struct opc_fit_report *report, struct opc_err *err)
{
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = 77, .epoch = epoch,
                                      .index = 2, .pool = m->pool};
    return opc_predictor_fit(m->p, d->n, d->sa, d->y, &plan, report, err);
}

static struct opc_fit_report fit(struct model *m, const struct data *d, uint32_t epoch)
{
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    struct opc_err err = {0};
    assert_ok(fit_as(m, d, epoch, &report, &err), &err);
    return report;
}

static struct opc_trainer *trainer_of(struct model *m, const struct data *d)
{
    struct opc_trainer *t = NULL;
    struct opc_err err = {0};
    assert_ok(opc_trainer_create(m->p, d->n, d->sa, d->y, m->pool, &t, &err), &err);
    return t;
}

/* Bounds of the log-variance where they begin, with softplus in double. */
static double bounded(double upper, double lower, double raw)
{
    const double l1 = upper - log1p(exp(upper - raw));
    return lower + log1p(exp(l1 - lower));
}

/* What member `member` says about one row: mean [dim] of [s' - s, reward], and deviations. */
static void oracle(const struct model *m, int member, const float *sa, double *mean, double *std)
{
    const struct opc_ensemble *e = m->e;
    double *theta = plain_get(e->net, e->net->param), x[NET_WIDEST], out[NET_WIDEST];
    for (int i = 0; i < e->in; i++)
        x[i] = ((double)sa[i] - (double)e->scaler->mean[i]) * (double)e->scaler->inverse[i];
    net_row(&e->net->shape, theta + (size_t)member * plain_count(&e->net->shape), x, out, NULL);
    for (int j = 0; j < e->dim; j++) {
        mean[j] = out[j];
        if (std)
            std[j] = exp(0.5 * bounded((double)opc_ensemble_upper(e, member)[j],
                                       (double)opc_ensemble_lower(e, member)[j], out[e->dim + j]));
    }
    free(theta);
}

/* ---- golden numbers ----------------------------------------------------------------------------
 * Tolerances as in test_sac.c, and for the same reasons. The loss, along whose gradient the steps
 * go, shows most: 2.4e-6 after three. */

static void compare(const struct golden *g, const char *name, int step, const double *got)
{
    const struct golden_entry *e = golden_find(g, name, step);
    double max = 0.0;
    for (int i = 0; i < e->rows * e->columns; i++)
        max = fabs(e->at[i]) > max ? fabs(e->at[i]) : max;
    if (step >= 0)
        assert_golden(e, got, 5e-6, 1.0);
    else
        assert_golden(e, got, 1e-3, 1e-3 * max);
}

static void compare_all(const struct golden *g, const struct model *m, int step, const float *net,
                        const float *bound)
{
    const size_t n = (size_t)(m->e->sets * 2 * m->e->dim);
    double *plain = plain_get(m->e->net, net), limits[NET_WIDEST] = {0};
    compare(g, step < 0 ? (net == m->e->adam->m ? "weights.m" : "weights.v") : "weights", step,
            plain);
    free(plain);
    for (size_t i = 0; i < n; i++)
        limits[i] = (double)bound[i];
    if (step >= 0 || m->setup.config.bounds != OPC_BOUNDS_FIXED)
        compare(g, step < 0 ? (net == m->e->adam->m ? "limits.m" : "limits.v") : "limits", step,
                limits);
}

static void follow_golden(const char *file, int threads)
{
    struct golden *g = golden_read(file);
    struct setup s = setup_of(golden_int(g, "obs"), golden_int(g, "act"));
    const struct golden_entry *hidden = golden_find(g, "hidden", -1);
    const struct golden_entry *decay = golden_find(g, "decay", -1);
    s.threads = threads;
    s.config.members = golden_int(g, "members");
    s.config.hidden.n = hidden->columns;
    for (int i = 0; i < hidden->columns; i++)
        s.config.hidden.at[i] = (int)hidden->at[i];
    s.config.weight_decay.n = decay->columns;
    for (int i = 0; i < decay->columns; i++)
        s.config.weight_decay.at[i] = decay->at[i];
    s.config.decay_biases = golden_int(g, "decay_biases");
    s.config.adam = golden_int(g, "torch");
    s.config.bounds = golden_int(g, "bounds");
    s.config.bound_penalty = golden_real(g, "bound_penalty");
    s.config.batch_size = golden_int(g, "batch");
    s.config.learning_rate = golden_real(g, "rate");
    struct model *m = model_open(&s);
    struct opc_ensemble *e = m->e;

    struct data d = {.n = golden_int(g, "rows"), .in = e->in, .dim = e->dim};
    d.sa = floats_of((size_t)(d.n * d.in), 0.0f);
    d.y = floats_of((size_t)(d.n * d.dim), 0.0f);
    for (int i = 0; i < d.n * d.in; i++)
        d.sa[i] = (float)golden_find(g, "sa", -1)->at[i];
    for (int i = 0; i < d.n * d.dim; i++)
        d.y[i] = (float)golden_find(g, "y", -1)->at[i];
    const struct golden_entry *train = golden_find(g, "train", -1);
    int rows[MAX_N];
    for (int i = 0; i < train->columns; i++)
        rows[i] = (int)train->at[i];
    opc_scaler_fit(e->scaler, train->columns, d.sa, (size_t)d.in, rows, false);
    for (int i = 0; i < d.in; i++) {
        assert_near((double)e->scaler->mean[i], golden_find(g, "scale.mean", -1)->at[i], 1e-6);
        assert_near((double)e->scaler->inverse[i], golden_find(g, "scale.inverse", -1)->at[i],
                    1e-6);
    }
    plain_set(e->net, golden_find(g, "weights", -1)->at, e->net->param);
    for (int i = 0; i < e->sets * 2 * e->dim; i++)
        e->bound[i] = (float)golden_find(g, "limits", -1)->at[i];

    struct opc_trainer *t = trainer_of(m, &d);
    const struct golden_entry *sizes = golden_find(g, "sizes", -1);
    for (int k = 0; k < sizes->columns; k++) {
        const struct golden_entry *index = golden_find(g, "rows", k);
        for (int i = 0; i < index->rows * index->columns; i++)
            rows[i] = (int)index->at[i];
        const double loss = opc_trainer_step(t, (int)sizes->at[k], rows, (size_t)index->columns);
        assert_golden(golden_find(g, "loss", k), &loss, 5e-6, 1.0);
        compare_all(g, m, k, e->net->param, e->bound);
    }
    compare_all(g, m, -1, e->adam->m, e->bound_adam->m);
    compare_all(g, m, -1, e->adam->v, e->bound_adam->v);
    opc_trainer_destroy(t);
    data_free(&d);
    model_close(m);
    golden_free(g);
}

static void steps_agree_with_an_independent_implementation(void **state)
{
    (void)state;
    follow_golden("ensemble.txt", 1);
    follow_golden("ensemble.txt", 2); /* two members whole, one cut */
}

static void so_they_do_with_the_settings_of_mbrl_lib(void **state)
{
    (void)state;
    follow_golden("ensemble_mbrl.txt", 2); /* fixed bounds, torch's Adam, biases decay */
}

static void so_they_do_with_bounds_for_each_member(void **state)
{
    (void)state;
    follow_golden("ensemble_member.txt", 2);
}

/* algorithms.md 1.3 */
static void soft_bounds_give_the_reference_values(void **state)
{
    (void)state;
    const float raw[] = {-15.0f, -10.0f, -3.0f, 0.0f, 0.5f, 5.0f};
    const double want[] = {-9.993285, -9.306867, -3.028811, -0.474004, -0.193092, 0.488980};
    const float upper = 0.5f, lower = -10.0f;
    float panel[P] = {0}, logvar[P];
    struct opc_arena scratch;
    struct opc_err err = {0};
    memcpy(panel, raw, sizeof raw);
    assert_ok(opc_arena_create(opc_gauss_need(1), &scratch, &err), &err);
    opc_gauss_bound(1, &upper, &lower, panel, logvar, &scratch);
    for (int i = 0; i < 6; i++) {
        assert_near((double)logvar[i], want[i], 1.5e-6);
        assert_near(bounded(0.5, -10.0, (double)raw[i]), want[i], 1e-6); /* our oracle, too */
    }
    opc_arena_destroy(&scratch);
}

/* ---- a whole fit, told again -------------------------------------------------------------------
 * algorithms.md 1.5 in its plainest form, with only the gradient step taken from the library. */

struct retold {
    int n_hold, n_train, passes, steps;
    double share; /* of rows that are new since the last fit among those drawn */
    double holdout[OPC_MEMBERS], loss;
    int elite[OPC_MEMBERS];
    int kept_apart; /* passes after which some members were kept and others not */
    int small;      /* improvements below the threshold that lowered a best error (whole) */
    bool restored;  /* the last pass's weights were not the ones kept */
};

static void shuffle(struct opc_rng *r, int n, int *at)
{
    for (int i = n - 1; i > 0; i--) {
        const int j = any_below(r, i + 1), keep = at[i];
        at[i] = at[j];
        at[j] = keep;
    }
}

static void holdout_of(const struct model *m, const struct data *d, int n, const int *rows,
                       double *error)
{
    for (int k = 0; k < m->p->members; k++) {
        error[k] = 0.0;
        for (int i = 0; i < n; i++) {
            double mean[NET_WIDEST] = {0};
            oracle(m, k, d->sa + rows[i] * d->in, mean, NULL);
            for (int j = 0; j < d->dim; j++)
                error[k] += pow(mean[j] - (double)d->y[rows[i] * d->dim + j], 2.0) / (n * d->dim);
        }
    }
}

/* The rows that each member trains on, into t->n_train of index for each. New rows go to the front,
 * and with new_ratio above their share a coin decides which are drawn. */
static void retell_bootstrap(const struct model *m, uint32_t epoch, int *train, int *index,
                             struct opc_rng *own, struct retold *t)
{
    const struct opc_ensemble_config *c = &m->setup.config;
    const long seen = m->e->rows;
    int fresh = 0;
    for (int i = 0; c->new_ratio > 0 && i < t->n_train; i++)
        if (train[i] >= seen) {
            const int keep = train[i];
            train[i] = train[fresh];
            train[fresh++] = keep;
        }
    const bool prefers = fresh > 0 && fresh < t->n_train && c->new_ratio * t->n_train > fresh;
    for (int k = 0; k < c->members; k++) {
        int *rows = index + k * t->n_train;
        own[k] = opc_rng_stream(77, OPC_USE_FIT, epoch, 2 * OPC_MEMBERS + (uint32_t)k);
        for (int i = 0; i < t->n_train; i++) {
            int from = 0, of = t->n_train;
            if (prefers && opc_rng_unit_double(&own[k]) < c->new_ratio)
                of = fresh;
            else if (prefers)
                of -= from = fresh;
            rows[i] = train[c->bootstrap ? from + any_below(&own[k], of) : i];
            t->share += (double)(rows[i] >= seen) / (c->members * t->n_train);
        }
        if (!c->bootstrap)
            shuffle(&own[k], t->n_train, rows);
    }
}

/* The members by their errors; the rank of one is the number of those that are better. */
static void retell_elites(int members, struct retold *t)
{
    for (int k = 0; k < members; k++) {
        int rank = 0;
        for (int j = 0; j < members; j++)
            rank += t->holdout[j] < t->holdout[k];
        t->elite[rank] = k;
    }
}

static struct retold retell(struct model *m, const struct data *d, uint32_t epoch)
{
    const struct opc_ensemble_config *c = &m->setup.config;
    struct opc_ensemble *e = m->e;
    const int members = c->members;
    const size_t each = e->net->each;
    struct retold t = {0};
    int split[MAX_N] = {0};
    struct opc_rng r = opc_rng_stream(77, OPC_USE_SPLIT, epoch, 2), own[OPC_MEMBERS];
    assert_true(d->n <= MAX_N);

    const bool apart = c->holdout_ratio > 0; /* else training rows are measured */
    t.n_hold = apart ? (int)floor(c->holdout_ratio * d->n) : d->n;
    t.n_hold = t.n_hold > c->max_holdout ? c->max_holdout : t.n_hold;
    t.n_train = apart ? d->n - t.n_hold : d->n;
    int *train = split + (apart ? t.n_hold : 0);
    for (int i = 0; i < d->n; i++)
        split[i] = i;
    shuffle(&r, d->n, split);
    opc_scaler_fit(e->scaler, t.n_train, d->sa, (size_t)d->in, train, false);

    int *index = calloc((size_t)(members * t.n_train), sizeof *index);
    float *kept = floats_of((size_t)members * each, 0.0f);
    assert_non_null(index);
    retell_bootstrap(m, epoch, train, index, own, &t);

    double best[OPC_MEMBERS], error[OPC_MEMBERS];
    for (int k = 0; k < members; k++)
        best[k] = 1e10;
    if (c->best == OPC_BEST_INCOMING)
        holdout_of(m, d, t.n_hold, split, best);
    memcpy(kept, e->net->param, (size_t)members * each * sizeof *kept);
    struct opc_trainer *trainer = trainer_of(m, d);
    bool spent = false;
    for (int since = 0, at = 0; since <= c->patience && !spent;) {
        int steps = 0;
        t.loss = 0.0;
        do {
            const int here = t.n_train - at < c->batch_size ? t.n_train - at : c->batch_size;
            t.loss += opc_trainer_step(trainer, here, index + at, (size_t)t.n_train) / members;
            t.steps++;
            steps++;
            if ((at += c->batch_size) >= t.n_train) {
                at = 0;
                t.passes++;
                for (int k = 0; k < members; k++)
                    shuffle(&own[k], t.n_train, index + k * t.n_train);
            }
            spent = (c->max_epochs && t.passes == c->max_epochs) ||
                    (c->max_steps && t.steps == c->max_steps);
        } while (!spent && (c->holdout_every ? steps < c->holdout_every : at > 0));
        t.loss /= steps;
        holdout_of(m, d, t.n_hold, split, error);
        int improved = 0;
        for (int k = 0; k < members; k++)
            if ((best[k] - error[k]) / best[k] > c->min_improvement) {
                best[k] = error[k];
                improved++;
                if (c->snapshot == OPC_SNAPSHOT_MEMBER)
                    memcpy(kept + (size_t)k * each, opc_mlp_member(e->net, k), each * sizeof *kept);
            }
        if (improved && c->snapshot == OPC_SNAPSHOT_WHOLE) {
            memcpy(kept, e->net->param, (size_t)members * each * sizeof *kept);
            for (int k = 0; k < members; k++)
                if (error[k] < best[k]) {
                    best[k] = error[k];
                    t.small++;
                }
        }
        t.kept_apart += improved > 0 && improved < members;
        since = improved ? 0 : since + 1;
    }
    opc_trainer_destroy(trainer);
    t.restored = memcmp(e->net->param, kept, (size_t)members * each * sizeof *kept) != 0;
    memcpy(e->net->param, kept, (size_t)members * each * sizeof *kept);
    holdout_of(m, d, t.n_hold, split, t.holdout);
    if (c->snapshot == OPC_SNAPSHOT_WHOLE)
        memcpy(t.holdout, best, sizeof best);
    retell_elites(members, &t);
    free(index);
    free(kept);
    return t;
}

/* Fits one model by the library and a twin by the retelling, `fits` times on different data; with
 * new_ratio there are 20 more rows each time. */
static struct retold fit_twice(const struct setup *s, int n, int fits)
{
    struct model *m = model_open(s), *twin = model_open(s);
    struct retold t = {0};
    for (uint32_t k = 0; k < (uint32_t)fits; k++) {
        const int more = s->config.new_ratio > 0 ? 20 * (int)k : 0;
        struct data d = data_of(s->obs, s->act, n + more, 50 + k);
        const struct opc_fit_report report = fit(m, &d, k);
        t = retell(twin, &d, k);
        assert_int_equal(report.passes, t.passes);
        assert_int_equal(report.steps, t.steps);
        assert_near(report.train_loss, t.loss, 1e-12);
        double upper = 0.0, lower = 0.0;
        for (int i = 0; i < m->e->sets; i++)
            for (int j = 0; j < d.dim; j++) {
                upper += 0.5 * (double)opc_ensemble_upper(m->e, i)[j] / (m->e->sets * d.dim);
                lower += 0.5 * (double)opc_ensemble_lower(m->e, i)[j] / (m->e->sets * d.dim);
            }
        assert_near(report.log_std_max, upper, 1e-12);
        assert_near(report.log_std_min, lower, 1e-12);
        for (int i = 0; i < s->config.members; i++)
            assert_near(report.holdout[i], t.holdout[i], 1e-5 * t.holdout[i]);
        for (int i = 0; i < s->config.elites; i++)
            assert_int_equal(m->p->elite[i], t.elite[i]);
        memcpy(twin->p->elite, m->p->elite,
               sizeof m->p->elite); /* beyond the elites, as they are */
        twin->e->fits++;
        twin->e->rows = d.n;
        unsigned char *told = parts_copy(&twin->parts);
        assert_parts_are(&m->parts, told);
        free(told);
        data_free(&d);
    }
    model_close(m);
    model_close(twin);
    return t;
}

static void a_fit_keeps_each_member_s_best_and_stops_by_patience(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    s.config.members = 5;
    s.config.elites = 3;
    const struct retold t = fit_twice(&s, 120, 2);
    assert_int_equal(t.n_hold, 24);
    assert_true(t.passes > 7);
    assert_true(t.kept_apart > 0);
    assert_true(t.restored);
}

static void patience_and_improvement_decide_when_to_stop(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    int passes[3];
    for (int i = 0; i < 3; i++) {
        s.config.patience = i == 0 ? 0 : 3;
        s.config.min_improvement = i == 2 ? 0.2 : 0.01;
        passes[i] = fit_twice(&s, 100, 1).passes;
    }
    assert_true(passes[0] < passes[1]);
    assert_true(passes[2] < passes[1]);
}

static void max_epochs_ends_a_fit_and_still_restores(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    s.config.max_epochs = 3;
    assert_int_equal(fit_twice(&s, 100, 2).passes, 3);
    s.config.max_epochs = 1;
    s.config.max_holdout = 7;
    assert_int_equal(fit_twice(&s, 100, 1).n_hold, 7);
}

/* As mbrl-lib does it: what is measured is what is trained on. */
static void without_a_holdout_set_training_rows_are_measured(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    s.config.holdout_ratio = 0;
    s.config.max_epochs = 6;
    for (int most = 0; most < 2; most++) {
        s.config.max_holdout = most ? 30 : 5000;
        const struct retold t = fit_twice(&s, 100, 2);
        assert_int_equal(t.n_train, 100);
        assert_int_equal(t.n_hold, most ? 30 : 100);
    }
    s.config.new_ratio = 0.6;
    fit_twice(&s, 100, 2);
}

/* Patience in gradient steps: at most `patience` + 1 measurements without an improvement. */
static void the_holdout_is_measured_every_few_steps(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    s.config.holdout_every = 7; /* a pass has 4 steps */
    const struct retold t = fit_twice(&s, 100, 2);
    assert_int_equal(t.steps % 7, 0);
    assert_int_equal(t.passes, t.steps / 4);
    assert_true(t.steps > 7 * 6);
    s.config.max_epochs = 3; /* still ends it, wherever the measurements are */
    assert_int_equal(fit_twice(&s, 100, 2).steps, 12);
}

static void a_budget_of_steps_ends_a_fit_and_still_restores(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    const int budget[] = {1, 3, 4, 13}, every[] = {0, 2};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            s.config.max_steps = budget[i];
            s.config.holdout_every = every[k];
            assert_int_equal(fit_twice(&s, 100, 2).steps, budget[i]);
        }
}

static void new_rows_are_drawn_more_often(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    s.config.members = 5;
    s.config.max_steps = 20;
    s.config.new_ratio = 0.6; /* 20 of 140 are new in the third fit */
    assert_near(fit_twice(&s, 100, 3).share, 0.6, 0.08);
    s.config.new_ratio = 0.05; /* less than their share: all rows alike */
    assert_near(fit_twice(&s, 100, 3).share, 20.0 / 140, 0.06);
    assert_near(fit_twice(&s, 100, 1).share, 1.0, 1e-9); /* in the first fit all rows are new */
}

static void without_bootstrap_each_row_is_seen_once_a_pass(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    s.config.bootstrap = false;
    s.config.max_epochs = 4;
    fit_twice(&s, 100, 2);
}

static void a_whole_snapshot_is_taken_when_any_member_improved(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    s.config.members = 5;
    s.config.elites = 4;
    s.config.snapshot = OPC_SNAPSHOT_WHOLE;
    s.config.best = OPC_BEST_INCOMING;
    s.config.min_improvement = 0.1;
    const struct retold t = fit_twice(&s, 100, 2);
    assert_true(t.small > 0); /* the elementwise minimum was more than the improvements */
    assert_true(t.restored);
}

static void incoming_weights_stay_when_nothing_beats_them(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    struct data d = data_of(2, 1, 100, 60);
    for (int snapshot = 0; snapshot < 2; snapshot++)
        for (int best = 0; best < 2; best++) {
            s.config.best = best;
            s.config.snapshot = snapshot;
            s.config.patience = 3;
            struct model *m = model_open(&s);
            fit(m, &d, 0);
            /* From now on steps only do harm. */
            m->e->adam->config.learning_rate = m->e->bound_adam->config.learning_rate = 0.9;
            const size_t bytes = m->e->adam->count * sizeof(float);
            float *before = floats_of(m->e->adam->count, 0.0f);
            memcpy(before, m->e->net->param, bytes);
            const struct opc_fit_report report = fit(m, &d, 0);
            const bool same = memcmp(before, m->e->net->param, bytes) == 0;
            assert_true(same == (best == OPC_BEST_INCOMING)); /* fresh: the first pass counts */
            if (same)
                assert_int_equal(report.passes, 4);
            free(before);
            model_close(m);
        }
    data_free(&d);
}

static void restoring_leaves_the_ranking_as_it_was_measured(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    s.config.members = s.config.elites = 7;
    struct data d = data_of(2, 1, 150, 61);
    struct model *m = model_open(&s);
    const struct opc_fit_report report = fit(m, &d, 0);
    for (int i = 1; i < 7; i++)
        assert_true(report.holdout[m->p->elite[i - 1]] <= report.holdout[m->p->elite[i]]);
    /* The rows that were held out, and what the restored members say about them. */
    struct opc_rng r = opc_rng_stream(77, OPC_USE_SPLIT, 0, 2);
    int split[150];
    double error[OPC_MEMBERS];
    for (int i = 0; i < 150; i++)
        split[i] = i;
    shuffle(&r, 150, split);
    holdout_of(m, &d, 30, split, error);
    for (int k = 0; k < 7; k++)
        assert_near(error[k], report.holdout[k], 1e-5 * error[k]);
    data_free(&d);
    model_close(m);
}

/* ---- settings ------------------------------------------------------------------------------- */

static void bounds_are_learned_together_or_fixed_or_by_each_member(void **state)
{
    (void)state;
    struct data d = data_of(2, 1, 100, 62);
    for (int bounds = 0; bounds < 3; bounds++) {
        struct setup s = setup_of(2, 1);
        s.config.bounds = bounds;
        s.config.max_epochs = 10;
        fit_twice(&s, 100, 1);
        s.config.max_epochs = 0;
        s.config.log_var_max = 0.25;
        s.config.log_var_min = -6.0;
        struct model *m = model_open(&s);
        const struct opc_ensemble *e = m->e;
        assert_int_equal(e->sets, bounds == OPC_BOUNDS_MEMBER ? 3 : 1);
        fit(m, &d, 0);
        for (int k = 0; k < 3; k++)
            for (int j = 0; j < e->dim; j++) {
                const float upper = opc_ensemble_upper(e, k)[j],
                            lower = opc_ensemble_lower(e, k)[j];
                assert_true((upper == 0.25f) == (bounds == OPC_BOUNDS_FIXED));
                assert_true((lower == -6.0f) == (bounds == OPC_BOUNDS_FIXED));
                assert_true((upper == opc_ensemble_upper(e, (k + 1) % 3)[j]) ==
                            (bounds != OPC_BOUNDS_MEMBER));
            }
        model_close(m);
    }
    data_free(&d);
}

static void inputs_are_scaled_by_the_rows_asked_for(void **state)
{
    (void)state;
    struct data d = data_of(2, 1, 60, 63);
    for (int i = 0; i < 60; i++)
        d.sa[i * 3 + 2] = 0.5f; /* one that does not vary */
    for (int all = 0; all < 2; all++)
        for (int sample = 0; sample < 2; sample++) {
            struct setup s = setup_of(2, 1);
            s.config.scale_on = all ? OPC_SCALE_ALL : OPC_SCALE_TRAIN;
            s.config.scale_std = sample;
            s.config.max_epochs = 1;
            struct model *m = model_open(&s);
            fit(m, &d, 4);
            struct opc_rng r = opc_rng_stream(77, OPC_USE_SPLIT, 4, 2);
            int split[60];
            for (int i = 0; i < 60; i++)
                split[i] = i;
            shuffle(&r, 60, split);
            const int first = all ? 0 : 12, n = 60 - first;
            for (int j = 0; j < 3; j++) {
                double mean = 0.0, var = 0.0;
                for (int i = first; i < 60; i++)
                    mean += (double)d.sa[split[i] * 3 + j] / n;
                for (int i = first; i < 60; i++)
                    var += pow((double)d.sa[split[i] * 3 + j] - mean, 2.0) / (n - sample);
                const double inverse = j == 2 ? 1.0 : 1.0 / sqrt(var);
                assert_near((double)m->e->scaler->mean[j], mean, 1e-6);
                assert_near((double)m->e->scaler->inverse[j], inverse, 1e-6 * inverse);
            }
            model_close(m);
        }
    data_free(&d);
}

static void a_cold_start_forgets_and_a_warm_one_goes_on(void **state)
{
    (void)state;
    struct data d[3];
    for (uint32_t i = 0; i < 3; i++)
        d[i] = data_of(2, 1, 60, 64 + i);
    for (int warm = 0; warm < 2; warm++) {
        struct setup s = setup_of(2, 1);
        s.config.warm_start = warm;
        s.config.max_epochs = 5;
        struct model *m[3];
        for (int i = 0; i < 3; i++)
            m[i] = model_open(&s);
        fit(m[0], &d[0], 0);
        fit(m[1], &d[1], 0);
        const long steps = m[0]->e->adam->steps; /* 48 rows in batches of 20, five times */
        assert_int_equal(steps, 15);
        for (int i = 0; i < 3; i++)
            fit(m[i], &d[2], 1); /* the first one of model 2 */
        assert_int_equal(m[0]->e->adam->steps, warm ? 30 : 15);
        assert_int_equal(m[0]->e->bound_adam->steps, warm ? 30 : 15);
        const size_t bytes = m[0]->e->adam->count * sizeof(float);
        const float *a = m[0]->e->net->param, *b = m[1]->e->net->param, *c = m[2]->e->net->param;
        assert_true((memcmp(a, b, bytes) == 0) == !warm); /* nothing of the first fit is left */
        assert_memory_not_equal(a, c, bytes); /* but each beginning has its own weights */
        for (int i = 0; i < 3; i++)
            model_close(m[i]);
    }
    for (int i = 0; i < 3; i++)
        data_free(&d[i]);
}

/* On three layers, for example, its five numbers are the first, the middle and the last. */
static void the_default_weight_decay_is_spread_over_any_number_of_layers(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    struct opc_err err = {0};
    struct opc_ensemble_config usual;
    assert_ok(opc_section_defaults(&opc_ensemble_section, &usual, &err), &err);
    assert_int_equal(usual.weight_decay.n, 5);
    const double *d = usual.weight_decay.at;
    const struct opc_reals same[] = {{1, {d[4]}},
                                     {2, {d[0], d[4]}},
                                     {3, {d[0], d[2], d[4]}},
                                     {6, {d[0], d[1], d[2], d[2], d[3], d[4]}}};
    struct data data = data_of(2, 1, 60, 4);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct model *m[2];
        s.config.hidden = (struct opc_ints){same[i].n - 1, {4, 4, 4, 4, 4}};
        for (int k = 0; k < 2; k++) {
            s.config.weight_decay = k == 0 ? usual.weight_decay : same[i];
            m[k] = model_open(&s);
            fit(m[k], &data, 0);
        }
        const size_t n = (size_t)m[0]->e->net->each * (size_t)s.config.members;
        assert_memory_equal(m[0]->e->net->param, m[1]->e->net->param, n * sizeof(float));
        for (int k = 0; k < 2; k++)
            model_close(m[k]);
    }
    data_free(&data);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_predictor *p = NULL;
    struct setup s = setup_of(2, 1);
    s.config.elites = 4;
    assert_fails(opc_ensemble_make(&s.config, 2, 1, 1, 0, 0, &p, &err), OPC_EUSER, &err,
                 "model.elites = 4");
    assert_mentions(&err, "model.members = 3");
    s = setup_of(2, 1);
    s.config.weight_decay = (struct opc_reals){2, {1e-4, 1e-4}};
    assert_fails(opc_ensemble_make(&s.config, 2, 1, 1, 0, 0, &p, &err), OPC_EUSER, &err,
                 "model.weight_decay");
    s.config.weight_decay = (struct opc_reals){0};
    assert_int_equal(opc_ensemble_make(&s.config, 2, 1, 1, 0, 0, &p, &err), OPC_EUSER);
    s = setup_of(2, 1);
    s.config.new_ratio = 0.5;
    s.config.bootstrap = false;
    assert_fails(opc_ensemble_make(&s.config, 2, 1, 1, 0, 0, &p, &err), OPC_EUSER, &err,
                 "model.bootstrap");
    s = setup_of(2, 1);
    s.config.hidden = (struct opc_ints){8, {4, 4, 4, 4, 4, 4, 4, 4}};
    assert_fails(opc_ensemble_make(&s.config, 2, 1, 1, 0, 0, &p, &err), OPC_EUSER, &err,
                 "model.hidden");
    assert_int_equal(opc_ensemble_make(&s.config, 2, 1, 1, 0, 0, &p, NULL), OPC_EUSER);
    assert_null(p);
}

/* ---- predictions ---------------------------------------------------------------------------- */

/* Rows to ask about: the first `distinct` of data d, over and over. */
struct questions {
    int n;
    float *s, *a, *y;
    int *elite;
    struct opc_rng *rng;
};

static struct questions ask(const struct model *m, const struct data *d, int n, int distinct)
{
    const int obs = m->p->obs, act = m->p->act;
    struct questions q = {.n = n};
    q.s = floats_of((size_t)(n * obs), 0.0f);
    q.a = floats_of((size_t)(n * act), 0.0f);
    q.y = floats_of((size_t)(n * (obs + 1)), NAN);
    q.elite = calloc((size_t)n, sizeof *q.elite);
    q.rng = calloc((size_t)n, sizeof *q.rng);
    assert_non_null(q.elite);
    assert_non_null(q.rng);
    for (int i = 0; i < n; i++) {
        const int row = i % distinct;
        memcpy(q.s + i * obs, d->sa + row * d->in, (size_t)obs * sizeof *q.s);
        memcpy(q.a + i * act, d->sa + row * d->in + obs, (size_t)act * sizeof *q.a);
        q.elite[i] = row * 7 % 5 % m->p->elites;
        q.rng[i] = test_stream(1000 + (uint32_t)row);
    }
    return q;
}

static void questions_free(struct questions *q)
{
    free(q->s);
    free(q->a);
    free(q->y);
    free(q->elite);
    free(q->rng);
}

/* Asks about rows first .. first+n-1. */
static void answer(const struct model *m, struct questions *q, int first, int n, bool sample)
{
    const int obs = m->p->obs, act = m->p->act;
    float *s = q->s + first * obs, *a = q->a + first * act, *y = q->y + first * (obs + 1);
    if (sample)
        opc_predictor_sample(m->p, n, s, a, q->elite + first, q->rng + first, y, m->pool);
    else
        opc_predictor_mean(m->p, n, s, a, q->elite + first, y, m->pool);
}

static void predictions_are_those_of_the_elite_s_member(void **state)
{
    (void)state;
    struct setup s = setup_of(3, 2);
    s.config.members = 5;
    s.config.elites = 3;
    s.config.bounds = OPC_BOUNDS_MEMBER;
    s.config.max_epochs = 5;
    struct data d = data_of(3, 2, 100, 70);
    struct model *m = model_open(&s);
    fit(m, &d, 0);
    const int elite[] = {4, 0, 2};
    memcpy(m->p->elite, elite, sizeof elite);
    struct questions q = ask(m, &d, 90, 90);
    for (int sample = 0; sample < 2; sample++) {
        answer(m, &q, 0, q.n, sample);
        for (int i = 0; i < q.n; i++) {
            double mean[4] = {0}, std[4] = {0};
            float eps[4];
            struct opc_rng own = test_stream(1000 + (uint32_t)i);
            opc_rng_normals(&own, 4, eps);
            oracle(m, elite[q.elite[i]], d.sa + i * d.in, mean, std);
            for (int j = 0; j < 4; j++) {
                double want = mean[j] + (sample ? std[j] * (double)eps[j] : 0.0);
                want += j < 3 ? (double)d.sa[i * d.in + j] : 0.0; /* the reward is no difference */
                assert_near((double)q.y[i * 4 + j], want, 5e-6);
            }
            if (sample)
                assert_int_equal(opc_rng_bits(&own), opc_rng_bits(&q.rng[i]));
        }
    }
    questions_free(&q);
    data_free(&d);
    model_close(m);
}

static void equal_rows_have_equal_bits_in_any_company(void **state)
{
    (void)state;
    enum { DISTINCT = 83, LONG = 1000 };
    struct data d = data_of(3, 2, DISTINCT, 71);
    const int threads[] = {1, 2, 3, 8}, portion[] = {1, 16, 21, 128, 300, LONG};
    float want[2][DISTINCT * 4];
    for (int t = 0; t < 4; t++) {
        struct setup s = setup_of(3, 2);
        s.config.members = s.config.elites = 5;
        s.threads = threads[t];
        struct model *m = model_open(&s);
        for (int sample = 0; sample < 2; sample++)
            for (int k = 0; k < 6; k++) {
                struct questions q = ask(m, &d, LONG, DISTINCT);
                for (int i = 0; i < LONG; i += portion[k])
                    answer(m, &q, i, LONG - i < portion[k] ? LONG - i : portion[k], sample);
                if (t == 0 && k == 0)
                    memcpy(want[sample], q.y, sizeof want[sample]);
                for (int i = 0; i < LONG; i += DISTINCT)
                    assert_same_bits(q.y + i * 4, want[sample],
                                     (size_t)(LONG - i < DISTINCT ? LONG - i : DISTINCT) * 4 *
                                         sizeof(float));
                questions_free(&q);
            }
        model_close(m);
    }
    assert_memory_not_equal(want[0], want[1], sizeof want[0]);
    data_free(&d);
}

static void more_rows_than_are_sorted_at_once_are_answered(void **state)
{
    (void)state;
    enum { DISTINCT = 50 };
    struct data d = data_of(1, 1, DISTINCT, 72);
    struct setup s = setup_of(1, 1);
    s.config.hidden = (struct opc_ints){1, {4}};
    s.threads = 2;
    struct model *m = model_open(&s);
    struct questions q = ask(m, &d, OPC_AT_ONCE + 333, DISTINCT);
    for (int sample = 0; sample < 2; sample++) {
        answer(m, &q, 0, q.n, sample);
        for (int i = DISTINCT; i < q.n; i++)
            if (memcmp(q.y + i * 2, q.y + i % DISTINCT * 2, 2 * sizeof(float)) != 0)
                fail_msg("row %d differs", i);
    }
    answer(m, &q, 0, 0, false); /* none is fine */
    questions_free(&q);
    data_free(&d);
    model_close(m);
}

static void samples_have_the_member_s_mean_and_variance(void **state)
{
    (void)state;
    enum { DRAWS = LIGHT ? 10000 : 40000 };
    struct data d = data_of(2, 1, 100, 73);
    struct setup s = setup_of(2, 1);
    struct model *m = model_open(&s);
    fit(m, &d, 0);
    struct questions q = ask(m, &d, DRAWS, 1);
    for (int i = 0; i < DRAWS; i++) {
        q.elite[i] = 1;
        q.rng[i] = test_stream(5000 + (uint32_t)i);
    }
    answer(m, &q, 0, DRAWS, true);
    double mean[3], std[3], sum[3] = {0}, squares[3][3] = {{0}};
    oracle(m, m->p->elite[1], d.sa, mean, std);
    for (int i = 0; i < DRAWS; i++) {
        double z[3];
        for (int j = 0; j < 3; j++) {
            const double from = j < 2 ? (double)d.sa[j] : 0.0;
            z[j] = ((double)q.y[i * 3 + j] - from - mean[j]) / std[j];
            sum[j] += z[j] / DRAWS;
        }
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                squares[j][k] += z[j] * z[k] / DRAWS;
    }
    const double sigma = 1.0 / sqrt(DRAWS);
    for (int j = 0; j < 3; j++) {
        assert_near(sum[j], 0.0, 4.0 * sigma);
        for (int k = 0; k < 3; k++) /* independent outputs of unit variance */
            assert_near(squares[j][k], j == k ? 1.0 : 0.0, (j == k ? 6.0 : 4.0) * sigma);
    }
    questions_free(&q);
    data_free(&d);
    model_close(m);
}

/* ---- bits ----------------------------------------------------------------------------------- */

static void a_fit_has_the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    const int threads[] = {1, 2, 3, 8}, members[] = {7, 3, 1, 9}, batch[] = {37, 64, 5, 130};
    struct data d = data_of(3, 2, 150, 74);
    for (int k = 0; k < 4; k++) {
        unsigned char *first = NULL;
        struct opc_fit_report want = {OPC_SIZED(struct opc_fit_report)};
        for (int t = 0; t < 4; t++) {
            struct setup s = setup_of(3, 2);
            s.config.members = members[k];
            s.config.elites = (members[k] + 1) / 2;
            s.config.hidden = (struct opc_ints){3, {17, 8, 24}};
            s.config.batch_size = batch[k];
            s.config.bounds = k == 1 ? OPC_BOUNDS_MEMBER : OPC_BOUNDS_LEARNED;
            s.config.max_epochs = LIGHT ? 3 : 8;
            s.threads = threads[t];
            struct model *m = model_open(&s);
            fit(m, &d, 0);
            const struct opc_fit_report got = fit(m, &d, 1);
            if (!first) {
                first = parts_copy(&m->parts);
                want = got;
            } else {
                assert_parts_are(&m->parts, first);
                assert_same_bits(&got, &want, sizeof got);
            }
            model_close(m);
        }
        free(first);
    }
    data_free(&d);
}

/* Threads that ask for some rows each, from within a chunk and without a pool, as planners do. */
struct asking {
    const struct opc_predictor *p;
    const float *s, *a;
    const int *elite;
    struct opc_rng *rng;
    float *y;
};

static void ask_for_rows(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct asking *q = ctx;
    const int obs = q->p->obs, act = q->p->act;
    opc_predictor_sample(q->p, end - first, q->s + first * obs, q->a + first * act,
                         q->elite + first, q->rng + first, q->y + first * (obs + 1), NULL);
}

static void workers_of_a_pool_may_predict_at_the_same_time(void **state)
{
    (void)state;
    enum { N = 3000, PART = 301, OBS = 3, ACT = 2 };
    struct setup s = setup_of(OBS, ACT);
    s.threads = 4;
    struct model *m = model_open(&s);
    struct data d = data_of(OBS, ACT, 150, 77);
    fit(m, &d, 0);
    assert_int_equal(m->p->type->callers(m->p), 4);
    struct opc_rng r = test_stream(78);
    float *x = floats_any(&r, N * OBS), *a = floats_any(&r, N * ACT),
          *want = floats_of(N * (OBS + 1), 0.0f), *got = floats_of(N * (OBS + 1), 0.0f);
    static int elite[N];
    static struct opc_rng rng[N], again[N];
    for (int i = 0; i < N; i++) {
        elite[i] = any_below(&r, m->p->elites);
        rng[i] = again[i] = opc_rng_stream(5, 1, 2, (uint32_t)i);
    }
    opc_predictor_sample(m->p, N, x, a, elite, rng, want, NULL);
    for (int time = 0; time < 20; time++) {
        memcpy(rng, again, sizeof rng);
        struct asking q = {m->p, x, a, elite, rng, got};
        opc_pool_each(m->pool, N, PART, ask_for_rows, &q);
        assert_same_bits(got, want, N * (OBS + 1) * sizeof *got);
    }
    free(x);
    free(a);
    free(want);
    free(got);
    data_free(&d);
    model_close(m);
}

static void a_loaded_state_goes_on_to_the_same_bits(void **state)
{
    (void)state;
    struct data d[2] = {data_of(2, 1, 80, 75), data_of(2, 1, 100, 76)};
    for (int warm = 0; warm < 2; warm++) {
        struct opc_err err = {0};
        struct setup s = setup_of(2, 1);
        s.config.max_epochs = 4;
        s.config.warm_start = warm;
        s.config.new_ratio = 0.4; /* and what is new depends on the fit before */
        struct model *m = model_open(&s);
        fit(m, &d[0], 0);
        fit(m, &d[1], 1);
        s.seed += (uint64_t)warm; /* only a cold start asks for it again */
        struct model *twin = model_open(&s);
        unsigned char *saved = parts_copy(&m->parts);
        const unsigned char *from = saved;
        assert_ok(twin->p->type->state(twin->p, load_part, &from, &err), &err);
        assert_ptr_equal(from, saved + m->parts.bytes);
        free(saved);
        for (int round = 0; round < 2; round++) {
            for (int sample = 0; sample < 2; sample++) {
                struct questions a = ask(m, &d[0], 60, 60), b = ask(m, &d[0], 60, 60);
                answer(m, &a, 0, 60, sample);
                answer(twin, &b, 0, 60, sample);
                assert_same_bits(a.y, b.y, 60 * 3 * sizeof(float));
                questions_free(&a);
                questions_free(&b);
            }
            const struct opc_fit_report a = fit(m, &d[1], 2), b = fit(twin, &d[1], 2);
            assert_same_bits(&a, &b, sizeof a);
            saved = parts_copy(&m->parts);
            assert_parts_are(&twin->parts, saved);
            free(saved);
        }
        model_close(m);
        model_close(twin);
    }
    data_free(&d[0]);
    data_free(&d[1]);
}

static void a_copy_goes_on_like_the_original(void **state)
{
    (void)state;
    struct data d[2] = {data_of(2, 1, 80, 75), data_of(2, 1, 100, 76)};
    struct opc_err err = {0};
    struct setup s = setup_of(2, 1);
    s.config.max_epochs = 4;
    s.config.new_ratio = 0.5;
    s.config.normalize_targets = true;
    struct model *m = model_open(&s);
    fit(m, &d[0], 0);
    s.seed++; /* other first weights */
    struct model *twin = model_open(&s);
    assert_ok(opc_ensemble_copy(m->p, twin->p, &err), &err);
    for (int round = 0; round < 2; round++) {
        unsigned char *want = parts_copy(&m->parts);
        assert_parts_are(&twin->parts, want);
        free(want);
        fit(m, &d[1], 1);
        fit(twin, &d[1], 1);
    }
    s.config.members++;
    struct model *larger = model_open(&s);
    assert_fails(opc_ensemble_copy(m->p, larger->p, &err), OPC_EUSER, &err, "shape");
    model_close(m);
    model_close(twin);
    model_close(larger);
    data_free(&d[0]);
    data_free(&d[1]);
}

static void seed_epoch_and_index_name_a_fit(void **state)
{
    (void)state;
    struct data d = data_of(2, 1, 60, 77);
    struct setup s = setup_of(2, 1);
    s.config.max_epochs = 1;
    float *copy[4];
    for (int i = 0; i < 4; i++) {
        struct model *m = model_open(&s);
        struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
        struct opc_err err = {0};
        struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = 1};
        plan.seed += i == 1;
        plan.epoch += i == 2;
        plan.index += i == 3;
        assert_ok(opc_predictor_fit(m->p, d.n, d.sa, d.y, &plan, &report, &err), &err);
        const size_t n = m->e->adam->count;
        copy[i] = floats_of(n, 0.0f);
        memcpy(copy[i], m->e->net->param, n * sizeof(float));
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(copy[i], copy[j], n * sizeof(float));
        model_close(m);
    }
    for (int i = 0; i < 4; i++)
        free(copy[i]);
    data_free(&d);
}

/* ---- trouble -------------------------------------------------------------------------------- */

static void too_few_rows_are_refused(void **state)
{
    (void)state;
    struct data d = data_of(2, 1, 6, 78);
    struct setup s = setup_of(2, 1);
    s.config.max_epochs = 2;
    struct model *m = model_open(&s);
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    struct opc_err err = {0};
    for (d.n = 0; d.n < 2; d.n++)
        assert_fails(fit_as(m, &d, 0, &report, &err), OPC_EUSER, &err, "train.random_steps");
    for (d.n = 2; d.n < 6; d.n++) /* one to hold out, one to learn from */
        assert_ok(fit_as(m, &d, 0, &report, &err), &err);
    data_free(&d);
    model_close(m);
}

static void nan_in_any_row_stops_the_fit(void **state)
{
    (void)state;
    enum { N = 40 };
    struct setup s = setup_of(2, 1);
    s.config.members = 7;
    struct opc_rng r = opc_rng_stream(77, OPC_USE_SPLIT, 5, 2);
    int split[N];
    for (int i = 0; i < N; i++)
        split[i] = i;
    shuffle(&r, N, split);
    for (int best = 0; best < 2; best++)
        for (int i = 0; i < N; i++) /* the first 8 are held out */
            for (int column = i % 2; column < 3 + 3; column += 2) {
                struct data d = data_of(2, 1, N, 79);
                s.config.best = best;
                struct model *m = model_open(&s);
                struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
                struct opc_err err = {0};
                *(column < 3 ? &d.sa[split[i] * 3 + column] : &d.y[split[i] * 3 + column - 3]) =
                    NAN;
                const int code = fit_as(m, &d, 5, &report, &err);
                if (code != OPC_EDIVERGED)
                    fail_msg("row %d, column %d: code %d", i, column, code);
                /* A NaN input in training spoils the scale of all, which the incoming notice. */
                const bool loss = i >= 8 && !(best == OPC_BEST_INCOMING && column < 3);
                assert_mentions(&err, loss ? "loss" : "holdout");
                assert_mentions(&err, "pass 0");
                assert_mentions(&err, "epoch 5");
                data_free(&d);
                model_close(m);
            }
}

static void a_weight_that_overflows_stops_the_fit(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    struct data d = data_of(2, 1, 60, 80);
    struct model *m = model_open(&s);
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    struct opc_err err = {0};
    for (int i = 0; i < 60; i++)
        d.y[i * 3] = 1e30f;
    assert_int_equal(fit_as(m, &d, 0, &report, &err), OPC_EDIVERGED);
    data_free(&d);
    model_close(m);
}

static bool stop_at_third(void *ctx)
{
    return ++*(int *)ctx == 3;
}

static void a_request_to_stop_is_heard(void **state)
{
    (void)state;
    struct setup s = setup_of(2, 1);
    struct data d = data_of(2, 1, 60, 81);
    struct model *m = model_open(&s);
    int asked = 0;
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .stop = stop_at_third,
                                      .stop_ctx = &asked};
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    struct opc_err err = {0};
    assert_int_equal(opc_predictor_fit(m->p, d.n, d.sa, d.y, &plan, &report, &err), OPC_ESTOPPED);
    assert_int_equal(asked, 3);
    data_free(&d);
    model_close(m);
}

struct attempt {
    struct setup setup;
    struct model *m;
    struct data d;
};

static int try_create(void *ctx, struct opc_err *err)
{
    struct attempt *a = ctx;
    struct opc_predictor *p = NULL;
    const int code = opc_ensemble_make(&a->setup.config, 2, 1, 3, 0, 0, &p, err);
    assert_true((code == OPC_OK) == (p != NULL));
    opc_predictor_destroy(p);
    return code;
}

static int try_trainer(void *ctx, struct opc_err *err)
{
    struct attempt *a = ctx;
    struct opc_trainer *t = NULL;
    const int code = opc_trainer_create(a->m->p, a->d.n, a->d.sa, a->d.y, a->m->pool, &t, err);
    assert_true((code == OPC_OK) == (t != NULL));
    opc_trainer_destroy(t);
    return code;
}

static int try_fit(void *ctx, struct opc_err *err)
{
    struct attempt *a = ctx;
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    return fit_as(a->m, &a->d, 0, &report, err);
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    struct attempt a = {.setup = setup_of(2, 1), .d = data_of(2, 1, 60, 82)};
    a.setup.threads = 2;
    a.setup.config.max_epochs = 1;
    a.m = model_open(&a.setup);
    assert_survives_lack_of_memory(try_create, &a);
    assert_survives_lack_of_memory(try_trainer, &a);
    assert_survives_lack_of_memory(try_fit, &a);
    /* Fits that failed for memory left the weights alone. */
    struct model *fresh = model_open(&a.setup);
    fit(fresh, &a.d, 0);
    unsigned char *want = parts_copy(&fresh->parts);
    assert_parts_are(&a.m->parts, want);
    free(want);
    model_close(fresh);
    model_close(a.m);
    data_free(&a.d);
    opc_predictor_destroy(NULL);
    opc_trainer_destroy(NULL);
}

/* ---- learning ------------------------------------------------------------------------------- */

/* algorithms.md 10.1: s' - s = sin x + noise of deviation 0.1 + 0.2 |x|. The reward is a plain
 * function of the action with constant noise. The kink of |x| is left out: a smooth network rounds
 * it off, and so does the lower bound, which its penalty pulls up there. */
static void deviations_that_depend_on_the_input_are_learned(void **state)
{
    (void)state;
    enum { N = 10000 };
    const double tolerance = LIGHT ? 0.6 : 0.15;
    struct setup s = setup_of(1, 1);
    s.config.members = s.config.elites = 3;
    s.config.hidden = (struct opc_ints){2, {32, 32}};
    s.config.weight_decay = (struct opc_reals){1, {1e-5}};
    s.config.batch_size = 256;
    s.config.learning_rate = 3e-3;
    s.config.min_improvement = 0.0; /* squares say little about deviations: do not stop early */
    s.config.patience = 20;
    s.config.max_epochs = LIGHT ? 8 : 100;
    s.threads = 2;
    struct model *m = model_open(&s);
    struct data d = {.n = N, .in = 2, .dim = 2};
    struct opc_rng r = test_stream(90);
    d.sa = floats_any(&r, 2 * N);
    d.y = floats_of(2 * N, 0.0f);
    opc_rng_normals(&r, 2 * N, d.y);
    for (int i = 0; i < N; i++) {
        d.sa[2 * i] *= 2.5f;
        const float x = d.sa[2 * i], a = d.sa[2 * i + 1];
        d.y[2 * i] = sinf(x) + (0.1f + 0.2f * fabsf(x)) * d.y[2 * i];
        d.y[2 * i + 1] = 0.5f * a * a + 0.3f * d.y[2 * i + 1];
    }
    fit(m, &d, 0);
    for (int k = -9; k <= 9; k++) {
        const double x = 0.25 * k, truth = 0.1 + 0.2 * fabs(x);
        const float sa[2] = {(float)x, 0.3f};
        double mean[2] = {0}, std[2] = {0};
        for (int member = 0; member < 3; member++) {
            double own_mean[2], own_std[2];
            oracle(m, member, sa, own_mean, own_std);
            for (int j = 0; j < 2; j++) {
                mean[j] += own_mean[j] / 3;
                std[j] += own_std[j] / 3;
            }
        }
        assert_near(mean[0], sin(x), tolerance);
        assert_near(std[1], 0.3, tolerance * 0.3);
        if (k != 0)
            assert_near(std[0], truth, tolerance * truth);
        else if (!LIGHT)
            assert_true(std[0] < 0.16);
    }
    data_free(&d);
    model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(steps_agree_with_an_independent_implementation),
        each_backend(so_they_do_with_the_settings_of_mbrl_lib),
        each_backend(so_they_do_with_bounds_for_each_member),
        each_backend(soft_bounds_give_the_reference_values),
        once(a_fit_keeps_each_member_s_best_and_stops_by_patience),
        once(patience_and_improvement_decide_when_to_stop),
        once(max_epochs_ends_a_fit_and_still_restores),
        once(without_a_holdout_set_training_rows_are_measured),
        once(the_holdout_is_measured_every_few_steps),
        once(a_budget_of_steps_ends_a_fit_and_still_restores),
        once(new_rows_are_drawn_more_often),
        once(without_bootstrap_each_row_is_seen_once_a_pass),
        once(a_whole_snapshot_is_taken_when_any_member_improved),
        once(incoming_weights_stay_when_nothing_beats_them),
        once(restoring_leaves_the_ranking_as_it_was_measured),
        once(bounds_are_learned_together_or_fixed_or_by_each_member),
        once(inputs_are_scaled_by_the_rows_asked_for),
        once(a_cold_start_forgets_and_a_warm_one_goes_on),
        once(the_default_weight_decay_is_spread_over_any_number_of_layers),
        once(wrong_settings_are_refused),
        each_backend(predictions_are_those_of_the_elite_s_member),
        each_backend(equal_rows_have_equal_bits_in_any_company),
        once(more_rows_than_are_sorted_at_once_are_answered),
        once(samples_have_the_member_s_mean_and_variance),
        each_backend(a_fit_has_the_same_bits_on_any_number_of_threads),
        once(workers_of_a_pool_may_predict_at_the_same_time),
        once(a_loaded_state_goes_on_to_the_same_bits),
        once(a_copy_goes_on_like_the_original),
        once(seed_epoch_and_index_name_a_fit),
        once(too_few_rows_are_refused),
        once(nan_in_any_row_stops_the_fit),
        once(a_weight_that_overflows_stops_the_fit),
        once(a_request_to_stop_is_heard),
        once(lack_of_memory_is_an_error),
        once(deviations_that_depend_on_the_input_are_learned),
    };
    return run_num_tests(tests);
}
