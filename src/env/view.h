/* SPDX-License-Identifier: MIT */
/* env/view.h - pictures of an environment, without a screen.
 *
 * Drawn by MuJoCo through EGL or, where that does not work, OSMesa (OPC_GL=egl or osmesa in the
 * environment insists on one); both are looked for when a view is opened, so nothing else needs
 * them. A view belongs to the thread that opened it. */
#ifndef OPC_ENV_VIEW_H
#define OPC_ENV_VIEW_H

#include "opc/env.h"

struct opc_view;

#if OPC_WITH_MUJOCO
/* A view of env, which is borrowed and not disturbed. */
int opc_view_open(const struct opc_env *env, int width, int height, struct opc_view **out,
                  struct opc_err *err);
/* Draws env as it is now; rgb is [height][width][3], the top row first. */
int opc_view_draw(struct opc_view *, unsigned char *rgb, struct opc_err *err);
void opc_view_close(struct opc_view *); /* NULL is fine */
#else
static inline int opc_view_open(const struct opc_env *env, int width, int height,
                                struct opc_view **out, struct opc_err *err)
{
    (void)env, (void)width, (void)height, (void)out;
    return opc_fail(err, OPC_EABSENT,
                    "pictures need MuJoCo, which this build lacks; install libmujoco-dev and "
                    "configure with -D OPC_WITH_MUJOCO=ON");
}
static inline int opc_view_draw(struct opc_view *view, unsigned char *rgb, struct opc_err *err)
{
    (void)view, (void)rgb;
    return opc_fail(err, OPC_EBUG, "there is no view");
}
static inline void opc_view_close(struct opc_view *view)
{
    (void)view;
}
#endif

#endif
