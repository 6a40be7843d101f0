/* SPDX-License-Identifier: MIT */
/* env/check.h - is this environment fit for training? For authors of new environments, and for
 * ours. */
#ifndef OPC_ENV_CHECK_H
#define OPC_ENV_CHECK_H

#include "env/ticks.h"
#include "opc/env.h"

/* Counts up to the first failure. */
struct opc_env_report {
    int transitions, episodes; /* played with random actions */
    int terminated;            /* of the transitions */
    int rounding;              /* step and terminal disagree, within rounding to float */
    int blurred;               /* they disagree, within the type's blur */
    int unforeseen;            /* step ended the task, of which imagined states know nothing */
    bool repeats;              /* repeatability was tested; false for hardware */
    bool known_reward;         /* the type has a formula for the reward */
    double reward_gap;         /* its largest error, relative to 1 + |reward| */
    double steps_per_second;   /* of these transitions, resets included */
    struct opc_ticks ticks;    /* of hardware */
};

/* Do dimensions, ranges and angles make sense? spec is for the message. */
int opc_env_check_sizes(const struct opc_env *, const char *spec, struct opc_err *err);

struct opc_check_plan {
    uint64_t seed;
    int transitions;            /* random steps to play */
    void (*tell)(double share); /* called often with the share that is done; may be NULL */
    double seconds;             /* it is cut short after this many; 0: never */
    bool brief; /* plays no more than `transitions`, opens nothing and does not test repetition */
};

/* Plays and compares. OPC_EENV, with a message that says what is wrong, when a promise of opc/env.h
 * is not kept; the report holds what was counted until then. */
int opc_env_check(const char *spec, const struct opc_check_plan *, struct opc_env_report *,
                  struct opc_err *err);
/* Do two environments of one task give the same bits? The last part of the check. */
int opc_env_check_repeats(struct opc_env *, struct opc_env *other, const struct opc_check_plan *,
                          struct opc_err *err);
/* The same as opc_env_check with one that is open. */
int opc_env_check_open(struct opc_env *, const struct opc_check_plan *, struct opc_env_report *,
                       struct opc_err *err);

#endif
