/* SPDX-License-Identifier: MIT */
/* opc/rng.h - random numbers from named streams (Philox4x32-10).
 *
 * A stream is a value: (seed, use, epoch, index). Copy it, store it, print it; nothing is shared
 * and nothing needs saving, because a stream can be made again from its name. The 64-bit stream
 * number is packed, not hashed: use (8 bits), epoch (24), index (32), so two different names never
 * meet. Index is the episode, the member, the gradient step or the row; never a thread. */
#ifndef OPC_RNG_H
#define OPC_RNG_H

#include "opc/err.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the numbers are for. The values are part of every recorded result: only append. */
enum opc_use {
    OPC_USE_TEST = 0,
    OPC_USE_INIT,     /* first weights of a network */
    OPC_USE_RESET,    /* the start of an episode */
    OPC_USE_RANDOM,   /* actions of the random phase */
    OPC_USE_EXPLORE,  /* actions of the policy on the real environment */
    OPC_USE_EVAL,     /* resets (and, if asked for, actions) while evaluating */
    OPC_USE_SPLIT,    /* holdout split */
    OPC_USE_FIT,      /* bootstrap and shuffles of a member */
    OPC_USE_START,    /* where imagined rollouts begin */
    OPC_USE_ROLLOUT,  /* a row of an imagined rollout */
    OPC_USE_BATCH,    /* which transitions a gradient step sees */
    OPC_USE_UPDATE,   /* noise inside a gradient step */
    OPC_USE_ENV,      /* noise of a stochastic environment */
    OPC_USE_STUDY,    /* bootstrap intervals, jitter in figures */
    OPC_USE_PROBE,    /* episodes and rollouts that probe a trained run */
    OPC_USE_NOISE,    /* the Gaussian of eq. 2 in opc_imagine */
    OPC_USE_PLAN,     /* a step of a planner, and its candidates */
    OPC_USE_PARTICLE, /* what happens to a candidate in the model */
    OPC_USE_END,      /* recorded states from which is learned where the task ends */
};

struct opc_rng {
    uint64_t seed, stream; /* key, upper half of the counter */
    uint64_t block;        /* lower half: the next block of four words */
    uint32_t word[4];      /* the current block */
    uint32_t left;         /* words of it not yet handed out */
};

/* The stream of that name, at its beginning. epoch must be below 2^24; higher bits are dropped. */
OPC_API struct opc_rng opc_rng_stream(uint64_t seed, enum opc_use use, uint32_t epoch,
                                      uint32_t index);
/* The next 32 random bits. */
OPC_API uint32_t opc_rng_bits(struct opc_rng *);
/* The next n words, in the order opc_rng_bits would give them. */
OPC_API void opc_rng_fill(struct opc_rng *, int n, uint32_t *out);
/* Uniform on [0, 1), with 24 random bits. */
OPC_API float opc_rng_unit(struct opc_rng *);
/* Uniform on [0, 1), with 53 random bits out of two words. */
OPC_API double opc_rng_unit_double(struct opc_rng *);
/* Uniform on 0 .. n-1 without bias (n >= 1). */
OPC_API uint32_t opc_rng_below(struct opc_rng *, uint32_t n);
/* Puts the n items into a random order, each of the n! with the same probability. */
OPC_API void opc_rng_shuffle(struct opc_rng *, int n, int *item);
/* The block function itself: counter and key in, four words out. */
OPC_API void opc_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#ifdef __cplusplus
}
#endif
#endif
