/* SPDX-License-Identifier: MIT */
/* The name of this machine, and whether its file systems have locks. Called by whatever locks a
 * directory (run/files/runlog.c, sweep/).
 *
 * Invariant: the name has no space, because it is a word in lines of words. */
#include "base/host.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void opc_host_name(char host[OPC_HOST])
{
    char whole[256] = "";
    (void)gethostname(whole, sizeof whole - 1);
    snprintf(host, OPC_HOST, "%.*s", (int)strcspn(whole, "."), whole);
    /* one word in a line of words */
    for (char *at = host; *at; at++)
        if (!isgraph((unsigned char)*at))
            *at = '-';
    if (!*host)
        strcpy(host, "localhost");
}

bool opc_has_no_locks(int why)
{
    return why == ENOSYS || why == ENOLCK || why == ENOTSUP;
}
