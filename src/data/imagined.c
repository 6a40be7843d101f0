/* SPDX-License-Identifier: MIT */
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
 * one run of memory; what is left of a block that cannot take the next one is filled with END.
 *
 *     tape       ... |  block b  | block b+1 | block b+2 |
 *                        ^ front                 ^ end
 *     memory     place[b % blocks] says where block b is; `spare` is a stack of places not in use
 *
 * Blocks are freed as the front leaves them and the one freed last is taken first, so the memory
 * ever touched is the most that was ever kept. A ring over the whole room would touch all of it. */
struct opc_imagined {
    struct opc_imagined_shape shape;
    size_t stride;
    int shift, blocks;
    float *records; /* [blocks << shift][stride] */
    int *place;     /* [blocks] */
    int *spare;     /* [blocks] */
    int spares;
    uint64_t refilled; /* transitions found so far while restoring */
    struct opc_imagined_state now;
};

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Blocks of 64 rollouts or more, so that what is lost at their ends is below 2 %. */
static int shift_for(int longest)
{
    int shift = 10;
    while ((size_t)1 << shift < 64 * ((size_t)longest + 1))
        shift++;
    return shift;
}

/* Records of all that is kept, if every rollout has `length` steps. */
static double records_for(const struct opc_imagined_shape *s, int length)
{
    const double epochs = s->forget == OPC_FORGET_EPOCHS ? s->retain : 1;
    return epochs * (double)s->transitions / length * (length + 1);
}

static double bytes_for(const struct opc_imagined_shape *s, double records)
{
    return records * (double)(opc_record_stride(s->obs, s->act) * sizeof(float));
}

size_t opc_imagined_need(const struct opc_imagined_shape *s)
{
    const double block = (double)((size_t)1 << shift_for(s->longest));
    return (size_t)bytes_for(s, ceil(records_for(s, s->longest) / block) * block);
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
    struct opc_imagined *d = opc_alloc(1, sizeof *d);
    if (!d)
        goto full;
    d->shape = *shape;
    d->stride = opc_record_stride(shape->obs, shape->act);
    d->shift = shift;
    d->blocks = (int)blocks;
    d->place = opc_alloc((size_t)d->blocks, sizeof *d->place);
    d->spare = opc_alloc((size_t)d->blocks, sizeof *d->spare);
    d->records = opc_alloc((size_t)d->blocks << shift, d->stride * sizeof *d->records);
    if (!d->place || !d->spare || !d->records)
        goto full;
    ask_for_large_pages(d->records, ((size_t)d->blocks << shift) * d->stride * sizeof *d->records);
    for (d->spares = 0; d->spares < d->blocks; d->spares++)
        d->spare[d->spares] = d->blocks - 1 - d->spares;
    d->now.limit = shape->transitions;
    *out = d;
    return OPC_OK;
full:
    opc_imagined_destroy(d);
    return opc_fail(
        err, OPC_ENOMEM,
        "not enough memory for the imagined data: %.1f GB have to be reserved, of which about "
        "%.1f GB will be used; lower opc.transitions or data.retain",
        gigabytes, (double)opc_imagined_need(shape) / 1e9);
}

void opc_imagined_destroy(struct opc_imagined *d)
{
    if (!d)
        return;
    opc_free(d->records);
    opc_free(d->place);
    opc_free(d->spare);
    opc_free(d);
}

/* ---- the tape -------------------------------------------------------------------------------- */

static uint64_t block_of(const struct opc_imagined *d, uint64_t position)
{
    return position >> d->shift;
}

static uint64_t offset_of(const struct opc_imagined *d, uint64_t position)
{
    return position & (((uint64_t)1 << d->shift) - 1);
}

/* Number of the record at a position that is kept, or is being written. */
static size_t number_of(const struct opc_imagined *d, uint64_t position)
{
    const int place = d->place[block_of(d, position) % (uint64_t)d->blocks];
    return ((size_t)place << d->shift) + (size_t)offset_of(d, position);
}

static float *record_at(const struct opc_imagined *d, uint64_t position)
{
    return d->records + number_of(d, position) * d->stride;
}

/* The first block that lies wholly at or behind a position. */
static uint64_t blocks_to(const struct opc_imagined *d, uint64_t position)
{
    return block_of(d, position + ((uint64_t)1 << d->shift) - 1);
}

static void take_blocks(struct opc_imagined *d, uint64_t from, uint64_t to)
{
    for (uint64_t b = from; b < to; b++)
        d->place[b % (uint64_t)d->blocks] = d->spare[--d->spares];
}

