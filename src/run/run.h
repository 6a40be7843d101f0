/* SPDX-License-Identifier: MIT */
/* run/run.h - everything one training run consists of. train.c moves it, assemble.c makes it,
 * save.c keeps it, restore.c brings it back. */
#ifndef OPC_RUN_RUN_H
#define OPC_RUN_RUN_H

#include "base/pool.h"
#include "data/batch.h"
#include "env/many.h"
#include "opc/algorithm2.h"
#include "opc/train.h"
#include "run/config.h"
#include "run/play.h"
#include "run/record.h"

/* A part of a growing store that was written to a file of its own: records from .. to-1. */
struct opc_segment {
    uint64_t epoch, from, to;
};
struct opc_segments {
    struct opc_segment *at;
    uint64_t n, capacity;
};

/* Where the run is. Saved as it stands: whole numbers and doubles of 8 bytes only. */
struct opc_whereabouts {
    int64_t epoch; /* complete ones */
    int64_t env_steps, total_steps;
    int64_t fits, updates;  /* since the beginning */
    int64_t episode_number; /* of the next, or of the running one */
    int64_t running;        /* an episode is */
    double eval_return, eval_length, best_return, model_error;
};

struct opc_run {
    const struct opc_values *set;
    const struct opc_train_plan *plan;
    uint32_t hash;
    uint64_t seed;

    struct opc_pool *pool;
    struct opc_play *play;   /* the real environment */
    struct opc_many *worlds; /* others like it, for evaluation */
    int obs, act;

    struct opc_episodes *past;
    int capacity; /* steps it can hold */
    int *
        recorded; /* [epochs + 1] episodes recorded by the end of each epoch; 0: the random phase */
    float *sa, *y; /* [room][obs + act], [room][obs + 1]: the past as a fit wants it */
    /* Not with opc.transition = replay: */
    struct opc_predictor *model;
    struct opc_transition *transition;
    bool stale;                /* its table, by a fit or a restart */
    struct opc_scaler *states; /* of all recorded ones: */
    size_t states_count;       /* so many */
    struct opc_rollout *rollout;
    struct opc_imagined *imagined;

    struct opc_agent *agent;
    float *a;           /* [act] */
    struct opc_mix mix; /* what it learns from */

    struct opc_whereabouts now;
    /* of the epoch that is under way */
    struct opc_epoch_row row;
    uint32_t rollouts; /* number of the next one in it */

    char memory[256];          /* what it needs, in a sentence */
    struct opc_record *record; /* NULL: nothing is written */
    struct opc_segments past_segments, imagined_segments;
    uint64_t imagined_front; /* of the checkpoint before */
    bool slot_b;             /* the next checkpoint goes there */

    struct opc_progress progress, reported; /* told: status.json, of the last epoch that is whole */
    double began, entered, shown;           /* as opc_now tells it */
};

/* ---- assemble.c ------------------------------------------------------------------------------ */

/* Everything but the record, at its beginning. Refuses, with advice, what does not fit into the
 * memory of this machine. The run is valid for opc_run_free also when it fails. */
int opc_run_make(struct opc_run *, const struct opc_values *, const struct opc_train_plan *,
                 struct opc_err *err);
void opc_run_free(struct opc_run *);
/* A run whose restoring failed half-way, as new; keeps its record. */
int opc_run_remake(struct opc_run *, struct opc_err *err);
/* data.forget = steps: how many are kept at a horizon. */
size_t opc_run_limit(const struct opc_values *, int horizon);
/* The agent alone, or the model alone, as new. model, transition: for agents that need one; else
 * NULL will do. */
int opc_run_agent(const struct opc_values *, int obs, int act, struct opc_predictor *model,
                  const struct opc_transition *, struct opc_pool *, struct opc_agent **out,
                  struct opc_err *err);
int opc_run_model(const struct opc_values *, int obs, int act, struct opc_pool *,
                  struct opc_predictor **out, struct opc_err *err);

/* ---- meta.c ---------------------------------------------------------------------------------- */

/* Folders and meta.json, if they are not there yet. */
int opc_run_open_directory(struct opc_run *, struct opc_err *err);
/* Are the settings still those the run began with? Not if that cannot be told. */
bool opc_run_has_its_settings(const struct opc_run *);
/* Warns if the world is not the one the run was begun in. */
int opc_run_compare_worlds(const struct opc_run *, struct opc_err *err);

/* ---- save.c ---------------------------------------------------------------------------------- */

/* All that a resumed run needs, into the older of the two slots. */
int opc_run_save(struct opc_run *, struct opc_err *err);
int opc_run_save_policy(struct opc_run *, struct opc_err *err);
int opc_run_save_snapshot(struct opc_run *, struct opc_err *err);

/* ---- restore.c ------------------------------------------------------------------------------- */

/* The newest slot that is whole; none at all means the beginning. Cuts the tables to it. */
int opc_run_restore(struct opc_run *, struct opc_err *err);
/* The policy a run directory holds, into an agent of the same settings. */
int opc_run_load_policy(const char *dir, uint32_t hash, struct opc_agent *, int *epoch,
                        struct opc_err *err);
/* Policy and model (NULL: none is wanted) of a snapshot, or of the newest checkpoint if epoch is
 * negative; *got is the epoch it was made after. */
int opc_run_load_networks(const char *dir, int epoch, uint32_t hash, struct opc_agent *,
                          struct opc_predictor *, int *got, struct opc_err *err);

#endif
