/* SPDX-License-Identifier: MIT */
/* study/example/toy_fields.h - settings of the double integrator, for analyses that use it. */
#ifndef OPC_STUDY_TOY_FIELDS_H
#define OPC_STUDY_TOY_FIELDS_H

#include "base/field.h"
#include "study/example/toy.h"

/* clang-format off */
#define OPC_INTEGRATOR_FIELDS(X)                                                                    \
    X(REALS, A,          "[1, 0.1, 0, 1]",        -100, 100, "s' = A s + B a, row by row")          \
    X(REALS, B,          "[0.005, 0.1]",          -100, 100, "what an action adds")                 \
    X(REALS, delta_a,    "[0, 0, 0.05, -0.03]",   -100, 100, "error of the model's A")              \
    X(REALS, delta_b,    "[0.001, 0.02]",         -100, 100, "error of the model's B")              \
    X(REALS, start,      "[1, 0]",                -100, 100, "position and velocity at first")      \
    X(REALS, policy,     "[-1, -1.5]",            -100, 100, "a = K s made the recordings")         \
    X(REALS, new_policy, "[-0.6, -1.4]",          -100, 100, "the K of off-policy walks")           \
    X(REALS, noise,      "[0.005, 0.05]",         0,    100, "standard deviations of the noise")
/* clang-format on */

/* Reads a struct made from the table above. */
#define OPC_INTEGRATOR_OF(s, out, err)                                                             \
    opc_integrator_read((const struct opc_reals *const[]){&(s)->A, &(s)->B, &(s)->delta_a,         \
                                                          &(s)->delta_b, &(s)->start,              \
                                                          &(s)->policy, &(s)->new_policy,          \
                                                          &(s)->noise},                            \
                        out, err)

struct opc_integrator_set {
    struct opc_integrator in;
    double K_new[2];
};
/* OPC_EUSER names the list that has too few or too many numbers. */
int opc_integrator_read(const struct opc_reals *const list[8], struct opc_integrator_set *out,
                        struct opc_err *err);

#endif
