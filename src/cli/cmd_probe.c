/* SPDX-License-Identifier: MIT */
/* opc probe - measures how good the models of a run are: Figures 13 to 16 for any run.
 *
 * The analyses are those of study/probe/, which `opc repro` uses as well; here their settings come
 * from options. The exhibit records the command without what changes no number. */
#include "base/file.h"
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/files/rundir.h"
#include "study/probe/probe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH,  out,        "",     0, 4095,  "directory to write to; RUN/probe if none is named")     \
    X(INT,   seed,       "1",    0, 2e9,  "seed of the episodes and rollouts")            \
    X(INT,   threads,    "0",    0, 1024, "threads to compute with; 0: one per processor")         \
    X(BOOL,  quiet,      "false", 0, 1,   "print the claims only")                                     \
    X(INT,   samples,    "100",  1, 1e5,  "number of rollouts; for bound and offpolicy also of episodes on the environment") \
    X(INT,   horizon,    "20",   1, 1e4,  "states, trajectories, uncertainty: number of steps of a rollout")              \
    X(INT,   references, "10",   1, 1e4,  "states, trajectories, uncertainty: number of episodes that rollouts branch from") \
    X(INT,   epoch,      "0",    0, 1e6,  "use the model as it was after this epoch, or its newest snapshot before; 0: the last") \
    X(INT,   policy,     "0",    0, 1e6,  "use the policy as it was after this epoch, or its newest snapshot before; 0: the last") \
    X(TEXT,  entry,      "auto", 1, 32,   "trajectories: the state entry to draw, as o2, cos, sin or angle; auto: the first of these that exists") \
    X(INT,   panels,     "8",    1, 64,   "states: number of entries that are drawn; the table has all")     \
    X(REALS, beta,       "[0, 0.5, 1, 1.5, 2, 2.3, 3, 4]", 0, 100, "offpolicy, uncertainty: factors on the policy's standard deviation") \
    X(TEXTS, rule,       "",     0, 255,  "fit: settings of the model to fit with, 'max_epochs=3 patience=1'; may be repeated, '' is the run's own") \
    X(INT,   epochs,     "11",   1, 1000, "fit: how many of the last epochs are fitted again")     \
    X(INT,   steps,      "10",   1, 1e4,  "fit: steps of a rollout")                               \
    X(REAL,  noise,      "0.3",  0, 2,    "fit: standard deviation of what is added to recorded actions")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* The words of the command and the analysis each of them runs. */
static const struct {
    const char *word, *title;
    const struct opc_analysis *analysis;
} KIND[] = {
    {"states", "errors of the state along real episodes", &opc_probe_states},
    {"trajectories", "a state entry along imagined rollouts", &opc_probe_trajectories},
    {"bound", "real and predicted returns, and the bound on improvement", &opc_probe_bound},
    {"offpolicy", "real and predicted returns off-policy", &opc_probe_offpolicy},
    {"uncertainty", "how much the elites of the ensemble disagree", &opc_probe_uncertainty},
    {"fit", "what a fit of the model costs and what it is worth", &opc_probe_fit},
};
enum { KINDS = sizeof KIND / sizeof *KIND };

/* The analysis of that name. */
static int find_kind(const char *word, int *out, struct opc_err *err)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(word, KIND[i].word) == 0) {
            *out = i;
            return OPC_OK;
        }
    return opc_fail(
        err, OPC_EUSER,
        "'%s' is not one of states, trajectories, bound, offpolicy, uncertainty and fit", word);
}

/* The list ends with NULL. */
static bool is_one_of(const char *name, const char *const *list)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

/* Copies options into the settings of the analysis that have the same name; an option that it has
 * no setting for must not be given. `command` becomes what was typed, without options that change
 * no number. */
