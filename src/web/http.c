/* SPDX-License-Identifier: MIT */
/* The server of opc serve, on libmicrohttpd, without threads of its own (web/http.h).
 *
 * A page in any browser tab may send requests to a port of this computer, and so may any user of
 * it. So a request is looked at in this order, and the first that fails decides: which host it
 * names (a foreign name that leads here is a trick), whether it has the token, what it asks for.
 * Nothing of a request that is refused is used.
 *
 * Invariant: a client costs at most one of MAX_CLIENTS connections, MAX_HEADERS bytes and the time
 * in `deadline`. libmicrohttpd's own timeout counts from the last byte, which a client that sends
 * one byte at a time never reaches; so each connection has a deadline here. */
#include "web/http.h"

#include "base/clock.h"
#include "opc/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_CLIENTS = 256, MAX_HEADERS = 16384, TOKEN = 32 };
/* Seconds for the headers of a request, for taking an answer, for taking a film. */
enum { FOR_HEADERS = 10, FOR_ANSWER = 60, FOR_FILM = 600 };
/* Where many are connected, one that has asked for nothing is given a second. */
enum { CROWD = MAX_CLIENTS / 2, FOR_HEADERS_IN_CROWD = 1 };

struct client { /* a connection */
    struct client *next;
    int fd;
    bool waiting;    /* it has not sent the headers of its next request */
    double deadline; /* by opc_now */
};

struct opc_http {
    struct MHD_Daemon *daemon;
    struct opc_web_api *api;
    struct client *client;
    char token[TOKEN + 1];
    char cookie[32]; /* its name has the port in it: browsers share cookies among ports */
    char address[64];
    int port;
    bool any_host;
};

struct request { /* from its first line to its end */
    bool odd; /* its path has an encoded character, or an argument a NUL, which none of ours has */
    bool seen;
};

/* ---- clients --------------------------------------------------------------------------------- */

static void on_connection(void *ctx, struct MHD_Connection *connection, void **own,
                          enum MHD_ConnectionNotificationCode code)
{
    struct opc_http *http = ctx;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct client *client = opc_alloc(1, sizeof *client);
        if (client) {
            *client =
                (struct client){http->client, info->connect_fd, true, opc_now() + FOR_HEADERS};
            http->client = client;
        }
        *own = client;
        return;
    }
    struct client **at = &http->client;
    while (*at && *at != *own)
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
    opc_free(*own);
}

static void set_deadline(struct MHD_Connection *connection, bool waiting, double seconds)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct client *client = info ? info->socket_context : NULL;
    if (client) {
        client->waiting = waiting;
        client->deadline = opc_now() + seconds;
    }
}

/* A connection that is shut down reads an end of file, and libmicrohttpd closes it. */
static void drop_late_clients(struct opc_http *http)
{
    const double now = opc_now();
    int clients = 0;
    for (struct client *c = http->client; c; c = c->next)
        clients++;
    const double early = clients > CROWD ? FOR_HEADERS - FOR_HEADERS_IN_CROWD : 0;
    for (struct client *c = http->client; c; c = c->next)
        if (now > c->deadline - (c->waiting ? early : 0))
            shutdown(c->fd, SHUT_RDWR);
}

/* ---- who may ask ----------------------------------------------------------------------------- */

/* Compared in a time that does not depend on where they differ. */
static bool same_secret(const char *a, const char *b)
{
    unsigned difference = strlen(a) != strlen(b);
    for (size_t i = 0; a[i] && b[i]; i++)
        difference |= (unsigned)(unsigned char)a[i] ^ (unsigned char)b[i];
    return difference == 0;
}

/* "127.0.0.1:8000", "localhost:8000" or "[::1]:8000"; browsers leave out port 80. */
static bool is_our_host(const struct opc_http *http, const char *host)
{
    const char *const NAME[] = {http->address, "localhost", "[::1]"};
    char want[96];
    if (!host)
        return false;
    if (http->any_host)
        return true;
    for (int i = 0; i < 3; i++) {
        snprintf(want, sizeof want, "%s:%d", NAME[i], http->port);
        if (strcasecmp(host, want) == 0 || (http->port == 80 && strcasecmp(host, NAME[i]) == 0))
            return true;
    }
    return false;
}

