/* SPDX-License-Identifier: MIT */
#include "study/draw.h"

#include "base/file.h"
#include "opc/mem.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <math.h>
#include <string.h>

static const char FONT[] = "DejaVu Sans";
static const double PIXELS = 2; /* of a PNG, to the point */

struct opc_canvas {
    struct opc_save *save;
    cairo_surface_t *surface;
    cairo_t *c;
    bool png;
    char path[OPC_PATH];
};

/* All output goes through here, so that the file appears whole. */
static cairo_status_t write(void *ctx, const unsigned char *data, unsigned n)
{
    opc_save_bytes(((struct opc_canvas *)ctx)->save, data, n);
    return CAIRO_STATUS_SUCCESS; /* a failure is remembered, and told at the end */
}

static bool ends_with(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n > m && strcmp(path + n - m, end) == 0;
}

int opc_canvas_open(const char *path, double width, double height, struct opc_canvas **out,
                    struct opc_err *err)
{
    const bool svg = ends_with(path, ".svg"), pdf = ends_with(path, ".pdf");
    const bool png = ends_with(path, ".png");
    if (!svg && !pdf && !png)
        return opc_fail(err, OPC_EUSER, "cannot draw %s: its name must end with .svg, .pdf or .png",
                        path);
    struct opc_canvas *c = opc_alloc(1, sizeof *c);
    if (!c)
        return opc_fail(err, OPC_ENOMEM, "no room to draw %s", path);
    c->png = png;
    int code = opc_path_join(c->path, "", path, err);
    if (!code)
        code = opc_save_begin(path, &c->save, err);
    if (code) {
        opc_canvas_drop(c);
        return code;
    }
    if (svg)
        c->surface = cairo_svg_surface_create_for_stream(write, c, width, height);
    else if (pdf) {
        c->surface = cairo_pdf_surface_create_for_stream(write, c, width, height);
        /* Otherwise it would be the time of the drawing, and no two files the same. */
        cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2022-01-01T00:00:00Z");
    } else
        c->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * PIXELS),
                                                (int)ceil(height * PIXELS));
    c->c = cairo_create(c->surface);
    if (png)
        cairo_scale(c->c, PIXELS, PIXELS);
    cairo_set_source_rgb(c->c, 1, 1, 1);
    cairo_paint(c->c);
    cairo_select_font_face(c->c, FONT, CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_line_join(c->c, CAIRO_LINE_JOIN_ROUND);
    *out = c;
    return OPC_OK;
}

void opc_canvas_drop(struct opc_canvas *c)
{
    if (!c)
        return;
    if (c->c)
        cairo_destroy(c->c);
    if (c->surface)
        cairo_surface_destroy(c->surface); /* may still write */
    opc_save_drop(c->save);
    opc_free(c);
}

int opc_canvas_close(struct opc_canvas *c, struct opc_err *err)
{
    cairo_status_t status = cairo_status(c->c);
    if (c->png && !status)
        status = cairo_surface_write_to_png_stream(c->surface, write, c);
    cairo_surface_finish(c->surface);
    if (!status)
        status = cairo_surface_status(c->surface);
    int code;
    if (status)
        code = opc_fail(err, status == CAIRO_STATUS_NO_MEMORY ? OPC_ENOMEM : OPC_EIO,
                        "cannot draw %s: %s", c->path, cairo_status_to_string(status));
    else {
        code = opc_save_end(c->save, err);
        c->save = NULL;
    }
    opc_canvas_drop(c);
    return code;
}

static void set_ink(const struct opc_canvas *c, const struct opc_ink *ink)
{
    static const double DASH[4][4] = {{0}, {6, 3, 6, 3}, {2, 2, 2, 2}, {8, 3, 2, 3}};
    cairo_set_source_rgba(c->c, ink->red, ink->green, ink->blue, ink->alpha);
    cairo_set_line_width(c->c, ink->width);
    cairo_set_dash(c->c, DASH[ink->dash % 4], ink->dash % 4 ? 4 : 0, 0);
}

static void trace(const struct opc_canvas *c, int n, const double *x, const double *y)
{
    cairo_new_path(c->c);
    for (int i = 0; i < n; i++)
        cairo_line_to(c->c, x[i], y[i]);
}

void opc_draw_line(struct opc_canvas *c, const struct opc_ink *ink, int n, const double *x,
                   const double *y)
{
    set_ink(c, ink);
    trace(c, n, x, y);
    cairo_stroke(c->c);
}

void opc_draw_area(struct opc_canvas *c, const struct opc_ink *ink, int n, const double *x,
                   const double *y)
{
    set_ink(c, ink);
    trace(c, n, x, y);
    cairo_fill(c->c);
}

double opc_draw_width(struct opc_canvas *c, double size, const char *text)
{
    cairo_text_extents_t extents;
    cairo_set_font_size(c->c, size);
    cairo_text_extents(c->c, text, &extents);
    return extents.x_advance;
}

void opc_draw_text(struct opc_canvas *c, const struct opc_ink *ink, double x, double y, double size,
                   enum opc_anchor anchor, int turned, const char *text)
{
    const double back = anchor == OPC_LEFT ? 0 : anchor == OPC_CENTRE ? 0.5 : 1;
    const double width = opc_draw_width(c, size, text);
    set_ink(c, ink);
    cairo_save(c->c);
    cairo_translate(c->c, x, y);
    if (turned)
        cairo_rotate(c->c, -1.5707963267948966);
    cairo_move_to(c->c, -back * width, 0);
    cairo_show_text(c->c, text);
    cairo_restore(c->c);
}

void opc_draw_clip(struct opc_canvas *c, double x, double y, double width, double height)
{
    cairo_save(c->c);
    cairo_rectangle(c->c, x, y, width, height);
    cairo_clip(c->c);
}

void opc_draw_unclip(struct opc_canvas *c)
{
    cairo_restore(c->c);
}

const char *opc_draw_version(void)
{
    return cairo_version_string();
}
