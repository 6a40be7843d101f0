/* SPDX-License-Identifier: MIT */
/* In place of http.c in a build without libmicrohttpd: opc serve says what is missing. */
#include "web/http.h"

/* The only one that is ever called: without a server there is nothing to close or wait for. */
int opc_http_open(const struct opc_http_plan *plan, struct opc_http **out, struct opc_err *err)
{
    (void)plan, (void)out;
    return opc_fail(err, OPC_EABSENT,
                    "this build has no server: it lacks libmicrohttpd; install libmicrohttpd-dev "
                    "and configure with -D OPC_WITH_MICROHTTPD=ON");
}

void opc_http_close(struct opc_http *http)
{
    (void)http;
}

int opc_http_port(const struct opc_http *http)
{
    (void)http;
    return 0;
}

const char *opc_http_token(const struct opc_http *http)
{
    (void)http;
    return "";
}

void opc_http_wait(struct opc_http *http, double seconds)
{
    (void)http, (void)seconds;
}

const char *opc_http_version(void)
{
    return NULL;
}
