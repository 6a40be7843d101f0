/* SPDX-License-Identifier: MIT */
#include "cli/env/env_render.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/console/display.h"
#include "cli/env/env_trace.h"
#include "cli/env/film.h"
#include "env/view.h"
#include "opc/env.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/rundir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double PER_SECOND = 31; /* about 30, and at most: films run in real time */

struct render {
    const struct opc_render_plan *plan;
    int width, height;
    struct opc_agent *agent; /* of a run: acts instead of `actions` */
    struct opc_env *env;
    double *state, *actions, *obs;
    int steps;
    struct opc_view *view;
    struct opc_film *film;
    unsigned char *rgb;
    float *seen, *chosen; /* what the policy sees and does */
};

static int read_size(struct render *r, struct opc_err *err)
{
    char width[16];
    const size_t n = strcspn(r->plan->size, "x");
    snprintf(width, sizeof width, "%.*s", (int)n, r->plan->size);
    if (n >= sizeof width || !r->plan->size[n] || !opc_parse_int(width, &r->width) ||
        !opc_parse_int(r->plan->size + n + 1, &r->height))
        return opc_fail(err, OPC_EUSER, "--size = %s is no size; write WIDTHxHEIGHT, as in 640x480",
                        r->plan->size);
    return OPC_OK;
}

static int alloc_actions(struct render *r, int n, struct opc_err *err)
{
    r->actions = opc_alloc((size_t)n * (size_t)r->env->act, sizeof *r->actions);
    if (!r->actions)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d actions", n);
    return OPC_OK;
}

static int find_actions(struct render *r, struct opc_err *err)
{
    const struct opc_env *env = r->env;
    const char *actions = r->plan->actions;
    if (r->agent) {
        if (*actions || *r->plan->state)
            return opc_fail(err, OPC_EUSER,
                            "%s is a run, whose policy acts from a start of its own: leave out "
                            "--actions and --state, or name an environment",
                            r->plan->spec);
        r->steps = r->plan->steps;
        return alloc_actions(r, 1, err);
    }
    const bool random = !*actions || strcmp(actions, "random") == 0;
    if (!random && strcmp(actions, "zero") != 0)
        return opc_read_numbers(actions, env->act, "an action", &r->actions, &r->steps, err);
    r->steps = r->plan->steps;
    const int code = alloc_actions(r, r->steps, err);
    if (code || !random)
        return code;
    struct opc_rng rng = opc_rng_stream(r->plan->seed, OPC_USE_RANDOM, 0, 0);
    for (int t = 0; t < r->steps; t++)
        for (int i = 0; i < env->act; i++)
            r->actions[t * env->act + i] =
                env->low[i] + (env->high[i] - env->low[i]) * opc_rng_unit_double(&rng);
    return OPC_OK;
}

static int add_frame(struct render *r, struct opc_err *err)
{
    const int code = opc_view_draw(r->view, r->rgb, err);
    return code ? code : opc_film_add(r->film, r->rgb, err);
}

/* The noise-free or given start; a run's policy begins where episodes do. */
static int begin(struct render *r, struct opc_err *err)
{
    struct opc_rng rng = opc_rng_stream(r->plan->seed, OPC_USE_EVAL, 0, 0);
    return r->agent ? opc_env_reset(r->env, &rng, r->obs, err)
                    : opc_env_start(r->env, r->state, r->obs, err);
}

/* The next action: the policy's, without exploration, or the t-th of the list. */
static const double *choose(struct render *r, int t)
{
    if (!r->agent)
        return r->actions + (size_t)t * (size_t)r->env->act;
    for (int i = 0; i < r->env->obs; i++)
        r->seen[i] = (float)r->obs[i];
    opc_agent_act(r->agent, 1, r->seen, false, NULL, r->chosen);
    opc_env_scale(r->env, r->chosen, r->actions);
    return r->actions;
}

