/* SPDX-License-Identifier: MIT */
#include "study/curves/curves.h"

#include "opc/agent.h"
#include "opc/transition_type.h"
#include "runs.h"
#include "study/curves/curves_draw.h"

enum { EVALS = 8 };

/* Run `seed` of a method climbs to `end` and stays there for its last five evaluations. */
static void make_run(const char *dir, const char *task, const char *transition, int seed,
                     const char *more, double end)
{
    char name[64], a[64], b[64], c[64];
    double value[EVALS];
    for (int k = 0; k < EVALS; k++)
        value[k] = k < EVALS - 5 ? 0 : end;
    snprintf(name, sizeof name, "%s-%s-%d%s", task, transition, seed, more ? more : "");
    snprintf(a, sizeof a, "env.name=%s", task);
    snprintf(b, sizeof b, "opc.transition=%s", transition);
    snprintf(c, sizeof c, "train.seed=%d", seed);
    test_make_run(dir, name, (const char *[]){a, b, c, more, NULL}, EVALS, value);
}

static int make_runs(void **state)
{
    if (test_make_dir(state))
        return -1;
    for (int seed = 1; seed <= 3; seed++) {
        make_run(*state, "pendulum", "corrected", seed, NULL, 100 * seed);
        make_run(*state, "pendulum", "learned", seed, NULL, 10 * seed);
    }
    make_run(*state, "cartpole", "corrected", 1, NULL, 7);
    return 0;
}

static struct opc_curves *read_runs(void **state, const struct opc_curves_plan *plan)
{
    struct opc_curves *c;
    struct opc_err err;
    char *dir = *state;
    assert_ok(opc_curves_read(1, &dir, plan, &c, &err), &err);
    return c;
}

static const struct opc_curve_group *find(const struct opc_curves *c, const char *panel,
                                          const char *label)
{
    for (int g = 0; g < c->groups; g++)
        if (strcmp(c->panel[c->group[g].panel], panel) == 0 &&
            strcmp(c->group[g].label, label) == 0)
            return &c->group[g];
    fail_msg("there is no %s in %s", label, panel);
    return NULL;
}

static const struct opc_curves_plan PLAIN = {.of = "eval_return", .over = "env_steps", .smooth = 1};

static void runs_that_differ_in_their_seed_are_a_line(void **state)
{
    struct opc_curves *c = read_runs(state, &PLAIN);
    assert_int_equal(c->runs, 7);
    assert_int_equal(c->groups, 3);
    assert_int_equal(c->panels, 2);
    const struct opc_curve_group *g = find(c, "pendulum", "OPC");
    assert_int_equal(g->runs, 3);
    assert_int_equal(g->n, EVALS);
    assert_true(g->x[0] == 100 && g->x[EVALS - 1] == 800);
    assert_true(g->low[7] == 150 && g->middle[7] == 200 && g->high[7] == 250);
    assert_true(g->end_low == 150 && g->end_middle == 200 && g->end_high == 250);
    assert_string_equal(g->method, "corrected");
    assert_true(find(c, "pendulum", "MBPO(*)")->end_middle == 20);
    assert_int_equal(find(c, "cartpole", "OPC")->runs, 1);
    opc_curves_free(c);
}

/* Of 0 0 0 v v v v v, width 3, the third value becomes v / 3; what a run ends with does not. */
static void smoothing_changes_the_curve_but_not_its_end(void **state)
{
    struct opc_curves_plan plan = PLAIN;
    plan.smooth = 3;
    struct opc_curves *c = read_runs(state, &plan);
    const struct opc_curve_group *g = find(c, "cartpole", "OPC");
    assert_doubles_near(g->middle, ((double[]){0, 0, 7.0 / 3, 14.0 / 3, 7, 7, 7, 7}), EVALS, 1e-12);
    assert_true(g->end_middle == 7);
    for (int i = 0; i < c->runs; i++)
        assert_true(c->run[i].best == c->run[i].end && c->run[i].raw[2] == 0);
    opc_curves_free(c);
}

