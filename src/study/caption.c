/* SPDX-License-Identifier: MIT */
/* The caption of an exhibit: tier, how many runs are complete, their seeds and lengths, what is
 * imagined by which ensembles, versions. repro.c calls it.
 *
 * Invariant: seeds and lengths are those of the runs that are drawn, not of those that are planned,
 * and nothing is said of times and machines. */
#include "study/caption.h"

#include "opc/mem.h"
#include "opc/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds a word to a list unless it is already there. */
static void note_word(struct opc_text *list, const char *word)
{
    const char *at = opc_text_get(list);
    const size_t n = strlen(word);
    for (; *at; at += strcspn(at, ","), at += strspn(at, ", "))
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || !at[n]))
            return;
    opc_text_addf(list, "%s%s", list->used ? ", " : "", word);
}

/* Extends a range; 0 means that it is still empty. */
static void widen_range(int range[2], int value)
{
    range[0] = !range[0] || value < range[0] ? value : range[0];
    range[1] = value > range[1] ? value : range[1];
}

static void add_range(struct opc_text *text, const int range[2], const char *unit)
{
    if (range[0] == range[1])
        opc_text_addf(text, "%d %s", range[0], unit);
    else
        opc_text_addf(text, "%d to %d %s", range[0], range[1], unit);
}

static int by_seed(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Sorts the seeds and drops repeated ones. Returns how many are left. */
static int distinct_seeds(int n, int *seed)
{
    int kept = n > 0;
    qsort(seed, (size_t)n, sizeof *seed, by_seed);
    for (int i = 1; i < n; i++)
        if (seed[i] != seed[kept - 1])
            seed[kept++] = seed[i];
    return kept;
}

/* Adds "1 to 5", "2, 3, 7" or "1". */
static void print_seeds(int n, const int *seed, struct opc_text *text)
{
    if (n > 1 && seed[n - 1] - seed[0] == n - 1)
        opc_text_addf(text, "%d to %d", seed[0], seed[n - 1]);
    else
        for (int i = 0; i < n; i++)
            opc_text_addf(text, "%s%d", i ? ", " : "", seed[i]);
}

/* Adds "seeds 1 to 5" of the complete runs, and where others are planned, too, " (of 1 to 10)". */
static int add_seeds(const struct opc_sweep *sweep, const struct opc_caption *runs,
                     struct opc_text *text, struct opc_err *err)
{
    int *planned = opc_alloc((size_t)sweep->tasks, sizeof *planned);
    if (!planned)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the caption");
    for (int i = 0; i < sweep->tasks; i++)
        planned[i] = sweep->task[i].set.train.seed;
    const int all = distinct_seeds(sweep->tasks, planned);
    const int n = distinct_seeds(runs->complete, runs->seed);
    opc_text_add(text, n == 1 ? "seed " : "seeds ");
    print_seeds(n, runs->seed, text);
    if (n < all) {
        opc_text_add(text, " (of ");
        print_seeds(all, planned, text);
        opc_text_add(text, ")");
    }
    opc_free(planned);
    return OPC_OK;
}

int opc_caption_begin(struct opc_caption *seen, int tasks, struct opc_err *err)
{
    *seen = (struct opc_caption){.seed = opc_alloc((size_t)tasks + 1, sizeof *seen->seed)};
    return seen->seed ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory for the caption");
}

/* "100000", or "10000 rollouts"; and "3 of 4x128". */
static void note_rollouts(struct opc_caption *seen, const struct opc_values *v)
{
    const struct opc_ints *hidden = &v->model.hidden;
    struct opc_text text = {0};
    char word[64];
    if (!opc_transition_of(v)->needs_model || opc_plans(v))
        return;
    if (v->opc.rollouts)
        snprintf(word, sizeof word, "%d rollouts", v->opc.rollouts);
    else
        snprintf(word, sizeof word, "%d steps", v->opc.transitions);
    note_word(&seen->imagined, word);
    opc_text_addf(&text, "%d of ", v->model.members);
    bool same = true;
    for (int i = 1; i < hidden->n; i++)
        same = same && hidden->at[i] == hidden->at[0];
    if (same)
        opc_text_addf(&text, "%dx%d", hidden->n, hidden->at[0]);
    for (int i = 0; !same && i < hidden->n; i++)
        opc_text_addf(&text, "%s%d", i ? "-" : "", hidden->at[i]);
    note_word(&seen->ensembles, opc_text_get(&text));
    opc_text_free(&text);
}

void opc_caption_note(struct opc_caption *seen, const struct opc_task *task,
                      const struct opc_look *look)
{
    seen->seed[seen->complete++] = task->set.train.seed;
    widen_range(seen->epochs, task->set.train.epochs);
    widen_range(seen->steps, task->set.train.steps_per_epoch);
    note_rollouts(seen, &task->set);
    if (*look->engine)
        note_word(&seen->engines, look->engine);
    opc_versions_note(&seen->versions, look->version, look->revision);
}

void opc_caption_free(struct opc_caption *seen)
{
    opc_free(seen->seed);
    opc_text_free(&seen->imagined);
    opc_text_free(&seen->ensembles);
    opc_text_free(&seen->engines);
}

int opc_caption_write(const struct opc_experiment *experiment, const struct opc_caption *seen,
                      struct opc_text *text, struct opc_err *err)
{
    const struct opc_sweep *runs = experiment->runs;
    int code = OPC_OK;
    if (*experiment->tier)
        opc_text_addf(text, "Tier %s; ", experiment->tier);
    if (runs && seen->complete < runs->tasks)
        opc_text_add(text, "INCOMPLETE: ");
    if (runs) {
        opc_text_addf(text, "%d of %d runs complete, ", seen->complete, runs->tasks);
        code = add_seeds(runs, seen, text, err);
        opc_text_add(text, "; ");
        add_range(text, seen->epochs, "epochs");
        opc_text_add(text, " x ");
        add_range(text, seen->steps, "steps");
        opc_text_add(text, "; ");
        if (seen->imagined.used)
            opc_text_addf(text, "imagined per simulation: %s; members of the ensemble: %s; ",
                          opc_text_get(&seen->imagined), opc_text_get(&seen->ensembles));
    }
    if (experiment->given.used)
        opc_text_addf(text, "with%s; ", opc_text_get(&experiment->given));
    /* The commits are those of the runs: which one draws them changes no number. Other versions are
     * named with theirs. */
    opc_text_addf(text, "opc %s", OPC_VERSION);
    if (opc_versions_are(&seen->versions, OPC_VERSION))
        opc_versions_say_revisions(&seen->versions, OPC_VERSION, text);
    else {
        opc_text_add(text, " (runs: ");
        opc_versions_say(&seen->versions, text);
        opc_text_add(text, ")");
    }
    if (seen->engines.used)
        opc_text_addf(text, ", %s", opc_text_get(&seen->engines));
    opc_text_add(text, ".");
    return code ? code : opc_text_check(text, err);
}
