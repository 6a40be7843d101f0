/* SPDX-License-Identifier: MIT */
/* Frames over the pipes of a child that plays an environment: start, handshake, question and
 * answer, end. docs/env-process.md is the specification; process.c is the only caller.
 *
 * Invariants: no byte of the child is believed before it was compared with what the question allows
 * (kind, length, version, dimensions), and nothing larger than our own buffers is ever read. After
 * any failure the child is ended, because it and we may disagree about which question is open; a
 * failure names the child, the question, and the last of its standard error. */
#include "env/process_private.h"

#include "base/clock.h"
#include "opc/mem.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "frames hold doubles as they lie in memory");

static const double DEADLINE = 30; /* seconds for an answer, unless user or child say otherwise */

/* Bytes from the start of a block to the body: the head ends where the body begins. */
enum { ALIGNED = 8 };

const char *opc_frame_name(enum opc_frame kind)
{
    switch (kind) {
    case OPC_FRAME_HELLO: return "hello";
    case OPC_FRAME_RESET: return "reset";
    case OPC_FRAME_STEP: return "step";
    case OPC_FRAME_TERMINAL: return "terminal";
    case OPC_FRAME_REWARD: return "reward";
    case OPC_FRAME_START: return "start";
    case OPC_FRAME_STATE: return "state";
    case OPC_FRAME_REST: return "rest";
    case OPC_FRAME_SCENE: return "scene";
    case OPC_FRAME_CLOSE: return "close";
    default: return "error";
    }
}

/* ---- buffers --------------------------------------------------------------------------------- */

int opc_link_prepare(struct opc_link *link, struct opc_err *err)
{
    const char *given = getenv("OPC_ENV_DEADLINE"), *affinity = getenv("OPC_ENV_AFFINITY");
    link->child = (struct opc_child){.in = -1, .out = -1, .err = -1};
    link->deadline = DEADLINE;
    link->patience = 0.2;
    if (affinity && *affinity && strcmp(affinity, "0") != 0 && strcmp(affinity, "1") != 0)
        return opc_fail(
            err, OPC_EUSER,
            "OPC_ENV_AFFINITY = %s is neither 0 nor 1; write 0 to leave programs on the "
            "cores that the kernel chooses, or 1",
            affinity);
    link->keep_cores = affinity && strcmp(affinity, "0") == 0;
    if (!given || !*given)
        return OPC_OK;
    double seconds;
    if (!opc_parse_real(given, &seconds) || !(seconds >= 0))
        return opc_fail(err, OPC_EUSER,
                        "OPC_ENV_DEADLINE = %s is not a number of seconds; write a number, or 0 to "
                        "wait for ever",
                        given);
    link->own_deadline = true;
    link->deadline = seconds > 0 ? seconds : -1;
    return OPC_OK;
}

/* Makes a block that holds a head and a body of `bytes`; what it held is lost. */
static bool grow_block(unsigned char **block, double **body, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity && *block)
        return true;
    unsigned char *larger = opc_alloc(ALIGNED + bytes, 1);
    if (!larger)
        return false;
    opc_free(*block);
    *block = larger;
    *body = (double *)(void *)(larger + ALIGNED);
    *capacity = bytes;
    return true;
}

