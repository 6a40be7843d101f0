/* SPDX-License-Identifier: MIT */
/* cli/console/sweeping.h - a sweep in the foreground: its options, its display, and what Ctrl-C
 * does to it. */
#ifndef OPC_CLI_SWEEPING_H
#define OPC_CLI_SWEEPING_H

#include "sweep/schedule.h"

/* Options that say how runs are started, of `opc sweep ... run` and `opc repro`. */
/* clang-format off */
#define OPC_SWEEPING_OPTIONS(X)                                                                    \
    X(INT,  jobs,     "0",     0, 4096, "number of runs at a time; 0: one per processor, with slurm no limit")  \
    X(INT,  threads,  "0",     0, 1024, "threads of each run; 0: the processors divided by the runs at a time, with slurm 1") \
    X(TEXT, launcher, "local", 1, 64,   "how runs are started; local: as processes on this machine; slurm: as a job array of a cluster, and the command returns at once") \
    X(BOOL, shared,   "false", 0, 1,    "let any number of machines work in the same directory, each with this command: they divide the runs among themselves") \
    X(REAL, claim_timeout, "60", 1, 86400, "with --shared: seconds after which a run is taken over from a machine that gives no sign of life") \
    X(TEXT, partition, "",     0, 255,  "slurm: partition to submit to; by default the cluster's")   \
    X(TEXT, time,     "",      0, 64,   "slurm: time limit of a task, as 2-12 for 60 hours; at its end runs save themselves and are queued again") \
    X(TEXT, memory,   "",      0, 64,   "slurm: memory of a task, as 4G; by default the cluster's")  \
    X(INT,  pack,     "1",     1, 10000, "slurm: number of runs that one task does, one after the other; for runs of a few seconds") \
    X(TEXT, slurm_options, "", 0, 255,  "slurm: more options of sbatch, in one word: '--account=lab --constraint=avx512'") \
    X(BOOL, wait,     "false", 0, 1,    "slurm: return when the runs have ended; Ctrl-C ends the waiting, not the runs")
/* clang-format on */

/* The values of those options, whatever struct they are in. */
struct opc_sweeping_given {
    int jobs, threads, pack;
    const char *launcher, *partition, *time, *memory, *options;
    bool shared, wait;
    double claim_timeout;
};
#define OPC_SWEEPING_GIVEN(given)                                                                  \
    (struct opc_sweeping_given)                                                                    \
    {                                                                                              \
        .jobs = (given)->jobs, .threads = (given)->threads, .pack = (given)->pack,                 \
        .launcher = (given)->launcher, .partition = (given)->partition, .time = (given)->time,     \
        .memory = (given)->memory, .options = (given)->slurm_options, .shared = (given)->shared,   \
        .wait = (given)->wait, .claim_timeout = (given)->claim_timeout                             \
    }
/* Fills in a plan, which borrows the texts; its `out` is the caller's. OPC_EUSER: options that do
 * not go together, or no such launcher. */
int opc_sweeping_plan(const struct opc_sweeping_given *, struct opc_schedule *plan,
                      struct opc_err *err);

/* Runs what is missing. The plan's progress and stops are set here. On a terminal a bar shows how
 * far it is; elsewhere a line is printed for each run that starts or ends. The first SIGINT,
 * SIGTERM or SIGHUP stops the runs in order, a second one at once. tally may be NULL. */
int opc_sweeping(const struct opc_sweep *, struct opc_schedule plan, struct opc_tally *tally,
                 struct opc_err *err);

#endif
