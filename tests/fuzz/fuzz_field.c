/* SPDX-License-Identifier: MIT */
/* Settings from hostile text: setting a field never reads astray, what it refuses leaves the old
 * value, and what it accepts, printed and set again, is the same value. */
#include "base/field.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define FIELDS(X)                                                                                 \
    X(INT,    whole,  "3",       -1e6,  1e6,   "a whole number")                                  \
    X(REAL,   real,   "0.5",     -1e30, 1e30,  "a number")                                        \
    X(BOOL,   flag,   "true",    0,     1,     "a switch")                                        \
    X(TEXT,   text,   "word",    1,     100,   "a text")                                          \
    X(CHOICE, choice, "one",     "one|two|three", , "a word")                                     \
    X(INTS,   wholes, "[1, 2]",  0,     4096,  "whole numbers")                                   \
    X(REALS,  reals,  "[0.5]",   -10,   10,    "numbers")
/* clang-format on */
struct values {
    FIELDS(OPC_MEMBER)
};
#define SELF struct values
static const struct opc_section section = OPC_SECTION("fuzz", "", FIELDS);

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_field: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    char *text = malloc(size); /* its own block, so that the sanitizer sees one byte too many */
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';

    const struct opc_field *f = &section.fields[data[0] % section.n];
    struct values before, after, again;
    struct opc_err err = {0};
    must(!opc_section_defaults(&section, &before, &err), "the defaults are refused");
    after = before;
    if (opc_section_set(&section, &after, f->name, text, &err)) {
        must(err.code == OPC_EUSER && *err.text, "a refusal without a reason");
        must(!memcmp(&before, &after, sizeof before), "a refusal changed the value");
    } else {
        struct opc_text printed = {0}, twice = {0};
        opc_field_print(f, &after, &printed);
        again = before;
        must(!opc_section_set(&section, &again, f->name, opc_text_get(&printed), &err),
             "what was printed is refused");
        opc_field_print(f, &again, &twice);
        must(!strcmp(opc_text_get(&printed), opc_text_get(&twice)), "printing changed the value");
        opc_text_free(&printed);
        opc_text_free(&twice);
    }
    free(text);
    return 0;
}
