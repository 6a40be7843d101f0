/* SPDX-License-Identifier: MIT */
/* study/report/report_private.h - shared by the files that make a report. */
#ifndef OPC_STUDY_REPORT_PRIVATE_H
#define OPC_STUDY_REPORT_PRIVATE_H

#include "env/assets.h"
#include "study/exhibit/exhibit.h"
#include "study/exhibit/table.h"

extern const struct opc_asset opc_report_assets[]; /* report*.css, by cmake/embed.cmake */

/* Order of exhibits as in a paper: fig1a, fig1b, fig2, fig10, table1, theory, ilc, then others.
 * Numbers in names count as numbers. */
int opc_exhibit_order(const char *name, const char *other);

/* All exhibits that were found. */
struct opc_exhibits {
    int n;
    struct opc_exhibit_read **at; /* [n] in that order; of the same name the higher tier first */
    int left_out;                 /* number of other .json files */
};

/* Finds exhibits in the directories and one level below. Run directories are not searched,
 * except for their folder `probe`, and a file that is reached twice counts once. */
int opc_exhibits_find(int dirs, char *const *dir, struct opc_exhibits *out, struct opc_err *err);
void opc_exhibits_free(struct opc_exhibits *); /* leaves an empty list */

/* An exhibit on the page. */
struct opc_report_card {
    const struct opc_exhibit_read *exhibit;
    char label[80];  /* "Figure 2" */
    char anchor[80]; /* its id, unique in the page and without a dot: ids in pictures have one */
    bool ambiguous;  /* another exhibit has the same name and tier */
    int claims[OPC_VERDICT_UNDECIDED + 1];
    int missing; /* files that could not be shown */
};

/* Appends the exhibit. A picture or table that cannot be read is marked there, logged and
 * counted in card->missing. *pictures counts over the whole page and makes ids unique. */
int opc_report_exhibit(struct opc_text *, struct opc_report_card *, int *pictures,
                       struct opc_err *err);
/* Appends the film of the run whose exhibit is in this directory, if it is one of a run that has a
 * film; one that cannot be read is logged. */
int opc_report_film(struct opc_text *, const char *dir, struct opc_err *err);
/* Whether a table is that of the scores of learning curves, and its first rows in fewer columns. */
bool opc_report_is_scores(const struct opc_exhibit_item *, const struct opc_table *);
void opc_report_scores(struct opc_text *, const struct opc_table *, int rows);
/* A badge "incomplete" where runs were missing when the exhibit was made. */
void opc_report_incomplete(struct opc_text *, const struct opc_exhibit_read *);
/* "supported" with its sign and colour; preceded by a count unless n is negative. */
void opc_report_verdict(struct opc_text *, enum opc_verdict, int n);

#endif