int opc_link_reserve(struct opc_link *link, size_t question, size_t answer, struct opc_err *err)
{
    /* An answer may always be an error with a text, so that much is there in any case. */
    const size_t asks = question * sizeof(double), answers = answer * sizeof(double);
    if (grow_block(&link->question_block, &link->question, &link->question_capacity, asks) &&
        grow_block(&link->answer_block, &link->answer, &link->answer_capacity,
                   answers > OPC_FRAME_TEXT ? answers : OPC_FRAME_TEXT))
        return OPC_OK;
    return opc_fail(err, OPC_ENOMEM, "not enough memory to talk to %s", link->argv[0]);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* What helps a child that said this; "" if we do not know. */
static const char *hint(const char *words)
{
    const bool lost =
        strstr(words, "No module named 'opc'") || strstr(words, "No module named 'opc.serve_env'");
    return lost ? "; set PYTHONPATH to opc's folder python (docs/env-process.md)" : "";
}

/* Ends the child after a failure that is described in err, and adds the last of its standard error.
 * What is not a stop or a lack of memory becomes a failure of the environment. */
static int fail_link(struct opc_link *link, int code, struct opc_err *err)
{
    char words[180];
    struct opc_err said = {0};
    if (err)
        said = *err;
    opc_talk_drain(&link->talk);
    opc_talk_last_words(&link->talk, words, sizeof words);
    opc_link_stop(link);
    if (code == OPC_ESTOPPED || code == OPC_ENOMEM)
        return code;
    return *words ? opc_fail(err, OPC_EENV, "%s; it last said: %s%s", said.text, words, hint(words))
                  : opc_fail(err, OPC_EENV, "%s", said.text);
}

/* The child did what the protocol does not allow; err says what. */
static int refuse_answer(struct opc_link *link, struct opc_err *err)
{
    link->lost = false;
    return fail_link(link, OPC_EENV, err);
}

/* The bytes of a head that are no head: a child whose print() went to the pipe. */
static bool is_text(const unsigned char *head)
{
    int n = 0;
    while (n < 4 && (isprint(head[n]) || isspace(head[n])))
        n++;
    return n == 4;
}

static int refuse_text(struct opc_link *link, const unsigned char *bytes, size_t n,
                       struct opc_err *err)
{
    char shown[48];
    size_t i = 0;
    for (; i < n && i < sizeof shown - 1 && bytes[i] != '\n'; i++)
        shown[i] = isprint(bytes[i]) ? (char)bytes[i] : ' ';
    shown[i] = '\0';
    opc_fail(err, OPC_EENV,
             "%s printed '%s' to its standard output, which is for frames alone; print to standard "
             "error",
             link->argv[0], shown);
    return refuse_answer(link, err);
}

/* ---- one frame ------------------------------------------------------------------------------- */

static void put_head(unsigned char *body, size_t bytes, enum opc_frame kind)
{
    const uint32_t length = (uint32_t)bytes;
    memcpy(body - OPC_FRAME_HEAD, &length, sizeof length);
    body[-1] = (unsigned char)kind;
}

/* Receives a frame into link->answer: its whole body must be of the asked kind and of min .. max
 * bytes, or be an error, which becomes ours. */
static int receive_frame(struct opc_link *link, enum opc_frame kind, size_t min, size_t max,
                         size_t *bytes, double until, struct opc_err *err)
{
    unsigned char *body = (unsigned char *)link->answer, *head = body - OPC_FRAME_HEAD;
    size_t got, more;
    uint32_t length;
    /* The whole frame usually arrives with the first read. */
    int code =
        opc_talk_receive(&link->talk, head, OPC_FRAME_HEAD, OPC_FRAME_HEAD + max, &got, until, err);
    if (code)
        return fail_link(link, code, err);
    memcpy(&length, head, sizeof length);
    const bool error = head[4] == OPC_FRAME_ERROR && length <= OPC_FRAME_TEXT;
    if (!error && is_text(head))
        return refuse_text(link, head, got, err);
    if (!error && head[4] != kind) {
        opc_fail(err, OPC_EENV, "%s answered %s with a frame of kind %d", link->argv[0],
                 opc_frame_name(kind), head[4]);
        return refuse_answer(link, err);
    }
    if (!error && (length < min || length > max)) {
        opc_fail(err, OPC_EENV, "%s answered %s with %lu bytes where %zu%s are expected",
                 link->argv[0], opc_frame_name(kind), (unsigned long)length, min,
                 max > min ? " or more" : "");
        return refuse_answer(link, err);
    }
    /* Bytes after the frame belong to no question; the rest of the frame is waited for. */
    got -= OPC_FRAME_HEAD;
    if (got > length) {
        opc_fail(err, OPC_EENV, "%s sent %zu bytes more than its answer to %s has", link->argv[0],
                 got - length, opc_frame_name(kind));
        return refuse_answer(link, err);
    }
    if (got < length) {
        code = opc_talk_receive(&link->talk, body + got, length - got, length - got, &more, until,
                                err);
        if (code)
            return fail_link(link, code, err);
    }
    *bytes = length;
    if (!error)
        return OPC_OK;
    /* Its own words, which are the best message there is. The child may go on after it. */
    for (size_t i = 0; i < length; i++)
        body[i] = body[i] < ' ' ? ' ' : body[i];
    link->lost = false;
    return opc_fail(err, OPC_EENV, "%s says: %.*s", link->argv[0], (int)length, (char *)body);
}

static double until_of(double seconds)
{
    return seconds < 0 ? -1 : opc_now() + seconds;
}

int opc_link_send(struct opc_link *link, enum opc_frame kind, size_t n, double seconds,
                  struct opc_err *err)
{
    unsigned char *body = (unsigned char *)link->question;
    const size_t bytes = n * sizeof(double);
    /* What is there before the question would be taken for its answer. */
    if (opc_talk_pending(&link->talk)) {
        opc_fail(err, OPC_EENV, "%s sent more than was asked for, before %s", link->argv[0],
                 opc_frame_name(kind));
        return refuse_answer(link, err);
    }
    link->lost = true;
    put_head(body, bytes, kind);
    /* Head and body lie next to each other, so that a frame is one write. */
    const int code = opc_talk_send(&link->talk, body - OPC_FRAME_HEAD, OPC_FRAME_HEAD + bytes,
                                   until_of(seconds), err);
    return code ? fail_link(link, code, err) : OPC_OK;
}

/* A frame of up to PIPE_BUF bytes is written whole or not at all. */
bool opc_link_try_send(struct opc_link *link, enum opc_frame kind, size_t n)
{
    unsigned char *body = (unsigned char *)link->question;
    const size_t bytes = OPC_FRAME_HEAD + n * sizeof(double);
    put_head(body, bytes - OPC_FRAME_HEAD, kind);
    return bytes <= PIPE_BUF &&
           opc_child_try_write(&link->child, body - OPC_FRAME_HEAD, bytes) == (ssize_t)bytes;
}

int opc_link_receive(struct opc_link *link, enum opc_frame kind, size_t min, size_t max,
                     size_t *got, double seconds, struct opc_err *err)
{
    size_t received = 0;
    link->lost = true;
    OPC_TRY(receive_frame(link, kind, min * sizeof(double), max * sizeof(double), &received,
                          until_of(seconds), err));
    if (received % sizeof(double) != 0) {
        opc_fail(err, OPC_EENV, "%s answered %s with %zu bytes, which are not whole numbers of 8",
                 link->argv[0], opc_frame_name(kind), received);
        return refuse_answer(link, err);
    }
    if (got)
        *got = received / sizeof(double);
    return OPC_OK;
}

int opc_link_ask(struct opc_link *link, enum opc_frame kind, size_t n, size_t min, size_t max,
                 size_t *got, double seconds, struct opc_err *err)
{
    const bool step = kind == OPC_FRAME_STEP;
    if (step)
        opc_affinity_ask(&link->affinity);
    int code = opc_link_send(link, kind, n, seconds, err);
    /* After a failure the child has been waited for, and its number may be another process's. */
    if (step && !code)
        opc_affinity_sent(&link->affinity);
    if (!code)
        code = opc_link_receive(link, kind, min, max, got, seconds, err);
    if (step)
        opc_affinity_done(&link->affinity, !code);
    return code;
}

/* ---- handshake ------------------------------------------------------------------------------- */

void opc_hello_free(struct opc_hello *hello)
{
    opc_free(hello->range);
    opc_free(hello->text);
    *hello = (struct opc_hello){0};
}

char *opc_hello_line(const struct opc_hello *hello, const char *key, const char *fallback,
                     char *out, size_t size)
{
    const size_t n = strlen(key);
    snprintf(out, size, "%s", fallback);
    for (const char *line = hello->text; line && *line;) {
        const size_t length = strcspn(line, "\n");
        if (length > n && strncmp(line, key, n) == 0 && line[n] == '=')
            snprintf(out, size, "%.*s", (int)(length - n - 1), line + n + 1);
        line += length + (line[length] == '\n');
    }
    return out;
}

int opc_hello_compare(const struct opc_hello *now, const struct opc_hello *then, const char *name,
                      struct opc_err *err)
{
    if (now->obs == then->obs && now->act == then->act && now->state == then->state &&
        now->steps == then->steps && now->flags == then->flags && now->dt == then->dt &&
        memcmp(now->range, then->range, 2 * (size_t)now->act * sizeof(double)) == 0)
        return OPC_OK;
    return opc_fail(
        err, OPC_EENV,
        "%s says hello with %d observations, %d actions, %d steps and flags %u, where an "
        "earlier child of the same command said %d, %d, %d and %u",
        name, now->obs, now->act, now->steps, now->flags, then->obs, then->act, then->steps,
        then->flags);
}

/* Starts the child with all its streams in pipes. It is in a process group of its own: Ctrl-C on
 * the terminal is for us, who then end it in order. */
int opc_link_start(struct opc_link *link, struct opc_err *err)
{
    static const struct opc_child_plan PLAN = {
        .pipe_in = true, .pipe_out = true, .pipe_err = true, .apart = true, .whole_group = true};
    const size_t args = strlen(link->args), bytes = sizeof(double) + args;
    OPC_TRY(opc_link_reserve(link, (bytes + 7) / 8, 0, err));
    int code = opc_child_start(link->argv, &PLAN, &link->child, err);
    if (code)
        return code == OPC_EIO && err ? opc_fail(err, OPC_EENV, "%s", err->text) : code;
    link->stage = OPC_LINK_STARTED;
    link->lost = true;
    code = opc_talk_begin(&link->talk, &link->child, err);
    if (code)
        return fail_link(link, code, err);
    /* Our version, and what stood after the '?'. */
    unsigned char *body = (unsigned char *)link->question;
    link->question[0] = OPC_PROCESS_VERSION;
    memcpy(body + sizeof(double), link->args, args);
    put_head(body, bytes, OPC_FRAME_HELLO);
    code = opc_talk_send(&link->talk, body - OPC_FRAME_HEAD, OPC_FRAME_HEAD + bytes,
                         until_of(link->deadline), err);
    /* A child that does not listen may have said why: opc_link_greet reads it. */
    return code && code != OPC_EIO ? fail_link(link, code, err) : OPC_OK;
}

/* A whole number in [min, max]. */
static bool is_count(double x, double min, double max)
{
    return x >= min && x <= max && x == floor(x);
}

/* The numbers of a hello, one by one, so that the message names the wrong one. */
static int check_hello(const struct opc_link *link, const double *x, struct opc_err *err)
{
    const double max = OPC_HELLO_DIMENSION;
    const struct {
        const char *what;
        bool good;
        const char *want;
    } rules[] = {
        {"version", x[0] == OPC_PROCESS_VERSION, "1"},
        {"observations", is_count(x[1], 1, max), "1 to 65536"},
        {"actions", is_count(x[2], 1, OPC_HELLO_ACTIONS), "1 to 4096"},
        {"full state", is_count(x[3], 0, max), "0 to 65536"},
        {"steps", is_count(x[4], 0, 1e9), "0 to 1e9"},
        {"dt", x[5] >= 0 && isfinite(x[5]), "0 or more seconds"},
        {"flags", is_count(x[6], 0, OPC_CHILD_FLAGS), "a sum of 1, 2, 4, 8, 16 and 32"},
        {"deadline", x[7] >= 0 && isfinite(x[7]), "0 or more seconds"},
    };
    /* The first that does not hold is reported. */
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!rules[i].good)
            return opc_fail(err, OPC_EENV, "%s says hello with %s = %g; it must be %s",
                            link->argv[0], rules[i].what, x[i], rules[i].want);
    return OPC_OK;
}

