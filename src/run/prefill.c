/* SPDX-License-Identifier: MIT */
/* train.prefill: a run begins with episodes that were recorded elsewhere. assemble.c loads them,
 * because the sizes of the stores depend on them, and train.c puts them into the past before the
 * random phase, of which they are a part: they count as one epoch of the reference window, and not
 * as real steps.
 *
 * Invariant: episode b of the past starts from the random stream of its number b, logged or played.
 * The first episode that is played therefore has the number after the last logged one. */
#include "run/run.h"

#include "data/episodes_private.h"

#include <stdio.h>
#include <string.h>

/* The dimensions, and what -1 and 1 of the actions stand for. */
static int compare_with_task(const struct opc_run *run, struct opc_err *err)
{
    const struct opc_episodes_file *file = &run->prefill;
    const struct opc_env *env = run->play->env;
    const char *path = run->set->train.prefill;
    if (file->obs != env->obs || file->act != env->act)
        return opc_fail_settings(err, "train.prefill env.name",
                                 "train.prefill = %s is of another task than %s: %d numbers in an "
                                 "observation and %d in an action, instead of %d and %d",
                                 path, env->spec, file->obs, file->act, env->obs, env->act);
    for (int k = 0; k < env->act; k++)
        if (file->low[k] != env->low[k] || file->high[k] != env->high[k])
            return opc_fail_settings(err, "train.prefill env.name",
                                     "train.prefill = %s was imported for action %d in [%g, %g], "
                                     "and that of %s is in [%g, %g]; import it again",
                                     path, k, file->low[k], file->high[k], env->spec, env->low[k],
                                     env->high[k]);
    /* Steps are counted by int. */
    const struct opc_train_config *t = &run->set->train;
    const double steps = (double)file->steps + t->random_steps + run->play->limit +
                         (double)t->epochs * t->steps_per_epoch;
    if (steps > 1e9)
        return opc_fail_settings(err, "train.prefill train.epochs",
                                 "train.prefill = %s and the run are %.0f steps, more than can be "
                                 "recorded (1e9)",
                                 path, steps);
    return OPC_OK;
}

int opc_run_load_prefill(struct opc_run *run, struct opc_err *err)
{
    const struct opc_train_config *t = &run->set->train;
    struct opc_err why = {0};
    char checksum[16];
    if (!*t->prefill)
        return OPC_OK;
    const int code = opc_episodes_file_load(t->prefill, &run->prefill, &why);
    if (code == OPC_EIO) /* a setting names a file that is not there */
        return opc_fail_settings(err, "train.prefill", "train.prefill: %s", why.text);
    if (code)
        return opc_fail(err, (enum opc_code)code,
                        "train.prefill ('opc data import' makes such a file): %s", why.text);
    /* The identity of the run: its checkpoints are worth nothing with other episodes. */
    snprintf(checksum, sizeof checksum, "%08x", (unsigned)run->prefill.checksum);
    if (strcmp(checksum, t->prefill_checksum) != 0)
        return opc_fail_settings(err, "train.prefill_checksum",
                                 "train.prefill = %s has the checksum %s and not "
                                 "train.prefill_checksum = %s: it was changed; bring the file of "
                                 "then back, or start another run",
                                 t->prefill, checksum, t->prefill_checksum);
    return compare_with_task(run, err);
}

int opc_run_prefill(struct opc_run *run, struct opc_err *err)
{
    if (!run->prefill.records)
        return OPC_OK;
    OPC_TRY(opc_episodes_restore(run->past, run->prefill.records, run->prefill.n, err));
    run->play->number = opc_episodes_count(run->past);
    opc_episodes_file_free(&run->prefill);
    return OPC_OK;
}
