/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include "opc/rng.h"
#include "test.h"

#include <limits.h>
#include <locale.h>

static void text_grows_as_it_is_appended_to(void **state)
{
    (void)state;
    struct opc_text t = {0};
    struct opc_err err;
    assert_string_equal(opc_text_get(&t), "");
    for (int i = 0; i < 500; i++)
        opc_text_addf(&t, "%d,", i % 10);
    assert_int_equal(t.used, 1000);
    opc_text_clear(&t);
    assert_string_equal(opc_text_get(&t), "");
    opc_text_add(&t, "lr = ");
    opc_text_add_real(&t, 3e-4);
    opc_text_pad(&t, 3);
    opc_text_add_bytes(&t, "|no", 1);
    opc_text_addf(&t, "%s", "");
    assert_string_equal(opc_text_get(&t), "lr = 0.0003   |");
    assert_ok(opc_text_check(&t, &err), &err);
    opc_text_free(&t);
    opc_text_clear(&t);
    assert_string_equal(opc_text_get(&t), "");
}

static int fill_text(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_text t = {0};
    for (int i = 0; i < 100; i++) {
        opc_text_add(&t, "some");
        opc_text_addf(&t, "%s", "thing");
        opc_text_pad(&t, 2);
    }
    const int code = opc_text_check(&t, err);
    assert_true(code || t.used == 1100);
    opc_text_free(&t);
    return code;
}

static void text_remembers_lack_of_memory(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(fill_text, NULL);
}

static void integers_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    int v = 5;
    assert_true(opc_parse_int("-12", &v));
    assert_int_equal(v, -12);
    assert_true(opc_parse_int("+007", &v));
    assert_int_equal(v, 7);
    assert_true(opc_parse_int("2147483647", &v));
    assert_int_equal(v, INT_MAX);
    assert_true(opc_parse_int("-2147483648", &v));
    assert_int_equal(v, INT_MIN);

    int64_t w = 5;
    assert_true(opc_parse_int64("9223372036854775807", &w));
    assert_true(w == INT64_MAX);
    assert_true(opc_parse_int64("-9223372036854775808", &w));
    assert_true(w == INT64_MIN);

    static const char *const BAD[] = {"",    "-",   "+",   "- 1",        " 1",          "1 ", "1.0",
                                      "1e3", "0x1", "1_0", "2147483648", "-2147483649", "--1"};
    v = 5;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_false(opc_parse_int(BAD[i], &v));
    assert_int_equal(v, 5);
    w = 5;
    assert_false(opc_parse_int64("9223372036854775808", &w));
    assert_false(opc_parse_int64("-9223372036854775809", &w));
    assert_false(opc_parse_int64("99999999999999999999", &w));
    assert_true(w == 5);
}

static void reals_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double v;
    } GOOD[] = {{"1", 1},           {"-1.5", -1.5},      {".5", 0.5},
                {"5.", 5},          {"+1e-3", 1e-3},     {"1E+3", 1000},
                {"0", 0},           {"1e-999", 0},       {"inf", HUGE_VAL},
                {"+inf", HUGE_VAL}, {"-inf", -HUGE_VAL}, {"5e-324", 5e-324}};
    double v = 7;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        assert_true(opc_parse_real(GOOD[i].text, &v));
        assert_true(v == GOOD[i].v);
    }
    assert_true(opc_parse_real("nan", &v));
    assert_true(isnan(v));

    static const char *const BAD[] = {
        "",     ".",     "-",     "e5",    "1e",     "1e+", " 1",       "1 ",  "1,5",  "0x1",
        "1..2", "1.2.3", "1e5.5", "1e999", "-1e999", "Inf", "infinity", "NaN", "-nan", "1d3"};
    v = 7;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_false(opc_parse_real(BAD[i], &v));
    char endless[500];
    memset(endless, '0', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_false(opc_parse_real(endless, &v));
    assert_true(v == 7);
}

static void printed_reals_come_back_as_the_same_bits(void **state)
{
    (void)state;
    struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = (uint64_t)opc_rng_bits(&r) << 32 | opc_rng_bits(&r);
        double v, back;
        memcpy(&v, &bits, sizeof v);
        if (isnan(v))
            continue;
        char printed[OPC_PRINTED];
        assert_true(opc_parse_real(opc_print_real(v, printed), &back));
        assert_same_bits(&back, &v, sizeof v);
    }
}

