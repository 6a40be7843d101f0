/* SPDX-License-Identifier: MIT */
/* runs.h - run directories made of nothing but their settings and their evaluations. */
#ifndef OPC_TEST_RUNS_H
#define OPC_TEST_RUNS_H

#include "base/file.h"
#include "base/text.h"
#include "opc/config.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "study/exhibit/table.h"
#include "test.h"

/* DIR/name with n evaluations, the k-th after `each` (k + 1) steps and `random` ones before them;
 * settings are assignments, NULL at the end. */
static inline void test_make_run_after(const char *dir, const char *name,
                                       const char *const *settings, int random, int each, int n,
                                       const double *value)
{
    char run[600], path[700], *config_text;
    struct opc_err err;
    struct opc_config *config;
    struct opc_text metrics = {0};
    snprintf(run, sizeof run, "%s/%s", dir, name);
    assert_ok(opc_make_directories(run, &err), &err);
    assert_ok(opc_config_create(&config, &err), &err);
    for (; *settings; settings++)
        assert_ok(opc_config_set(config, *settings, &err), &err);
    assert_ok(opc_config_print(config, &config_text, &err), &err);
    snprintf(path, sizeof path, "%s/config.yaml", run);
    assert_ok(opc_file_write(path, config_text, strlen(config_text), &err), &err);
    opc_free(config_text);
    opc_config_destroy(config);
    opc_text_add(&metrics, "epoch,env_steps,total_steps,eval_return\n");
    for (int k = 0; k < n; k++) {
        opc_text_addf(&metrics, "%d,%d,%d,", k + 1, each * (k + 1), random + each * (k + 1));
        opc_text_add_real(&metrics, value[k]);
        opc_text_add(&metrics, "\n");
    }
    snprintf(path, sizeof path, "%s/metrics.csv", run);
    assert_ok(opc_file_write(path, opc_text_get(&metrics), metrics.used, &err), &err);
    opc_text_free(&metrics);
}

/* The same with an evaluation every 100 steps and no random ones. */
static inline void test_make_run(const char *dir, const char *name, const char *const *settings,
                                 int n, const double *value)
{
    test_make_run_after(dir, name, settings, 0, 100, n, value);
}

/* What is in the file of a table, which is written into DIR for that. Frees the table. */
static inline void test_assert_csv(const char *dir, struct opc_table *t, const char *want)
{
    char path[700], *text;
    struct opc_err err;
    snprintf(path, sizeof path, "%s/table.csv", dir);
    assert_ok(opc_table_write(t, path, &err), &err);
    assert_ok(opc_file_read(path, 10000, &text, NULL, &err), &err);
    assert_string_equal(text, want);
    opc_free(text);
    opc_table_free(t);
}

/* The cell of DIR/metrics.csv in a row, from 1, and column; NaN where it is empty. Row 0 is the
 * last. */
static inline double test_metric(const char *dir, int row, const char *column)
{
    struct opc_rundir_table t;
    struct opc_err err;
    int k;
    assert_ok(opc_rundir_table_read(dir, "metrics.csv", &t, &err), &err);
    assert_ok(opc_rundir_table_find(&t, column, &k, &err), &err);
    assert_true(t.rows > 0 && row <= t.rows);
    const int at = (row ? row : t.rows) - 1;
    assert_int_equal(t.cells[at], t.columns);
    const double value = opc_rundir_table_number(&t, at, k);
    opc_rundir_table_free(&t);
    return value;
}

#endif
