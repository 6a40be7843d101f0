/* SPDX-License-Identifier: MIT */
/* A run from what save.c left: all of it, to go on, or its policy and model alone. */
#include "base/log.h"
#include "data/episodes_private.h"
#include "num/kernel.h"
#include "opc/mem.h"
#include "run/checkpoint.h"
#include "run/rundir.h"
#include "run/save.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- its parts ------------------------------------------------------------------------------- */

static int get_segments(const struct opc_pack *pack, const char *name, struct opc_segments *out,
                        struct opc_err *err)
{
    const struct opc_named *part = opc_pack_find(pack, name);
    if (!part || part->bytes % sizeof(struct opc_segment) != 0)
        return opc_fail(err, OPC_EDAMAGED, "the list of segments '%s' is no list", name);
    int code = OPC_OK;
    for (size_t i = 0; i < part->bytes / sizeof(struct opc_segment) && !code; i++) {
        struct opc_segment one;
        memcpy(&one, (const char *)part->data + i * sizeof one, sizeof one);
        code = opc_note_segment(out, one, err);
    }
    return code;
}

/* Loads one and hands its records out; for opc_pack_free. */
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

static int restore_past(struct opc_run *run, struct opc_err *err)
{
    uint64_t at = 0, epoch = 0; /* up to which `recorded` is known */
    int code = OPC_OK;
    for (uint64_t i = 0; i < run->past_segments.n && !code; i++) {
        const struct opc_segment *s = &run->past_segments.at[i];
        struct opc_pack *pack;
        const float *records;
        if (s->from != at || s->to < at)
            code = opc_fail(err, OPC_EDAMAGED, "recorded steps from %llu on are in no segment",
                            (unsigned long long)at);
        if (!code && (s->epoch < epoch || s->epoch > (uint64_t)run->now.epoch))
            code = opc_fail(err, OPC_EDAMAGED, "a segment of epoch %llu follows epoch %llu of %lld",
                            (unsigned long long)s->epoch, (unsigned long long)epoch,
                            (long long)run->now.epoch);
        if (!code)
            code = load_segment(run, "past", s, &pack, &records, err);
        if (code)
            break;
        at = s->to;
        for (; epoch < s->epoch; epoch++) /* nothing was recorded in these */
            run->recorded[epoch] = opc_episodes_count(run->past);
        code = opc_episodes_restore(run->past, records, (size_t)(s->to - s->from), err);
        opc_pack_free(pack);
    }
    for (; !code && epoch <= (uint64_t)run->now.epoch; epoch++)
        run->recorded[epoch] = opc_episodes_count(run->past);
    return code;
}

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
        const struct opc_segment *s = &run->imagined_segments.at[i];
        struct opc_pack *pack;
        const float *records;
        if (s->to <= tape->front)
            continue;
        if (s->from > at || s->to < at)
            code = opc_fail(err, OPC_EDAMAGED, "imagined records from %llu on are in no segment",
                            (unsigned long long)at);
        if (!code)
            code = load_segment(run, "imagined", s, &pack, &records, err);
        if (code)
            break;
        code = opc_imagined_refill(run->imagined, at, records + (at - s->from) * stride,
                                   (size_t)(s->to - at), err);
        at = s->to;
        opc_pack_free(pack);
    }
    if (!code && at != tape->end)
        code = opc_fail(err, OPC_EDAMAGED, "imagined records from %llu on are in no segment",
                        (unsigned long long)at);
    run->imagined_front = tape->front;
    opc_free(tape);
    return code;
}

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
    if (!code)
        code =
            opc_play_again(run->play, run->now.episode_number, (int)t, actions->data, state, err);
    opc_play_count_anew(run->play);
    opc_free(state);
    return code;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int apply(struct opc_run *run, struct opc_pack *slot, struct opc_err *err)
{
    struct opc_record_ends ends = {0};
    if (slot->hash != run->hash && opc_run_has_its_settings(run))
        return opc_fail(err, OPC_EDAMAGED, "it belongs to a run of other settings");
    if (slot->hash != run->hash)
        return opc_fail(err, OPC_EUSER,
                        "%s/config.yaml was changed since the run began (only train.epochs may "
                        "be%s); undo that, or start another run",
                        opc_record_dir(run->record),
                        opc_config_may_go_on(run->set) ? "" : ", and not with ppo.anneal_lr");
    if (slot->epoch > (uint64_t)run->set->train.epochs)
        return opc_fail(err, OPC_EUSER,
                        "the run has %llu epochs already; train.epochs = %d in %s/config.yaml can "
                        "be raised, but not lowered below that",
                        (unsigned long long)slot->epoch, run->set->train.epochs,
                        opc_record_dir(run->record));
    int code = opc_pack_get(slot, "run", &run->now, sizeof run->now, err);
    if (!code && (uint64_t)run->now.epoch != slot->epoch)
        code = opc_fail(err, OPC_EDAMAGED, "it says it is of epoch %lld and of %llu",
                        (long long)run->now.epoch, (unsigned long long)slot->epoch);
    if (!code)
        code = opc_pack_get(slot, "ends", &ends, sizeof ends, err);
    if (!code)
        code = get_segments(slot, "past", &run->past_segments, err);
    if (!code)
        code = get_segments(slot, "imagined", &run->imagined_segments, err);
    if (!code)
        code = restore_past(run, err);
    if (!code && run->imagined)
        code = restore_imagined(run, slot, err);
    if (!code)
        code = run->agent->type->state(run->agent, opc_pack_visit, slot, err);
    if (!code && run->model)
        code = run->model->type->state(run->model, opc_pack_visit, slot, err);
    if (!code)
        code = restore_play(run, slot, err);
    if (!code)
        code = opc_record_begin(run->record, ends, run->model ? run->model->members : 0,
                                run->agent->type->columns, err);
    run->stale = true;
    return code;
}

