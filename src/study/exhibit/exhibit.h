/* SPDX-License-Identifier: MIT */
/* study/exhibit/exhibit.h - one figure or table of the paper, reproduced: pictures, the numbers
 * behind them, and the paper's claims with what our numbers say about them.
 *
 * An exhibit called fig2 in a directory DIR is the files fig2.json (last, so that it means
 * complete), fig2.svg .pdf .png, fig2.csv, fig2-<part>.svg and so on. fig2.json tells all of them:
 *
 *   {"name": "fig2", "title": "...", "tier": "small", "caption": "...", "version": "0.1.0",
 *    "command": "opc repro fig2 --tier small", "config": "experiments/paper/fig2.yaml as text",
 *    "missing": 0,                                              runs that were not complete
 *    "pictures": [{"file": "fig2", "title": "..."}],            svg, pdf and png exist
 *    "tables":   [{"file": "fig2.csv", "title": "..."}],
 *    "claims":   [{"claim": "...", "measured": "...", "verdict": "supported"}],
 *    "notes":    ["what differs from the paper", ...]}
 */
#ifndef OPC_STUDY_EXHIBIT_H
#define OPC_STUDY_EXHIBIT_H

#include "plot/figure.h"
#include "study/exhibit/table.h"

enum opc_verdict {
    OPC_SUPPORTED,
    OPC_NOT_SUPPORTED,
    OPC_UNDECIDED, /* too few runs, or the intervals overlap */
};

struct opc_exhibit;

struct opc_exhibit_plan {
    const char *dir;  /* made if it is not there */
    const char *name; /* "fig2" */
    const char *title;
    const char *tier;    /* "smoke", "small", "full"; NULL: none */
    const char *caption; /* tier, seeds, versions, how many runs are complete; goes under every
                          * picture */
    const char *command; /* what was typed, without machine paths; NULL: none */
    const char *config;  /* its settings as text; NULL: none */
    int missing;         /* runs that were not complete when it was made */
};

int opc_exhibit_begin(const struct opc_exhibit_plan *, struct opc_exhibit **out,
                      struct opc_err *err);
/* Draws DIR/NAME[-part].svg, .pdf and .png; part NULL: the main one. The caption is put under the
 * figure's own note. In a build without cairo nothing is drawn, and a note says so. */
int opc_exhibit_figure(struct opc_exhibit *, const char *part, const char *title,
                       const struct opc_figure *, struct opc_err *err);
/* Writes DIR/NAME[-part].csv; takes nothing over. */
int opc_exhibit_table(struct opc_exhibit *, const char *part, const char *title,
                      const struct opc_table *, struct opc_err *err);
/* The paper's claim in a sentence; what was measured in another, with its numbers. */
void opc_exhibit_claim(struct opc_exhibit *, enum opc_verdict, const char *claim,
                       const char *measured_fmt, ...) OPC_PRINTF(4, 5);
void opc_exhibit_note(struct opc_exhibit *, const char *fmt, ...) OPC_PRINTF(2, 3);
/* Writes NAME.json and NAME-claims.csv, and frees the exhibit, also when that fails. */
int opc_exhibit_end(struct opc_exhibit *, struct opc_err *err);
void opc_exhibit_drop(struct opc_exhibit *); /* gives up; NULL is fine */

/* ---- reading them back (opc report) ---- */

struct opc_exhibit_item {
    char *file, *title;
};
struct opc_exhibit_claim_read {
    char *claim, *measured;
    enum opc_verdict verdict;
};
struct opc_exhibit_read {
    char *dir;                                                        /* where it is */
    char *name, *title, *tier, *caption, *version, *command, *config; /* "" where there is none */
    int missing; /* runs; 0 where an older program did not say */
    int pictures, tables, claims, notes;
    struct opc_exhibit_item *picture, *table;
    struct opc_exhibit_claim_read *claim;
    char **note;
};
/* path: DIR/NAME.json. A file that is no exhibit is an error with position. */
int opc_exhibit_load(const char *path, struct opc_exhibit_read **out, struct opc_err *err);
void opc_exhibit_unload(struct opc_exhibit_read *); /* NULL is fine */

#endif
