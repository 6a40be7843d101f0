/* SPDX-License-Identifier: MIT */
/* Child processes: start, talk through pipes, wait, end. Called by the sweep's launchers, by
 * `opc env render` (ffmpeg) and by whatever else runs another program.
 *
 * Invariant: a child never inherits a descriptor or a blocked signal of ours. Every descriptor
 * opened here has O_CLOEXEC and a number above 2, and spawn() sets the signal mask and SIGPIPE. */
#define _GNU_SOURCE /* pipe2; NOLINT(bugprone-reserved-identifier) */
#include "base/process/child.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Finds the program as a shell would; returns ENOENT or EACCES if it cannot be run. We search and
 * not the child, so that the answer is certain on every system. */
static int find_program(const char *name, char out[OPC_PATH])
{
    const char *path = getenv("PATH");
    /* A name with a slash is a path and is not searched for: its one directory is "". */
    const char *dir = strchr(name, '/') ? ""
                      : path && *path   ? path
                                        : "/usr/local/bin:/usr/bin:/bin";
    int why = ENOENT;
    for (;;) {
        const int n = (int)strcspn(dir, ":");
        const char *slash = n > 0 ? "/" : "";
        /* A directory or a file without the x bit is not it, but the search goes on: a later
         * directory may have it. */
        if (snprintf(out, OPC_PATH, "%.*s%s%s", n, dir, slash, name) < OPC_PATH &&
            access(out, F_OK) == 0) {
            if (!opc_is_directory(out) && access(out, X_OK) == 0)
                return 0;
            why = EACCES;
        }
        if (!dir[n])
            return why;
        dir += n + 1;
    }
}

/* What the standard streams of a child are to be: descriptors or -1. Without `in` it reads
 * /dev/null, and without the others it inherits our streams. `output` gets standard error, and
 * standard output, unless there is a pipe for it. */
struct streams {
    int in, out, err, output;
};

static int plan_streams(posix_spawn_file_actions_t *todo, const struct streams *s)
{
    int bad = s->in >= 0 ? posix_spawn_file_actions_adddup2(todo, s->in, 0)
                         : posix_spawn_file_actions_addopen(todo, 0, "/dev/null", O_RDONLY, 0);
    if (!bad && (s->err >= 0 || s->output >= 0))
        bad = posix_spawn_file_actions_adddup2(todo, s->err >= 0 ? s->err : s->output, 2);
    if (!bad && (s->out >= 0 || s->output >= 0))
        bad = posix_spawn_file_actions_adddup2(todo, s->out >= 0 ? s->out : s->output, 1);
    return bad;
}

/* posix_spawn and not fork, because our memory may fill most of the machine and need not be copied.
 * It also returns the errno of an exec that failed. */
static int spawn(const char *program, char *const argv[], bool apart, const struct streams *streams,
                 pid_t *pid)
{
    posix_spawn_file_actions_t todo;
    posix_spawnattr_t attr;
    if (posix_spawn_file_actions_init(&todo))
        return ENOMEM;
    if (posix_spawnattr_init(&attr)) {
        posix_spawn_file_actions_destroy(&todo);
        return ENOMEM;
    }
    /* The child starts with no signal blocked (a thread of the pool blocks all) and with the
     * default action of SIGPIPE (we may ignore it). */
    sigset_t none, pipes;
    sigemptyset(&none);
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &pipes);
    /* apart: a process group of its own, which Ctrl-C on the terminal does not reach. */
    const int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    posix_spawnattr_setflags(&attr, (short)(flags | (apart ? POSIX_SPAWN_SETPGROUP : 0)));

    int bad = plan_streams(&todo, streams);
    if (!bad)
        bad =
            opc_fault_hits_system() ? EIO : posix_spawn(pid, program, &todo, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&todo);
    return bad;
}

/* Turns the errno of a failed start into what the user can do about it. */
static int cannot_start(const char *name, int why, struct opc_err *err)
{
    const char *reason = NULL;
    if (why == ENOENT && strchr(name, '/') && opc_file_exists(name))
        reason = "the program named in its first line does not exist";
    else if (why == ENOENT)
        reason = "there is no such program; install it or give its path";
    else if (why == EACCES)
        reason = "it is not executable; try chmod +x";
    else if (why == ENOEXEC)
        reason = "it is not a program; a script starts with #! and its interpreter";
    if (reason)
        return opc_fail(err, OPC_EIO, "cannot start %s: %s", name, reason);
    return opc_fail_errno(err, why, "cannot start %s", name);
}

/* Moves a descriptor above 2. If we were started without standard streams, open and pipe return 0,
 * 1 or 2, and plan_streams would overwrite such a number in the child before it is used. */
