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
model.most_passes: 2
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
expect 0 '^arm.so?mass=2&angle=raw is sound' "$OPC" env check 'arm.so?mass=2&angle=raw' --transitions 2000
expect 0 '^./arm.so  *[0-9]' "$OPC" env bench ./arm.so --seconds 0.02
expect 2 "^opc: env: arm has no argument 'weight'; it knows mass, angle$" "$OPC" env show './arm.so?weight=1'
expect 0 '^done; ' "$OPC" train few.yaml --out run --threads 1
expect 0 '' "$OPC" train few.yaml --out again --threads 2 --quiet
cmp run/metrics.csv again/metrics.csv
expect 0 'mean return ' "$OPC" evaluate run --episodes 2
grep -q '"model": "arm"' run/meta.json
cat >sweep.yaml <<END
include: few.yaml
vary: {env.name: ["./arm.so?mass=1", "./arm.so?mass=2"]}
END
expect 0 '^all 2 runs are done' "$OPC" sweep sweep.yaml run --out sweep
[ -s sweep/arm.so-mass-2/result.json ]
without CAIRO || expect 0 'arm.so?mass=2' "$OPC" plot sweep -o curves.svg

# Another one than it was begun with.
build arm.so "$SRC/examples/arm.c" -DNOTHING -O2
sed -i 's/^  epochs: 2$/  epochs: 3/' run/config.yaml
expect 0 '^opc: warning: this run was begun with another model of ./arm.so than this one; .* or take the plugin of then' \
    "$OPC" resume run --quiet

# ---- what is none --------------------------------------------------------------------------------
mkdir elsewhere
(cd elsewhere && expect 2 '^opc: evaluate: there is no ./arm.so; the path of a plugin counts from where opc is started$' \
    "$OPC" evaluate ../run)
echo junk >junk.so
expect 2 '^opc: env: cannot use ./junk.so: .*' "$OPC" env show junk.so
printf 'int nothing;\n' >nothing.c
build nothing.so nothing.c
expect 2 'cannot use ./nothing.so: it names no task; add OPC_ENV_PLUGIN' "$OPC" env show nothing.so
printf '#include <opc/env.h>\nstatic const struct opc_env_type t = {.name = "t"};\nOPC_ENV_PLUGIN(t);\n' >half.c
build half.so half.c
expect 2 'cannot use ./half.so: its struct opc_env_type has no page$' "$OPC" env show half.so
printf '#include <opc/env.h>\nconst struct opc_env_plugin opc_env_plugin = {OPC_ENV_ABI + 1, 0, 0, 0};\n' >old.c
build old.so old.c
expect 2 'cannot use ./old.so: it was built with the headers of another version of opc; compile it again' \
    "$OPC" env show old.so

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
expect 0 'machine.so is sound
^  repeatable   not asked for: it is a machine$' "$OPC" env check machine.so --transitions 300
quiet 'close open reset rest '
cat >machine.yaml <<END
include: few.yaml
env.name: ./machine.so
END
expect 0 '' "$OPC" train machine.yaml --out machine --quiet
quiet 'close open reset rest '
[ "$(tail -n 1 machine/metrics.csv | cut -d, -f1,2)" = 2,200 ]
expect 0 '2 episodes with the policy' "$OPC" evaluate machine --episodes 2
quiet 'close open reset rest '
sed -i 's/^  epochs: 2$/  epochs: 4/' machine/config.yaml
expect 0 '' "$OPC" resume machine --quiet
quiet 'close open reset rest '
[ "$(wc -l <machine/metrics.csv)" = 5 ]
expect 2 'machine.so is a machine, which cannot be brought back into the middle of an episode; set train.reset' \
    "$OPC" train machine.yaml train.reset_each_epoch=false --out other
expect 2 'is a machine, which cannot try what else would have happened; probes need a simulation' \
    "$OPC" probe machine states
