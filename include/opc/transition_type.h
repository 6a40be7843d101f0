/* SPDX-License-Identifier: MIT */
/* opc/transition_type.h - what a transition model is made of, for authors of one.
 *
 * Programs that use transition models need opc/transition.h alone. A new model is a constant table
 * of functions, struct opc_transition_type, and one line in the list of src/opc/transition.c;
 * examples/extending/blended.c is one, docs/extending.md explains it. The structs here belong to
 * the source tree a model is compiled in: they have no size members and may change with it. */
#ifndef OPC_TRANSITION_TYPE_H
#define OPC_TRANSITION_TYPE_H

#include "opc/mem.h"
#include "opc/transition.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n rows advancing together, each along step `time` of recorded episode `episode`. */
struct opc_walk {
    int n;
    const int *episode, *time, *elite; /* [n] */
    const float *state;                /* [n][obs] */
    float *action;                     /* [n][act]; replay overwrites it with the recorded one */
    float *next, *reward;              /* [n][obs], [n] results */
    struct opc_rng *rng;               /* [n] one stream per row; only learned draws from it */
    float *work;                       /* [n][obs + 1] scratch */
};

/* What a transition model is made of: an entry of the table in src/opc/transition.c. */
struct opc_transition_type {
    const char *name;     /* as written after opc.transition in a file */
    const char *equation; /* of the paper */
    /* What the paper calls learning with it, in its own loop and in that of the original MBPO.
     * NULL: it is called by its agent. */
    const char *label, *original_label;
    unsigned colour;      /* of its curves, 0xRRGGBB; 0: that of its agent */
    bool needs_model;     /* it asks a predictor */
    bool needs_reference; /* every step walks along a recorded one, and ends where that ends */
    bool replays;         /* the step is the recorded one: its action, state, reward and end */
    /* The step adds f(s, a) - f(s_ref, a_ref) to a recorded one: it leaves f(s, a) of the row's
     * elite in work, and refresh fills the table f_ref. Then the elites are compared by what they
     * add (opc.max_disagreement), otherwise by f(s, a) alone. */
    bool corrects;
    void (*step)(const struct opc_transition *, struct opc_walk *, struct opc_pool *);
    /* Optional; NULL: it keeps nothing. What it takes for a window of this many steps is freed by
     * opc_transition_destroy; bytes says how much that is for rows of this many floats. */
    int (*prepare)(struct opc_transition *, int steps, struct opc_err *err);
    size_t (*bytes)(int steps, int obs, int act, int elites);
    int (*refresh)(struct opc_transition *, struct opc_pool *, struct opc_err *err);
};

struct opc_transition {
    const struct opc_transition_type *type;
    const struct opc_episodes *past;
    const struct opc_predictor *model; /* NULL where none is needed */
    int obs, act;
    bool correct_reward;   /* eq. 5 for the reward, too; otherwise the model's prediction */
    bool sample;           /* learned: draw from the Gaussian, or take its mean */
    opc_reward_fn *reward; /* replaces the rewards of `step`; NULL: they stay */
    void *reward_ctx;
    int first_episode; /* of the reference window */
    /* f(s_ref, a_ref) of every step of the window and elite, [elites][capacity][obs + 1]; the
     * predictions and not the residuals, because adding a residual rounds, while
     * s_ref' + (f - f_ref) stays exact on-policy. */
    float *f_ref;
    int capacity;         /* steps the table can hold */
    int first, filled;    /* recorded steps first .. first + filled - 1 are in it */
    float *s_ref, *a_ref; /* what refresh works on, a piece at a time */
    int *elite;
};

/* Entry i of the table; NULL after the last. The order never changes: it is part of what a run's
 * settings are recognised by. */
OPC_API const struct opc_transition_type *opc_transition_type(int i);
/* f(s_ref, a_ref) of a recorded step of the window by this elite, [obs + 1], from the table. */
static inline const float *opc_transition_f_ref(const struct opc_transition *tr, int episode,
                                                int time, int elite)
{
    const int step = opc_episodes_first(tr->past, episode) + time;
    const size_t row = (size_t)elite * (size_t)tr->capacity + (size_t)(step - tr->first);
    return tr->f_ref + row * ((size_t)tr->obs + 1);
}
/* Moves all rows of the walk by one step: fills next and reward, and with replay the actions. */
OPC_API void opc_transition_step(const struct opc_transition *, struct opc_walk *,
                                 struct opc_pool *);

#ifdef __cplusplus
}
#endif
#endif
