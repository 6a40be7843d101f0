/* SPDX-License-Identifier: MIT */
/* opc report: exhibits as one HTML page with a summary. cli/cmd_report.c calls opc_report_write;
 * report_find.c finds the exhibits, report_exhibit.c writes each of them.
 *
 * Invariant: the same exhibits give the same bytes, and the page needs no other file. */
#include "study/report/report.h"

#include "base/file.h"
#include "opc/mem.h"
#include "opc/version.h"
#include "study/report/html.h"
#include "study/report/report_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The page under construction. */
struct page {
    const struct opc_report_plan *plan;
    struct opc_report_made *made;
    int n;
    struct opc_report_card *card; /* [n] */
};

/* ---- names ----------------------------------------------------------------------------------- */

/* "Figure 1a" for fig1a, "Figure 3, more" for fig3_more, "Table 1" for tab1, "Theory", "ILC"; other
 * names stay as they are. */
static void set_label(struct opc_report_card *card)
{
    /* A name is letters and then a number, or a word of its own. */
    const char *name = card->exhibit->name;
    const size_t letters = strcspn(name, "0123456789");
    const bool numbered = name[letters] != '\0';
    if (numbered && letters == 3 && strncmp(name, "fig", 3) == 0) {
        const size_t n = strcspn(name + 3, "_"); /* a second part of the same figure */
        snprintf(card->label, sizeof card->label, "Figure %.*s%s%s", (int)n, name + 3,
                 name[3 + n] ? ", " : "", name[3 + n] ? name + 4 + n : "");
    } else if (numbered && letters == 3 && strncmp(name, "tab", 3) == 0) {
        snprintf(card->label, sizeof card->label, "Table %s", name + 3);
    } else if (strcmp(name, "ilc") == 0) {
        snprintf(card->label, sizeof card->label, "ILC");
    } else if (strcmp(name, "theory") == 0) {
        snprintf(card->label, sizeof card->label, "Theory");
    } else {
        snprintf(card->label, sizeof card->label, "%s", name);
    }
}

/* Whether an anchor is used by an earlier card or by the page itself. */
static bool is_taken(const struct page *page, int i, const char *anchor)
{
    bool taken = strcmp(anchor, "summary") == 0 || strcmp(anchor, "content") == 0;
    for (int k = 0; k < i; k++)
        taken = taken || strcmp(page->card[k].anchor, anchor) == 0;
    return taken;
}

