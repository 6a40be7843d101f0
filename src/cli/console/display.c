/* SPDX-License-Identifier: MIT */
#include "cli/console/display.h"

#include "base/clock.h"
#include "base/text.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* There is one terminal, so there is one of these. */
static enum opc_level heard_from = OPC_WARN;
static bool drawn; /* a bar is on the current line */

static void hear(void *ctx, enum opc_level level, const char *line)
{
    (void)ctx;
    if (level < heard_from)
        return;
    opc_bar_wipe();
    fprintf(level == OPC_WARN ? stderr : stdout, "%s%s\n",
            level == OPC_WARN ? "opc: warning: " : "", line);
    fflush(stdout);
}

void opc_display_listen(enum opc_level min)
{
    heard_from = min;
    opc_log_to(hear, NULL);
}

static bool can_redraw(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void opc_bar_draw(double share, const char *text)
{
    enum { WIDE = 16 };
    char bar[WIDE + 1], line[512];
    struct winsize size = {0};
    if (!can_redraw())
        return;
    const int full = (int)(fmin(fmax(share, 0), 1) * WIDE);
    memset(bar, '.', WIDE);
    memset(bar, '#', (size_t)full);
    bar[WIDE] = '\0';
    snprintf(line, sizeof line, "[%s] %s", bar, text);
    int columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    printf("\r%.*s\033[K", columns - 1, line);
    drawn = true;
    fflush(stdout);
}

void opc_bar_wipe(void)
{
    if (!drawn)
        return;
    fputs("\r\033[K", stdout);
    fflush(stdout);
    drawn = false;
}

void opc_pace_show(struct opc_pace *p, double share, const char *what)
{
    char text[256], left[OPC_PRINTED] = "?";
    const double now = opc_now();
    if (p->began == 0)
        p->began = p->shown = now;
    if (now - p->began < 1 || now - p->shown < 0.2)
        return;
    p->shown = now;
    if (share > 0)
        opc_print_duration(ceil((now - p->began) * (1 - share) / share), left);
    snprintf(text, sizeof text, "%3.0f %%, %s left, %s", 100 * share, left, what);
    opc_bar_draw(share, text);
}

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t stop_wanted; /* a handler can reach nothing else */
static const char *to_be_said;

static void on_signal(int number)
{
    (void)number;
    stop_wanted = 1;
    if (to_be_said && isatty(STDERR_FILENO) &&
        write(STDERR_FILENO, to_be_said, strlen(to_be_said)) < 0)
        return;
}

void opc_stop_catch(const char *said)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    to_be_said = said;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_flags = 0; /* a terminal that goes may say so more than once */
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* not under nohup */
        sigaction(SIGHUP, &action, NULL);
}

bool opc_stop_wanted(void)
{
    return stop_wanted;
}
