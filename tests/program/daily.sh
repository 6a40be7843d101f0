#!/bin/sh
# SPDX-License-Identifier: MIT
# What new users stumbled over in daily use, each a case that failed once: closed pipes and batch systems'
# warnings, long paths, missing and empty files, training longer, plots of damaged and doubled runs, the status
# of runs, settings and verdicts of opc repro.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml
drawn=0 # exit status of opc plot: a build without cairo prints its table and fails
! without CAIRO || drawn=1

state() { # DIR: as its status.json has it
    sed -n 's/.*"state": "\([a-z]*\)".*/\1/p' "$1/status.json"
}

# ---- ends that lose nothing --------------------------------------------------------------------------
# A reader who goes away stops the run in order.
{
    got=0
    "$OPC" train "$smoke" train.epochs=100000 --out piped 2>said || got=$?
    echo $got >status
} | head -n 1 >/dev/null
[ "$(cat status)" = 75 ] || wrong "exit status $(cat status) with a closed pipe" cat said
[ "$(state piped)" = stopped ] || wrong "a closed pipe leaves it" state piped
# So do the warnings of batch systems.
for signal in USR1 XCPU XFSZ; do
    "$OPC" train "$smoke" train.epochs=100000 --out $signal >/dev/null 2>said &
    await $! $signal/metrics.csv
    kill -s $signal $!
    got=0
    wait $! || got=$?
    [ $got = 75 ] || wrong "exit status $got after SIG$signal" cat said
    [ "$(state $signal)" = stopped ] || wrong "SIG$signal leaves it" state $signal
    grep -q 'stopped' $signal/log.txt || wrong "the log does not say it" cat $signal/log.txt
    ! grep -q 'stopped: stopped' $signal/log.txt || wrong "says it twice" cat $signal/log.txt
done

