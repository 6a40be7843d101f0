/* SPDX-License-Identifier: MIT */
/* How often claims {best: [a, b]} and {spread: [a, b]} are wrong by chance, and how often they find
 * what there is: two methods of four settings and five seeds, judged by the rules of
 * learning_best.c and learning_contrast.c. docs/exhibits.md has the numbers, which
 *
 *     OPC_SIMULATIONS=2000 build/tests/test_levels
 *
 * prints. The tests themselves simulate less, and want what the document says. */
#include "study/curves/learning_claims.h"

#include "base/text.h"
#include "num/normal.h"

#include "test.h"

enum { SETTINGS = 4, SEEDS = 5, RUNS = SETTINGS * SEEDS };

/* The shares of simulations in which a claim is supported, and in which it is not. */
struct shares {
    double supported, refuted;
};

static void count(enum opc_verdict verdict, int simulations, struct shares *shares)
{
    shares->supported += (verdict == OPC_VERDICT_SUPPORTED) / (double)simulations;
    shares->refuted += (verdict == OPC_VERDICT_NOT_SUPPORTED) / (double)simulations;
}

/* The scores of a setting in ascending order, with the seed of each. */
static void draw(struct opc_rng *rng, double mean, double noise, int *seed, double *score)
{
    float z[SEEDS];
    opc_rng_normals(rng, SEEDS, z);
    for (int s = 0; s < SEEDS; s++) {
        const double here = mean + noise * (double)z[s];
        int i = s;
        for (; i > 0 && score[i - 1] > here; i--) {
            score[i] = score[i - 1];
            seed[i] = seed[i - 1];
        }
        score[i] = here;
        seed[i] = s;
    }
}

/* ---- best ------------------------------------------------------------------------------------ */

/* Two methods whose settings are `gap` apart, and the first above the second by `above`, all in
 * standard deviations between seeds. */
struct best_case {
    double gap, above;
};
static const struct best_case BEST[] = {{0, 0}, {0.5, 0}, {1, 0}, {2, 0},
                                        {0, 3}, {0.5, 3}, {2, 3}, {0.5, 2}};

static struct shares simulate_best(int simulations, struct best_case of)
{
    static const int FIRST[SETTINGS + 1] = {0, SEEDS, 2 * SEEDS, 3 * SEEDS, 4 * SEEDS};
    const struct opc_learning complete = {0};
    struct shares shares = {0};
    for (int i = 0; i < simulations; i++) {
        struct opc_rng rng = opc_rng_stream(23, OPC_USE_STUDY, 1, (uint32_t)i);
        int seed[2][RUNS];
        double score[2][RUNS];
        struct opc_claim_method method[2];
        struct opc_claim_best best;
        struct opc_err err;
        char more[2 * OPC_CLAIM_TEXT];
        for (int side = 0; side < 2; side++) {
            for (int k = 0; k < SETTINGS; k++)
                draw(&rng, (side == 0 ? of.above : 0) - k * of.gap, 1, seed[side] + FIRST[k],
                     score[side] + FIRST[k]);
            method[side] =
                (struct opc_claim_method){SETTINGS, SEEDS, RUNS, FIRST, seed[side], score[side]};
        }
        assert_ok(opc_claim_compare_best(method, &rng, &best, &err), &err);
        count(opc_claim_decide_odds(&complete, &best.odds, more), simulations, &shares);
    }
    return shares;
}

/* Judged as if scores with settings that were chosen on each other's seeds were independent, equal
 * methods were decided in one case of five. A hundred simulations are off by a few percent. */
static void equal_methods_are_seldom_told_apart_by_their_best_settings(void **state)
{
    (void)state;
    for (int i = 0; BEST[i].above == 0; i++) {
        const struct shares s = simulate_best(100, BEST[i]);
        assert_true(s.supported + s.refuted <= 0.08);
    }
}

static void a_best_setting_far_above_is_found(void **state)
{
    (void)state;
    const struct shares s = simulate_best(50, (struct best_case){0.5, 3});
    assert_true(s.supported > 0.8 && s.refuted == 0);
}

/* One seed chooses for no other. */
static void without_a_second_seed_there_is_no_best_setting(void **state)
{
    (void)state;
    const int first[] = {0, 1}, seed[] = {0};
    const double score[] = {7};
    const struct opc_claim_method one = {1, 1, 1, first, seed, score};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_STUDY, 0, 0);
    struct opc_claim_best best;
    struct opc_err err;
    assert_ok(
        opc_claim_compare_best((const struct opc_claim_method[]){one, one}, &rng, &best, &err),
        &err);
    assert_true(isnan(best.odds.p.middle) && best.runs[0] == 0 && best.iqm[0] == 7);
}

static int compare_best(void *ctx, struct opc_err *err)
{
    const int first[] = {0, 2}, seed[] = {0, 1};
    const double score[] = {1, 2};
    const struct opc_claim_method one = {1, 2, 2, first, seed, score};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_STUDY, 0, 0);
    struct opc_claim_best best;
    (void)ctx;
    return opc_claim_compare_best((const struct opc_claim_method[]){one, one}, &rng, &best, err);
}

