/* SPDX-License-Identifier: MIT */
#include "sweep/claim.h"

#include "base/clock.h"
#include "base/file.h"
#include "opc/mem.h"
#include "sweep/worklist.h"
#include "test.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

/* ---- what the tests share -------------------------------------------------------------------- */

static struct opc_claims *open_claims(void **state, int runs, double timeout)
{
    struct opc_claims *claims;
    struct opc_err err = {0};
    assert_ok(opc_claims_open(*state, runs, timeout, &claims, &err), &err);
    return claims;
}

static enum opc_claim take(struct opc_claims *claims, int i, const char *name)
{
    struct opc_err err = {0};
    enum opc_claim claim;
    assert_ok(opc_claims_take(claims, i, name, &claim, &err), &err);
    return claim;
}

static const char *claim_file(void **state, const char *name)
{
    static char path[OPC_PATH];
    snprintf(path, sizeof path, "%s/.claims/%s", (const char *)*state, name);
    return path;
}

/* Changes the boot id in a claim: it is then one of another machine, with the same host name and
 * process number. */
static void move_to_another_machine(const char *path)
{
    struct opc_err err = {0};
    char *text;
    size_t n;
    assert_ok(opc_file_read(path, 1000, &text, &n, &err), &err);
    char *at = text;
    for (int k = 0; k < 3; k++)
        at = strchr(at, ' ') + 1;
    memset(at, 'x', 8);
    assert_ok(opc_file_write(path, text, n, &err), &err);
    opc_free(text);
}

static void sleep_s(double seconds)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds,
                                 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)},
              NULL);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Each of eight processes tries to take each of 50 runs; the exit status of the sum tells. */
static void of_many_processes_one_gets_each_run(void **state)
{
    enum { PROCESSES = 8, RUNS = 50 };
    int fd[2], counts[RUNS] = {0};
    assert_int_equal(pipe(fd), 0);
    for (int p = 0; p < PROCESSES; p++) {
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
            continue;
        struct opc_claims *claims;
        if (opc_claims_open(*state, RUNS, 60, &claims, NULL))
            _exit(1);
        for (int k = 0; k < RUNS; k++) {
            const int i = (k * 7 + p) % RUNS; /* in another order each */
            char name[16];
            enum opc_claim claim;
            snprintf(name, sizeof name, "run%d", i);
            if (opc_claims_take(claims, i, name, &claim, NULL))
                _exit(1);
            const unsigned char which = (unsigned char)i;
            if (claim == OPC_CLAIM_OURS && write(fd[1], &which, 1) != 1)
                _exit(1);
        }
        sleep_s(0.5); /* a process that is gone has claims no longer */
        _exit(0);
    }
    close(fd[1]);
    for (unsigned char which; read(fd[0], &which, 1) == 1;)
        counts[which]++;
    close(fd[0]);
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < RUNS; i++)
        assert_int_equal(counts[i], 1);
}

static void a_claim_ends_given_back_done_or_given_up(void **state)
{
    struct opc_claims *a = open_claims(state, 3, 60), *b = open_claims(state, 3, 60);
    for (int i = 0; i < 3; i++) {
        static const char *const NAME[] = {"back", "done", "failed"};
        (void)opc_claims_peek(b, i, NAME[i]);
        assert_int_equal(take(a, i, NAME[i]), OPC_CLAIM_OURS);
        assert_int_equal(take(b, i, NAME[i]), OPC_CLAIM_HELD);
    }
    opc_claims_release(a, 0, OPC_CLAIM_GIVE_BACK, 75);
    assert_int_equal(opc_claims_peek(b, 0, "back"), OPC_CLAIM_FREE);
    assert_int_equal(take(b, 0, "back"), OPC_CLAIM_OURS);
    assert_int_equal(take(a, 0, "back"), OPC_CLAIM_HELD);
    /* A complete run has no claims. */
    opc_claims_release(a, 1, OPC_CLAIM_DONE, 0);
    assert_false(opc_file_exists(claim_file(state, "done.1")));
    /* One that was given up is left alone by those who were there, and tried by who comes later. */
    opc_claims_release(a, 2, OPC_CLAIM_GIVE_UP, 5);
    assert_int_equal(take(b, 2, "failed"), OPC_CLAIM_FAILED);
    assert_int_equal(opc_claims_status(b, 2), 5);
    struct opc_claims *c = open_claims(state, 3, 60);
    assert_int_equal(take(c, 2, "failed"), OPC_CLAIM_OURS);
    opc_claims_release(c, 2, OPC_CLAIM_DONE, 0);
    opc_claims_close(a);
    /* What is still ours is given back at the end. */
    char host[OPC_HOST];
    opc_claim_host(*state, "back", host);
    assert_true(*host != '\0');
    opc_claims_close(b);
    opc_claim_host(*state, "back", host);
    assert_string_equal(host, "");
    opc_claims_close(c);
}

