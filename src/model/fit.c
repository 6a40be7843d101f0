/* SPDX-License-Identifier: MIT */
/* A whole fit of the ensemble: bootstrapped rows, passes over them until the holdout error stops
 * falling, the best weights, the elites. run/train.c calls opc_ensemble_fit through
 * opc_predictor_fit, every train.fit_every steps. A change must keep the order in which each
 * member's stream is drawn from (OPC_USE_FIT): bootstrap first, then one shuffle after each pass.
 *
 * A fit that goes on with the last one's weights learns little that is new, and patience in passes
 * makes it pay for all rows again. model.holdout_every counts patience in gradient steps, max_steps
 * is a budget of them, and new_ratio draws the rows that came since the last fit more often. */
#include "base/pool.h"
#include "model/ensemble_private.h"
#include "num/stats.h"

#include <math.h>
#include <string.h>

/* The members with the smallest errors, best first; of equals the earlier. */
static void choose_elites(struct opc_predictor *p, const double *error)
{
    bool taken[OPC_MEMBERS] = {false};
    for (int i = 0; i < p->elites; i++) {
        int best = 0;
        while (taken[best])
            best++;
        for (int m = best + 1; m < p->members; m++)
            if (!taken[m] && error[m] < error[best])
                best = m;
        taken[best] = true;
        p->elite[i] = best;
    }
}

/* One call of opc_ensemble_fit. */
struct fit {
    struct opc_ensemble *ensemble;
    const struct opc_fit_plan *plan;
    struct opc_trainer *trainer;
    int n, n_hold, n_train, batch;
    int *split; /* [n] n_hold rows to measure on, then n_train to train on; all are both if they sum
                   up to more than n */
    int *rows;  /* [members][n_train] what each member trains on, in the order of this pass */
    struct opc_rng rng[OPC_MEMBERS]; /* of the bootstrap and the shuffles */
    float *best_param;               /* [members][each] */
    double *squares;                 /* scratch of opc_trainer_holdout */
    double best[OPC_MEMBERS], error[OPC_MEMBERS];
    int steps, passes; /* gradient steps and whole passes so far */
    int at;            /* the next batch's first row within the pass */
    double loss;       /* mean over members and the steps since the holdout error before */
};

/* The order of the next pass, member by member from its own stream. */
static void shuffle_members(void *ctx, int first, int end, int worker)
{
    (void)worker;
    struct fit *fit = ctx;
    for (int m = first; m < end; m++)
        opc_rng_shuffle(&fit->rng[m], fit->n_train, fit->rows + (size_t)m * (size_t)fit->n_train);
}

/* The next batch of every member; the members' rows lie n_train apart. The last batch of a pass may
 * be short, and is followed by the order of the next pass. */
static int train_batch(struct fit *fit, double *sum, struct opc_err *err)
{
    const int left = fit->n_train - fit->at, members = fit->ensemble->base.members;
    const double loss = opc_trainer_step(fit->trainer, left < fit->batch ? left : fit->batch,
                                         fit->rows + fit->at, (size_t)fit->n_train);
    if (!isfinite(loss))
        return opc_fail(
            err, OPC_EDIVERGED,
            "the model's loss became %g in pass %d, step %d of epoch %u; lower "
            "model.learning_rate, or look for huge values in the environment's observations",
            loss, fit->passes, fit->at / fit->batch, fit->plan->epoch);
    *sum += loss;
    fit->steps++;
    fit->at += fit->batch;
    if (fit->at >= fit->n_train) {
        fit->at = 0;
        fit->passes++;
        opc_pool_each(fit->plan->pool, members, 1, shuffle_members, fit);
    }
    return OPC_OK;
}

/* Has the fit used up its passes or its gradient steps? */
static bool is_spent(const struct fit *fit)
{
    const struct opc_ensemble_config *config = &fit->ensemble->config;
    return (config->max_epochs && fit->passes >= config->max_epochs) ||
           (config->max_steps && fit->steps >= config->max_steps);
}

