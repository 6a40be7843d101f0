/* SPDX-License-Identifier: MIT */
/* opc env - list, explain, check, measure, play and film environments.
 *
 * The larger works are in cli/env/ and env/check.c; this file has the words of the command, the
 * pages and the printing. Everything goes through opc_env_open, so plugins and arguments work with
 * each word. */
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "cli/env/env_bench.h"
#include "cli/env/env_render.h"
#include "cli/env/env_trace.h"
#include "env/check.h"
#include "env/types.h"
#include "opc/env.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, state,       "",        0, 4095,  "file with one line of numbers separated by commas, the full state to start from; noise-free start if left out") \
    X(PATH, actions,     "",        0, 4095,  "file with one action per line, its numbers separated by commas, in the task's own units; to render, also random or zero") \
    X(PATH, out,         "",        0, 4095,  "file to write: a table (trace; standard output if left out), or film.mp4, film.gif or picture.png (render)") \
    X(INT,  steps,       "200",     0, 1e6,  "number of steps to play if no file of actions is given")                                       \
    X(INT,  seed,        "1",       0, 2e9,  "seed of resets and random actions")                                                 \
    X(TEXT, size,        "640x480", 3, 20,   "width and height of the picture")                                                          \
    X(INT,  transitions, "10000",   1, 1e8,  "number of random steps to play")                                                                      \
    X(REAL, seconds,     "1",       0, 3600, "seconds to measure each task")                                                                        \
    X(BOOL, json,        "false",   0, 1,    "print one JSON object per line")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF
/* Options and the words that take them; opc_options_fit refuses them with other words. */
static const struct opc_option_use uses[] = {
    {"state", "trace render"}, {"actions", "trace render"},
    {"out", "trace render"},   {"steps", "render"},
    {"seed", "check render"},  {"size", "render"},
    {"transitions", "check"},  {"seconds", "bench"},
    {"json", "bench"},         {NULL, NULL},
};

/* ---- list ------------------------------------------------------------------------------------ */

/* One line for each environment; one that cannot be opened says why and does not end the list. */
static int list_types(const char *spec, const struct given *given, struct opc_err *error)
{
    (void)given;
    if (spec)
        return opc_fail(error, OPC_EUSER, "list takes no name; 'opc env show %s' explains one",
                        spec);
    const struct opc_env_type *type;
    printf("%-33s %4s %4s %6s  %s\n", "name", "obs", "act", "steps", "task");
    for (int i = 0; (type = opc_env_type_at(i)); i++) {
        struct opc_env *env;
        struct opc_err err = {0};
        if (opc_env_open(type->name, &env, &err)) {
            printf("%-33s %4s %4s %6s  cannot be opened: %s\n", type->name, "-", "-", "-",
                   err.text);
            continue;
        }
        /* Sizes are those of the opened environment. */
        printf("%-33s %4d %4d %6d  ", type->name, env->obs, env->act, env->steps);
        opc_print_wrapped(52, type->page->summary);
        opc_env_close(env);
    }
    /* Names that are no entries of a list. */
    printf("%-33s %4s %4s %6s  %s\n", "PATH.so", "", "", "", "a plugin: a task of your own, in C");
    printf("%-33s %4s %4s %6s  %s\n", "exec:COMMAND", "", "", "",
           "a program of your own, in any language");
    return OPC_OK;
}

/* ---- show ------------------------------------------------------------------------------------ */

enum { LEFT = 15 };

/* Prints "  name         text", the text broken into lines that start below each other. */
static void print_entry(const char *name, const char *text)
{
    printf("  %-*s", LEFT - 2, name);
    opc_print_wrapped(LEFT, text);
}

/* "17 in [-1, 1]: text", for observation and action. */
static void print_numbers(const char *name, int n, const char *range, const char *text)
{
    char line[800];
    snprintf(line, sizeof line, "%d%s: %s", n, range, text);
    print_entry(name, line);
}

