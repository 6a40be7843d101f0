/* SPDX-License-Identifier: MIT */
/* base/process/child.h - other programs, run as child processes.
 *
 * A child gets its standard streams and nothing else: no file we have opened, no blocked signal.
 * The signal handling of the process is left alone; a child that closes its input early is an
 * error here, not a SIGPIPE. One thread at a time may use a child. */
#ifndef OPC_BASE_CHILD_H
#define OPC_BASE_CHILD_H

#include "base/text.h"
#include "opc/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How a child is started. {0}: its input is empty and its output goes where ours goes. */
struct opc_child_plan {
    bool pipe_in, pipe_out; /* we write its standard input, read its standard output */
    /* File to which standard output and error are appended; with pipe_out only standard error.
     * NULL: they go where ours go. */
    const char *output;
    const char *program; /* the program to run, if it is not argv[0] */
    bool apart;    /* in a process group of its own, which Ctrl-C on the terminal does not reach */
    bool pipe_err; /* we read its standard error (base/process/talk.h) */
    bool whole_group; /* signals for it are for all processes of its group, which needs `apart` */
};

struct opc_child {
    pid_t pid;
    int in, out;      /* our ends of the pipes; -1: none, or closed */
    int err;          /* the same of its standard error; -1: none, or closed */
    bool whole_group; /* as in the plan */
    bool done;        /* it has ended, and `status` is valid */
    int status;       /* exit status, or 128 + the signal that ended it, as in a shell */
    char name[64];    /* argv[0], for messages */
};

/* argv[0] is looked for on the PATH; the list ends with NULL. A program that cannot be run is an
 * error here, not an exit status later. plan may be NULL. */
int opc_child_start(char *const argv[], const struct opc_child_plan *plan, struct opc_child *out,
                    struct opc_err *err);

/* Writes all n bytes to its input; waits while it does not read. */
int opc_child_write(struct opc_child *, const void *data, size_t n, struct opc_err *err);
void opc_child_close_input(struct opc_child *); /* it reads an end of file; twice is fine */
void opc_child_close_error(struct opc_child *); /* twice is fine */
/* write(2) without SIGPIPE: the number of bytes, or -1 with errno. For base/process/talk.c, whose
 * pipes do not block. */
ssize_t opc_child_try_write(struct opc_child *, const void *data, size_t n);
/* Its end of a pipe ("input", "output") is closed: says how it ended, or that it closed it. */
int opc_child_gone(struct opc_child *, const char *what, struct opc_err *err);
/* Reads exactly n bytes of its output. An end of file before that is an error, and so is the last
 * byte arriving later than `seconds` from now; a negative number waits for ever. */
int opc_child_read(struct opc_child *, void *data, size_t n, double seconds, struct opc_err *err);
/* Reads all it prints until it closes its output; more than `max` bytes are an error. */
int opc_child_read_all(struct opc_child *, size_t max, struct opc_text *, struct opc_err *err);

bool opc_child_poll(struct opc_child *);             /* has it ended? */
int opc_child_wait(struct opc_child *);              /* until it ends; returns its status */
void opc_child_kill(struct opc_child *, int signal); /* after its end: does nothing */
/* Closes the pipes and gives it `seconds` to end by itself, then the same time again after SIGTERM;
 * then kills it. Safe to call on {0} and twice. */
void opc_child_end(struct opc_child *, double seconds);

/* Starts it with an empty input, collects what it prints and waits for its end. An exit status
 * other than 0 is an error; its standard error goes where ours goes. */
int opc_child_run(char *const argv[], size_t max, struct opc_text *output, struct opc_err *err);

#endif
