/* SPDX-License-Identifier: MIT */
#include "data/imagined.h"

#include "opc/mem.h"
#include "opc/rng.h"
#include "test.h"

enum { OBS = 2, ACT = 1, STRIDE = 5, LONGEST = 10 };

static struct opc_imagined *new_store(enum opc_forget forget, int retain, size_t transitions)
{
    const struct opc_imagined_shape shape = {OPC_SIZED(struct opc_imagined_shape),
                                             .obs = OBS,
                                             .act = ACT,
                                             .longest = LONGEST,
                                             .forget = forget,
                                             .retain = retain,
                                             .transitions = transitions};
    struct opc_imagined *d = NULL;
    struct opc_err err;
    assert_ok(opc_imagined_create(&shape, &d, &err), &err);
    return d;
}

/* Rollout `id`: every record says whose it is and where it is in it. */
static void make(int id, int steps, float *records)
{
    for (int t = 0; t <= steps; t++) {
        float *r = records + t * STRIDE;
        r[0] = (float)id;
        r[1] = (float)t;
        r[2] = r[3] = t < steps ? 0.5f : 0;
        r[4] = t == steps                      ? OPC_RECORD_END
               : t + 1 == steps && id % 3 == 0 ? OPC_RECORD_TERMINAL
                                               : OPC_RECORD_STEP;
    }
}

static void append(struct opc_imagined *d, int id, int steps)
{
    struct opc_err err;
    float records[(LONGEST + 1) * STRIDE];
    make(id, steps, records);
    assert_ok(opc_imagined_append(d, steps, records, &err), &err);
}

/* The store holds exactly rollouts first .. end-1, with the lengths they were given. */
static void assert_holds(const struct opc_imagined *d, int first, int end, const int *length)
{
    uint64_t position = 0;
    struct opc_rollout_rows rows;
    size_t transitions = 0, positions = 0;
    for (int id = first; id < end; id++) {
        float want[(LONGEST + 1) * STRIDE];
        make(id, length[id], want);
        assert_true(opc_imagined_next(d, &position, &rows));
        assert_int_equal(rows.steps, length[id]);
        assert_same_bits(rows.records, want, (size_t)(rows.steps + 1) * STRIDE * sizeof *want);
        transitions += (size_t)rows.steps;
    }
    assert_false(opc_imagined_next(d, &position, &rows));
    assert_int_equal(opc_imagined_transitions(d), transitions);
    assert_int_equal(opc_imagined_rollouts(d), end - first);
    /* A step is at each position whose mark does not say otherwise, once. */
    for (uint32_t i = 0; i < opc_imagined_positions(d); i++) {
        const float *r = opc_imagined_records(d) + (size_t)opc_imagined_record(d, i) * STRIDE;
        positions += !opc_record_ends(r, STRIDE);
    }
    assert_int_equal(positions, transitions);
}

static int random_length(struct opc_rng *rng)
{
    return 1 + (int)opc_rng_below(rng, LONGEST);
}

/* Acceptance check 3: with rollouts ending early, whole epochs remain all the same. A buffer that
 * counts transitions would still hold older ones here. */
static void exactly_the_last_epochs_are_kept_however_early_rollouts_end(void **state)
{
    (void)state;
    enum { RETAIN = 3, EPOCHS = 40, MAX = 600, N = 3000 };
    struct opc_imagined *d = new_store(OPC_FORGET_EPOCHS, RETAIN, N);
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 0, 0);
    static int length[EPOCHS * MAX], first[EPOCHS + 1];
    for (int e = 0; e < EPOCHS; e++) {
        /* some epochs nearly empty, some with all their rollouts of one step */
        const int rollouts = e % 7 == 3 ? 1 : 1 + (int)opc_rng_below(&rng, N / LONGEST);
        const bool short_ones = e % 5 == 0;
        opc_imagined_open_epoch(d, e);
        first[e + 1] = first[e];
        for (int i = 0; i < rollouts; i++) {
            const int id = first[e + 1]++;
            length[id] = short_ones ? 1 : random_length(&rng);
            append(d, id, length[id]);
            if (i == rollouts / 2)
                opc_imagined_open_epoch(d, e); /* a second simulation in the same epoch */
        }
        const int oldest = e < RETAIN ? 0 : e - RETAIN + 1;
        assert_holds(d, first[oldest], first[e + 1], length);
        const struct opc_imagined_state *s = opc_imagined_state(d);
        assert_int_equal(s->epochs, e - oldest + 1);
        assert_int_equal(s->epoch[0].epoch, oldest);
        assert_int_equal(s->epoch[s->epochs - 1].epoch, e);
        assert_int_equal(s->epoch[s->epochs - 1].rollouts, rollouts);
    }
    /* Epochs that brought nothing still push the old ones out. */
    opc_imagined_open_epoch(d, EPOCHS + 1);
    assert_holds(d, first[EPOCHS - 1], first[EPOCHS], length);
    opc_imagined_open_epoch(d, EPOCHS + 100);
    assert_holds(d, 0, 0, length);
    opc_imagined_destroy(d);
}

