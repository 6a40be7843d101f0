/* SPDX-License-Identifier: MIT */
/* Environments that are other programs: exec:COMMAND?ARGUMENTS. env.c opens them by that prefix.
 * process_ask.c asks the child; docs/env-process.md is the protocol, and examples/sliding.c and
 * examples/tanks.py are children.
 *
 * What a child says about itself in its hello decides which functions its type has, so every
 * environment has a type of its own, as a wrapper has (wrap.c).
 *
 * Invariants: the struct link is used under its lock, because many threads ask about imagined
 * states. terminal and reward cannot report a failure: it is kept, every later call returns it, and
 * a caller asks opc_env_failure before it believes an answer. */
#include "base/file.h"
#include "base/format/crc.h"
#include "base/log.h"
#include "base/process/words.h"
#include "env/process_private.h"
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum {
    MAX_ROWS = 4096,     /* imagined rows in one question */
    MAX_FILE = 64 << 20, /* of a file whose checksum is taken */
};
static const char PREFIX[] = "exec:";

bool opc_env_is_process(const char *spec)
{
    return strncmp(spec, PREFIX, sizeof PREFIX - 1) == 0;
}

/* An environment that was made by opc_process_open or process_copy. */
static bool is_process(const struct opc_env *env)
{
    return env->spec && opc_env_is_process(env->spec);
}

/* ---- playing --------------------------------------------------------------------------------- */

/* The common part of reset and start; origin is filled in. */
static int begin(struct process *p, enum opc_frame kind, double *obs, struct opc_err *err)
{
    struct talks *talks = p->talks;
    struct opc_outcome out = {.obs = obs};
    const struct question q = {.kind = kind, .out = &out};
    /* Restarts are counted from the last episode that was played. */
    if (talks->began && talks->played > 0)
        talks->restarts = 0;
    talks->began = 0;
    talks->played = 0;
    const int code = opc_process_ask(p, &q, err);
    if (code)
        return code;
    memcpy(talks->obs, obs, (size_t)p->hello.obs * sizeof *obs);
    talks->began = kind;
    return OPC_OK;
}

static int process_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    struct process *p = (struct process *)env;
    struct opc_err own = {0};
    pthread_mutex_lock(&p->talks->lock);
    for (int i = 0; i < OPC_FRAME_SEED_WORDS; i++)
        p->talks->origin[i] = opc_rng_bits(rng);
    const int code = begin(p, OPC_FRAME_RESET, obs, err ? err : &own);
    pthread_mutex_unlock(&p->talks->lock);
    return code;
}

static int process_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    struct process *p = (struct process *)env;
    struct opc_err own = {0};
    const size_t n = (size_t)p->hello.state;
    pthread_mutex_lock(&p->talks->lock);
    /* Without a state: the noise-free one, which a child cannot be asked for, is all zeros. */
    memset(p->talks->origin, 0, n * sizeof *state);
    if (state)
        memcpy(p->talks->origin, state, n * sizeof *state);
    const int code = begin(p, OPC_FRAME_START, obs, err ? err : &own);
    pthread_mutex_unlock(&p->talks->lock);
    return code;
}

/* Keeps an action of the episode, so that the episode can be repeated. */
static int note_action(struct process *p, const double *action, struct opc_err *err)
{
    struct talks *talks = p->talks;
    const size_t act = (size_t)p->hello.act, each = act * sizeof *action;
    if (!(p->hello.flags & OPC_CHILD_REPEATS))
        return OPC_OK;
    if (talks->played == talks->capacity) {
        const int more = talks->capacity ? 2 * talks->capacity : 256;
        double *larger = opc_alloc((size_t)more, each);
        if (!larger)
            return opc_fail(err, OPC_ENOMEM, "not enough memory for an episode of %d steps", more);
        if (talks->played > 0)
            memcpy(larger, talks->actions, (size_t)talks->played * each);
        opc_free(talks->actions);
        talks->actions = larger;
        talks->capacity = more;
    }
    memcpy(talks->actions + (size_t)talks->played * act, action, each);
    return OPC_OK;
}

