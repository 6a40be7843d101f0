#!/bin/sh
# SPDX-License-Identifier: MIT
# opc data and train.prefill: episodes go out and come in to the same bits; a run that begins with them
# resumes to the same bytes, and refuses another file.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
cp "$SRC/experiments/examples/smoke.yaml" smoke.yaml
train() { # SETTINGS AND OPTIONS...
    "$OPC" train smoke.yaml "$@" --threads 1 --quiet
}

train --out run
train env.name=pendulum train.epochs=1 --out pendulum

# ---- out and in ----------------------------------------------------------------------------------------
for ending in csv npz opc; do
    expect 0 '[1-9][0-9]* episodes, [1-9][0-9]* steps of cartpole' "$OPC" data export run -o all.$ending
done
for ending in csv npz; do
    expect 0 'steps of cartpole' "$OPC" data import all.$ending --env cartpole -o again.opc
    cmp all.opc again.opc
done
expect 0 '^4 episodes' "$OPC" data export run --last 4 -o folder
expect 0 '^4 episodes' "$OPC" data import folder/*.csv --env cartpole -o four.opc
[ "$(find folder -name 'episode-*.csv' | wc -l)" = 4 ]
# a state for each step, and one more for each episode
steps=$(sed -n 's/.*, \([0-9]*\) steps.*/\1/p' said)
[ "$(cat folder/*.csv | grep -c '^[0-9]')" = $((steps + 4)) ]
# actions are in the task's units: those of pendulum reach beyond 1
expect 0 '' "$OPC" data export pendulum -o pendulum.csv
awk -F, 'NR > 1 && ($6 > 1 || $6 < -1) { beyond++ } END { exit !beyond }' pendulum.csv

# ---- numpy reads and writes them -----------------------------------------------------------------------
if venv; then
    cat >arrays.py <<'END'
import numpy as np
z = np.load("all.npz")
assert z["observation"].shape == (len(z["reward"]), 4) and z["terminated"].dtype == bool
inside = z["episode"][1:] == z["episode"][:-1]
assert (z["next_observation"][:-1][inside] == z["observation"][1:][inside]).all() and inside.any()
assert np.allclose(np.diff(z["time"])[inside], 0.02)
np.savez("numpy.npz", **z)
np.savez_compressed("small.npz", **z)
np.savez("d4rl.npz", observations=z["observation"], actions=z["action"], rewards=z["reward"],
         next_observations=z["next_observation"], terminals=z["terminated"], timeouts=z["truncated"])
END
    "$python" arrays.py
    for file in numpy d4rl; do
        expect 0 '' "$OPC" data import $file.npz --env cartpole -o again.opc
        cmp all.opc again.opc
    done
    expect 2 'small.npz: .*savez' "$OPC" data import small.npz --env cartpole -o again.opc
fi

# ---- a run begins with them ----------------------------------------------------------------------------
train train.prefill=four.opc train.random_steps=0 --out filled
[ "$(column filled total_steps 1)" = 100 ] # they are not real steps, ...
[ "$(column filled recorded 1)" = $((steps + 100)) ] # ... but there to learn from
grep -q "prefill: $PWD/four.opc" filled/config.yaml
grep -q 'prefill_checksum: [0-9a-f]' filled/config.yaml
grep -q "$steps steps in 4 episodes" filled/log.txt
# the random phase is shortened by what is there, or left out
train train.prefill=four.opc train.random_steps=$((steps + 10)) train.epochs=1 --out shorter
total=$(column shorter total_steps 1)
if [ "$total" -le 109 ] || [ "$total" -ge $((steps + 110)) ]; then
    wrong "total_steps = $total" cat shorter/metrics.csv
fi
train train.prefill=all.opc train.epochs=1 --out replaced
[ "$(column replaced total_steps 1)" = 100 ]
# They are epoch 0 of the reference window. A rollout that starts in an epoch of two steps is over after two of
# them; those that start in the log are longer. So K = 1 never starts there, K = 2 in epoch 1 alone, 0 always.
for K in 0 1 2; do
    train train.prefill=four.opc opc.reference_epochs=$K train.random_steps=0 train.steps_per_epoch=2 train.epochs=3 \
        train.updates_per_step=2 opc.horizon=4 opc.transitions=300 --out window-$K
    for epoch in 1 2 3; do
        column window-$K rollout_length $epoch
    done | awk -v K=$K '{ long = $1 > 2 } long != (K == 0 || K > NR) { exit 1 }' ||
        wrong "K = $K" cat window-$K/metrics.csv
done
# other loops take them, too
train train.prefill=four.opc train.random_steps=0 train.fit_first=true train.reset_each_epoch=false \
    train.fit_every=50 train.simulate_every=50 train.improve_every=1 --out original
