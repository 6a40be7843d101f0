/* SPDX-License-Identifier: MIT */
#include "base/process/child.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "opc/mem.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#define ARGV(...) ((char *const[]){__VA_ARGS__, NULL})
#define SHELL(script) ARGV("sh", "-c", script)
static const struct opc_child_plan BOTH = {.pipe_in = true, .pipe_out = true};

static void cat_gives_back_what_it_is_sent(void **state)
{
    (void)state;
    struct opc_child c;
    struct opc_err err;
    assert_ok(opc_child_start(ARGV("cat"), &BOTH, &c, &err), &err);
    for (int i = 0; i < 50; i++) {
        char got[16] = {0};
        assert_ok(opc_child_write(&c, "hello\0world", 11, &err), &err);
        assert_ok(opc_child_read(&c, got, 5, 10, &err), &err);
        assert_ok(opc_child_read(&c, got + 5, 6, -1, &err), &err);
        assert_same_bits(got, "hello\0world", 11);
    }
    assert_false(opc_child_poll(&c));
    opc_child_close_input(&c);
    opc_child_close_input(&c);
    assert_int_equal(opc_child_wait(&c), 0);
    assert_true(opc_child_poll(&c));
    opc_child_kill(&c, SIGKILL); /* nobody there any more */
    opc_child_end(&c, 0);
    opc_child_end(&c, 0);
}

static void a_missing_program_is_an_error_of_start(void **state)
{
    struct opc_child c = {.pid = 42};
    struct opc_err err;
    assert_fails(opc_child_start(ARGV("opc-no-such-program"), NULL, &c, &err), OPC_EIO, &err,
                 "opc-no-such-program");
    assert_int_equal(c.pid, 42);
    assert_fails(opc_child_start(ARGV("/"), NULL, &c, &err), OPC_EIO, &err, "chmod");

    char script[OPC_PATH];
    opc_path_join(script, *state, "script", NULL);
    assert_ok(opc_file_write(script, "#!/no/such/shell\n", 17, &err), &err);
    assert_fails(opc_child_start(ARGV(script), NULL, &c, &err), OPC_EIO, &err, script);
    assert_mentions(&err, "chmod");
    const char *preload = getenv("LD_PRELOAD");
    if (preload && strstr(preload, "vgpreload"))
        return; /* valgrind forgets to tell what the kernel said */
    chmod(script, 0755);
    assert_fails(opc_child_start(ARGV(script), NULL, &c, &err), OPC_EIO, &err, script);
    assert_mentions(&err, "first line");
    assert_ok(opc_file_write(script, "echo no shebang\n", 16, &err), &err);
    chmod(script, 0755);
    assert_fails(opc_child_start(ARGV(script), NULL, &c, &err), OPC_EIO, &err, script);
    assert_mentions(&err, "#!");
}

static void the_exit_status_is_told_as_a_shell_would(void **state)
{
    (void)state;
    struct opc_child c;
    struct opc_err err;
    assert_ok(opc_child_start(SHELL("exit 3"), NULL, &c, &err), &err);
    assert_int_equal(opc_child_wait(&c), 3);
    assert_ok(opc_child_start(ARGV("sleep", "100"), NULL, &c, &err), &err);
    assert_false(opc_child_poll(&c));
    opc_child_kill(&c, SIGTERM);
    assert_int_equal(opc_child_wait(&c), 128 + SIGTERM);
    assert_int_equal(opc_child_wait(&c), 128 + SIGTERM);
}

static void ending_is_patient_then_firm(void **state)
{
    (void)state;
    struct opc_child c;
    struct opc_err err;
    assert_ok(opc_child_start(ARGV("cat"), &BOTH, &c, &err), &err);
    opc_child_end(&c, 10); /* its input ends, so it does */
    assert_int_equal(c.status, 0);
    assert_ok(opc_child_start(ARGV("sleep", "100"), NULL, &c, &err), &err);
    opc_child_end(&c, 0.05);
    assert_int_equal(c.status, 128 + SIGTERM);
    char ready;
    assert_ok(
        opc_child_start(SHELL("trap '' TERM; echo; while :; do sleep 0.01; done"), &BOTH, &c, &err),
        &err);
    assert_ok(opc_child_read(&c, &ready, 1, 10, &err), &err);
    opc_child_end(&c, 0.05);
    assert_int_equal(c.status, 128 + SIGKILL);
    opc_child_end(&(struct opc_child){0}, 1);
}

