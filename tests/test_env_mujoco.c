/* SPDX-License-Identifier: MIT */
/* The MuJoCo tasks against the originals: compiled models and recorded traces (tests/golden/mujoco,
 * written by tools/golden_mujoco.py), and the promises of opc/env.h. */
#include "test.h"

#if !OPC_WITH_MUJOCO
int main(void)
{
    return 0;
}
#else

#include "engine.h"

#include "base/file.h"
#include "base/text.h"
#include "env/check.h"
#include "env/mujoco/mujoco.h"
#include "opc/mem.h"

#include <mujoco/mujoco.h>

/* Two numbers. */
#define assert_number_near(a, b, tolerance)                                                        \
    assert_doubles_near(&(const double){a}, &(const double){b}, 1, tolerance)

enum { MAX_OBS = 376, MAX_ACT = 17, MAX_STATE = 64 };

/* ---- golden files ---------------------------------------------------------------------------- */

static char *read_golden(const char *task, const char *file)
{
    char path[512];
    char *text = NULL;
    struct opc_err err = {0};
    snprintf(path, sizeof path, OPC_TEST_DIR "/golden/mujoco/%s/%s", task, file);
    assert_ok(opc_file_read(path, 1 << 24, &text, NULL, &err), &err);
    return text;
}

/* Cuts the first line off *text and returns it; NULL at the end. */
static char *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');
    if (!*line)
        return NULL;
    assert_non_null(end);
    *end = '\0';
    *text = end + 1;
    return line;
}

/* The numbers of a line, from `line` on. */
static int read_row(char *line, int max, double *out)
{
    int n = 0;
    char *save = NULL;
    for (char *cell = strtok_r(line, ",", &save); cell; cell = strtok_r(NULL, ",", &save)) {
        assert_true(n < max);
        assert_true(opc_parse_real(cell, &out[n++]));
    }
    return n;
}

/* ---- compiled models ------------------------------------------------------------------------- */

struct column {
    const char *name;
    const void *at;
    enum { REAL, WHOLE, BYTE } kind;
    int rows, width, stride;
    int seen;
};

static double element(const struct column *c, int i)
{
    switch (c->kind) {
    case REAL: return ((const double *)c->at)[i];
    case WHOLE: return ((const int *)c->at)[i];
    default: return ((const mjtByte *)c->at)[i];
    }
}

static struct column *find_column(struct column *columns, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(columns[i].name, name) == 0)
            return &columns[i];
    fail_msg("no field %s", name);
    return NULL;
}

/* field,index,v0,v1,...: every number equal to 1e-12 and nothing missing on either side. */
static void compare_model(const char *task, struct column *columns, int n)
{
    char *text = read_golden(task, "model.csv"), *rest = text, *line, *save;
    assert_non_null(next_line(&rest));
    while ((line = next_line(&rest))) {
        struct column *c = find_column(columns, n, strtok_r(line, ",", &save));
        const int row = atoi(strtok_r(NULL, ",", &save));
        double want[10];
        assert_int_equal(read_row(save, 10, want), c->width);
        assert_true(row < c->rows);
        for (int k = 0; k < c->width; k++) {
            const double got = element(c, row * c->stride + k);
            if (!(fabs(got - want[k]) <= 1e-12 * (1 + fabs(want[k]))))
                fail_msg("%s: %s[%d][%d] is %.17g, not %.17g", task, c->name, row, k, got, want[k]);
        }
        c->seen++;
    }
    for (int i = 0; i < n; i++)
        if (columns[i].seen != columns[i].rows)
            fail_msg("%s: %d of %d rows of %s", task, columns[i].seen, columns[i].rows,
                     columns[i].name);
    opc_free(text);
}

/* clang-format off */
#define ONE_WHOLE(f) {#f, &m->f, WHOLE, 1, 1, 1, 0}
#define ONE_REAL(f) {#f, &m->f, REAL, 1, 1, 1, 0}
#define REALS(f, rows, width) {#f, m->f, REAL, rows, width, width, 0}
#define WHOLES(f, rows) {#f, m->f, WHOLE, rows, 1, 1, 0}
#define BYTES(f, rows) {#f, m->f, BYTE, rows, 1, 1, 0}

