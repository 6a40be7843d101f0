/* SPDX-License-Identifier: MIT */
/* base/field.h - settings, declared once.
 *
 * A module lists its settings in one table; struct, defaults, parser, saved copy and the page a
 * user reads are all made from it:
 *
 *     #define OPC_SAC_FIELDS(X)                                                                 \
 *         // kind   name       fallback   min    max   help
 *         X(REAL,   discount,  "0.99",    0,     1,    "gamma, the discount of eq. 1")           \
 *         X(INTS,   hidden,    "[64, 64]", 1,    4096, "widths of the hidden layers")            \
 *         X(CHOICE, critics,   "double",  "single|double", , "number of critics")             \
 *         X(NAME,   agent,     "sac",     opc_agent_name, , "what improves the policy")         \
 *         X(REAL,   learning_rate, "3e-4", 0,    1,    "step of Adam", "rate|lr") // aliases
 *
 *     struct opc_sac_config {                       // in the module's header
 *         OPC_SAC_FIELDS(OPC_MEMBER)
 *     };
 *
 *     #define SELF struct opc_sac_config            // in its source file
 *     const struct opc_section opc_sac_section =
 *         OPC_SECTION("sac", "soft actor-critic", OPC_SAC_FIELDS);
 *     #undef SELF
 *
 * min and max bound the value of an INT or REAL, each element of INTS and REALS, the length in
 * bytes of a TEXT (at most 255), of a PATH or of each of TEXTS (at most 4095), and nothing for a
 * BOOL. A CHOICE has its words there instead, in the order of the enum its int stands for. A NAME
 * is a choice among the entries of a table that lies elsewhere: a function gives the name of entry
 * 0, 1, ... and NULL after the last, and the int is the index of the entry. */
#ifndef OPC_BASE_FIELD_H
#define OPC_BASE_FIELD_H

#include "base/text.h"
#include "opc/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { OPC_TEXT_SIZE = 256, OPC_LONG_TEXT_SIZE = 4096, OPC_LIST_MAX = 16 };

struct opc_ints {
    int n, at[OPC_LIST_MAX];
};
struct opc_reals {
    int n;
    double at[OPC_LIST_MAX];
};
struct opc_texts {
    int n;
    char at[OPC_LIST_MAX][OPC_LONG_TEXT_SIZE];
};

enum opc_kind {
    OPC_FIELD_INT,
    OPC_FIELD_REAL,
    OPC_FIELD_BOOL,
    OPC_FIELD_TEXT,
    OPC_FIELD_CHOICE,
    OPC_FIELD_INTS,
    OPC_FIELD_REALS,
    OPC_FIELD_NAME,
    OPC_FIELD_TEXTS, /* an option that may be given several times */
    OPC_FIELD_PATH,  /* a text as long as the path of a file may be */
};

struct opc_field {
    const char *name;
    enum opc_kind kind;
    size_t offset;        /* of the member in the struct that the section fills */
    const char *fallback; /* the default, as a user would write it */
    double min, max;
    const char *words;  /* "one|two|three"; NULL unless OPC_FIELD_CHOICE */
    opc_name_fn *names; /* NULL unless OPC_FIELD_NAME */
    const char *help;   /* one sentence, no full stop */
    /* Other names under which it is read, "rate|lr": what it was called before, and what other
     * programs call it. It is printed and saved under `name` only. NULL: none. */
    const char *also;
};

struct opc_section {
    const char *name, *help; /* as in name.field */
    const struct opc_field *fields;
    int n;
    size_t size; /* of the struct */
};

/* FIELDS(OPC_MEMBER) declares the members of the struct, each with the C type of its kind. */
#define OPC_MEMBER(kind, name, ...) OPC_MEMBER_##kind(name)
#define OPC_MEMBER_INT(name) int name;
#define OPC_MEMBER_REAL(name) double name;
#define OPC_MEMBER_BOOL(name) bool name;
#define OPC_MEMBER_TEXT(name) char name[OPC_TEXT_SIZE];
#define OPC_MEMBER_CHOICE(name) int name;
#define OPC_MEMBER_NAME(name) int name;
#define OPC_MEMBER_INTS(name) struct opc_ints name;
#define OPC_MEMBER_REALS(name) struct opc_reals name;
#define OPC_MEMBER_TEXTS(name) struct opc_texts name;
#define OPC_MEMBER_PATH(name) char name[OPC_LONG_TEXT_SIZE];

