#!/bin/sh
# SPDX-License-Identifier: MIT
# opc search: random trials and successive halving; killed and started again, it ends with the same table and the same
# bytes in every trial.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
cat >search.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
search:
  settings:
    sac.learning_rate: {low: 1e-5, high: 1e-2, scale: log}
    opc.horizon: [[2], [5], [8]]
    sac.batch_size: {low: 16, high: 32}
  trials: 6
  rungs: [1, 2, 4]
  keep: 0.5
  seed: 3
END
expect 0 '^rung 1 of 3: 6 trials to epoch 1$
^rung 2 of 3: 3 trials to epoch 2$
^rung 3 of 3: 1 trial to epoch 4$
^all trials -> whole/trials.csv$
^best: whole/t000[0-5], eval_return [0-9.]* after epoch 4$
^opc train .*search.yaml .sac.learning_rate=[0-9.e-]*. .opc.horizon=\[[258]\]. .sac.batch_size=[0-9]*. --out whole-best$' \
    "$OPC" search search.yaml --out whole --threads 1
# Its last line is a command, which trains to the end of the file, with what came after the file.
eval "\"\$OPC\" $(sed -n '$s/^opc //p' "$work/said") --quiet"
[ "$(sed -n '$s/,.*//p' whole-best/metrics.csv)" = 3 ] || wrong "not all epochs" cat whole-best/metrics.csv
expect 0 "^opc train search.yaml 'eval.episodes=1' 'sac.learning_rate=.* --out other-best$" \
    "$OPC" search search.yaml eval.episodes=1 --out other/ --threads 1
head -n 1 whole/trials.csv | grep -qx 'trial,sac.learning_rate,opc.horizon,sac.batch_size,score after 1,score after 2,score after 4'
[ "$(wc -l <whole/trials.csv)" = 7 ]
# Six trials have one epoch, three of them a second one, one has four.
epochs() { # DIR: epochs of all trials, on a line
    for trial in "$1"/t*/; do echo $(($(wc -l <"$trial/metrics.csv") - 1)); done | sort -n | tr '\n' ' '
}
[ "$(epochs whole)" = '1 1 1 2 2 4 ' ] || wrong "the rungs are otherwise: $(epochs whole)" cat whole/trials.csv
# Those that went on were the best, by the table itself.
awk -F, 'NR > 1 { s = $(NF - 2); if ($(NF - 1) == "") { if (lost == "" || s > lost) lost = s } else if (won == "" || s < won) won = s }
    END { exit !(won + 0 >= lost + 0) }' whole/trials.csv || wrong "a worse trial went on" cat whole/trials.csv
# Values are in their ranges, and no two trials have the same.
awk -F, 'NR > 1 && !($2 >= 1e-5 && $2 <= 1e-2) { exit 1 }' whole/trials.csv || wrong "a value is outside" cat whole/trials.csv
[ "$(cut -d, -f2 whole/trials.csv | sort -u | wc -l)" = 7 ]

# Killed in the middle and started again: the same decisions, the same bytes.
"$OPC" search search.yaml --out cut --threads 1 --jobs 1 >/dev/null 2>&1 &
cut=$!
until [ -d cut/t0002 ]; do
    kill -0 $cut 2>/dev/null || break
    sleep 0.02
done
kill -9 $cut 2>/dev/null || true
wait $cut || true
expect 0 '^best: ' "$OPC" search search.yaml --out cut --threads 1
cmp whole/trials.csv cut/trials.csv
for trial in whole/t*/; do
    cmp "${trial}metrics.csv" "cut/${trial#whole/}metrics.csv"
done
# Once more, there is nothing to do; a trial is an ordinary run.
expect 0 '^best: ' "$OPC" search search.yaml --out cut
! grep -q '^rung' "$work/said" || wrong "it trains again" cat "$work/said"
expect 0 '^6 of 6 runs, 6 done$' "$OPC" runs cut
# The example that is shipped, with less to compute.
expect 0 '^rung 3 of 3: 1 trial ' "$OPC" search "$SRC/experiments/examples/search.yaml" train.updates_per_step=1 \
    train.steps_per_epoch=100 train.random_steps=100 model.max_epochs=1 --out shipped

# ---- what will not do ----------------------------------------------------------------------------------
refused() { # PATTERN LINE-OF-SEARCH...
    pattern=$1
    shift
    printf 'include: %s/experiments/examples/smoke.yaml\nsearch:\n' "$SRC" >bad.yaml
    printf '  %s\n' "$@" >>bad.yaml
    expect 2 "$pattern" "$OPC" search bad.yaml --out bad
    [ ! -e bad ] || wrong "something was started" ls bad
}
refused 'search.settings' 'trials: 3'
refused "line 3.*'learning_rat'.*'learning_rate'" 'settings: {sac.learning_rat: [1]}'
refused "line 3.*'high'" 'settings: {sac.learning_rate: {low: 1}}'
refused 'line 3.*low.*high' 'settings: {sac.learning_rate: {low: 1e-3, high: 1e-4}}'
refused 'line 3.*log or linear' 'settings: {sac.learning_rate: {low: 1e-4, high: 1e-3, scale: cubic}}'
refused 'line 3.*only numbers' 'settings: {opc.transition: {low: 1, high: 2}}'
refused 'train.epochs' 'settings: {train.epochs: [1, 2]}'
refused 't0.*rungs: .*one rung' 'settings: {sac.lr_decay: [0.5, 0.9]}' 'rungs: [1, 2]'
refused 'rungs: 2 .* 3' 'settings: {sac.learning_rate: [1e-3]}' 'rungs: [3, 2]'
refused "line 4.*'trails'.*'trials'" 'settings: {sac.learning_rate: [1e-3]}' 'trails: 3'
expect 2 'has no search' "$OPC" search "$SRC/experiments/examples/smoke.yaml"
expect 2 'opc search FILE' "$OPC" search
