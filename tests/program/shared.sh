#!/bin/sh
# SPDX-License-Identifier: MIT
# Sweeps that share a directory: two machines, which are name spaces with host names and process numbers of
# their own, divide the runs by claims alone, because locks do not work here; one of them dies and the other
# takes its run over; --index, --only and a sweep that does not share. The bytes are those of a sweep alone.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
need_tool unshare "$CC"
cat >a.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
train: {epochs: 12, random_steps: 60}
vary:
  opc.transition: [corrected, replay]
  train.seed: 1..2
tiers:
  endless: {train: {epochs: 1000000}, vary: {train.seed: [1]}}
END
all='corrected_s1 corrected_s2 replay_s1 replay_s2'

same() { # OUT: its runs are those of the sweep that was alone
    for run in $all; do
        for file in metrics.csv policy.opc result.json; do
            cmp "ref/$run/$file" "$1/$run/$file" || wrong "$run/$file differs" same "$1"
        done
    done
    [ ! -e "$1/.claims" ] || wrong "leaves claims" ls -a "$1"
    [ ! -e "$1/.queue" ] || wrong "leaves its queue" ls -a "$1"
}
failed() { # WHO
    cp "$1.said" said
    wrong "$1 failed" cat "$1.said"
}
expect 0 ' 4 .*ref$' "$OPC" sweep a.yaml run -o ref --jobs 2

# ---- single runs for other schedulers ----------------------------------------------------------------------
expect 0 '^{"index": 4, "name": "replay_s2", .*"state": "missing", .*"settings": {"opc.transition": "replay", "train.seed": "2"}}$' \
    "$OPC" sweep a.yaml status -o single --json
[ "$(wc -l <said)" = 4 ] || wrong "not a line for each run" cat said
"$OPC" sweep a.yaml run -o single --index 4 >four.said 2>&1 &
expect 0 'started corrected_s1$
^the run is done' "$OPC" sweep a.yaml run -o single --index 1
wait $! || wrong "the other one failed" cat four.said
[ "$(echo single/*_s?)" = 'single/corrected_s1 single/replay_s2' ] || wrong "runs others, too" ls single
cmp ref/replay_s2/metrics.csv single/replay_s2/metrics.csv
expect 2 '^opc: sweep: --index = 5: .* 1 to 4' "$OPC" sweep a.yaml run -o single --index 5
expect 0 '^{"index": 3, ' "$OPC" sweep a.yaml status -o single --json --only replay_s1
expect 0 '^all 4 ' "$OPC" sweep a.yaml run -o single --shared
same single

# ---- one that shares and one that does not ---------------------------------------------------------------------
"$OPC" sweep a.yaml run --tier endless -o long --shared --jobs 1 >long.said 2>&1 &
pid=$!
await $pid long/corrected_s1/metrics.csv
expect 2 "^opc: sweep: .*long.*'status'" "$OPC" sweep a.yaml run --tier endless -o long
expect 0 "^corrected_s1  *running .*  on $(hostname | cut -d. -f1)\$" "$OPC" sweep a.yaml status --tier endless -o long
expect 2 "$(cut -d' ' -f1 long/corrected_s1/.lock) on $(hostname | cut -d. -f1)" "$OPC" resume long/corrected_s1
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 75 ] || wrong "exit status $status instead of 75" cat long.said
expect 0 '^corrected_s1  *interrupted .* m*s$' "$OPC" sweep a.yaml status --tier endless -o long

# ---- two machines without common locks --------------------------------------------------------------------------
# Every lock of a file is refused, as by a file system that has none.
cat >locks.c <<'END'
#include <errno.h>
int flock(int fd, int what)
{
    (void)fd;
    (void)what;
    errno = ENOSYS;
    return -1;
}
END
"$CC" -shared -fPIC -o locks.so locks.c
if ! unshare --uts --pid --fork --mount-proc true 2>/dev/null; then
    echo "skipped: two machines need name spaces, which this process may not make"
    exit 77
