/* SPDX-License-Identifier: MIT */
/* Plays an environment in front of a camera: `opc env render`. Actions come from a file, from a
 * random stream or from the policy of a run; pictures from env/view.h; the film from film.c.
 *
 * Invariant: a failure or Ctrl-C leaves no half film, and hardware at rest. */
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
#include "run/files/rundir.h"
#include "run/trained.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double PER_SECOND = 31; /* most pictures a second; films run in real time */

/* Everything that one film needs; freed by opc_env_render. */
struct render {
    const struct opc_render_plan *plan;
    int width, height;
    struct opc_agent *agent;          /* of a run: acts instead of `actions` */
    struct opc_episode_state *memory; /* of the agent, in its episode */
    struct opc_env *env;
    double *state, *actions, *obs;
    int steps;
    struct opc_view *view;
    struct opc_film *film;
    unsigned char *rgb;
    float *seen, *chosen; /* what the policy sees and does */
};

/* "640x480". */
static int read_size(struct render *render, struct opc_err *err)
{
    char width[16];
    const size_t n = strcspn(render->plan->size, "x");
    snprintf(width, sizeof width, "%.*s", (int)n, render->plan->size);
    if (n >= sizeof width || !render->plan->size[n] || !opc_parse_int(width, &render->width) ||
        !opc_parse_int(render->plan->size + n + 1, &render->height))
        return opc_fail(err, OPC_EUSER,
                        "--size = %s is not a size; write WIDTHxHEIGHT, as in 640x480",
                        render->plan->size);
    return OPC_OK;
}

/* Zeroed, so that n actions are the zero ones already. */
static int alloc_actions(struct render *render, int n, struct opc_err *err)
{
    render->actions = opc_alloc((size_t)n * (size_t)render->env->act, sizeof *render->actions);
    if (!render->actions)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d actions", n);
    return OPC_OK;
}

/* Where actions come from: the policy (then one row is filled at each step), a file, zeros or
 * random ones. */
static int find_actions(struct render *render, struct opc_err *err)
{
    const struct opc_env *env = render->env;
    const char *actions = render->plan->actions;
    if (render->agent) {
        /* The policy decides both, so neither can be given. */
        if (*actions || *render->plan->state)
            return opc_fail(err, OPC_EUSER,
                            "%s has a policy, which acts from a start of its own: leave out "
                            "--actions and --state, or name an environment",
                            render->plan->spec);
        render->steps = render->plan->steps;
        return alloc_actions(render, 1, err);
    }
    const bool random = !*actions || strcmp(actions, "random") == 0;
    if (!random && strcmp(actions, "zero") != 0)
        return opc_read_numbers(actions, env->act, "an action", &render->actions, &render->steps,
                                err);
    render->steps = render->plan->steps;
    const int code = alloc_actions(render, render->steps, err);
    if (code || !random)
        return code;
    /* Uniform within the range of each entry. */
    struct opc_rng rng = opc_rng_stream(render->plan->seed, OPC_USE_RANDOM, 0, 0);
    for (int t = 0; t < render->steps; t++)
        for (int i = 0; i < env->act; i++)
            render->actions[t * env->act + i] =
                env->low[i] + (env->high[i] - env->low[i]) * opc_rng_unit_double(&rng);
    return OPC_OK;
}

/* A picture of the environment as it is now. */
static int add_frame(struct render *render, struct opc_err *err)
{
    const int code = opc_view_draw(render->view, render->rgb, err);
    return code ? code : opc_film_add(render->film, render->rgb, err);
}

/* Starts at the given or noise-free state; the policy of a run starts from a random reset, as in
 * training. */
static int begin_episode(struct render *render, struct opc_err *err)
{
    struct opc_rng rng = opc_rng_stream(render->plan->seed, OPC_USE_EVAL, 0, 0);
    return render->agent ? opc_env_reset(render->env, &rng, render->obs, err)
                         : opc_env_start(render->env, render->state, render->obs, err);
}

/* The next action: the policy's, without exploration, or the t-th of the list. */
static const double *choose_action(struct render *render, int t)
{
    if (!render->agent)
        return render->actions + (size_t)t * (size_t)render->env->act;
    /* The policy gets floats, as in training, and its action is scaled to the task. */
    for (int i = 0; i < render->env->obs; i++)
        render->seen[i] = (float)render->obs[i];
    opc_agent_act_in(render->agent, render->memory, render->seen, false, NULL, render->chosen);
    opc_env_scale(render->env, render->chosen, render->actions);
    return render->actions;
}

/* Plays and films every `every`-th state. A list of actions goes on past the end of the task,
 * because the user wants to see all of it; a policy stops there. */
