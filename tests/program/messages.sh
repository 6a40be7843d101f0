#!/bin/sh
# SPDX-License-Identifier: MIT
# What opc says, word for word: wrong and noteworthy commands against tests/golden/messages.txt. The
# other scripts tell outcomes apart by exit status and facts, so that this is the one place where a
# better wording shows. With OPC_ACCEPT=1 the golden file is written instead.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
golden=$SRC/tests/golden/messages.txt
answers=$work/answers
unset OPC_BACKEND OPC_GL OPC_MODELS
LC_ALL=C
export LC_ALL
mkdir "$work/here"
cd "$work/here"

opc() {
    "$OPC" "$@"
}

heading() { # TEXT
    printf '\n---- %s ----\n' "$1" >>"$answers"
}

remark() { # TEXT: how the next commands find things
    printf '\n# %s\n' "$1" >>"$answers"
}

file() { # NAME: made of standard input, and shown
    cat >"$1"
    { printf '\n%s:\n' "$1" && sed 's/^/    /' "$1"; } >>"$answers"
}

try() { # COMMAND LINE
    printf '\n$ %s\n' "$1" >>"$answers"
    status=0
    (eval "$1") >>"$answers" 2>&1 </dev/null || status=$?
    echo "exit $status" >>"$answers"
}

cat >"$answers" <<'END'
What opc says, in the commands of tests/program/messages.sh. After a change of wording,

    OPC_ACCEPT=1 ./dev test -R messages

writes this file anew: review its diff, and commit both together.
END
cp "$SRC/experiments/examples/smoke.yaml" "$SRC/experiments/ilc/linear.yaml" \
    "$SRC/experiments/ilc/constrained.yaml" .

# ------------------------------------------------------------------------------------------------------
heading 'subcommands and options'
try 'opc docter'
try 'opc xyzzy'
try 'opc --nonsense'
try 'opc help --mann'
try 'opc bench gem'
try 'opc bench --threads x'
try 'opc bench --seconds'
try 'opc env list --json'
try 'opc --help >/dev/full'

# ------------------------------------------------------------------------------------------------------
heading 'settings'
try 'opc config modle'
try 'opc config smoke.yaml --markdown'
try 'opc train smoke.yaml train.epoch=3 --out new'
try 'opc train smoke.yaml trian.epochs=3 --out new'
try 'opc train smoke.yaml epochs --out new'
try 'opc train smoke.yaml sac.discount=1.5 --out new'
try 'opc train smoke.yaml opc.transition=corected --out new'
try 'opc train smoke.yaml train.fit_every=30 --out new'
try 'opc train smoke.yaml train.agent=ppo --out new'
try 'opc train smoke.yaml opc.max_disagreement=2 model.elites=1 --out new'
try 'opc train smoke.yaml opc.max_drift=1e-9 --out far --quiet'
try 'opc train smoke.yaml opc.transition=replay opc.bounds=true opc.past_ratio=0.5 --out idle-1 --quiet'
try 'opc train smoke.yaml opc.transition=learned opc.reference_terminal=drop --out idle-2 --quiet'
try 'opc train smoke.yaml sac.bound_targets=true sac.discount=1 train.epochs=1 --out idle-3 --quiet'
try 'opc train smoke.yaml train.agent=ppo opc.transition=replay sac.layer_norm=true --out idle-4 --quiet'
try 'opc train smoke.yaml opc.past_ratio=1 opc.reference_epochs=2 train.epochs=2 --out idle-5 --quiet'
try 'opc train smoke.yaml train.agent=pets opc.transition=learned model.reward=given pets.bound_reward=true pets.population=8 pets.elites=2 pets.iterations=1 pets.horizon=2 pets.particles=2 train.epochs=1 eval.every=9 --out idle-6 --quiet'
try 'opc train smoke.yaml train.agent=steve --out new'
try 'opc train smoke.yaml train.agent=steve opc.transition=replay steve.horizon=0 --out new'
try 'opc train smoke.yaml train.agent=steve opc.transition=replay steve.critic_hidden=2,2,2,2,2,2,2,2 --out new'
file number.yaml <<'END'
train:
  epochs: many
