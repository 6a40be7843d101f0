/* SPDX-License-Identifier: MIT */
/* Questions to a child that plays an environment, and what happens when it does not answer.
 * process.c asks here; process_link.c carries the frames.
 *
 * A child that ends or falls silent is started again, at most MAX_RESTARTS times in an episode: if
 * it repeats itself, the episode under way is repeated to the step it was at, which must lead to
 * the same bits; otherwise only what needs no episode (reset, terminal, reward) is asked again. A
 * child that lies (another shape, NaN) is never started again, because it would lie again.
 *
 * Invariant: the caller holds p->talks->lock, unless it is still opening the environment. */
#include "base/log.h"
#include "env/process_private.h"
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>
#include <string.h>

enum { MAX_RESTARTS = 3 };

/* ---- starting and starting again ------------------------------------------------------------- */

int opc_process_reserve(struct process *p, struct opc_err *err)
{
    const size_t obs = (size_t)p->hello.obs, act = (size_t)p->hello.act;
    const size_t state = (size_t)p->hello.state, words = OPC_FRAME_SEED_WORDS;
    size_t question = act > words ? act : words, answer = obs + 3;
    question = state > question ? state : question;
    answer = state > answer ? state : answer;
    /* Batches grow their buffers when they are asked; scenes are small. */
    if (p->hello.flags & OPC_CHILD_SCENE && answer < 4 + OPC_SHAPES * OPC_SCENE_NUMBERS)
        answer = 4 + OPC_SHAPES * OPC_SCENE_NUMBERS;
    return opc_link_reserve(&p->talks->link, question, answer, err);
}

/* Brings the link from any stage to ready; a child that was started by a copy has not answered our
 * hello yet. */
static int make_ready(struct process *p, struct opc_err *err)
{
    struct opc_link *link = &p->talks->link;
    struct opc_hello now;
    if (link->stage == OPC_LINK_READY)
        return OPC_OK;
    if (link->stage == OPC_LINK_DOWN)
        OPC_TRY(opc_link_start(link, err));
    int code = opc_link_greet(link, &now, err);
    if (!code)
        code = opc_hello_compare(&now, &p->hello, p->argv[0], err);
    else
        now = (struct opc_hello){0};
    opc_hello_free(&now);
    if (code)
        opc_link_stop(link);
    return code ? code : opc_process_reserve(p, err);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Reset or start: sends talks->origin and fills out->obs. */
static int ask_origin(struct process *p, const struct question *q, struct opc_err *err)
{
    struct opc_link *link = &p->talks->link;
    const size_t obs = (size_t)p->hello.obs;
    const bool reset = q->kind == OPC_FRAME_RESET;
    const size_t words = reset ? OPC_FRAME_SEED_WORDS : (size_t)p->hello.state;
    /* A person may have to put a machine back. */
    const double seconds = p->type.machine ? -1 : link->deadline;
    link->talk.stop = opc_env_wait_ends;
    memcpy(link->question, p->talks->origin, words * sizeof(double));
    const int code = opc_link_ask(link, q->kind, words, obs, obs, NULL, seconds, err);
    /* A step of a machine is not abandoned; waiting for a person is. */
    if (p->type.machine)
        link->talk.stop = NULL;
    if (code)
        return code;
    memcpy(q->out->obs, link->answer, obs * sizeof(double));
    return OPC_OK;
}

/* The answer is obs numbers, the reward, terminated and truncated. */
static int ask_step(struct process *p, const struct question *q, struct opc_err *err)
{
    struct opc_link *link = &p->talks->link;
    const size_t obs = (size_t)p->hello.obs, act = (size_t)p->hello.act;
    const bool sent = p->talks->ahead;
    p->talks->ahead = false;
    memcpy(link->question, q->action, act * sizeof(double));
    OPC_TRY(
        sent
            ? opc_link_receive(link, OPC_FRAME_STEP, obs + 3, obs + 3, NULL, link->deadline, err)
            : opc_link_ask(link, OPC_FRAME_STEP, act, obs + 3, obs + 3, NULL, link->deadline, err));
    const double *tail = link->answer + obs;
    for (int i = 1; i <= 2; i++)
        if (tail[i] != 0 && tail[i] != 1)
            return opc_fail(err, OPC_EENV, "%s says %s = %g; it must be 0 or 1", p->argv[0],
                            i == 1 ? "terminated" : "truncated", tail[i]);
    memcpy(q->out->obs, link->answer, obs * sizeof(double));
    q->out->reward = tail[0];
    q->out->terminated = tail[1] == 1;
    q->out->truncated = tail[2] == 1;
    return OPC_OK;
}

/* n imagined transitions in one question: n, then s, a (in the task's own units) and s' of each. */
static int ask_batch(struct process *p, const struct question *q, struct opc_err *err)
{
    struct opc_link *link = &p->talks->link;
    const size_t obs = (size_t)p->hello.obs, act = (size_t)p->hello.act, n = (size_t)q->n;
    const size_t numbers = 1 + n * (2 * obs + act);
    OPC_TRY(opc_link_reserve(link, numbers, n, err));
    double *to = link->question;
    *to++ = (double)n;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < obs; k++)
            *to++ = (double)q->s[i * obs + k];
        opc_env_scale(&p->env, q->a + i * act, to);
        to += act;
        for (size_t k = 0; k < obs; k++)
            *to++ = (double)q->next[i * obs + k];
    }
    OPC_TRY(opc_link_ask(link, q->kind, numbers, n, n, NULL, link->deadline, err));
    for (size_t i = 0; i < n; i++) {
        const double x = link->answer[i];
        if (q->kind == OPC_FRAME_TERMINAL ? x != 0 && x != 1 : !isfinite(x))
            return opc_fail(err, OPC_EENV, "%s says %g for row %zu; it must be %s", p->argv[0], x,
                            i, q->kind == OPC_FRAME_TERMINAL ? "0 or 1" : "a finite number");
        q->answers[i] = x;
    }
    return OPC_OK;
}