/* The name with everything but letters, digits and _ replaced, and a number if that is taken. */
static void set_anchor(const struct page *page, int i)
{
    char plain[64], *anchor = page->card[i].anchor;
    snprintf(plain, sizeof plain, "%s", page->card[i].exhibit->name);
    for (char *c = plain; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            *c = '-';
    snprintf(anchor, sizeof page->card[i].anchor, "%s", *plain ? plain : "exhibit");
    for (int k = 2; is_taken(page, i, anchor); k++)
        snprintf(anchor, sizeof page->card[i].anchor, "%s-%d", plain, k);
}

/* Fills in the cards: label, anchor, counts of claims. */
static void set_cards(struct page *page, const struct opc_exhibits *all)
{
    page->n = all->n;
    for (int i = 0; i < all->n; i++) {
        struct opc_report_card *card = &page->card[i];
        card->exhibit = all->at[i];
        set_label(card);
        set_anchor(page, i);
        /* Two exhibits with the same name and tier can only be told apart by their directory. */
        for (int k = 0; k < all->n; k++)
            card->ambiguous =
                card->ambiguous || (k != i && strcmp(all->at[k]->name, all->at[i]->name) == 0 &&
                                    strcmp(all->at[k]->tier, all->at[i]->tier) == 0);
        /* Count the claims by verdict. */
        for (int k = 0; k < card->exhibit->claims; k++)
            card->claims[card->exhibit->claim[k].verdict]++;
    }
}

/* ---- parts of the page ----------------------------------------------------------------------- */

/* Everything up to </head>, with the style sheets inline. */
static void add_head(struct opc_text *html, const char *title)
{
    opc_text_add(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n"
                       "<meta name=\"generator\" content=\"opc " OPC_VERSION "\">\n"
                       /* whatever gets into it, the page loads nothing and runs nothing */
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; img-src data:; media-src data:\">\n<title>");
    opc_html_text(html, title);
    opc_text_add(html, "</title>\n<style>\n");
    /* In the order of their names: what holds for some media comes last. */
    for (const struct opc_asset *style = opc_report_assets; style->data; style++)
        opc_text_add_bytes(html, (const char *)style->data, style->size);
    opc_text_add(html, "</style>\n</head>\n");
}

/* Adds every different version once: "0.1.0, 0.2.0". */
static void add_versions(struct opc_text *html, const struct page *page)
{
    int listed = 0;
    for (int i = 0; i < page->n; i++) {
        bool seen = false;
        for (int k = 0; k < i && !seen; k++)
            seen = strcmp(page->card[k].exhibit->version, page->card[i].exhibit->version) == 0;
        if (seen)
            continue;
        opc_text_add(html, listed++ ? ", " : "");
        opc_html_text(html,
                      *page->card[i].exhibit->version ? page->card[i].exhibit->version : "unknown");
    }
}

/* Heading and provenance. */
static void add_top(struct opc_text *html, const struct page *page, const char *title)
{
    opc_text_add(html, "<body>\n<a class=\"skip\" href=\"#content\">Skip to the exhibits</a>\n"
                       "<header>\n<h1>");
    opc_html_text(html, title);
    opc_text_add(html, "</h1>\n<p class=\"provenance\">Exhibits made by opc ");
    add_versions(html, page);
    opc_text_add(html, " &middot; page made by opc " OPC_VERSION);
    if (page->plan->machine) {
        opc_text_add(html, " on ");
        opc_html_text(html, page->plan->machine);
    }
    opc_text_add(html, "</p>\n</header>\n");
}

/* List of exhibits with links. */
static void add_contents(struct opc_text *html, const struct page *page)
{
    opc_text_add(html, "<nav aria-label=\"Contents\">\n<ol>\n"
                       "<li><a href=\"#summary\"><span class=\"label\">Summary</span></a></li>\n");
    for (int i = 0; i < page->n; i++) {
        const struct opc_report_card *card = &page->card[i];
        opc_text_addf(html, "<li><a href=\"#%s\"><span class=\"label\">", card->anchor);
        opc_html_text(html, card->label);
        opc_text_add(html, "</span> <span class=\"title\">");
        opc_html_text(html, card->exhibit->title);
        opc_text_add(html, "</span></a></li>\n");
    }
    opc_text_add(html, "</ol>\n</nav>\n");
}

/* One number of the summary. */
static void add_count(struct opc_text *html, int n, const char *kind, const char *what)
{
    opc_text_addf(html, "<div class=\"%s\"><dt>%s</dt><dd>%d</dd></div>\n", kind, what, n);
}

/* Counts of exhibits and claims, and a bar of the verdicts. */
static void add_counts(struct opc_text *html, const struct page *page)
{
    const int *claims = page->made->claims;
    const int all = claims[OPC_VERDICT_SUPPORTED] + claims[OPC_VERDICT_NOT_SUPPORTED] +
                    claims[OPC_VERDICT_UNDECIDED];
    opc_text_add(html, "<dl class=\"counts\">\n");
    add_count(html, page->n, "all", page->n == 1 ? "exhibit" : "exhibits");
    add_count(html, claims[OPC_VERDICT_SUPPORTED], "yes",
              claims[OPC_VERDICT_SUPPORTED] == 1 ? "claim supported" : "claims supported");
    add_count(html, claims[OPC_VERDICT_NOT_SUPPORTED], "no", "not supported");
    add_count(html, claims[OPC_VERDICT_UNDECIDED], "open", "undecided");
    opc_text_add(html, "</dl>\n");
    if (!all)
        return;
    /* A bar whose parts are as wide as the counts; hidden from screen readers, which have the
     * numbers. */
    opc_text_add(html, "<div class=\"bar\" aria-hidden=\"true\">");
    static const char *const KIND[] = {"yes", "no", "open"};
    for (int v = OPC_VERDICT_SUPPORTED; v <= OPC_VERDICT_UNDECIDED; v++)
        if (claims[v])
            opc_text_addf(html, "<span class=\"%s\" style=\"flex:%d\"></span>", KIND[v], claims[v]);
    opc_text_add(html, "</div>\n");
}

/* Names the exhibits that lack files. */
static void add_missing(struct opc_text *html, const struct page *page)
{
    if (!page->made->missing)
        return;
    opc_text_addf(html, "<p class=\"missing\"><strong>Not complete:</strong> %d file%s missing, in",
                  page->made->missing, page->made->missing == 1 ? " is" : "s are");
    for (int i = 0, listed = 0; i < page->n; i++)
        if (page->card[i].missing) {
            opc_text_addf(html, "%s <a href=\"#%s\">", listed++ ? "," : "", page->card[i].anchor);
            opc_html_text(html, page->card[i].label);
            opc_text_add(html, "</a>");
        }
    opc_text_add(html, ".</p>\n");
}

/* Says that exhibits of tier smoke show nothing about learning. */
static void add_smoke(struct opc_text *html, const struct page *page)
{
    int n = 0;
    for (int i = 0; i < page->n; i++)
        n += strcmp(page->card[i].exhibit->tier, "smoke") == 0;
    if (n)
        opc_text_addf(html,
                      "<p class=\"aside\">%s of tier smoke: it shows that everything works, not "
                      "what is found.</p>\n",
                      n < page->n ? "Some of this is" : "This is");
}

/* Counts, warnings, and a table of all exhibits. */
static void add_summary(struct opc_text *html, const struct page *page)
{
    opc_text_add(html, "<section id=\"summary\" aria-labelledby=\"summary.title\">\n"
                       "<h2 id=\"summary.title\">Summary</h2>\n");
    add_counts(html, page);
    add_missing(html, page);
    add_smoke(html, page);
    opc_text_add(html, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                       "aria-label=\"Exhibits and their claims\">\n<table class=\"overview\">\n"
                       "<thead><tr><th scope=\"col\">Exhibit</th><th scope=\"col\">Title</th>"
                       "<th scope=\"col\">Tier</th><th scope=\"col\">Claims</th></tr></thead>\n"
                       "<tbody>\n");
    /* A row for each exhibit, with a link to it. */
    for (int i = 0; i < page->n; i++) {
        const struct opc_report_card *card = &page->card[i];
        opc_text_addf(html, "<tr><th scope=\"row\"><a href=\"#%s\">", card->anchor);
        opc_html_text(html, card->label);
        opc_text_add(html, "</a></th><td>");
        opc_html_text(html, card->exhibit->title);
        opc_text_add(html, "</td><td>");
        opc_html_text(html, card->exhibit->tier);
        opc_text_add(html, "</td><td class=\"verdicts\">");
        opc_report_incomplete(html, card->exhibit);
        for (int v = OPC_VERDICT_SUPPORTED; v <= OPC_VERDICT_UNDECIDED; v++)
            if (card->claims[v])
                opc_report_verdict(html, (enum opc_verdict)v, card->claims[v]);
        if (!card->exhibit->claims)
            opc_text_add(html, "<span class=\"aside\">none</span>");
        opc_text_add(html, "</td></tr>\n");
    }
    opc_text_add(html, "</tbody>\n</table>\n</div>\n</section>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Adds the exhibits and sums up their counts. */
static int add_exhibits(struct opc_text *html, struct page *page, struct opc_err *err)
{
    struct opc_report_made *made = page->made;
    int code = OPC_OK, pictures = 0;
    for (int i = 0; i < page->n && !code; i++) {
        struct opc_report_card *card = &page->card[i];
        code = opc_report_exhibit(html, card, &pictures, err);
        if (!code)
            code = opc_report_film(html, card->exhibit->dir, err);
        /* Totals over all exhibits. */
        for (int v = OPC_VERDICT_SUPPORTED; v <= OPC_VERDICT_UNDECIDED; v++)
            made->claims[v] += card->claims[v];
        made->missing += card->missing;
        made->pictures += card->exhibit->pictures;
        made->tables += card->exhibit->tables;
    }
    made->exhibits = page->n;
    return code;
}

/* Exhibits are written first, because the summary above them says what is missing. */
static int add_page(struct opc_text *html, struct page *page, struct opc_err *err)
{
    const char *title =
        page->plan->title ? page->plan->title : "On-policy corrections: reproduction";
    struct opc_text exhibits = {0};
    int code = add_exhibits(&exhibits, page, err);
    /* Head, top, contents, summary and exhibits, in the order of the page. */
    if (!code) {
        add_head(html, title);
        add_top(html, page, title);
        opc_text_add(html, "<div class=\"page\">\n");
        add_contents(html, page);
        opc_text_add(html, "<main id=\"content\">\n");
        add_summary(html, page);
        opc_text_add_bytes(html, exhibits.at, exhibits.used);
        opc_text_add(html, "</main>\n</div>\n</body>\n</html>\n");
        code = opc_text_check(html, err);
    }
    opc_text_free(&exhibits);
    return code;
}

int opc_report_write(const struct opc_report_plan *plan, struct opc_report_made *made,
                     struct opc_err *err)
{
    struct opc_exhibits all = {0};
    struct opc_text html = {0};
    int code = opc_exhibits_find(plan->dirs, plan->dir, &all, err);
    if (code)
        return code;
    *made = (struct opc_report_made){.left_out = all.left_out};
    struct page page = {.plan = plan, .made = made};
    /* Cards borrow the exhibits, which are freed last. */
    page.card = opc_alloc((size_t)all.n, sizeof *page.card);
    if (page.card) {
        set_cards(&page, &all);
        code = add_page(&html, &page, err);
    } else {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for %d exhibits", all.n);
    }
    if (!code)
        code = opc_file_write(plan->out, html.at, html.used, err);
    opc_text_free(&html);
    opc_free(page.card);
    opc_exhibits_free(&all);
    return code;
}
