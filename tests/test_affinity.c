/* SPDX-License-Identifier: MIT */
/* base/process/affinity.h: a child is asked on the core of the thread that waits for it, and both
 * have their cores back afterwards. The children are this program itself, started as `child MODE`;
 * where cores cannot be chosen (one core, not Linux) there is nothing to test. */
#define _GNU_SOURCE /* sched_setaffinity; NOLINT(bugprone-reserved-identifier) */
#include "base/process/affinity.h"

#include "child.h"
#include "env/many.h"
#include "opc/mem.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { STEPS = 200 };

#ifdef __linux__

static int count_cores(pid_t thread)
{
    cpu_set_t set;
    return sched_getaffinity(thread, sizeof set, &set) ? 0 : CPU_COUNT(&set);
}

/* ---- the child ------------------------------------------------------------------------------- */

static pthread_t helper;
static pid_t helper_id;

static void *idle(void *ctx)
{
    helper_id = gettid();
    *(volatile int *)ctx = 1;
    pause();
    return NULL;
}

/* A step: the observation is the core it was made on, the reward how many cores its second thread
 * may use. */
static void answer_step(const char *mode, int t)
{
    static volatile int started;
    if (strcmp(mode, "thread") == 0 && t >= 20) {
        if (!started)
            pthread_create(&helper, NULL, idle, (void *)(uintptr_t)&started);
        while (!started)
            sched_yield();
    }
    if (strcmp(mode, "slow") == 0)
        nanosleep(&(struct timespec){.tv_nsec = 6000000}, NULL);
    const double x[] = {sched_getcpu(), t, started ? count_cores(helper_id) : 0, 0, 0};
    send_frame(OPC_FRAME_STEP, x, sizeof x);
}

static int play_child(const char *mode)
{
    int t = 0;
    if (strcmp(mode, "chosen") == 0) { /* the last core alone */
        cpu_set_t set, one;
        CPU_ZERO(&one);
        sched_getaffinity(0, sizeof set, &set);
        for (size_t i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &set)) {
                CPU_ZERO(&one);
                CPU_SET(i, &one);
            }
        sched_setaffinity(0, sizeof one, &one);
    }
    for (;;) {
        uint32_t length;
        unsigned char kind;
        double body[16];
        read_bytes(&length, 4);
        read_bytes(&kind, 1);
        read_bytes(body, length);
        switch (kind) {
        case OPC_FRAME_HELLO:
            send_frame(kind,
                       (double[]){1, 2, 1, 0, 0, 0, strcmp(mode, "machine") ? 0 : OPC_CHILD_MACHINE,
                                  0, -1, 1},
                       80);
            break;
        case OPC_FRAME_RESET: send_frame(kind, (double[]){0, t = 0}, 16); break;
        case OPC_FRAME_STEP: answer_step(mode, ++t); break;
        case OPC_FRAME_REST: send_frame(kind, "", 0); break;
        default: return 0;
        }
    }
}

/* ---- helpers --------------------------------------------------------------------------------- */

static const struct opc_link *link_of(const struct opc_env *env)
{
    return &((const struct process *)env)->talks->link;
}

/* Plays, and wants before and after each step that thread and child have the cores they had.
 * Returns on how many steps the child was asked on our core. */
static int play_watched(struct opc_env *env, int steps, struct opc_outcome *out)
{
    struct opc_err err = {0};
    const pid_t pid = link_of(env)->child.pid;
    int near = 0;
    assert_ok(reset_env(env, 1, out->obs, &err), &err);
    const int own = count_cores(0), its = count_cores(pid);
    for (int t = 0; t < steps; t++) {
        const struct opc_affinity before = link_of(env)->affinity;
        assert_ok(opc_env_step(env, (const double[]){0}, out, &err), &err);
        assert_int_equal(count_cores(0), own);
        assert_int_equal(count_cores(pid), its);
        near += !before.off && (before.phase == OPC_AFFINITY_NEAR ||
                                (before.phase == OPC_AFFINITY_CHOSEN && before.near));
    }
    return near;
}

