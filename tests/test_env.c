/* SPDX-License-Identifier: MIT */
#include "env/check.h"
#include "env/many.h"
#include "opc/env.h"
#include "opc/mem.h"
#include "test.h"

/* Two numbers. */
#define assert_number_near(a, b, tolerance)                                                        \
    assert_doubles_near(&(const double){a}, &(const double){b}, 1, tolerance)

static struct opc_env *open_env(const char *spec)
{
    struct opc_env *env = NULL;
    struct opc_err err = {0};
    assert_ok(opc_env_open(spec, &env, &err), &err);
    return env;
}

static void start(struct opc_env *env, const double *state, double *obs)
{
    struct opc_err err = {0};
    assert_ok(opc_env_start(env, state, obs, &err), &err);
}

static struct opc_outcome step(struct opc_env *env, double action, double *obs)
{
    struct opc_err err = {0};
    struct opc_outcome out = {.obs = obs};
    assert_ok(opc_env_step(env, &action, &out, &err), &err);
    return out;
}

/* ---- the analytic tasks ---------------------------------------------------------------------- */

/* J(theta) of a = theta s, the paper's example with A = B = 1, sigma = 0.05, T = 60. */
static void return_of_linear1d_is_T_times_J(void **state)
{
    (void)state;
    const double theta[] = {-1.9, -1.5, -1.3, -1.2, -1.0, -0.7, -0.5};
    const double J[] = {0.472240, 0.912715, 0.945962, 0.958349, 0.983333, 0.945962, 0.912715};
    struct opc_env *env = open_env("linear1d");
    for (int k = 0; k < 7; k++) {
        struct opc_outcome out = {0};
        double s, sum = 0;
        int steps = 0;
        start(env, NULL, &s);
        while (!out.truncated) {
            out = step(env, theta[k] * s, &s);
            sum += out.reward;
            steps++;
        }
        assert_int_equal(steps, 60);
        assert_number_near(sum / steps, J[k], 1e-6);
    }
    opc_env_close(env);
}

/* The model of Figure 7 is the same system with A = 1.5: its curve is shifted by -0.5. */
static void linear1d_takes_A_and_B(void **state)
{
    (void)state;
    struct opc_env *env = open_env("linear1d?A=1.5&B=-2");
    double s;
    start(env, NULL, &s);
    step(env, 0.25, &s);
    assert_number_near(s, 1.5 - 0.5, 0);
    opc_env_close(env);
}

static double position_after(struct opc_env *env, const double gain[2], int steps)
{
    double s[2];
    start(env, NULL, s);
    for (int t = 0; t < steps; t++)
        step(env, gain[0] * s[0] + gain[1] * s[1], s);
    return s[0];
}

static void double_integrator_without_noise_follows_figure_1b(void **state)
{
    (void)state;
    const double on[2] = {-1, -1.5}, off[2] = {-0.6, -1.4};
    struct opc_env *env = open_env("double_integrator");
    assert_number_near(position_after(env, on, 30), 0.0529, 5e-5);
    assert_number_near(position_after(env, on, 60), -0.0138, 5e-5);
    assert_number_near(position_after(env, off, 30), 0.2696, 5e-5);
    assert_number_near(position_after(env, off, 60), 0.0218, 5e-5);
    opc_env_close(env);
}

static void process_noise_has_the_stated_spread(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct opc_env *env = open_env("double_integrator?noise=2");
    struct opc_err err = {0};
    double sum[2] = {0}, squares[2] = {0}, s[2];
    for (uint32_t i = 0; i < N; i++) {
        struct opc_rng rng = opc_rng_stream(7, OPC_USE_RESET, 0, i);
        assert_ok(opc_env_reset(env, &rng, s, &err), &err);
        step(env, 0, s);
        const double w[2] = {s[0] - 1, s[1]};
        for (int k = 0; k < 2; k++) {
            sum[k] += w[k];
            squares[k] += w[k] * w[k];
        }
    }
    const double spread[2] = {0.01, 0.1};
    for (int k = 0; k < 2; k++) {
        assert_number_near(sum[k] / N, 0, 4 * spread[k] / sqrt(N));
        assert_number_near(sqrt(squares[k] / N), spread[k], 0.02 * spread[k]);
    }
    opc_env_close(env);
}