/* Trains until the holdout error is to be measured: for holdout_every gradient steps, or for a pass
 * if that is 0; less where the fit is spent. */
static int train_stretch(struct fit *fit, struct opc_err *err)
{
    const int every = fit->ensemble->config.holdout_every, first = fit->steps;
    double sum = 0.0;
    bool is_over = false;
    while (!is_over) {
        OPC_TRY(train_batch(fit, &sum, err));
        is_over = is_spent(fit) || (every ? fit->steps - first >= every : fit->at == 0);
    }
    fit->loss = sum / ((double)(fit->steps - first) * fit->ensemble->base.members);
    return OPC_OK;
}

/* Measures every member's holdout error in `pass`. NaN in those rows or in a weight makes it NaN,
 * and ends the run. */
static int measure_holdout(struct fit *fit, int pass, struct opc_err *err)
{
    opc_trainer_holdout(fit->trainer, fit->n_hold, fit->split, fit->squares, fit->error);
    for (int m = 0; m < fit->ensemble->base.members; m++)
        if (!isfinite(fit->error[m]))
            return opc_fail(
                err, OPC_EDIVERGED,
                "the model's holdout error became %g (member %d, pass %d of epoch %u); "
                "lower model.learning_rate, or look for huge values in the environment's "
                "observations",
                fit->error[m], m, pass, fit->plan->epoch);
    return OPC_OK;
}

/* Finds the members whose holdout error fell by more than min_improvement (relative) and keeps
 * their weights, or those of the whole ensemble as mbrl-lib does. Returns whether there was any. */
static bool keep_improved(struct fit *fit)
{
    struct opc_ensemble *ensemble = fit->ensemble;
    const size_t bytes = ensemble->net->each * sizeof(float);
    bool any = false;
    for (int m = 0; m < ensemble->base.members; m++) {
        if (!((fit->best[m] - fit->error[m]) / fit->best[m] > ensemble->config.min_improvement))
            continue;
        fit->best[m] = fit->error[m];
        any = true;
        if (ensemble->config.snapshot == OPC_SNAPSHOT_MEMBER)
            memcpy(fit->best_param + (size_t)m * ensemble->net->each,
                   opc_mlp_member(ensemble->net, m), bytes);
    }
    if (any && ensemble->config.snapshot == OPC_SNAPSHOT_WHOLE) {
        memcpy(fit->best_param, ensemble->net->param, (size_t)ensemble->base.members * bytes);
        for (int m = 0; m < ensemble->base.members; m++) /* small improvements count now, too */
            if (fit->error[m] < fit->best[m])
                fit->best[m] = fit->error[m];
    }
    return any;
}

/* Tells the caller how far the fit is. */
static void report_progress(const struct fit *fit, int since)
{
    const struct opc_ensemble_config *config = &fit->ensemble->config;
    const int members = fit->ensemble->base.members;
    if (!fit->plan->progress)
        return;
    struct opc_fit_progress now = {.passes = fit->passes,
                                   .steps = fit->steps,
                                   .holdout = opc_mean(members, fit->error),
                                   .since = since,
                                   .patience = config->patience + 1};
    if (config->max_epochs)
        now.limit = (double)fit->passes / config->max_epochs;
    if (config->max_steps)
        now.limit = fmax(now.limit, (double)fit->steps / config->max_steps);
    fit->plan->progress(fit->plan->stop_ctx, &now);
}

/* Trains until no member has improved in more than `patience` measurements of the holdout error, or
 * until the fit is spent; then the best weights come back. */
