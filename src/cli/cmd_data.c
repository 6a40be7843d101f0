/* SPDX-License-Identifier: MIT */
/* opc data - takes recorded episodes out of a run, and makes a file for train.prefill of logs.
 *
 * Both open the task, which knows the limits of the actions and the time between two samples. */
#include "cli/console/command.h"
#include "opc/env.h"
#include "run/files/rundir.h"
#include "run/recorded.h"
#include "study/dataset/dataset.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(TEXT, out,  "", 0, 255, "what to write: FILE.csv, FILE.npz, FILE.opc, or to export also a directory, which gets one .csv for each episode") \
    X(INT,  last, "0", 0, 1e9, "export this many of the newest episodes; 0: all of them")        \
    X(TEXT, env,  "", 0, 255, "the task that the logs are of, as in env.name of a configuration")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF
/* Options and the words that take them. */
static const struct opc_option_use uses[] = {{"last", "export"}, {"env", "import"}, {NULL, NULL}};

/* ---- export ---------------------------------------------------------------------------------- */

static void print_written(int episodes, int steps, const char *task, const char *path)
{
    printf("%d episode%s, %d step%s of %s -> %s\n", episodes, opc_plural(episodes), steps,
           opc_plural(steps), task, path);
}

static int export_episodes(int n, char **word, const struct given *given, struct opc_err *err)
{
    struct opc_config *config;
    struct opc_env *env = NULL;
    char task[OPC_TASK_NAME];
    struct opc_recorded recorded = {0};
    if (n != 1)
        return opc_fail(err, OPC_EUSER, "name one run directory: opc data export RUN -o FILE");
    /* The task, and then what was recorded on it. */
    OPC_TRY(opc_config_of_run(word[0], &config, err));
    int code = opc_env_open(opc_values_task(&config->set, task), &env, err);
    if (!code)
        code = opc_recorded_load(word[0], config, env->obs, env->act, &recorded, err);
    if (!code) {
        /* the newest ones are at the end */
        const int all = opc_episodes_count(recorded.past);
        const int first = given->last && given->last < all ? all - given->last : 0;
        code = opc_dataset_write(recorded.past, first, env, given->out, err);
        if (!code)
            print_written(all - first,
                          opc_episodes_steps(recorded.past) -
                              opc_episodes_first(recorded.past, first),
                          env->spec, given->out);
    }
    opc_recorded_free(&recorded);
    opc_env_close(env);
    opc_config_destroy(config);
    return code;
}

/* ---- import ---------------------------------------------------------------------------------- */

static int import_episodes(int n, char **word, const struct given *given, struct opc_err *err)
{
    struct opc_env *env;
    struct opc_episodes *past = NULL;
    if (n == 0 || !*given->env)
        return opc_fail(
            err, OPC_EUSER,
            "name files and their task: opc data import FILE... --env NAME -o FILE.opc");
    /* Everything is read and checked before anything is written. */
    OPC_TRY(opc_env_open(given->env, &env, err));
    int code = opc_dataset_read(n, word, env, &past, err);
    if (!code)
        code = opc_dataset_write(past, 0, env, given->out, err);
    if (!code)
        print_written(opc_episodes_count(past), opc_episodes_steps(past), env->spec, given->out);
    opc_episodes_destroy(past);
    opc_env_close(env);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    int (*run)(int n, char **word, const struct given *, struct opc_err *);
} works[] = {{"export", export_episodes}, {"import", import_episodes}};

static int data_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    int first;
    OPC_TRY(opc_options_read(&options, argc, argv, &given, &first, err));
    /* The word, then what it is about. */
    const char *word = first < argc ? argv[first] : "";
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(word, works[i].word) != 0)
            continue;
        OPC_TRY(opc_options_fit(&options, uses, word, &given, err));
        if (!*given.out)
            return opc_fail(err, OPC_EUSER, "%s: say with -o what to write", word);
        return works[i].run(argc - first - 1, argv + first + 1, &given, err);
    }
    /* A word that is nearly one of the two. */
    const char *meant =
        opc_nearest(word, &works->word, sizeof works / sizeof *works, sizeof *works);
    if (meant)
        return opc_fail(err, OPC_EUSER, "unknown action '%s'; did you mean '%s'?", word, meant);
    return opc_fail(err, OPC_EUSER, "say what to do: export or import");
}

const struct opc_command opc_cmd_data = {
    .name = "data",
    .usage = "export RUN -o FILE|DIR [--last N] | import FILE... --env NAME -o FILE.opc",
    .summary = "take recorded episodes out of a run, or bring logged ones in",
    .detail =
        "export writes what a run has recorded: observations, actions in the task's units, "
        "rewards, ends and times, as FILE.csv, FILE.npz (numpy) or a directory of one .csv for "
        "each episode.\n"
        "import reads logs in the same columns, checks every number, and writes FILE.opc. A run "
        "with train.prefill=FILE.opc begins with these episodes. docs/data.md has the columns.",
    .words = "export import",
    .options = &options,
    .uses = uses,
    .run = data_run,
};
