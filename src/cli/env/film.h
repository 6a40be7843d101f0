/* SPDX-License-Identifier: MIT */
/* cli/env/film.h - a sequence of pictures as a file.
 *
 * The name decides: .png keeps the last picture; anything else is a film that the program ffmpeg
 * makes of them. Where ffmpeg is not installed the pictures become numbered PNG files next to that
 * name. A film appears under its name when it is complete. */
#ifndef OPC_CLI_FILM_H
#define OPC_CLI_FILM_H

#include "opc/err.h"

#include <stdbool.h>

struct opc_film;

int opc_film_open(const char *path, int width, int height, double per_second, struct opc_film **out,
                  struct opc_err *err);
bool opc_film_is_picture(const struct opc_film *); /* only the last frame counts */
/* rgb is [height][width][3], the top row first. */
int opc_film_add(struct opc_film *, const unsigned char *rgb, struct opc_err *err);
/* Ends and frees it in any case; `keep` is false to throw it away. Prints what was written. */
int opc_film_end(struct opc_film *, bool keep, struct opc_err *err);

#endif
