/* SPDX-License-Identifier: MIT */
/* The angle wrapper: any task, with its angles observed in the other of the two ways.
 *
 * sincos puts cosine and sine in the angle's place, raw puts atan2(sine, cosine) where the first of
 * the pair was. Both directions are a table with one line per number of the result, so that real
 * observations go one way and imagined ones, on which the inner task is asked, come back the other.
 * An imagined pair need not lie on the unit circle; atan2 does not mind.
 *
 * Invariant: but for copy, the wrapper's type has an optional function exactly where the inner type
 * has one, so that callers may go on testing for NULL. */
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 4096 }; /* floats of one block of imagined rows */

struct entry {
    enum { COPY, COSINE, SINE, ANGLE } how; /* how this number is computed */
    /* Places in the source. ANGLE reads the cosine at `from` and the sine at `sine`. */
    int from, sine;
};

/* An environment that owns another and converts its observations. */
struct wrapped {
    struct opc_env env;
    struct opc_env_type type; /* the inner one's, with our functions */
    enum opc_angle how;
    struct entry *outwards; /* [env.obs] from the inner observation */
    struct entry *inwards;  /* [inner.obs] from the outer one */
    struct opc_env_angle *angles;
    double *inner_obs; /* [inner.obs] */
};

/* One number of the result; COSINE and SINE read an angle, ANGLE reads both of a pair. */
static double convert(const struct entry *e, double from, double sine)
{
    switch (e->how) {
    case COSINE: return cos(from);
    case SINE: return sin(from);
    case ANGLE: return atan2(sine, from);
    default: return from;
    }
}

/* A whole observation by one of the two tables: to[n] from `from`. */
static void convert_row(const struct entry *map, int n, const double *from, double *to)
{
    for (int k = 0; k < n; k++)
        to[k] = convert(&map[k], from[map[k].from], from[map[k].sine]);
}

/* The same on imagined rows; computed in double, rounded once. */
static void convert_floats(const struct entry *map, int n, const float *from, float *to)
{
    for (int k = 0; k < n; k++)
        to[k] = (float)convert(&map[k], (double)from[map[k].from], (double)from[map[k].sine]);
}

/* ---- playing --------------------------------------------------------------------------------- */

static int wrapped_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    struct wrapped *wrapped = (struct wrapped *)env;
    const int code = env->inner->type->reset(env->inner, rng, wrapped->inner_obs, err);
    if (!code)
        convert_row(wrapped->outwards, env->obs, wrapped->inner_obs, obs);
    return code;
}

static int wrapped_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    struct wrapped *wrapped = (struct wrapped *)env;
    const int code = env->inner->type->start(env->inner, state, wrapped->inner_obs, err);
    if (!code)
        convert_row(wrapped->outwards, env->obs, wrapped->inner_obs, obs);
    return code;
}

static void wrapped_state(const struct opc_env *env, double *state)
{
    env->inner->type->state(env->inner, state);
}

/* The time limit and the checks are env.c's and apply to the wrapper, so the inner type is called
 * directly. */
static int wrapped_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                        struct opc_err *err)
{
    struct wrapped *wrapped = (struct wrapped *)env;
    struct opc_outcome inner = {.obs = wrapped->inner_obs};
    const int code = env->inner->type->step(env->inner, action, &inner, err);
    if (code)
        return code;
    convert_row(wrapped->outwards, env->obs, wrapped->inner_obs, out->obs);
    out->reward = inner.reward;
    out->terminated = inner.terminated;
    return OPC_OK;
}

static void wrapped_bare(struct opc_env *env, const double *action, struct opc_outcome *out)
{
    struct wrapped *wrapped = (struct wrapped *)env;
    struct opc_outcome inner = {.obs = wrapped->inner_obs};
    env->inner->type->bare(env->inner, action, &inner);
    convert_row(wrapped->outwards, env->obs, wrapped->inner_obs, out->obs);
    out->reward = inner.reward;
    out->terminated = inner.terminated;
}

static void wrapped_rest(struct opc_env *env)
{
    env->inner->type->rest(env->inner);
}

static void wrapped_draw(const struct opc_env *env, struct opc_scene *scene)
{
    env->inner->type->draw(env->inner, scene);
}

/* ---- imagined transitions, a block of rows at a time ----------------------------------------- */

/* Imagined rows converted back to the inner observation; on the stack, because terminal and reward
 * are called by many threads and may not allocate. */
struct block {
    int rows;
    float s[BLOCK], next[BLOCK];
};

