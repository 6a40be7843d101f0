/* SPDX-License-Identifier: MIT */
/* base/process/talk.h - question and answer with a child process, each within a time limit.
 *
 * The child was started with all three pipes (base/process/child.h). While we wait for it, what it
 * prints to its standard error is read, so that it never blocks on a full pipe: every line goes to
 * the log, and the last of it is kept for messages. One thread at a time may talk to a child. */
#ifndef OPC_BASE_TALK_H
#define OPC_BASE_TALK_H

#include "base/process/child.h"

enum { OPC_TALK_TAIL = 1024 };

struct opc_talk {
    struct opc_child *child;
    /* Asked at least every 0.1 s while we wait; true ends the wait with OPC_ESTOPPED. NULL: never.
     */
    bool (*stop)(void);
    char tail[OPC_TALK_TAIL]; /* the last of its standard error */
    size_t used;              /* bytes of `tail` */
    char line[256];           /* of its standard error, not complete yet */
    size_t line_used;
};

/* Prepares the pipes of a child that was just started. */
int opc_talk_begin(struct opc_talk *, struct opc_child *, struct opc_err *err);
/* `until` is a time of opc_now(); a negative number waits for ever.
 *
 * Sends all n bytes. OPC_EIO: it does not read, or it has ended. */
int opc_talk_send(struct opc_talk *, const void *data, size_t n, double until, struct opc_err *err);
/* Receives at least `min` and at most `max` bytes, as many as are there; *got is how many. */
int opc_talk_receive(struct opc_talk *, void *data, size_t min, size_t max, size_t *got,
                     double until, struct opc_err *err);
/* Is there something to receive now? Not an end of file. */
bool opc_talk_pending(const struct opc_talk *);
/* Reads what it has printed to standard error so far, without waiting. */
void opc_talk_drain(struct opc_talk *);
/* The last lines of its standard error, joined by " | ", at most size - 1 bytes and printable; ""
 * if it has printed nothing. Returns `out`. */
char *opc_talk_last_words(const struct opc_talk *, char *out, size_t size);

#endif
