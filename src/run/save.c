/* SPDX-License-Identifier: MIT */
/* What a checkpoint of a run consists of.
 *
 *     checkpoints/a.opc, b.opc       the two slots, written in turn: where the run is, networks
 * with their moments, the running episode's actions, and which segments belong to it
 *     checkpoints/past-000012.opc    what was recorded in epoch 12; written once, kept
 *     checkpoints/imagined-000012.opc  what was imagined in it; written once, removed when neither
 *                                    slot needs it any more
 *
 * Segments are on disk before the slot that names them, and the tables are, too. So a slot that is
 * whole describes a run that is whole, at whatever instant the process was killed. */
#include "base/revision.h"
#include "data/episodes_in.h"
#include "num/kernel.h"
#include "opc/mem.h"
#include "opc/version.h"
#include "run/checkpoint.h"
#include "run/json.h"
#include "run/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char *const SLOT[2] = {"checkpoints/a.opc", "checkpoints/b.opc"};

/* ---- the directory of a new run -------------------------------------------------------------- */

static void processor_name(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "unknown");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    fclose(f);
}

static int write_meta(const struct opc_run *run, const char *path, struct opc_err *err)
{
    char processor[128], text[64];
    const struct opc_env *env = run->play->env;
    struct utsname system;
    const time_t now = time(NULL);
    struct tm utc;
    processor_name(processor, sizeof processor);
    struct opc_json *j = opc_json_begin();
    opc_json_text(j, "opc", OPC_VERSION);
    opc_json_text(j, "revision", *opc_revision ? opc_revision : NULL);
    opc_json_text(j, "compiler", OPC_COMPILER);
    opc_json_text(j, "build", OPC_BUILD_TYPE);
    if (uname(&system) == 0) {
        snprintf(text, sizeof text, "%.20s %.40s", system.sysname, system.release);
        opc_json_text(j, "system", text);
        opc_json_text(j, "machine", system.machine);
    }
    opc_json_text(j, "processor", processor);
    opc_json_text(j, "kernels", opc_kernels()->name);
    opc_json_text(j, "env", run->set->env.name);
    opc_json_text(j, "engine", env->engine);
    opc_json_text(j, "model", env->model);
    snprintf(text, sizeof text, "%08x", (unsigned)env->model_hash);
    opc_json_text(j, "model_crc32c", env->model ? text : NULL);
    opc_json_whole(j, "observations", run->obs);
    opc_json_whole(j, "actions", run->act);
    opc_json_whole(j, "seed", run->set->train.seed);
    snprintf(text, sizeof text, "%08x", (unsigned)run->hash);
    opc_json_text(j, "config_crc32c", text);
    opc_json_whole(j, "threads", opc_pool_threads(run->pool));
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    opc_json_text(j, "started", text);
    return opc_json_write(j, path, err);
}

int opc_run_open_directory(struct opc_run *run, struct opc_err *err)
{
    char path[OPC_PATH];
    int code = opc_record_path(run->record, "checkpoints", path, err);
    if (!code)
        code = opc_make_directories(path, err);
    if (!code)
        code = opc_record_path(run->record, "meta.json", path, err);
    return code || opc_file_exists(path) ? code : write_meta(run, path, err);
}

/* ---- segments -------------------------------------------------------------------------------- */

static int segment_path(const struct opc_run *run, const char *kind, uint64_t epoch,
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

static int note_segment(struct opc_segments *s, struct opc_segment one, struct opc_err *err)
{
    if (s->n == s->room) {
        const uint64_t room = s->room ? 2 * s->room : 64;
        struct opc_segment *at = opc_alloc(room, sizeof *at);
        if (!at)
            return opc_fail(err, OPC_ENOMEM, "no room to list the segments of a checkpoint");
        if (s->n)
            memcpy(at, s->at, s->n * sizeof *at);
        opc_free(s->at);
        s->at = at;
        s->room = room;
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
    int code = segment_path(run, kind, one.epoch, path, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_SEGMENT, run->hash, one.epoch, part, parts, err);
    return code ? code : note_segment(s, one, err);
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
        return opc_fail(err, OPC_ENOMEM, "no room to save the imagined data");
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
        else if (!segment_path(run, "imagined", s->at[i].epoch, path, NULL))
            unlink(path);
    }
    s->n = kept;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Results depend on them in the last bits. */
enum { KERNELS = 16, MOST_TABLE = 1 << 30 };
static void kernels_name(char out[KERNELS])
{
    memset(out, 0, KERNELS);
    snprintf(out, KERNELS, "%s", opc_kernels()->name);
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
        return opc_fail(err, OPC_ENOMEM, "no room for a checkpoint");
    struct opc_play *p = run->play;
    char kernels[KERNELS];
    kernels_name(kernels);
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
        code = opc_fail(err, OPC_ENOMEM, "no room for a checkpoint");
    else
        *tape = run->imagined ? *opc_imagined_state(run->imagined) : none;
    if (!code)
        code = opc_gather_visit(g, "imagined.state", tape, sizeof *tape, err);
    if (!code)
        code = gather_networks(run, g, err);
    if (!code)
        code = opc_record_path(run->record, SLOT[run->slot_b], path, err);
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
    int code = run->agent->type->state(run->agent, opc_gather_visit, &g, err);
    if (!code)
        code = opc_record_path(run->record, "policy.opc", path, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_POLICY, run->hash, (uint64_t)run->now.epoch,
                                   g.part, g.parts, err);
    return code;
}

static void snapshot_name(long long epoch, char out[64])
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
    snapshot_name(run->now.epoch, name);
    if (!code)
        code = opc_record_path(run->record, name, path, err);
    if (!code)
        code = gather_networks(run, &g, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_SNAPSHOT, run->hash, (uint64_t)run->now.epoch,
                                   g.part, g.parts, err);
    return code;
}

/* ---- restoring ------------------------------------------------------------------------------- */

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
        code = note_segment(out, one, err);
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
    int code = segment_path(run, kind, want->epoch, path, err);
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
    if (code) {
        opc_pack_free(pack);
        return code;
    }
    *records = part->data;
    *out = pack;
    return OPC_OK;
}

