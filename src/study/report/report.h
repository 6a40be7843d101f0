/* SPDX-License-Identifier: MIT */
/* study/report/report.h - exhibits as one HTML page that needs nothing but itself.
 *
 * The same exhibits give the same bytes: no time, no path of this machine. */
#ifndef OPC_STUDY_REPORT_H
#define OPC_STUDY_REPORT_H

#include "base/file.h"
#include "study/exhibit/exhibit.h"

struct opc_report_plan {
    int dirs;            /* directories to search */
    char *const *dir;    /* [dirs] each is searched, and the directories in it */
    const char *out;     /* path of the page */
    const char *title;   /* NULL: a default heading */
    const char *machine; /* kind of machine the page is made on; NULL: not mentioned */
};

/* What the page contains. */
struct opc_report_made {
    int exhibits, pictures, tables;
    int claims[OPC_VERDICT_UNDECIDED + 1]; /* by verdict */
    int missing;  /* pictures and tables that cannot be read: marked in the page, and logged */
    int left_out; /* .json files that are not exhibits; logged */
};

/* Makes an exhibit of a plain run, RUN/report/NAME.json with pictures of its returns and errors, a
 * table and its settings; `into` is that directory. OPC_EUSER: it has no complete epoch yet. */
int opc_report_run(const char *run, char into[OPC_PATH], struct opc_err *err);

/* Searches, reads and writes the page. A damaged exhibit is an error, and no page is written; so
 * is not finding any exhibit (OPC_EUSER). */
int opc_report_write(const struct opc_report_plan *, struct opc_report_made *, struct opc_err *err);

#endif