static void settings_say_what_is_a_panel_and_a_line(void **state)
{
    static const char *const PANEL[] = {"opc.transition"}, *const LINE[] = {"env.name",
                                                                            "train.seed"};
    struct opc_curves_plan plan = PLAIN;
    plan.panel_key = PANEL, plan.panel_keys = 1;
    plan.line_key = LINE, plan.line_keys = 2;
    struct opc_curves *c = read_runs(state, &plan);
    assert_int_equal(c->panels, 2);
    assert_int_equal(c->groups, 7);
    const struct opc_curve_group *g = find(c, "learned", "pendulum, seed 2");
    assert_string_equal(g->line, "pendulum+2");
    assert_true(g->end_middle == 20);
    double v[7];
    assert_int_equal(opc_curves_at(c, (int)(g - c->group), 500, v), 1);
    assert_true(v[0] == 20);
    opc_curves_free(c);

    static const char *const METHOD[] = {"opc.transition"}, *const TASK[] = {"env.name"};
    plan.panel_key = TASK;
    plan.line_key = METHOD, plan.line_keys = 1;
    c = read_runs(state, &plan);
    assert_string_equal(find(c, "pendulum", "MBPO(*)")->line, "learned");
    assert_int_equal(find(c, "pendulum", "OPC")->runs, 3);
    opc_curves_free(c);
}

/* One of the runs of a plan. */
static struct opc_config *planned(const char *task, const char *transition)
{
    struct opc_config *config;
    struct opc_err err;
    char name[64], method[64];
    snprintf(name, sizeof name, "env.name=%s", task);
    snprintf(method, sizeof method, "opc.transition=%s", transition);
    assert_ok(opc_config_create(&config, &err), &err);
    assert_ok(opc_config_set(config, name, &err), &err);
    assert_ok(opc_config_set(config, method, &err), &err);
    return config;
}

static void panels_are_those_of_the_plan_also_without_runs(void **state)
{
    const char *const panel[] = {"env.name"}, *const line[] = {"opc.transition"};
    const struct opc_curves_plan plan = {.of = "eval_return",
                                         .over = "env_steps",
                                         .smooth = 1,
                                         .panel_keys = 1,
                                         .line_keys = 1,
                                         .panel_key = panel,
                                         .line_key = line};
    const char *const task[] = {"bullet:hopper", "pendulum", "mujoco:hopper"};
    struct opc_curves *c = read_runs(state, &plan);
    struct opc_config *run[3];
    const struct opc_values *set[3];
    struct opc_err err;
    for (int i = 0; i < 3; i++) {
        run[i] = planned(task[i], "corrected");
        set[i] = &run[i]->set;
    }
    assert_string_equal(c->panel[0], "cartpole");
    assert_ok(opc_curves_plan_panels(c, 3, set, &plan, &err), &err);
    /* One that was not planned, but has runs, is the last. */
    assert_int_equal(c->panels, 4);
    for (int i = 0; i < 3; i++)
        assert_string_equal(c->panel[i], task[i]);
    assert_string_equal(c->title[0], "Hopper (PyBullet)");
    assert_string_equal(c->panel[3], "cartpole");
    assert_true(find(c, "pendulum", "OPC")->end_middle == 200);
    assert_int_equal(find(c, "pendulum", "MBPO(*)")->panel, 1);
    assert_int_equal(find(c, "cartpole", "OPC")->panel, 3);
    /* Again: nothing changes where all is in order. */
    assert_ok(opc_curves_plan_panels(c, 3, set, &plan, &err), &err);
    assert_int_equal(c->panels, 4);
    assert_string_equal(c->panel[0], "bullet:hopper");
    assert_int_equal(find(c, "cartpole", "OPC")->panel, 3);
    /* A panel without runs is drawn, and says so. */
    const struct opc_curves_style style = {.x_label = "x", .y_label = "y"};
    struct opc_curves_figure f;
    assert_ok(opc_curves_figure(&style, c, &f, &err), &err);
    assert_int_equal(f.figure.panels, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(f.panel[i].empty != NULL, i == 0 || i == 2);
        assert_int_equal(f.panel[i].layers > 0, i == 1 || i == 3);
    }
    opc_curves_figure_free(&f);
    for (int i = 0; i < 3; i++)
        opc_config_destroy(run[i]);
    opc_curves_free(c);
}