static void compare_to_golden(const char *task, const mjModel *m, int frame_skip)
{
    struct column columns[] = {
        ONE_WHOLE(nq), ONE_WHOLE(nv), ONE_WHOLE(nu), ONE_WHOLE(na), ONE_WHOLE(nbody),
        ONE_WHOLE(njnt), ONE_WHOLE(ngeom), ONE_WHOLE(nsite), ONE_WHOLE(ntendon), ONE_WHOLE(neq),
        ONE_WHOLE(nexclude), ONE_WHOLE(npair), ONE_WHOLE(nsensor), ONE_WHOLE(nM),
        ONE_REAL(opt.timestep), ONE_WHOLE(opt.integrator), ONE_WHOLE(opt.solver),
        ONE_WHOLE(opt.cone), ONE_WHOLE(opt.jacobian), ONE_WHOLE(opt.collision),
        ONE_WHOLE(opt.iterations), ONE_WHOLE(opt.noslip_iterations), ONE_WHOLE(opt.mpr_iterations),
        ONE_REAL(opt.tolerance), ONE_REAL(opt.noslip_tolerance), ONE_REAL(opt.mpr_tolerance),
        ONE_REAL(opt.impratio), ONE_REAL(opt.density), ONE_REAL(opt.viscosity),
        ONE_WHOLE(opt.disableflags), ONE_WHOLE(opt.enableflags), ONE_REAL(opt.o_margin),
        REALS(opt.gravity, 1, 3), REALS(opt.wind, 1, 3),
        ONE_REAL(stat.meaninertia), ONE_REAL(stat.meanmass), ONE_REAL(stat.meansize),
        {"frame_skip", &frame_skip, WHOLE, 1, 1, 1, 0},
        REALS(qpos0, m->nq, 1), REALS(qpos_spring, m->nq, 1),
        WHOLES(body_parentid, m->nbody), WHOLES(body_jntnum, m->nbody),
        WHOLES(body_geomnum, m->nbody), REALS(body_mass, m->nbody, 1),
        REALS(body_inertia, m->nbody, 3), REALS(body_pos, m->nbody, 3),
        REALS(body_quat, m->nbody, 4), REALS(body_ipos, m->nbody, 3),
        REALS(body_iquat, m->nbody, 4), REALS(body_invweight0, m->nbody, 2),
        WHOLES(jnt_type, m->njnt), WHOLES(jnt_bodyid, m->njnt), BYTES(jnt_limited, m->njnt),
        REALS(jnt_range, m->njnt, 2), REALS(jnt_pos, m->njnt, 3), REALS(jnt_axis, m->njnt, 3),
        REALS(jnt_stiffness, m->njnt, 1), REALS(jnt_margin, m->njnt, 1),
        REALS(jnt_solref, m->njnt, 2), REALS(jnt_solimp, m->njnt, 5),
        REALS(dof_damping, m->nv, 1), REALS(dof_armature, m->nv, 1),
        REALS(dof_frictionloss, m->nv, 1), REALS(dof_invweight0, m->nv, 1), REALS(dof_M0, m->nv, 1),
        WHOLES(geom_type, m->ngeom), WHOLES(geom_bodyid, m->ngeom), WHOLES(geom_contype, m->ngeom),
        WHOLES(geom_conaffinity, m->ngeom), WHOLES(geom_condim, m->ngeom),
        REALS(geom_size, m->ngeom, 3), REALS(geom_pos, m->ngeom, 3), REALS(geom_quat, m->ngeom, 4),
        REALS(geom_friction, m->ngeom, 3), REALS(geom_margin, m->ngeom, 1),
        REALS(geom_gap, m->ngeom, 1), REALS(geom_solmix, m->ngeom, 1),
        REALS(geom_solref, m->ngeom, 2), REALS(geom_solimp, m->ngeom, 5),
        WHOLES(actuator_trntype, m->nu), {"actuator_trnid", m->actuator_trnid, WHOLE, m->nu, 1, 2, 0},
        BYTES(actuator_ctrllimited, m->nu), REALS(actuator_ctrlrange, m->nu, 2),
        REALS(actuator_gear, m->nu, 6),
        {"actuator_gainprm0", m->actuator_gainprm, REAL, m->nu, 1, mjNGAIN, 0},
        WHOLES(site_bodyid, m->nsite), REALS(site_pos, m->nsite, 3),
        BYTES(tendon_limited, m->ntendon), WHOLES(tendon_num, m->ntendon),
        REALS(tendon_stiffness, m->ntendon, 1), REALS(tendon_damping, m->ntendon, 1),
        REALS(wrap_prm, m->nwrap, 1), WHOLES(wrap_objid, m->nwrap),
    };
    compare_model(task, columns, sizeof columns / sizeof *columns);
}
/* clang-format on */