/* (1 + X |a|) times the spread, and to the bit the usual noise where a is 0. */
static void process_noise_grows_with_the_action(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct opc_env *env = open_env("double_integrator?action_noise=3"),
                   *usual = open_env("double_integrator");
    struct opc_err err = {0};
    double squares[2] = {0}, s[2], t[2];
    for (uint32_t i = 0; i < N; i++) {
        struct opc_rng rng = opc_rng_stream(7, OPC_USE_RESET, 0, i), same = rng;
        assert_ok(opc_env_reset(env, &rng, s, &err), &err);
        assert_ok(opc_env_reset(usual, &same, t, &err), &err);
        step(env, 0, s);
        step(usual, 0, t);
        assert_same_bits(s, t, sizeof s);
        /* The noise of the second step, at a = -0.5. */
        const double x = s[0] + 0.1 * s[1] - 0.005 * 0.5, v = s[1] - 0.1 * 0.5;
        step(env, -0.5, s);
        squares[0] += (s[0] - x) * (s[0] - x);
        squares[1] += (s[1] - v) * (s[1] - v);
    }
    for (int k = 0; k < 2; k++) {
        const double spread = 2.5 * (const double[]){0.005, 0.05}[k];
        assert_number_near(sqrt(squares[k] / N), spread, 0.02 * spread);
    }
    opc_env_close(env);
    opc_env_close(usual);
}

/* One stream for several episodes: no reset repeats what the steps before it drew. */
static void episodes_of_one_stream_are_different(void **state)
{
    (void)state;
    struct opc_env *env = open_env("double_integrator");
    struct opc_err err = {0};
    struct opc_rng rng = opc_rng_stream(7, OPC_USE_RESET, 0, 0), same = rng;
    double first[2], second[2], again[2];
    assert_ok(opc_env_reset(env, &rng, first, &err), &err);
    step(env, 0, first);
    assert_ok(opc_env_reset(env, &rng, second, &err), &err);
    step(env, 0, second);
    assert_ok(opc_env_reset(env, &same, again, &err), &err);
    step(env, 0, again);
    assert_true(first[0] != second[0] && first[1] != second[1]);
    assert_same_bits(first, again, sizeof first);
    opc_env_close(env);
}

static void pendulum_moves_by_its_equation(void **state)
{
    (void)state;
    struct opc_env *env = open_env("pendulum");
    double o[3], s[2];
    start(env, (const double[]){0.1, 0.5}, o);
    struct opc_outcome out = step(env, 1, o);
    const double omega = 0.5 + (15 * sin(0.1) + 3) * 0.05, theta = 0.1 + omega * 0.05;
    assert_number_near(o[0], cos(theta), 1e-15);
    assert_number_near(o[1], sin(theta), 1e-15);
    assert_number_near(o[2], omega, 1e-15);
    assert_number_near(out.reward, -(0.01 + 0.025 + 0.001), 1e-12);
    opc_env_state(env, s);
    assert_number_near(s[0], theta, 1e-15);

    /* Hanging it stays; more torque than there is counts as what there is. */
    start(env, NULL, o);
    out = step(env, 0, o);
    assert_number_near(o[2], 0, 1e-12);
    assert_number_near(out.reward, -9.8696044, 1e-6);
    start(env, NULL, o);
    step(env, 100, o);
    assert_number_near(o[2], 3 * 2 * 0.05, 1e-12);
    opc_env_close(env);
}

/* Both Lagrange equations of the undriven form hold for the accelerations of one step:
 * M x'' + m l (theta'' cos - theta'^2 sin) = F and l (4/3 theta'' - ...) = g sin - x'' cos. */
