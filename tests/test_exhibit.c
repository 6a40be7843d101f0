/* SPDX-License-Identifier: MIT */
#include "study/exhibit/exhibit.h"

#include "base/file.h"
#include "drawn.h"
#include "opc/mem.h"
#include "opc/version.h"
#include "plot/draw.h"
#include "test.h"

static const double X[] = {0, 1}, Y[] = {0, 1};
static const struct opc_figure_layer LAYER = {
    .mark = OPC_PLOT_LINE, .label = "line", .n = 2, .x = X, .y = Y};
static const struct opc_panel PANEL = {.layers = 1, .layer = &LAYER};
static const struct opc_figure FIGURE = {.note = "own note", .panels = 1, .panel = &PANEL};

static int make_with(const char *dir, bool pictures, struct opc_err *err)
{
    const struct opc_exhibit_plan plan = {.dir = dir,
                                          .name = "fig9",
                                          .title = "a \"quoted\" title, θ",
                                          .tier = "smoke",
                                          .caption = "under every picture",
                                          .config = "a: 1\nb: [2]\n"};
    struct opc_exhibit *x;
    struct opc_table *t;
    int code = opc_table_create("a,b", &t, err);
    if (code)
        return code;
    opc_table_int(t, 1);
    opc_table_int(t, 2);
    code = opc_exhibit_begin(&plan, &x, err);
    if (code) {
        opc_table_free(t);
        return code;
    }
    opc_exhibit_note(x, "the %s differs", "engine");
    if (pictures)
        code = opc_exhibit_figure(x, NULL, "main", &FIGURE, err);
    if (pictures && !code)
        code = opc_exhibit_figure(x, "more", "second", &FIGURE, err);
    if (!code)
        code = opc_exhibit_table(x, "final", "a table", t, err);
    opc_table_free(t);
    opc_exhibit_claim(x, OPC_VERDICT_SUPPORTED, "water is wet", "%d of %d", 3, 4);
    opc_exhibit_claim(x, OPC_VERDICT_NOT_SUPPORTED, "pigs fly", "none did");
    opc_exhibit_claim(x, OPC_VERDICT_UNDECIDED, "who knows", "%.1f", 0.5);
    if (code) {
        opc_exhibit_drop(x);
        return code;
    }
    return opc_exhibit_end(x, err);
}

static int make(const char *dir, struct opc_err *err)
{
    return make_with(dir, true, err);
}

static void assert_there(const char *dir, const char *name, bool there)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (opc_file_exists(path) != there)
        fail_msg("%s is %sthere", name, there ? "not " : "");
}

static void what_was_made_is_read_back(void **state)
{
    char dir[600], path[700];
    struct opc_err err;
    struct opc_exhibit_read *r;
    snprintf(dir, sizeof dir, "%s/deep/er", (char *)*state);
    snprintf(path, sizeof path, "%s/fig9.json", dir);
    assert_ok(make(dir, &err), &err);
    assert_ok(opc_exhibit_load(path, &r, &err), &err);
    assert_string_equal(r->dir, dir);
    assert_string_equal(r->name, "fig9");
    assert_string_equal(r->title, "a \"quoted\" title, θ");
    assert_string_equal(r->tier, "smoke");
    assert_string_equal(r->caption, "under every picture");
    assert_string_equal(r->version, OPC_VERSION);
    assert_string_equal(r->command, "");
    assert_string_equal(r->config, "a: 1\nb: [2]\n");
    assert_int_equal(r->tables, 1);
    assert_string_equal(r->table[0].file, "fig9-final.csv");
    assert_string_equal(r->table[0].title, "a table");
    assert_int_equal(r->claims, 3);
    assert_string_equal(r->claim[0].claim, "water is wet");
    assert_string_equal(r->claim[0].measured, "3 of 4");
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_SUPPORTED);
    assert_int_equal(r->claim[1].verdict, OPC_VERDICT_NOT_SUPPORTED);
    assert_int_equal(r->claim[2].verdict, OPC_VERDICT_UNDECIDED);
    assert_string_equal(r->note[0], "the engine differs");
    assert_there(dir, "fig9-final.csv", true);
    assert_there(dir, "fig9-claims.csv", true);
    const bool drawn = opc_draw_version() != NULL;
    assert_int_equal(r->pictures, drawn ? 2 : 0);
    assert_int_equal(r->notes, drawn ? 1 : 2);
    if (drawn) {
        assert_string_equal(r->picture[0].file, "fig9");
        assert_string_equal(r->picture[1].file, "fig9-more");
        assert_string_equal(r->picture[1].title, "second");
    } else
        assert_contains(r->note[1], "cairo");
    opc_exhibit_unload(r);
    static const char *const END[] = {"fig9.svg",      "fig9.pdf",      "fig9.png",
                                      "fig9-more.svg", "fig9-more.pdf", "fig9-more.png"};
    for (int i = 0; i < 6; i++)
        assert_there(dir, END[i], drawn);
}

/* Its files may be half new by then. */
static void one_that_is_made_again_and_given_up_is_not_there(void **state)
{
    struct opc_exhibit *x;
    struct opc_err err;
    assert_ok(make(*state, &err), &err);
    assert_there(*state, "fig9.json", true);
    const struct opc_exhibit_plan plan = {.dir = *state, .name = "fig9", .title = "t"};
    assert_ok(opc_exhibit_begin(&plan, &x, &err), &err);
    opc_exhibit_drop(x);
    assert_there(*state, "fig9.json", false);
}