static void compiled_models_equal_the_originals(void **state)
{
    (void)state;
    const struct {
        const char *spec, *golden;
        int frame_skip;
    } models[] = {
        {"mujoco:inverted_pendulum", "inverted_pendulum", 2},
        {"mujoco:inverted_double_pendulum", "inverted_double_pendulum", 5},
        {"mujoco:hopper", "hopper", 4},
        {"mujoco:walker2d", "walker2d", 4},
        {"mujoco:half_cheetah", "half_cheetah", 5},
        {"mujoco:ant", "ant", 5},
        {"mujoco:swimmer", "swimmer", 4},
        {"mujoco:reacher", "reacher", 2},
        {"mujoco:humanoid", "humanoid_truncated_obs", 5},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct opc_env *env = open_env(models[i].spec);
        mjData *data;
        compare_to_golden(models[i].golden, opc_mujoco_inside(env, &data), models[i].frame_skip);
        opc_env_close(env);
    }
}

/* ---- traces ---------------------------------------------------------------------------------- */

/* Row t of the recording against ours: reward, terminated and, where it was kept, observation. */
static void compare_row(const char *what, int t, int obs, char *line, const struct opc_outcome *out)
{
    double want[3 + MAX_OBS] = {0};
    const int n = read_row(line, 3 + MAX_OBS, want);
    const double got[2] = {out->reward, out->terminated};
    assert_int_equal((int)want[0], t);
    /* the reference of humanoid, and of ant_truncated_obs, has fewer or more observations */
    for (int k = 0; k < n - 1 && k < 2 + obs; k++) {
        const double x = k < 2 ? got[k] : out->obs[k - 2], y = want[k + 1];
        if (!(fabs(x - y) <= 1e-9 * (1 + fabs(y))))
            fail_msg("%s: row %d, column %d: %.17g, not %.17g", what, t, k + 1, x, y);
    }
}

static void start_as(struct opc_env *env, const char *golden, const char *start, double *obs)
{
    struct opc_err err = {0};
    double state[MAX_STATE];
    if (strcmp(start, "nominal") == 0) {
        assert_ok(opc_env_start(env, NULL, obs, &err), &err);
        return;
    }
    char *text = read_golden(golden, "perturbed_state.csv"), *rest = text;
    assert_int_equal(read_row(next_line(&rest), MAX_STATE, state), env->state);
    assert_ok(opc_env_start(env, state, obs, &err), &err);
    opc_free(text);
}

static void follow(const char *spec, const char *golden, const char *actions_of, const char *start,
                   int rows)
{
    char what[100], file[40];
    double obs[MAX_OBS], action[MAX_ACT];
    struct opc_env *env = open_env(spec);
    struct opc_err err = {0};
    struct opc_outcome out = {.obs = obs};
    snprintf(what, sizeof what, "%s %s", spec, start);
    snprintf(file, sizeof file, "%s.csv", start);
    char *trace = read_golden(golden, file), *recorded = trace;
    char *text = read_golden(actions_of, strcmp(start, "feedback") == 0 ? "feedback_actions.csv"
                                                                        : "actions.csv");
    char *actions = text;
    assert_non_null(next_line(&recorded));
    start_as(env, actions_of, start, obs);
    compare_row(what, 0, env->obs, next_line(&recorded), &out);
    for (int t = 1; t <= rows; t++) {
        assert_int_equal(read_row(next_line(&actions), MAX_ACT, action), env->act);
        assert_ok(opc_env_step(env, action, &out, &err), &err);
        compare_row(what, t, env->obs, next_line(&recorded), &out);
    }
    opc_free(text);
    opc_free(trace);
    opc_env_close(env);
}

