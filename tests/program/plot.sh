#!/bin/sh
# SPDX-License-Identifier: MIT
# opc plot: groups of runs, the three formats, the same bytes each time, and wrong input.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml
for seed in 1 2; do
    for transition in corrected learned; do
        "$OPC" train "$smoke" train.seed=$seed opc.transition=$transition train.epochs=2 --quiet \
            --out runs/$transition-$seed
    done
done
"$OPC" train "$smoke" env.name=pendulum train.epochs=1 --quiet --out runs/other

if without CAIRO; then
    expect 1 '^opc: plot: .*curves.svg.*libcairo2-dev' "$OPC" plot runs
    exit 0
fi

for format in svg pdf png; do
    expect 0 '^cartpole  *OPC  *2 
^cartpole  *MBPO([*])  *2 
^pendulum  *OPC  *1 ' "$OPC" plot runs -o one.$format
    "$OPC" plot runs -o two.$format >/dev/null
    cmp one.$format two.$format
done
head -c 200 one.svg | grep -q '<svg'
head -c 4 one.pdf | grep -q '%PDF'
head -c 8 one.png | od -An -tx1 | grep -q '89 50 4e 47'

# A run that goes on is drawn as far as it is; a line that is being written is left out.
cp -r runs/corrected-1 half
printf '3,300,' >>half/metrics.csv
expect 2 '^opc: plot: .*smooth = 4' "$OPC" plot half --smooth 4
expect 0 '^cartpole  *OPC  *1 ' "$OPC" plot half --of train_return --over total_steps --smooth 3 \
    --title 'half a run'

# However often it is named, a run is one.
expect 0 '^cartpole  *OPC  *1 ' "$OPC" plot half ./half "$work/half/"
# The logs of a sweep lie beside its runs, and 'sweep/*' names them, too.
touch half.log
expect 0 '^opc: warning: 1 .*files
^cartpole  *OPC  *1 ' "$OPC" plot half half.log
expect 2 '^opc: plot: .*half.log' "$OPC" plot half.log
# One that has got nowhere is told and does not count; if there is no other, that is an error.
cp -r half none
sed -i 1q none/metrics.csv
expect 2 '^opc: plot: .*none.*eval_return.*env_steps' "$OPC" plot none
expect 0 '^opc: warning: .*none.*eval_return
^cartpole  *OPC  *1 ' "$OPC" plot half none
cp -r none none-2
sed -i 's/seed: 1/seed: 2/' none-2/config.yaml
expect 0 '^cartpole  *OPC  *1 ' "$OPC" plot half none none-2
expect 2 '^opc: plot: .*directories' "$OPC" plot
expect 2 '^opc: plot: .*nowhere' "$OPC" plot nowhere
mkdir empty
expect 2 '^opc: plot: .*empty.*config.yaml' "$OPC" plot empty
expect 2 "^opc: plot: .*runs/.*/metrics.csv.*'eval_retrn'.*'eval_return'" "$OPC" plot runs --of eval_retrn
expect 2 '^opc: plot: .*x.gif.*.svg, .pdf.*.png' "$OPC" plot runs -o x.gif
expect 1 '^opc: plot: .*nowhere/x.svg: No such file' "$OPC" plot runs -o nowhere/x.svg
