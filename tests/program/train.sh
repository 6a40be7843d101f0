#!/bin/sh
# SPDX-License-Identifier: MIT
# Training from outside: one thread against two, killed and resumed against uninterrupted, two
# processes in one directory, damaged checkpoints, and wrong input of all kinds.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml

same() { # DIR DIR: the results, and nothing but the results, are equal
    for file in metrics.csv policy.opc result.json; do
        cmp "$1/$file" "$2/$file" || wrong "$file differs" same "$1" "$2"
    done
}

# ---- the loops, by the names of their methods ---------------------------------------------------
cat >paper.yaml <<END
include: $smoke
train: {epochs: 6, random_steps: 100, rounds: 3}
opc.reference_epochs: 2
model: {holdout_every: 3, max_steps: 14, new_ratio: 0.4}
record.snapshots: 3
END
cat >original.yaml <<END
include: $smoke
train: {epochs: 6, random_steps: 60, fit_every: 25, simulate_every: 25, improve_every: 1,
        fit_first: true, reset_each_epoch: false, learning_starts: 80}
opc: {transition: learned, rollouts: 300, horizon: [1, 4, 1, 5], reference_epochs: 1}
data: {forget: steps, retain: 1, real_ratio: 0.05}
model.normalize_targets: true
END
# the same two loops with every limit that ends rollouts; what is much disagreement is remembered
cat >limits.yaml <<END
include: paper.yaml
opc: {max_drift: 1, max_disagreement: 1, reference_terminal: drop, bounds: true,
      past_ratio: 0.3}
sac.bound_targets: true
END
cat >limits-original.yaml <<END
include: original.yaml
opc: {max_drift: 4, max_disagreement: 1}
END
cat >sac.yaml <<END
include: $smoke
train: {epochs: 6, improve_every: 1, reset_each_epoch: false}
opc.transition: replay
sac.layer_norm: true
END

cat >ppo.yaml <<END
include: $smoke
train: {agent: ppo, epochs: 6, random_steps: 0}
opc.transition: replay
ppo: {policy_hidden: [8], critic_hidden: [8], batch_size: 32, update_epochs: 3, anneal_lr: false}
END
cat >steve.yaml <<END
include: $smoke
train: {agent: steve, epochs: 6, random_steps: 60, improve_every: 1, updates_per_step: 1,
        reset_each_epoch: false, learning_starts: 80}
opc.transition: replay
steve: {policy_hidden: [8], critic_hidden: [8], transition_hidden: [8, 8], reward_hidden: [8],
        termination_hidden: [8], critic_members: 2, batch_size: 20, copy_interval: 70,
        pretrain_updates: 50}
END
cat >slbo.yaml <<END
include: $smoke
train: {agent: slbo, epochs: 6, random_steps: 20}
opc.transition: replay
slbo: {model_hidden: [8, 8], policy_hidden: [8], value_hidden: [8], iterations: 2, model_updates: 3,
       policy_updates: 2, batch_size: 16, buffer_size: 250, rollout_steps: 160, value_passes: 1}
END
cat >pets.yaml <<END
include: $smoke
train: {agent: pets, epochs: 6, steps_per_epoch: 40, random_steps: 60, fit_first: true, fit_every: 20,
        reset_each_epoch: false}
opc.reference_epochs: 1
pets: {horizon: 5, population: 12, elites: 4, iterations: 2, particles: 4, optimizer: icem,
       feedback: 1, deviation: 0.1}
END

for loop in paper original limits limits-original sac ppo steve slbo pets; do
    steps=600
    [ $loop != pets ] || steps=240
    expect 0 "^ *6  *$steps 
