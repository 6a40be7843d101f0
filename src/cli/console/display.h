/* SPDX-License-Identifier: MIT */
/* cli/console/display.h - the terminal: one bar on its last line, lines of the log above it, and
 * Ctrl-C. */
#ifndef OPC_CLI_DISPLAY_H
#define OPC_CLI_DISPLAY_H

#include "base/log.h"

#include <stdbool.h>

/* Prints log lines of this level and above from now on: warnings to standard error, the rest to
 * standard output, above the bar if there is one. */
void opc_display_listen(enum opc_level min);

/* Draws "[####............] text" on the current line of a terminal that can redraw it, cut where
 * the terminal ends; elsewhere it does nothing. */
void opc_bar_draw(double share, const char *text);
void opc_bar_wipe(void);

/* The bar of work that knows only its share: shown from the second second on, a few times a second,
 * with an estimate of the time left and what is being done. Where no bar can be drawn it is a line
 * a minute on standard error. */
struct opc_pace { /* {0} to begin with */
    double began, shown;
};
void opc_pace_show(struct opc_pace *, double share, const char *what);

/* The columns of the terminal; 100 where standard output is none. */
int opc_terminal_width(void);
/* Prints text from column `indent` on, where the cursor is, in lines that end before the terminal
 * does and start below each other. The last one ends with a newline. */
void opc_print_wrapped(int indent, const char *text);

/* Flushes standard output, and notes when it is a pipe that nobody reads any more. */
void opc_display_flush(void);

/* The signals that stop in order: SIGINT, SIGTERM, SIGHUP, and what batch systems send before they
 * end a process: SIGUSR1, SIGXCPU, SIGXFSZ. */
enum { OPC_STOP_SIGNALS = 6 };
extern const int opc_stop_signals[OPC_STOP_SIGNALS];
/* From now on the first SIGINT, SIGTERM, SIGHUP or warning of a batch system, and a reader of
 * standard output who goes away, only make opc_stop_wanted true; a signal also prints `said` (NULL:
 * nothing) on a terminal. A second SIGINT or SIGTERM ends the process. */
void opc_stop_catch(const char *said);
bool opc_stop_wanted(void);

#endif
