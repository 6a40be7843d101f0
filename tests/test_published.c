/* SPDX-License-Identifier: MIT */
#include "study/curves/published.h"

#include "opc/transition_type.h"
#include "runs.h"
#include "study/curves/curves_draw.h"

static const char CURVES[] = "source,env,method,env_steps,mean,std,seeds\n"
                             "them,Ant,MBPO,5000,1,1,5\n"
                             "them,Hopper,MBPO,5000,50,10,5\n"
                             "them,Hopper,MBPO,20000,100,20,5\n"
                             "us,Hopper,\"MBPO rerun, \"\"half\"\"\",5000,7,0,1\n"
                             "us,Hopper,\"MBPO rerun, \"\"half\"\"\",90000,7,0,1\n"
                             "them,Hopper,MBPO,40000,500,100,4\n"
                             "them,Hopper,MBPO,60000,700,50,5\n"
                             "them,Walker2d,SAC,5000,2,1,5\n";
static const char RERUN[] = "MBPO rerun, \"half\"";

/* DIR/curves.csv, good until the next call. */
static const char *put_curves(void **state, const char *text)
{
    static char path[700];
    struct opc_err err;
    snprintf(path, sizeof path, "%s/curves.csv", (const char *)*state);
    assert_ok(opc_file_write(path, text, strlen(text), &err), &err);
    return path;
}

static struct opc_published *read_published(void **state, const char *method)
{
    struct opc_published *p;
    struct opc_err err;
    const char *path = put_curves(state, CURVES);
    assert_ok(opc_published_read(path, "Hopper", 1, &method, &p, &err), &err);
    return p;
}

/* One run has 100 more with every 10000 steps, after 2000 random ones; the other always 310, after
 * 3000. */
static int make_runs(void **state)
{
    static const double RISING[] = {100, 200, 300, 400, 500}, LEVEL[] = {310, 310, 310, 310, 310};
    if (test_make_dir(state))
        return -1;
    test_make_run_after(*state, "runs/1", (const char *[]){"train.seed=1", NULL}, 2000, 10000, 5,
                        RISING);
    test_make_run_after(*state, "runs/2", (const char *[]){"train.seed=2", NULL}, 3000, 10000, 5,
                        LEVEL);
    return 0;
}

