/* SPDX-License-Identifier: MIT */
/* opc report - puts exhibits into one HTML page.
 *
 * The page is written also if pictures or tables are missing; then the exit status is 1, so that a
 * script notices. */
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "num/kernel.h"
#include "study/report/report.h"

#include <stdio.h>
#include <sys/utsname.h>

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
        return opc_fail(err, OPC_EUSER, "name directories that hold exhibits");
    /* Named on the page, because kernels decide the last bits of results. */
    snprintf(machine, sizeof machine, "%s with %s kernels",
             uname(&system) < 0 ? "an unknown machine" : system.machine, opc_kernels()->name);
    const struct opc_report_plan plan = {
        .dirs = argc - first,
        .dir = argv + first,
        .out = given.out,
        .title = *given.title ? given.title : NULL,
        .machine = machine,
    };
    /* Missing parts are logged as they are met. */
    opc_display_listen(OPC_LEVEL_INFO);
    code = opc_report_write(&plan, &made, err);
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
    .summary = "put exhibits and their claims into one HTML page",
    .detail = "DIR holds exhibits (fig2.json with its pictures and tables), or directories of "
              "them. The page needs no other file, no network and no script.\n"
              "A picture or table that is missing is marked in the page, which is written all the "
              "same; the exit status is then 1.",
    .options = &options,
    .run = report_run,
};
