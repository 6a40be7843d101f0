/* SPDX-License-Identifier: MIT */
#include "base/field.h"

#include "test.h"

#include <limits.h>

/* A table with every kind. */
enum transition { REPLAY, LEARNED, CORRECTED };
/* clang-format off */
#define TOY_FIELDS(X)                                                                              \
    /* kind   name           fallback      least  most   help                                   */ \
    X(REAL,   discount,      "0.99",       0,     1,     "gamma, the discount of eq. 1")           \
    X(REAL,   entropy,       "-1.5",       -INFINITY, INFINITY, "entropy goal")                    \
    X(INT,    batch,         "256",        1,     1e6,   "transitions in one gradient step")       \
    X(INT,    seed,          "1",          0,     1e12,  "of all random numbers")                  \
    X(BOOL,   tune,          "true",       0,     1,     "adapt the temperature")                  \
    X(TEXT,   name,          "cartpole",   1,     20,    "the task")                               \
    X(TEXT,   note,          "",           0,     255,   "anything worth remembering")             \
    X(CHOICE, transition,    "corrected",  "replay|learned|corrected", , "what moves the state")   \
    X(INTS,   hidden,        "[64, 64]",   1,     4096,  "widths of the hidden layers")            \
    X(REALS,  band,          "[25, 75]",   0,     100,   "percentiles that bound the band, of which a figure shows as many as there are pairs")
/* clang-format on */
struct toy {
    TOY_FIELDS(OPC_MEMBER)
};
#define SELF struct toy
static const struct opc_section toy_section =
    OPC_SECTION("toy", "an example with every kind", TOY_FIELDS);
#undef SELF

#define OTHER_FIELDS(X) X(INT, epochs, "10", 1, INFINITY, "how long")
struct other {
    OTHER_FIELDS(OPC_MEMBER)
};
#define SELF struct other
static const struct opc_section other_section = OPC_SECTION("train", "the loop", OTHER_FIELDS);
#undef SELF

static struct toy defaults(void)
{
    struct toy v;
    struct opc_err err;
    memset(&v, 0xff, sizeof v);
    assert_ok(opc_section_defaults(&toy_section, &v, &err), &err);
    return v;
}

static void the_table_makes_struct_and_defaults(void **state)
{
    (void)state;
    const struct toy v = defaults();
    assert_int_equal(toy_section.n, 10);
    assert_int_equal(toy_section.size, sizeof v);
    assert_true(v.discount == 0.99 && v.entropy == -1.5);
    assert_int_equal(v.batch, 256);
    assert_true(v.tune);
    assert_string_equal(v.name, "cartpole");
    assert_string_equal(v.note, "");
    assert_int_equal(v.transition, CORRECTED);
    assert_int_equal(v.hidden.n, 2);
    assert_int_equal(v.hidden.at[1], 64);
    assert_int_equal(v.band.n, 2);
    assert_true(v.band.at[1] == 75);
}

/* The saved copy beside a run must be able to stand in for it, to the last bit. */
static void printed_values_set_the_same_bits_again(void **state)
{
    (void)state;
    struct opc_err err;
    struct toy v = defaults(), again = defaults();
    v.discount = 1.0 / 3;
    v.entropy = -HUGE_VAL;
    v.batch = 1000000;
    v.seed = INT_MAX;
    v.tune = false;
    strcpy(v.note, "with spaces, commas, [brackets] and = signs");
    v.transition = LEARNED;
    v.hidden = (struct opc_ints){0};
    v.band = (struct opc_reals){3, {0.1 + 0.2, 100, 1e-30}};
    for (int i = 0; i < toy_section.n; i++) {
        const struct opc_field *f = &toy_section.fields[i];
        struct opc_text t = {0};
        opc_field_print(f, &v, &t);
        assert_ok(opc_section_set(&toy_section, &again, f->name, opc_text_get(&t), &err), &err);
        opc_text_free(&t);
    }
    assert_same_bits(&again, &v, sizeof v);
}