/* The entries that are angles, as one number or as cosine and sine. */
static void show_angles(const struct opc_env *env)
{
    struct opc_text line = {0};
    for (int i = 0; i < env->n_angles; i++) {
        const struct opc_env_angle *a = &env->angles[i];
        opc_text_add(&line, i ? "; " : "");
        /* One number, or a pair. */
        if (a->sine < 0)
            opc_text_addf(&line, "o%d", a->at);
        else
            opc_text_addf(&line, "cosine o%d, sine o%d", a->at, a->sine);
    }
    if (env->n_angles > 0)
        print_entry("angles", opc_text_get(&line));
    opc_text_free(&line);
}

/* One range if all entries share it. */
static void show_action(const struct opc_env *env)
{
    char range[100];
    /* Do all entries have the range of the first? */
    bool same = true;
    for (int i = 1; i < env->act; i++)
        same = same && env->low[i] == env->low[0] && env->high[i] == env->high[0];
    if (same)
        snprintf(range, sizeof range, " in [%g, %g]", env->low[0], env->high[0]);
    print_numbers("action", env->act, same ? range : " in ranges of their own",
                  env->type->page->action);
}

/* One line each: the words or the range, the default and the meaning. */
static void show_arguments(const struct opc_env *env)
{
    char line[400];
    const char *name = "arguments";
    for (const struct opc_env_arg *a = env->type->args; a && a->name; a++, name = "") {
        if (a->words)
            snprintf(line, sizeof line, "%s=%s (%s): %s", a->name, a->words, a->fallback, a->help);
        else
            snprintf(line, sizeof line, "%s=X in [%g, %g] (%s): %s", a->name, a->min, a->max,
                     a->fallback, a->help);
        print_entry(name, line);
    }
    /* angle is understood by every task, but does something only where there is one. */
    if (env->n_angles > 0)
        print_entry(name,
                    "angle=sincos|raw: observe angles as cosine and sine, or as one number each");
}

/* The engine, and the model file with its hash, which a run records. */
static void show_engine(const struct opc_env *env)
{
    char line[200];
    print_entry("engine", env->engine ? env->engine : "none");
    if (!env->model)
        return;
    snprintf(line, sizeof line, "%s, CRC-32C %08x", env->model, env->model_hash);
    print_entry("model", line);
}

/* The page of one environment, as `opc env show` prints it; every entry is a fact of the opened
 * environment or a sentence of its type. */
static int show_env(const char *spec, const struct given *given, struct opc_err *err)
{
    (void)given;
    struct opc_env *env;
    const int code = opc_env_open(spec, &env, err);
    if (code)
        return code;
    /* Sentences of the type, next to numbers of the opened environment. */
    const struct opc_env_page *page = env->type->page;
    char line[600];
    printf("%s - %s\n\n", spec, page->summary);
    /* The page describes the unwrapped task, so a wrapper adds where its angles are. */
    snprintf(line, sizeof line, "%s%s", page->observation,
             !env->inner ? ""
             : env->angles[0].sine >= 0
                 ? "; but each angle as its cosine and sine, at these places:"
                 : "; but each angle as one number, at these places:");
    print_numbers("observation", env->obs, "", line);
    show_angles(env);
    show_action(env);
    print_entry("reward", page->reward);
    print_entry("termination", page->termination);
    snprintf(line, sizeof line, "after %d steps (this truncates, it does not terminate)",
             env->steps);
    print_entry("time limit", env->steps > 0 ? line : "none");
    print_entry("reset", page->reset);
    /* What `opc env trace --state` reads. */
    snprintf(line, sizeof line, "%d numbers%s%s", env->state,
             env->joints ? ": all positions, then all velocities, of the joints " : "",
             env->joints ? env->joints : "");
    print_entry("full state", line);
    /* What a rollout of the model can know without the simulation. */
    snprintf(line, sizeof line, "termination %s; reward %s",
             !env->type->terminal            ? "never"
             : opc_env_is_process(env->spec) ? "asked of the program"
                                             : "computed from the observation",
             env->type->reward ? "known as a formula" : "not known as a formula");
    print_entry("imagined", line);
    show_arguments(env);
    show_engine(env);
    opc_env_close(env);
    return OPC_OK;
}

/* ---- check ----------------------------------------------------------------------------------- */

/* Called often; the pace decides when to draw. */
static void show_pace(double share)
{
    static struct opc_pace pace; /* static, because `tell` has no context; there is one check */
    opc_pace_show(&pace, share, "playing");
}

