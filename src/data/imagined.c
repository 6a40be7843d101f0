/* SPDX-License-Identifier: MIT */
/* The replay buffer D_sim. opc/rollout.c appends, data/batch.c draws from it, run/save.c and
 * run/restore.c write and read its checkpoints. A change must keep: a record that is kept never
 * moves or changes, and which step a position holds depends on what was appended alone, not on
 * where blocks lie in memory. */
#define _DEFAULT_SOURCE /* madvise */
#include "data/imagined.h"

#include "base/sized.h"
#include "opc/mem.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The tape is cut into blocks of 2^shift records. A rollout lies within one block, so that it is
 * one run of memory; the end of a block that cannot hold the next one is filled with END records.
 *
 *     tape       ... |  block b  | block b+1 | block b+2 |
 *                        ^ front                 ^ end
 *     memory     place[b % blocks] says where block b is; `spare` is a stack of places not in use
 *
 * Blocks are freed as the front leaves them, and the block freed last is taken first, so the memory
 * ever touched is the most that was ever kept at once. A ring would touch all blocks. */
struct opc_imagined {
    struct opc_imagined_shape shape;
    size_t stride;
    int shift, blocks;
    float *records;    /* [blocks << shift][stride] */
    int *place;        /* [blocks] where block b of the tape lies, at b % blocks */
    int *spare;        /* [blocks] stack of places that are not in use, */
    int spares;        /* which has this many */
    uint64_t refilled; /* transitions found so far while restoring */
    struct opc_imagined_state now;
};

/* ---- sizes ----------------------------------------------------------------------------------- */

/* log2 of the records in a block: 64 rollouts or more, so that less than 2 % is lost at its end. */
static int shift_for(int longest)
{
    int shift = 10;
    while ((size_t)1 << shift < 64 * ((size_t)longest + 1))
        shift++;
    return shift;
}

/* Records of all that is kept, if every rollout has `length` steps. */
static double records_for(const struct opc_imagined_shape *shape, int length)
{
    const double epochs = shape->forget == OPC_FORGET_EPOCHS ? shape->retain : 1;
    return epochs * (double)shape->transitions / length * (length + 1);
}

static double bytes_for(const struct opc_imagined_shape *shape, double records)
{
    return records * (double)(opc_record_stride(shape->obs, shape->act) * sizeof(float));
}

size_t opc_imagined_need(const struct opc_imagined_shape *shape)
{
    const double block = (double)((size_t)1 << shift_for(shape->longest));
    return (size_t)bytes_for(shape, ceil(records_for(shape, shape->longest) / block) * block);
}

/* ---- making one ------------------------------------------------------------------------------ */

/* Batches are drawn from all over gigabytes: with pages of 2 MB most addresses are known to the
 * processor. Only a hint. */
static void ask_for_large_pages(void *start, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)start + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)start + bytes) / page * page;
    if (to > from && to - from >= (uintptr_t)64 << 20)
        (void)madvise((unsigned char *)start + (from - (uintptr_t)start), to - from, MADV_HUGEPAGE);
#else
    (void)start;
    (void)bytes;
#endif
}