static void compare_kernels(const struct opc_run *run, const struct opc_pack *slot)
{
    char then[OPC_KERNELS_NAME], now[OPC_KERNELS_NAME];
    opc_kernels_name(now);
    if (!opc_pack_get(slot, "kernels", then, sizeof then, NULL) &&
        (then[sizeof then - 1] || !opc_kernels_agree(then, now)))
        opc_record_log(run->record, OPC_WARN,
                       "this run was made with the kernels %.15s and goes on with %s; it will not "
                       "be the same to the bit (OPC_BACKEND=%.15s chooses the former)",
                       then, now, then);
}

/* What a killed process left half-written. The directory is locked, so nobody is writing. */
static void remove_leftovers(const struct opc_run *run)
{
    static const char *const FOLDER[] = {"", "checkpoints", "snapshots"};
    for (int i = 0; i < 3; i++) {
        char folder[OPC_PATH], path[OPC_PATH];
        DIR *dir = opc_record_path(run->record, FOLDER[i], folder, NULL) ? NULL : opendir(folder);
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

/* A run that was killed before its first checkpoint has no result, and one row at the most. More
 * is worth keeping. */
static int begin_anew(struct opc_run *run, struct opc_err *err)
{
    const char *dir = opc_record_dir(run->record);
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
    return code ? code
                : opc_record_begin(run->record, (struct opc_record_ends){0},
                                   run->model ? run->model->members : 0, run->agent->type->columns,
                                   err);
}

/* The two slots, as far as they can be read: NULL where there is none, or a damaged one, which is
 * logged. *present counts those that exist. Only what no other slot can mend is returned. */
static int load_slots(struct opc_run *run, struct opc_pack *slot[2], int *present,
                      struct opc_err *err)
{
    char path[OPC_PATH];
    *present = 0;
    for (int i = 0; i < 2; i++) {
        struct stat st;
        int code = opc_record_path(run->record, opc_slot_name[i], path, err);
        if (code || (stat(path, &st) && errno == ENOENT)) /* other troubles are those of reading */
            continue;
        ++*present;
        code = opc_checkpoint_load(path, OPC_PACK_RUN, &slot[i], err);
        if (code == OPC_EUSER || code == OPC_ENOMEM)
            return code;
        if (code)
            opc_record_log(run->record, OPC_WARN, "%s", err->text);
    }
    return OPC_OK;
}

/* Which of the slots to go on from: the one of the later epoch. -1: there is none. */
static int newest_of(struct opc_pack *const slot[2])
{
    if (!slot[0] && !slot[1])
        return -1;
    return !slot[0] || (slot[1] && slot[1]->epoch > slot[0]->epoch);
}

/* Brings the run to where this slot was written. OPC_EDAMAGED: it could not be, and the run is as
 * new again, for the other slot. */
static int try_slot(struct opc_run *run, struct opc_pack *slot, int which, struct opc_err *err)
{
    struct opc_err fault;
    int code = apply(run, slot, err);
    if (!code) {
        compare_kernels(run, slot);
        code = opc_run_compare_worlds(run, err);
    }
    run->slot_b = !which; /* the next checkpoint replaces the other one */
    if (code != OPC_EDAMAGED)
        return code;
    opc_record_log(run->record, OPC_WARN, "%s: %s", opc_slot_name[which], err->text);
    if (opc_run_remake(run, &fault)) {
        *err = fault;
        code = (int)fault.code;
    }
    return code;
}

int opc_run_restore(struct opc_run *run, struct opc_err *err)
{
    struct opc_pack *slot[2] = {NULL, NULL};
    int present;
    remove_leftovers(run);
    int code = load_slots(run, slot, &present, err);
    if (!code && present == 0)
        code = begin_anew(run, err);
    else if (!code)
        code = OPC_EDAMAGED; /* until one of them can be used */
    for (int which; code == OPC_EDAMAGED && (which = newest_of(slot)) >= 0;) {
        code = try_slot(run, slot[which], which, err);
        opc_pack_free(slot[which]);
        slot[which] = NULL;
    }
    opc_pack_free(slot[0]);
    opc_pack_free(slot[1]);
    if (code != OPC_EDAMAGED || present == 0)
        return code;
    return opc_fail(err, OPC_EDAMAGED,
                    "no checkpoint of %s can be used (log.txt says why); its metrics.csv is as it "
                    "was; to train again from the start, choose another directory",
                    opc_record_dir(run->record));
}

/* ---- its policy and model -------------------------------------------------------------------- */

/* The newer of the two slots of those that are whole; *out is NULL if there is none. One that is
 * not is told if the other will do. */
static int newest_slot(const char *dir, struct opc_pack **out, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_pack *best = NULL;
    struct opc_err fault = {0};
    int code = OPC_OK;
    for (int i = 0; i < 2; i++) {
        struct opc_pack *pack;
        if (opc_path_join(path, dir, opc_slot_name[i], err) || !opc_file_exists(path))
            continue;
        code = opc_checkpoint_load(path, OPC_PACK_RUN, &pack, &fault);
        if (code == OPC_ENOMEM) { /* says nothing about the slot, so the other one must not do */
            opc_pack_free(best);
            return opc_fail(err, OPC_ENOMEM, "%s", fault.text);
        }
        if (code)
            continue;
        if (pack->epoch == 0) { /* after the random phase: nothing was learned */
            opc_pack_free(pack);
            continue;
        }
        struct opc_pack *worse = best && best->epoch > pack->epoch ? pack : best;
        best = worse == pack ? best : pack;
        opc_pack_free(worse);
    }
    *out = best;
    if (!fault.code)
        return OPC_OK;
    if (!best)
        return opc_fail(err, fault.code, "%s", fault.text);
    opc_log(OPC_WARN, "%s", fault.text);
    return OPC_OK;
}

static int check_hash(const char *dir, const struct opc_pack *pack, uint32_t hash,
                      struct opc_err *err)
{
    if (pack->hash == hash)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "%s/config.yaml was changed since the policy was trained", dir);
}

int opc_run_load_policy(const char *dir, uint32_t hash, struct opc_agent *agent, int *epoch,
                        struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_pack *best = NULL;
    int code = opc_path_join(path, dir, "policy.opc", err);
    if (!code && opc_file_exists(path)) {
        code = opc_checkpoint_load(path, OPC_PACK_POLICY, &best, err);
    } else if (!code) {
        code = newest_slot(dir, &best, err);
        if (!code && !best)
            code = opc_fail(err, OPC_EUSER,
                            "%s has no policy yet; the first is there after its first epoch", dir);
    }
    if (!code)
        code = check_hash(dir, best, hash, err);
    if (!code)
        code = agent->type->state(agent, opc_pack_visit, best, err);
    if (!code && agent->model)
        code = agent->model->type->state(agent->model, opc_pack_visit, best, err);
    if (!code)
        *epoch = (int)best->epoch;
    opc_pack_free(best);
    return code;
}

int opc_run_load_networks(const char *dir, int epoch, uint32_t hash, struct opc_agent *agent,
                          struct opc_predictor *model, int *got, struct opc_err *err)
{
    char path[OPC_PATH], name[64];
    struct opc_pack *pack = NULL;
    int code;
    if (epoch < 0) {
        code = newest_slot(dir, &pack, err);
        if (!code && !pack)
            code = opc_fail(err, OPC_EUSER,
                            "%s has no checkpoint; the first is there after its first epoch", dir);
    } else {
        opc_snapshot_name(epoch, name);
        code = opc_path_join(path, dir, name, err);
        if (!code && !opc_file_exists(path))
            code = opc_fail(err, OPC_EUSER,
                            "%s has no snapshot of epoch %d; train with record.snapshots=1 to have "
                            "one of every epoch",
                            dir, epoch);
        if (!code)
            code = opc_checkpoint_load(path, OPC_PACK_SNAPSHOT, &pack, err);
    }
    if (!code)
        code = check_hash(dir, pack, hash, err);
    if (!code)
        code = agent->type->state(agent, opc_pack_visit, pack, err);
    if (!code && model)
        code = model->type->state(model, opc_pack_visit, pack, err);
    if (!code)
        *got = (int)pack->epoch;
    opc_pack_free(pack);
    return code;
}
