/* SPDX-License-Identifier: MIT */
/* run/save.h - what save.c, which writes checkpoints, and restore.c, which reads them, share. */
#ifndef OPC_RUN_SAVE_H
#define OPC_RUN_SAVE_H

#include "run/run.h"

extern const char *const opc_slot_name[2]; /* files of the two slots, below the run's directory */
/* File of the segment of `kind`, "past" or "imagined", that was written after an epoch. */
int opc_segment_path(const struct opc_run *, const char *kind, uint64_t epoch, char path[OPC_PATH],
                     struct opc_err *err);
/* Appends a segment to the list. */
int opc_note_segment(struct opc_segments *, struct opc_segment, struct opc_err *err);
/* File of a snapshot, below the run's directory. */
void opc_snapshot_name(long long epoch, char out[64]);

/* The kernels in use, on which results depend in the last bits; zeros fill the array. */
enum { OPC_KERNELS_NAME = 16 };
void opc_kernels_name(char out[OPC_KERNELS_NAME]);

#endif