static int train_until_no_better(struct fit *fit, struct opc_err *err)
{
    struct opc_ensemble *ensemble = fit->ensemble;
    const int members = ensemble->base.members;
    const size_t all = (size_t)members * ensemble->net->each * sizeof(float);
    /* Nothing is better yet than the weights the fit starts from; 1e10 lets the first measurement
     * improve on them. */
    memcpy(fit->best_param, ensemble->net->param, all);
    for (int m = 0; m < members; m++)
        fit->best[m] = 1e10;
    int since = 0;
    /* mbrl-lib: the weights that came in have to be improved on, too. */
    if (ensemble->config.best == OPC_BEST_INCOMING) {
        OPC_TRY(measure_holdout(fit, 0, err));
        memcpy(fit->best, fit->error, sizeof fit->best);
    }
    while (since <= ensemble->config.patience) {
        const int pass = fit->passes;
        OPC_TRY(train_stretch(fit, err));
        OPC_TRY(measure_holdout(fit, pass, err));
        since = keep_improved(fit) ? 0 : since + 1;
        if (is_spent(fit))
            break;
        report_progress(fit, since);
        if (fit->plan->stop && fit->plan->stop(fit->plan->stop_ctx))
            return opc_fail(err, OPC_ESTOPPED, "stopped while fitting the model");
    }
    /* Restore the best weights, and the errors the elites are chosen by. */
    if (ensemble->config.snapshot != OPC_SNAPSHOT_LAST)
        memcpy(ensemble->net->param, fit->best_param, all);
    if (ensemble->config.snapshot != OPC_SNAPSHOT_WHOLE)
        opc_trainer_holdout(fit->trainer, fit->n_hold, fit->split, fit->squares, fit->error);
    else /* mbrl-lib ranks by each member's best, whatever weights it came from */
        memcpy(fit->error, fit->best, sizeof fit->error);
    return OPC_OK;
}

/* A bootstrap of member m: each of its rows is one of the n training rows, drawn with replacement.
 * The first `fresh` of them are new since the last fit. With model.new_ratio above their share a
 * row is new with that probability, and otherwise one of the rest. */
static void draw_bootstrap(struct fit *fit, int m, int n, const int *train, int fresh)
{
    struct opc_rng *rng = &fit->rng[m];
    int *rows = fit->rows + (size_t)m * (size_t)n;
    const double ratio = fit->ensemble->config.new_ratio;
    const bool prefers_new = fresh > 0 && fresh < n && ratio * n > fresh;
    for (int i = 0; i < n; i++) {
        if (!prefers_new)
            rows[i] = train[opc_rng_below(rng, (uint32_t)n)];
        else if (opc_rng_unit_double(rng) < ratio)
            rows[i] = train[opc_rng_below(rng, (uint32_t)fresh)];
        else
            rows[i] = train[fresh + (int)opc_rng_below(rng, (uint32_t)(n - fresh))];
    }
}

/* Moves the training rows that are new since the last fit to the front, and returns how many they
 * are. Rows are in the order of time, so new is what lies beyond the rows of the last fit. */
static int gather_new(int n, int *train, long seen)
{
    int fresh = 0;
    for (int i = 0; i < n; i++)
        if (train[i] >= seen) {
            const int keep = train[i];
            train[i] = train[fresh];
            train[fresh++] = keep;
        }
    return fresh;
}

/* Splits the data into holdout and training rows at random, and draws each member's training rows:
 * a bootstrap with replacement, or all of them shuffled. */
static void split_holdout(struct fit *fit, int n)
{
    const struct opc_fit_plan *plan = fit->plan;
    struct opc_rng r = opc_rng_stream(plan->seed, OPC_USE_SPLIT, plan->epoch, plan->index);
    for (int i = 0; i < n; i++)
        fit->split[i] = i;
    opc_rng_shuffle(&r, n, fit->split);
    const struct opc_ensemble_config *config = &fit->ensemble->config;
    int *train = fit->split + (n - fit->n_train);
    const int fresh =
        config->new_ratio > 0 ? gather_new(fit->n_train, train, fit->ensemble->rows) : 0;
    for (int m = 0; m < fit->ensemble->base.members; m++) {
        int *rows = fit->rows + (size_t)m * (size_t)fit->n_train;
        fit->rng[m] = opc_rng_stream(plan->seed, OPC_USE_FIT, plan->epoch,
                                     plan->index * OPC_MEMBERS + (uint32_t)m);
        if (config->bootstrap) {
            draw_bootstrap(fit, m, fit->n_train, train, fresh);
        } else {
            memcpy(rows, train, (size_t)fit->n_train * sizeof *rows);
            opc_rng_shuffle(&fit->rng[m], fit->n_train, rows);
        }
    }
}