static void traces_follow_the_originals(void **state)
{
    (void)state;
    const struct {
        const char *spec, *golden, *actions_of;
        int rows; /* beyond which rounding errors have grown too much: chaos */
    } traces[] = {
        {"mujoco:inverted_pendulum", "inverted_pendulum", "inverted_pendulum", 200},
        {"mujoco:inverted_double_pendulum", "inverted_double_pendulum", "inverted_double_pendulum",
         50},
        {"mujoco:hopper", "hopper", "hopper", 200},
        {"mujoco:walker2d", "walker2d", "walker2d", 200},
        {"mujoco:half_cheetah", "half_cheetah", "half_cheetah", 200},
        {"mujoco:ant", "ant", "ant", 50},
        {"mujoco:ant?contact=on", "ant_contact", "ant", 50},
        {"mujoco:ant_truncated_obs", "ant", "ant", 50},
        {"mujoco:swimmer", "swimmer", "swimmer", 200},
        {"mujoco:reacher", "reacher", "reacher", 200},
        {"mujoco:humanoid_truncated_obs", "humanoid_truncated_obs", "humanoid_truncated_obs", 200},
        {"mujoco:humanoid", "humanoid_truncated_obs", "humanoid_truncated_obs", 200},
    };
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        follow(traces[i].spec, traces[i].golden, traces[i].actions_of, "nominal", traces[i].rows);
        follow(traces[i].spec, traces[i].golden, traces[i].actions_of, "perturbed", traces[i].rows);
    }
    const char *balanced[] = {"inverted_pendulum", "inverted_double_pendulum"};
    for (int i = 0; i < 2; i++) {
        char spec[60];
        snprintf(spec, sizeof spec, "mujoco:%s", balanced[i]);
        follow(spec, balanced[i], balanced[i], "feedback", 200);
    }
}

/* ---- promises -------------------------------------------------------------------------------- */

static void tasks_keep_every_promise(void **state)
{
    (void)state;
    const char *specs[] = {"mujoco:inverted_pendulum",
                           "mujoco:inverted_pendulum?angle=sincos",
                           "mujoco:inverted_double_pendulum",
                           "mujoco:inverted_double_pendulum?angle=raw",
                           "mujoco:hopper",
                           "mujoco:hopper?angle=sincos",
                           "mujoco:walker2d",
                           "mujoco:half_cheetah",
                           "mujoco:ant",
                           "mujoco:ant_truncated_obs",
                           "mujoco:swimmer",
                           "mujoco:reacher",
                           "mujoco:reacher?angle=raw",
                           "mujoco:humanoid",
                           "mujoco:humanoid_truncated_obs"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct opc_env_report report;
        struct opc_err err = {0};
        assert_ok(opc_env_check(specs[i], &(struct opc_check_plan){.seed = 1, .transitions = 400},
                                &report, &err),
                  &err);
    }
}

enum { STEPS = 60, TRACE = (STEPS + 1) * (MAX_OBS + 2) };

static const char *const every[] = {"mujoco:inverted_pendulum",
                                    "mujoco:inverted_double_pendulum?angle=raw",
                                    "mujoco:hopper",
                                    "mujoco:walker2d",
                                    "mujoco:half_cheetah",
                                    "mujoco:ant?contact=on",
                                    "mujoco:ant_truncated_obs",
                                    "mujoco:swimmer",
                                    "mujoco:reacher",
                                    "mujoco:humanoid?contact=on"};
enum { EVERY = sizeof every / sizeof *every };

