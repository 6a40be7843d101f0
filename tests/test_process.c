/* SPDX-License-Identifier: MIT */
/* exec: environments. The children are this program itself, started as `child MODE`: each plays a
 * small task and misbehaves in one way. */
#include "base/clock.h"
#include "base/process/words.h"
#include "child.h"
#include "env/check.h"
#include "env/many.h"
#include "opc/mem.h"

#include <signal.h>
#include <time.h>

/* ---- the child ------------------------------------------------------------------------------- */

/* x' = x + 0.1 u, observed with the number of steps; the reward is -x'^2, the task ends beyond 2.
 */
struct task {
    double x, t;
    const char *mode;
    const char *args;
};

static bool is(const struct task *task, const char *mode)
{
    return strcmp(task->mode, mode) == 0;
}

/* A file that says whether an earlier child has been here: restarts are seen by it. */
static bool first_time(const struct task *task)
{
    FILE *f = fopen(task->args, "r");
    if (f) {
        fclose(f);
        return false;
    }
    f = fopen(task->args, "w");
    fclose(f);
    return true;
}

static void say_hello(struct task *task)
{
    static const char TEXT[] = "name=line\nsummary=a line\nunknown=7\n";
    double x[] = {1, 2,  1, 2, 20, 0.1, OPC_CHILD_REPEATS | OPC_CHILD_TERMINAL | OPC_CHILD_REWARD,
                  0, -1, 1};
    unsigned char body[sizeof x + sizeof TEXT];
    if (is(task, "other_sizes") && !first_time(task))
        x[1] = 3;
    if (is(task, "version"))
        x[0] = 2;
    if (is(task, "no_observations"))
        x[1] = 0;
    if (is(task, "bad_range"))
        x[8] = 5;
    if (is(task, "no_functions"))
        x[6] = OPC_CHILD_REPEATS;
    if (is(task, "not_repeating"))
        x[6] = OPC_CHILD_TERMINAL;
    if (is(task, "machine") || is(task, "machine_dies"))
        x[6] = OPC_CHILD_MACHINE;
    if (is(task, "scene"))
        x[6] += OPC_CHILD_SCENE;
    if (is(task, "patient"))
        x[7] = 0.2;
    memcpy(body, x, sizeof x);
    memcpy(body + sizeof x, TEXT, sizeof TEXT - 1);
    send_frame(OPC_FRAME_HELLO, body, is(task, "short_hello") ? 9 * 8 : sizeof x + sizeof TEXT - 1);
}

/* A step that misbehaves, from the third step of an episode on. */
static void misbehave(struct task *task)
{
    const double nan_at_1[5] = {0, (double)NAN};
    if (is(task, "crash"))
        raise(SIGKILL);
    if (is(task, "crash_once") && first_time(task))
        raise(SIGKILL);
    if (is(task, "crash_often") && task->t == 3)
        _Exit(7);
    if (is(task, "machine_dies"))
        _Exit(3);
    if (is(task, "speak")) {
        fprintf(stderr, "warming up\nthe encoder is silent\n");
        _Exit(2);
    }
    if (is(task, "hang") || is(task, "patient"))
        sleep(600);
    if (is(task, "nan"))
        send_frame(OPC_FRAME_STEP, nan_at_1, sizeof nan_at_1);
    if (is(task, "short"))
        send_frame(OPC_FRAME_STEP, nan_at_1, 4 * 8);
    if (is(task, "odd"))
        send_frame(OPC_FRAME_STEP, nan_at_1, 37);
    if (is(task, "kind"))
        send_frame(OPC_FRAME_RESET, nan_at_1, sizeof nan_at_1);
    if (is(task, "twice")) { /* in one piece */
        unsigned char both[2 * 45] = {40, [4] = OPC_FRAME_STEP, [45] = 40, [49] = OPC_FRAME_STEP};
        fwrite(both, 1, sizeof both, stdout);
        fflush(stdout);
    }
    if (is(task, "half_true")) {
        const double x[] = {0, 0, 0, 0.5, 0};
        send_frame(OPC_FRAME_STEP, x, sizeof x);
    }
    if (is(task, "print"))
        printf("step %g\n", task->t), fflush(stdout);
    if (is(task, "error"))
        send_frame(OPC_FRAME_ERROR, "division\nby zero", 16);
    if (is(task, "huge")) { /* claims a gigabyte */
        const uint32_t length = 1u << 30;
        fwrite(&length, 4, 1, stdout);
        fputc(OPC_FRAME_STEP, stdout);
        fflush(stdout);
        sleep(600);
    }
    if (is(task, "drip")) /* a byte now and then, for ever */
        for (int i = 0;; i++) {
            fputc(i == 0 ? 40 : i < 4 ? 0 : OPC_FRAME_STEP, stdout);
            fflush(stdout);
            nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
        }
}