/* A list of actions goes on past the end of the task: that is what one wants to see. */
static int play(struct render *r, int every, struct opc_err *err)
{
    struct opc_outcome out = {.obs = r->obs};
    const bool film = !opc_film_is_picture(r->film);
    struct opc_pace pace = {0};
    opc_stop_catch(NULL); /* so that half a film is removed, and a machine rests */
    bool last = r->steps == 0;
    int code = begin(r, err);
    if (!code && (film || last))
        code = add_frame(r, err);
    for (int t = 1; !code && !last; t++) {
        code = opc_env_step(r->env, choose(r, t - 1), &out, err);
        last = t == r->steps || (r->agent && (out.terminated || out.truncated));
        if (!code && ((film && t % every == 0) || last))
            code = add_frame(r, err);
        if (opc_stop_wanted())
            code = opc_fail(err, OPC_ESTOPPED, "stopped by request");
        opc_pace_show(&pace, (double)t / r->steps, "filming");
    }
    opc_bar_wipe();
    return code;
}

/* plan->spec is an environment, or the directory of a run, which names one and has a policy. A
 * directory that is called as an environment and holds no run is not meant. */
static int open_world(struct render *r, struct opc_err *err)
{
    const char *spec = r->plan->spec;
    if (!opc_rundir_is_run(spec)) {
        const int code = opc_env_open(spec, &r->env, err);
        if (!code || !opc_is_directory(spec))
            return code;
    }
    struct opc_config *config = NULL;
    char *name = NULL;
    int code = opc_config_of_run(spec, &config, err);
    if (!code)
        code = opc_config_get(config, "env.name", &name, err);
    if (!code)
        code = opc_env_open(name, &r->env, err);
    if (!code)
        code = opc_policy_load(spec, &r->agent, err);
    if (!code && (r->agent->obs != r->env->obs || r->agent->act != r->env->act))
        code = opc_fail(err, OPC_EUSER,
                        "%s has %d observations and %d actions, but the policy of %s was trained "
                        "with %d and %d",
                        name, r->env->obs, r->env->act, spec, r->agent->obs, r->agent->act);
    opc_free(name);
    opc_config_destroy(config);
    return code;
}

static int run(struct render *r, struct opc_err *err)
{
    const struct opc_render_plan *plan = r->plan;
    int code = read_size(r, err);
    if (!code)
        code = open_world(r, err);
    if (!code)
        code = opc_read_state(plan->state, r->env->state, &r->state, err);
    if (!code)
        code = find_actions(r, err);
    if (!code)
        code = opc_view_open(r->env, r->width, r->height, &r->view, err);
    if (code)
        return code;
    r->obs = opc_alloc((size_t)r->env->obs, sizeof *r->obs);
    r->rgb = opc_alloc((size_t)r->width * (size_t)r->height, 3);
    r->seen = opc_alloc((size_t)r->env->obs, sizeof *r->seen);
    r->chosen = opc_alloc((size_t)r->env->act, sizeof *r->chosen);
    if (!r->obs || !r->rgb || !r->seen || !r->chosen)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a picture");
    const double dt = r->env->dt > 0 ? r->env->dt : 1.0 / 30;
    const int every = (int)fmax(1, ceil(1 / (PER_SECOND * dt) - 1e-9));
    code = opc_film_open(plan->out, r->width, r->height, 1 / (every * dt), &r->film, err);
    if (code)
        return code;
    code = play(r, every, err);
    opc_env_rest(r->env); /* the film takes its time */
    const int ended = opc_film_end(r->film, !code, code ? NULL : err);
    return code ? code : ended;
}

int opc_env_render(const struct opc_render_plan *plan, struct opc_err *err)
{
    if (!*plan->out)
        return opc_fail(err, OPC_EUSER, "name the film or picture: -o film.mp4 or -o picture.png");
    struct render r = {.plan = plan};
    const int code = run(&r, err);
    opc_view_close(r.view);
    opc_env_close(r.env);
    opc_agent_destroy(r.agent);
    opc_free(r.seen);
    opc_free(r.chosen);
    opc_free(r.state);
    opc_free(r.actions);
    opc_free(r.obs);
    opc_free(r.rgb);
    return code;
}
