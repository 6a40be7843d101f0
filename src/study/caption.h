/* SPDX-License-Identifier: MIT */
/* study/caption.h - the caption of an exhibit, collected run by run and then written. */
#ifndef OPC_STUDY_CAPTION_H
#define OPC_STUDY_CAPTION_H

#include "base/text.h"
#include "study/repro.h"
#include "sweep/schedule.h"
#include "sweep/versions.h"

/* What is drawn: the complete runs of an experiment. */
struct opc_caption {
    int complete;
    int *seed; /* [complete] */
    /* Each different one once, separated by ", "; the first two of runs that learn from rollouts.
     */
    struct opc_text imagined, ensembles, engines;
    struct opc_versions versions;
    int epochs[2], steps[2]; /* minimum and maximum */
};

/* Nothing yet, with room for `tasks` runs. */
int opc_caption_begin(struct opc_caption *, int tasks, struct opc_err *err);
/* Adds a complete run. */
void opc_caption_note(struct opc_caption *, const struct opc_task *, const struct opc_look *);
/* Writes the sentence. The seeds become sorted. */
int opc_caption_write(const struct opc_experiment *, const struct opc_caption *, struct opc_text *,
                      struct opc_err *err);
void opc_caption_free(struct opc_caption *); /* also one whose begin failed */

#endif
