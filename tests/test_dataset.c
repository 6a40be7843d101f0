/* SPDX-License-Identifier: MIT */
#include "study/dataset/dataset.h"

#include "base/file.h"
#include "base/format/npy.h"
#include "data/episodes_private.h"
#include "opc/mem.h"
#include "run/files/episodes_file.h"
#include "test.h"

/* pendulum: 3 observations, 1 action in [-2, 2], 0.05 s between samples */
static struct opc_env *open_task(void)
{
    struct opc_env *env = NULL;
    struct opc_err err;
    assert_ok(opc_env_open("pendulum", &env, &err), &err);
    return env;
}

static const char *path_in(void **state, const char *name)
{
    static char path[OPC_PATH];
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    return path;
}

/* Three episodes of 4, 1 and 6 steps; the second ends in a terminal state. Numbers of all sizes. */
static struct opc_episodes *make_episodes(const struct opc_env *env)
{
    static const int LENGTH[] = {4, 1, 6};
    struct opc_episodes *past = NULL;
    struct opc_err err;
    struct opc_rng rng = opc_rng_stream(5, OPC_USE_TEST, 0, 0);
    assert_ok(opc_episodes_create(env->obs, env->act, 20, 3, &past, &err), &err);
    for (int b = 0; b < 3; b++) {
        double s[3] = {0.1, -1e-30, 3e30};
        assert_ok(opc_episodes_begin(past, s, &err), &err);
        for (int t = 0; t < LENGTH[b]; t++) {
            const float a = t == 0 ? 1e-9f : 2 * opc_rng_unit(&rng) - 1;
            for (int k = 0; k < 3; k++)
                s[k] = (double)opc_rng_unit(&rng) * (k - 1);
            assert_ok(opc_episodes_append(past, &a, 1 / 3.0 * t, s, b == 1, &err), &err);
        }
        opc_episodes_close(past);
    }
    return past;
}

static void assert_same_episodes(const struct opc_episodes *a, const struct opc_episodes *b)
{
    const struct opc_records x = opc_episodes_records(a), y = opc_episodes_records(b);
    assert_int_equal(opc_episodes_count(a), opc_episodes_count(b));
    assert_int_equal(x.n, y.n);
    assert_same_bits(x.at, y.at, x.n * x.stride * sizeof(float));
}

/* Through each format and back: the same bits. */
static void episodes_come_back_as_they_went(void **state)
{
    static const char *const FORMAT[] = {"log.csv", "log.npz"};
    struct opc_env *env = open_task();
    struct opc_episodes *past = make_episodes(env), *again = NULL;
    struct opc_err err;
    for (int i = 0; i < 2; i++) {
        char *path = strdup(path_in(state, FORMAT[i]));
        assert_ok(opc_dataset_write(past, 0, env, path, &err), &err);
        assert_ok(opc_dataset_read(1, &path, env, &again, &err), &err);
        assert_same_episodes(past, again);
        opc_episodes_destroy(again);
        free(path);
    }
    opc_episodes_destroy(past);
    opc_env_close(env);
}

static void a_directory_gets_a_file_for_each_episode(void **state)
{
    struct opc_env *env = open_task();
    struct opc_episodes *past = make_episodes(env), *again = NULL;
    struct opc_err err;
    char *file[2] = {NULL, NULL};
    assert_ok(opc_dataset_write(past, 1, env, path_in(state, "folder"), &err), &err);
    assert_false(opc_file_exists(path_in(state, "folder/episode-000001.csv")));
    file[0] = strdup(path_in(state, "folder/episode-000002.csv"));
    file[1] = strdup(path_in(state, "folder/episode-000003.csv"));
    assert_ok(opc_dataset_read(2, file, env, &again, &err), &err);
    assert_int_equal(opc_episodes_count(again), 2);
    assert_int_equal(opc_episodes_length(again, 1), 6);
    assert_true(opc_episodes_at(again, 0, 0).terminal);
    free(file[0]);
    free(file[1]);
    opc_episodes_destroy(again);
    opc_episodes_destroy(past);
    opc_env_close(env);
}

