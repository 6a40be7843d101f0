/* SPDX-License-Identifier: MIT */
/* study/curves/learning.h - scores of the runs in a figure of learning curves, by panel and
 * line, and claims about them. Shared by the files learning_*.c; settings_table.c reads its
 * maps with opc_learning_keys. */
#ifndef OPC_STUDY_LEARNING_H
#define OPC_STUDY_LEARNING_H

#include "num/stats.h"
#include "run/config/yaml.h"
#include "study/curves/curves.h"
#include "study/curves/published.h"
#include "study/exhibit/exhibit.h"

/* What lines or panels a claim is about: those that one of the globs matches; none: all. */
enum { OPC_GLOBS = 16 };
struct opc_globs {
    int n;
    const char *at[OPC_GLOBS];
};

/* The scores, with scratch for comparing two sides. */
struct opc_learning {
    struct opc_curves *curves; /* owned */
    int lines, panels;
    const char **line, **label; /* [lines] as in struct opc_curve_group */
    int *n;                     /* [lines][panels] runs */
    double **end;               /* [lines][panels][n] score of each run, ascending; NULL: none */
    double *score;              /* [runs of the curves] the same by run; NaN: it has none */
    /* Scratch for the two sides of a comparison; tasks is the larger of lines and panels. */
    int tasks, *count;     /* [2][tasks] */
    const double **column; /* [2][tasks] */
    uint64_t seed;
    /* Runs that are not complete: those that a claim needs, so that it is not decided, and all. */
    int missing, absents;
    struct opc_learning_absent {
        struct opc_curve_run run; /* panel and title; it has no directory and no values */
        char line[128], *label;   /* as above; the label is what it would be among all lines */
        bool meant;               /* the claim that is judged needs it */
    } * absent;                   /* [absents] which they are; NULL: not known */
};

/* Sorts the scores of the curves' runs by line and panel. Takes the curves over, also after a
 * failure. */
int opc_learning_make(struct opc_curves *, uint64_t seed, struct opc_learning *out,
                      struct opc_err *err);
void opc_learning_free(struct opc_learning *); /* also one that was made only in part */
/* The same curves and missing runs, which stay the original's, with the scores of runs at x, see
 * opc_curve_score. opc_learning_free_scores frees it. */
int opc_learning_at(const struct opc_learning *, double x, struct opc_learning *out,
                    struct opc_err *err);
void opc_learning_free_scores(struct opc_learning *);
/* Notes which runs are missing: n of these settings, by the plan of the curves. titles and labels:
 * of panels and lines, in place of what is made of their settings; NULL: none. */
int opc_learning_miss(struct opc_learning *, int n, const struct opc_values *const *set,
                      const struct opc_curves_plan *, const struct opc_yaml *titles,
                      const struct opc_yaml *labels, struct opc_err *err);

/* The scores of a line in every panel, or only in panels that are meant (NULL: all). side 0 or 1:
 * which scratch to use; the result lives until that side is used again. */
struct opc_scores opc_learning_scores(const struct opc_learning *, int line,
                                      const struct opc_globs *panel, int side);
int opc_learning_find(const struct opc_learning *, const char *line); /* -1: not found */

/* Claims are a list under figure.claims, NULL if there is none:
 *
 *   - {text: "...", better: corrected, worse: learned, panel: ["bullet:*"]}
 *   - {text: "...", solves: corrected, level: 990}
 *   - {text: "...", above: "[10]", below: "[1]", line: "corrected*"}   two panels, line by line
 *   - {text: "...", alike: [corrected, learned], margin: 0.15, panel: "mujoco:*"}
 *   - {text: "...", gain: [[20000, 40000], [100000, 200000]]}          panels; the first is larger
 *   - {text: "...", best: ["corrected*", "learned*"]}                  over settings: the best
 *   - {text: "...", spread: ["corrected*", "learned*"]}                and the smaller deviation
 *
 * Each may have at: 20000, a value of the x-axis, the column `over`: runs are judged by what
 * they have there. */
int opc_learning_claims_check(const struct opc_yaml *list, struct opc_err *err);
int opc_learning_claims(const struct opc_learning *, const struct opc_yaml *list, const char *over,
                        struct opc_exhibit *, struct opc_err *err);

/* Refuses a node that is not a map, and a key that is not among `names` (NULL at the end). */
int opc_learning_keys(const struct opc_yaml *map, const char *what, const char *const *names,
                      struct opc_err *err);

/* The map figure.published (learning_published.c), NULL if there is none. The second function puts
 * the curves into by_panel, [panels] of NULL, also when it fails; the caller frees each. */
int opc_learning_published_check(const struct opc_yaml *map, const char *of, const char *over,
                                 struct opc_err *err);
int opc_learning_published(const struct opc_yaml *map, const char *folder,
                           const struct opc_curves *, struct opc_published **by_panel,
                           struct opc_exhibit *, struct opc_err *err);

#endif
