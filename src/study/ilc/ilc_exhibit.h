/* SPDX-License-Identifier: MIT */
/* study/ilc/ilc_exhibit.h - figures, tables and claims about learning control, for opc ilc and
 * the analysis `ilc`. */
#ifndef OPC_STUDY_ILC_EXHIBIT_H
#define OPC_STUDY_ILC_EXHIBIT_H

#include "study/exhibit/exhibit.h"
#include "study/ilc/ilc_run.h"

/* Shows one run in one figure, or several as small multiples in three: errors, states, actions. */
int opc_ilc_show(int runs, struct opc_ilc_trials *const run[], struct opc_exhibit *,
                 struct opc_err *err);
/* Quantile q over repeats of a trial's error: without noise, without the filter, as measured. */
double opc_ilc_error(const struct opc_ilc_trials *, int trial, double q);
double opc_ilc_error_plain(const struct opc_ilc_trials *, int trial, double q);
double opc_ilc_error_seen(const struct opc_ilc_trials *, int trial, double q);

#endif
