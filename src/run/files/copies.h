/* SPDX-License-Identifier: MIT */
/* run/files/copies.h - the rows of metrics.csv in two forms that other programs follow while a run
 * goes on: metrics.jsonl, JSON lines (record.json_lines), and a TensorBoard event file
 * (record.tensorboard). run/files/runlog.c owns them.
 *
 * Everything in them follows from metrics.csv, except the time of day at which a row was written.
 */
#ifndef OPC_RUN_COPIES_H
#define OPC_RUN_COPIES_H

#include "opc/err.h"

#include <stdbool.h>

#define OPC_COPIES_JSON "metrics.jsonl"
/* TensorBoard takes every file for one of its own that has "tfevents" in its name. */
#define OPC_COPIES_EVENTS "events.out.tfevents.opc"

struct opc_copies {
    int json_fd, events_fd; /* -1: not wanted, or not open */
    char *head;             /* first line of metrics.csv */
};

/* Makes the wanted copies equal to dir/metrics.csv as it is now and opens them for more rows; one
 * that is not wanted is left as it is. All that was right before stays in place: a program that
 * follows the file need not read it again. The copies are closed, or as the last begin left them.
 */
int opc_copies_begin(struct opc_copies *, const char *dir, bool json_lines, bool tensorboard,
                     struct opc_err *err);
/* Appends a row, a line of metrics.csv with its newline, to those that are open. */
int opc_copies_add(const struct opc_copies *, const char *dir, const char *line,
                   struct opc_err *err);
void opc_copies_close(struct opc_copies *);

#endif