/* Numbers, ranges and text of the received body, of `bytes`. */
static int read_hello(const struct opc_link *link, size_t bytes, struct opc_hello *out,
                      struct opc_err *err)
{
    const double *x = link->answer;
    /* Before anything is allocated or cast by them. */
    OPC_TRY(check_hello(link, x, err));
    struct opc_hello hello = {.obs = (int)x[1],
                              .act = (int)x[2],
                              .state = (int)x[3],
                              .steps = (int)x[4],
                              .flags = (unsigned)x[6],
                              .dt = x[5],
                              .deadline = x[7]};
    const size_t ranges = 2 * (size_t)hello.act * sizeof(double);
    const size_t numbers = OPC_HELLO_NUMBERS * sizeof(double) + ranges;
    if (bytes < numbers)
        return opc_fail(err, OPC_EENV,
                        "%s says hello with %d actions in %zu bytes; with their ranges it has at "
                        "least %zu",
                        link->argv[0], hello.act, bytes, numbers);
    /* Copies, because the buffer is the next answer's; the text gets a NUL. */
    hello.range = opc_alloc(1, ranges);
    hello.text = opc_alloc(bytes - numbers + 1, 1);
    if (!hello.range || !hello.text) {
        opc_hello_free(&hello);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the hello of %s", link->argv[0]);
    }
    memcpy(hello.range, x + OPC_HELLO_NUMBERS, ranges);
    memcpy(hello.text, (const char *)x + numbers, bytes - numbers);
    *out = hello;
    return OPC_OK;
}