static int play_episode(struct render *render, int every, struct opc_err *err)
{
    struct opc_outcome out = {.obs = render->obs};
    const bool film = !opc_film_is_picture(render->film);
    struct opc_pace pace = {0};
    opc_stop_catch(NULL); /* Ctrl-C removes the half film and lets hardware rest */
    bool last = render->steps == 0;
    int code = begin_episode(render, err);
    if (!code && (film || last))
        code = add_frame(render, err);
    for (int t = 1; !code && !last; t++) {
        code = opc_env_step(render->env, choose_action(render, t - 1), &out, err);
        /* A picture (.png) is of the last state only. */
        last = t == render->steps || (render->agent && (out.terminated || out.truncated));
        if (!code && ((film && t % every == 0) || last))
            code = add_frame(render, err);
        if (opc_stop_wanted())
            code = opc_fail(err, OPC_ESTOPPED, "stopped by request");
        opc_pace_show(&pace, (double)t / render->steps, "filming");
    }
    opc_bar_wipe();
    return code;
}

/* Opens plan->spec: an environment, or the directory of a run or a file policy.opc, which name one
 * and have a policy. A directory that has the name of an environment but holds no run does not hide
 * the environment. */
static int open_world(struct render *render, struct opc_err *err)
{
    const char *spec = render->plan->spec;
    const size_t n = strlen(spec);
    const bool is_file = n > 4 && strcmp(spec + n - 4, ".opc") == 0;
    if (!opc_rundir_is_run(spec) && !is_file) {
        const int code = opc_env_open(spec, &render->env, err);
        if (!code || !opc_is_directory(spec))
            return code;
    }
    struct opc_config *config = NULL;
    char name[OPC_TASK_NAME];
    int epoch, code = opc_policy_config(spec, &config, err);
    if (!code)
        code = opc_env_open(opc_values_task(&config->set, name), &render->env, err);
    if (!code)
        code = opc_policy_load_for(spec, render->env, &render->agent, &epoch, err);
    /* The environment may have changed since the run, a plugin for instance. */
    if (!code && (render->agent->obs != render->env->obs || render->agent->act != render->env->act))
        code = opc_fail(err, OPC_EUSER,
                        "%s has %d observations and %d actions, but the policy of %s was trained "
                        "with %d and %d",
                        name, render->env->obs, render->env->act, spec, render->agent->obs,
                        render->agent->act);
    opc_config_destroy(config);
    return code;
}

static int run_render(struct render *render, struct opc_err *err)
{
    const struct opc_render_plan *plan = render->plan;
    /* Everything that can be wrong is found before the first frame: size, world, files, view. */
    int code = read_size(render, err);
    if (!code)
        code = open_world(render, err);
    if (!code)
        code = opc_read_state(plan->state, render->env->state, &render->state, err);
    if (!code)
        code = find_actions(render, err);
    if (!code)
        code = opc_view_open(render->env, render->width, render->height, &render->view, err);
    if (code)
        return code;
    render->obs = opc_alloc((size_t)render->env->obs, sizeof *render->obs);
    render->rgb = opc_alloc((size_t)render->width * (size_t)render->height, 3);
    render->seen = opc_alloc((size_t)render->env->obs, sizeof *render->seen);
    render->chosen = opc_alloc((size_t)render->env->act, sizeof *render->chosen);
    if (!render->obs || !render->rgb || !render->seen || !render->chosen)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a picture");
    if (render->agent) {
        OPC_TRY(opc_episode_state_create(render->agent, &render->memory, err));
        opc_episode_state_begin(render->memory, plan->seed, 0, 0);
    }
    /* Only every `every`-th state is drawn, so that the film has at most PER_SECOND pictures a
     * second. */
    const double dt = render->env->dt > 0 ? render->env->dt : 1.0 / 30;
    const int every = (int)fmax(1, ceil(1 / (PER_SECOND * dt) - 1e-9));
    code = opc_film_open(plan->out, render->width, render->height, 1 / (every * dt), &render->film,
                         err);
    if (code)
        return code;
    code = play_episode(render, every, err);
    opc_env_rest(render->env); /* before the film is encoded, which takes time */
    /* If playing failed, that error counts and the film is thrown away. */
    const int ended = opc_film_end(render->film, !code, code ? NULL : err);
    return code ? code : ended;
}

int opc_env_render(const struct opc_render_plan *plan, struct opc_err *err)
{
    if (!*plan->out)
        return opc_fail(err, OPC_EUSER, "name the film or picture: -o film.mp4 or -o picture.png");
    struct render render = {.plan = plan};
    const int code = run_render(&render, err);
    opc_view_close(render.view);
    opc_episode_state_destroy(render.memory);
    opc_agent_destroy(render.agent);
    opc_env_close(render.env);
    opc_free(render.seen);
    opc_free(render.chosen);
    opc_free(render.state);
    opc_free(render.actions);
    opc_free(render.obs);
    opc_free(render.rgb);
    return code;
}