# ---- paths -------------------------------------------------------------------------------------------
part=$(printf 'long%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30)
expect 0 '' "$OPC" train "$smoke" --quiet --out "$part/$part/$part/run"
expect $drawn '' "$OPC" plot "$part/$part/$part/run" -o "$part/$part/$part/curves.svg"
[ -s "$part/$part/$part/curves.csv" ]
# What is printed can be pasted into a shell.
expect 0 "'opc plot \"a b/run\"'" "$OPC" train "$smoke" --out 'a b/run'
touch file
expect 2 'file' "$OPC" train "$smoke" --out file

# ---- files that are missing, empty or not YAML ---------------------------------------------------------
expect 0 '' "$OPC" train "$smoke" --quiet --out run
cp -r run gone
rm gone/metrics.csv gone/result.json
expect 3 'gone/metrics.csv' "$OPC" resume gone
[ ! -e gone/metrics.csv ] || wrong "an empty table appears" ls -l gone
mkdir hollow
: >hollow/config.yaml
expect 2 'hollow/config.yaml' "$OPC" resume hollow
: >empty.yaml
expect 2 'empty.yaml' "$OPC" train empty.yaml --out new
printf '# only a comment\n' >empty.yaml
expect 2 'empty.yaml' "$OPC" train empty.yaml --out new
[ ! -e new ] || wrong "a run of an empty file begins" ls new
printf 'train:\n\tepochs: 3\n' >tab.yaml
expect 2 'tab.yaml:2: .*tab.* 1' "$OPC" train tab.yaml --out new

# ---- train longer --------------------------------------------------------------------------------------
expect 0 '' "$OPC" train "$smoke" train.epochs=5 --quiet --out five
expect 0 '^ *5 ' "$OPC" resume run train.epochs=5
cmp run/metrics.csv five/metrics.csv
cmp run/policy.opc five/policy.opc
cmp run/config.yaml five/config.yaml
cp run/config.yaml before
expect 2 'sac.learning_rate=1' "$OPC" resume run sac.learning_rate=1
expect 2 'train.epochs=2.*5\|train.epochs = 2.*5' "$OPC" resume run train.epochs=2
expect 2 "'epochs'" "$OPC" resume run train.epoch=9
expect 2 "'other'" "$OPC" resume run other
expect 2 'train.seed=2' "$OPC" resume run train.epochs=9 train.seed=2
cmp before run/config.yaml # refused whole

# ---- plots of damaged and doubled runs -------------------------------------------------------------------
mkdir many
cp -r five many/a
cp -r five many/copy
cp -r gone many/headless # its table is gone
: >many/headless/metrics.csv
expect $drawn '^opc: warning: many/copy .*many/a
^opc: warning: .*many/headless
^cartpole *OPC *1 ' "$OPC" plot many -o many.svg
[ "$(grep -c warning "$work/said")" = 2 ] || wrong "more is left out" cat "$work/said"
rm -r many/a many/copy
expect 2 'many/headless' "$OPC" plot many -o many.svg

# ---- one setting, and every section ------------------------------------------------------------------------
expect 0 '^sac - 
^  learning_rate ' "$OPC" config sac.lr
[ "$(grep -c '^  [a-z]' "$work/said")" = 2 ] || wrong "shows more than one" cat "$work/said"
expect 0 '^ilc ' "$OPC" config --list
expect 2 "'sac'.*'rats'\|sac .*'rats'" "$OPC" config sac.rats

# ---- the best policy, snapshots, policy files ------------------------------------------------------------------
expect 0 '' "$OPC" train "$smoke" train.epochs=6 record.snapshots=2 --quiet --out six
best=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_return") at = i; next }
                $at > best { best = $at; epoch = $1 } END { print epoch }' six/metrics.csv)
expect 0 "after epoch $best: " "$OPC" evaluate six --best --episodes 3
expect 0 'after epoch 4: ' "$OPC" evaluate six --snapshot 4 --episodes 3
expect 0 'after epoch 6: ' "$OPC" evaluate six --episodes 3
cp "$work/said" of_run
expect 0 'after epoch 6: ' "$OPC" evaluate six/policy.opc --episodes 3
cmp "$work/said" of_run
expect 0 '"returns": \[[-0-9.]*, [-0-9.]*\]}$' "$OPC" evaluate six --episodes 2 --json
expect 2 '3' "$OPC" evaluate six --snapshot 3
expect 2 'best.*snapshot' "$OPC" evaluate six --best --snapshot 2
expect 2 'six/policy.opc.*best' "$OPC" evaluate six/policy.opc --best
rm six/policy-best.opc
expect 2 'policy-best.opc' "$OPC" evaluate six --best

# ---- how far runs are --------------------------------------------------------------------------------------------
expect 0 '^state  *done$
^epoch  *6 of 6$
^return .*best .* epoch '"$best"'$
^steps  *600 real
^time 
epoch 6 of 6: 600 steps' "$OPC" status six --lines 2
[ "$(grep -c ' epoch [0-9] of 6: ' "$work/said")" = 2 ] || wrong "not two lines of the log" cat "$work/said"
# It works on a run whose environment cannot be opened, and writes nothing.
mkdir states
cp -r six states/other
sed 's/name: cartpole/name: .\/nowhere.so/' six/config.yaml >states/other/config.yaml
rm states/other/result.json
cp -r states/other states/killed
sed 's/"done"/"running"/' six/status.json >states/killed/status.json
sed 's/"done"/"diverged"/; s/"why": null/"why": "the loss is nan"/' six/status.json >states/other/status.json
sum=$(find states -type f -exec cksum {} + | sort | cksum)
expect 0 '^states/killed  *interrupted  *6/6 
^states/other  *diverged  *6/6 .*the loss is nan
^2 runs, 0 done' "$OPC" status states
[ "$(find states -type f -exec cksum {} + | sort | cksum)" = "$sum" ] || wrong "it writes" ls -lR states
expect 0 '^{"run": "six", "state": "done", .*"epoch": 6, "epochs": 6, "env_steps": 600, .*"best_epoch": '"$best"',
"remaining_s": 0}$' "$OPC" status six --json
# While a run goes on it says so, and how long it will take.
"$OPC" train "$smoke" train.epochs=100000 --out going >/dev/null 2>&1 &
going=$!
await $going going/metrics.csv
until [ "$(wc -l <going/timing.csv)" -ge 2 ]; do sleep 0.01; done
expect 0 '^state  *running$
^epoch .* of 100000$
^time .*, about .* left$' "$OPC" status going
kill $going
wait $going || true
expect 0 '^state  *stopped' "$OPC" status going
expect 2 'nowhere' "$OPC" status nowhere
expect 2 'config.yaml' "$OPC" status six/checkpoints
expect 2 'six/metrics.csv' "$OPC" status six/metrics.csv

