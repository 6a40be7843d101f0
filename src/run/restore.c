/* SPDX-License-Identifier: MIT */
/* Reads what save.c wrote: a whole run, to continue it (session.c), or its policy and model alone
 * (trained.c).
 *
 * Invariant: a run is restored whole or not at all. If a slot or one of its segments is damaged,
 * the run is built anew and the other slot is tried; the tables are truncated only after everything
 * else has been read. The one exception is asked for by the caller (skip_damaged): if neither slot
 * is whole, segments that cannot be read are left out, and later checkpoints remember which. */
#include "base/log.h"
#include "data/episodes_private.h"
#include "model/termination.h"
#include "num/kernel.h"
#include "opc/mem.h"
#include "run/files/checkpoint.h"
#include "run/files/rundir.h"
#include "run/save.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- its parts ------------------------------------------------------------------------------- */

/* The list of segments that belong to a slot. */
static int read_segment_list(const struct opc_pack *pack, const char *name,
                             struct opc_segments *out, struct opc_err *err)
{
    const struct opc_named *part = opc_pack_find(pack, name);
    if (!part || part->bytes % sizeof(struct opc_segment) != 0)
        return opc_fail(err, OPC_EDAMAGED, "the list of segments '%s' is not a list", name);
    int code = OPC_OK;
    for (size_t i = 0; i < part->bytes / sizeof(struct opc_segment) && !code; i++) {
        struct opc_segment segment;
        memcpy(&segment, (const char *)part->data + i * sizeof segment, sizeof segment);
        code = opc_note_segment(out, segment, err);
    }
    return code;
}

/* Loads a segment. *records points into *out, which the caller frees with opc_pack_free. */
static int load_segment(const struct opc_run *run, const char *kind, const struct opc_segment *want,
                        struct opc_pack **out, const float **records, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_segment got;
    struct opc_pack *pack;
    const size_t stride = opc_record_stride(run->obs, run->act);
    int code = opc_segment_path(run, kind, want->epoch, path, err);
    if (!code && !opc_file_exists(path))
        code = opc_fail(err, OPC_EDAMAGED, "%s is missing", path);
    if (!code)
        code = opc_checkpoint_load(path, OPC_PACK_SEGMENT, &pack, err);
    if (code)
        return code;
    /* It must be the very segment the slot was written with: same range, settings and size. */
    code = opc_pack_get(pack, "range", &got, sizeof got, err);
    const struct opc_named *part = opc_pack_find(pack, "records");
    if (!code && (memcmp(&got, want, sizeof got) != 0 || pack->hash != run->hash || !part ||
                  part->bytes % (stride * sizeof(float)) != 0 ||
                  part->bytes / (stride * sizeof(float)) != want->to - want->from))
        code = opc_fail(err, OPC_EDAMAGED, "%s is not the segment this checkpoint was made with",
                        path);
    if (code || !part) {
        opc_pack_free(pack);
        return code;
    }
    *records = part->data;
    *out = pack;
    return OPC_OK;
}

/* Was the segment left out when the run was restored before? */
static bool is_missing(const struct opc_run *run, const struct opc_segment *segment)
{
    for (uint64_t i = 0; i < run->past_missing.n; i++)
        if (run->past_missing.at[i].epoch == segment->epoch)
            return true;
    return false;
}

/* Loads a segment of the past. *pack is NULL if it is left out: it was before, or it cannot be read
 * and `skip` says that the run goes on without it. */
static int load_past(struct opc_run *run, const struct opc_segment *segment, bool skip,
                     struct opc_pack **pack, const float **records, struct opc_err *err)
{
    *pack = NULL;
    if (is_missing(run, segment))
        return OPC_OK;
    const int code = load_segment(run, "past", segment, pack, records, err);
    run->damaged_segment = run->damaged_segment || code == OPC_EDAMAGED;
    if (code != OPC_EDAMAGED || !skip)
        return code;
    opc_runlog_message(run->log, OPC_LEVEL_WARN,
                       "%s; the run goes on without the %llu records of epoch %llu, and is not the "
                       "same as one that has them",
                       err->text, (unsigned long long)(segment->to - segment->from),
                       (unsigned long long)segment->epoch);
    return opc_note_segment(&run->past_missing, *segment, err);
}