static void a_process_of_this_machine_that_is_gone_holds_nothing(void **state)
{
    struct opc_claims *claims = open_claims(state, 1, 3600);
    const pid_t pid = fork();
    if (pid == 0) {
        struct opc_claims *own;
        enum opc_claim claim = OPC_CLAIM_HELD;
        _exit(opc_claims_open(*state, 1, 3600, &own, NULL) ||
              opc_claims_take(own, 0, "run", &claim, NULL) || claim != OPC_CLAIM_OURS);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    /* Its job may need a moment to end, too. */
    assert_int_equal(take(claims, 0, "run"), OPC_CLAIM_HELD);
    const double began = opc_now();
    while (take(claims, 0, "run") == OPC_CLAIM_HELD)
        sleep_s(0.05);
    assert_true(opc_now() - began > 0.9 && opc_now() - began < 60);
    opc_claims_close(claims);
}

static void on_another_machine_only_the_counter_tells(void **state)
{
    struct opc_claims *owner = open_claims(state, 1, 1), *other = open_claims(state, 1, 1);
    struct opc_err err = {0};
    char path[OPC_PATH];
    assert_int_equal(take(owner, 0, "run"), OPC_CLAIM_OURS);
    snprintf(path, sizeof path, "%s", claim_file(state, "run.1"));
    /* It beats, and is alive for longer than the limit. */
    for (const double began = opc_now(); opc_now() - began < 2; sleep_s(0.05)) {
        assert_ok(opc_claims_beat(owner, &err), &err);
        move_to_another_machine(path);
        assert_int_equal(take(other, 0, "run"), OPC_CLAIM_HELD);
    }
    /* It is silent. */
    const double began = opc_now();
    while (take(other, 0, "run") == OPC_CLAIM_HELD)
        sleep_s(0.05);
    assert_true(opc_now() - began > 0.7 && opc_now() - began < 60);
    /* It was only asleep: it sees that the run is another's now, and leaves that claim alone. */
    assert_false(opc_claims_lost(owner, 0));
    assert_ok(opc_claims_beat(owner, &err), &err);
    assert_true(opc_claims_lost(owner, 0));
    opc_claims_release(owner, 0, OPC_CLAIM_DONE, 0);
    assert_true(opc_file_exists(claim_file(state, "run.2")));
    assert_int_equal(take(owner, 0, "run"), OPC_CLAIM_HELD);
    opc_claims_close(owner);
    opc_claims_close(other);
}

/* A machine that lost power may leave a file that is empty. */
static void a_claim_that_says_nothing_ends_like_a_silent_one(void **state)
{
    struct opc_claims *claims = open_claims(state, 1, 1);
    struct opc_err err = {0};
    assert_ok(opc_file_write(claim_file(state, "run.1"), "", 0, &err), &err);
    assert_int_equal(take(claims, 0, "run"), OPC_CLAIM_HELD);
    while (take(claims, 0, "run") == OPC_CLAIM_HELD)
        sleep_s(0.05);
    assert_true(opc_file_exists(claim_file(state, "run.2")));
    opc_claims_close(claims);
}

/* Files that cannot be written for half the limit: others would take our runs over. */
static void a_beat_that_cannot_be_written_is_an_error(void **state)
{
    struct opc_claims *claims = open_claims(state, 1, 1);
    struct opc_err err = {0};
    char path[OPC_PATH];
    assert_int_equal(take(claims, 0, "run"), OPC_CLAIM_OURS);
    /* A directory in its place cannot be written, and is there. */
    snprintf(path, sizeof path, "%s", claim_file(state, "run.1"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    int code = OPC_OK;
    const double began = opc_now();
    while (!(code = opc_claims_beat(claims, &err)) && opc_now() - began < 60)
        sleep_s(0.05);
    assert_int_equal(code, OPC_EUSER);
    assert_mentions(&err, ".claims");
    assert_true(opc_now() - began > 0.4);
    opc_claims_close(claims);
}

static int open_and_close(void *ctx, struct opc_err *err)
{
    struct opc_claims *claims;
    const int code = opc_claims_open(ctx, 3, 60, &claims, err);
    if (!code)
        opc_claims_close(claims);
    return code;
}

static void claims_survive_lack_of_memory(void **state)
{
    assert_survives_lack_of_memory(open_and_close, *state);
}

/* ---- lists of runs --------------------------------------------------------------------------- */

static void a_list_gives_each_task_its_runs(void **state)
{
    static const char *const NAME[] = {"a", "b_s1", "c", "d", "e"};
    char path[OPC_PATH], out[OPC_PATH], yaml[OPC_PATH];
    struct opc_err err = {0};
    struct opc_sweep *sweep;
    snprintf(path, sizeof path, "%s/.slurm", (const char *)*state);
    assert_ok(opc_make_directories(path, &err), &err);
    snprintf(path, sizeof path, "%s/.queue", (const char *)*state);
    assert_ok(opc_make_directories(path, &err), &err);
    for (int i = 0; i < 5; i++) {
        char text[64];
        snprintf(yaml, sizeof yaml, "%s/.queue/%s.yaml", (const char *)*state, NAME[i]);
        const int n = snprintf(text, sizeof text, "train: {seed: %d, epochs: 3}\n", i + 10);
        assert_ok(opc_file_write(yaml, text, (size_t)n, &err), &err);
    }
    snprintf(path, sizeof path, "%s/.slurm/1.runs", (const char *)*state);
    assert_ok(opc_worklist_write(path, 2, 5, NAME, &err), &err);
    assert_ok(opc_worklist_open(path, 2, &sweep, out, &err), &err);
    assert_string_equal(out, *state);
    assert_int_equal(sweep->tasks, 2);
    assert_string_equal(sweep->task[0].name, "c");
    assert_int_equal(sweep->task[1].set.train.seed, 13);
    opc_sweep_close(sweep);
    /* The last task has what is left. */
    assert_ok(opc_worklist_open(path, 3, &sweep, out, &err), &err);
    assert_int_equal(sweep->tasks, 1);
    assert_string_equal(sweep->task[0].name, "e");
    opc_sweep_close(sweep);
    assert_fails(opc_worklist_open(path, 4, &sweep, out, &err), OPC_EUSER, &err, "1 to 3");
    assert_fails(opc_worklist_open(path, 0, &sweep, out, &err), OPC_EUSER, &err, "1 to 3");
    /* Settings that are gone, and a file that is no list. */
    assert_int_equal(unlink(yaml), 0);
    assert_fails(opc_worklist_open(path, 3, &sweep, out, &err), OPC_EUSER, &err, yaml);
    assert_ok(opc_file_write(path, "vary:\n", 6, &err), &err);
    assert_fails(opc_worklist_open(path, 1, &sweep, out, &err), OPC_EUSER, &err, "pack N");
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(of_many_processes_one_gets_each_run),
        IN_DIR(a_claim_ends_given_back_done_or_given_up),
        IN_DIR(a_process_of_this_machine_that_is_gone_holds_nothing),
        IN_DIR(on_another_machine_only_the_counter_tells),
        IN_DIR(a_claim_that_says_nothing_ends_like_a_silent_one),
        IN_DIR(a_beat_that_cannot_be_written_is_an_error),
        IN_DIR(claims_survive_lack_of_memory),
        IN_DIR(a_list_gives_each_task_its_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
