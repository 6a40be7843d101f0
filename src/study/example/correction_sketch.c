/* SPDX-License-Identifier: MIT */
/* Figure 1a, computed: two steps in the plane of position and velocity by the recording, by the
 * model and by eq. 5. With the recorded actions the corrected steps are the recorded ones; with
 * others each differs from the recorded one by the difference of two means of the model.
 *
 * Invariant: nothing is drawn by hand; all points come from toy.c. */
#include "study/example/toy_fields.h"
#include "study/exhibit/analysis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIELDS(X) OPC_INTEGRATOR_FIELDS(X)

struct settings {
    FIELDS(OPC_MEMBER)
};
#define SELF struct settings
static const struct opc_section section =
    OPC_SECTION("correction_sketch", "two steps of a recording, a model and eq. 5", FIELDS);
#undef SELF

enum { STEPS = 2 };

/* The points of one panel. */
struct plane {
    double ref[STEPS + 1][2]; /* recorded */
    double env[STEPS + 1][2]; /* what the environment would do under this panel's policy */
    double model[STEPS + 1][2], opc[STEPS + 1][2];
    double f[STEPS][2], f_ref[STEPS][2]; /* the two means in eq. 5 */
};

/* a = K s. */
static double linear_policy(const double K[2], const double s[2])
{
    return K[0] * s[0] + K[1] * s[1];
}

/* All trajectories under policy K, and the two means of eq. 5 in each step. */
static void fill_plane(const struct opc_integrator *in, const double K[2], struct plane *plane)
{
    /* Without noise: recording and environment start in the same state. */
    opc_integrator_walk(in, OPC_BY_TRUTH, in->K, STEPS, NULL, NULL, plane->ref);
    opc_integrator_walk(in, OPC_BY_TRUTH, K, STEPS, NULL, NULL, plane->env);
    opc_integrator_walk(in, OPC_BY_MODEL, K, STEPS, NULL, NULL, plane->model);
    opc_integrator_walk(in, OPC_BY_OPC, K, STEPS, plane->ref, NULL, plane->opc);
    /* f at the corrected state with the new action, f_ref at the recorded one with the recorded
     * action. */
    for (int t = 0; t < STEPS; t++) {
        opc_integrator_f(in, OPC_BY_MODEL, plane->opc[t], linear_policy(K, plane->opc[t]),
                         plane->f[t]);
        opc_integrator_f(in, OPC_BY_MODEL, plane->ref[t], linear_policy(in->K, plane->ref[t]),
                         plane->f_ref[t]);
    }
}

/* ---- the picture ----------------------------------------------------------------------------- */
enum { MAX = 40, ARROWS = OPC_COLOUR_FIRST + 3 };

/* Layers of one panel with their points. */
struct ink {
    struct opc_figure_layer layer[MAX];
    double x[MAX][STEPS + 1], y[MAX][STEPS + 1];
    int n;
};

/* Adds a layer with n points of s. */
static struct opc_figure_layer *add_points(struct ink *ink, enum opc_plot_mark mark, int colour,
                                           const char *label, int n, const double (*s)[2])
{
    const int i = ink->n++;
    for (int k = 0; k < n; k++) {
        ink->x[i][k] = s[k][0];
        ink->y[i][k] = s[k][1];
    }
    ink->layer[i] = (struct opc_figure_layer){
        .mark = mark, .colour = colour, .label = label, .n = n, .x = ink->x[i], .y = ink->y[i]};
    return &ink->layer[i];
}

/* A line through all states, with dots on them. */
static void draw_path(struct ink *ink, int colour, int dash, const char *label,
                      const double (*s)[2])
{
    add_points(ink, OPC_PLOT_LINE, colour, label, STEPS + 1, s)->dash = dash;
    add_points(ink, OPC_PLOT_DOTS, colour, NULL, STEPS + 1, s);
}

/* An arrow between two states. */
static void draw_arrow(struct ink *ink, int colour, const char *label, const double from[2],
                       const double to[2])
{
    const double ends[2][2] = {{from[0], from[1]}, {to[0], to[1]}};
    add_points(ink, OPC_PLOT_ARROW, colour, label, 2, ends);
}

