/* SPDX-License-Identifier: MIT */
/* Options of subcommands, read with getopt_long from a table of settings (base/field.h). Every
 * subcommand calls opc_options_read first.
 *
 * Invariant: all messages about options are ours and name the option as the user types it,
 * --max-steps for the member max_steps. */
#include "cli/console/options.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/console/command.h"
#include "cli/console/help.h"
#include "opc/mem.h"
#include "run/config/config.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OPTIONS = 64 };

/* max_steps becomes max-steps. */
char *opc_option_name(const struct opc_field *f, char out[OPC_OPTION_NAME])
{
    int i = 0;
    for (; i < OPC_OPTION_NAME - 1 && f->name[i]; i++)
        out[i] = f->name[i] == '_' ? '-' : f->name[i];
    out[i] = '\0';
    return out;
}

static int set_option(const struct opc_section *options, const struct opc_field *f,
                      const char *text, void *into, struct opc_err *err)
{
    struct opc_err fault = {0};
    if (!opc_section_set(options, into, f->name, text, &fault))
        return OPC_OK;
    /* The message of base/field.c starts with the name of the field; write it as an option. */
    char name[OPC_OPTION_NAME];
    const size_t n = strlen(f->name);
    if (strncmp(fault.text, f->name, n) == 0)
        return opc_fail(err, fault.code, "--%s%s", opc_option_name(f, name), fault.text + n);
    return opc_fail(err, fault.code, "%s", fault.text);
}

/* The word that an unknown option is in: getopt stays on one of several letters, -abc, until all of
 * them are read. */
static const char *find_whole(int argc, char **argv, int letter)
{
    if (optind < argc && argv[optind][0] == '-' && argv[optind][1] == letter)
        return argv[optind];
    return argv[optind - 1];
}

/* The setting of that name, "seed" for train.seed, where the command takes settings; false: there
 * is none. People who know other programs type it as an option, and with a name that several
 * sections have, as learning_rate, they mean the agent's. */
static bool find_setting(const char *command, const char *asked, char out[OPC_KEY])
{
    const struct opc_command *c;
    struct opc_values values; /* only the sections are looked at */
    struct opc_part part[OPC_PARTS_MAX];
    char name[OPC_OPTION_NAME];
    if (opc_command_find(command, &c, NULL) || c->takes != OPC_TAKES_SETTINGS)
        return false;
    snprintf(name, sizeof name, "%s", strcmp(asked, "env") ? asked : "name");
    for (char *dash = name; (dash = strchr(dash, '-'));)
        *dash = '_';
    const int parts = opc_config_parts(&values, part);
    *out = '\0';
    for (int i = 0; i < parts; i++) {
        const struct opc_field *f = opc_section_find(part[i].section, name);
        if (f && (!*out || strcmp(part[i].section->name, "sac") == 0))
            snprintf(out, OPC_KEY, "%s.%s", part[i].section->name, f->name);
    }
    return *out;
}

/* Suggests the nearest option. The nearest name is copied, because each name is written into a
 * buffer. */
static int unknown_option(const struct opc_section *options, const char *command, const char *word,
                          const char *whole, struct opc_err *err)
{
    /* A file whose name begins with a dash has to be named otherwise. */
    if (opc_file_exists(whole))
        return opc_fail(err, OPC_EUSER,
                        "%s is read as an option; for the file of that name write ./%s", whole,
                        whole);
    char name[OPC_OPTION_NAME], meant[OPC_OPTION_NAME] = "", asked[OPC_OPTION_NAME];
    int nearest = INT_MAX;
    /* Without dashes and value: "--actionz=two" asks for "actionz". */
    snprintf(asked, sizeof asked, "%s", word + strspn(word, "-"));
    asked[strcspn(asked, "=")] = '\0';
    char setting[OPC_KEY];
    if (find_setting(command, asked, setting))
        return opc_fail(err, OPC_EUSER,
                        "unknown option %s; settings are written without dashes: %s=VALUE", word,
                        setting);
    for (int i = 0; i < options->n; i++)
        if (opc_nearer(asked, opc_option_name(&options->fields[i], name), &nearest))
            snprintf(meant, sizeof meant, "%s", name);
    if (*meant)
        return opc_fail(err, OPC_EUSER, "unknown option %s; did you mean --%s?", word, meant);
    return opc_fail(err, OPC_EUSER, "unknown option %s; 'opc %s --help' lists them", word, command);
}

