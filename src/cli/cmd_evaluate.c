/* SPDX-License-Identifier: MIT */
/* opc evaluate - plays episodes with the policy of a run and prints their returns.
 *
 * The episodes are those of opc_evaluate_run (opc/train.h): they depend on the seed alone, not on
 * the number of threads. */
#include "base/file.h"
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "env/types.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "run/trained.h"

#include <stdio.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(BOOL, best,     "false", 0, 1,    "take the policy with the best evaluation so far (policy-best.opc), not the last one") \
    X(INT,  snapshot, "0",     0, 1e9,  "take the policy as it was after this epoch, of which there must be a snapshot (record.snapshots); 0: none") \
    X(INT,  episodes, "10",    1, 1e6,  "number of episodes to play")                                        \
    X(INT,  seed,     "1000",  0, 2e9,  "seed of the starts of the episodes; the run's own evaluations use train.seed") \
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

/* One JSON object, with the return of each episode. */
static void print_json(const struct opc_evaluation *result, const double *returns)
{
    printf("{\"epoch\": %d, \"episodes\": %d, \"mean\": %.10g, \"deviation\": %.10g, "
           "\"min\": %.10g, \"max\": %.10g, \"length\": %.10g, \"returns\": [",
           result->epoch, result->episodes, result->mean, result->deviation, result->min,
           result->max, result->length);
    for (int i = 0; i < result->episodes; i++)
        printf("%s%.10g", i ? ", " : "", returns[i]);
    puts("]}");
}

/* Which policy of DIR, or that of a file, as the options say. */
static int choose_policy(const struct given *given, const char *dir, char path[OPC_PATH],
                         struct opc_err *err)
{
    if (given->best && given->snapshot)
        return opc_fail(err, OPC_EUSER,
                        "--best and --snapshot choose two policies; give one of them");
    if ((given->best || given->snapshot) && !opc_rundir_is_run(dir))
        return opc_fail(err, OPC_EUSER, "%s is no run directory, which --%s needs", dir,
                        given->best ? "best" : "snapshot");
    if (!given->best)
        return opc_path_join(path, "", dir, err);
    OPC_TRY(opc_path_join(path, dir, "policy-best.opc", err));
    return opc_file_exists(path)
               ? OPC_OK
               : opc_fail(
                     err, OPC_EUSER,
                     "%s has no policy-best.opc: it has not been evaluated yet, or was made by "
                     "an older program",
                     dir);
}

static int evaluate_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_evaluation result = {OPC_SIZED(struct opc_evaluation)};
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (argc - first != 1)
        return opc_fail(err, OPC_EUSER, "name one run directory or policy file: opc evaluate DIR");
    char path[OPC_PATH];
    OPC_TRY(choose_policy(&given, argv[first], path, err));
    /* The return of each episode, for the list. */
    double *returns = opc_alloc((size_t)given.episodes, sizeof *returns);
    if (!returns)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d returns", given.episodes);
    /* Ctrl-C fails the next step instead of killing us: hardware must rest first. */
    opc_stop_catch(NULL);
    opc_env_stop_when(opc_stop_wanted);
    code = opc_evaluate_snapshot(path, given.snapshot, given.episodes, (uint64_t)given.seed,
                                 given.explore, given.threads, &result, returns, err);
    if (!code && given.json)
        print_json(&result, returns);
    else if (!code) {
        /* Few episodes are listed one by one. */
        for (int i = 0; i < given.episodes && given.episodes <= 20; i++)
            printf("episode %-4d %12.2f\n", i + 1, returns[i]);
        printf(
            "%d episode%s with the policy after epoch %d: mean return %.2f, deviation %.2f, from "
            "%.2f to %.2f, mean length %.1f\n",
            result.episodes, result.episodes == 1 ? "" : "s", result.epoch, result.mean,
            result.deviation, result.min, result.max, result.length);
    }
    opc_free(returns);
    return code;
}

const struct opc_command opc_cmd_evaluate = {
    .name = "evaluate",
    .usage = "DIR|FILE.opc [OPTION...]",
    .summary = "play episodes with the policy of a run",
    .detail = "DIR is a run directory, finished or not; of one that is not finished the policy of "
              "its last checkpoint is taken. FILE.opc is a policy alone, as runs leave it.",
    .options = &options,
    .run = evaluate_run,
};