train train.prefill=four.opc opc.transition=replay --out replay
# what the run recorded goes out again with what it began with
expect 0 '' "$OPC" data export filled -o again.csv
head -n $((steps + 5)) again.csv | sed 's/^[0-9]*,//' >began.csv
cat folder/*.csv | grep -v '^episode' | sed 's/^[0-9]*,//' >logged.csv
tail -n +2 began.csv | cmp - logged.csv
expect 0 '' "$OPC" evaluate filled --episodes 1

# ---- resumed to the same bytes -------------------------------------------------------------------------
# after the first epoch; in the middle of the second, as kill -9 leaves it; from another directory
for run in filled original window-2; do
    sed 's/^  epochs: 3/  epochs: 1/' $run/config.yaml >one.yaml
    "$OPC" train one.yaml --threads 1 --quiet --out $run-resumed
    sed -i 's/^  epochs: 1/  epochs: 3/' $run-resumed/config.yaml
    (cd / && "$OPC" resume "$work/$run-resumed" --threads 2 --quiet)
    for file in metrics.csv policy.opc result.json; do
        cmp $run/$file $run-resumed/$file
    done
done
# a random phase that was cut short: the checkpoint after it has both
sed 's/^  epochs: 3/  epochs: 1/' shorter/config.yaml >one.yaml
"$OPC" train one.yaml --threads 1 --quiet --out begun
rm begun/checkpoints/a.opc begun/result.json begun/policy.opc # left: the slot after the random phase
expect 0 'after the random phase' "$OPC" resume begun --threads 1
cmp begun/metrics.csv shorter/metrics.csv

# ---- another file is refused, the same one elsewhere is not --------------------------------------------
sed -i 's/^  epochs: 3/  epochs: 4/' filled/config.yaml
cp four.opc kept.opc
cp all.opc four.opc
expect 2 'train.prefill = .*four.opc .*train.prefill_checksum = ' "$OPC" resume filled
rm four.opc
expect 2 'four.opc' "$OPC" resume filled
expect 0 '' "$OPC" evaluate filled --episodes 1 # does not need it
sed -i 's/four\.opc/kept.opc/' filled/config.yaml
expect 0 '' "$OPC" resume filled --quiet
sed -i 's/prefill_checksum: .*/prefill_checksum: 00000000/' filled/config.yaml
expect 2 'train.prefill_checksum = 00000000' "$OPC" resume filled
# a sweep recognises its runs by the content
cat >sweep.yaml <<'END'
include: smoke.yaml
train.prefill: kept.opc
train.epochs: 1
vary: {train.seed: [1, 2]}
END
expect 0 '' "$OPC" sweep sweep.yaml run --out swept
expect 0 '' "$OPC" sweep sweep.yaml run --out swept
cp all.opc kept.opc
expect 2 'train.prefill_checksum is ' "$OPC" sweep sweep.yaml run --out swept

# ---- what is refused -----------------------------------------------------------------------------------
cp again.opc four.opc
refused() { # PATTERN SETTINGS...
    pattern=$1
    shift
    expect 2 "$pattern" "$OPC" train smoke.yaml "$@" --out refused
    [ ! -e refused ] || wrong 'made a directory' ls refused
}
refused 'train.prefill: .*nowhere.opc' train.prefill=nowhere.opc
refused "train.prefill .*'opc data import'.*policy.opc" train.prefill=run/policy.opc
refused 'four.opc .*pendulum: 4 .* 1 .*3 and 1' train.prefill=four.opc \
    env.name=pendulum
refused 'train.agent = ppo .*train.prefill = four.opc' train.prefill=four.opc train.agent=ppo \
    opc.transition=replay
refused 'train.prefill_checksum = 12345678' train.prefill_checksum=12345678
refused 'four.opc .*train.prefill_checksum = 12345678' train.prefill=four.opc \
    train.prefill_checksum=12345678
head -c 500 four.opc >cut.opc
expect 3 'train.prefill .*cut.opc' "$OPC" train smoke.yaml train.prefill=cut.opc --out refused
expect 3 'train.prefill .*all.csv' "$OPC" train smoke.yaml train.prefill=all.csv --out refused
sed '5s/,[^,]*,1,0,0$/,1.5,1,0,0/' all.csv >wild.csv
expect 2 'wild.csv: row 5, column action_0: 1.5 .*\[-1, 1\]' "$OPC" data import wild.csv \
    --env cartpole -o x.opc
sed 7d all.csv >gap.csv
expect 2 'gap.csv: row 7, column time: ' "$OPC" data import gap.csv --env cartpole -o x.opc
expect 2 'all.csv: row 1, column observation_3: .*pendulum' "$OPC" data import all.csv \
    --env pendulum -o x.opc
expect 2 'all.txt: .*\.csv .*\.npz' "$OPC" data import all.txt --env cartpole -o x.opc
expect 2 'opc data import FILE' "$OPC" data import all.csv -o x.opc
expect 2 'nothing' "$OPC" data import nothing.csv --env cartpole -o x.opc
expect 2 'opc data export RUN' "$OPC" data export -o x.csv
expect 2 "'-o'\|-o what" "$OPC" data export run
expect 2 'x.parquet: .*\.csv' "$OPC" data export run -o x.parquet
expect 2 'nowhere' "$OPC" data export nowhere -o x.csv
expect 2 "'exprot'.*'export'" "$OPC" data exprot run -o x.csv
expect 2 'last' "$OPC" data import all.csv --env cartpole --last 3 -o x.opc
if [ -e x.opc ] || [ -e x.csv ]; then
    wrong 'left a file' ls
fi
