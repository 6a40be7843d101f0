/* SPDX-License-Identifier: MIT */
/* tests/transitions.h - transition models in one line, for tests of what they do. */
#ifndef OPC_TESTS_TRANSITIONS_H
#define OPC_TESTS_TRANSITIONS_H

#include "opc/transition_type.h"

static inline int make_transition(const char *name, const struct opc_episodes *past,
                                  const struct opc_predictor *model, int steps,
                                  struct opc_transition **out, struct opc_err *err)
{
    const struct opc_transition_options options = {OPC_SIZED(struct opc_transition_options),
                                                   .name = name, .past = past, .model = model,
                                                   .steps = steps};
    return opc_transition_create(&options, out, err);
}

#endif
