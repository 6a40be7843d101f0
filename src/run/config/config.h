/* SPDX-License-Identifier: MIT */
/* run/config/config.h - all settings of a run, and where they came from.
 *
 * Each section is one table (base/field.h); a row has kind, name, default, range, help, and other
 * names under which it is read. The tables of `model` and of the agents are in their modules; the
 * ones here belong to the loop itself. */
#ifndef OPC_RUN_CONFIG_H
#define OPC_RUN_CONFIG_H

#include "base/field.h"
#include "model/ensemble.h"
#include "opc/agent.h"
#include "opc/config.h"
#include "opc/transition_type.h"
#include "run/config/yaml.h"

/* clang-format off */
#define OPC_TRAIN_FIELDS(X)                                                                         \
    X(INT,    seed,             "1",     0, 2e9, "seed of every random number in the run")          \
    X(INT,    epochs,           "100",   1, 1e6, "number of epochs to train")                       \
    X(INT,    steps_per_epoch,  "1000",  1, 1e7, "E, steps on the real environment in an epoch", "epoch_length") \
    X(INT,    random_steps,     "5000",  0, 1e8, "steps with uniformly random actions before the first epoch; the last episode is finished", "n_exploration_steps") \
    X(NAME,   agent,            "sac",   opc_agent_name, , "algorithm that improves the policy (ppo, steve and slbo need opc.transition = replay), or pets, which plans through the model instead") \
    X(INT,    fit_every,        "0",     0, 1e7, "real steps from one fit of the model to the next; 0: once an epoch", "model_train_freq") \
    X(INT,    simulate_every,   "0",     0, 1e7, "real steps from one simulation of imagined rollouts to the next; 0: once an epoch") \
    X(INT,    improve_every,    "0",     0, 1e7, "real steps from one improvement of the policy to the next; 0: once an epoch") \
    X(REAL,   updates_per_step, "20",    0, 1e4, "gradient steps of the agent for each real step; an improvement makes train.improve_every times as many", "utd") \
    X(INT,    rounds,           "1",     1, 1e4, "parts of an improvement: each simulates its share of the rollouts with the policy so far, then makes its share of the gradient steps (the paper: 1)") \
    X(INT,    learning_starts,  "0",     0, 1e8, "the agent makes no gradient step before this many real steps are recorded", "least_steps") \
    X(TEXT,   prefill,          "",      0, 255, "file of episodes that were recorded elsewhere ('opc data import' makes it), with which the run begins; their steps count towards train.random_steps, not as real steps") \
    X(TEXT,   prefill_checksum, "",      0, 8,   "CRC-32C of the file train.prefill, filled in when a run begins; a file with another one is refused") \
    X(BOOL,   fit_first,        "false", 0, 1,   "fit and simulate before the real steps (original MBPO), not after them (the paper)") \
    X(BOOL,   reset_each_epoch, "true",  0, 1,   "cut the running episode at the end of an epoch (the paper); otherwise it goes on in the next (original MBPO)")

#define OPC_ENV_FIELDS(X)                                                                           \
    X(TEXT,   name,             "cartpole", 1, 255, "the task, with its arguments after a '?'; 'opc env list' shows all tasks", "id") \
    X(PATH,   directory,        "",      0, 4095, "directory that the relative path of a plugin (./task.so) counts from, filled in when a run begins; changes no result")