/* `opc env check`: the first broken promise is the error, see env/check.h. */
static int check_env(const char *spec, const struct given *given, struct opc_err *err)
{
    /* Ctrl-C stops it between two steps. */
    const struct opc_check_plan plan = {
        .seed = (uint64_t)given->seed, .transitions = given->transitions, .tell = show_pace};
    opc_stop_catch(NULL);
    struct opc_env_report r;
    struct opc_env *env;
    int code = opc_env_open(spec, &env, err);
    if (code)
        return code;
    /* The bar is wiped before anything is printed. */
    code = opc_env_check_open(env, &plan, &r, err);
    opc_bar_wipe();
    const double dt = env->dt;
    const bool machine = env->type->machine;
    opc_env_close(env);
    if (code)
        return code;
    /* A check that passed says what was tested, not only that it passed. */
    char line[200];
    printf("%s is sound\n\n", spec);
    snprintf(line, sizeof line, "%d random step%s in %d episode%s, %d of them terminal",
             r.transitions, opc_plural(r.transitions), r.episodes, opc_plural(r.episodes),
             r.terminated);
    print_entry("played", line);
    print_entry("finite", "every observation and reward");
    print_entry("range", "both ends of every action are reached");
    print_entry("repeatable", r.repeats ? "a used environment equals a fresh one to the bit"
                              : machine ? "not asked for: it is a machine"
                                        : "not asked for: it says that it does not repeat itself");
    print_entry("time limit", "truncates, does not terminate, and only at the end");
    snprintf(line, sizeof line,
             "imagined agrees with step; exceptions: %d within rounding to float, %d because step "
             "reads a lagging pose",
             r.rounding, r.blurred);
    if (r.unforeseen > 0)
        snprintf(line, sizeof line,
                 "step ends the task %d times, and imagined states never end: there is no terminal "
                 "function",
                 r.unforeseen);
    print_entry("termination", line);
    if (r.known_reward)
        snprintf(line, sizeof line, "imagined agrees with step to %.1e", r.reward_gap);
    print_entry("reward", r.known_reward ? line : "not known as a formula");
    snprintf(line, sizeof line, "%.0f steps per second, with resets and these checks",
             r.steps_per_second);
    print_entry("speed", line);
    if (opc_ticks_print(&r.ticks, dt, line, sizeof line))
        print_entry("time", line);
    return OPC_OK;
}

/* ---- bench ----------------------------------------------------------------------------------- */

/* One line, or one JSON object, for one environment. */
static int bench_one(const char *spec, const struct given *given, struct opc_err *err)
{
    struct opc_env_speed s;
    const int code = opc_env_bench(spec, given->seconds, &s, err);
    if (code)
        return code;
    /* null where there is no engine to compare with. */
    char bare[80] = "\"bare_us\": null, \"ratio\": null";
    if (s.bare_us > 0)
        snprintf(bare, sizeof bare, "\"bare_us\": %.4g, \"ratio\": %.4f", s.bare_us, s.ratio);
    if (given->json)
        printf("{\"work\": \"env\", \"env\": \"%s\", \"threads\": 1, \"median_us\": %.4g, %s, "
               "\"per_s\": %.6g}\n",
               spec, s.us, bare, 1e6 / s.us);
    else if (s.bare_us > 0)
        printf("%-33s %10.0f %10.2f %10.2f %7.3f\n", spec, 1e6 / s.us, s.us, s.bare_us, s.ratio);
    else
        printf("%-33s %10.0f %10.3f %10s %7s\n", spec, 1e6 / s.us, s.us, "-", "-");
    return OPC_OK;
}