static void a_file_for_prefill_comes_back_and_is_checked(void **state)
{
    struct opc_env *env = open_task();
    struct opc_episodes *past = make_episodes(env);
    struct opc_episodes_file file;
    struct opc_err err;
    char path[OPC_PATH], *bytes;
    size_t n;
    snprintf(path, sizeof path, "%s", path_in(state, "log.opc"));
    assert_ok(opc_dataset_write(past, 0, env, path, &err), &err);
    assert_ok(opc_episodes_file_load(path, &file, &err), &err);
    assert_int_equal(file.episodes, 3);
    assert_int_equal(file.steps, 11);
    assert_true(file.low[0] == -2 && file.high[0] == 2);
    assert_same_bits(file.records, opc_episodes_records(past).at,
                     file.n * opc_record_stride(3, 1) * sizeof(float));
    opc_episodes_file_free(&file);
    /* any byte that is changed is noticed */
    assert_ok(opc_file_read(path, 100000, &bytes, &n, &err), &err);
    for (size_t at = 0; at < n; at += 7) {
        bytes[at] ^= 1;
        assert_ok(opc_file_write(path, bytes, n, &err), &err);
        assert_int_not_equal(opc_episodes_file_load(path, &file, &err), OPC_OK);
        bytes[at] ^= 1;
    }
    opc_free(bytes);
    opc_episodes_destroy(past);
    opc_env_close(env);
}

/* ---- what is refused ------------------------------------------------------------------------- */

#define HEAD "time,observation_0,observation_1,observation_2,action_0,reward,terminated,truncated\n"

static void a_csv_that_does_not_fit_is_refused_with_row_and_column(void **state)
{
    static const struct {
        const char *text, *row, *column;
    } CASES[] = {
        {"", "row 1", "column ?"},
        {"time,speed\n", "row 1", "column speed"},
        {"reward,reward\n", "row 1", "column reward"},
        {"observation_0,observation_1,observation_2,observation_3\n", "row 1", "observation_3"},
        {"observation_0,observation_1,action_0,reward,terminated\n", "row 1", "observation_2"},
        {HEAD "0,1,2,3,0.5,1,0,0\n0.05,1,2,3,,,\n", "row 3", "fewer"},
        {HEAD "0,1,2,3,0.5,1,0,0,9\n", "row 2", "more"},
        {HEAD "0,1,x,3,0.5,1,0,0\n", "row 2", "column observation_1: 'x'"},
        {HEAD "0,1,2,3,0.5,1,0,0\n0.05,1,nan,3,,,,\n", "row 3", "column observation_1"},
        {HEAD "0,1,2,1e300,0.5,1,0,0\n0.05,1,2,3,,,,\n", "row 2", "column observation_2"},
        {HEAD "0,1,2,3,2.5,1,0,0\n0.05,1,2,3,,,,\n", "row 2", "column action_0: 2.5"},
        {HEAD "0,1,2,3,inf,1,0,0\n0.05,1,2,3,,,,\n", "row 2", "column action_0: inf"},
        {HEAD "0,1,2,3,,1,0,0\n0.05,1,2,3,,,,\n", "row 2", "column action_0"},
        {HEAD "0,1,2,3,0.5,,0,0\n0.05,1,2,3,,,,\n", "row 2", "column reward"},
        {HEAD "0,1,2,3,0.5,1,2,0\n0.05,1,2,3,,,,\n", "row 2", "column terminated"},
        {HEAD "0,1,2,3,0.5,1,,0\n0.05,1,2,3,,,,\n", "row 2", "column terminated"},
        {HEAD "0,1,2,3,0,1,1,0\n0.05,1,2,3,0,1,0,0\n0.1,1,2,3,,,,\n", "row 2", "terminated"},
        {HEAD "0,1,2,3,0,1,0,1\n0.05,1,2,3,0,1,0,0\n0.1,1,2,3,,,,\n", "row 2", "truncated"},
        /* a lost sample, time that stands still, an interval that is not the task's */
        {HEAD "0,1,2,3,0,1,0,0\n0.05,1,2,3,0,1,0,0\n0.15,1,2,3,,,,\n", "row 4", "column time"},
        {HEAD "0,1,2,3,0,1,0,0\n0,1,2,3,,,,\n", "row 3", "column time"},
        {HEAD "0,1,2,3,0,1,0,0\n0.1,1,2,3,,,,\n", "row 3", "column time"},
        /* an episode without its last state, one of a single row, none */
        {HEAD "0,1,2,3,0,1,0,0\n0.05,1,2,3,0,1,0,0\n", "row 3", "column action_0"},
        {HEAD "0,1,2,3,,,,\n", "row 2", "column episode"},
        {HEAD, "no episode", "log.csv"},
    };
    struct opc_env *env = open_task();
    char path[OPC_PATH], *file = path;
    snprintf(path, sizeof path, "%s", path_in(state, "log.csv"));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct opc_episodes *past = NULL;
        struct opc_err err = {0};
        assert_ok(opc_file_write(path, CASES[i].text, strlen(CASES[i].text), &err), &err);
        assert_fails(opc_dataset_read(1, &file, env, &past, &err), OPC_EUSER, &err, CASES[i].row);
        assert_mentions(&err, CASES[i].column);
        assert_mentions(&err, "log.csv");
        assert_null(past);
    }
    opc_env_close(env);
}