static void a_reset_equals_a_fresh_environment(void **state)
{
    (void)state;
    static double fresh[TRACE], used[TRACE];
    for (int i = 0; i < EVERY; i++) {
        struct opc_env *env = open_env(every[i]);
        play(env, 0, STEPS, false, fresh);
        opc_env_close(env);
        env = open_env(every[i]);
        play(env, 1, STEPS, false, used);
        play(env, 0, STEPS, false, used);
        assert_same_bits(fresh, used, (size_t)(STEPS * (env->obs + 2)) * sizeof *used);
        opc_env_close(env);
    }
}

/* What `opc env bench` compares with does the same work. */
static void the_bare_loop_gives_the_same_bits(void **state)
{
    (void)state;
    static double ours[TRACE], bare[TRACE];
    for (int i = 0; i < EVERY; i++) {
        struct opc_env *env = open_env(every[i]);
        play(env, 0, STEPS, false, ours);
        play(env, 0, STEPS, true, bare);
        assert_same_bits(ours, bare, (size_t)(STEPS * (env->obs + 2)) * sizeof *bare);
        opc_env_close(env);
    }
}

static void many_give_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    static double one[(STEPS + 1) * ENGINE_MANY * 45], more[(STEPS + 1) * ENGINE_MANY * 45];
    const char *specs[] = {"mujoco:hopper", "mujoco:ant_truncated_obs",
                           "mujoco:humanoid_truncated_obs"};
    for (int k = 0; k < 3; k++) {
        play_many(specs[k], 1, STEPS, one);
        for (int i = 0; i < 3; i++) {
            memset(more, 0, sizeof more);
            play_many(specs[k], (const int[]){2, 3, 8}[i], STEPS, more);
            assert_same_bits(one, more, sizeof one);
        }
    }
}

static void copies_share_the_model_and_outlive_each_other(void **state)
{
    (void)state;
    struct opc_env *env = open_env("mujoco:swimmer?angle=sincos"), *other;
    struct opc_err err = {0};
    mjData *d1, *d2;
    double obs[MAX_OBS];
    assert_ok(opc_env_another(env, &other, &err), &err);
    assert_ptr_equal(opc_mujoco_inside(env, &d1), opc_mujoco_inside(other, &d2));
    assert_ptr_not_equal(d1, d2);
    assert_int_equal(other->model_hash, env->model_hash);
    opc_env_close(env);
    assert_ok(opc_env_start(other, NULL, obs, &err), &err);
    assert_int_equal(other->obs, 9);
    assert_string_equal(other->model, "swimmer.xml");
    opc_env_close(other);
}

static void environments_open_on_several_threads_at_once(void **state)
{
    (void)state;
    open_at_once(every);
}

/* Off the circle, as models imagine it, MBPO reads the first cosine as it is: 0.6 (0.6 + 1) <= 1.
 */
static void an_imagined_double_pendulum_ends_where_mbpo_says(void **state)
{
    (void)state;
    struct opc_env *env = open_env("mujoco:inverted_double_pendulum");
    float next[2][11] = {{0, 0, 0, 0.6f, 1}, {0, 0, 0, 0.7f, 1}}, s[2][11] = {{0}}, a[2] = {0};
    bool ends[2];
    opc_env_terminal(env, 2, s[0], a, next[0], ends);
    assert_true(ends[0] && !ends[1]);
    opc_env_close(env);
}

/* ---- resets ---------------------------------------------------------------------------------- */

