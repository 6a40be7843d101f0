/* SPDX-License-Identifier: MIT */
/* Finds the exhibits for a report, in directories and one level below, and sorts them as a paper
 * would. report.c calls it.
 *
 * Invariant: a file counts once, however it is reached (by device and inode), and the order does
 * not depend on the file system. */
#include "study/report/report_private.h"

#include "base/file.h"
#include "base/log.h"
#include "opc/mem.h"
#include "run/files/rundir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX = 1000, LARGEST_JSON = 1 << 26 }; /* exhibits, and bytes of a .json file */

/* ---- order ----------------------------------------------------------------------------------- */

/* Rank of a name's family: figures, tables, theory, ilc, others. */
static int family_rank(const char *name)
{
    static const char *const FAMILY[] = {"fig", "tab", "theory", "ilc"};
    for (int i = 0; i < 4; i++)
        if (strncmp(name, FAMILY[i], strlen(FAMILY[i])) == 0)
            return i;
    return 4;
}

/* Like strcmp, but digits compare as the number they form. */
static int natural_order(const char *a, const char *b)
{
    /* Leading zeros do not count; of two numbers the one with more digits is larger. */
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            const size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
            const int differ = n != m ? (n < m ? -1 : 1) : strncmp(a, b, n);
            if (differ)
                return differ;
            a += n;
            b += m;
        } else if (*a != *b) {
            break;
        } else {
            a++;
            b++;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

int opc_exhibit_order(const char *name, const char *other)
{
    const int differ = family_rank(name) - family_rank(other);
    return differ ? differ : natural_order(name, other);
}

/* Higher tiers come first. */
static int tier_rank(const char *tier)
{
    static const char *const TIER[] = {"full", "small", "smoke"};
    for (int i = 0; i < 3; i++)
        if (strcmp(tier, TIER[i]) == 0)
            return i;
    return 3;
}

/* An exhibit with the identity of its file. */
struct found {
    struct opc_exhibit_read *exhibit;
    dev_t device;
    ino_t inode;
    int order; /* index in the order of finding, the last criterion */
};

/* By name, tier and order of finding, for qsort. */
static int compare_found(const void *p, const void *q)
{
    const struct found *a = p, *b = q;
    int differ = opc_exhibit_order(a->exhibit->name, b->exhibit->name);
    if (!differ)
        differ = tier_rank(a->exhibit->tier) - tier_rank(b->exhibit->tier);
    return differ ? differ : a->order - b->order;
}

/* ---- search ---------------------------------------------------------------------------------- */

/* What was found so far. */
struct search {
    struct found *found; /* [MAX] */
    int n, left_out;
};

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

/* A .json file is an exhibit if fig2-claims.csv lies next to fig2.json or the text has "claims".
 * So an exhibit that was cut off counts as damaged, not as something else. */
static int is_exhibit(const char *path, bool *out, struct opc_err *err)
{
    char claims[OPC_PATH], *text;
    if (snprintf(claims, sizeof claims, "%.*s-claims.csv", (int)strlen(path) - 5, path) <
            (int)sizeof claims &&
        opc_file_exists(claims)) {
        *out = true;
        return OPC_OK;
    }
    const int code = opc_file_read(path, LARGEST_JSON, &text, NULL, err);
    if (code)
        return code;
    *out = strstr(text, "\"claims\"") != NULL;
    opc_free(text);
    return OPC_OK;
}

/* Loads a file if it is an exhibit that was not found before. */
static int find_exhibit(struct search *search, const char *path, struct opc_err *err)
{
    struct stat st;
    bool exhibit;
    if (stat(path, &st) || !S_ISREG(st.st_mode)) /* a dangling link, a directory */
        return OPC_OK;
    /* The same file may be reached by two directories, or by a link. */
    for (int i = 0; i < search->n; i++)
        if (search->found[i].device == st.st_dev && search->found[i].inode == st.st_ino)
            return OPC_OK;
    int code = is_exhibit(path, &exhibit, err);
    if (code)
        return code;
    /* Logged, because a misnamed exhibit would otherwise vanish silently. */
    if (!exhibit) {
        opc_log(OPC_LEVEL_INFO, "%s is no exhibit and is left out", path);
        search->left_out++;
        return OPC_OK;
    }
    if (search->n == MAX)
        return opc_fail(err, OPC_EUSER, "more than %d exhibits; name fewer directories", MAX);
    struct found *found = &search->found[search->n];
    *found = (struct found){.device = st.st_dev, .inode = st.st_ino, .order = search->n};
    code = opc_exhibit_load(path, &found->exhibit, err);
    if (!code)
        search->n++;
    return code;
}

/* scandir sorts by bytes, so the order does not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Searches a directory, with `below` also those in it. */
static int search_directory(struct search *search, const char *dir, bool below, struct opc_err *err)
{
    char path[OPC_PATH];
    int code = OPC_OK;
    if (opc_rundir_is_run(dir)) { /* its own .json files are not exhibits; those are in probe */
        code = opc_path_join(path, dir, "probe", err);
        return code || !below || !opc_is_directory(path)
                   ? code
                   : search_directory(search, path, false, err);
    }
    struct dirent **entry;
    errno = 0;
    const int n = scandir(dir, &entry, NULL, by_name);
    if (n < 0)
        return errno == ENOMEM
                   ? opc_fail(err, OPC_ENOMEM, "not enough memory for the names in %s", dir)
                   : opc_fail_errno(err, errno, "cannot look into %s", dir);
    /* Entries are freed as they are visited, also after a failure. */
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        if (!code && *name != '.' && !(code = opc_path_join(path, dir, name, err))) {
            if (opc_is_directory(path))
                code = below ? search_directory(search, path, false, err) : OPC_OK;
            else if (ends_with(name, ".json"))
                code = find_exhibit(search, path, err);
        }
        free(entry[i]);
    }
    free(entry);
    return code;
}

