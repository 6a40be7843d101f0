/* SPDX-License-Identifier: MIT */
/* A pool of threads. Models, agents and batches of environments hand it loops over independent
 * items; it is the only code that starts threads.
 *
 * How a call works: the caller writes down the job and then sets `unclaimed` to its number of
 * chunks. Every thread, the caller included, claims a chunk by decrementing `unclaimed`; when
 * nothing is left to claim, it decrements `unfinished` by the number of chunks it has completed.
 *
 * A thread reads the job only between claiming a chunk and accounting for it, and the caller
 * changes the job only when all chunks are accounted for. So the job needs no lock, and a thread
 * that sleeps through a whole call is not waited for: on a busy machine the others do its share.
 *
 * Waiting starts with spinning, because calls follow each other within microseconds, and ends on a
 * condition variable. A thread that goes to sleep says so first and then looks again; a thread that
 * has news publishes it first and then looks for sleepers. In the single order of those
 * (sequentially consistent) operations at least one of the two sees the other: weakening one of
 * them loses wake-ups. */
#define _GNU_SOURCE /* sched_getaffinity; NOLINT(bugprone-reserved-identifier) */
#include "base/pool.h"

#include "base/clock.h"
#include "base/fault.h"
#include "opc/mem.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Longer than the pause between two calls of a training step, shorter than a time slice. */
#define SPIN_SECONDS 50e-6
enum { LINE = 64, MAX_THREADS = 1024 };

struct worker {
    struct opc_pool *pool;
    pthread_t thread;
};

/* The two counters have a cache line each, because different threads write them all the time.
 * NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct opc_pool {
    _Alignas(LINE) atomic_int unclaimed; /* chunks; STOP asks the threads to return */
    _Alignas(LINE) atomic_int unfinished;

    /* The job: written by the caller before `unclaimed`, read by whoever has claimed a chunk. */
    _Alignas(LINE) opc_chunk_fn *fn;
    void *ctx;
    int items, per_chunk, chunks;

    int threads, started;      /* the caller is thread 0 and is not in `workers` */
    bool spin;                 /* only if every thread has a processor to spin on */
    atomic_bool caller_sleeps; /* waiting for `done` */
    atomic_int sleepers;       /* workers waiting for `work` */
    struct worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
};

enum { STOP = -1 };

static _Thread_local int current_worker = -1;

int opc_pool_worker(void)
{
    return current_worker;
}

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ volatile("yield")
#else
#define RELAX() sched_yield()
#endif

/* Watches `word` until it is zero (or is not, as `zero` says) and returns true, or gives up after
 * SPIN_SECONDS; with more threads than processors it gives up at once. */
static bool spin_until(const struct opc_pool *p, atomic_int *word, bool zero)
{
    const double end = p->spin ? opc_now() + SPIN_SECONDS : 0;
    do {
        /* Reading the clock takes longer than reading the word: 16 looks for each. */
        for (int i = 0; i < 16; i++) {
            if ((atomic_load_explicit(word, memory_order_acquire) == 0) == zero)
                return true;
            RELAX();
        }
    } while (p->spin && opc_now() < end);
    return false;
}

