/* SPDX-License-Identifier: MIT */
/* Claims: files made with link() that say which process works on a run of a shared OUT (claim.h).
 * The scheduler takes one before it starts a run and gives it back after the run has ended.
 *
 * A claim NAME.G is one line of fixed length,
 *
 *     held node7 4711 3f2a... 4026531836 81234 5 000 000000000042
 *
 * state, host, process, boot and process name space of that machine, the start of the process, the
 * seconds between two signs of life, exit status, and the counter. Nobody but its owner changes it,
 * except that who takes over writes `lost` as its first word.
 *
 * Invariants: while a run is not complete, files of it only appear, in the order of G, and each is
 * made by one link(). A process owns a run if it made the last of its files and that says `held`.
 * So two processes can own a run only if one of them was taken for dead and was not; it notices by
 * its next sign of life, and ends its job. */
#include "sweep/claim.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "opc/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 256, MAX_GENERATION = 1000000, WORD = 4 };
/* A process of this machine that is gone is believed at once, but its job may need a moment to end.
 */
static const double GRACE = 1, LONGEST_BEAT = 5;

/* What a claim says. */
struct claim {
    char state[WORD + 1]; /* held, free, fail, lost */
    char host[OPC_HOST];
    long pid;
    char boot[40];
    unsigned long name_space;
    unsigned long long start; /* of the process, in clock ticks since the machine started */
    double every;
    int status;
    unsigned long beat;
};

struct one {             /* a run */
    int generation;      /* of the claim that was looked at last, from 1 */
    bool known;          /* it has been looked at: failures from here on count */
    bool ours, lost;     /* `generation` is our claim; somebody has taken it over */
    char name[256];      /* of the run; "": not known yet */
    char text[LINE];     /* the claim as it was read last ... */
    double seen;         /* ... and when it changed last; 0: it was not read yet */
    double gone;         /* when its process was first missed; 0: it is there */
    struct claim claim;  /* of the owner, ours included */
    bool dead_before_us; /* the claim before ours was not given back */
};

struct opc_claims {
    char dir[OPC_PATH];
    int runs;
    struct one *one; /* [runs] */
    double timeout, every;
    double beaten;     /* by opc_now: the last beat */
    double failing;    /* by opc_now: since when files cannot be written; 0: they can */
    struct claim self; /* what our claims say */
    uint64_t tag;      /* of our temporary files */
};

/* ---- this process ---------------------------------------------------------------------------- */

/* When the process started; 0: there is none, or it has ended and only waits to be reaped. */
static unsigned long long start_of(long pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    /* The name, in brackets, may have spaces and brackets in it; the state follows the last one. */
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    /* The start is the 22nd field, the state the 3rd. */
    at += 2;
    for (int field = 3; field < 22 && at; field++)
        at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    return at ? strtoull(at, NULL, 10) : 0;
}

static void describe_self(struct claim *self)
{
    struct stat st;
    *self = (struct claim){.state = "held", .pid = (long)getpid(), .boot = "-"};
    opc_host_name(self->host);
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) {
        if (fscanf(f, "%39s", self->boot) != 1)
            strcpy(self->boot, "-");
        fclose(f);
    }
    if (stat("/proc/self/ns/pid", &st) == 0)
        self->name_space = (unsigned long)st.st_ino;
    self->start = start_of(self->pid);
}

/* ---- one file -------------------------------------------------------------------------------- */

static void print_claim(const struct claim *c, char text[LINE])
{
    snprintf(text, LINE, "%s %s %ld %s %lu %llu %g %03d %012lu\n", c->state, c->host, c->pid,
             c->boot, c->name_space, c->start, c->every, c->status, c->beat);
}

/* False for a line that is not whole, as a machine that lost power may leave. */
static bool parse_claim(const char *text, struct claim *c)
{
    return sscanf(text, "%4s %64s %ld %39s %lu %llu %lf %d %lu", c->state, c->host, &c->pid,
                  c->boot, &c->name_space, &c->start, &c->every, &c->status, &c->beat) == 9;
}

