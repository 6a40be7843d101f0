/* SPDX-License-Identifier: MIT */
/* The Bullet tasks against the originals: model tables, recorded traces and statistics of stock
 * PyBullet (tests/golden/bullet, written by tools/golden_bullet.py), and the promises of opc/env.h.
 */
#include "test.h"

#include "opc/env.h"

#if !OPC_WITH_BULLET

static void tasks_are_absent_and_name_their_package(void **state)
{
    (void)state;
    struct opc_env *env;
    struct opc_err err = {0};
    assert_fails(opc_env_open("bullet:hopper", &env, &err), OPC_EABSENT, &err, "libbullet-dev");
    assert_mentions(&err, "OPC_WITH_BULLET");
    for (int i = 0; opc_env_type_at(i); i++)
        assert_int_not_equal(strncmp(opc_env_type_at(i)->name, "bullet:", 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_are_absent_and_name_their_package)};
    return cmocka_run_group_tests_name("env_bullet", tests, NULL, NULL);
}
#else

#include "engine.h"

#include "base/file.h"
#include "base/text.h"
#include "env/bullet/model.h"
#include "env/check.h"
#include "opc/mem.h"

enum { MAX_OBS = 111, MAX_ACT = 8, MAX_STATE = 18, STEPS = 200 };

/* A world that ran out of memory stays behind (bullet_shim.h), with what its allocator took. */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier) */
const char *__lsan_default_suppressions(void)  /* NOLINT(bugprone-reserved-identifier) */
{
    return "leak:opc_bullet_create\n"
           "leak:namespace)::take(\n" /* the name with llvm-symbolizer, and without */
           "leak:^take$\n";
}

/* ---- golden files ---------------------------------------------------------------------------- */

static char *read_golden(const char *folder, const char *file)
{
    char path[512];
    char *text = NULL;
    struct opc_err err = {0};
    snprintf(path, sizeof path, OPC_TEST_DIR "/golden/bullet/%s/%s", folder, file);
    assert_ok(opc_file_read(path, 1 << 20, &text, NULL, &err), &err);
    return text;
}

/* Cuts the first piece, which ends at `end`, off *text and returns it; NULL at the end. */
static char *next_piece(char **text, char end)
{
    char *piece = *text, *to = piece ? strchr(piece, end) : NULL;
    if (!piece || (!*piece && end == '\n'))
        return NULL;
    if (to)
        *to = '\0';
    *text = to ? to + 1 : NULL;
    return piece;
}

/* An empty cell is 0. */
static double number_of(const char *cell)
{
    double x = 0;
    assert_true(!*cell || opc_parse_real(cell, &x));
    return x;
}

static int read_row(char *line, int max, double *out)
{
    int n = 0;
    for (char *cell; (cell = next_piece(&line, ',')); n++) {
        assert_true(n < max);
        out[n] = number_of(cell);
    }
    return n;
}

/* A trace from its first row on; the caller frees *text. */
static char *read_trace(const char *task, char **text)
{
    char *rest = *text = read_golden(task, "trace.csv");
    assert_non_null(next_piece(&rest, '\n'));
    return rest;
}

/* ---- tables with a header -------------------------------------------------------------------- */

enum { MAX_ROWS = 40, MAX_COLUMNS = 30 };

struct table {
    int rows, columns;
    char *text, *name[MAX_COLUMNS], *cell[MAX_ROWS][MAX_COLUMNS];
};

static void read_table(const char *folder, const char *file, struct table *t)
{
    t->text = read_golden(folder, file);
    char *rest = t->text, *line;
    for (t->rows = -1; (line = next_piece(&rest, '\n')); t->rows++) {
        assert_true(t->rows < MAX_ROWS);
        char **row = t->rows < 0 ? t->name : t->cell[t->rows];
        for (t->columns = 0; (row[t->columns] = next_piece(&line, ',')); t->columns++)
            assert_true(t->columns < MAX_COLUMNS - 1);
    }
}

static const char *cell(const struct table *t, int row, const char *name)
{
    int i = 0;
    while (i < t->columns && strcmp(t->name[i], name) != 0)
        i++;
    if (i == t->columns)
        fail_msg("no column %s", name);
    return t->cell[row][i];
}

static double number(const struct table *t, int row, const char *name)
{
    return number_of(cell(t, row, name));
}

/* ---- models ---------------------------------------------------------------------------------- */

static void check_number(const struct table *t, int row, const char *name, double got)
{
    const double want = number(t, row, name);
    if (got != want)
        fail_msg("row %d: %s is %.17g, not %.17g", row, name, got, want);
}

static void check_vector(const struct table *t, int row, const char *name, const double v[3])
{
    for (int k = 0; k < 3; k++) {
        char full[64];
        snprintf(full, sizeof full, "%s_%c", name, "xyz"[k]);
        check_number(t, row, full, v[k]);
    }
}