static int process_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                        struct opc_err *err)
{
    struct process *p = (struct process *)env;
    struct talks *talks = p->talks;
    struct opc_err own = {0};
    const struct question q = {.kind = OPC_FRAME_STEP, .action = action, .out = out};
    err = err ? err : &own;
    pthread_mutex_lock(&talks->lock);
    int code = talks->began ? opc_process_ask(p, &q, err)
                            : opc_fail(err, OPC_EENV, "its episode is over; reset it first");
    if (!code)
        code = note_action(p, action, err);
    if (!code) {
        talks->played++;
        memcpy(talks->obs, out->obs, (size_t)p->hello.obs * sizeof(double));
    } else
        talks->began = 0; /* the episode is over, and is not repeated */
    pthread_mutex_unlock(&talks->lock);
    return code;
}

void opc_process_step_ahead(struct opc_env *env, const double *action)
{
    struct process *p = (struct process *)env;
    /* Another type, no episode, or an action that env.c will refuse. */
    if (!is_process(env) || env->t < 0)
        return;
    for (int i = 0; i < env->act; i++)
        if (!isfinite(action[i]))
            return;
    struct talks *talks = p->talks;
    pthread_mutex_lock(&talks->lock);
    if (talks->link.stage == OPC_LINK_READY && talks->began && !talks->ahead &&
        !talks->failure.code && !opc_talk_pending(&talks->link.talk)) {
        memcpy(talks->link.question, action, (size_t)p->hello.act * sizeof(double));
        /* What goes wrong here goes wrong again, and is reported, when the step itself is asked. */
        talks->ahead = opc_link_try_send(&talks->link, OPC_FRAME_STEP, (size_t)p->hello.act);
    }
    pthread_mutex_unlock(&talks->lock);
}

/* ---- functions that cannot fail: a failure is kept ------------------------------------------- */

static void keep_failure(struct process *p, enum opc_frame kind, struct opc_err *err)
{
    if (p->talks->failure.code)
        return;
    if (err->code != OPC_ESTOPPED)
        opc_within(err, "%s: %s", p->env.spec ? p->env.spec : p->name, opc_frame_name(kind));
    p->talks->failure = *err;
}

int opc_env_failure(const struct opc_env *env, struct opc_err *err)
{
    if (!is_process(env))
        return OPC_OK;
    struct talks *talks = ((const struct process *)env)->talks;
    pthread_mutex_lock(&talks->lock);
    const int code = talks->failure.code;
    if (code && err)
        *err = talks->failure;
    pthread_mutex_unlock(&talks->lock);
    return code;
}

bool opc_env_repeats(const struct opc_env *env)
{
    if (env->type->machine)
        return false;
    return !is_process(env) || ((const struct process *)env)->hello.flags & OPC_CHILD_REPEATS;
}

/* Asks about rows in blocks; after a failure the rest is 0. */
static void ask_rows(struct process *p, struct question *q, int n, double *answers)
{
    const size_t obs = (size_t)p->hello.obs, act = (size_t)p->hello.act;
    struct opc_err err = {0};
    pthread_mutex_lock(&p->talks->lock);
    memset(answers, 0, (size_t)n * sizeof *answers);
    q->n = n;
    q->answers = answers;
    if (opc_process_ask(p, q, &err))
        keep_failure(p, q->kind, &err);
    q->s += (size_t)n * obs;
    q->a += (size_t)n * act;
    q->next += (size_t)n * obs;
    pthread_mutex_unlock(&p->talks->lock);
}

