/* SPDX-License-Identifier: MIT */
#include "study/exhibit/table.h"

#include "base/file.h"
#include "opc/mem.h"
#include "test.h"

static const char *path_in(const char *dir, const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", dir, name);
    return out;
}

static void write_file(const char *path, const char *text)
{
    struct opc_err err;
    assert_ok(opc_file_write(path, text, strlen(text), &err), &err);
}

static struct opc_table *make_table(void)
{
    struct opc_table *t;
    struct opc_err err;
    assert_ok(opc_table_create("task,signed distance,n,note", &t, &err), &err);
    opc_table_word(t, "hopper");
    opc_table_real(t, 0.1);
    opc_table_int(t, -3);
    opc_table_word(t, "a, \"b\"\nc");
    opc_table_word(t, "");
    opc_table_real(t, (double)NAN);
    opc_table_fixed(t, -0.001, 2);
    opc_table_fixed(t, 2.0 / 3, 3);
    return t;
}

static void cells_are_written_as_csv_wants_them(void **state)
{
    char path[512], *text;
    struct opc_err err;
    struct opc_table *t = make_table();
    assert_ok(opc_table_write(t, path_in(*state, "t.csv", path), &err), &err);
    assert_ok(opc_file_read(path, 1000, &text, NULL, &err), &err);
    assert_string_equal(text, "task,signed distance,n,note\n"
                              "hopper,0.1,-3,\"a, \"\"b\"\"\nc\"\n"
                              ",,0.00,0.667\n");
    opc_free(text);
    opc_table_free(t);
}

static void what_was_written_is_read_back(void **state)
{
    char path[512];
    struct opc_err err;
    struct opc_table *t = make_table(), *again;
    assert_ok(opc_table_write(t, path_in(*state, "t.csv", path), &err), &err);
    assert_ok(opc_table_read(path, &again, &err), &err);
    assert_int_equal(opc_table_rows(again), 2);
    assert_int_equal(opc_table_columns(again), 4);
    assert_int_equal(opc_table_find(again, "n"), 2);
    assert_int_equal(opc_table_find(again, "m"), -1);
    for (int column = 0; column < 4; column++) {
        assert_string_equal(opc_table_name(t, column), opc_table_name(again, column));
        for (int row = 0; row < 2; row++)
            assert_string_equal(opc_table_cell(t, row, column), opc_table_cell(again, row, column));
    }
    assert_string_equal(opc_table_cell(again, 0, 3), "a, \"b\"\nc");
    opc_table_free(t);
    opc_table_free(again);
}

static void other_line_ends_and_none_at_the_end_are_read(void **state)
{
    char path[512];
    struct opc_err err;
    struct opc_table *t;
    write_file(path_in(*state, "t.csv", path), "a,b\r\n1,\"2\"\r\n3,");
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_int_equal(opc_table_rows(t), 2);
    assert_string_equal(opc_table_cell(t, 0, 1), "2");
    assert_string_equal(opc_table_cell(t, 1, 1), "");
    opc_table_free(t);
}

static void damaged_tables_are_refused_with_their_line(void **state)
{
    static const char *const CASE[][3] = {
        {"a,b\n1,2\n3\n", ":3:", "1 cell,"},
        {"a,b\n\"x\ny\",2\n1,2,3\n", ":4:", "3 cells"},
        {"a,b\n1,\"2\n", ":2:", "not closed"},
        {"a,b\n1,\"2\"3\n", ":2:", "after"},
        {"", "", "empty"},
    };
    char path[512], where[600];
    path_in(*state, "t.csv", path);
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        struct opc_err err;
        struct opc_table *t;
        write_file(path, CASE[i][0]);
        snprintf(where, sizeof where, "%s%s", path, CASE[i][1]);
        assert_fails(opc_table_read(path, &t, &err), OPC_EDAMAGED, &err, where);
        assert_mentions(&err, CASE[i][2]);
    }
}

static void a_terminal_gets_aligned_columns(void **state)
{
    struct opc_err err;
    struct opc_table *t;
    struct opc_text out = {0};
    (void)state;
    assert_ok(opc_table_create("task,n,mean,note", &t, &err), &err);
    opc_table_word(t, "mujoco:hopper");
    opc_table_int(t, 5);
    opc_table_fixed(t, -1234.5, 1);
    opc_table_word(t, "1 of 2");
    opc_table_word(t, "ant");
    opc_table_int(t, 10);
    opc_table_real(t, (double)NAN);
    opc_table_word(t, "");
    opc_table_print(t, &out);
    assert_ok(opc_text_check(&out, &err), &err);
    assert_string_equal(opc_text_get(&out), "task            n     mean  note\n"
                                            "mujoco:hopper   5  -1234.5  1 of 2\n"
                                            "ant            10\n");
    opc_text_free(&out);
    opc_table_free(t);
}

static void half_a_row_is_a_bug(void **state)
{
    struct opc_err err;
    struct opc_table *t;
    (void)state;
    assert_ok(opc_table_create("a,b,c", &t, &err), &err);
    opc_table_int(t, 1);
    opc_table_int(t, 2);
    assert_fails(opc_table_write(t, "x.csv", &err), OPC_EBUG, &err, "x.csv");
    assert_mentions(&err, "2 of 3");
    assert_int_equal(opc_table_rows(t), 0);
    opc_table_free(t);
}

static int write_and_read(void *ctx, struct opc_err *err)
{
    struct opc_table *t, *again;
    struct opc_text printed = {0};
    int code = opc_table_create("a,b", &t, err);
    if (code)
        return code;
    for (int i = 0; i < 200; i++)
        opc_table_int(t, i);
    opc_table_print(t, &printed);
    code = opc_text_check(&printed, err);
    opc_text_free(&printed);
    if (!code)
        code = opc_table_write(t, ctx, err);
    opc_table_free(t);
    if (!code)
        code = opc_table_read(ctx, &again, err);
    if (!code) {
        assert_string_equal(opc_table_cell(again, 99, 1), "199");
        opc_table_free(again);
    }
    return code;
}

static void faults_are_survived(void **state)
{
    char path[512];
    path_in(*state, "t.csv", path);
    assert_survives_lack_of_memory(write_and_read, path);
    assert_survives_system_faults(write_and_read, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cells_are_written_as_csv_wants_them, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(what_was_written_is_read_back, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(other_line_ends_and_none_at_the_end_are_read, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(damaged_tables_are_refused_with_their_line, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(a_terminal_gets_aligned_columns),
        cmocka_unit_test(half_a_row_is_a_bug),
        cmocka_unit_test_setup_teardown(faults_are_survived, test_make_dir, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
