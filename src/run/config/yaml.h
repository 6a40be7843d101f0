/* SPDX-License-Identifier: MIT */
/* run/config/yaml.h - the part of YAML that settings are written in; yaml.c is the only file that
 * includes libyaml's header.
 *
 * It has words, lists and maps; anchors, aliases, tags and a second document are refused. A word is
 * text; its meaning is decided by the setting it is for, and never guessed from its looks
 * (1e-3 is a number where a number is wanted, `no` a text where a text is wanted). */
#ifndef OPC_RUN_YAML_H
#define OPC_RUN_YAML_H

#include "base/text.h"

enum opc_yaml_kind { OPC_YAML_WORD, OPC_YAML_LIST, OPC_YAML_MAP };

struct opc_yaml {
    enum opc_yaml_kind kind;
    int line;                      /* from 1; of its key, where it has one */
    char *key;                     /* its name in its map; NULL in a list */
    char *text;                    /* of a word; NULL otherwise */
    struct opc_yaml *first, *next; /* its first entry, in the order of the file; its neighbour */
};

/* Parses n bytes; empty text is an empty map. `name` stands in front of messages, with the line.
 * Keys of a map are words, and no two are the same. */
int opc_yaml_parse(const char *name, const char *text, size_t n, struct opc_yaml **out,
                   struct opc_err *err);
/* A file of at most 1 MB. */
int opc_yaml_read(const char *path, struct opc_yaml **out, struct opc_err *err);
void opc_yaml_free(struct opc_yaml *); /* NULL is fine */
const struct opc_yaml *opc_yaml_find(const struct opc_yaml *map, const char *key); /* or NULL */

/* Appends a word as it must be written to be read back: plain where it can be, else quoted. */
void opc_yaml_add_word(struct opc_text *, const char *word);
/* True for UTF-8 without control characters, of which words consist. */
bool opc_yaml_is_clean(const char *word);

const char *opc_yaml_version(void); /* of the libyaml that was loaded */

#endif
