/* SPDX-License-Identifier: MIT */
/* study/curves/learning_private.h - how a figure of learning curves is drawn, as the map under
 * `figure` says. Shared by learning_curves.c (reads the map, draws) and learning_tables.c (the
 * numbers). Nobody else includes it. */
#ifndef OPC_STUDY_LEARNING_PRIVATE_H
#define OPC_STUDY_LEARNING_PRIVATE_H

#include "study/curves/learning.h"
#include "study/exhibit/analysis.h"

enum { KEYS = 8 }; /* settings that name a panel or a line, at most */

/* clang-format off */
#define CURVE_FIELDS(X)                                                                            \
    X(TEXT,   of,     "eval_return", 1, 64,  "column of metrics.csv to draw")                      \
    X(TEXT,   over,   "env_steps",   1, 64,  "column of metrics.csv to draw it over, or minutes")   \
    X(INT,    smooth, "5",           1, 999, "average over this many values around each")          \
    X(CHOICE, centre, "median",      "median|mean|iqm", , "statistic over runs that the line shows")                   \
    X(TEXT,   band,   "[25, 75]",    1, 64,  "two percentiles, std, or interval: of the IQM")      \
    X(BOOL,   share,  "false",       0, 1,   "one range of each axis for all panels")
/* clang-format on */
enum { MEDIAN, MEAN, IQM };
struct curve {
    CURVE_FIELDS(OPC_MEMBER)
};

/* The map under `figure`, read and checked. */
struct style {
    struct curve curve;
    const char *panel_key[KEYS], *line_key[KEYS];
    int panel_keys, line_keys;
    int columns; /* panels in a row; 0: not given */
    enum { PERCENTILES, STD, INTERVAL } band;
    double low, high;                                                    /* percentiles */
    const struct opc_yaml *titles, *labels, *notes, *claims, *published; /* NULL: none */
};

/* Adds all tables to the exhibit: scores, curves, comparisons and runs. It also puts the
 * centre and the band that the figure shows into the groups of learning->curves. */
int opc_learning_tables(const struct opc_request *, const struct opc_learning *,
                        const struct style *, struct opc_exhibit *, struct opc_err *err);

#endif
