/* SPDX-License-Identifier: MIT */
/* What opc serve knows and answers, without a network: runs that change, appear and disappear, and
 * requests for what there is and what there is not. */
#include "web/api.h"

#include "runs.h"

static const char *const PLAIN[] = {NULL};

/* A request with one or two arguments. */
struct arguments {
    const char *key[2], *value[2];
};

static const char *get(void *ctx, const char *key)
{
    const struct arguments *a = ctx;
    for (int i = 0; i < 2; i++)
        if (a->key[i] && strcmp(a->key[i], key) == 0)
            return a->value[i];
    return NULL;
}

static struct opc_web_answer ask(struct opc_web_api *api, const char *path, struct arguments a)
{
    struct opc_web_answer answer;
    const struct opc_web_request request = {path, get, &a};
    opc_web_answer(api, &request, &answer);
    return answer;
}

static void expect(struct opc_web_api *api, int status, const char *part, const char *path,
                   struct arguments a)
{
    struct opc_web_answer answer = ask(api, path, a);
    if (answer.status != status)
        fail_msg("%s: %d instead of %d: %s", path, answer.status, status,
                 opc_text_get(&answer.own));
    if (part)
        assert_contains(opc_text_get(&answer.own), part);
    if (answer.fd >= 0)
        close(answer.fd);
    opc_text_free(&answer.own);
}

static struct opc_watch *watch_of(char *dir)
{
    struct opc_watch *watch;
    struct opc_err err;
    assert_ok(opc_watch_open(1, &dir, &watch, &err), &err);
    return watch;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void a_run_that_changes_appears_or_disappears_is_told_once(void **state)
{
    char *dir = *state, path[OPC_PATH];
    struct opc_err err;
    test_make_run(dir, "b", PLAIN, 1, (const double[]){1});
    struct opc_watch *watch = watch_of(dir);
    assert_int_equal(watch->runs, 1);
    const uint64_t before = watch->version;
    /* Nothing changes. */
    assert_ok(opc_watch_pass(watch, &err), &err);
    assert_true(watch->version == before);
    /* A row more, and a run more, whose number is the next one although its name comes first. */
    test_make_run(dir, "b", PLAIN, 2, (const double[]){1, 5});
    test_make_run(dir, "a", PLAIN, 1, (const double[]){3});
    assert_ok(opc_watch_pass(watch, &err), &err);
    assert_int_equal(watch->runs, 2);
    assert_true(watch->run[0].now.last == 5 && watch->run[0].version > before);
    assert_true(watch->run[1].now.last == 3);
    assert_non_null(strstr(watch->run[1].dir, "/a"));
    /* A run that is removed keeps its number, and is found no more. */
    snprintf(path, sizeof path, "%s/b", dir);
    test_remove(path);
    assert_ok(opc_watch_pass(watch, &err), &err);
    assert_null(opc_watch_find(watch, 0));
    assert_non_null(opc_watch_find(watch, 1));
    opc_watch_close(watch);
}

static void a_page_gets_what_is_newer_than_its_version(void **state)
{
    char *dir = *state, since[32];
    struct opc_err err;
    test_make_run(dir, "first", PLAIN, 1, (const double[]){1});
    test_make_run(dir, "second", PLAIN, 1, (const double[]){2});
    struct opc_watch *watch = watch_of(dir);
    struct opc_web_api api = {.watch = watch};
    expect(&api, 200, "/second\"", "/api/runs", (struct arguments){{NULL}, {NULL}});
    snprintf(since, sizeof since, "%llu", (unsigned long long)watch->version);
    struct arguments newer = {{"since"}, {since}};
    expect(&api, 200, "\"runs\": []", "/api/runs", newer);
    test_make_run(dir, "second", PLAIN, 2, (const double[]){2, 7});
    assert_ok(opc_watch_pass(watch, &err), &err);
    struct opc_web_answer answer = ask(&api, "/api/runs", newer);
    assert_contains(opc_text_get(&answer.own), "\"eval_return\": 7");
    assert_null(strstr(opc_text_get(&answer.own), "first"));
    opc_text_free(&answer.own);
    opc_web_api_free(&api);
    opc_watch_close(watch);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void answers_are_about_runs_by_number_and_files_by_list(void **state)
{
    char *dir = *state;
    test_make_run(dir, "a", (const char *const[]){"train.seed=1", NULL}, 2, (const double[]){1, 3});
    test_make_run(dir, "b", (const char *const[]){"train.seed=2", NULL}, 2, (const double[]){3, 5});
    struct opc_watch *watch = watch_of(dir);
    struct opc_web_api api = {.watch = watch};
    const struct arguments run = {{"run"}, {"0"}};
    expect(&api, 200, "\"eval_return\": [1,3]", "/api/metrics", run);
    expect(&api, 200, "\"key\": \"train.seed\"", "/api/settings", run);
    expect(&api, 200, "[]", "/api/differences", (struct arguments){{"a", "b"}, {"0", "1"}});
    expect(&api, 200, "metrics.csv", "/api/files", run);
    /* Two seeds are one line: the median of 1, 3 and of 3, 5. */
    expect(&api, 200, "\"middle\": [2,4]", "/api/curves", (struct arguments){{"runs"}, {"0,1"}});
    expect(&api, 200, "\"middle\": [2,4]", "/api/curves", (struct arguments){{"runs"}, {"0,1"}});
    expect(&api, 200, "\"groups\": []", "/api/curves", (struct arguments){{"runs"}, {"7,x,-1"}});
    expect(&api, 200, NULL, "/", (struct arguments){{NULL}, {NULL}});
    expect(&api, 200, NULL, "/uPlot.esm.js", (struct arguments){{NULL}, {NULL}});
    expect(&api, 200, NULL, "/file", (struct arguments){{"run", "name"}, {"0", "metrics.csv"}});
    /* What there is not. */
    static const char *const NAMES[] = {"../b/metrics.csv", "config.yaml",  "",
                                        "/etc/passwd",      "metrics.csv/", "./metrics.csv"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        expect(&api, 404, NULL, "/file", (struct arguments){{"run", "name"}, {"0", NAMES[i]}});
    expect(&api, 404, NULL, "/file", (struct arguments){{"root", "name"}, {"1", "a/metrics.csv"}});
    expect(&api, 404, NULL, "/api/log", (struct arguments){{"run"}, {"2"}});
    expect(&api, 404, NULL, "/../etc/passwd", (struct arguments){{NULL}, {NULL}});
    expect(&api, 400, NULL, "/api/curves", (struct arguments){{"runs", "smooth"}, {"0", "2"}});
    opc_web_api_free(&api);
    opc_watch_close(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_that_changes_appears_or_disappears_is_told_once,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(a_page_gets_what_is_newer_than_its_version, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(answers_are_about_runs_by_number_and_files_by_list,
                                        test_make_dir, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
