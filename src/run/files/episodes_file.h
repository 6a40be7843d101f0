/* SPDX-License-Identifier: MIT */
/* run/files/episodes_file.h - recorded episodes in a file of their own: what `opc data import`
 * writes and train.prefill reads (docs/data.md). A pack (checkpoint.h) of kind OPC_PACK_EPISODES:
 *
 *     shape                    two 64-bit integers, numbers of observations and actions
 *     task                     its name, for people
 *     action.low, action.high  doubles: what -1 and 1 of an action stand for
 *     records                  the episodes as data/records.h has them */
#ifndef OPC_RUN_EPISODES_FILE_H
#define OPC_RUN_EPISODES_FILE_H

#include "opc/env.h"
#include "opc/episodes.h"
#include "run/files/checkpoint.h"

struct opc_episodes_file {
    int obs, act;
    int episodes, steps;
    uint32_t checksum;        /* CRC-32C of the whole file */
    const double *low, *high; /* [act] */
    const float *records;     /* [n][opc_record_stride] */
    size_t n;
    struct opc_pack *pack; /* what all of these point into */
    char *bytes;
};

/* Saves episodes first .. of the past, whose actions are those of env. */
int opc_episodes_file_save(const char *path, const struct opc_episodes *past, int first,
                           const struct opc_env *env, struct opc_err *err);
/* OPC_EUSER: it cannot be read, or is no such file; OPC_EDAMAGED: it is damaged. */
int opc_episodes_file_load(const char *path, struct opc_episodes_file *out, struct opc_err *err);
/* Frees what it points at; the numbers of episodes and steps stay. */
void opc_episodes_file_free(struct opc_episodes_file *);

#endif
