/* SPDX-License-Identifier: MIT */
/* cli/console/command.h - a subcommand: one file, one entry in main.c's list.
 *
 * `opc CMD --help`, the manual page and the shell completion are printed from this struct and its
 * option table; `run` parses, calls the library and reports. --help never reaches it. */
#ifndef OPC_CLI_COMMAND_H
#define OPC_CLI_COMMAND_H

#include "cli/console/options.h"
#include "opc/err.h"

/* An option that only some words of the command take, as --jobs of `opc sweep F run`. */
struct opc_option_use {
    const char *option; /* as in the table; NULL at the end */
    const char *words;  /* "run status" */
};

/* What a subcommand takes besides files and its own words; completion offers it. */
enum { OPC_TAKES_SETTINGS = 1, OPC_TAKES_TASKS = 2 };

struct opc_command {
    const char *name;
    const char *usage;                 /* what follows "opc NAME": "[WORK] [OPTION...]" */
    const char *summary;               /* one line without a full stop */
    const char *detail;                /* paragraphs, each one line, a newline between; or NULL */
    const char *words;                 /* the arguments it knows by name: "gemm sac fit"; or NULL */
    opc_name_fn *word_at;              /* the same where a table has them; or NULL */
    int takes;                         /* OPC_TAKES_SETTINGS | OPC_TAKES_TASKS; or 0 */
    const struct opc_section *options; /* or NULL: none */
    const struct opc_option_use *uses; /* options not listed are for all words; or NULL */
    /* argv[0] is the command's name. Returns an enum opc_code. */
    int (*run)(int argc, char **argv, struct opc_err *err);
};

/* All of them, in the order of the help; NULL at the end. */
extern const struct opc_command *const opc_commands[];

#endif