static int clear_of_standard(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3), why = errno;
    close(fd);
    errno = why;
    return moved;
}

static bool make_pipe(int fd[2])
{
    if (opc_fault_hits_system() || pipe2(fd, O_CLOEXEC))
        return false;
    fd[0] = clear_of_standard(fd[0]);
    fd[1] = clear_of_standard(fd[1]);
    return fd[0] >= 0 && fd[1] >= 0;
}

static int open_output(const char *path)
{
    if (opc_fault_hits_system())
        return -1;
    return clear_of_standard(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
}

int opc_child_start(char *const argv[], const struct opc_child_plan *plan, struct opc_child *out,
                    struct opc_err *err)
{
    static const struct opc_child_plan PLAIN;
    if (!plan)
        plan = &PLAIN;
    char program[OPC_PATH];
    const char *wanted = plan->program ? plan->program : argv[0];
    const int absent = find_program(wanted, program);
    if (absent)
        return cannot_start(wanted, absent, err);

    /* Pipes and the output file come first, then the process; whatever was opened is closed below.
     */
    struct opc_child c = {.in = -1, .out = -1, .err = -1, .whole_group = plan->whole_group};
    snprintf(c.name, sizeof c.name, "%s", argv[0]);
    int to[2] = {-1, -1}, from[2] = {-1, -1}, words[2] = {-1, -1}, output = -1, code = OPC_OK;
    if ((plan->pipe_in && !make_pipe(to)) || (plan->pipe_out && !make_pipe(from)) ||
        (plan->pipe_err && !make_pipe(words)))
        code = opc_fail_errno(err, errno, "cannot make a pipe to %s", argv[0]);
    else if (plan->output && (output = open_output(plan->output)) < 0)
        code = opc_fail_errno(err, errno, "cannot write %s", plan->output);
    else {
        const struct streams streams = {to[0], from[1], words[1], output};
        const int why = spawn(program, argv, plan->apart, &streams, &c.pid);
        if (why)
            code = cannot_start(program, why, err);
    }
    /* The far ends belong to the child alone: with a copy of ours open it would never see an end
     * of file. */
    close_fd(&to[0]);
    close_fd(&from[1]);
    close_fd(&words[1]);
    close_fd(&output);
    if (code) {
        close_fd(&to[1]);
        close_fd(&from[0]);
        close_fd(&words[0]);
        return code;
    }
    c.in = to[1];
    c.out = from[0];
    c.err = words[0];
    *out = c;
    return OPC_OK;
}

/* Writes to a pipe whose reader may be gone: all of it, or what one write(2) takes. SIGPIPE is
 * blocked in this thread meanwhile, and taken back if this write raised it, so other threads and a
 * SIGPIPE that was pending before are left as they were. Returns the bytes written, or -1. */
static ssize_t write_without_signal(int fd, const void *data, size_t n, bool all)
{
    sigset_t pipes, before, waiting;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipes, &before);
    const ssize_t done = !all                         ? write(fd, data, n)
                         : opc_write_all(fd, data, n) ? (ssize_t)n
                                                      : (ssize_t)-1;
    const int why = errno;
    if (done < 0 && why == EPIPE && !sigismember(&waiting, SIGPIPE)) {
        /* The pending signal is ours: consume it before it is unblocked. */
        const struct timespec at_once = {0};
        while (sigtimedwait(&pipes, NULL, &at_once) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return done;
}

int opc_child_gone(struct opc_child *c, const char *what, struct opc_err *err)
{
    /* A process closes its pipes a moment before it can be waited for, and on a busy machine that
     * moment is long: give it 5 s. Only one that lives on without its pipes takes them all. */
    for (int i = 0; i < 2500 && !opc_child_poll(c); i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (!c->done)
        return opc_fail(err, OPC_EIO, "%s closed its %s", c->name, what);
    if (c->status > 128)
        return opc_fail(err, OPC_EIO, "%s was ended by signal %d", c->name, c->status - 128);
    return opc_fail(err, OPC_EIO, "%s ended early, with exit status %d", c->name, c->status);
}

int opc_child_write(struct opc_child *c, const void *data, size_t n, struct opc_err *err)
{
    if (write_without_signal(c->in, data, n, true) >= 0)
        return OPC_OK;
    return errno == EPIPE ? opc_child_gone(c, "input", err)
                          : opc_fail_errno(err, errno, "cannot write to %s", c->name);
}

ssize_t opc_child_try_write(struct opc_child *c, const void *data, size_t n)
{
    return opc_fault_hits_system() ? -1 : write_without_signal(c->in, data, n, false);
}

void opc_child_close_input(struct opc_child *c)
{
    close_fd(&c->in);
}

void opc_child_close_error(struct opc_child *c)
{
    close_fd(&c->err);
}

/* Waits until there is something to read, an end of file included. Returns 1, 0 when the time is
 * up, or -1 with errno. `until` is a time of opc_now(); below 0 it waits for ever. */
static int readable(int fd, double until)
{
    for (;;) {
        int ms = -1;
        if (until >= 0) {
            /* The time is computed anew after a signal. Rounding up avoids a busy loop in the last
             * millisecond. */
            const double left = until - opc_now();
            ms = left <= 0 ? 0 : left > 1e6 ? 1000000000 : (int)(left * 1e3) + 1;
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int n = poll(&p, 1, ms);
        if (n >= 0 || errno != EINTR)
            return n;
    }
}

int opc_child_read(struct opc_child *c, void *data, size_t n, double seconds, struct opc_err *err)
{
    const double until = seconds < 0 ? -1 : opc_now() + seconds;
    unsigned char *p = data;
    while (n > 0) {
        /* Without a deadline read() itself waits, which saves the poll. */
        const int ready = until < 0 ? 1 : readable(c->out, until);
        if (ready == 0)
            return opc_fail(err, OPC_EIO, "%s has not answered within %g s", c->name, seconds);
        const ssize_t got = ready < 0 || opc_fault_hits_system() ? -1 : read(c->out, p, n);
        if (got == 0)
            return opc_child_gone(c, "output", err);
        if (got < 0 && errno != EINTR)
            return opc_fail_errno(err, errno, "cannot read from %s", c->name);
        if (got > 0) {
            p += got;
            n -= (size_t)got;
        }
    }
    return OPC_OK;
}

int opc_child_read_all(struct opc_child *c, size_t max, struct opc_text *text, struct opc_err *err)
{
    char piece[4096];
    size_t sum = 0;
    for (;;) {
        const ssize_t got = opc_fault_hits_system() ? -1 : read(c->out, piece, sizeof piece);
        if (got == 0)
            return opc_text_check(text, err);
        if (got < 0 && errno != EINTR)
            return opc_fail_errno(err, errno, "cannot read from %s", c->name);
        if (got < 0)
            continue;
        sum += (size_t)got;
        if (sum > max)
            return opc_fail(err, OPC_EIO, "%s printed more than %zu bytes", c->name, max);
        opc_text_add_bytes(text, piece, (size_t)got);
    }
}

/* Collects the exit status; true once the child has ended. With `wait` it blocks until then. */
static bool reap(struct opc_child *c, bool wait)
{
    if (c->done || c->pid <= 0)
        return true;
    int raw;
    pid_t pid;
    do
        pid = waitpid(c->pid, &raw, wait ? 0 : WNOHANG);
    while (pid < 0 && errno == EINTR);
    if (pid == 0)
        return false;
    c->done = true;
    if (pid < 0)
        c->status = 255; /* its status is lost: other code of the process has waited for it */
    else
        c->status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
    return true;
}

bool opc_child_poll(struct opc_child *c)
{
    return reap(c, false);
}

int opc_child_wait(struct opc_child *c)
{
    reap(c, true);
    return c->status;
}

void opc_child_kill(struct opc_child *c, int signal)
{
    /* A process that has ended is reaped here, after which its number may be another process's. */
    if (!opc_child_poll(c))
        kill(c->whole_group ? -c->pid : c->pid, signal);
}

/* Polls every millisecond, which is exact enough for ends that take seconds. */
static bool ends_within(struct opc_child *c, double seconds)
{
    const double until = opc_now() + seconds;
    while (!opc_child_poll(c)) {
        if (opc_now() >= until)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

void opc_child_end(struct opc_child *c, double seconds)
{
    if (c->pid <= 0)
        return;
    /* Closed pipes are how a well-behaved child learns that it should end. */
    close_fd(&c->in);
    close_fd(&c->out);
    close_fd(&c->err);
    if (ends_within(c, seconds))
        return;
    opc_child_kill(c, SIGTERM);
    if (ends_within(c, seconds))
        return;
    opc_child_kill(c, SIGKILL);
    opc_child_wait(c);
}

int opc_child_run(char *const argv[], size_t max, struct opc_text *output, struct opc_err *err)
{
    struct opc_child c = {.in = -1, .out = -1, .err = -1};
    int code = opc_child_start(argv, &(struct opc_child_plan){.pipe_out = true}, &c, err);
    if (code)
        return code;
    code = opc_child_read_all(&c, max, output, err);
    /* A child that printed too much may block on its full pipe for ever. */
    if (code)
        opc_child_kill(&c, SIGKILL);
    close_fd(&c.out);
    if (opc_child_wait(&c) != 0 && !code)
        code = opc_fail(err, OPC_EIO, "%s failed with exit status %d", c.name, c.status);
    return code;
}
