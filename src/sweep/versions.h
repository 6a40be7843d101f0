/* SPDX-License-Identifier: MIT */
/* sweep/versions.h - which versions and commits of the program have made some runs, in short words.
 *
 * Another commit of the same version may compute other numbers, so it is named like another
 * version: before a sweep goes on (prepare.c), by `opc sweep status` and `merge`, and in captions
 * of opc repro. It is for the user to judge. */
#ifndef OPC_SWEEP_VERSIONS_H
#define OPC_SWEEP_VERSIONS_H

#include "base/text.h"
#include "run/files/rundir.h"

enum { OPC_VERSIONS = 64 };
struct opc_versions {
    int n, runs; /* different ones, in the order in which they were noted; runs in all */
    struct opc_version {
        char version[OPC_RUNDIR_VERSION];   /* "": not known */
        char revision[OPC_RUNDIR_REVISION]; /* "": not known */
        int runs;
    } at[OPC_VERSIONS]; /* what comes after the last place counts as that one */
};

/* Notes one run; starts as {0}. */
void opc_versions_note(struct opc_versions *, const char *version, const char *revision);
/* Whether this program is that version and commit. */
bool opc_version_is_ours(const char *version, const char *revision);
/* Whether all noted runs are of this program. */
bool opc_versions_are_ours(const struct opc_versions *);
/* Whether all noted runs are of versions of that name, whatever their commits. */
bool opc_versions_are(const struct opc_versions *, const char *version);
/* "0.1.0 (508bb78), 0.0.9 (4 revisions: 4f5186a, 498e285, ...), unknown". */
void opc_versions_say(const struct opc_versions *, struct opc_text *out);
/* The commits of one version, " (508bb78)"; nothing if none is known. */
void opc_versions_say_revisions(const struct opc_versions *, const char *version,
                                struct opc_text *out);
/* "made by opc 0.0.9 (508bb78); this is opc 0.1.0 (4f5186a)"; nothing if all runs are of this
 * program. */
void opc_versions_compare(const struct opc_versions *, struct opc_text *out);

#endif
