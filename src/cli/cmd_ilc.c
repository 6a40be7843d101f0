/* SPDX-License-Identifier: MIT */
/* opc ilc - norm-optimal iterative learning control.
 *
 * Reads the section ilc of a file, runs the trials (study/ilc/), prints the error of each and, with
 * --out, writes an exhibit. Results depend on the settings alone, not on --threads. */
#include "base/file.h"
#include "cli/console/command.h"
#include "opc/mem.h"
#include "study/exhibit/analysis.h"
#include "study/ilc/ilc_exhibit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,      "",      0, 4095,  "directory for the exhibit 'ilc': figure, tables, claims")  \
    X(INT,  threads,  "1",     0, 1024, "threads that fit the learned model; 0: one per processor; results do not depend on this number") \
    X(BOOL, quiet,    "false", 0, 1,    "print nothing but warnings and errors")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* ---- settings -------------------------------------------------------------------------------- */

/* A file for this command has the section ilc and no other: any other top key is refused. */
static int read_settings(const char *path, struct opc_ilc_config *c, struct opc_err *err)
{
    struct opc_yaml *file;
    int code = opc_yaml_read(path, &file, err);
    if (code)
        return code;
    const struct opc_yaml *ilc = file->kind == OPC_YAML_MAP ? opc_yaml_find(file, "ilc") : NULL;
    /* A file that is not a map at all is reported below. */
    for (const struct opc_yaml *top = file->first; top && !code; top = top->next) {
        int nearest = INT_MAX;
        if (file->kind != OPC_YAML_MAP || top == ilc)
            continue;
        code = opc_fail(err, OPC_EUSER, "%s:%d: there is no section '%s' in a file for opc ilc%s",
                        path, top->line, top->key,
                        opc_nearer(top->key, "ilc", &nearest) ? "; did you mean 'ilc'?"
                                                              : ", only 'ilc'");
    }
    /* No section, or one that is not a map. */
    if (!code && (!ilc || ilc->kind != OPC_YAML_MAP))
        code =
            opc_fail(err, OPC_EUSER,
                     "%s has no section 'ilc:' with settings; experiments/ilc/ has examples", path);
    if (!code) {
        code = opc_analysis_fill(&opc_ilc_section, ilc, c, err);
        if (code)
            opc_within(err, "%s", path);
    }
    opc_yaml_free(file);
    return code;
}

/* Applies "iterations=20" or "ilc.iterations=20". */
static int assign_setting(const char *word, struct opc_ilc_config *c, struct opc_err *err)
{
    char key[64];
    const char *equals = strchr(word, '=');
    /* The section may be written or left out. */
    const size_t skip = strncmp(word, "ilc.", 4) == 0 ? 4 : 0;
    if (!equals)
        return opc_fail(err, OPC_EUSER,
                        "'%s' is not a setting; write KEY=VALUE, as in iterations=20", word);
    const size_t length = (size_t)(equals - word) - skip;
    /* No setting has a name that long. */
    if (length >= sizeof key)
        return opc_fail(err, OPC_EUSER, "ilc has no setting '%.60s...'", word + skip);
    memcpy(key, word + skip, length);
    key[length] = '\0';
    return opc_section_set(&opc_ilc_section, c, key, equals + 1, err);
}

