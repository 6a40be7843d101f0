#!/bin/sh
# SPDX-License-Identifier: MIT
# opc export: a policy and a model as C, ONNX and numpy arrays compute what opc computes; policy.opc is
# enough; what cannot be exported is refused.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool clang
smoke=$SRC/experiments/examples/smoke.yaml
parts=$SRC/tests/program/export
cd "$work"

"$OPC" train "$smoke" env.name=pendulum sac.policy_hidden='[64,64]' --threads 1 --quiet --out sac
"$OPC" train "$smoke" env.name=pendulum train.agent=ppo opc.transition=replay --threads 1 --quiet \
    --out ppo
"$OPC" train "$smoke" opc.transition=replay train.epochs=1 --threads 1 --quiet --out cartpole

# ---- policy.opc alone is as good as its run -----------------------------------------------------------
mkdir alone exported
cp sac/policy.opc alone
for ending in h onnx npz; do
    expect 0 'pendulum .*3 inputs, 1 output ' "$OPC" export sac -o exported/policy.$ending
    expect 0 '4 inputs, 4 outputs ' "$OPC" export sac --model -o exported/model.$ending
    expect 0 pendulum "$OPC" export alone/policy.opc -o alone/policy.$ending
    cmp exported/policy.$ending alone/policy.$ending
done

# ---- C99: two compilers, with and without fused products, along the states of an episode --------------
flags='-std=c99 -pedantic -Wall -Wextra -Wshadow -Wconversion -Wdouble-promotion -Werror -O2'
build() { # COMPILER FOLDER FLAGS...
    compiler=$1
    folder=$2
    shift 2
    # shellcheck disable=SC2086 # a list
    expect 0 '' "$compiler" $flags "$@" -I"$folder" -c -o function.o "$parts/function.c"
    expect 0 '' "$compiler" -std=c17 -Wall -Wextra -Werror -I"$SRC/include" -I"$BUILD/include" \
        -o play "$parts/play.c" function.o -L"$BUILD" -lopc -lm
}
LD_LIBRARY_PATH=$BUILD
export LD_LIBRARY_PATH
worst() { # LIMIT: the largest difference in ULP is no more than this
    awk -v limit="$1" '/worst difference/ { n = $(NF - 1) } END { exit !(n != "" && n + 0 <= limit) }' \
        "$work/said" || wrong "more than $1 ULP" cat "$work/said"
}
for compiler in gcc clang; do
    build "$compiler" exported
    expect 0 'self-tests 0,' ./play alone/policy.opc pendulum 400 exported/actions.csv
    worst 16
    sed "s/^/$compiler: /" said
    build "$compiler" exported -DPOLICY_FUSED -DMODEL_FUSED
    expect 0 'self-tests 0,' ./play alone/policy.opc pendulum 400 exported/actions.csv
    # every bit, where opc itself has fused products
    worst "$(grep -q '^flags.* fma ' /proc/cpuinfo && echo 0 || echo 16)"
    sed "s/^/$compiler, fused: /" said
done
# A model that predicts in deviations of its targets is exported in the task's units.
"$OPC" train "$smoke" env.name=pendulum sac.policy_hidden='[64,64]' model.normalize_targets=true \
    --threads 1 --quiet --out scaled_run
mkdir scaled
expect 0 '' "$OPC" export scaled_run -o scaled/policy.h
expect 0 '' "$OPC" export scaled_run --model -o scaled/model.h
build gcc scaled
expect 0 'self-tests 0,' ./play scaled_run/policy.opc pendulum 100 scaled/actions.csv
# an action that was computed another way is noticed: a bias that is changed by a thousandth
mkdir changed
cp exported/model.h changed
awk '/policy_bias\[/ { inside = 1 } inside && /^ / && !done { sub(/[-0-9.e]+f,/, "0.001f,"); done = 1 } 1' \
    exported/policy.h >changed/policy.h
! cmp -s exported/policy.h changed/policy.h || wrong 'nothing was changed' true
build gcc changed
expect 0 'self-tests [1-9]' ./play alone/policy.opc pendulum 400 /dev/null

# PPO: normalised observations, actions beyond the limits are clipped
mkdir normalised
cp exported/model.h normalised
expect 0 pendulum "$OPC" export ppo -o normalised/policy.h
build gcc normalised
expect 0 'self-tests 0,' ./play ppo/policy.opc pendulum 400 /dev/null
worst 16

# STEVE: the copy of its policy that acts, which is older than the policy in training
mkdir copied
cp exported/model.* copied
"$OPC" train "$smoke" env.name=pendulum train.agent=steve opc.transition=replay steve.policy_hidden='[20,10]' \
    steve.critic_hidden=8 steve.transition_hidden=8 steve.reward_hidden=8 steve.termination_hidden=8 \
    steve.batch_size=20 steve.pretrain_updates=20 steve.copy_interval=70 --threads 1 --quiet --out steve
for ending in h onnx npz; do
    expect 0 'pendulum .*3 inputs, 1 output ' "$OPC" export steve -o copied/policy.$ending
done
build gcc copied
expect 0 'self-tests 0,' ./play steve/policy.opc pendulum 400 copied/actions.csv
worst 16

