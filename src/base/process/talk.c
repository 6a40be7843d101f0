/* SPDX-License-Identifier: MIT */
/* Talks to a child process with deadlines (base/process/talk.h). Called by env/process_link.c.
 *
 * Invariant: our ends of the three pipes do not block. The only wait is the poll in wait_for, which
 * looks at all that can happen: an answer, a line on standard error, room for a question, a stop.
 * The deadline is of the whole question or answer, so a child that drips a byte a second does not
 * postpone it. */
#include "base/process/talk.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { SLICE_MS = 100 }; /* the longest time for which nobody asks `stop` */

int opc_talk_begin(struct opc_talk *talk, struct opc_child *child, struct opc_err *err)
{
    bool (*stop)(void) = talk->stop;
    *talk = (struct opc_talk){.child = child, .stop = stop};
    /* Each end of a pipe has flags of its own, so the child's ends block as it expects. */
    const int ends[] = {child->in, child->out, child->err};
    for (int i = 0; i < 3; i++)
        if (opc_fault_hits_system() || fcntl(ends[i], F_SETFL, O_NONBLOCK))
            return opc_fail_errno(err, errno, "cannot talk to %s", child->name);
    return OPC_OK;
}

/* ---- standard error -------------------------------------------------------------------------- */

static void end_line(struct opc_talk *talk)
{
    if (talk->line_used > 0)
        opc_log(OPC_LEVEL_INFO, "%s: %.*s", talk->child->name, (int)talk->line_used, talk->line);
    talk->line_used = 0;
}

/* Appends to the tail, of which the oldest half is dropped when it is full, and logs whole lines.
 */
static void note_words(struct opc_talk *talk, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (talk->used == sizeof talk->tail) {
            talk->used = sizeof talk->tail / 2;
            memmove(talk->tail, talk->tail + sizeof talk->tail - talk->used, talk->used);
        }
        talk->tail[talk->used++] = text[i];
        /* A line longer than the buffer is logged in pieces. */
        if (text[i] == '\n' || talk->line_used == sizeof talk->line)
            end_line(talk);
        if (text[i] != '\n')
            talk->line[talk->line_used++] = text[i];
    }
}

void opc_talk_drain(struct opc_talk *talk)
{
    char piece[1024];
    ssize_t got;
    /* A child that prints faster than we read must not keep us here. */
    for (int i = 0; i < 64 && talk->child->err >= 0; i++) {
        got = read(talk->child->err, piece, sizeof piece);
        if (got > 0)
            note_words(talk, piece, (size_t)got);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            opc_child_close_error(talk->child);
        if (got <= 0)
            break;
    }
}

char *opc_talk_last_words(const struct opc_talk *talk, char *out, size_t size)
{
    size_t end = talk->used, from, n = 0;
    while (end > 0 && (unsigned char)talk->tail[end - 1] <= ' ')
        end--;
    /* The last size - 1 bytes, from the beginning of a line if one begins in them: the end of a
     * Python traceback is what tells. */
    from = end > size - 1 ? end - (size - 1) : 0;
    if (from > 0) {
        const char *newline = memchr(talk->tail + from, '\n', end - from);
        if (newline && (size_t)(newline + 1 - talk->tail) < end)
            from = (size_t)(newline + 1 - talk->tail);
    }
    for (size_t i = from; i < end && n + 4 < size; i++) {
        const char c = talk->tail[i];
        if (c == '\n') {
            memcpy(out + n, " | ", 3);
            n += 3;
        } else
            out[n++] = (unsigned char)c < ' ' || c == 127 ? ' ' : c;
    }
    out[n] = '\0';
    return out;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits until fd is ready for `events` or closed. Standard error is read meanwhile. */
static int wait_for(struct opc_talk *talk, int fd, short events, double until, double since,
                    struct opc_err *err)
{
    for (;;) {
        int ms = talk->stop ? SLICE_MS : -1;
        const double left = until - opc_now();
        if (until >= 0) {
            /* Rounding up avoids a busy loop in the last millisecond. */
            const int left_ms = left <= 0 ? 0 : left > 1e6 ? 1000000000 : (int)(left * 1e3) + 1;
            ms = ms < 0 || left_ms < ms ? left_ms : ms;
        }
        struct pollfd p[2] = {{.fd = fd, .events = events},
                              {.fd = talk->child->err, .events = POLLIN}};
        const int n = opc_fault_hits_system() ? -1 : poll(p, 2, ms);
        if (n < 0 && errno != EINTR)
            return opc_fail_errno(err, errno, "cannot wait for %s", talk->child->name);
        if (n > 0 && p[1].revents)
            opc_talk_drain(talk);
        if (n > 0 && p[0].revents)
            return OPC_OK;
        if (talk->stop && talk->stop())
            return opc_fail(err, OPC_ESTOPPED, "stopped by request");
        if (until >= 0 && n == 0 && opc_now() >= until)
            return opc_fail(err, OPC_EIO, "%s has not %s within %.3g s", talk->child->name,
                            events == POLLIN ? "answered" : "read its question", until - since);
    }
}

bool opc_talk_pending(const struct opc_talk *talk)
{
    struct pollfd p = {.fd = talk->child->out, .events = POLLIN};
    return poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}

int opc_talk_send(struct opc_talk *talk, const void *data, size_t n, double until,
                  struct opc_err *err)
{
    const unsigned char *p = data;
    const double since = opc_now();
    while (n > 0) {
        const ssize_t sent = opc_child_try_write(talk->child, p, n);
        if (sent > 0) {
            p += sent;
            n -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK)
            OPC_TRY(wait_for(talk, talk->child->in, POLLOUT, until, since, err));
        else if (errno == EPIPE)
            return opc_child_gone(talk->child, "input", err);
        else if (errno != EINTR)
            return opc_fail_errno(err, errno, "cannot write to %s", talk->child->name);
    }
    return OPC_OK;
}

int opc_talk_receive(struct opc_talk *talk, void *data, size_t min, size_t max, size_t *got,
                     double until, struct opc_err *err)
{
    unsigned char *p = data;
    const double since = opc_now();
    *got = 0;
    while (*got < min) {
        OPC_TRY(wait_for(talk, talk->child->out, POLLIN, until, since, err));
        const ssize_t n =
            opc_fault_hits_system() ? -1 : read(talk->child->out, p + *got, max - *got);
        if (n == 0)
            return opc_child_gone(talk->child, "output", err);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return opc_fail_errno(err, errno, "cannot read from %s", talk->child->name);
        *got += n > 0 ? (size_t)n : 0;
    }
    return OPC_OK;
}
