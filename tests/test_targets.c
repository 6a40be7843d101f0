/* SPDX-License-Identifier: MIT */
/* Unit-variance targets (model.normalize_targets): the fit does not depend on the unit of a state
 * entry, a change of the scale changes no prediction, and eq. 5 stays exact. */
#include "model/ensemble_private.h"

#include "num/normal.h"
#include "test_net.h"
#include "toy.h"
#include "transitions.h"

enum { IN = OBS + ACT, N = 240, EPISODES = 8, STEPS = N / EPISODES };

/* ---- a model and its data -------------------------------------------------------------------- */

static struct opc_ensemble_config config_of(bool normalize)
{
    struct opc_ensemble_config c;
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_ensemble_section, &c, &err), &err);
    c.members = 4;
    c.elites = 2;
    c.hidden = (struct opc_ints){2, {12, 10}};
    c.weight_decay = (struct opc_reals){1, {1e-4}};
    c.batch_size = 32;
    c.max_epochs = 6;
    c.normalize_targets = normalize;
    return c;
}

static struct opc_ensemble *made(const struct opc_ensemble_config *c)
{
    struct opc_predictor *p = NULL;
    struct opc_err err = {0};
    assert_ok(opc_ensemble_make(c, OBS, ACT, 2, 3, 9, &p, &err), &err);
    return opc_ensemble_of(p);
}

static struct opc_episodes *recorded(void)
{
    struct opc_episodes *past = NULL;
    struct opc_err err = {0};
    assert_ok(opc_episodes_create(OBS, ACT, N, EPISODES, &past, &err), &err);
    for (int b = 0; b < EPISODES; b++)
        toy_play(past, STEPS, false, false, 0.3, (uint32_t)b);
    return past;
}

struct data {
    float sa[N][IN], y[N][COLUMNS];
};

/* The recording, with state entry 1 (and its difference) in a unit that is 1 / `by` as large. */
static void fill(struct data *d, float by)
{
    struct opc_episodes *past = recorded();
    opc_episodes_flatten(past, d->sa[0], d->y[0]);
    opc_episodes_destroy(past);
    for (int i = 0; i < N; i++) {
        d->sa[i][1] *= by;
        d->y[i][1] *= by;
    }
}

static struct opc_fit_report fit(struct opc_ensemble *e, int n, const struct data *d,
                                 uint32_t epoch)
{
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = 5, .epoch = epoch};
    struct opc_err err = {0};
    assert_ok(opc_predictor_fit(&e->base, n, d->sa[0], d->y[0], &plan, &report, &err), &err);
    return report;
}

/* What elites 0 and 1 say about every row, as means or as draws. */
static void predict(const struct opc_ensemble *e, const struct data *d, bool sample,
                    float y[N][COLUMNS])
{
    static float s[N][OBS], a[N][ACT];
    static struct opc_rng rng[N];
    int elite[N];
    for (int i = 0; i < N; i++) {
        memcpy(s[i], d->sa[i], sizeof s[i]);
        memcpy(a[i], d->sa[i] + OBS, sizeof a[i]);
        elite[i] = i % 2;
        rng[i] = test_stream((uint32_t)i);
    }
    if (sample)
        opc_predictor_sample(&e->base, N, s[0], a[0], elite, rng, y[0], NULL);
    else
        opc_predictor_mean(&e->base, N, s[0], a[0], elite, y[0], NULL);
}

/* ---- the scale ------------------------------------------------------------------------------- */

/* m and d are mean and population deviation of the training rows; 1 where nothing varies. */
static void the_scale_is_that_of_the_training_rows(void **state)
{
    (void)state;
    static struct data d;
    fill(&d, 1);
    for (int i = 0; i < N; i++)
        d.y[i][2] = 0.25f;
    const struct opc_ensemble_config c = config_of(true);
    struct opc_ensemble *e = made(&c);
    fit(e, N, &d, 7);
    /* the split of fit.c, told again */
    struct opc_rng r = opc_rng_stream(5, OPC_USE_SPLIT, 7, 0);
    int row[N];
    for (int i = 0; i < N; i++)
        row[i] = i;
    for (int i = N - 1; i > 0; i--) {
        const int j = (int)opc_rng_below(&r, (uint32_t)i + 1), keep = row[i];
        row[i] = row[j];
        row[j] = keep;
    }
    const int held_out = N / 5, n = N - held_out;
    for (int j = 0; j < COLUMNS; j++) {
        double mean = 0, var = 0;
        for (int i = held_out; i < N; i++)
            mean += (double)d.y[row[i]][j] / n;
        for (int i = held_out; i < N; i++)
            var += pow((double)d.y[row[i]][j] - mean, 2) / n;
        assert_near((double)e->target->mean[j], mean, 1e-6);
        assert_near(opc_scaler_std(e->target, j), j == 2 ? 1.0 : sqrt(var), 1e-6);
    }
    opc_predictor_destroy(&e->base);
}

