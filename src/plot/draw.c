/* SPDX-License-Identifier: MIT */
/* Drawing with cairo. This is the only file that includes its headers; figure.c, marks.c and
 * legend.c draw through it.
 *
 * Invariant: the same drawing gives the same bytes, on every machine and in every process. What
 * cairo makes depend on time or on a process-wide counter is replaced here (opc_canvas_open,
 * finish_svg). */
#include "plot/draw.h"

#include "base/file.h"
#include "base/text.h"
#include "opc/mem.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FONT[] = "DejaVu Sans";
static const double PIXELS = 2; /* of a PNG, per point */

/* save and svg are used by files only; a canvas for measuring has neither. */
struct opc_canvas {
    struct opc_save *save;
    cairo_surface_t *surface;
    cairo_t *c; /* cairo's drawing context */
    bool png;
    bool failed;          /* memory ran out; reported at close */
    struct opc_text svg;  /* as cairo wrote it */
    struct opc_text said; /* every text that was drawn, a line each; of an SVG only */
    char path[OPC_PATH];
};

/* All output goes through here, so that the file appears whole. opc_save remembers a failure and
 * opc_save_end reports it. */
static cairo_status_t write_bytes(void *ctx, const unsigned char *data, unsigned n)
{
    opc_save_bytes(((struct opc_canvas *)ctx)->save, data, n);
    return CAIRO_STATUS_SUCCESS;
}

/* An SVG is kept in memory, because finish_svg rewrites it. */
static cairo_status_t keep_svg_bytes(void *ctx, const unsigned char *data, unsigned n)
{
    opc_text_add_bytes(&((struct opc_canvas *)ctx)->svg, (const char *)data, n);
    return CAIRO_STATUS_SUCCESS;
}

static bool ends_with(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n > m && strcmp(path + n - m, end) == 0;
}

/* Creates the context: white ground, font without hinting, round joins. */
static void begin_canvas(struct opc_canvas *canvas)
{
    canvas->c = cairo_create(canvas->surface);
    if (canvas->png)
        cairo_scale(canvas->c, PIXELS, PIXELS);
    cairo_set_source_rgb(canvas->c, 1, 1, 1);
    cairo_paint(canvas->c);
    cairo_select_font_face(canvas->c, FONT, CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    /* Letters have the same widths on every kind of surface. */
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_set_font_options(canvas->c, options);
    cairo_font_options_destroy(options);
    cairo_set_line_join(canvas->c, CAIRO_LINE_JOIN_ROUND);
}

int opc_canvas_open(const char *path, double width, double height, struct opc_canvas **out,
                    struct opc_err *err)
{
    const bool svg = ends_with(path, ".svg"), pdf = ends_with(path, ".pdf");
    const bool png = ends_with(path, ".png");
    if (!svg && !pdf && !png)
        return opc_fail(err, OPC_EUSER, "cannot draw %s: its name must end with .svg, .pdf or .png",
                        path);
    struct opc_canvas *canvas = opc_alloc(1, sizeof *canvas);
    if (!canvas)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw %s", path);
    canvas->png = png;
    /* The file is begun now, so that a path that cannot be written fails before the work. */
    int code = opc_path_join(canvas->path, "", path, err);
    if (!code)
        code = opc_save_begin(path, &canvas->save, err);
    if (code) {
        opc_canvas_drop(canvas);
        return code;
    }
    if (svg)
        canvas->surface =
            cairo_svg_surface_create_for_stream(keep_svg_bytes, canvas, width, height);
    else if (pdf) {
        canvas->surface = cairo_pdf_surface_create_for_stream(write_bytes, canvas, width, height);
        /* cairo would write the time of the drawing, and no two files would be equal. */
        cairo_pdf_surface_set_metadata(canvas->surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2022-01-01T00:00:00Z");
    } else
        canvas->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * PIXELS),
                                                     (int)ceil(height * PIXELS));
    begin_canvas(canvas);
    *out = canvas;
    return OPC_OK;
}

/* A one-pixel image: texts have the same widths on it as in the file. */
int opc_canvas_measure(const char *path, struct opc_canvas **out, struct opc_err *err)
{
    struct opc_canvas *canvas = opc_alloc(1, sizeof *canvas);
    if (!canvas)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw %s", path);
    canvas->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);
    begin_canvas(canvas);
    *out = canvas;
    return OPC_OK;
}

void opc_canvas_drop(struct opc_canvas *canvas)
{
    if (!canvas)
        return;
    if (canvas->c)
        cairo_destroy(canvas->c);
    if (canvas->surface)
        cairo_surface_destroy(canvas->surface); /* may still write */
    opc_save_drop(canvas->save);
    opc_text_free(&canvas->svg);
    opc_text_free(&canvas->said);
    opc_free(canvas);
}

static void save_text(struct opc_canvas *canvas, const char *text, size_t n)
{
    opc_save_bytes(canvas->save, text, n);
}