/* Runs rise by 1 in 100 steps, each from where its random phase ended, 0, 10 or 30 steps in. After
 * 110 steps the second has its first evaluation and the first is at 1.1; the third begins at 130.
 * Each holds its first and its last value until all have begun and ended. */
static void over_total_steps_values_between_evaluations_count(void **state)
{
    static const int RANDOM[] = {0, 10, 30};
    static const double value[] = {1, 2, 3};
    struct opc_curves_plan plan = PLAIN;
    plan.over = "total_steps";
    for (int i = 0; i < 3; i++) {
        char seed[32], name[16];
        snprintf(seed, sizeof seed, "train.seed=%d", i);
        snprintf(name, sizeof name, "%d", i);
        test_make_run_after(*state, name, (const char *[]){seed, NULL}, RANDOM[i], 100, 3, value);
    }
    struct opc_curves *c = read_runs(state, &plan);
    assert_int_equal(c->groups, 1);
    const struct opc_curve_group *g = &c->group[0];
    assert_int_equal(g->n, 9);
    assert_doubles_near(g->x, ((double[]){100, 110, 130, 200, 210, 230, 300, 310, 330}), 9, 0);
    assert_doubles_near(g->middle, ((double[]){1, 1, 1.2, 1.9, 2, 2.2, 2.9, 3, 3}), 9, 1e-12);
    /* A whole interval beyond its evaluations a run has no value. */
    double v[3];
    assert_int_equal(opc_curves_at(c, 0, 30, v), 2);
    assert_int_equal(opc_curves_at(c, 0, 400, v), 2);
    opc_curves_free(c);

    /* What has one number of steps for all runs is left as it is. */
    c = read_runs(state, &PLAIN);
    assert_int_equal(c->group[0].n, 3);
    assert_doubles_near(c->group[0].middle, value, 3, 0);
    opc_curves_free(c);
}

static void make_cell(const char *dir, const char *name, const char *task, const char *transition,
                      const char *a, const char *b)
{
    char env[80], method[40];
    const double value[EVALS] = {0};
    snprintf(env, sizeof env, "env.name=%s", task);
    snprintf(method, sizeof method, "opc.transition=%s", transition);
    test_make_run(dir, name, (const char *[]){env, method, a, b, NULL}, EVALS, value);
}