/* A label next to a state, moved by (dx, dy). */
static void draw_word(struct ink *ink, const char *text, const double at[2], double dx, double dy)
{
    const double place[1][2] = {{at[0] + dx, at[1] + dy}};
    add_points(ink, OPC_PLOT_TEXT, OPC_COLOUR_AUTO, text, 1, place);
}

/* Trajectories, and off-policy the two equal arrows of each step. */
static void draw_plane(const struct plane *plane, bool off, struct ink *ink)
{
    draw_path(ink, OPC_COLOUR_TRUE, 0, "recording (eq. 3)", plane->ref);
    draw_path(ink, OPC_COLOUR_MODEL, 0, "model (eq. 2)", plane->model);
    if (off) {
        draw_path(ink, OPC_COLOUR_GREY, 2, "environment with the new actions", plane->env);
        for (int t = 0; t < STEPS; t++) {
            add_points(ink, OPC_PLOT_DOTS, ARROWS, NULL, 1, &plane->f_ref[t]);
            add_points(ink, OPC_PLOT_DOTS, ARROWS, NULL, 1, &plane->f[t]);
            draw_arrow(ink, ARROWS, "difference of the model's means", plane->f_ref[t],
                       plane->f[t]);
            draw_arrow(ink, ARROWS, "difference of the model's means", plane->ref[t + 1],
                       plane->opc[t + 1]);
        }
    }
    draw_path(ink, OPC_COLOUR_OPC, 1, "model with corrections (eq. 5)", plane->opc);
}

/* Two panels with one range: recorded actions, and other actions. */
static int correction_sketch_draw(const struct plane plane[2], struct opc_exhibit *exhibit,
                                  struct opc_err *err)
{
    struct ink ink[2] = {{.n = 0}, {.n = 0}};
    struct opc_panel panel[2];
    double min[2] = {HUGE_VAL, HUGE_VAL}, max[2] = {-HUGE_VAL, -HUGE_VAL};
    /* Draw first, then take one range for both panels, so that labels can be placed relative to
     * it. */
    for (int k = 0; k < 2; k++) {
        draw_plane(&plane[k], k == 1, &ink[k]);
        for (int i = 0; i < ink[k].n; i++)
            for (int j = 0; j < ink[k].layer[i].n; j++) {
                min[0] = fmin(min[0], ink[k].x[i][j]);
                min[1] = fmin(min[1], ink[k].y[i][j]);
                max[0] = fmax(max[0], ink[k].x[i][j]);
                max[1] = fmax(max[1], ink[k].y[i][j]);
            }
    }
    const double width = max[0] - min[0], height = max[1] - min[1];
    /* Hats mark recorded states. */
    static const char *const REF[] = {"s₀", "ŝ₁", "ŝ₂"}, *const OPC[] = {"", "s₁", "s₂"};
    for (int k = 0; k < 2; k++) {
        for (int t = 0; t <= STEPS; t++)
            draw_word(&ink[k], REF[t], plane[k].ref[t], t ? 0.01 * width : -0.04 * width,
                      t ? -0.055 * height : 0);
        for (int t = 1; k && t <= STEPS; t++)
            draw_word(&ink[k], OPC[t], plane[k].opc[t], 0.035 * width, -0.04 * height);
        panel[k] = (struct opc_panel){
            .title = k ? "other actions" : "the recorded actions",
            .x_label = "position",
            .y_label = "velocity",
            .x = {min[0] - 0.1 * width, max[0] + 0.1 * width},
            .y = {min[1] - 0.1 * height, max[1] + 0.1 * height},
            .layers = ink[k].n,
            .layer = ink[k].layer,
        };
    }
    const struct opc_figure figure = {
        .note = "Hats: recorded states. An arrow between two predictions of the model is found "
                "again, equal, between recorded and corrected state.",
        .panels = 2,
        .columns = 2,
        .panel = panel,
        .share_x = true,
        .share_y = true,
        .panel_width = 250,
        .panel_height = 220,
    };
    return opc_exhibit_figure(exhibit, NULL, "Two steps", &figure, err);
}

/* Adds n points of one kind to the table, numbered from `first`. */
static void add_point_rows(struct opc_table *table, const char *actions, const char *what,
                           int first, int n, const double (*s)[2])
{
    for (int i = 0; i < n; i++) {
        opc_table_word(table, actions);
        opc_table_word(table, what);
        opc_table_int(table, first + i);
        opc_table_real(table, s[i][0]);
        opc_table_real(table, s[i][1]);
    }
}

