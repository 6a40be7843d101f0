/* SPDX-License-Identifier: MIT */
/* run/run.h - everything one training run consists of.
 *
 * assemble.c builds it, train.c with imagine.c and improve.c advances it, save.c writes it to
 * checkpoints and restore.c reads it back. One thread owns a run; the pool works inside calls. */
#ifndef OPC_RUN_RUN_H
#define OPC_RUN_RUN_H

#include "base/pool.h"
#include "data/batch.h"
#include "env/many.h"
#include "opc/algorithm2.h"
#include "opc/train.h"
#include "run/config/config.h"
#include "run/files/episodes_file.h"
#include "run/files/runlog.h"
#include "run/real/play.h"

/* A part of a growing store, records from .. to-1, that was written to a file of its own after
 * `epoch`. Counted from the first record ever, also where the oldest have been dropped. */
struct opc_segment {
    uint64_t epoch, from, to;
};
struct opc_segments {
    struct opc_segment *at;
    uint64_t n, capacity;
};

/* How far the run is. Section "run" of a checkpoint is this struct as it is in memory: it holds
 * integers and doubles of 8 bytes only, and a new member makes older checkpoints unreadable. */
struct opc_run_state {
    int64_t epoch;                  /* complete epochs */
    int64_t env_steps, total_steps; /* real steps in epochs; with those of the random phase */
    int64_t fits, updates;          /* of model and agent since the beginning */
    int64_t episode_number;         /* from 0: of the running episode, or of the next one */
    int64_t running;                /* 1: an episode is running */
    /* of the last evaluation, the best evaluation, and the last fit; NaN: not yet */
    double eval_return, eval_length, best_return, model_error;
};

struct opc_run {
    const struct opc_values *set;
    const struct opc_train_plan *plan; /* directory, threads, callbacks of the caller */
    uint32_t hash;                     /* of the settings: every file of the run carries it */
    bool best; /* the last evaluation is the best so far: policy-best.opc is to be written */
    uint64_t seed;

    struct opc_pool *pool;
    struct opc_play *play;   /* the real environment that training steps */
    struct opc_many *worlds; /* more environments of the same task, for evaluation and errors */
    int obs, act;            /* dimensions of states and actions */

    struct opc_bounds *bounds; /* of everything recorded (opc/bounds.h) */
    struct opc_episodes *past; /* everything recorded on the real environment */
    int capacity;              /* steps that `past` can hold */
    /* train.prefill; its records are freed once they are in `past`, its numbers stay */
    struct opc_episodes_file prefill;
    /* [epochs + 1] episodes recorded by the end of epoch n; entry 0 is the random phase. So the
     * episodes of epoch n are recorded[n - 1] .. recorded[n] - 1. */
    int *recorded;
    float *sa, *y; /* [capacity][obs + act], [capacity][obs + 1] inputs and targets of a fit */

    /* The model and what is imagined with it; all of it NULL with opc.transition = replay. */
    struct opc_predictor *model;
    struct opc_transition *transition;
    int recent;                /* first episode of the reference window */
    bool stale;                /* the transition's table is older than the model: refresh it */
    struct opc_scaler *states; /* mean and deviation of the recorded states, ... */
    size_t states_count;       /* ... of which it has seen this many */
    struct opc_drift *drift;   /* NULL: opc.max_drift is 0 */
    struct opc_disagreement *disagreement; /* NULL: opc.max_disagreement is 0 */
    struct opc_termination *termination;   /* NULL: the task says where it ends, or never */
    struct opc_rollout *rollout;
    struct opc_imagined *imagined;

    struct opc_agent *agent;
    struct opc_episode_state *episode; /* what the agent remembers of the running episode */
    float *a;                          /* [act] action of the current step */
    struct opc_mix mix;                /* the data that batches of the agent are drawn from */

    struct opc_run_state now;
    /* The epoch in progress: its row of metrics.csv, and the number of its next rollout, which
     * names a random stream. */
    struct opc_epoch_row row;
    uint32_t rollouts;

    char memory[256];       /* how much memory the run needs, in a sentence */
    char doubt[400];        /* what is odd about the environment; "": nothing */
    struct opc_runlog *log; /* NULL: nothing is written */
    struct opc_segments past_segments, imagined_segments;
    /* Segments of the past that a restored run goes on without; they stay in past_segments, whose
     * numbers of records include them. */
    struct opc_segments past_missing;
    bool damaged_segment;    /* restoring met one that cannot be read */
    uint64_t imagined_front; /* oldest imagined record that the previous checkpoint needs */
    int next_slot;           /* 0 or 1: the checkpoint file that is written next */

    /* `reported` is what status.json says: the state after the last complete epoch. */
    struct opc_progress progress, reported;
    int fit_passes; /* of the last fit, for the estimate how far the next one is; 0: none yet */
    /* by opc_now: start of this process, of the current phase, and the last call of progress */
    double began, entered, shown;
};

