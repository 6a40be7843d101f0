/* SPDX-License-Identifier: MIT */
/* cli/display.h - the terminal: one bar on its last line, and lines of the log above it. */
#ifndef OPC_CLI_DISPLAY_H
#define OPC_CLI_DISPLAY_H

#include "base/log.h"

/* Log lines of this level and above are printed from now on: warnings to standard error, the rest
 * to standard output, above the bar if there is one. */
void opc_display_listen(enum opc_level least);

/* A bar on the current line of a terminal that can redraw it: "[####............] text", cut where
 * the terminal ends; elsewhere nothing. */
void opc_bar_draw(double share, const char *text);
void opc_bar_wipe(void);

#endif
