#!/bin/sh
# SPDX-License-Identifier: MIT
# ./dev demo from outside: wrong input, its settings, its verdict and exit status when OPC ends
# above MBPO(*) and when it does not, a training that fails, and a demo that is told to stop.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
export OPC

# A copy of the tree with the program already built: cmake and the list of packages are stand-ins.
mkdir -p "$work/bin" "$work/copy/build"
cp "$SRC/dev" "$SRC/CMakePresets.json" "$work/copy"
cp -r "$SRC/experiments" "$work/copy"
cd "$work/copy"
stand_in() { # FILE LINES
    rm -f "$1"
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}
stand_in ../bin/cmake 'exit 0'
# shellcheck disable=SC2016 # for the stand-in to expand
stand_in ../bin/dpkg-query 'for p; do echo "installed $p"; done'
PATH=$work/bin:$PATH
example=experiments/examples/demo.yaml

# ---- wrong input ---------------------------------------------------------------------------------
expect 2 "demo: unknown argument 'now'; './dev demo --help' explains" ./dev demo now
expect 2 "demo: unknown argument 'now'" ./dev demo --seed 3 now
for seed in '' -1 x 1.5 01 1000000000; do
    expect 2 "demo: --seed = '$seed' is not a whole number from 0 to 999999999" \
        ./dev demo --seed $seed
done

# ---- settings ------------------------------------------------------------------------------------
# OPC and MBPO(*) differ in one setting, and the task needs no engine.
"$OPC" config $example >opc.yaml
"$OPC" config $example opc.transition=learned >mbpo.yaml
expect 1 '^<   transition: corrected
^>   transition: learned' diff opc.yaml mbpo.yaml
[ "$(grep -c '^[<>]' "$work/said")" = 2 ] || wrong "they differ in more" diff opc.yaml mbpo.yaml
expect 0 '^  engine  *none' "$OPC" env show "$(sed -n 's/^env.name: //p' $example)"

# ---- the verdict ---------------------------------------------------------------------------------
# Makes a program that trains by writing down one of four returns, each for all epochs of a run:
# OPC's and MBPO(*)'s with seed 7, then with seed 8. It cannot draw; the rest the real one does.
# shellcheck disable=SC2016 # for the stand-in to expand
returns() { # s7_corrected s7_learned s8_corrected s8_learned
    stand_in build/opc "returns='$*'"'
case $1 in
sweep)
    for run in s7_corrected s7_learned s8_corrected s8_learned; do
        mkdir -p build/demo/runs/$run
        {
            echo "epoch,env_steps,total_steps,eval_return"
            for epoch in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
                echo "$epoch,${epoch}00,0,${returns%% *}"
            done
        } >build/demo/runs/$run/metrics.csv
        returns=${returns#* }
    done
    ;;
plot) echo "opc: cannot draw: this build lacks cairo" && exit 1 ;;
*) exec "$OPC" "$@" ;;
esac'
}
returns 900 100 1000 300.5
expect 0 '^  opc.transitions  *50000 instead of 100000$
^  model.members  *3 instead of 7$
^ *7 *100 *900.0 *100.0 *[0-9]*:[0-9][0-9]$
^ *8 *2000 *1000.0 *300.5 *[0-9]*:[0-9][0-9]$
^  method *seeds *seed 7 *seed 8 *mean$
^  OPC *2 *900.0 *1000.0 *950.0$
^  MBPO(\*) *2 *100.0 *300.5 *200.2$
^OPC ended above MBPO(\*): 950.0 against 200.2 on average, higher with 2 of 2 seeds\.$
^Picture   none: opc: cannot draw: this build lacks cairo$' ./dev demo --seed 7
! grep -q 'env.name\|bounds .*instead' "$work/said" || wrong "names what is the same" ./dev demo
returns 100 500 300 200
expect 1 '^OPC did not end above MBPO(\*): 200.0 against 350.0 on average, higher with 1 of 2 seeds
^Picture' ./dev demo --seed 7
returns 10 10 10 10
expect 1 '^OPC did not end above MBPO(\*): 10.0 against 10.0 on average, higher with 0 of 2' \
    ./dev demo --seed 7

# A training that fails is told with what it said.
# shellcheck disable=SC2016 # for the stand-in to expand
stand_in build/opc '[ "$1" = sweep ] || exec "$OPC" "$@"; echo "opc: no space left"; exit 1'
expect 1 "^opc: no space left
the demo's training failed, see above" ./dev demo

# ---- the real program ----------------------------------------------------------------------------
rm build/opc
ln -s "$OPC" build/opc

# Told to stop, it leaves no run behind that goes on.
./dev demo >stopped.txt 2>&1 &
demo=$!
await $demo build/demo/runs/s1_corrected/log.txt
kill $demo
status=0
wait $demo || status=$?
[ $status = 143 ] || { cat stopped.txt && echo "exit status $status" && exit 1; }
expect 0 '^4 runs in ' build/opc sweep build/demo/runs.yaml status --out build/demo/runs
! grep -q running "$work/said" || wrong "runs go on" ./dev demo

# All of it, with little to learn.
cat >$example <<'END'
include: smoke.yaml
train.epochs: 5
END
status=0
./dev demo >said.txt 2>&1 || status=$?
if [ $status = 0 ]; then
    expect 0 '^OPC ended above MBPO' cat said.txt
else
    expect 0 '^OPC did not end above MBPO' cat said.txt
fi
expect 0 '^ *2 *500 .* 0:00$
^Picture ' cat said.txt
without CAIRO || [ -s build/demo/curves.png ] || wrong "draws no curves" ./dev demo
