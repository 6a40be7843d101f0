/* SPDX-License-Identifier: MIT */
/* cli/console/help.h - what the program says about itself, all of it printed from opc_commands. */
#ifndef OPC_CLI_HELP_H
#define OPC_CLI_HELP_H

#include "cli/console/command.h"

#include <stdio.h>

void opc_help_overview(FILE *);
void opc_help_command(const struct opc_command *, FILE *);
void opc_help_man(FILE *); /* roff, for man(1) */
/* complete.c; shell: 0 bash, 1 zsh, 2 fish */
int opc_help_completion(int shell, FILE *, struct opc_err *err);

/* The command of that name, or an error that names the nearest. */
int opc_command_find(const char *name, const struct opc_command **out, struct opc_err *err);

#endif
