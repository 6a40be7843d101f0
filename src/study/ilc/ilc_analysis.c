/* SPDX-License-Identifier: MIT */
/* The analysis `ilc`: runs the example of every form of learning control and shows them in one
 * exhibit. opc repro ilc makes it.
 *
 * Invariant: each form is the example that opc ilc runs by default (opc_ilc_example); only the
 * sizes are set here. */
#include "study/exhibit/analysis.h"
#include "study/ilc/ilc_exhibit.h"

/* clang-format off */
#define FIELDS(X)                                                                                     \
    X(INT, iterations,            "8",   1, 1000,  "updates of each form but the stochastic one")     \
    X(INT, stochastic_iterations, "20",  1, 1000,  "updates of the stochastic form")                             \
    X(INT, repeats,               "20",  1, 10000, "times the stochastic form is done, with other noise") \
    X(INT, random_trials,         "10",  1, 1000,  "trials with random actions the learned model starts with") \
    X(INT, passes,                "200", 1, 1e6,   "maximum number of passes over the data in one fit of it")
/* clang-format on */
struct settings {
    FIELDS(OPC_MEMBER)
};
#define SELF struct settings
static const struct opc_section section =
    OPC_SECTION("ilc", "all forms of norm-optimal iterative learning control", FIELDS);
#undef SELF

/* Progress of one form as a share of all of them. */
struct share {
    const struct opc_request *request;
    int form;
};

static void report_share(void *ctx, double done, const char *what)
{
    const struct share *s = ctx;
    s->request->progress(s->request->ctx, (s->form + done) / OPC_ILC_FORMS, what);
}

static int learning_control_make(const struct opc_request *request, const void *given,
                                 struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct settings *set = given;
    struct opc_ilc_trials *run[OPC_ILC_FORMS] = {NULL};
    int code = OPC_OK;
    for (int form = 0; form < OPC_ILC_FORMS && !code; form++) {
        struct opc_ilc_config config;
        struct share share = {request, form};
        const struct opc_ilc_watch watch = {request->progress ? report_share : NULL, &share};
        code = opc_ilc_example(form, &config, err);
        if (code)
            break;
        config.iterations = set->iterations;
        config.random_trials = set->random_trials;
        config.passes = set->passes;
        config.seed = (int)(request->seed % 1000000000);
        if (form == OPC_ILC_STOCHASTIC) {
            config.iterations = set->stochastic_iterations;
            config.repeats = set->repeats;
        }
        code = opc_ilc_run(&config, request->pool, &watch, &run[form], err);
        if (code)
            opc_within(err, "%s", opc_ilc_form_name(form));
    }
    if (!code)
        code = opc_ilc_show(OPC_ILC_FORMS, run, exhibit, err);
    if (!code)
        opc_exhibit_note(exhibit,
                         "the paper has no figure of this; its display of the time-varying lifted "
                         "system has its indices interchanged, and its first closed form lacks a "
                         "term (docs/ilc.md)");
    for (int form = 0; form < OPC_ILC_FORMS; form++)
        opc_ilc_trials_free(run[form]);
    return code;
}

const struct opc_analysis opc_learning_control = {
    .name = "ilc",
    .help = "norm-optimal iterative learning control in its five forms",
    .settings = &section,
    .make = learning_control_make,
};