static void a_child_that_stops_reading_is_an_error_not_a_signal(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    struct opc_child c;
    struct opc_err err;
    char *much = opc_alloc(N, 1);
    assert_ok(opc_child_start(SHELL("exit 4"), &BOTH, &c, &err), &err);
    assert_fails(opc_child_write(&c, much, N, &err), OPC_EIO, &err, "status 4");
    opc_child_end(&c, 1);
    assert_ok(opc_child_start(SHELL("kill -9 $$"), &BOTH, &c, &err), &err);
    assert_fails(opc_child_write(&c, much, N, &err), OPC_EIO, &err, "signal 9");
    opc_child_end(&c, 1);
    assert_ok(opc_child_start(SHELL("exec <&-; exec sleep 100"), &BOTH, &c, &err), &err);
    assert_fails(opc_child_write(&c, much, N, &err), OPC_EIO, &err, "input");
    opc_child_end(&c, 0);
    opc_free(much);

    /* the process is as before: SIGPIPE is neither ignored, nor blocked, nor waiting */
    struct sigaction action;
    sigset_t set;
    sigaction(SIGPIPE, NULL, &action);
    assert_true(action.sa_handler == SIG_DFL);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    assert_false(sigismember(&set, SIGPIPE));
    sigpending(&set);
    assert_false(sigismember(&set, SIGPIPE));
}

static void a_child_that_ends_or_stays_silent_is_an_error_of_read(void **state)
{
    (void)state;
    struct opc_child c;
    struct opc_err err;
    char got[8];
    assert_ok(opc_child_start(SHELL("printf abc; exit 7"), &BOTH, &c, &err), &err);
    assert_ok(opc_child_read(&c, got, 2, 10, &err), &err);
    assert_fails(opc_child_read(&c, got, 2, 10, &err), OPC_EIO, &err, "status 7");
    opc_child_end(&c, 1);
    assert_ok(opc_child_start(ARGV("sleep", "100"), &BOTH, &c, &err), &err);
    const double start = opc_now();
    assert_fails(opc_child_read(&c, got, 1, 0.05, &err), OPC_EIO, &err, "0.05 s");
    assert_true(opc_now() - start >= 0.05);
    opc_child_end(&c, 0);
}

/* Without a pipe a child has nothing to read, so that it cannot wait for a terminal. */
static void without_a_pipe_the_input_is_empty(void **state)
{
    (void)state;
    struct opc_text t = {0};
    struct opc_err err;
    assert_ok(opc_child_run(ARGV("cat"), 100, &t, &err), &err);
    assert_string_equal(opc_text_get(&t), "");
    opc_text_free(&t);
}

static void run_collects_what_is_printed(void **state)
{
    (void)state;
    struct opc_text t = {0};
    struct opc_err err;
    opc_text_add(&t, "> ");
    assert_ok(opc_child_run(SHELL("echo one; echo two"), 100, &t, &err), &err);
    assert_string_equal(opc_text_get(&t), "> one\ntwo\n");
    assert_fails(opc_child_run(SHELL("echo three; exit 2"), 100, &t, &err), OPC_EIO, &err,
                 "status 2");
    assert_fails(opc_child_run(ARGV("yes"), 10000, &t, &err), OPC_EIO, &err, "10000");
    opc_text_free(&t);
}

static void output_can_go_to_a_file(void **state)
{
    char path[OPC_PATH], *got = NULL;
    struct opc_err err;
    struct opc_child c;
    opc_path_join(path, *state, "log.txt", NULL);
    for (int i = 0; i < 2; i++) {
        const struct opc_child_plan plan = {.output = path};
        assert_ok(opc_child_start(SHELL("echo out; echo err >&2"), &plan, &c, &err), &err);
        assert_int_equal(opc_child_wait(&c), 0);
    }
    const struct opc_child_plan plan = {.output = path, .pipe_out = true};
    char piped[4];
    assert_ok(opc_child_start(SHELL("echo out; echo err >&2"), &plan, &c, &err), &err);
    assert_ok(opc_child_read(&c, piped, 4, 10, &err), &err);
    opc_child_wait(&c);
    opc_child_end(&c, 1);
    assert_same_bits(piped, "out\n", 4);
    assert_ok(opc_file_read(path, 1000, &got, NULL, &err), &err);
    assert_string_equal(got, "out\nerr\nout\nerr\nerr\n");
    opc_free(got);

    opc_path_join(path, *state, "none/log.txt", NULL);
    assert_fails(opc_child_start(SHELL("exit"), &plan, &c, &err), OPC_EUSER, &err, path);
}

static int open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* The program can have another name than its file, and a group that our terminal does not signal.
 */
static void a_child_can_stand_apart_under_another_name(void **state)
{
    (void)state;
    struct opc_child c;
    struct opc_err err;
    char said[5] = {0};
    const struct opc_child_plan plan = {
        .pipe_in = true, .pipe_out = true, .program = "sh", .apart = true};
    assert_ok(opc_child_start(ARGV("x", "-c", "printf \"$0\" && cat", "name"), &plan, &c, &err),
              &err);
    assert_ok(opc_child_read(&c, said, 4, 10, &err), &err);
    assert_string_equal(said, "name");
    assert_int_equal(getpgid(c.pid), c.pid);
    assert_int_not_equal(getpgrp(), c.pid);
    assert_string_equal(c.name, "x");
    opc_child_end(&c, 10);
    assert_int_equal(c.status, 0);

    struct opc_child_plan none = {.program = "opc-no-such-program"};
    assert_fails(opc_child_start(ARGV("sh"), &none, &c, &err), OPC_EIO, &err,
                 "opc-no-such-program");
}