static void process_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                             const float *next, bool *out)
{
    struct process *p = (struct process *)env; /* what changes is in p->talks */
    struct question q = {.kind = OPC_FRAME_TERMINAL, .s = s, .a = a, .next = next};
    double answers[MAX_ROWS];
    for (int i = 0, rows; i < n; i += rows) {
        rows = n - i < MAX_ROWS ? n - i : MAX_ROWS;
        ask_rows(p, &q, rows, answers);
        for (int k = 0; k < rows; k++)
            out[i + k] = answers[k] == 1;
    }
}

static void process_reward(const struct opc_env *env, int n, const float *s, const float *a,
                           const float *next, float *out)
{
    struct process *p = (struct process *)env; /* what changes is in p->talks */
    struct question q = {.kind = OPC_FRAME_REWARD, .s = s, .a = a, .next = next};
    double answers[MAX_ROWS];
    for (int i = 0, rows; i < n; i += rows) {
        rows = n - i < MAX_ROWS ? n - i : MAX_ROWS;
        ask_rows(p, &q, rows, answers);
        for (int k = 0; k < rows; k++)
            out[i + k] = (float)answers[k];
    }
}

/* Of a full state or a scene. */
static int require_finite(const struct process *p, size_t n, const double *x, struct opc_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return opc_fail(err, OPC_EENV, "%s says %g for number %zu, which is not finite",
                            p->argv[0], x[i], i);
    return OPC_OK;
}

/* The child's full state is state numbers; after a failure they are 0. */
static void process_state(const struct opc_env *env, double *state)
{
    struct process *p = (struct process *)env; /* what changes is in p->talks */
    struct talks *talks = p->talks;
    struct opc_err err = {0};
    const size_t n = (size_t)p->hello.state;
    pthread_mutex_lock(&talks->lock);
    memset(state, 0, n * sizeof *state);
    if (talks->link.stage == OPC_LINK_READY) {
        if (opc_process_ask_plain(p, OPC_FRAME_STATE, n, n, NULL, &err) ||
            require_finite(p, n, talks->link.answer, &err))
            keep_failure(p, OPC_FRAME_STATE, &err);
        else
            memcpy(state, talks->link.answer, n * sizeof *state);
    }
    pthread_mutex_unlock(&talks->lock);
}

/* The episode is over. A child that is down has read the end of its input, at which a machine
 * rests (docs/env-process.md). */
static void process_rest(struct opc_env *env)
{
    struct process *p = (struct process *)env;
    struct opc_err err = {0};
    pthread_mutex_lock(&p->talks->lock);
    if (p->talks->link.stage == OPC_LINK_READY && !p->talks->failure.code &&
        opc_process_ask_plain(p, OPC_FRAME_REST, 0, 0, NULL, &err)) {
        /* A child that has ended is started again for the next episode, unless it is a machine. */
        if (p->talks->link.lost && !p->type.machine && err.code == OPC_EENV) {
            opc_within(&err, "%s: rest", p->env.spec ? p->env.spec : p->name);
            opc_log(OPC_LEVEL_WARN, "%s; it is started again for the next episode", err.text);
        } else {
            keep_failure(p, OPC_FRAME_REST, &err);
            opc_log(OPC_LEVEL_WARN, "%s", p->talks->failure.text);
        }
    }
    pthread_mutex_unlock(&p->talks->lock);
}

/* The numbers of a scene; *got is how many there are. */
static int ask_scene(struct process *p, size_t *got, struct opc_err *err)
{
    const size_t each = OPC_SCENE_NUMBERS, max = 4 + OPC_SHAPES * each;
    OPC_TRY(opc_process_ask_plain(p, OPC_FRAME_SCENE, 4, max, got, err));
    if ((*got - 4) % each != 0)
        return opc_fail(err, OPC_EENV, "%s answered with %zu numbers; it must be 4 and %zu a shape",
                        p->argv[0], *got, each);
    return require_finite(p, *got, p->talks->link.answer, err);
}