static bool has_token(const struct opc_http *http, struct MHD_Connection *connection)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
    const char *cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, http->cookie);
    return (given && same_secret(given, http->token)) ||
           (cookie && same_secret(cookie, http->token));
}

/* ---- answers --------------------------------------------------------------------------------- */

/* No other host is asked for anything, no script in the page's text runs, no frame shows it, and
 * nothing is kept on the disk. */
static void add_headers(struct MHD_Response *response, const char *type, bool foreign)
{
    static const char *const HEADER[][2] = {
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"X-Frame-Options", "DENY"},
        {"Cache-Control", "no-store"},
    };
    for (size_t i = 0; i < sizeof HEADER / sizeof *HEADER; i++)
        MHD_add_response_header(response, HEADER[i][0], HEADER[i][1]);
    MHD_add_response_header(response, "Content-Type", type);
    /* A picture of a run may be anybody's: alone in a tab it may not even run a script. */
    MHD_add_response_header(
        response, "Content-Security-Policy",
        foreign ? "default-src 'none'; style-src 'unsafe-inline'; sandbox"
                : "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                  "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                  "frame-ancestors 'none'");
}

static enum MHD_Result send_response(struct MHD_Connection *connection, int status,
                                     struct MHD_Response *response)
{
    const enum MHD_Result sent = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return sent;
}

/* A sentence for a person. */
static enum MHD_Result refuse(struct MHD_Connection *connection, int status, const char *why)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(why), (void *)why, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    add_headers(response, "text/plain; charset=utf-8", false);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    return send_response(connection, status, response);
}

/* "bytes=100-199" or "bytes=100-", which a browser asks for when a film is moved forward. */
static bool wanted_range(const char *text, size_t size, size_t *first, size_t *n)
{
    unsigned long long from, to;
    char rest;
    if (!text)
        return false;
    const int got = sscanf(text, "bytes=%llu-%llu%c", &from, &to, &rest);
    if (got < 1 || got > 2 || from >= size)
        return false;
    if (got == 1 || to >= size)
        to = size - 1;
    if (to < from)
        return false;
    *first = (size_t)from;
    *n = (size_t)(to - from) + 1;
    return true;
}

/* A file, or the part of it that was asked for. The response closes it. */
static enum MHD_Result send_file(struct MHD_Connection *connection,
                                 const struct opc_web_answer *answer)
{
    const char *range = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Range");
    size_t first = 0, n = answer->fd_size;
    char text[96];
    const bool part = wanted_range(range, answer->fd_size, &first, &n);
    struct MHD_Response *response = MHD_create_response_from_fd_at_offset64(n, answer->fd, first);
    if (!response) {
        close(answer->fd);
        return MHD_NO;
    }
    add_headers(response, answer->type, answer->foreign);
    MHD_add_response_header(response, "Accept-Ranges", "bytes");
    if (part) {
        snprintf(text, sizeof text, "bytes %zu-%zu/%zu", first, first + n - 1, answer->fd_size);
        MHD_add_response_header(response, "Content-Range", text);
    }
    set_deadline(connection, false, FOR_FILM);
    return send_response(connection, part ? MHD_HTTP_PARTIAL_CONTENT : answer->status, response);
}

static const char *get_argument(void *ctx, const char *key)
{
    return MHD_lookup_connection_value(ctx, MHD_GET_ARGUMENT_KIND, key);
}

/* The answer of web/api.c, with the cookie where the token was in the address. */
static enum MHD_Result answer(struct opc_http *http, struct MHD_Connection *connection,
                              const char *path)
{
    struct opc_web_answer made;
    struct MHD_Response *response;
    const struct opc_web_request request = {path, get_argument, connection};
    opc_web_answer(http->api, &request, &made);
    if (made.fd >= 0)
        return send_file(connection, &made);
    if (made.fixed)
        response = MHD_create_response_from_buffer(made.fixed_size, (void *)made.fixed,
                                                   MHD_RESPMEM_PERSISTENT);
    else
        response = MHD_create_response_from_buffer_with_free_callback(made.own.used, made.own.at,
                                                                      opc_free);
    if (!response) {
        opc_text_free(&made.own);
        return MHD_NO;
    }
    add_headers(response, made.type, made.foreign);
    if (MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token")) {
        char cookie[160];
        snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", http->cookie,
                 http->token);
        MHD_add_response_header(response, "Set-Cookie", cookie);
    }
    return send_response(connection, made.status, response);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The first line as it was sent, before anything is decoded. */
