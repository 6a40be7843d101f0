/* SPDX-License-Identifier: MIT */
/* An agent of one file: random shooting. It learns nothing itself; it asks the dynamics model what
 * each of a few random actions would bring in one step, and takes the best.
 *
 * To add it to opc, put this file into src/agent and the line `&opc_shooting_type,` into the table
 * of src/agent/agent.c. Settings, columns of metrics.csv, evaluation, resuming and the label in
 * figures follow from the type at the end of this file. docs/extending.md explains every part. */
#include "base/field.h"
#include "opc/agent.h"
#include "opc/mem.h"
#include "opc/predictor.h"

#include <string.h>

/* ---- settings: shooting.candidates ----------------------------------------------------------- */

#define FIELDS(X) X(INT, candidates, "16", 1, 4096, "random actions that are tried in each state")
struct config {
    FIELDS(OPC_MEMBER)
};
#define SELF struct config
static const struct opc_section section =
    OPC_SECTION("shooting", "random shooting through the model, one step ahead", FIELDS);
#undef SELF

/* ---- the agent ------------------------------------------------------------------------------- */

struct shooting {
    struct opc_agent base;
    struct config config;
    const struct opc_predictor *model; /* borrowed */
    struct opc_pool *pool;             /* borrowed */
    float *state, *action, *predicted; /* [candidates][obs], [candidates][act], [.][obs + 1] */
    int *elite;                        /* [candidates] */
};

/* What it reports of an epoch. */
enum { DECISIONS, COLUMN_COUNT };
static const struct opc_agent_column COLUMNS[] = {
    [DECISIONS] = {"decisions", OPC_OVER_MAX},
    [COLUMN_COUNT] = {NULL, OPC_OVER_MEAN},
};

/* The best of the candidates for one state, by the reward that elite 0 predicts. */
static void choose(const struct shooting *agent, const float *state, struct opc_rng *rng,
                   float *best)
{
    const size_t obs = (size_t)agent->base.obs, act = (size_t)agent->base.act;
    const int n = agent->config.candidates;
    for (int i = 0; i < n; i++) {
        memcpy(agent->state + (size_t)i * obs, state, obs * sizeof *state);
        for (size_t k = 0; k < act; k++)
            agent->action[(size_t)i * act + k] = 2 * opc_rng_unit(rng) - 1;
    }
    opc_predictor_mean(agent->model, n, agent->state, agent->action, agent->elite, agent->predicted,
                       agent->pool);
    int winner = 0;
    for (int i = 1; i < n; i++)
        if (agent->predicted[(size_t)i * (obs + 1) + obs] >
            agent->predicted[(size_t)winner * (obs + 1) + obs])
            winner = i;
    memcpy(best, agent->action + (size_t)winner * act, act * sizeof *best);
}

static void shooting_act(const struct opc_agent *base, int n, const float *state, bool explore,
                         struct opc_rng *rng, float *action)
{
    const struct shooting *agent = (const struct shooting *)base;
    for (int i = 0; i < n; i++) {
        /* Without exploration there is no stream: the same candidates for every state. */
        struct opc_rng own = opc_rng_stream(1, OPC_USE_EXPLORE, 0, 0);
        choose(agent, state + (size_t)i * (size_t)base->obs, explore ? &rng[i] : &own,
               action + (size_t)i * (size_t)base->act);
    }
}

static int shooting_improve(struct opc_agent *base, const struct opc_feed *feed, int updates,
                            struct opc_agent_report *report, struct opc_err *err)
{
    (void)base, (void)feed, (void)err;
    *report = (struct opc_agent_report){.updates = updates};
    report->value[DECISIONS] = updates;
    return OPC_OK;
}

static int shooting_state(struct opc_agent *base,
                          int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                          void *ctx, struct opc_err *err)
{
    (void)base, (void)visit, (void)ctx, (void)err; /* the model is saved for it */
    return OPC_OK;
}

static void shooting_destroy(struct opc_agent *base)
{
    struct shooting *agent = (struct shooting *)base;
    opc_free(agent->state);
    opc_free(agent->action);
    opc_free(agent->predicted);
    opc_free(agent->elite);
    opc_free(agent);
}

extern const struct opc_agent_type opc_shooting_type;

static int shooting_create(const struct opc_agent_args *args, struct opc_agent **out,
                           struct opc_err *err)
{
    struct shooting *agent = opc_alloc(1, sizeof *agent);
    if (!agent)
        return opc_fail(err, OPC_ENOMEM, "out of memory for the agent");
    agent->base =
        (struct opc_agent){.type = &opc_shooting_type, .obs = args->obs, .act = args->act};
    agent->config = *(const struct config *)args->config;
    agent->model = args->model;
    agent->pool = args->pool;
    const size_t n = (size_t)agent->config.candidates, obs = (size_t)args->obs;
    agent->state = opc_alloc(n, obs * sizeof *agent->state);
    agent->action = opc_alloc(n, (size_t)args->act * sizeof *agent->action);
    agent->predicted = opc_alloc(n, (obs + 1) * sizeof *agent->predicted);
    agent->elite = opc_alloc(n, sizeof *agent->elite); /* all 0 */
    if (!agent->state || !agent->action || !agent->predicted || !agent->elite) {
        shooting_destroy(&agent->base);
        return opc_fail(err, OPC_ENOMEM,
                        "out of memory for %zu candidates; lower "
                        "shooting.candidates",
                        n);
    }
    *out = &agent->base;
    return OPC_OK;
}

const struct opc_agent_type opc_shooting_type = {
    .name = "shooting",
    .label = "random shooting",
    .needs = OPC_NEEDS_STEPS | OPC_NEEDS_MODEL,
    .settings = &section,
    .columns = COLUMNS,
    .create = shooting_create,
    .act = shooting_act,
    .improve = shooting_improve,
    .destroy = shooting_destroy,
    .state = shooting_state,
};
