/* SPDX-License-Identifier: MIT */
/* opc train - starts a run.
 *
 * Settings are read in this order: defaults, the file with what it includes, KEY=VALUE words. The
 * run itself is in the foreground (cli/console/training.c). */
#include "base/file.h"
#include "cli/console/command.h"
#include "cli/console/training.h"
#include "env/types.h"
#include "run/config/config.h"

#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,     "",      0, 4095,  "run directory to make; this option is required")                 \
    X(INT,  threads, "0",     0, 1024, "threads to compute with; 0: one per processor; results do not depend on this number") \
    X(BOOL, quiet,   "false", 0, 1,    "print nothing but warnings and errors")                    \
    X(INT,  parent,  "0",     0, 2e9,  "stop as after Ctrl-C once the process of this number is no longer the parent; 0: never")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* A task that was named in place of the file, which KEY=VALUE is not: env.name=./arm.so. */
static bool is_task(const char *word)
{
    const size_t name = strcspn(word, "?");
    return opc_env_is_process(word) || (opc_env_is_task(word) && !memchr(word, '=', name));
}

/* The file that is to be read, or how to train on the task that was named in its place.
 * experiments/... is found from anywhere once opc is installed. */
static int find_file(const char *name, char path[OPC_PATH], struct opc_err *err)
{
    OPC_TRY(opc_path_shipped(path, name, err));
    if (is_task(name) && (opc_env_is_foreign(name) || !opc_file_exists(path)))
        return opc_fail(err, OPC_EUSER,
                        "%s is a task, and a file of settings comes first: opc train FILE.yaml "
                        "'env.name=%s' --out DIR; experiments/examples/ has some",
                        name, name);
    return OPC_OK;
}

static int train_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_config *config;
    char path[OPC_PATH];
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    /* KEY=VALUE alone would train with defaults that nobody wants. */
    if (first == argc ||
        (strchr(argv[first], '=') && !opc_file_exists(argv[first]) && !is_task(argv[first])))
        return opc_fail(err, OPC_EUSER,
                        "name a configuration file first: opc train FILE.yaml [KEY=VALUE...] --out "
                        "DIR; experiments/examples/ has some");
    code = find_file(argv[first], path, err);
    if (!code)
        code = opc_config_load(path, &config, err);
    if (code)
        return code;
    /* As with KEY=VALUE alone. A file that only varies settings has a message of its own. */
    if (opc_sources_count(config->from) == 0 && !opc_sources_extra(config->from, "vary")) {
        opc_config_destroy(config);
        return opc_fail(
            err, OPC_EUSER,
            "%s sets nothing; experiments/examples/ has files to start from, 'opc config' "
            "explains the settings",
            path);
    }
    if (!*given.out) {
        opc_config_destroy(config);
        return opc_fail(err, OPC_EUSER, "say where to: --out DIR");
    }
    /* Words after the file change single settings, in their order. */
    for (int i = first + 1; i < argc && !code; i++)
        code = opc_config_set(config, argv[i], err);
    if (!code)
        code = opc_training(config, given.out,
                            &(struct opc_training_plan){.threads = given.threads,
                                                        .quiet = given.quiet,
                                                        .parent = given.parent},
                            err);
    opc_config_destroy(config);
    return code;
}

const struct opc_command opc_cmd_train = {
    .name = "train",
    .usage = "FILE.yaml [KEY=VALUE...] --out DIR [OPTION...]",
    .summary = "train a policy",
    .detail =
        "FILE.yaml sets what is to be done (opc config explains the settings, experiments/ has "
        "files to start from, which are found from anywhere once installed), KEY=VALUE changes "
        "single settings: train.seed=2.\n"
        "DIR gets everything the run leaves: settings, a table of results, checkpoints, the "
        "policy. Ctrl-C (or SIGTERM) stops the run, which then can be resumed from the end of its "
        "last epoch; a second one stops it at once, which loses no more than that epoch.",
    .takes = OPC_TAKES_SETTINGS,
    .options = &options,
    .run = train_run,
};
