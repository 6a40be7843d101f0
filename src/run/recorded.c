/* SPDX-License-Identifier: MIT */
/* Reads a run's recording without the rest of the run: restore.c needs a whole run to put things
 * into, a study needs only the episodes. Called by study/probe.
 *
 * A checkpoint lists the segments of the recording that belong to it. Segments are files of their
 * own, one per epoch that recorded something, and never change once they are written. */
#include "run/recorded.h"

#include "data/episodes_private.h"
#include "opc/mem.h"
#include "run/files/checkpoint.h"
#include "run/save.h"

#include <stdio.h>
#include <string.h>

/* The intact slot of the later epoch; *out stays NULL if there is none, with the reason in err. */
static int load_newest_slot(const char *dir, struct opc_pack **out, struct opc_err *err)
{
    struct opc_pack *newest = NULL;
    int code = OPC_OK, present = 0;
    for (int i = 0; i < 2; i++) {
        char path[OPC_PATH];
        struct opc_pack *slot;
        if (opc_path_join(path, dir, opc_slot_name[i], err) || !opc_file_exists(path))
            continue;
        present++;
        code = opc_checkpoint_load(path, OPC_PACK_RUN, &slot, err);
        if (code)
            continue; /* a damaged slot does no harm if the other one is intact */
        if (newest && newest->epoch > slot->epoch) {
            opc_pack_free(slot);
            continue;
        }
        opc_pack_free(newest);
        newest = slot;
    }
    if (!newest && !present)
        return opc_fail(err, OPC_EUSER, "%s has no checkpoint, so there is no recording to read",
                        dir);
    *out = newest;
    return newest ? OPC_OK : code;
}

/* Appends the records of one segment to the past. */
static int append_segment(const char *dir, const struct opc_segment *want, size_t stride,
                          struct opc_episodes *past, struct opc_err *err)
{
    char path[OPC_PATH], name[64];
    struct opc_segment got;
    struct opc_pack *pack;
    snprintf(name, sizeof name, "checkpoints/past-%06llu.opc", (unsigned long long)want->epoch);
    OPC_TRY(opc_path_join(path, dir, name, err));
    OPC_TRY(opc_checkpoint_load(path, OPC_PACK_SEGMENT, &pack, err));
    int code = opc_pack_get(pack, "range", &got, sizeof got, err);
    const struct opc_named *part = opc_pack_find(pack, "records");
    const size_t records = (size_t)(want->to - want->from);
    if (!code && (!part || memcmp(&got, want, sizeof got) != 0 ||
                  part->bytes != records * stride * sizeof(float)))
        code = opc_fail(err, OPC_EDAMAGED, "%s is not the segment this checkpoint was made with",
                        path);
    if (!code)
        code = opc_episodes_restore(past, part->data, records, err);
    opc_pack_free(pack);
    return code;
}

/* Does the list, which may be NULL, have a segment of this epoch? */
static bool has_epoch(const struct opc_named *list, uint64_t epoch)
{
    for (size_t i = 0; list && i < list->bytes / sizeof(struct opc_segment); i++) {
        struct opc_segment one;
        memcpy(&one, (const char *)list->data + i * sizeof one, sizeof one);
        if (one.epoch == epoch)
            return true;
    }
    return false;
}

/* All segments in their order, but those that the run goes on without, and how many episodes there
 * are at the end of each epoch. */
static int append_segments(const char *dir, const struct opc_named *list,
                           const struct opc_named *missing, size_t stride, struct opc_recorded *r,
                           struct opc_err *err)
{
    int epoch = 0; /* up to which `episodes` is known */
    for (size_t i = 0; i < list->bytes / sizeof(struct opc_segment); i++) {
        struct opc_segment one;
        memcpy(&one, (const char *)list->data + i * sizeof one, sizeof one);
        if (one.epoch > (uint64_t)r->epochs || one.to < one.from)
            return opc_fail(err, OPC_EDAMAGED, "the list of recorded segments makes no sense");
        for (; epoch < (int)one.epoch; epoch++)
            r->episodes[epoch] = opc_episodes_count(r->past);
        if (!has_epoch(missing, one.epoch))
            OPC_TRY(append_segment(dir, &one, stride, r->past, err));
    }
    for (; epoch <= r->epochs; epoch++)
        r->episodes[epoch] = opc_episodes_count(r->past);
    return OPC_OK;
}

/* The steps of all segments together: an episode has one record more than steps, so it is enough.
 */
static uint64_t count_records(const struct opc_named *list)
{
    uint64_t n = 0;
    for (size_t i = 0; i < list->bytes / sizeof(struct opc_segment); i++) {
        struct opc_segment one;
        memcpy(&one, (const char *)list->data + i * sizeof one, sizeof one);
        n += one.to - one.from;
    }
    return n;
}

int opc_recorded_load(const char *dir, const struct opc_config *config, int obs, int act,
                      struct opc_recorded *out, struct opc_err *err)
{
    struct opc_recorded r = {0};
    struct opc_pack *slot = NULL;
    OPC_TRY(load_newest_slot(dir, &slot, err));
    const struct opc_named *list = opc_pack_find(slot, "past");
    uint64_t records = 0;
    int code = OPC_OK;
    if (slot->hash != opc_config_hash(&config->set))
        code = opc_fail(err, OPC_EUSER, "%s/config.yaml is not what its checkpoint was made with",
                        dir);
    else if (!list || list->bytes % sizeof(struct opc_segment) != 0 || slot->epoch > 1000000 ||
             (records = count_records(list)) > 1000000000)
        code =
            opc_fail(err, OPC_EDAMAGED, "the checkpoint of %s has no list of its recording", dir);
    if (!code) {
        r.epochs = (int)slot->epoch;
        r.episodes = opc_alloc((size_t)r.epochs + 1, sizeof *r.episodes);
        code = r.episodes
                   ? opc_episodes_create(obs, act, (int)records + 1, (int)records + 1, &r.past, err)
                   : opc_fail(err, OPC_ENOMEM, "not enough memory to read a recording");
    }
    if (!code)
        code = append_segments(dir, list, opc_pack_find(slot, "past.missing"),
                               opc_record_stride(obs, act), &r, err);
    opc_pack_free(slot);
    if (code)
        opc_recorded_free(&r);
    else
        *out = r;
    return code;
}

void opc_recorded_free(struct opc_recorded *r)
{
    opc_episodes_destroy(r->past);
    opc_free(r->episodes);
    *r = (struct opc_recorded){0};
}