int opc_imagined_create(const struct opc_imagined_shape *given, struct opc_imagined **out,
                        struct opc_err *err)
{
    struct opc_imagined_shape whole;
    const struct opc_imagined_shape *shape = &whole;
    OPC_TRY(opc_sized_read(given, "opc_imagined_shape", &whole, sizeof whole, err));
    if (shape->obs < 1 || shape->act < 1 || shape->longest < 1 || shape->transitions < 1 ||
        (shape->forget == OPC_FORGET_EPOCHS &&
         (shape->retain < 1 || shape->retain > OPC_RETAIN_MAX)))
        return opc_fail(err, OPC_EBUG,
                        "imagined data of %d epochs, %zu transitions, rollouts of %d (%d + %d)",
                        shape->retain, shape->transitions, shape->longest, shape->obs, shape->act);
    /* At the worst rollouts have one step and a block is left with its last `longest` records
     * empty; front and end may each stand inside a block. */
    const int shift = shift_for(shape->longest);
    const double block = (double)((size_t)1 << shift);
    const double blocks = ceil(records_for(shape, 1) / (block - shape->longest)) + 2;
    const double gigabytes = bytes_for(shape, blocks * block) / 1e9;
    if (blocks * block > INT_MAX) /* a record is numbered by an int */
        return opc_fail(err, OPC_EUSER,
                        "%zu imagined transitions%s are more than the 10^9 that can be kept; lower "
                        "opc.transitions or data.retain",
                        shape->transitions,
                        shape->forget == OPC_FORGET_EPOCHS ? " in each epoch" : "");
    struct opc_imagined *store = opc_alloc(1, sizeof *store);
    if (!store)
        goto full;
    store->shape = *shape;
    store->stride = opc_record_stride(shape->obs, shape->act);
    store->shift = shift;
    store->blocks = (int)blocks;
    store->place = opc_alloc((size_t)store->blocks, sizeof *store->place);
    store->spare = opc_alloc((size_t)store->blocks, sizeof *store->spare);
    store->records =
        opc_alloc((size_t)store->blocks << shift, store->stride * sizeof *store->records);
    if (!store->place || !store->spare || !store->records)
        goto full;
    ask_for_large_pages(store->records,
                        ((size_t)store->blocks << shift) * store->stride * sizeof *store->records);
    /* The stack starts with block 0 on top, so memory is touched from its start. */
    for (store->spares = 0; store->spares < store->blocks; store->spares++)
        store->spare[store->spares] = store->blocks - 1 - store->spares;
    store->now.limit = shape->transitions;
    *out = store;
    return OPC_OK;
full:
    opc_imagined_destroy(store);
    return opc_fail(
        err, OPC_ENOMEM,
        "not enough memory for the imagined data: %.1f GB have to be reserved, of which about "
        "%.1f GB will be used; lower opc.transitions or data.retain",
        gigabytes, (double)opc_imagined_need(shape) / 1e9);
}

void opc_imagined_destroy(struct opc_imagined *store)
{
    if (!store)
        return;
    opc_free(store->records);
    opc_free(store->place);
    opc_free(store->spare);
    opc_free(store);
}

/* ---- the tape -------------------------------------------------------------------------------- */

static uint64_t block_of(const struct opc_imagined *store, uint64_t position)
{
    return position >> store->shift;
}

static uint64_t offset_of(const struct opc_imagined *store, uint64_t position)
{
    return position & (((uint64_t)1 << store->shift) - 1);
}

/* Number of the record at a position that is kept, or is being written. */
static size_t number_of(const struct opc_imagined *store, uint64_t position)
{
    const int place = store->place[block_of(store, position) % (uint64_t)store->blocks];
    return ((size_t)place << store->shift) + (size_t)offset_of(store, position);
}

static float *record_at(const struct opc_imagined *store, uint64_t position)
{
    return store->records + number_of(store, position) * store->stride;
}

/* The first block that starts at or after a position. */
static uint64_t blocks_to(const struct opc_imagined *store, uint64_t position)
{
    return block_of(store, position + ((uint64_t)1 << store->shift) - 1);
}

static void take_blocks(struct opc_imagined *store, uint64_t from, uint64_t to)
{
    for (uint64_t b = from; b < to; b++)
        store->place[b % (uint64_t)store->blocks] = store->spare[--store->spares];
}

static void free_blocks(struct opc_imagined *store, uint64_t from, uint64_t to)
{
    for (uint64_t b = from; b < to; b++)
        store->spare[store->spares++] = store->place[b % (uint64_t)store->blocks];
}

/* The tape grows to `end` or shrinks from `front`: blocks are taken and freed at the boundaries. */
static void move_end(struct opc_imagined *store, uint64_t end)
{
    take_blocks(store, blocks_to(store, store->now.end), blocks_to(store, end));
    store->now.end = end;
}