/* Lines and panels have names for claims, and names for people. */
static void settings_are_read_as_a_person_would(void **state)
{
    static const char *const PANEL[] = {"opc.horizon", "env.name"};
    static const char *const LINE[] = {"opc.transition", "train.improve_every", "data.reset",
                                       "train.agent"};
    static const char *const TITLE[] = {
        "horizon 1, InvertedPendulum (RoboSchool), angle raw", "horizon 1, HalfCheetah (MuJoCo)",
        "horizon 20, InvertedPendulum (RoboSchool), angle raw", "horizon 20, HalfCheetah (MuJoCo)"};
    static const char *const TASK[] = {"bullet:inverted_pendulum_rs?angle=raw",
                                       "mujoco:half_cheetah"};
    struct opc_curves_plan plan = PLAIN;
    plan.panel_key = PANEL, plan.panel_keys = 2;
    plan.line_key = LINE, plan.line_keys = 4;
    for (int h = 0; h < 2; h++)
        for (int t = 0; t < 2; t++) {
            const char *horizon = h ? "opc.horizon=20" : "opc.horizon=1";
            char name[40];
            snprintf(name, sizeof name, "%d%d-a", h, t);
            make_cell(*state, name, TASK[t], "corrected", horizon, NULL);
            snprintf(name, sizeof name, "%d%d-b", h, t);
            make_cell(*state, name, TASK[t], "corrected", horizon, "data.reset=true");
            snprintf(name, sizeof name, "%d%d-c", h, t);
            make_cell(*state, name, TASK[t], "learned", horizon, NULL);
            snprintf(name, sizeof name, "%d%d-d", h, t);
            make_cell(*state, name, TASK[t], "learned", horizon, "train.improve_every=250");
            snprintf(name, sizeof name, "%d%d-e", h, t);
            make_cell(*state, name, TASK[t], "replay", horizon, NULL);
            snprintf(name, sizeof name, "%d%d-f", h, t);
            make_cell(*state, name, TASK[t], "replay", horizon, "train.agent=ppo");
        }
    struct opc_curves *c = read_runs(state, &plan);
    assert_int_equal(c->panels, 4);
    assert_int_equal(c->columns, 2); /* a row for each horizon */
    for (int p = 0; p < 4; p++)
        assert_string_equal(c->title[p], TITLE[p]);
    const char *panel = "[20]+mujoco:half_cheetah";
    assert_string_equal(c->panel[3], panel);
    /* A setting is named where it tells lines apart. */
    assert_string_equal(find(c, panel, "OPC, no reset")->line, "corrected+0+false+sac");
    assert_string_equal(find(c, panel, "OPC, reset")->line, "corrected+0+true+sac");
    assert_string_equal(find(c, panel, "MBPO(*)")->line, "learned+0+false+sac");
    assert_string_equal(find(c, panel, "MBPO")->line, "learned+250+false+sac");
    assert_string_equal(find(c, panel, "SAC")->line, "replay+0+false+sac");
    assert_string_equal(find(c, panel, "PPO")->line, "replay+0+false+ppo");
    opc_curves_free(c);
}

static struct opc_curves *read_only(void **state, const struct opc_texts *words)
{
    struct opc_curves_plan plan = PLAIN;
    struct opc_curves_only only;
    struct opc_err err;
    assert_ok(opc_curves_only_read(words, &only, &err), &err);
    plan.only = &only;
    return read_runs(state, &plan);
}

/* A line is then named by what still differs: of OPC's two lines with their batches one is left. */
static void patterns_choose_runs_before_lines_are_named(void **state)
{
    static const struct opc_texts BATCH = {2, {"env.name=p*", "sac.batch_size=17"}};
    static const struct opc_texts SEEDS = {2, {"env.name=pendulum", "train.seed=[12]"}};
    static const struct opc_texts LIST = {1, {"opc.horizon=[10]"}};
    make_run(*state, "pendulum", "corrected", 4, "sac.batch_size=17", 5);
    struct opc_curves *c = read_runs(state, &PLAIN);
    assert_int_equal(find(c, "pendulum", "OPC, sac.batch_size: 17")->runs, 1);
    opc_curves_free(c);
    c = read_only(state, &BATCH);
    assert_int_equal(c->runs, 1);
    assert_int_equal(find(c, "pendulum", "OPC")->runs, 1);
    opc_curves_free(c);
    c = read_only(state, &SEEDS);
    assert_int_equal(c->panels, 1);
    assert_int_equal(find(c, "pendulum", "OPC")->runs, 2);
    assert_int_equal(find(c, "pendulum", "MBPO(*)")->runs, 2);
    opc_curves_free(c);
    /* As a value it is a list, as a glob it would be a digit. */
    c = read_only(state, &LIST);
    assert_int_equal(c->runs, 8);
    opc_curves_free(c);
}

static void what_no_run_meets_is_told_with_the_nearest(void **state)
{
    static const struct opc_texts NONE = {2, {"env.name=pendulum", "train.seed=9"}};
    static const struct opc_texts NO_KEY = {1, {"opc.transitoin=x"}}, NO_VALUE = {1, {"sac"}};
    struct opc_curves_plan plan = PLAIN;
    struct opc_curves_only only;
    struct opc_curves *c;
    struct opc_err err;
    char *dir = *state;
    assert_ok(opc_curves_only_read(&NONE, &only, &err), &err);
    plan.only = &only;
    /* Cartpole is read first, and does not get as far. */
    assert_fails(opc_curves_read(1, &dir, &plan, &c, &err), OPC_EUSER, &err, "train.seed is '1'");
    assert_fails(opc_curves_only_read(&NO_KEY, &only, &err), OPC_EUSER, &err, "'transition'");
    assert_fails(opc_curves_only_read(&NO_VALUE, &only, &err), OPC_EUSER, &err, "KEY=PATTERN");
}