static int claim_path(const char *dir, const char *name, int generation, char path[OPC_PATH])
{
    char file[512];
    snprintf(file, sizeof file, "%s.%d", name, generation);
    return opc_path_join(path, dir, file, NULL);
}

/* Opens it anew each time: that is when a network file system looks at the server. Returns 0 or an
 * errno. */
static int read_claim(const char *path, char text[LINE])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    const ssize_t n = read(fd, text, LINE - 1);
    const int why = n < 0 ? errno : 0;
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return why;
}

/* Writes n bytes at the start of a file that is there; closing sends them to the server. */
static bool overwrite(const char *path, const char *text, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = pwrite(fd, text, n, 0) == (ssize_t)n && fsync(fd) == 0;
    const int why = errno;
    if (close(fd) && good)
        return false;
    errno = why;
    return good;
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Is the owner of this claim dead? The text is what the claim says now. */
static bool is_dead(struct opc_claims *claims, struct one *one, const char *text)
{
    const double now = opc_now();
    struct claim *c = &one->claim;
    if (one->seen == 0 || strcmp(text, one->text) != 0) {
        memcpy(one->text, text, LINE);
        one->seen = now;
    }
    const bool whole = parse_claim(text, c);
    /* On the same machine the kernel knows. Another one may have a process of the same number. */
    const bool same = whole && strcmp(c->boot, claims->self.boot) == 0 &&
                      strcmp(c->boot, "-") != 0 && c->name_space == claims->self.name_space &&
                      c->name_space != 0;
    if (same && start_of(c->pid) == c->start) {
        one->gone = 0;
        return false;
    }
    if (same) {
        one->gone = one->gone > 0 ? one->gone : now;
        return now - one->gone >= GRACE;
    }
    /* Elsewhere: has the counter stood still for long enough, by our own clock? An owner that shows
     * itself rarely is given more time. */
    const double limit = whole ? fmax(claims->timeout, 4 * c->every) : claims->timeout;
    return now - one->seen >= limit;
}

/* Goes on to the claim that counts. FREE: `generation` is the number of the next one to make. */
static enum opc_claim look(struct opc_claims *claims, struct one *one)
{
    char path[OPC_PATH], text[LINE];
    enum opc_claim found = OPC_CLAIM_HELD;
    one->generation = one->generation > 0 ? one->generation : 1;
    for (; one->generation < MAX_GENERATION; one->generation++, one->seen = one->gone = 0) {
        if (claim_path(claims->dir, one->name, one->generation, path))
            break;
        const int why = read_claim(path, text);
        if (why) {
            /* What cannot be read is held: the next look may tell more. */
            found = why == ENOENT ? OPC_CLAIM_FREE : OPC_CLAIM_HELD;
            break;
        }
        /* Over: given back, taken over, or given up before we came. */
        const bool failed = strncmp(text, "fail", WORD) == 0;
        if (strncmp(text, "free", WORD) == 0 || strncmp(text, "lost", WORD) == 0 ||
            (failed && !one->known)) {
            one->dead_before_us = false;
            continue;
        }
        if (failed) {
            (void)parse_claim(text, &one->claim);
            found = OPC_CLAIM_FAILED;
            break;
        }
        if (!is_dead(claims, one, text))
            break;
        one->dead_before_us = true;
    }
    one->known = true;
    return found;
}

static struct one *one_of(struct opc_claims *claims, int i, const char *name)
{
    struct one *one = &claims->one[i];
    if (!*one->name)
        snprintf(one->name, sizeof one->name, "%s", name);
    return one;
}

enum opc_claim opc_claims_peek(struct opc_claims *claims, int i, const char *name)
{
    struct one *one = one_of(claims, i, name);
    return one->ours ? OPC_CLAIM_OURS : look(claims, one);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* A whole file under a name of its own, which link() then gives its real name. */
static int write_temporary(const struct opc_claims *claims, const char *text, char path[OPC_PATH],
                           struct opc_err *err)
{
    char name[64];
    snprintf(name, sizeof name, ".tmp-%016" PRIx64, claims->tag);
    OPC_TRY(opc_path_join(path, claims->dir, name, err));
    /* A sweep that found nothing left to do may have removed the directory. */
    OPC_TRY(opc_make_directories(claims->dir, err));
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return opc_fail_errno(err, errno, "cannot write %s", path);
    const bool good = opc_write_all(fd, text, strlen(text)) && fsync(fd) == 0;
    int why = errno;
    const bool closed = close(fd) == 0;
    if (good && closed)
        return OPC_OK;
    why = good ? errno : why;
    unlink(path);
    return opc_fail_errno(err, why, "cannot write %s", path);
}

/* Says in the claim of an owner that was taken for dead that it is so. */
static void mark_lost(const struct opc_claims *claims, const struct one *one)
{
    char path[OPC_PATH];
    opc_log(OPC_LEVEL_WARN, "taking %s over from %s, process %ld, which gave no sign of life",
            one->name, one->claim.host, one->claim.pid);
    if (!claim_path(claims->dir, one->name, one->generation - 1, path))
        (void)overwrite(path, "lost", WORD);
}

int opc_claims_take(struct opc_claims *claims, int i, const char *name, enum opc_claim *out,
                    struct opc_err *err)
{
    struct one *one = one_of(claims, i, name);
    char temporary[OPC_PATH], path[OPC_PATH], text[LINE];
    struct stat st;
    *out = look(claims, one);
    if (*out != OPC_CLAIM_FREE)
        return OPC_OK;
    print_claim(&claims->self, text);
    OPC_TRY(write_temporary(claims, text, temporary, err));
    /* One process makes the file. The answer of a network file system may be lost on its way: two
     * links say that it was made all the same. */
    const int code = claim_path(claims->dir, name, one->generation, path);
    bool made = !code && link(temporary, path) == 0;
    const int why = errno;
    made = made || (stat(temporary, &st) == 0 && st.st_nlink == 2);
    unlink(temporary);
    if (!made && why != EEXIST)
        return opc_fail_errno(err, why, "cannot make %s", path);
    *out = made ? OPC_CLAIM_OURS : OPC_CLAIM_HELD;
    if (!made)
        return OPC_OK;
    if (one->dead_before_us)
        mark_lost(claims, one);
    one->ours = true;
    one->lost = one->dead_before_us = false;
    one->claim = claims->self;
    return OPC_OK;
}

/* ---- living, ending -------------------------------------------------------------------------- */

int opc_claims_beat(struct opc_claims *claims, struct opc_err *err)
{
    char path[OPC_PATH], text[LINE];
    const double now = opc_now();
    int failure = 0;
    if (now - claims->beaten < claims->every)
        return OPC_OK;
    claims->beaten = now;
    for (int i = 0; i < claims->runs; i++) {
        struct one *one = &claims->one[i];
        if (!one->ours || one->lost)
            continue;
        /* Is it still ours? Who took it over has written so, and has made the next file. */
        if (claim_path(claims->dir, one->name, one->generation + 1, path))
            continue;
        one->lost = access(path, F_OK) == 0;
        if (claim_path(claims->dir, one->name, one->generation, path))
            continue;
        if (!one->lost && read_claim(path, text) == 0)
            one->lost = strncmp(text, "lost", WORD) == 0;
        if (one->lost)
            continue;
        one->claim.beat++;
        print_claim(&one->claim, text);
        if (overwrite(path, text, strlen(text)))
            continue;
        /* Its successor has completed the run, and removed all claims. */
        if (errno == ENOENT)
            one->lost = true;
        else
            failure = errno;
    }
    /* A few failures are nothing: a server may be restarted. */
    claims->failing = !failure ? 0 : claims->failing > 0 ? claims->failing : now;
    if (!failure || now - claims->failing < claims->timeout / 2)
        return OPC_OK;
    return opc_fail_errno(
        err, failure, "cannot write to %s, and without a sign of life others take our runs over",
        claims->dir);
}

bool opc_claims_lost(const struct opc_claims *claims, int i)
{
    return claims->one[i].ours && claims->one[i].lost;
}

void opc_claims_release(struct opc_claims *claims, int i, enum opc_claim_end end, int status)
{
    struct one *one = &claims->one[i];
    char path[OPC_PATH], text[LINE];
    if (!one->ours)
        return;
    one->ours = false;
    if (one->lost)
        return; /* it is another's */
    /* A complete run needs no claims: its result.json says that there is nothing left to do. */
    if (end == OPC_CLAIM_DONE) {
        for (int g = one->generation; g > 0; g--)
            if (!claim_path(claims->dir, one->name, g, path))
                unlink(path);
        return;
    }
    strcpy(one->claim.state, end == OPC_CLAIM_GIVE_UP ? "fail" : "free");
    one->claim.status = status;
    print_claim(&one->claim, text);
    if (claim_path(claims->dir, one->name, one->generation, path) ||
        !overwrite(path, text, strlen(text)))
        opc_log(OPC_LEVEL_WARN, "cannot give %s back: others wait %g s for it", one->name,
                claims->timeout);
    /* The next look starts with this file, which says that it is over, or why. */
}

const char *opc_claims_owner(const struct opc_claims *claims, int i)
{
    return *claims->one[i].claim.host ? claims->one[i].claim.host : "another process";
}

int opc_claims_status(const struct opc_claims *claims, int i)
{
    return claims->one[i].claim.status;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_claims_open(const char *out, int runs, double timeout, struct opc_claims **result,
                    struct opc_err *err)
{
    struct opc_claims *claims = opc_alloc(1, sizeof *claims);
    if (claims)
        claims->one = opc_alloc((size_t)runs, sizeof *claims->one);
    int code = claims && claims->one
                   ? OPC_OK
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for the claims of %d runs", runs);
    if (!code)
        code = opc_path_join(claims->dir, out, ".claims", err);
    if (!code)
        code = opc_make_directories(claims->dir, err);
    if (code) {
        if (claims)
            opc_free(claims->one);
        opc_free(claims);
        return code;
    }
    claims->runs = runs;
    claims->timeout = timeout;
    claims->every = fmin(LONGEST_BEAT, timeout / 6);
    claims->beaten = opc_now();
    describe_self(&claims->self);
    claims->self.every = claims->every;
    /* No two processes have the same, wherever they are: names of hosts and numbers may repeat. */
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &claims->tag, sizeof claims->tag) != (ssize_t)sizeof claims->tag)
        claims->tag = (uint64_t)claims->self.pid ^ (uint64_t)(opc_now() * 1e9);
    if (fd >= 0)
        close(fd);
    *result = claims;
    return OPC_OK;
}

void opc_claims_close(struct opc_claims *claims)
{
    if (!claims)
        return;
    for (int i = 0; i < claims->runs; i++)
        opc_claims_release(claims, i, OPC_CLAIM_GIVE_BACK, 0);
    rmdir(claims->dir); /* fails, as it should, while there are claims */
    opc_free(claims->one);
    opc_free(claims);
}

void opc_claim_host(const char *out, const char *name, char host[OPC_HOST])
{
    char dir[OPC_PATH], path[OPC_PATH], text[LINE];
    struct claim last = {0};
    *host = '\0';
    if (opc_path_join(dir, out, ".claims", NULL))
        return;
    for (int g = 1; g < MAX_GENERATION && !claim_path(dir, name, g, path); g++) {
        if (read_claim(path, text))
            break;
        (void)parse_claim(text, &last);
    }
    if (strcmp(last.state, "held") == 0)
        memcpy(host, last.host, OPC_HOST);
}