END
try 'opc train number.yaml --out new'
file twice.yaml <<'END'
train: {epochs: 1}
train.epochs: 2
END
try 'opc train twice.yaml --out new'
file misfit.yaml <<'END'
include: smoke.yaml
opc.transition: replay
train: {agent: ppo, random_steps: 0, improve_every: 1}
END
try 'opc train misfit.yaml --out new'
file anchor.yaml <<'END'
sac: &a {batch_size: 3}
END
try 'opc train anchor.yaml --out new'
file several.yaml <<'END'
include: smoke.yaml
vary: {train.seed: 1..3}
END
try 'opc train several.yaml --out new'

# ------------------------------------------------------------------------------------------------------
heading 'training and going on'
opc train smoke.yaml train.epochs=2 --out run --quiet
mkdir empty other begun
touch other/thesis.tex
cp run/config.yaml begun
try 'opc train'
try 'opc train smoke.yaml'
try 'opc train nowhere.yaml --out new'
try 'opc train nowhere.yaml'
try 'opc train mujoco:hopper'
try "opc train 'exec:./sliding?mass=2' --out new"
try 'opc train env.name=./arm.so --out new'
try 'opc train smoke.yaml env.name=cartpol --out new'
try 'opc train smoke.yaml env.name=Hopper-v2 --out new'
try 'opc train smoke.yaml lr=1e-3 --out new'
try 'opc train smoke.yaml --out run'
try 'opc train smoke.yaml --out other'
try 'opc train smoke.yaml --out smoke.yaml/below'
try 'opc resume empty'
cp -r run hurt
for slot in a b; do
    printf zz | dd of=hurt/checkpoints/$slot.opc bs=1 conv=notrunc status=none
done
remark 'hurt: a run, but both of its checkpoints are damaged'
try 'opc resume hurt'
rm -r hurt/checkpoints
remark 'hurt: now it has none'
try 'opc resume hurt'
cp -r run changed
sed -i 's/^  epochs: 2$/  epochs: 1/' changed/config.yaml
remark 'changed: a run of two epochs, and then its config.yaml says one'
try 'opc resume changed'
sed 's/^  seed: 1$/  seed: 2/' run/config.yaml >changed/config.yaml
remark 'changed: now it has another seed'
try 'opc resume changed'

# ------------------------------------------------------------------------------------------------------
heading 'looking at runs'
opc train smoke.yaml opc.transition=replay train.epochs=1 --out sac --quiet
cp -r run none
sed -i 1q none/metrics.csv
remark 'run: two epochs, no snapshots; sac: no model; begun: no epoch; none: no row in its metrics.csv'
try 'opc evaluate begun'
try 'opc probe run'
try 'opc probe run stats'
try 'opc probe run states --epoch 1'
try 'opc probe run bound'
try 'opc probe run trajectories --entry o9'
try 'opc probe sac offpolicy'
try 'opc plot'
try 'opc plot empty'
try 'opc plot none'
try 'opc plot run --of eval_retrn'
try 'opc plot run --smooth 4'
mkdir untimed
cp run/config.yaml run/metrics.csv untimed
try 'opc plot untimed --over minutes'
cp -r untimed untimed-2
sed -i 's/seed: 1/seed: 2/' untimed-2/config.yaml
try 'opc plot untimed untimed-2 --over minutes'
try 'opc plot run untimed-2 --over minutes -o /dev/null/x.svg'
try 'opc report'
try 'opc report empty'

# ------------------------------------------------------------------------------------------------------
heading 'tasks'
try 'opc env'
try 'opc env lst'
try 'opc env xyzzy'
try 'opc env check tetris'
try 'opc env check tanks.py'
try 'opc env check tanks:Tanks'
try "opc env show 'cartpole?mass=3'"
try "opc env show 'linear1d?A=x'"
try 'opc env show ./nothing.so'
try 'opc env trace linear1d'
try 'opc env trace linear1d --actions nowhere.csv'
file actions.csv <<'END'
0.5, 1
END
try 'opc env trace linear1d --actions actions.csv'
file header.csv <<'END'
a0
0.5
END
try 'opc env trace linear1d --actions header.csv'

