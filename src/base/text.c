/* SPDX-License-Identifier: MIT */
/* Text buffers, numbers to and from text, and the search for the nearest name. Used everywhere.
 *
 * Invariants: what opc_print_real prints opc_parse_real reads back to the same bits, and neither
 * depends on the locale, which belongs to the program around us. */
#include "base/text.h"

#include "opc/mem.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for n more bytes and the NUL. Once memory has run out it returns false for good. */
static bool grow_text(struct opc_text *t, size_t n)
{
    if (t->failed)
        return false;
    if (t->capacity - t->used > n)
        return true;
    size_t capacity = t->capacity ? t->capacity : 64;
    /* Doubling keeps the cost of many small appends linear. */
    while (capacity - t->used <= n && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    char *at = capacity - t->used > n ? opc_alloc(capacity, 1) : NULL;
    if (!at) {
        t->failed = true;
        return false;
    }
    if (t->used)
        memcpy(at, t->at, t->used);
    opc_free(t->at);
    t->at = at;
    t->capacity = capacity;
    return true;
}

/* The text stays NUL-terminated, so that opc_text_get never has to append. */
void opc_text_add_bytes(struct opc_text *t, const char *bytes, size_t n)
{
    if (!grow_text(t, n))
        return;
    memcpy(t->at + t->used, bytes, n);
    t->used += n;
    t->at[t->used] = '\0';
}

void opc_text_add(struct opc_text *t, const char *text)
{
    opc_text_add_bytes(t, text, strlen(text));
}

void opc_text_addf(struct opc_text *t, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    /* Measure, grow, print: a va_list can be used only once. */
    const int n = vsnprintf(NULL, 0, fmt, args);
    if (n >= 0 && grow_text(t, (size_t)n)) {
        vsnprintf(t->at + t->used, (size_t)n + 1, fmt, again);
        t->used += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void opc_text_add_real(struct opc_text *t, double v)
{
    char printed[OPC_PRINTED];
    opc_text_add(t, opc_print_real(v, printed));
}

void opc_text_add_float(struct opc_text *t, float v)
{
    char local[OPC_PRINTED];
    /* A double with 9 digits is printed with no more of them. */
    snprintf(local, sizeof local, "%.9g", (double)v);
    opc_text_add_real(t, strtod(local, NULL));
}

void opc_text_pad(struct opc_text *t, size_t n)
{
    if (!grow_text(t, n))
        return;
    memset(t->at + t->used, ' ', n);
    t->used += n;
    t->at[t->used] = '\0';
}

const char *opc_text_get(const struct opc_text *t)
{
    return t->at ? t->at : "";
}

/* Called once after many appends; `used` says how far the text has got. */
int opc_text_check(const struct opc_text *t, struct opc_err *err)
{
    if (t->failed)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for more than %zu bytes of text",
                        t->used);
    return OPC_OK;
}

/* Keeps the memory for the next text; `failed` stays set. */
void opc_text_clear(struct opc_text *t)
{
    t->used = 0;
    if (t->at)
        t->at[0] = '\0';
}

void opc_text_free(struct opc_text *t)
{
    opc_free(t->at);
    *t = (struct opc_text){0};
}

/* Without isdigit, which depends on the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool opc_parse_int64(const char *text, int64_t *out)
{
    const bool minus = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (!is_digit(*text))
        return false;
    /* Counted downwards, because INT64_MIN has no positive counterpart. */
    int64_t v = 0;
    for (; is_digit(*text); text++) {
        const int d = *text - '0';
        if (v < (INT64_MIN + d) / 10)
            return false;
        v = v * 10 - d;
    }
    if (*text || (!minus && v == INT64_MIN))
        return false;
    *out = minus ? v : -v;
    return true;
}

bool opc_parse_int(const char *text, int *out)
{
    int64_t v;
    if (!opc_parse_int64(text, &v) || v < INT_MIN || v > INT_MAX)
        return false;
    *out = (int)v;
    return true;
}

/* [+-] digits [. digits] [e [+-] digits], with a digit on at least one side of the point. */
static bool is_decimal(const char *c)
{
    if (*c == '-' || *c == '+')
        c++;
    bool any = false;
    for (; is_digit(*c); c++)
        any = true;
    if (*c == '.')
        for (c++; is_digit(*c); c++)
            any = true;
    if (!any)
        return false;
    if (*c == 'e' || *c == 'E') {
        c++;
        if (*c == '-' || *c == '+')
            c++;
        if (!is_digit(*c))
            return false;
        while (is_digit(*c))
            c++;
    }
    return *c == '\0';
}

/* strtod and printf use the decimal point of the locale, which is not ours to change: this
 * exchanges the first `from` in the text for `to`. */
static void swap_point(const char *text, const char *from, const char *to, char *out, size_t size)
{
    const char *point = strstr(text, from);
    if (point)
        snprintf(out, size, "%.*s%s%s", (int)(point - text), text, to, point + strlen(from));
    else
        snprintf(out, size, "%s", text);
}

bool opc_parse_real(const char *text, double *out)
{
    enum { LONGEST = 400 }; /* nobody writes a number with more characters */
    double v;
    if (!strcmp(text, "inf") || !strcmp(text, "+inf"))
        v = HUGE_VAL;
    else if (!strcmp(text, "-inf"))
        v = -HUGE_VAL;
    else if (!strcmp(text, "nan"))
        v = (double)NAN;
    else {
        /* The syntax is checked by us: strtod would take hexadecimal, blanks and "infinity" as
         * well. */
        char local[LONGEST + 16];
        if (strlen(text) > LONGEST || !is_decimal(text))
            return false;
        swap_point(text, ".", localeconv()->decimal_point, local, sizeof local);
        v = strtod(local, NULL);
        /* Digits that overflow are refused; only the word inf means infinity. */
        if (isinf(v))
            return false;
    }
    *out = v;
    return true;
}

char *opc_print_real(double v, char out[OPC_PRINTED])
{
    if (isnan(v))
        v = fabs(v); /* printf may show its sign */
    char local[OPC_PRINTED];
    /* 17 digits always suffice; most numbers that people write come back with 15. */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(local, sizeof local, "%.*g", digits, v);
        if (strtod(local, NULL) == v)
            break;
    }
    swap_point(local, localeconv()->decimal_point, ".", out, OPC_PRINTED);
    return out;
}