#define OPC_OPC_FIELDS(X)                                                                           \
    X(NAME,   transition,       "corrected", opc_transition_name, , "where an imagined step leads: to the recorded state (eq. 3, SAC), where the model says (eq. 2, MBPO), or there with the recorded correction (eq. 5, OPC)") \
    X(INTS,   horizon,          "[10]",   0, 1e6, "H, steps of an imagined rollout; [e0, e1, h0, h1] grows linearly from h0 to h1 between epochs e0 and e1", "rollout_length") \
    X(INT,    transitions,      "100000", 1, 1e9, "N, imagined steps of one simulation, if opc.rollouts is 0") \
    X(INT,    rollouts,         "0",      0, 1e8, "imagined rollouts of one simulation; 0: as many as make opc.transitions steps", "rollout_batch_size") \
    X(CHOICE, start,            "uniform", "uniform|paper", , "where rollouts start: at any recorded step, or in any episode at most T - H steps after its start (Algorithm 2 as printed)") \
    X(INT,    reference_epochs, "1",      0, 1e6, "K: rollouts start in, and are corrected by, recordings of the last K epochs only; 0: of all epochs and the random phase. The model is fitted to everything") \
    X(REAL,   past_ratio,       "0",      0, 1,   "share of imagined rollouts that start in, and are corrected by, recordings of any epoch, although opc.reference_epochs = K admits the last K only") \
    X(BOOL,   bounds,           "false",  0, 1,   "end an imagined rollout, without its last step, where it leaves the range of recorded states by more than a quarter, and clip imagined rewards to the recorded range plus a tenth")                           \
    X(REAL,   max_drift,        "0",      0, 1e6, "L: end an imagined rollout, without its last step, where it is further from its reference than L standard deviations of recorded states (root mean square over entries); 0: no limit") \
    X(REAL,   max_disagreement, "0",      0, 1e6, "xi: end an imagined rollout, without its last step, where the elites disagree about the step (eq. 5: about the correction) more than xi times as much as in 95 % of first steps; 0: no limit") \
    X(BOOL,   correct_reward,   "true",   0, 1,   "apply eq. 5 to the reward too; otherwise the model predicts it") \
    X(BOOL,   sample,           "true",   0, 1,   "opc.transition = learned draws from the model's Gaussian; otherwise it takes the mean") \
    X(CHOICE, elite,            "step",   "step|rollout", , "a member of the ensemble is drawn for each step, or for each rollout") \
    X(CHOICE, reference_terminal, "continue", "continue|terminal|drop", , "the last step of a rollout whose reference ended in a terminal state, and it did not: counts as not terminal (d = 0), counts as terminal (d = 1), or is not stored")

#define OPC_DATA_FIELDS(X)                                                                          \
    X(INT,    retain,           "50",     1, 1024, "number of epochs whose imagined rollouts are kept") \
    X(CHOICE, forget,           "epochs", "epochs|steps", , "imagined data is dropped by whole epochs (the paper), or first in, first out once the buffer is full (original MBPO)") \
    X(REAL,   real_ratio,       "0",      0, 1,   "share of recorded steps in a batch")             \
    X(BOOL,   reset,            "false",  0, 1,   "empty the imagined data before each simulation")

#define OPC_EVAL_FIELDS(X)                                                                          \
    X(INT,    episodes,         "5",      1, 1e4, "episodes of an evaluation, without exploration", "n_eval_episodes") \
    X(INT,    every,            "1",      1, 1e6, "epochs from one evaluation to the next")

#define OPC_RECORD_FIELDS(X)                                                                        \
    X(INT,    snapshots,        "0",      0, 1e6, "save policy and model to snapshots/ every this many epochs; 0: never") \
    X(BOOL,   tensorboard,      "false",  0, 1,   "also write metrics.csv as a TensorBoard event file, events.out.tfevents.opc; changes no result") \
    X(BOOL,   json_lines,       "false",  0, 1,   "also write metrics.csv as JSON lines, metrics.jsonl; changes no result")
/* clang-format on */

/* opc.reference_terminal */
enum { OPC_REFERENCE_CONTINUE, OPC_REFERENCE_TERMINAL, OPC_REFERENCE_DROP };

struct opc_train_config {
    OPC_TRAIN_FIELDS(OPC_MEMBER)
};
struct opc_env_config {
    OPC_ENV_FIELDS(OPC_MEMBER)
};
struct opc_opc_config {
    OPC_OPC_FIELDS(OPC_MEMBER)
};
struct opc_data_config {
    OPC_DATA_FIELDS(OPC_MEMBER)
};
struct opc_eval_config {
    OPC_EVAL_FIELDS(OPC_MEMBER)
};
struct opc_record_config {
    OPC_RECORD_FIELDS(OPC_MEMBER)
};

enum { OPC_AGENT_ALIGN = 16, OPC_AGENT_BYTES = 8192 };