/* Converts as many rows as fit, b->rows of them, back to what the inner task observes. */
static void restore_block(const struct wrapped *wrapped, int rows, const float *s,
                          const float *next, struct block *b)
{
    const int obs = wrapped->env.obs, inner = wrapped->env.inner->obs;
    b->rows = BLOCK / inner < rows ? BLOCK / inner : rows;
    for (int i = 0; i < b->rows; i++) {
        convert_floats(wrapped->inwards, inner, s + (size_t)i * (size_t)obs, b->s + i * inner);
        convert_floats(wrapped->inwards, inner, next + (size_t)i * (size_t)obs,
                       b->next + i * inner);
    }
}

static void wrapped_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                             const float *next, bool *out)
{
    const struct wrapped *wrapped = (const struct wrapped *)env;
    const size_t obs = (size_t)env->obs, act = (size_t)env->act;
    struct block b;
    for (int i = 0; i < n; i += b.rows) {
        const size_t at = (size_t)i;
        restore_block(wrapped, n - i, s + at * obs, next + at * obs, &b);
        env->inner->type->terminal(env->inner, b.rows, b.s, a + at * act, b.next, out + i);
    }
}

static void wrapped_reward(const struct opc_env *env, int n, const float *s, const float *a,
                           const float *next, float *out)
{
    const struct wrapped *wrapped = (const struct wrapped *)env;
    const size_t obs = (size_t)env->obs, act = (size_t)env->act;
    struct block b;
    for (int i = 0; i < n; i += b.rows) {
        const size_t at = (size_t)i;
        restore_block(wrapped, n - i, s + at * obs, next + at * obs, &b);
        env->inner->type->reward(env->inner, b.rows, b.s, a + at * act, b.next, out + i);
    }
}

/* For env/check.c: the inner distance of one imagined observation. */
static double wrapped_distance(const struct opc_env *env, const float *next)
{
    const struct wrapped *wrapped = (const struct wrapped *)env;
    float row[BLOCK];
    convert_floats(wrapped->inwards, env->inner->obs, next, row);
    return env->inner->type->distance(env->inner, row);
}

/* ---- open, copy, close ----------------------------------------------------------------------- */

static void wrapped_close(struct opc_env *env)
{
    struct wrapped *wrapped = (struct wrapped *)env;
    opc_env_close(env->inner);
    opc_free(wrapped->outwards);
    opc_free(wrapped->inwards);
    opc_free(wrapped->angles);
    opc_free(wrapped->inner_obs);
    opc_free(wrapped);
}

static int wrap_env(struct opc_env *inner, enum opc_angle how, struct opc_env **out,
                    struct opc_err *err);

static int wrapped_copy(const struct opc_env *like, struct opc_env **out, struct opc_err *err)
{
    struct opc_env *inner;
    int code = opc_env_another(like->inner, &inner, err);
    if (code)
        return code;
    /* The copy gets a wrapper and a type of its own, around a copy of the inner environment. */
    code = wrap_env(inner, ((const struct wrapped *)like)->how, out, err);
    if (code)
        opc_env_close(inner);
    return code;
}

/* The inner type with our functions where it has any. Name, page and arguments stay. */
static void borrow_type(struct wrapped *wrapped, const struct opc_env_type *inner)
{
    struct opc_env_type *t = &wrapped->type;
    *t = *inner;
    t->reset = wrapped_reset;
    t->step = wrapped_step;
    t->close = wrapped_close;
    t->copy = wrapped_copy;
    t->start = inner->start ? wrapped_start : NULL;
    t->state = inner->state ? wrapped_state : NULL;
    t->terminal = inner->terminal ? wrapped_terminal : NULL;
    t->reward = inner->reward ? wrapped_reward : NULL;
    t->distance = inner->distance ? wrapped_distance : NULL;
    t->draw = inner->draw ? wrapped_draw : NULL;
    t->bare = inner->bare ? wrapped_bare : NULL;
    t->rest = inner->rest ? wrapped_rest : NULL;
    wrapped->env.type = t;
}

/* The inner angle that entry i belongs to, or NULL. *first: entry i is the first of its entries. */
static const struct opc_env_angle *angle_at(const struct opc_env *inner, int i, bool *first)
{
    for (int k = 0; k < inner->n_angles; k++) {
        const struct opc_env_angle *a = &inner->angles[k];
        if (a->at == i || a->sine == i) {
            *first = a->sine < 0 || i == (a->at < a->sine ? a->at : a->sine);
            return a;
        }
    }
    return NULL;
}