static void resets_have_the_stated_noise(void **state)
{
    (void)state;
    enum { N = 300 };
    const struct {
        const char *spec;
        int nq;
        double q, v;
        bool normal;
    } noise[] = {{"mujoco:inverted_pendulum", 2, 0.01, 0.01, false},
                 {"mujoco:inverted_double_pendulum", 3, 0.1, 0.1, true},
                 {"mujoco:hopper", 6, 0.005, 0.005, false},
                 {"mujoco:hopper?reset_noise=0.1", 6, 0.1, 0.005, false},
                 {"mujoco:walker2d", 9, 0.005, 0.005, false},
                 {"mujoco:half_cheetah", 9, 0.1, 0.1, true},
                 {"mujoco:swimmer", 5, 0.1, 0.1, false},
                 {"mujoco:ant", 15, 0.1, 0.1, true},
                 {"mujoco:ant_truncated_obs", 15, 0.1, 0.1, true},
                 {"mujoco:humanoid", 24, 0.01, 0.01, false},
                 {"mujoco:humanoid_truncated_obs", 24, 0.01, 0.01, false}};
    for (size_t k = 0; k < sizeof noise / sizeof *noise; k++) {
        struct opc_env *env = open_env(noise[k].spec);
        struct opc_err err = {0};
        double obs[MAX_OBS], s0[MAX_STATE], s[MAX_STATE], q2 = 0, v2 = 0, largest = 0;
        const int nq = noise[k].nq, nv = env->state - nq;
        const int turn = nq > nv ? 3 : nq,
                  n = nq > nv ? nq - 4 : nq; /* a quaternion is normalised */
        assert_ok(opc_env_start(env, NULL, obs, &err), &err);
        opc_env_state(env, s0);
        for (uint32_t i = 0; i < N; i++) {
            struct opc_rng rng = opc_rng_stream(4, OPC_USE_RESET, 0, i);
            assert_ok(opc_env_reset(env, &rng, obs, &err), &err);
            opc_env_state(env, s);
            for (int j = 0; j < env->state; j++) {
                const double e = s[j] - s0[j];
                if (j >= turn && j < turn + nq - n)
                    continue;
                *(j < nq ? &q2 : &v2) += e * e;
                if (j < nq || !noise[k].normal)
                    largest = fmax(largest, fabs(e) / (j < nq ? noise[k].q : noise[k].v));
            }
        }
        assert_true(largest <= 1 && largest > 0.98);
        /* standard deviation of U(-c, c) is c / sqrt(3) */
        assert_number_near(sqrt(q2 / (N * n)) / noise[k].q, sqrt(1.0 / 3), 0.03);
        assert_number_near(sqrt(v2 / (N * nv)) / noise[k].v, noise[k].normal ? 1 : sqrt(1.0 / 3),
                           0.07);
        opc_env_close(env);
    }
}

/* The argument's own default changes no bit; a copy has the argument, too; 0.6 is refused. */
static void reset_noise_scales_the_positions_of_the_hopper(void **state)
{
    (void)state;
    const char *specs[] = {"mujoco:hopper", "mujoco:hopper?reset_noise=0.005",
                           "mujoco:hopper?reset_noise=0.05"};
    double s[4][12], obs[11], at_rest[12];
    struct opc_env *env, *copy;
    struct opc_err err = {0};
    for (int k = 0; k < 4; k++) {
        struct opc_rng rng = opc_rng_stream(4, OPC_USE_RESET, 0, 0);
        env = open_env(specs[k < 3 ? k : 2]);
        assert_ok(opc_env_start(env, NULL, obs, &err), &err);
        opc_env_state(env, at_rest);
        assert_ok(opc_env_another(env, &copy, &err), &err);
        assert_ok(opc_env_reset(k < 3 ? env : copy, &rng, obs, &err), &err);
        opc_env_state(k < 3 ? env : copy, s[k]);
        opc_env_close(copy);
        opc_env_close(env);
    }
    assert_same_bits(s[0], s[1], sizeof s[0]);
    assert_same_bits(s[2], s[3], sizeof s[0]);
    for (int j = 0; j < 12; j++) /* ten times as far; velocities are what they were */
        assert_number_near(s[2][j] - at_rest[j], (j < 6 ? 10 : 1) * (s[0][j] - at_rest[j]), 1e-12);
    assert_fails(opc_env_open("mujoco:hopper?reset_noise=0.6", &env, &err), OPC_EUSER, &err,
                 "[0, 0.5]");
    assert_fails(opc_env_open("mujoco:hopper?reset_noise=-1", &env, &err), OPC_EUSER, &err,
                 "reset_noise = -1");
    assert_fails(opc_env_open("mujoco:walker2d?reset_noise=0.1", &env, &err), OPC_EUSER, &err,
                 "reset_noise");
}

