/* SPDX-License-Identifier: MIT */
/* Dense linear algebra for num/solve/qp.c and study/ilc: some hundred unknowns, so plain loops
 * along rows are fast enough. Matrices are row-major, and a triangle that is not mentioned is not
 * read. */
#include "num/solve/dense.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Index of the first entry of a row. */
static size_t at(int row, int columns)
{
    return (size_t)row * (size_t)columns;
}

double opc_dense_dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

double opc_dense_norm(int n, const double *a)
{
    return sqrt(opc_dense_dot(n, a, a));
}

/* y += factor x */
static void add_scaled(int n, double factor, const double *x, double *y)
{
    for (int i = 0; i < n; i++)
        y[i] += factor * x[i];
}

void opc_dense_mul(int rows, int inner, int columns, const double *a, const double *b, double *out)
{
    memset(out, 0, at(rows, columns) * sizeof *out);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < inner; k++)
            if (a[at(i, inner) + (size_t)k] != 0.0) /* lifted systems are half zeros */
                add_scaled(columns, a[at(i, inner) + (size_t)k], b + at(k, columns),
                           out + at(i, columns));
}

void opc_dense_mul_ta(int rows, int inner, int columns, const double *a, const double *b,
                      double *out)
{
    memset(out, 0, at(rows, columns) * sizeof *out);
    for (int k = 0; k < inner; k++)
        for (int i = 0; i < rows; i++)
            if (a[at(k, rows) + (size_t)i] != 0.0)
                add_scaled(columns, a[at(k, rows) + (size_t)i], b + at(k, columns),
                           out + at(i, columns));
}

void opc_dense_mul_tb(int rows, int inner, int columns, const double *a, const double *b,
                      double *out)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            out[at(i, columns) + (size_t)j] =
                opc_dense_dot(inner, a + at(i, inner), b + at(j, inner));
}

/* Row by row: L[i][j] from the rows above, then the pivot on the diagonal. */
bool opc_chol_factor(int n, double *a)
{
    for (int i = 0; i < n; i++) {
        double *row = a + at(i, n);
        const double before = row[i];
        for (int j = 0; j < i; j++)
            row[j] = (row[j] - opc_dense_dot(j, row, a + at(j, n))) / a[at(j, n) + (size_t)j];
        /* The pivot is what rounding leaves of a difference: below 1e-15 of its start it means
         * nothing. */
        const double pivot = before - opc_dense_dot(i, row, row);
        if (!(pivot > 1e-15 * before) || !isfinite(pivot))
            return false;
        row[i] = sqrt(pivot);
    }
    return true;
}

/* Forward substitution, all columns of x at once. */
void opc_chol_lower(int n, const double *L, int columns, double *x)
{
    for (int i = 0; i < n; i++) {
        double *row = x + at(i, columns);
        for (int k = 0; k < i; k++)
            add_scaled(columns, -L[at(i, n) + (size_t)k], x + at(k, columns), row);
        for (int j = 0; j < columns; j++)
            row[j] /= L[at(i, n) + (size_t)i];
    }
}

/* Backward substitution with L^T, whose entry (i, k) is L[k][i]. */
void opc_chol_upper(int n, const double *L, int columns, double *x)
{
    for (int i = n - 1; i >= 0; i--) {
        double *row = x + at(i, columns);
        for (int k = i + 1; k < n; k++)
            add_scaled(columns, -L[at(k, n) + (size_t)i], x + at(k, columns), row);
        for (int j = 0; j < columns; j++)
            row[j] /= L[at(i, n) + (size_t)i];
    }
}

void opc_chol_solve(int n, const double *L, int columns, double *x)
{
    opc_chol_lower(n, L, columns, x);
    opc_chol_upper(n, L, columns, x);
}
