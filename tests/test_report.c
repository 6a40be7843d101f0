/* SPDX-License-Identifier: MIT */
/* study/report/html.h, study/report/report.h: the page and its parts. tests/program/report.sh looks
 * at it with a browser. */
#include "test.h"

#include "base/file.h"
#include "base/log.h"
#include "opc/mem.h"
#include "study/report/html.h"
#include "study/report/report.h"
#include "study/report/report_private.h"

/* ---- text and pictures ----------------------------------------------------------------------- */

static void assert_html(const char *text, const char *want)
{
    struct opc_text t = {0};
    opc_html_text(&t, text);
    assert_string_equal(opc_text_get(&t), want);
    opc_text_free(&t);
}

static void text_stands_for_itself(void **state)
{
    (void)state;
    assert_html("", "");
    assert_html("a < b && \"c\" > 'd'", "a &lt; b &amp;&amp; &quot;c&quot; &gt; &#39;d&#39;");
    assert_html("&lt;", "&amp;lt;");
    assert_html("\xce\xb3\t\xe2\x89\xa4\n\xf0\x9f\x99\x82",
                "\xce\xb3\t\xe2\x89\xa4\n\xf0\x9f\x99\x82");
#define BAD "\xef\xbf\xbd"
    assert_html("\x1b[31m\r\x7f", BAD "[31m" BAD BAD);
    assert_html("a\xff\xe2\x89", "a" BAD BAD BAD); /* no character; one that is cut off */
    assert_html("\xc0\xbc"
                "script",
                BAD BAD "script");                    /* an overlong < */
    assert_html("\xed\xa0\x80", BAD BAD BAD);         /* half a surrogate pair */
    assert_html("\xf4\x90\x80\x80", BAD BAD BAD BAD); /* beyond the last character */
}

