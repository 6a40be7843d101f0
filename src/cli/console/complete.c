/* SPDX-License-Identifier: MIT */
/* Completion scripts for bash, zsh and fish, printed from the same tables as the help: subcommands,
 * their words and options, settings, tasks, and the values that are words. Called by `opc help
 * --completion`; the build installs what it prints.
 *
 * Settings are offered once their section and a point are typed: there are more than a hundred, and
 * the first thing after `opc train` is a file. */
#include "cli/console/help.h"
#include "env/types.h"
#include "opc/mem.h"
#include "run/config/config.h"

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

/* Calls `each` for every value that the field can have, if these are words. */
static void for_values(const struct opc_field *f, void (*each)(FILE *, const char *, int),
                       FILE *out)
{
    char word[64];
    if (f->kind == OPC_FIELD_BOOL) {
        each(out, "true", 4);
        each(out, "false", 5);
    }
    for (const char *at = f->kind == OPC_FIELD_CHOICE ? f->words : ""; *at; at += *at == '|') {
        const int n = (int)strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", n, at);
        each(out, word, n);
        at += n;
    }
    for (int i = 0; f->kind == OPC_FIELD_NAME && f->names(i); i++)
        each(out, f->names(i), (int)strlen(f->names(i)));
}

static void print_blank_word(FILE *out, const char *word, int n)
{
    fprintf(out, " %.*s", n, word);
}

static bool has_values(const struct opc_field *f)
{
    return f->kind == OPC_FIELD_BOOL || f->kind == OPC_FIELD_CHOICE || f->kind == OPC_FIELD_NAME;
}

static void print_tasks(FILE *out)
{
    const struct opc_env_type *type;
    for (int i = 0; (type = opc_env_type_at(i)); i++)
        fprintf(out, " %s", type->name);
}

/* A shell function of bash and zsh that prints the values of a setting ("opc.transition") or of an
 * option ("plot --band"), separated by blanks. */
static void print_values_function(FILE *out, struct opc_part *part, int parts)
{
    fputs("_opc_values() {\n    case $1 in\n    env.name) echo", out);
    print_tasks(out);
    fputs(" ;;\n", out);
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < part[i].section->n; k++)
            if (has_values(&part[i].section->fields[k])) {
                fprintf(out, "    %s.%s) echo", part[i].section->name,
                        part[i].section->fields[k].name);
                for_values(&part[i].section->fields[k], print_blank_word, out);
                fputs(" ;;\n", out);
            }
    /* An option that is yes or no stands alone, so only words count. */
    for (int i = 0; opc_commands[i]; i++)
        for (int k = 0; opc_commands[i]->options && k < opc_commands[i]->options->n; k++) {
            const struct opc_field *f = &opc_commands[i]->options->fields[k];
            char name[OPC_OPTION_NAME];
            if (f->kind != OPC_FIELD_CHOICE)
                continue;
            fprintf(out, "    '%s --%s') echo", opc_commands[i]->name, opc_option_name(f, name));
            for_values(f, print_blank_word, out);
            fputs(" ;;\n", out);
        }
    fputs("    esac\n}\n", out);
}

/* ---- bash and zsh ---------------------------------------------------------------------------- */

/* The words that a subcommand knows, separated by blanks. */
static void print_words(const struct opc_command *c, FILE *out)
{
    fputs(c->words ? c->words : "", out);
    for (int k = 0; c->word_at && c->word_at(k); k++)
        fprintf(out, " %s", c->word_at(k));
    /* help takes the names of all subcommands as words. */
    for (int k = 0; strcmp(c->name, "help") == 0 && opc_commands[k]; k++)
        fprintf(out, " %s", opc_commands[k]->name);
    if (c->takes & OPC_TAKES_TASKS)
        print_tasks(out);
}