int opc_link_greet(struct opc_link *link, struct opc_hello *out, struct opc_err *err)
{
    const size_t max = OPC_HELLO_NUMBERS + 2 * OPC_HELLO_ACTIONS;
    size_t bytes = 0;
    OPC_TRY(opc_link_reserve(link, 0, max + OPC_FRAME_TEXT / sizeof(double), err));
    link->lost = true;
    OPC_TRY(receive_frame(link, OPC_FRAME_HELLO, OPC_HELLO_NUMBERS * sizeof(double),
                          link->answer_capacity, &bytes, until_of(link->deadline), err));
    const int code = read_hello(link, bytes, out, err);
    link->lost = false;
    if (code)
        return fail_link(link, code, err);
    link->stage = OPC_LINK_READY;
    /* A machine keeps its own time, in which we do not interfere. */
    opc_affinity_begin(&link->affinity, link->child.pid,
                       link->keep_cores || out->flags & OPC_CHILD_MACHINE);
    /* The child knows best how long it may take, unless the user has said it. */
    if (out->deadline > 0 && !link->own_deadline)
        link->deadline = out->deadline;
    return OPC_OK;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

void opc_scene_read(struct opc_scene *scene, size_t n, const double *x)
{
    *scene = (struct opc_scene){.width = 1};
    if (n < 4)
        return;
    memcpy(scene->centre, x, sizeof scene->centre);
    scene->width = x[3];
    scene->n = (int)((n - 4) / OPC_SCENE_NUMBERS);
    for (int i = 0; i < scene->n; i++) {
        struct opc_shape *shape = &scene->shape[i];
        const double *at = x + 4 + (size_t)i * OPC_SCENE_NUMBERS;
        memcpy(shape->from, at, sizeof shape->from);
        memcpy(shape->to, at + 3, sizeof shape->to);
        shape->radius = at[6];
        for (int k = 0; k < 3; k++)
            shape->rgb[k] = (float)at[7 + k];
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

void opc_link_stop(struct opc_link *link)
{
    /* A frame without an answer, for children that wait for one; the closed pipe says the same. */
    static const unsigned char CLOSE[OPC_FRAME_HEAD] = {0, 0, 0, 0, OPC_FRAME_CLOSE};
    if (link->stage == OPC_LINK_DOWN)
        return;
    if (link->stage == OPC_LINK_READY && link->child.in >= 0)
        (void)opc_child_try_write(&link->child, CLOSE, sizeof CLOSE);
    opc_talk_drain(&link->talk);
    opc_child_end(&link->child, link->patience);
    link->stage = OPC_LINK_DOWN;
}

void opc_link_free(struct opc_link *link)
{
    opc_link_stop(link);
    opc_free(link->question_block);
    opc_free(link->answer_block);
    link->question_block = link->answer_block = NULL;
    link->question_capacity = link->answer_capacity = 0;
}
