/* SPDX-License-Identifier: MIT */
/* What a checkpoint of a run consists of, and how it is written; restore.c reads it. train.c calls
 * it after each epoch.
 *
 *     checkpoints/a.opc, b.opc         the two slots, written in turn: the run's state, networks
 *                                      with Adam's moments, the running episode's actions, and
 *                                      which segments belong to it
 *     checkpoints/past-000012.opc      what was recorded in epoch 12; written once, kept
 *     checkpoints/imagined-000012.opc  what was imagined in it; written once, removed when neither
 *                                      slot needs it any more
 *
 * Invariant: segments and tables are on disk before the slot that names them. So an intact slot
 * describes a complete run, at whatever instant the process was killed. */
#include "run/save.h"
#include "data/episodes_private.h"
#include "model/termination.h"
#include "num/kernel.h"
#include "opc/mem.h"
#include "run/files/checkpoint.h"
#include "run/policy_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const opc_slot_name[2] = {"checkpoints/a.opc", "checkpoints/b.opc"};

/* ---- segments -------------------------------------------------------------------------------- */

int opc_segment_path(const struct opc_run *run, const char *kind, uint64_t epoch,
                     char path[OPC_PATH], struct opc_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoints/%s-%06llu.opc", kind, (unsigned long long)epoch);
    return opc_runlog_path(run->log, name, path, err);
}

/* Records before this one are in segments already. */
static uint64_t saved_to(const struct opc_segments *list)
{
    return list->n ? list->at[list->n - 1].to : 0;
}

int opc_note_segment(struct opc_segments *list, struct opc_segment segment, struct opc_err *err)
{
    /* Double the list when it is full: a run has as many segments as epochs. */
    if (list->n == list->capacity) {
        const uint64_t capacity = list->capacity ? 2 * list->capacity : 64;
        struct opc_segment *at = opc_alloc(capacity, sizeof *at);
        if (!at)
            return opc_fail(err, OPC_ENOMEM,
                            "not enough memory to list the segments of a checkpoint");
        if (list->n)
            memcpy(at, list->at, list->n * sizeof *at);
        opc_free(list->at);
        list->at = at;
        list->capacity = capacity;
    }
    list->at[list->n++] = segment;
    return OPC_OK;
}

/* part[0] is left free for the range. */
static int write_segment(const struct opc_run *run, const char *kind, struct opc_segments *list,
                         uint64_t from, uint64_t to, struct opc_named *part, int parts,
                         struct opc_err *err)
{
    char path[OPC_PATH];
    const struct opc_segment segment = {(uint64_t)run->now.epoch, from, to};
    /* The range is stored with the records, so that a segment cannot be taken for another. */
    part[0] = (struct opc_named){"range", &segment, sizeof segment};
    int code = opc_segment_path(run, kind, segment.epoch, path, err);
    if (!code)
        code =
            opc_checkpoint_save(path, OPC_PACK_SEGMENT, run->hash, segment.epoch, part, parts, err);
    return code ? code : opc_note_segment(list, segment, err);
}

/* Episodes that were completed since the last checkpoint. */
int opc_run_save_past(struct opc_run *run, struct opc_err *err)
{
    if (!run->log)
        return OPC_OK;
    const struct opc_records all = opc_episodes_records(run->past);
    /* Records are counted from the first ever; those that were lost are not in memory. */
    uint64_t lost = 0;
    for (uint64_t i = 0; i < run->past_missing.n; i++)
        lost += run->past_missing.at[i].to - run->past_missing.at[i].from;
    const uint64_t from = saved_to(&run->past_segments), at = from - lost;
    if (at == all.n)
        return OPC_OK;
    struct opc_named part[2] = {
        {"", NULL, 0},
        {"records", all.at + at * all.stride, (all.n - at) * all.stride * sizeof(float)}};
    return write_segment(run, "past", &run->past_segments, from, all.n + lost, part, 2, err);
}

/* Rollouts since the last checkpoint that have not been forgotten already. They may lie in
 * several pieces of memory. */