/* There must be two cores, and a child of one thread: the thread sanitizer adds one. */
static void skip_where_nothing_moves(void)
{
#if defined(__SANITIZE_THREAD__)
    print_message("children have a second thread here\n");
    skip();
#endif
    if (count_cores(0) == 1) {
        print_message("there is only one core\n");
        skip();
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Steps until both ways have been timed: a block of quick answers in each, which a busy machine
 * interrupts. Confined to our core when it is woken, the child computes there, but for a rare move
 * once it runs. */
static void a_child_is_asked_on_our_core_and_given_back(void **state)
{
    (void)state;
    double obs[2];
    struct opc_outcome out = {.obs = obs};
    int asked = 0, same = 0;
    skip_where_nothing_moves();
    struct opc_env *env = open_child(child("good"));
    const struct opc_affinity *a = &link_of(env)->affinity;
    for (int i = 0; i < 20000 && a->phase != OPC_AFFINITY_CHOSEN; i++) {
        const bool near = play_watched(env, 1, &out) > 0;
        asked += near;
        same += near && (int)obs[0] == a->core;
    }
    assert_int_equal(a->phase, OPC_AFFINITY_CHOSEN);
    assert_false(a->off);
    assert_false(a->moved);
    assert_true(asked >= OPC_AFFINITY_BLOCK);
    assert_true(same > asked / 2);
    opc_env_close(env);
}

/* One that has chosen a single core, a machine, slow answers, and the user's wish. */
static void some_children_are_left_alone(void **state)
{
    (void)state;
    double obs[2];
    struct opc_outcome out = {.obs = obs};
    struct opc_err err = {0};
    skip_where_nothing_moves();
    const char *const modes[] = {"chosen", "machine", "slow"};
    for (int i = 0; i < 3; i++) {
        struct opc_env *env = open_child(child(modes[i]));
        play_watched(env, i == 2 ? 2 * OPC_AFFINITY_BLOCK : STEPS, &out);
        assert_int_equal(link_of(env)->affinity.core, -1); /* it was never moved */
        assert_int_equal(count_cores(link_of(env)->child.pid), i == 0 ? 1 : count_cores(0));
        opc_env_close(env);
    }
    setenv("OPC_ENV_AFFINITY", "0", 1);
    struct opc_env *env = open_child(child("good"));
    assert_int_equal(play_watched(env, STEPS, &out), 0);
    opc_env_close(env);
    setenv("OPC_ENV_AFFINITY", "near", 1);
    assert_fails(opc_env_open(child("good"), &env, &err), OPC_EUSER, &err, "near");
    unsetenv("OPC_ENV_AFFINITY");
}

/* It is started in the middle of a step, perhaps while the child was confined to our core. */
static void a_later_thread_gets_all_cores(void **state)
{
    (void)state;
    double obs[2];
    struct opc_outcome out = {.obs = obs};
    skip_where_nothing_moves();
    for (int i = 0; i < 5; i++) {
        struct opc_env *env = open_child(child("thread"));
        const int near = play_watched(env, STEPS, &out);
        assert_int_equal((int)out.reward, count_cores(0));
        /* It is left alone soon after the thread, which comes with the 20th step. */
        assert_true(near <= OPC_AFFINITY_BLOCK);
        opc_env_close(env);
    }
}

/* Children that are asked together must be able to compute together. */
static void children_that_are_stepped_together_are_left_alone(void **state)
{
    (void)state;
    enum { N = 2 };
    struct opc_many *many;
    struct opc_err err = {0};
    struct opc_rng rng[N];
    double obs[N][2], action[N] = {0};
    struct opc_outcome out[N];
    skip_where_nothing_moves();
    assert_ok(opc_many_open(child("good"), N, NULL, &many, &err), &err);
    for (uint32_t i = 0; i < N; i++) {
        rng[i] = opc_rng_stream(1, OPC_USE_TEST, 0, i);
        out[i].obs = obs[i];
    }
    assert_ok(opc_many_reset(many, NULL, rng, &obs[0][0], &err), &err);
    for (int t = 0; t < STEPS; t++)
        assert_ok(opc_many_step(many, NULL, action, out, &err), &err);
    for (int i = 0; i < N; i++)
        assert_int_equal(link_of(opc_many_env(many, i))->affinity.core, -1);
    opc_many_close(many);
}

/* A process of another user, or one that has gone: the kernel refuses, and nothing fails. */
static void a_refusal_is_no_failure(void **state)
{
    (void)state;
    struct opc_affinity a;
    const int own = count_cores(0);
    opc_affinity_begin(&a, 0x3ffffffe, false); /* a number that no process has */
    for (int i = 0; i < 3 * OPC_AFFINITY_BLOCK; i++) {
        opc_affinity_ask(&a);
        opc_affinity_sent(&a);
        opc_affinity_done(&a, true);
        assert_int_equal(count_cores(0), own);
    }
    assert_true(a.off && !a.moved);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return play_child(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_asked_on_our_core_and_given_back),
        cmocka_unit_test(some_children_are_left_alone),
        cmocka_unit_test(a_later_thread_gets_all_cores),
        cmocka_unit_test(children_that_are_stepped_together_are_left_alone),
        cmocka_unit_test(a_refusal_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
