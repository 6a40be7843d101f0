/* SPDX-License-Identifier: MIT */
/* Settings beside what a paper prints: equal, not equal, read otherwise, and maps that make no
 * sense. */
#include "base/file.h"
#include "opc/mem.h"
#include "study/exhibit/analysis.h"
#include "test.h"

static const char FILE_TEXT[] = "train.epochs: 200\n"
                                "sac.policy_hidden: [64, 64]\n"
                                "when:\n"
                                "  - match: {env.name: '*hopper'}\n"
                                "    set: {train.epochs: 150}\n"
                                "  - match: {env.name: 'bullet:*'}\n"
                                "    set: {data.retain: 5}\n";

/* Makes the exhibit `tab` in the directory, of file.yaml there. */
static int make(const char *dir, const char *rest, struct opc_err *err)
{
    char path[600], text[2000];
    struct opc_yaml *figure = NULL;
    struct opc_exhibit *x = NULL;
    snprintf(path, sizeof path, "%s/file.yaml", dir);
    int code = opc_file_write(path, FILE_TEXT, sizeof FILE_TEXT - 1, err);
    const int n = snprintf(text, sizeof text, "of: %s\n%s", path, rest);
    const struct opc_analysis *analysis = opc_analysis_find("settings", err);
    const struct opc_exhibit_plan plan = {.dir = dir, .name = "tab", .title = "t"};
    if (!code)
        code = opc_yaml_parse("figure", text, (size_t)n, &figure, err);
    if (!code)
        code = opc_analysis_check(analysis, NULL, figure, err);
    if (!code)
        code = opc_exhibit_begin(&plan, &x, err);
    const struct opc_request request = {.figure = figure};
    if (!code)
        code = opc_analysis_run(analysis, &request, x, err);
    opc_yaml_free(figure);
    if (!code)
        return opc_exhibit_end(x, err);
    opc_exhibit_drop(x);
    return code;
}

static const char SHEET[] = "columns:\n"
                            "- {title: A, tasks: [mujoco:hopper, bullet:hopper], method: learned}\n"
                            "- {title: B, tasks: [mujoco:walker2d], method: corrected}\n"
                            "rows:\n"
                            "- {title: epochs, setting: train.epochs, printed: [150, 2e2]}\n"
                            "- {title: widths, setting: sac.policy_hidden, printed: '[64,64]'}\n"
                            "- {title: rate, setting: sac.learning_rate, printed: 0.1}\n"
                            "- {title: keep, setting: data.retain, printed: many, reading: 50}\n";

static void what_is_printed_is_compared_as_values(void **state)
{
    char path[600];
    struct opc_exhibit_read *r;
    struct opc_table *t;
    struct opc_err err;
    assert_ok(make(*state, SHEET, &err), &err);
    snprintf(path, sizeof path, "%s/tab.json", (char *)*state);
    assert_ok(opc_exhibit_load(path, &r, &err), &err);
    assert_int_equal(r->claims, 2);
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_NOT_SUPPORTED);
    assert_contains(r->claim[0].measured, "4 of 6");
    assert_contains(r->claim[0].measured, "1 row");
    /* bullet:hopper keeps 5 epochs, mujoco:hopper 50 */
    assert_int_equal(r->claim[1].verdict, OPC_VERDICT_NOT_SUPPORTED);
    assert_contains(r->claim[1].measured, "1 of 4");
    opc_exhibit_unload(r);
    snprintf(path, sizeof path, "%s/tab.csv", (char *)*state);
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_int_equal(opc_table_rows(t), 8);
    assert_string_equal(opc_table_cell(t, 1, 1), "B");
    assert_string_equal(opc_table_cell(t, 1, 3), "2e2");
    assert_string_equal(opc_table_cell(t, 1, 4), "200");
    assert_string_equal(opc_table_cell(t, 7, 5), "50");
    opc_table_free(t);
}

static void maps_that_make_no_sense_are_refused(void **state)
{
    static const char *const CASE[][2] = {
        {"rows: []\n", "'columns'"},
        {"columns: []\nrows: 3\n", "'rows'"},
        {"colums: []\nrows: []\n", "'colums'"},
        {"columns: [{title: A, method: learned, tasks: []}]\nrows: []\n", "tasks"},
        {"columns: [{title: A, method: learned, tasks: [cartpole]}]\n"
         "rows: [{title: r, setting: train.epochs, printed: [1, 2]}]\n",
         "printed"},
        {"columns: [{title: A, method: learned, tasks: [cartpole]}]\n"
         "rows: [{title: r, setting: train.epoch, printed: 1}]\n",
         "epochs"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        struct opc_err err = {0};
        assert_fails(make(*state, CASE[i][0], &err), OPC_EUSER, &err, CASE[i][1]);
    }
}

static int all(void *ctx, struct opc_err *err)
{
    return make(ctx, SHEET, err);
}

static void lack_of_memory_is_survived(void **state)
{
    assert_survives_lack_of_memory(all, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_printed_is_compared_as_values, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(maps_that_make_no_sense_are_refused, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_survived, test_make_dir, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