/* Original MBPO: against a plain list, with a limit that moves as a horizon schedule does. */
static void by_steps_the_oldest_rollouts_go_first_and_whole(void **state)
{
    (void)state;
    enum { MAX = 5000, ROLLOUTS = 20000 };
    struct opc_imagined *d = new_store(OPC_FORGET_STEPS, 0, MAX);
    struct opc_rng rng = opc_rng_stream(2, OPC_USE_TEST, 0, 0);
    static int length[ROLLOUTS];
    size_t limit = MAX, transitions = 0;
    int first = 0;
    for (int id = 0; id < ROLLOUTS; id++) {
        if (id % 1000 == 0)
            opc_imagined_open_epoch(d, id / 1000);
        if (id % 3000 == 1) { /* 1, then a tenth, ..., up to all of it */
            limit = id == 1 ? 1 : (size_t)(MAX / 10 * (1 + id / 3000));
            opc_imagined_limit(d, limit);
            while (transitions > limit)
                transitions -= (size_t)length[first++];
            assert_holds(d, first, id, length);
        }
        length[id] = id % 2000 < 1000 ? random_length(&rng) : 1;
        append(d, id, length[id]);
        transitions += (size_t)length[id];
        while (transitions > limit && first < id)
            transitions -= (size_t)length[first++];
        assert_int_equal(opc_imagined_transitions(d), transitions);
        assert_int_equal(opc_imagined_rollouts(d), id + 1 - first);
        if (id % 777 == 0)
            assert_holds(d, first, id + 1, length);
    }
    assert_holds(d, first, ROLLOUTS, length);
    opc_imagined_limit(d, 0);
    assert_holds(d, 0, 0, length);
    opc_imagined_limit(d, 2 * MAX); /* no further than there is room */
    assert_int_equal(opc_imagined_state(d)->limit, MAX);
    opc_imagined_destroy(d);
}

/* The room is for rollouts of one step; filled with long ones, about half of it is ever touched,
 * however long it goes on. */
static void memory_in_use_is_what_is_kept_and_not_what_is_reserved(void **state)
{
    (void)state;
    enum { RETAIN = 4, N = 20000 };
    struct opc_imagined *d = new_store(OPC_FORGET_EPOCHS, RETAIN, N);
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape), .obs = OBS,       .act = ACT,      .longest = LONGEST,
        .forget = OPC_FORGET_EPOCHS,          .retain = RETAIN, .transitions = N};
    const double need = (double)opc_imagined_need(&shape) / (STRIDE * sizeof(float));
    int highest = 0;
    for (int e = 0; e < 20; e++) {
        opc_imagined_open_epoch(d, e);
        for (int i = 0; i < N / LONGEST; i++)
            append(d, i, LONGEST);
        for (uint32_t i = 0; i < opc_imagined_positions(d); i++)
            if (opc_imagined_record(d, i) > highest)
                highest = opc_imagined_record(d, i);
    }
    assert_true(highest < need + 2 * 1024 && highest > 0.9 * need);
    opc_imagined_destroy(d);
}

static void the_papers_largest_setting_needs_less_than_six_gigabytes(void **state)
{
    (void)state;
    const struct opc_imagined_shape half_cheetah = {
        OPC_SIZED(struct opc_imagined_shape),
        .obs = 17,
        .act = 6,
        .longest = 10,
        .forget = OPC_FORGET_EPOCHS,
        .retain = 50,
        .transitions = 1000000 + 9,
    };
    const double bytes = (double)opc_imagined_need(&half_cheetah);
    assert_true(bytes < 5.6e9 && bytes > 5.4e9); /* 50 x 100,000 x 11 x 25 x 4 = 5.5e9 */
}