/* A second child that inherited our end of the first one's pipe would keep it from seeing the end
 * of its input. */
static void no_file_leaks_into_children_or_stays_with_us(void **state)
{
    (void)state;
    const int before = open_files();
    struct opc_child first, second;
    struct opc_err err;
    assert_ok(opc_child_start(ARGV("cat"), &BOTH, &first, &err), &err);
    char script[100];
    snprintf(script, sizeof script, "test ! -e /proc/$$/fd/%d && test ! -e /proc/$$/fd/%d",
             first.in, first.out);
    assert_ok(opc_child_start(SHELL(script), &BOTH, &second, &err), &err);
    opc_child_close_input(&first);
    assert_int_equal(opc_child_wait(&first), 0);
    assert_int_equal(opc_child_wait(&second), 0);
    opc_child_end(&first, 1);
    opc_child_end(&second, 1);
    assert_int_equal(open_files(), before);
}

/* Started without standard input, as by some job managers: pipes must not end up in its place. */
static void closed_standard_input_is_no_trap(void **state)
{
    (void)state;
    struct opc_child c;
    struct opc_err err;
    char got[3] = {0};
    const int saved = dup(0);
    close(0);
    const int started = opc_child_start(ARGV("cat", "/dev/null", "-"), &BOTH, &c, &err);
    int code = started ? started : opc_child_write(&c, "ok", 2, &err);
    if (!code)
        code = opc_child_read(&c, got, 2, 10, &err);
    struct opc_text t = {0};
    const int run = opc_child_run(ARGV("echo", "run"), 100, &t, &err);
    if (saved >= 0) {
        dup2(saved, 0);
        close(saved);
    }
    assert_int_equal(code, OPC_OK);
    assert_int_equal(run, OPC_OK);
    assert_string_equal(got, "ok");
    assert_string_equal(opc_text_get(&t), "run\n");
    opc_text_free(&t);
    opc_child_end(&c, 1);
}

static void start_in_thread(void *ctx, int first, int end, int worker)
{
    (void)end;
    (void)worker;
    int *status = ctx;
    struct opc_child c;
    if (opc_child_start(SHELL("kill -TERM $$; exit 0"), NULL, &c, NULL) == OPC_OK)
        status[first] = opc_child_wait(&c);
}

/* Threads of the pool block all signals; their children must not. */
static void children_of_any_thread_can_be_stopped(void **state)
{
    (void)state;
    enum { N = 6 };
    struct opc_pool *pool;
    struct opc_err err;
    int status[N] = {0};
    assert_ok(opc_pool_create(3, &pool, &err), &err);
    opc_pool_each(pool, N, 1, start_in_thread, status);
    opc_pool_destroy(pool);
    for (int i = 0; i < N; i++)
        assert_int_equal(status[i], 128 + SIGTERM);
}

static int start_and_talk(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_child c = {0};
    char got[2];
    int code = opc_child_start(ARGV("cat"), &BOTH, &c, err);
    if (!code)
        code = opc_child_write(&c, "ab", 2, err);
    if (!code)
        code = opc_child_read(&c, got, 2, 10, err);
    opc_child_end(&c, 1);
    return code;
}

static int run_echo(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_text t = {0};
    const int code = opc_child_run(ARGV("echo", "x"), 100, &t, err);
    opc_text_free(&t);
    return code;
}

static void children_survive_every_fault(void **state)
{
    (void)state;
    const int before = open_files();
    assert_survives_system_faults(start_and_talk, NULL);
    assert_survives_system_faults(run_echo, NULL);
    assert_survives_lack_of_memory(run_echo, NULL);
    assert_int_equal(open_files(), before);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cat_gives_back_what_it_is_sent),
        IN_DIR(a_missing_program_is_an_error_of_start),
        cmocka_unit_test(the_exit_status_is_told_as_a_shell_would),
        cmocka_unit_test(ending_is_patient_then_firm),
        cmocka_unit_test(a_child_that_stops_reading_is_an_error_not_a_signal),
        cmocka_unit_test(a_child_that_ends_or_stays_silent_is_an_error_of_read),
        cmocka_unit_test(without_a_pipe_the_input_is_empty),
        cmocka_unit_test(run_collects_what_is_printed),
        IN_DIR(output_can_go_to_a_file),
        cmocka_unit_test(a_child_can_stand_apart_under_another_name),
        cmocka_unit_test(no_file_leaks_into_children_or_stays_with_us),
        cmocka_unit_test(closed_standard_input_is_no_trap),
        cmocka_unit_test(children_of_any_thread_can_be_stopped),
        cmocka_unit_test(children_survive_every_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
