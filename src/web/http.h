/* SPDX-License-Identifier: MIT */
/* web/http.h - HTTP for opc serve; http.c is the only file that includes libmicrohttpd's header.
 *
 * It lets in whoever has the token: in the first address (?token=...), then in a cookie. Everybody
 * else gets 401, a request for another host 421, one that is not GET or HEAD 405. Headers, the
 * number of connections and the time that one may take are limited. One thread does everything:
 * opc_http_wait answers what has arrived and returns. */
#ifndef OPC_WEB_HTTP_H
#define OPC_WEB_HTTP_H

#include "web/api.h"

struct opc_http; /* opaque */

struct opc_http_plan {
    const char *address; /* "127.0.0.1", an IPv4 address */
    int port;            /* 0: any that is free */
    bool any_host;       /* requests may name any host: the address is not loopback */
    struct opc_web_api *api;
};

/* OPC_EABSENT: this build lacks libmicrohttpd; OPC_EUSER: the port is taken. */
int opc_http_open(const struct opc_http_plan *, struct opc_http **out, struct opc_err *err);
void opc_http_close(struct opc_http *); /* NULL is fine */

int opc_http_port(const struct opc_http *);
const char *opc_http_token(const struct opc_http *);
/* Answers requests; returns after one, or after so many seconds. */
void opc_http_wait(struct opc_http *, double seconds);

const char *opc_http_version(void); /* of the libmicrohttpd that was loaded */

#endif
