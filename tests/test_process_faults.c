/* SPDX-License-Identifier: MIT */
/* exec: environments whose child breaks the protocol or dies, question by question: each is named,
 * with what was asked, and never believed. test_process.c has the failures of steps. The children
 * are this program itself, started as `child MODE`; `child set:I=X` says hello with X as its I-th
 * number. */
#include "base/clock.h"
#include "child.h"

#include <fcntl.h>
#include <signal.h>

/* ---- the child ------------------------------------------------------------------------------- */

static const char *mode; /* of this child */
static bool second;      /* an earlier child was here, and left the file that the arguments name */

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void say_hello(const char *args)
{
    double x[] = {1, 2, 1, 2, 20, 0.1, 0, 0, -1, 1};
    x[6] = OPC_CHILD_TERMINAL | OPC_CHILD_REWARD | OPC_CHILD_REST | OPC_CHILD_SCENE;
    if (is("liar"))
        x[6] += OPC_CHILD_REPEATS;
    if (is("machine_rest_dies"))
        x[6] = OPC_CHILD_MACHINE;
    if (strncmp(mode, "set:", 4) == 0) {
        char *end;
        const long i = strtol(mode + 4, &end, 10);
        x[i] = strtod(end + 1, NULL);
    }
    second = *args && access(args, F_OK) == 0;
    if (*args && !second)
        close(open(args, O_CREAT | O_WRONLY, 0600));
    send_frame(OPC_FRAME_HELLO, x, sizeof x);
}

static void answer_step(const double *u, int t)
{
    const double nan = (double)NAN;
    double x[] = {u[0], t, 1, 0, 0};
    if (is("reward_nan") && t == 2)
        x[2] = nan;
    if (is("reward_infinite") && t == 2)
        x[2] = HUGE_VAL;
    if (is("truncated_2") && t == 2)
        x[4] = 2;
    if (is("too_large") && t == 2)
        x[0] = 1e300;
    /* One that says it repeats itself: started again, it is somewhere else. */
    if (is("liar") && second)
        x[0] += 1;
    if (is("liar") && !second && t == 2)
        raise(SIGKILL);
    send_frame(OPC_FRAME_STEP, x, sizeof x);
    if (is("dies_when_idle") && t == 2 && !second)
        _Exit(6);
    if (is("closes_output") && t == 2) {
        fclose(stdout);
        close(STDOUT_FILENO);
        sleep(600);
    }
}

/* terminal, reward: n answers, unless the mode says otherwise. */
static void answer_batch(int kind, const double *body)
{
    const size_t n = (size_t)body[0];
    double *x = calloc(n + 1, sizeof *x);
    if (is("batch_nan"))
        x[n - 1] = (double)NAN;
    if (is("batch_two"))
        x[0] = 2;
    send_frame(kind, x, (is("batch_short") ? n - 1 : n) * sizeof *x);
    free(x);
}

static void answer_rest(int kind)
{
    if (is("rest_dies") || is("machine_rest_dies") || is("state_dies") || is("scene_dies"))
        raise(SIGKILL);
    if (kind == OPC_FRAME_REST)
        send_frame(kind, "12345678", is("rest_speaks") ? 8 : 0);
    if (kind == OPC_FRAME_STATE)
        send_frame(kind, (double[]){0, is("state_nan") ? (double)NAN : 1}, 16);
    if (kind == OPC_FRAME_SCENE) {
        double x[24] = {0, 0, 1, 2};
        if (is("scene_nan"))
            x[9] = (double)NAN;
        send_frame(kind, x, is("scene_odd") ? 15 * 8 : is("scene_short") ? 3 * 8 : sizeof x);
    }
}

static int play_child(void)
{
    static char text[5000];
    int t = 0;
    memset(text, 'x', sizeof text);
    for (;;) {
        uint32_t length;
        unsigned char kind;
        read_bytes(&length, 4);
        read_bytes(&kind, 1);
        double *body = calloc(length / 8 + 2, 8);
        read_bytes(body, length);
        switch (kind) {
        case OPC_FRAME_HELLO: say_hello((const char *)(body + 1)); break;
        case OPC_FRAME_RESET:
            t = 0;
            if (is("reset_dies"))
                _Exit(9);
            if (is("long_error"))
                send_frame(OPC_FRAME_ERROR, text, sizeof text);
            send_frame(kind, (double[]){0, is("reset_nan") ? (double)NAN : 0}, 16);
            if (is("deaf"))
                sleep(600);
            break;
        case OPC_FRAME_START: send_frame(kind, body, is("start_short") ? 8 : 16); break;
        case OPC_FRAME_STEP: answer_step(body, ++t); break;
        case OPC_FRAME_TERMINAL:
        case OPC_FRAME_REWARD: answer_batch(kind, body); break;
        case OPC_FRAME_REST:
        case OPC_FRAME_STATE:
        case OPC_FRAME_SCENE: answer_rest(kind); break;
        default: return 0;
        }
        free(body);
    }
}

