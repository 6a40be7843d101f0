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

/* What a transition model is made of: an entry of the table in opc/transition.c. */
struct opc_transition_type {
    const char *name;     /* as written after opc.transition in a file */
    const char *equation; /* of the paper */
    /* What the paper calls learning with it, in its own loop and in that of the original MBPO.
     * NULL: it is called by its agent. */
    const char *label, *original_label;
    unsigned colour;      /* of its curves, 0xRRGGBB; 0: that of its agent */
    bool needs_model;     /* it asks a predictor */
    bool needs_reference; /* every step walks beside a recorded one, and ends where that ends */
    bool replays;         /* the step is the recorded one: its action, state, reward and end */
    void (*step)(const struct opc_transition *, struct opc_walk *, struct opc_pool *);
    /* Optional; NULL: it keeps nothing. What it takes for a window of so many steps is freed by
     * opc_transition_free; bytes says how much that is for rows of so many floats. */
    int (*prepare)(struct opc_transition *, int steps, struct opc_err *err);
    size_t (*bytes)(int steps, int obs, int act, int elites);
    int (*refresh)(struct opc_transition *, struct opc_pool *, struct opc_err *err);
};
/* Entry i of the table; NULL after the last. The order never changes: it is part of what a run's
 * settings are recognised by. */
OPC_API const struct opc_transition_type *opc_transition_type(int i);
OPC_API const char *opc_transition_name(int i); /* NULL after the last */

struct opc_transition {
    const struct opc_transition_type *type;
    const struct opc_episodes *past;
    const struct opc_predictor *model; /* NULL where none is needed */
    int obs, act;
    bool correct_reward; /* eq. 5 for the reward, too; otherwise the model's prediction */
    bool sample;         /* learned: draw from the Gaussian, or take its mean */
    /* The reference window: rollouts start in, and walk beside, recorded episodes from this number
     * on. 0 (as made): all of the past. Call refresh after changing it. */
    int first_episode;
    /* f(s_ref, a_ref) of every step of the window and elite, [elites][room][obs + 1]; the
     * predictions and not the residuals, because adding a residual rounds, while
     * s_ref' + (f - f_ref) stays exact on-policy. */
    float *f_ref;
    int capacity;         /* steps the table can hold */
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
/* Where the rows of the walk go, all at once. */
OPC_API void opc_transition_step(const struct opc_transition *, struct opc_walk *,
                                 struct opc_pool *);
/* The number of the window's first recorded step, and how many steps there are from it on. */
OPC_API int opc_transition_window(const struct opc_transition *, int *first);
/* Fills f_ref; after each fit, and when the past has grown or the window has moved. Does nothing
 * for the other two. */
OPC_API int opc_transition_refresh(struct opc_transition *, struct opc_pool *, struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
