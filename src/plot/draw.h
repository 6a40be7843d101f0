/* SPDX-License-Identifier: MIT */
/* plot/draw.h - drawing; draw.c is the only file that includes cairo's headers.
 *
 * One drawing becomes SVG, PDF or PNG, according to the end of the file's name, and has the
 * same bytes each time. Text is drawn as shapes, so it looks the same everywhere; an SVG
 * repeats all of it in its <desc>, for screen readers and search. Lengths are points (1/72
 * inch), y points down. In a build without cairo there is no canvas: opc_canvas_open fails and
 * says what to install. */
#ifndef OPC_STUDY_DRAW_H
#define OPC_STUDY_DRAW_H

#include "opc/err.h"

#include <stddef.h>
#include <stdint.h>

struct opc_canvas;

struct opc_ink {
    double red, green, blue, alpha; /* 0 .. 1 */
    double width;                   /* of lines */
    int dash;                       /* 0: none; 1, 2, 3: patterns that can be distinguished */
};

enum opc_anchor { OPC_LEFT, OPC_CENTRE, OPC_RIGHT };

#if OPC_WITH_CAIRO
int opc_canvas_open(const char *path, double width, double height, struct opc_canvas **out,
                    struct opc_err *err);
/* A canvas that never becomes a file: for opc_draw_width, before the page size is known. The
 * caller drops it with opc_canvas_drop. */
int opc_canvas_measure(const char *path, struct opc_canvas **out, struct opc_err *err);
/* Finishes the file, which appears whole, and frees the canvas. */
int opc_canvas_close(struct opc_canvas *, struct opc_err *err);
void opc_canvas_drop(struct opc_canvas *); /* frees it without writing a file; NULL is fine */

void opc_draw_line(struct opc_canvas *, const struct opc_ink *, int n, const double *x,
                   const double *y);
void opc_draw_area(struct opc_canvas *, const struct opc_ink *, int n, const double *x,
                   const double *y);
void opc_draw_dots(struct opc_canvas *, const struct opc_ink *, int n, const double *x,
                   const double *y, double radius);
/* Coloured cells, [rows][columns] of {red, green, blue, alpha}, row 0 at the top. */
void opc_draw_image(struct opc_canvas *, double x, double y, double width, double height, int rows,
                    int columns, const uint8_t (*cell)[4]);
/* y is the base line. `rotated` turns the text by 90 degrees, to run upwards. */
void opc_draw_text(struct opc_canvas *, const struct opc_ink *, double x, double y, double size,
                   enum opc_anchor anchor, int rotated, const char *text);
/* White around the letters of a text that is drawn next, centred, so that it reads on any
 * ground. */
void opc_draw_halo(struct opc_canvas *, double x, double y, double size, const char *text);
double opc_draw_width(struct opc_canvas *, double size, const char *text);
/* Nothing is drawn outside this box until opc_draw_unclip; the two must be paired. */
void opc_draw_clip(struct opc_canvas *, double x, double y, double width, double height);
void opc_draw_unclip(struct opc_canvas *);

const char *opc_draw_version(void); /* of the cairo that was loaded */
#else
/* Without cairo no canvas ever exists, so these are never reached except opc_canvas_open. */
static inline int opc_canvas_open(const char *path, double width, double height,
                                  struct opc_canvas **out, struct opc_err *err)
{
    (void)width, (void)height, (void)out;
    return opc_fail(err, OPC_EABSENT,
                    "cannot draw %s: this build lacks cairo; install libcairo2-dev and configure "
                    "with -D OPC_WITH_CAIRO=ON",
                    path);
}
static inline int opc_canvas_measure(const char *path, struct opc_canvas **out, struct opc_err *err)
{
    return opc_canvas_open(path, 0, 0, out, err);
}
static inline int opc_canvas_close(struct opc_canvas *canvas, struct opc_err *err)
{
    (void)canvas, (void)err;
    return OPC_OK;
}
static inline void opc_canvas_drop(struct opc_canvas *canvas)
{
    (void)canvas;
}
static inline void opc_draw_line(struct opc_canvas *canvas, const struct opc_ink *ink, int n,
                                 const double *x, const double *y)
{
    (void)canvas, (void)ink, (void)n, (void)x, (void)y;
}
static inline void opc_draw_area(struct opc_canvas *canvas, const struct opc_ink *ink, int n,
                                 const double *x, const double *y)
{
    (void)canvas, (void)ink, (void)n, (void)x, (void)y;
}
static inline void opc_draw_dots(struct opc_canvas *canvas, const struct opc_ink *ink, int n,
                                 const double *x, const double *y, double radius)
{
    (void)canvas, (void)ink, (void)n, (void)x, (void)y, (void)radius;
}
static inline void opc_draw_image(struct opc_canvas *canvas, double x, double y, double width,
                                  double height, int rows, int columns, const uint8_t (*cell)[4])
{
    (void)canvas, (void)x, (void)y, (void)width, (void)height, (void)rows, (void)columns,
        (void)cell;
}
static inline void opc_draw_text(struct opc_canvas *canvas, const struct opc_ink *ink, double x,
                                 double y, double size, enum opc_anchor anchor, int rotated,
                                 const char *text)
{
    (void)canvas, (void)ink, (void)x, (void)y, (void)size, (void)anchor, (void)rotated, (void)text;
}
static inline void opc_draw_halo(struct opc_canvas *canvas, double x, double y, double size,
                                 const char *text)
{
    (void)canvas, (void)x, (void)y, (void)size, (void)text;
}
static inline double opc_draw_width(struct opc_canvas *canvas, double size, const char *text)
{
    (void)canvas, (void)size, (void)text;
    return 0;
}
static inline void opc_draw_clip(struct opc_canvas *canvas, double x, double y, double width,
                                 double height)
{
    (void)canvas, (void)x, (void)y, (void)width, (void)height;
}
static inline void opc_draw_unclip(struct opc_canvas *canvas)
{
    (void)canvas;
}
static inline const char *opc_draw_version(void)
{
    return NULL;
}
#endif

#endif
