/* SPDX-License-Identifier: MIT */
/* The calls of opc/predictor.h, which go through a model's type. opc/transition.c predicts with
 * them, run/train.c fits, and study/ilc/ilc.c differentiates. Sizes were checked when the model was
 * created, so predicting cannot fail and nothing is checked here. */
#include "opc/predictor.h"
#include "base/sized.h"

int opc_predictor_fit(struct opc_predictor *p, int n, const float *sa, const float *y,
                      const struct opc_fit_plan *plan, struct opc_fit_report *report,
                      struct opc_err *err)
{
    struct opc_fit_plan whole = {OPC_SIZED(struct opc_fit_plan)};
    struct opc_fit_report done = {0};
    if (plan)
        OPC_TRY(opc_sized_read(plan, "opc_fit_plan", &whole, sizeof whole, err));
    OPC_TRY(opc_sized_check(report, "opc_fit_report", sizeof done, err));
    const int code = p->type->fit(p, n, sa, y, &whole, &done, err);
    opc_sized_write(&done, sizeof done, report);
    return code;
}

void opc_predictor_mean(const struct opc_predictor *p, int n, const float *s, const float *a,
                        const int *elite, float *y, struct opc_pool *pool)
{
    p->type->predict(p, n, s, a, elite, NULL, y, pool);
}

void opc_predictor_sample(const struct opc_predictor *p, int n, const float *s, const float *a,
                          const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    p->type->predict(p, n, s, a, elite, rng, y, pool);
}

int opc_predictor_jacobian(const struct opc_predictor *p, int n, const float *s, const float *a,
                           const int *elite, float *J, struct opc_pool *pool, struct opc_err *err)
{
    if (!p->type->jacobian)
        return opc_fail(err, OPC_EABSENT, "a model of type %s does not know its derivatives",
                        p->type->name);
    return p->type->jacobian(p, n, s, a, elite, J, pool, err);
}

void opc_predictor_destroy(struct opc_predictor *p)
{
    if (p)
        p->type->destroy(p);
}
