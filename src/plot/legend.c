/* SPDX-License-Identifier: MIT */
/* The legend of a figure: gives every label an ink, arranges the entries in columns and draws
 * them. It also breaks texts into lines, because only it and the layout of figures need that.
 * figure.c calls make before figure_layout.c calls arrange, which measures; ink and draw come last.
 *
 * Invariant: an ink depends on labels and their order only, so that the same label looks the
 * same in all panels. */
#include "plot/legend.h"

#include "plot/colour.h"
#include "plot/marks.h"

#include <string.h>

/* Lengths in points: sample of a mark, space to its text, space between columns, row height,
 * text size. */
static const double SAMPLE = 22, GAP = 6, APART = 20, ROW = 15, SIZE = 9.5;
static const struct opc_ink INK = {0.1, 0.1, 0.1, 1, 0.8, 0};

/* Marks that show no data are dark, unless a colour was chosen for them. */
static const unsigned ASIDE =
    1U << OPC_PLOT_RULE_X | 1U << OPC_PLOT_RULE_Y | 1U << OPC_PLOT_ARROW | 1U << OPC_PLOT_HEAT;

/* ---- labels ---------------------------------------------------------------------------------- */

/* Index of a label among the entries; -1 if it is not there. */
static int find_label(const struct opc_legend *legend, const char *label)
{
    for (int i = 0; i < legend->n; i++)
        if (strcmp(legend->entry[i].label, label) == 0)
            return i;
    return -1;
}

/* Texts inside a panel are not entries; nor is a heat map, unless its label explains masked
 * cells. */
static bool is_entry(const struct opc_figure_layer *layer)
{
    return layer->label && layer->mark != OPC_PLOT_TEXT;
}

/* Would a reader take one colour for the other? */
static bool look_alike(int a, int b)
{
    const struct opc_ink p = opc_colour_ink(a, 0), q = opc_colour_ink(b, 0);
    const double red = p.red - q.red, green = p.green - q.green, blue = p.blue - q.blue;
    return a != OPC_COLOUR_AUTO && red * red + green * green + blue * blue < 0.15 * 0.15;
}

/* The first colour of the palette that is not taken. After the last one the palette starts again
 * with another dash pattern, counted by *round. */
static struct opc_ink next_ink(bool *taken, int *round, int dash)
{
    for (int i = 0; i < OPC_PALETTE; i++)
        if (!taken[i]) {
            taken[i] = true;
            return opc_colour_ink(OPC_COLOUR_FIRST + i, dash ? dash : *round);
        }
    /* All are taken: begin another round. */
    memset(taken, 0, OPC_PALETTE * sizeof *taken);
    ++*round;
    return next_ink(taken, round, dash);
}

int opc_legend_make(const struct opc_figure *figure, struct opc_legend *out, struct opc_err *err)
{
    *out = (struct opc_legend){.n = 0};
    int colour[OPC_LABELS] = {0}, dash[OPC_LABELS] = {0}, round = 0;
    bool taken[OPC_PALETTE] = {false};
    /* Collect the labels in the order they appear. The first layer that chooses a colour or a
     * dash for its label decides it for all layers of that label. */
    for (int p = 0; p < figure->panels; p++)
        for (int k = 0; k < figure->panel[p].layers; k++) {
            const struct opc_figure_layer *layer = &figure->panel[p].layer[k];
            if (!is_entry(layer))
                continue;
            int i = find_label(out, layer->label);
            if (i < 0 && out->n == OPC_LABELS)
                return opc_fail(err, OPC_EUSER,
                                "more than %d labels make no readable figure; draw fewer",
                                OPC_LABELS);
            if (i < 0) {
                i = out->n++;
                out->entry[i].label = layer->label;
                colour[i] = OPC_COLOUR_AUTO;
                dash[i] = 0;
            }
            out->entry[i].marks |= 1U << layer->mark;
            if (colour[i] == OPC_COLOUR_AUTO)
                colour[i] = layer->colour;
            if (dash[i] == 0)
                dash[i] = layer->dash;
            /* Remember palette colours that are in use, so that automatic ones differ from them. */
            for (int c = 0; c < OPC_PALETTE; c++)
                taken[c] = taken[c] || look_alike(layer->colour, OPC_COLOUR_FIRST + c);
        }
    /* Chosen colours stay; data without one get the next free colour, other marks the dark
     * default. */
    for (int i = 0; i < out->n; i++)
        out->entry[i].ink = colour[i] != OPC_COLOUR_AUTO || !(out->entry[i].marks & ~ASIDE)
                                ? opc_colour_ink(colour[i], dash[i])
                                : next_ink(taken, &round, dash[i]);
    return OPC_OK;
}

struct opc_ink opc_legend_ink(const struct opc_legend *legend, const struct opc_figure_layer *layer)
{
    const int i = is_entry(layer) ? find_label(legend, layer->label) : -1;
    return i >= 0 ? legend->entry[i].ink : opc_colour_ink(layer->colour, layer->dash);
}

