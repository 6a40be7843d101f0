/* SPDX-License-Identifier: MIT */
/* The claims in experiments/paper are about runs there are: a panel or line that is misspelt would
 * leave its claim undecided for ever, and nobody would be told. */
#include "study/exhibit/analysis.h"
#include "study/repro.h"
#include "sweep/sweep.h"

#include "drawn.h"
#include "runs.h"

#define PAPER OPC_TEST_DIR "/../experiments/paper"

/* A run of each task of the first seed, with one evaluation. */
static int make_runs(const char *dir, const struct opc_sweep *s, char **run)
{
    static const char METRICS[] = "epoch,env_steps,total_steps,eval_return\n1,100,100,1\n";
    struct opc_err err;
    char path[1024];
    int n = 0;
    for (int i = 0; i < s->tasks; i++) {
        struct opc_text text = {0};
        if (s->task[i].set.train.seed != s->task[0].set.train.seed)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, s->task[i].name);
        assert_ok(opc_make_directories(path, &err), &err);
        run[n++] = opc_strdup(path);
        opc_values_print(&s->task[i].set, &text);
        snprintf(path, sizeof path, "%s/config.yaml", run[n - 1]);
        assert_ok(opc_file_write(path, opc_text_get(&text), text.used, &err), &err);
        opc_text_free(&text);
        snprintf(path, sizeof path, "%s/metrics.csv", run[n - 1]);
        assert_ok(opc_file_write(path, METRICS, sizeof METRICS - 1, &err), &err);
    }
    return n;
}

/* Where no panel or line has such runs, the claim says so instead of a number. */
static bool is_of_runs(const char *measured)
{
    return strncmp(measured, "No ", 3) != 0 && strncmp(measured, "There is no ", 12) != 0;
}

/* What the sentences of best and spread must say where a tier makes a part of the cells only. */
static void check_cells(const char *name, const char *tier, const struct opc_exhibit_read *r)
{
    if (strcmp(name, "fig18") != 0 || strcmp(tier, "small") != 0)
        return;
    assert_contains(r->claim[1].measured, "MBPO (4 settings)");
    assert_contains(r->claim[1].measured, "OPC (4)");
}

/* How many claims it makes. */
static int check(const char *dir, const char *name, const char *tier)
{
    char path[1024], folder[600];
    struct opc_err err;
    struct opc_sweep *s;
    struct opc_exhibit *x;
    struct opc_exhibit_read *r;
    snprintf(path, sizeof path, PAPER "/%s.yaml", name);
    assert_ok(opc_sweep_open(&(struct opc_sweep_ask){.path = path, .tier = tier, .any_tier = true},
                             &s, &err),
              &err);
    if (s->probe || !s->figure || !opc_yaml_find(s->figure, "claims")) {
        opc_sweep_close(s);
        return 0;
    }
    snprintf(folder, sizeof folder, "%s/%s-%s", dir, name, tier);
    assert_ok(opc_make_directories(folder, &err), &err);
    char **run = opc_alloc((size_t)s->tasks, sizeof *run);
    assert_non_null(run);
    const int n = make_runs(folder, s, run);
    const struct opc_exhibit_plan plan = {.dir = folder, .name = name, .title = name};
    const struct opc_request request = {.figure = s->figure, .runs = n, .run = run, .seed = 1};
    assert_ok(opc_exhibit_begin(&plan, &x, &err), &err);
    assert_ok(opc_analysis_run(&opc_learning_curves, &request, x, &err), &err);
    assert_ok(opc_exhibit_end(x, &err), &err);
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    assert_ok(opc_exhibit_load(path, &r, &err), &err);
    for (int i = 0; i < r->claims; i++)
        if (!is_of_runs(r->claim[i].measured))
            fail_msg("%s, %s: %s: %s", name, tier, r->claim[i].claim, r->claim[i].measured);
    check_cells(name, tier, r);
    const int claims = r->claims;
    opc_exhibit_unload(r);
    for (int i = 0; i < n; i++)
        opc_free(run[i]);
    opc_free(run);
    opc_sweep_close(s);
    return claims;
}

static void every_claim_is_about_runs_of_its_experiment(void **state)
{
    struct opc_err err;
    char **name;
    int n, claims = 0;
    assert_ok(opc_experiments_list(PAPER, &name, &n, &err), &err);
    for (int i = 0; i < n; i++) {
        claims += check(*state, name[i], "full");
        claims += check(*state, name[i], "small");
        opc_free(name[i]);
    }
    opc_free(name);
    assert_true(claims > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_claim_is_about_runs_of_its_experiment, test_make_dir,
                                        test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