static struct opc_curves *read_runs(void **state)
{
    static const struct opc_curves_plan PLAN = {
        .of = "eval_return", .over = "total_steps", .smooth = 3};
    struct opc_curves *c;
    struct opc_err err;
    char path[700], *dir = path;
    snprintf(path, sizeof path, "%s/runs", (const char *)*state);
    assert_ok(opc_curves_read(1, &dir, &PLAN, &c, &err), &err);
    return c;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void the_curve_of_a_task_and_a_method_is_read(void **state)
{
    struct opc_published *p = read_published(state, "MBPO");
    assert_string_equal(p->method, "MBPO");
    assert_string_equal(p->source, "them");
    assert_int_equal(p->n, 4);
    assert_doubles_near(p->steps, ((double[]){5000, 20000, 40000, 60000}), 4, 0);
    assert_doubles_near(p->mean, ((double[]){50, 100, 500, 700}), 4, 0);
    assert_doubles_near(p->std, ((double[]){10, 20, 100, 50}), 4, 0);
    assert_int_equal(p->seeds[2], 4);
    assert_int_equal(p->min_seeds, 4);
    opc_published_free(p);
    p = read_published(state, RERUN); /* quoted in the file */
    assert_int_equal(p->n, 2);
    assert_string_equal(p->source, "us");
    opc_published_free(p);
}

static void refused(void **state, const char *text, const char *task, const char *method,
                    const char *key)
{
    struct opc_published *p;
    struct opc_err err;
    const char *path = put_curves(state, text);
    assert_fails(opc_published_read(path, task, 1, &method, &p, &err), OPC_EUSER, &err, key);
    assert_mentions(&err, path);
}

#define HEAD "source,env,method,env_steps,mean,std,seeds\n"

static void what_the_file_lacks_is_said_with_what_it_has(void **state)
{
    refused(state, CURVES, "Hoper", "MBPO", "Ant, Hopper, Walker2d");
    refused(state, CURVES, "Hopper", "SAC", "MBPO, MBPO rerun, \"half\"");
    refused(state, "source,env,method,steps\n", "Hopper", "MBPO", "'env_steps'");
    refused(state, HEAD ",a,b,5000,x,1,1\n", "a", "b", "row 1 has mean = 'x'");
    refused(state, HEAD ",a,b,5000,1,-1,1\n", "a", "b", "row 1 has std = '-1'");
    refused(state, HEAD ",a,b,5000,1,1,0\n", "a", "b", "row 1 has seeds = '0'");
    refused(state, HEAD ",a,b,5000,1,1,5\n,a,b,5000,1,1,5\n", "a", "b",
            "row 2 has env_steps = 5000");
}

static void a_long_list_is_cut_but_counted(void **state)
{
    struct opc_text text = {0};
    struct opc_published *p;
    struct opc_err err;
    opc_text_add(&text, HEAD);
    for (int i = 0; i < 40; i++)
        opc_text_addf(&text, ",task-number-%02d,m,1,1,1,1\n", i);
    /* 14 letters and ", " each: 15 of them fit into 240 */
    assert_fails(opc_published_read(put_curves(state, opc_text_get(&text)), "x", 1,
                                    (const char *[]){"m"}, &p, &err),
                 OPC_EUSER, &err, "task-number-14 and 25 more");
    opc_text_free(&text);
}

/* ---- drawing --------------------------------------------------------------------------------- */

struct drawn {
    struct opc_curves *curves;
    struct opc_published *published;
    struct opc_curves_figure figure;
    const struct opc_panel *panel; /* the only one */
};

/* The runs with MBPO behind them, or with `methods` == 2 its rerun, too. */
static struct drawn draw_methods(void **state, int methods)
{
    struct drawn d = {.curves = read_runs(state), .published = read_published(state, "MBPO")};
    if (methods == 2)
        d.published->next = read_published(state, RERUN);
    const struct opc_curves_style style = {
        .x_label = "steps", .y_label = "return", .published = d.published};
    struct opc_err err;
    assert_ok(opc_curves_figure(&style, d.curves, &d.figure, &err), &err);
    d.panel = &d.figure.panel[0];
    return d;
}

static struct drawn draw(void **state)
{
    return draw_methods(state, 1);
}

static void free_drawn(struct drawn *d)
{
    opc_curves_figure_free(&d->figure);
    opc_published_free(d->published);
    opc_curves_free(d->curves);
}

/* Up to 53000, where the longer run ends: 13/20 of the way from 500 +- 100 to 700 +- 50. */
static void it_is_drawn_behind_the_runs_and_as_far_as_they_are(void **state)
{
    struct drawn d = draw(state);
    assert_int_equal(d.panel->layers, 4);
    const struct opc_figure_layer *band = &d.panel->layer[0], *line = &d.panel->layer[1];
    assert_int_equal(band->mark, OPC_PLOT_BAND);
    assert_int_equal(line->mark, OPC_PLOT_LINE);
    assert_string_equal(band->label, "MBPO, published");
    assert_string_equal(line->label, "MBPO, published");
    assert_int_equal(line->colour, OPC_COLOUR_GREY);
    assert_int_equal(band->colour, OPC_COLOUR_GREY);
    assert_true(line->dash > 0);
    assert_int_equal(line->n, 4);
    assert_int_equal(band->n, 4);
    assert_doubles_near(line->x, ((double[]){5000, 20000, 40000, 53000}), 4, 0);
    assert_doubles_near(line->y, ((double[]){50, 100, 500, 630}), 4, 1e-9);
    assert_doubles_near(band->x, line->x, 4, 0);
    assert_doubles_near(band->low, ((double[]){40, 80, 400, 562.5}), 4, 1e-9);
    assert_doubles_near(band->high, ((double[]){60, 120, 600, 697.5}), 4, 1e-9);
    /* then the runs, as without it */
    assert_int_equal(d.panel->layer[2].mark, OPC_PLOT_BAND);
    assert_int_equal(d.panel->layer[3].mark, OPC_PLOT_LINE);
    assert_string_equal(d.panel->layer[3].label, "OPC (2 runs)");
    assert_int_equal(d.panel->layer[3].colour,
                     OPC_COLOUR_RGB | (int)opc_transition_type(2)->colour);
    assert_true(d.panel->x.min == 0 && d.panel->x.max == 53000);
    free_drawn(&d);
}

static void it_ends_where_it_ends_if_the_runs_are_longer(void **state)
{
    static const double VALUE[] = {1, 2};
    test_make_run_after(*state, "runs/3", (const char *[]){"train.seed=3", NULL}, 0, 50000, 2,
                        VALUE);
    test_make_run_after(*state, "runs/4", (const char *[]){"train.seed=4", NULL}, 0, 50000, 2,
                        VALUE);
    struct drawn d = draw(state);
    assert_true(d.panel->x.max == 100000);
    assert_int_equal(d.panel->layer[1].n, 4);
    assert_true(d.panel->layer[1].x[3] == 60000 && d.panel->layer[1].y[3] == 700);
    free_drawn(&d);
}

/* Bands of both, lines of both, then the runs. The first looks as it does alone. */
static void several_methods_have_a_shade_a_dash_and_a_name_each(void **state)
{
    struct drawn one = draw(state), two = draw_methods(state, 2);
    assert_int_equal(two.panel->layers, 6);
    const struct opc_figure_layer *layer = two.panel->layer;
    assert_int_equal(layer[0].mark, OPC_PLOT_BAND);
    assert_int_equal(layer[1].mark, OPC_PLOT_BAND);
    assert_int_equal(layer[2].mark, OPC_PLOT_LINE);
    assert_int_equal(layer[3].mark, OPC_PLOT_LINE);
    for (int k = 0; k < 2; k++) { /* the band of a method is its line's */
        assert_string_equal(layer[k].label, layer[2 + k].label);
        assert_int_equal(layer[k].colour, layer[2 + k].colour);
    }
    assert_string_equal(layer[2].label, "MBPO, published");
    assert_int_equal(layer[2].colour, one.panel->layer[1].colour);
    assert_int_equal(layer[2].dash, one.panel->layer[1].dash);
    assert_doubles_near(layer[2].y, one.panel->layer[1].y, layer[2].n, 0);
    assert_string_equal(layer[3].label, "MBPO rerun, \"half\", published");
    assert_true(layer[3].colour != layer[2].colour && layer[3].dash != layer[2].dash);
    assert_true(layer[3].dash > 0);
    assert_doubles_near(layer[3].y, ((double[]){7, 7}), 2, 0);
    assert_string_equal(layer[5].label, "OPC (2 runs)");
    free_drawn(&two);
    free_drawn(&one);
}

static void a_method_is_named_once_and_they_are_a_few(void **state)
{
    const char *path = put_curves(state, CURVES), *nine[9];
    struct opc_published *p;
    struct opc_err err;
    assert_fails(
        opc_published_read(path, "Hopper", 3, (const char *[]){"MBPO", RERUN, "MBPO"}, &p, &err),
        OPC_EUSER, &err, "'MBPO' is named twice");
    assert_fails(opc_published_read(path, "Hopper", 2, (const char *[]){"MBPO", "SAC"}, &p, &err),
                 OPC_EUSER, &err, "'SAC'");
    for (int i = 0; i < 9; i++)
        nine[i] = "MBPO";
    assert_fails(opc_published_read(path, "Hopper", 9, nine, &p, &err), OPC_EUSER, &err, "most 8");
}

static void runs_it_cannot_be_put_beside_are_refused(void **state)
{
    static const double VALUE[] = {1, 2};
    struct opc_published *p = read_published(state, "MBPO");
    const struct opc_curves_style style = {.x_label = "steps", .y_label = "return", .published = p};
    struct opc_curves_figure f;
    struct opc_err err;
    char path[700], *dir = path;
    snprintf(path, sizeof path, "%s/short", (const char *)*state);
    test_make_run_after(*state, "short", (const char *[]){NULL}, 0, 2000, 2, VALUE);
    struct opc_curves *c;
    assert_ok(opc_curves_read(1, &dir,
                              &(struct opc_curves_plan){
                                  .of = "eval_return", .over = "total_steps", .smooth = 1},
                              &c, &err),
              &err);
    assert_fails(opc_curves_figure(&style, c, &f, &err), OPC_EUSER, &err, "5000");
    assert_mentions(&err, "4000");
    assert_mentions(&err, "'MBPO'");
    struct opc_table *t;
    assert_fails(opc_published_table(p, c, NULL, &t, &err), OPC_EUSER, &err, "4000");
    assert_mentions(&err, "5000 to 60000");
    opc_curves_free(c);

    test_make_run_after(*state, "runs/3", (const char *[]){"env.name=pendulum", NULL}, 0, 2000, 2,
                        VALUE);
    c = read_runs(state);
    assert_fails(opc_curves_figure(&style, c, &f, &err), OPC_EUSER, &err, "(cartpole, pendulum)");
    assert_fails(opc_published_table(p, c, NULL, &t, &err), OPC_EUSER, &err,
                 "(OPC on cartpole, OPC on pendulum)");
    opc_curves_free(c);
    opc_published_free(p);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define COLUMNS                                                                                    \
    "task,method,total_steps,runs,mean,min,max,published_mean,published_std,published_seeds,"      \
    "deviations\n"
#define ROW "cartpole,OPC,"

static void assert_table(void **state, const char *method, const char *want)
{
    struct opc_curves *c = read_runs(state);
    struct opc_published *p = read_published(state, method);
    struct opc_table *t;
    struct opc_err err;
    assert_ok(opc_published_table(p, c, NULL, &t, &err), &err);
    test_assert_csv(*state, t, want);
    opc_published_free(p);
    opc_curves_free(c);
}

/* At 10000 no run has been evaluated yet, and 75000 they do not reach; the shorter one ends at
 * 52000.
 *
 *     steps   rising  level   published                                  deviations
 *     25000   230     310     100 + 400 / 4 = 200, 20 + 80 / 4 = 40      (270 - 200) / 40
 *     50000   480     310     500 + 200 / 2 = 600, 100 - 50 / 2 = 75     (395 - 600) / 75
 *     52000   500     310     500 + 120     = 620, 100 - 30     = 70     (405 - 620) / 70
 *
 * Smoothing changes none of it. */
static void runs_stand_beside_the_curve_at_steps_that_both_cover(void **state)
{
    assert_table(state, "MBPO",
                 COLUMNS ROW "25000,2,270.00,230.00,310.00,200.00,40.00,4,1.75\n" ROW
                             "50000,2,395.00,310.00,480.00,600.00,75.00,4,-2.73\n" ROW
                             "52000,2,405.00,310.00,500.00,620.00,70.00,4,-3.07\n");
}

static void without_a_deviation_there_is_no_number_of_them(void **state)
{
    assert_table(state, RERUN,
                 COLUMNS ROW "25000,2,270.00,230.00,310.00,7.00,0.00,1,\n" ROW
                             "50000,2,395.00,310.00,480.00,7.00,0.00,1,\n" ROW
                             "52000,2,405.00,310.00,500.00,7.00,0.00,1,\n");
}

/* A table of several tasks is made line by line; making a line again changes nothing else. */
static void rows_of_other_lines_are_kept(void **state)
{
    static const char KEPT[] = COLUMNS "cartpole,MBPO,10000,1,2.00,2.00,2.00,3.00,4.00,5,-0.25\n"
                                       "pendulum,OPC,10000,1,2.00,2.00,2.00,3.00,,1,\n";
    static const char OLD[] = ROW "17,1,2.00,2.00,2.00,3.00,4.00,5,-0.25\n";
    static const char NEW[] = ROW "25000,2,270.00,230.00,310.00,200.00,40.00,4,1.75\n" ROW
                                  "50000,2,395.00,310.00,480.00,600.00,75.00,4,-2.73\n" ROW
                                  "52000,2,405.00,310.00,500.00,620.00,70.00,4,-3.07\n";
    struct opc_curves *c = read_runs(state);
    struct opc_published *p = read_published(state, "MBPO");
    struct opc_table *before, *t;
    struct opc_err err;
    char path[700], bytes[2000];
    snprintf(path, sizeof path, "%s/before.csv", (const char *)*state);
    snprintf(bytes, sizeof bytes, "%s%s", KEPT, OLD);
    assert_ok(opc_file_write(path, bytes, strlen(bytes), &err), &err);
    assert_ok(opc_table_read(path, &before, &err), &err);
    assert_true(opc_published_is_table(before));
    assert_ok(opc_published_table(p, c, before, &t, &err), &err);
    snprintf(bytes, sizeof bytes, "%s%s", KEPT, NEW);
    test_assert_csv(*state, t, bytes);
    opc_table_free(before);
    assert_ok(opc_table_create("task,method,total_steps", &before, &err), &err);
    assert_false(opc_published_is_table(before));
    opc_table_free(before);
    opc_published_free(p);
    opc_curves_free(c);
}

/* Evaluations at exactly 10000 and 90000, the last one beyond the published curve, and nothing in a
 * third run. At 10000: 50 + 50 / 3 and 10 + 10 / 3; at 25000 the run is 15/80 on its way. */
static void values_at_evaluations_are_those_of_the_evaluations(void **state)
{
    static const double VALUE[] = {70, 870};
    char path[700];
    struct opc_err err;
    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/runs/%d/metrics.csv", (const char *)*state, i);
        assert_ok(opc_file_write(path, "env_steps,total_steps,eval_return\n", 34, &err), &err);
    }
    test_make_run_after(*state, "runs/3", (const char *[]){"train.seed=3", NULL}, -70000, 80000, 2,
                        VALUE);
    assert_table(state, "MBPO",
                 COLUMNS ROW "10000,1,70.00,70.00,70.00,66.67,13.33,5,0.25\n" ROW
                             "25000,1,220.00,220.00,220.00,200.00,40.00,4,0.50\n" ROW
                             "50000,1,470.00,470.00,470.00,600.00,75.00,4,-1.73\n");
}

/* ---------------------------------------------------------------------------------------------- */

struct faulty {
    const char *path;
    const struct opc_curves *curves;
};

static int read_and_compare(void *ctx, struct opc_err *err)
{
    const struct faulty *f = ctx;
    struct opc_published *p;
    struct opc_table *t;
    struct opc_curves_figure figure;
    struct opc_text text = {0};
    int code = opc_published_read(f->path, "Hopper", 2, (const char *[]){"MBPO", RERUN}, &p, err);
    if (code)
        return code;
    const struct opc_curves_style style = {.x_label = "steps", .y_label = "return", .published = p};
    code = opc_curves_figure(&style, f->curves, &figure, err);
    if (!code) {
        opc_curves_figure_free(&figure);
        code = opc_published_table(p, f->curves, NULL, &t, err);
    }
    if (!code) {
        opc_table_print(t, &text);
        code = opc_text_check(&text, err);
        opc_text_free(&text);
        opc_table_free(t);
    }
    opc_published_free(p);
    return code;
}

static int read_in_vain(void *ctx, struct opc_err *err)
{
    const struct faulty *f = ctx;
    struct opc_published *p;
    const int code = opc_published_read(f->path, "Hopper", 1, (const char *[]){"SAC"}, &p, err);
    return code == OPC_EUSER ? OPC_OK : code;
}

static void lack_of_memory_is_survived(void **state)
{
    struct opc_curves *c = read_runs(state);
    struct faulty f = {put_curves(state, CURVES), c};
    struct opc_err err;
    assert_ok(read_and_compare(&f, &err), &err);
    assert_survives_lack_of_memory(read_and_compare, &f);
    assert_survives_lack_of_memory(read_in_vain, &f);
    opc_curves_free(c);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
#define WITH_RUNS(test) cmocka_unit_test_setup_teardown(test, make_runs, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(the_curve_of_a_task_and_a_method_is_read),
        IN_DIR(what_the_file_lacks_is_said_with_what_it_has),
        IN_DIR(a_long_list_is_cut_but_counted),
        WITH_RUNS(it_is_drawn_behind_the_runs_and_as_far_as_they_are),
        WITH_RUNS(it_ends_where_it_ends_if_the_runs_are_longer),
        WITH_RUNS(several_methods_have_a_shade_a_dash_and_a_name_each),
        IN_DIR(a_method_is_named_once_and_they_are_a_few),
        WITH_RUNS(runs_it_cannot_be_put_beside_are_refused),
        WITH_RUNS(runs_stand_beside_the_curve_at_steps_that_both_cover),
        WITH_RUNS(rows_of_other_lines_are_kept),
        WITH_RUNS(without_a_deviation_there_is_no_number_of_them),
        WITH_RUNS(values_at_evaluations_are_those_of_the_evaluations),
        WITH_RUNS(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
