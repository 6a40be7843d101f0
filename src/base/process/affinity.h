/* SPDX-License-Identifier: MIT */
/* base/process/affinity.h - asks a child on the core of the thread that waits for it.
 *
 * A child and the thread that waits for its answer never compute at the same time. On an idle
 * machine the kernel nevertheless runs them on two cores, and every question wakes an idle core
 * twice, which takes up to 0.1 ms. Both on one core take turns instead.
 *
 * The kernel offers no such request, so both are confined to the core of the asking thread: the
 * child until the question is written, the thread until it has the answer. Then each has the cores
 * that it had before, which we only ever read. Blocks of questions are asked in both ways, and our
 * core is used until they are measured again, unless answers take longer there: a child that is
 * better off elsewhere, because the core is busy or because it starts threads, is left there.
 * Numbers do not depend on any of it.
 *
 * Not Linux, a child that is not allowed on our core, one that has several threads or whose cores
 * we may not change: nothing is done, and nothing fails. */
#ifndef OPC_BASE_AFFINITY_H
#define OPC_BASE_AFFINITY_H

#include <stdbool.h>
#include <sys/types.h>

/* Questions whose answers are timed before one way is compared with the other. */
enum { OPC_AFFINITY_BLOCK = 16 };

/* What the present questions are for: to time answers where the kernel runs the child, to time them
 * on our core, or to use the better way for a while. */
enum opc_affinity_phase { OPC_AFFINITY_FREE, OPC_AFFINITY_NEAR, OPC_AFFINITY_CHOSEN };

struct opc_affinity {
    pid_t pid;
    bool off; /* it is left alone, for good */
    enum opc_affinity_phase phase;
    int asked;   /* questions of this phase */
    bool near;   /* the better way is on our core */
    bool moved;  /* child and thread are on one core for the present question */
    int core;    /* of the last question that was asked there; -1: none was */
    double free; /* median seconds of an answer where the kernel runs the child */
    double since;
    double seconds[OPC_AFFINITY_BLOCK]; /* of the last answers */
    /* Sets of cores (cpu_set_t): of the thread, of the child, and all on which it was asked. */
    unsigned char own[128], its[128], used[128];
};

/* A child was started. off: leave it alone. */
void opc_affinity_begin(struct opc_affinity *, pid_t pid, bool off);
/* Right before a question whose answer this thread waits for; right after it was written; and when
 * the answer is there, or there will be none (not answered). Not every question needs them. A
 * child that has been waited for (waitpid) must not be named any more: then opc_affinity_sent is
 * left out, and the answer has not come. */
void opc_affinity_ask(struct opc_affinity *);
void opc_affinity_sent(struct opc_affinity *);
void opc_affinity_done(struct opc_affinity *, bool answered);

#endif