/* Columns in any order, none of the optional ones, Windows line ends, words for flags, spaces. */
static void a_csv_of_another_program_is_read(void **state)
{
    static const char TEXT[] =
        "reward, terminated,action_0,observation_2,observation_1,observation_0\r\n"
        "1.5,False, 1 ,3,2,1\r\n\r\n2.5,True,-2.0000001,6,5,4\r\n,,,9,8,7";
    struct opc_env *env = open_task();
    struct opc_episodes *past = NULL;
    struct opc_err err;
    char path[OPC_PATH], *file = path;
    snprintf(path, sizeof path, "%s", path_in(state, "other.csv"));
    assert_ok(opc_file_write(path, TEXT, strlen(TEXT), &err), &err);
    assert_ok(opc_dataset_read(1, &file, env, &past, &err), &err);
    assert_int_equal(opc_episodes_steps(past), 2);
    const struct opc_step first = opc_episodes_at(past, 0, 0), second = opc_episodes_at(past, 0, 1);
    assert_true(first.state[0] == 1 && first.state[2] == 3 && first.reward == 1.5f);
    assert_true(first.action[0] == 0.5f && second.action[0] == -1); /* of [-2, 2]; clipped */
    assert_true(!first.terminal && second.terminal && second.next[1] == 8);
    opc_episodes_destroy(past);
    opc_env_close(env);
}

/* Two steps of one episode as arrays; `what` says what is wrong with them. */
enum fault { SOUND, D4RL, TORN, UNKNOWN, MISSING, NARROW, SHORT, BEYOND, FAULTS };

static void write_arrays(const char *path, enum fault what)
{
    static const double S[6] = {1, 2, 3, 4, 5, 6}, NEXT[6] = {4, 5, 6, 7, 8, 9};
    static const double TORN_NEXT[6] = {4, 5, 7, 7, 8, 9}, A[2] = {0.5, -2}, FAR[2] = {0.5, -3};
    static const float R[2] = {1, 2};
    static const unsigned char END[2] = {0, 1}, NONE[2] = {0, 0};
    const size_t narrow = what == NARROW ? 2 : 3;
    struct opc_zip zip = {.entries = 0};
    struct opc_err err;
    opc_npz_add(&zip, what == D4RL ? "observations" : "observation",
                &(struct opc_npy){OPC_NPY_DOUBLE, 2, {2, narrow}, S});
    opc_npz_add(&zip, what == D4RL ? "next_observations" : "next_observation",
                &(struct opc_npy){OPC_NPY_DOUBLE, 2, {2, 3}, what == TORN ? TORN_NEXT : NEXT});
    opc_npz_add(&zip, what == D4RL ? "actions" : "action",
                &(struct opc_npy){OPC_NPY_DOUBLE, 2, {2, 1}, what == BEYOND ? FAR : A});
    if (what != MISSING)
        opc_npz_add(&zip, what == D4RL ? "rewards" : "reward",
                    &(struct opc_npy){OPC_NPY_FLOAT, 1, {what == SHORT ? 1 : 2}, R});
    opc_npz_add(&zip, what == D4RL ? "terminals" : "terminated",
                &(struct opc_npy){OPC_NPY_BOOL, 1, {2}, NONE});
    opc_npz_add(&zip,
                what == D4RL      ? "timeouts"
                : what == UNKNOWN ? "speed"
                                  : "truncated",
                &(struct opc_npy){OPC_NPY_BOOL, 1, {2}, END});
    assert_ok(opc_zip_finish(&zip, &err), &err);
    assert_ok(opc_file_write(path, zip.bytes.at, zip.bytes.used, &err), &err);
    opc_zip_free(&zip);
}