fi
machine() { # NAME OUT: a sweep on that machine, whose number there is 1, as on every other
    LD_PRELOAD=$work/locks.so exec unshare --uts --pid --fork --kill-child --mount-proc sh -c \
        "hostname $1.example.org && exec '$OPC' sweep a.yaml run -o $2 --shared --jobs 1 --threads 1 --claim-timeout 2"
}
expect 2 '^opc: sweep: .*alone.*--shared' env LD_PRELOAD="$work/locks.so" "$OPC" sweep a.yaml run -o alone
(machine apple both) >apple.said 2>&1 &
apple=$!
(machine berry both) >berry.said 2>&1 &
berry=$!
wait $apple || failed apple
wait $berry || failed berry
same both
# Each run was done by one of them, and each of them did some.
cat apple.said berry.said | sed -n 's/^started //p' | sort >started
# shellcheck disable=SC2086 # these are words
printf '%s\n' $all | cmp - started || wrong "not each run once" cat apple.said berry.said
for machine in apple berry; do
    grep -q '^started ' $machine.said || wrong "the other one did all" cat $machine.said
done

# ---- one of them dies: its run is taken over, when it has been silent for long enough --------------------------------
(machine apple dies) >apple.said 2>&1 &
apple=$!
await $apple dies/corrected_s1/metrics.csv
(machine berry dies) >berry.said 2>&1 &
berry=$!
await $berry dies/corrected_s2/metrics.csv
kill -9 $apple # and with it everything on that machine
wait $apple 2>/dev/null || :
[ ! -e dies/corrected_s1/result.json ] || wrong "was not killed in time" cat apple.said
wait $berry || failed berry
grep -q 'taking corrected_s1 over from apple, process 1,' berry.said || wrong "says nothing" cat berry.said
same dies

# ---- killed on the same machine: taken over at once ---------------------------------------------------------------------
"$OPC" sweep a.yaml run -o hurt --shared --jobs 1 >hurt.said 2>&1 &
pid=$!
await $pid hurt/corrected_s1/metrics.csv
kill -9 $pid
wait $pid 2>/dev/null || :
[ ! -e hurt/replay_s1/result.json ] || wrong "was not killed in time" cat hurt.said
expect 0 '^all 4 ' "$OPC" sweep a.yaml run -o hurt --shared
same hurt

# ---- a claim of a machine that is gone, and a sweep that does not share: it waits, too -------------------------------------
mkdir -p left/.claims
echo 'held apple 1 12345678-boot 1 1 0.3 000 000000000001' >left/.claims/corrected_s1.1
expect 0 'taking corrected_s1 over from apple, process 1,
^all 4 ' "$OPC" sweep a.yaml run -o left --claim-timeout 2
same left

# ---- stopped for longer than the others wait: it notices, and leaves the run to them ---------------------------------------
(machine apple still) >apple.said 2>&1 &
apple=$!
await $apple still/corrected_s1/metrics.csv
# its processes, seen from here: all below the one that made the name space
tree() { # PID
    echo "$1"
    # shellcheck disable=SC2013 # one line of words
    for child in $(cat /proc/"$1"/task/*/children); do
        tree "$child"
    done
}
frozen=$(tree $apple)
# shellcheck disable=SC2086
kill -STOP $frozen
(machine berry still) >berry.said 2>&1 &
berry=$!
wait $berry || failed berry
# shellcheck disable=SC2086
kill -CONT $frozen
wait $apple || failed apple
same still

# ---- what fails on one machine is not tried by the others, and is by the next command ------------------------------------------
sed 's/^vary:/vary:\n  env.name: [nosuch]/; s/epochs: 12/epochs: 1/' a.yaml >fail.yaml
for _ in 1 2; do
    expect 1 '^opc: warning: nosuch_corrected_s1 .* 2 
^opc: sweep: 4 of 4 ' "$OPC" sweep fail.yaml run -o fail --shared --jobs 2
done

# ---- a full disk is told, and nothing is lost --------------------------------------------------------------------------------------
if unshare --mount true 2>/dev/null; then
    mkdir full
    # shellcheck disable=SC2016 # for the other shell
    expect 0 'No space left
 4 missing$' unshare --mount sh -c 'mount -t tmpfs -o size=64k none full && dd if=/dev/zero of=full/x bs=1k 2>/dev/null
        "$0" sweep a.yaml run -o full --shared && exit 9
        rm full/x && "$0" sweep a.yaml status -o full' "$OPC"
fi