static void notes_and_caption_are_under_the_picture(void **state)
{
    if (!opc_draw_version())
        skip();
    char path[600], *svg;
    struct opc_err err;
    assert_ok(make(*state, &err), &err);
    snprintf(path, sizeof path, "%s/fig9.svg", (char *)*state);
    assert_ok(opc_file_read(path, 10000000, &svg, NULL, &err), &err);
    assert_non_null(strstr(svg, "own note\nunder every picture\n"));
    opc_free(svg);
}

static void claims_are_a_table_too(void **state)
{
    char path[600];
    struct opc_err err;
    struct opc_table *t;
    assert_ok(make(*state, &err), &err);
    snprintf(path, sizeof path, "%s/fig9-claims.csv", (char *)*state);
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_int_equal(opc_table_rows(t), 3);
    assert_string_equal(opc_table_cell(t, 1, opc_table_find(t, "verdict")), "not supported");
    assert_string_equal(opc_table_cell(t, 0, opc_table_find(t, "measured")), "3 of 4");
    opc_table_free(t);
}

/* The part of the file from the first `from` on is replaced. */
static void damage(const char *path, const char *from, const char *by)
{
    char *text;
    struct opc_err err;
    struct opc_text out = {0};
    assert_ok(opc_file_read(path, 100000, &text, NULL, &err), &err);
    const char *at = strstr(text, from);
    assert_non_null(at);
    opc_text_add_bytes(&out, text, (size_t)(at - text));
    opc_text_addf(&out, "%s%s", by, at + strlen(from));
    assert_ok(opc_file_write(path, opc_text_get(&out), out.used, &err), &err);
    opc_text_free(&out);
    opc_free(text);
}

static void damaged_exhibits_are_refused(void **state)
{
    static const char *const CASE[][3] = {
        {"\"name\"", "\"nome\"", "\"name\""},
        {"\"smoke\"", "7", "\"tier\""},
        {"\"claims\": [", "\"claims\": 3, \"x\": [", "\"claims\""},
        {"\"not supported\"", "\"maybe\"", "claims[1].verdict"},
        {"\"fig9-final.csv\"", "\"../fig9\"", "tables[0].file"},
        {"\"a table\"", "null", "tables[0].title"},
        {"\"the engine differs\"", "[]", "notes[0].text"},
    };
    char path[600], where[700];
    struct opc_err err;
    struct opc_exhibit_read *r;
    snprintf(path, sizeof path, "%s/fig9.json", (char *)*state);
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        assert_ok(make(*state, &err), &err);
        damage(path, CASE[i][0], CASE[i][1]);
        assert_fails(opc_exhibit_load(path, &r, &err), OPC_EDAMAGED, &err, path);
        assert_mentions(&err, CASE[i][2]);
    }
    assert_ok(make(*state, &err), &err);
    damage(path, "\"tier\":", "\"tier\"");
    snprintf(where, sizeof where, "%s:4:", path);
    assert_fails(opc_exhibit_load(path, &r, &err), OPC_EDAMAGED, &err, where);
    assert_ok(opc_file_write(path, "[1, 2]", 6, &err), &err);
    assert_fails(opc_exhibit_load(path, &r, &err), OPC_EDAMAGED, &err, path);
    assert_mentions(&err, "\"name\"");
}

/* Text that is not UTF-8 cannot be said in JSON, but must not make a file nobody can read. */
static void foreign_bytes_become_question_marks(void **state)
{
    char path[600];
    struct opc_err err;
    struct opc_exhibit *x;
    struct opc_exhibit_read *r;
    const struct opc_exhibit_plan plan = {
        .dir = *state, .name = "odd", .title = "t", .command = "opc repro r\xe9sum\xe9"};
    assert_ok(opc_exhibit_begin(&plan, &x, &err), &err);
    assert_ok(opc_exhibit_end(x, &err), &err);
    snprintf(path, sizeof path, "%s/odd.json", (char *)*state);
    assert_ok(opc_exhibit_load(path, &r, &err), &err);
    assert_string_equal(r->command, "opc repro r?sum?");
    assert_int_equal(r->pictures + r->tables + r->claims + r->notes, 0);
    opc_exhibit_unload(r);
}

/* Drawing fails in test_figure.c. */
static int make_and_load(void *ctx, struct opc_err *err)
{
    char path[600];
    struct opc_exhibit_read *r;
    int code = make_with(ctx, false, err);
    snprintf(path, sizeof path, "%s/fig9.json", (char *)ctx);
    if (!code)
        code = opc_exhibit_load(path, &r, err);
    if (!code)
        opc_exhibit_unload(r);
    return code;
}

static void faults_are_survived(void **state)
{
    assert_survives_lack_of_memory(make_and_load, *state);
    assert_survives_system_faults(make_and_load, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_made_is_read_back),
        cmocka_unit_test(one_that_is_made_again_and_given_up_is_not_there),
        cmocka_unit_test(notes_and_caption_are_under_the_picture),
        cmocka_unit_test(claims_are_a_table_too),
        cmocka_unit_test(damaged_exhibits_are_refused),
        cmocka_unit_test(foreign_bytes_become_question_marks),
        cmocka_unit_test(faults_are_survived),
    };
    return cmocka_run_group_tests(tests, test_make_dir, test_remove_dir);
}