/* As YAML, for the record in the exhibit. */
static void print_settings(const struct opc_ilc_config *c, struct opc_text *text)
{
    opc_text_add(text, "ilc:\n");
    for (int i = 0; i < opc_ilc_section.n; i++) {
        opc_text_addf(text, "  %s: ", opc_ilc_section.fields[i].name);
        opc_field_print(&opc_ilc_section.fields[i], c, text);
        opc_text_add(text, "\n");
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* RMS error of every trial, medians over repeats; columns that say nothing new are left out. */
static void print_table(const struct opc_ilc_trials *t)
{
    /* With noise there are two errors: of the actions on the plant without noise, and as measured.
     */
    const bool noisy = t->config.process_noise > 0.0 || t->config.sensor_noise > 0.0;
    printf("%5s %12s%s%s\n", "trial", "RMS error", noisy ? "     as seen" : "",
           t->plain ? "   no filter" : "");
    for (int i = 0; i < t->trials; i++) {
        printf("%5d %12.6f", i, opc_ilc_error(t, i, 0.5));
        if (noisy)
            printf(" %11.6f", opc_ilc_error_seen(t, i, 0.5));
        if (t->plain)
            printf(" %11.6f", opc_ilc_error_plain(t, i, 0.5));
        printf("\n");
    }
    if (noisy)
        printf("(RMS error: of the actions on the plant without noise)\n");
    if (t->config.repeats > 1)
        printf("(medians over %d repeats)\n", t->config.repeats);
    /* How far the update by OPC is from the norm-optimal one. */
    if (!isnan(t->by_opc))
        printf("the update of OPC differs by at most %.2g, of actions up to %.3g\n", t->by_opc,
               t->largest);
    /* With bounds on the actions a quadratic program is solved; these are its residuals. */
    if (t->limited)
        printf("up to %d bounds active, optimality conditions kept to %.1e\n", t->active, t->kkt);
}

/* The figure, tables and claims of the trials, with the settings that made them. */
static int write_exhibit(struct opc_ilc_trials *t, const struct given *given, const char *command,
                         struct opc_err *err)
{
    struct opc_text settings = {0};
    struct opc_exhibit *e;
    char caption[160];
    /* What was computed, in one line under the figure. */
    snprintf(caption, sizeof caption, "form %s, %d trials of %d steps, %d repeat%s, seed %d",
             opc_ilc_form_name(t->config.form), t->trials, t->T, t->config.repeats,
             t->config.repeats == 1 ? "" : "s", t->config.seed);
    print_settings(&t->config, &settings);
    const struct opc_exhibit_plan plan = {.dir = given->out,
                                          .name = "ilc",
                                          .title = "Norm-optimal iterative learning control",
                                          .caption = caption,
                                          .command = command,
                                          .config = opc_text_get(&settings)};
    int code = opc_text_check(&settings, err);
    if (!code)
        code = opc_exhibit_begin(&plan, &e, err);
    /* A failure on the way drops the exhibit: there is never half of one. */
    if (!code) {
        code = opc_ilc_show(1, &t, e, err);
        if (code)
            opc_exhibit_drop(e);
        else
            code = opc_exhibit_end(e, err);
    }
    opc_text_free(&settings);
    if (!code && !given->quiet)
        printf("-> %s/ilc.json, with figure, tables and claims\n", given->out);
    return code;
}

static int ilc_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_ilc_config config;
    struct opc_ilc_trials *trials;
    struct opc_pool *pool;
    char path[OPC_PATH];
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (first == argc || strchr(argv[first], '='))
        return opc_fail(err, OPC_EUSER,
                        "name a file first: opc ilc FILE.yaml [KEY=VALUE...]; experiments/ilc/ has "
                        "some");
    /* Settings: the file, then the words after it. */
    code = opc_path_shipped(path, argv[first], err);
    if (!code)
        code = read_settings(path, &config, err);
    for (int i = first + 1; i < argc && !code; i++)
        code = assign_setting(argv[i], &config, err);
    if (!code && *given.out) /* a wrong DIR is reported before the work, not after it */
        code = opc_make_directories(given.out, err);
    if (!code)
        code = opc_pool_create(given.threads, &pool, err);
    if (code)
        return code;
    /* The pool is needed only while the learned model is fitted. */
    code = opc_ilc_run(&config, pool, NULL, &trials, err);
    opc_pool_destroy(pool);
    if (code)
        return code;
    if (!given.quiet)
        print_table(trials);
    if (*given.out) {
        /* The command as typed, for the exhibit; an absolute path is shortened to its name. */
        struct opc_text command = {0};
        opc_text_addf(&command, "opc ilc %s", opc_path_display(argv[first]));
        for (int i = first + 1; i < argc; i++)
            opc_text_addf(&command, " %s", argv[i]);
        code = opc_text_check(&command, err);
        if (!code)
            code = write_exhibit(trials, &given, opc_text_get(&command), err);
        opc_text_free(&command);
    }
    opc_ilc_trials_free(trials);
    return code;
}

const struct opc_command opc_cmd_ilc = {
    .name = "ilc",
    .usage = "FILE.yaml [KEY=VALUE...] [--out DIR] [OPTION...]",
    .summary = "norm-optimal iterative learning control, which is OPC with a linear model",
    .detail =
        "FILE.yaml has one section, ilc, which says what is controlled and how; 'opc config ilc' "
        "explains what can be set, experiments/ilc/ has a file for each form, and KEY=VALUE "
        "changes single settings: iterations=20.\n"
        "Prints the tracking error of each trial.",
    .options = &options,
    .run = ilc_run,
};