static void *on_first_line(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    struct request *request = opc_alloc(1, sizeof *request);
    (void)ctx, (void)connection;
    if (request)
        request->odd = memchr(uri, '%', strcspn(uri, "?")) != NULL || strstr(uri, "%00");
    return request;
}

static void on_end(void *ctx, struct MHD_Connection *connection, void **own,
                   enum MHD_RequestTerminationCode code)
{
    (void)ctx, (void)code;
    opc_free(*own);
    *own = NULL;
    set_deadline(connection, true, FOR_HEADERS); /* for the next request of the connection */
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **own)
{
    struct opc_http *http = ctx;
    struct request *request = *own;
    (void)version, (void)upload;
    if (!request || *upload_size > 0)
        return MHD_NO; /* nobody sends us anything */
    /* The first call comes after the headers, the second when all is there. */
    if (!request->seen) {
        request->seen = true;
        set_deadline(connection, false, FOR_ANSWER);
        return MHD_YES;
    }
    if (!is_our_host(http, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
        return refuse(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                      "This server answers to its own address only.\n");
    if (!has_token(http, connection))
        return refuse(connection, MHD_HTTP_UNAUTHORIZED,
                      "Open the address that 'opc serve' printed: it has the token in it.\n");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD are answered.\n");
    if (request->odd)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "there is nothing here\n");
    return answer(http, connection, url);
}

/* ---------------------------------------------------------------------------------------------- */

/* 128 random bits. */
static int make_token(char out[TOKEN + 1], struct opc_err *err)
{
    unsigned char bytes[TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return opc_fail_errno(err, errno, "the system gives no random numbers for the token");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    return OPC_OK;
}

int opc_http_open(const struct opc_http_plan *plan, struct opc_http **out, struct opc_err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)plan->port)};
    if (inet_pton(AF_INET, plan->address, &at.sin_addr) != 1)
        return opc_fail(err, OPC_EUSER, "%s is not an IPv4 address such as 127.0.0.1",
                        plan->address);
    struct opc_http *http = opc_alloc(1, sizeof *http);
    if (!http)
        return opc_fail(err, OPC_ENOMEM, "out of memory for the server");
    http->api = plan->api;
    http->any_host = plan->any_host;
    snprintf(http->address, sizeof http->address, "%s", plan->address);
    int code = make_token(http->token, err);
    errno = 0;
    if (!code)
        http->daemon = MHD_start_daemon(
            MHD_USE_EPOLL, 0, NULL, NULL, on_request, http, MHD_OPTION_SOCK_ADDR, &at,
            MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CLIENTS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            (size_t)MAX_HEADERS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)FOR_ANSWER,
            MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
            MHD_OPTION_URI_LOG_CALLBACK, on_first_line, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_end,
            NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!code && !info)
        code = opc_fail(err, OPC_EUSER, "cannot listen on %s:%d: %s; --port 0 takes a free one",
                        plan->address, plan->port, errno ? strerror(errno) : "no reason is known");
    if (code) {
        opc_http_close(http);
        return code;
    }
    http->port = info->port;
    snprintf(http->cookie, sizeof http->cookie, "opc_%d", http->port);
    *out = http;
    return OPC_OK;
}

void opc_http_close(struct opc_http *http)
{
    if (!http)
        return;
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    opc_free(http);
}

int opc_http_port(const struct opc_http *http)
{
    return http->port;
}

const char *opc_http_token(const struct opc_http *http)
{
    return http->token;
}

void opc_http_wait(struct opc_http *http, double seconds)
{
    MHD_run_wait(http->daemon, seconds > 0 ? (int)(seconds * 1000) + 1 : 0);
    drop_late_clients(http);
}

const char *opc_http_version(void)
{
    return MHD_get_version();
}
