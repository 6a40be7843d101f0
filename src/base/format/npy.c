/* SPDX-License-Identifier: MIT */
/* Arrays in numpy's format, version 1.0: the magic bytes, two bytes of version, two of the header's
 * length, the header as a Python dictionary padded to a multiple of 64, then the elements.
 * study/export/npz.c and study/dataset/npz.c use it.
 *
 * Invariant of the reader: the data have exactly the bytes that type and shape ask for. */
#include "base/format/npy.h"

#include <stdio.h>
#include <string.h>

static const char MAGIC[] = "\x93NUMPY\1"; /* with the NUL as minor version */
enum { FRONT = 10, ALIGN = 64 };

/* clang-format off */
static const struct {
    const char *descr, *also; /* as the header has it */
    size_t bytes;
} TYPES[] = {
    [OPC_NPY_FLOAT] = {"<f4", "<f4", 4},
    [OPC_NPY_DOUBLE] = {"<f8", "<f8", 8},
    [OPC_NPY_LONG] = {"<i8", "<u8", 8},
    [OPC_NPY_INT] = {"<i4", "<i4", 4},
    [OPC_NPY_BOOL] = {"|b1", "|u1", 1},
};
/* clang-format on */
enum { TYPES_COUNT = sizeof TYPES / sizeof *TYPES };

