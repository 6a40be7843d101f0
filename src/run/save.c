/* SPDX-License-Identifier: MIT */
/* What a checkpoint of a run consists of, and how it is written; restore.c reads it.
 *
 *     checkpoints/a.opc, b.opc       the two slots, written in turn: where the run is, networks
 * with their moments, the running episode's actions, and which segments belong to it
 *     checkpoints/past-000012.opc    what was recorded in epoch 12; written once, kept
 *     checkpoints/imagined-000012.opc  what was imagined in it; written once, removed when neither
 *                                    slot needs it any more
 *
 * Segments are on disk before the slot that names them, and the tables are, too. So a slot that is
 * whole describes a run that is whole, at whatever instant the process was killed. */
#include "run/save.h"
#include "data/episodes_in.h"
#include "num/kernel.h"
#include "opc/mem.h"
#include "run/checkpoint.h"
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
    return opc_record_path(run->record, name, path, err);
}

static uint64_t saved_to(const struct opc_segments *s)
{
    return s->n ? s->at[s->n - 1].to : 0;
}

int opc_note_segment(struct opc_segments *s, struct opc_segment one, struct opc_err *err)
{
    if (s->n == s->capacity) {
        const uint64_t capacity = s->capacity ? 2 * s->capacity : 64;
        struct opc_segment *at = opc_alloc(capacity, sizeof *at);
        if (!at)
            return opc_fail(err, OPC_ENOMEM,
                            "not enough memory to list the segments of a checkpoint");
        if (s->n)
            memcpy(at, s->at, s->n * sizeof *at);
        opc_free(s->at);
        s->at = at;
        s->capacity = capacity;
    }
    s->at[s->n++] = one;
    return OPC_OK;
}

/* part[0] is left free for the range. */
static int write_segment(const struct opc_run *run, const char *kind, struct opc_segments *s,
                         uint64_t from, uint64_t to, struct opc_named *part, int parts,
                         struct opc_err *err)
{
    char path[OPC_PATH];
    const struct opc_segment one = {(uint64_t)run->now.epoch, from, to};
    part[0] = (struct opc_named){"range", &one, sizeof one};
    int code = opc_segment_path(run, kind, one.epoch, path, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_SEGMENT, run->hash, one.epoch, part, parts, err);
    return code ? code : opc_note_segment(s, one, err);
}

static int save_past(struct opc_run *run, struct opc_err *err)
{
    const struct opc_records all = opc_episodes_records(run->past);
    const uint64_t from = saved_to(&run->past_segments);
    if (from == all.n)
        return OPC_OK;
    struct opc_named part[2] = {
        {"", NULL, 0},
        {"records", all.at + from * all.stride, (all.n - from) * all.stride * sizeof(float)}};
    return write_segment(run, "past", &run->past_segments, from, all.n, part, 2, err);
}

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

/* Those that neither this checkpoint nor the one before needs. */
static void remove_forgotten(struct opc_run *run, uint64_t front)
{
    struct opc_segments *s = &run->imagined_segments;
    const uint64_t needed = front < run->imagined_front ? front : run->imagined_front;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        char path[OPC_PATH];
        if (s->at[i].to > needed || i + 1 == s->n) /* the last says how far we are */
            s->at[kept++] = s->at[i];
        else if (!opc_segment_path(run, "imagined", s->at[i].epoch, path, NULL))
            unlink(path);
    }
    s->n = kept;
}

/* ---- saving ---------------------------------------------------------------------------------- */

void opc_kernels_name(char out[OPC_KERNELS_NAME])
{
    memset(out, 0, OPC_KERNELS_NAME);
    snprintf(out, OPC_KERNELS_NAME, "%s", opc_kernels()->name);
}

static int gather_networks(struct opc_run *run, struct opc_gather *g, struct opc_err *err)
{
    int code = run->agent->type->state(run->agent, opc_gather_visit, g, err);
    if (!code && run->model)
        code = run->model->type->state(run->model, opc_gather_visit, g, err);
    return code;
}

static int save_slot(struct opc_run *run, struct opc_record_ends ends, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_gather *g = opc_alloc(1, sizeof *g);
    if (!g)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a checkpoint");
    struct opc_play *p = run->play;
    char kernels[OPC_KERNELS_NAME];
    opc_kernels_name(kernels);
    run->now.running = opc_play_running(p);
    run->now.episode_number = p->number - run->now.running;
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
        {"play.actions", p->actions,
         run->now.running ? (size_t)p->t * (size_t)run->act * sizeof *p->actions : 0},
        {"play.state", p->state, (size_t)run->obs * sizeof *p->state},
        {"kernels", kernels, sizeof kernels},
    };
    int code = OPC_OK;
    for (size_t i = 0; i < sizeof part / sizeof *part && !code; i++)
        code = opc_gather_visit(g, part[i].name, part[i].data, part[i].bytes, err);
    struct opc_imagined_state none = {0}, *tape = opc_alloc(1, sizeof *tape);
    if (!tape)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for a checkpoint");
    else
        *tape = run->imagined ? *opc_imagined_state(run->imagined) : none;
    if (!code)
        code = opc_gather_visit(g, "imagined.state", tape, sizeof *tape, err);
    if (!code)
        code = gather_networks(run, g, err);
    if (!code)
        code = opc_record_path(run->record, opc_slot_name[run->slot_b], path, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_RUN, run->hash, (uint64_t)run->now.epoch, g->part,
                                   g->parts, err);
    opc_free(tape);
    opc_free(g);
    return code;
}

int opc_run_save(struct opc_run *run, struct opc_err *err)
{
    if (!run->record)
        return OPC_OK;
    struct opc_record_ends ends = {0};
    int code = save_past(run, err);
    if (!code && run->imagined)
        code = save_imagined(run, err);
    if (!code)
        code = opc_record_sync(run->record, &ends, err);
    if (!code)
        code = save_slot(run, ends, err);
    if (code)
        return opc_within(err, "checkpoint");
    run->slot_b = !run->slot_b;
    if (run->imagined) {
        const uint64_t front = opc_imagined_state(run->imagined)->front;
        remove_forgotten(run, front);
        run->imagined_front = front;
    }
    return OPC_OK;
}

int opc_run_save_policy(struct opc_run *run, struct opc_err *err)
{
    char path[OPC_PATH];
    if (!run->record)
        return OPC_OK;
    struct opc_gather g = {.parts = 0};
    struct opc_policy_about about;
    int code = opc_policy_describe(run->set, run->obs, run->act, &about, &g, err);
    /* A policy that asks the model is nothing without it. */
    if (!code)
        code = run->agent->type->needs & OPC_NEEDS_MODEL
                   ? gather_networks(run, &g, err)
                   : run->agent->type->state(run->agent, opc_gather_visit, &g, err);
    if (!code)
        code = opc_record_path(run->record, "policy.opc", path, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_POLICY, run->hash, (uint64_t)run->now.epoch,
                                   g.part, g.parts, err);
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
    if (!run->record)
        return OPC_OK;
    struct opc_gather g = {.parts = 0};
    int code = opc_record_path(run->record, "snapshots", path, err);
    if (!code)
        code = opc_make_directories(path, err);
    opc_snapshot_name(run->now.epoch, name);
    if (!code)
        code = opc_record_path(run->record, name, path, err);
    if (!code)
        code = gather_networks(run, &g, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_SNAPSHOT, run->hash, (uint64_t)run->now.epoch,
                                   g.part, g.parts, err);
    return code;
}
