/* SPDX-License-Identifier: MIT */
/* opc evaluate - play episodes with the policy of a run. */
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "env/types.h"
#include "opc/mem.h"
#include "opc/train.h"

#include <stdio.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(INT,  episodes, "10",    1, 1e6,  "how many to play")                                        \
    X(INT,  seed,     "1000",  0, 2e9,  "of their starts; the run's own evaluations use train.seed") \
    X(BOOL, explore,  "false", 0, 1,    "draw actions from the policy instead of taking its mode") \
    X(INT,  threads,  "0",     0, 1024, "threads to compute with; 0: one per processor")           \
    X(BOOL, json,     "false", 0, 1,    "print one JSON object")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

static int run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_evaluation e = {OPC_SIZED(struct opc_evaluation)};
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (argc - first != 1)
        return opc_fail(err, OPC_EUSER, "name one run directory: opc evaluate DIR");
    const char *dir = argv[first];
    double *returns = opc_alloc((size_t)given.episodes, sizeof *returns);
    if (!returns)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d returns", given.episodes);
    opc_stop_catch(NULL);
    opc_env_stop_when(opc_stop_wanted);
    code = opc_evaluate_run(dir, given.episodes, (uint64_t)given.seed, given.explore, given.threads,
                            &e, returns, err);
    if (!code && given.json)
        printf("{\"epoch\": %d, \"episodes\": %d, \"mean\": %.10g, \"deviation\": %.10g, "
               "\"min\": %.10g, \"max\": %.10g, \"length\": %.10g}\n",
               e.epoch, e.episodes, e.mean, e.deviation, e.min, e.max, e.length);
    else if (!code) {
        for (int i = 0; i < given.episodes && given.episodes <= 20; i++)
            printf("episode %-4d %12.2f\n", i + 1, returns[i]);
        printf(
            "%d episode%s with the policy after epoch %d: mean return %.2f, deviation %.2f, from "
            "%.2f to %.2f, mean length %.1f\n",
            e.episodes, e.episodes == 1 ? "" : "s", e.epoch, e.mean, e.deviation, e.min, e.max,
            e.length);
    }
    opc_free(returns);
    return code;
}

const struct opc_command opc_cmd_evaluate = {
    .name = "evaluate",
    .usage = "DIR [OPTION...]",
    .summary = "play episodes with the policy of a run",
    .detail = "DIR is a run directory, finished or not; of one that is not finished the policy of "
              "its last checkpoint is taken.",
    .options = &options,
    .run = run,
};