# ------------------------------------------------------------------------------------------------------
heading 'sweeps'
file sweep.yaml <<'END'
include: smoke.yaml
vary:
  opc.transition: [corrected, replay]
  train.seed: 1..2
tiers:
  tiny: {train.epochs: 1}
END
try 'opc sweep sweep.yaml'
try 'opc sweep sweep.yaml rnu'
try 'opc sweep sweep.yaml foo'
try 'opc sweep sweep.yaml status --out many'
try "opc sweep sweep.yaml run --only 'x*' --out many"
try 'opc sweep sweep.yaml run --tier tinny --out many'
try 'opc sweep sweep.yaml run train.seed=1 --out many'
try 'opc sweep sweep.yaml run --out run'
try 'opc sweep sweep.yaml merge --out many'
try 'opc sweep sweep.yaml merge --out run'
mkdir many
cp -r run many/corrected_s1
remark 'many/corrected_s1: a run with opc.horizon = 5'
try 'opc sweep sweep.yaml run opc.horizon=4 --out many'
try 'opc sweep sweep.yaml status opc.horizon=4 --out many'
mkdir earlier
file earlier/merged.csv <<'END'
opc.transition,train.seed,complete,epoch,env_steps,eval_return
corrected,1,1,1,100,20
corrected,1,1,2,200,30
replay,2,1,1,100,21
END
try 'opc sweep sweep.yaml merge train.epochs=2 --out again --add earlier'
try 'opc sweep sweep.yaml merge train.epochs=2 --out many --add earlier >/dev/null'
try 'opc sweep sweep.yaml merge --tier tiny --out again --add earlier'
try 'opc sweep sweep.yaml merge --out again --add nowhere'
try 'opc sweep several.yaml merge --out again --add earlier'
file shorter.yaml <<'END'
include: smoke.yaml
vary:
  opc.transition: [corrected, replay]
  train.seed: [1]
END
try 'opc sweep shorter.yaml merge --out again --add earlier'
file twofold.yaml <<'END'
include: smoke.yaml
vary:
  opc.horizon: [[5], [10]]
  opc.transition: [corrected, replay]
  train.seed: 1..2
END
try 'opc sweep twofold.yaml merge --out again --add earlier'
file earlier/runs.csv <<'END'
opc.transition,train.seed,complete,method,task
corrected,1,1,OPC,pendulum
END
try 'opc sweep sweep.yaml merge train.epochs=2 --out again --add earlier'
file computed.yaml <<'END'
probe: {analysis: theory}
END
try 'opc sweep computed.yaml run'
mkdir tools
ln -s "$(command -v sh)" tools/sh
remark 'tools: a PATH without the commands of Slurm'
# shellcheck disable=SC2016 # expanded there
try 'env PATH="$PWD/tools" "$OPC" sweep sweep.yaml run --launcher slurm --out lone'
try 'opc sweep sweep.yaml run --launcher slurm --time soon --out lone'
try 'opc sweep sweep.yaml run --launcher slurm --partition "a b" --out lone'
try 'opc sweep sweep.yaml run --launcher slurm --shared --out lone'
try 'opc sweep sweep.yaml run --launcher slurm --index 1 --out lone'
try 'opc sweep sweep.yaml run --launcher slrm --out lone'
try 'opc sweep sweep.yaml run --pack 2 --out lone'
try 'opc sweep sweep.yaml run --index 5 --out lone'
try 'opc sweep sweep.yaml run --index 1 --threads 1 --tier tiny --out single'
try 'opc sweep sweep.yaml cancel --out lone'
try 'opc sweep sweep.yaml work --index 1'
try 'opc sweep sweep.yaml work'

