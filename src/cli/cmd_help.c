/* SPDX-License-Identifier: MIT */
/* opc help - lists the subcommands, explains one, or prints the manual page and the completion
 * script. All texts come from the table of commands (cli/console/help.c). */
#include "cli/console/help.h"

/* clang-format off */
#define OPTIONS(X)                                                                                \
    X(BOOL, man,        "false", 0, 1, "print the manual page, for man(1)")                       \
    X(BOOL, completion, "false", 0, 1, "print the completion script of a shell")                  \
    X(CHOICE, shell,    "bash", "bash|zsh|fish", , "the shell that --completion is for")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

static int help_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (argc - first > 1)
        return opc_fail(err, OPC_EUSER, "name one subcommand, not %d", argc - first);
    /* Both are about the whole program, so neither goes with a subcommand or with the other. */
    if ((given.man || given.completion) && (first < argc || (given.man && given.completion)))
        return opc_fail(err, OPC_EUSER, "--man and --completion are for all subcommands, one each");
    /* An unknown name is an error that suggests the nearest. */
    const struct opc_command *about = NULL;
    if (first < argc && (code = opc_command_find(argv[first], &about, err)))
        return code;
    if (given.man)
        opc_help_man(stdout);
    else if (given.completion)
        code = opc_help_completion(given.shell, stdout, err);
    else if (about)
        opc_help_command(about, stdout);
    else
        opc_help_overview(stdout);
    return code;
}

const struct opc_command opc_cmd_help = {
    .name = "help",
    .usage = "[SUBCOMMAND]",
    .summary = "list the subcommands, or explain one",
    .options = &options,
    .run = help_run,
};
