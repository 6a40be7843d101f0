#!/bin/sh
# SPDX-License-Identifier: MIT
# opc compare: settings, numbers and curves of two runs, or of two directories of runs.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml

for seed in 1 2; do
    "$OPC" train "$smoke" train.seed=$seed --quiet --threads 1 --out "a/s$seed"
    "$OPC" train "$smoke" train.seed=$seed opc.transition=learned train.epochs=4 --quiet --threads 1 --out "b/s$seed"
done

drawn=compare.svg
without CAIRO && drawn=
expect 0 '^A  a  *2 runs, seeds 1, 2$
^B  b  *2 runs, seeds 1, 2$
^train.epochs  *3  *4$
^opc.transition  *corrected  *learned$
^cartpole  *2  *2  *[0-9.]* ([0-9.]* to [0-9.]*)  *[0-9.]* ([0-9.]* to [0-9.]*)  *[0-9.]* (
probability [01]\.[0-9]* (
warning: cartpole: A .* 300 .*B .* 400.*--at 300' "$OPC" compare a b
[ -z "$drawn" ] || [ -s $drawn ]
# The same numbers again, after the same number of steps, and turned round.
"$OPC" compare a b --at 300 --json -o '' >one.json
"$OPC" compare a b --at 300 --json -o '' >two.json
cmp one.json two.json
p() { # A B: the probability as JSON has it at the end
    "$OPC" compare "$1" "$2" --at 300 --json -o '' | sed 's/.*"improvement": {"value": \([0-9.]*\), .*/\1/'
}
awk -v p="$(p a b)" -v q="$(p b a)" 'BEGIN { exit p + q != 1 }' || wrong "P(A > B) + P(B > A) is not 1" cat one.json
# After the same time by the clock: epochs of A take a minute, those of B half of one.
mkdir timed
cp -r a b timed
for run in timed/a/s1 timed/a/s2 timed/b/s1 timed/b/s2; do
    seconds=60
    [ "${run%/*}" = timed/a ] || seconds=30
    awk -F, -v s=$seconds 'BEGIN { print "epoch,epoch_s" } NR > 1 { print $1 "," s }' $run/metrics.csv >$run/timing.csv
done
expect 0 '^cartpole  *2  *2 
up to minutes 2; ' "$OPC" compare timed/a timed/b --over minutes --at 2 -o ''
! grep -q warning "$work/said" || wrong "both have got to two minutes" cat "$work/said"
expect 0 'warning: cartpole: 2 runs have not reached minutes 2.5 ' "$OPC" compare timed/a timed/b --over minutes --at 2.5 -o ''
# A run with itself.
expect 0 'no setting differs
probability 0\.50 ' "$OPC" compare a/s1 a/s1 -o ''
# Runs that have nothing yet are left out, and counted.
mkdir a/s3
cp a/s1/config.yaml a/s3
expect 0 '^A  a  *2 runs.*; 1 left out' "$OPC" compare a b -o ''
mkdir empty
cp -r a/s3 empty
expect 2 'empty.* 1 ' "$OPC" compare a empty
expect 2 'opc compare A B' "$OPC" compare a
expect 2 'nowhere' "$OPC" compare a nowhere
expect 2 "'eval_retur'.*'eval_return'" "$OPC" compare a b --of eval_retur
# Runs of different tasks have nothing in common, which is said.
mkdir c
cp -r a/s1 c
sed -i "s|  name: cartpole|  name: \"exec:touch $work/started\"|" c/s1/config.yaml
expect 0 '^env.name  *cartpole  *exec:touch
no task in common' "$OPC" compare a c -o ''
[ ! -e started ] || wrong "it starts the task's code" "$OPC" compare a c

# The tables of a merge are a side, too; only what varies in them is compared.
cat >two.yaml <<END
include: $smoke
vary: {opc.transition: [corrected], train.seed: 1..2}
END
expect 0 '' "$OPC" sweep two.yaml run --out swept --jobs 1 --threads 1
expect 0 '' "$OPC" sweep two.yaml merge --out swept
mkdir tables
cp swept/merged.csv swept/runs.csv tables
expect 0 '^A  tables  *2 runs, seeds 1, 2; .*merged.csv
^no setting that both tell differs
probability 0\.50 ' "$OPC" compare tables swept -o ''
expect 0 '^opc.transition  *corrected  *learned$' "$OPC" compare tables b -o ''