int opc_exhibits_find(int dirs, char *const *dir, struct opc_exhibits *out, struct opc_err *err)
{
    int code = OPC_OK;
    struct search search = {.found = opc_alloc(MAX, sizeof *search.found)};
    struct opc_exhibit_read **at = NULL;
    if (!search.found)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the exhibits");
    /* Directories in the order they were named. */
    for (int i = 0; i < dirs && !code; i++) {
        if (opc_is_directory(dir[i]))
            code = search_directory(&search, dir[i], true, err);
        else
            code = opc_fail(err, OPC_EUSER, "%s is no directory; name one that holds exhibits",
                            dir[i]);
    }
    if (!code && search.n == 0)
        code =
            opc_fail(err, OPC_EUSER,
                     "no exhibit in %s%s or one level below; 'opc repro' and 'opc probe' make them "
                     "(fig2.json with its pictures and tables)",
                     dirs > 0 ? dir[0] : "no directory", dirs > 1 ? " and the others" : "");
    if (!code && !(at = opc_alloc((size_t)search.n, sizeof(*at))))
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the exhibits");
    /* Sort; after a failure `at` is NULL and everything found is freed. */
    qsort(search.found, (size_t)search.n, sizeof *search.found, compare_found);
    for (int i = 0; i < search.n; i++) {
        if (at)
            at[i] = search.found[i].exhibit;
        else
            opc_exhibit_unload(search.found[i].exhibit);
    }
    opc_free(search.found);
    if (!code)
        *out = (struct opc_exhibits){.n = search.n, .at = at, .left_out = search.left_out};
    return code;
}

/* Frees the exhibits, too. */
void opc_exhibits_free(struct opc_exhibits *e)
{
    for (int i = 0; i < e->n; i++)
        opc_exhibit_unload(e->at[i]);
    opc_free(e->at);
    *e = (struct opc_exhibits){0};
}
