/* SPDX-License-Identifier: MIT */
/* Asks a child on the core of the thread that waits for it (base/process/affinity.h). Called by
 * env/process_ask.c for steps, which are short and many.
 *
 * Why both are moved: a woken thread is put on an idle core even if it last ran on ours, so the
 * child must be confined when it is woken by the question, and we when we are woken by the answer.
 *
 * Invariant: outside of a question, and usually while the child computes, child and thread may run
 * on the cores they had before. The exception is a child that takes our core at once when the
 * question is written: we get to widen its cores again when it sleeps, or after a few milliseconds.
 * A thread that it starts meanwhile inherits the one core, so a child that has become many threads
 * is looked for and mended. */
#define _GNU_SOURCE /* sched_setaffinity; NOLINT(bugprone-reserved-identifier) */
#include "base/process/affinity.h"

#ifdef __linux__

#include "base/clock.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(sizeof(cpu_set_t) == sizeof(((struct opc_affinity *)0)->own),
               "own and its hold a set of cores");

enum { CHOSEN_QUESTIONS = 1024 }; /* until both ways are measured again */
/* A wake-up is nothing to an answer that takes so long, and a child that computes for long should
 * be where the kernel wants it. */
static const double SLOW_SECONDS = 5e-3;
/* Our core is preferred if answers take at most so much longer there, because it saves processor
 * time, of which waking a core takes some. A busy core makes much more of a difference. */
static const double LONGER = 1.05;

void opc_affinity_begin(struct opc_affinity *a, pid_t pid, bool off)
{
    *a = (struct opc_affinity){.pid = pid, .off = off, .core = -1};
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Number of threads of the child; 0: not known. The directory has two links more. */
static int count_threads(pid_t pid)
{
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    return stat(path, &about) ? 0 : (int)about.st_nlink - 2;
}

/* Threads that were started while the child was confined get the cores of its first thread. One
 * that chose several cores, or another one, for itself is left alone. */
static void mend_threads(const struct opc_affinity *a)
{
    char path[64];
    cpu_set_t its, has, used, common;
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)a->pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return;
    memcpy(&used, a->used, sizeof used);
    const bool known = sched_getaffinity(a->pid, sizeof its, &its) == 0;
    while (known && (entry = readdir(tasks))) {
        const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread <= 0 || thread == a->pid || sched_getaffinity(thread, sizeof has, &has))
            continue;
        CPU_AND(&common, &has, &used);
        if (CPU_COUNT(&has) == 1 && CPU_COUNT(&common) == 1)
            (void)sched_setaffinity(thread, sizeof its, &its);
    }
    closedir(tasks);
}

/* A child that has more than one thread is left alone from now on. */
static void look_for_threads(struct opc_affinity *a)
{
    if (count_threads(a->pid) == 1)
        return;
    if (a->core >= 0)
        mend_threads(a);
    a->off = true;
}

/* ---- one question ---------------------------------------------------------------------------- */

/* Confines child and thread to the core on which the thread is. False: it is not possible, and both
 * are as they were. */
static bool move_together(struct opc_affinity *a)
{
    const int core = sched_getcpu();
    const size_t bit = (size_t)core;
    cpu_set_t one, own, its, used;
    /* The child goes nowhere where it is not allowed to be: it may have chosen its cores. Where
     * either has only one, nothing is to be gained. */
    if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof own, &own) ||
        sched_getaffinity(a->pid, sizeof its, &its) || !CPU_ISSET(bit, &its) ||
        CPU_COUNT(&own) == 1 || CPU_COUNT(&its) == 1)
        return false;
    memcpy(a->own, &own, sizeof own);
    memcpy(a->its, &its, sizeof its);
    memcpy(&used, a->used, sizeof used);
    CPU_SET(bit, &used);
    memcpy(a->used, &used, sizeof used);
    a->core = core;
    CPU_ZERO(&one);
    CPU_SET(bit, &one);
    if (sched_setaffinity(a->pid, sizeof one, &one))
        return false;
    if (sched_setaffinity(0, sizeof one, &one)) {
        (void)sched_setaffinity(a->pid, sizeof its, &its);
        return false;
    }
    return true;
}

/* Gives a thread (0: this one) the cores back that it had, unless somebody else has given it others
 * meanwhile. */
static void give_back(const struct opc_affinity *a, pid_t thread, const unsigned char *cores)
{
    cpu_set_t had, has;
    memcpy(&had, cores, sizeof had);
    if (!sched_getaffinity(thread, sizeof has, &has) && CPU_COUNT(&has) == 1 &&
        CPU_ISSET((size_t)a->core, &has))
        (void)sched_setaffinity(thread, sizeof had, &had);
}

void opc_affinity_ask(struct opc_affinity *a)
{
    const bool near = a->phase == OPC_AFFINITY_NEAR || (a->phase == OPC_AFFINITY_CHOSEN && a->near);
    if (a->off)
        return;
    a->since = opc_now(); /* what moving costs counts, too */
    if (near) {
        /* Looked at once in a block, because it takes longer than the rest. */
        if (a->asked % OPC_AFFINITY_BLOCK == 0)
            look_for_threads(a);
        a->moved = !a->off && move_together(a);
        a->off = !a->moved;
    }
}

void opc_affinity_sent(struct opc_affinity *a)
{
    if (a->moved)
        give_back(a, a->pid, a->its);
}

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of the block. */
static double median_seconds(struct opc_affinity *a)
{
    qsort(a->seconds, OPC_AFFINITY_BLOCK, sizeof *a->seconds, compare_reals);
    return a->seconds[OPC_AFFINITY_BLOCK / 2];
}

static void begin_phase(struct opc_affinity *a, enum opc_affinity_phase phase)
{
    a->phase = phase;
    a->asked = 0;
}

/* A whole block of answers has been timed. */
static void end_block(struct opc_affinity *a)
{
    const double median = median_seconds(a);
    const bool slow = median > SLOW_SECONDS;
    switch (a->phase) {
    case OPC_AFFINITY_FREE:
        /* A child that is still loading its libraries, and counts its cores, is not moved. */
        a->free = median;
        begin_phase(a, slow ? OPC_AFFINITY_FREE : OPC_AFFINITY_NEAR);
        break;
    case OPC_AFFINITY_NEAR:
        a->near = !slow && median <= LONGER * a->free;
        look_for_threads(a); /* now, because it may not be moved again for long */
        begin_phase(a, OPC_AFFINITY_CHOSEN);
        break;
    default:
        /* Threads may be why it has become slow. */
        if (a->asked == CHOSEN_QUESTIONS || (a->near && slow)) {
            look_for_threads(a);
            begin_phase(a, OPC_AFFINITY_FREE);
        }
    }
}

void opc_affinity_done(struct opc_affinity *a, bool answered)
{
    if (a->moved)
        give_back(a, 0, a->own);
    a->moved = false;
    if (a->off || !answered)
        return;
    const double seconds = opc_now() - a->since;
    a->seconds[a->asked++ % OPC_AFFINITY_BLOCK] = seconds;
    if (a->asked % OPC_AFFINITY_BLOCK == 0)
        end_block(a);
}

#else /* another system: children run where it puts them */

void opc_affinity_begin(struct opc_affinity *a, pid_t pid, bool off)
{
    *a = (struct opc_affinity){.pid = pid, .off = off};
}
void opc_affinity_ask(struct opc_affinity *a)
{
    (void)a;
}
void opc_affinity_sent(struct opc_affinity *a)
{
    (void)a;
}
void opc_affinity_done(struct opc_affinity *a, bool answered)
{
    (void)a, (void)answered;
}

#endif