static void cleared_it_is_empty_and_goes_on(void **state)
{
    (void)state;
    struct opc_imagined *d = new_store(OPC_FORGET_EPOCHS, 2, 3000);
    int length[100];
    for (int e = 0; e < 50; e++) {
        opc_imagined_open_epoch(d, e);
        for (int id = 0; id < 100; id++)
            append(d, id, length[id] = 1 + (id + e) % LONGEST);
        assert_holds(d, 0, 100, length);
        opc_imagined_clear(d);
        assert_holds(d, 0, 0, length);
        assert_int_equal(opc_imagined_positions(d), 0);
    }
    opc_imagined_clear(d);
    opc_imagined_destroy(d);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* A tape of its own plays the files: record i of it is what was saved from position i, once. */
enum { TAPE = 100000 };

static void restores_like_it_was(enum opc_forget forget)
{
    enum { MAX = 2500 };
    float(*tape)[STRIDE] = opc_alloc(TAPE, sizeof *tape);
    struct opc_imagined *d = new_store(forget, 3, MAX);
    struct opc_rng rng = opc_rng_stream(3, OPC_USE_TEST, (uint32_t)forget, 0);
    struct opc_err err;
    uint64_t saved = 0;
    int id = 0;
    for (int e = 0; e < 30; e++) {
        opc_imagined_open_epoch(d, e);
        if (e == 17)
            opc_imagined_limit(d, MAX / 3);
        if (e == 20)
            opc_imagined_clear(d), opc_imagined_open_epoch(d, e);
        for (int i = 0; i < 200; i++, id++)
            append(d, id, e % 2 ? 1 : random_length(&rng));

        /* Save what has come. */
        const struct opc_imagined_state s = *opc_imagined_state(d);
        const float *piece;
        size_t n;
        if (saved < s.front)
            saved = s.front;
        for (; (piece = opc_imagined_piece(d, saved, &n)) != NULL; saved += n) {
            assert_true(saved + n <= TAPE);
            memcpy(tape[saved], piece, n * sizeof *tape);
        }
        assert_true(saved == s.end);

        /* Another store, restored in pieces of any size, has the same at every position and does
         * the same from there on. */
        struct opc_imagined *copy = new_store(forget, 3, MAX);
        opc_imagined_open_epoch(copy, 0);
        append(copy, 12345, 5); /* to be forgotten */
        assert_ok(opc_imagined_restore(copy, &s, &err), &err);
        for (uint64_t at = s.front; at < s.end; at += n) {
            n = 1 + opc_rng_below(&rng, 3000);
            n = n < s.end - at ? n : (size_t)(s.end - at);
            assert_ok(opc_imagined_refill(copy, at, tape[at], n, &err), &err);
        }
        const int more = id;
        for (int round = 0; round < 2; round++) {
            assert_same_bits(opc_imagined_state(copy), opc_imagined_state(d), sizeof s);
            for (uint32_t i = 0; i < opc_imagined_positions(d); i++)
                assert_same_bits(opc_imagined_records(copy) + opc_imagined_record(copy, i) * STRIDE,
                                 opc_imagined_records(d) + opc_imagined_record(d, i) * STRIDE,
                                 sizeof *tape);
            for (int i = 0; round == 0 && i < 30; i++) {
                append(d, more + i, 1 + i % LONGEST);
                append(copy, more + i, 1 + i % LONGEST);
            }
        }
        opc_imagined_destroy(copy);
    }
    opc_imagined_destroy(d);
    opc_free(tape);
}

static void restored_by_epochs_it_is_the_same_and_goes_on(void **state)
{
    (void)state;
    restores_like_it_was(OPC_FORGET_EPOCHS);
}

static void restored_by_steps_it_is_the_same_and_goes_on(void **state)
{
    (void)state;
    restores_like_it_was(OPC_FORGET_STEPS);
}

static void what_does_not_fit_together_is_not_restored(void **state)
{
    (void)state;
    struct opc_imagined *d = new_store(OPC_FORGET_EPOCHS, 2, 100);
    struct opc_err err;
    float tape[300][STRIDE];
    opc_imagined_open_epoch(d, 0);
    for (int id = 0; id < 9; id++)
        append(d, id, LONGEST);
    const struct opc_imagined_state good = *opc_imagined_state(d);
    size_t n;
    const float *piece = opc_imagined_piece(d, 0, &n);
    assert_int_equal(n, 99);
    memcpy(tape, piece, n * sizeof *tape);
    assert_null(opc_imagined_piece(d, good.end, &n));

    struct opc_imagined_state bad = good;
    bad.front = bad.end + 1;
    assert_int_equal(opc_imagined_restore(d, &bad, &err), OPC_EDAMAGED);
    bad = good;
    bad.end = (uint64_t)1 << 40;
    assert_int_equal(opc_imagined_restore(d, &bad, &err), OPC_EDAMAGED);
    bad = good;
    bad.end = UINT64_MAX; /* whose last block does not exist */
    assert_int_equal(opc_imagined_restore(d, &bad, &err), OPC_EDAMAGED);
    bad = good;
    bad.epoch[0].start = good.end + 1; /* forgetting would give back more than there is */
    assert_int_equal(opc_imagined_restore(d, &bad, &err), OPC_EDAMAGED);
    bad = good;
    bad.epoch[0].transitions++;
    assert_int_equal(opc_imagined_restore(d, &bad, &err), OPC_EDAMAGED);
    bad = good;
    bad.epochs = 3;
    assert_fails(opc_imagined_restore(d, &bad, &err), OPC_EDAMAGED, &err, "hold");
    bad = good;
    bad.limit = 101;
    assert_int_equal(opc_imagined_restore(d, &bad, &err), OPC_EDAMAGED);
    assert_int_equal(opc_imagined_rollouts(d), 9); /* as it was */

    assert_ok(opc_imagined_restore(d, &good, &err), &err);
    assert_fails(opc_imagined_refill(d, 1, tape[0], 99, &err), OPC_EDAMAGED, &err, "records 1");
    tape[50][STRIDE - 1] = OPC_RECORD_END;
    assert_fails(opc_imagined_refill(d, 0, tape[0], 99, &err), OPC_EDAMAGED, &err, "89");
    assert_mentions(&err, "90");
    opc_imagined_destroy(d);
}

static void what_cannot_be_kept_is_refused(void **state)
{
    (void)state;
    struct opc_imagined *d = new_store(OPC_FORGET_EPOCHS, 1, 100);
    struct opc_err err;
    float records[(LONGEST + 2) * STRIDE];
    make(0, LONGEST, records);
    assert_fails(opc_imagined_append(d, 1, records, &err), OPC_EBUG, &err, "no epoch");
    opc_imagined_open_epoch(d, 0);
    assert_fails(opc_imagined_append(d, 11, records, &err), OPC_EBUG, &err, "11 steps");
    assert_int_equal(opc_imagined_append(d, 0, records, &err), OPC_EBUG);
    int code = OPC_OK, rollouts = 0;
    for (; !code && rollouts < 100000; rollouts++)
        code = opc_imagined_append(d, LONGEST, records, &err);
    assert_int_equal(code, OPC_EBUG); /* but not before the epoch had what it was made for */
    assert_true(opc_imagined_transitions(d) >= 100);
    opc_imagined_destroy(d);

    struct opc_imagined_shape shape = {OPC_SIZED(struct opc_imagined_shape),
                                       .obs = 17,
                                       .act = 6,
                                       .longest = 10,
                                       .forget = OPC_FORGET_EPOCHS,
                                       .retain = 1024,
                                       .transitions = 2000000};
    assert_fails(opc_imagined_create(&shape, &d, &err), OPC_EUSER, &err, "2000000");
    assert_mentions(&err, "opc.transitions");
    shape.retain = OPC_RETAIN_MAX + 1;
    assert_int_equal(opc_imagined_create(&shape, &d, &err), OPC_EBUG);
    shape = (struct opc_imagined_shape){
        OPC_SIZED(struct opc_imagined_shape), .obs = 17,   .act = 6,          .longest = 0,
        .forget = OPC_FORGET_STEPS,           .retain = 0, .transitions = 100};
    assert_int_equal(opc_imagined_create(&shape, &d, &err), OPC_EBUG);
}

static int create(void *ctx, struct opc_err *err)
{
    (void)ctx;
    const struct opc_imagined_shape shape = {OPC_SIZED(struct opc_imagined_shape),
                                             .obs = 17,
                                             .act = 6,
                                             .longest = 10,
                                             .forget = OPC_FORGET_STEPS,
                                             .retain = 0,
                                             .transitions = 10000};
    struct opc_imagined *d;
    const int code = opc_imagined_create(&shape, &d, err);
    if (!code)
        opc_imagined_destroy(d);
    return code;
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create, NULL);
    opc_imagined_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_the_last_epochs_are_kept_however_early_rollouts_end),
        cmocka_unit_test(by_steps_the_oldest_rollouts_go_first_and_whole),
        cmocka_unit_test(memory_in_use_is_what_is_kept_and_not_what_is_reserved),
        cmocka_unit_test(the_papers_largest_setting_needs_less_than_six_gigabytes),
        cmocka_unit_test(cleared_it_is_empty_and_goes_on),
        cmocka_unit_test(restored_by_epochs_it_is_the_same_and_goes_on),
        cmocka_unit_test(restored_by_steps_it_is_the_same_and_goes_on),
        cmocka_unit_test(what_does_not_fit_together_is_not_restored),
        cmocka_unit_test(what_cannot_be_kept_is_refused),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