static void answer_step(struct task *task, double u)
{
    static const char *const NORMAL[] = {
        "good",        "no_functions", "not_repeating", "truncate", "chatty",       "crash_once",
        "other_sizes", "terminal_nan", "terminal_dies", "machine",  "terminal_once"};
    task->t++;
    if (task->t >= 3)
        misbehave(task);
    bool normal = task->t < 3;
    for (size_t i = 0; i < sizeof NORMAL / sizeof *NORMAL; i++)
        normal = normal || is(task, NORMAL[i]);
    if (!normal)
        return;
    if (is(task, "chatty"))
        for (int i = 0; i < 3000; i++)
            fprintf(stderr, "step %g: a line that is longer than it needs to be\n", task->t);
    task->x += 0.1 * u;
    if (is(task, "not_repeating"))
        task->x += 1e-3 * (double)(getpid() % 100 + 1);
    const double end = is(task, "truncate") && task->t >= 5;
    const double x[] = {task->x, task->t, -task->x * task->x, fabs(task->x) > 2, end};
    send_frame(OPC_FRAME_STEP, x, sizeof x);
}

static void answer_batch(struct task *task, int kind, const double *body)
{
    const int n = (int)body[0];
    double *out = calloc((size_t)n + 1, sizeof *out);
    if (is(task, "terminal_dies") || (is(task, "terminal_once") && first_time(task)))
        raise(SIGKILL);
    for (int i = 0; i < n; i++) {
        const double *next = body + 1 + 5 * i + 3;
        out[i] = kind == OPC_FRAME_TERMINAL ? fabs(next[0]) > 2 : -next[0] * next[0];
        if (is(task, "terminal_nan"))
            out[i] = (double)NAN;
    }
    send_frame(kind, out, (size_t)n * sizeof *out);
    free(out);
}

static int play_child(const char *mode)
{
    static char args[512];
    struct task task = {.mode = mode, .args = args};
    if (is(&task, "dies_at_once"))
        return 3;
    if (is(&task, "deaf"))
        sleep(600);
    for (;;) {
        uint32_t length;
        unsigned char kind;
        read_bytes(&length, 4);
        read_bytes(&kind, 1);
        double *body = calloc(length / 8 + 2, 8);
        read_bytes(body, length);
        if (kind == OPC_FRAME_HELLO)
            snprintf(args, sizeof args, "%s", (const char *)(body + 1));
        switch (kind) {
        case OPC_FRAME_HELLO: say_hello(&task); break;
        case OPC_FRAME_RESET:
            task.x = body[0] / 4294967296.0;
            task.t = 0;
            send_frame(kind, (double[]){task.x, 0}, 16);
            break;
        case OPC_FRAME_START:
            task.x = body[0];
            task.t = body[1];
            send_frame(kind, body, 16);
            break;
        case OPC_FRAME_STATE: send_frame(kind, (double[]){task.x, task.t}, 16); break;
        case OPC_FRAME_STEP: answer_step(&task, body[0]); break;
        case OPC_FRAME_REST: send_frame(kind, "", 0); break;
        case OPC_FRAME_SCENE: /* a picture 2 wide with one capsule */
            send_frame(kind, (double[]){0, 0, 1, 2, 1, 2, 3, 4, 5, 6, 0.5, 0.25, 0.5, 1}, 14 * 8);
            break;
        case OPC_FRAME_TERMINAL:
        case OPC_FRAME_REWARD: answer_batch(&task, kind, body); break;
        default: return 0;
        }
        free(body);
    }
}