# ------------------------------------------------------------------------------------------------------
heading 'figures'
mkdir files
file files/fig2.yaml <<'END'
title: Return over steps
include: ../smoke.yaml
vary: {train.seed: 1..2}
figure: {panel: env.name}
tiers:
  smoke: {train.epochs: 2}
END
file files/common.yaml <<'END'
train.epochs: 3
END
try 'opc repro list --tier smoke --experiments files'
try 'opc repro --experiments files'
try 'opc repro fig22 --experiments files'
try 'opc repro common --experiments files'
file files/fig3.yaml <<'END'
vary: {train.seed: 1..2}
figure: {pannel: env.name}
END
try 'opc repro fig3 --experiments files'
file files/fig4.yaml <<'END'
vary: {train.seed: 1..2}
probe: {analysis: learning_curves, xyzzy: 1}
END
try 'opc repro fig4 --experiments files'

# ------------------------------------------------------------------------------------------------------
heading 'iterative learning control'
try 'opc ilc'
try 'opc ilc linear.yaml form=constrained'
try "opc ilc constrained.yaml action_low='[9]'"
try "opc ilc constrained.yaml state_low='[1, -inf]'"
file typo.yaml <<'END'
ilc:
  form: linear
  weight_acton: [1]
END
try 'opc ilc typo.yaml'
file section.yaml <<'END'
icl:
  form: linear
END
try 'opc ilc section.yaml'

# ------------------------------------------------------------------------------------------------------
heading 'policies and episodes that come and go'
try 'opc export run'
try 'opc export run -o policy.pt'
try 'opc export run/policy.opc --model -o model.h'
try 'opc export nowhere -o policy.h'
try 'opc data'
try 'opc data export run -o x.parquet'
try 'opc data import log.csv -o log.opc'
try 'opc data import log.txt --env cartpole -o log.opc'
file log.csv <<'END'
time,observation_0,observation_1,observation_2,observation_3,action_0,reward,terminated
0,0,0,0,0,0.5,1,0
0.02,0,0,0,0,1.5,1,0
0.06,0,0,0,0,,,
END
try 'opc data import log.csv --env cartpole -o log.opc'
try 'opc data import log.csv --env pendulum -o log.opc'
try 'sed s/1.5,1,0/0.5,1,0/ log.csv >gap.csv && opc data import gap.csv --env cartpole -o log.opc'
try 'sed /0.06/d log.csv >cut.csv && opc data import cut.csv --env cartpole -o log.opc'
try 'opc train smoke.yaml train.prefill=log.opc --out new'
try 'opc train smoke.yaml train.prefill=run/policy.opc --out new'
try 'opc train smoke.yaml train.prefill=log.csv --out new'
try 'opc train smoke.yaml train.prefill=log.csv train.agent=ppo opc.transition=replay --out new'

# ------------------------------------------------------------------------------------------------------
heading 'the script beside the sources'
ln -s "$SRC/dev" dev
try './dev tset'
try './dev build fast'
try './dev fuzz --seconds soon'

# ------------------------------------------------------------------------------------------------------
[ ! -e new ] || wrong "a refused command leaves a directory" ls new
sed -i "s|$work/here/||g; s|$work|WORK|g; s|$SRC|SRC|g; s|; this is opc .*|; this is opc VERSION (COMMIT)|" "$answers"
! grep -n 'Sanitizer\|runtime error\|core dumped' "$answers" || wrong "crashed" cat "$answers"
if [ "${OPC_ACCEPT:-0}" = 1 ]; then
    cp "$answers" "$golden"
    echo "wrote tests/golden/messages.txt; review its diff"
elif ! diff -u --label tests/golden/messages.txt --label 'what opc says now' "$golden" "$answers"; then
    echo "WRONG: opc says something else than tests/golden/messages.txt. If that is meant,"
    echo "  OPC_ACCEPT=1 ./dev test -R messages"
    echo "accepts it: review the diff of that file."
    exit 1
fi
