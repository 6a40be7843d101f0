#!/bin/sh
# SPDX-License-Identifier: MIT
# opc ilc: two of the examples with what they leave, single settings, and wrong input.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
examples=$SRC/experiments/ilc

# ---- the linear example: the numbers of the reference, and the same as OPC ---------------------------
expect 0 '^trial    RMS error$
^    0     0.875242$
^    1     0.241604$
^    8     0.007904$
OPC.* [0-9.]*e-0[5-9]' \
    "$OPC" ilc "$examples/linear.yaml"
"$OPC" ilc "$examples/linear.yaml" --out one --quiet >printed
[ ! -s printed ]
"$OPC" ilc "$examples/linear.yaml" --out two --quiet
files='ilc.json ilc.csv ilc-trajectories.csv ilc-claims.csv'
without CAIRO || files="$files ilc.svg ilc.pdf ilc.png"
for file in $files; do
    [ -s "one/$file" ]
    cmp "one/$file" "two/$file" # nothing of the machine or the time of day is in them
done
[ "$(wc -l <one/ilc.csv)" = 10 ]
[ "$(wc -l <one/ilc-trajectories.csv)" = $((1 + 9 * (21 * 2 + 20))) ]
[ "$(grep -c '"verdict": "supported"' one/ilc.json)" = 2 ]
grep -q '"command": "opc ilc linear.yaml"' one/ilc.json

# ---- the constrained one, with settings changed ------------------------------------------------------
expect 0 ' [0-9][0-9]* bounds.* [0-9.]*e-1[0-9]$
^-> out/ilc.json' \
    "$OPC" ilc "$examples/constrained.yaml" iterations=12 'ilc.action_high=[5]' --out out
[ "$(wc -l <out/ilc.csv)" = 14 ]
awk -F, '$5 == "push" && ($6 > 5.000001 || $6 < -6.000001) { exit 1 }' out/ilc-trajectories.csv
awk -F, '$5 == "push" && $6 > 4.999999 { found = 1 } END { exit !found }' out/ilc-trajectories.csv

# ---- what can be set ---------------------------------------------------------------------------------
expect 0 '^ *weight_action' "$OPC" config ilc
expect 2 "^opc: ilc: .*'zzzzzzzz'.*'opc config ilc'" "$OPC" ilc "$examples/linear.yaml" zzzzzzzz=1

# ---- wrong input -------------------------------------------------------------------------------------
expect 2 '^opc: ilc: .*opc ilc FILE.yaml' "$OPC" ilc
expect 2 '^opc: ilc: .*opc ilc FILE.yaml' "$OPC" ilc iterations=3
expect 2 '^opc: ilc: .*nowhere.yaml' "$OPC" ilc nowhere.yaml
: >file # said before the trials: no table of them
expect 2 '^opc: ilc: .*file: ' "$OPC" ilc "$examples/linear.yaml" --out file/below
! grep -q RMS "$work/said" || wrong 'the trials were run first' "$OPC" ilc --out file/below
printf 'ilc:\n  form: linear\n  weight_acton: [1]\n' >typo.yaml
expect 2 "typo.yaml: line 3: .*'weight_acton'.*'weight_action'" "$OPC" ilc typo.yaml
printf 'ilc:\n  weight_action: [-1]\n' >negative.yaml
expect 2 "negative.yaml: line 2: weight_action = \[-1\].* 1, '-1', .*\[0," "$OPC" ilc negative.yaml
printf 'icl:\n  form: linear\n' >section.yaml
expect 2 "section.yaml:1: .*'icl'.*'ilc'" "$OPC" ilc section.yaml
printf 'train: {epochs: 1}\n' >other.yaml
expect 2 "other.yaml:1: .*'train'.*'ilc'" "$OPC" ilc other.yaml
printf '{}\n' >empty.yaml
expect 2 "empty.yaml.*'ilc:'" "$OPC" ilc empty.yaml
expect 2 "'fast'.*KEY=VALUE" "$OPC" ilc "$examples/linear.yaml" fast
expect 2 "'iteration'.*'iterations'" "$OPC" ilc "$examples/linear.yaml" iteration=3
expect 2 "form = lineer.*linear, .*'linear'" "$OPC" ilc "$examples/linear.yaml" form=lineer
expect 2 'trial 0: .*face.*t = 0' "$OPC" ilc "$examples/constrained.yaml" faces='[-1, 0, -3]'
expect 2 'trial 0: state 1 .*t = 0 .*\[1, inf\]' \
    "$OPC" ilc "$examples/constrained.yaml" state_low='[1, -inf]'
expect 2 'action_low = 9 .*action_high = 6' "$OPC" ilc "$examples/constrained.yaml" action_low='[9]'
expect 2 'form = constrained.*action_low, .*trust' \
    "$OPC" ilc "$examples/linear.yaml" form=constrained
