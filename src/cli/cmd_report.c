/* SPDX-License-Identifier: MIT */
/* opc report - puts exhibits into one HTML page.
 *
 * The page is written also if pictures or tables are missing; then the exit status is 1, so that a
 * script notices. */
#include "base/log.h"
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "num/kernel.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "study/report/report.h"

#include <stdio.h>
#include <sys/utsname.h>

/* The directories that are searched: of a run that of its own exhibit, which is made now, and that
 * of its probes. */
struct places {
    int n, runs;
    char **dir;             /* [n] */
    char (*made)[OPC_PATH]; /* of runs */
};

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,   "report.html", 1, 4095, "HTML file to write")                                              \
    X(TEXT, title, "",            0, 255, "heading of the page")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

static int find_places(int n, char **dir, struct places *out, struct opc_err *err)
{
    out->dir = opc_alloc(2 * (size_t)n, sizeof *out->dir);
    out->made = opc_alloc(2 * (size_t)n, sizeof *out->made);
    if (!out->dir || !out->made)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d directories", n);
    for (int i = 0; i < n; i++) {
        if (!opc_rundir_is_run(dir[i])) {
            out->dir[out->n++] = dir[i];
            continue;
        }
        char *own = out->made[2 * i], *probe = out->made[2 * i + 1];
        const bool probed = !opc_path_join(probe, dir[i], "probe", NULL) && opc_is_directory(probe);
        const int code = opc_report_run(dir[i], own, err);
        out->runs++;
        if (!code)
            out->dir[out->n++] = own;
        /* What was looked at is worth a page without the run itself, too. */
        else if (probed && (code == OPC_EUSER || code == OPC_EDAMAGED))
            opc_log(OPC_LEVEL_WARN, "%s; the page has its probes only", err->text);
        else
            return code;
        if (probed)
            out->dir[out->n++] = probe;
    }
    return OPC_OK;
}

static int report_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_report_made made;
    struct utsname system;
    char machine[200];
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (first == argc)
        return opc_fail(err, OPC_EUSER, "name run directories, or directories that hold exhibits");
    /* Named on the page, because kernels decide the last bits of results. */
    snprintf(machine, sizeof machine, "%s with %s kernels",
             uname(&system) < 0 ? "an unknown machine" : system.machine, opc_kernels()->name);
    /* Missing parts are logged as they are met. */
    opc_display_listen(OPC_LEVEL_INFO);
    struct places places = {0};
    code = find_places(argc - first, argv + first, &places, err);
    const struct opc_report_plan plan = {
        .dirs = places.n,
        .dir = places.dir,
        .out = given.out,
        .title = *given.title                  ? given.title
                 : places.runs == argc - first ? "Training runs"
                                               : NULL,
        .machine = machine,
    };
    if (!code)
        code = opc_report_write(&plan, &made, err);
    opc_free(places.dir);
    opc_free(places.made);
    if (code)
        return code;
    printf("%d exhibit%s, claims: %d supported, %d not supported, %d undecided -> %s\n",
           made.exhibits, made.exhibits == 1 ? "" : "s", made.claims[OPC_VERDICT_SUPPORTED],
           made.claims[OPC_VERDICT_NOT_SUPPORTED], made.claims[OPC_VERDICT_UNDECIDED], given.out);
    /* The page exists, but it is not whole. */
    if (made.missing)
        return opc_fail(err, OPC_EIO,
                        "%s is written, but lacks %d of %d pictures and tables, see above; make "
                        "those exhibits again",
                        given.out, made.missing, made.pictures + made.tables);
    return OPC_OK;
}

const struct opc_command opc_cmd_report = {
    .name = "report",
    .usage = "DIR... [-o FILE] [OPTION...]",
    .summary = "put runs, or exhibits and their claims, into one HTML page",
    .detail =
        "DIR is a run, or holds exhibits (fig2.json with its pictures and tables), or "
        "directories of them. Of a run the page has the returns, the errors of the model, the "
        "settings, its probes, and its film, if there is one (DIR/film.mp4, .gif or .png, which "
        "'opc env render DIR -o DIR/film.mp4' makes); pictures and tables are in DIR/report.\n"
        "The page needs no other file, no network and no script.\n"
        "A picture or table that is missing is marked in the page, which is written all the "
        "same; the exit status is then 1.",
    .options = &options,
    .run = report_run,
};
