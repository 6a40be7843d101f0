/* SPDX-License-Identifier: MIT */
/* cli/console/options.h - the options of a subcommand, which are settings like any other
 * (base/field.h).
 *
 *     #define OPTIONS(X)                                                                        \
 *         X(INT,  threads, "1",     1,  1024, "threads to compute with")                        \
 *         X(REAL, seconds, "0.5",   0,  3600, "time for each measurement")                      \
 *         X(BOOL, json,    "false", 0,  1,    "print one JSON object per line")
 *     struct given {
 *         OPTIONS(OPC_MEMBER)
 *     };
 *     #define SELF struct given
 *     static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
 *
 * A member max_steps is written --max-steps N or --max-steps=N; a BOOL --json or --json=no; an
 * option out also -o FILE. TEXTS may be given several times; of any other option the last one
 * counts.
 */
#ifndef OPC_CLI_OPTIONS_H
#define OPC_CLI_OPTIONS_H

#include "base/field.h"

struct opc_option_use; /* cli/console/command.h */

enum { OPC_OPTION_NAME = 64 };
/* The name as it is written after the two dashes; returns `out`. */
char *opc_option_name(const struct opc_field *, char out[OPC_OPTION_NAME]);

/* Fills the section's struct `into` with defaults and then with what argv says; argv[0] is the
 * subcommand. options may be NULL: there are none. Words that are not options are moved to
 * argv[*first] .. argv[argc - 1], in order; a "--" ends the options. */
int opc_options_read(const struct opc_section *options, int argc, char **argv, void *into,
                     int *first, struct opc_err *err);

/* True if the option has its default, the value in `fresh`. `value` becomes its value as text. */
bool opc_option_is_usual(const struct opc_field *, const void *given, const void *fresh,
                         struct opc_text *value);
/* For a subcommand with several actions: fails if an option was given that, according to `uses`,
 * the action `word` does not take. */
int opc_options_fit(const struct opc_section *, const struct opc_option_use *uses, const char *word,
                    const void *given, struct opc_err *err);
/* The words that take an option, separated by spaces; NULL: all take it. */
const char *opc_option_words(const struct opc_option_use *uses, const char *option);

#endif