/* ---- assemble.c ------------------------------------------------------------------------------ */

/* Builds everything but the log, as at the beginning of a run. Refuses, with advice, what does not
 * fit into the memory of this machine. The run is valid for opc_run_free also when it fails. */
int opc_run_make(struct opc_run *, const struct opc_values *, const struct opc_train_plan *,
                 struct opc_err *err);
void opc_run_free(struct opc_run *);
/* Builds a run anew whose restoring failed half-way; its log stays open. */
int opc_run_remake(struct opc_run *, struct opc_err *err);
/* With data.forget = steps: how many imagined steps are kept at this horizon. */
size_t opc_run_limit(const struct opc_values *, int horizon);
/* ---- termination.c --------------------------------------------------------------------------- */

/* What learns where the task ends, if model.termination says so and the task cannot be asked. */
int opc_run_make_termination(struct opc_run *, struct opc_err *err);

/* ---- prefill.c ------------------------------------------------------------------------------- */

/* Reads train.prefill, if there is one, and compares it with the environment that is open.
 * OPC_EUSER: it is another file than the run began with, or of another task. */
int opc_run_load_prefill(struct opc_run *, struct opc_err *err);
/* The logged episodes become the first of the past. */
int opc_run_prefill(struct opc_run *, struct opc_err *err);

/* The agent alone, or the model alone, with its initial weights. model, transition, env and past
 * (all that is recorded on it) are for agents that need them; otherwise they may be NULL. */
int opc_run_agent(const struct opc_values *, int obs, int act, struct opc_predictor *model,
                  const struct opc_transition *, const struct opc_env *,
                  const struct opc_episodes *past, struct opc_pool *, struct opc_agent **out,
                  struct opc_err *err);
int opc_run_model(const struct opc_values *, int obs, int act, struct opc_pool *,
                  struct opc_predictor **out, struct opc_err *err);

/* The transition model of the settings along this past; steps: of its reference window, at most. */
int opc_run_transition(const struct opc_values *, const struct opc_episodes *past,
                       const struct opc_predictor *model, const struct opc_env *, int steps,
                       struct opc_transition **out, struct opc_err *err);
/* OPC_EUSER: model.reward = given, and this task's reward is not a function of the transition. */
int opc_run_check_reward(const struct opc_values *, const struct opc_env *, struct opc_err *err);

/* ---- loaded.c -------------------------------------------------------------------------------- */

/* An agent with initial weights, for a policy that is loaded. dir: of its run, with the recordings
 * that it may need; NULL: there are none. env: the task, where the caller has it open (borrowed);
 * NULL: it is opened for an agent that needs it. The caller loads the weights and refreshes the
 * agent's transition, if it has one. */
int opc_run_loaded_agent(const char *dir, const struct opc_config *, int obs, int act,
                         struct opc_predictor *model, const struct opc_env *env, struct opc_pool *,
                         struct opc_agent **out, struct opc_err *err);

/* ---- meta.c ---------------------------------------------------------------------------------- */

/* Creates folders and meta.json where they are missing. */
int opc_run_open_directory(struct opc_run *, struct opc_err *err);
/* How imagined states end: "computed" by a rule of the task, "asked" of the program that plays it,
 * "learned" from the recording, or "never". */
const char *opc_run_termination(const struct opc_run *);
/* Are the settings still those the run began with? False also where meta.json does not say. */
bool opc_run_has_its_settings(const struct opc_run *);
/* Warns if the simulator or its model differs from the one the run was begun with. */
int opc_run_compare_worlds(const struct opc_run *, struct opc_err *err);

/* ---- save.c ---------------------------------------------------------------------------------- */

/* Writes all that a resumed run needs, into the older of the two slots. */
int opc_run_save(struct opc_run *, struct opc_err *err);
/* Writes the episodes since the last segment as a segment of this epoch. No slot names it yet. */
int opc_run_save_past(struct opc_run *, struct opc_err *err);
/* The policy as it is now, into this file of the run directory. */
int opc_run_save_policy(struct opc_run *, const char *name, struct opc_err *err);
int opc_run_save_snapshot(struct opc_run *, struct opc_err *err);

/* ---- restore.c ------------------------------------------------------------------------------- */

/* Brings the run to its newest intact checkpoint, or to its beginning if it has none, and truncates
 * the tables accordingly. */
int opc_run_restore(struct opc_run *, struct opc_err *err);
/* Loads the policy of a run directory into an agent of the same settings; *epoch: complete epochs
 * it was trained for. */
int opc_run_load_policy(const char *dir, uint32_t hash, struct opc_agent *, int *epoch,
                        struct opc_err *err);
/* Loads policy and model (NULL: not wanted) of a snapshot, or of the newest checkpoint if epoch is
 * negative; *got is the epoch after which it was written. */
int opc_run_load_networks(const char *dir, int epoch, uint32_t hash, struct opc_agent *,
                          struct opc_predictor *, int *got, struct opc_err *err);

#endif