/* Every point of both panels. */
static int correction_sketch_table(const struct plane plane[2], struct opc_exhibit *exhibit,
                                   struct opc_err *err)
{
    struct opc_table *table;
    int code = opc_table_create("actions,point,t,position,velocity", &table, err);
    if (code)
        return code;
    for (int k = 0; k < 2; k++) {
        const char *actions = k ? "other" : "recorded";
        add_point_rows(table, actions, "recording", 0, STEPS + 1, plane[k].ref);
        add_point_rows(table, actions, "environment", 0, STEPS + 1, plane[k].env);
        add_point_rows(table, actions, "model", 0, STEPS + 1, plane[k].model);
        add_point_rows(table, actions, "opc", 0, STEPS + 1, plane[k].opc);
        add_point_rows(table, actions, "mean beside the recording", 1, STEPS, plane[k].f);
        add_point_rows(table, actions, "mean of the recorded step", 1, STEPS, plane[k].f_ref);
    }
    code = opc_exhibit_table(exhibit, NULL, "all points of the sketch", table, err);
    opc_table_free(table);
    return code;
}

/* eq. 5 on-policy and off-policy, checked on the points of the figure. */
static void correction_sketch_claims(const struct plane plane[2], struct opc_exhibit *exhibit)
{
    /* On-policy: corrected states against recorded ones (apart), and the model's (moved). */
    double apart = 0, moved = 0, shift = 0, model = 0, opc = 0;
    for (int t = 0; t <= STEPS; t++)
        for (int k = 0; k < 2; k++) {
            apart = fmax(apart, fabs(plane[0].opc[t][k] - plane[0].ref[t][k]));
            moved = fmax(moved, fabs(plane[0].model[t][k] - plane[0].ref[t][k]));
        }
    /* shift: how far eq. 5 is from recorded state plus difference of means. */
    for (int t = 0; t < STEPS; t++)
        for (int k = 0; k < 2; k++)
            shift = fmax(shift, fabs(plane[1].opc[t + 1][k] - plane[1].ref[t + 1][k] -
                                     (plane[1].f[t][k] - plane[1].f_ref[t][k])));
    const struct plane *off = &plane[1];
    /* Distance from the environment after the last step, under the new policy. */
    model =
        hypot(off->model[STEPS][0] - off->env[STEPS][0], off->model[STEPS][1] - off->env[STEPS][1]);
    opc = hypot(off->opc[STEPS][0] - off->env[STEPS][0], off->opc[STEPS][1] - off->env[STEPS][1]);
    opc_exhibit_claim(exhibit,
                      apart == 0 && moved > 0 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                      "With the recorded actions the corrected steps are the recorded ones, "
                      "however wrong the model is.",
                      "Corrected and recorded states differ by %g, those of the model by up to "
                      "%.3f.",
                      apart, moved);
    opc_exhibit_claim(exhibit, shift < 1e-12 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                      "With other actions a corrected state differs from the recorded one by the "
                      "difference of two means of the model.",
                      "The two differences agree to %.1e; after %d steps the corrected state is "
                      "%.3f and the model's %.3f away from the environment's.",
                      shift, STEPS, opc, model);
}

/* The analysis itself: recorded policy in the first panel, new policy in the second. */
static int correction_sketch_make(const struct opc_request *request, const void *settings,
                                  struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)request;
    const struct settings *s = settings;
    struct opc_integrator_set set;
    struct plane plane[2];
    int code = OPC_INTEGRATOR_OF(s, &set, err);
    if (code)
        return code;
    fill_plane(&set.in, set.in.K, &plane[0]);
    fill_plane(&set.in, set.K_new, &plane[1]);
    code = correction_sketch_table(plane, exhibit, err);
    if (!code)
        code = correction_sketch_draw(plane, exhibit, err);
    if (!code)
        correction_sketch_claims(plane, exhibit);
    return code;
}

const struct opc_analysis opc_correction_sketch = {
    "correction_sketch", "two steps of a recording, a model and eq. 5 (Figure 1a)", &section,
    .make = correction_sketch_make};