/* Opens, plays ten steps, and wants this failure. */
static void fails_with(const char *mode, const char *key)
{
    double obs[2];
    struct opc_err err = {0};
    struct opc_env *env = open_child(child(mode));
    assert_fails(play(env, 10, obs, &err), OPC_EENV, &err, key);
    assert_mentions(&err, "step 3");
    assert_mentions(&err, mode);
    opc_env_close(env);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void words_are_split_as_sh_quotes_them(void **state)
{
    (void)state;
    const struct {
        const char *text, *words; /* joined by | */
    } cases[] = {
        {"python3 my_env.py", "python3|my_env.py"},
        {"  a\tb \n", "a|b"},
        {"'a b' \"c d\" e\\ f", "a b|c d|e f"},
        {"a''b \"\" c", "ab||c"},
        {"'it'\\''s' \"\\\"q\\\" \\x\"", "it's|\"q\" \\x"},
        {"$HOME * ~ a|b >c `d`", "$HOME|*|~|a|b|>c|`d`"},
        {"'\\'", "\\"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char **words, joined[200] = "";
        struct opc_err err = {0};
        assert_ok(opc_split_words(cases[i].text, strlen(cases[i].text), &words, &err), &err);
        for (int k = 0; words[k]; k++)
            snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s", k ? "|" : "",
                     words[k]);
        assert_string_equal(joined, cases[i].words);
        opc_free(words);
    }
    char **words;
    struct opc_err err = {0};
    assert_fails(opc_split_words("a 'b", 4, &words, &err), OPC_EUSER, &err, "a 'b");
    assert_fails(opc_split_words("a \"b", 4, &words, &err), OPC_EUSER, &err, "quote");
    assert_fails(opc_split_words("  ", 2, &words, &err), OPC_EUSER, &err, "command");
}

/* ---- a good child ---------------------------------------------------------------------------- */

static void a_child_is_an_environment_as_any_other(void **state)
{
    (void)state;
    struct opc_env *env = open_child(child("good?one=1&two=2"));
    struct opc_err err = {0};
    double obs[2], now[2];
    assert_int_equal(env->obs, 2);
    assert_int_equal(env->steps, 20);
    assert_string_equal(env->type->page->summary, "a line");
    assert_true(env->low[0] == -1 && env->high[0] == 1 && env->dt == 0.1);
    /* step, time limit, full state */
    assert_ok(opc_env_start(env, (const double[]){1, 3}, obs, &err), &err);
    assert_true(obs[0] == 1 && obs[1] == 3);
    struct opc_outcome out = {.obs = obs};
    assert_ok(opc_env_step(env, (const double[]){0.5}, &out, &err), &err);
    assert_true(obs[0] == 1 + 0.1 * 0.5 && obs[1] == 4 && out.reward == -obs[0] * obs[0]);
    opc_env_state(env, now);
    assert_true(now[0] == obs[0]);
    /* imagined transitions, more than one question holds */
    enum { N = 5000 };
    static float s[2 * N], a[N], next[2 * N], reward[N];
    static bool terminal[N];
    for (int i = 0; i < N; i++)
        next[2 * i] = i % 3 ? 1.0f : 2.5f;
    opc_env_terminal(env, N, s, a, next, terminal);
    assert_true(opc_env_reward(env, N, s, a, next, reward));
    for (int i = 0; i < N; i++) {
        assert_int_equal(terminal[i], i % 3 == 0);
        assert_true(reward[i] == -next[2 * i] * next[2 * i]);
    }
    assert_ok(opc_env_failure(env, &err), &err);
    opc_env_close(env);

    struct opc_env_report report;
    const struct opc_check_plan plan = {.seed = 1, .transitions = 300};
    assert_ok(opc_env_check(child("good"), &plan, &report, &err), &err);
    assert_true(report.repeats && report.known_reward);
}

static void many_children_are_stepped_side_by_side(void **state)
{
    (void)state;
    enum { N = 4 };
    struct opc_pool *pool;
    struct opc_many *many;
    struct opc_err err = {0};
    struct opc_rng rng[N];
    double obs[N][2], alone[2], action[N] = {0.5, 0.5, 0.5, 0.5};
    struct opc_outcome out[N];
    assert_ok(opc_pool_create(2, &pool, &err), &err);
    assert_ok(opc_many_open(child("good"), N, pool, &many, &err), &err);
    for (uint32_t i = 0; i < N; i++) {
        rng[i] = opc_rng_stream(1, OPC_USE_TEST, 0, i);
        out[i].obs = obs[i];
    }
    assert_ok(opc_many_reset(many, NULL, rng, &obs[0][0], &err), &err);
    for (int t = 0; t < 5; t++)
        assert_ok(opc_many_step(many, NULL, action, out, &err), &err);
    /* the first one, alone: many children do not see each other */
    struct opc_env *env = open_child(child("good"));
    assert_ok(play(env, 5, alone, &err), &err);
    assert_same_bits(alone, obs[0], sizeof alone);
    assert_true(obs[1][0] != obs[0][0]);
    opc_env_close(env);
    opc_many_close(many);
    opc_pool_destroy(pool);
}

/* A step that was asked ahead and never taken is forgotten by the next reset. */
static void a_question_that_was_sent_ahead_does_no_harm(void **state)
{
    (void)state;
    struct opc_env *env = open_child(child("good")), *other = open_child(child("good"));
    struct opc_err err = {0};
    double obs[2], good[2];
    assert_ok(play(env, 3, obs, &err), &err);
    opc_process_step_ahead(env, (const double[]){0.25});
    opc_process_step_ahead(env, (const double[]){0.75});  /* is not asked twice */
    opc_process_step_ahead(other, (const double[]){0.5}); /* has no episode yet */
    assert_ok(play(env, 4, obs, &err), &err);
    assert_ok(play(other, 4, good, &err), &err);
    assert_same_bits(obs, good, sizeof obs);
    /* nor does one about imagined states in between */
    bool out = true;
    opc_process_step_ahead(env, (const double[]){0.5});
    opc_env_terminal(env, 1, (float[]){0, 0}, (float[]){0}, (float[]){0, 0}, &out);
    assert_false(out);
    assert_ok(opc_env_failure(env, &err), &err);
    /* but then the child is a step further than we are, and the episode is over */
    assert_fails(opc_env_step(env, (const double[]){0.5}, &(struct opc_outcome){.obs = obs}, &err),
                 OPC_EENV, &err, "reset");
    opc_env_close(env);
    opc_env_close(other);
}

static void a_child_may_truncate_by_itself(void **state)
{
    (void)state;
    struct opc_env *env = open_child(child("truncate"));
    struct opc_err err = {0};
    double obs[2];
    struct opc_outcome out = {.obs = obs};
    assert_ok(reset_env(env, 1, obs, &err), &err);
    int t = 0;
    while (t < 20 && !out.truncated) {
        assert_ok(opc_env_step(env, (const double[]){0}, &out, &err), &err);
        t++;
    }
    assert_int_equal(t, 5);
    assert_false(out.terminated);
    opc_env_close(env);
}

/* 3,000 lines for each step: far more than a pipe holds. */
static void what_a_child_prints_never_blocks_it(void **state)
{
    (void)state;
    struct opc_env *env = open_child(child("chatty"));
    struct opc_err err = {0};
    double obs[2];
    logged[0] = '\0';
    opc_log_to(keep_log, NULL);
    assert_ok(play(env, 3, obs, &err), &err);
    opc_log_to(NULL, NULL);
    assert_contains(logged, "step 1: a line");
    opc_env_close(env);
}

static void a_child_without_functions_is_checked_without_them(void **state)
{
    (void)state;
    struct opc_env_report report;
    struct opc_err err = {0};
    const struct opc_check_plan plan = {.seed = 1, .transitions = 300};
    struct opc_env *env = open_child(child("no_functions"));
    bool terminal = true;
    assert_true(!env->type->terminal && !env->type->reward);
    opc_env_terminal(env, 1, (float[]){0, 0}, (float[]){0}, (float[]){9, 9}, &terminal);
    assert_false(terminal);
    opc_env_close(env);
    assert_ok(opc_env_check(child("no_functions"), &plan, &report, &err), &err);
    assert_false(report.known_reward);
    /* one that says it does not repeat itself is believed */
    assert_ok(opc_env_check(child("not_repeating"), &plan, &report, &err), &err);
    assert_false(report.repeats);
}

static void a_child_can_be_drawn(void **state)
{
    (void)state;
    struct opc_env *env = open_child(child("scene"));
    struct opc_err err = {0};
    struct opc_scene scene;
    double obs[2];
    assert_ok(reset_env(env, 1, obs, &err), &err);
    assert_non_null(env->type->draw);
    env->type->draw(env, &scene);
    assert_ok(opc_env_failure(env, &err), &err);
    assert_int_equal(scene.n, 1);
    const struct opc_shape *shape = &scene.shape[0];
    assert_true(scene.centre[2] == 1 && scene.width == 2 && shape->from[2] == 3);
    assert_true(shape->to[0] == 4 && shape->radius == 0.5 && shape->rgb[1] == 0.5f);
    opc_env_close(env);
}

/* ---- children that misbehave ----------------------------------------------------------------- */

static void a_child_that_cannot_begin_is_named(void **state)
{
    (void)state;
    struct opc_env *env = NULL;
    struct opc_err err = {0};
    assert_fails(opc_env_open("exec:", &env, &err), OPC_EUSER, &err, "command");
    assert_fails(opc_env_open("exec:'a", &env, &err), OPC_EUSER, &err, "quote");
    assert_fails(opc_env_open("exec:opc-no-such-program x", &env, &err), OPC_EENV, &err,
                 "opc-no-such-program");
    assert_fails(opc_env_open(child("dies_at_once"), &env, &err), OPC_EENV, &err, "status 3");
    assert_fails(opc_env_open("exec:echo hello there", &env, &err), OPC_EENV, &err,
                 "'hello there'");
    assert_fails(opc_env_open(child("version"), &env, &err), OPC_EENV, &err, "version = 2");
    assert_fails(opc_env_open(child("no_observations"), &env, &err), OPC_EENV, &err,
                 "observations = 0");
    assert_fails(opc_env_open(child("bad_range"), &env, &err), OPC_EENV, &err, "[5, 1]");
    assert_fails(opc_env_open(child("short_hello"), &env, &err), OPC_EENV, &err, "80");
    setenv("OPC_ENV_DEADLINE", "0.2", 1);
    assert_fails(opc_env_open(child("deaf"), &env, &err), OPC_EENV, &err, "0.2 s");
    setenv("OPC_ENV_DEADLINE", "soon", 1);
    assert_fails(opc_env_open(child("good"), &env, &err), OPC_EUSER, &err, "soon");
    unsetenv("OPC_ENV_DEADLINE");
    assert_null(env);
}

static void a_lie_is_named_with_the_step(void **state)
{
    (void)state;
    fails_with("nan", "nan");
    fails_with("short", "32 bytes where 40");
    fails_with("odd", "37 bytes");
    fails_with("kind", "kind 2");
    fails_with("half_true", "terminated = 0.5");
    fails_with("print", "'step 3'");
    fails_with("error", "division by zero");
    fails_with("huge", "1073741824 bytes");
}

/* The second answer may arrive after the first was read; then the next question finds it. */
static void an_answer_too_many_is_never_taken_for_the_next(void **state)
{
    (void)state;
    double obs[2];
    struct opc_err err = {0};
    struct opc_env *env = open_child(child("twice"));
    assert_fails(play(env, 10, obs, &err), OPC_EENV, &err, "more than");
    opc_env_close(env);
}

static void silence_ends_with_the_deadline(void **state)
{
    (void)state;
    const double start = opc_now();
    fails_with("patient", "0.2 s"); /* its own deadline */
    setenv("OPC_ENV_DEADLINE", "0.15", 1);
    fails_with("hang", "0.15 s");
    fails_with("drip", "0.15 s"); /* bytes arrive all the time, an answer does not */
    unsetenv("OPC_ENV_DEADLINE");
    assert_true(opc_now() - start < 60);
}

static void a_death_is_named_with_status_and_last_words(void **state)
{
    (void)state;
    fails_with("crash", "signal 9");
    fails_with("crash", "3 restarts");
    fails_with("crash_often", "status 7");
    fails_with("speak", "the encoder is silent");
}

/* ---- restarts -------------------------------------------------------------------------------- */

static void a_child_that_repeats_itself_is_started_again_unnoticed(void **state)
{
    char spec[1600];
    double obs[2], good[2];
    struct opc_err err = {0};
    snprintf(spec, sizeof spec, "%s?%s/been", child("crash_once"), (const char *)*state);
    struct opc_env *env = open_child(spec), *other = open_child(child("good"));
    logged[0] = '\0';
    opc_log_to(keep_log, NULL);
    assert_ok(play(env, 9, obs, &err), &err);
    opc_log_to(NULL, NULL);
    assert_contains(logged, "signal 9");
    assert_ok(play(other, 9, good, &err), &err);
    assert_same_bits(obs, good, sizeof obs);
    opc_env_close(env);
    opc_env_close(other);
}

static void a_later_child_must_be_like_the_first(void **state)
{
    char spec[1600];
    double obs[2];
    struct opc_err err = {0};
    struct opc_env *copy = NULL;
    snprintf(spec, sizeof spec, "%s?%s/been", child("other_sizes"), (const char *)*state);
    struct opc_env *env = open_child(spec);
    assert_ok(opc_env_another(env, &copy, &err), &err); /* it answers when it is first asked */
    assert_fails(reset_env(copy, 1, obs, &err), OPC_EENV, &err, "3 observations");
    opc_env_close(copy);
    opc_env_close(env);
}

static void a_machine_is_never_started_again(void **state)
{
    (void)state;
    double obs[2];
    struct opc_err err = {0};
    struct opc_env *env = open_child(child("machine_dies")), *copy = NULL;
    assert_true(env->type->machine && opc_env_is_machine(child("machine_dies")));
    assert_fails(opc_env_another(env, &copy, &err), OPC_EUSER, &err, "machine");
    assert_fails(play(env, 9, obs, &err), OPC_EENV, &err, "status 3");
    opc_env_close(env);
    env = open_child(child("machine"));
    assert_ok(play(env, 9, obs, &err), &err);
    opc_env_rest(env);
    assert_ok(opc_env_failure(env, &err), &err);
    opc_env_close(env);
}

/* terminal cannot return an error, so it is kept until somebody asks. */
static void a_failure_of_terminal_is_kept(void **state)
{
    char spec[1600];
    double obs[2];
    bool out[1] = {true};
    const float s[2] = {0, 0}, a[1] = {0}, next[2] = {3, 0};
    struct opc_err err = {0};
    struct opc_env *env = open_child(child("terminal_nan"));
    assert_ok(reset_env(env, 1, obs, &err), &err);
    opc_env_terminal(env, 1, s, a, next, out);
    assert_false(out[0]);
    assert_fails(opc_env_failure(env, &err), OPC_EENV, &err, "terminal: ");
    assert_fails(reset_env(env, 1, obs, &err), OPC_EENV, &err, "nan");
    opc_env_close(env);

    env = open_child(child("terminal_dies"));
    assert_ok(play(env, 3, obs, &err), &err);
    opc_env_terminal(env, 1, s, a, next, out);
    assert_fails(opc_env_failure(env, &err), OPC_EENV, &err, "signal 9");
    opc_env_close(env);

    /* One that only died once is asked again, and its episode goes on. */
    snprintf(spec, sizeof spec, "%s?%s/asked", child("terminal_once"), (const char *)*state);
    env = open_child(spec);
    assert_ok(play(env, 3, obs, &err), &err);
    opc_env_terminal(env, 1, s, a, next, out);
    assert_true(out[0]);
    struct opc_outcome step = {.obs = obs};
    assert_ok(opc_env_step(env, (const double[]){0.5}, &step, &err), &err);
    assert_true(obs[1] == 4);
    opc_env_close(env);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static int open_and_play(void *ctx, struct opc_err *err)
{
    struct opc_env *env;
    double obs[2];
    (void)ctx;
    OPC_TRY(opc_env_open(child("good"), &env, err));
    const int code = play(env, 1, obs, err);
    opc_env_close(env);
    return code;
}

static void opening_survives_lack_of_memory(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(open_and_play, NULL);
}

static bool stop_now(void)
{
    return true;
}

static void a_wait_ends_when_a_stop_is_wanted(void **state)
{
    (void)state;
    double obs[2];
    struct opc_err err = {0};
    struct opc_env *env = open_child(child("hang"));
    opc_env_wait_until(stop_now);
    assert_int_equal(play(env, 9, obs, &err), OPC_ESTOPPED);
    opc_env_wait_until(NULL);
    opc_env_close(env);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return play_child(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_split_as_sh_quotes_them),
        cmocka_unit_test(a_child_is_an_environment_as_any_other),
        cmocka_unit_test(many_children_are_stepped_side_by_side),
        cmocka_unit_test(a_question_that_was_sent_ahead_does_no_harm),
        cmocka_unit_test(a_child_may_truncate_by_itself),
        cmocka_unit_test(what_a_child_prints_never_blocks_it),
        cmocka_unit_test(a_child_without_functions_is_checked_without_them),
        cmocka_unit_test(a_child_can_be_drawn),
        cmocka_unit_test(a_child_that_cannot_begin_is_named),
        cmocka_unit_test(a_lie_is_named_with_the_step),
        cmocka_unit_test(an_answer_too_many_is_never_taken_for_the_next),
        cmocka_unit_test(silence_ends_with_the_deadline),
        cmocka_unit_test(a_death_is_named_with_status_and_last_words),
        cmocka_unit_test_setup_teardown(a_child_that_repeats_itself_is_started_again_unnoticed,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(a_later_child_must_be_like_the_first, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(a_machine_is_never_started_again),
        cmocka_unit_test_setup_teardown(a_failure_of_terminal_is_kept, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(opening_survives_lack_of_memory),
        cmocka_unit_test(a_wait_ends_when_a_stop_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