static void move_front(struct opc_imagined *store, uint64_t front)
{
    free_blocks(store, block_of(store, store->now.front), block_of(store, front));
    store->now.front = front;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

static void forget_oldest_epoch(struct opc_imagined *store)
{
    struct opc_imagined_state *state = &store->now;
    state->transitions -= state->epoch[0].transitions;
    state->rollouts -= state->epoch[0].rollouts;
    state->epochs--;
    memmove(state->epoch, state->epoch + 1, state->epochs * sizeof *state->epoch);
    move_front(store, state->epochs > 0 ? state->epoch[0].start : state->end);
}

static void forget_oldest_rollout(struct opc_imagined *store)
{
    struct opc_rollout_rows rows;
    uint64_t after = store->now.front;
    if (!opc_imagined_next(store, &after, &rows))
        return;
    store->now.transitions -= (uint64_t)rows.steps;
    store->now.rollouts--;
    move_front(store, after);
}

/* STEPS: forgets the oldest rollouts until `steps` more fit under the limit. */
static void evict(struct opc_imagined *store, uint64_t steps)
{
    while (store->now.rollouts > 0 && store->now.transitions + steps > store->now.limit)
        forget_oldest_rollout(store);
}

void opc_imagined_limit(struct opc_imagined *store, size_t transitions)
{
    store->now.limit =
        transitions < store->shape.transitions ? transitions : store->shape.transitions;
    if (store->shape.forget == OPC_FORGET_STEPS)
        evict(store, 0);
}

void opc_imagined_clear(struct opc_imagined *store)
{
    struct opc_imagined_state *state = &store->now;
    const uint64_t after = blocks_to(store, state->end);
    /* Positions never go back: the tape goes on at the next whole block. */
    free_blocks(store, block_of(store, state->front), after);
    state->front = state->end = after << store->shift;
    state->transitions = state->rollouts = state->epochs = 0;
}

void opc_imagined_open_epoch(struct opc_imagined *store, int epoch)
{
    struct opc_imagined_state *state = &store->now;
    if (state->epochs > 0 && state->epoch[state->epochs - 1].epoch == epoch)
        return;
    if (store->shape.forget == OPC_FORGET_STEPS)
        state->epochs = 0;
    else
        while (state->epochs > 0 && state->epoch[0].epoch <= epoch - store->shape.retain)
            forget_oldest_epoch(store);
    state->epoch[state->epochs++] =
        (struct opc_imagined_epoch){.epoch = epoch, .start = state->end};
}

/* ---- writing --------------------------------------------------------------------------------- */

int opc_imagined_append(struct opc_imagined *store, int steps, const float *records,
                        struct opc_err *err)
{
    struct opc_imagined_state *state = &store->now;
    if (state->epochs == 0 || steps < 1 || steps > store->shape.longest)
        return opc_fail(err, OPC_EBUG,
                        "a rollout of %d steps comes where they have 1 to %d and %s epoch is open",
                        steps, store->shape.longest, state->epochs == 0 ? "no" : "an");
    if (store->shape.forget == OPC_FORGET_STEPS)
        evict(store, (uint64_t)steps);

    /* A rollout must not cross a block: if the rest of this one is too short, it becomes a gap of
     * END records. */
    const uint64_t n = (uint64_t)steps + 1, block = (uint64_t)1 << store->shift;
    const uint64_t left = blocks_to(store, state->end) * block - state->end;
    const uint64_t gap = left < n ? left : 0;
    if (left < n && store->spares == 0)
        return opc_fail(err, OPC_EBUG, "the imagined data is full at %zu transitions",
                        (size_t)state->transitions);
    for (uint64_t i = 0; i < gap; i++) {
        float *record = record_at(store, state->end + i);
        memset(record, 0, store->stride * sizeof *record);
        record[store->stride - 1] = OPC_RECORD_END;
    }
    const uint64_t at = state->end + gap;
    move_end(store, at + n);
    memcpy(record_at(store, at), records, n * store->stride * sizeof *records);

    struct opc_imagined_epoch *epoch = &state->epoch[state->epochs - 1];
    state->transitions += (uint64_t)steps;
    epoch->transitions += (uint64_t)steps;
    state->rollouts++;
    epoch->rollouts++;
    return OPC_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

size_t opc_imagined_transitions(const struct opc_imagined *store)
{
    return (size_t)store->now.transitions;
}

size_t opc_imagined_rollouts(const struct opc_imagined *store)
{
    return (size_t)store->now.rollouts;
}

int opc_imagined_obs(const struct opc_imagined *store)
{
    return store->shape.obs;
}

int opc_imagined_act(const struct opc_imagined *store)
{
    return store->shape.act;
}

const float *opc_imagined_records(const struct opc_imagined *store)
{
    return store->records;
}

uint32_t opc_imagined_positions(const struct opc_imagined *store)
{
    return (uint32_t)(store->now.end - store->now.front);
}

int opc_imagined_record(const struct opc_imagined *store, uint32_t i)
{
    return (int)number_of(store, store->now.front + i);
}

bool opc_imagined_next(const struct opc_imagined *store, uint64_t *position,
                       struct opc_rollout_rows *out)
{
    uint64_t at = *position < store->now.front ? store->now.front : *position;
    while (at < store->now.end && opc_record_ends(record_at(store, at), store->stride)) /* a gap */
        at++;
    if (at >= store->now.end)
        return false;
    /* A rollout lies in one block, so its records are adjacent up to its END. */
    const float *records = record_at(store, at);
    int steps = 1;
    while (!opc_record_ends(records + (size_t)steps * store->stride, store->stride))
        steps++;
    *out = (struct opc_rollout_rows){.steps = steps, .records = records};
    *position = at + (uint64_t)steps + 1;
    return true;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

const struct opc_imagined_state *opc_imagined_state(const struct opc_imagined *store)
{
    return &store->now;
}

const float *opc_imagined_piece(const struct opc_imagined *store, uint64_t from, size_t *n)
{
    if (from < store->now.front || from >= store->now.end)
        return NULL;
    const uint64_t block_end = (block_of(store, from) + 1) << store->shift;
    *n = (size_t)((block_end < store->now.end ? block_end : store->now.end) - from);
    return record_at(store, from);
}

/* True if the epochs follow each other from the front on and add up to the whole. */
static bool epochs_fit(const struct opc_imagined_state *state)
{
    uint64_t at = state->front, transitions = 0, rollouts = 0;
    for (uint64_t i = 0; i < state->epochs; i++) {
        const struct opc_imagined_epoch *epoch = &state->epoch[i];
        if (epoch->start < at || epoch->start > state->end || (i == 0 && epoch->start != at))
            return false;
        at = epoch->start;
        transitions += epoch->transitions;
        rollouts += epoch->rollouts;
    }
    return transitions == state->transitions && rollouts == state->rollouts;
}

int opc_imagined_restore(struct opc_imagined *store, const struct opc_imagined_state *state,
                         struct opc_err *err)
{
    /* A damaged state must not index memory: everything is checked before it counts. */
    const uint64_t first = block_of(store, state->front);
    if (state->front > state->end || state->end > UINT64_MAX / 2 ||
        state->epochs > OPC_RETAIN_MAX ||
        (store->shape.forget == OPC_FORGET_EPOCHS && !epochs_fit(state)) ||
        state->limit > store->shape.transitions ||
        blocks_to(store, state->end) - first > (uint64_t)store->blocks ||
        (store->shape.forget == OPC_FORGET_EPOCHS && state->epochs > (uint64_t)store->shape.retain))
        return opc_fail(err, OPC_EDAMAGED, "there is more imagined data than this run can hold");
    opc_imagined_clear(store);
    store->now = *state;
    store->refilled = 0;
    take_blocks(store, first, blocks_to(store, state->end));
    return OPC_OK;
}

int opc_imagined_refill(struct opc_imagined *store, uint64_t at, const float *records, size_t n,
                        struct opc_err *err)
{
    if (at < store->now.front || at > store->now.end || n > store->now.end - at)
        return opc_fail(err, OPC_EDAMAGED, "imagined records %llu .. are not of this store",
                        (unsigned long long)at);
    for (size_t i = 0; i < n; i++, at++, records += store->stride) {
        memcpy(record_at(store, at), records, store->stride * sizeof *records);
        store->refilled += !opc_record_ends(records, store->stride);
    }
    /* After the last record the transitions must add up, and the last rollout must be whole. */
    if (at == store->now.end &&
        (store->refilled != store->now.transitions ||
         (n > 0 && !opc_record_ends(records - store->stride, store->stride))))
        return opc_fail(err, OPC_EDAMAGED, "the imagined data has %llu transitions and not %llu",
                        (unsigned long long)store->refilled,
                        (unsigned long long)store->now.transitions);
    return OPC_OK;
}
