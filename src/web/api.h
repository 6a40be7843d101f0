/* SPDX-License-Identifier: MIT */
/* web/api.h - what opc serve answers: the page's files, and what the page asks about runs, as JSON.
 *
 *     /                          the page (src/web/page)
 *     /api/runs?since=V          runs that have changed since version V; all of them without it
 *     /api/curves?runs=1,2&of=eval_return&over=env_steps&smooth=1
 *     /api/metrics?run=N         metrics.csv, column by column
 *     /api/settings?run=N        every setting, and whether it has its default
 *     /api/differences?a=N&b=M   settings that differ
 *     /api/log?run=N             the end of log.txt
 *     /api/files?run=N, ?root=N  pictures, films and tables of a run, or of a directory
 *     /file?run=N&name=X         one of those
 *
 * Runs are named by their number, never by a path, and files by a name out of the list that
 * /api/files gives: no request reaches another file. Who may ask is decided by web/http.h. */
#ifndef OPC_WEB_API_H
#define OPC_WEB_API_H

#include "web/watch.h"

#include <stddef.h>

struct opc_web_request {
    const char *path; /* "/api/runs" */
    /* The value of an argument, decoded; NULL: it was not given. */
    const char *(*get)(void *ctx, const char *key);
    void *ctx;
};

struct opc_web_answer {
    int status;          /* of HTTP */
    const char *type;    /* of the content */
    struct opc_text own; /* the content, or, if nothing was appended: */
    const void *fixed;   /* a part of the program, */
    size_t fixed_size;
    int fd; /* or an open file, for the caller to close; -1: none */
    size_t fd_size;
    bool foreign; /* the content came from a run: no browser may run anything in it */
};

/* Remembers the last curves, because many pages ask for the same. */
struct opc_web_api {
    struct opc_watch *watch;
    char *curves_query, *curves; /* NULL: none yet */
    uint64_t curves_version;     /* the newest of the runs that it shows */
};

/* Always gives an answer; a failure is one with a status from 400 on and a sentence. */
void opc_web_answer(struct opc_web_api *, const struct opc_web_request *, struct opc_web_answer *);
void opc_web_api_free(struct opc_web_api *); /* not the watch */

/* For web/api_run.c. */
void opc_web_fail(struct opc_web_answer *, int status, const char *fmt, ...) OPC_PRINTF(3, 4);
void opc_web_number(struct opc_text *, double); /* as JSON; null: not finite */
const struct opc_watch_run *opc_web_run(const struct opc_watch *, const struct opc_web_request *,
                                        const char *key, struct opc_web_answer *);
void opc_web_metrics(const struct opc_watch_run *, struct opc_web_answer *);
void opc_web_settings(const struct opc_watch_run *, const struct opc_values *defaults,
                      struct opc_web_answer *);
void opc_web_differences(const struct opc_watch_run *, const struct opc_watch_run *,
                         struct opc_web_answer *);
void opc_web_log(const struct opc_watch_run *, struct opc_web_answer *);
/* web/api_files.c: dir holds a run, or runs. */
void opc_web_files(const char *dir, struct opc_web_answer *);
void opc_web_file(const char *dir, const char *name, struct opc_web_answer *);

#endif
