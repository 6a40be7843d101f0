/* SPDX-License-Identifier: MIT */
/* opc resume - goes on with a run that was stopped or killed.
 *
 * Settings come from the run's own config.yaml; opc_train compares them with what the checkpoint
 * was made with. */
#include "cli/console/command.h"
#include "cli/console/training.h"
#include "opc/train.h"

/* clang-format off */
#define OPTIONS(X)                                                                                 \
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

static int resume_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_config *config;
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (argc - first != 1)
        return opc_fail(err, OPC_EUSER, "name one run directory: opc resume DIR");
    code = opc_config_of_run(argv[first], &config, err);
    if (code)
        return code;
    /* From the last checkpoint, in the foreground like `opc train`. */
    code = opc_training(config, argv[first], true, given.threads, given.quiet, given.parent, err);
    opc_config_destroy(config);
    return code;
}

const struct opc_command opc_cmd_resume = {
    .name = "resume",
    .usage = "DIR [OPTION...]",
    .summary = "go on with a run that was stopped or killed",
    .detail = "Goes on from the end of the last complete epoch; the result is the same, to the "
              "bit, as if the run had never been interrupted. To train longer, raise train.epochs "
              "in DIR/config.yaml first; other settings cannot be changed.",
    .options = &options,
    .run = resume_run,
};
