/* SPDX-License-Identifier: MIT */
/* web/assets.h - the files of the page, compiled in by cmake/embed.cmake. */
#ifndef OPC_WEB_ASSETS_H
#define OPC_WEB_ASSETS_H

#include "env/assets.h"

extern const struct opc_asset opc_page_assets[];  /* src/web/page */
extern const struct opc_asset opc_uplot_assets[]; /* src/web/uplot */

#endif