/* In a unit 1,000 times smaller a state entry is learned alike, to rounding, and the elites are the
 * same; in one 1,024 times smaller, which rounds nothing, to the bit. Two fits, so that the warm
 * start is in it. */
static void the_unit_of_an_entry_does_not_matter(void **state)
{
    (void)state;
    static struct data d, scaled;
    static float y[N][COLUMNS], z[N][COLUMNS];
    const float factor[] = {1000, 1024};
    fill(&d, 1);
    for (int f = 0; f < 2; f++)
        for (int normalize = 0; normalize < 2; normalize++) {
            const struct opc_ensemble_config c = config_of(normalize);
            struct opc_ensemble *plain = made(&c), *other = made(&c);
            struct opc_fit_report a = {0}, b = {0};
            fill(&scaled, factor[f]);
            for (uint32_t k = 0; k < 2; k++) {
                a = fit(plain, N / 2 + (int)k * N / 2, &d, k);
                b = fit(other, N / 2 + (int)k * N / 2, &scaled, k);
            }
            predict(plain, &d, false, y);
            predict(other, &scaled, false, z);
            double worst = 0;
            for (int i = 0; i < N; i++)
                for (int j = 0; j < COLUMNS; j++) {
                    const double unit = j == 1 ? (double)factor[f] : 1.0;
                    worst = fmax(worst, fabs((double)z[i][j] / unit - (double)y[i][j]));
                }
            if (!normalize) { /* what the setting is for: without it the fit is another one */
                assert_true(worst > 0.1);
            } else {
                assert_true(worst <= (f == 1 ? 0 : 1e-4));
                for (int i = 0; i < c.members; i++)
                    assert_near(b.holdout[i], a.holdout[i], f == 1 ? 0 : 1e-4 * a.holdout[i]);
                assert_memory_equal(plain->base.elite, other->base.elite, sizeof(int) * 2);
            }
            opc_predictor_destroy(&plain->base);
            opc_predictor_destroy(&other->base);
        }
}

/* Another scale, no other prediction: neither means nor draws, so mean and variance are the same.
 */
static void a_change_of_scale_changes_no_prediction(void **state)
{
    (void)state;
    static struct data d, other;
    static float before[2][N][COLUMNS], after[N][COLUMNS];
    fill(&d, 1);
    fill(&other, 1);
    for (int i = 0; i < N; i++) /* other means and deviations, up to five times as large */
        for (int j = 0; j < COLUMNS; j++)
            other.y[i][j] = (float)(j + 2) * other.y[i][j] - 0.7f * (float)j;
    for (int bounds = OPC_BOUNDS_LEARNED; bounds <= OPC_BOUNDS_MEMBER; bounds++) {
        struct opc_ensemble_config c = config_of(true);
        c.bounds = bounds;
        struct opc_ensemble *e = made(&c);
        fit(e, N, &d, 0);
        for (int sample = 0; sample < 2; sample++)
            predict(e, &d, sample, before[sample]);
        float scale[COLUMNS];
        memcpy(scale, e->target->inverse, sizeof scale);
        float *bound = floats_of((size_t)(2 * e->sets * COLUMNS), 0.0f);
        memcpy(bound, e->bound, (size_t)(2 * e->sets * COLUMNS) * sizeof *bound);
        opc_ensemble_scale_targets(e, N, other.y[0], NULL, true);
        assert_true(fabsf(e->target->inverse[0] / scale[0] - 1) > 0.4f);
        /* Fixed bounds stay in units of d, so there the variance may change. */
        for (int i = 0; i < 2 * e->sets; i++)
            for (int j = 0; j < COLUMNS; j++) {
                const bool fixed = bounds == OPC_BOUNDS_FIXED;
                const double ratio = (double)e->target->inverse[j] / (double)scale[j]; /* d0 / d1 */
                const double was = (double)bound[i * COLUMNS + j];
                const double want = fixed ? was : was + 2.0 * log(ratio);
                assert_near((double)e->bound[i * COLUMNS + j], want, fixed ? 0.0 : 1e-5);
            }
        free(bound);
        for (int sample = 0; sample < 2 - (bounds == OPC_BOUNDS_FIXED); sample++) {
            predict(e, &d, sample, after);
            for (int i = 0; i < N; i++)
                for (int j = 0; j < COLUMNS; j++)
                    assert_near((double)after[i][j], (double)before[sample][i][j], 5e-6);
        }
        opc_predictor_destroy(&e->base);
    }
}

/* What Adam has of parameter i, before and after a change of scale: its moments are those of a
 * gradient that is `by` times as large. */