/* Writes all drawn texts as the <desc> of the SVG, escaped for XML. */
static void save_said(struct opc_canvas *canvas)
{
    save_text(canvas, "\n<desc>", 7);
    for (const char *at = opc_text_get(&canvas->said); *at; at++) {
        const char *name = *at == '&' ? "&amp;" : *at == '<' ? "&lt;" : *at == '>' ? "&gt;" : NULL;
        save_text(canvas, name ? name : at, name ? strlen(name) : 1);
    }
    save_text(canvas, "</desc>", 7);
}

/* Writes the SVG with renumbered surfaces and images: cairo numbers them through the life of the
 * process, here they are numbered through the file, so that it is the same each time. References
 * look like "surface12" or #image7. */
static void finish_svg(struct opc_canvas *canvas)
{
    static const char *const COUNTED[] = {"surface", "image"};
    enum { MAX = 4096 };
    /* Position in `seen` is the new number minus one. */
    unsigned long seen[MAX];
    int n = 0;
    const char *at = opc_text_get(&canvas->svg), *from = at, *head = strstr(at, "<svg");
    head = head ? strchr(head, '>') : NULL;
    /* Everything from `from` to `at` is still to be written. */
    for (; *at; at++) {
        if (at == head) {
            save_text(canvas, from, (size_t)(at + 1 - from));
            from = at + 1;
            save_said(canvas);
        }
        if (*at != '"' && *at != '#')
            continue;
        for (int k = 0; k < 2; k++) {
            const size_t length = strlen(COUNTED[k]);
            char *end;
            if (strncmp(at + 1, COUNTED[k], length) != 0)
                continue;
            /* Digits must follow, and then the end of the reference. */
            const unsigned long number = strtoul(at + 1 + length, &end, 10);
            if (end == at + 1 + length || (*end != '"' && *end != ')'))
                continue;
            int i = 0;
            while (i < n && seen[i] != number)
                i++;
            if (i == MAX)
                continue;
            if (i == n)
                seen[n++] = number;
            char fresh[32];
            snprintf(fresh, sizeof fresh, "%d", i + 1);
            save_text(canvas, from, (size_t)(at + 1 + length - from));
            save_text(canvas, fresh, strlen(fresh));
            from = end;
        }
    }
    save_text(canvas, from, strlen(from));
}

int opc_canvas_close(struct opc_canvas *canvas, struct opc_err *err)
{
    cairo_status_t status = cairo_status(canvas->c);
    if (canvas->png && !status)
        /* A PNG is encoded here; SVG and PDF are written while the surface finishes. */
        status = cairo_surface_write_to_png_stream(canvas->surface, write_bytes, canvas);
    cairo_surface_finish(canvas->surface);
    if (!status)
        status = cairo_surface_status(canvas->surface);
    /* The first cause is reported: memory, then cairo. The file itself comes last. */
    int code = opc_text_check(&canvas->svg, err);
    if (!code)
        code = opc_text_check(&canvas->said, err);
    if (!code && canvas->failed)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to draw %s", canvas->path);
    if (!code && status)
        code = opc_fail(err, status == CAIRO_STATUS_NO_MEMORY ? OPC_ENOMEM : OPC_EIO,
                        "cannot draw %s: %s", canvas->path, cairo_status_to_string(status));
    if (!code) {
        if (canvas->svg.used)
            finish_svg(canvas);
        code = opc_save_end(canvas->save, err);
        canvas->save = NULL;
    }
    opc_canvas_drop(canvas);
    return code;
}

/* Colour, width and dash pattern for the next stroke or fill. */
static void set_ink(const struct opc_canvas *canvas, const struct opc_ink *ink)
{
    static const double DASH[4][4] = {{0}, {6, 3, 6, 3}, {2, 2, 2, 2}, {8, 3, 2, 3}};
    cairo_set_source_rgba(canvas->c, ink->red, ink->green, ink->blue, ink->alpha);
    cairo_set_line_width(canvas->c, ink->width);
    cairo_set_dash(canvas->c, DASH[ink->dash % 4], ink->dash % 4 ? 4 : 0, 0);
}

/* Makes the points the current path. */
static void trace_path(const struct opc_canvas *canvas, int n, const double *x, const double *y)
{
    cairo_new_path(canvas->c);
    for (int i = 0; i < n; i++)
        cairo_line_to(canvas->c, x[i], y[i]);
}

void opc_draw_line(struct opc_canvas *canvas, const struct opc_ink *ink, int n, const double *x,
                   const double *y)
{
    set_ink(canvas, ink);
    trace_path(canvas, n, x, y);
    cairo_stroke(canvas->c);
}

void opc_draw_area(struct opc_canvas *canvas, const struct opc_ink *ink, int n, const double *x,
                   const double *y)
{
    set_ink(canvas, ink);
    trace_path(canvas, n, x, y);
    cairo_fill(canvas->c);
}

/* A line of no length with round ends is a circle, and all of them are one path: that takes a
 * fifth of the bytes of filled circles, and there may be thousands. */