/* Recorded episodes, segment by segment, and with them the number recorded by the end of each
 * epoch. */
static int restore_past(struct opc_run *run, bool skip, struct opc_err *err)
{
    uint64_t at = 0, epoch = 0; /* up to which `recorded` is known */
    int code = OPC_OK;
    for (uint64_t i = 0; i < run->past_segments.n && !code; i++) {
        const struct opc_segment *segment = &run->past_segments.at[i];
        struct opc_pack *pack;
        const float *records;
        /* segments follow each other without gaps, in the order of their epochs */
        if (segment->from != at || segment->to < at)
            code = opc_fail(err, OPC_EDAMAGED, "recorded steps from %llu on are in no segment",
                            (unsigned long long)at);
        if (!code && (segment->epoch < epoch || segment->epoch > (uint64_t)run->now.epoch))
            code = opc_fail(err, OPC_EDAMAGED, "a segment of epoch %llu follows epoch %llu of %lld",
                            (unsigned long long)segment->epoch, (unsigned long long)epoch,
                            (long long)run->now.epoch);
        if (!code)
            code = load_past(run, segment, skip, &pack, &records, err);
        if (code)
            break;
        at = segment->to;
        for (; epoch < segment->epoch; epoch++) /* epochs in which no episode ended */
            run->recorded[epoch] = opc_episodes_count(run->past);
        if (pack)
            code = opc_episodes_restore(run->past, records, (size_t)(segment->to - segment->from),
                                        err);
        opc_pack_free(pack);
    }
    for (; !code && epoch <= (uint64_t)run->now.epoch; epoch++)
        run->recorded[epoch] = opc_episodes_count(run->past);
    return code;
}

/* The tape of imagined data: its bounds from the slot, its records from the segments. The first
 * segment that is needed may begin with records that have been forgotten since. */
static int restore_imagined(struct opc_run *run, const struct opc_pack *slot, struct opc_err *err)
{
    const size_t stride = opc_record_stride(run->obs, run->act);
    struct opc_imagined_state *tape = opc_alloc(1, sizeof *tape);
    if (!tape)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to restore the imagined data");
    int code = opc_pack_get(slot, "imagined.state", tape, sizeof *tape, err);
    if (!code)
        code = opc_imagined_restore(run->imagined, tape, err);
    uint64_t at = tape->front;
    for (uint64_t i = 0; i < run->imagined_segments.n && !code; i++) {
        const struct opc_segment *segment = &run->imagined_segments.at[i];
        struct opc_pack *pack;
        const float *records;
        /* all of it is forgotten; save.c keeps the last segment even so */
        if (segment->to <= tape->front)
            continue;
        if (segment->from > at || segment->to < at)
            code = opc_fail(err, OPC_EDAMAGED, "imagined records from %llu on are in no segment",
                            (unsigned long long)at);
        if (!code)
            code = load_segment(run, "imagined", segment, &pack, &records, err);
        run->damaged_segment = run->damaged_segment || code == OPC_EDAMAGED;
        if (code)
            break;
        code = opc_imagined_refill(run->imagined, at, records + (at - segment->from) * stride,
                                   (size_t)(segment->to - at), err);
        at = segment->to;
        opc_pack_free(pack);
    }
    if (!code && at != tape->end)
        code = opc_fail(err, OPC_EDAMAGED, "imagined records from %llu on are in no segment",
                        (unsigned long long)at);
    run->imagined_front = tape->front;
    opc_free(tape);
    return code;
}

/* An empty tape that goes on where the slot's ends: what is imagined can be imagined anew. */
static int forget_imagined(struct opc_run *run, const struct opc_pack *slot, struct opc_err *err)
{
    struct opc_imagined_state *tape = opc_alloc(1, sizeof *tape);
    if (!tape)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to restore the imagined data");
    int code = opc_pack_get(slot, "imagined.state", tape, sizeof *tape, err);
    tape->front = tape->end;
    tape->transitions = tape->rollouts = tape->epochs = 0;
    if (!code)
        code = opc_imagined_restore(run->imagined, tape, err);
    run->imagined_front = tape->front;
    opc_free(tape);
    return code;
}

