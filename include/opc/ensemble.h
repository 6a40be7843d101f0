/* SPDX-License-Identifier: MIT */
/* opc/ensemble.h - the probabilistic ensemble: several networks, each a Gaussian over
 * [s' - s, reward], trained on its own bootstrap of the recorded steps (Chua et al. 2018 as
 * Janner et al. 2019 use it). It is a predictor (opc/predictor.h), which is how it is fitted, asked
 * and destroyed:
 *
 *     const char *const settings[] = {"members=5", "elites=3", "hidden=[64, 64]",
 *                                     "weight_decay=1e-5", NULL};
 *     const struct opc_ensemble_options options = {
 *         OPC_SIZED(struct opc_ensemble_options), .obs = 4, .act = 1, .settings = settings};
 *     opc_ensemble_create(&options, &model, &err);
 *     opc_predictor_fit(model, n, sa, y, NULL, NULL, &err);
 *     opc_ensemble_save(model, "model.opc", &err);
 *     opc_predictor_destroy(model);
 */
#ifndef OPC_ENSEMBLE_H
#define OPC_ENSEMBLE_H

#include "opc/predictor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct opc_ensemble_options {
    size_t size;  /* of this struct (opc/sized.h) */
    int obs, act; /* dimensions of states and actions */
    /* The number of threads it has scratch memory for; 0: one per processor. With a larger pool it
     * predicts on the calling thread alone. */
    int threads;
    /* "name=value" each, as in the section model of a file, and NULL after the last; `opc config
     * model` explains them. NULL: all defaults. */
    const char *const *settings;
    uint64_t seed; /* names the first weights */
};

/* Makes an ensemble that is not fitted yet. OPC_EUSER: a setting is unknown, out of its range or
 * does not fit the others; OPC_ENOMEM. For opc_predictor_destroy. */
OPC_API int opc_ensemble_create(const struct opc_ensemble_options *, struct opc_predictor **out,
                                struct opc_err *err);

/* Writes the ensemble with its settings to one file, which appears whole or not at all. OPC_EUSER:
 * the predictor is not an ensemble; OPC_EIO: the file cannot be written. */
OPC_API int opc_ensemble_save(const struct opc_predictor *, const char *path, struct opc_err *err);
/* Reads such a file: the ensemble predicts, and goes on learning, as the saved one would have, to
 * the bit. threads is as in the options. OPC_EDAMAGED: the file does not pass its checks;
 * OPC_EUSER: it was made by another version; OPC_EIO. For opc_predictor_destroy. */
OPC_API int opc_ensemble_load(const char *path, int threads, struct opc_predictor **out,
                              struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
