#!/bin/sh
# SPDX-License-Identifier: MIT
# opc probe: the looks at a run, the same bytes with any number of threads, half-finished runs,
# runs without snapshots, and wrong input.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml
"$OPC" train "$smoke" train.epochs=2 record.snapshots=1 --quiet --out run
"$OPC" train "$smoke" train.epochs=1 --quiet --out plain

expect 0 '^    supported: .*h = 0: 0$
(Lemma 1)
^    supported: .* 10 .* 6 .*: 0$
^note: 10 .* 6 .* 1 run.*epoch 2, .*epoch 1' \
    "$OPC" probe run states --samples 10 --horizon 6 --policy 1
expect 0 '^    [a-z ]*: .* 10 .* 20 .*: [0-9]* .*MBPO(\*), [0-9]* .*OPC' \
    "$OPC" probe run trajectories --samples 10 --entry o2
expect 0 '^    supported: .* 4 of 4 ' "$OPC" probe run bound --samples 5
expect 0 'at beta = 1:' "$OPC" probe run offpolicy --samples 5 --beta 0,1,2.5
expect 0 '^    supported: .* beta = 0: 0 by eq. 5' \
    "$OPC" probe run uncertainty --samples 5 --horizon 4 --beta 0,1,2.5
test "$(head -1 run/probe/uncertainty.csv)" = \
    beta,model,h,rollouts,spread,spread_low,spread_high,error
# 3 beta, 2 models, h = 0 .. 4
test "$(wc -l <run/probe/uncertainty.csv)" = 31
expect 0 '^note: One fit alone compares no rules' \
    "$OPC" probe run fit --rule '' --rule 'max_epochs=1 patience=0' --samples 5 --steps 3
grep -q "\"command\": \"opc probe RUN fit --samples '5' --rule '' --rule 'max_epochs=1 patience=0' --steps '3'\"" \
    run/probe/fit.json || wrong "the command" cat run/probe/fit.json
test "$(head -1 run/probe/fit.csv)" = \
    rule,fits,steps,seconds,learned_1,learned_H,corrected_1,corrected_H
expect 2 '^opc: probe: --rule .*states' "$OPC" probe run states --rule 'patience=1'
test -s run/probe/bound.json
grep -q "\"command\": \"opc probe RUN offpolicy --samples '5' --beta '\[0, 1, 2.5\]'\"" \
    run/probe/offpolicy.json || wrong "the command" cat run/probe/offpolicy.json
test "$(head -1 run/probe/states.csv)" = \
    true,model,entry,h,rollouts,median,low,high,median_abs,p95_abs
# 4 entries, 2 truths, 2 models, h = 0 .. 6
test "$(wc -l <run/probe/states.csv)" = 113

# What is asked for is had, or it is said.
"$OPC" train "$smoke" train.epochs=3 --quiet --out bare
expect 0 '^    undecided: 1 rule .*by eq. 2.*by eq. 5.*five fits or more' \
    "$OPC" probe bare fit --rule '' --rule 'max_epochs=1 patience=0' --samples 5 --steps 3
expect 2 '^opc: probe: .*bare.*epoch 3.*record.snapshots=1' \
    "$OPC" probe bare states --samples 5 --epoch 1
expect 2 '^opc: probe: .*bare.*epoch 3.*record.snapshots=1' "$OPC" probe bare states --samples 5 --policy 2
expect 0 '^note: .*epoch 3, .*epoch 3' "$OPC" probe bare states --samples 5 --epoch 3
# Whatever is random has its own stream: the number of threads changes nothing, the seed does.
for kind in states trajectories bound offpolicy uncertainty; do
    "$OPC" probe run $kind --samples 5 --threads 1 --quiet --out one >/dev/null
    "$OPC" probe run $kind --samples 5 --threads 3 --quiet --out three >/dev/null
    "$OPC" probe run $kind --samples 5 --threads 1 --quiet --out other --seed 2 >/dev/null
    for file in one/"$kind"*; do
        cmp "$file" "three/${file#one/}"
    done
    if cmp -s one/$kind.csv other/$kind.csv; then
        echo "another seed gives the same $kind"
        exit 1
    fi
done
# Nothing of the run itself was touched.
test "$(find run -newer run/result.json -type f | grep -cv '^run/probe/')" = 0

# Without snapshots the newest checkpoint is taken, where one is enough.
expect 0 '^note: .*epoch 1, .*epoch 1' "$OPC" probe plain states --samples 5
expect 2 '^opc: probe: .*plain.*bound.*record.snapshots=1' "$OPC" probe plain bound --out refused
test ! -e refused

# Half a run is looked at as far as it is, and the picture says so.
cp -r run half
rm half/result.json half/policy.opc
expect 0 '^    supported: .* 4 of 4 ' "$OPC" probe half bound --samples 3
grep -q 'NOT COMPLETE' half/probe/bound.json

expect 2 '^opc: probe: .*RUN states|trajectories|bound|offpolicy' "$OPC" probe run
expect 2 "^opc: probe: .*'stats'.*states, trajectories, bound.*offpolicy" "$OPC" probe run stats
expect 2 '^opc: probe: .*--horizon.*bound' "$OPC" probe run bound --horizon 3
expect 2 "^opc: probe: .*cartpole.*'o9'.*o0 .*o3" "$OPC" probe run trajectories --entry o9
expect 2 '^opc: probe: there is no directory nowhere' "$OPC" probe nowhere states
test ! -e nowhere
"$OPC" train "$smoke" opc.transition=replay train.epochs=1 --quiet --out sac
expect 2 '^opc: probe: .*sac.*opc.transition = replay' "$OPC" probe sac offpolicy

# Lemma 1 is about policies that repeat their actions, which a planner does not.
"$OPC" train "$smoke" train.agent=pets opc.transition=learned train.epochs=1 train.steps_per_epoch=20 \
    pets.horizon=4 pets.population=6 pets.elites=2 pets.particles=2 --quiet --out planner
expect 0 '(Lemma 1)
^    undecided: .*planner' "$OPC" probe planner states --samples 5 --horizon 4
