/* SPDX-License-Identifier: MIT */
/* opc - the program: finds the subcommand and runs it.
 *
 * Invariants: this is the one place where an error is printed and the exit status is decided, and
 * output counts as written only once standard output could be closed. */
#include "base/revision.h"
#include "cli/console/display.h"
#include "cli/console/help.h"
#include "env/guard.h"
#include "env/types.h"
#include "num/kernel.h"
#include "opc/version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct opc_command opc_cmd_data, opc_cmd_train, opc_cmd_resume, opc_cmd_evaluate,
    opc_cmd_export, opc_cmd_plot, opc_cmd_sweep, opc_cmd_repro, opc_cmd_report, opc_cmd_probe,
    opc_cmd_ilc, opc_cmd_config, opc_cmd_env, opc_cmd_status, opc_cmd_runs, opc_cmd_compare,
    opc_cmd_serve, opc_cmd_search, opc_cmd_bench, opc_cmd_doctor, opc_cmd_help;

/* In the order of the help; a new command is declared above and listed here. */
/* clang-format off */
const struct opc_command *const opc_commands[] = {
    &opc_cmd_train,
    &opc_cmd_resume,
    &opc_cmd_status,
    &opc_cmd_runs,
    &opc_cmd_serve,
    &opc_cmd_evaluate,
    &opc_cmd_export,
    &opc_cmd_data,
    &opc_cmd_plot,
    &opc_cmd_compare,
    &opc_cmd_sweep,
    &opc_cmd_search,
    &opc_cmd_repro,
    &opc_cmd_report,
    &opc_cmd_probe,
    &opc_cmd_ilc,
    &opc_cmd_config,
    &opc_cmd_env,
    &opc_cmd_bench,
    &opc_cmd_doctor,
    &opc_cmd_help,
    NULL,
};
/* clang-format on */

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run_command(int argc, char **argv, struct opc_err *err)
{
    /* Without a subcommand. */
    if (argc < 2 || asks_for_help(argv[1])) {
        opc_help_overview(stdout);
        return OPC_OK;
    }
    if (strcmp(argv[1], "--version") == 0 && argc > 2)
        return opc_fail(err, OPC_EUSER, "--version takes no arguments, not '%s'", argv[2]);
    if (strcmp(argv[1], "--version") == 0) {
        printf("opc %s%s%s%s\n", OPC_VERSION, *opc_revision ? " (" : "", opc_revision,
               *opc_revision ? ")" : "");
        return OPC_OK;
    }
    if (argv[1][0] == '-')
        return opc_fail(err, OPC_EUSER, "unknown option %s; 'opc --help' shows what there is",
                        argv[1]);

    const struct opc_command *command;
    int code = opc_command_find(argv[1], &command, err);
    if (code)
        return code;
    /* --help anywhere before "--" explains the command, whatever else is wrong with the line. */
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (asks_for_help(argv[i])) {
            opc_help_command(command, stdout);
            return OPC_OK;
        }
    }
    /* A wrong OPC_BACKEND is reported before any work starts. */
    code = opc_kernels_check(err);
    if (code)
        return code;
    /* The name of the command goes in front of its message. */
    code = command->run(argc - 1, argv + 1, err);
    return code ? opc_within(err, "%s", command->name) : OPC_OK;
}

/* If a standard stream is closed, the next file we open would get its number and our output with
 * it. So /dev/null is opened in its place, in the wrong direction: using the stream stays an error.
 */
static void keep_streams(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    struct opc_err err = {0};
    unsetenv("POSIXLY_CORRECT"); /* options may stand anywhere, as every usage line has them */
    keep_streams();
    opc_display_listen(OPC_LEVEL_WARN);
    opc_env_wait_until(opc_stop_wanted);
    opc_guard_install();
    int code = run_command(argc, argv, &err);
    /* A full disk shows when the last bytes leave, so the output counts only once it is closed. */
    const bool lost = ferror(stdout) != 0;
    errno = 0;
    if ((fclose(stdout) || lost) && code == OPC_OK)
        code = opc_fail(&err, OPC_EIO, "cannot write to standard output: %s",
                        errno ? strerror(errno) : "some of it was lost");
    if (code)
        fprintf(stderr, "opc: %s\n", err.text);
    if (code == OPC_EBUG)
        fprintf(stderr, "opc: this is a bug; please report it with the output of 'opc doctor'\n");
    return opc_exit_status(code);
}