/* The elites: the members with the smallest holdout errors. Then the report. */
static void conclude(struct fit *fit, struct opc_fit_report *report)
{
    struct opc_ensemble *ensemble = fit->ensemble;
    choose_elites(&ensemble->base, fit->error);
    memcpy(report->holdout, fit->error, sizeof report->holdout);
    report->passes = fit->passes;
    report->steps = fit->steps;
    report->train_loss = fit->loss;
    for (int i = 0; i < ensemble->sets; i++)
        for (int j = 0; j < ensemble->dim; j++) {
            const float *upper = ensemble->bound + 2 * i * ensemble->dim;
            report->log_std_max += 0.5 * (double)upper[j] / (ensemble->sets * ensemble->dim);
            report->log_std_min +=
                0.5 * (double)upper[ensemble->dim + j] / (ensemble->sets * ensemble->dim);
        }
    ensemble->fits++;
    ensemble->rows = fit->n;
}

/* The holdout set is a ratio of the data, at most max_holdout rows and at least one. With a ratio
 * of 0 as many training rows take its place, as in mbrl-lib. */
static int count_held_out(const struct opc_ensemble_config *config, int n)
{
    const int wanted = config->holdout_ratio > 0 ? (int)(config->holdout_ratio * n) : n;
    const int at_most = wanted < config->max_holdout ? wanted : config->max_holdout;
    return at_most < 1 ? 1 : at_most;
}

int opc_ensemble_fit(struct opc_predictor *p, int n, const float *sa, const float *y,
                     const struct opc_fit_plan *plan, struct opc_fit_report *report,
                     struct opc_err *err)
{
    struct opc_ensemble *ensemble = opc_ensemble_of(p);
    const struct opc_ensemble_config *config = &ensemble->config;
    struct fit fit = {.ensemble = ensemble, .plan = plan, .n = n, .batch = config->batch_size};
    fit.n_hold = count_held_out(config, n);
    fit.n_train = config->holdout_ratio > 0 ? n - fit.n_hold : n;
    if (fit.n_train < 1)
        return opc_fail(err, OPC_EUSER,
                        "%d recorded steps are too few to fit a model; raise train.random_steps",
                        n);
    *report = (struct opc_fit_report){0};
    if (!config->warm_start && ensemble->fits > 0)
        opc_ensemble_restart(ensemble);

    int code = OPC_OK;
    const size_t members = (size_t)p->members;
    fit.split = opc_alloc((size_t)n, sizeof *fit.split);
    fit.rows = opc_alloc(members * (size_t)fit.n_train, sizeof *fit.rows);
    fit.best_param = opc_alloc(members * ensemble->net->each, sizeof *fit.best_param);
    fit.squares = opc_alloc(opc_trainer_holdout_need(p->members, fit.n_hold), sizeof *fit.squares);
    if (!fit.split || !fit.rows || !fit.best_param || !fit.squares) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to fit the model to %d steps", n);
    } else {
        /* The input scale comes from the training rows alone (or all rows, as in mbrl-lib). */
        split_holdout(&fit, n);
        const bool all = config->scale_on == OPC_SCALE_ALL;
        opc_scaler_fit(ensemble->scaler, all ? n : fit.n_train, sa, (size_t)ensemble->in,
                       all ? NULL : fit.split + (n - fit.n_train), config->scale_std == 1);
        if (ensemble->target)
            opc_ensemble_scale_targets(ensemble, fit.n_train, y, fit.split + (n - fit.n_train),
                                       config->warm_start && ensemble->fits > 0);
        code = opc_trainer_create(p, n, sa, y, plan->pool, &fit.trainer, err);
    }
    if (!code)
        code = train_until_no_better(&fit, err);
    if (!code)
        conclude(&fit, report);
    opc_trainer_destroy(fit.trainer);
    opc_free(fit.split);
    opc_free(fit.rows);
    opc_free(fit.best_param);
    opc_free(fit.squares);
    return code;
}