static void values_are_printed_in_one_way(void **state)
{
    (void)state;
    static const char *const CASE[][3] = {
        {"discount", ".50", "0.5"},
        {"batch", "1e3", "1000"},
        {"batch", "+7", "7"},
        {"tune", "no", "false"},
        {"tune", "on", "true"},
        {"transition", "replay", "replay"},
        {"hidden", "8,16 , 32", "[8, 16, 32]"},
        {"hidden", "[ 5 ]", "[5]"},
        {"hidden", "", "[]"},
        {"hidden", "[]", "[]"},
        {"hidden", "[ ]", "[]"},
        {"band", "[1e1]", "[10]"},
        {"entropy", "inf", "inf"},
        {"note", "", ""},
    };
    struct toy v = defaults();
    struct opc_err err;
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        struct opc_text t = {0};
        assert_ok(opc_section_set(&toy_section, &v, CASE[i][0], CASE[i][1], &err), &err);
        opc_field_print(opc_section_find(&toy_section, CASE[i][0]), &v, &t);
        assert_string_equal(opc_text_get(&t), CASE[i][2]);
        opc_text_free(&t);
    }
}

static void what_will_not_do_is_refused_with_reason_and_default(void **state)
{
    (void)state;
    static const char *const CASE[][3] = {
        {"discount", "1.5", "[0, 1]"},
        {"discount", "nan", "[0, 1]"},
        {"discount", "high", "number"},
        {"discount", "", "''"},
        {"batch", "0", "[1, 1000000]"},
        {"batch", "2.5", "whole number"},
        {"batch", "inf", "[1, 1000000]"},
        {"seed", "2147483648", "[0, 2147483647]"},
        {"tune", "maybe", "false"},
        {"name", "", "empty"},
        {"name", "a_name_of_too_many_letters", "26"},
        {"transition", "lerned", "'learned'"},
        {"transition", "mbpo", "replay, learned, corrected"},
        {"hidden", "[64, 0]", "[1, 4096]"},
        {"hidden", "[64, x]", "'x'"},
        {"hidden", "64,,64", "''"},
        {"hidden", "[64", "bracket"},
        {"hidden", "64]", "bracket"},
        {"hidden", "64 64", "comma"},
        {"hidden", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "16"},
        {"hidden", "1.00000000000000000000000000000000000000000000000000e0", "too long"},
        {"discuont", "1", "discount"},
        {"zzz", "1", "opc config toy"},
    };
    const struct toy before = defaults();
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        struct toy v = before;
        struct opc_err err;
        assert_fails(opc_section_set(&toy_section, &v, CASE[i][0], CASE[i][1], &err), OPC_EUSER,
                     &err, CASE[i][2]);
        const struct opc_field *f = opc_section_find(&toy_section, CASE[i][0]);
        assert_mentions(&err, CASE[i][0]);
        if (f && *CASE[i][1])
            assert_mentions(&err, CASE[i][1]);
        if (f) {
            assert_mentions(&err, f->fallback);
            assert_mentions(&err, f->help);
        }
        assert_same_bits(&v, &before, sizeof v);
    }
}

