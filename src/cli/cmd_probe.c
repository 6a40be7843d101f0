/* SPDX-License-Identifier: MIT */
/* opc probe - how good the models of a run are: Figures 13 to 16 for any run. */
#include "base/file.h"
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/rundir.h"
#include "study/probe/probe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(TEXT,  out,        "",     0, 255,  "directory to write to; RUN/probe if none is named")     \
    X(INT,   seed,       "1",    0, 2e9,  "of the episodes and rollouts that are made")            \
    X(INT,   threads,    "0",    0, 1024, "threads to compute with; 0: one per processor")         \
    X(BOOL,  quiet,      "false", 0, 1,   "print claims only")                                     \
    X(INT,   samples,    "100",  1, 1e5,  "rollouts; for bound and offpolicy also episodes on the environment") \
    X(INT,   horizon,    "20",   1, 1e4,  "states, trajectories: steps of a rollout")              \
    X(INT,   references, "10",   1, 1e4,  "states, trajectories: episodes that rollouts branch from") \
    X(INT,   epoch,      "0",    0, 1e6,  "the model as it was after this epoch, or the newest snapshot before; 0: the last") \
    X(INT,   policy,     "0",    0, 1e6,  "the policy as it was after this epoch, likewise; 0: the last") \
    X(TEXT,  entry,      "auto", 1, 32,   "trajectories: the state entry, o2, cos, sin or angle; auto: the first of them there is") \
    X(INT,   panels,     "8",    1, 64,   "states: entries that are drawn; the table has all")     \
    X(REALS, beta,       "[0, 0.5, 1, 1.5, 2, 2.3, 3, 4]", 0, 100, "offpolicy: factors on the policy's standard deviation") \
    X(TEXTS, rule,       "",     0, 255,  "fit: settings of the model to fit with, 'max_epochs=3 patience=1'; may be repeated, '' is the run's own") \
    X(INT,   epochs,     "10",   1, 1000, "fit: how many of the last epochs are fitted again")     \
    X(INT,   steps,      "10",   1, 1e4,  "fit: steps of a rollout")                               \
    X(REAL,  noise,      "0.3",  0, 2,    "fit: standard deviation of what is added to recorded actions")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

static const struct {
    const char *word, *title;
    const struct opc_analysis *analysis;
} KIND[] = {
    {"states", "errors of the state beside real episodes", &opc_probe_states},
    {"trajectories", "a state entry along imagined rollouts", &opc_probe_trajectories},
    {"bound", "real and predicted returns, and the bound on improvement", &opc_probe_bound},
    {"offpolicy", "real and predicted returns off-policy", &opc_probe_offpolicy},
    {"fit", "what a fit of the model costs and what it is worth", &opc_probe_fit},
};
enum { KINDS = sizeof KIND / sizeof *KIND };

static int find_kind(const char *word, int *out, struct opc_err *err)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(word, KIND[i].word) == 0) {
            *out = i;
            return OPC_OK;
        }
    return opc_fail(err, OPC_EUSER,
                    "'%s' is not one of states, trajectories, bound, offpolicy and fit", word);
}

static bool is_one_of(const char *name, const char *const *list)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

/* Options that the analysis has a setting for are its settings; one it has no use for must not be
 * given. `command` becomes what was typed, without what changes no number. */
static int hand_over(const struct given *given, const char *word,
                     const struct opc_analysis *analysis, void *settings, struct opc_text *command,
                     struct opc_err *err)
{
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
        const bool usual = opc_option_is_usual(f, given, &fresh, &value);
        if (!usual && !is_one_of(f->name, MUTE))
            opc_text_addf(command, " --%s '%s'", f->name, opc_text_get(&value));
        if (is_one_of(f->name, OWN))
            continue;
        const bool wanted = opc_section_find(analysis->settings, f->name) != NULL;
        if (wanted && f->kind == OPC_TEXTS) {
            const struct opc_texts *texts =
                (const void *)((const char *)given + f->offset); /* one after the other */
            for (int k = 0; k < texts->n && !code; k++)
                code = opc_section_set(analysis->settings, settings, f->name, texts->at[k], err);
        } else if (wanted)
            code =
                opc_section_set(analysis->settings, settings, f->name, opc_text_get(&value), err);
        else if (!usual)
            code = opc_fail(err, OPC_EUSER, "--%s means nothing to %s", f->name, word);
    }
    opc_text_free(&value);
    return code ? code : opc_text_check(command, err);
}

