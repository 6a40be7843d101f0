/* SPDX-License-Identifier: MIT */
/* study/curves/learning_claims.h - a claim as it is written, and what judges it. Shared by
 * learning_claims.c (reads and distributes), learning_duel.c (which side ends above the other),
 * learning_best.c (whose best setting does), learning_contrast.c (differences of interquartile
 * means), learning_words.c (lines and panels in words), learning_missing.c (runs that are missing)
 * and learning_scores.c (what a glob matches).
 */
#ifndef OPC_STUDY_LEARNING_CLAIMS_H
#define OPC_STUDY_LEARNING_CLAIMS_H

#include "study/curves/learning.h"

/* The kinds of claims; KINDS in learning_claims.c has their keys in this order. */
enum opc_claim_kind {
    OPC_CLAIM_LINES,  /* better, worse: two lines, panel by panel */
    OPC_CLAIM_PANELS, /* above, below: two panels, line by line */
    OPC_CLAIM_SOLVES, /* solves, level */
    OPC_CLAIM_ALIKE,  /* alike: [a, b], margin */
    OPC_CLAIM_GAIN,   /* gain: [[from, to], [from, to]]: the first is larger */
    OPC_CLAIM_BEST,   /* best: [a, b]: the best setting of a ends above that of b */
    OPC_CLAIM_SPREAD, /* spread: [a, b]: that of a over its settings is smaller */
    OPC_CLAIM_KINDS
};

struct opc_claim {
    const char *text;
    enum opc_claim_kind kind;
    int number;          /* among the claims of the figure: names its random stream */
    const char *name[4]; /* lines, panels or globs of lines; of gain from, to, from, to */
    struct opc_globs panel, line;
    double level, margin; /* of solves, and of alike */
    double at;            /* on the x-axis; infinity: what runs end with */
};

/* Each judges one kind and adds the claim with its verdict to the exhibit. */
int opc_claim_lines(const struct opc_learning *, const struct opc_claim *, struct opc_exhibit *,
                    struct opc_err *err);
int opc_claim_panels(const struct opc_learning *, const struct opc_claim *, struct opc_exhibit *,
                     struct opc_err *err);
int opc_claim_solves(const struct opc_learning *, const struct opc_claim *, struct opc_exhibit *,
                     struct opc_err *err);
int opc_claim_best(const struct opc_learning *, const struct opc_claim *, struct opc_exhibit *,
                   struct opc_err *err);
int opc_claim_alike(const struct opc_learning *, const struct opc_claim *, struct opc_exhibit *,
                    struct opc_err *err);
int opc_claim_gain(const struct opc_learning *, const struct opc_claim *, struct opc_exhibit *,
                   struct opc_err *err);
int opc_claim_spread(const struct opc_learning *, const struct opc_claim *, struct opc_exhibit *,
                     struct opc_err *err);

/* ---- likeness, also for a test that measures how often its rule decides -----------------------
 */

/* Two lines in one panel, in units of the larger of the two interquartile means. */
struct opc_claim_likeness {
    double iqm[2];
    struct opc_interval difference;
    enum opc_verdict verdict;
    int fewest;
    double seeds; /* that would decide */
};
/* Judges one panel: n[k] runs of line k, whose scores v[k] ascend. */
int opc_claim_compare(const int n[2], const double *const v[2], double margin, struct opc_rng *,
                      struct opc_claim_likeness *out, struct opc_err *err);
/* The verdict over all panels so far and one more: alike in each, or different in one. */
enum opc_verdict opc_claim_join(enum opc_verdict all, enum opc_verdict one);

/* ---- best settings, also for such a test -----------------------------------------------------
 */

/* The runs of a method, setting after setting. */
struct opc_claim_method {
    int settings, seeds, runs;
    const int *first;    /* [settings + 1] the first run of each */
    const int *seed;     /* [runs] 0 .. seeds - 1 */
    const double *score; /* [runs] ascending within a setting */
};

/* What decides whether a ends above b. */
struct opc_claim_odds {
    struct opc_interval p; /* P(a > b) */
    int tasks, fewest;     /* and the runs of a side in a task, at least */
    double chance_above;   /* that chance alone puts all of one side above all of the other */
    double chance;         /* that it puts one as far above as it is; 0: that does not count */
};

struct opc_claim_best {
    int setting[2]; /* that is best over all seeds, and its interquartile mean */
    double iqm[2];
    int runs[2];                /* with the setting that is best over the other seeds */
    struct opc_claim_odds odds; /* p is NaN: there are no such runs of both */
};
int opc_claim_compare_best(const struct opc_claim_method[2], struct opc_rng *,
                           struct opc_claim_best *out, struct opc_err *err);

/* ---- what judges share ----------------------------------------------------------------------- */

enum {
    OPC_CLAIM_FEWEST = 3, /* runs of a line in a panel, before anything is claimed of it */
    OPC_CLAIM_ALONE = 4,  /* the same where one panel has to decide alone */
    OPC_CLAIM_TEXT = 800, /* bytes of a part of a sentence */
};

bool opc_claim_like(const char *glob, const char *name); /* whether a glob matches */
/* Whether one of the globs matches; NULL and none match everything. */
bool opc_claim_means(const struct opc_globs *, const char *name);
int opc_claim_panel(const struct opc_learning *, const char *name); /* `panels`: not there */
/* The random stream of a claim. */
struct opc_rng opc_claim_stream(const struct opc_learning *, const struct opc_claim *);
/* Whether the line has a run; if not, the claim is undecided and says so. */
bool opc_claim_has(const struct opc_learning *, const struct opc_claim *, const char *line,
                   struct opc_exhibit *);
/* The same of lines that a glob matches. */
bool opc_claim_has_like(const struct opc_learning *, const struct opc_claim *, const char *glob,
                        struct opc_exhibit *);

/* learning_duel.c: how often chance alone puts all of n runs above all of m others, and how many
 * runs of each side so many tasks need before that is seldom enough. */
double opc_claim_chance_above(int n, int m);
int opc_claim_min_runs(int tasks);
/* The verdict, and the end of its sentence: why it is undecided, and what would decide it. */
enum opc_verdict opc_claim_decide_odds(const struct opc_learning *, const struct opc_claim_odds *,
                                       char more[2 * OPC_CLAIM_TEXT]);

/* learning_words.c: the label of a line and the title of a panel, also of missing runs; the name
 * where nothing has it.
 */
const char *opc_claim_label(const struct opc_learning *, const char *line);
const char *opc_claim_title(const struct opc_learning *, const char *panel);
/* What a glob of lines means, in the words of the legend: what only their labels begin with, "OPC",
 * or all of them. */
void opc_claim_say_lines(const struct opc_learning *, const char *glob, char out[OPC_CLAIM_TEXT]);
/* The panels that are meant, as the middle of a sentence: " among "Hopper (MuJoCo)""; all: "". */
void opc_claim_say_panels(const struct opc_learning *, const struct opc_globs *,
                          char out[OPC_CLAIM_TEXT]);

/* learning_missing.c: marks the missing runs that a claim is about and counts them; all of them
 * where it is not known which they are. */
int opc_claim_mark_missing(const struct opc_learning *, const struct opc_claim *, bool by_panel);
/* Which they are, as the end of a sentence; "" if there are none. */
void opc_claim_say_missing(const struct opc_learning *, char out[OPC_CLAIM_TEXT]);
/* Why runs cannot decide, as the end of a sentence; "" if they can. `fewest` runs are there where
 * `needed` are needed. */
void opc_claim_say_few(const struct opc_learning *, int fewest, int needed,
                       char out[OPC_CLAIM_TEXT]);

#endif