static void print_subcommands(FILE *out)
{
    for (int i = 0; opc_commands[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", opc_commands[i]->name);
}

/* A case of the shell for each subcommand: its words, options, and whether it takes settings. */
static void print_cases(const char *indent, FILE *out)
{
    for (int i = 0; opc_commands[i]; i++) {
        const struct opc_command *c = opc_commands[i];
        fprintf(out, "%s%s) known='", indent, c->name);
        print_words(c, out);
        fputs("' options='--help", out);
        for (int k = 0; c->options && k < c->options->n; k++) {
            char name[OPC_OPTION_NAME];
            fprintf(out, " --%s", opc_option_name(&c->options->fields[k], name));
        }
        fprintf(out, "'%s ;;\n", c->takes & OPC_TAKES_SETTINGS ? " settings=$_opc_settings" : "");
    }
}

static void print_settings(struct opc_part *part, int parts, FILE *out)
{
    fputs("_opc_settings='", out);
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < part[i].section->n; k++)
            fprintf(out, "%s%s.%s=", i + k ? " " : "", part[i].section->name,
                    part[i].section->fields[k].name);
    fputs("'\n", out);
}

/* Bash splits words at '=' and ':'; what was typed is taken from the whole line, and of what is
 * offered the part before the last of them is left out again. */
static void print_bash(struct opc_part *part, int parts, FILE *out)
{
    fputs("# bash completion for opc; printed by 'opc help --completion'\n", out);
    print_values_function(out, part, parts);
    print_settings(part, parts, out);
    fputs("_opc() {\n"
          "    local known= options='--help' settings= values= word=${COMP_WORDS[COMP_CWORD]} at\n"
          "    local before=${COMP_WORDS[COMP_CWORD - 1]} line=${COMP_LINE:0:${COMP_POINT:-0}}\n"
          "    [[ -z $line ]] || word=${line##* }\n"
          "    case $COMP_CWORD:${COMP_WORDS[1]} in\n    1:*) known='",
          out);
    print_subcommands(out);
    fputs("' options='--help --version' ;;\n", out);
    print_cases("    *:", out);
    /* A word that begins with a dash is an option. Any other word may also be a file; right after
     * an option it can only be one of its values or a file. */
    fputs("    esac\n"
          "    if [[ $word == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
          "        return\n"
          "    fi\n"
          "    if [[ -n $settings && $word == *=* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$(_opc_values \"${word%%=*}\")\" -- "
          "\"${word#*=}\")\n"
          "        at=${word#*=}\n"
          "        at=${at%\"${at##*:}\"}\n"
          "        COMPREPLY=(\"${COMPREPLY[@]#\"$at\"}\")\n"
          "        return\n"
          "    fi\n"
          "    if [[ $COMP_CWORD -gt 2 && $before == -* ]]; then\n"
          "        known= settings=\n"
          "        values=$(_opc_values \"${COMP_WORDS[1]} $before\")\n"
          "        if [[ -n $values ]]; then\n"
          "            mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\")\n"
          "            return\n"
          "        fi\n"
          "    fi\n"
          "    [[ $word == *.* ]] || settings=\n"
          "    at=${word%\"${word##*:}\"}\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$known\" -- \"$word\"\n"
          "        [[ $COMP_CWORD -eq 1 ]] || compgen -f -- \"$word\"\n"
          "        compgen -W \"$settings\" -- \"$word\")\n"
          "    [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null\n"
          "    COMPREPLY=(\"${COMPREPLY[@]#\"$at\"}\")\n"
          "}\ncomplete -F _opc opc\n",
          out);
}

static void print_zsh(struct opc_part *part, int parts, FILE *out)
{
    fputs(
        "#compdef opc\n# zsh completion for opc; printed by 'opc help --completion --shell zsh'\n",
        out);
    print_values_function(out, part, parts);
    print_settings(part, parts, out);
    fputs("_opc() {\n"
          "    local known= options='--help' settings= values= word=$words[CURRENT]\n"
          "    local before=$words[CURRENT-1]\n"
          "    if (( CURRENT == 2 )); then\n"
          "        compadd -- --help --version ",
          out);
    print_subcommands(out);
    fputs("\n        return\n    fi\n    case $words[2] in\n", out);
    print_cases("    ", out);
    /* ${=name} splits at blanks, as bash does without being asked. */
    fputs("    esac\n"
          "    if [[ $word == -* ]]; then\n"
          "        compadd -- ${=options}\n"
          "        return\n"
          "    fi\n"
          "    if [[ -n $settings && $word == *=* ]]; then\n"
          "        values=$(_opc_values \"${word%%=*}\")\n"
          "        compset -P '*='\n"
          "        compadd -- ${=values}\n"
          "        return\n"
          "    fi\n"
          "    if (( CURRENT > 3 )) && [[ $before == -* ]]; then\n"
          "        values=$(_opc_values \"$words[2] $before\")\n"
          "        [[ -n $values ]] && compadd -- ${=values} || _files\n"
          "        return\n"
          "    fi\n"
          "    [[ $word == *.* ]] && compadd -S '' -- ${=settings}\n"
          "    compadd -- ${=known}\n"
          "    _files\n"
          "}\n"
          "# Sourced, it is registered; found in fpath, it is called.\n"
          "if [[ $funcstack[1] == _opc ]]; then _opc \"$@\"; else compdef _opc opc; fi\n",
          out);
}

/* ---- fish ------------------------------------------------------------------------------------ */

/* In single quotes, where fish interprets the quote and the backslash alone. */
static void print_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++)
        fprintf(out, "%s%c", strchr("'\\", *text) ? "\\" : "", *text);
    fputc('\'', out);
}

