/* SPDX-License-Identifier: MIT */
#include "run/config/yaml.h"

#include "test.h"

static int parse(const char *text, struct opc_yaml **out, struct opc_err *err)
{
    return opc_yaml_parse("f", text, strlen(text), out, err);
}

static void words_lists_and_maps_are_read_in_order(void **state)
{
    (void)state;
    struct opc_yaml *tree;
    struct opc_err err;
    assert_ok(parse("# a comment\n"
                    "train:\n"
                    "  seed: 3\n"
                    "  rate: 1e-3\n"
                    "list: [a, 'b c', \"d\"]\n"
                    "when:\n"
                    "  - {match: {x: no}}\n"
                    "  - 7\n",
                    &tree, &err),
              &err);
    assert_int_equal(tree->kind, OPC_YAML_MAP);
    const struct opc_yaml *train = opc_yaml_find(tree, "train");
    assert_int_equal(train->line, 2);
    assert_string_equal(train->first->key, "seed");
    assert_string_equal(train->first->text, "3");
    assert_int_equal(train->first->next->line, 4);
    assert_string_equal(train->first->next->text, "1e-3");
    assert_null(train->first->next->next);
    const struct opc_yaml *list = opc_yaml_find(tree, "list");
    assert_int_equal(list->kind, OPC_YAML_LIST);
    assert_string_equal(list->first->next->text, "b c");
    assert_null(list->first->key);
    const struct opc_yaml *when = opc_yaml_find(tree, "when");
    assert_string_equal(when->first->first->first->text, "no"); /* a text, not a truth value */
    assert_int_equal(when->first->next->line, 8);
    assert_null(opc_yaml_find(tree, "nothing"));
    opc_yaml_free(tree);
}

static void nothing_is_an_empty_map(void **state)
{
    (void)state;
    static const char *const EMPTY[] = {"", "\n\n", "# only a comment\n", "---\n"};
    for (int i = 0; i < 4; i++) {
        struct opc_yaml *tree;
        struct opc_err err;
        assert_ok(parse(EMPTY[i], &tree, &err), &err);
        assert_int_equal(tree->kind, OPC_YAML_MAP);
        assert_null(tree->first);
        opc_yaml_free(tree);
    }
}

static void what_we_do_not_have_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *key;
    } CASE[] = {
        {"a: 1\nb: 2\na: 3\n", "f:3:", "'a'"},
        {"a: &x 1\n", "f:1:", "&x"},
        {"a: 1\nb: &y [1]\n", "f:2:", "&y"},
        {"a: *x\n", "f:1:", "*x"},
        {"a: !!int 1\n", "f:1:", "tag:yaml.org,2002:int"},
        {"a: !mine {}\n", "f:1:", "!mine"},
        {"a: 1\n---\nb: 2\n", "f:2:", "document"},
        {"[a]: 1\n", "f:1:", "key"},
        {"? {a: b}\n: 1\n", "f:1:", "key"},
        {"a: \"x\\ny\"\n", "f:1:", "control"},
        {"a: \"x\\0y\"\n", "f:1:", "control"},
        {"a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}\n", "f:1:", "8 deep"},
        {"a: [1, 2\n", "f:2:", "column 1"},
        {"a: b: c\n", "f:1:", "column 5"},
        {"\ta: 1\n", "f:1:", "column 1"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        struct opc_yaml *tree;
        struct opc_err err = {0};
        assert_fails(parse(CASE[i].text, &tree, &err), OPC_EUSER, &err, CASE[i].where);
        assert_mentions(&err, CASE[i].key);
    }
    struct opc_yaml *tree;
    struct opc_err err = {0};
    assert_fails(parse("a: \xff\n", &tree, &err), OPC_EUSER, &err, "UTF-8");
}

static void a_word_is_printed_so_that_it_is_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *word, *printed;
    } CASE[] = {
        {"cartpole", "cartpole"},
        {"mujoco:hopper?angle=sincos&x=1", "mujoco:hopper?angle=sincos&x=1"},
        {"-0.5", "-0.5"},
        {"./a/b.so", "./a/b.so"},
        {"", "\"\""},
        {"-", "\"-\""},
        {"- a", "\"- a\""},
        {"a: b", "\"a: b\""},
        {"a:", "\"a:\""},
        {"a #b", "\"a #b\""},
        {"[1]", "\"[1]\""},
        {"&a", "\"&a\""},
        {"...", "\"...\""},
        {"say \"hi\\\"", "\"say \\\"hi\\\\\\\"\""},
        {"\xc3\xa4", "\"\\U000000e4\""},
        {"\xf0\x9f\x90\x8e", "\"\\U0001f40e\""},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        struct opc_text t = {0};
        struct opc_yaml *tree;
        struct opc_err err = {0};
        opc_text_add(&t, "x: [");
        opc_yaml_add_word(&t, CASE[i].word);
        opc_text_add(&t, "]\n");
        assert_non_null(strstr(opc_text_get(&t), CASE[i].printed));
        assert_ok(parse(opc_text_get(&t), &tree, &err), &err);
        assert_string_equal(tree->first->first->text, CASE[i].word);
        opc_yaml_free(tree);
        opc_text_free(&t);
    }
}

static void only_printable_utf8_is_clean(void **state)
{
    (void)state;
    assert_true(opc_yaml_is_clean(""));
    assert_true(opc_yaml_is_clean("plain ~"));
    assert_true(opc_yaml_is_clean("\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8e"));
    static const char *const BAD[] = {
        "\n",
        "\x7f",
        "\x1b[0m",
        "\xc2\x85", /* controls */
        "\xff",
        "\xc3",
        "\xc3(",
        "\xe2\x82", /* cut short */
        "\xc0\xaf",
        "\xe0\x80\xaf",
        "\xf0\x80\x80\xaf", /* too long */
        "\xed\xa0\x80",
        "\xf4\x90\x80\x80", /* no characters */
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_false(opc_yaml_is_clean(BAD[i]));
}

static int create(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_yaml *tree;
    const int code = parse("a: {b: [1, 2], c: d}\n", &tree, err);
    if (!code)
        opc_yaml_free(tree);
    return code;
}

static void reading_survives_lack_of_memory(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_lists_and_maps_are_read_in_order),
        cmocka_unit_test(nothing_is_an_empty_map),
        cmocka_unit_test(what_we_do_not_have_is_refused_with_its_line),
        cmocka_unit_test(a_word_is_printed_so_that_it_is_read_back),
        cmocka_unit_test(only_printable_utf8_is_clean),
        cmocka_unit_test(reading_survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
