/* SPDX-License-Identifier: MIT */
/* opc search - tries random values of settings, and trains the better trials longer.
 *
 * study/search.h draws, judges and promotes; each rung is a sweep (cli/console/sweeping.h). All
 * state is in the run directories: a search that was killed goes on with the same command. */
#include "base/file.h"
#include "base/log.h"
#include "cli/console/command.h"
#include "cli/console/sweeping.h"
#include "study/search.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,      "",      0, 4095, "directory of the trials; by default search-FILE")         \
    OPC_SWEEPING_OPTIONS(X)
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* Trains the trials of one rung as far as it asks. A trial that diverged or failed has lost. */
static int run_rung(struct opc_search *search, int r, const struct opc_schedule *plan,
                    struct opc_err *err)
{
    struct opc_sweep sweep;
    OPC_TRY(opc_search_sweep(search, r, &sweep, err));
    int code = OPC_OK;
    if (sweep.tasks > 0) {
        printf("rung %d of %d: %d trial%s to epoch %d\n", r + 1, search->rungs, sweep.tasks,
               sweep.tasks == 1 ? "" : "s", search->epochs[r]);
        fflush(stdout);
        code = opc_sweeping(&sweep, *plan, NULL, err);
    }
    opc_search_free_sweep(&sweep);
    if (code == OPC_EIO) {
        opc_log(OPC_LEVEL_WARN, "%s; they are out", err->text);
        code = OPC_OK;
    }
    return code ? code : opc_search_judge(search, plan->out, err);
}

/* A line that can be pasted into a shell: the file, the words after it, the best values, and a
 * directory beside that of the trials, of which it is none. */
static void print_best(const struct opc_search *search, const struct opc_trial *best, int words,
                       char **word, const char *out)
{
    char dir[OPC_PATH], typed[OPC_PATH];
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        n--;
    printf("opc train %s", opc_shell_word(search->path, typed, sizeof typed));
    for (int i = 0; i < words; i++)
        printf(" '%s'", word[i]);
    for (int k = 0; k < search->keys; k++)
        printf(" '%s=%s'", search->key[k], best->value[k]);
    snprintf(dir, sizeof dir, "%.*s-best", (int)n, out);
    printf(" --out %s\n", opc_shell_word(dir, typed, sizeof typed));
}

/* The table of all trials, and how to train with the best values. */
static int show_result(const struct opc_search *search, int words, char **word, const char *out,
                       struct opc_err *err)
{
    struct opc_table *table;
    char path[OPC_PATH];
    const int best = opc_search_best(search);
    OPC_TRY(opc_path_join(path, out, "trials.csv", err));
    OPC_TRY(opc_search_table(search, &table, err));
    const int code = opc_table_write(table, path, err);
    opc_table_free(table);
    if (code)
        return code;
    if (best < 0)
        return opc_fail(err, OPC_EIO, "no trial has a value of %s; their logs are in %s",
                        search->set.objective, out);
    const struct opc_trial *trial = &search->trial[best];
    printf("all trials -> %s\nbest: %s/%s, %s %.6g after epoch %d\n", path, out, trial->run.name,
           search->set.objective, trial->score[trial->rung - 1], search->epochs[trial->rung - 1]);
    print_best(search, trial, words, word, out);
    return OPC_OK;
}

static int search_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_search *search;
    char path[OPC_PATH], out[OPC_PATH];
    int first;
    OPC_TRY(opc_options_read(&options, argc, argv, &given, &first, err));
    if (first == argc || strchr(argv[first], '='))
        return opc_fail(err, OPC_EUSER,
                        "name an experiment file: opc search FILE.yaml [KEY=VALUE...]");
    struct opc_schedule plan;
    const struct opc_sweeping_given how = OPC_SWEEPING_GIVEN(&given);
    OPC_TRY(opc_sweeping_plan(&how, &plan, err));
    /* The next rung needs the results of this one, so a cluster is waited for. */
    plan.wait = opc_launcher_is_detached(plan.launcher);
    plan.out = out;
    /* Named after the file, as a sweep is. */
    const char *name = opc_path_name(argv[first]), *dot = strrchr(name, '.');
    if (*given.out)
        snprintf(out, sizeof out, "%s", given.out);
    else
        snprintf(out, sizeof out, "search-%.*s", (int)(dot ? dot - name : (long)strlen(name)),
                 name);
    OPC_TRY(opc_path_shipped(path, argv[first], err));
    OPC_TRY(opc_search_open(path, argc - first - 1, argv + first + 1, &search, err));
    /* What is there already counts; then rung after rung. */
    int code = opc_search_judge(search, out, err);
    for (int r = 0; r < search->rungs && !code; r++)
        code = run_rung(search, r, &plan, err);
    if (!code)
        code = show_result(search, argc - first - 1, argv + first + 1, out, err);
    opc_search_close(search);
    return code;
}

const struct opc_command opc_cmd_search = {
    .name = "search",
    .usage = "FILE.yaml [KEY=VALUE...] [OPTION...]",
    .summary = "search for good settings: random trials, the better ones train longer",
    .detail =
        "The file's 'search' names settings with ranges or lists of values, the number of trials, "
        "the rungs (epochs after which trials are compared) and the objective (docs/search.md). "
        "Each trial is an ordinary run, OUT/t0000 and so on. After each rung the best third goes "
        "on; without rungs all trials train to the end. Writes OUT/trials.csv and prints the best "
        "trial, and the command that trains with its values into OUT-best. "
        "experiments/examples/search.yaml is a small search. Ctrl-C stops, and the same command "
        "goes on. With --launcher slurm each rung is a job array (docs/cluster.md), which is "
        "waited for.",
    .options = &options,
    .run = search_run,
};
