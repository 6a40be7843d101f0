/* SPDX-License-Identifier: MIT */
#include "cli/console/help.h"

#include "base/text.h"
#include "opc/version.h"

#include <string.h>

enum { WIDTH = 80 };

static const char PURPOSE[] = "model-based reinforcement learning with on-policy corrections";

struct status {
    const char *code, *meaning;
};
static const struct status STATUSES[] = {
    {"0", "done"},
    {"1", "failure at run time"},
    {"2", "the command line or a configuration file is wrong"},
    {"3", "a file is damaged"},
    {"4", "training diverged"},
    {"5", "an environment failed"},
    {"75", "stopped by request; can be resumed"},
    {NULL, NULL},
};

static const char *command_name(int i)
{
    return opc_commands[i] ? opc_commands[i]->name : NULL;
}

int opc_command_find(const char *name, const struct opc_command **out, struct opc_err *err)
{
    for (int i = 0; opc_commands[i]; i++)
        if (strcmp(opc_commands[i]->name, name) == 0) {
            *out = opc_commands[i];
            return OPC_OK;
        }
    const char *meant = opc_nearest_of(name, command_name);
    if (meant)
        return opc_fail(err, OPC_EUSER, "unknown subcommand '%s'; did you mean '%s'?", name, meant);
    return opc_fail(err, OPC_EUSER, "unknown subcommand '%s'; 'opc --help' lists them", name);
}

/* ---- on the terminal ------------------------------------------------------------------------- */

/* Words of `text` from the current `column` on, broken before WIDTH; later lines and those after a
 * newline start at `indent`. Ends the line. */
static void flow(FILE *out, int column, int indent, const char *text)
{
    bool fresh = true; /* nothing on this line yet */
    while (*text) {
        const int n = (int)strcspn(text, " \n");
        if (!fresh && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            fresh = true;
        }
        column += fprintf(out, "%s%.*s", fresh ? "" : " ", n, text);
        fresh = false;
        text += n;
        if (*text == '\n') {
            fprintf(out, "\n\n%*s", indent, "");
            column = indent;
            fresh = true;
        }
        if (*text)
            text++;
    }
    fputc('\n', out);
}

/* "  left      right", the right side starting at `column`, on its own line if left is too long. */
static void entry(FILE *out, const char *left, int column, const char *right)
{
    fprintf(out, "  %-*s", column - 2, left);
    if ((int)strlen(left) + 2 >= column)
        fprintf(out, "\n%*s", column, "");
    flow(out, column, column, right);
}

/* "--threads N" into `left`, its explanation with range and default into `right`. */
static void describe(const struct opc_command *c, const struct opc_field *f, char *left,
                     size_t left_size, char *right, size_t right_size)
{
    static const char *const VALUE[] = {
        [OPC_INT] = " N",         [OPC_REAL] = " X",      [OPC_BOOL] = "",
        [OPC_TEXT] = " TEXT",     [OPC_CHOICE] = " WORD", [OPC_INTS] = " N,N,...",
        [OPC_REALS] = " X,X,...", [OPC_NAME] = " WORD",   [OPC_TEXTS] = " TEXT"};
    char name[OPC_OPTION_NAME], range[256] = "", standard[96] = "";
    snprintf(left, left_size, "%s--%s%s", strcmp(f->name, "out") == 0 ? "-o, " : "",
             opc_option_name(f, name), VALUE[f->kind]);
    if (f->kind == OPC_CHOICE)
        snprintf(range, sizeof range, "%s", f->words);
    else if (f->kind != OPC_BOOL && f->kind != OPC_TEXT && f->kind != OPC_TEXTS)
        snprintf(range, sizeof range, "%.10g to %.10g", f->min, f->max);
    if (*f->fallback && strcmp(f->fallback, "false") != 0)
        snprintf(standard, sizeof standard, "%sdefault %s", *range ? ", " : "", f->fallback);
    /* "run, status: " if it is for these alone */
    const char *words = opc_option_words(c->uses, f->name);
    size_t used = 0;
    for (const char *at = words ? words : ""; *at && used < right_size; at += *at == ' ') {
        const int n = (int)strcspn(at, " ");
        used +=
            (size_t)snprintf(right + used, right_size - used, "%.*s%s", n, at, at[n] ? ", " : ": ");
        at += n;
    }
    if (used < right_size && (*range || *standard))
        snprintf(right + used, right_size - used, "%s (%s%s)", f->help, range, standard);
    else if (used < right_size)
        snprintf(right + used, right_size - used, "%s", f->help);
}

void opc_help_overview(FILE *out)
{
    fprintf(out, "opc %s - %s\n\nusage: opc SUBCOMMAND [ARGUMENTS]\n\n", OPC_VERSION, PURPOSE);
    for (int i = 0; opc_commands[i]; i++)
        entry(out, opc_commands[i]->name, 12, opc_commands[i]->summary);
    fprintf(out, "\n'opc SUBCOMMAND --help' explains one; 'opc --version' prints the version.\n");
    fprintf(out, "\nexit status:\n");
    for (const struct status *s = STATUSES; s->code; s++)
        entry(out, s->code, 6, s->meaning);
}