struct opc_values {
    struct opc_train_config train;
    struct opc_env_config env;
    struct opc_opc_config opc;
    struct opc_data_config data;
    struct opc_ensemble_config model;
    struct opc_eval_config eval;
    struct opc_record_config record;
    /* The settings of all agents, one after the other: opc_values_agent finds them. */
    _Alignas(OPC_AGENT_ALIGN) unsigned char agents[OPC_AGENT_BYTES];
};

struct opc_sources; /* config_file.c */

struct opc_config {
    struct opc_values set;    /* the resolved settings */
    struct opc_sources *from; /* every assignment that led to them */
};

enum { OPC_PARTS_MAX = 40 };
/* The sections with their place in `values`, in the order in which they are printed; returns how
 * many there are. */
int opc_config_parts(struct opc_values *values, struct opc_part out[OPC_PARTS_MAX]);
/* The settings of agent number i (opc_agent_type); NULL: it has none. */
const void *opc_values_agent(const struct opc_values *, int i);
/* The field called "section.name" and the struct it is in; NULL, with the reason in err, if there
 * is none. section may be NULL. */
const struct opc_field *opc_config_field(struct opc_values *, const char *key, void **section,
                                         struct opc_err *err);

enum { OPC_KEY = 128 };
/* The name under which a setting is printed, "section.name", for any name under which it is read;
 * false: there is no such setting. */
bool opc_config_key(const char *key, char out[OPC_KEY]);
/* A setting of one agent that is now a setting for all of them: "model.reward" for "slbo.reward",
 * which counts only in runs of that agent (*agent is its name; may be NULL). NULL: the key is none
 * of these. Files of older runs have them, also runs of other agents. */
const char *opc_config_moved(const char *key, const char **agent);

/* ---- sources: config_file.c ------------------------------------------------------------------ */

int opc_sources_create(struct opc_sources **out, struct opc_err *err);
void opc_sources_destroy(struct opc_sources *);
/* Reads a file and what it includes; a failure leaves the sources unusable. The config.yaml of a
 * run directory means what it meant to the run, also where a default was another one then. */
int opc_sources_read(struct opc_sources *, const char *path, struct opc_err *err);
/* The same from memory; `name` is for messages, and included files are looked for next to it. */
int opc_sources_parse(struct opc_sources *, const char *name, const char *text, size_t n,
                      struct opc_err *err);
/* Adds a setting after all others, so that it wins over them. */
int opc_sources_add(struct opc_sources *, const char *key, const char *text, struct opc_err *err);
void opc_sources_drop_last(struct opc_sources *);
/* Adds the settings of a map in the file `path`, after all others, and then its cells (`when`);
 * `skip` says which keys are not settings. */
int opc_sources_add_map(struct opc_sources *, const char *path, const struct opc_yaml *map,
                        bool (*skip)(const char *key), struct opc_err *err);
int opc_sources_count(const struct opc_sources *); /* settings so far, those of cells included */
/* Where the settings from number `from` on, those of cells not counted, set `key`: "file:line", or
 * "" for opc_sources_add; NULL: they do not. */
const char *opc_sources_sets(const struct opc_sources *, int from, const char *key);
/* Defaults, then everything in order, with the `when` cells that apply. */
int opc_sources_resolve(const struct opc_sources *, struct opc_values *, struct opc_err *err);
/* Puts "file:line" before a message about settings that do not fit each other: where the last of
 * err->settings was set. If opc_sources_add set it, there is no line to name. Returns OPC_EUSER. */
int opc_sources_locate(const struct opc_sources *, struct opc_err *err);
/* OPC_EUSER if the file leaves a choice: `vary` names a setting that no opc_sources_add settled. */
int opc_sources_settled(const struct opc_sources *, struct opc_err *err);
/* The node under vary, skip, runs, title, figure, probe, tiers or search, of the last file that has
 * it. The sweep and the study interpret them; NULL: no file has it. */
const struct opc_yaml *opc_sources_extra(const struct opc_sources *, const char *key);
const struct opc_yaml *opc_sources_extra_in(const struct opc_sources *, const char *key,
                                            const char **path); /* and which file that is */

/* Conditions, as cells have them: `key: pattern` or `key: [patterns]`. The first function checks
 * one of the file `path`, the second tells whether it holds for these values. */
