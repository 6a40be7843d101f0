/* SPDX-License-Identifier: MIT */
/* Axes of figures: rounding a range outwards, mapping values to canvas coordinates, choosing and
 * writing tick labels. figure_layout.c makes the axes; figure.c and marks.c draw along them.
 *
 * Invariant: an axis from opc_axis_make has min < max (and min > 0 on a log axis), so that
 * opc_axis_place never divides by zero. */
#include "plot/axis.h"

#include "base/text.h"
#include "num/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Tolerance for rounding errors, relative to a step: keeps 0.30000000000000004 on the tick 0.3. */
static const double HAIR = 1e-9;

/* The largest number of the series ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ... that is at most v; with
 * `up`, the smallest that is at least v. */
static double round_factor(double v, bool up)
{
    static const double DIGIT[] = {1, 2, 5, 10};
    /* The decade of v; the answer is one of its digits or the first of the next decade. */
    const double power = pow(10, floor(log10(v) + HAIR));
    for (int i = up ? 0 : 3; up ? i < 4 : i >= 0; i += up ? 1 : -1)
        if (up ? power * DIGIT[i] >= v * (1 - HAIR) : power * DIGIT[i] <= v * (1 + HAIR))
            return power * DIGIT[i];
    return up ? 10 * power : power;
}

/* Rounds the ends of a log axis outwards: to 1, 2 or 5 times a power of ten on a short axis, to
 * whole decades on a long one. */
static void widen_log(struct opc_axis *axis)
{
    /* Below about one and a half decades whole decades would leave the panel mostly empty. */
    if (axis->max / axis->min < 30) {
        axis->min = round_factor(axis->min, false);
        axis->max = round_factor(axis->max, true);
    } else {
        axis->min = pow(10, floor(log10(axis->min) + HAIR));
        axis->max = pow(10, ceil(log10(axis->max) - HAIR));
    }
}

struct opc_axis opc_axis_make(double min, double max, bool log, bool widen, int ticks)
{
    struct opc_axis axis = {.min = min, .max = max, .log = log};
    if (log) {
        /* A range that cannot be logarithmic becomes 1 .. 1, which the next step widens. */
        if (!(min > 0 && max >= min && isfinite(max)))
            axis.min = axis.max = 1;
        if (!(axis.max > axis.min * (1 + HAIR))) {
            axis.min /= 2;
            axis.max *= 2;
        }
        if (widen)
            widen_log(&axis);
        return axis;
    }
    /* NaN, infinite or reversed ends: there is nothing to show, 0 .. 1 is as good as any. */
    if (!(isfinite(min) && isfinite(max) && max >= min))
        axis.min = 0, axis.max = 1;
    /* A single value gets a neighbourhood of 5 % of its size, at least 0.5. */
    if (!(axis.max - axis.min > HAIR * fabs(axis.min))) {
        const double about = fmax(0.5, fabs(axis.min) * 0.05);
        axis.min -= about;
        axis.max += about;
    }
    if (widen) {
        /* The step is finer than the ticks: data should fill the panel, not the way to the next
         * tick. */
        const double step = opc_round_step(axis.max - axis.min, 4 * ticks);
        axis.min = floor(axis.min / step + HAIR) * step;
        axis.max = ceil(axis.max / step - HAIR) * step;
    }
    return axis;
}

double opc_axis_place(const struct opc_axis *axis, double v)
{
    if (axis->log && !(v > 0))
        return (double)NAN;
    /* Relative position between the two ends, 0 at min and 1 at max; linear in log(v) on a log
     * axis. */
    const double share = axis->log ? log(v / axis->min) / log(axis->max / axis->min)
                                   : (v - axis->min) / (axis->max - axis->min);
    return axis->from + share * (axis->to - axis->from);
}