char *opc_print_fixed(double v, int digits, char out[OPC_PRINTED])
{
    /* Larger numbers, infinities and NaN would not fit or not be exact with fixed digits. */
    if (!(fabs(v) < 1e15))
        return opc_print_real(v, out);
    char local[OPC_PRINTED];
    const int places = digits < 0 ? 0 : digits > 9 ? 9 : digits;
    snprintf(local, sizeof local, "%.*f", places, v);
    const bool nothing = !local[strcspn(local, "123456789")]; /* a negative zero loses its sign */
    swap_point(nothing && *local == '-' ? local + 1 : local, localeconv()->decimal_point, ".", out,
               OPC_PRINTED);
    return out;
}

char *opc_print_bytes(double bytes, char out[OPC_PRINTED])
{
    static const char *const UNIT[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0;
    /* The next unit starts where rounding to one decimal would print 1000.0. */
    for (; bytes >= (unit ? 999.95 : 999.5) && unit < 6; unit++)
        bytes /= 1000;
    if (!(bytes >= 0 && bytes < 1e6))
        snprintf(out, OPC_PRINTED, "?");
    else if (unit == 0)
        snprintf(out, OPC_PRINTED, "%ld B", lround(bytes));
    else
        snprintf(out, OPC_PRINTED, "%ld.%ld %s", lround(bytes * 10) / 10, lround(bytes * 10) % 10,
                 UNIT[unit]);
    return out;
}

char *opc_print_duration(double s, char out[OPC_PRINTED])
{
    /* Each limit is where rounding would carry into the next unit: 59.95 s prints as 1 min 00 s. */
    if (!(s >= 0 && s < 1e12))
        snprintf(out, OPC_PRINTED, "?");
    else if (s < 0.9995e-3)
        snprintf(out, OPC_PRINTED, "%ld us", lround(s * 1e6));
    else if (s < 0.9995)
        snprintf(out, OPC_PRINTED, "%ld ms", lround(s * 1e3));
    else if (s < 59.95)
        snprintf(out, OPC_PRINTED, "%ld.%ld s", lround(s * 10) / 10, lround(s * 10) % 10);
    else if (s < 3599.5)
        snprintf(out, OPC_PRINTED, "%ld min %02ld s", lround(s) / 60, lround(s) % 60);
    else if (s < 86400 - 30)
        snprintf(out, OPC_PRINTED, "%ld h %02ld min", lround(s / 60) / 60, lround(s / 60) % 60);
    else
        snprintf(out, OPC_PRINTED, "%ld d %02ld h", lround(s / 3600) / 24, lround(s / 3600) % 24);
    return out;
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* Appends a character where it fits; one byte is kept for the NUL, and one for a closing quote. */
static void put_char(char *out, size_t size, size_t *n, char c)
{
    if (*n + 2 < size)
        out[(*n)++] = c;
}

char *opc_shell_word(const char *path, char *out, size_t size)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:=@%+,-";
    const bool quoted = !*path || path[strspn(path, PLAIN)];
    size_t n = 0;
    if (size == 0)
        return out;
    if (quoted)
        put_char(out, size, &n, '"');
    if (*path == '-') {
        put_char(out, size, &n, '.');
        put_char(out, size, &n, '/');
    }
    for (; *path; path++) {
        /* These have a meaning inside double quotes. */
        if (strchr("\"\\$`", *path))
            put_char(out, size, &n, '\\');
        put_char(out, size, &n, *path);
    }
    if (quoted && n + 1 < size)
        out[n++] = '"';
    out[n] = '\0';
    return out;
}

const char *opc_plural(long n)
{
    return n == 1 ? "" : "s";
}

int opc_edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    const int n = (int)strnlen(a, LONGEST + 1), m = (int)strnlen(b, LONGEST + 1);
    if (n > LONGEST || m > LONGEST)
        return INT_MAX;
    /* d[i][j] is the distance between the first i characters of a and the first j of b. Row i needs
     * rows i - 1 (above) and i - 2 (before), the latter for swapped neighbours. */
    int row[3][LONGEST + 1], *before = row[0], *above = row[1], *here = row[2];
    for (int j = 0; j <= m; j++)
        above[j] = j;
    for (int i = 1; i <= n; i++) {
        here[0] = i;
        for (int j = 1; j <= m; j++) {
            /* Replace (free if equal), or drop from a, or add from b. */
            here[j] = min(above[j - 1] + (a[i - 1] != b[j - 1]), min(above[j], here[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                here[j] = min(here[j], before[j - 2] + 1);
        }
        /* The oldest row becomes the next one to fill. */
        int *free_row = before;
        before = above;
        above = here;
        here = free_row;
    }
    return above[m];
}

bool opc_nearer(const char *name, const char *candidate, int *nearest)
{
    const int distance = opc_edit_distance(name, candidate);
    const int max = 1 + (int)(strlen(name) / 4); /* a larger distance is another word */
    if (distance > max || distance >= *nearest)
        return false;
    *nearest = distance;
    return true;
}

const char *opc_nearest(const char *name, const char *const *names, size_t n, size_t stride)
{
    const char *best = NULL;
    int nearest = INT_MAX;
    for (size_t i = 0; i < n; i++) {
        /* Copied as bytes: the name is one member of a struct we do not know. */
        const char *candidate;
        memcpy(&candidate, (const char *)names + i * stride, sizeof candidate);
        if (opc_nearer(name, candidate, &nearest))
            best = candidate;
    }
    return best;
}

const char *opc_nearest_of(const char *name, opc_name_fn *names)
{
    const char *best = NULL, *candidate;
    int nearest = INT_MAX;
    for (int i = 0; (candidate = names(i)); i++)
        if (opc_nearer(name, candidate, &nearest))
            best = candidate;
    return best;
}
