#!/bin/sh
# SPDX-License-Identifier: MIT
# opc sweep and opc repro on a real Slurm: an array of the missing runs, what is queued is not submitted
# again, runs and tasks killed, cancelled, submitted again, and the bytes of the local sweep at the end.
# Where Slurm cannot be started the test says so and is skipped. slurm_faults.sh has what takes minutes.
# shellcheck source=tests/program/cluster/lib
. "$SRC/tests/program/cluster/lib"
cd "$work"

cat >a.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
train: {epochs: 15, random_steps: 60}
vary:
  opc.transition: [corrected, replay]
  train.seed: 1..3
skip:
  - {opc.transition: replay, train.seed: 3}
tiers:
  endless: {train: {epochs: 1000000}, vary: {train.seed: [1]}}
END
all='corrected_s1 corrected_s2 corrected_s3 replay_s1 replay_s2'

same() { # OUT: its runs are those of the local sweep
    for run in $all; do
        for file in metrics.csv policy.opc result.json; do
            cmp "ref/$run/$file" "$1/$run/$file" || wrong "$run/$file differs" same "$1"
        done
    done
}

expect 0 ' 5 .*ref$' "$OPC" sweep a.yaml run -o ref --jobs 2
expect 0 '^5 of 5 ' "$OPC" sweep a.yaml merge -o ref

# ---- without Slurm, and refused: nothing is lost, and nothing left behind ----------------------------------
mkdir bin
ln -s "$(command -v sh)" bin/sh
expect 1 '^opc: sweep: .* sbatch .*--launcher local' \
    env PATH="$work/bin" "$OPC" sweep a.yaml run -o lone --launcher slurm
expect 0 '^5 .*lone: 5 missing$' env PATH="$work/bin" "$OPC" sweep a.yaml status -o lone
start_cluster
expect 1 '^opc: sweep: sbatch .*nowhere' \
    "$OPC" sweep a.yaml run -o lone --launcher slurm --partition nowhere
[ -z "$(find lone -type f ! -name .lock ! -name tag)" ] || wrong "leaves files" find lone -type f
expect 2 "^opc: sweep: .*--time.*'soon'" "$OPC" sweep a.yaml run -o lone --launcher slurm --time soon
expect 2 '^opc: sweep: --pack .*slurm' "$OPC" sweep a.yaml run -o lone --pack 2
expect 2 '^opc: sweep: .*lone' "$OPC" sweep a.yaml cancel -o lone

# ---- an array; a path that sbatch and the shell would read in their own way --------------------------------
out="it's 5% of b"
expect 0 'submitted 5 runs as slurm job [0-9]*$
^0 of 5 .* 5 with slurm' "$OPC" sweep a.yaml run -o "$out" --launcher slurm --time 1-0 --memory 200M \
    --slurm-options '--nice=10 --comment="two words"'
expect 0 '^5 runs .*queued or running
^0 of 5 ' "$OPC" sweep a.yaml run -o "$out" --launcher slurm
[ "$(ls "$out"/.slurm/*.runs)" = "$out/.slurm/1.runs" ] || wrong "submits again" ls "$out/.slurm"
expect 0 '^{"index": 5, "name": "replay_s2", .*"state": "queued", .*"job": "[0-9]*_5", .*"train.seed": "2"}}$' \
    "$OPC" sweep a.yaml status -o "$out" --json