bool opc_axis_shows(const struct opc_axis *axis, double v)
{
    /* A value that rounding put just outside still counts as shown. */
    const double slack = HAIR * (axis->max - axis->min);
    return v >= axis->min - slack && v <= axis->max + slack && (!axis->log || v > 0);
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* Tick labels are cut at OPC_TICK_TEXT bytes, which no label of print_tick reaches. */
static void append_tick_text(char out[OPC_TICK_TEXT], const char *text)
{
    const size_t used = strlen(out);
    snprintf(out + used, OPC_TICK_TEXT - used, "%s", text);
}

/* Appends 10 with a raised exponent in UTF-8: 10⁻⁵. */
static void append_power(int exponent, char out[OPC_TICK_TEXT])
{
    static const char *const RAISED[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char digits[16];
    snprintf(digits, sizeof digits, "%d", exponent);
    append_tick_text(out, "10");
    for (const char *d = digits; *d; d++)
        append_tick_text(out, *d == '-' ? "⁻" : RAISED[*d - '0']);
}

/* Digits after the decimal point that a multiple of `step` needs, at most 9. */
static int digits_of(double step)
{
    for (int n = 0; n < 9; n++)
        if (fabs(step * pow(10, n) - round(step * pow(10, n))) < 1e-6 * step * pow(10, n))
            return n;
    return 9;
}

/* Writes one tick label. `largest` is the largest absolute value of the axis: it chooses the
 * unit (k, M, ×10ⁿ), so that all ticks of an axis have the same one. */
static void print_tick(double v, double step, double largest, char out[OPC_TICK_TEXT])
{
    char printed[OPC_PRINTED];
    const char *unit = "";
    int exponent = 0;
    double scale = 1;
    /* The unit: a power of ten outside 0.001 .. 1e9, M and k for large counts, otherwise none. */
    if (largest >= 1e9 || largest < 1e-3) {
        exponent = (int)floor(log10(largest) + HAIR);
        scale = pow(10, exponent);
    } else if (largest >= 1e6)
        scale = 1e6, unit = "M";
    else if (largest >= 1e4)
        scale = 1e3, unit = "k";
    *out = '\0';
    /* The tick at zero may be a rounding error away from it. */
    if (fabs(v) < HAIR * step) {
        append_tick_text(out, "0");
        return;
    }
    /* Sign, digits, unit. The minus is the typographic one (U+2212), as wide as a digit. */
    append_tick_text(out, v < 0 ? "−" : "");
    append_tick_text(out, opc_print_fixed(fabs(v) / scale, digits_of(step / scale), printed));
    append_tick_text(out, unit);
    if (exponent) {
        append_tick_text(out, "×");
        append_power(exponent, out);
    }
}

/* Ticks at powers of ten if the axis has at least two of them, otherwise at 1, 2 and 5. */
static void log_ticks(const struct opc_axis *axis, int max, struct opc_ticks *ticks)
{
    /* Exponents of the first and the last power of ten on the axis. */
    const int first = (int)ceil(log10(axis->min) - HAIR),
              last = (int)floor(log10(axis->max) + HAIR);
    if (last - first >= 1) {
        /* Every second, third, ... power if all of them would be more than `max`. */
        int by = 1;
        while ((last - first) / by + 1 > max)
            by++;
        for (int k = first; k <= last && ticks->n < OPC_TICKS; k += by) {
            append_power(k, ticks->text[ticks->n]);
            ticks->at[ticks->n++] = pow(10, k);
        }
        return;
    }
    /* The factor 1.1 moves past the tick itself, so that rounding up gives the next one. */
    for (double v = round_factor(axis->min, true);
         v <= axis->max * (1 + HAIR) && ticks->n < OPC_TICKS; v = round_factor(v * 1.1, true)) {
        print_tick(v, v, v, ticks->text[ticks->n]);
        ticks->at[ticks->n++] = v;
    }
}

void opc_axis_ticks(const struct opc_axis *axis, int max, struct opc_ticks *ticks)
{
    *ticks = (struct opc_ticks){.n = 0};
    max = max < 1 ? 1 : max >= OPC_TICKS ? OPC_TICKS - 1 : max;
    if (axis->log) {
        log_ticks(axis, max, ticks);
        return;
    }
    /* A round step; an axis of counts never steps by less than one. */
    const double nice = opc_round_step(axis->max - axis->min, max);
    const double step = axis->whole ? fmax(nice, 1) : nice;
    const double largest = fmax(fabs(axis->min), fabs(axis->max));
    /* Ticks are k * step with integer k: adding up steps would collect rounding errors. */
    for (double k = ceil(axis->min / step - HAIR); k * step <= axis->max + HAIR * step; k++) {
        if (ticks->n == OPC_TICKS)
            return;
        print_tick(k * step, step, largest, ticks->text[ticks->n]);
        ticks->at[ticks->n++] = k * step;
    }
}