static void wrong_names_are_refused(void **state)
{
    static const char *const LINE[] = {"opc.transitoin"};
    struct opc_curves_plan plan = PLAIN;
    struct opc_curves *c;
    struct opc_err err;
    char *dir = *state;
    plan.line_key = LINE, plan.line_keys = 1;
    assert_fails(opc_curves_read(1, &dir, &plan, &c, &err), OPC_EUSER, &err, "transition");
    plan = PLAIN;
    plan.of = "eval_retrun";
    assert_fails(opc_curves_read(1, &dir, &plan, &c, &err), OPC_EUSER, &err, "eval_return");
    assert_fails(opc_curves_read(0, &dir, &PLAIN, &c, &err), OPC_EUSER, &err, "no runs");
}

static const struct opc_figure_layer *line_of(const struct opc_curves_figure *f, const char *label)
{
    for (int p = 0; p < f->figure.panels; p++)
        for (int k = 0; k < f->panel[p].layers; k++)
            if (f->panel[p].layer[k].mark == OPC_PLOT_LINE &&
                strcmp(f->panel[p].layer[k].label, label) == 0)
                return &f->panel[p].layer[k];
    fail_msg("there is no line %s", label);
    return NULL;
}

static void methods_have_their_colours(void **state)
{
    const struct opc_curves_style style = {.x_label = "steps", .y_label = "return"};
    struct opc_curves_figure f;
    struct opc_err err;
    make_run(*state, "pendulum", "replay", 1, NULL, 5);
    make_run(*state, "pendulum", "corrected", 4, "sac.batch_size=17", 5);
    struct opc_curves *c = read_runs(state, &PLAIN);
    assert_ok(opc_curves_figure(&style, c, &f, &err), &err);
    assert_int_equal(f.figure.panels, 2);
    assert_int_equal(line_of(&f, "MBPO(*), sac.batch_size: 256 (3 runs)")->colour,
                     OPC_COLOUR_RGB | (int)opc_transition_type(1)->colour);
    assert_int_equal(line_of(&f, "SAC, sac.batch_size: 256 (1 run)")->colour,
                     OPC_COLOUR_RGB | (int)opc_agent_type(0)->colour);
    assert_int_equal(line_of(&f, "OPC, sac.batch_size: 256 (1 to 3 runs)")->colour,
                     OPC_COLOUR_RGB | (int)opc_transition_type(2)->colour);
    /* A second line of the same method has a shade of its colour, not that of another method:
     * OPC's blue, 0x0072b2, 45 % of the way to white. */
    assert_int_equal(line_of(&f, "OPC, sac.batch_size: 17 (1 run)")->colour,
                     OPC_COLOUR_RGB | 0x73b1d5);
    /* Lines are drawn over bands; one run has none. */
    int bands = 0, layers = 0;
    for (int p = 0; p < 2; p++) {
        layers += f.panel[p].layers;
        for (int k = 0; k < f.panel[p].layers; k++)
            bands += f.panel[p].layer[k].mark == OPC_PLOT_BAND;
    }
    assert_int_equal(layers, 5 + 2);
    assert_int_equal(bands, 2);
    assert_true(f.panel[0].x.min == 0 && f.panel[0].x.max == 800);
    /* Colours tell methods apart, dashes the lines of one method. */
    assert_int_equal(line_of(&f, "MBPO(*), sac.batch_size: 256 (3 runs)")->dash, 0);
    assert_int_equal(line_of(&f, "SAC, sac.batch_size: 256 (1 run)")->dash, 0);
    assert_int_equal(line_of(&f, "OPC, sac.batch_size: 17 (1 run)")->dash, 1);
    opc_curves_figure_free(&f);
    opc_curves_free(c);
}

