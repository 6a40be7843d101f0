/* SPDX-License-Identifier: MIT */
/* The tables of a resumed run: truncated to the checkpoint, with the columns they had. */
#include "run/files/runlog.h"

#include "agent/sac.h"
#include "base/file.h"
#include "opc/mem.h"
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
    assert_ok(opc_runlog_begin_tables(log, ends, 7, opc_sac_type.columns, &err), &err);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_of_an_older_program_keeps_its_columns, test_make_dir,
                                        test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