static void wait_for_work(struct opc_pool *p)
{
    if (spin_until(p, &p->unclaimed, false))
        return;
    /* Register as a sleeper, then look again: publish() stores first and counts sleepers after. */
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->unclaimed) == 0)
        pthread_cond_wait(&p->work, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static void wait_for_the_others(struct opc_pool *p)
{
    if (spin_until(p, &p->unfinished, true))
        return;
    /* The same order as in wait_for_work, against the end of take_part. */
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (atomic_load(&p->unfinished) > 0)
        pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

/* Chunk number `chunk` of the job; the last one may be shorter. */
static void run_chunk(opc_chunk_fn *fn, void *ctx, int chunk, int per_chunk, int items, int worker)
{
    const int first = chunk * per_chunk;
    fn(ctx, first, items - first > per_chunk ? first + per_chunk : items, worker);
}

/* Claims and runs chunks until none is left. */
static void take_part(struct opc_pool *p, int worker)
{
    int finished = 0, left = atomic_load_explicit(&p->unclaimed, memory_order_relaxed);
    current_worker = worker;
    while (left > 0) {
        /* A failed exchange has reloaded `left`. Acquire pairs with the store in publish(): the
         * job is visible. */
        if (!atomic_compare_exchange_weak_explicit(&p->unclaimed, &left, left - 1,
                                                   memory_order_acquire, memory_order_relaxed))
            continue;
        run_chunk(p->fn, p->ctx, p->chunks - left, p->per_chunk, p->items, worker);
        finished++;
        left = atomic_load_explicit(&p->unclaimed, memory_order_relaxed);
    }
    current_worker = -1;
    /* Whoever brings `unfinished` to 0 wakes the caller, if it sleeps. */
    if (finished > 0 && atomic_fetch_sub(&p->unfinished, finished) == finished &&
        atomic_load(&p->caller_sleeps)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_signal(&p->done);
        pthread_mutex_unlock(&p->lock);
    }
}

static void *worker_main(void *arg)
{
    struct worker *self = arg;
    struct opc_pool *p = self->pool;
    /* The caller is worker 0. */
    const int number = (int)(self - p->workers) + 1;
    for (;;) {
        wait_for_work(p);
        if (atomic_load_explicit(&p->unclaimed, memory_order_relaxed) == STOP)
            return NULL;
        take_part(p, number);
    }
}

/* Makes `chunks` known, and wakes as many sleepers as there are chunks for. */
static void publish(struct opc_pool *p, int chunks)
{
    atomic_store(&p->unclaimed, chunks);
    const int asleep = atomic_load(&p->sleepers);
    if (asleep == 0)
        return;
    /* Under the lock no sleeper is between its last look and its wait. */
    pthread_mutex_lock(&p->lock);
    if (chunks == STOP || chunks > asleep)
        pthread_cond_broadcast(&p->work);
    else
        for (int i = 1; i < chunks; i++) /* the caller takes one */
            pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

void opc_pool_each(struct opc_pool *p, int items, int per_chunk, opc_chunk_fn *fn, void *ctx)
{
    if (items <= 0)
        return;
    const int chunks = (items - 1) / per_chunk + 1;
    /* Nothing to share: run in place, in order, without touching the pool. */
    if (opc_pool_threads(p) == 1 || chunks == 1) {
        for (int chunk = 0; chunk < chunks; chunk++)
            run_chunk(fn, ctx, chunk, per_chunk, items, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->items = items;
    p->per_chunk = per_chunk;
    p->chunks = chunks;
    atomic_store_explicit(&p->unfinished, chunks, memory_order_relaxed);
    publish(p, chunks);
    take_part(p, 0);
    wait_for_the_others(p);
}

/* Starts a thread with all signals blocked, so that handlers run on the caller's thread; only those
 * that a fault of its own raises stay open. The mask is inherited, hence the change around the
 * call.
 */
static int start_quietly(struct worker *w)
{
    if (opc_fault_hits_system())
        return EAGAIN;
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int refused = pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return refused;
}

int opc_pool_create(int threads, struct opc_pool **out, struct opc_err *err)
{
    if (threads < 0 || threads > MAX_THREADS)
        return opc_fail(err, OPC_EUSER,
                        "%d threads are not possible; ask for 1 to %d, or 0 for one per processor",
                        threads, MAX_THREADS);
    const int processors = opc_processors();
    if (threads == 0)
        threads = processors < MAX_THREADS ? processors : MAX_THREADS;

    struct opc_pool *p = opc_alloc(1, sizeof *p);
    struct worker *workers = opc_alloc((size_t)threads, sizeof *workers);
    if (!p || !workers) {
        opc_free(p);
        opc_free(workers);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a pool of %d threads", threads);
    }
    p->threads = threads;
    p->spin = threads <= processors;
    p->workers = workers;
    pthread_mutex_init(&p->lock, NULL); /* with default attributes these cannot fail on Linux */
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    /* p->started counts threads that run, so that destroy joins exactly those. */
    for (; p->started < threads - 1; p->started++) {
        struct worker *w = &workers[p->started];
        w->pool = p;
        const int refused = start_quietly(w);
        if (refused) {
            opc_fail(err, OPC_EIO, "cannot start thread %d of %d: %s; ask for fewer with --threads",
                     p->started + 2, threads, strerror(refused));
            opc_pool_destroy(p);
            return OPC_EIO;
        }
    }
    *out = p;
    return OPC_OK;
}

void opc_pool_destroy(struct opc_pool *p)
{
    if (!p)
        return;
    /* STOP is not 0, so it ends spinning as well as sleeping. */
    publish(p, STOP);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    opc_free(p->workers);
    opc_free(p);
}

int opc_pool_threads(const struct opc_pool *p)
{
    return p ? p->threads : 1;
}

int opc_processors(void)
{
    /* The kernel refuses a set that is smaller than its own: double it until it fits. */
    for (size_t max = CPU_SETSIZE; max <= (size_t)1 << 20; max *= 2) {
        cpu_set_t *set = CPU_ALLOC(max);
        const size_t bytes = CPU_ALLOC_SIZE(max);
        if (!set)
            break;
        const int refused = sched_getaffinity(0, bytes, set);
        const int n = refused ? 0 : CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (n > 0)
            return n;
        if (errno != EINVAL)
            break;
    }
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
