/* SPDX-License-Identifier: MIT */
/* Run directories as others find them: whole, half-written, damaged or not there. */
#include "run/files/rundir.h"

#include "base/file.h"
#include "opc/mem.h"
#include "test.h"

#include <fcntl.h>
#include <sys/file.h>

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[OPC_PATH];
    struct opc_err err;
    assert_ok(opc_path_join(path, dir, name, &err), &err);
    assert_ok(opc_file_write(path, text, strlen(text), &err), &err);
}

static struct opc_rundir_table parse(const char *text)
{
    struct opc_rundir_table t;
    struct opc_err err;
    assert_ok(opc_rundir_table_parse("metrics.csv", opc_strdup(text), &t, &err), &err);
    return t;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void a_table_has_the_lines_that_are_whole(void **state)
{
    (void)state;
    struct opc_rundir_table t = parse("epoch,eval_return\n1,0.5\n2,\n3,7");
    assert_string_equal(t.head, "epoch,eval_return");
    assert_int_equal(t.columns, 2);
    assert_int_equal(t.rows, 2); /* the third is being written */
    assert_string_equal(t.name[1], "eval_return");
    assert_string_equal(t.cell[0 * 2 + 1], "0.5");
    assert_true(opc_rundir_table_number(&t, 0, 1) == 0.5);
    assert_true(opc_rundir_table_number(&t, 1, 0) == 2);
    assert_true(isnan(opc_rundir_table_number(&t, 1, 1))); /* an empty cell */
    opc_rundir_table_free(&t);
}

static void a_first_line_that_is_not_whole_names_no_columns(void **state)
{
    (void)state;
    static const char *const TEXT[] = {"", "epoch,env_st"};
    for (int i = 0; i < 2; i++) {
        struct opc_rundir_table t = parse(TEXT[i]);
        assert_string_equal(t.head, TEXT[i]);
        assert_int_equal(t.columns, 0);
        assert_int_equal(t.rows, 0);
        opc_rundir_table_free(&t);
    }
}

static void a_damaged_line_tells_how_many_cells_it_has(void **state)
{
    (void)state;
    struct opc_rundir_table t = parse("a,b,c\n1\n\n1,2,3,4\n1,x,inf\n");
    static const int CELLS[] = {1, 1, 4, 3};
    assert_int_equal(t.rows, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(t.cells[i], CELLS[i]);
    assert_true(opc_rundir_table_number(&t, 0, 0) == 1);
    assert_true(isnan(opc_rundir_table_number(&t, 0, 2))); /* is not there */
    assert_true(opc_rundir_table_number(&t, 2, 2) == 3);
    assert_true(isnan(opc_rundir_table_number(&t, 3, 1))); /* no number */
    assert_true(isnan(opc_rundir_table_number(&t, 3, 2))); /* not finite */
    opc_rundir_table_free(&t);
}

static void a_column_is_found_by_its_whole_name(void **state)
{
    (void)state;
    int column = -1;
    char nearest[OPC_RUNDIR_NAME];
    struct opc_err err = {0};
    struct opc_rundir_table t = parse("epoch,eval_return,eval\n");
    assert_ok(opc_rundir_table_find(&t, "eval", &column, &err), &err);
    assert_int_equal(column, 2);
    assert_fails(opc_rundir_table_find(&t, "eval_retrun", &column, &err), OPC_EUSER, &err,
                 "'eval_return'");
    assert_mentions(&err, "metrics.csv");
    assert_fails(opc_rundir_table_find(&t, "horizon", &column, &err), OPC_EUSER, &err, "'horizon'");
    assert_int_equal(opc_rundir_head_find(t.head, "epoch", NULL), 0);
    assert_int_equal(opc_rundir_head_find(t.head, "epoc", nearest), -1);
    assert_string_equal(nearest, "epoch");
    opc_rundir_table_free(&t);
}

static void seconds_are_summed_over_the_epochs(void **state)
{
    struct opc_rundir_seconds s;
    opc_rundir_seconds(*state, &s);
    assert_int_equal(s.epochs, 0);
    assert_true(s.total == 0);
    /* A second process began after epoch 2; the fourth line is being written. */
    put_file(*state, "timing.csv",
             "epoch,random_s,act_s,fit_s,epoch_s,total_s\n"
             "1,8,1,2,11,11\n2,,1,2,3,14\n3,,1,4,5,5\n4,,1,");
    opc_rundir_seconds(*state, &s);
    assert_int_equal(s.epochs, 3);
    assert_true(s.total == 19);
    assert_true(s.phase[OPC_PHASE_RANDOM] == 8 && s.phase[OPC_PHASE_ACT] == 3 &&
                s.phase[OPC_PHASE_FIT] == 8);
    assert_true(s.phase[OPC_PHASE_SIMULATE] == 0); /* an older program had no such column */
}

/* ---- the other files ------------------------------------------------------------------------- */

static void a_status_is_what_its_files_say(void **state)
{
    struct opc_rundir_status s;
    opc_rundir_status(*state, &s);
    assert_int_equal(s.state, OPC_RUNDIR_UNKNOWN);
    assert_true(isnan(s.eval_return));
    assert_false(s.locked || s.has_result);

    put_file(*state, "status.json",
             "{\"state\": \"failed\", \"why\": \"disk full\", \"epoch\": 3, \"eval_return\": 2.5}");
    opc_rundir_status(*state, &s);
    assert_int_equal(s.state, OPC_RUNDIR_FAILED);
    assert_string_equal(s.why, "disk full");
    assert_int_equal(s.epoch, 3);
    assert_true(s.eval_return == 2.5);

    put_file(*state, "status.json", "{\"state\": \"done\", \"why\": null, \"eval_return\": null}");
    put_file(*state, "result.json", "{\"epochs\": 4}");
    opc_rundir_status(*state, &s);
    assert_int_equal(s.state, OPC_RUNDIR_DONE);
    assert_string_equal(s.why, "");
    assert_int_equal(s.epoch, 0);
    assert_true(isnan(s.eval_return));
    assert_true(s.has_result);
    assert_int_equal(s.result_epochs, 4);

    /* What is no JSON says nothing, but is there. */
    put_file(*state, "status.json", "{\"state\": ");
    put_file(*state, "result.json", "");
    opc_rundir_status(*state, &s);
    assert_int_equal(s.state, OPC_RUNDIR_UNKNOWN);
    assert_true(s.has_result);
    assert_int_equal(s.result_epochs, 0);
}

static void a_directory_is_locked_as_long_as_the_lock_is_held(void **state)
{
    char path[OPC_PATH];
    struct opc_err err;
    struct opc_rundir_status s;
    assert_false(opc_rundir_is_locked(*state));
    assert_ok(opc_path_join(path, *state, ".lock", &err), &err);
    const int fd = open(path, O_RDWR | O_CREAT, 0666);
    assert_true(fd >= 0);
    assert_false(opc_rundir_is_locked(*state)); /* left behind */
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_true(opc_rundir_is_locked(*state));
    opc_rundir_status(*state, &s);
    assert_true(s.locked);
    close(fd);
    assert_false(opc_rundir_is_locked(*state));
}

static void what_meta_does_not_say_is_empty(void **state)
{
    struct opc_rundir_meta m;
    struct opc_err err;
    assert_ok(opc_rundir_meta(*state, &m, &err), &err);
    assert_string_equal(m.version, "");
    assert_int_equal(m.obs, 0);
    put_file(*state, "meta.json",
             "{\"opc\": \"0.1.0\", \"revision\": \"508bb785afe3-dirty\", \"engine\": null, "
             "\"observations\": 4, \"actions\": 1e9}");
    assert_ok(opc_rundir_meta(*state, &m, &err), &err);
    assert_string_equal(m.version, "0.1.0");
    assert_string_equal(m.revision, "508bb785afe3-dirty");
    assert_string_equal(m.engine, "");
    assert_string_equal(m.config_crc32c, "");
    assert_int_equal(m.obs, 4);
    assert_int_equal(m.act, 0); /* nothing has that many */
}

static void what_a_killed_start_leaves_is_not_foreign(void **state)
{
    char name[OPC_RUNDIR_FILE];
    struct opc_err err = {0};
    put_file(*state, ".lock", "123");
    put_file(*state, "config.yaml.123.0.tmp", "tra");
    assert_ok(opc_rundir_foreign_file(*state, name, &err), &err);
    assert_string_equal(name, "");
    put_file(*state, "thesis.txt", "years of work");
    assert_ok(opc_rundir_foreign_file(*state, name, &err), &err);
    assert_string_equal(name, "thesis.txt");
    assert_int_equal(opc_rundir_foreign_file("no/such/directory", name, &err), OPC_EUSER);
    assert_string_equal(name, "");
}

/* ---- lack of memory -------------------------------------------------------------------------- */

static int read_table(void *dir, struct opc_err *err)
{
    struct opc_rundir_table t;
    const int code = opc_rundir_table_read(dir, "metrics.csv", &t, err);
    if (!code)
        opc_rundir_table_free(&t);
    return code;
}

static int read_meta(void *dir, struct opc_err *err)
{
    struct opc_rundir_meta m;
    return opc_rundir_meta(dir, &m, err);
}

static void lack_of_memory_is_an_error(void **state)
{
    put_file(*state, "metrics.csv", "epoch,eval_return\n1,2\n2,3\n");
    put_file(*state, "meta.json", "{\"opc\": \"0.1.0\"}");
    assert_survives_lack_of_memory(read_table, *state);
    assert_survives_lack_of_memory(read_meta, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_has_the_lines_that_are_whole),
        cmocka_unit_test(a_first_line_that_is_not_whole_names_no_columns),
        cmocka_unit_test(a_damaged_line_tells_how_many_cells_it_has),
        cmocka_unit_test(a_column_is_found_by_its_whole_name),
        cmocka_unit_test_setup_teardown(seconds_are_summed_over_the_epochs, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(a_status_is_what_its_files_say, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(a_directory_is_locked_as_long_as_the_lock_is_held,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(what_meta_does_not_say_is_empty, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(what_a_killed_start_leaves_is_not_foreign, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_an_error, test_make_dir, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