static void reachers_target_lies_within_reach_and_at_rest(void **state)
{
    (void)state;
    struct opc_env *env = open_env("mujoco:reacher");
    struct opc_err err = {0};
    double obs[11], s[8], furthest = 0;
    for (uint32_t i = 0; i < 200; i++) {
        struct opc_rng rng = opc_rng_stream(4, OPC_USE_RESET, 0, i);
        assert_ok(opc_env_reset(env, &rng, obs, &err), &err);
        opc_env_state(env, s);
        furthest = fmax(furthest, hypot(s[2], s[3]));
        assert_true(fabs(s[0]) <= 0.1 && fabs(s[1]) <= 0.1);
        assert_true(fabs(s[4]) <= 0.005 && fabs(s[5]) <= 0.005);
        assert_true(s[6] == 0 && s[7] == 0);
    }
    assert_true(furthest < 0.2 && furthest > 0.19);
    opc_env_close(env);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* A state that MuJoCo silently replaces by the initial one: an error, and no data. */
static void a_state_the_engine_gives_up_on_is_a_failed_episode(void **state)
{
    (void)state;
    static double fresh[TRACE], after[TRACE];
    struct opc_env *env = open_env("mujoco:hopper");
    struct opc_err err = {0};
    const double zero[3] = {0}, huge[12] = {0, 1.25, 0, 0, 0, 0, 0, 0, 0, 0, 1e12};
    struct opc_outcome out = {.obs = (double[11]){0}};
    play(env, 0, STEPS, false, fresh);
    assert_ok(opc_env_start(env, huge, out.obs, &err), &err);
    assert_fails(opc_env_step(env, zero, &out, &err), OPC_EENV, &err, "velocity 4");
    assert_mentions(&err, "step 1");
    assert_fails(opc_env_step(env, zero, &out, &err), OPC_EUSER, &err, "reset");
    play(env, 0, STEPS, false, after);
    assert_same_bits(fresh, after, (size_t)(STEPS * 13) * sizeof *after);

    const double nothing[12] = {NAN};
    assert_int_equal(opc_env_start(env, nothing, out.obs, &err), OPC_OK); /* x is not observed */
    assert_int_equal(opc_env_step(env, zero, &out, &err), OPC_EENV);
    assert_ok(opc_env_start(env, NULL, out.obs, &err), &err);
    const double beyond[3] = {1e200, 0, 0};
    assert_int_equal(opc_env_step(env, beyond, &out, &err), OPC_EENV);
    opc_env_close(env);
}

static void give_up(void *text)
{
    mju_error(text);
}

static void a_fatal_error_of_the_engine_is_ours_to_report(void **state)
{
    (void)state;
    struct opc_env *env = open_env("mujoco:swimmer");
    struct opc_err err = {0};
    assert_fails(opc_mujoco_guarded(give_up, "out of cheese", &err), OPC_EENV, &err,
                 "out of cheese");
    double obs[8];
    assert_ok(opc_env_start(env, NULL, obs, &err), &err);
    opc_env_close(env);
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[OPC_PATH];
    struct opc_err err = {0};
    assert_ok(opc_path_join(path, dir, name, &err), &err);
    assert_ok(opc_file_write(path, text, strlen(text), &err), &err);
}

static void models_come_from_OPC_MODELS_when_it_is_set(void **state)
{
    const char *dir = *state;
    struct opc_env *env;
    struct opc_err err = {0};
    char path[OPC_PATH];
    assert_int_equal(setenv("OPC_MODELS", dir, 1), 0);

    assert_ok(opc_path_join(path, dir, "hopper.xml", &err), &err);
    assert_fails(opc_env_open("mujoco:hopper", &env, &err), OPC_EUSER, &err, path);
    assert_mentions(&err, "OPC_MODELS");

    const char *broken[] = {"",
                            "<mujoco>",
                            "not XML at all",
                            "<mujoco><geom/></mujoco>",
                            "<mujoco><worldbody><body/></worldbody></mujoco>",
                            "<mujoco/>"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        put_file(dir, "hopper.xml", broken[i]);
        assert_fails(opc_env_open("mujoco:hopper", &env, &err), OPC_EUSER, &err, "hopper.xml");
        assert_mentions(&err, "OPC_MODELS");
        assert_null(strchr(err.text, '\n'));
    }

    char *text = NULL;
    assert_ok(opc_file_read(OPC_TEST_DIR "/../models/hopper.xml", 1 << 20, &text, NULL, &err),
              &err);
    put_file(dir, "hopper.xml", text);
    assert_ok(opc_env_open("mujoco:hopper", &env, &err), &err);
    const uint32_t same = env->model_hash;
    opc_env_close(env);
    char *gear = strstr(text, "gear=\"200\"");
    assert_non_null(gear);
    gear[6] = '1';
    put_file(dir, "hopper.xml", text);
    assert_ok(opc_env_open("mujoco:hopper", &env, &err), &err);
    assert_int_not_equal(env->model_hash, same);
    opc_env_close(env);
    opc_free(text);
    unsetenv("OPC_MODELS");
    env = open_env("mujoco:hopper");
    assert_int_equal(env->model_hash, same);
    opc_env_close(env);
}

static void the_engine_leaves_no_log_file(void **state)
{
    const char *dir = *state;
    char here[OPC_PATH];
    struct opc_err err = {0};
    const double zero[3] = {0}, huge[12] = {1e12};
    struct opc_outcome out = {.obs = (double[11]){0}};
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir), 0);
    struct opc_env *env = open_env("mujoco:hopper");
    assert_ok(opc_env_start(env, huge, out.obs, &err), &err);
    assert_int_equal(opc_env_step(env, zero, &out, &err), OPC_EENV);
    opc_env_close(env);
    assert_false(opc_file_exists("MUJOCO_LOG.TXT"));
    assert_int_equal(chdir(here), 0);
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(open_and_copy, "mujoco:reacher");
    assert_survives_lack_of_memory(open_and_copy, "mujoco:reacher?angle=raw");
}