static void printed_reals_are_as_short_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } CASE[] = {{0.1, "0.1"},
                {3e-4, "0.0003"},
                {1e6, "1000000"},
                {-0.0, "-0"},
                {0.1 + 0.2, "0.30000000000000004"},
                {1.0 / 3, "0.3333333333333333"},
                {HUGE_VAL, "inf"},
                {-HUGE_VAL, "-inf"},
                {1e300, "1e+300"},
                {5e-324, "4.94065645841247e-324"}};
    char printed[OPC_PRINTED];
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++)
        assert_string_equal(opc_print_real(CASE[i].v, printed), CASE[i].text);
    assert_string_equal(opc_print_real(-(double)NAN, printed), "nan");
}

static void fixed_digits_are_counted_behind_the_point(void **state)
{
    (void)state;
    static const struct {
        double v;
        int digits;
        const char *text;
    } CASE[] = {{2.0 / 3, 3, "0.667"}, {-12.5, 1, "-12.5"},   {1234.5678, 0, "1235"},
                {-0.001, 2, "0.00"},   {-0.0, 0, "0"},        {1, 12, "1.000000000"},
                {1e300, 2, "1e+300"},  {-HUGE_VAL, 2, "-inf"}};
    char printed[OPC_PRINTED];
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++)
        assert_string_equal(opc_print_fixed(CASE[i].v, CASE[i].digits, printed), CASE[i].text);
}

/* Machines for tests have no locale but C, so make one: the LC_NUMERIC file of glibc, which is a
 * magic number, the number of elements, where they are, and the elements. */
static bool use_decimal_comma(const char *dir)
{
    static const struct {
        uint32_t magic, n, offset[6];
        char point[2], separator[2], grouping[4];
        uint32_t wide_point, wide_separator;
        char codeset[8];
    } FILE_OF_GLIBC = {
        0x20031115 ^ LC_NUMERIC, 6, {32, 34, 36, 40, 44, 48}, ",", "", "\177", L',', 0, "UTF-8"};
    char path[600];
    snprintf(path, sizeof path, "%s/comma", dir);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", dir);
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fwrite(&FILE_OF_GLIBC, sizeof FILE_OF_GLIBC, 1, f);
    fclose(f);
    setenv("LOCPATH", dir, 1);
    return setlocale(LC_NUMERIC, "comma") != NULL;
}

/* A program that uses the library may have chosen a locale whose decimal point is a comma. */
static void numbers_look_the_same_in_every_locale(void **state)
{
    if (!use_decimal_comma(*state))
        skip(); /* another C library */
    char by_printf[OPC_PRINTED], printed[OPC_PRINTED], fixed[OPC_PRINTED];
    double v = 0;
    snprintf(by_printf, sizeof by_printf, "%g", 0.25);
    const bool point = opc_parse_real("1.5e-3", &v), comma = opc_parse_real("1,5", &v);
    opc_print_real(0.25, printed);
    opc_print_fixed(0.25, 1, fixed);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(by_printf, "0,25");
    assert_string_equal(printed, "0.25");
    assert_string_equal(fixed, "0.2"); /* half to even */
    assert_true(point);
    assert_false(comma);
    assert_true(v == 1.5e-3);
}

static void sizes_and_durations_are_for_people(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } SIZE[] = {{0, "0 B"},        {812, "812 B"},       {999.4, "999 B"},
                {999.6, "1.0 kB"}, {999949, "999.9 kB"}, {999951, "1.0 MB"},
                {5.2e9, "5.2 GB"}, {1.5e15, "1.5 PB"},   {-1, "?"},
                {HUGE_VAL, "?"}},
      TIME[] = {{0, "0 us"},         {1.5e-5, "15 us"},      {0.25, "250 ms"},
                {0.9996, "1.0 s"},   {4.21, "4.2 s"},        {59.96, "1 min 00 s"},
                {185, "3 min 05 s"}, {3599.6, "1 h 00 min"}, {3780, "1 h 03 min"},
                {86399, "1 d 00 h"}, {198000, "2 d 07 h"},   {-1, "?"},
                {HUGE_VAL, "?"}};
    char printed[OPC_PRINTED];
    for (size_t i = 0; i < sizeof SIZE / sizeof *SIZE; i++)
        assert_string_equal(opc_print_bytes(SIZE[i].v, printed), SIZE[i].text);
    for (size_t i = 0; i < sizeof TIME / sizeof *TIME; i++)
        assert_string_equal(opc_print_duration(TIME[i].v, printed), TIME[i].text);
    assert_string_equal(opc_print_duration((double)NAN, printed), "?");
    assert_string_equal(opc_print_bytes((double)NAN, printed), "?");
}