static int hand_over(const struct given *given, const char *word,
                     const struct opc_analysis *analysis, void *settings, struct opc_text *command,
                     struct opc_err *err)
{
    /* OWN: read by this file, not by the analysis. MUTE: change no number. */
    static const char *const OWN[] = {"out", "seed", "threads", "quiet", NULL};
    static const char *const MUTE[] = {"out", "threads", "quiet", NULL};
    struct given fresh;
    struct opc_text value = {0};
    int code = opc_section_defaults(analysis->settings, settings, err);
    if (!code)
        code = opc_section_defaults(&options, &fresh, err);
    opc_text_addf(command, "opc probe RUN %s", word);
    for (int i = 0; i < options.n && !code; i++) {
        const struct opc_field *f = &options.fields[i];
        /* An option left at its default takes the default of the analysis's setting if the two
         * agree. */
        const struct opc_texts *texts =
            f->kind == OPC_FIELD_TEXTS ? (const void *)((const char *)given + f->offset) : NULL;
        const bool usual =
            opc_option_is_usual(f, given, &fresh, &value) && !(texts && texts->n > 0);
        /* The command is what gives the same numbers again: only options that differ and matter. */
        for (int k = 0; texts && k < texts->n; k++)
            opc_text_addf(command, " --%s '%s'", f->name, texts->at[k]);
        if (!usual && !texts && !is_one_of(f->name, MUTE))
            opc_text_addf(command, " --%s '%s'", f->name, opc_text_get(&value));
        if (is_one_of(f->name, OWN))
            continue;
        /* The value is handed over as text, by name; of several texts, one after the other. */
        const bool wanted = opc_section_find(analysis->settings, f->name) != NULL;
        for (int k = 0; wanted && texts && k < texts->n && !code; k++)
            code = opc_section_set(analysis->settings, settings, f->name, texts->at[k], err);
        if (wanted && !texts)
            code =
                opc_section_set(analysis->settings, settings, f->name, opc_text_get(&value), err);
        else if (!wanted && !usual)
            code = opc_fail(err, OPC_EUSER, "--%s means nothing to %s", f->name, word);
    }
    opc_text_free(&value);
    return code ? code : opc_text_check(command, err);
}

/* The caption of every picture: which run it is, and whether it is complete. */
static int caption_of(const char *dir, struct opc_text *out, struct opc_err *err)
{
    struct opc_config *config;
    const int code = opc_config_of_run(dir, &config, err);
    if (code)
        return code;
    const struct opc_values *v = &config->set;
    opc_text_addf(out, "%s, opc.transition = %s, seed %d, %d epoch%s of %d step%s", v->env.name,
                  opc_transition_name(v->opc.transition), v->train.seed, v->train.epochs,
                  opc_plural(v->train.epochs), v->train.steps_per_epoch,
                  opc_plural(v->train.steps_per_epoch));
    /* result.json is written when a run is complete. */
    if (!opc_rundir_has(dir, "result.json"))
        opc_text_add(out, "; THE RUN IS NOT COMPLETE, this is how far it has got");
    opc_config_destroy(config);
    return opc_text_check(out, err);
}

/* The bar while the analysis works. */
static void show_progress(void *ctx, double done, const char *what)
{
    opc_pace_show(ctx, done, what);
}

static bool is_stop_wanted(void *ctx)
{
    (void)ctx;
    return opc_stop_wanted();
}

/* Prints the claims from the exhibit as it was written, so that terminal and file agree. */
static int print_report(const char *dir, const char *name, bool quiet, struct opc_err *err)
{
    static const char *const VERDICT[] = {"supported", "not supported", "undecided"};
    char path[OPC_PATH], file[64];
    struct opc_exhibit_read *exhibit;
    snprintf(file, sizeof file, "%s.json", name);
    int code = opc_path_join(path, dir, file, err);
    if (!code)
        code = opc_exhibit_load(path, &exhibit, err);
    if (code)
        return code;
    /* Claims with their verdicts always; notes and files unless --quiet. */
    for (int i = 0; i < exhibit->claims; i++)
        printf("%s\n    %s: %s\n", exhibit->claim[i].claim, VERDICT[exhibit->claim[i].verdict],
               exhibit->claim[i].measured);
    for (int i = 0; i < exhibit->notes && !quiet; i++)
        printf("note: %s\n", exhibit->note[i]);
    for (int i = 0; i < exhibit->pictures && !quiet; i++)
        printf("%s/%s.svg .pdf .png: %s\n", dir, exhibit->picture[i].file,
               exhibit->picture[i].title);
    for (int i = 0; i < exhibit->tables && !quiet; i++)
        printf("%s/%s: %s\n", dir, exhibit->table[i].file, exhibit->table[i].title);
    opc_exhibit_unload(exhibit);
    return OPC_OK;
}

