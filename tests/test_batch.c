/* SPDX-License-Identifier: MIT */
#include "data/batch.h"

#include "data/episodes_private.h"
#include "test.h"

enum { OBS = 5, ACT = 3, STRIDE = 10, LONGEST = 7, MAX = 1024 };

/* Step number n of a side: s = side + n, n + 0.25, ...; the mark and s' follow from it. */
static float entry(int side, int n, int k)
{
    return (float)(100000 * side + n) + 0.125f * (float)k;
}

static struct opc_imagined *make_imagined(const int *length, int rollouts)
{
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape), .obs = OBS,  .act = ACT,         .longest = LONGEST,
        .forget = OPC_FORGET_EPOCHS,          .retain = 2, .transitions = 5000};
    struct opc_imagined *d;
    struct opc_err err;
    assert_ok(opc_imagined_create(&shape, &d, &err), &err);
    opc_imagined_open_epoch(d, 0);
    for (int i = 0, n = 0; i < rollouts; i++) {
        float records[(LONGEST + 1) * STRIDE] = {0};
        for (int t = 0; t <= length[i]; t++) {
            float *r = records + t * STRIDE;
            for (int k = 0; k < OBS; k++)
                r[k] = entry(1, n + t, k);
            for (int k = OBS; k < OBS + ACT + 1 && t < length[i]; k++)
                r[k] = entry(1, n + t, k);
            r[STRIDE - 1] = t == length[i] ? OPC_RECORD_END : (float)((n + t) % 2);
        }
        assert_ok(opc_imagined_append(d, length[i], records, &err), &err);
        n += length[i] + 1; /* the last state has a number, too */
    }
    return d;
}

static struct opc_episodes *memories(const int *length, int episodes)
{
    struct opc_episodes *e;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, 5000, 1000, &e, &err), &err);
    for (int b = 0, n = 0; b < episodes; b++) {
        double s[OBS];
        float a[ACT];
        for (int k = 0; k < OBS; k++)
            s[k] = (double)entry(0, n, k);
        assert_ok(opc_episodes_begin(e, s, &err), &err);
        for (int t = 0; t < length[b]; t++) {
            for (int k = 0; k < OBS; k++)
                s[k] = (double)entry(0, n + t + 1, k);
            for (int k = 0; k < ACT; k++)
                a[k] = entry(0, n + t, OBS + k);
            const double r = (double)entry(0, n + t, OBS + ACT);
            assert_ok(opc_episodes_append(e, a, r, s, (n + t) % 2, &err), &err);
        }
        opc_episodes_close(e);
        n += length[b] + 1;
    }
    return e;
}

/* A step's number, with everything about it checked. */
static int number(const float *x, int side)
{
    const int n = (int)x[0] - 100000 * side;
    for (int k = 0; k < OBS + ACT + 1; k++)
        assert_true(x[k] == entry(side, n, k));
    assert_true(x[STRIDE - 1] == (float)(n % 2));
    for (int k = 0; k < OBS; k++)
        assert_true(x[STRIDE + k] == entry(side, n + 1, k));
    return n;
}

/* Goodness of fit of counts that should be equal: within 4.5 deviations of its mean. */
static void assert_even(const int *count, int cells, int draws)
{
    double chi = 0;
    const double want = (double)draws / cells;
    for (int i = 0; i < cells; i++)
        chi += (count[i] - want) * (count[i] - want) / want;
    const double df = cells - 1;
    if (!(fabs(chi - df) <= 4.5 * sqrt(2 * df)))
        fail_msg("chi-square %g with %g degrees of freedom", chi, df);
}

static const int LENGTH[] = {1, 7, 2, 1, 5, 3, 1, 1, 6, 4, 7, 2};
enum { PATHS = sizeof LENGTH / sizeof *LENGTH };

static int steps_of_all(void)
{
    int steps = 0;
    for (int i = 0; i < PATHS; i++)
        steps += LENGTH[i];
    return steps;
}

/* Short and long rollouts, and both sides: every step is as likely as any other. */
static void every_step_is_equally_likely(void **state)
{
    (void)state;
    struct opc_mix mix = {make_imagined(LENGTH, PATHS), memories(LENGTH, PATHS), 0.5};
    const float *step[MAX];
    int count[2][100] = {{0}};
    for (uint32_t k = 0; k < 100; k++) {
        struct opc_rng rng = opc_rng_stream(1, OPC_USE_BATCH, 0, k);
        opc_batch_draw(&mix, MAX, &rng, step);
        for (int i = 0; i < MAX; i++)
            count[i >= MAX / 2][number(step[i], i >= MAX / 2)]++;
    }
    for (int side = 0; side < 2; side++) {
        int cell[100], cells = 0;
        for (int i = 0, n = 0; i < PATHS; n += LENGTH[i++] + 1) {
            for (int t = 0; t < LENGTH[i]; t++)
                cell[cells++] = count[side][n + t];
            assert_int_equal(count[side][n + LENGTH[i]], 0); /* no step starts in a last state */
        }
        assert_int_equal(cells, steps_of_all());
        assert_even(cell, cells, 100 * MAX / 2);
    }
    opc_imagined_destroy((struct opc_imagined *)mix.imagined);
    opc_episodes_destroy((struct opc_episodes *)mix.episodes);
}

