/* SPDX-License-Identifier: MIT */
/* The tables of a resumed run: truncated to the checkpoint, with the columns they had; and the
 * copies of metrics.csv, which have the same rows. */
#include "run/files/runlog.h"

#include "agent/sac.h"
#include "base/file.h"
#include "opc/mem.h"
#include "run/files/copies.h"
#include "test.h"

static void assert_file(const char *dir, const char *name, const char *want)
{
    char path[OPC_PATH], *text;
    struct opc_err err;
    assert_ok(opc_path_join(path, dir, name, &err), &err);
    assert_ok(opc_file_read(path, 1 << 20, &text, NULL, &err), &err);
    assert_string_equal(text, want);
    opc_free(text);
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[OPC_PATH];
    struct opc_err err;
    assert_ok(opc_path_join(path, dir, name, &err), &err);
    assert_ok(opc_file_write(path, text, strlen(text), &err), &err);
}

/* Columns that this program has added are left out, and those it no longer has (kl, which SAC never
 * had) stay empty; after the checkpoint comes a row that is not part of it. */
static void a_run_of_an_older_program_keeps_its_columns(void **state)
{
    static const char OLD[] =
        "epoch,env_steps,eval_return,updates,alpha,kl,entropy\n1,10,5,3,0.5,,1\n";
    static const char TIMES[] = "epoch,epoch_s\n1,2\n";
    struct opc_runlog *log;
    struct opc_err err;
    put_file(*state, "metrics.csv",
             "epoch,env_steps,eval_return,updates,alpha,kl,entropy\n1,10,5,3,0.5,,1\n"
             "2,20,");
    put_file(*state, "timing.csv", TIMES);
    assert_ok(opc_runlog_open(*state, NULL, &log, &err), &err);
    const struct opc_runlog_ends ends = {sizeof OLD - 1, sizeof TIMES - 1};
    const struct opc_runlog_tables tables = {.members = 7, .columns = opc_sac_type.columns};
    assert_ok(opc_runlog_begin_tables(log, ends, &tables, &err), &err);
    const struct opc_epoch_row row = {
        .epoch = 2,
        .env_steps = 20,
        .agent = {.updates = 4,
                  .value = {[OPC_SAC_Q] = 7, [OPC_SAC_ALPHA] = 0.25, [OPC_SAC_ENTROPY] = -1}},
    };
    assert_ok(opc_runlog_metrics(log, &row, &err), &err);
    const double seconds[OPC_PHASES] = {[OPC_PHASE_FIT] = 7, [OPC_PHASE_MEASURE] = 0.5};
    assert_ok(opc_runlog_timing(log, 2, seconds, 9, &err), &err);
    opc_runlog_close(log);
    assert_file(*state, "timing.csv", "epoch,epoch_s\n1,2\n2,7.5\n");
    assert_file(*state, "metrics.csv",
                "epoch,env_steps,eval_return,updates,alpha,kl,entropy\n1,10,5,3,0.5,,1\n"
                "2,20,,4,0.25,,-1\n");
}

/* The same copies, whatever was in the files before: nothing, rows that metrics.csv has lost, half
 * a row, or something else. */
static void copies_have_the_rows_of_the_table(void **state)
{
    static const char *const BEFORE[] = {
        "",
        "{\"epoch\": 1, \"env_steps\": 10, \"q\": null}\n{\"epoch\": 2, \"env_steps\": 20, \"q\": "
        "3}\n",
        "{\"epoch\": 1, \"env_st",
        "something else\n",
    };
    struct opc_err err;
    put_file(*state, "metrics.csv", "epoch,env_steps,q\n1,10,\n");
    for (size_t i = 0; i < sizeof BEFORE / sizeof *BEFORE; i++) {
        struct opc_copies copies = {-1, -1, NULL};
        put_file(*state, OPC_COPIES_JSON, BEFORE[i]);
        put_file(*state, OPC_COPIES_EVENTS, BEFORE[i]);
        assert_ok(opc_copies_begin(&copies, *state, true, true, &err), &err);
        assert_ok(opc_copies_add(&copies, *state, "2,20,-1e-05\n", &err), &err);
        opc_copies_close(&copies);
        assert_file(*state, OPC_COPIES_JSON,
                    "{\"epoch\": 1, \"env_steps\": 10, \"q\": null}\n"
                    "{\"epoch\": 2, \"env_steps\": 20, \"q\": -1e-05}\n");
    }
}

/* What cannot be allocated or read is an error; nothing is lost by it. */
static int make_copies(void *ctx, struct opc_err *err)
{
    struct opc_copies copies = {-1, -1, NULL};
    int code = opc_copies_begin(&copies, ctx, true, true, err);
    if (!code)
        code = opc_copies_add(&copies, ctx, "2,20,3\n", err);
    opc_copies_close(&copies);
    return code;
}

static void copies_report_each_failure(void **state)
{
    put_file(*state, "metrics.csv", "epoch,env_steps,q\n1,10,\n");
    assert_survives_lack_of_memory(make_copies, *state);
    assert_survives_system_faults(make_copies, *state);
    assert_file(*state, OPC_COPIES_JSON,
                "{\"epoch\": 1, \"env_steps\": 10, \"q\": null}\n"
                "{\"epoch\": 2, \"env_steps\": 20, \"q\": 3}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_of_an_older_program_keeps_its_columns, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(copies_have_the_rows_of_the_table, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(copies_report_each_failure, test_make_dir, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
