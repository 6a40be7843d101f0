/* SPDX-License-Identifier: MIT */
/* Films and pictures: raw frames go to ffmpeg through a pipe, or become PNG files. Used by
 * env_render.c.
 *
 * Invariant: a film has its own name only when it is complete; until then it is NAME.part.END. */
#include "cli/env/film.h"

#include "base/file.h"
#include "base/format/png.h"
#include "base/process/child.h"
#include "opc/mem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct opc_film {
    char path[OPC_PATH]; /* its name when it is complete */
    char part[OPC_PATH]; /* its name until then */
    int width, height, frames;
    enum { PICTURE, FFMPEG, NUMBERED } how; /* NUMBERED: PNG files, where there is no ffmpeg */
    struct opc_child ffmpeg;
    unsigned char *last; /* PICTURE: the frame to write at the end */
};

/* What follows the last dot of the file name, or "". */
static const char *ending_of(const char *path)
{
    const char *name = opc_path_name(path), *dot = strrchr(name, '.');
    return dot && dot != name ? dot + 1 : "";
}

/* ffmpeg reads raw frames from its standard input until that is closed. */
static int start_ffmpeg(struct opc_film *f, double per_second, struct opc_err *err)
{
    char size[40], rate[40], file[OPC_PATH + 8];
    /* "file:", because ffmpeg could take a name alone for an option or a protocol. */
    snprintf(file, sizeof file, "file:%s", f->part);
    snprintf(size, sizeof size, "%dx%d", f->width, f->height);
    snprintf(rate, sizeof rate, "%.6g", per_second);
    /* yuv420p is what every player understands; a GIF has a palette instead */
    char *pixels = strcasecmp(ending_of(f->path), "gif") == 0 ? "pal8" : "yuv420p";
    char *argv[] = {"ffmpeg",    "-nostdin",   "-loglevel", "error", "-y",       "-f",
                    "rawvideo",  "-pix_fmt",   "rgb24",     "-s",    size,       "-r",
                    rate,        "-i",         "-",         "-an",   "-pix_fmt", pixels,
                    "-movflags", "+faststart", file,        NULL};
    return opc_child_start(argv, &(struct opc_child_plan){.pipe_in = true}, &f->ffmpeg, err);
}

/* Whether it is installed and starts. */
static bool can_run_ffmpeg(void)
{
    struct opc_text out = {0};
    struct opc_err err;
    char *argv[] = {"ffmpeg", "-version", NULL};
    const bool ok = opc_child_run(argv, 1 << 16, &out, &err) == OPC_OK;
    opc_text_free(&out);
    return ok;
}

/* yuv420p stores colours for blocks of 2 x 2 pixels, hence even sides. */
static int begin_film(struct opc_film *f, double per_second, struct opc_err *err)
{
    if (f->width % 2 || f->height % 2)
        return opc_fail(err, OPC_EUSER, "%d x %d: the sides of a film must be even numbers",
                        f->width, f->height);
    f->how = can_run_ffmpeg() ? FFMPEG : NUMBERED;
    return f->how == FFMPEG ? start_ffmpeg(f, per_second, err) : OPC_OK;
}

int opc_film_open(const char *path, int width, int height, double per_second, struct opc_film **out,
                  struct opc_err *err)
{
    const char *end = ending_of(path);
    const int stem = (int)(end - path) - 1;
    if (!*end)
        return opc_fail(err, OPC_EUSER, "'%s': end the name in .mp4, .gif or .png", path);
    /* A missing folder is found now, not after the film has been played. */
    char parent[OPC_PATH];
    int code = opc_path_parent(parent, path, err);
    if (!code && !opc_is_directory(parent))
        code = opc_fail(err, OPC_EUSER, "cannot write %s: there is no folder %s", path, parent);
    if (code)
        return code;
    struct opc_film *f = opc_alloc(1, sizeof *f);
    if (!f)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a film");
    *f = (struct opc_film){.width = width, .height = height};
    snprintf(f->path, sizeof f->path, "%s", path);
    /* It keeps its ending, by which ffmpeg chooses the format. */
    snprintf(f->part, sizeof f->part, "%.*s.part.%.16s", stem > 4000 ? 4000 : stem, path, end);
    /* A picture keeps frames in memory; a film needs ffmpeg. */
    if (strcasecmp(end, "png") == 0) {
        f->how = PICTURE;
        f->last = opc_alloc((size_t)width * (size_t)height, 3);
        if (!f->last)
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for a picture");
    } else {
        code = begin_film(f, per_second, err);
    }
    if (code) {
        opc_film_end(f, false, NULL);
        return code;
    }
    *out = f;
    return OPC_OK;
}

bool opc_film_is_picture(const struct opc_film *f)
{
    return f->how == PICTURE;
}

/* film-00001.png, film-00002.png, ... */
static int add_numbered(struct opc_film *f, const unsigned char *rgb, struct opc_err *err)
{
    char path[OPC_PATH];
    const int stem = (int)(ending_of(f->path) - f->path) - 1;
    snprintf(path, sizeof path, "%.*s-%05d.png", stem > 4000 ? 4000 : stem, f->path, f->frames);
    return opc_png_write(path, f->width, f->height, rgb, err);
}

int opc_film_add(struct opc_film *f, const unsigned char *rgb, struct opc_err *err)
{
    const size_t bytes = 3 * (size_t)f->width * (size_t)f->height;
    f->frames++;
    /* ffmpeg may have ended with a message of its own, a codec that is missing for instance. */
    if (f->how == FFMPEG)
        return opc_child_write(&f->ffmpeg, rgb, bytes, err)
                   ? opc_within(err, "cannot make %s, see above (.mp4 and .gif do in most places)",
                                f->path)
                   : OPC_OK;
    if (f->how == NUMBERED)
        return add_numbered(f, rgb, err);
    memcpy(f->last, rgb, bytes);
    return OPC_OK;
}

static int keep_film(struct opc_film *f, struct opc_err *err)
{
    if (f->how == PICTURE) {
        const int code = opc_png_write(f->path, f->width, f->height, f->last, err);
        if (!code)
            printf("wrote %s\n", f->path);
        return code;
    }
    /* The pictures were written as they came. */
    if (f->how == NUMBERED) {
        printf("wrote %d pictures %.*s-00001.png ...; install ffmpeg to get a film\n", f->frames,
               (int)(ending_of(f->path) - f->path) - 1, f->path);
        return OPC_OK;
    }
    /* ffmpeg finishes the file once its input ends. */
    opc_child_close_input(&f->ffmpeg);
    const int status = opc_child_wait(&f->ffmpeg);
    if (status != 0)
        return opc_fail(err, OPC_EIO, "ffmpeg ended with status %d and made no %s; see above",
                        status, f->path);
    /* Complete: now it gets its name. */
    if (rename(f->part, f->path) != 0)
        return opc_fail(err, OPC_EIO, "cannot rename %s to %s", f->part, f->path);
    printf("wrote %s: %d pictures\n", f->path, f->frames);
    return OPC_OK;
}

int opc_film_end(struct opc_film *f, bool keep, struct opc_err *err)
{
    const int code = keep ? keep_film(f, err) : OPC_OK;
    if (f->how == FFMPEG) {
        /* After success both do nothing: ffmpeg has ended, and the part has its final name. */
        opc_child_end(&f->ffmpeg, 1);
        unlink(f->part);
    }
    opc_free(f->last);
    opc_free(f);
    return code;
}
