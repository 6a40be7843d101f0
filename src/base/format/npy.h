/* SPDX-License-Identifier: MIT */
/* base/format/npy.h - arrays as numpy saves them: .npy inside of .npz (zip.h). */
#ifndef OPC_BASE_NPY_H
#define OPC_BASE_NPY_H

#include "base/format/zip.h"

enum opc_npy_type {
    OPC_NPY_FLOAT,  /* <f4, float */
    OPC_NPY_DOUBLE, /* <f8, double */
    OPC_NPY_LONG,   /* <i8, int64_t */
    OPC_NPY_INT,    /* <i4, int32_t */
    OPC_NPY_BOOL,   /* |b1, or |u1: a byte */
};

enum { OPC_NPY_DIMS = 4 };

struct opc_npy {
    enum opc_npy_type type;
    int dims;
    size_t shape[OPC_NPY_DIMS]; /* in C order: the last index is the innermost */
    const void *data;
};

/* The number of elements: the product of the shape. */
size_t opc_npy_count(const struct opc_npy *);
/* Adds the array as entry NAME.npy. */
void opc_npz_add(struct opc_zip *, const char *name, const struct opc_npy *);
/* Adds texts as an array of bytes strings (|S), which numpy reads as b'...'. */
void opc_npz_add_texts(struct opc_zip *, const char *name, int n, const char *const *text);

/* The array in an entry; its data stay in the archive and may lie at any address (opc_npy_at).
 * OPC_EUSER: a type, order or number of dimensions that is not read here; OPC_EDAMAGED: it is not
 * an array, or has another number of bytes than its header says. */
int opc_npy_parse(const struct opc_zip_entry *, struct opc_npy *out, struct opc_err *err);
/* Element i, counted through all dimensions. */
double opc_npy_at(const struct opc_npy *, size_t i);

#endif