static void arrays_that_do_not_fit_are_refused_with_row_and_column(void **state)
{
    static const char *const KEY[FAULTS] = {
        [TORN] = "row 0, column next_observation_2",
        [UNKNOWN] = "column speed",
        [MISSING] = "column reward",
        [NARROW] = "column observation",
        [SHORT] = "column reward",
        [BEYOND] = "row 1, column action_0: -3",
    };
    struct opc_env *env = open_task();
    struct opc_episodes *past = NULL;
    struct opc_err err;
    char path[OPC_PATH], *file = path;
    snprintf(path, sizeof path, "%s", path_in(state, "log.npz"));
    for (int what = SOUND; what < FAULTS; what++) {
        write_arrays(path, (enum fault)what);
        if (KEY[what]) {
            assert_fails(opc_dataset_read(1, &file, env, &past, &err), OPC_EUSER, &err, KEY[what]);
            assert_mentions(&err, "log.npz");
            continue;
        }
        assert_ok(opc_dataset_read(1, &file, env, &past, &err), &err);
        assert_int_equal(opc_episodes_count(past), 1);
        assert_true(opc_episodes_at(past, 0, 1).next[2] == 9);
        assert_true(opc_episodes_at(past, 0, 1).action[0] == -1);
        opc_episodes_destroy(past);
    }
    /* no archive at all */
    assert_ok(opc_file_write(path, "time\n", 5, &err), &err);
    assert_fails(opc_dataset_read(1, &file, env, &past, &err), OPC_EUSER, &err, "log.npz");
    opc_env_close(env);
}

/* ---- lack of memory -------------------------------------------------------------------------- */

struct attempt {
    struct opc_env *env;
    struct opc_episodes *past;
    char path[OPC_PATH];
};

/* Out, and in again where that is read. */
static int write_and_read(void *ctx, struct opc_err *err)
{
    struct attempt *attempt = ctx;
    struct opc_episodes *again = NULL;
    struct opc_episodes_file file;
    char *path = attempt->path;
    int code = opc_dataset_write(attempt->past, 0, attempt->env, path, err);
    if (!code && strstr(path, ".opc")) {
        code = opc_episodes_file_load(path, &file, err);
        if (!code)
            opc_episodes_file_free(&file);
    } else if (!code)
        code = opc_dataset_read(1, &path, attempt->env, &again, err);
    opc_episodes_destroy(again);
    return code;
}

static void lack_of_memory_is_survived_in_every_format(void **state)
{
    static const char *const FORMAT[] = {"log.csv", "log.npz", "log.opc"};
    struct attempt attempt = {.env = open_task()};
    attempt.past = make_episodes(attempt.env);
    for (int i = 0; i < 3; i++) {
        snprintf(attempt.path, sizeof attempt.path, "%s", path_in(state, FORMAT[i]));
        assert_survives_lack_of_memory(write_and_read, &attempt);
    }
    opc_episodes_destroy(attempt.past);
    opc_env_close(attempt.env);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(episodes_come_back_as_they_went),
        WITH_DIR(a_directory_gets_a_file_for_each_episode),
        WITH_DIR(a_file_for_prefill_comes_back_and_is_checked),
        WITH_DIR(a_csv_that_does_not_fit_is_refused_with_row_and_column),
        WITH_DIR(a_csv_of_another_program_is_read),
        WITH_DIR(arrays_that_do_not_fit_are_refused_with_row_and_column),
        WITH_DIR(lack_of_memory_is_survived_in_every_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