/* The imagined data, or with `skip` none of it, if some of it cannot be read. */
static int restore_or_forget(struct opc_run *run, const struct opc_pack *slot, bool skip,
                             struct opc_err *err)
{
    const int code = restore_imagined(run, slot, err);
    if (code != OPC_EDAMAGED || !skip)
        return code;
    opc_runlog_message(
        run->log, OPC_LEVEL_WARN,
        "%s; the run goes on without what was imagined before, and is not the same as "
        "one that has it",
        err->text);
    return forget_imagined(run, slot, err);
}

/* A running episode is repeated from its actions and must arrive at the same state. */
static int restore_play(struct opc_run *run, const struct opc_pack *slot, struct opc_err *err)
{
    const struct opc_named *actions = opc_pack_find(slot, "play.actions");
    const size_t each = (size_t)run->act * sizeof(float);
    if (!run->now.running) {
        run->play->number = run->now.episode_number;
        return OPC_OK;
    }
    const size_t t = actions ? actions->bytes / each : 0;
    double *state = opc_alloc((size_t)run->obs, sizeof *state);
    if (!state)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to restore an episode");
    int code = opc_pack_get(slot, "play.state", state, (size_t)run->obs * sizeof *state, err);
    if (!code && (!actions || actions->bytes % each != 0 || t > (size_t)run->play->limit))
        code = opc_fail(err, OPC_EDAMAGED, "the running episode makes no sense");
    if (!code && actions)
        code =
            opc_play_again(run->play, run->now.episode_number, (int)t, actions->data, state, err);
    opc_play_count_anew(run->play);
    opc_free(state);
    /* What the agent remembered of it. */
    struct opc_episode_state *episode = run->episode;
    opc_episode_state_begin(episode, run->seed, 0, (uint32_t)run->play->number);
    if (!code && episode->count > 0)
        code = opc_pack_get(slot, "episode.steps", &episode->steps, sizeof episode->steps, err);
    if (!code && episode->count > 0)
        code = opc_pack_get(slot, "episode.numbers", episode->number,
                            episode->count * sizeof *episode->number, err);
    return code;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int begin_tables(struct opc_run *run, struct opc_runlog_ends ends, struct opc_err *err)
{
    const struct opc_runlog_tables tables = {
        .members = run->model ? run->model->members : 0,
        .columns = run->agent->type->columns,
        .json_lines = run->set->record.json_lines,
        .tensorboard = run->set->record.tensorboard,
    };
    return opc_runlog_begin_tables(run->log, ends, &tables, err);
}

/* Brings a run that is as new to where `slot` was written; skip: without segments that cannot be
 * read. */
static int restore_from_slot(struct opc_run *run, struct opc_pack *slot, bool skip,
                             struct opc_err *err)
{
    struct opc_runlog_ends ends = {0};
    /* Another hash means a slot of another run, or that config.yaml was edited: meta.json knows
     * which. */
    if (slot->hash != run->hash && opc_run_has_its_settings(run))
        return opc_fail(err, OPC_EDAMAGED, "it belongs to a run of other settings");
    if (slot->hash != run->hash)
        return opc_fail(err, OPC_EUSER,
                        "%s/config.yaml was changed since the run began (only %srecord.tensorboard "
                        "and record.json_lines may be%s); undo that, or start another run",
                        opc_runlog_dir(run->log),
                        opc_config_may_go_on(run->set) ? "train.epochs, " : "",
                        opc_config_may_go_on(run->set)
                            ? ""
                            : " where the learning rate falls towards the end of the run");
    if (slot->epoch > (uint64_t)run->set->train.epochs)
        return opc_fail(err, OPC_EUSER,
                        "the run has %llu epochs already; train.epochs = %d in %s/config.yaml can "
                        "be raised, but not lowered below that",
                        (unsigned long long)slot->epoch, run->set->train.epochs,
                        opc_runlog_dir(run->log));
    OPC_TRY(opc_pack_get(slot, "run", &run->now, sizeof run->now, err));
    if ((uint64_t)run->now.epoch != slot->epoch)
        return opc_fail(err, OPC_EDAMAGED, "it says it is of epoch %lld and of %llu",
                        (long long)run->now.epoch, (unsigned long long)slot->epoch);
    OPC_TRY(opc_pack_get(slot, "ends", &ends, sizeof ends, err));
    OPC_TRY(read_segment_list(slot, "past", &run->past_segments, err));
    OPC_TRY(read_segment_list(slot, "imagined", &run->imagined_segments, err));
    if (opc_pack_find(slot, "past.missing"))
        OPC_TRY(read_segment_list(slot, "past.missing", &run->past_missing, err));
    /* data, then networks with Adam's moments, then the running episode */
    OPC_TRY(restore_past(run, skip, err));
    if (run->imagined)
        OPC_TRY(restore_or_forget(run, slot, skip, err));
    if (run->disagreement)
        OPC_TRY(opc_pack_get(slot, "disagreement", &run->disagreement->now,
                             sizeof run->disagreement->now, err));
    OPC_TRY(run->agent->type->state(run->agent, opc_pack_visit, slot, err));
    if (run->model)
        OPC_TRY(run->model->type->state(run->model, opc_pack_visit, slot, err));
    if (run->termination)
        OPC_TRY(opc_termination_state(run->termination, opc_pack_visit, slot, err));
    OPC_TRY(restore_play(run, slot, err));
    /* The transition's table is not saved: it follows from model and past. */
    run->stale = true;
    /* Last, because it truncates the tables. */
    return begin_tables(run, ends, err);
}

/* Warns if other kernels compute from here on: results differ in the last bits, and so in the
 * end. */
static void compare_kernels(const struct opc_run *run, const struct opc_pack *slot)
{
    char then[OPC_KERNELS_NAME], now[OPC_KERNELS_NAME];
    opc_kernels_name(now);
    if (!opc_pack_get(slot, "kernels", then, sizeof then, NULL) &&
        (then[sizeof then - 1] || !opc_kernels_agree(then, now)))
        opc_runlog_message(
            run->log, OPC_LEVEL_WARN,
            "this run was made with the kernels %.15s and goes on with %s; it will not "
            "be the same to the bit (OPC_BACKEND=%.15s chooses the former)",
            then, now, then);
}

/* Removes the half-written files of a process that was killed. The directory is locked, so no
 * process is writing them. */
static void remove_leftovers(const struct opc_run *run)
{
    static const char *const FOLDER[] = {"", "checkpoints", "snapshots"};
    for (int i = 0; i < 3; i++) {
        char folder[OPC_PATH], path[OPC_PATH];
        DIR *dir = opc_runlog_path(run->log, FOLDER[i], folder, NULL) ? NULL : opendir(folder);
        for (struct dirent *e; dir && (e = readdir(dir));) {
            const size_t n = strlen(e->d_name);
            if (n > 4 && strcmp(e->d_name + n - 4, ".tmp") == 0 &&
                !opc_path_join(path, folder, e->d_name, NULL))
                unlink(path);
        }
        if (dir)
            closedir(dir);
    }
}

/* Begins a run without a checkpoint. One that was killed before its first checkpoint has no result,
 * and at most one row; a directory with more than that is left as it is: its checkpoints are
 * missing for another reason, and its rows are worth keeping. */
static int begin_run(struct opc_run *run, struct opc_err *err)
{
    const char *dir = opc_runlog_dir(run->log);
    struct opc_rundir_table metrics = {0};
    int code = OPC_OK;
    if (opc_rundir_has(dir, "metrics.csv"))
        code = opc_rundir_table_read(dir, "metrics.csv", &metrics, err);
    const bool has_results = metrics.rows > 1 || opc_rundir_has(dir, "result.json");
    opc_rundir_table_free(&metrics);
    if (!code && has_results)
        return opc_fail(err, OPC_EDAMAGED,
                        "%s has results but no checkpoint to go on from; it is left as it is; to "
                        "train again from the start, choose another directory",
                        dir);
    return code ? code : begin_tables(run, (struct opc_runlog_ends){0}, err);
}

/* Loads the two slots: NULL where a slot is missing, or damaged, which is logged. *present counts
 * those that exist. Only failures that the other slot cannot make up for are returned. */
static int load_slots(struct opc_run *run, struct opc_pack *slot[2], int *present,
                      struct opc_err *err)
{
    char path[OPC_PATH];
    *present = 0;
    for (int i = 0; i < 2; i++) {
        struct stat st;
        int code = opc_runlog_path(run->log, opc_slot_name[i], path, err);
        if (code || (stat(path, &st) && errno == ENOENT)) /* reading reports any other trouble */
            continue;
        ++*present;
        code = opc_checkpoint_load(path, OPC_PACK_RUN, &slot[i], err);
        if (code == OPC_EUSER || code == OPC_ENOMEM)
            return code;
        if (code)
            opc_runlog_message(run->log, OPC_LEVEL_WARN, "%s", err->text);
    }
    return OPC_OK;
}

/* The slot to continue from: that of the later epoch. -1: there is none. */
static int newest_of(struct opc_pack *const slot[2])
{
    if (!slot[0] && !slot[1])
        return -1;
    return !slot[0] || (slot[1] && slot[1]->epoch > slot[0]->epoch);
}

/* Brings the run to where this slot was written. OPC_EDAMAGED: the slot cannot be used, and the run
 * has been built anew for the other one. */
static int try_slot(struct opc_run *run, struct opc_pack *slot, int which, bool skip,
                    struct opc_err *err)
{
    struct opc_err fault;
    int code = restore_from_slot(run, slot, skip, err);
    if (!code) {
        compare_kernels(run, slot);
        code = opc_run_compare_worlds(run, err);
    }
    run->next_slot = !which; /* the next checkpoint replaces the other one */
    if (code != OPC_EDAMAGED)
        return code;
    opc_runlog_message(run->log, OPC_LEVEL_WARN, "%s: %s", opc_slot_name[which], err->text);
    if (opc_run_remake(run, &fault)) {
        *err = fault;
        code = (int)fault.code;
    }
    return code;
}

/* Tries the slots, the newer one first. OPC_EDAMAGED: none of them can be used. */
static int try_slots(struct opc_run *run, struct opc_pack *const slot[2], bool skip,
                     struct opc_err *err)
{
    struct opc_pack *left[2] = {slot[0], slot[1]};
    int code = OPC_EDAMAGED; /* until one of them can be used */
    for (int which; code == OPC_EDAMAGED && (which = newest_of(left)) >= 0; left[which] = NULL)
        code = try_slot(run, left[which], which, skip, err);
    return code;
}

int opc_run_restore(struct opc_run *run, struct opc_err *err)
{
    /* No slot: the beginning. Otherwise the newer one, and if that fails, the older one; only then,
     * and if the caller wants it, without what is damaged. */
    struct opc_pack *slot[2] = {NULL, NULL};
    int present;
    remove_leftovers(run);
    int code = load_slots(run, slot, &present, err);
    if (!code)
        code = present == 0 ? begin_run(run, err) : try_slots(run, slot, false, err);
    if (code == OPC_EDAMAGED && present > 0 && run->plan->skip_damaged)
        code = try_slots(run, slot, true, err);
    opc_pack_free(slot[0]);
    opc_pack_free(slot[1]);
    if (code != OPC_EDAMAGED || present == 0)
        return code;
    return opc_fail(
        err, OPC_EDAMAGED,
        "no checkpoint of %s can be used (log.txt says why); put back the files that are "
        "missing or damaged, or train again from the start in another directory%s",
        opc_runlog_dir(run->log),
        run->damaged_segment && !run->plan->skip_damaged
            ? ", or go on without the recorded or imagined steps that are lost: opc resume DIR "
              "--skip-damaged"
            : "");
}

/* ---- its policy and model -------------------------------------------------------------------- */

/* The newest intact slot; *out is NULL if there is none. A damaged one is logged if the other can
 * be used, and returned as the failure otherwise. */
static int newest_slot(const char *dir, struct opc_pack **out, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_pack *newest = NULL;
    struct opc_err fault = {0};
    int code = OPC_OK;
    for (int i = 0; i < 2; i++) {
        struct opc_pack *pack;
        if (opc_path_join(path, dir, opc_slot_name[i], err) || !opc_file_exists(path))
            continue;
        code = opc_checkpoint_load(path, OPC_PACK_RUN, &pack, &fault);
        if (code == OPC_ENOMEM) { /* the slot may be fine, so the older one must not replace it */
            opc_pack_free(newest);
            return opc_fail(err, OPC_ENOMEM, "%s", fault.text);
        }
        if (code)
            continue;
        if (pack->epoch == 0) { /* after the random phase: nothing was learned */
            opc_pack_free(pack);
            continue;
        }
        struct opc_pack *worse = newest && newest->epoch > pack->epoch ? pack : newest;
        newest = worse == pack ? newest : pack;
        opc_pack_free(worse);
    }
    *out = newest;
    if (!fault.code)
        return OPC_OK;
    if (!newest)
        return opc_fail(err, fault.code, "%s", fault.text);
    opc_log(OPC_LEVEL_WARN, "%s", fault.text);
    return OPC_OK;
}

/* The weights of a file into agent and model (NULL: not wanted), which were built with the settings
 * of this hash. */
static int load_weights(const char *dir, struct opc_pack *pack, uint32_t hash,
                        struct opc_agent *agent, struct opc_predictor *model, int *epoch,
                        struct opc_err *err)
{
    if (pack->hash != hash)
        return opc_fail(err, OPC_EUSER, "%s/config.yaml was changed since the policy was trained",
                        dir);
    OPC_TRY(agent->type->state(agent, opc_pack_visit, pack, err));
    if (model)
        OPC_TRY(model->type->state(model, opc_pack_visit, pack, err));
    *epoch = (int)pack->epoch;
    return OPC_OK;
}

int opc_run_load_policy(const char *dir, uint32_t hash, struct opc_agent *agent, int *epoch,
                        struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_pack *pack = NULL;
    /* A finished run has policy.opc, an unfinished one only checkpoints. */
    int code = opc_path_join(path, dir, "policy.opc", err);
    if (!code && opc_file_exists(path)) {
        code = opc_checkpoint_load(path, OPC_PACK_POLICY, &pack, err);
    } else if (!code) {
        code = newest_slot(dir, &pack, err);
        if (!code && !pack)
            code = opc_rundir_has(dir, "result.json")
                       ? opc_fail(err, OPC_EUSER,
                                  "%s has results but no policy: it was restored from a table", dir)
                       : opc_fail(err, OPC_EUSER,
                                  "%s has no policy yet; the first is there after its first epoch",
                                  dir);
    }
    if (!code)
        code = load_weights(dir, pack, hash, agent, agent->model, epoch, err);
    opc_pack_free(pack);
    return code;
}

static int load_snapshot(const char *dir, int epoch, struct opc_pack **out, struct opc_err *err)
{
    char path[OPC_PATH], name[64];
    opc_snapshot_name(epoch, name);
    OPC_TRY(opc_path_join(path, dir, name, err));
    if (!opc_file_exists(path))
        return opc_fail(err, OPC_EUSER,
                        "%s has no snapshot of epoch %d; train with record.snapshots=1 to have one "
                        "of every epoch",
                        dir, epoch);
    return opc_checkpoint_load(path, OPC_PACK_SNAPSHOT, out, err);
}

int opc_run_load_networks(const char *dir, int epoch, uint32_t hash, struct opc_agent *agent,
                          struct opc_predictor *model, int *got, struct opc_err *err)
{
    struct opc_pack *pack = NULL;
    int code = epoch < 0 ? newest_slot(dir, &pack, err) : load_snapshot(dir, epoch, &pack, err);
    if (!code && !pack)
        code = opc_fail(err, OPC_EUSER,
                        "%s has no checkpoint; the first is there after its first epoch", dir);
    if (!code)
        code = load_weights(dir, pack, hash, agent, model, got, err);
    opc_pack_free(pack);
    return code;
}