/* Reads the answer to a step that was asked ahead and is not taken: the program was stopped, say.
 */
static void drop_answer(struct process *p)
{
    struct opc_link *link = &p->talks->link;
    struct opc_err err = {0};
    const size_t n = (size_t)p->hello.obs + 3;
    if (p->talks->ahead && link->stage == OPC_LINK_READY)
        (void)opc_link_receive(link, OPC_FRAME_STEP, n, n, NULL, link->deadline, &err);
    /* The child has made a step that we have not: the episode cannot go on. */
    if (p->talks->ahead)
        p->talks->began = 0;
    p->talks->ahead = false;
}

int opc_process_ask_plain(struct process *p, enum opc_frame kind, size_t min, size_t max,
                          size_t *got, struct opc_err *err)
{
    struct opc_link *link = &p->talks->link;
    drop_answer(p);
    return link->stage == OPC_LINK_READY
               ? opc_link_ask(link, kind, 0, min, max, got, link->deadline, err)
               : opc_fail(err, OPC_EENV, "%s has ended", p->argv[0]);
}

static int ask_once(struct process *p, const struct question *q, struct opc_err *err)
{
    switch (q->kind) {
    case OPC_FRAME_STEP: return ask_step(p, q, err);
    case OPC_FRAME_TERMINAL:
    case OPC_FRAME_REWARD: return ask_batch(p, q, err);
    default: return ask_origin(p, q, err);
    }
}

/* ---- restarts -------------------------------------------------------------------------------- */

/* Repeats the episode under way in a child that was just started. */
static int repeat_episode(struct process *p, struct opc_err *err)
{
    struct talks *talks = p->talks;
    const size_t obs = (size_t)p->hello.obs, act = (size_t)p->hello.act;
    double *now = opc_alloc(obs, sizeof *now);
    if (!now)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to repeat an episode");
    struct opc_outcome out = {.obs = now};
    struct question q = {.kind = talks->began, .out = &out};
    int code = ask_origin(p, &q, err);
    for (int t = 0; !code && t < talks->played; t++) {
        q = (struct question){
            .kind = OPC_FRAME_STEP, .action = talks->actions + (size_t)t * act, .out = &out};
        code = ask_step(p, &q, err);
    }
    if (!code && memcmp(now, talks->obs, obs * sizeof *now) != 0) {
        talks->link.lost = false; /* once more would not help */
        code = opc_fail(err, OPC_EENV,
                        "%s says that it repeats itself and does not: started again, it is in "
                        "another state after the same %d steps",
                        p->argv[0], talks->played);
    }
    opc_free(now);
    return code;
}

/* After a question failed: starts a child that was lost once more and repeats the episode under
 * way. True: the question may be asked again. */
static bool start_again(struct process *p, struct opc_err *err)
{
    struct talks *talks = p->talks;
    const bool repeats = p->hello.flags & OPC_CHILD_REPEATS;
    /* A machine is not moved unasked, and a lie would be told again. */
    while (talks->link.lost && !p->type.machine && err->code == OPC_EENV &&
           (!talks->began || repeats)) {
        if (talks->restarts == MAX_RESTARTS) {
            opc_fail(err, OPC_EENV, "%s (and so after %d restarts)", err->text, MAX_RESTARTS);
            return false;
        }
        talks->restarts++;
        talks->ahead = false;
        opc_log(OPC_LEVEL_WARN, "%s; it is started again, %d of at most %d times", err->text,
                talks->restarts, MAX_RESTARTS);
        int code = make_ready(p, err);
        if (!code && talks->began)
            code = repeat_episode(p, err);
        if (!code)
            return true;
    }
    return false;
}

int opc_process_ask(struct process *p, const struct question *q, struct opc_err *err)
{
    struct talks *talks = p->talks;
    if (talks->failure.code) {
        *err = talks->failure;
        return err->code;
    }
    int code;
    if (q->kind != OPC_FRAME_STEP)
        drop_answer(p);
    do {
        code = make_ready(p, err);
        if (!code)
            code = ask_once(p, q, err);
    } while (code && start_again(p, err));
    return code ? (int)err->code : OPC_OK;
}