static void lists_may_be_as_long_as_their_room(void **state)
{
    (void)state;
    struct toy v = defaults();
    struct opc_err err;
    assert_ok(
        opc_section_set(&toy_section, &v, "hidden", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", &err),
        &err);
    assert_int_equal(v.hidden.n, OPC_LIST_MAX);
    assert_int_equal(v.hidden.at[15], 16);
    char text[OPC_TEXT_SIZE + 1];
    memset(text, 'x', OPC_TEXT_SIZE);
    text[OPC_TEXT_SIZE] = '\0';
    assert_int_equal(opc_section_set(&toy_section, &v, "note", text, &err), OPC_EUSER);
    assert_ok(opc_section_set(&toy_section, &v, "note", text + 1, &err), &err);
    assert_int_equal(strlen(v.note), OPC_TEXT_SIZE - 1);
}

/* An analysis without options is one. */
static void a_section_may_have_no_settings(void **state)
{
    (void)state;
    static const struct opc_section NONE = {"", "", NULL, 0, 0};
    struct opc_err err;
    char nothing;
    assert_fails(opc_section_set(&NONE, &nothing, "xyzzy", "1", &err), OPC_EUSER, &err, "'xyzzy'");
    assert_null(strstr(err.text, "opc config"));
}

static void keys_name_section_and_field(void **state)
{
    (void)state;
    struct toy v = defaults();
    struct other w = {0};
    const struct opc_part part[] = {{&toy_section, &v}, {&other_section, &w}};
    struct opc_err err;
    assert_ok(opc_parts_set(part, 2, "train.epochs", "20", &err), &err);
    assert_int_equal(w.epochs, 20);
    assert_ok(opc_parts_set(part, 2, "toy.discount", "1", &err), &err);
    assert_true(v.discount == 1);

    assert_fails(opc_parts_set(part, 2, "toy.discount", "2", &err), OPC_EUSER, &err,
                 "toy.discount");
    assert_mentions(&err, "[0, 1]");
    assert_fails(opc_parts_set(part, 2, "toy.dicount", "1", &err), OPC_EUSER, &err, "discount");
    assert_fails(opc_parts_set(part, 2, "trian.epochs", "1", &err), OPC_EUSER, &err,
                 "train.epochs");
    assert_fails(opc_parts_set(part, 2, "epochs", "1", &err), OPC_EUSER, &err, "train.epochs");
    assert_fails(opc_parts_set(part, 2, "nonsense", "1", &err), OPC_EUSER, &err,
                 "opc config --list");
    assert_fails(opc_parts_set(part, 2, "toys.batch", "1", &err), OPC_EUSER, &err, "toy.batch");
}

static const char *metal(int i)
{
    static const char *const NAME[] = {"iron", "copper", "tin"};
    return i < 3 ? NAME[i] : NULL;
}

static void a_name_is_an_entry_of_a_table_that_lies_elsewhere(void **state)
{
    (void)state;
    const struct opc_field field = {"metal", OPC_FIELD_NAME, 0,     "copper",    0,
                                    0,       NULL,           metal, "of a wire", NULL};
    const struct opc_section section = {"s", "help", &field, 1, sizeof(int)};
    struct opc_text t = {0};
    struct opc_err err;
    int v;
    assert_ok(opc_section_defaults(&section, &v, &err), &err);
    assert_int_equal(v, 1);
    assert_ok(opc_section_set(&section, &v, "metal", "tin", &err), &err);
    assert_int_equal(v, 2);
    opc_field_print(&field, &v, &t);
    assert_string_equal(opc_text_get(&t), "tin");
    assert_int_equal(opc_section_set(&section, &v, "metal", "coper", &err), OPC_EUSER);
    assert_non_null(strstr(err.text, "iron, copper, tin"));
    assert_non_null(strstr(err.text, "'copper'"));
    assert_int_equal(v, 2);
    opc_text_clear(&t);
    opc_section_markdown(&section, &t);
    assert_non_null(strstr(opc_text_get(&t), "of a wire: iron, copper, tin"));
    opc_text_free(&t);
}

static void a_default_that_does_not_parse_is_our_bug(void **state)
{
    (void)state;
    const struct opc_field broken = {"n", OPC_FIELD_INT, 0, "none", 0, 1, NULL, NULL, "help", NULL};
    const struct opc_section section = {"s", "broken", &broken, 1, sizeof(int)};
    int v;
    struct opc_err err;
    assert_fails(opc_section_defaults(&section, &v, &err), OPC_EBUG, &err, "s.n");
    assert_mentions(&err, "none");
}

static void the_page_explains_every_setting_in_100_columns(void **state)
{
    (void)state;
    struct opc_text t = {0};
    opc_section_describe(&toy_section, NULL, 100, &t);
    /* clang-format off */
    assert_string_equal(opc_text_get(&t),
"toy - an example with every kind\n"
"\n"
"  setting     type    default    allowed          meaning\n"
"  discount    real    0.99       0 .. 1           gamma, the discount of eq. 1\n"
"  entropy     real    -1.5                        entropy goal\n"
"  batch       int     256        1 .. 1000000     transitions in one gradient step\n"
"  seed        int     1          0 .. 2147483647  of all random numbers\n"
"  tune        bool    true                        adapt the temperature\n"
"  name        text    cartpole   not empty        the task\n"
"  note        text                                anything worth remembering\n"
"  transition  choice  corrected                   what moves the state: replay, learned, corrected\n"
"  hidden      ints    [64, 64]   1 .. 4096 each   widths of the hidden layers\n"
"  band        reals   [25, 75]   0 .. 100 each    percentiles that bound the band, of which a figure\n"
"                                                  shows as many as there are pairs\n");
    /* clang-format on */
    for (const char *line = opc_text_get(&t); *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
    opc_text_free(&t);
}

static void the_same_page_is_a_markdown_table(void **state)
{
    (void)state;
    struct opc_text t = {0};
    const struct opc_field rows[] = {
        {"bar", OPC_FIELD_TEXT, 0, "a|b", 0, 9, NULL, NULL, "this | that", NULL},
        {"half", OPC_FIELD_REAL, 0, "0.5", 0, INFINITY, NULL, NULL, "open upwards", NULL},
        {"low", OPC_FIELD_REAL, 0, "0.5", -INFINITY, 1, NULL, NULL, "open downwards", NULL},
    };
    const struct opc_section section = {"s", "help", rows, 3, 256};
    opc_section_markdown(&section, &t);
    assert_string_equal(opc_text_get(&t), "| setting | type | default | allowed | meaning |\n"
                                          "|---|---|---|---|---|\n"
                                          "| `s.bar` | text | `a\\|b` |  | this \\| that |\n"
                                          "| `s.half` | real | `0.5` | >= 0 | open upwards |\n"
                                          "| `s.low` | real | `0.5` | <= 1 | open downwards |\n");
    opc_text_free(&t);
}

static int describe(void *ctx, struct opc_err *err)
{
    struct opc_text t = {0};
    if (ctx)
        opc_section_markdown(&toy_section, &t);
    else
        opc_section_describe(&toy_section, NULL, 100, &t);
    const int code = opc_text_check(&t, err);
    opc_text_free(&t);
    return code;
}

static void pages_survive_lack_of_memory(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(describe, NULL);
    assert_survives_lack_of_memory(describe, "markdown");
}

/* An option that may be given several times; what was given before a refused one stays. */
static void texts_are_collected_in_order(void **state)
{
    struct collected {
        struct opc_texts add;
    };
    static const struct opc_field FIELD = {"add", OPC_FIELD_TEXTS, 0,   "", 1, 255, NULL,
                                           NULL,  "a directory",   NULL};
    static const struct opc_section SECTION = {"", "", &FIELD, 1, sizeof(struct collected)};
    struct collected v;
    struct opc_err err = {0};
    struct opc_text printed = {0};
    (void)state;
    memset(&v, 0xff, sizeof v);
    assert_ok(opc_section_defaults(&SECTION, &v, &err), &err);
    assert_int_equal(v.add.n, 0);
    assert_ok(opc_section_set(&SECTION, &v, "add", "b", &err), &err);
    assert_ok(opc_section_set(&SECTION, &v, "add", "a, c", &err), &err);
    assert_fails(opc_section_set(&SECTION, &v, "add", "", &err), OPC_EUSER, &err, "add");
    assert_int_equal(v.add.n, 2);
    assert_string_equal(v.add.at[0], "b");
    assert_string_equal(v.add.at[1], "a, c");
    opc_field_print(&FIELD, &v, &printed);
    assert_string_equal(opc_text_get(&printed), "b, a, c");
    opc_text_free(&printed);
    while (v.add.n < OPC_LIST_MAX)
        assert_ok(opc_section_set(&SECTION, &v, "add", "d", &err), &err);
    assert_fails(opc_section_set(&SECTION, &v, "add", "e", &err), OPC_EUSER, &err, "16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_makes_struct_and_defaults),
        cmocka_unit_test(printed_values_set_the_same_bits_again),
        cmocka_unit_test(values_are_printed_in_one_way),
        cmocka_unit_test(what_will_not_do_is_refused_with_reason_and_default),
        cmocka_unit_test(lists_may_be_as_long_as_their_room),
        cmocka_unit_test(a_section_may_have_no_settings),
        cmocka_unit_test(keys_name_section_and_field),
        cmocka_unit_test(a_name_is_an_entry_of_a_table_that_lies_elsewhere),
        cmocka_unit_test(a_default_that_does_not_parse_is_our_bug),
        cmocka_unit_test(the_page_explains_every_setting_in_100_columns),
        cmocka_unit_test(the_same_page_is_a_markdown_table),
        cmocka_unit_test(pages_survive_lack_of_memory),
        cmocka_unit_test(texts_are_collected_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
