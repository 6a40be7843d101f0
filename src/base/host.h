/* SPDX-License-Identifier: MIT */
/* base/host.h - the name of this machine, for locks and messages that other machines read. */
#ifndef OPC_BASE_HOST_H
#define OPC_BASE_HOST_H

#include <stdbool.h>

enum { OPC_HOST = 65 };
/* Up to the first dot, as one printable word; "localhost" where there is none. */
void opc_host_name(char host[OPC_HOST]);

/* Does this errno of flock say that the file system has no locks? Lustre may be mounted without,
 * and some network file systems have none. */
bool opc_has_no_locks(int why);

#endif