size_t opc_npy_count(const struct opc_npy *array)
{
    size_t n = 1;
    for (int i = 0; i < array->dims; i++)
        n *= array->shape[i];
    return n;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Magic bytes, lengths and the dictionary; the newline ends a multiple of ALIGN. */
static void make_head(const char *descr, int dims, const size_t *shape, struct opc_text *head)
{
    struct opc_text words = {0};
    opc_text_addf(&words, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    /* a tuple of one element needs its comma */
    for (int i = 0; i < dims; i++)
        opc_text_addf(&words, "%zu%s", shape[i], dims == 1 || i + 1 < dims ? ", " : "");
    opc_text_add(&words, "), }");
    opc_text_pad(&words, ALIGN - (FRONT + words.used + 1) % ALIGN);
    opc_text_add(&words, "\n");
    /* the header counts from after its own length, two bytes, lowest first */
    const char length[2] = {(char)(words.used & 255), (char)(words.used >> 8)};
    opc_text_add_bytes(head, MAGIC, sizeof MAGIC);
    opc_text_add_bytes(head, length, sizeof length);
    opc_text_add_bytes(head, opc_text_get(&words), words.used);
    head->failed |= words.failed;
    opc_text_free(&words);
}

/* Adds an entry with this header; lack of memory for the header is lack of memory of the archive.
 */
static void add_entry(struct opc_zip *zip, const char *name, struct opc_text *head,
                      const void *data, size_t bytes)
{
    char file[OPC_ZIP_NAME];
    snprintf(file, sizeof file, "%s.npy", name);
    zip->bytes.failed |= head->failed;
    opc_zip_add(zip, file, opc_text_get(head), head->used, data, bytes);
    opc_text_free(head);
}

void opc_npz_add(struct opc_zip *zip, const char *name, const struct opc_npy *array)
{
    struct opc_text head = {0};
    make_head(TYPES[array->type].descr, array->dims, array->shape, &head);
    add_entry(zip, name, &head, array->data, opc_npy_count(array) * TYPES[array->type].bytes);
}

void opc_npz_add_texts(struct opc_zip *zip, const char *name, int n, const char *const *text)
{
    struct opc_text head = {0}, data = {0};
    size_t width = 1;
    char descr[32];
    /* the longest text gives the width of all */
    for (int i = 0; i < n; i++)
        width = strlen(text[i]) > width ? strlen(text[i]) : width;
    /* all of one width, padded with NUL */
    for (int i = 0; i < n; i++) {
        opc_text_add(&data, text[i]);
        for (size_t k = strlen(text[i]); k < width; k++)
            opc_text_add_bytes(&data, "", 1);
    }
    snprintf(descr, sizeof descr, "|S%zu", width);
    const size_t shape = (size_t)n;
    make_head(descr, 1, &shape, &head);
    head.failed |= data.failed;
    add_entry(zip, name, &head, opc_text_get(&data), data.used);
    opc_text_free(&data);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What follows 'key': in the dictionary; NULL: there is no such key. */
static const char *find_key(const char *words, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(words, quoted);
    return at ? at + strlen(quoted) + strspn(at + strlen(quoted), " ") : NULL;
}

/* "(3, 4)", "(3,)" or "()". */
static bool parse_shape(const char *at, struct opc_npy *out)
{
    size_t all = 1;
    out->dims = 0;
    if (*at++ != '(')
        return false;
    for (at += strspn(at, " "); *at != ')'; at += strspn(at, ", ")) {
        /* one dimension: digits, then a comma or the end */
        const size_t digits = strspn(at, "0123456789");
        char number[16];
        int n;
        if (digits == 0 || digits >= sizeof number || out->dims == OPC_NPY_DIMS)
            return false;
        memcpy(number, at, digits);
        number[digits] = '\0';
        if (!opc_parse_int(number, &n))
            return false;
        out->shape[out->dims++] = (size_t)n;
        /* the product stays far below the largest size, so that times 8 bytes it does, too */
        if (n > 0 && all > (size_t)1 << 40)
            return false;
        all *= (size_t)n;
        at += digits;
    }
    return all <= (size_t)1 << 40;
}

/* The dictionary, which is NUL-terminated here. */
static int parse_words(const char *name, const char *words, struct opc_npy *out,
                       struct opc_err *err)
{
    /* The three keys that every header has. */
    const char *descr = find_key(words, "descr"), *order = find_key(words, "fortran_order"),
               *shape = find_key(words, "shape");
    if (!descr || !order || !shape)
        return opc_fail(err, OPC_EDAMAGED, "%s: its header is not that of an array", name);
    /* "<f4" and its like, quoted; little-endian only */
    int type = 0;
    while (type < TYPES_COUNT &&
           (*descr != '\'' ||
            (strncmp(descr + 1, TYPES[type].descr, 3) && strncmp(descr + 1, TYPES[type].also, 3)) ||
            descr[4] != '\''))
        type++;
    if (type == TYPES_COUNT)
        return opc_fail(err, OPC_EUSER,
                        "%s: its elements are %.8s; float32, float64, int32, int64 and bool are "
                        "read",
                        name, descr);
    /* Fortran's order would need a transposition. */
    if (strncmp(order, "False", 5) != 0)
        return opc_fail(err, OPC_EUSER,
                        "%s is in Fortran's order; save numpy.ascontiguousarray of it", name);
    if (!parse_shape(shape, out))
        return opc_fail(err, OPC_EUSER, "%s: its shape is %.40s; at most %d dimensions are read",
                        name, shape, OPC_NPY_DIMS);
    out->type = (enum opc_npy_type)type;
    return OPC_OK;
}

int opc_npy_parse(const struct opc_zip_entry *entry, struct opc_npy *out, struct opc_err *err)
{
    const unsigned char *at = (const unsigned char *)entry->data;
    char words[1024];
    if (entry->bytes < FRONT || memcmp(at, MAGIC, sizeof MAGIC) != 0)
        return opc_fail(err, OPC_EUSER, "%s is not an array of numpy's format 1.0", entry->name);
    /* The header, copied to have a NUL after it. */
    const size_t length = at[8] | (size_t)at[9] << 8;
    if (length > entry->bytes - FRONT || length >= sizeof words)
        return opc_fail(err, OPC_EDAMAGED, "%s: its header is cut short", entry->name);
    memcpy(words, at + FRONT, length);
    words[length] = '\0';
    OPC_TRY(parse_words(entry->name, words, out, err));
    /* The elements fill the rest of the entry, neither more nor less. */
    const size_t want = opc_npy_count(out) * TYPES[out->type].bytes,
                 bytes = entry->bytes - FRONT - length;
    if (bytes != want)
        return opc_fail(err, OPC_EDAMAGED, "%s has %zu bytes of data; its shape needs %zu",
                        entry->name, bytes, want);
    out->data = at + FRONT + length;
    return OPC_OK;
}

double opc_npy_at(const struct opc_npy *array, size_t i)
{
    const char *at = (const char *)array->data + i * TYPES[array->type].bytes;
    /* copied, because an archive does not align its entries */
    union {
        float f4;
        double f8;
        int64_t i8;
        int32_t i4;
    } value;
    memcpy(&value, at, TYPES[array->type].bytes);
    switch (array->type) {
    case OPC_NPY_FLOAT: return (double)value.f4;
    case OPC_NPY_DOUBLE: return value.f8;
    case OPC_NPY_LONG: return (double)value.i8;
    case OPC_NPY_INT: return value.i4;
    case OPC_NPY_BOOL: break;
    }
    return *(const unsigned char *)at;
}