static int restore_past(struct opc_run *run, struct opc_err *err)
{
    uint64_t at = 0;
    int code = OPC_OK;
    for (uint64_t i = 0; i < run->past_segments.n && !code; i++) {
        const struct opc_segment *s = &run->past_segments.at[i];
        struct opc_pack *pack;
        const float *records;
        if (s->from != at || s->to < at)
            code = opc_fail(err, OPC_EDAMAGED, "recorded steps from %llu on are in no segment",
                            (unsigned long long)at);
        if (!code)
            code = load_segment(run, "past", s, &pack, &records, err);
        if (code)
            break;
        at = s->to;
        code = opc_episodes_restore(run->past, records, (size_t)(s->to - s->from), err);
        opc_pack_free(pack);
    }
    return code;
}

static int restore_imagined(struct opc_run *run, const struct opc_pack *slot, struct opc_err *err)
{
    const size_t stride = opc_record_stride(run->obs, run->act);
    struct opc_imagined_state *tape = opc_alloc(1, sizeof *tape);
    if (!tape)
        return opc_fail(err, OPC_ENOMEM, "no room to restore the imagined data");
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
        return opc_fail(err, OPC_ENOMEM, "no room to restore an episode");
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

/* NULL where it cannot be read, which is no error: it only serves to tell. */
static int read_meta(const struct opc_run *run, struct opc_json_value **out, struct opc_err *err)
{
    char path[OPC_PATH];
    *out = NULL;
    int code = opc_record_path(run->record, "meta.json", path, err);
    if (!code)
        code = opc_json_read(path, out, err);
    return code == OPC_ENOMEM ? code : OPC_OK;
}

/* Are the settings still those the run began with? */
static bool has_its_settings(const struct opc_run *run)
{
    char hash[16];
    struct opc_json_value *meta;
    if (read_meta(run, &meta, NULL))
        return false;
    const char *began = opc_json_string(opc_json_find(meta, "config_crc32c"));
    snprintf(hash, sizeof hash, "%08x", (unsigned)run->hash);
    const bool same = began && strcmp(began, hash) == 0;
    opc_json_free(meta);
    return same;
}

static int apply(struct opc_run *run, struct opc_pack *slot, struct opc_err *err)
{
    struct opc_record_ends ends = {0};
    if (slot->hash != run->hash && has_its_settings(run))
        return opc_fail(err, OPC_EDAMAGED, "it belongs to a run of other settings");
    if (slot->hash != run->hash)
        return opc_fail(err, OPC_EUSER,
                        "%s/config.yaml was changed since the run began (only train.epochs may "
                        "be); undo that, or start another run",
                        opc_record_dir(run->record));
    if (slot->epoch > (uint64_t)run->set->train.epochs)
        return opc_fail(err, OPC_EUSER,
                        "the run has %llu epochs already; train.epochs = %d in %s/config.yaml can "
                        "be raised, but not lowered below that",
                        (unsigned long long)slot->epoch, run->set->train.epochs,
                        opc_record_dir(run->record));
    int code = opc_pack_get(slot, "run", &run->now, sizeof run->now, err);
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
        code = opc_record_begin(run->record, ends, run->model ? run->model->members : 0, err);
    run->stale = true;
    return code;
}

static void compare_kernels(const struct opc_run *run, const struct opc_pack *slot)
{
    char then[KERNELS], now[KERNELS];
    kernels_name(now);
    if (!opc_pack_get(slot, "kernels", then, sizeof then, NULL) &&
        memcmp(then, now, sizeof now) != 0)
        opc_record_log(run->record, OPC_WARN,
                       "this run was made with the kernels %.15s and goes on with %s; it will not "
                       "be the same to the bit (OPC_BACKEND=%.15s chooses the former)",
                       then, now, then);
}

/* Is it the world the run was begun in? */
static int compare_worlds(const struct opc_run *run, struct opc_err *err)
{
    const struct opc_env *env = run->play->env;
    char now[16];
    struct opc_json_value *meta;
    const int code = read_meta(run, &meta, err);
    if (code)
        return code;
    const char *engine = opc_json_string(opc_json_find(meta, "engine"));
    const char *model = opc_json_string(opc_json_find(meta, "model_crc32c"));
    snprintf(now, sizeof now, "%08x", (unsigned)env->model_hash);
    if (engine && env->engine && strcmp(engine, env->engine) != 0)
        opc_record_log(run->record, OPC_WARN, "this run was begun with %s and goes on with %s",
                       engine, env->engine);
    if (model && env->model && strcmp(model, now) != 0)
        opc_record_log(run->record, OPC_WARN,
                       "this run was begun with another model of %s than this one; set OPC_MODELS "
                       "as it was then",
                       run->set->env.name);
    opc_json_free(meta);
    return OPC_OK;
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
    char path[OPC_PATH], *rows = NULL;
    int code = opc_record_path(run->record, "metrics.csv", path, err);
    if (!code && opc_file_exists(path))
        code = opc_file_read(path, MOST_TABLE, &rows, NULL, err);
    int lines = 0;
    for (const char *c = rows ? rows : ""; *c; c++)
        lines += *c == '\n';
    opc_free(rows);
    if (!code)
        code = opc_record_path(run->record, "result.json", path, err);
    if (!code && (lines > 2 || opc_file_exists(path)))
        return opc_fail(err, OPC_EDAMAGED,
                        "%s has results but no checkpoint to go on from; it is left as it is; to "
                        "train again from the start, choose another directory",
                        opc_record_dir(run->record));
    return code ? code
                : opc_record_begin(run->record, (struct opc_record_ends){0},
                                   run->model ? run->model->members : 0, err);
}

int opc_run_restore(struct opc_run *run, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_pack *slot[2] = {NULL, NULL};
    int code = OPC_OK, present = 0;
    remove_leftovers(run);
    for (int i = 0; i < 2 && code != OPC_EUSER && code != OPC_ENOMEM; i++) {
        struct stat st;
        code = opc_record_path(run->record, SLOT[i], path, err);
        if (code || (stat(path, &st) && errno == ENOENT)) /* other troubles are those of reading */
            continue;
        present++;
        code = opc_checkpoint_load(path, OPC_PACK_RUN, &slot[i], err);
        if (code == OPC_EDAMAGED || code == OPC_EIO)
            opc_record_log(run->record, OPC_WARN, "%s", err->text);
    }
    const bool foreign = code == OPC_EUSER || code == OPC_ENOMEM;
    bool done = foreign || present == 0;
    if (!foreign && present == 0)
        code = begin_anew(run, err);
    while (!done && (slot[0] || slot[1])) {
        const int newest = !slot[0] || (slot[1] && slot[1]->epoch > slot[0]->epoch);
        code = apply(run, slot[newest], err);
        if (!code) {
            compare_kernels(run, slot[newest]);
            code = compare_worlds(run, err);
        }
        run->slot_b = !newest;
        opc_pack_free(slot[newest]);
        slot[newest] = NULL;
        done = code != OPC_EDAMAGED;
        if (done)
            break;
        opc_record_log(run->record, OPC_WARN, "%s: %s", SLOT[newest], err->text);
        struct opc_err fault;
        if (opc_run_remake(run, &fault)) {
            *err = fault;
            code = (int)fault.code;
            done = true;
        }
    }
    opc_pack_free(slot[0]);
    opc_pack_free(slot[1]);
    if (done)
        return code;
    return opc_fail(err, OPC_EDAMAGED,
                    "no checkpoint of %s can be used (log.txt says why); its metrics.csv is as it "
                    "was; to train again from the start, choose another directory",
                    opc_record_dir(run->record));
}

/* The newer of the two slots of those that are whole; *out is NULL if there is none. */
static int newest_slot(const char *dir, struct opc_pack **out, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_pack *best = NULL;
    int code = OPC_OK;
    for (int i = 0; i < 2; i++) {
        struct opc_pack *pack;
        if (opc_path_join(path, dir, SLOT[i], err) || !opc_file_exists(path))
            continue;
        code = opc_checkpoint_load(path, OPC_PACK_RUN, &pack, err);
        if (code == OPC_ENOMEM) { /* says nothing about the slot, so the other one must not do */
            opc_pack_free(best);
            return code;
        }
        if (code)
            continue;
        struct opc_pack *worse = best && best->epoch > pack->epoch ? pack : best;
        best = worse == pack ? best : pack;
        opc_pack_free(worse);
    }
    *out = best;
    return best ? OPC_OK : code;
}

static int check_hash(const char *dir, const struct opc_pack *pack, uint32_t hash,
                      struct opc_err *err)
{
    if (pack->hash == hash)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "%s/config.yaml was changed since the policy was trained", dir);
}

int opc_run_load_policy(const char *dir, uint32_t hash, struct opc_agent *agent,
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
        snapshot_name(epoch, name);
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