/* Settings, caption, pool, analysis, exhibit; whatever was made is freed in any case. */
static int make_exhibit(char *run, int kind, const struct given *given, const char *dir,
                        struct opc_err *err)
{
    const struct opc_analysis *analysis = KIND[kind].analysis;
    struct opc_pool *pool = NULL;
    struct opc_exhibit *exhibit = NULL;
    struct opc_text caption = {0}, command = {0};
    struct opc_pace pace = {0};
    char *one[] = {run};
    /* Of the others a signal makes an end at once. */
    const bool ends_early = analysis == &opc_probe_fit;
    if (ends_early)
        opc_stop_catch("stopping; the rules that are complete are drawn");
    /* Each analysis has a struct of its own. */
    void *settings = opc_alloc(1, analysis->settings->size);
    int code = settings ? hand_over(given, KIND[kind].word, analysis, settings, &command, err)
                        : opc_fail(err, OPC_ENOMEM, "not enough memory for the settings");
    if (!code)
        code = caption_of(run, &caption, err);
    if (!code)
        code = opc_pool_create(given->threads, &pool, err);
    /* Where the exhibit goes and what it says about itself. */
    const struct opc_exhibit_plan plan = {
        .dir = dir,
        .name = KIND[kind].word,
        .title = KIND[kind].title,
        .caption = opc_text_get(&caption),
        .command = opc_text_get(&command),
    };
    /* One run; analyses of experiments get many. */
    const struct opc_request request = {
        .runs = 1,
        .run = one,
        .pool = pool,
        .seed = (uint64_t)given->seed,
        .progress = given->quiet ? NULL : show_progress,
        .ctx = &pace,
        .stop = ends_early ? is_stop_wanted : NULL,
    };
    if (!code)
        code = opc_exhibit_begin(&plan, &exhibit, err);
    if (!code)
        code = analysis->make(&request, settings, exhibit, err);
    opc_bar_wipe();
    /* A failed analysis leaves no half exhibit. */
    if (code)
        opc_exhibit_drop(exhibit);
    else
        code = opc_exhibit_end(exhibit, err);
    if (code)
        rmdir(dir); /* if nothing is in it */
    opc_text_free(&caption);
    opc_text_free(&command);
    opc_pool_destroy(pool);
    opc_free(settings);
    return code;
}

static int probe_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    char dir[OPC_PATH];
    int first, kind = 0;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    /* A run and an analysis, no more and no less. */
    if (!code && argc - first != 2)
        code = opc_fail(err, OPC_EUSER,
                        "name a run directory and what to look at: opc probe RUN "
                        "states|trajectories|bound|offpolicy|uncertainty|fit");
    if (!code)
        code = find_kind(argv[first + 1], &kind, err);
    if (!code)
        /* Exhibits go into the run itself unless a directory is named. */
        code = *given.out ? opc_path_join(dir, "", given.out, err)
                          : opc_path_join(dir, argv[first], "probe", err);
    if (!code)
        code = make_exhibit(argv[first], kind, &given, dir, err);
    return code ? code : print_report(dir, KIND[kind].word, given.quiet, err);
}

const struct opc_command opc_cmd_probe = {
    .name = "probe",
    .usage = "RUN states|trajectories|bound|offpolicy|uncertainty|fit [--out DIR] [OPTION...]",
    .summary = "measure how well the models of a run predict, and draw it",
    .detail =
        "RUN is a run directory, finished or not. Episodes are played with its policies on the "
        "environment, and imagined with its model by eq. 2 (learned) and by eq. 5 (corrected).\n"
        "states: errors of every state entry, step by step (Figure 13). trajectories: one entry, "
        "rollout by rollout (Figure 14). bound: real and predicted returns of every policy, and "
        "the bound on policy improvement (Figure 15); needs a run trained with record.snapshots=1. "
        "offpolicy: returns when the policy's deviation is scaled (Figure 16). uncertainty: how "
        "much "
        "the elites of the ensemble disagree, on-policy and off-policy. fit: the recording is "
        "fitted again under several rules, and each fit is tested on the next epoch.\n"
        "Pictures, tables and claims go to DIR, RUN/probe if none is named. After Ctrl-C, fit "
        "draws the rules that it has completed.",
    .words = "states trajectories bound offpolicy uncertainty fit",
    .options = &options,
    .run = probe_run,
};