'opc plot $loop'.*'opc evaluate $loop'" "$OPC" train $loop.yaml --out $loop --threads 1
    for file in config.yaml meta.json metrics.csv timing.csv status.json log.txt policy.opc \
        result.json checkpoints/a.opc checkpoints/b.opc; do
        [ -s "$loop/$file" ] || wrong "$loop/$file is missing" "$OPC" train
    done
    grep -q '"revision": \("[0-9a-f]*\(-dirty\)*"\|null\),' $loop/meta.json ||
        wrong "the commit is not recorded" cat $loop/meta.json
    head -n 1 $loop/metrics.csv |
        grep -q '^epoch,env_steps,total_steps,eval_return,eval_min,eval_max,eval_length,'
    [ "$(wc -l <$loop/metrics.csv)" = 7 ]
    expect 0 '' "$OPC" train $loop.yaml --out $loop-2 --threads 2 --quiet
    [ ! -s "$work/said" ] || wrong "--quiet says something" "$OPC" train
    same $loop $loop-2
    # The saved settings are the whole story.
    expect 0 '' "$OPC" train $loop/config.yaml --out $loop-3 --threads 1 --quiet
    same $loop $loop-3
done
[ -s paper/snapshots/000003.opc ] && [ -s paper/snapshots/000006.opc ]

# What is forgotten is removed: three epochs of imagined data at most, of two that are kept.
[ "$(find paper/checkpoints -name 'imagined-*' | wc -l)" -le 3 ]

# ---- kill -9 at any instant ----------------------------------------------------------------------
# It would go on for ever, so that every kill meets it at work; then it is told to end two epochs later,
# and killed once more on the way there.
for loop in paper original limits limits-original sac ppo steve slbo pets; do
    for wait in 0 0.02 0.07 0.13 0.2 0.3; do
        rm -rf killed whole
        "$OPC" train $loop.yaml train.epochs=1000000 --out killed --threads 1 --quiet &
        pid=$!
        await $pid killed/config.yaml
        sleep $wait
        kill -9 $pid
        wait $pid 2>/dev/null || :
        rows=0
        [ ! -e killed/metrics.csv ] || rows=$(wc -l <killed/metrics.csv)
        epochs=$((rows + 2))
        sed -i "s/^  epochs: 1000000\$/  epochs: $epochs/" killed/config.yaml
        "$OPC" resume killed --threads 2 --quiet &
        pid=$!
        sleep 0.03
        kill -9 $pid 2>/dev/null || :
        wait $pid 2>/dev/null || :
        expect 0 '' "$OPC" resume killed --threads 1
        expect 0 '' "$OPC" train $loop.yaml train.epochs=$epochs --out whole --threads 2 --quiet
        same whole killed
        [ -z "$(find killed -name '*.tmp')" ] || wrong "left temporary files" "$OPC" resume
    done
done
# Killed before it began, it is not in its own way.
rm -rf killed
"$OPC" train sac.yaml --out killed --quiet &
kill -9 $!
wait $! 2>/dev/null || :
[ -e killed/config.yaml ] || expect 0 '' "$OPC" train sac.yaml --out killed --quiet
# A complete run stays as it is.
cp -r paper again
expect 0 ' 6 of 6$' "$OPC" resume again
same paper again
grep -Fq "$(grep '"eval_return"' again/result.json | tr -d ,)" again/status.json ||
    wrong "forgot the return in status.json" "$OPC" resume again
# Trained on, it is what it would have been.
sed -i 's/epochs: 6/epochs: 8/' again/config.yaml
expect 0 '' "$OPC" resume again
expect 0 '' "$OPC" train paper.yaml train.epochs=8 --out longer
same longer again

