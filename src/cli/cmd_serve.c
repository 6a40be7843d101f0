/* SPDX-License-Identifier: MIT */
/* opc serve - a page in the browser that shows runs while they go on.
 *
 * web/watch.h looks at the runs, web/api.h answers about them, web/http.h decides who may ask; this
 * file reads the options and alternates between requests and looking. Invariant: one thread, which
 * only reads, so training never waits for it. */
#include "base/log.h"
#include "base/process/child.h"
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "opc/log.h"
#include "web/http.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(INT,  port,   "0",         0, 65535, "port to listen on; 0: any that is free")               \
    X(TEXT, bind,   "127.0.0.1", 7, 15,    "IPv4 address to listen on; any but loopback needs --i-know") \
    X(BOOL, i_know, "false",     0, 1,     "others on the network may connect, without encryption: the token is all that keeps them out") \
    X(BOOL, open,   "false",     0, 1,     "open the page in the browser (xdg-open)")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* Without a browser the address that was printed is as good. */
static void open_browser(char *address)
{
    char *const argv[] = {"xdg-open", address, NULL};
    const struct opc_child_plan plan = {.apart = true, .output = "/dev/null"};
    struct opc_child child;
    struct opc_err err = {0};
    if (opc_child_start(argv, &plan, &child, &err))
        opc_log(OPC_LEVEL_WARN, "%s; open the address yourself", err.text);
}

/* Requests and looking, in turn, until Ctrl-C. */
static void serve(struct opc_http *http, struct opc_watch *watch)
{
    static const double SLICE = 0.02, LONGEST = 0.25; /* seconds */
    double wait = 0;
    while (!opc_stop_wanted()) {
        opc_http_wait(http, wait < LONGEST ? wait : LONGEST);
        wait = opc_watch_step(watch, SLICE);
    }
}

static int serve_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_watch *watch = NULL;
    struct opc_http *http = NULL;
    int first;
    OPC_TRY(opc_options_read(&options, argc, argv, &given, &first, err));
    if (first == argc)
        return opc_fail(err, OPC_EUSER, "name directories of runs: opc serve DIR");
    if (strcmp(given.bind, "localhost") == 0)
        strcpy(given.bind, "127.0.0.1");
    const bool loopback = strncmp(given.bind, "127.", 4) == 0;
    if (!loopback && !given.i_know)
        return opc_fail(err, OPC_EUSER,
                        "--bind %s lets others on the network connect, without encryption; "
                        "'ssh -L' is safer (docs/serve.md), and --i-know does it all the same",
                        given.bind);
    struct opc_web_api api = {0};
    int code = opc_watch_open(argc - first, argv + first, &watch, err);
    api.watch = watch;
    const struct opc_http_plan plan = {given.bind, given.port, !loopback, &api};
    if (!code)
        code = opc_http_open(&plan, &http, err);
    if (!code) {
        char address[OPC_TEXT_SIZE + 128];
        snprintf(address, sizeof address, "http://%s:%d/?token=%s", given.bind, opc_http_port(http),
                 opc_http_token(http));
        printf("%d run%s; open %s\n", watch->runs, watch->runs == 1 ? "" : "s", address);
        puts("Ctrl-C ends the page; runs go on");
        /* A client that goes away must not end the server. */
        signal(SIGPIPE, SIG_IGN);
        opc_stop_catch(NULL);
        opc_display_flush();
        if (given.open)
            open_browser(address);
        opc_log_to(NULL, NULL); /* curves warn about copies of runs with every request */
        serve(http, watch);
    }
    opc_http_close(http);
    opc_web_api_free(&api);
    opc_watch_close(watch);
    return code;
}

const struct opc_command opc_cmd_serve = {
    .name = "serve",
    .usage = "DIR... [OPTION...]",
    .summary = "show runs in the browser, live",
    .detail =
        "Prints an address to open: a table of the runs below the directories, their learning "
        "curves with bands over seeds, model errors and critics, settings and what differs, logs, "
        "films and exhibits, and sweeps as a grid, all of it up to date while the runs go on "
        "(docs/serve.md).\n"
        "It reads run directories and writes nothing. It listens on this computer alone, and only "
        "those who have the token in the address get an answer. For runs on another computer: ssh "
        "-L "
        "8000:localhost:8000 HOST opc serve DIR --port 8000.",
    .options = &options,
    .run = serve_run,
};
