/* SPDX-License-Identifier: MIT */
/* src/opc/walk.h - rollouts that advance together, each along its recorded reference.
 *
 * A row is one rollout under way. Every rollout of a policy by eq. 2, 3 or 5 uses this loop:
 * Algorithm 2 (opc/algorithm2.h), rollouts that are kept whole (opc/branches.h) and `opc bench
 * rollout`. The caller says where the rows start, and takes from each step what it wants:
 *
 *     rows->n = ...; and of each row its episode, time, rng and, if it has one, noise
 *     for (opc_walk_start(&plan, rows); rows->n > 0; opc_walk_drop_ended(rows)) {
 *         opc_walk_step(&plan, rows);
 *         ... rows->state, action, reward, next, end ...
 *     }
 *
 * A row draws from its own streams alone and always in the same order: its elite, its action, the
 * noise of eq. 2. So where it goes depends neither on the number of threads nor on the other rows.
 * Every recorded result depends on that order. */
#ifndef OPC_WALK_H
#define OPC_WALK_H

#include "opc/limits.h"
#include "opc/rollout.h"
#include "opc/transition_type.h"

/* How rows advance and when they end. Members that are false or NULL give Algorithm 2. */
struct opc_walk_plan {
    const struct opc_transition *transition;
    opc_act_fn *act; /* replay does not ask it */
    void *act_ctx;
    opc_terminal_fn *terminal; /* NULL: never */
    void *terminal_ctx;
    opc_terminal_fn *refuse; /* steps that are not to be used; NULL: none */
    void *refuse_ctx;
    bool refuse_not_finite;   /* refuse also steps whose s' or reward is not finite */
    struct opc_limits limits; /* refuse also steps beyond these */
    bool end_with_reference;  /* also by eq. 2, which needs no recorded step to go on */
    bool elite_per_rollout;   /* otherwise one is drawn for each step */
    int only_elite; /* k > 0: elite k - 1 predicts every step, and none is drawn; 0: they are drawn
                     */
    int horizon;    /* H */
    struct opc_pool *pool; /* may be NULL */
};

/* Rows 0 .. n-1 are under way. They keep their order when others leave, but not their places:
 * `start` is the row's place at the start. */
struct opc_rows {
    int obs, act, capacity;
    int n;
    int h;                 /* steps they have taken, all alike */
    int *start;            /* [capacity] */
    int *episode, *time;   /* [capacity] the row's reference: a recorded step */
    int *elite;            /* [capacity] which of the ensemble answers */
    struct opc_rng *rng;   /* [capacity] for elites and actions; without `noise` for eq. 2, too */
    struct opc_rng *noise; /* [capacity] for eq. 2; NULL: `rng` serves it, too */
    float *state;          /* [capacity][obs] s */
    float *action;         /* [capacity][act] a */
    float *next;           /* [capacity][obs] s' */
    float *reward;         /* [capacity] */
    enum opc_end *end;     /* [capacity] why it ends with this step */
    /* scratch of opc_walk_step */
    float *work;              /* [capacity][obs + 1] */
    bool *terminal, *refused; /* [capacity] what the plan's functions answered */
};

/* own_noise: eq. 2 draws from streams of its own. Then rollouts by two transition models see the
 * same noise of the policy, although only one of the models draws. */
int opc_rows_create(int obs, int act, int capacity, bool own_noise, struct opc_rows **out,
                    struct opc_err *err);
void opc_rows_destroy(struct opc_rows *);               /* NULL is fine */
size_t opc_rows_need(int obs, int act, int capacity);   /* bytes, without noise */
bool opc_rows_finite(const struct opc_rows *, int row); /* its s' and reward are */
/* True if a rollout that ends for this reason, or goes on, has the step it has just taken. */
static inline bool opc_end_keeps_step(enum opc_end end)
{
    return end >= OPC_END_TERMINAL;
}
/* True if the row's reference is the last step of its episode; and if that one ended in a terminal
 * state. */
bool opc_rows_reference_ends(const struct opc_rows *, int row, const struct opc_episodes *past);
bool opc_rows_reference_terminal(const struct opc_rows *, int row, const struct opc_episodes *past);

/* Rows done by one thread in one go; for the caller's own passes over them. */
enum { OPC_WALK_CHUNK = 512 };

/* Puts each row in the state of its reference, and draws its elite if it keeps one that the plan
 * does not name. */
void opc_walk_start(const struct opc_walk_plan *, struct opc_rows *);
/* One step: a ~ pi(. | s), s' and the reward by the transition model, and rows->end. Called again
 * without drop_ended, the rows take another step from the same s. */
void opc_walk_step(const struct opc_walk_plan *, struct opc_rows *);
/* s = s' and the next reference for the rows that go on; the others leave. */
void opc_walk_drop_ended(struct opc_rows *);

#endif