# ---- runs of older programs ----------------------------------------------------------------------
# One of each kind, of commit 53b7601 after two epochs, and the tables that program wrote after five.
# They were made with kernels that only x86 has.
if OPC_BACKEND=sse2 "$OPC" doctor >kernels 2>&1 && grep -q 'kernels  *sse2' kernels; then
    mkdir older
    tar -xzf "$SRC/tests/golden/runs-53b7601.tar.gz" -C older
    for kind in opc mbpo sac ppo; do
        # A sweep of the same settings, whatever they were called then, takes the run for its own.
        mkdir -p sweep-$kind
        cp -r older/$kind sweep-$kind/s3
        # The default of opc.reference_epochs was another; what a run's own file leaves out has that.
        printf 'include: older/%s/config.yaml\nvary: {train.seed: [3]}\n' $kind >older-$kind.yaml
        expect 0 '^s3 *done *2/2' "$OPC" sweep older-$kind.yaml status --out sweep-$kind
        # A new run of the old file repeats it. Columns 2 to 7 are the steps and the returns.
        OPC_BACKEND=sse2 expect 0 '' "$OPC" train older/$kind/config.yaml train.epochs=5 \
            --out repeated-$kind --quiet
        [ ! -s "$work/said" ] || wrong "an older file is read with a warning" "$OPC" train
        cut -d, -f2-7 repeated-$kind/metrics.csv >repeated.csv
        cut -d, -f2-7 older/$kind.expected.csv | cmp - repeated.csv ||
            wrong "an older run is repeated otherwise" "$OPC" train older/$kind/config.yaml
        sed -i 's/^  epochs: 2$/  epochs: 5/' older/$kind/config.yaml
        OPC_BACKEND=sse2 expect 0 '' "$OPC" resume older/$kind --quiet
        [ ! -s "$work/said" ] || wrong "an older run is resumed with a warning" "$OPC" resume
        cmp older/$kind/metrics.csv older/$kind.expected.csv ||
            wrong "an older run goes on otherwise" "$OPC" resume older/$kind
    done
fi

# ---- Ctrl-C, and a second process ----------------------------------------------------------------
"$OPC" train paper.yaml train.epochs=100000 --out long --threads 1 >long.said 2>&1 &
pid=$!
await $pid long/checkpoints/a.opc
expect 2 "^opc: resume: .*long.*($pid on " "$OPC" resume long
expect 2 "^opc: train: .*long.*($pid on " "$OPC" train paper.yaml --out long
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 75 ] || wrong "exit status $status instead of 75" kill -INT
grep -q "^opc: train: .*'opc resume long'" long.said
grep -q '"state": "stopped"' long/status.json
grep -q "\"epoch\": $(sed -n '$s/,.*//p' long/metrics.csv),\$" long/status.json ||
    wrong "status.json counts an epoch that is not whole" cat long/status.json
grep -q "\"env_steps\": $(tail -n 1 long/metrics.csv | cut -d, -f2),\$" long/status.json ||
    wrong "status.json has the steps of another epoch" cat long/status.json
epochs=$(($(sed -n '$s/,.*//p' long/metrics.csv) + 2))
sed -i "s/epochs: 100000/epochs: $epochs/" long/config.yaml
expect 0 '' "$OPC" resume long
expect 0 '' "$OPC" train paper.yaml train.epochs=$epochs --out short --quiet
same short long