/* CIE L*a*b* of an sRGB colour, in which distances are about what an eye sees. */
static void to_lab(unsigned colour, double lab[3])
{
    static const double XYZ[3][3] = {{0.4124564, 0.3575761, 0.1804375},
                                     {0.2126729, 0.7151522, 0.0721750},
                                     {0.0193339, 0.1191920, 0.9503041}};
    static const double WHITE[3] = {0.95047, 1, 1.08883};
    double linear[3], f[3];
    for (int k = 0; k < 3; k++) {
        const double v = (colour >> (16 - 8 * k) & 0xff) / 255.0;
        linear[k] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    for (int k = 0; k < 3; k++) {
        const double t =
            (XYZ[k][0] * linear[0] + XYZ[k][1] * linear[1] + XYZ[k][2] * linear[2]) / WHITE[k];
        f[k] = t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
    }
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

/* They may all be lines of one picture. SAC and PETS were two greens 22 apart. */
static void no_two_methods_look_alike(void **state)
{
    (void)state;
    unsigned colour[64];
    int n = 0;
    for (int i = 0; opc_agent_type(i); i++) {
        colour[n++] = opc_agent_type(i)->colour;
        colour[n++] = opc_agent_type(i)->corrected_colour;
    }
    for (int i = 0; opc_transition_type(i); i++)
        colour[n++] = opc_transition_type(i)->colour;
    int compared = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            double a[3], b[3];
            if (!colour[i] || !colour[k])
                continue;
            to_lab(colour[i], a);
            to_lab(colour[k], b);
            const double apart =
                sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                     (a[2] - b[2]) * (a[2] - b[2]));
            if (!(apart > 23))
                fail_msg("%06x and %06x are %.1f apart", colour[i], colour[k], apart);
            compared++;
        }
    assert_true(compared >= 8 * 7 / 2);
}

/* Of six lines in a panel, as in Figure 11, single runs would hide each other, and a pale second
 * line would be lost. */
static void a_crowded_panel_has_no_single_runs(void **state)
{
    const struct opc_curves_style style = {.x_label = "steps", .y_label = "return", .runs = true};
    struct opc_curves_figure f;
    struct opc_err err;
    make_run(*state, "pendulum", "replay", 1, NULL, 5);
    for (int size = 17; size <= 19; size++) {
        char more[40];
        struct opc_curves *c = read_runs(state, &PLAIN);
        assert_int_equal(opc_curves_crowded(c), false);
        opc_curves_free(c);
        snprintf(more, sizeof more, "sac.batch_size=%d", size);
        make_run(*state, "pendulum", "corrected", 1, more, 5);
    }
    struct opc_curves *c = read_runs(state, &PLAIN);
    assert_int_equal(opc_curves_crowded(c), true);
    assert_ok(opc_curves_figure(&style, c, &f, &err), &err);
    for (int p = 0; p < c->panels; p++)
        for (int k = 0; k < f.panel[p].layers; k++)
            assert_int_equal(f.panel[p].layer[k].faint, false);
    /* OPC's blue, 0x0072b2, 45 % of the way to black. */
    assert_int_equal(line_of(&f, "OPC, sac.batch_size: 17 (1 run)")->colour,
                     OPC_COLOUR_RGB | 0x003f62);
    opc_curves_figure_free(&f);
    opc_curves_free(c);
}