static void cartpole_obeys_its_equations_of_motion(void **state)
{
    (void)state;
    const double m = 0.1, M = 1.1, l = 0.5, g = 9.8, dt = 0.02;
    struct opc_env *env = open_env("cartpole");
    struct opc_rng rng = opc_rng_stream(3, OPC_USE_TEST, 0, 0);
    for (int i = 0; i < 100; i++) {
        double s[4], o[4];
        for (int k = 0; k < 4; k++)
            s[k] = 4 * opc_rng_unit_double(&rng) - 2;
        const double a = 2 * opc_rng_unit_double(&rng) - 1;
        start(env, s, o);
        step(env, a, o);
        const double x2 = (o[2] - s[2]) / dt, theta2 = (o[3] - s[3]) / dt;
        const double cosine = cos(s[1]), sine = sin(s[1]);
        assert_number_near(M * x2 + m * l * (theta2 * cosine - s[3] * s[3] * sine), 10 * a, 1e-9);
        assert_number_near(4.0 / 3 * l * theta2 + x2 * cosine, g * sine, 1e-9);
        assert_number_near(o[0], s[0] + dt * s[2], 1e-15);
        assert_number_near(o[1], s[1] + dt * s[3], 1e-15);
    }
    opc_env_close(env);
}

static void analytic_tasks_keep_every_promise(void **state)
{
    (void)state;
    const char *specs[] = {"linear1d", "double_integrator",    "double_integrator?noise=0",
                           "pendulum", "pendulum?angle=raw",   "pendulum?angle=sincos",
                           "cartpole", "cartpole?angle=sincos"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct opc_env_report report;
        struct opc_err err = {0};
        assert_ok(opc_env_check(specs[i], &(struct opc_check_plan){.seed = 1, .transitions = 3000},
                                &report, &err),
                  &err);
        assert_int_equal(report.transitions, 3000);
        assert_true(report.known_reward && report.reward_gap < 1e-6);
    }
}

/* ---- the interface --------------------------------------------------------------------------- */

static void scale_leads_from_one_range_to_the_other_and_clips(void **state)
{
    (void)state;
    struct opc_env *env = open_env("pendulum");
    const float a[] = {-1, -0.5f, 0, 0.25f, 1, 1.5f, -7};
    const double want[] = {-2, -1, 0, 0.5, 2, 2, -2};
    for (int i = 0; i < 7; i++) {
        double got;
        opc_env_scale(env, &a[i], &got);
        assert_number_near(got, want[i], 0);
    }
    opc_env_close(env);
}

static void time_limit_truncates_and_does_not_terminate(void **state)
{
    (void)state;
    struct opc_env *env = open_env("cartpole");
    struct opc_outcome out = {0};
    double o[4];
    int ended = 0;
    start(env, NULL, o); /* upright, at rest: with no force it stays, up to the limit */
    for (int t = 1; t <= 1000; t++) {
        out = step(env, 0, o);
        assert_false(out.terminated);
        ended += out.truncated;
    }
    assert_int_equal(ended, 1);
    assert_true(out.truncated);
    opc_env_close(env);
}

static void step_goes_on_past_the_end_of_the_task(void **state)
{
    (void)state;
    struct opc_env *env = open_env("cartpole");
    double o[4];
    start(env, (const double[]){0, 0.19, 0, 2}, o);
    for (int t = 0; t < 20; t++) {
        const bool terminated = step(env, 0, o).terminated;
        assert_int_equal(terminated, fabs(o[1]) > 0.2);
    }
    assert_true(o[1] > 0.2);
    opc_env_close(env);
}

static void an_action_that_is_no_number_is_refused(void **state)
{
    (void)state;
    struct opc_env *env = open_env("cartpole");
    struct opc_err err = {0};
    double o[4];
    struct opc_outcome out = {.obs = o};
    assert_fails(opc_env_step(env, (const double[]){0}, &out, &err), OPC_EUSER, &err, "reset");
    start(env, NULL, o);
    step(env, 0, o);
    assert_fails(opc_env_step(env, (const double[]){NAN}, &out, &err), OPC_EDIVERGED, &err, "nan");
    assert_mentions(&err, "step 2");
    assert_fails(opc_env_step(env, (const double[]){0}, &out, &err), OPC_EUSER, &err, "reset");
    start(env, NULL, o);
    assert_int_equal(opc_env_step(env, (const double[]){INFINITY}, &out, &err), OPC_EDIVERGED);
    opc_env_close(env);
}

static void a_state_that_is_no_number_is_no_start(void **state)
{
    (void)state;
    struct opc_env *env = open_env("linear1d");
    struct opc_err err = {0};
    double o;
    assert_fails(opc_env_start(env, (const double[]){NAN}, &o, &err), OPC_EENV, &err,
                 "entry 0 of the observation");
    opc_env_close(env);
}

