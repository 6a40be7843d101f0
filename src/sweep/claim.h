/* SPDX-License-Identifier: MIT */
/* sweep/claim.h - who works on a run, where many machines share one directory.
 *
 * A claim is a file OUT/.claims/NAME.G, made with link(), which succeeds for one process only on
 * every file system, also where locks do not reach other machines. G counts the owners of a run
 * from 1: a claim is never given to another process or taken away, the next owner makes the next
 * file. The owner changes a counter in its file every few seconds. Who sees the counter stand still
 * for long enough, by its own clock, takes the run over; clocks of machines are never compared. */
#ifndef OPC_SWEEP_CLAIM_H
#define OPC_SWEEP_CLAIM_H

#include "base/host.h"
#include "opc/err.h"

#include <stdbool.h>

struct opc_claims; /* of one process in one OUT */

enum opc_claim {
    OPC_CLAIM_FREE,   /* nobody has it (peek) */
    OPC_CLAIM_OURS,   /* it is ours from here on (take) */
    OPC_CLAIM_HELD,   /* somebody works on it */
    OPC_CLAIM_FAILED, /* somebody has given it up for good since we are here */
};

/* For `runs` runs. timeout: seconds after which an owner without a sign of life is taken for dead.
 */
int opc_claims_open(const char *out, int runs, double timeout, struct opc_claims **result,
                    struct opc_err *err);
/* Gives back all that are still ours, and removes OUT/.claims if nothing is in it. NULL is fine. */
void opc_claims_close(struct opc_claims *);

/* Run i is called `name`, always the same. */
int opc_claims_take(struct opc_claims *, int i, const char *name, enum opc_claim *,
                    struct opc_err *err);
/* How it is now, without taking it. */
enum opc_claim opc_claims_peek(struct opc_claims *, int i, const char *name);
/* How a claim ends. */
enum opc_claim_end { OPC_CLAIM_GIVE_BACK, OPC_CLAIM_DONE, OPC_CLAIM_GIVE_UP };
/* done: the run is complete, and its claims are removed; give up: others shall not try it either,
 * and `status` is its exit status. */
void opc_claims_release(struct opc_claims *, int i, enum opc_claim_end, int status);
/* Shows that we live, if it is time for that. OPC_EIO: the files cannot be written, and others will
 * soon take over what is ours. */
int opc_claims_beat(struct opc_claims *, struct opc_err *err);
/* Has somebody taken our run over, because we seemed to be dead? As the last beat found it. */
bool opc_claims_lost(const struct opc_claims *, int i);
/* Of a run that is held or failed: "node7, process 4711", and the exit status. */
const char *opc_claims_owner(const struct opc_claims *, int i);
int opc_claims_status(const struct opc_claims *, int i);

/* For status: the host of the owner who has a claim now, "": there is none. Whether it lives is not
 * known without waiting. */
void opc_claim_host(const char *out, const char *name, char host[OPC_HOST]);

#endif
