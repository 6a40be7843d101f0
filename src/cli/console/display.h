/* SPDX-License-Identifier: MIT */
/* cli/console/display.h - the terminal: one bar on its last line, lines of the log above it, and
 * Ctrl-C. */
#ifndef OPC_CLI_DISPLAY_H
#define OPC_CLI_DISPLAY_H

#include "base/log.h"

#include <stdbool.h>

/* Log lines of this level and above are printed from now on: warnings to standard error, the rest
 * to standard output, above the bar if there is one. */
void opc_display_listen(enum opc_level min);

/* A bar on the current line of a terminal that can redraw it: "[####............] text", cut where
 * the terminal ends; elsewhere nothing. */
void opc_bar_draw(double share, const char *text);
void opc_bar_wipe(void);

/* The bar of work that knows no more than its share: from its second second on, now and then, with
 * the time that is left and what is being done. */
struct opc_pace { /* {0} to begin with */
    double began, shown;
};
void opc_pace_show(struct opc_pace *, double share, const char *what);

/* From now on the first SIGINT or SIGTERM only asks to stop, and says so on a terminal with `said`
 * (NULL: does not); the second does what it always does. */
void opc_stop_catch(const char *said);
bool opc_stop_wanted(void);

#endif