static void wrong_specs_are_explained(void **state)
{
    (void)state;
    const struct {
        const char *spec, *key;
    } wrong[] = {
        {"cartpoel", "cartpole"},
        {"tetris", "opc env list"},
        {"", "''"},
        {"cartpole?mass=1", "'mass'"},
        {"linear1d?C=1", "A, B, angle"},
        {"linear1d?A=1&A=1", "twice"},
        {"linear1d?A", "key=value"},
        {"linear1d?=1", "'=1'"},
        {"linear1d?A=11", "[-10, 10]"},
        {"linear1d?angle=raw", "no angle"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct opc_env *env;
        struct opc_err err = {0};
        assert_fails(opc_env_open(wrong[i].spec, &env, &err), OPC_EUSER, &err, wrong[i].key);
    }
    struct opc_env *env;
    struct opc_err err = {0};
    assert_int_equal(opc_env_open("linear1d?A=one", &env, &err), OPC_EUSER);
    assert_int_equal(opc_env_open("cartpole?angle=degrees", &env, &err), OPC_EUSER);
    char longest[400];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(opc_env_open(longest, &env, &err), OPC_EUSER);
    memcpy(longest, "linear1d?", 9);
    assert_int_equal(opc_env_open(longest, &env, &err), OPC_EUSER);
}

#if !OPC_WITH_MUJOCO
static void a_build_without_an_engine_names_the_package(void **state)
{
    (void)state;
    struct opc_env *env;
    struct opc_err err = {0};
    assert_fails(opc_env_open("mujoco:hopper", &env, &err), OPC_EABSENT, &err, "libmujoco-dev");
    assert_mentions(&err, "OPC_WITH_MUJOCO");
}
#endif

static void every_type_is_listed_once_and_has_a_page(void **state)
{
    (void)state;
    const struct opc_env_type *type;
    int n = 0;
    for (; (type = opc_env_type_at(n)); n++) {
        const struct opc_env_page *p = type->page;
        assert_true(p && p->summary && p->observation && p->action && p->reward && p->termination &&
                    p->reset);
        for (int i = 0; i < n; i++)
            assert_string_not_equal(type->name, opc_env_type_at(i)->name);
    }
    assert_int_equal(n, 4 + (OPC_WITH_MUJOCO ? 11 : 0) + (OPC_WITH_BULLET ? 11 : 0));
    assert_null(opc_env_type_at(-1));
    assert_null(opc_env_type_at(n + 1));
}

/* ---- the angle wrapper ----------------------------------------------------------------------- */

static void sincos_puts_cosine_and_sine_in_the_angles_place(void **state)
{
    (void)state;
    struct opc_env *env = open_env("cartpole?angle=sincos");
    double o[5];
    assert_int_equal(env->obs, 5);
    start(env, (const double[]){1, 0.1, 3, 4}, o);
    assert_doubles_near(o, ((double[]){1, cos(0.1), sin(0.1), 3, 4}), 5, 0);
    assert_int_equal(env->n_angles, 1);
    assert_int_equal(env->angles[0].at, 1);
    assert_int_equal(env->angles[0].sine, 2);
    opc_env_close(env);
}

static void raw_puts_the_angle_in_the_pairs_place(void **state)
{
    (void)state;
    struct opc_env *env = open_env("pendulum?angle=raw");
    double o[2];
    assert_int_equal(env->obs, 2);
    start(env, (const double[]){2.5, -1}, o);
    assert_doubles_near(o, ((double[]){2.5, -1}), 2, 1e-15);
    start(env, (const double[]){2.5 + 2 * 3.14159265358979323846, -1}, o);
    assert_doubles_near(o, ((double[]){2.5, -1}), 2, 1e-14);
    opc_env_close(env);
}

static void asking_for_what_is_there_changes_nothing(void **state)
{
    (void)state;
    struct opc_env *env = open_env("pendulum?angle=sincos");
    assert_int_equal(env->obs, 3);
    assert_null(env->inner);
    opc_env_close(env);
}

/* Imagined pairs need not lie on the unit circle: only their direction counts. */
static void termination_is_asked_on_the_restored_angle(void **state)
{
    (void)state;
    enum { N = 5000 }; /* more than one block */
    struct opc_env *env = open_env("cartpole?angle=sincos");
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 0, 0);
    float *next = opc_alloc(N * 5, sizeof *next);
    bool *out = opc_alloc(N, sizeof *out), *want = opc_alloc(N, sizeof *want);
    const float a[N] = {0};
    for (int i = 0; i < N; i++) {
        const double angle = 0.8 * opc_rng_unit_double(&rng) - 0.4;
        const double length = 0.1 + 3 * opc_rng_unit_double(&rng);
        const float x = 5 * opc_rng_unit(&rng) - 2.5f;
        const float row[5] = {x, (float)(length * cos(angle)), (float)(length * sin(angle)), 9, -9};
        memcpy(next + 5 * i, row, sizeof row);
        want[i] = fabs(angle) > 0.2 || fabs((double)x) > 2.4;
    }
    opc_env_terminal(env, N, next, a, next, out);
    assert_memory_equal(out, want, N * sizeof *out);
    opc_free(next);
    opc_free(out);
    opc_free(want);
    opc_env_close(env);
}