static void check_body(const struct table *t, int i, const struct opc_bullet_body *b)
{
    static const char *const joints[] = {"fixed_base", "free", "prismatic", "revolute", "fixed"};
    assert_string_equal(b->name, cell(t, i, "link_name"));
    assert_string_equal(b->joint_name, cell(t, i, "joint_name"));
    assert_string_equal(joints[b->joint], cell(t, i, "joint_type"));
    check_number(t, i, "link", i - 1);
    if (i > 0)
        check_number(t, i, "parent", b->parent - 1);
    if (b->joint == OPC_BULLET_SLIDE || b->joint == OPC_BULLET_HINGE)
        check_vector(t, i, "axis", b->axis);
    check_vector(t, i, "pivot_from_parent_com", b->pivot);
    check_vector(t, i, "com_from_pivot", b->com);
    check_vector(t, i, "insert", b->insert);
    check_number(t, i, "mass", b->mass);
    check_number(t, i, "ixx", b->inertia[0]);
    check_number(t, i, "iyy", b->inertia[1]);
    check_number(t, i, "izz", b->inertia[2]);
    check_number(t, i, "limited", b->limited);
    check_number(t, i, "lower", b->lower);
    check_number(t, i, "upper", b->upper);
    check_number(t, i, "group", b->group);
    check_number(t, i, "mask", b->mask);
    check_number(t, i, "friction", b->friction);
}

static void check_shape(const struct table *t, int i, const struct opc_bullet_shape *s)
{
    static const char *const solids[] = {"sphere", "two_spheres", "capsule_z"};
    static const char *const parts[] = {"rot_w", "rot_x", "rot_y", "rot_z"};
    const double angle = number(t, i, "rot_angle_about_y");
    const double about_y[4] = {cos(angle / 2), 0, sin(angle / 2), 0};
    assert_string_equal(solids[s->solid], cell(t, i, "kind"));
    check_number(t, i, "link", s->body - 1);
    check_number(t, i, "radius", s->radius);
    check_number(t, i, "cyl_height", s->height);
    check_vector(t, i, "p0", s->from);
    check_vector(t, i, "p1", s->to);
    check_vector(t, i, "child", s->at);
    for (int k = 0; k < 4; k++)
        if (strcmp(cell(t, i, "rotation"), "quaternion") == 0)
            check_number(t, i, parts[k], s->turn[k]);
        else
            assert_true(s->turn[k] == about_y[k]);
}

/* What the file says against the tables, and what the engine holds against the file: compilers have
 * been seen to change it. */
static void models_equal_the_originals(void **state)
{
    (void)state;
    static const char *const names[] = {"inverted_pendulum", "hopper", "walker2d", "half_cheetah",
                                        "ant"};
    const struct opc_bullet_setting setting = {9.8, 0.0165, 4, true, 0.8, 0};
    static struct table links, shapes;
    static struct opc_bullet_robot robot;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char file[100], *text = NULL;
        struct opc_err err = {0};
        snprintf(file, sizeof file, OPC_TEST_DIR "/../models/bullet/%s.robot", names[k]);
        assert_ok(opc_file_read(file, 1 << 20, &text, NULL, &err), &err);
        assert_ok(opc_bullet_robot_parse(text, names[k], &robot, &err), &err);
        opc_free(text);
        snprintf(file, sizeof file, "%s_links.csv", names[k]);
        read_table("models", file, &links);
        snprintf(file, sizeof file, "%s_shapes.csv", names[k]);
        read_table("models", file, &shapes);
        assert_int_equal(robot.bodies, links.rows);
        assert_int_equal(robot.shapes, shapes.rows);
        for (int i = 0; i < robot.bodies; i++)
            check_body(&links, i, &robot.body[i]);
        for (int i = 0; i < robot.shapes; i++)
            check_shape(&shapes, i, &robot.shape[i]);
        struct opc_bullet *world = opc_bullet_create(&robot, &setting);
        assert_non_null(world);
        for (int i = 0; i < robot.bodies; i++) {
            double mass, inertia[3];
            opc_bullet_mass(world, i, &mass, inertia);
            assert_true(mass == robot.body[i].mass);
            assert_same_bits(inertia, robot.body[i].inertia, sizeof inertia);
        }
        opc_bullet_destroy(world);
        opc_free(links.text);
        opc_free(shapes.text);
    }
}

/* ---- traces ---------------------------------------------------------------------------------- */

static const struct {
    const char *spec, *golden;
} recorded[] = {
    {"bullet:inverted_pendulum", "inverted_pendulum"},
    {"bullet:inverted_pendulum_rs", "inverted_pendulum_rs"},
    {"bullet:inverted_pendulum_rs?constants=roboschool", "inverted_pendulum_roboschool"},
    {"bullet:hopper", "hopper"},
    {"bullet:hopper_rs", "hopper_rs"},
    {"bullet:walker2d", "walker2d"},
    {"bullet:walker2d_rs", "walker2d_rs"},
    {"bullet:half_cheetah", "half_cheetah"},
    {"bullet:half_cheetah_rs", "half_cheetah_rs"},
    {"bullet:ant", "ant"},
    {"bullet:ant_truncated_obs", "ant"},
    {"bullet:ant_rs", "ant_rs"},
};
enum { RECORDED = sizeof recorded / sizeof *recorded };

/* Numbers that are floats were written with the digits of one. */
static bool same(double got, double want)
{
    return got == want || got == (double)(float)want;
}

/* Row t of the recording against ours, to the last bit. */
static void compare_row(const char *spec, int t, const struct opc_env *env, char *line,
                        const struct opc_outcome *out)
{
    enum { MAX = 3 + 28 + MAX_STATE };
    double want[MAX], got[MAX] = {t, out->reward, out->terminated}, state[MAX_STATE];
    const int n = read_row(line, MAX, want);
    const int obs = env->obs < 28 ? env->obs : env->obs == 28 ? 28 : 27;
    assert_int_equal(n, 3 + obs + (t % 10 == 0 ? env->state : 0));
    memcpy(got + 3, out->obs, (size_t)obs * sizeof *got);
    opc_env_state(env, state);
    if (n > 3 + obs)
        memcpy(got + 3 + obs, state, (size_t)env->state * sizeof *got);
    for (int k = 0; k < n; k++)
        if (!same(got[k], want[k]))
            fail_msg("%s: row %d, column %d: %.17g, not %.17g", spec, t, k, got[k], want[k]);
    for (int k = 27; env->obs == 111 && k < 111; k++)
        assert_true(out->obs[k] == 0);
}

