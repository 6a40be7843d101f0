/* SPDX-License-Identifier: MIT */
/* run/save.h - what checkpoints consist of, to save.c, which writes them, and restore.c. */
#ifndef OPC_RUN_SAVE_H
#define OPC_RUN_SAVE_H

#include "run/run.h"

extern const char *const opc_slot_name[2]; /* below the run's directory */
int opc_segment_path(const struct opc_run *, const char *kind, uint64_t epoch, char path[OPC_PATH],
                     struct opc_err *err);
int opc_note_segment(struct opc_segments *, struct opc_segment, struct opc_err *err);
void opc_snapshot_name(long long epoch, char out[64]);

/* Which compute: results depend on them in the last bits. */
enum { OPC_KERNELS_NAME = 16 };
void opc_kernels_name(char out[OPC_KERNELS_NAME]);

#endif
