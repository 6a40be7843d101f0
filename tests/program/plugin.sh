#!/bin/sh
# SPDX-License-Identifier: MIT
# A task of one's own as a shared object: examples/arm.c through the commands, and what is none.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
cat >few.yaml <<END
include: $SRC/examples/arm.yaml
train: {epochs: 2, steps_per_epoch: 100, random_steps: 100, updates_per_step: 1}
opc.transitions: 500
model.max_epochs: 2
eval.episodes: 2
END

build() { # OUT SOURCE [OPTION...]
    out=$1 source=$2
    shift 2
    "$CC" -std=c17 -Wall -Wextra -Werror -shared -fPIC "$@" -I"$SRC/include" -I"$BUILD/include" \
        -o "$out" "$source" -lm
}
build arm.so "$SRC/examples/arm.c"

# ---- as any other task ---------------------------------------------------------------------------
expect 0 '^./arm.so - point an arm at an angle
^  arguments    mass=X in \[0.1, 10\] (1): in kg
^  model        arm, CRC-32C [0-9a-f]*$' "$OPC" env show ./arm.so
expect 0 '^arm.so?mass=2&angle=raw .*sound' "$OPC" env check 'arm.so?mass=2&angle=raw' --transitions 2000
expect 0 '^./arm.so  *[0-9]' "$OPC" env bench ./arm.so --seconds 0.02
expect 2 "^opc: env: .*arm.*'weight'.*mass, angle" "$OPC" env show './arm.so?weight=1'
expect 0 "'opc evaluate run'" "$OPC" train few.yaml --out run --threads 1
expect 0 '' "$OPC" train few.yaml --out again --threads 2 --quiet
cmp run/metrics.csv again/metrics.csv
expect 0 '^2 .*epoch 2.*return [0-9]' "$OPC" evaluate run --episodes 2
grep -q '"model": "arm"' run/meta.json
cat >sweep.yaml <<END
include: few.yaml
vary: {env.name: ["./arm.so?mass=1", "./arm.so?mass=2"]}
END
expect 0 ' 2 .*sweep$' "$OPC" sweep sweep.yaml run --out sweep
[ -s sweep/arm.so-mass-2/result.json ]
without CAIRO || expect 0 'arm.so?mass=2' "$OPC" plot sweep -o curves.svg

# Another one than it was begun with.
build arm.so "$SRC/examples/arm.c" -DNOTHING -O2
sed -i 's/^  epochs: 2$/  epochs: 3/' run/config.yaml
expect 0 '^opc: warning: .*model.*./arm.so' "$OPC" resume run --quiet

# A run knows where its plugin is, from whatever directory it is used, and so does its policy file.
mkdir elsewhere
(
    cd elsewhere
    expect 0 'epoch 3.*return [0-9]' "$OPC" evaluate ../run --episodes 2
    expect 0 'epoch 3.*return [0-9]' "$OPC" evaluate ../run/policy.opc --episodes 2
    expect 0 '' "$OPC" resume ../run train.epochs=4 --quiet
    expect 0 '' "$OPC" data export ../run -o steps.csv
)
# The directory is no part of the identity: the same sweep is complete from elsewhere.
(cd elsewhere && expect 0 ' 2 .*sweep$' "$OPC" sweep ../sweep.yaml run --out ../sweep)
# One that was moved is found beside where opc is started, or where env.directory says.
mkdir moved
mv arm.so moved
(cd moved && expect 0 'epoch 4' "$OPC" evaluate ../run --episodes 2)
(cd elsewhere && expect 2 "$work/arm.so.*env.directory" "$OPC" evaluate ../run)
expect 0 '' "$OPC" resume run "env.directory=$PWD/moved" --quiet
(cd elsewhere && expect 0 'epoch 4' "$OPC" evaluate ../run --episodes 2)
mv moved/arm.so .