/* ---- layout ---------------------------------------------------------------------------------- */

/* Column positions for this many columns, each as wide as its widest entry; returns the total
 * width. */
static double try_columns(struct opc_legend *legend, int columns)
{
    double at = 0;
    for (int k = 0; k < columns; k++) {
        double widest = 0;
        for (int i = k; i < legend->n; i += columns)
            widest = legend->entry[i].width > widest ? legend->entry[i].width : widest;
        legend->column[k] = at;
        at += SAMPLE + GAP + widest + APART;
    }
    return at - APART;
}

void opc_legend_arrange(struct opc_legend *legend, struct opc_canvas *canvas, double width)
{
    if (legend->n == 0)
        return;
    /* Measure the texts once, then take the largest number of columns that fits. */
    for (int i = 0; i < legend->n; i++)
        legend->entry[i].width = opc_draw_width(canvas, SIZE, legend->entry[i].label);
    legend->columns = legend->n;
    while ((legend->width = try_columns(legend, legend->columns)) > width && legend->columns > 1)
        legend->columns--;
    legend->rows = (legend->n + legend->columns - 1) / legend->columns;
    /* The same number of rows with fewer columns leaves no lonely entry in the last row. */
    legend->columns = (legend->n + legend->rows - 1) / legend->rows;
    legend->width = try_columns(legend, legend->columns);
}

double opc_legend_height(const struct opc_legend *legend)
{
    return legend->rows * ROW;
}

void opc_legend_draw(const struct opc_legend *legend, struct opc_canvas *canvas, double x, double y)
{
    /* Marks that cover others come first. */
    static const enum opc_plot_mark ORDER[] = {OPC_PLOT_HEAT,   OPC_PLOT_BAND,   OPC_PLOT_VIOLIN,
                                               OPC_PLOT_RULE_X, OPC_PLOT_RULE_Y, OPC_PLOT_LINE,
                                               OPC_PLOT_DOTS,   OPC_PLOT_ARROW};
    for (int i = 0; i < legend->n; i++) {
        /* Entries run row by row. */
        const double at = x + legend->column[i % legend->columns];
        const int row = i / legend->columns;
        const double middle = y + (row + 0.5) * ROW;
        /* A label with a line and a band shows both in one sample. */
        for (size_t k = 0; k < sizeof ORDER / sizeof *ORDER; k++)
            if (legend->entry[i].marks & 1U << ORDER[k])
                opc_mark_sample(canvas, ORDER[k], &legend->entry[i].ink, at, middle, SAMPLE);
        opc_draw_text(canvas, &INK, at + SAMPLE + GAP, middle + 3.4, SIZE, OPC_LEFT, 0,
                      legend->entry[i].label);
    }
}

/* ---- lines of text --------------------------------------------------------------------------- */

/* Whether the line still fits into `width` points. */
static bool line_fits(struct opc_canvas *canvas, double size, double width, struct opc_text *line)
{
    return opc_draw_width(canvas, size, opc_text_get(line)) <= width;
}

/* Moves the current line to `out`. */
static void end_line(struct opc_text *line, struct opc_text *out)
{
    opc_text_addf(out, "%s\n", opc_text_get(line));
    opc_text_clear(line);
}

/* Adds a word that is too wide for any line; it is cut between letters. */
static void add_letters(struct opc_canvas *canvas, double size, double width, const char *word,
                        size_t n, struct opc_text *line, struct opc_text *out)
{
    /* One UTF-8 letter per pass: bytes 10xxxxxx continue the one before. */
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && ((unsigned char)word[to] & 0xc0) == 0x80;)
            to++;
        const size_t used = line->used;
        opc_text_add_bytes(line, word + from, to - from);
        /* The letter does not fit: take it back, end the line and put the letter on the next
         * one. */
        if (used > 0 && !line->failed && !line_fits(canvas, size, width, line)) {
            line->at[line->used = used] = '\0';
            end_line(line, out);
            opc_text_add_bytes(line, word + from, to - from);
        }
    }
}

void opc_break_lines(struct opc_canvas *canvas, double size, double width, const char *text,
                     struct opc_text *out)
{
    struct opc_text line = {0};
    /* `line` is the line under construction; a word is added with its leading blanks and taken
     * back if the line becomes too wide. */
    for (const char *at = text; *at && !line.failed;) {
        if (*at == '\n') {
            end_line(&line, out);
            at++;
            continue;
        }
        const size_t blank = strspn(at, " "), n = strcspn(at + blank, " \n"), used = line.used;
        opc_text_add_bytes(&line, at, used ? blank + n : 0);
        if (!used || !line_fits(canvas, size, width, &line)) {
            if (used && !line.failed) {
                line.at[line.used = used] = '\0';
                end_line(&line, out);
            }
            add_letters(canvas, size, width, at + blank, n, &line, out);
        }
        at += blank + n;
    }
    if (line.used)
        end_line(&line, out);
    out->failed |= line.failed;
    opc_text_free(&line);
}