static void process_draw(const struct opc_env *env, struct opc_scene *scene)
{
    struct process *p = (struct process *)env; /* what changes is in p->talks */
    struct opc_err err = {0};
    size_t got = 0;
    *scene = (struct opc_scene){.width = 1};
    pthread_mutex_lock(&p->talks->lock);
    const double *x = p->talks->link.answer;
    if (p->talks->link.stage == OPC_LINK_READY && ask_scene(p, &got, &err)) {
        keep_failure(p, OPC_FRAME_SCENE, &err);
        got = 0;
    }
    opc_scene_read(scene, got, x);
    pthread_mutex_unlock(&p->talks->lock);
}

/* ---- open, copy, close ----------------------------------------------------------------------- */

static void process_close(struct opc_env *env)
{
    struct process *p = (struct process *)env;
    if (!p)
        return;
    if (p->talks) {
        opc_link_free(&p->talks->link);
        pthread_mutex_destroy(&p->talks->lock);
        opc_free(p->talks->origin);
        opc_free(p->talks->actions);
        opc_free(p->talks->obs);
        opc_free(p->talks);
    }
    opc_hello_free(&p->hello);
    opc_free(p->argv);
    opc_free(p->args);
    opc_free(p);
}

/* A process without a child: words and arguments of the spec. */
static int create(const char *spec, struct process **out, struct opc_err *err)
{
    const char *command = spec + sizeof PREFIX - 1, *mark = strrchr(command, '?');
    struct process *p = opc_alloc(1, sizeof *p);
    if (!p)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to open %s", spec);
    struct talks *talks = p->talks = opc_alloc(1, sizeof *talks);
    p->args = opc_strdup(mark ? mark + 1 : "");
    int code = talks && p->args
                   ? opc_split_words(command, mark ? (size_t)(mark - command) : strlen(command),
                                     &p->argv, err)
                   : opc_fail(err, OPC_ENOMEM, "not enough memory to open %s", spec);
    if (talks) {
        pthread_mutex_init(&talks->lock, NULL);
        talks->link.talk.stop = opc_env_wait_ends;
        if (!code)
            code = opc_link_prepare(&talks->link, err);
    }
    if (code) {
        process_close(&p->env);
        return code;
    }
    talks->link.argv = p->argv;
    talks->link.args = p->args;
    *out = p;
    return OPC_OK;
}

/* A checksum of what the task is made of, as far as we can see it: the files that the command
 * names, and the line version= of the hello. A run records it, and resuming compares. */
static int hash_task(const struct process *p, uint32_t *out, struct opc_err *err)
{
    char version[OPC_PAGE_LINE];
    uint32_t crc = 0;
    for (char **word = p->argv; *word; word++) {
        char *bytes;
        size_t n;
        /* A program that is found on the PATH is not a part of the task, and a file that cannot be
         * read is none for the child either. */
        if ((word == p->argv && !strchr(*word, '/')) || !opc_file_exists(*word) ||
            opc_is_directory(*word))
            continue;
        const int code = opc_file_read(*word, MAX_FILE, &bytes, &n, err);
        if (code == OPC_ENOMEM)
            return code;
        if (code)
            continue;
        crc = opc_crc32c(crc, bytes, n);
        opc_free(bytes);
    }
    opc_hello_line(&p->hello, "version", "", version, sizeof version);
    *out = opc_crc32c(crc, version, strlen(version));
    return OPC_OK;
}

static int process_copy(const struct opc_env *like, struct opc_env **out, struct opc_err *err);