void opc_help_command(const struct opc_command *c, FILE *out)
{
    const int column = fprintf(out, "usage: opc %s%s", c->name, *c->usage ? " " : "");
    flow(out, column, 11, c->usage);
    fputc('\n', out);
    flow(out, 0, 0, c->summary);
    if (c->detail) {
        fputc('\n', out);
        flow(out, 0, 0, c->detail);
    }
    fprintf(out, "\noptions:\n");
    for (int k = 0; c->options && k < c->options->n; k++) {
        char left[80], right[512];
        describe(c, &c->options->fields[k], left, sizeof left, right, sizeof right);
        entry(out, left, 20, right);
    }
    entry(out, "--help", 20, "this text");
}

/* ---- for man and the shell ------------------------------------------------------------------- */

/* Text with what roff would take for its own escaped; newlines become paragraphs. */
static void roff(FILE *out, const char *text)
{
    for (bool start = true; *text; text++) {
        if (*text == '\n') {
            fputs("\n.PP\n", out);
            start = true;
            continue;
        }
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        start = false;
    }
    fputc('\n', out);
}

static void roff_entry(FILE *out, const char *left, const char *right)
{
    fputs(".TP\n.B ", out);
    roff(out, left);
    roff(out, right);
}

void opc_help_man(FILE *out)
{
    fprintf(out, ".TH OPC 1 \"\" \"opc %s\" \"User Commands\"\n.SH NAME\nopc \\- ", OPC_VERSION);
    roff(out, PURPOSE);
    fputs(".SH SYNOPSIS\n.B opc\n.I SUBCOMMAND\n.RI [ ARGUMENTS ]\n.br\n.B opc \\-\\-version\n"
          ".SH SUBCOMMANDS\n",
          out);
    for (int i = 0; opc_commands[i]; i++) {
        const struct opc_command *c = opc_commands[i];
        fprintf(out, ".SS opc %s ", c->name);
        roff(out, c->usage);
        roff(out, c->summary);
        fputs(".PP\n", out);
        if (c->detail)
            roff(out, c->detail);
        for (int k = 0; c->options && k < c->options->n; k++) {
            char left[80], right[512];
            describe(c, &c->options->fields[k], left, sizeof left, right, sizeof right);
            roff_entry(out, left, right);
        }
        roff_entry(out, "--help", "explain the subcommand");
    }
    fputs(".SH EXIT STATUS\n", out);
    for (const struct status *s = STATUSES; s->code; s++)
        roff_entry(out, s->code, s->meaning);
    fputs(".SH ENVIRONMENT\n", out);
    roff_entry(out, "OPC_BACKEND",
               "name of the compute kernels to use instead of the best this processor has; "
               "'opc doctor' lists them");
    roff_entry(out, "OPC_MODELS",
               "directory to take the robots' models from, instead of those compiled in");
    roff_entry(out, "OPC_GL",
               "egl or osmesa: what 'opc env render' draws with, instead of trying "
               "both");
}

void opc_help_completion(FILE *out)
{
    fputs("# bash completion for opc; printed by 'opc help --completion'\n"
          "_opc() {\n"
          "    local words= options='--help' word=${COMP_WORDS[COMP_CWORD]}\n"
          "    case $COMP_CWORD:${COMP_WORDS[1]} in\n    1:*) words='",
          out);
    for (int i = 0; opc_commands[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", opc_commands[i]->name);
    fputs("' options='--help --version' ;;\n", out);
    for (int i = 0; opc_commands[i]; i++) {
        const struct opc_command *c = opc_commands[i];
        fprintf(out, "    *:%s) words='%s", c->name, c->words ? c->words : "");
        for (int k = 0; strcmp(c->name, "help") == 0 && opc_commands[k]; k++)
            fprintf(out, "%s%s", k ? " " : "", opc_commands[k]->name);
        fputs("' options='--help", out);
        for (int k = 0; c->options && k < c->options->n; k++) {
            char name[OPC_OPTION_NAME];
            fprintf(out, " --%s", opc_option_name(&c->options->fields[k], name));
        }
        fputs("' ;;\n", out);
    }
    /* A word that begins with a dash is an option. Anything else may be a file as well, and behind
     * an option that takes a value it is nothing else. */
    fputs("    esac\n"
          "    if [[ $word == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
          "        return\n"
          "    fi\n"
          "    [[ $COMP_CWORD -gt 2 && ${COMP_WORDS[COMP_CWORD - 1]} == -* ]] && words=\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"\n"
          "        [[ $COMP_CWORD -eq 1 ]] || compgen -f -- \"$word\")\n"
          "}\ncomplete -F _opc opc\n",
          out);
}