static void shell_words_can_be_pasted(void **state)
{
    char out[64];
    (void)state;
    assert_string_equal(opc_shell_word("runs/a_1.x", out, sizeof out), "runs/a_1.x");
    assert_string_equal(opc_shell_word("-weird", out, sizeof out), "./-weird");
    assert_string_equal(opc_shell_word("a b", out, sizeof out), "\"a b\"");
    assert_string_equal(opc_shell_word("-a b", out, sizeof out), "\"./-a b\"");
    assert_string_equal(opc_shell_word("a\"$`\\b", out, sizeof out), "\"a\\\"\\$\\`\\\\b\"");
    assert_string_equal(opc_shell_word("", out, sizeof out), "\"\"");
    /* What does not fit is cut, and stays a string. */
    assert_string_equal(opc_shell_word("abcdef", out, 4), "ab");
    assert_string_equal(opc_shell_word("abc", out, 1), "");
}

static void edit_distance_counts_the_slips_of_a_typist(void **state)
{
    (void)state;
    assert_int_equal(opc_edit_distance("", ""), 0);
    assert_int_equal(opc_edit_distance("", "abc"), 3);
    assert_int_equal(opc_edit_distance("discount", "discount"), 0);
    assert_int_equal(opc_edit_distance("discuont", "discount"), 1);
    assert_int_equal(opc_edit_distance("dicount", "discount"), 1);
    assert_int_equal(opc_edit_distance("kitten", "sitting"), 3);
    char endless[65];
    memset(endless, 'x', 64);
    endless[64] = '\0';
    assert_int_equal(opc_edit_distance(endless, "x"), INT_MAX);
    assert_int_equal(opc_edit_distance(endless + 1, "x"), 62);
}

static void the_nearest_word_is_offered_if_it_is_near(void **state)
{
    (void)state;
    static const char *const WORD[] = {"replay", "learned", "corrected", "learner"};
    static const struct {
        const char *name, *best;
    } CASE[] = {{"lerned", "learned"}, {"corected", "corrected"},
                {"reply", "replay"},   {"learner", "learner"},
                {"mbpo", NULL},        {"", NULL}};
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        const char *best = NULL;
        int nearest = INT_MAX;
        for (int k = 0; k < 4; k++)
            if (opc_nearer(CASE[i].name, WORD[k], &nearest))
                best = WORD[k];
        assert_ptr_equal(best, CASE[i].best);
        assert_ptr_equal(opc_nearest(CASE[i].name, WORD, 4, sizeof *WORD), CASE[i].best);
    }
}

static const char *colour(int i)
{
    static const char *const COLOUR[] = {"red", "green", "blue", NULL};
    return COLOUR[i];
}

static void the_nearest_name_is_found_in_tables_of_any_form(void **state)
{
    (void)state;
    static const struct {
        double weight;
        const char *name;
    } ROW[] = {{1, "walker2d"}, {2, "hopper"}, {3, "half_cheetah"}};
    assert_string_equal(opc_nearest("hoper", &ROW->name, 3, sizeof *ROW), "hopper");
    assert_null(opc_nearest("hoper", &ROW->name, 1, sizeof *ROW));
    assert_null(opc_nearest("hoper", &ROW->name, 0, sizeof *ROW));
    assert_string_equal(opc_nearest_of("grene", colour), "green");
    assert_null(opc_nearest_of("purple", colour));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_grows_as_it_is_appended_to),
        cmocka_unit_test(text_remembers_lack_of_memory),
        cmocka_unit_test(integers_are_read_whole_or_not_at_all),
        cmocka_unit_test(reals_are_read_whole_or_not_at_all),
        cmocka_unit_test(printed_reals_come_back_as_the_same_bits),
        cmocka_unit_test(printed_reals_are_as_short_as_people_write_them),
        cmocka_unit_test(fixed_digits_are_counted_behind_the_point),
        cmocka_unit_test_setup_teardown(numbers_look_the_same_in_every_locale, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(sizes_and_durations_are_for_people),
        cmocka_unit_test(shell_words_can_be_pasted),
        cmocka_unit_test(edit_distance_counts_the_slips_of_a_typist),
        cmocka_unit_test(the_nearest_word_is_offered_if_it_is_near),
        cmocka_unit_test(the_nearest_name_is_found_in_tables_of_any_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