# ---- repro: verdicts of one name, settings, another working directory ----------------------------------------------
mkdir elsewhere
(
    cd elsewhere
    expect 0 '^  supported  *[A-Z]
^tab1  *made .*  [1-9][0-9]*, 0, 0$' "$OPC" repro tab1 --experiments "$SRC/experiments/paper"
    expect 0 '^tab1 is up to date
^  supported  *[A-Z]' "$OPC" repro tab1 --experiments "$SRC/experiments/paper"
)
cat >mine.yaml <<END
include: $smoke
vary: {train.seed: 1..2}
figure: {panel: env.name}
END
expect 0 '^./mine.yaml  *made ' "$OPC" repro ./mine.yaml train.epochs=2 sac.lr=1e-3
with='train.epochs=2 sac.lr=1e-3'
out=repro-small-train.epochs_2-sac.lr_1e-3
grep -q "\"caption\": \".*with $with; opc " $out/mine.json || wrong "the caption is silent" cat $out/mine.json
grep -q "\"command\": \"opc repro .*mine.yaml $with\"" $out/mine.json || wrong "so is the command" cat $out/mine.json
grep -q 'learning_rate: 0.001' $out/runs/mine/s1/config.yaml || wrong "not set" cat $out/runs/mine/s1/config.yaml
expect 0 '^mine is up to date' "$OPC" repro train.epochs=2 ./mine.yaml sac.lr=1e-3
# Other settings are other runs.
expect 2 'mine/s1 .*sac.learning_rate' "$OPC" repro ./mine.yaml sac.lr=2e-3 train.epochs=2 --out $out
expect 0 '^./mine.yaml  *made ' "$OPC" repro ./mine.yaml train.epochs=2
expect 2 "'epohcs'" "$OPC" repro ./mine.yaml train.epohcs=2
expect 2 'train.seed' "$OPC" repro ./mine.yaml train.seed=7
expect 2 'train.epochs=2.*tab1' "$OPC" repro tab1 train.epochs=2 --experiments "$SRC/experiments/paper"

# ---- doctor: what is missing, what that means and how to get it ------------------------------------------------------
mkdir bin
printf '#!/bin/sh\n' >bin/ffmpeg
chmod +x bin/ffmpeg
expect 0 "^  ffmpeg  *$work/bin/ffmpeg\$" env PATH="$work/bin" "$OPC" doctor
rm bin/ffmpeg
expect 0 "^  ffmpeg  *not found
without it: 'opc env render'
apt-get install ffmpeg" env PATH="$work/bin" "$OPC" doctor

# ---- an engine that the build lacks is named before hours of computing -----------------------------------------------
if without MUJOCO; then
    cat >engines.yaml <<END
include: $smoke
vary: {env.name: [cartpole, "mujoco:hopper"], train.seed: 1..2}
END
    expect 1 '^opc: warning: 2 of 4 .*mujoco:hopper.*MuJoCo.*opc doctor' "$OPC" sweep engines.yaml run --out engines
    grep -n . "$work/said" | grep -q '^1:opc: warning: 2 of 4' || wrong "said late" cat "$work/said"
fi

# ---- a damaged segment: one old file does not end a run that can do without it ---------------------------------------
expect 0 '' "$OPC" train "$smoke" train.epochs=4 --quiet --out hurt
cp -r hurt whole
printf 'x' | dd of=hurt/checkpoints/past-000001.opc bs=1 seek=200 conv=notrunc 2>/dev/null
expect 3 'hurt .*skip-damaged' "$OPC" resume hurt train.epochs=6
grep -q 'past-000001.opc' hurt/log.txt || wrong "the log is silent" cat hurt/log.txt
expect 0 '^opc: warning: .*past-000001.opc.*without the [0-9]* records of epoch 1' \
    "$OPC" resume hurt --skip-damaged --quiet