/* Two groups of three runs: six thin lines between the bands and the two lines. */
static void every_run_is_drawn_behind_the_lines(void **state)
{
    const struct opc_curves_style style = {.x_label = "steps", .y_label = "return", .runs = true};
    struct opc_curves_figure f;
    struct opc_err err;
    struct opc_curves *c = read_runs(state, &PLAIN);
    assert_ok(opc_curves_figure(&style, c, &f, &err), &err);
    int thin = 0, expected = 0;
    for (int i = 0; i < c->runs; i++)
        expected += c->group[c->run[i].group].runs > 1;
    for (int p = 0; p < c->panels; p++) {
        int stage = 0; /* bands, then runs, then lines */
        for (int k = 0; k < f.panel[p].layers; k++) {
            const struct opc_figure_layer *layer = &f.panel[p].layer[k];
            const int now = layer->mark == OPC_PLOT_BAND ? 0 : layer->faint ? 1 : 2;
            assert_true(now >= stage);
            stage = now;
            thin += layer->faint;
            assert_true(!layer->faint || (layer->width < 1 && layer->n > 0));
        }
    }
    assert_true(expected > 0);
    assert_int_equal(thin, expected);
    opc_curves_figure_free(&f);
    opc_curves_free(c);
}

/* The note says what median and band are where there are some. */
static void the_note_is_about_lines_of_several_runs(void **state)
{
    struct opc_text note = {0};
    struct opc_err err;
    struct opc_curves *c = read_runs(state, &PLAIN);
    opc_curves_note(c, 5, &note);
    assert_non_null(strstr(opc_text_get(&note), "median"));
    assert_non_null(strstr(opc_text_get(&note), "band"));
    assert_non_null(strstr(opc_text_get(&note), "; smoothed"));
    opc_curves_free(c);
    opc_text_free(&note);

    char path[600], *dir = path;
    snprintf(path, sizeof path, "%s/cartpole-corrected-1", (char *)*state);
    assert_ok(opc_curves_read(1, &dir, &PLAIN, &c, &err), &err);
    opc_curves_note(c, 1, &note);
    assert_string_equal(opc_text_get(&note), "");
    opc_curves_note(c, 5, &note);
    assert_true(strncmp(opc_text_get(&note), "smoothed", 8) == 0);
    opc_curves_free(c);
    opc_text_free(&note);
}

static int read_and_make(void *ctx, struct opc_err *err)
{
    const struct opc_curves_style style = {.x_label = "steps", .y_label = "return"};
    static const struct opc_texts words = {2, {"env.name=cart*", "train.seed=1"}};
    struct opc_curves_plan plan = PLAIN;
    struct opc_curves_only only;
    struct opc_curves_figure f;
    struct opc_curves *c;
    char *dir = ctx;
    OPC_TRY(opc_curves_only_read(&words, &only, err));
    plan.only = &only;
    OPC_TRY(opc_curves_read(1, &dir, &plan, &c, err));
    int code = opc_curves_figure(&style, c, &f, err);
    if (!code)
        opc_curves_figure_free(&f);
    opc_curves_free(c);
    return code;
}

static void lack_of_memory_is_survived(void **state)
{
    struct opc_err err;
    char dir[600];
    snprintf(dir, sizeof dir, "%s/cartpole-corrected-1", (char *)*state); /* one run is enough */
    assert_ok(read_and_make(dir, &err), &err);
    assert_survives_lack_of_memory(read_and_make, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_that_differ_in_their_seed_are_a_line, make_runs,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(smoothing_changes_the_curve_but_not_its_end, make_runs,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(settings_are_read_as_a_person_would, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(settings_say_what_is_a_panel_and_a_line, make_runs,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(panels_are_those_of_the_plan_also_without_runs, make_runs,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(over_total_steps_values_between_evaluations_count,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(patterns_choose_runs_before_lines_are_named, make_runs,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(what_no_run_meets_is_told_with_the_nearest, make_runs,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(wrong_names_are_refused, make_runs, test_remove_dir),
        cmocka_unit_test_setup_teardown(methods_have_their_colours, make_runs, test_remove_dir),
        cmocka_unit_test_setup_teardown(the_note_is_about_lines_of_several_runs, make_runs,
                                        test_remove_dir),
        cmocka_unit_test(no_two_methods_look_alike),
        cmocka_unit_test_setup_teardown(a_crowded_panel_has_no_single_runs, make_runs,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(every_run_is_drawn_behind_the_lines, make_runs,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_survived, make_runs, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