# ---- what is none --------------------------------------------------------------------------------
(cd elsewhere && expect 2 '^opc: env: .*./arm.so.*plugin' "$OPC" env show ./arm.so)
echo junk >junk.so
expect 2 '^opc: env: .*./junk.so: ' "$OPC" env show junk.so
printf 'int nothing;\n' >nothing.c
build nothing.so nothing.c
expect 2 '^opc: env: .*./nothing.so: .*OPC_ENV_PLUGIN' "$OPC" env show nothing.so
printf '#include <opc/env.h>\nstatic const struct opc_env_type t = {.name = "t"};\nOPC_ENV_PLUGIN(t);\n' >half.c
build half.so half.c
expect 2 '^opc: env: .*./half.so: .*struct opc_env_type.*page' "$OPC" env show half.so
printf '#include <opc/env.h>\nconst struct opc_env_plugin opc_env_plugin = {OPC_ENV_ABI + 1, {0}, 0};\n' >old.c
build old.so old.c
expect 2 '^opc: env: .*./old.so: .*headers' "$OPC" env show old.so
cat >odd.c <<'END'
#include <opc/env.h>
#define S(i, name) (unsigned)sizeof(struct name) + (K == i)
const struct opc_env_plugin opc_env_plugin = {
    OPC_ENV_ABI,
    {S(0, opc_env_type), S(1, opc_env), S(2, opc_outcome), S(3, opc_env_arg), S(4, opc_env_page),
     S(5, opc_scene), S(6, opc_err)}, 0};
END
for k in 0 1 2 3 4 5 6; do
    build odd.so odd.c -DK=$k
    expect 2 '^opc: env: .*./odd.so: .*headers' "$OPC" env show odd.so
done

# ---- a machine: one, that never repeats itself, and rests between two episodes ---------------------
build machine.so "$SRC/tests/program/machine.c"
MACHINE_LOG=$work/asked
export MACHINE_LOG
quiet() { # no more than one is open, and none is moved or closed unless it rests
    sort -u asked | tr '\n' ' ' | grep -qx "$1" || wrong "it was not treated as a machine" cat asked
    [ "$(grep -c open asked)" = "$(grep -c close asked)" ] || wrong "left open" cat asked
    [ "$(grep -c reset asked)" = "$(grep -c rest asked)" ] || wrong "not every episode ends" cat asked
    rm asked
}
expect 0 '^machine.so .*sound
^  repeatable   .*machine' "$OPC" env check machine.so --transitions 300
quiet 'close open reset rest '
cat >machine.yaml <<END
include: few.yaml
env.name: ./machine.so
END
expect 0 '' "$OPC" train machine.yaml --out machine --quiet
quiet 'close open reset rest '
[ "$(tail -n 1 machine/metrics.csv | cut -d, -f1,2)" = 2,200 ]
expect 0 '^2 .*epoch 2.*return -*[0-9]' "$OPC" evaluate machine --episodes 2
quiet 'close open reset rest '
sed -i 's/^  epochs: 2$/  epochs: 4/' machine/config.yaml
expect 0 '' "$OPC" resume machine --quiet
quiet 'close open reset rest '
[ "$(wc -l <machine/metrics.csv)" = 5 ]
expect 2 '^opc: train: .*./machine.so.*train.reset_each_epoch = true' \
    "$OPC" train machine.yaml train.reset_each_epoch=false --out other
expect 2 '^opc: probe: .*machine: ./machine.so.*simulation' "$OPC" probe machine states
expect 2 '^opc: env: .*machine.so.*machine.*time' "$OPC" env bench machine.so
expect 2 '^opc: train: .*./machine.so.*train.fit_every.* = 0' \
    "$OPC" train machine.yaml train.fit_every=50 --out other
rm -f asked
without MUJOCO || expect 2 '^opc: env: .*./machine.so.*see' "$OPC" env render machine -o film.png
[ ! -e asked ] || quiet 'close open '
# All references of the third epoch fall, and no imagined step does: nothing can be imagined any more,
# although steps of the second epoch are left.
cat >falls.yaml <<END
include: machine.yaml
env.name: ./machine.so?what=falls&at=200
train.epochs: 4
eval.every: 100
opc: {rollouts: 1000, horizon: 1, reference_terminal: drop, reference_epochs: 1}
data: {forget: steps, retain: 5}
END
expect 4 '^opc: train: .*epoch [23], .*: [0-9]* of [0-9]* imagined rollouts .*end_reference' \
    "$OPC" train falls.yaml --out falls
tail -n +2 falls/metrics.csv | grep -q . || wrong 'the first epoch was complete' cat falls/metrics.csv
rm -f asked
cat >both.yaml <<END
include: machine.yaml
vary: {train.seed: [1, 2]}
END
expect 0 ' 2 .*both$' "$OPC" sweep both.yaml run --out both --jobs 2
[ "$(sed -n 's/^\(open\|close\).*/\1/p' asked | tr '\n' ' ')" = 'open close open close ' ] ||
    wrong "two at once" cat asked