/* Under every picture: what run, and whether it is all of it. */
static int caption_of(const char *dir, struct opc_text *out, struct opc_err *err)
{
    struct opc_config *config;
    const int code = opc_config_of_run(dir, &config, err);
    if (code)
        return code;
    const struct opc_values *v = &config->set;
    opc_text_addf(out, "%s, opc.transition = %s, seed %d, %d epochs of %d steps", v->env.name,
                  opc_transition_name(v->opc.transition), v->train.seed, v->train.epochs,
                  v->train.steps_per_epoch);
    if (!opc_rundir_has(dir, "result.json"))
        opc_text_add(out, "; THE RUN IS NOT COMPLETE, this is how far it has got");
    opc_config_destroy(config);
    return opc_text_check(out, err);
}

static void show(void *ctx, double done, const char *what)
{
    char text[128];
    (void)ctx;
    snprintf(text, sizeof text, "%3.0f %% %s", 100 * done, what);
    opc_bar_draw(done, text);
}

static int report(const char *dir, const char *name, bool quiet, struct opc_err *err)
{
    static const char *const VERDICT[] = {"supported", "not supported", "undecided"};
    char path[OPC_PATH], file[64];
    struct opc_exhibit_read *e;
    snprintf(file, sizeof file, "%s.json", name);
    int code = opc_path_join(path, dir, file, err);
    if (!code)
        code = opc_exhibit_load(path, &e, err);
    if (code)
        return code;
    for (int i = 0; i < e->claims; i++)
        printf("%s\n    %s: %s\n", e->claim[i].claim, VERDICT[e->claim[i].verdict],
               e->claim[i].measured);
    for (int i = 0; i < e->notes && !quiet; i++)
        printf("note: %s\n", e->note[i]);
    for (int i = 0; i < e->pictures && !quiet; i++)
        printf("%s/%s.svg .pdf .png: %s\n", dir, e->picture[i].file, e->picture[i].title);
    for (int i = 0; i < e->tables && !quiet; i++)
        printf("%s/%s: %s\n", dir, e->table[i].file, e->table[i].title);
    opc_exhibit_unload(e);
    return OPC_OK;
}

static int probe(char *run, int kind, const struct given *given, const char *dir,
                 struct opc_err *err)
{
    const struct opc_analysis *analysis = KIND[kind].analysis;
    struct opc_pool *pool = NULL;
    struct opc_exhibit *exhibit = NULL;
    struct opc_text caption = {0}, command = {0};
    char *one[] = {run};
    void *settings = opc_alloc(1, analysis->settings->size);
    int code = settings ? hand_over(given, KIND[kind].word, analysis, settings, &command, err)
                        : opc_fail(err, OPC_ENOMEM, "not enough memory for the settings");
    if (!code)
        code = caption_of(run, &caption, err);
    if (!code)
        code = opc_pool_create(given->threads, &pool, err);
    const struct opc_exhibit_plan plan = {
        .dir = dir,
        .name = KIND[kind].word,
        .title = KIND[kind].title,
        .caption = opc_text_get(&caption),
        .command = opc_text_get(&command),
    };
    const struct opc_request request = {
        .runs = 1,
        .run = one,
        .pool = pool,
        .seed = (uint64_t)given->seed,
        .progress = given->quiet ? NULL : show,
    };
    if (!code)
        code = opc_exhibit_begin(&plan, &exhibit, err);
    if (!code)
        code = analysis->make(&request, settings, exhibit, err);
    opc_bar_wipe();
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

static int run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    char dir[OPC_PATH];
    int first, kind = 0;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (!code && argc - first != 2)
        code = opc_fail(err, OPC_EUSER,
                        "name a run directory and what to look at: opc probe RUN "
                        "states|trajectories|bound|offpolicy|fit");
    if (!code)
        code = find_kind(argv[first + 1], &kind, err);
    if (!code)
        code = *given.out ? opc_path_join(dir, "", given.out, err)
                          : opc_path_join(dir, argv[first], "probe", err);
    if (!code)
        code = probe(argv[first], kind, &given, dir, err);
    return code ? code : report(dir, KIND[kind].word, given.quiet, err);
}

const struct opc_command opc_cmd_probe = {
    .name = "probe",
    .usage = "RUN states|trajectories|bound|offpolicy|fit [--out DIR] [OPTION...]",
    .summary = "measure how well the models of a run predict, and draw it",
    .detail =
        "RUN is a run directory, finished or not. Episodes are played with its policies on the "
        "environment, and imagined with its model by eq. 2 (learned) and by eq. 5 (corrected).\n"
        "states: errors of every state entry, step by step (Figure 13). trajectories: one entry, "
        "rollout by rollout (Figure 14). bound: real and predicted returns of every policy, and "
        "the bound on policy improvement (Figure 15); needs a run trained with record.snapshots=1. "
        "offpolicy: returns when the policy's deviation is scaled (Figure 16). fit: the recording "
        "is "
        "fitted again under several rules, and each fit is tested on the next epoch.\n"
        "Pictures, tables and claims go to DIR, RUN/probe if none is named.",
    .words = "states trajectories bound offpolicy fit",
    .options = &options,
    .run = run,
};