/* Compared as text, which is the same for equal values. */
bool opc_option_is_usual(const struct opc_field *f, const void *given, const void *fresh,
                         struct opc_text *value)
{
    struct opc_text usual = {0};
    opc_text_clear(value);
    opc_field_print(f, given, value);
    opc_field_print(f, fresh, &usual);
    const bool same = strcmp(opc_text_get(value), opc_text_get(&usual)) == 0;
    opc_text_free(&usual);
    return same;
}

const char *opc_option_words(const struct opc_option_use *uses, const char *option)
{
    for (; uses && uses->option; uses++)
        if (strcmp(uses->option, option) == 0)
            return uses->words;
    return NULL;
}

/* Is `word` one of the words, which are separated by spaces? */
static bool is_word_of(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && strncmp(at, word, n) == 0)
            return true;
    return false;
}

/* An option counts as given if its value is not the default: giving the default does no harm. */
int opc_options_fit(const struct opc_section *options, const struct opc_option_use *uses,
                    const char *word, const void *given, struct opc_err *err)
{
    char name[OPC_OPTION_NAME];
    struct opc_text value = {0};
    void *fresh = opc_alloc(1, options->size);
    int code = fresh ? opc_section_defaults(options, fresh, err)
                     : opc_fail(err, OPC_ENOMEM, "not enough memory for the options");
    for (int i = 0; i < options->n && !code; i++) {
        const struct opc_field *f = &options->fields[i];
        const char *words = opc_option_words(uses, f->name);
        if (words && !is_word_of(words, word) && !opc_option_is_usual(f, given, fresh, &value))
            code = opc_fail(err, OPC_EUSER, "--%s means nothing to %s; it is for: %s",
                            opc_option_name(f, name), word, words);
    }
    opc_text_free(&value);
    opc_free(fresh);
    return code;
}

int opc_options_read(const struct opc_section *options, int argc, char **argv, void *into,
                     int *first, struct opc_err *err)
{
    /* The table that getopt_long wants. It returns PAST + our index, which no character reaches. */
    enum { PAST = 256 };
    struct option gnu[MAX_OPTIONS + 1] = {0};
    char names[MAX_OPTIONS][OPC_OPTION_NAME];
    static const struct opc_section none = {.name = ""};
    options = options ? options : &none;
    if (options->n > MAX_OPTIONS)
        return opc_fail(err, OPC_EBUG, "%d options, but there is room for %d", options->n,
                        MAX_OPTIONS);
    /* A BOOL may stand alone (--json) or have a value (--json=no). */
    for (int i = 0; i < options->n; i++) {
        const struct opc_field *f = &options->fields[i];
        const int value = f->kind == OPC_FIELD_BOOL ? optional_argument : required_argument;
        gnu[i] = (struct option){opc_option_name(f, names[i]), value, NULL, PAST + i};
    }
    int code = options->n ? opc_section_defaults(options, into, err) : OPC_OK;

    /* --out is the one option that also has a letter, -o. */
    const struct opc_field *out = opc_section_find(options, "out");
    opterr = 0; /* the messages are ours */
    optind = 0; /* GNU: starts a new scan, also when this is called again */
    while (!code) {
        const int got = getopt_long(argc, argv, out ? ":o:" : ":", gnu, NULL);
        if (got == -1)
            break;
        /* ':' is a missing value, '?' an unknown option; otherwise the option itself. */
        const char *word = argv[optind - 1];
        char letter[] = {'-', (char)optopt, '\0'};
        const int which = got == ':' ? optopt : got;
        const struct opc_field *f = which == 'o' ? out : NULL;
        if (which >= PAST && which < PAST + options->n)
            f = &options->fields[which - PAST];
        /* optopt is the letter of an unknown short option, and 0 for a long one. */
        if (!f)
            code = unknown_option(options, argv[0], optopt ? letter : word,
                                  find_whole(argc, argv, optopt), err);
        else if (got == ':')
            code = opc_fail(err, OPC_EUSER, "%s needs a value: %s", word, f->help);
        else
            code = set_option(options, f, optarg ? optarg : "true", into, err);
    }
    *first = optind;
    return code;
}