static void arguments_of_the_tasks_are_explained(void **state)
{
    (void)state;
    struct opc_env *env;
    struct opc_err err = {0};
    assert_fails(opc_env_open("hopper", &env, &err), OPC_EUSER, &err, "mujoco:hopper");
    assert_fails(opc_env_open("mujoco:waker2d", &env, &err), OPC_EUSER, &err, "mujoco:walker2d");
    assert_fails(opc_env_open("mujoco:hopper?contact=on", &env, &err), OPC_EUSER, &err,
                 "'contact'");
    assert_fails(opc_env_open("mujoco:ant?angle=raw", &env, &err), OPC_EUSER, &err, "no angle");
    assert_int_equal(opc_env_open("mujoco:ant?contact=maybe", &env, &err), OPC_EUSER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_models_equal_the_originals),
        cmocka_unit_test(traces_follow_the_originals),
        cmocka_unit_test(tasks_keep_every_promise),
        cmocka_unit_test(a_reset_equals_a_fresh_environment),
        cmocka_unit_test(the_bare_loop_gives_the_same_bits),
        cmocka_unit_test(many_give_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(copies_share_the_model_and_outlive_each_other),
        cmocka_unit_test(environments_open_on_several_threads_at_once),
        cmocka_unit_test(resets_have_the_stated_noise),
        cmocka_unit_test(reset_noise_scales_the_positions_of_the_hopper),
        cmocka_unit_test(reachers_target_lies_within_reach_and_at_rest),
        cmocka_unit_test(a_state_the_engine_gives_up_on_is_a_failed_episode),
        cmocka_unit_test(a_fatal_error_of_the_engine_is_ours_to_report),
        cmocka_unit_test_setup_teardown(models_come_from_OPC_MODELS_when_it_is_set, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(the_engine_leaves_no_log_file, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(an_imagined_double_pendulum_ends_where_mbpo_says),
        cmocka_unit_test(lack_of_memory_is_an_error),
        cmocka_unit_test(arguments_of_the_tasks_are_explained),
    };
    unsetenv("OPC_MODELS");
    return cmocka_run_group_tests_name("env_mujoco", tests, NULL, NULL);
}
#endif
