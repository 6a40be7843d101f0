/* SPDX-License-Identifier: MIT */
/* opc resume - goes on with a run that was stopped or killed.
 *
 * Settings come from the run's own config.yaml; opc_train compares them with what the checkpoint
 * was made with. KEY=VALUE may change what does not change the past: train.epochs, and the forms in
 * which metrics.csv is written. */
#include "base/file.h"
#include "cli/console/command.h"
#include "cli/console/training.h"
#include "run/config/config.h"
#include "run/files/rundir.h"
#include "sweep/look.h"

#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(INT,  threads, "0",     0, 1024, "threads to compute with; 0: one per processor; results do not depend on this number") \
    X(BOOL, quiet,   "false", 0, 1,    "print nothing but warnings and errors")                    \
    X(BOOL, skip_damaged, "false", 0, 1, "go on without recorded or imagined steps whose files are missing or damaged; the run is not the same then, and its log says so") \
    X(INT,  parent,  "0",     0, 2e9,  "stop as after Ctrl-C once the process of this number is no longer the parent; 0: never")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* Changes settings of the run in its config.yaml, all or none of them. Refused is what would make
 * another run of it: then its past would not be that of its settings. */
static int change_settings(const char *dir, struct opc_config *config, int n, char **words,
                           struct opc_err *err)
{
    const struct opc_values before = config->set;
    struct opc_rundir_status status;
    for (int i = 0; i < n; i++) {
        /* One by one, so that the message names the one that will not do. */
        const uint32_t hash = opc_config_hash(&config->set);
        OPC_TRY(opc_config_set(config, words[i], err));
        if (opc_config_hash(&config->set) != hash)
            return opc_fail(err, OPC_EUSER,
                            "%s would change what the run has learned from so far; %s", words[i],
                            opc_config_may_go_on(&before)
                                ? "only train.epochs, record.tensorboard and record.json_lines can "
                                  "be changed. Train another run: opc train DIR/config.yaml "
                                  "KEY=VALUE --out OTHER"
                                : "only record.tensorboard and record.json_lines can be changed, "
                                  "because what this agent learns depends on train.epochs");
    }
    opc_rundir_status(dir, &status);
    if (config->set.train.epochs < status.epoch)
        return opc_fail(err, OPC_EUSER, "train.epochs = %d: the run has %d epochs already",
                        config->set.train.epochs, status.epoch);
    if (status.locked)
        return opc_fail(err, OPC_EUSER,
                        "the run is being worked on by another process; stop it first");
    const struct opc_values *v = &config->set;
    const bool same = v->train.epochs == before.train.epochs &&
                      strcmp(v->env.directory, before.env.directory) == 0 &&
                      v->record.tensorboard == before.record.tensorboard &&
                      v->record.json_lines == before.record.json_lines;
    return same ? OPC_OK : opc_look_raise(dir, v, err);
}

static int resume_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_config *config;
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (argc == first)
        return opc_fail(err, OPC_EUSER, "name one run directory: opc resume DIR [KEY=VALUE...]");
    for (int i = first + 1; i < argc; i++)
        if (!strchr(argv[i], '='))
            return opc_fail(err, OPC_EUSER,
                            "'%s' is not KEY=VALUE; one run at a time: opc resume DIR", argv[i]);
    code = opc_config_of_run(argv[first], &config, err);
    if (code)
        return code;
    if (argc - first > 1)
        code = change_settings(argv[first], config, argc - first - 1, argv + first + 1, err);
    /* From the last checkpoint, in the foreground like `opc train`. */
    if (!code)
        code = opc_training(config, argv[first],
                            &(struct opc_training_plan){.resume = true,
                                                        .threads = given.threads,
                                                        .quiet = given.quiet,
                                                        .parent = given.parent,
                                                        .skip_damaged = given.skip_damaged},
                            err);
    opc_config_destroy(config);
    return code;
}

const struct opc_command opc_cmd_resume = {
    .name = "resume",
    .usage = "DIR [KEY=VALUE...] [OPTION...]",
    .summary = "go on with a run that was stopped or killed",
    .detail =
        "Goes on from the end of the last complete epoch; the result is the same, to the "
        "bit, as if the run had never been interrupted. 'opc resume DIR train.epochs=N' trains "
        "longer, also a run that is done; record.tensorboard and record.json_lines can be "
        "changed, too. Other settings cannot, because they would make another run of it.",
    .takes = OPC_TAKES_SETTINGS,
    .options = &options,
    .run = resume_run,
};