static void free_blocks(struct opc_imagined *d, uint64_t from, uint64_t to)
{
    for (uint64_t b = from; b < to; b++)
        d->spare[d->spares++] = d->place[b % (uint64_t)d->blocks];
}

static void move_end(struct opc_imagined *d, uint64_t end)
{
    take_blocks(d, blocks_to(d, d->now.end), blocks_to(d, end));
    d->now.end = end;
}

static void move_front(struct opc_imagined *d, uint64_t front)
{
    free_blocks(d, block_of(d, d->now.front), block_of(d, front));
    d->now.front = front;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

static void forget_oldest_epoch(struct opc_imagined *d)
{
    struct opc_imagined_state *s = &d->now;
    s->transitions -= s->epoch[0].transitions;
    s->rollouts -= s->epoch[0].rollouts;
    s->epochs--;
    memmove(s->epoch, s->epoch + 1, s->epochs * sizeof *s->epoch);
    move_front(d, s->epochs > 0 ? s->epoch[0].start : s->end);
}

static void forget_oldest_rollout(struct opc_imagined *d)
{
    struct opc_rollout_rows rows;
    uint64_t after = d->now.front;
    if (!opc_imagined_next(d, &after, &rows))
        return;
    d->now.transitions -= (uint64_t)rows.steps;
    d->now.rollouts--;
    move_front(d, after);
}

static void evict(struct opc_imagined *d, uint64_t steps)
{
    while (d->now.rollouts > 0 && d->now.transitions + steps > d->now.limit)
        forget_oldest_rollout(d);
}

void opc_imagined_limit(struct opc_imagined *d, size_t transitions)
{
    d->now.limit = transitions < d->shape.transitions ? transitions : d->shape.transitions;
    if (d->shape.forget == OPC_FORGET_STEPS)
        evict(d, 0);
}

void opc_imagined_clear(struct opc_imagined *d)
{
    struct opc_imagined_state *s = &d->now;
    const uint64_t after = blocks_to(d, s->end);
    free_blocks(d, block_of(d, s->front), after);
    s->front = s->end = after << d->shift;
    s->transitions = s->rollouts = s->epochs = 0;
}

void opc_imagined_open_epoch(struct opc_imagined *d, int epoch)
{
    struct opc_imagined_state *s = &d->now;
    if (s->epochs > 0 && s->epoch[s->epochs - 1].epoch == epoch)
        return;
    if (d->shape.forget == OPC_FORGET_STEPS)
        s->epochs = 0;
    else
        while (s->epochs > 0 && s->epoch[0].epoch <= epoch - d->shape.retain)
            forget_oldest_epoch(d);
    s->epoch[s->epochs++] = (struct opc_imagined_epoch){.epoch = epoch, .start = s->end};
}

/* ---- writing --------------------------------------------------------------------------------- */

int opc_imagined_append(struct opc_imagined *d, int steps, const float *records,
                        struct opc_err *err)
{
    struct opc_imagined_state *s = &d->now;
    if (s->epochs == 0 || steps < 1 || steps > d->shape.longest)
        return opc_fail(err, OPC_EBUG,
                        "a rollout of %d steps comes where they have 1 to %d and %s epoch is open",
                        steps, d->shape.longest, s->epochs == 0 ? "no" : "an");
    if (d->shape.forget == OPC_FORGET_STEPS)
        evict(d, (uint64_t)steps);

    const uint64_t n = (uint64_t)steps + 1, block = (uint64_t)1 << d->shift;
    const uint64_t left = blocks_to(d, s->end) * block - s->end;
    const uint64_t gap = left < n ? left : 0;
    if (left < n && d->spares == 0)
        return opc_fail(err, OPC_EBUG, "the imagined data is full at %zu transitions",
                        (size_t)s->transitions);
    for (uint64_t i = 0; i < gap; i++) {
        float *record = record_at(d, s->end + i);
        memset(record, 0, d->stride * sizeof *record);
        record[d->stride - 1] = OPC_END;
    }
    const uint64_t at = s->end + gap;
    move_end(d, at + n);
    memcpy(record_at(d, at), records, n * d->stride * sizeof *records);

    struct opc_imagined_epoch *e = &s->epoch[s->epochs - 1];
    s->transitions += (uint64_t)steps;
    e->transitions += (uint64_t)steps;
    s->rollouts++;
    e->rollouts++;
    return OPC_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

size_t opc_imagined_transitions(const struct opc_imagined *d)
{
    return (size_t)d->now.transitions;
}

size_t opc_imagined_rollouts(const struct opc_imagined *d)
{
    return (size_t)d->now.rollouts;
}

int opc_imagined_obs(const struct opc_imagined *d)
{
    return d->shape.obs;
}

int opc_imagined_act(const struct opc_imagined *d)
{
    return d->shape.act;
}

const float *opc_imagined_records(const struct opc_imagined *d)
{
    return d->records;
}

uint32_t opc_imagined_positions(const struct opc_imagined *d)
{
    return (uint32_t)(d->now.end - d->now.front);
}

int opc_imagined_record(const struct opc_imagined *d, uint32_t i)
{
    return (int)number_of(d, d->now.front + i);
}

bool opc_imagined_next(const struct opc_imagined *d, uint64_t *position,
                       struct opc_rollout_rows *out)
{
    uint64_t at = *position < d->now.front ? d->now.front : *position;
    while (at < d->now.end && opc_record_ends(record_at(d, at), d->stride)) /* a gap */
        at++;
    if (at >= d->now.end)
        return false;
    const float *records = record_at(d, at);
    int steps = 1;
    while (!opc_record_ends(records + (size_t)steps * d->stride, d->stride))
        steps++;
    *out = (struct opc_rollout_rows){.steps = steps, .records = records};
    *position = at + (uint64_t)steps + 1;
    return true;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

const struct opc_imagined_state *opc_imagined_state(const struct opc_imagined *d)
{
    return &d->now;
}

const float *opc_imagined_piece(const struct opc_imagined *d, uint64_t from, size_t *n)
{
    if (from < d->now.front || from >= d->now.end)
        return NULL;
    const uint64_t block_end = (block_of(d, from) + 1) << d->shift;
    *n = (size_t)((block_end < d->now.end ? block_end : d->now.end) - from);
    return record_at(d, from);
}

/* Do the epochs follow each other, from the front on, and make up the whole? */
static bool epochs_fit(const struct opc_imagined_state *s)
{
    uint64_t at = s->front, transitions = 0, rollouts = 0;
    for (uint64_t i = 0; i < s->epochs; i++) {
        const struct opc_imagined_epoch *e = &s->epoch[i];
        if (e->start < at || e->start > s->end || (i == 0 && e->start != at))
            return false;
        at = e->start;
        transitions += e->transitions;
        rollouts += e->rollouts;
    }
    return transitions == s->transitions && rollouts == s->rollouts;
}

int opc_imagined_restore(struct opc_imagined *d, const struct opc_imagined_state *state,
                         struct opc_err *err)
{
    const uint64_t first = block_of(d, state->front);
    if (state->front > state->end || state->end > UINT64_MAX / 2 ||
        state->epochs > OPC_RETAIN_MAX ||
        (d->shape.forget == OPC_FORGET_EPOCHS && !epochs_fit(state)) ||
        state->limit > d->shape.transitions ||
        blocks_to(d, state->end) - first > (uint64_t)d->blocks ||
        (d->shape.forget == OPC_FORGET_EPOCHS && state->epochs > (uint64_t)d->shape.retain))
        return opc_fail(err, OPC_EDAMAGED, "there is more imagined data than this run can hold");
    opc_imagined_clear(d);
    d->now = *state;
    d->refilled = 0;
    take_blocks(d, first, blocks_to(d, state->end));
    return OPC_OK;
}

int opc_imagined_refill(struct opc_imagined *d, uint64_t at, const float *records, size_t n,
                        struct opc_err *err)
{
    if (at < d->now.front || at > d->now.end || n > d->now.end - at)
        return opc_fail(err, OPC_EDAMAGED, "imagined records %llu .. are not of this store",
                        (unsigned long long)at);
    for (size_t i = 0; i < n; i++, at++, records += d->stride) {
        memcpy(record_at(d, at), records, d->stride * sizeof *records);
        d->refilled += !opc_record_ends(records, d->stride);
    }
    if (at == d->now.end && (d->refilled != d->now.transitions ||
                             (n > 0 && !opc_record_ends(records - d->stride, d->stride))))
        return opc_fail(err, OPC_EDAMAGED, "the imagined data has %llu transitions and not %llu",
                        (unsigned long long)d->refilled, (unsigned long long)d->now.transitions);
    return OPC_OK;
}