static void follow(struct opc_env *env, const char *golden, const char *actions)
{
    double obs[MAX_OBS], action[MAX_ACT], state[MAX_STATE];
    struct opc_err err = {0};
    struct opc_outcome out = {.obs = obs};
    char *start = read_golden(golden, "state.csv"), *from = start;
    char *trace, *rows = read_trace(golden, &trace);
    char *moves = opc_strdup(actions), *rest = moves;
    assert_non_null(moves);
    assert_int_equal(read_row(next_piece(&from, '\n'), MAX_STATE, state), env->state);
    assert_ok(opc_env_start(env, state, obs, &err), &err);
    compare_row(env->spec, 0, env, next_piece(&rows, '\n'), &out);
    for (int t = 1; t <= STEPS; t++) {
        assert_int_equal(read_row(next_piece(&rest, '\n'), MAX_ACT, action), MAX_ACT);
        assert_ok(opc_env_step(env, action, &out, &err), &err);
        compare_row(env->spec, t, env, next_piece(&rows, '\n'), &out);
    }
    opc_free(start);
    opc_free(trace);
    opc_free(moves);
}

/* An episode with actions also from beyond their range. */
static void wander(struct opc_env *env, uint32_t index)
{
    struct opc_err err = {0};
    double obs[MAX_OBS], action[MAX_ACT];
    struct opc_outcome out = {.obs = obs};
    struct opc_rng rng = opc_rng_stream(17, OPC_USE_RESET, 0, index);
    struct opc_rng noise = opc_rng_stream(17, OPC_USE_RANDOM, 0, index);
    assert_ok(opc_env_reset(env, &rng, obs, &err), &err);
    for (int t = 0; t < 20 + 15 * (int)index; t++) {
        for (int i = 0; i < env->act; i++)
            action[i] = 1.5 * (2 * opc_rng_unit_double(&noise) - 1);
        assert_ok(opc_env_step(env, action, &out, &err), &err);
    }
}

/* The order of contacts, which the results depend on, is forgotten as well. */
static void traces_equal_the_originals_whatever_was_before(void **state)
{
    (void)state;
    char *actions = read_golden(".", "actions.csv");
    for (int i = 0; i < RECORDED; i++) {
        struct opc_env *env = open_env(recorded[i].spec);
        follow(env, recorded[i].golden, actions);
        for (uint32_t k = 0; k < 3; k++)
            wander(env, k);
        follow(env, recorded[i].golden, actions);
        opc_env_close(env);
    }
    opc_free(actions);
}

/* All rows of a trace in one question; a pole that has turned over looks upright again. */
static void termination_of_imagined_states_is_the_recorded_one(void **state)
{
    (void)state;
    static float next[(STEPS + 1) * MAX_OBS], s[(STEPS + 1) * MAX_OBS], a[(STEPS + 1) * MAX_ACT];
    bool want[STEPS + 1] = {false}, got[STEPS + 1];
    for (int i = 0; i < RECORDED; i++) {
        struct opc_env *env = open_env(recorded[i].spec);
        char *trace, *rest = read_trace(recorded[i].golden, &trace), *line;
        int n = 0;
        memset(next, 0, sizeof next);
        for (; (line = next_piece(&rest, '\n')) && !(env->type->reward && n > 1 && want[n - 1]);
             n++) {
            double row[64];
            const int numbers = read_row(line, 64, row);
            want[n] = row[2] > 0;
            for (int k = 0; k < env->obs && 3 + k < numbers && k < 28; k++)
                next[n * env->obs + k] = (float)row[3 + k];
        }
        if (env->obs == 111) /* rows that go on with the state, not with more of the observation */
            for (int k = 0; k < n; k++)
                memset(next + k * 111 + 27, 0, 84 * sizeof *next);
        opc_env_terminal(env, n, s, a, next, got);
        assert_same_bits(got, want, (size_t)n);
        next[0] = NAN;
        opc_env_terminal(env, 1, s, a, next, got);
        assert_int_equal(got[0], env->type->terminal != NULL);
        opc_free(trace);
        opc_env_close(env);
    }
}

/* hopper_rs has its heading as cosine and sine at 2 and 1, roll and pitch at 6 and 7. */
static void angles_that_are_as_wanted_keep_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int obs, angle[3][2]; /* in any order */
    } cases[] = {{"bullet:hopper_rs?angle=sincos", 17, {{6, 7}, {8, 9}, {2, 1}}},
                 {"bullet:hopper_rs?angle=raw", 14, {{1, -1}, {5, -1}, {6, -1}}}};
    for (int i = 0; i < 2; i++) {
        struct opc_env *env = open_env(cases[i].spec), *other = NULL;
        struct opc_err err = {0};
        assert_ok(opc_env_another(env, &other, &err), &err);
        assert_int_equal(other->obs, cases[i].obs);
        assert_int_equal(other->n_angles, 3);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(other->angles[k].at, cases[i].angle[k][0]);
            assert_int_equal(other->angles[k].sine, cases[i].angle[k][1]);
        }
        opc_env_close(env);
        opc_env_close(other);
    }
}

