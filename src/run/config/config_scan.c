/* SPDX-License-Identifier: MIT */
/* Reads a few settings from a text that opc_values_print wrote, without looking at the others. A
 * list of ten thousand runs (run/files/summary.c) needs seven settings of each, and resolving all
 * of them (config_file.c) takes a millisecond.
 *
 * Invariant: a text in any other form (includes, cells, comments, older names) is refused, and the
 * caller then reads it in full. So whatever is accepted here has the value that opc_config_load
 * gives. */
#include "run/config/config.h"

#include <stdio.h>
#include <string.h>

/* The length of the name at the start of a line of n characters. */
static size_t name_length(const char *line, size_t n)
{
    size_t i = 0;
    while (i < n && ((line[i] >= 'a' && line[i] <= 'z') || line[i] == '_' ||
                     (line[i] >= '0' && line[i] <= '9')))
        i++;
    return i;
}

/* Is "section.name" the key? */
static bool is_key(const char *key, const char *section, size_t section_length, const char *name,
                   size_t name_length)
{
    return strncmp(key, section, section_length) == 0 && key[section_length] == '.' &&
           strncmp(key + section_length + 1, name, name_length) == 0 &&
           key[section_length + 1 + name_length] == '\0';
}

/* The value as YAML means it: plain, a list, or quoted without any escape. */
static bool take_value(const char *text, size_t n, char out[OPC_TEXT_SIZE])
{
    if (*text == '"') {
        if (n < 2 || text[n - 1] != '"')
            return false;
        text++;
        n -= 2;
    } else if (strchr("'{&*!|>%@`#?-", *text) && !(n > 1 && *text == '-'))
        return false;
    if (n >= OPC_TEXT_SIZE)
        return false;
    snprintf(out, OPC_TEXT_SIZE, "%.*s", (int)n, text);
    /* An escape, a comment or a map would mean something else than its characters. */
    return !strpbrk(out, "\"\\") && !strstr(out, " #") && !strstr(out, ": ");
}

/* Sets the setting that `key` names, from the value in n characters. */
static bool set_value(struct opc_values *values, const char *key, const char *text, size_t n)
{
    char value[OPC_TEXT_SIZE];
    struct opc_part part[OPC_PARTS_MAX];
    return take_value(text, n, value) &&
           !opc_parts_set(part, opc_config_parts(values, part), key, value, NULL);
}

bool opc_values_scan(const char *text, int keys, const char *const *key, struct opc_values *values)
{
    const char *section = NULL;
    size_t section_length = 0;
    unsigned found = 0;
    for (; *text; text += *text == '\n') {
        const char *line = text, *end = strchr(text, '\n');
        text = end ? end : text + strlen(text);
        const size_t n = (size_t)(text - line), outer = name_length(line, n);
        /* "section:" and nothing else */
        if (outer > 0 && outer + 1 == n && line[outer] == ':') {
            section = line;
            section_length = outer;
            continue;
        }
        /* or "  name: value" */
        const size_t inner = n > 2 ? name_length(line + 2, n - 2) : 0;
        if (!section || inner == 0 || n < inner + 5 || strncmp(line, "  ", 2) != 0 ||
            strncmp(line + 2 + inner, ": ", 2) != 0)
            return false;
        for (int i = 0; i < keys; i++) {
            if (!is_key(key[i], section, section_length, line + 2, inner))
                continue;
            /* A key that is there twice is an error, which reading in full reports. */
            if (found & 1u << i || !set_value(values, key[i], line + inner + 4, n - inner - 4))
                return false;
            found |= 1u << i;
        }
    }
    return found == (1u << keys) - 1;
}
