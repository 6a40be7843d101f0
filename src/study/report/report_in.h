/* SPDX-License-Identifier: MIT */
/* study/report/report_in.h - between the files that make a report. */
#ifndef OPC_STUDY_REPORT_IN_H
#define OPC_STUDY_REPORT_IN_H

#include "env/assets.h"
#include "study/exhibit/exhibit.h"

extern const struct opc_asset opc_report_assets[]; /* report.css, by cmake/embed.cmake */

/* Exhibits in the order of a paper: fig1a, fig1b, fig2, fig10, table1, theory, ilc, and others
 * behind them. Numbers in names count as numbers. */
int opc_exhibit_order(const char *name, const char *other);

struct opc_exhibits {
    int n;
    struct opc_exhibit_read **at; /* in that order; with the same name the higher tier is first */
    int left_out;                 /* .json files that are something else */
};

/* What is in the directories and one level below. A run's directory is not looked into, and a file
 * that is reached twice counts once. */
int opc_exhibits_find(int dirs, char *const *dir, struct opc_exhibits *out, struct opc_err *err);
void opc_exhibits_free(struct opc_exhibits *); /* leaves an empty one */

/* An exhibit's place in the page. */
struct opc_report_card {
    const struct opc_exhibit_read *exhibit;
    char label[80];  /* "Figure 2" */
    char anchor[80]; /* its id, unique in the page and without a point: ids in pictures have one */
    bool ambiguous;  /* another exhibit has its name and its tier */
    int claims[OPC_UNDECIDED + 1];
    int missing;
};

/* Appends the exhibit; a picture or table that cannot be read is marked there, logged and counted
 * in card->missing. *pictures counts over the whole page: it makes ids unique. */
int opc_report_exhibit(struct opc_text *, struct opc_report_card *, int *pictures,
                       struct opc_err *err);
/* "supported" with its sign and colour; with a count in front unless n is negative. */
void opc_report_verdict(struct opc_text *, enum opc_verdict, int n);

#endif
