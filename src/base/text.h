/* SPDX-License-Identifier: MIT */
/* base/text.h - text: a buffer that grows, numbers in and out, and "did you mean".
 *
 * Numbers look the same in every locale: the decimal point is a point. */
#ifndef OPC_BASE_TEXT_H
#define OPC_BASE_TEXT_H

#include "opc/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts as {0}. Appending never reports: lack of memory is remembered, later appends do nothing,
 * and opc_text_check reports it at the end. */
struct opc_text {
    char *at; /* NUL-terminated; NULL as long as nothing was appended */
    size_t used, capacity;
    bool failed;
};

void opc_text_add(struct opc_text *, const char *);
void opc_text_add_bytes(struct opc_text *, const char *, size_t n);
void opc_text_addf(struct opc_text *, const char *fmt, ...) OPC_PRINTF(2, 3);
void opc_text_add_real(struct opc_text *, double); /* as opc_print_real */
void opc_text_add_float(struct opc_text *, float); /* with the 9 digits that give back its bits */
void opc_text_pad(struct opc_text *, size_t n);    /* n spaces */
/* Its text, "" when empty; lives until the next append. */
const char *opc_text_get(const struct opc_text *);
int opc_text_check(const struct opc_text *, struct opc_err *err); /* OPC_ENOMEM if cut short */
void opc_text_clear(struct opc_text *);                           /* keeps its memory */
void opc_text_free(struct opc_text *);                            /* leaves an empty one */

/* The whole string must be the number: no spaces, nothing after it, no overflow. On false *out is
 * untouched. Reals are decimal, or inf, -inf, nan; a number too small for a double becomes 0. */
bool opc_parse_int(const char *, int *out);
bool opc_parse_int64(const char *, int64_t *out);
bool opc_parse_real(const char *, double *out);

enum { OPC_PRINTED = 32 }; /* size for any of the four below, which return `out` */
/* The shortest of 15, 16 or 17 digits that opc_parse_real turns back into the same value. */
char *opc_print_real(double, char out[OPC_PRINTED]);
/* With 0 .. 9 digits after the point, and never -0.00; numbers from 1e15 on as opc_print_real. */
char *opc_print_fixed(double, int digits, char out[OPC_PRINTED]);
char *opc_print_bytes(double bytes, char out[OPC_PRINTED]); /* 812 B, 5.2 GB (powers of 1000) */
char *opc_print_duration(double seconds, char out[OPC_PRINTED]); /* 4.2 s, 1 h 03 min, 2 d 07 h */

/* A path as it may be typed after a command: as it is, or in double quotes where a shell would read
 * something else, and with ./ before a leading dash. Returns `out`, cut short if it does not fit.
 */
char *opc_shell_word(const char *path, char *out, size_t size);

/* "" for 1 and "s" for any other number: printf("%d run%s", n, opc_plural(n)). */
const char *opc_plural(long n);

/* The number of characters that must be changed, added, dropped or swapped with their neighbour to
 * get from one string to the other; INT_MAX for strings of 64 bytes and more. */
int opc_edit_distance(const char *, const char *);

/* ---- "did you mean" --------------------------------------------------------------------------
 * All three look for the candidate that `name` is most likely a misspelling of. A candidate whose
 * distance exceeds 1 + strlen(name) / 4 is another word; of equally near ones the first wins. */

/* The nearest of n names, or NULL. `names` points at the first name and the next one follows after
 * `stride` bytes, so a table of structs is searched by &table[0].name and sizeof table[0]. */
const char *opc_nearest(const char *name, const char *const *names, size_t n, size_t stride);

/* Name i of a table that lies elsewhere; NULL after the last. */
typedef const char *opc_name_fn(int i);
const char *opc_nearest_of(const char *name, opc_name_fn *names);

/* For candidates that lie in neither form: true when candidate is near enough and nearer than all
 * before it. *nearest remembers their distance and starts as INT_MAX. */
bool opc_nearer(const char *name, const char *candidate, int *nearest);

#endif