/* The ways cairo refers to what it defined. */
static const char drawn[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!-- a comment with id=\"x\" -->\n"
    "<svg xmlns=\"http://www.w3.org/2000/svg\" "
    "xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"80pt\" "
    "height=\"40pt\" viewBox=\"0 0 80 40\" version=\"1.1\">\n"
    "<defs><g><symbol overflow=\"visible\" id=\"glyph0-1\">"
    "<path d=\"M 0 0 L 9 9\"/></symbol></g>\n"
    "<clipPath id='clip1'><rect width=\"9\" height=\"9\"/></clipPath>"
    "<image id=\"image3\" xlink:href=\"data:image/png;base64,AAAA\"/></defs>\n"
    "<g id=\"surface5\" clip-path=\"url(#clip1)\" style=\"fill:url(#clip1);"
    "mask:url(#clip1)\"><use xlink:href=\"#glyph0-1\" x=\"1\"/></g>\n"
    "</svg>\n";

static void ids_of_a_picture_and_references_to_them_get_the_prefix(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_text t = {0};
    opc_text_add(&t, "before ");
    assert_ok(opc_html_svg(&t, drawn, "p7.", "a \"fine\" label", &err), &err);
    assert_string_equal(
        opc_text_get(&t),
        "before <svg role=\"img\" aria-label=\"a &quot;fine&quot; label\" style=\"--wide:80pt\" "
        "width=\"80pt\" height=\"40pt\" viewBox=\"0 0 80 40\" version=\"1.1\">\n"
        "<defs><g><symbol overflow=\"visible\" id=\"p7.glyph0-1\"><path d=\"M 0 0 L 9 "
        "9\"/></symbol>"
        "</g>\n<clipPath id='p7.clip1'><rect width=\"9\" height=\"9\"/></clipPath>"
        "<image id=\"p7.image3\" href=\"data:image/png;base64,AAAA\"/></defs>\n"
        "<g id=\"p7.surface5\" clip-path=\"url(#p7.clip1)\" style=\"fill:url(#p7.clip1);"
        "mask:url(#p7.clip1)\"><use href=\"#p7.glyph0-1\" x=\"1\"/></g>\n</svg>");
    opc_text_free(&t);
}

static void a_picture_that_could_do_more_than_be_seen_is_refused(void **state)
{
    (void)state;
    static const char *const CASES[][3] = {
        {"<svg>\n<script>alert(1)</script></svg>", "line 2", "script"},
        {"<svg><style>@import 'x'</style></svg>", "line 1", "style"},
        {"<svg><foreignObject/></svg>", "line 1", "foreignObject"},
        {"<svg>\n\n<g onclick=\"x()\"/></svg>", "line 3", "onclick"},
        {"<svg><image xlink:href=\"http://a.b/c\"/></svg>", "line 1", "http://a.b/c"},
        {"<svg><use href=\"other.svg#a\"/></svg>", "line 1", "other.svg#a"},
        {"<svg><g style=\"fill:url(http://a)\"/></svg>", "line 1", "fill:url(http://a)"},
        {"<svg><g ONLOAD=\"x()\"/></svg>", "line 1", "ONLOAD"},
        {"<svg><use HREF=\"other.svg#a\"/></svg>", "line 1", "other.svg#a"},
        {"<svg><g style=\"fill:URL(http://a)\"/></svg>", "line 1", "fill:URL(http://a)"},
        {"<svg><![CDATA[<script>]]></svg>", "line 1", "element"},
        {"<svg><g></svg>", "line 1", "tag: svg"},
        {"<svg></svg></article>", "line 1", "article"},
        {"<svg/><svg/>", "line 1", "picture: svg"},
        {"<g/>", "line 1", "picture: g"},
        {"<svg><g a=b/></svg>", "line 1", "quotes"},
        {"<svg><g a=\"b", "line 1", "no end"},
        {"<svg><g a=\"<b\"/>", "line 1", "<"},
        {"<svg><g a", "line 1", "not end"},
        {"<svg><g /a", "line 1", "not end"},
        {"<svg><!-- ", "line 1", "starts"},
        {"<svg>\n<g/>\n", "line 3", "ends"},
        {"", "line 1", "ends"},
        {"fig2", "line 1", "SVG"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct opc_err err = {0};
        struct opc_text t = {0};
        assert_fails(opc_html_svg(&t, CASES[i][0], "p1.", "", &err), OPC_EDAMAGED, &err,
                     CASES[i][1]);
        assert_mentions(&err, CASES[i][2]);
        assert_string_equal(opc_text_get(&t), "");
    }
    struct opc_text deep = {0}, t = {0};
    struct opc_err err = {0};
    opc_text_add(&deep, "<svg>");
    for (int i = 0; i < 64; i++)
        opc_text_add(&deep, "<g>");
    assert_fails(opc_html_svg(&t, opc_text_get(&deep), "", "", &err), OPC_EDAMAGED, &err,
                 "too many");
    opc_text_free(&deep);
}

static void exhibits_come_in_the_order_of_the_paper(void **state)
{
    (void)state;
    static const char *const ORDER[] = {"fig1a",   "fig1b",    "fig2", "fig02b", "fig10",
                                        "fig10-b", "figx",     "tab1", "tab2",   "theory",
                                        "ilc",     "ablation", "zoo"};
    const int n = sizeof ORDER / sizeof *ORDER;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            const int order = opc_exhibit_order(ORDER[i], ORDER[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void put(const char *dir, const char *name, const char *text)
{
    char path[OPC_PATH], parent[OPC_PATH];
    struct opc_err err = {0};
    assert_ok(opc_path_join(path, dir, name, &err), &err);
    assert_ok(opc_path_parent(parent, path, &err), &err);
    assert_ok(opc_make_directories(parent, &err), &err);
    assert_ok(opc_file_write(path, text, strlen(text), &err), &err);
}

/* dir/at/NAME.json and what it speaks of. */
static void put_exhibit(const char *dir, const char *at, const char *name, const char *verdict)
{
    char file[256], json[2000];
    snprintf(json, sizeof json,
             "{\"name\": \"%s\", \"title\": \"About <%s> & more\", \"tier\": \"small\", "
             "\"caption\": \"3 seeds\", \"version\": \"0.1.0\", \"command\": \"opc repro %s\", "
             "\"config\": \"a: 1 # <b>\", "
             "\"pictures\": [{\"file\": \"%s\", \"title\": \"one\"}, "
             "{\"file\": \"%s\", \"title\": \"the same again\"}], "
             "\"tables\": [{\"file\": \"%s.csv\", \"title\": \"numbers\"}], "
             "\"claims\": [{\"claim\": \"x > y\", \"measured\": \"1 > 0\", \"verdict\": \"%s\"}], "
             "\"notes\": [\"fewer <seeds>\"]}",
             name, name, name, name, name, name, verdict);
    snprintf(file, sizeof file, "%s/%s.json", at, name);
    put(dir, file, json);
    snprintf(file, sizeof file, "%s/%s.svg", at, name);
    put(dir, file, drawn);
    snprintf(file, sizeof file, "%s/%s.csv", at, name);
    put(dir, file, "kind,value\n\"a, <b>\",0.12345678901234567\nc,\n");
}

static int make_page(const char *dir, const char *in, struct opc_report_made *made,
                     struct opc_err *err)
{
    char from[OPC_PATH], out[OPC_PATH];
    assert_ok(opc_path_join(from, dir, in, err), err);
    assert_ok(opc_path_join(out, dir, "page.html", err), err);
    char *dirs[] = {from};
    const struct opc_report_plan plan = {
        .dirs = 1, .dir = dirs, .out = out, .title = "T & <T>", .machine = "a machine"};
    return opc_report_write(&plan, made, err);
}

static char *page_of(const char *dir, const char *in, struct opc_report_made *made)
{
    struct opc_err err = {0};
    char out[OPC_PATH], *page = NULL;
    assert_ok(make_page(dir, in, made, &err), &err);
    assert_ok(opc_path_join(out, dir, "page.html", &err), &err);
    assert_ok(opc_file_read(out, 1 << 24, &page, NULL, &err), &err);
    return page;
}

static int times(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* The value behind `key` at p, as a word with quotes to look for. */
static void quoted(const char *p, const char *key, const char *before, char out[256])
{
    p += strlen(key);
    snprintf(out, 256, "%s%.*s", before, (int)strcspn(p, "\"')"), p);
}

static void ids_are_unique_and_references_meet_one(void **state)
{
    char *page = NULL, word[256], as_double[300], as_single[300];
    struct opc_report_made made = {0};
    put_exhibit(*state, "in", "fig2", "supported");
    put_exhibit(*state, "in/more", "fig2", "undecided"); /* the same name again */
    put_exhibit(*state, "in", "summary", "supported");   /* a name the page itself uses */
    put_exhibit(*state, "in", "p1.glyph0-1", "supported");
    page = page_of(*state, "in", &made);
    assert_int_equal(made.exhibits, 4);
    assert_int_equal(made.missing, 0);
    int ids = 0, references = 0;
    for (const char *p = page; (p = strstr(p, " id=")); p++, ids++) {
        quoted(p, " id=\"", "", word);
        snprintf(as_double, sizeof as_double, " id=\"%s\"", word);
        snprintf(as_single, sizeof as_single, " id='%s'", word);
        assert_int_equal(times(page, as_double) + times(page, as_single), 1);
    }
    static const char *const REFERENCE[] = {"href=\"#", "url(#"};
    for (int i = 0; i < 2; i++)
        for (const char *p = page; (p = strstr(p, REFERENCE[i])); p++, references++) {
            quoted(p, REFERENCE[i], "", word);
            snprintf(as_double, sizeof as_double, " id=\"%s\"", word);
            snprintf(as_single, sizeof as_single, " id='%s'", word);
            assert_int_equal(times(page, as_double) + times(page, as_single), 1);
        }
    assert_true(ids > 4 * 2 * 4);
    assert_true(references > 4 * 2 * 4);
    assert_null(strstr(page, "http:"));
    assert_null(strstr(page, "https:"));
    opc_free(page);
}

static void a_page_shows_everything_in_order_and_escaped(void **state)
{
    char *page = NULL;
    struct opc_report_made made = {0};
    put_exhibit(*state, "in", "tab1", "undecided");
    put_exhibit(*state, "in", "fig10", "not supported");
    put_exhibit(*state, "in/deeper", "fig9", "supported");
    put_exhibit(*state, "in/deeper/still", "fig1", "supported"); /* too deep */
    put_exhibit(*state, "in/run", "fig3", "supported");          /* in a run */
    put(*state, "in/run/config.yaml", "");
    put(*state, "in/merged.csv", "a\n1\n");
    put(*state, "in/sweep.json", "{\"runs\": 3}");
    put(*state, "in/.hidden.json", "{\"claims\": ");
    page = page_of(*state, "in", &made);
    assert_int_equal(made.exhibits, 3);
    assert_int_equal(made.claims[OPC_VERDICT_SUPPORTED], 1);
    assert_int_equal(made.claims[OPC_VERDICT_NOT_SUPPORTED], 1);
    assert_int_equal(made.claims[OPC_VERDICT_UNDECIDED], 1);
    assert_int_equal(made.pictures, 6);
    assert_int_equal(made.tables, 3);
    assert_int_equal(made.left_out, 1);
    const char *at = page;
    static const char *const PARTS[] = {
        "<title>T &amp; &lt;T&gt;</title>",
        "<h1>T &amp; &lt;T&gt;</h1>",
        "on a machine",
        "<article id=\"fig9\"",
        "Figure 9",
        "About &lt;fig9&gt; &amp; more",
        "tier small",
        "<svg",
        "the same again",
        "3 seeds",
        "supported</span>",
        "x &gt; y",
        "1 &gt; 0",
        "fewer &lt;seeds&gt;",
        "<th scope=\"col\" class=\"n\">value</th>",
        "<tr><td>a, &lt;b&gt;</td><td class=\"n\">0.123457</td></tr>",
        "<tr><td>c</td><td class=\"n\"></td></tr>",
        "opc repro fig9",
        "a: 1 # &lt;b&gt;",
        "<article id=\"fig10\"",
        "not supported</span>",
        "<article id=\"tab1\"",
        "Table 1",
        "undecided</span>",
        "</html>"};
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        const char *found = strstr(at, PARTS[i]);
        if (!found)
            fail_msg("'%s' is not where it should be", PARTS[i]);
        else
            at = found + strlen(PARTS[i]);
    }
    assert_int_equal(times(page, "<article"), 3);
    opc_free(page);
}

/* A heading for each panel, and an interval beside its middle; other columns are shown as they are.
 */
static void scores_have_a_heading_for_each_panel(void **state)
{
    struct opc_report_made made = {0};
    static const char *const ROWS = "panel,line,seeds,iqm,iqm_low,iqm_high,p,p_low,p_high\n"
                                    "Hopper (MuJoCo),OPC,5,1515.26,1160.4,17790.81,,,\n"
                                    "Hopper (MuJoCo),\"<SAC>, 2\",4,-0.0123421,-1,0,0.6801,0.28,1\n"
                                    "Ant,OPC,5,7,7,7,,,\n";
    put_exhibit(*state, "in", "fig9_more", "supported");
    put(*state, "in/fig9-scores.csv", ROWS);
    put(*state, "in/fig10-scores.csv", "panel,line,seeds\nHopper,OPC,5\n");
    put(*state, "in/fig10.json",
        "{\"name\": \"fig10\", \"title\": \"t\", \"tier\": \"small\", \"caption\": \"c\", "
        "\"version\": \"0.1.0\", \"command\": \"c\", \"config\": \"\", \"pictures\": [], "
        "\"tables\": "
        "[{\"file\": \"fig9-scores.csv\", \"title\": \"s\"}, {\"file\": \"fig10-scores.csv\", "
        "\"title\": \"r\"}], \"claims\": [], \"notes\": []}");
    char *page = page_of(*state, "in", &made);
    assert_int_equal(made.missing, 0);
    assert_contains(page, ">Figure 9, more</span>");
    assert_int_equal(times(page, "<table class=\"data scores\">"), 1);
    assert_int_equal(times(page, "<details open>"), 1);
    assert_int_equal(times(page, "scope=\"rowgroup\" colspan=\"4\">Hopper (MuJoCo)</th>"), 1);
    assert_int_equal(times(page, "scope=\"rowgroup\" colspan=\"4\">Ant</th>"), 1);
    assert_contains(page, "<td class=\"n\">1515 <span class=\"interval\">[1160, 17790]</span></td>"
                          "<td class=\"n\"></td></tr>");
    assert_contains(page, "<td>&lt;SAC&gt;, 2</td><td class=\"n\">4</td>"
                          "<td class=\"n\">-0.01234 <span class=\"interval\">[-1, 0]</span></td>"
                          "<td class=\"n\">0.68 <span class=\"interval\">[0.28, 1]</span></td>");
    assert_contains(page, "Numbers are rounded.");
    /* The other table has not these columns. */
    assert_contains(page, "<th scope=\"col\">panel</th><th scope=\"col\">line</th>");
    opc_free(page);
}

/* In the summary and in its own heading; one that is whole has no badge. */
static void an_exhibit_of_which_runs_are_missing_has_a_badge(void **state)
{
    struct opc_report_made made = {0};
    put_exhibit(*state, "in", "fig9", "supported");
    put(*state, "in/fig10.json",
        "{\"name\": \"fig10\", \"title\": \"t\", \"tier\": \"small\", \"caption\": \"c\", "
        "\"version\": \"0.1.0\", \"command\": \"c\", \"config\": \"\", \"missing\": 48, "
        "\"pictures\": [], \"tables\": [], \"claims\": [], \"notes\": []}");
    char *page = page_of(*state, "in", &made);
    assert_int_equal(times(page, ">incomplete</span>"), 2);
    assert_int_equal(times(page, "title=\"48 runs are missing\""), 2);
    const char *row = strstr(page, "<a href=\"#fig10\">Figure 10");
    const char *badge = strstr(page, ">incomplete</span>");
    assert_non_null(row);
    assert_true(badge > row && badge < strstr(row, "</tr>"));
    opc_free(page);
}

/* Claims of tier smoke are counted, but nobody should take the counts for a result. */
static void a_page_of_smoke_says_so(void **state)
{
    struct opc_report_made made = {0};
    put_exhibit(*state, "in", "fig9", "supported");
    char *page = page_of(*state, "in", &made);
    assert_null(strstr(page, "smoke"));
    opc_free(page);
    put(*state, "in/fig10.json",
        "{\"name\": \"fig10\", \"title\": \"t\", \"tier\": \"smoke\", \"caption\": \"\", "
        "\"version\": \"0.1.0\", \"command\": \"\", \"config\": \"\", \"pictures\": [], "
        "\"tables\": [], \"claims\": [], \"notes\": []}");
    page = page_of(*state, "in", &made);
    const char *overview = strstr(page, "<table class=\"overview\">"),
               *said = strstr(page, "smoke");
    assert_true(said && overview && said < overview); /* before any number */
    opc_free(page);
}

static void the_same_exhibits_elsewhere_give_the_same_bytes(void **state)
{
    char *page[2] = {NULL, NULL};
    struct opc_report_made made = {0};
    static const char *const AT[] = {"first", "some/other/place"};
    for (int i = 0; i < 2; i++) {
        put_exhibit(*state, AT[i], i ? "fig1" : "fig2", "supported");
        put_exhibit(*state, AT[i], i ? "fig2" : "fig1", "supported");
        page[i] = page_of(*state, AT[i], &made);
    }
    assert_string_equal(page[0], page[1]);
    opc_free(page[0]);
    opc_free(page[1]);
}

static void a_long_table_is_shown_in_part(void **state)
{
    char *page = NULL;
    struct opc_report_made made = {0};
    struct opc_text csv = {0};
    opc_text_add(&csv, "row\n");
    for (int i = 1; i <= 201; i++)
        opc_text_addf(&csv, "%d\n", i);
    put_exhibit(*state, "in", "fig1", "supported");
    put(*state, "in/fig1.csv", opc_text_get(&csv));
    page = page_of(*state, "in", &made);
    assert_non_null(strstr(page, "201 rows"));
    assert_non_null(strstr(page, "200 of 201"));
    assert_non_null(strstr(page, "<td class=\"n\">200</td>"));
    assert_null(strstr(page, "<td class=\"n\">201</td>"));
    opc_free(page);
    opc_text_free(&csv);
}

struct heard {
    int warnings;
    char last[1000];
};

static void hear(void *ctx, enum opc_level level, const char *line)
{
    struct heard *h = ctx;
    h->warnings += level == OPC_LEVEL_WARN;
    snprintf(h->last, sizeof h->last, "%s", line);
}

/* How many of the paragraphs about missing files contain this. */
static int marks(const char *page, const char *what)
{
    static const char MARK[] = "<p class=\"missing\">";
    int n = 0;
    for (const char *p = page; (p = strstr(p, MARK)); p++) {
        const char *found = strstr(p, what), *end = strstr(p, "</p>");
        n += found && end && found < end;
    }
    return n;
}

static void what_is_missing_is_marked_counted_and_told(void **state)
{
    char *page, path[OPC_PATH];
    struct opc_err err = {0};
    struct opc_report_made made = {0};
    struct heard heard = {0};
    put_exhibit(*state, "in", "fig1", "supported");
    put_exhibit(*state, "in", "fig2", "supported");
    put(*state, "in/fig1.svg", "<svg><script/></svg>");
    put(*state, "in/fig1.csv", "a,b\n1\n");
    assert_ok(opc_path_join(path, *state, "in/fig2.csv", &err), &err);
    assert_int_equal(remove(path), 0);
    opc_log_to(hear, &heard);
    page = page_of(*state, "in", &made);
    opc_log_to(NULL, NULL);
    assert_int_equal(made.missing, 4); /* the picture is shown twice */
    assert_int_equal(heard.warnings, 4);
    assert_non_null(strstr(heard.last, "fig2.csv"));
    assert_int_equal(marks(page, "4 files"), 1);
    assert_int_equal(marks(page, "<a href=\"#fig1\">Figure 1</a>"), 1);
    assert_int_equal(marks(page, "<a href=\"#fig2\">Figure 2</a>"), 1);
    assert_int_equal(marks(page, "<code>fig1.svg</code>"), 2);
    assert_int_equal(marks(page, "<code>fig1.csv</code>"), 1);
    assert_int_equal(marks(page, "<code>fig2.csv</code>"), 1);
    assert_null(strstr(page, *state)); /* no path of this machine */
    opc_free(page);
}

static void a_damaged_exhibit_stops_the_page(void **state)
{
    char path[OPC_PATH];
    struct opc_err err = {0};
    struct opc_report_made made = {0};
    put_exhibit(*state, "in", "fig1", "supported");
    put(*state, "in/fig2.json", "{\"name\": \"fig2\",\n \"ti");
    put(*state, "in/fig2-claims.csv", "claim\n");
    assert_fails(make_page(*state, "in", &made, &err), OPC_EDAMAGED, &err, "fig2.json:2:");
    assert_ok(opc_path_join(path, *state, "page.html", &err), &err);
    assert_false(opc_file_exists(path));
}

static void no_exhibit_is_an_error(void **state)
{
    char path[OPC_PATH];
    struct opc_err err = {0};
    struct opc_report_made made = {0};
    put(*state, "in/sweep.json", "{}");
    assert_ok(opc_path_join(path, *state, "in", &err), &err);
    assert_fails(make_page(*state, "in", &made, &err), OPC_EUSER, &err, path);
    assert_mentions(&err, "opc repro");
    assert_ok(opc_path_join(path, *state, "nowhere", &err), &err);
    assert_fails(make_page(*state, "nowhere", &made, &err), OPC_EUSER, &err, path);
    assert_mentions(&err, "directory");
}

/* A directory named twice, and through its parent, holds what it holds. */
static void an_exhibit_reached_twice_counts_once(void **state)
{
    char in[OPC_PATH], below[OPC_PATH];
    struct opc_err err = {0};
    struct opc_exhibits all;
    put_exhibit(*state, "in/below", "fig1", "supported");
    assert_ok(opc_path_join(in, *state, "in", &err), &err);
    assert_ok(opc_path_join(below, *state, "in/below", &err), &err);
    char *dirs[] = {below, in, in};
    assert_ok(opc_exhibits_find(3, dirs, &all, &err), &err);
    assert_int_equal(all.n, 1);
    opc_exhibits_free(&all);
}

static int write_page(void *dir, struct opc_err *err)
{
    struct opc_report_made made = {0};
    const int code = make_page(dir, "in", &made, err);
    if (!code && made.missing) /* a page that says so is the answer to a file that fails */
        return opc_fail(err, OPC_EIO, "%d missing", made.missing);
    return code;
}

static void faults_are_survived(void **state)
{
    put_exhibit(*state, "in", "fig1", "supported");
    put_exhibit(*state, "in/below", "fig1", "supported");
    assert_survives_lack_of_memory(write_page, *state);
    assert_survives_system_faults(write_page, *state);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stands_for_itself),
        cmocka_unit_test(ids_of_a_picture_and_references_to_them_get_the_prefix),
        cmocka_unit_test(a_picture_that_could_do_more_than_be_seen_is_refused),
        cmocka_unit_test(exhibits_come_in_the_order_of_the_paper),
        IN_DIR(ids_are_unique_and_references_meet_one),
        IN_DIR(a_page_shows_everything_in_order_and_escaped),
        IN_DIR(scores_have_a_heading_for_each_panel),
        IN_DIR(an_exhibit_of_which_runs_are_missing_has_a_badge),
        IN_DIR(a_page_of_smoke_says_so),
        IN_DIR(the_same_exhibits_elsewhere_give_the_same_bytes),
        IN_DIR(a_long_table_is_shown_in_part),
        IN_DIR(what_is_missing_is_marked_counted_and_told),
        IN_DIR(a_damaged_exhibit_stops_the_page),
        IN_DIR(no_exhibit_is_an_error),
        IN_DIR(an_exhibit_reached_twice_counts_once),
        IN_DIR(faults_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
