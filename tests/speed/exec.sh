#!/bin/sh
# SPDX-License-Identifier: MIT
# What a task costs as a program instead of as a plugin, in turns: sh tests/speed/exec.sh [TURNS]. Needs a build
# (./dev build) and prints the median ratio of wall-clock times of training, and steps per second of a trivial child.
# docs/performance.md has the numbers; it is no test, because a busy machine decides.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
turns=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cc -std=gnu17 -O2 -DCHILD -o slow "$src/tests/speed/slow.c"
cc -std=gnu17 -O2 -fPIC -shared -I"$src/include" -I"$src/build/include" -o slow.so "$src/tests/speed/slow.c"
cc -std=gnu17 -O2 -o sliding "$src/examples/sliding.c" -lm
cat >slow.yaml <<END
train: {epochs: 2, steps_per_epoch: 400, random_steps: 200, updates_per_step: 2}
opc: {transition: corrected, horizon: 3, transitions: 1000}
model: {members: 2, elites: 2, hidden: [16, 16], weight_decay: 1e-5, max_epochs: 5}
sac: {policy_hidden: [16], critic_hidden: [16], batch_size: 32}
eval.episodes: 1
END
now() { date +%s.%N; }
for i in $(seq "$turns"); do
    for name in ./slow.so exec:./slow; do
        begin=$(now)
        "$src/build/opc" train slow.yaml "env.name=$name" --threads 1 --out "run$i-${name##*/}" --quiet 2>/dev/null
        echo "$(now) $begin" | awk '{ printf "%.3f ", $1 - $2 }'
    done
    echo
done | awk '{ ratio[NR] = $2 / $1; print; } END {
    for (i = 1; i <= NR; i++) for (k = i + 1; k <= NR; k++)
        if (ratio[k] < ratio[i]) { t = ratio[i]; ratio[i] = ratio[k]; ratio[k] = t }
    printf "seconds as a plugin and as a program, in turns; median ratio %.3f (%.3f to %.3f)\n",
        ratio[int((NR + 1) / 2)], ratio[1], ratio[NR] }'
cmp run1-slow.so/metrics.csv run1-slow/metrics.csv && echo "both runs have the same bytes"
"$src/build/opc" env bench exec:./sliding --seconds 2
