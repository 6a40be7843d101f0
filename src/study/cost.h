/* SPDX-License-Identifier: MIT */
/* study/cost.h - what a run costs before it is started, for `opc repro list`. */
#ifndef OPC_STUDY_COST_H
#define OPC_STUDY_COST_H

#include "run/config/config.h"

/* Seconds of a run on one idle core of the machine of docs/performance.md, computed from its
 * settings: floating-point operations over the rate that `opc bench` measures there. NaN for an
 * agent whose cost nobody has counted (slbo). */
double opc_cost_seconds(const struct opc_values *);

#endif
