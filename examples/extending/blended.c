/* SPDX-License-Identifier: MIT */
/* A transition model of one file: half of eq. 5's correction,
 *
 *     s' = f(s, a) + 1/2 [ s_ref' - f(s_ref, a_ref) ]
 *
 * With 1 in place of 1/2 it is eq. 5, with 0 the mean of eq. 2.
 *
 * To add it to opc, put this file into src/opc and the line `&opc_blended_type,` into the table of
 * src/opc/transition.c. docs/extending.md explains every part. */
#include "opc/transition_type.h"

#include <string.h>

static void step_blended(const struct opc_transition *tr, struct opc_walk *w, struct opc_pool *pool)
{
    const size_t obs = (size_t)tr->obs;
    for (int i = 0; i < w->n; i++) {
        /* A row at a time, for the sake of brevity: transition.c shows how to predict all at once.
         */
        const struct opc_step ref = opc_episodes_at(tr->past, w->episode[i], w->time[i]);
        const float *s = w->state + (size_t)i * obs, *a = w->action + (size_t)i * (size_t)tr->act;
        float *f_ref = w->work, *next = w->next + (size_t)i * obs;
        opc_predictor_mean(tr->model, 1, ref.state, ref.action, &w->elite[i], f_ref, pool);
        for (size_t k = 0; k < obs; k++)
            next[k] = 0.5f * (ref.next[k] - f_ref[k]);
        w->reward[i] = 0.5f * (ref.reward - f_ref[obs]);
        opc_predictor_mean(tr->model, 1, s, a, &w->elite[i], f_ref, pool);
        for (size_t k = 0; k < obs; k++)
            next[k] += f_ref[k];
        w->reward[i] += f_ref[obs];
    }
}

extern const struct opc_transition_type opc_blended_type; /* for the table */
const struct opc_transition_type opc_blended_type = {
    .name = "blended",
    .equation = "between eq. 2 and eq. 5",
    .label = "half-corrected",
    .original_label = "half-corrected",
    .needs_model = true,
    .needs_reference = true,
    .step = step_blended,
};
