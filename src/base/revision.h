/* SPDX-License-Identifier: MIT */
/* base/revision.h - which commit this was built from; made by cmake/revision.cmake. */
#ifndef OPC_BASE_REVISION_H
#define OPC_BASE_REVISION_H

extern const char opc_revision[]; /* "508bb785afe3", "508bb785afe3-dirty"; "": not from a clone */

#endif
