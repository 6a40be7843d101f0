/* SPDX-License-Identifier: MIT */
/* base/format/zip.h - ZIP archives of entries that are stored as they are, without compression:
 * what an .npz file is (npy.h). Up to 4 GB; the times of the entries are fixed, so that the same
 * entries give the same bytes. */
#ifndef OPC_BASE_ZIP_H
#define OPC_BASE_ZIP_H

#include "base/text.h"

/* ---- writing ---------------------------------------------------------------------------------
 * Starts as {0}. */

struct opc_zip {
    struct opc_text bytes;     /* the entries so far; after opc_zip_finish the whole archive */
    struct opc_text directory; /* what the central directory will say about them */
    int entries;
};
/* An entry of two parts, one after the other: a header and the data it describes. */
void opc_zip_add(struct opc_zip *, const char *name, const void *head, size_t head_bytes,
                 const void *data, size_t bytes);
/* Appends the directory. OPC_EUSER: the archive would have 4 GB or more. */
int opc_zip_finish(struct opc_zip *, struct opc_err *err);
void opc_zip_free(struct opc_zip *);

/* ---- reading --------------------------------------------------------------------------------- */

enum { OPC_ZIP_NAME = 128, OPC_ZIP_MAX = 256 }; /* bytes of a name with its NUL; entries */

struct opc_zip_entry {
    char name[OPC_ZIP_NAME];
    const char *data; /* points into the archive */
    size_t bytes;
};
/* Lists the entries of an archive in memory. OPC_EUSER: it is no archive, or one of a kind that is
 * not read here (compressed, 4 GB and more); OPC_EDAMAGED: it is cut short or a checksum fails. */
int opc_zip_read(const char *bytes, size_t n, struct opc_zip_entry out[OPC_ZIP_MAX], int *entries,
                 struct opc_err *err);

#endif
