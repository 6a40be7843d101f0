/* SPDX-License-Identifier: MIT */
/* Names the environment in which the program dies (env/guard.h).
 *
 * Each thread has a slot in a table, which it alone writes and which handlers read. A crash signal
 * and exit arrive in the thread at fault, which looks at its own slot; the alarm arrives in any
 * thread and looks at all of them.
 *
 * Invariant: between opc_guard_enter and opc_guard_leave a slot has a function and a serial number
 * that no other call has. Handlers call only what is safe in them: write and _exit. */
#define _XOPEN_SOURCE 700 /* sigaltstack, setitimer; NOLINT(bugprone-reserved-identifier) */
#include "env/guard.h"

#include "base/text.h"
#include "opc/err.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SLOTS = 256, CRASHES = 5 };

/* Global because signals are. */
static struct slot {
    _Atomic(const char *) spec, function; /* function: NULL outside of calls */
    atomic_uint serial;                   /* of the call */
    unsigned seen;                        /* by the alarm: this serial, ... */
    int ticks;                            /* ... for so many seconds */
} slots[SLOTS];
static atomic_uint taken; /* slots handed out; threads beyond SLOTS share */
static _Thread_local struct slot *mine;
static bool installed;
static int deadline; /* seconds; 0: none */
static const int crashes[CRASHES] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before[CRASHES]; /* what handled them before us: a sanitizer, say */

void opc_guard_enter(const char *spec, const char *function)
{
    if (!mine)
        mine = &slots[atomic_fetch_add(&taken, 1) % SLOTS];
    atomic_store_explicit(&mine->spec, spec, memory_order_relaxed);
    atomic_fetch_add_explicit(&mine->serial, 1, memory_order_relaxed);
    atomic_store_explicit(&mine->function, function, memory_order_release);
}

void opc_guard_leave(void)
{
    if (mine)
        atomic_store_explicit(&mine->function, NULL, memory_order_release);
}

/* Several pieces of text to standard error. */
static void say(const char *const *text, int n)
{
    for (int i = 0; i < n; i++)
        if (write(STDERR_FILENO, text[i], strlen(text[i])) < 0)
            return;
}

/* "opc: ./arm.so crashed in step (SIGSEGV); ..." */
static void name_culprit(const struct slot *slot, const char *what, const char *how)
{
    const char *const text[] = {
        "opc: ", atomic_load(&slot->spec),
        " ",     what,
        " in ",  atomic_load(&slot->function),
        how,     "; a run that it was part of can be resumed once it is mended\n"};
    say(text, sizeof text / sizeof *text);
}

static const char *signal_name(int number)
{
    switch (number) {
    case SIGSEGV: return " (SIGSEGV, a bad address)";
    case SIGBUS: return " (SIGBUS, a bad address)";
    case SIGFPE: return " (SIGFPE, bad arithmetic)";
    case SIGILL: return " (SIGILL, a bad instruction)";
    default: return " (SIGABRT)";
    }
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    int i = 0;
    (void)context;
    while (i < CRASHES - 1 && crashes[i] != number)
        i++;
    const bool ours = mine && atomic_load(&mine->function);
    if (ours)
        name_culprit(mine, "crashed", signal_name(number));
    /* Nobody else wants to know: the exit status says that an environment failed. */
    if (ours && before[i].sa_handler == SIG_DFL)
        _exit(opc_exit_status(OPC_EENV));
    /* A crash of our own, or a sanitizer's business: as without us. The instruction is executed
     * again and faults again; a signal that was sent has to be sent again. */
    sigaction(number, before[i].sa_handler == SIG_IGN ? &plain : &before[i], NULL);
    if (info->si_code <= 0)
        raise(number);
}

static void on_exit_call(void)
{
    if (!mine || !atomic_load(&mine->function))
        return;
    name_culprit(mine, "called exit", "");
    _exit(opc_exit_status(OPC_EENV));
}

/* Once a second: a slot that shows the same call for `deadline` seconds is stuck. */
static void on_alarm(int number)
{
    (void)number;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[i];
        const unsigned serial = atomic_load(&slot->serial);
        if (!atomic_load(&slot->function) || serial != slot->seen)
            slot->ticks = 0;
        else if (++slot->ticks >= deadline) {
            name_culprit(slot, "has not returned", " (OPC_ENV_DEADLINE sets how long it may take)");
            _exit(opc_exit_status(OPC_EENV));
        }
        slot->seen = serial;
    }
}

void opc_guard_install(void)
{
    /* A stack of its own, for a stack that has overflowed. */
    static char stack[64 << 10];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, &before[i]);
    installed = atexit(on_exit_call) == 0;
}

void opc_guard_watch(void)
{
    const char *given = getenv("OPC_ENV_DEADLINE");
    double seconds = 30;
    if (!installed || deadline > 0 ||
        (given && *given && (!opc_parse_real(given, &seconds) || seconds <= 0)))
        return;
    deadline = seconds < 1 ? 1 : seconds > 1e6 ? 1000000 : (int)seconds;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval second = {{1, 0}, {1, 0}};
    setitimer(ITIMER_REAL, &second, NULL);
}
