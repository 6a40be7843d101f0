/* SPDX-License-Identifier: MIT */
/* opc/transition.h - the three transition models of the paper.
 *
 *     replay     eq. 3   s' = s_ref'                                  (and the recorded action)
 *     learned    eq. 2   s' ~ p~(. | s, a)
 *     corrected  eq. 5   s' = s_ref' + f(s, a) - f(s_ref, a_ref)
 *
 * A transition model is made of the recorded past and a fitted dynamics model:
 *
 *     const struct opc_transition_options options = {
 *         OPC_SIZED(struct opc_transition_options), .name = "corrected", .past = past,
 *         .model = model};
 *     opc_transition_create(&options, &transition, &err);
 *     opc_transition_refresh(transition, NULL, &err);
 *
 * opc/rollout.h then follows a policy through it. The reward is predicted as one more column of the
 * next state, so eq. 5 applies to it unchanged (unless reward_by_model is set). A transition model
 * of your own is described in opc/transition_type.h. */
#ifndef OPC_TRANSITION_H
#define OPC_TRANSITION_H

#include "opc/episodes.h"
#include "opc/predictor.h"
#include "opc/sized.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rewards of n transitions, where they are known: s, next [n][obs], a [n][act], out [n]. Many
 * threads ask. */
typedef void opc_reward_fn(void *ctx, int n, const float *s, const float *a, const float *next,
                           float *out);

struct opc_transition; /* opaque; read by any number of rollouts between two refreshes */

struct opc_transition_options {
    size_t size;      /* of this struct (opc/sized.h) */
    const char *name; /* replay, learned or corrected */
    /* Both are borrowed and must outlive the transition. replay needs no model. */
    const struct opc_episodes *past;
    const struct opc_predictor *model;
    /* The largest number of recorded steps it will have to walk along; 0: as many as are recorded
     * now. Memory for eq. 5 is taken for this many. */
    int steps;
    /* The reference window: rollouts start in, and walk along, recorded episodes from this number
     * on. 0: all of the past. */
    int first_episode;
    int reward_by_model; /* true: corrected takes the reward the model predicts, as it is */
    int mean;            /* true: learned takes the mean of the Gaussian instead of drawing */
    /* Rewards of imagined steps, whatever the model predicts (opc_env_reward answers this for some
     * tasks); NULL: the model's, by the equations above. */
    opc_reward_fn *reward;
    void *reward_ctx;
};

/* Makes a transition model; call opc_transition_refresh before its first use. OPC_EUSER: there is
 * no such name; OPC_EBUG: the model is missing or has other dimensions than the past; OPC_ENOMEM.
 * For opc_transition_destroy. */
OPC_API int opc_transition_create(const struct opc_transition_options *,
                                  struct opc_transition **out, struct opc_err *err);
/* Frees it, but neither past nor model. NULL is fine. */
OPC_API void opc_transition_destroy(struct opc_transition *);

/* Predicts the recorded steps of the window with every elite, which is what eq. 5 compares with;
 * call it after each fit, and when the past has grown or the window has moved. The other two models
 * need nothing and return OPC_OK at once. pool may be NULL. OPC_EBUG: more steps are recorded than
 * the options said. */
OPC_API int opc_transition_refresh(struct opc_transition *, struct opc_pool *, struct opc_err *err);

/* Moves the reference window: it begins with this recorded episode. Refresh afterwards. */
OPC_API void opc_transition_move_window(struct opc_transition *, int first_episode);
/* Returns how many recorded steps the window holds; *first is the number of its first one. */
OPC_API int opc_transition_window(const struct opc_transition *, int *first);

/* The name of transition model i, from 0 on, as in opc.transition of a file; NULL after the last.
 * The order never changes. */
OPC_API const char *opc_transition_name(int i);

#ifdef __cplusplus
}
#endif
#endif