/* ---- hello ----------------------------------------------------------------------------------- */

static void every_number_of_a_hello_is_checked(void **state)
{
    (void)state;
    const struct {
        const char *set, *key;
    } cases[] = {
        {"0=2", "version = 2"},
        {"0=nan", "version = nan"},
        {"1=0", "observations = 0"},
        {"1=1e9", "observations = 1e+09"},
        {"1=nan", "observations = nan"},
        {"2=0", "actions = 0"},
        {"2=4097", "actions = 4097"},
        {"2=1.5", "actions = 1.5"},
        {"2=2", "2 actions"}, /* whose ranges are not all there */
        {"3=-1", "full state = -1"},
        {"3=inf", "full state = inf"},
        {"4=0.5", "steps = 0.5"},
        {"4=1e10", "steps = 1e+10"},
        {"5=-0.1", "dt = -0.1"},
        {"5=nan", "dt = nan"},
        {"6=64", "flags = 64"},
        {"6=nan", "flags = nan"},
        {"7=-1", "deadline = -1"},
        {"7=inf", "deadline = inf"},
        {"8=1", "[1, 1]"},
        {"8=nan", "[nan, 1]"},
        {"9=inf", "[-1, inf]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[50];
        struct opc_env *env = NULL;
        struct opc_err err = {0};
        snprintf(name, sizeof name, "set:%s", cases[i].set);
        assert_fails(opc_env_open(child(name), &env, &err), OPC_EENV, &err, cases[i].key);
        assert_null(env);
    }
}

/* ---- reset, start, step ---------------------------------------------------------------------- */

static void a_wrong_answer_to_reset_or_step_is_named(void **state)
{
    (void)state;
    const struct {
        const char *mode, *asked, *key;
    } cases[] = {
        {"reset_nan", "reset", "entry 1"},          {"reset_dies", "reset", "status 9"},
        {"long_error", "reset", "kind 255"}, /* an error has at most 4096 bytes */
        {"reward_nan", "step 2", "reward is nan"},  {"reward_infinite", "step 2", "reward is inf"},
        {"truncated_2", "step 2", "truncated = 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double obs[2];
        struct opc_err err = {0};
        struct opc_env *env = open_child(child(cases[i].mode));
        assert_fails(play(env, 5, obs, &err), OPC_EENV, &err, cases[i].key);
        assert_mentions(&err, cases[i].asked);
        opc_env_close(env);
    }
}

static void a_wrong_answer_to_start_is_named(void **state)
{
    (void)state;
    double obs[2];
    struct opc_err err = {0};
    struct opc_env *env = open_child(child("start_short"));
    assert_fails(opc_env_start(env, (const double[]){1, 2}, obs, &err), OPC_EENV, &err,
                 "8 bytes where 16");
    opc_env_close(env);
}

/* It waits for its next question, and is not there when it comes. */
static void a_child_that_died_between_episodes_is_started_again(void **state)
{
    char spec[1600];
    double obs[2];
    struct opc_err err = {0};
    snprintf(spec, sizeof spec, "%s?%s/been", child("dies_when_idle"), (const char *)*state);
    struct opc_env *env = open_child(spec);
    assert_ok(play(env, 2, obs, &err), &err);
    logged[0] = '\0';
    opc_log_to(keep_log, NULL);
    assert_ok(play(env, 5, obs, &err), &err);
    opc_log_to(NULL, NULL);
    assert_contains(logged, "status 6");
    opc_env_close(env);
}

static void a_child_that_dies_when_it_rests_is_started_again(void **state)
{
    (void)state;
    double obs[2];
    struct opc_err err = {0};
    struct opc_env *env = open_child(child("rest_dies"));
    logged[0] = '\0';
    opc_log_to(keep_log, NULL);
    for (int i = 0; i < 5; i++) {
        assert_ok(play(env, 2, obs, &err), &err);
        opc_env_rest(env);
        assert_ok(opc_env_failure(env, &err), &err);
    }
    opc_log_to(NULL, NULL);
    assert_contains(logged, "rest: ");
    assert_contains(logged, "signal 9");
    opc_env_close(env);
    /* A machine is not: somebody has to look at it. */
    env = open_child(child("machine_rest_dies"));
    assert_ok(play(env, 2, obs, &err), &err);
    opc_env_rest(env);
    assert_fails(opc_env_failure(env, &err), OPC_EENV, &err, "signal 9");
    assert_fails(reset_env(env, 1, obs, &err), OPC_EENV, &err, "rest: ");
    opc_env_close(env);
}

/* In an episode, one that does not repeat itself cannot be started again. */
static void a_child_that_closes_its_output_is_not_waited_for(void **state)
{
    (void)state;
    double obs[2];
    struct opc_err err = {0};
    struct opc_env *env = open_child(child("closes_output"));
    assert_fails(play(env, 5, obs, &err), OPC_EENV, &err, "closed its output");
    assert_mentions(&err, "step 3");
    opc_env_close(env);
}

static void a_child_that_does_not_repeat_itself_is_found_out(void **state)
{
    char spec[1600];
    double obs[2];
    struct opc_err err = {0};
    snprintf(spec, sizeof spec, "%s?%s/been", child("liar"), (const char *)*state);
    struct opc_env *env = open_child(spec);
    assert_fails(play(env, 5, obs, &err), OPC_EENV, &err, "after the same 1 steps");
    assert_mentions(&err, "step 2");
    opc_env_close(env);
}

/* ---- questions that cannot return an error ----------------------------------------------------
 */

/* Asks about n imagined transitions, which end nowhere. */
static void ask_rows(struct opc_env *env, int n)
{
    float *s = calloc((size_t)n, 2 * sizeof *s), *a = calloc((size_t)n, sizeof *a);
    float *reward = calloc((size_t)n, sizeof *reward);
    bool *terminal = calloc((size_t)n, sizeof *terminal);
    opc_env_terminal(env, n, s, a, s, terminal);
    (void)opc_env_reward(env, n, s, a, s, reward);
    /* What the child said wrong is not passed on. */
    for (int i = 0; i < n; i++)
        assert_true(!terminal[i] && reward[i] == 0);
    free(s);
    free(a);
    free(reward);
    free(terminal);
}

static void a_wrong_answer_to_a_batch_is_kept(void **state)
{
    (void)state;
    const struct {
        const char *mode, *key;
    } cases[] = {
        {"batch_nan", "nan for row 2"},
        {"batch_two", "2 for row 0"},
        {"batch_short", "16 bytes where 24"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double obs[2];
        struct opc_err err = {0};
        struct opc_env *env = open_child(child(cases[i].mode));
        assert_ok(play(env, 2, obs, &err), &err);
        ask_rows(env, 3);
        assert_fails(opc_env_failure(env, &err), OPC_EENV, &err, cases[i].key);
        assert_mentions(&err, "terminal: ");
        /* and the next call that can fail does */
        assert_fails(reset_env(env, 1, obs, &err), OPC_EENV, &err, cases[i].key);
        opc_env_close(env);
    }
}

/* 4,000 rows are more than the pipe holds. */
static void a_child_that_does_not_read_ends_with_the_deadline(void **state)
{
    (void)state;
    double obs[2];
    struct opc_err err = {0};
    setenv("OPC_ENV_DEADLINE", "0.15", 1);
    struct opc_env *env = open_child(child("deaf"));
    assert_ok(reset_env(env, 1, obs, &err), &err);
    ask_rows(env, 4000);
    unsetenv("OPC_ENV_DEADLINE");
    assert_fails(opc_env_failure(env, &err), OPC_EENV, &err, "0.15 s");
    assert_mentions(&err, "terminal: ");
    opc_env_close(env);
}

/* state, scene and rest: what was asked, and of which the result is empty. */
static void a_wrong_state_scene_or_rest_is_kept(void **state)
{
    (void)state;
    const struct {
        const char *mode, *key;
    } cases[] = {
        {"state_nan", "nan for number 1"},  {"state_dies", "signal 9"},
        {"scene_nan", "nan for number 9"},  {"scene_dies", "signal 9"},
        {"scene_odd", "15 numbers"},        {"scene_short", "24 bytes where 32"},
        {"rest_speaks", "8 bytes where 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double obs[2], full[2] = {7, 7};
        struct opc_scene scene;
        struct opc_err err = {0};
        struct opc_env *env = open_child(child(cases[i].mode));
        char asked[20];
        snprintf(asked, sizeof asked, "%.5s", cases[i].mode);
        asked[strcspn(asked, "_")] = '\0';
        assert_ok(play(env, 2, obs, &err), &err);
        if (strcmp(asked, "state") == 0) {
            opc_env_state(env, full);
            assert_true(full[0] == 0 && full[1] == 0);
        } else if (strcmp(asked, "scene") == 0) {
            env->type->draw(env, &scene);
            assert_int_equal(scene.n, 0);
        } else
            opc_env_rest(env);
        assert_fails(opc_env_failure(env, &err), OPC_EENV, &err, cases[i].key);
        assert_mentions(&err, asked);
        opc_env_close(env);
    }
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc == 3 && strcmp(argv[1], "child") == 0) {
        mode = argv[2];
        return play_child();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_a_hello_is_checked),
        cmocka_unit_test(a_wrong_answer_to_reset_or_step_is_named),
        cmocka_unit_test(a_wrong_answer_to_start_is_named),
        cmocka_unit_test_setup_teardown(a_child_that_died_between_episodes_is_started_again,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test(a_child_that_dies_when_it_rests_is_started_again),
        cmocka_unit_test(a_child_that_closes_its_output_is_not_waited_for),
        cmocka_unit_test_setup_teardown(a_child_that_does_not_repeat_itself_is_found_out,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test(a_wrong_answer_to_a_batch_is_kept),
        cmocka_unit_test(a_child_that_does_not_read_ends_with_the_deadline),
        cmocka_unit_test(a_wrong_state_scene_or_rest_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