# From then on the run knows what it lacks, and is whole without it.
rm hurt/checkpoints/past-000001.opc
expect 0 '' "$OPC" resume hurt train.epochs=7 --quiet
[ "$(cut -d, -f1 hurt/metrics.csv | tr '\n' ' ')" = 'epoch 1 2 3 4 5 6 7 ' ] || wrong "rows" cat hurt/metrics.csv
expect 0 '' "$OPC" data export hurt -o hurt.csv
expect 0 '' "$OPC" resume whole train.epochs=7 --quiet
expect 0 '' "$OPC" data export whole -o whole.csv
[ "$(wc -l <hurt.csv)" -lt "$(wc -l <whole.csv)" ] || wrong "nothing is left out" wc -l hurt.csv whole.csv
head -n 20 hurt.csv >a && head -n 20 whole.csv >b
cmp a b # the random phase, before the hole
# What was imagined is imagined anew.
rm whole/checkpoints/imagined-00000[1-7].opc
expect 3 'whole .*skip-damaged' "$OPC" resume whole train.epochs=8
expect 0 '^opc: warning: .*imagined-.*imagined' "$OPC" resume whole --skip-damaged --quiet
expect 0 '' "$OPC" resume whole train.epochs=10 --quiet
# It does not hide that a checkpoint itself is damaged, and it changes nothing where nothing is.
cp -r five intact
expect 0 '' "$OPC" resume five train.epochs=6 --quiet
expect 0 '' "$OPC" resume intact train.epochs=6 --skip-damaged --quiet
cmp five/metrics.csv intact/metrics.csv
cmp five/checkpoints/a.opc intact/checkpoints/a.opc
for slot in a b; do
    : >intact/checkpoints/$slot.opc
done
expect 3 'intact' "$OPC" resume intact train.epochs=7 --skip-damaged

# ---- sweeps: names that say what a number is, old names, sharing with opc repro, OUT with '=' ---------------------------
mkdir sharing
(
    cd sharing
    cat >my.yaml <<END
include: $smoke
vary: {sac.learning_rate: [3e-4, 1e-3], opc.transition: [corrected], train.seed: 1..2}
figure: {panel: env.name}
END
    expect 0 ' 4 .*a=b$' "$OPC" sweep my.yaml run --out a=b
    expect 0 ' 4 .*sweep-my$' "$OPC" sweep my.yaml run
    [ -s sweep-my/learning-rate-0.001_corrected_s2/result.json ] || wrong "names without keys" ls sweep-my
    # Directories of earlier versions are found by their settings, and nothing is computed again.
    for run in sweep-my/*/; do
        mv "$run" "$(echo "$run" | sed 's/learning-rate-//')"
    done
    expect 0 '^0.001_corrected_s2  *done ' "$OPC" sweep my.yaml status
    expect 0 ' 4 .*sweep-my$' "$OPC" sweep my.yaml run
    ! grep -q started "$work/said" || wrong "computes again" cat "$work/said"
    # opc repro takes them, too, and completes what is missing there.
    rm -r sweep-my/0.001_corrected_s2
    expect 0 '^my: 4 runs, 3 of them done, in sweep-my$' "$OPC" repro ./my.yaml
    [ "$(grep -c '^started' "$work/said")" = 1 ] || wrong "not one run" cat "$work/said"
    [ "$(find sweep-my -name metrics.csv | wc -l)" = 4 ] || wrong "not in the sweep's directory" ls sweep-my
    [ ! -e repro-small/runs ] || wrong "runs of its own" ls repro-small/runs
    expect 0 '^my is up to date' "$OPC" repro ./my.yaml
    # A directory of that name with runs of other settings is not taken.
    sed -i 's/3e-4/2e-4/' my.yaml
    rm -r sweep-my/0.0003* sweep-my/*0.001*
    cp -r a=b/learning-rate-0.0003_corrected_s1 sweep-my/learning-rate-0.0002_corrected_s1
    expect 0 '^my: 4 runs, 0 of them done$' "$OPC" repro ./my.yaml train.epochs=1 --out else
)