# ---- a run killed: the task tries it again. A task killed: the same command submits it again ---------------
parent() { # PID
    sed -n 's/^PPid:[^0-9]*//p' "/proc/$1/status"
}
eventually test -s "$out/corrected_s1/metrics.csv"
kill -9 "$(cut -d' ' -f1 "$out/corrected_s1/.lock")"
eventually test -s "$out/corrected_s2/metrics.csv"
kill -9 "$(parent "$(cut -d' ' -f1 "$out/corrected_s2/.lock")")"
eventually sh -c '! squeue -h -r | grep -q _2'
[ ! -e "$out/corrected_s2/result.json" ] || wrong "was not killed in time" ls "$out/corrected_s2"
expect 0 'submitted 1 run as slurm job
^all 5 ' "$OPC" sweep a.yaml run -o "$out" --launcher slurm --wait
[ "$(sed 1d "$out/.slurm/2.runs")" = corrected_s2 ] || wrong "submits others, too" cat "$out/.slurm/2.runs"
grep -q 'corrected_s1 .* 137; .*(1 of 3)' "$out/.slurm/1-1.log" || wrong "was not tried again" cat "$out"/.slurm/*.log
same "$out"
expect 0 '^5 of 5 .* 5 ' "$OPC" sweep a.yaml merge -o "$out"
cmp ref/merged.csv "$out/merged.csv"
[ ! -e "$out/.queue" ] || wrong "leaves its queue" ls -a "$out"
[ ! -e "$out/.claims" ] || wrong "leaves claims" ls -a "$out"
expect 0 '^all 5 ' "$OPC" sweep a.yaml run -o "$out" --launcher slurm

# ---- a reason of any length: what waits for nodes that are drained is queued -------------------------------
nodes=$(sinfo -h -o %N)
scontrol update "nodename=$nodes" state=drain reason=test
expect 0 'submitted 5 runs' "$OPC" sweep a.yaml run -o waits --launcher slurm
eventually sh -c 'squeue -h -r -o %r | grep -q DRAINED'
expect 0 '^corrected_s1  *queued .*(Nodes required for job are DOWN, DRAINED' \
    "$OPC" sweep a.yaml status -o waits
expect 0 '^5 runs .*queued or running' "$OPC" sweep a.yaml run -o waits --launcher slurm
expect 0 '^cancelled 1 job;' "$OPC" sweep a.yaml cancel -o waits
scontrol update "nodename=$nodes" state=resume

# ---- packed, and cancelled -----------------------------------------------------------------------------------
expect 0 '2 of them in each of 1 tasks$' \
    "$OPC" sweep a.yaml run --tier endless -o long --launcher slurm --pack 2 --threads 2
eventually test -s long/corrected_s1/checkpoints/a.opc
eventually sh -c "'$OPC' sweep a.yaml status --tier endless -o long | tee said |
    grep '^corrected_s1 *running .*job [0-9]*_1, on opctest'"
expect 0 '^replay_s1  *queued .*  job [0-9]*_1$
: 1 running, 1 queued$' "$OPC" sweep a.yaml status --tier endless -o long
expect 2 "^opc: sweep: .*long.*'status'" "$OPC" sweep a.yaml run --tier endless -o long
expect 0 '^cancelled 1 job;' "$OPC" sweep a.yaml cancel -o long
eventually queue_is_empty
expect 0 ': 1 missing, 1 interrupted$' "$OPC" sweep a.yaml status --tier endless -o long
grep -q '"state": "stopped"' long/corrected_s1/status.json
expect 0 '^nothing ' "$OPC" sweep a.yaml cancel -o long

# ---- a failure is told, and its reason ---------------------------------------------------------------------------
sed 's/^vary:/vary:\n  env.name: [nosuch, cartpole]/' a.yaml >fail.yaml
expect 0 '' "$OPC" sweep fail.yaml run -o fail --launcher slurm train.epochs=1 --pack 5
eventually queue_is_empty
expect 0 "^nosuch_replay_s1  *failed  .*env.name: .*'nosuch'
: 5 done, 5 failed\$" "$OPC" sweep fail.yaml status -o fail train.epochs=1

# ---- a search: each rung is an array, and the trials are those of a local search --------------------------------
cat >search.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
search:
  settings: {sac.learning_rate: {low: 1e-5, high: 1e-2, scale: log}}
  trials: 4
  rungs: [1, 3]
  keep: 0.5
END
expect 0 '^best: ' "$OPC" search search.yaml -o found --threads 1
expect 0 'submitted 4 runs as slurm job
^rung 2 of 2: 2 trials to epoch 3$
submitted 2 runs as slurm job
^best: ' "$OPC" search search.yaml -o found-there --launcher slurm --pack 2
cmp found/trials.csv found-there/trials.csv
for trial in found/t000?; do
    cmp "$trial/metrics.csv" "found-there/${trial#found/}/metrics.csv"
done

# ---- a figure ------------------------------------------------------------------------------------------------------
expect 0 '' "$OPC" repro fig4 --tier smoke -o here --experiments "$SRC/experiments/paper"
expect 0 'submitted .* as slurm job
queued' "$OPC" repro fig4 --tier smoke -o there --launcher slurm --pack 4 \
    --experiments "$SRC/experiments/paper"
[ ! -e there/fig4.json ] || wrong "draws what is not there" ls there
expect 0 'made' "$OPC" repro fig4 --tier smoke -o there --launcher slurm --wait \
    --experiments "$SRC/experiments/paper"
for file in here/fig4*; do
    cmp "$file" "there/${file#here/}"
done
