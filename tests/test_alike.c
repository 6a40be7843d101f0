/* SPDX-License-Identifier: MIT */
/* How many seeds a claim {alike: [a, b], margin: 0.15} needs: two methods that are truly equal, on
 * two tasks, judged by the rule of learning_contrast.c. docs/exhibits.md has the numbers, which
 *
 *     OPC_SIMULATIONS=500 build/tests/test_alike
 *
 * prints. The test itself simulates less, and wants what the document says. */
#include "study/curves/learning_claims.h"

#include "base/text.h"
#include "num/normal.h"

#include "test.h"

enum { PANELS = 2, MOST = 80, SPREADS = 4, COUNTS = 5 };

static const double SPREAD[SPREADS] = {0.05, 0.1, 0.15, 0.25}; /* between seeds, of the mean */
static const int SEEDS[COUNTS] = {5, 10, 20, 40, 80};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* n scores around 1, in ascending order. */
static void draw(struct opc_rng *rng, int n, double spread, double *v)
{
    float z[MOST];
    opc_rng_normals(rng, n, z);
    for (int i = 0; i < n; i++)
        v[i] = 1 + spread * (double)z[i];
    qsort(v, (size_t)n, sizeof *v, by_value);
}

/* The shares of simulations in which the claim is supported, and in which it is not. */
struct shares {
    double supported, refuted;
};

static struct shares simulate(int simulations, double spread, int n)
{
    int supported = 0, refuted = 0;
    for (int s = 0; s < simulations; s++) {
        struct opc_rng rng = opc_rng_stream(22, OPC_USE_STUDY, (uint32_t)n, (uint32_t)s);
        enum opc_verdict all = OPC_VERDICT_SUPPORTED;
        for (int p = 0; p < PANELS; p++) {
            double score[2][MOST];
            struct opc_claim_likeness one;
            struct opc_err err;
            for (int k = 0; k < 2; k++)
                draw(&rng, n, spread, score[k]);
            assert_ok(opc_claim_compare((const int[]){n, n},
                                        (const double *const[]){score[0], score[1]}, 0.15, &rng,
                                        &one, &err),
                      &err);
            all = opc_claim_join(all, one.verdict);
        }
        supported += all == OPC_VERDICT_SUPPORTED;
        refuted += all == OPC_VERDICT_NOT_SUPPORTED;
    }
    return (struct shares){(double)supported / simulations, (double)refuted / simulations};
}

static void equal_methods_are_alike_if_their_seeds_are(void **state)
{
    (void)state;
    enum { FEW = 100 };
    assert_true(simulate(FEW, 0.05, 5).supported > 0.88);
    assert_true(simulate(FEW, 0.1, 5).supported < 0.25);
    const double ten = simulate(FEW, 0.1, 10).supported;
    assert_true(ten > 0.4 && ten < 0.75);
    assert_true(simulate(FEW, 0.1, 20).supported > 0.9);
    assert_true(simulate(FEW, 0.25, 10).supported < 0.05);
}

/* Not supported by chance: at most as often as the interval of 95 % and two panels allow. */
static void equal_methods_are_seldom_found_different(void **state)
{
    (void)state;
    assert_true(simulate(100, 0.25, 5).refuted <= 0.1);
}

/* In place of the tests, on demand: all of it. */
static void print_all(int simulations)
{
    printf("spread: share of %d simulations supported, not supported\n", simulations);
    for (int i = 0; i < SPREADS; i++)
        for (int k = 0; k < COUNTS; k++) {
            const struct shares s = simulate(simulations, SPREAD[i], SEEDS[k]);
            printf("%3.0f %%, %2d seeds: %.2f, %.2f\n", 100 * SPREAD[i], SEEDS[k], s.supported,
                   s.refuted);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_methods_are_alike_if_their_seeds_are),
        cmocka_unit_test(equal_methods_are_seldom_found_different),
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