/* The options of a subcommand, with their values where these are words. */
static void print_fish_options(const struct opc_command *c, FILE *out)
{
    for (int k = 0; c->options && k < c->options->n; k++) {
        const struct opc_field *f = &c->options->fields[k];
        char name[OPC_OPTION_NAME];
        fprintf(out, "complete -c opc -n '__fish_seen_subcommand_from %s' -l %s%s", c->name,
                opc_option_name(f, name), strcmp(f->name, "out") == 0 ? " -s o" : "");
        if (f->kind == OPC_FIELD_CHOICE) {
            fputs(" -x -a '", out);
            for_values(f, print_blank_word, out);
            fputc('\'', out);
        } else if (f->kind != OPC_FIELD_BOOL)
            fputs(" -r", out);
        fputs(" -d ", out);
        print_quoted(out, f->help);
        fputc('\n', out);
    }
}

/* Settings as whole words, "opc.transition=learned", each with its help. */
static void print_fish_settings(struct opc_part *part, int parts, FILE *out)
{
    const struct opc_env_type *type;
    fputs("function __opc_settings\n", out);
    for (int i = 0; (type = opc_env_type_at(i)); i++)
        fprintf(out, "    echo env.name=%s\n", type->name);
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < part[i].section->n; k++) {
            const struct opc_field *f = &part[i].section->fields[k];
            fprintf(out, "    for value in ''");
            for_values(f, print_blank_word, out);
            fprintf(out, "\n        echo %s.%s=$value\\t", part[i].section->name, f->name);
            print_quoted(out, f->help);
            fputs("\n    end\n", out);
        }
    fputs("end\n", out);
}

static void print_fish(struct opc_part *part, int parts, FILE *out)
{
    fputs("# fish completion for opc; printed by 'opc help --completion --shell fish'\n", out);
    print_fish_settings(part, parts, out);
    fputs("complete -c opc -n __fish_use_subcommand -f -l version -d 'print the version'\n"
          "complete -c opc -f -l help -d 'explain the subcommand'\n",
          out);
    for (int i = 0; opc_commands[i]; i++) {
        const struct opc_command *c = opc_commands[i];
        fprintf(out, "complete -c opc -n __fish_use_subcommand -f -a %s -d ", c->name);
        print_quoted(out, c->summary);
        fputc('\n', out);
        if (c->words || c->word_at || c->takes & OPC_TAKES_TASKS || strcmp(c->name, "help") == 0) {
            fprintf(out, "complete -c opc -n '__fish_seen_subcommand_from %s' -a '", c->name);
            print_words(c, out);
            fputs("'\n", out);
        }
        if (c->takes & OPC_TAKES_SETTINGS)
            fprintf(out,
                    "complete -c opc -n '__fish_seen_subcommand_from %s; and string match -q "
                    "\"*.*\" -- (commandline -ct)' -a '(__opc_settings)'\n",
                    c->name);
        print_fish_options(c, out);
    }
}

/* ---------------------------------------------------------------------------------------------- */

int opc_help_completion(int shell, FILE *out, struct opc_err *err)
{
    static void (*const PRINT[])(struct opc_part *, int, FILE *) = {print_bash, print_zsh,
                                                                    print_fish};
    /* The sections are those of any run; their values do not matter. */
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_values *values = opc_alloc(1, sizeof *values);
    if (!values)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the settings");
    PRINT[shell](part, opc_config_parts(values, part), out);
    opc_free(values);
    return OPC_OK;
}
