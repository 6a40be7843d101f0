/* SPDX-License-Identifier: MIT */
/* Versions and commits that made some runs (versions.h). */
#include "sweep/versions.h"

#include "base/revision.h"
#include "opc/version.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 2, DIGITS = 7 }; /* commits of a version that are named; digits of each */

void opc_versions_note(struct opc_versions *all, const char *version, const char *revision)
{
    int i = 0;
    while (i < all->n &&
           (strcmp(all->at[i].version, version) != 0 || strcmp(all->at[i].revision, revision) != 0))
        i++;
    all->runs++;
    if (i == all->n && i < OPC_VERSIONS) {
        snprintf(all->at[i].version, sizeof all->at[i].version, "%s", version);
        snprintf(all->at[i].revision, sizeof all->at[i].revision, "%s", revision);
        all->n++;
    }
    all->at[i < OPC_VERSIONS ? i : OPC_VERSIONS - 1].runs++;
}

bool opc_version_is_ours(const char *version, const char *revision)
{
    return strcmp(version, OPC_VERSION) == 0 && strcmp(revision, opc_revision) == 0;
}

bool opc_versions_are_ours(const struct opc_versions *all)
{
    bool ours = true;
    for (int i = 0; i < all->n; i++)
        ours = ours && opc_version_is_ours(all->at[i].version, all->at[i].revision);
    return ours;
}

bool opc_versions_are(const struct opc_versions *all, const char *version)
{
    bool same = true;
    for (int i = 0; i < all->n; i++)
        same = same && strcmp(all->at[i].version, version) == 0;
    return same;
}

/* "508bb78", "508bb78-dirty"; a commit that is not known is "unknown". */
static void say_revision(const char *revision, struct opc_text *out)
{
    const char *end = strchr(revision, '-');
    if (!*revision)
        opc_text_add(out, "unknown");
    else
        opc_text_addf(out, "%.*s%s", DIGITS, revision, end ? end : "");
}

void opc_versions_say_revisions(const struct opc_versions *all, const char *version,
                                struct opc_text *out)
{
    int revisions = 0, shown = 0;
    bool known = false;
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->at[i].version, version) == 0) {
            revisions++;
            known = known || *all->at[i].revision;
        }
    if (!known)
        return;
    opc_text_add(out, " (");
    if (revisions > 1)
        opc_text_addf(out, "%d revisions: ", revisions);
    for (int i = 0; i < all->n && shown < SHOWN; i++)
        if (strcmp(all->at[i].version, version) == 0) {
            opc_text_add(out, shown++ ? ", " : "");
            say_revision(all->at[i].revision, out);
        }
    opc_text_add(out, revisions > SHOWN ? ", ...)" : ")");
}

void opc_versions_say(const struct opc_versions *all, struct opc_text *out)
{
    for (int i = 0; i < all->n; i++) {
        const char *version = all->at[i].version;
        bool fresh = true;
        for (int k = 0; k < i; k++)
            fresh = fresh && strcmp(all->at[k].version, version) != 0;
        if (!fresh)
            continue;
        opc_text_addf(out, "%s%s", i ? ", " : "", *version ? version : "unknown");
        opc_versions_say_revisions(all, version, out);
    }
}

void opc_versions_compare(const struct opc_versions *all, struct opc_text *out)
{
    struct opc_versions ours = {0};
    if (opc_versions_are_ours(all))
        return;
    opc_text_add(out,
                 opc_versions_are(all, "") ? "made by an unknown version of opc" : "made by opc ");
    if (!opc_versions_are(all, ""))
        opc_versions_say(all, out);
    opc_text_add(out, "; this is opc ");
    opc_versions_note(&ours, OPC_VERSION, opc_revision);
    opc_versions_say(&ours, out);
}
