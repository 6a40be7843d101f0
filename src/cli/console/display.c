/* SPDX-License-Identifier: MIT */
/* The terminal: the progress bar, log lines above it, and Ctrl-C. Used by every subcommand that
 * works for longer than a moment.
 *
 * Invariants: a bar is drawn only on a terminal that can redraw its line, so that files and pipes
 * never contain one; whatever prints a line wipes the bar first. */
#include "cli/console/display.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Globals, because there is one terminal in a process. */
static enum opc_level min_level = OPC_LEVEL_WARN;
static bool bar_drawn;   /* a bar is on the current line */
static bool reader_gone; /* standard output is a pipe that nobody reads any more */

void opc_display_flush(void)
{
    if (fflush(stdout) && errno == EPIPE)
        reader_gone = true;
}

/* The sink of base/log.h, which calls it from one thread at a time. */
static void print_log_line(void *ctx, enum opc_level level, const char *line)
{
    (void)ctx;
    if (level < min_level)
        return;
    /* The line takes the place of the bar, which the next progress draws again below it. */
    opc_bar_wipe();
    if (level == OPC_LEVEL_WARN)
        fprintf(stderr, "opc: warning: %s\n", line);
    else if (isatty(STDOUT_FILENO))
        opc_print_wrapped(0, line);
    else
        printf("%s\n", line);
    opc_display_flush();
}

void opc_display_listen(enum opc_level min)
{
    min_level = min;
    opc_log_to(print_log_line, NULL);
}

/* Is standard output a terminal that understands \r and the code that clears a line? */
static bool can_redraw(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

int opc_terminal_width(void)
{
    struct winsize size = {0};
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return isatty(STDOUT_FILENO) ? 80 : 100;
}

void opc_print_wrapped(int indent, const char *text)
{
    /* A terminal that is hardly wider than the indent gets lines that are too long. */
    const int width = opc_terminal_width(), end = width < indent + 20 ? indent + 20 : width;
    int column = indent;
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (column > indent && column + 1 + n > end) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        column += printf("%s%.*s", column > indent ? " " : "", n, text);
        text += n;
        text += strspn(text, " ");
    }
    putchar('\n');
}

void opc_bar_draw(double share, const char *text)
{
    enum { WIDE = 16 };
    char bar[WIDE + 1], line[512];
    if (!can_redraw())
        return;
    /* `wide` characters, `full` of them filled; half as many on a narrow terminal. */
    const int wide = opc_terminal_width() < 80 ? WIDE / 2 : WIDE;
    const int full = (int)(fmin(fmax(share, 0), 1) * wide);
    memset(bar, '.', (size_t)wide);
    memset(bar, '#', (size_t)full);
    bar[wide] = '\0';
    snprintf(line, sizeof line, "[%s] %s", bar, text);
    /* A line that wraps cannot be redrawn: what does not fit before the last column is left out,
     * from a comma on, so that no number is cut. */
    const size_t max = (size_t)opc_terminal_width() - 1;
    size_t n = strlen(line);
    while (n > max) {
        do
            n--;
        while (n > 0 && line[n] != ',');
        if (n == 0) /* not even the first part fits */
            n = max;
    }
    printf("\r%.*s\033[K", (int)n, line);
    bar_drawn = true;
    fflush(stdout);
}

void opc_bar_wipe(void)
{
    if (!bar_drawn)
        return;
    fputs("\r\033[K", stdout);
    fflush(stdout);
    bar_drawn = false;
}

void opc_pace_show(struct opc_pace *p, double share, const char *what)
{
    char text[256], left[OPC_PRINTED] = "?";
    const double now = opc_now();
    const bool bar = can_redraw();
    /* Nothing in the first second, then at most five times a second; of lines, one a minute. */
    if (p->began == 0)
        p->began = p->shown = now;
    if (now - p->began < 1 || now - p->shown < (bar ? 0.2 : 60))
        return;
    p->shown = now;
    /* Time left, if the rest goes as fast as what is done. */
    if (share > 0)
        opc_print_duration(ceil((now - p->began) * (1 - share) / share), left);
    snprintf(text, sizeof text, "%3.0f %%, %s left, %s", 100 * share, left, what);
    if (bar)
        opc_bar_draw(share, text);
    else
        fprintf(stderr, "opc: %s\n", text);
}

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t stop_wanted; /* set by the handler, polled by the work */
static const char *stop_message;

/* Only calls that are safe in a signal handler: write, not printf. */
static void on_signal(int number)
{
    (void)number;
    stop_wanted = 1;
    if (stop_message && isatty(STDERR_FILENO) &&
        write(STDERR_FILENO, stop_message, strlen(stop_message)) < 0)
        return;
}

const int opc_stop_signals[OPC_STOP_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU, SIGXFSZ};

void opc_stop_catch(const char *said)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigemptyset(&action.sa_mask);
    stop_message = said;
    for (int i = 0; i < OPC_STOP_SIGNALS; i++) {
        const int number = opc_stop_signals[i];
        sigaction(number, NULL, &before);
        if (number == SIGHUP && before.sa_handler == SIG_IGN) /* nohup */
            continue;
        /* SA_RESETHAND: the second one has its default action and ends the process. The others may
         * be sent more than once: a terminal that closes does so with SIGHUP. */
        action.sa_flags = number == SIGINT || number == SIGTERM ? (int)SA_RESETHAND : 0;
        sigaction(number, &action, NULL);
    }
    action.sa_flags = 0;
    /* `opc train ... | head -1`: the next line cannot be written, which opc_stop_wanted sees. */
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

bool opc_stop_wanted(void)
{
    return stop_wanted || reader_gone;
}
