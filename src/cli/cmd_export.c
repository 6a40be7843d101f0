/* SPDX-License-Identifier: MIT */
/* opc export - writes a policy or a dynamics model for other programs: C, ONNX, numpy. */
#include "base/file.h"
#include "cli/console/command.h"
#include "study/export/export.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(TEXT, out,   "",      0, 255, "file to write; its ending says the format: .h, .onnx or .npz") \
    X(REAL, max_change, "1", 0, 1,  "FILE.h: share of an action's range by which the function NAME_limited lets it change in a step; 1: no limit") \
    X(BOOL, model, "false", 0, 1,   "export the dynamics model, the means of its elites, instead of the policy")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

static int export_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_export export;
    int first;
    /* One source, one file. */
    OPC_TRY(opc_options_read(&options, argc, argv, &given, &first, err));
    if (argc - first != 1 || !*given.out)
        return opc_fail(err, OPC_EUSER,
                        "name a run directory or a policy.opc, and a file: opc export RUN -o FILE");
    const char *ending = strrchr(given.out, '.');
    if (given.max_change < 1 && (given.model || !ending || strcmp(ending, ".h") != 0))
        return opc_fail(err, OPC_EUSER,
                        "--max-change is for a policy as a C header; elsewhere limit the actions "
                        "where they are used");
    /* Gather, then write: the ending of the name is looked at last. */
    const char *path = argv[first];
    OPC_TRY(given.model ? opc_export_model(path, &export, err)
                        : opc_export_policy(path, &export, err));
    export.max_change = given.max_change;
    const int code = opc_export_write(&export, given.out, err);
    /* What it was, so that a wrong run is noticed here and not on the robot. */
    if (!code) {
        struct opc_text about = {0};
        opc_export_about(&export, &about);
        printf("%s: %d input%s, %d output%s -> %s\n", opc_text_get(&about), export.inputs,
               opc_plural(export.inputs), export.outputs, opc_plural(export.outputs), given.out);
        opc_text_free(&about);
    }
    opc_export_free(&export);
    return code;
}

const struct opc_command opc_cmd_export = {
    .name = "export",
    .usage = "RUN|policy.opc -o FILE.h|FILE.onnx|FILE.npz [--model]",
    .summary = "write a policy or a model as C, ONNX or numpy arrays",
    .detail = "The result maps observations to actions, both in the task's units, with scaling and "
              "limits inside, and holds a test of itself. A policy.opc is enough; --model needs "
              "the run directory.\n"
              "FILE.h is one C99 header without heap and libm, FILE.onnx has operator set 13, "
              "FILE.npz is for numpy.load. docs/export.md describes them.",
    .options = &options,
    .run = export_run,
};