/* Measures one environment, or without a name every one. */
static int bench_envs(const char *spec, const struct given *given, struct opc_err *err)
{
    int code = OPC_OK;
    struct opc_env *env = NULL;
    opc_stop_catch(NULL);
    /* A wrong name must not print the head of the table. */
    if (spec && !(code = opc_env_open(spec, &env, err)))
        opc_env_close(env);
    if (code)
        return code;
    if (!given->json)
        printf("%-33s %10s %10s %10s %7s\n", "name", "steps/s", "us/step", "bare us", "ratio");
    if (spec)
        return bench_one(spec, given, err);
    const struct opc_env_type *type;
    /* Each line as soon as it is measured: all of them take a while. */
    for (int i = 0; !code && (type = opc_env_type_at(i)); i++) {
        code = bench_one(type->name, given, err);
        fflush(stdout);
    }
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

/* The words below only hand their options on. */
static int trace_env(const char *spec, const struct given *given, struct opc_err *err)
{
    return opc_env_trace(spec, given->state, given->actions, given->out, err);
}

static int render_env(const char *spec, const struct given *given, struct opc_err *err)
{
    const struct opc_render_plan plan = {.spec = spec,
                                         .state = given->state,
                                         .actions = given->actions,
                                         .out = given->out,
                                         .size = given->size,
                                         .steps = given->steps,
                                         .seed = (uint64_t)given->seed};
    return opc_env_render(&plan, err);
}

/* The words of the command; needs_name: an environment must be given. */
static const struct {
    const char *word;
    bool needs_name;
    int (*run)(const char *spec, const struct given *, struct opc_err *err);
} works[] = {
    {"list", false, list_types},  {"show", true, show_env},   {"check", true, check_env},
    {"bench", false, bench_envs}, {"trace", true, trace_env}, {"render", true, render_env},
};

extern const struct opc_command opc_cmd_env;

static int env_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    /* The word, then at most one name. */
    const char *word = first < argc ? argv[first] : "";
    const char *spec = first + 1 < argc ? argv[first + 1] : NULL;
    if (first + 2 < argc)
        return opc_fail(err, OPC_EUSER, "'%s' is one word too many", argv[first + 2]);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(word, works[i].word) != 0)
            continue;
        if (works[i].needs_name && !spec)
            return opc_fail(err, OPC_EUSER, "%s: name an environment; 'opc env list' shows them",
                            word);
        code = opc_options_fit(&options, uses, word, &given, err);
        if (code)
            return code;
        /* Ctrl-C fails the next step, so that files are removed and hardware rests. */
        opc_env_stop_when(opc_stop_wanted);
        return works[i].run(spec, &given, err);
    }
    const char *meant =
        opc_nearest(word, &works->word, sizeof works / sizeof *works, sizeof *works);
    if (meant)
        return opc_fail(err, OPC_EUSER, "unknown action '%s'; did you mean '%s'?", word, meant);
    if (*word)
        return opc_fail(err, OPC_EUSER,
                        "unknown action '%s'; say list, show, check, bench, trace or render", word);
    return opc_fail(err, OPC_EUSER, "say what to do: list, show, check, bench, trace or render");
}

const struct opc_command opc_cmd_env = {
    .name = "env",
    .usage = "list | show NAME | check NAME | bench [NAME] | trace NAME | render NAME [OPTION...]",
    .summary = "list, explain, check, measure, play and film environments",
    .detail =
        "NAME is as in env.name of a configuration: a name, then after a question mark its "
        "arguments, joined by '&': 'mujoco:hopper?angle=sincos'. A name that ends in .so is the "
        "path of a plugin, a task of your own; exec:COMMAND is a program that plays one "
        "(docs/env-process.md).\n"
        "list shows every environment, show explains one: observation, action, reward, "
        "termination, reset, arguments, engine and model.\n"
        "check plays random steps and tests what training relies on: finite numbers, repeatable "
        "resets, time limit, and that termination computed from an imagined observation agrees "
        "with step.\n"
        "bench measures a step, and in turns with it the same step as the bare engine would do it "
        "(all tasks if no NAME is given).\n"
        "trace plays recorded actions from a given full state and prints CSV with the columns t, "
        "reward, terminated, o0, o1, ... at 17 digits; row 0 is the start. It goes on past the end "
        "of the task.\n"
        "render plays an episode and films it without a screen, from the noise-free start or from "
        "--state FILE. If NAME is the directory of a run or a file policy.opc, its policy plays "
        "its "
        "own task.",
    .words = "list show check bench trace render",
    .takes = OPC_TAKES_TASKS,
    .options = &options,
    .uses = uses,
    .run = env_run,
};