/* floor(256 * 0.05) = 12 recorded and 244 imagined steps, as in MBPO; any batch, any ratio. */
static void the_recorded_share_comes_first(void **state)
{
    (void)state;
    struct opc_mix mix = {make_imagined(LENGTH, PATHS), memories(LENGTH, PATHS), 0};
    static const double RATIO[] = {0, 0.05, 0.5, 0.99, 1};
    static const int N[] = {1, 15, 16, 17, 100, 255, 256, 300, MAX};
    const float *step[MAX];
    for (int r = 0; r < 5; r++)
        for (int j = 0; j < 9; j++) {
            struct opc_rng rng = opc_rng_stream(2, OPC_USE_BATCH, (uint32_t)r, (uint32_t)j);
            mix.real_ratio = RATIO[r];
            opc_batch_draw(&mix, N[j], &rng, step);
            const int real = (int)floor(N[j] * RATIO[r]);
            for (int i = 0; i < N[j]; i++)
                number(step[i], i >= real);
        }
    assert_int_equal((int)floor(256 * 0.05), 12);
    opc_imagined_destroy((struct opc_imagined *)mix.imagined);
    opc_episodes_destroy((struct opc_episodes *)mix.episodes);
}

static void an_empty_side_leaves_all_to_the_other(void **state)
{
    (void)state;
    struct opc_imagined *full = make_imagined(LENGTH, PATHS), *empty = make_imagined(LENGTH, 0);
    struct opc_episodes *past = memories(LENGTH, PATHS), *none = memories(LENGTH, 0);
    const struct opc_mix mixes[] = {
        {full, NULL, 0.5}, {full, none, 1}, {NULL, past, 0}, {empty, past, 0.1}};
    const float *step[MAX];
    for (int m = 0; m < 4; m++) {
        struct opc_mix mix = mixes[m];
        struct opc_rng rng = opc_rng_stream(3, OPC_USE_BATCH, 0, 0);
        opc_batch_draw(&mix, 100, &rng, step);
        for (int i = 0; i < 100; i++)
            number(step[i], m < 2);
    }
    opc_imagined_destroy(full);
    opc_imagined_destroy(empty);
    opc_episodes_destroy(past);
    opc_episodes_destroy(none);
}

/* What is drawn follows from the stream and from what is kept, not from where it lies: a store
 * that forgot a first epoch puts the same rollouts elsewhere in memory. */
static void the_stream_alone_decides(void **state)
{
    (void)state;
    struct opc_imagined *d = make_imagined(LENGTH, PATHS), *moved = make_imagined(LENGTH + 1, 1);
    struct opc_rollout_rows rows;
    struct opc_err err;
    opc_imagined_open_epoch(moved, 1);
    for (uint64_t at = 0; opc_imagined_next(d, &at, &rows);)
        assert_ok(opc_imagined_append(moved, rows.steps, rows.records, &err), &err);
    opc_imagined_open_epoch(moved, 2);
    assert_true(opc_imagined_record(moved, 0) > 0);
    struct opc_mix mix[] = {{d, NULL, 0}, {d, NULL, 0}, {moved, NULL, 0}};
    const float *step[4][256];
    for (int m = 0; m < 3; m++) {
        struct opc_rng rng = opc_rng_stream(4, OPC_USE_BATCH, 5, 6);
        opc_batch_draw(&mix[m], 256, &rng, step[m]);
    }
    struct opc_rng rng = opc_rng_stream(4, OPC_USE_BATCH, 5, 7);
    opc_batch_draw(&mix[0], 256, &rng, step[3]);
    for (int i = 0; i < 256; i++) {
        assert_ptr_equal(step[0][i], step[1][i]);
        assert_int_equal(number(step[0][i], 1), number(step[2][i], 1));
    }
    assert_memory_not_equal(step[0], step[3], sizeof *step);
    opc_imagined_destroy(d);
    opc_imagined_destroy(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_is_equally_likely),
        cmocka_unit_test(the_recorded_share_comes_first),
        cmocka_unit_test(an_empty_side_leaves_all_to_the_other),
        cmocka_unit_test(the_stream_alone_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
