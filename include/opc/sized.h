/* SPDX-License-Identifier: MIT */
/* opc/sized.h - structs that can grow without breaking programs compiled before they did.
 *
 * Every plan, every set of options and every report that a program allocates and hands to a
 * function starts with its own size:
 *
 *     struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = "runs/1"};
 *
 * A later version of the library may append members. It then knows by the size that the caller has
 * never heard of them, reads them as 0 (which always means "as before") and does not write them. A
 * size that no version ever had, and a newer struct whose extra members are not 0, are refused
 * with OPC_EUSER, so a forgotten size is found by the first call.
 *
 * Small values with a fixed meaning have no size and never change: opc_err, opc_rng, opc_outcome,
 * opc_step, opc_path, opc_arena, opc_block. docs/api.md says why. */
#ifndef OPC_SIZED_H
#define OPC_SIZED_H

/* The first entry of the braces that initialise such a struct. In C++ before C++20, which lacks
 * designators, write `opc_train_plan plan = {}; plan.size = sizeof plan;`. */
#define OPC_SIZED(type) .size = sizeof(type)

#endif