/* No recording has an ant that ends. Its height is 0.49 m below the start's, or below the floor. */
static void ants_end_where_their_originals_say(void **state)
{
    (void)state;
    static const char *const specs[] = {"bullet:ant", "bullet:ant_truncated_obs", "bullet:ant_rs"};
    for (int i = 0; i < 3; i++) {
        struct opc_env *env = open_env(specs[i]);
        float next[2 * MAX_OBS] = {0}, a[2 * MAX_ACT] = {0};
        bool ends[2];
        next[0] = -0.4901f;
        next[env->obs] = -0.4899f;
        opc_env_terminal(env, 2, next, a, next, ends);
        assert_true(ends[0] && !ends[1]);
        opc_env_close(env);
    }
}

/* The _rs tasks show the height above the robot's own, wherever an episode starts, so that the
 * state tells how it goes on. */
static void heights_are_above_the_robots_own(void **state)
{
    (void)state;
    static const double heights[] = {-0.4, 0, 0.6};
    static const char *const specs[] = {"bullet:hopper_rs", "bullet:walker2d_rs",
                                        "bullet:half_cheetah_rs"};
    for (int i = 0; i < 9; i++) {
        struct opc_env *env = open_env(specs[i / 3]);
        struct opc_err err = {0};
        double obs[MAX_OBS], s[MAX_STATE] = {0, heights[i % 3]};
        assert_ok(opc_env_start(env, s, obs, &err), &err);
        assert_true(fabs(obs[0] - heights[i % 3]) < 1e-7);
        assert_true(i % 3 != 1 || obs[0] == 0);
        opc_env_close(env);
    }
}

