/* SPDX-License-Identifier: MIT */
/* study/export/export.h - policies and models that leave this program: `opc export`.
 *
 *     struct opc_export export;
 *     opc_export_policy("runs/smoke", &export, &err);
 *     opc_export_write(&export, "policy.onnx", &err);
 *     opc_export_free(&export);
 *
 * What is written is the whole map from the task's units to the task's units: scaling, network,
 * limits of the actions, and a test of itself with results that opc computed. One file for each
 * format: header.c, onnx.c, npz.c (docs/export.md). */
#ifndef OPC_STUDY_EXPORT_H
#define OPC_STUDY_EXPORT_H

#include "base/text.h"
#include "env/assets.h"
#include "num/network.h"
#include "opc/policy.h"
#include "run/trained.h"

enum {
    OPC_EXPORT_TESTS = 16, /* inputs of the self-test */
    /* Exported functions agree with opc within this many ULP of the largest output (2^-23 of it):
     * they add products in another order or with another rounding. */
    OPC_EXPORT_ULPS = 16,
};

struct opc_export {
    bool is_model; /* the dynamics model: [observation, action] to [next observation, reward] */
    char task[OPC_TEXT_SIZE];
    int epoch; /* it was trained for so many */
    int obs, act;
    int inputs, outputs; /* policy: obs, act; model: obs + act, obs + 1 */
    int networks;        /* policy: 1; model: its elites */
    struct opc_network network[OPC_MEMBERS];
    double *low, *high; /* [act] limits of the actions in the task's units */
    double max_change;  /* C header: share of an action's range that it may change by in a step */
    /* [OPC_EXPORT_TESTS][inputs], [OPC_EXPORT_TESTS][outputs] in the task's units; the model's
     * results are the mean over its elites. [outputs]: how far another result may be off. */
    float *test_input, *test_output, *tolerance;
    /* [OPC_EXPORT_TESTS][outputs] log-deviations of elite 0, NULL where there are none; all of them
     * may be off by log_std_tolerance. */
    float *test_log_std, log_std_tolerance;

    struct opc_trained trained; /* what the networks belong to; model is NULL for a policy */
};

/* path: a run directory or a policy.opc. OPC_EUSER: there is no policy, or its agent has no network
 * that can be exported. */
int opc_export_policy(const char *path, struct opc_export *out, struct opc_err *err);
/* The model of a run's newest checkpoint. OPC_EUSER: path is not a run directory, or the run has no
 * model. */
int opc_export_model(const char *path, struct opc_export *out, struct opc_err *err);
void opc_export_free(struct opc_export *);

/* Writes it in the format that the ending of the file's name stands for. */
int opc_export_write(const struct opc_export *, const char *file, struct opc_err *err);
/* The endings, ".h" first; NULL after the last. */
const char *opc_export_ending(int i);

/* ---- the formats: each appends the content of a file ----------------------------------------- */

/* name: what the functions are called, a C identifier. */
int opc_export_header(const struct opc_export *, const char *name, struct opc_text *out,
                      struct opc_err *err);
int opc_export_onnx(const struct opc_export *, const char *name, struct opc_text *out,
                    struct opc_err *err);
int opc_export_npz(const struct opc_export *, const char *name, struct opc_text *out,
                   struct opc_err *err);

/* ---- what the formats share: export.c -------------------------------------------------------- */

enum opc_limit_value {
    OPC_LIMIT_LOW,
    OPC_LIMIT_HIGH,
    OPC_LIMIT_CENTRE,       /* (low + high) / 2 */
    OPC_LIMIT_HALF,         /* (high - low) / 2: action = centre + half a, a in [-1, 1] */
    OPC_LIMIT_INVERSE_HALF, /* and back */
};
/* One of the numbers that scale action k, computed in double and rounded once. */
float opc_export_limit(const struct opc_export *, enum opc_limit_value, int k);
/* The name of an activation as it is written: "linear", "relu", "tanh", "swish". */
const char *opc_export_activation(enum opc_activation);
/* The activation after layer l, the squashing of the last one included. */
enum opc_activation opc_export_activation_of(const struct opc_network *, int l);
/* One line about what was exported, for comments and metadata. */
void opc_export_about(const struct opc_export *, struct opc_text *);

extern const struct opc_asset opc_export_assets[]; /* exported.h, by cmake/embed.cmake */

#endif
