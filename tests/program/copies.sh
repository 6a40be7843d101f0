#!/bin/sh
# SPDX-License-Identifier: MIT
# record.tensorboard and record.json_lines: both copies hold what metrics.csv holds, also after kill -9 and
# resume; nothing else in a run depends on them; examples/wandb.py follows a run.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool python3
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml
check=$SRC/tests/program/copies/check.py
python=python3
venv || : # then python is still the system's
[ -x "$python" ] || python=python3
on='record.tensorboard=true record.json_lines=true'

cat >loop.yaml <<END
include: $smoke
train: {epochs: 6, improve_every: 1, reset_each_epoch: false}
opc.transition: replay
eval.every: 2
END

# ---- with them and without them, the run is the same -------------------------------------------------
expect 0 '' "$OPC" train loop.yaml --out off --threads 1 --quiet
# shellcheck disable=SC2086 # a list
expect 0 '' "$OPC" train loop.yaml $on --out on --threads 1 --quiet
if [ -e off/metrics.jsonl ] || [ -e off/events.out.tfevents.opc ]; then
    wrong "not off" ls off
fi
for file in metrics.csv policy.opc result.json; do
    cmp off/$file on/$file || wrong "$file differs" "$OPC" train
done
# shellcheck disable=SC2086
expect 0 '' "$OPC" train "$smoke" $on --out model --threads 1 --quiet # with columns of a model
expect 0 'on: 6 rows' "$python" "$check" on model
cat said

# ---- kill -9 at any instant --------------------------------------------------------------------------
for delay in 0.05 0.3 0.8; do
    rm -rf killed whole
    # shellcheck disable=SC2086
    "$OPC" train loop.yaml $on train.epochs=1000000 --out killed --threads 1 --quiet &
    pid=$!
    await $pid killed/metrics.csv
    sleep $delay
    kill -9 $pid
    wait $pid || :
    epochs=$(($(wc -l <killed/metrics.csv) + 1))
    cp -r killed cut
    expect 0 '' "$OPC" resume killed train.epochs=$epochs --threads 1 --quiet
    expect 0 "killed: $epochs rows" "$python" "$check" killed

    # a machine that lost power: the copies are behind, ahead, cut within a row, or damaged
    head -c -100 cut/metrics.jsonl >short
    mv short cut/metrics.jsonl
    printf 'half a record' >>cut/events.out.tfevents.opc
    expect 0 '' "$OPC" resume cut train.epochs=$epochs --threads 1 --quiet
    expect 0 "cut: $epochs rows" "$python" "$check" cut
    cmp killed/metrics.jsonl cut/metrics.jsonl
    rm -rf cut
done

# rows that were right keep their bytes, and so their times
cp on/events.out.tfevents.opc before
expect 0 '' "$OPC" resume on train.epochs=7 --threads 1 --quiet
cmp -n "$(wc -c <before)" before on/events.out.tfevents.opc
printf X | dd of=on/events.out.tfevents.opc bs=1 seek=300 conv=notrunc 2>dd-said
expect 0 '' "$OPC" resume on train.epochs=8 --threads 1 --quiet
expect 0 'on: 8 rows' "$python" "$check" on

# ---- a run that is done gets them, too; no other setting --------------------------------------------
# shellcheck disable=SC2086
expect 0 '' "$OPC" resume off $on --threads 1 --quiet
expect 0 'off: 6 rows' "$python" "$check" off
expect 2 'record.snapshots=1 .*record.tensorboard' "$OPC" resume off record.snapshots=1
[ -e off/result.json ]

# ---- wandb.py follows a run to its end ---------------------------------------------------------------
# shellcheck disable=SC2086
"$OPC" train loop.yaml $on train.epochs=1000000 --out followed --threads 1 --quiet &
pid=$!
await $pid followed/status.json
await $pid followed/metrics.jsonl
python3 "$SRC/examples/wandb.py" followed --dry-run >rows 2>&1 &
follower=$!
await $follower rows
kill -TERM $pid
wait $pid || :
wait $follower || wrong "the follower failed" cat rows
python3 - <<'END'
import json
sent = [line.split(" ", 1) for line in open("rows")]
rows = [json.loads(line) for line in open("followed/metrics.jsonl")]
assert len(rows) > 0
assert [int(step) for step, _ in sent] == [row["env_steps"] for row in rows]
for (_, row), want in zip(sent, rows):
    assert json.loads(row) == {k: v for k, v in want.items() if v is not None}
print(len(rows), "rows were followed")
END