static void assert_moments_moved(const struct opc_ensemble *e, const float *before, size_t i,
                                 double by)
{
    const size_t n = (size_t)e->base.members * e->net->each;
    const double m = (double)before[i] * by, v = (double)before[n + i] * by * by;
    assert_near((double)e->adam->m[i], m, 1e-6 * fabs(m) + 1e-30);
    assert_near((double)e->adam->v[i], v, 1e-6 * v + 1e-30);
}

/* A step of Adam in the new scale is the step in the old one: the moments of the last layer move
 * with the gradients, weights and bias of a mean by its own scale, and those of log-variances not
 * at all. Fits with a learning rate of 0 leave the weights alone and only collect moments. */
static void adam_s_moments_follow_the_scale(void **state)
{
    (void)state;
    static struct data d;
    const float factor[] = {3.0f, 0.5f, 7.0f};
    double d0[COLUMNS], by[COLUMNS];
    fill(&d, 1);
    struct opc_ensemble_config c = config_of(true);
    c.learning_rate = 0;
    struct opc_ensemble *e = made(&c);
    fit(e, N, &d, 0);
    const struct opc_layer *last = &e->net->layer[e->net->shape.layers - 1];
    const size_t n = (size_t)c.members * e->net->each;
    float *before = floats_of(2 * n, 0.0f); /* m, then v */
    memcpy(before, e->adam->m, n * sizeof *before);
    memcpy(before + n, e->adam->v, n * sizeof *before);
    for (int j = 0; j < COLUMNS; j++)
        d0[j] = opc_scaler_std(e->target, j);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < COLUMNS; j++)
            d.y[i][j] *= factor[j % 3];
    opc_ensemble_scale_targets(e, N, d.y[0], NULL, true);
    for (int j = 0; j < COLUMNS; j++) {
        by[j] = opc_scaler_std(e->target, j) / d0[j];
        assert_true(fabs(log(by[j])) > 0.5);
    }
    for (int k = 0; k < c.members; k++) {
        const size_t base = (size_t)k * e->net->each;
        int collected = 0;
        for (size_t i = 0; i < last->weight; i++) /* the layers below */
            assert_moments_moved(e, before, base + i, 1.0);
        for (int j = 0; j < 2 * COLUMNS; j++) { /* means, then log-variances */
            const size_t w = base + last->weight + (size_t)(j * last->ld);
            const double moved = j < COLUMNS ? by[j] : 1.0;
            for (int i = 0; i < last->in; i++) {
                assert_moments_moved(e, before, w + (size_t)i, moved);
                collected += before[w + (size_t)i] != 0 && before[n + w + (size_t)i] != 0;
            }
            assert_moments_moved(e, before, base + last->bias + (size_t)j, moved);
            assert_true(before[base + last->bias + (size_t)j] != 0);
        }
        assert_true(collected > COLUMNS * last->in); /* a ReLU may be dead, but not half of them */
    }
    free(before);
    opc_predictor_destroy(&e->base);
}

/* ---- what a model is used for ---------------------------------------------------------------- */

/* Central differences of the mean, against which rounding of floats is the limit. */
static void jacobians_are_slopes_in_the_task_s_units(void **state)
{
    (void)state;
    static struct data d;
    static float J[N][COLUMNS][IN], s[N][OBS], a[N][ACT], y[2][COLUMNS];
    int elite[N] = {0};
    struct opc_err err = {0};
    fill(&d, 50);
    const struct opc_ensemble_config c = config_of(true);
    struct opc_ensemble *e = made(&c);
    fit(e, N, &d, 0);
    for (int i = 0; i < N; i++) {
        memcpy(s[i], d.sa[i], sizeof s[i]);
        memcpy(a[i], d.sa[i] + OBS, sizeof a[i]);
    }
    assert_ok(opc_predictor_jacobian(&e->base, N, s[0], a[0], elite, J[0][0], NULL, &err), &err);
    for (int i = 0; i < N; i += 10)
        for (int k = 0; k < IN; k++) {
            const float h = k == 1 ? 0.5f : 0.01f; /* entry 1 is 50 times as large */
            float *at = k < OBS ? &s[i][k] : &a[i][k - OBS];
            const float x = *at, high = x + h, low = x - h;
            for (int side = 0; side < 2; side++) {
                *at = side ? high : low;
                opc_predictor_mean(&e->base, 1, s[i], a[i], elite, y[side], NULL);
            }
            *at = x;
            for (int j = 0; j < COLUMNS; j++) {
                const double slope =
                    ((double)y[1][j] - (double)y[0][j]) / ((double)high - (double)low);
                const double unit = (j == 1 ? 50.0 : 1.0) / (k == 1 ? 50.0 : 1.0);
                assert_near((double)J[i][j][k] / unit, slope / unit, 2e-3);
            }
        }
    opc_predictor_destroy(&e->base);
}