void opc_draw_dots(struct opc_canvas *canvas, const struct opc_ink *ink, int n, const double *x,
                   const double *y, double radius)
{
    const struct opc_ink round = {.red = ink->red,
                                  .green = ink->green,
                                  .blue = ink->blue,
                                  .alpha = ink->alpha,
                                  .width = 2 * radius};
    set_ink(canvas, &round);
    cairo_new_path(canvas->c);
    for (int i = 0; i < n; i++) {
        cairo_move_to(canvas->c, x[i], y[i]);
        cairo_close_path(canvas->c);
    }
    cairo_set_line_cap(canvas->c, CAIRO_LINE_CAP_ROUND);
    cairo_stroke(canvas->c);
    cairo_set_line_cap(canvas->c, CAIRO_LINE_CAP_BUTT);
}

/* Each cell becomes a square of `fine` pixels that are small on paper: viewers that smooth
 * enlarged pictures then blur only the edges. MAX limits the image to 2000 pixels per side. */
void opc_draw_image(struct opc_canvas *canvas, double x, double y, double width, double height,
                    int rows, int columns, const uint8_t (*cell)[4])
{
    enum { MAX = 2000 };
    const double want = 3 * fmax(width / columns, height / rows);
    /* At least three pixels per point, less if the image would become too large. */
    int fine = (int)ceil(want);
    while (fine > 1 && (fine * rows > MAX || fine * columns > MAX))
        fine--;
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_ARGB32, columns * fine, rows * fine);
    unsigned char *data = cairo_image_surface_get_data(image);
    if (!data) {
        canvas->failed = true;
        cairo_surface_destroy(image);
        return;
    }
    cairo_surface_flush(image);
    /* Copy every cell into its square of pixels. */
    for (int i = 0; i < rows * fine; i++) {
        uint32_t *row = (void *)(data + (size_t)i * (size_t)cairo_image_surface_get_stride(image));
        for (int k = 0; k < columns * fine; k++) {
            const uint8_t *v = cell[(size_t)(i / fine) * (size_t)columns + (size_t)(k / fine)];
            const uint32_t alpha = v[3]; /* and premultiplied, as cairo wants it */
            row[k] = alpha << 24 | v[0] * alpha / 255 << 16 | v[1] * alpha / 255 << 8 |
                     v[2] * alpha / 255;
        }
    }
    /* Scale the image to the box; NEAREST keeps the edges of the cells sharp. */
    cairo_surface_mark_dirty(image);
    cairo_save(canvas->c);
    cairo_translate(canvas->c, x, y);
    cairo_scale(canvas->c, width / (columns * fine), height / (rows * fine));
    cairo_set_source_surface(canvas->c, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(canvas->c), CAIRO_FILTER_NEAREST);
    cairo_rectangle(canvas->c, 0, 0, columns * fine, rows * fine);
    cairo_fill(canvas->c);
    cairo_restore(canvas->c);
    cairo_surface_destroy(image);
}

double opc_draw_width(struct opc_canvas *canvas, double size, const char *text)
{
    cairo_text_extents_t extents;
    cairo_set_font_size(canvas->c, size);
    cairo_text_extents(canvas->c, text, &extents);
    return extents.x_advance;
}

void opc_draw_text(struct opc_canvas *canvas, const struct opc_ink *ink, double x, double y,
                   double size, enum opc_anchor anchor, int rotated, const char *text)
{
    /* Share of the text's width that lies left of the anchor. */
    const double back = anchor == OPC_LEFT ? 0 : anchor == OPC_CENTRE ? 0.5 : 1;
    const double width = opc_draw_width(canvas, size, text);
    set_ink(canvas, ink);
    cairo_save(canvas->c);
    cairo_translate(canvas->c, x, y);
    if (rotated)
        cairo_rotate(canvas->c, -1.5707963267948966);
    cairo_move_to(canvas->c, -back * width, 0);
    cairo_show_text(canvas->c, text);
    cairo_restore(canvas->c);
    if (cairo_surface_get_type(canvas->surface) == CAIRO_SURFACE_TYPE_SVG)
        opc_text_addf(&canvas->said, "%s\n", text);
}

void opc_draw_halo(struct opc_canvas *canvas, double x, double y, double size, const char *text)
{
    const struct opc_ink white = {1, 1, 1, 0.75, 2.4, 0};
    const double width = opc_draw_width(canvas, size, text);
    set_ink(canvas, &white);
    cairo_move_to(canvas->c, x - width / 2, y);
    cairo_text_path(canvas->c, text);
    cairo_stroke(canvas->c);
}

void opc_draw_clip(struct opc_canvas *canvas, double x, double y, double width, double height)
{
    cairo_save(canvas->c);
    cairo_rectangle(canvas->c, x, y, width, height);
    cairo_clip(canvas->c);
}

void opc_draw_unclip(struct opc_canvas *canvas)
{
    cairo_restore(canvas->c);
}

const char *opc_draw_version(void)
{
    return cairo_version_string();
}