# ---- a microcontroller ---------------------------------------------------------------------------------
if command -v arm-none-eabi-gcc >/dev/null; then
    arm() { # FOLDER
        # shellcheck disable=SC2086 # a list
        expect 0 '' arm-none-eabi-gcc $flags -mcpu=cortex-m4 -mthumb -mfloat-abi=hard \
            -mfpu=fpv4-sp-d16 -nostdlib -I"$1" -Wl,-Ttext=0x100 -Wl,--section-start=.vectors=0 \
            -Wl,-e0x100 -o "$1/cortex_m4.elf" "$parts/cortex_m4.c"
    }
    arm exported
    arm-none-eabi-size exported/cortex_m4.elf
    if command -v qemu-system-arm >/dev/null; then
        emulate() { # FILE
            qemu-system-arm -M mps2-an386 -display none -monitor none -serial none \
                -semihosting-config enable=on,target=native -kernel "$1"
        }
        expect 0 '' emulate exported/cortex_m4.elf
        arm changed
        expect 1 '' emulate changed/cortex_m4.elf
        echo 'policy and model pass their self-tests on an emulated Cortex-M4'
    else
        echo 'qemu-system-arm is not installed: nothing was run on a Cortex-M4'
    fi
else
    echo 'arm-none-eabi-gcc is not installed: nothing was built for a Cortex-M4'
fi

# ---- onnxruntime and numpy -----------------------------------------------------------------------------
if venv; then
    "$python" "$parts/check.py" exported
    "$python" "$parts/check.py" copied
fi

# ---- names, runs of older programs, unfinished runs ----------------------------------------------------
expect 0 '' "$OPC" export sac -o '2-my policy.v3.h'
grep -q 'static inline void opc_2_my_policy_v3(const float' '2-my policy.v3.h'
mkdir older
tar -xzf "$SRC/tests/golden/runs-53b7601.tar.gz" -C older
expect 0 '' "$OPC" export older/opc -o older/policy.npz
expect 2 'older/opc/policy.opc' "$OPC" export older/opc/policy.opc -o older/policy.h

# A run that has been started and has no policy yet.
cp -r sac unfinished
rm -r unfinished/checkpoints unfinished/policy.opc unfinished/policy-best.opc unfinished/result.json
expect 2 'unfinished has no policy yet' "$OPC" export unfinished -o policy.h
expect 2 'unfinished has no checkpoint' "$OPC" export unfinished --model -o model.h

# ---- what is refused -----------------------------------------------------------------------------------
expect 2 'export: .*opc export RUN -o FILE' "$OPC" export sac
expect 2 'export: .*opc export RUN -o FILE' "$OPC" export -o policy.h
expect 2 'policy.pt: .*\.h .*\.onnx .*\.npz' "$OPC" export sac -o policy.pt
expect 2 'nowhere' "$OPC" export nowhere -o policy.h
expect 2 'policy.opc .*run directory' "$OPC" export sac/policy.opc --model -o model.h
expect 2 'cartpole .*opc.transition = replay' "$OPC" export cartpole --model -o model.h
head -c 2000 sac/policy.opc >cut.opc
expect 3 'cut.opc' "$OPC" export cut.opc -o policy.h
mkdir folder.h
expect 2 'folder.h.*not a file' "$OPC" export sac -o folder.h
expect 2 'no/such/folder' "$OPC" export sac -o no/such/folder/policy.h
# A planner has no network from states to actions; SLBO has one.
"$OPC" train "$smoke" env.name=pendulum train.agent=pets train.epochs=1 train.steps_per_epoch=20 train.random_steps=60 \
    pets.horizon=2 pets.population=4 pets.elites=2 pets.iterations=1 pets.particles=2 eval.episodes=1 --threads 1 \
    --quiet --out pets
expect 2 'PETS.*cannot be exported' "$OPC" export pets -o policy.h
"$OPC" train "$smoke" env.name=pendulum train.agent=slbo opc.transition=replay slbo.iterations=1 slbo.model_updates=3 \
    slbo.policy_updates=1 slbo.rollout_steps=160 slbo.model_hidden=8 --threads 1 --quiet --out slbo
expect 0 '3 inputs, 1 output ' "$OPC" export slbo -o slbo.h
printf '#include "slbo.h"\nint main(void)\n{\n    float a[1];\n    slbo((float[]){1, 0, 0}, a);\n    return slbo_self_test();\n}\n' >slbo.c
# shellcheck disable=SC2086 # a list
expect 0 '' gcc $flags -o slbo.out slbo.c
expect 0 '' ./slbo.out
# An action changes by a tenth of its range, 0.4, at most; what lies nearer is left alone, and the limits hold.
expect 0 '' "$OPC" export sac -o slow.h --max-change 0.1
cat >slow.c <<'END'
#include "slow.h"
int main(void)
{
    const float o[3] = {1, 0, 0}, lost[3] = {0.0f / 0.0f, 0, 0};
    float free[1], a[1], p[1] = {0.5f};
    int i;
    slow(o, free);
    slow_limited(lost, p, a); /* keeps the last action, and the limit for the next one */
    if (a[0] != 0.5f)
        return 4;
    for (i = -40; i <= 40; i++) {
        p[0] = 0.05f * (float)i;
        slow_limited(o, p, a);
        if (a[0] < -2 || a[0] > 2 || a[0] > p[0] + 0.40001f || a[0] < p[0] - 0.40001f)
            return 1;
        if (free[0] > p[0] - 0.3999f && free[0] < p[0] + 0.3999f && a[0] != free[0])
            return 2;
        if (free[0] > p[0] + 0.4f && a[0] < p[0] + 0.3999f && a[0] < 2)
            return 3;
    }
    return slow_self_test();
}
END
# shellcheck disable=SC2086 # a list
expect 0 '' gcc $flags -o slow.out slow.c
expect 0 '' ./slow.out
expect 2 'max-change' "$OPC" export sac -o slow.onnx --max-change 0.1
expect 2 'max-change' "$OPC" export sac -o slow.h --max-change 0.1 --model
[ ! -e policy.h ] || wrong 'left a file' ls
