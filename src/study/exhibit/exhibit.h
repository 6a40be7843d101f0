/* SPDX-License-Identifier: MIT */
/* study/exhibit/exhibit.h - one figure or table of the paper, reproduced: pictures, the numbers
 * they show, and the paper's claims with a verdict by our numbers.
 *
 * An exhibit called fig2 in a directory DIR is the files fig2.json (last, so that it means
 * complete), fig2.svg .pdf .png, fig2.csv, fig2-<part>.svg and so on. fig2.json lists all of
 * them:
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

/* The answer to a claim of the paper. */
enum opc_verdict {
    OPC_VERDICT_SUPPORTED,
    OPC_VERDICT_NOT_SUPPORTED,
    OPC_VERDICT_UNDECIDED, /* too few runs, or the intervals overlap */
};

struct opc_exhibit;

/* Texts of an exhibit; borrowed during opc_exhibit_begin only. */
struct opc_exhibit_plan {
    const char *dir;  /* created if it does not exist */
    const char *name; /* "fig2" */
    const char *title;
    const char *tier; /* "smoke", "small", "full"; NULL: none */
    /* Tier, seeds, versions and number of complete runs; printed below every picture. */
    const char *caption;
    const char *command; /* the command line, without paths of this machine; NULL: none */
    const char *config;  /* settings as text; NULL: none */
    int missing;         /* runs that were not complete when it was made */
};

int opc_exhibit_begin(const struct opc_exhibit_plan *, struct opc_exhibit **out,
                      struct opc_err *err);
/* Draws DIR/NAME[-part].svg, .pdf and .png; part NULL: the main figure. The caption is added
 * below the figure's own note. In a build without cairo nothing is drawn, and a note says so. */
int opc_exhibit_figure(struct opc_exhibit *, const char *part, const char *title,
                       const struct opc_figure *, struct opc_err *err);
/* Writes DIR/NAME[-part].csv; the table stays the caller's. */
int opc_exhibit_table(struct opc_exhibit *, const char *part, const char *title,
                      const struct opc_table *, struct opc_err *err);
/* Adds the paper's claim as a sentence, and our measurement with its numbers as another. */
void opc_exhibit_claim(struct opc_exhibit *, enum opc_verdict, const char *claim,
                       const char *measured_fmt, ...) OPC_PRINTF(4, 5);
/* Adds a remark, usually on what differs from the paper. */
void opc_exhibit_note(struct opc_exhibit *, const char *fmt, ...) OPC_PRINTF(2, 3);
/* Begins what was measured of the claims that follow with these words, copied; "" ends that. */
void opc_exhibit_claims_begin(struct opc_exhibit *, const char *words);
/* Writes NAME.json and NAME-claims.csv, and frees the exhibit, also when that fails. */
int opc_exhibit_end(struct opc_exhibit *, struct opc_err *err);
void opc_exhibit_drop(struct opc_exhibit *); /* frees it without NAME.json; NULL is fine */

/* ---- reading them back (opc report) ---- */

struct opc_exhibit_item {
    char *file, *title;
};
struct opc_exhibit_claim_read {
    char *claim, *measured;
    enum opc_verdict verdict;
};
struct opc_exhibit_read {
    char *dir;                                                        /* that it was found in */
    char *name, *title, *tier, *caption, *version, *command, *config; /* "" if there is none */
    int missing; /* incomplete runs; 0 if an older program did not write the number */
    int pictures, tables, claims, notes;
    struct opc_exhibit_item *picture, *table;
    struct opc_exhibit_claim_read *claim;
    char **note;
};
/* Reads DIR/NAME.json. A file that is not an exhibit is an error (OPC_EDAMAGED) that says where. */
int opc_exhibit_load(const char *path, struct opc_exhibit_read **out, struct opc_err *err);
void opc_exhibit_unload(struct opc_exhibit_read *); /* NULL is fine */

#endif
