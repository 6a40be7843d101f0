/* SPDX-License-Identifier: MIT */
/* base/revision.h - which commit this was built from (made by cmake/revision.cmake), and by what.
 */
#ifndef OPC_BASE_REVISION_H
#define OPC_BASE_REVISION_H

extern const char opc_revision[]; /* "508bb785afe3", "508bb785afe3-dirty"; "": not from a clone */

#if defined(__clang__)
#define OPC_COMPILER __VERSION__ /* names itself */
#else
#define OPC_COMPILER "gcc " __VERSION__
#endif

#endif