quiet 'close open reset rest '

# Whatever happens, it is left at rest: failures in words and without, in training, evaluation and check,
# the end of the task, and episodes that only opc cuts.
expect 5 'machine.so?what=fails: step [0-9]*: the encoder is silent' \
    "$OPC" train machine.yaml 'env.name=./machine.so?what=fails' --out fails --quiet
quiet 'close open reset rest '
expect 5 'machine.so?what=silent&at=250: step [0-9]*: .* -1 ' \
    "$OPC" train machine.yaml 'env.name=./machine.so?what=silent&at=250' --out silent --quiet
quiet 'close open reset rest '
expect 5 '^opc: env: .*machine.so?what=silent: step [0-9]*: .* -1 ' "$OPC" env check 'machine.so?what=silent'
quiet 'close open reset rest '
expect 0 '^machine.so?what=ends&at=7 .*sound' "$OPC" env check 'machine.so?what=ends&at=7' --transitions 100
quiet 'close open reset rest '
expect 0 '' "$OPC" train machine.yaml 'env.name=./machine.so?limit=0&angle=as_is' --out cut --quiet
quiet 'close open reset rest '

# Signals: in the random phase, while acting, in an evaluation, and in commands that only play.
stopped() { # SIGNALS STATUS COMMAND...: within its first seconds
    signal=$1 status=$2
    shift 2
    "$@" >said 2>&1 &
    pid=$!
    until grep -q reset asked 2>/dev/null; do
        kill -0 $pid 2>/dev/null || wrong "it ended before it began" "$@"
        sleep 0.01
    done
    sleep 0.1
    for one in $signal; do
        kill -"$one" $pid
    done
    got=0
    wait $pid || got=$?
    [ $got = "$status" ] || wrong "exit status $got instead of $status" "$@"
    quiet 'close open reset rest '
}
slow='env.name=./machine.so?ms=2'
stopped TERM 75 "$OPC" train machine.yaml "$slow" --out t1 --quiet
stopped HUP 75 "$OPC" train machine.yaml "$slow" train.random_steps=0 train.steps_per_epoch=1000 --out t2 --quiet
stopped INT 75 "$OPC" train machine.yaml "$slow" train.random_steps=20 train.steps_per_epoch=20 \
    eval.episodes=1000 --out t3 --quiet
stopped TERM 75 "$OPC" env check 'machine.so?ms=2'
# As a logout does it, which is not meant as "at once".
stopped 'TERM HUP' 75 "$OPC" sweep both.yaml run "$slow" train.random_steps=1000 --out t5

# What was played at random is kept: an epoch of 20 episodes and an evaluation of two are left.
"$OPC" train machine.yaml "$slow" train.random_steps=50 train.steps_per_epoch=1000 train.epochs=1 \
    --out t4 --quiet &
pid=$!
await $pid t4/checkpoints/b.opc
kill -TERM $pid
wait $pid || :
rm asked
expect 2 '^opc: evaluate: .*t4 .*policy' "$OPC" evaluate t4
rm asked
expect 0 'random' "$OPC" resume t4
[ "$(grep -c reset asked)" = 22 ] || wrong "the random phase was played again" cat asked
quiet 'close open reset rest '
expect 0 '' "$OPC" train machine.yaml "$slow" train.epochs=1 --out slow --quiet
quiet 'close open reset rest '
stopped TERM 75 "$OPC" evaluate slow --episodes 1000

# Its time is measured: with steps of 5 ms where dt is 1 ms, all are late.
late='machine.so?ms=5&tick=1'
expect 0 '^  time         [0-9]* steps of 1 ms took [0-9.]* ms' "$OPC" env check "$late" --transitions 20
expect 0 "^opc: warning: .*machine.*: [0-9]* steps of 1 ms took .*standard deviation.* late" \
    "$OPC" train machine.yaml "env.name=./$late" train.random_steps=20 train.steps_per_epoch=20 train.epochs=1 \
    --out late --quiet
[ "$(grep -c 'warning: .* steps of 1 ms' late/log.txt)" = 2 ] || wrong "the random phase and an epoch" cat late/log.txt
