/* SPDX-License-Identifier: MIT */
/* study/exhibit/analysis.h - analyses turn settings and finished runs into an exhibit.
 *
 * An experiment file names its analysis under `probe:`
 *
 *     probe: {analysis: gradient_field, error: b, cells: 81}
 *
 * and a file with `figure:` and no `probe:` is drawn as learning curves. Each analysis is one
 * struct here and one line in analysis.c's list; `opc repro` finds them by name. */
#ifndef OPC_STUDY_ANALYSIS_H
#define OPC_STUDY_ANALYSIS_H

#include "base/field.h"
#include "base/file.h"
#include "base/pool.h"
#include "run/config/config.h"
#include "run/config/yaml.h"
#include "study/exhibit/exhibit.h"

/* Everything an analysis is given. */
struct opc_request {
    /* The map under `probe`, with the tier's changes applied; NULL: none. */
    const struct opc_yaml *ask;
    const struct opc_yaml *figure; /* the map under `figure`; NULL: none */
    int runs;                      /* directories of complete runs, in the order of the sweep */
    char *const *run;              /* [runs] */
    int missing;                   /* runs that belong to them and are not complete */
    /* [missing] the settings of those; NULL: not known, so that any claim may need them. */
    const struct opc_values *const *absent;
    /* [runs + missing] the settings of all, in the order of the sweep; NULL: not known. */
    const struct opc_values *const *planned;
    const char *folder; /* of the experiment file, which paths in it start from; NULL: none */
    struct opc_pool *pool;
    uint64_t seed; /* of the random numbers that the analysis draws itself */
    void (*progress)(void *ctx, double done, const char *what); /* 0 .. 1; may be NULL */
    void *ctx;
    /* Asked by an analysis that can end early with what it has (probe_fit); may be NULL. */
    bool (*stop)(void *ctx);
};

/* One analysis. check looks at `figure` before runs are made; make does the work. */
struct opc_analysis {
    const char *name;
    const char *help;                   /* one line */
    const struct opc_section *settings; /* of the map under `probe`, without `analysis`; or NULL */
    int (*check)(const struct opc_yaml *figure,
                 struct opc_err *err); /* NULL: `figure` is not used */
    int (*make)(const struct opc_request *, const void *settings, struct opc_exhibit *,
                struct opc_err *err);
    bool needs_models; /* of runs: their policies and models, which tables of a merge do not have */
};

const struct opc_analysis *opc_analysis_find(const char *name, struct opc_err *err);
extern const struct opc_analysis *const opc_analyses[]; /* NULL at the end */
extern const struct opc_analysis opc_learning_curves;   /* of runs, as `figure` says */
/* Of the paper's examples and bounds: */
extern const struct opc_analysis opc_correction_sketch, opc_state_distribution, opc_gradient_field,
    opc_return_curves, opc_reference_field, opc_gradient_angle, opc_theory;
/* Of Figures 13 to 16, and of what the text states about a run's models: */
extern const struct opc_analysis opc_probe_states, opc_probe_trajectories, opc_probe_bound,
    opc_probe_offpolicy, opc_probe_uncertainty, opc_probe_limitation, opc_probe_fit;
extern const struct opc_analysis opc_learning_control; /* of ilc */
extern const struct opc_analysis opc_settings_table;   /* of Table 1 */

/* Sets the defaults, then what a map says. The key `analysis` is skipped, an unknown key is an
 * error that names the nearest. map may be NULL. */
int opc_analysis_fill(const struct opc_section *, const struct opc_yaml *map, void *settings,
                      struct opc_err *err);
/* Checks the maps under `probe` and `figure` (NULL: none), before hours are spent on runs. */
int opc_analysis_check(const struct opc_analysis *, const struct opc_yaml *ask,
                       const struct opc_yaml *figure, struct opc_err *err);
/* Checks the map against the analysis's settings, fills them in and makes the exhibit. */
int opc_analysis_run(const struct opc_analysis *, const struct opc_request *, struct opc_exhibit *,
                     struct opc_err *err);

/* A file that an experiment names: from the folder of the experiment file (NULL: none) or the
 * nearest one above it that has such a file, else as shipped with the program. */
int opc_analysis_path(const char *folder, const char *of, char path[OPC_PATH], struct opc_err *err);

#endif