static void known_reward_is_asked_on_the_restored_angle(void **state)
{
    (void)state;
    struct opc_env *raw = open_env("pendulum?angle=raw"), *pair = open_env("pendulum");
    const float s[] = {1, 2}, a[] = {0.5f};
    const float s_pair[] = {cosf(1), sinf(1), 2};
    float r, r_pair;
    assert_true(opc_env_reward(raw, 1, s, a, s, &r));
    assert_true(opc_env_reward(pair, 1, s_pair, a, s_pair, &r_pair));
    assert_number_near((double)r, -(1 + 0.4 + 0.001), 1e-6);
    assert_number_near((double)r, (double)r_pair, 1e-6);
    opc_env_close(raw);
    opc_env_close(pair);
}

/* ---- a type of our own, with faults that opc_env_check must find ----------------------------- */

struct strange {
    struct opc_env env;
    double x;
    int t; /* steps of the episode */
};

enum fault {
    NONE,
    REMEMBERS,
    DISAGREES,
    NOT_FINITE,
    FAILS,
    PAYS_OTHERWISE,
    BAD_RANGE,
    ENDS_FIRST,
    PAYS_FIRST
};

static const double strange_low[] = {-1}, strange_high[] = {1}, strange_worse[] = {INFINITY};
static const struct opc_env_arg strange_args[] = {
    {"fault", "none|remembers|disagrees|not_finite|fails|pays|range|ends_first|pays_first", "none",
     0, 0, "what is wrong"},
    {"speed", NULL, "0.01", 0, 1, "of the walk"},
    {0},
};

static int strange_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                        struct opc_err *err)
{
    (void)arg;
    struct strange *e = opc_alloc(1, sizeof *e);
    if (!e)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", type->name);
    e->env = (struct opc_env){.obs = 1,
                              .act = 1,
                              .steps = 200,
                              .low = strange_low,
                              .high = arg[0] == BAD_RANGE ? strange_worse : strange_high};
    *out = &e->env;
    return OPC_OK;
}

static int strange_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    (void)err, (void)rng;
    struct strange *e = (struct strange *)env;
    /* One that does not forget a long episode, though it does the first, short ones. */
    obs[0] = e->x = env->arg[0] == REMEMBERS && e->t > 1 ? 0.01 : 0;
    e->t = 0;
    return OPC_OK;
}

static int strange_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                        struct opc_err *err)
{
    struct strange *e = (struct strange *)env;
    e->x += env->arg[1] + 0 * action[0];
    e->t++;
    out->obs[0] = e->x;
    out->reward = 1;
    out->terminated = e->x > 1;
    if (env->arg[0] == NOT_FINITE && e->x > 0.505)
        out->reward = INFINITY;
    if (env->arg[0] == FAILS && e->x > 0.505)
        return opc_fail(err, OPC_EENV, "it fell apart");
    return OPC_OK;
}