/* Fills both tables, going through the inner observation in order; returns the outer dimension. */
static int build_tables(struct wrapped *wrapped, const struct opc_env *inner, enum opc_angle how)
{
    int k = 0, angles = 0; /* next entries of the outer observation and of w->angles */
    wrapped->how = how;
    for (int i = 0; i < inner->obs; i++) {
        bool first;
        const struct opc_env_angle *a = angle_at(inner, i, &first);
        /* One number becomes two. */
        if (a && a->sine < 0 && how == OPC_ANGLE_SINCOS) {
            wrapped->inwards[i] = (struct entry){ANGLE, k, k + 1};
            wrapped->angles[angles++] = (struct opc_env_angle){k, k + 1};
            wrapped->outwards[k++] = (struct entry){COSINE, i, i};
            wrapped->outwards[k++] = (struct entry){SINE, i, i};
        } else if (a && a->sine >= 0 && how == OPC_ANGLE_RAW) {
            if (!first)
                continue;
            /* Two numbers become one, where the first of them was. */
            wrapped->inwards[a->at] = (struct entry){COSINE, k, k};
            wrapped->inwards[a->sine] = (struct entry){SINE, k, k};
            wrapped->angles[angles++] = (struct opc_env_angle){k, -1};
            wrapped->outwards[k++] = (struct entry){ANGLE, a->at, a->sine};
        } else {
            wrapped->inwards[i] = (struct entry){COPY, k, k};
            wrapped->outwards[k++] = (struct entry){COPY, i, i};
        }
    }
    /* Angles that already had the wanted form are copied; only their places may have changed. */
    for (int i = 0; i < inner->n_angles; i++) {
        const struct opc_env_angle *a = &inner->angles[i];
        if ((a->sine >= 0) == (how == OPC_ANGLE_SINCOS))
            wrapped->angles[angles++] = (struct opc_env_angle){
                wrapped->inwards[a->at].from, a->sine < 0 ? -1 : wrapped->inwards[a->sine].from};
    }
    wrapped->env.n_angles = angles;
    return k;
}

static int wrap_env(struct opc_env *inner, enum opc_angle how, struct opc_env **out,
                    struct opc_err *err)
{
    const size_t obs = (size_t)inner->obs, angles = (size_t)inner->n_angles;
    struct wrapped *wrapped = opc_alloc(1, sizeof *wrapped);
    if (!wrapped)
        goto full;
    wrapped->outwards = opc_alloc(obs + angles, sizeof *wrapped->outwards);
    wrapped->inwards = opc_alloc(obs, sizeof *wrapped->inwards);
    wrapped->angles = opc_alloc(angles, sizeof *wrapped->angles);
    wrapped->inner_obs = opc_alloc(obs, sizeof *wrapped->inner_obs);
    if (!wrapped->outwards || !wrapped->inwards || !wrapped->angles || !wrapped->inner_obs)
        goto full;
    /* Everything but the observation is the inner environment's. */
    wrapped->env = (struct opc_env){.act = inner->act,
                                    .state = inner->state,
                                    .steps = inner->steps,
                                    .dt = inner->dt,
                                    .low = inner->low,
                                    .high = inner->high,
                                    .angles = wrapped->angles,
                                    .engine = inner->engine,
                                    .joints = inner->joints,
                                    .model = inner->model,
                                    .model_hash = inner->model_hash,
                                    .inner = inner,
                                    .t = -1};
    wrapped->env.obs = build_tables(wrapped, inner, how);
    borrow_type(wrapped, inner->type);
    *out = &wrapped->env;
    return OPC_OK;
full:
    if (wrapped) {
        wrapped->env.inner = NULL; /* not ours yet */
        wrapped_close(&wrapped->env);
    }
    return opc_fail(err, OPC_ENOMEM, "not enough memory to convert angles");
}

int opc_wrap_angle(struct opc_env *inner, enum opc_angle how, struct opc_env **out,
                   struct opc_err *err)
{
    /* An angle needs changing if it is one number and two are wanted, or the reverse. */
    bool change = false;
    for (int i = 0; i < inner->n_angles; i++)
        change |= (inner->angles[i].sine < 0) == (how == OPC_ANGLE_SINCOS);
    if (how == OPC_ANGLE_AS_IS || (inner->n_angles > 0 && !change)) {
        *out = inner;
        return OPC_OK;
    }
    if (inner->n_angles == 0)
        return opc_fail(err, OPC_EUSER, "there is no angle in its observation; leave 'angle' out");
    if (inner->obs > BLOCK)
        return opc_fail(err, OPC_EUSER,
                        "an observation of %d numbers is too long for 'angle'; at "
                        "most %d",
                        inner->obs, BLOCK);
    return wrap_env(inner, how, out, err);
}
