/* SPDX-License-Identifier: MIT */
/* All help: the overview, the page of a subcommand, the manual page and the completion script.
 *
 * Invariant: everything is printed from opc_commands and their option tables, so a new command or
 * option appears in all four without a change here. */
#include "cli/console/help.h"

#include "base/text.h"
#include "opc/version.h"

#include <string.h>

enum { WIDTH = 80 };

static const char PURPOSE[] = "model-based reinforcement learning with on-policy corrections";

/* Exit statuses, as opc_exit_status (base/err.c) gives them. */
struct status {
    const char *code, *meaning;
};
static const struct status STATUSES[] = {
    {"0", "done"},
    {"1", "failure at run time"},
    {"2", "the command line or a configuration file is wrong"},
    {"3", "a file is damaged"},
    {"4", "training diverged, or every imagined rollout was refused"},
    {"5", "an environment failed"},
    {"75", "stopped by request; can be resumed"},
    {NULL, NULL},
};

/* For opc_nearest_of. */
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

/* Prints the words of `text`, starting at `column` of the current line and breaking before WIDTH.
 * Later lines start at `indent`; a newline in the text becomes an empty line. Ends the line. */
static void print_flow(FILE *out, int column, int indent, const char *text)
{
    bool fresh = true; /* nothing on this line yet */
    while (*text) {
        const int n = (int)strcspn(text, " \n");
        /* The word does not fit: a new line, unless it is the first on this one. */
        if (!fresh && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            fresh = true;
        }
        column += fprintf(out, "%s%.*s", fresh ? "" : " ", n, text);
        fresh = false;
        text += n;
        /* A new paragraph. */
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

/* Prints "  left      right" with the right side at `column`, on the next line if left is too long.
 */
static void print_entry(FILE *out, const char *left, int column, const char *right)
{
    fprintf(out, "  %-*s", column - 2, left);
    if ((int)strlen(left) + 2 >= column)
        fprintf(out, "\n%*s", column, "");
    print_flow(out, column, column, right);
}

/* Writes "--threads N" into `left`, and into `right` the words that take it, its help, its range
 * and its default. */
static void describe_option(const struct opc_command *c, const struct opc_field *f, char *left,
                            size_t left_size, char *right, size_t right_size)
{
    static const char *const VALUE[] = {
        [OPC_FIELD_INT] = " N",         [OPC_FIELD_REAL] = " X",      [OPC_FIELD_BOOL] = "",
        [OPC_FIELD_TEXT] = " TEXT",     [OPC_FIELD_CHOICE] = " WORD", [OPC_FIELD_INTS] = " N,N,...",
        [OPC_FIELD_REALS] = " X,X,...", [OPC_FIELD_NAME] = " WORD",   [OPC_FIELD_TEXTS] = " TEXT",
        [OPC_FIELD_PATH] = " PATH"};
    char name[OPC_OPTION_NAME], range[256] = "", standard[96] = "";
    snprintf(left, left_size, "%s--%s%s", strcmp(f->name, "out") == 0 ? "-o, " : "",
             opc_option_name(f, name), VALUE[f->kind]);
    /* Words or range; "false" goes without saying as a default. */
    if (f->kind == OPC_FIELD_CHOICE)
        snprintf(range, sizeof range, "%s", f->words);
    else if (f->kind != OPC_FIELD_BOOL && f->kind != OPC_FIELD_TEXT && f->kind != OPC_FIELD_TEXTS &&
             f->kind != OPC_FIELD_PATH)
        snprintf(range, sizeof range, "%.10g to %.10g", f->min, f->max);
    if (*f->fallback && strcmp(f->fallback, "false") != 0)
        snprintf(standard, sizeof standard, "%sdefault %s", *range ? ", " : "", f->fallback);
    /* "run, status: " if only these words take the option. */
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

/* `opc` without arguments. */
void opc_help_overview(FILE *out)
{
    fprintf(out, "opc %s - %s\n\nusage: opc SUBCOMMAND [ARGUMENTS]\n\n", OPC_VERSION, PURPOSE);
    for (int i = 0; opc_commands[i]; i++)
        print_entry(out, opc_commands[i]->name, 12, opc_commands[i]->summary);
    fprintf(out, "\n'opc SUBCOMMAND --help' explains one; 'opc --version' prints the version.\n");
    /* Scripts rely on these numbers. */
    fprintf(out, "\nexit status:\n");
    for (const struct status *s = STATUSES; s->code; s++)
        print_entry(out, s->code, 6, s->meaning);
}

/* `opc NAME --help`: usage, summary, detail, options. */
void opc_help_command(const struct opc_command *c, FILE *out)
{
    /* Later lines of the usage are indented below its words. */
    const int column = fprintf(out, "usage: opc %s%s", c->name, *c->usage ? " " : "");
    print_flow(out, column, 11, c->usage);
    fputc('\n', out);
    print_flow(out, 0, 0, c->summary);
    if (c->detail) {
        fputc('\n', out);
        print_flow(out, 0, 0, c->detail);
    }
    fprintf(out, "\noptions:\n");
    for (int k = 0; c->options && k < c->options->n; k++) {
        char left[80], right[512];
        describe_option(c, &c->options->fields[k], left, sizeof left, right, sizeof right);
        print_entry(out, left, 20, right);
    }
    print_entry(out, "--help", 20, "this text");
}

/* ---- for man and the shell ------------------------------------------------------------------- */

/* Prints text with everything escaped that roff would interpret; newlines become paragraphs. */
static void print_roff(FILE *out, const char *text)
{
    for (bool start = true; *text; text++) {
        if (*text == '\n') {
            fputs("\n.PP\n", out);
            start = true;
            continue;
        }
        /* A line that starts with a point or quote would be a request. */
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

/* A paragraph with a bold term. */
static void print_roff_entry(FILE *out, const char *left, const char *right)
{
    fputs(".TP\n.B ", out);
    print_roff(out, left);
    print_roff(out, right);
}

void opc_help_man(FILE *out)
{
    fprintf(out, ".TH OPC 1 \"\" \"opc %s\" \"User Commands\"\n.SH NAME\nopc \\- ", OPC_VERSION);
    print_roff(out, PURPOSE);
    fputs(".SH SYNOPSIS\n.B opc\n.I SUBCOMMAND\n.RI [ ARGUMENTS ]\n.br\n.B opc \\-\\-version\n"
          ".SH SUBCOMMANDS\n",
          out);
    /* A section for each subcommand, with its options. */
    for (int i = 0; opc_commands[i]; i++) {
        const struct opc_command *c = opc_commands[i];
        fprintf(out, ".SS opc %s ", c->name);
        print_roff(out, c->usage);
        print_roff(out, c->summary);
        fputs(".PP\n", out);
        if (c->detail)
            print_roff(out, c->detail);
        for (int k = 0; c->options && k < c->options->n; k++) {
            char left[80], right[512];
            describe_option(c, &c->options->fields[k], left, sizeof left, right, sizeof right);
            print_roff_entry(out, left, right);
        }
        print_roff_entry(out, "--help", "explain the subcommand");
    }
    fputs(".SH EXIT STATUS\n", out);
    for (const struct status *s = STATUSES; s->code; s++)
        print_roff_entry(out, s->code, s->meaning);
    /* Variables are few; they are listed by hand. */
    fputs(".SH ENVIRONMENT\n", out);
    print_roff_entry(out, "OPC_BACKEND",
                     "name of the compute kernels to use instead of the best this processor has; "
                     "'opc doctor' lists them");
    print_roff_entry(out, "OPC_MODELS",
                     "directory to take the robots' models from, instead of those compiled in");
    print_roff_entry(out, "OPC_GL",
                     "egl or osmesa: what 'opc env render' draws with, instead of trying "
                     "both");
}
