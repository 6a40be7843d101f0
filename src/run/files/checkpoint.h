/* SPDX-License-Identifier: MIT */
/* run/files/checkpoint.h - named sections of bytes in one file, which is read whole or refused.
 *
 * Checkpoints, policies, snapshots and segments of recorded and imagined data are all such files
 * (docs/checkpoint-format.md). Every byte is covered by a CRC-32C; a file appears by rename. */
#ifndef OPC_RUN_CHECKPOINT_H
#define OPC_RUN_CHECKPOINT_H

#include "base/text.h"

enum opc_pack_kind {
    OPC_PACK_RUN = 1,
    OPC_PACK_POLICY,
    OPC_PACK_SNAPSHOT,
    OPC_PACK_SEGMENT,
    OPC_PACK_MODEL,    /* opc_ensemble_save */
    OPC_PACK_EPISODES, /* run/files/episodes_file.h */
};

enum { OPC_PACK_NAME = 48, OPC_PACK_MAX = 512 }; /* bytes of a name with its NUL; sections */

struct opc_named {
    char name[OPC_PACK_NAME]; /* "": more data of the section before it */
    const void *data;
    size_t bytes;
};

/* ---- writing --------------------------------------------------------------------------------- */

/* hash: of the settings (opc_config_hash); epoch: tells which of two files is the newer one. */
int opc_checkpoint_save(const char *path, enum opc_pack_kind kind, uint32_t hash, uint64_t epoch,
                        const struct opc_named *part, int parts, struct opc_err *err);

/* A list of the data to save, which is not copied. */
struct opc_gather {
    struct opc_named part[OPC_PACK_MAX];
    int parts;
};
/* A visitor for the `state` functions of agents and predictors; ctx is the struct opc_gather. The
 * data must stay where and as it is until it is saved. */
int opc_gather_visit(void *ctx, const char *name, void *data, size_t bytes, struct opc_err *err);

/* ---- reading --------------------------------------------------------------------------------- */

struct opc_pack {
    enum opc_pack_kind kind;
    uint32_t hash;
    uint64_t epoch;
    int parts;
    struct opc_named part[OPC_PACK_MAX];
    char *bytes; /* the whole file, or NULL if it is the caller's */
};

/* Reads a file and checks all of it. OPC_EDAMAGED: a check fails, or the file is of another kind;
 * OPC_EUSER: it is of another version. */
int opc_checkpoint_load(const char *path, enum opc_pack_kind kind, struct opc_pack **out,
                        struct opc_err *err);
/* The same from memory, which stays the caller's and must outlive the pack; `name` is for
 * messages. */
int opc_pack_parse(const char *name, const char *bytes, size_t n, struct opc_pack **out,
                   struct opc_err *err);
void opc_pack_free(struct opc_pack *);                                            /* NULL is fine */
const struct opc_named *opc_pack_find(const struct opc_pack *, const char *name); /* or NULL */
/* Copies a section, which must have exactly that size. */
int opc_pack_get(const struct opc_pack *, const char *name, void *data, size_t bytes,
                 struct opc_err *err);
/* A visitor for the `state` functions; ctx is the struct opc_pack. */
int opc_pack_visit(void *ctx, const char *name, void *data, size_t bytes, struct opc_err *err);

#endif
