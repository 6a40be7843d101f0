/* SPDX-License-Identifier: MIT */
/* study/report/report.h - exhibits as one HTML page that needs nothing but itself.
 *
 * The same exhibits give the same bytes: no time, no path of this machine. */
#ifndef OPC_STUDY_REPORT_H
#define OPC_STUDY_REPORT_H

#include "study/exhibit/exhibit.h"

struct opc_report_plan {
    int dirs;
    char *const *dir;    /* [dirs] each is searched, and the directories in it */
    const char *out;     /* the page */
    const char *title;   /* NULL: a heading of ours */
    const char *machine; /* the kind of machine the page is made on; NULL: not said */
};

struct opc_report_made {
    int exhibits, pictures, tables;
    int claims[OPC_UNDECIDED + 1]; /* by verdict */
    int missing;  /* pictures and tables that cannot be read: marked in the page, and logged */
    int left_out; /* .json files that are no exhibits: logged */
};

/* Any damaged exhibit is an error, and no page is written; so is no exhibit at all (OPC_EUSER). */
int opc_report_write(const struct opc_report_plan *, struct opc_report_made *, struct opc_err *err);

#endif
