/* SPDX-License-Identifier: MIT */
/* Pictures of environments. EGL's and OSMesa's own leaks are not ours to report, and the leak
 * checker does not survive EGL's threads, so it is off in this program. */
#include "env/view.h"
#include "test.h"

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

enum { WIDTH = 64, HEIGHT = 48, BYTES = WIDTH * HEIGHT * 3 };

static struct opc_env *open_started(const char *spec, double *obs)
{
    struct opc_env *env = NULL;
    struct opc_err err = {0};
    assert_ok(opc_env_open(spec, &env, &err), &err);
    assert_ok(opc_env_start(env, NULL, obs, &err), &err);
    return env;
}

#if OPC_WITH_MUJOCO
static int colours(const unsigned char *rgb)
{
    int n = 0;
    for (int i = 3; i < BYTES; i += 3)
        n += memcmp(rgb + i, rgb + i - 3, 3) != 0;
    return n;
}

static void a_picture_shows_the_environment_as_it_is_now(void **state)
{
    (void)state;
    static unsigned char before[BYTES], again[BYTES], after[BYTES];
    const char *specs[] = {"mujoco:hopper", "mujoco:reacher?angle=raw", "pendulum",
                           "cartpole?angle=sincos"};
    for (int k = 0; k < 4; k++) {
        struct opc_view *view = NULL;
        struct opc_err err = {0};
        double obs[12];
        const double push[3] = {1, -1, 1};
        struct opc_outcome out = {.obs = obs};
        struct opc_env *env = open_started(specs[k], obs);
        assert_ok(opc_view_open(env, WIDTH, HEIGHT, &view, &err), &err);
        assert_ok(opc_view_draw(view, before, &err), &err);
        assert_ok(opc_view_draw(view, again, &err), &err);
        assert_true(colours(before) > 200);
        assert_same_bits(before, again, BYTES);
        for (int t = 0; t < 20; t++)
            assert_ok(opc_env_step(env, push, &out, &err), &err);
        assert_ok(opc_view_draw(view, after, &err), &err);
        assert_true(memcmp(before, after, BYTES) != 0);
        opc_view_close(view);
        opc_env_close(env);
    }
}

/* The lagging poses that rewards are made of stay as they are. */
static void drawing_does_not_disturb_the_environment(void **state)
{
    (void)state;
    static unsigned char rgb[BYTES];
    static double seen[2][30][12];
    for (int drawn = 0; drawn < 2; drawn++) {
        struct opc_view *view = NULL;
        struct opc_err err = {0};
        double obs[12];
        struct opc_env *env = open_started("mujoco:reacher", obs);
        if (drawn)
            assert_ok(opc_view_open(env, WIDTH, HEIGHT, &view, &err), &err);
        for (int t = 0; t < 30; t++) {
            struct opc_outcome out = {.obs = seen[drawn][t]};
            assert_ok(opc_env_step(env, (const double[]){0.5, -1}, &out, &err), &err);
            seen[drawn][t][11] = out.reward;
            if (drawn)
                assert_ok(opc_view_draw(view, rgb, &err), &err);
        }
        opc_view_close(view);
        opc_env_close(env);
    }
    assert_same_bits(seen[0], seen[1], sizeof seen[0]);
}

static void what_cannot_be_drawn_is_said(void **state)
{
    (void)state;
    struct opc_view *view;
    struct opc_err err = {0};
    double obs[12];
    struct opc_env *env = open_started("linear1d", obs);
    assert_fails(opc_view_open(env, WIDTH, HEIGHT, &view, &err), OPC_EUSER, &err, "linear1d");
    opc_env_close(env);
    env = open_started("pendulum", obs);
    assert_fails(opc_view_open(env, 10, HEIGHT, &view, &err), OPC_EUSER, &err, "10 x 48");
    setenv("OPC_GL", "none", 1);
    assert_fails(opc_view_open(env, WIDTH, HEIGHT, &view, &err), OPC_EABSENT, &err, "OPC_GL=none");
    assert_mentions(&err, "libosmesa6");
    unsetenv("OPC_GL");
    opc_env_close(env);
}
#else
static void a_build_without_MuJoCo_draws_nothing_and_says_so(void **state)
{
    (void)state;
    struct opc_view *view;
    struct opc_err err = {0};
    double obs[12];
    struct opc_env *env = open_started("pendulum", obs);
    assert_fails(opc_view_open(env, WIDTH, HEIGHT, &view, &err), OPC_EABSENT, &err,
                 "libmujoco-dev");
    assert_mentions(&err, "OPC_WITH_MUJOCO");
    opc_env_close(env);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if OPC_WITH_MUJOCO
        cmocka_unit_test(a_picture_shows_the_environment_as_it_is_now),
        cmocka_unit_test(drawing_does_not_disturb_the_environment),
        cmocka_unit_test(what_cannot_be_drawn_is_said),
#else
        cmocka_unit_test(a_build_without_MuJoCo_draws_nothing_and_says_so),
#endif
    };
    unsetenv("OPC_MODELS");
    unsetenv("OPC_GL");
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