/* FIELDS(OPC_ROW) makes the table. The last arguments are help and, optionally, the other names;
 * OPC_FIRST_TWO puts NULL where those are left out. */
#define OPC_ROW(kind, name, fallback, min, max, ...)                                               \
    {#name,                                                                                        \
     OPC_FIELD_##kind,                                                                             \
     offsetof(SELF, name),                                                                         \
     fallback,                                                                                     \
     OPC_LIMITS_##kind(min, max),                                                                  \
     OPC_FIRST_TWO(__VA_ARGS__, NULL, 0)},
#define OPC_FIRST_TWO(help, also, ...) help, also
#define OPC_LIMITS_INT(min, max) min, max, NULL, NULL
#define OPC_LIMITS_REAL(min, max) min, max, NULL, NULL
#define OPC_LIMITS_BOOL(min, max) 0, 1, NULL, NULL
#define OPC_LIMITS_TEXT(min, max) min, max, NULL, NULL
#define OPC_LIMITS_CHOICE(words, none) 0, 0, words, NULL
#define OPC_LIMITS_NAME(names, none) 0, 0, NULL, names
#define OPC_LIMITS_INTS(min, max) min, max, NULL, NULL
#define OPC_LIMITS_REALS(min, max) min, max, NULL, NULL
#define OPC_LIMITS_TEXTS(min, max) min, max, NULL, NULL
#define OPC_LIMITS_PATH(min, max) min, max, NULL, NULL

/* 0 FIELDS(OPC_ONE) expands to 0 + 1 + 1 ..., the number of fields. */
#define OPC_ONE(...) +1
#define OPC_SECTION(name, help, FIELDS)                                                            \
    {                                                                                              \
        name, help, (const struct opc_field[]){FIELDS(OPC_ROW)}, 0 FIELDS(OPC_ONE), sizeof(SELF)   \
    }

/* Clears the whole struct and sets every field to its fallback; one that does not parse is a bug
 * of ours, OPC_EBUG. */
int opc_section_defaults(const struct opc_section *, void *values, struct opc_err *err);
/* Finds a field by its name or one of its other names; NULL if there is none. The fields of a
 * section are fields[0 .. n-1]. */
const struct opc_field *opc_section_find(const struct opc_section *, const char *name);
/* Sets one field from text; on failure (OPC_EUSER) values are as before. Numbers are written as in
 * text.h, and an INT also as 1e6; a BOOL is true, false, yes, no, on or off; a list is [1, 2, 3]
 * or 1,2,3, and [] or nothing when empty. TEXTS get one more text with each call; the fallback ""
 * stands for none. */
int opc_section_set(const struct opc_section *, void *values, const char *name, const char *text,
                    struct opc_err *err);
/* Appends the value in the one way it is printed; setting a field from it changes nothing (but for
 * TEXTS, which are printed with ", " between them). */
void opc_field_print(const struct opc_field *, const void *values, struct opc_text *);
/* Does the field have the value that `text` stands for? */
bool opc_field_equals(const struct opc_field *, const void *values, const char *text);
/* Size of the value in bytes. Equal values have equal bytes, because parsing clears what it does
 * not set. */
size_t opc_field_size(const struct opc_field *);

/* All the settings of a program: its sections, each with the struct it fills. */
struct opc_part {
    const struct opc_section *section;
    void *values;
};
/* key is "section.field". */
int opc_parts_set(const struct opc_part *, int parts, const char *key, const char *text,
                  struct opc_err *err);

/* Appends the page of help, for a terminal of `page` columns. A narrow one has the meaning of each
 * setting below it. only: the one field to describe; NULL: all. */
void opc_section_describe(const struct opc_section *, const struct opc_field *only, int page,
                          struct opc_text *);
/* The same as a Markdown table. */
void opc_section_markdown(const struct opc_section *, struct opc_text *);

#endif