/* The type: functions by the flags of the hello, sentences by its lines. */
static void fill_type(struct process *p)
{
    static const struct {
        const char *key, *fallback;
    } LINES[] = {
        {"summary", "a task that another program plays"},
        {"observation", "as the program has it"},
        {"action", "as the program has it"},
        {"reward", "as the program pays it"},
        {"termination", "when the program says so"},
        {"reset", "as the program draws it"},
    };
    const unsigned flags = p->hello.flags;
    for (int i = 0; i < 6; i++)
        opc_hello_line(&p->hello, LINES[i].key, LINES[i].fallback, p->lines[i], OPC_PAGE_LINE);
    p->page = (struct opc_env_page){p->lines[0], p->lines[1], p->lines[2],
                                    p->lines[3], p->lines[4], p->lines[5]};
    opc_hello_line(&p->hello, "name", opc_path_name(p->argv[0]), p->name, sizeof p->name);
    opc_hello_line(&p->hello, "engine", "another program", p->engine, sizeof p->engine);
    p->type = (struct opc_env_type){
        .name = p->name,
        .page = &p->page,
        .reset = process_reset,
        .step = process_step,
        .close = process_close,
        .start = p->hello.state > 0 ? process_start : NULL,
        .state = p->hello.state > 0 ? process_state : NULL,
        .copy = process_copy,
        .terminal = flags & OPC_CHILD_TERMINAL ? process_terminal : NULL,
        .reward = flags & OPC_CHILD_REWARD ? process_reward : NULL,
        .draw = flags & OPC_CHILD_SCENE ? process_draw : NULL,
        .rest = flags & (OPC_CHILD_REST | OPC_CHILD_MACHINE) ? process_rest : NULL,
        .machine = flags & OPC_CHILD_MACHINE,
    };
}

/* Everything that follows from the hello. */
static int fill_env(struct process *p, struct opc_err *err)
{
    struct talks *talks = p->talks;
    const size_t obs = (size_t)p->hello.obs, state = (size_t)p->hello.state;
    fill_type(p);
    p->env = (struct opc_env){.obs = p->hello.obs,
                              .act = p->hello.act,
                              .state = p->hello.state,
                              .steps = p->hello.steps,
                              .dt = p->hello.dt,
                              .low = p->hello.range,
                              .high = p->hello.range + p->hello.act,
                              .engine = p->engine,
                              .model = p->name,
                              .type = &p->type,
                              .t = -1};
    if (p->type.machine) {
        talks->link.talk.stop = NULL; /* but while it is reset */
        talks->link.patience = 5;     /* it has to rest first */
    }
    talks->obs = opc_alloc(obs, sizeof *talks->obs);
    talks->origin = opc_alloc(state > OPC_FRAME_SEED_WORDS ? state : OPC_FRAME_SEED_WORDS,
                              sizeof *talks->origin);
    if (!talks->obs || !talks->origin)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", p->name);
    OPC_TRY(hash_task(p, &p->env.model_hash, err));
    return opc_process_reserve(p, err);
}

int opc_process_open(const char *spec, struct opc_env **out, struct opc_err *err)
{
    struct process *p;
    OPC_TRY(create(spec, &p, err));
    struct opc_link *link = &p->talks->link;
    int code = opc_link_start(link, err);
    if (!code)
        code = opc_link_greet(link, &p->hello, err);
    if (!code)
        code = fill_env(p, err);
    if (code) {
        process_close(&p->env);
        return code;
    }
    *out = &p->env;
    return OPC_OK;
}

/* A child of its own, which starts while others start: its hello is read at its first use. */
static int process_copy(const struct opc_env *like, struct opc_env **out, struct opc_err *err)
{
    const struct process *from = (const struct process *)like;
    struct process *p;
    OPC_TRY(create(like->spec, &p, err));
    const size_t ranges = 2 * (size_t)from->hello.act * sizeof(double);
    p->hello = from->hello;
    p->hello.range = opc_alloc(1, ranges);
    p->hello.text = opc_strdup(from->hello.text);
    int code = p->hello.range && p->hello.text
                   ? OPC_OK
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for %s", from->name);
    if (!code) {
        memcpy(p->hello.range, from->hello.range, ranges);
        code = fill_env(p, err);
    }
    if (!code)
        code = opc_link_start(&p->talks->link, err);
    if (code) {
        process_close(&p->env);
        return code;
    }
    *out = &p->env;
    return OPC_OK;
}