# ---- damage --------------------------------------------------------------------------------------
flip() { # FILE OFFSET
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    # shellcheck disable=SC2059 # the format is the byte
    printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
# Epoch 6 is in slot b, epoch 5 in slot a.
damaged() { # NAME COMMAND...: the newest checkpoint is, the one before is used
    rm -rf hurt
    cp -r paper hurt
    rm hurt/result.json
    name=$1
    shift
    "$@"
    file=$(printf '%s\n' "$@" | grep '^hurt/')
    expect 0 "^opc: warning: .*$file.*\\(damaged\\|missing\\)
 5 of 6\$" "$OPC" resume hurt
    same paper hurt || wrong "$name" "$@"
}
size=$(wc -c <paper/checkpoints/b.opc)
for at in 0 9 17 25 33 44 50 100 $((size / 2)) $((size - 1)); do
    damaged "bit $at" flip hurt/checkpoints/b.opc "$at"
done
damaged "cut short" truncate -s $((size - 1)) hurt/checkpoints/b.opc
damaged "empty" truncate -s 0 hurt/checkpoints/b.opc
damaged "segment" flip hurt/checkpoints/imagined-000006.opc 5000
damaged "segment" rm hurt/checkpoints/past-000006.opc
flip hurt/checkpoints/a.opc 60
flip hurt/checkpoints/b.opc 60
cp hurt/metrics.csv before.csv
expect 3 '^opc: warning: .*hurt/checkpoints/a.opc.*damaged
^opc: warning: .*hurt/checkpoints/b.opc.*damaged
^opc: resume: .*hurt.*log.txt' "$OPC" resume hurt
cmp before.csv hurt/metrics.csv
# Without checkpoints what was learned cannot be gone on with, and is not thrown away.
rm -rf hurt
cp -r paper hurt
rm -r hurt/checkpoints
expect 3 '^opc: resume: .*hurt.*results' "$OPC" resume hurt
rm hurt/result.json
expect 3 '^opc: resume: .*hurt.*results' "$OPC" resume hurt
cmp paper/metrics.csv hurt/metrics.csv
# Where one table is missing, the other is not cut.
rm -rf hurt
cp -r paper hurt
rm hurt/timing.csv hurt/result.json
expect 3 '^opc: warning: .*hurt/timing.csv.*missing' "$OPC" resume hurt
cmp paper/metrics.csv hurt/metrics.csv
# Fewer epochs than there are cannot be had; of more, the old policy is not the last.
rm -rf hurt
cp -r paper hurt
sed -i 's/^  epochs: 6/  epochs: 4/' hurt/config.yaml
expect 2 '^opc: resume: .* 6 .*train.epochs = 4 .*hurt/config.yaml' "$OPC" resume hurt
sed -i 's/^  epochs: 4/  epochs: 1000000/' hurt/config.yaml
"$OPC" resume hurt --quiet &
pid=$!
until [ "$(wc -l <hurt/metrics.csv)" -gt 8 ]; do sleep 0.01; done
kill -9 $pid
wait $pid || :
[ ! -e hurt/policy.opc ] || wrong "the policy of epoch 6 is still there" "$OPC" resume hurt
# Checkpoints of another run, and other files in their place.
foreign() { # WHAT FILE: one slot is used in place of the other, but not two bad ones
    rm -rf hurt
    cp -r paper hurt
    rm hurt/result.json
    cp "$2" hurt/checkpoints/b.opc
    expect 0 "^opc: warning: .*checkpoints/b.opc.* $1
 5 of 6\$" "$OPC" resume hurt
    same paper hurt || wrong "$1" cp "$2"
    rm hurt/result.json
    cp "$2" hurt/checkpoints/a.opc
    cp "$2" hurt/checkpoints/b.opc
    expect 3 "^opc: warning: .*checkpoints/a.opc.* $1
^opc: warning: .*checkpoints/b.opc.* $1
^opc: resume: .*hurt.*log.txt" "$OPC" resume hurt
}
"$OPC" train paper.yaml train.seed=9 --out stranger --quiet
foreign settings stranger/checkpoints/b.opc
foreign policy paper/policy.opc
sed -i 's/discount: 0.99/discount: 0.98/' again/config.yaml
expect 2 '^opc: resume: .*again/config.yaml.*train.epochs' "$OPC" resume again

# In another world the run goes on, but not without a word.
if ! without MUJOCO; then
    "$OPC" train "$smoke" env.name=mujoco:inverted_pendulum train.epochs=1 --out world --quiet
    sed -i 's/^  epochs: 1$/  epochs: 2/' world/config.yaml
    sed -i 's/"model_crc32c": "[0-9a-f]*"/"model_crc32c": "00000000"/' world/meta.json
    expect 0 '^opc: warning: .*model.*mujoco:inverted_pendulum' "$OPC" resume world
fi

# ---- a learning rate that falls until the end ------------------------------------------------------
# What it is depends on how many epochs there are, so these cannot be changed; a killed run still goes on.
"$OPC" train paper.yaml sac.lr_decay=0.9 --out decay --threads 1 --quiet
! cmp -s paper/policy.opc decay/policy.opc || wrong 'sac.lr_decay changes nothing' ls decay
"$OPC" train paper.yaml sac.lr_decay=0.9 --out decay-2 --threads 2 --quiet &
pid=$!
await $pid decay-2/checkpoints/b.opc
kill -9 $pid 2>/dev/null || :
wait $pid 2>/dev/null || :
expect 0 '' "$OPC" resume decay-2 --threads 1
same decay decay-2
expect 2 '^opc: resume: .*depends on train.epochs' "$OPC" resume decay train.epochs=9

# ---- a disk that fills up ------------------------------------------------------------------------
expect 1 '^opc: train: .*full/checkpoints/.*: File too large.*ulimit -f' \
    sh -c "trap '' XFSZ; ulimit -f 40; exec '$OPC' train paper.yaml --out full"
expect 0 '' "$OPC" resume full
same paper full

# ---- an environment that fails in the third epoch -------------------------------------------------
expect 5 '^opc: train: .*epoch 3, .* 38: .* 39 .* 1: .*e+38' \
    "$OPC" train "$smoke" 'env.name=linear1d?A=10' train.epochs=6 train.random_steps=0 \
    train.steps_per_epoch=15 train.reset_each_epoch=false opc.horizon=1 eval.every=100 --out fails
cp fails/metrics.csv before.csv
[ "$(wc -l <before.csv)" = 3 ] || wrong 'two epochs were complete' cat before.csv
grep -q '"state": "failed"' fails/status.json || wrong 'status.json says otherwise' cat fails/status.json
expect 5 '^opc: resume: .*epoch 3, .* 38: .* 39 .* 1: ' "$OPC" resume fails
cmp before.csv fails/metrics.csv

# ---- divergence ----------------------------------------------------------------------------------
expect 4 '^opc: train: .*epoch [0-9]' \
    "$OPC" train sac.yaml sac.learning_rate=1 sac.reward_scale=1e6 sac.tau=1 train.updates_per_step=50 \
    train.epochs=40 --out diverged
grep -q '"state": "diverged"' diverged/status.json
# A limit that refuses every rollout is named, and not waited for for ever.
expect 4 '^opc: train: .*epoch 1, .*100 % .*opc.max_drift .*end_drift' \
    "$OPC" train paper.yaml opc.max_drift=1e-9 --out drifted
! grep -q diverge "$work/said" || wrong 'it has not diverged' cat "$work/said"
grep -q '"state": "failed"' drifted/status.json || wrong 'status.json says otherwise' cat drifted/status.json
expect 4 '^opc: resume: .*epoch 1, .*100 % .*opc.max_drift .*end_drift' "$OPC" resume drifted
# With few rollouts in rounds a round may be refused whole. The run goes on with the others, also where
# it is the first one, before which there is nothing to learn from.
cat >few.yaml <<END
include: $smoke
train: {epochs: 2, random_steps: 100, rounds: 20, seed: 3}
model: {holdout_every: 3, max_steps: 14, new_ratio: 0.4}
opc: {transition: learned, bounds: true, rollouts: 20, reference_epochs: 0}
END
"$OPC" train few.yaml opc.bounds=false --out all --quiet
"$OPC" train few.yaml --out few --quiet
[ "$(column few updates 1)" -lt "$(column all updates 1)" ] || wrong 'no round was empty' cat few/metrics.csv
expect 4 '^opc: train: .*: 20 of 20 imagined rollouts .*end_drift' \
    "$OPC" train few.yaml opc.max_drift=1e-9 opc.bounds=false --out nothing
expect 2 '^opc: train: opc.max_disagreement = 2 .*model.elites = 1' \
    "$OPC" train paper.yaml opc.max_disagreement=2 model.elites=1 --out x

# ---- evaluate ------------------------------------------------------------------------------------
expect 0 '^3 .*epoch 6: .*return [0-9.]*, ' "$OPC" evaluate paper --episodes 3 --seed 5
cp "$work/said" first
expect 0 '' "$OPC" evaluate paper --episodes 3 --seed 5 --threads 1
cmp "$work/said" first
rm again/policy.opc
cp paper/config.yaml again/config.yaml
expect 0 '^{"epoch": 8, "episodes": 2, "mean": ' "$OPC" evaluate again --episodes 2 --json --explore
# A checkpoint is damaged: the other one will do, and it is said.
for slot in a b; do
    cp -r again hurt-$slot
    printf zz | dd of=hurt-$slot/checkpoints/$slot.opc bs=1 seek=100 conv=notrunc 2>/dev/null
    expect 0 "^opc: warning: hurt-$slot/checkpoints/$slot.opc.*damaged" \
        "$OPC" evaluate hurt-$slot --episodes 1
done
# A planner's policy is its model, and by eq. 5 it plans along the recordings of its run. Without them
# it says what it does instead.
expect 0 '^3 .*epoch 6: .*return [0-9.]*, ' "$OPC" evaluate pets --episodes 3 --seed 5 --threads 1
cp "$work/said" first
expect 0 '' "$OPC" evaluate pets --episodes 3 --seed 5 --threads 2
cmp "$work/said" first
cp -r pets alone
rm -r alone/checkpoints
expect 0 '^opc: warning: .*eq. 2.*eq. 5
^3 .*epoch 6: ' "$OPC" evaluate alone --episodes 3 --seed 5
mkdir empty
expect 2 '^opc: evaluate: .*empty.*config.yaml' "$OPC" evaluate empty
expect 2 '^opc: resume: .*empty.*config.yaml' "$OPC" resume empty
cp paper/config.yaml empty
expect 2 '^opc: evaluate: .*empty.*policy' "$OPC" evaluate empty

# ---- wrong input ---------------------------------------------------------------------------------
expect 2 '^opc: train: .*opc train FILE.yaml ' "$OPC" train
expect 2 '^opc: train: .*opc train FILE.yaml ' "$OPC" train train.seed=1
expect 2 '^opc: train: [^[]*--out DIR' "$OPC" train paper.yaml
expect 2 '^opc: train: .*train.agent = ppo.*opc.transition = replay' \
    "$OPC" train paper.yaml train.agent=ppo --out x
expect 2 '^opc: train: train.agent = ppo.*train.reset_each_epoch = true' \
    "$OPC" train ppo.yaml train.reset_each_epoch=false --out x
expect 2 '^opc: train: train.agent = ppo.*train.improve_every = 0' \
    "$OPC" train ppo.yaml train.improve_every=1 --out x
expect 2 '^opc: train: .*train.agent = slbo.*opc.transition = replay' \
    "$OPC" train slbo.yaml opc.transition=corrected --out x
expect 2 '^opc: train: slbo.rollout_steps = 160 .*slbo.rollout_envs = 7' \
    "$OPC" train slbo.yaml slbo.rollout_envs=7 --out x
# What training refuses is not printed as the settings of a run, either.
expect 2 '^opc: config: slbo.rollout_steps = 160 .*slbo.rollout_envs = 7' \
    "$OPC" config slbo.yaml slbo.rollout_envs=7
expect 2 '^opc: config: steve.reward_hidden: 8 hidden layers' \
    "$OPC" config steve.yaml 'steve.reward_hidden=[1, 1, 1, 1, 1, 1, 1, 1]'
expect 2 '^opc: train: .*slbo.window = 0 .*\[1, 8\]' "$OPC" train slbo.yaml slbo.window=0 --out x
expect 1 '^opc: train: .*(agent [0-9.]* [GT]B, .* lower .*slbo.rollout_steps' \
    "$OPC" train slbo.yaml slbo.rollout_steps=100000000 --out x
without MUJOCO || expect 2 '^opc: train: model.reward = given.*mujoco:hopper.*model.reward = learned' \
    "$OPC" train slbo.yaml env.name=mujoco:hopper slbo.reward=given --out x
expect 2 '^opc: train: .*pets.horizon = 0 .*\[1, ' "$OPC" train pets.yaml pets.horizon=0 --out x
expect 2 '^opc: train: .*pets.population = 3 .*pets.elites = 4' \
    "$OPC" train pets.yaml pets.population=3 --out x
expect 2 '^opc: train: .*pets.particles = 3 .*model.elites = 2' \
    "$OPC" train pets.yaml pets.particles=3 --out x
expect 2 '^opc: train: train.agent = pets .*opc.transition = replay' \
    "$OPC" train pets.yaml opc.transition=replay --out x
expect 1 '^opc: train: .*(planning [0-9.]* GB, .* lower pets.population' \
    "$OPC" train pets.yaml pets.population=100000 pets.particles=9000 --out x
without MUJOCO || expect 2 '^opc: train: .*model.reward = given.*mujoco:hopper' \
    "$OPC" train pets.yaml env.name=mujoco:hopper model.reward=given --out x
expect 2 '^opc: train: .*nowhere.yaml' "$OPC" train nowhere.yaml --out x
expect 2 "^opc: train: .*paper.*'opc resume paper'" "$OPC" train paper.yaml --out paper
mkdir other
: >other/thesis.tex
expect 2 '^opc: train: .*other.*thesis.tex' "$OPC" train paper.yaml --out other
expect 2 '^opc: train: .*paper/config.yaml: ' "$OPC" train paper.yaml --out paper/config.yaml/x
expect 2 "^opc: train: .*train.*'epoch'.*'epochs'" "$OPC" train paper.yaml train.epoch=3 --out x
expect 2 "^opc: train: .*'trian.epochs'.*'train.epochs'" \
    "$OPC" train paper.yaml trian.epochs=3 --out x
expect 2 "^opc: train: .*'epochs'.*section.name=value" "$OPC" train paper.yaml epochs --out x
expect 2 '^opc: train: .*sac.discount = 1.5 .*\[0, 1\]' "$OPC" train paper.yaml sac.discount=1.5 --out x
expect 2 '^opc: train: .*train.fit_every = 30 .*train.steps_per_epoch = 100' \
    "$OPC" train paper.yaml train.fit_every=30 --out x
expect 2 "^opc: train: .*env.name: .*'cartpol'.*cartpole" \
    "$OPC" train paper.yaml env.name=cartpol --out x
expect 1 '^opc: train: .*GB.*opc.transitions.*data.retain' \
    "$OPC" train paper.yaml opc.transitions=10000000 data.retain=200 --out x
# The table of reference predictions is as long as the window, and the estimate knows.
for K in 0 1; do
    expect 1 '^opc: train: .* needs up to .* GB' \
        "$OPC" train paper.yaml train.epochs=90000 train.steps_per_epoch=10000 opc.reference_epochs=$K --out x
    sed 's/.* needs up to \([0-9.]*\) GB.*/\1/' "$work/said" >"$work/need-$K"
done
awk 'NR == 1 { all = $1 } NR == 2 && $1 < all { less = 1 } END { exit !less }' "$work/need-0" "$work/need-1" ||
    wrong 'a window of one epoch needs as much as all of the past' cat "$work/need-0" "$work/need-1"
[ ! -e x ] || wrong "a run that cannot begin leaves a directory" "$OPC" train
bad() { # LINES PATTERN
    printf '%b\n' "$1" >bad.yaml
    expect 2 "$2" "$OPC" train bad.yaml --out x
}
bad 'train:\n  epochs: many' '^opc: train: bad.yaml:2: train.epochs = many '
bad 'train: {epochs: 1}\ntrain.epochs: 2' 'bad.yaml:2: train.epochs.*bad.yaml:1'
bad 'train:\n  epochs: 1\n  epochs: 2' "bad.yaml:3: 'epochs'.*line 2"
bad 'train: [1, 2' 'bad.yaml:2: .*sequence'
bad 'sac: &a {batch: 3}' 'bad.yaml:1: .*(&a)'
bad 'sac: {batch: !!int 3}' 'bad.yaml:1: .*tag:yaml.org,2002:int'
bad 'include: bad.yaml' 'bad.yaml:1: .*bad.yaml'
bad 'vary: {train.seed: 1..3}' 'line 1 .*train.seed; .*train.seed=VALUE'
printf 'vary: {train.seed: 1..3}\ninclude: %s\nfigure: {panel: env.name}\n' "$smoke" >vary.yaml
expect 0 '' "$OPC" train vary.yaml train.seed=2 train.epochs=1 --out varied --quiet
