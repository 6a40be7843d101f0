/* SPDX-License-Identifier: MIT */
/* Writes and reads files of recorded episodes. study/dataset writes them, run/prefill.c reads them.
 *
 * Invariant: what is loaded consists of whole episodes of finite numbers, so that appending them to
 * a past cannot fail half-way. */
#include "run/files/episodes_file.h"

#include "base/file.h"
#include "base/format/crc.h"
#include "data/episodes_private.h"
#include "opc/mem.h"

#include <math.h>
#include <string.h>

int opc_episodes_file_save(const char *path, const struct opc_episodes *past, int first,
                           const struct opc_env *env, struct opc_err *err)
{
    /* The records are written where they lie, from the first one of episode `first` on. */
    const struct opc_records all = opc_episodes_records(past);
    const size_t from = opc_episodes_record(opc_episodes_first(past, first), first),
                 limits = (size_t)env->act * sizeof *env->low;
    const int64_t shape[2] = {env->obs, env->act};
    /* The pack has a checksum for each section. */
    const struct opc_named part[] = {
        {"shape", shape, sizeof shape},
        {"task", env->spec, strlen(env->spec)},
        {"action.low", env->low, limits},
        {"action.high", env->high, limits},
        {"records", all.at + from * all.stride, (all.n - from) * all.stride * sizeof(float)},
    };
    return opc_checkpoint_save(path, OPC_PACK_EPISODES, 0, 0, part, sizeof part / sizeof *part,
                               err);
}

/* Counts steps and episodes, and looks at every number. */
static int check_records(struct opc_episodes_file *file, struct opc_err *err)
{
    const size_t stride = opc_record_stride(file->obs, file->act);
    long length = 0, steps = 0;
    for (size_t i = 0; i < file->n; i++) {
        const float *record = file->records + i * stride;
        /* A number that is not finite would reach every weight of the model. */
        for (size_t k = 0; k < stride; k++)
            if (!isfinite(record[k]))
                return opc_fail(err, OPC_EDAMAGED, "number %zu of its record %zu is not finite", k,
                                i);
        /* A record is a step, or the last state of the steps before it. */
        if (!opc_record_ends(record, stride)) {
            length++;
            continue;
        }
        if (length == 0)
            return opc_fail(err, OPC_EDAMAGED, "its record %zu does not belong to an episode", i);
        steps += length;
        file->episodes++;
        length = 0;
    }
    /* Nothing may follow the last end; an empty file is of no use to a run. */
    if (length > 0 || file->episodes == 0 || steps > 1000000000)
        return opc_fail(err, OPC_EDAMAGED, "it does not consist of whole episodes");
    file->steps = (int)steps;
    return OPC_OK;
}

/* The sections, once the checks of the pack have passed. */
static int find_parts(struct opc_episodes_file *file, struct opc_err *err)
{
    int64_t shape[2];
    /* The shape says how large the others must be. */
    OPC_TRY(opc_pack_get(file->pack, "shape", shape, sizeof shape, err));
    if (shape[0] < 1 || shape[1] < 1 || shape[0] > 1 << 20 || shape[1] > 1 << 20)
        return opc_fail(err, OPC_EDAMAGED, "it does not say what its episodes are of");
    file->obs = (int)shape[0];
    file->act = (int)shape[1];
    /* Then the sections, which must have exactly those sizes. */
    const struct opc_named *low = opc_pack_find(file->pack, "action.low"),
                           *high = opc_pack_find(file->pack, "action.high"),
                           *records = opc_pack_find(file->pack, "records");
    const size_t limits = (size_t)file->act * sizeof(double),
                 each = opc_record_stride(file->obs, file->act) * sizeof(float);
    if (!low || !high || !records || low->bytes != limits || high->bytes != limits ||
        records->bytes % each != 0)
        return opc_fail(err, OPC_EDAMAGED, "its sections do not fit each other");
    file->low = low->data;
    file->high = high->data;
    file->records = records->data;
    file->n = records->bytes / each;
    return check_records(file, err);
}

int opc_episodes_file_load(const char *path, struct opc_episodes_file *out, struct opc_err *err)
{
    struct opc_episodes_file file = {0};
    size_t n;
    OPC_TRY(opc_file_read(path, (size_t)1 << 36, &file.bytes, &n, err));
    /* Of all bytes, as opc_values_settle computes it. */
    file.checksum = opc_crc32c(0, file.bytes, n);
    int code = opc_pack_parse(path, file.bytes, n, &file.pack, err);
    if (!code && file.pack->kind != OPC_PACK_EPISODES)
        code = opc_fail(err, OPC_EUSER, "%s holds something else than episodes", path);
    else if (!code && (code = find_parts(&file, err)))
        opc_within(err, "%s", path);
    /* The caller gets a whole file or nothing. */
    if (code)
        opc_episodes_file_free(&file);
    else
        *out = file;
    return code;
}

void opc_episodes_file_free(struct opc_episodes_file *file)
{
    /* The pack points into the bytes, and everything else into the pack. */
    opc_pack_free(file->pack);
    opc_free(file->bytes);
    file->pack = NULL;
    file->bytes = NULL;
    file->records = NULL;
    file->low = file->high = NULL;
    file->n = 0;
}