/* Without contacts there is nothing but the state, and motion goes on from one as it did. */
static void a_pendulum_goes_on_from_any_recorded_state(void **state)
{
    (void)state;
    struct opc_env *env = open_env("bullet:inverted_pendulum");
    struct opc_err err = {0};
    char *trace, *rows = read_trace("inverted_pendulum", &trace);
    char *actions = read_golden(".", "actions.csv"), *moves = actions;
    double row[16] = {0}, action[MAX_ACT], obs[4];
    struct opc_outcome out = {.obs = obs};
    assert_true(read_row(next_piece(&rows, '\n'), 16, row) >= 7);
    for (int t = 1; t <= STEPS; t++) {
        /* observation and state are the same four numbers */
        assert_ok(opc_env_start(env, row + 3, obs, &err), &err);
        assert_int_equal(read_row(next_piece(&moves, '\n'), MAX_ACT, action), MAX_ACT);
        assert_ok(opc_env_step(env, action, &out, &err), &err);
        read_row(next_piece(&rows, '\n'), 16, row);
        for (int k = 0; k < 4; k++)
            assert_true(same(obs[k], row[3 + k]));
    }
    opc_free(trace);
    opc_free(actions);
    opc_env_close(env);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static const char *spec_of(const char *class)
{
    static const char *const names[][2] = {
        {"InvertedPendulumMuJoCoEnv", "bullet:inverted_pendulum"},
        {"InvertedPendulumPyBulletEnv", "bullet:inverted_pendulum_rs"},
        {"HopperMuJoCoEnv", "bullet:hopper"},
        {"HopperPyBulletEnv", "bullet:hopper_rs"},
        {"Walker2DMuJoCoEnv", "bullet:walker2d"},
        {"Walker2DPyBulletEnv", "bullet:walker2d_rs"},
        {"HalfCheetahMuJoCoEnv", "bullet:half_cheetah"},
        {"HalfCheetahPyBulletEnv", "bullet:half_cheetah_rs"},
        {"AntMuJoCoEnv", "bullet:ant"},
        {"AntPyBulletEnv", "bullet:ant_rs"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(class, names[i][0]) == 0)
            return names[i][1];
    fail_msg("no task comes from %s", class);
    return NULL;
}

static double play_episode(struct opc_env *env, bool random, uint32_t row, uint32_t index,
                           int *steps)
{
    struct opc_err err = {0};
    double obs[MAX_OBS], action[MAX_ACT] = {0}, sum = 0;
    struct opc_outcome out = {.obs = obs};
    struct opc_rng rng = opc_rng_stream(2, OPC_USE_RESET, row, index);
    struct opc_rng noise = opc_rng_stream(2, OPC_USE_RANDOM, row, index);
    assert_ok(opc_env_reset(env, &rng, obs, &err), &err);
    do {
        for (int i = 0; random && i < env->act; i++)
            action[i] = 2 * opc_rng_unit_double(&noise) - 1;
        assert_ok(opc_env_step(env, action, &out, &err), &err);
        sum += out.reward;
        ++*steps;
    } while (!out.terminated && !out.truncated);
    return sum;
}

/* Difference of the means in standard errors, from the recorded spread. */
static double score(const struct table *t, int row, const char *what, double mean, int n)
{
    char name[3][32];
    snprintf(name[0], sizeof name[0], "%s_mean", what);
    snprintf(name[1], sizeof name[1], "%s_mean_se", what);
    snprintf(name[2], sizeof name[2], "%s_std", what);
    const double se = number(t, row, name[1]), spread = number(t, row, name[2]) / sqrt(n);
    const double gap = mean - number(t, row, name[0]);
    return gap == 0 ? 0 : gap / sqrt(se * se + spread * spread);
}

/* Returns and lengths of random and of idle policies agree with those of stock PyBullet. */
static void episodes_are_distributed_as_the_originals(void **state)
{
    (void)state;
    static struct table t;
    double chi = 0;
    read_table(".", "random_policy_stats.csv", &t);
    assert_int_equal(t.rows, 20);
    for (int row = 0; row < t.rows; row++) {
        struct opc_env *env = open_env(spec_of(cell(&t, row, "task")));
        const bool random = strcmp(cell(&t, row, "policy"), "uniform") == 0;
        double sum = 0;
        int steps = 0, n = 0;
        for (; n < 2 || steps < 2000; n++)
            sum += play_episode(env, random, (uint32_t)row, (uint32_t)n, &steps);
        const double returns = score(&t, row, "return", sum / n, n);
        const double lengths = score(&t, row, "length", (double)steps / n, n);
        if (!(fabs(returns) <= 3.5 && fabs(lengths) <= 3.5))
            fail_msg("%s, %s: return %g and length %g are %.1f and %.1f standard errors off",
                     env->spec, cell(&t, row, "policy"), sum / n, (double)steps / n, returns,
                     lengths);
        chi += returns * returns;
        opc_env_close(env);
    }
    assert_true(chi < 40); /* of 20 differences; more than that is one in 200 */
    opc_free(t.text);
}

static void resets_have_the_stated_noise(void **state)
{
    (void)state;
    enum { N = 300 };
    const struct {
        const char *spec;
        int joints, from;
        double c; /* half width; 0: that of the originals, 0.1 */
    } noise[] = {{"bullet:inverted_pendulum", 2, 1, 0},
                 {"bullet:inverted_pendulum_rs", 2, 1, 0},
                 {"bullet:hopper", 6, 0, 0},
                 {"bullet:hopper?reset_noise=0.1", 6, 0, 0},
                 {"bullet:hopper?reset_noise=0.005", 6, 0, 0.005},
                 {"bullet:hopper_rs", 6, 3, 0},
                 {"bullet:half_cheetah", 9, 0, 0},
                 {"bullet:half_cheetah_rs", 9, 3, 0},
                 {"bullet:walker2d", 9, 0, 0},
                 {"bullet:walker2d_rs", 9, 3, 0},
                 {"bullet:ant", 8, 0, 0},
                 {"bullet:ant_rs", 8, 0, 0}};
    for (size_t k = 0; k < sizeof noise / sizeof *noise; k++) {
        struct opc_env *env = open_env(noise[k].spec);
        struct opc_err err = {0};
        double obs[MAX_OBS], s[MAX_STATE], squares = 0, largest = 0;
        const int n = noise[k].joints, from = noise[k].from;
        const double c = noise[k].c > 0 ? noise[k].c : 0.1;
        assert_int_equal(env->state, 2 * n);
        for (uint32_t i = 0; i < N; i++) {
            struct opc_rng rng = opc_rng_stream(4, OPC_USE_RESET, 0, i);
            assert_ok(opc_env_reset(env, &rng, obs, &err), &err);
            opc_env_state(env, s);
            for (int j = 0; j < 2 * n; j++) {
                if (j < from || j >= n)
                    assert_true(s[j] == 0);
                squares += s[j] * s[j];
                largest = fmax(largest, fabs(s[j]));
            }
        }
        assert_true(largest <= c && largest > 0.98 * c);
        /* standard deviation of U(-c, c) is c / sqrt(3) */
        assert_doubles_near(&(double){sqrt(squares / (N * (n - from))) / c}, &(double){1 / sqrt(3)},
                            1, 0.05);
        opc_env_close(env);
    }
}

/* ---- promises -------------------------------------------------------------------------------- */

static const char *const every[] = {"bullet:inverted_pendulum",
                                    "bullet:inverted_pendulum?angle=sincos",
                                    "bullet:inverted_pendulum_rs",
                                    "bullet:inverted_pendulum_rs?angle=raw",
                                    "bullet:hopper?angle=sincos",
                                    "bullet:hopper_rs?angle=raw",
                                    "bullet:walker2d",
                                    "bullet:walker2d_rs?angle=sincos",
                                    "bullet:half_cheetah",
                                    "bullet:half_cheetah_rs",
                                    "bullet:ant",
                                    "bullet:ant_truncated_obs",
                                    "bullet:ant_rs"};
enum { EVERY = sizeof every / sizeof *every };

static void tasks_keep_every_promise(void **state)
{
    (void)state;
    for (int i = 0; i < EVERY; i++) {
        struct opc_env_report report;
        struct opc_err err = {0};
        assert_ok(opc_env_check(every[i], &(struct opc_check_plan){.seed = 1, .transitions = 400},
                                &report, &err),
                  &err);
    }
}

enum { SHORT = 40, TRACE = (SHORT + 1) * (MAX_OBS + 2) };

/* What `opc env bench` compares with does the engine's whole work. */
static void the_bare_loop_reaches_the_same_state(void **state)
{
    (void)state;
    static double all[TRACE];
    for (int i = 0; i < EVERY; i++) {
        struct opc_env *env = open_env(every[i]);
        double ours[MAX_STATE] = {0}, bare[MAX_STATE] = {0};
        play(env, 0, SHORT, false, all);
        opc_env_state(env, ours);
        play(env, 0, SHORT, true, all);
        opc_env_state(env, bare);
        assert_same_bits(ours, bare, sizeof ours);
        opc_env_close(env);
    }
}

static void many_give_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    static double one[(SHORT + 1) * ENGINE_MANY * 28], more[(SHORT + 1) * ENGINE_MANY * 28];
    const char *specs[] = {"bullet:inverted_pendulum_rs", "bullet:hopper", "bullet:half_cheetah_rs",
                           "bullet:ant_rs"};
    for (int k = 0; k < 4; k++) {
        memset(one, 0, sizeof one);
        memset(more, 0, sizeof more);
        play_many(specs[k], 1, SHORT, one);
        play_many(specs[k], 4, SHORT, more);
        assert_same_bits(one, more, sizeof one);
    }
}

static void environments_open_on_several_threads_at_once(void **state)
{
    (void)state;
    open_at_once(every);
}

/* Figure 4: two tasks, and each with the other's way to observe the angle. */
static void the_four_cartpoles_move_alike(void **state)
{
    (void)state;
    static double raw[TRACE], made[TRACE], rs[TRACE], made_raw[TRACE];
    const char *specs[] = {"bullet:inverted_pendulum", "bullet:inverted_pendulum?angle=sincos",
                           "bullet:inverted_pendulum_rs", "bullet:inverted_pendulum_rs?angle=raw"};
    double *all[] = {raw, made, rs, made_raw};
    const int obs[] = {4, 5, 5, 4};
    for (int i = 0; i < 4; i++) {
        struct opc_env *env = open_env(specs[i]);
        assert_int_equal(env->obs, obs[i]);
        play(env, 3, SHORT, false, all[i]);
        opc_env_close(env);
    }
    for (int t = 0; t <= SHORT; t++) {
        const double *o = raw + 6 * t, x = o[0], a = o[1], v = o[2], w = o[3];
        const double ended = t > 0 && o[5] > 0, paid = t > 0;
        const double want_made[] = {x, cos(a), sin(a), v, w, paid, ended};
        const double want_rs[] = {x, v, cos(a), sin(a), w, paid, ended};
        const double want_raw[] = {x, v, a, w, paid, ended};
        const int n = t > 0 ? 0 : 2; /* nothing is paid for a reset */
        assert_same_bits(made + 7 * t, want_made, (size_t)(7 - n) * sizeof *made);
        assert_same_bits(rs + 7 * t, want_rs, (size_t)(7 - n) * sizeof *rs);
        assert_doubles_near(made_raw + 6 * t, want_raw, 6 - n, 1e-12);
    }
}

static void copies_outlive_what_they_were_made_from(void **state)
{
    (void)state;
    static double one[TRACE], two[TRACE];
    struct opc_env *env = open_env("bullet:inverted_pendulum_rs?constants=roboschool&angle=raw");
    struct opc_env *other;
    struct opc_err err = {0};
    play(env, 0, SHORT, false, one);
    assert_ok(opc_env_another(env, &other, &err), &err);
    assert_int_equal(other->model_hash, env->model_hash);
    opc_env_close(env);
    assert_int_equal(other->obs, 4);
    assert_true(other->dt == 0.016499999910593033);
    assert_string_equal(other->model, "bullet/inverted_pendulum.robot");
    play(other, 0, SHORT, false, two);
    assert_same_bits(one, two, (size_t)((SHORT + 1) * 6) * sizeof *one);
    opc_env_close(other);
}

static void drawings_show_the_robot_where_it_is(void **state)
{
    (void)state;
    struct opc_scene scene;
    struct opc_err err = {0};
    double obs[MAX_OBS];
    struct opc_env *env = open_env("bullet:hopper?angle=sincos");
    const double ahead[12] = {3};
    assert_ok(opc_env_start(env, ahead, obs, &err), &err);
    env->type->draw(env, &scene);
    assert_int_equal(scene.n, 4);
    assert_doubles_near(scene.shape[0].from, ((double[]){3, 0, 1.45}), 3, 1e-6);
    assert_doubles_near(scene.shape[3].to, ((double[]){3.26, 0, 0.1}), 3, 1e-6);
    assert_doubles_near(scene.centre, ((double[]){3, 0, 0.7}), 3, 1e-6);
    opc_env_close(env);
    env = open_env("bullet:inverted_pendulum"); /* leaning over to +x by 90 degrees */
    const double lying[4] = {0.5, acos(0)};
    assert_ok(opc_env_start(env, lying, obs, &err), &err);
    env->type->draw(env, &scene);
    assert_int_equal(scene.n, 3); /* with its rail */
    assert_doubles_near(scene.shape[1].from, ((double[]){0.4, 0, 0.6}), 3, 1e-6);
    assert_doubles_near(scene.shape[1].to, ((double[]){0.6, 0, 0.6}), 3, 1e-6);
    assert_doubles_near(scene.shape[2].to, ((double[]){1.1, 0, 0.599}), 3, 1e-6);
    opc_env_close(env);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void a_wild_state_is_refused_and_leaves_nothing_behind(void **state)
{
    (void)state;
    static double fresh[TRACE], after[TRACE];
    struct opc_env *env = open_env("bullet:hopper");
    struct opc_err err = {0};
    double obs[11];
    const double far[12] = {0, 0, 0, 2e6}, nothing[12] = {0, NAN};
    play(env, 0, SHORT, false, fresh);
    assert_fails(opc_env_start(env, far, obs, &err), OPC_EUSER, &err, "2e+06");
    assert_int_equal(opc_env_start(env, nothing, obs, &err), OPC_EUSER);
    play(env, 0, SHORT, false, after);
    assert_same_bits(fresh, after, (size_t)((SHORT + 1) * 13) * sizeof *after);

    const double beyond[3] = {1e200, 0, 0}; /* costs infinitely much */
    struct opc_outcome out = {.obs = obs};
    assert_fails(opc_env_step(env, beyond, &out, &err), OPC_EENV, &err, "step 41");
    play(env, 0, SHORT, false, after);
    assert_same_bits(fresh, after, (size_t)((SHORT + 1) * 13) * sizeof *after);
    opc_env_close(env);
}

static void put_file(const char *dir, const char *name, const char *text, size_t n)
{
    char path[OPC_PATH];
    struct opc_err err = {0};
    assert_ok(opc_path_join(path, dir, name, &err), &err);
    assert_ok(opc_file_write(path, text, n, &err), &err);
}

/* A copy of `text` with one word replaced. */
static void put_changed(const char *dir, const char *text, const char *word, const char *by)
{
    struct opc_text changed = {0};
    const char *at = strstr(text, word);
    assert_non_null(at);
    opc_text_add_bytes(&changed, text, (size_t)(at - text));
    opc_text_add(&changed, by);
    opc_text_add(&changed, at + strlen(word));
    assert_false(changed.failed);
    put_file(dir, "bullet/hopper.robot", changed.at, changed.used);
    opc_text_free(&changed);
}

static void refused(const char *dir, const char *key)
{
    struct opc_env *env;
    struct opc_err err = {0};
    assert_fails(opc_env_open("bullet:hopper", &env, &err), OPC_EUSER, &err, key);
    assert_mentions(&err, "OPC_MODELS");
    assert_mentions(&err, dir);
    assert_mentions(&err, "bullet/hopper.robot");
}

static int forget_models(void **state)
{
    unsetenv("OPC_MODELS");
    return test_remove_dir(state);
}

static void robots_come_from_OPC_MODELS_when_it_is_set(void **state)
{
    const char *dir = *state;
    struct opc_env *env = open_env("bullet:hopper");
    struct opc_err err = {0};
    char folder[OPC_PATH];
    const uint32_t hash = env->model_hash;
    opc_env_close(env);
    assert_int_equal(setenv("OPC_MODELS", dir, 1), 0);
    assert_fails(opc_env_open("bullet:hopper", &env, &err), OPC_EUSER, &err, "bullet/hopper.robot");

    assert_ok(opc_path_join(folder, dir, "bullet", &err), &err);
    assert_ok(opc_make_directories(folder, &err), &err);
    char *text = NULL;
    assert_ok(
        opc_file_read(OPC_TEST_DIR "/../models/bullet/hopper.robot", 1 << 20, &text, NULL, &err),
        &err);
    put_file(dir, "bullet/hopper.robot", text, strlen(text));
    env = open_env("bullet:hopper");
    assert_int_equal(env->model_hash, hash);
    opc_env_close(env);

    put_changed(dir, text, "mass 3.66", "mass 4.66"); /* a heavier torso will do */
    env = open_env("bullet:hopper");
    assert_int_not_equal(env->model_hash, hash);
    opc_env_close(env);
    put_changed(dir, text, "mass 3.66", "mass x.66");
    refused(dir, "hopper.robot:28:");
    put_changed(dir, text, "body torso", "body trunk");
    refused(dir, "hopper.robot:36:");
    put_changed(dir, text, "hinge foot_joint", "hinge toe");
    refused(dir, "'foot_joint'");
    put_changed(dir, text, "range -2.6179940700531006 0", "");
    refused(dir, "'thigh_joint'");
    put_changed(dir, text, "base fixed", "base free mass 1");
    refused(dir, "base");
    put_file(dir, "bullet/hopper.robot", "body a\0", 7);
    refused(dir, "text");
    put_file(dir, "bullet/hopper.robot", "body a base fixed", 17);
    refused(dir, "0 joints");
    put_file(dir, "bullet/hopper.robot", "", 0);
    refused(dir, "hopper.robot:1:");
    opc_free(text);
}

#define BASE "body a base fixed\n"

static void bad_robot_files_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *key;
    } bad[] = {
        {"", 1, "body NAME"},
        {"# c\nmass 3", 2, "'mass'"},
        {"body a hinge h", 1, "base fixed"},
        {"body a base loose", 1, "'loose'"},
        {"body a base free", 1, "inertia"},
        {"body", 1, "31"},
        {BASE "body b base free", 2, "weld"},
        {BASE "body b\nweld on c", 3, "'c'"},
        {BASE "body b weld on b", 2, "parents"},
        {BASE "body b weld", 2, "on BODY"},
        {BASE "body a", 2, "'a' already"},
        {BASE "body b hinge h on a", 2, "axis X Y Z"},
        {BASE "body b hinge h on a axis 1 0 0 body c slide h", 2, "'h' already"},
        {BASE "body b mass\n1o", 3, "'1o'"},
        {BASE "mass nan", 2, "'nan'"},
        {BASE "mass -1", 2, "negative"},
        {BASE "range 0 1", 2, "no slide"},
        {BASE "body b com 1 2", 2, "end of file"},
        {BASE "body b group 1.5", 2, "'1.5'"},
        {BASE "body b range 1 1", 2, "range 1 1"},
        {BASE "body b at 1 2 3", 2, "at belongs"},
        {BASE "body b turn_y 1", 2, "turn_y"},
        {BASE "sphere 0", 2, "radius 0"},
        {BASE "sphere 1 turn 0 0 0 0 sphere 1", 2, "turn 0 0 0 0"},
        {BASE "sphere 1 turn 0 0 0 0", 2, "turn 0 0 0 0"},
    };
    static struct opc_bullet_robot robot;
    struct opc_err err = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char where[32];
        snprintf(where, sizeof where, "x.robot:%d:", bad[i].line);
        assert_fails(opc_bullet_robot_parse(bad[i].text, "x.robot", &robot, &err), OPC_EUSER, &err,
                     where);
        assert_mentions(&err, bad[i].key);
    }
    assert_fails(opc_bullet_robot_parse(BASE "body b colour 1", "x", &robot, &err), OPC_EUSER, &err,
                 "x:2:");
    assert_mentions(&err, "'colour'");
    assert_mentions(&err, "body, base,"); /* what is known */
    assert_int_equal(opc_bullet_robot_parse("", "x", &robot, NULL), OPC_EUSER);
    char mass[700];
    snprintf(mass, sizeof mass, BASE "mass 1%0600d", 0); /* cut, it would be a number */
    assert_int_equal(opc_bullet_robot_parse(mass, "x", &robot, &err), OPC_EUSER);
    snprintf(mass, sizeof mass, BASE "mass 0.%090de99", 3665);
    assert_ok(opc_bullet_robot_parse(mass, "x", &robot, &err), &err);
    assert_true(robot.body[0].mass == 3665e9);

    struct opc_text crowd = {0};
    for (int i = 0; i < OPC_BULLET_BODIES + 1; i++)
        opc_text_addf(&crowd, i ? "\nbody b%d weld on b0" : "body b%d base fixed", i);
    assert_fails(opc_bullet_robot_parse(opc_text_get(&crowd), "x", &robot, &err), OPC_EUSER, &err,
                 "x:33:");
    assert_mentions(&err, "OPC_BULLET_BODIES");
    opc_text_clear(&crowd);
    opc_text_add(&crowd, BASE);
    for (int i = 0; i < OPC_BULLET_SHAPES + 1; i++)
        opc_text_add(&crowd, "sphere 1\n");
    assert_fails(opc_bullet_robot_parse(opc_text_get(&crowd), "x", &robot, &err), OPC_EUSER, &err,
                 "x:34:");
    assert_mentions(&err, "OPC_BULLET_SHAPES");
    opc_text_free(&crowd);
}