static int save_imagined(struct opc_run *run, struct opc_err *err)
{
    const struct opc_imagined_state *state = opc_imagined_state(run->imagined);
    const size_t stride = opc_record_stride(run->obs, run->act);
    uint64_t from = saved_to(&run->imagined_segments);
    if (from < state->front)
        from = state->front;
    if (from >= state->end)
        return OPC_OK;
    int pieces = 0;
    size_t n;
    for (uint64_t at = from; opc_imagined_piece(run->imagined, at, &n); at += n)
        pieces++;
    struct opc_named *part = opc_alloc((size_t)pieces + 1, sizeof *part);
    if (!part)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to save the imagined data");
    const float *records;
    int i = 1;
    for (uint64_t at = from; (records = opc_imagined_piece(run->imagined, at, &n)); at += n, i++)
        part[i] = (struct opc_named){"", records, n * stride * sizeof(float)};
    strcpy(part[1].name, "records");
    const int code = write_segment(run, "imagined", &run->imagined_segments, from, state->end, part,
                                   pieces + 1, err);
    opc_free(part);
    return code;
}

/* Removes the segments that neither this checkpoint nor the one before needs: `front` is the oldest
 * imagined record that this one needs. */
static void remove_forgotten(struct opc_run *run, uint64_t front)
{
    struct opc_segments *list = &run->imagined_segments;
    const uint64_t needed = front < run->imagined_front ? front : run->imagined_front;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < list->n; i++) {
        char path[OPC_PATH];
        if (list->at[i].to > needed || i + 1 == list->n) /* saved_to asks the last one */
            list->at[kept++] = list->at[i];
        else if (!opc_segment_path(run, "imagined", list->at[i].epoch, path, NULL))
            unlink(path);
    }
    list->n = kept;
}

/* ---- saving ---------------------------------------------------------------------------------- */

void opc_kernels_name(char out[OPC_KERNELS_NAME])
{
    memset(out, 0, OPC_KERNELS_NAME);
    snprintf(out, OPC_KERNELS_NAME, "%s", opc_kernels()->name);
}

static int gather_networks(struct opc_run *run, struct opc_gather *gather, struct opc_err *err)
{
    int code = run->agent->type->state(run->agent, opc_gather_visit, gather, err);
    if (!code && run->model)
        code = run->model->type->state(run->model, opc_gather_visit, gather, err);
    if (!code && run->termination)
        code = opc_termination_state(run->termination, opc_gather_visit, gather, err);
    return code;
}

/* Writes the slot itself. Everything is gathered by address and written in one go. */
static int save_slot(struct opc_run *run, struct opc_runlog_ends ends, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_gather *gather = opc_alloc(1, sizeof *gather);
    if (!gather)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a checkpoint");
    struct opc_play *play = run->play;
    char kernels[OPC_KERNELS_NAME];
    opc_kernels_name(kernels);
    /* `number` is that of the next episode; a running one is repeated from its actions. */
    run->now.running = opc_play_running(play);
    run->now.episode_number = play->number - run->now.running;
    const struct {
        const char *name;
        void *data;
        size_t bytes;
    } part[] = {
        {"run", &run->now, sizeof run->now},
        {"ends", &ends, sizeof ends},
        {"past", run->past_segments.at, run->past_segments.n * sizeof *run->past_segments.at},
        {"imagined", run->imagined_segments.at,
         run->imagined_segments.n * sizeof *run->imagined_segments.at},
        {"play.actions", play->actions,
         run->now.running ? (size_t)play->t * (size_t)run->act * sizeof *play->actions : 0},
        {"play.state", play->state, (size_t)run->obs * sizeof *play->state},
        {"kernels", kernels, sizeof kernels},
    };
    int code = OPC_OK;
    for (size_t i = 0; i < sizeof part / sizeof *part && !code; i++)
        code = opc_gather_visit(gather, part[i].name, part[i].data, part[i].bytes, err);
    if (!code && run->past_missing.n > 0)
        code = opc_gather_visit(gather, "past.missing", run->past_missing.at,
                                run->past_missing.n * sizeof *run->past_missing.at, err);
    /* Where the tape of imagined data begins and ends; zeros without a model. */
    struct opc_imagined_state none = {0}, *tape = opc_alloc(1, sizeof *tape);
    if (!tape)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for a checkpoint");
    else
        *tape = run->imagined ? *opc_imagined_state(run->imagined) : none;
    if (!code)
        code = opc_gather_visit(gather, "imagined.state", tape, sizeof *tape, err);
    if (!code && run->disagreement)
        code = opc_gather_visit(gather, "disagreement", &run->disagreement->now,
                                sizeof run->disagreement->now, err);
    /* What the agent remembers of the running episode; most remember nothing. */
    if (!code && run->now.running && run->episode->count > 0) {
        code = opc_gather_visit(gather, "episode.steps", &run->episode->steps,
                                sizeof run->episode->steps, err);
        if (!code)
            code = opc_gather_visit(gather, "episode.numbers", run->episode->number,
                                    run->episode->count * sizeof *run->episode->number, err);
    }
    if (!code)
        code = gather_networks(run, gather, err);
    if (!code)
        code = opc_runlog_path(run->log, opc_slot_name[run->next_slot], path, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_RUN, run->hash, (uint64_t)run->now.epoch,
                                   gather->part, gather->parts, err);
    opc_free(tape);
    opc_free(gather);
    return code;
}