static void best_settings_survive_lack_of_memory(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(compare_best, NULL);
}

/* ---- spread ---------------------------------------------------------------------------------- */

/* The standard deviation of the means of each method's settings, and that between its seeds. */
struct spread_case {
    double spread[2], noise[2];
};
static const struct spread_case SPREAD[] = {
    {{0, 0}, {0.1, 0.3}},      {{0, 0}, {0.05, 0.1}},     {{0, 0}, {0.05, 0.3}},
    {{0, 0}, {0.1, 0.1}},      {{0.1, 0.1}, {0.1, 0.3}},  {{0.1, 0.1}, {0.05, 0.1}},
    {{0.1, 0.1}, {0.05, 0.3}}, {{0.1, 0.1}, {0.1, 0.1}},  {{0.2, 0.2}, {0.1, 0.3}},
    {{0.2, 0.2}, {0.05, 0.1}}, {{0.2, 0.2}, {0.05, 0.3}}, {{0.2, 0.2}, {0.1, 0.1}},
    {{0.1, 0.5}, {0.1, 0.1}},  {{0.1, 0.3}, {0.1, 0.1}},  {{0.1, 0.5}, {0.1, 0.3}},
};

static struct shares simulate_spread(int simulations, struct spread_case of)
{
    /* Evenly spaced, with a standard deviation of 1. */
    static const double MEAN[SETTINGS] = {-1.161895003862225, -0.3872983346207417,
                                          0.3872983346207417, 1.161895003862225};
    static const int N[SETTINGS] = {SEEDS, SEEDS, SEEDS, SEEDS};
    struct shares shares = {0};
    for (int i = 0; i < simulations; i++) {
        struct opc_rng rng = opc_rng_stream(23, OPC_USE_STUDY, 2, (uint32_t)i);
        int seed[SEEDS];
        double score[2][RUNS];
        const double *v[2][SETTINGS];
        struct opc_interval d;
        struct opc_err err;
        for (int side = 0; side < 2; side++)
            for (int k = 0; k < SETTINGS; k++) {
                draw(&rng, of.spread[side] * MEAN[k], of.noise[side], seed,
                     score[side] + SEEDS * k);
                v[side][k] = score[side] + SEEDS * k;
            }
        assert_ok(opc_iqm_spread(&(struct opc_scores){SETTINGS, N, v[0]},
                                 &(struct opc_scores){SETTINGS, N, v[1]}, 0, &rng, &d, &err),
                  &err);
        count(d.low > 0    ? OPC_VERDICT_SUPPORTED
              : d.high < 0 ? OPC_VERDICT_NOT_SUPPORTED
                           : OPC_VERDICT_UNDECIDED,
              simulations, &shares);
    }
    return shares;
}

/* With the noise of the means in it, the spread of the second method looked larger in one case of
 * three. */
static void seeds_that_differ_more_are_no_spread(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct shares s = simulate_spread(50, SPREAD[i]);
        assert_true(s.supported + s.refuted <= 0.05);
    }
}

static void settings_that_differ_more_are(void **state)
{
    (void)state;
    const struct shares s = simulate_spread(50, (struct spread_case){{0.1, 0.5}, {0.1, 0.1}});
    assert_true(s.supported > 0.9 && s.refuted == 0);
}

/* In place of the tests, on demand: all of it. */
static void print_all(int simulations)
{
    printf("best: share of %d simulations supported, not supported\n", simulations);
    for (size_t i = 0; i < sizeof BEST / sizeof *BEST; i++) {
        const struct shares s = simulate_best(simulations, BEST[i]);
        printf("gap %.1f, above by %.1f: %.3f, %.3f\n", BEST[i].gap, BEST[i].above, s.supported,
               s.refuted);
        fflush(stdout);
    }
    printf("spread: share of %d simulations supported, not supported\n", simulations);
    for (size_t i = 0; i < sizeof SPREAD / sizeof *SPREAD; i++) {
        const struct spread_case *c = &SPREAD[i];
        const struct shares s = simulate_spread(simulations, *c);
        printf("spread %.1f and %.1f, seeds %.2f and %.2f: %.3f, %.3f\n", c->spread[0],
               c->spread[1], c->noise[0], c->noise[1], s.supported, s.refuted);
        fflush(stdout);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_methods_are_seldom_told_apart_by_their_best_settings),
        cmocka_unit_test(a_best_setting_far_above_is_found),
        cmocka_unit_test(without_a_second_seed_there_is_no_best_setting),
        cmocka_unit_test(best_settings_survive_lack_of_memory),
        cmocka_unit_test(seeds_that_differ_more_are_no_spread),
        cmocka_unit_test(settings_that_differ_more_are),
    };
    const char *asked = getenv("OPC_SIMULATIONS");
    int simulations;
    if (!asked)
        return cmocka_run_group_tests(tests, NULL, NULL);
    if (!opc_parse_int(asked, &simulations) || simulations < 1) {
        fprintf(stderr, "OPC_SIMULATIONS = %s is not a number from 1 on\n", asked);
        return 2;
    }
    print_all(simulations);
    return 0;
}
