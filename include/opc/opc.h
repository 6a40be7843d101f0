/* SPDX-License-Identifier: MIT */
/* opc/opc.h - everything a program can use. docs/api.md is the guide to these headers, and
 * examples/embed.c and examples/eq5.c are programs to begin with. */
#ifndef OPC_OPC_H
#define OPC_OPC_H

#include "opc/agent.h"
#include "opc/config.h"
#include "opc/ensemble.h"
#include "opc/env.h"
#include "opc/episodes.h"
#include "opc/err.h"
#include "opc/ilc.h"
#include "opc/imagined.h"
#include "opc/log.h"
#include "opc/mem.h"
#include "opc/policy.h"
#include "opc/pool.h"
#include "opc/predictor.h"
#include "opc/rng.h"
#include "opc/rollout.h"
#include "opc/sized.h"
#include "opc/train.h"
#include "opc/transition.h"
#include "opc/version.h"

#endif
