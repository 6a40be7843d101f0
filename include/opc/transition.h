/* SPDX-License-Identifier: MIT */
/* opc/transition.h - the three transition models of the paper.
 *
 *     replay     eq. 3   s' = s_ref'                                  (and the recorded action)
 *     learned    eq. 2   s' ~ p~(. | s, a)
 *     corrected  eq. 5   s' = s_ref' + f(s, a) - f(s_ref, a_ref)
 *
 * The reward is predicted as one more column of the next state, so eq. 5 applies to it unchanged
 * (opc.correct_reward decides). */
#ifndef OPC_TRANSITION_H
#define OPC_TRANSITION_H

#include "opc/episodes.h"
#include "opc/mem.h"
#include "opc/predictor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n rows advancing together, each beside step `time` of recorded episode `episode`. */
struct opc_walk {
    int n;
    const int *episode, *time, *elite; /* [n] */
    const float *state;                /* [n][obs] */
    float *action;                     /* [n][act]; replay overwrites it with the recorded one */
    float *next, *reward;              /* [n][obs], [n] results */
    struct opc_rng *rng;               /* [n] one stream per row; only learned draws from it */
    float *work;                       /* [n][obs + 1] scratch */
};

struct opc_transition;
typedef void opc_step_fn(const struct opc_transition *, struct opc_walk *, struct opc_pool *);
OPC_API opc_step_fn opc_step_replay, opc_step_learned, opc_step_corrected; /* eq. 3, 2, 5 */

struct opc_transition {
    opc_step_fn *step;
    const struct opc_episodes *past;
    const struct opc_predictor *model; /* replay needs none */
    int obs, act;
    bool beside;         /* a recorded step is needed for every step: replay and corrected */
    bool correct_reward; /* eq. 5 for the reward, too; otherwise the model's prediction */
    bool sample;         /* learned: draw from the Gaussian, or take its mean */
    /* The reference window: rollouts start in, and walk beside, recorded episodes from this number
     * on. 0 (as made): all of the past. Call refresh after changing it. */
    int first_episode;
    /* f(s_ref, a_ref) of every step of the window and elite, [elites][room][obs + 1]; the
     * predictions and not the residuals, because adding a residual rounds, while
     * s_ref' + (f - f_ref) stays exact on-policy. */
    float *f_ref;
    int room;             /* steps the table can hold */
    int first, filled;    /* recorded steps first .. first + filled - 1 are in it */
    float *s_ref, *a_ref; /* what refresh works on, a piece at a time */
    int *elite;
};

/* name: replay, learned or corrected. `steps` is the most the window will hold. correct_reward and
 * sample start as true. */
OPC_API int opc_transition_make(const char *name, const struct opc_episodes *past,
                                const struct opc_predictor *model, int steps,
                                struct opc_transition *out, struct opc_err *err);
OPC_API void opc_transition_free(struct opc_transition *); /* what make took */
/* The number of the window's first recorded step, and how many steps there are from it on. */
OPC_API int opc_transition_window(const struct opc_transition *, int *first);
/* Fills f_ref; after each fit, and when the past has grown or the window has moved. Does nothing
 * for the other two. */
OPC_API int opc_transition_refresh(struct opc_transition *, struct opc_pool *, struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