int opc_run_save(struct opc_run *run, struct opc_err *err)
{
    if (!run->log)
        return OPC_OK;
    struct opc_runlog_ends ends = {0};
    /* Order matters, see the top: segments, tables, then the slot. */
    int code = opc_run_save_past(run, err);
    if (!code && run->imagined)
        code = save_imagined(run, err);
    if (!code)
        code = opc_runlog_sync(run->log, &ends, err);
    if (!code)
        code = save_slot(run, ends, err);
    if (code)
        return opc_within(err, "checkpoint");
    /* Only now is nothing lost when old segments go. */
    run->next_slot = !run->next_slot;
    if (run->imagined) {
        const uint64_t front = opc_imagined_state(run->imagined)->front;
        remove_forgotten(run, front);
        run->imagined_front = front;
    }
    return OPC_OK;
}

int opc_run_save_policy(struct opc_run *run, const char *name, struct opc_err *err)
{
    char path[OPC_PATH];
    if (!run->log)
        return OPC_OK;
    struct opc_gather gather = {.parts = 0};
    struct opc_policy_about about;
    int code = opc_policy_describe(run->set, run->play->env, &about, &gather, err);
    /* The policy of an agent that plans with the model includes the model. */
    if (!code)
        code = run->agent->type->needs & OPC_NEEDS_MODEL
                   ? gather_networks(run, &gather, err)
                   : run->agent->type->state(run->agent, opc_gather_visit, &gather, err);
    if (!code)
        code = opc_runlog_path(run->log, name, path, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_POLICY, run->hash, (uint64_t)run->now.epoch,
                                   gather.part, gather.parts, err);
    opc_text_free(&about.settings);
    return code;
}

void opc_snapshot_name(long long epoch, char out[64])
{
    snprintf(out, 64, "snapshots/%06lld.opc", epoch);
}

int opc_run_save_snapshot(struct opc_run *run, struct opc_err *err)
{
    char path[OPC_PATH], name[64];
    if (!run->log)
        return OPC_OK;
    struct opc_gather gather = {.parts = 0};
    OPC_TRY(opc_runlog_path(run->log, "snapshots", path, err));
    OPC_TRY(opc_make_directories(path, err));
    opc_snapshot_name(run->now.epoch, name);
    OPC_TRY(opc_runlog_path(run->log, name, path, err));
    OPC_TRY(gather_networks(run, &gather, err));
    return opc_checkpoint_save(path, OPC_PACK_SNAPSHOT, run->hash, (uint64_t)run->now.epoch,
                               gather.part, gather.parts, err);
}