int opc_sources_check_pattern(struct opc_sources *, const char *path, const struct opc_yaml *,
                              struct opc_err *err);
int opc_config_matches(struct opc_values *, const char *key, const struct opc_yaml *patterns,
                       bool *out, struct opc_err *err);

/* ---- what follows from the settings ---------------------------------------------------------- */

static inline const struct opc_transition_type *opc_transition_of(const struct opc_values *v)
{
    return opc_transition_type(v->opc.transition);
}
static inline const struct opc_agent_type *opc_agent_of(const struct opc_values *v)
{
    return opc_agent_type(v->train.agent);
}
/* Does the agent plan its actions, instead of learning from steps or trajectories? Then nothing is
 * simulated in advance and nothing imagined is kept. */
static inline bool opc_plans(const struct opc_values *v)
{
    return !(opc_agent_of(v)->needs & (OPC_NEEDS_STEPS | OPC_NEEDS_TRAJECTORIES));
}
/* Do some rollouts start outside the reference window? A planner keeps to it. */
static inline bool opc_mixes_past(const struct opc_values *v)
{
    return v->opc.past_ratio > 0 && v->opc.reference_epochs > 0 && !opc_plans(v);
}
/* What the paper calls such a run: OPC, MBPO(*), MBPO, SAC, PPO, STEVE ... */
const char *opc_method_label(const struct opc_values *);
/* The colour of its curves, 0xRRGGBB; 0: it has none. */
unsigned opc_method_colour(const struct opc_values *);
/* train.fit_every and its like, where 0 stands for once an epoch. */
static inline int opc_every(const struct opc_values *v, int every)
{
    return every ? every : v->train.steps_per_epoch;
}
/* Gradient steps of one improvement; as a double also where they are too many for an int. */
int opc_updates(const struct opc_values *);
double opc_updates_exactly(const struct opc_values *);
/* Fills in what follows from files that the settings name: train.prefill becomes a path from the
 * root, and train.prefill_checksum that of the file, if it is empty; env.directory becomes the
 * working directory, if it is empty and the task's name counts from there. Without such files it
 * does nothing. */
int opc_values_settle(struct opc_values *, struct opc_err *err);
enum { OPC_TASK_NAME = OPC_LONG_TEXT_SIZE + OPC_TEXT_SIZE + 1 };
/* The name under which the task is opened: env.name, or for a plugin with a relative path that path
 * from env.directory, where this is another directory and the file is not missing in it only.
 * Returns `out`. */
const char *opc_values_task(const struct opc_values *, char out[OPC_TASK_NAME]);
/* OPC_EUSER: they do not fit each other; err->settings names those at fault. */
int opc_values_check(const struct opc_values *, struct opc_err *err);
/* Settings that are not at their default and change nothing in such a run: one sentence for each,
 * with what to change (config_idle.c). *next is 0 before the first; false: there is no other. */
enum { OPC_IDLE = 300 };
bool opc_values_idle(const struct opc_values *, int *next, char out[OPC_IDLE]);
/* The share of part k in `all`: shares differ by at most one and add up to `all`. */
int opc_share(int all, int parts, int k);
/* H in an epoch, where epochs count from 0. */
int opc_horizon(const struct opc_values *, int epoch);
int opc_horizon_max(const struct opc_values *);
/* The value of sac.target_entropy = auto on this task; NaN: the agent decides. */
double opc_target_entropy(const char *env_name);
/* May train.epochs be raised later? Not if the agent's learning rate falls to 0 at the end. */
bool opc_config_may_go_on(const struct opc_values *);
/* The identity of the settings: a checksum of all that count, but train.epochs, where they may be
 * raised (config_hash.c). */
uint32_t opc_config_hash(const struct opc_values *);
/* Does the setting count? Those do not that only choose forms in which results are written: a run
 * is the same run with them and without them. */
bool opc_config_counts(const struct opc_section *, const struct opc_field *);
void opc_values_print(const struct opc_values *, struct opc_text *);
/* Sets the given settings, at most 31, from a text that opc_values_print wrote. False: the text has
 * another form or lacks one of them, and has to be read in full (opc_config_load). */
bool opc_values_scan(const char *text, int keys, const char *const *key, struct opc_values *);

#endif