static void strange_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                             const float *next, bool *out)
{
    (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = (double)next[i] > (env->arg[0] == DISAGREES ? 0.99 : 1) &&
                 !(env->arg[0] == ENDS_FIRST && i > 0);
}

static void strange_reward(const struct opc_env *env, int n, const float *s, const float *a,
                           const float *next, float *out)
{
    (void)s, (void)a, (void)next;
    for (int i = 0; i < n; i++)
        out[i] = env->arg[0] == PAYS_OTHERWISE || (env->arg[0] == PAYS_FIRST && i > 0) ? 2 : 1;
}

static void strange_close(struct opc_env *env)
{
    opc_free(env);
}

static const struct opc_env_type strange = {
    .name = "strange",
    .args = strange_args,
    .open = strange_open,
    .reset = strange_reset,
    .step = strange_step,
    .close = strange_close,
    .terminal = strange_terminal,
    .reward = strange_reward,
};

static void check_finds_what_is_wrong(void **state)
{
    (void)state;
    const struct {
        const char *args, *key;
    } cases[] = {
        {NULL, NULL},
        {"fault=remembers", "fresh"},
        {"fault=disagrees&speed=0.007", "transition 142:"},
        {"fault=not_finite", "not finite"},
        {"fault=fails", "it fell apart"},
        {"fault=pays", "transition 1:"},
        {"fault=range", "[-1, inf]"},
        /* only of many at once */
        {"fault=ends_first", "terminal says 1 of a transition alone"},
        {"fault=pays_first", "row 1 of 32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct opc_env *env;
        struct opc_env_report report;
        struct opc_err err = {0};
        assert_ok(opc_env_open_type(&strange, cases[i].args, &env, &err), &err);
        const int code = opc_env_check_open(
            env, &(struct opc_check_plan){.seed = 1, .transitions = 1000}, &report, &err);
        if (cases[i].key)
            assert_fails(code, OPC_EENV, &err, cases[i].key);
        else
            assert_ok(code, &err);
        opc_env_close(env);
    }
}

static void a_type_without_a_settable_state_says_so(void **state)
{
    (void)state;
    struct opc_env *env;
    struct opc_err err = {0};
    double o;
    assert_ok(opc_env_open_type(&strange, "", &env, &err), &err);
    assert_fails(opc_env_start(env, NULL, &o, &err), OPC_EUSER, &err, "state");
    opc_env_close(env);
}

/* ---- many ------------------------------------------------------------------------------------ */

enum { MANY = 13, STEPS = 40 };

/* Everything that comes out of MANY environments, played by `threads`. */
static void play_many(const char *spec, int threads, double *all)
{
    struct opc_pool *pool;
    struct opc_many *many;
    struct opc_err err = {0};
    struct opc_rng rng[MANY], noise = opc_rng_stream(5, OPC_USE_RANDOM, 0, 0);
    struct opc_outcome out[MANY];
    double action[MANY];
    bool active[MANY];
    assert_ok(opc_pool_create(threads, &pool, &err), &err);
    assert_ok(opc_many_open(spec, MANY, pool, &many, &err), &err);
    const int obs = opc_many_env(many, 0)->obs;
    assert_int_equal(opc_many_count(many), MANY);
    for (int i = 0; i < MANY; i++) {
        rng[i] = opc_rng_stream(5, OPC_USE_RESET, 0, (uint32_t)i);
        out[i].obs = all + i * obs;
    }
    assert_ok(opc_many_reset(many, NULL, rng, all, &err), &err);
    for (int t = 1; t <= STEPS; t++) {
        memcpy(all + t * MANY * obs, all + (t - 1) * MANY * obs,
               (size_t)(MANY * obs) * sizeof *all);
        for (int i = 0; i < MANY; i++) {
            action[i] = 2 * opc_rng_unit_double(&noise) - 1;
            active[i] = (i + t) % 3 > 0;
            out[i].obs = all + (t * MANY + i) * obs;
        }
        assert_ok(opc_many_step(many, active, action, out, &err), &err);
    }
    opc_many_close(many);
    opc_pool_destroy(pool);
}

static void many_give_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    static double one[(STEPS + 1) * MANY * 5], more[(STEPS + 1) * MANY * 5];
    const char *specs[] = {"double_integrator", "cartpole?angle=sincos"};
    for (int k = 0; k < 2; k++) {
        play_many(specs[k], 1, one);
        for (int i = 0; i < 3; i++) {
            memset(more, 0, sizeof more);
            play_many(specs[k], (const int[]){2, 3, 8}[i], more);
            assert_same_bits(one, more, sizeof one);
        }
    }
}

static void many_report_the_first_that_failed(void **state)
{
    (void)state;
    struct opc_many *many;
    struct opc_err err = {0};
    struct opc_rng rng[3] = {{0}};
    double obs[3 * 4], action[3] = {0, NAN, NAN};
    struct opc_outcome out[3] = {{.obs = obs}, {.obs = obs + 4}, {.obs = obs + 8}};
    assert_ok(opc_many_open("cartpole", 3, NULL, &many, &err), &err);
    assert_ok(opc_many_reset(many, NULL, rng, obs, &err), &err);
    assert_fails(opc_many_step(many, NULL, action, out, &err), OPC_EDIVERGED, &err,
                 "environment 1");
    assert_mentions(&err, "nan");
    opc_many_close(many);
    assert_int_equal(opc_many_open("cartpole", 0, NULL, &many, &err), OPC_EUSER);
    assert_int_equal(opc_many_open("cartpool", 2, NULL, &many, &err), OPC_EUSER);
}

/* ---- a batch of episodes --------------------------------------------------------------------- */

enum { EPISODES = 7, LIMIT = 30 };

/* Episode e is cut after LIMIT - e steps; its actions are drawn from the stream it was reset from.
 */
struct batch_log {
    int observed[EPISODES]; /* calls of observe for it */
    double last[EPISODES][4], total[EPISODES];
    int stop_at; /* observe fails in this episode; -1: in none */
};

static struct opc_rng log_stream(void *ctx, int episode)
{
    (void)ctx;
    return opc_rng_stream(5, OPC_USE_RESET, 0, (uint32_t)episode);
}

static int log_act(void *ctx, struct opc_env_batch *b, struct opc_err *err)
{
    (void)ctx;
    (void)err;
    for (int i = 0; i < b->n; i++)
        if (b->active[i])
            b->action[i] = (float)(2 * opc_rng_unit_double(&b->rng[i]) - 1);
    return OPC_OK;
}

static int log_observe(void *ctx, const struct opc_env_batch *b, int row, bool *more,
                       struct opc_err *err)
{
    struct batch_log *log = ctx;
    const int e = b->first + row;
    assert_int_equal(log->observed[e]++, b->length[row]);
    assert_true(b->length[row] > 0 || b->outcome[row].reward == 0);
    log->total[e] += b->outcome[row].reward;
    memcpy(log->last[e], b->state + row * b->obs, sizeof log->last[e]);
    *more = !b->outcome[row].terminated && b->length[row] < LIMIT - e;
    return e == log->stop_at ? opc_fail(err, OPC_EENV, "stop") : OPC_OK;
}

static int play_batches(int rows, struct batch_log *log, struct opc_err *err)
{
    const struct opc_env_player player = {log, log_stream, log_act, log_observe};
    struct opc_many *many;
    struct opc_env_batch batch;
    int code = opc_many_open("cartpole", rows, NULL, &many, err);
    if (code)
        return code;
    code = opc_env_batch_create(many, &batch, err);
    if (!code) {
        for (int first = 0; first < EPISODES && !code; first += batch.n)
            code = opc_env_batch_play(&batch, first, EPISODES, &player, err);
        opc_env_batch_free(&batch);
    }
    opc_many_close(many);
    return code;
}

static void an_episode_is_the_same_whatever_batch_it_is_played_in(void **state)
{
    (void)state;
    struct opc_err err;
    struct batch_log alone = {.stop_at = -1};
    assert_ok(play_batches(1, &alone, &err), &err);
    for (int rows = 2; rows <= EPISODES + 2; rows++) {
        struct batch_log together = {.stop_at = -1};
        assert_ok(play_batches(rows, &together, &err), &err);
        assert_same_bits(&together, &alone, sizeof alone);
    }
}

static void a_player_that_fails_ends_the_batch(void **state)
{
    (void)state;
    struct opc_err err;
    struct batch_log log = {.stop_at = 2};
    assert_fails(play_batches(EPISODES, &log, &err), OPC_EENV, &err, "stop");
    assert_int_equal(log.observed[1], 1);
    assert_int_equal(log.observed[3], 0);
}

static int play_and_close(void *ctx, struct opc_err *err)
{
    (void)ctx;
    return play_batches(3, &(struct batch_log){.stop_at = -1}, err);
}

/* ---- lack of memory -------------------------------------------------------------------------- */

static int open_and_close(void *spec, struct opc_err *err)
{
    struct opc_env *env;
    const int code = opc_env_open(spec, &env, err);
    if (!code)
        opc_env_close(env);
    return code;
}

static int open_another(void *spec, struct opc_err *err)
{
    struct opc_env *env, *other;
    int code = opc_env_open(spec, &env, err);
    if (code)
        return code;
    code = opc_env_another(env, &other, err);
    if (!code)
        opc_env_close(other);
    opc_env_close(env);
    return code;
}

static int open_type(void *type, struct opc_err *err)
{
    struct opc_env *env;
    const int code = opc_env_open_type(type, "fault=none", &env, err);
    if (!code)
        opc_env_close(env);
    return code;
}

static int open_many(void *spec, struct opc_err *err)
{
    struct opc_many *many;
    const int code = opc_many_open(spec, 3, NULL, &many, err);
    if (!code)
        opc_many_close(many);
    return code;
}

static int check(void *spec, struct opc_err *err)
{
    struct opc_env_report report;
    return opc_env_check(spec, &(struct opc_check_plan){.seed = 1, .transitions = 10}, &report,
                         err);
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    char *specs[] = {"linear1d", "double_integrator",     "pendulum",
                     "cartpole", "cartpole?angle=sincos", "pendulum?angle=raw"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        assert_survives_lack_of_memory(open_and_close, specs[i]);
        assert_survives_lack_of_memory(open_another, specs[i]);
        assert_survives_lack_of_memory(open_many, specs[i]);
        assert_survives_lack_of_memory(check, specs[i]);
    }
    assert_survives_lack_of_memory(open_type, (void *)(uintptr_t)&strange);
    assert_survives_lack_of_memory(play_and_close, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(return_of_linear1d_is_T_times_J),
        cmocka_unit_test(linear1d_takes_A_and_B),
        cmocka_unit_test(double_integrator_without_noise_follows_figure_1b),
        cmocka_unit_test(process_noise_has_the_stated_spread),
        cmocka_unit_test(process_noise_grows_with_the_action),
        cmocka_unit_test(episodes_of_one_stream_are_different),
        cmocka_unit_test(pendulum_moves_by_its_equation),
        cmocka_unit_test(cartpole_obeys_its_equations_of_motion),
        cmocka_unit_test(analytic_tasks_keep_every_promise),
        cmocka_unit_test(scale_leads_from_one_range_to_the_other_and_clips),
        cmocka_unit_test(time_limit_truncates_and_does_not_terminate),
        cmocka_unit_test(step_goes_on_past_the_end_of_the_task),
        cmocka_unit_test(an_action_that_is_no_number_is_refused),
        cmocka_unit_test(a_state_that_is_no_number_is_no_start),
        cmocka_unit_test(wrong_specs_are_explained),
#if !OPC_WITH_MUJOCO
        cmocka_unit_test(a_build_without_an_engine_names_the_package),
#endif
        cmocka_unit_test(every_type_is_listed_once_and_has_a_page),
        cmocka_unit_test(sincos_puts_cosine_and_sine_in_the_angles_place),
        cmocka_unit_test(raw_puts_the_angle_in_the_pairs_place),
        cmocka_unit_test(asking_for_what_is_there_changes_nothing),
        cmocka_unit_test(termination_is_asked_on_the_restored_angle),
        cmocka_unit_test(known_reward_is_asked_on_the_restored_angle),
        cmocka_unit_test(check_finds_what_is_wrong),
        cmocka_unit_test(a_type_without_a_settable_state_says_so),
        cmocka_unit_test(many_give_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(many_report_the_first_that_failed),
        cmocka_unit_test(an_episode_is_the_same_whatever_batch_it_is_played_in),
        cmocka_unit_test(a_player_that_fails_ends_the_batch),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("env", tests, NULL, NULL);
}