/* From an environment whose world may be lost: the next reset makes a new one. */
static int reset_and_step(void *ctx, struct opc_err *err)
{
    struct opc_env *env = ctx;
    double obs[MAX_OBS];
    const double zero[MAX_ACT] = {0};
    struct opc_outcome out = {.obs = obs};
    int code = opc_env_start(env, NULL, obs, err);
    for (int t = 0; !code && t < 12; t++)
        code = opc_env_step(env, zero, &out, err);
    return code;
}

/* Ours, and through the shim's allocator also Bullet's own. */
static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    static double fresh[TRACE], after[TRACE];
    assert_survives_lack_of_memory(open_and_copy, "bullet:inverted_pendulum");
    assert_survives_lack_of_memory(open_and_copy, "bullet:hopper?angle=sincos");
    struct opc_env *env = open_env("bullet:hopper");
    play(env, 0, SHORT, false, fresh);
    opc_env_close(env);
    env = open_env("bullet:hopper"); /* its tables have not grown yet */
    assert_survives_lack_of_memory(reset_and_step, env);
    play(env, 0, SHORT, false, after);
    assert_same_bits(fresh, after, (size_t)((SHORT + 1) * 13) * sizeof *after);
    opc_env_close(env);
}

static void arguments_of_the_tasks_are_explained(void **state)
{
    (void)state;
    struct opc_env *env;
    struct opc_err err = {0};
    assert_fails(opc_env_open("bullet:hoper", &env, &err), OPC_EUSER, &err, "bullet:hopper");
    assert_fails(opc_env_open("bullet:hopper?constants=roboschool", &env, &err), OPC_EUSER, &err,
                 "'constants'");
    assert_fails(opc_env_open("bullet:ant?angle=raw", &env, &err), OPC_EUSER, &err, "no angle");
    assert_int_equal(opc_env_open("bullet:inverted_pendulum_rs?constants=x", &env, &err),
                     OPC_EUSER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_equal_the_originals),
        cmocka_unit_test(traces_equal_the_originals_whatever_was_before),
        cmocka_unit_test(termination_of_imagined_states_is_the_recorded_one),
        cmocka_unit_test(ants_end_where_their_originals_say),
        cmocka_unit_test(heights_are_above_the_robots_own),
        cmocka_unit_test(angles_that_are_as_wanted_keep_their_place),
        cmocka_unit_test(a_pendulum_goes_on_from_any_recorded_state),
        cmocka_unit_test(episodes_are_distributed_as_the_originals),
        cmocka_unit_test(resets_have_the_stated_noise),
        cmocka_unit_test(tasks_keep_every_promise),
        cmocka_unit_test(the_bare_loop_reaches_the_same_state),
        cmocka_unit_test(many_give_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(environments_open_on_several_threads_at_once),
        cmocka_unit_test(the_four_cartpoles_move_alike),
        cmocka_unit_test(copies_outlive_what_they_were_made_from),
        cmocka_unit_test(drawings_show_the_robot_where_it_is),
        cmocka_unit_test(a_wild_state_is_refused_and_leaves_nothing_behind),
        cmocka_unit_test_setup_teardown(robots_come_from_OPC_MODELS_when_it_is_set, test_make_dir,
                                        forget_models),
        cmocka_unit_test(bad_robot_files_are_explained),
        cmocka_unit_test(lack_of_memory_is_an_error),
        cmocka_unit_test(arguments_of_the_tasks_are_explained),
    };
    unsetenv("OPC_MODELS");
    return cmocka_run_group_tests_name("env_bullet", tests, NULL, NULL);
}
#endif