/* A loaded model predicts and learns on to the bit; without the setting there are no such parts. */
static void a_loaded_model_goes_on_to_the_bit(void **state)
{
    (void)state;
    static struct data d;
    static float y[N][COLUMNS], z[N][COLUMNS];
    struct opc_err err = {0};
    fill(&d, 3);
    const struct opc_ensemble_config c = config_of(true);
    struct opc_ensemble *e = made(&c), *twin = made(&c);
    struct parts parts = {0}, other = {0};
    fit(e, N / 2, &d, 0);
    assert_ok(e->base.type->state(&e->base, note_part, &parts, &err), &err);
    unsigned char *saved = parts_copy(&parts);
    const unsigned char *from = saved;
    assert_ok(twin->base.type->state(&twin->base, load_part, &from, &err), &err);
    for (int round = 0; round < 2; round++) {
        predict(e, &d, true, y);
        predict(twin, &d, true, z);
        assert_same_bits(y, z, sizeof y);
        const struct opc_fit_report a = fit(e, N, &d, 1), b = fit(twin, N, &d, 1);
        assert_same_bits(&a, &b, sizeof a);
    }
    assert_non_null(part_of(&parts, "model.target.mean"));
    const struct opc_ensemble_config off = config_of(false);
    struct opc_ensemble *plain = made(&off);
    assert_ok(plain->base.type->state(&plain->base, note_part, &other, &err), &err);
    assert_int_equal(other.n, parts.n - 2);
    free(saved);
    opc_predictor_destroy(&e->base);
    opc_predictor_destroy(&twin->base);
    opc_predictor_destroy(&plain->base);
}

/* Eq. 5 along the recording, with the actions that were taken: the two predictions cancel, and the
 * walk is the recording to the bit, before and after the scale has changed. */
static void eq_5_is_exact_on_policy(void **state)
{
    (void)state;
    static struct data d;
    static float s[EPISODES][OBS], a[EPISODES][ACT], next[EPISODES][OBS], work[EPISODES][COLUMNS];
    int episode[EPISODES], time[EPISODES], elite[EPISODES];
    float reward[EPISODES];
    struct opc_episodes *past = recorded();
    struct opc_err err = {0};
    fill(&d, 1);
    const struct opc_ensemble_config c = config_of(true);
    struct opc_ensemble *e = made(&c);
    for (uint32_t round = 0; round < 2; round++) {
        struct opc_transition *tr = NULL;
        fit(e, N / 2 + (int)round * N / 2, &d, round);
        assert_ok(make_transition("corrected", past, &e->base, N, &tr, &err), &err);
        assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
        for (int b = 0; b < EPISODES; b++)
            memcpy(s[b], opc_episodes_at(past, b, 0).state, sizeof s[b]);
        for (int t = 0; t < STEPS; t++) {
            struct opc_walk walk = {.n = EPISODES,
                                    .episode = episode,
                                    .time = time,
                                    .elite = elite,
                                    .state = s[0],
                                    .action = a[0],
                                    .next = next[0],
                                    .reward = reward,
                                    .work = work[0]};
            for (int b = 0; b < EPISODES; b++) {
                episode[b] = b;
                time[b] = t;
                elite[b] = (b + t) % c.elites;
                toy_policy(s[b], a[b]);
            }
            opc_transition_step(tr, &walk, NULL);
            for (int b = 0; b < EPISODES; b++) {
                const struct opc_step ref = opc_episodes_at(past, b, t);
                assert_same_bits(next[b], ref.next, sizeof next[b]);
                assert_same_bits(&reward[b], &ref.reward, sizeof reward[b]);
            }
            memcpy(s, next, sizeof s);
        }
        opc_transition_destroy(tr);
    }
    opc_predictor_destroy(&e->base);
    opc_episodes_destroy(past);
}

static int try_create(void *ctx, struct opc_err *err)
{
    struct opc_predictor *p = NULL;
    const int code = opc_ensemble_make(ctx, OBS, ACT, 1, 0, 0, &p, err);
    opc_predictor_destroy(p);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    struct opc_ensemble_config c = config_of(true);
    assert_survives_lack_of_memory(try_create, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once(the_scale_is_that_of_the_training_rows),
        each_backend(the_unit_of_an_entry_does_not_matter),
        each_backend(a_change_of_scale_changes_no_prediction),
        once(adam_s_moments_follow_the_scale),
        each_backend(jacobians_are_slopes_in_the_task_s_units),
        once(a_loaded_model_goes_on_to_the_bit),
        each_backend(eq_5_is_exact_on_policy),
        once(lack_of_memory_is_an_error),
    };
    return run_num_tests(tests);
}
