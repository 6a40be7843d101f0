#!/bin/sh
# SPDX-License-Identifier: MIT
# The real Gymnasium through opc.serve_env: its Pendulum-v1 moves as our pendulum does. Gymnasium comes
# from PyPI into build/venv (./dev venv); where that cannot be reached, the test is skipped.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
venv || exit 77
PYTHONPATH=$SRC/python
export PYTHONPATH
served="exec:$python -m opc.serve_env --state state gymnasium:Pendulum-v1"

# 200 steps from a set state, with actions that a float holds exactly: Gymnasium's actions are floats, and
# so are the observations it returns.
i=0
while [ $i -lt 200 ]; do
    echo "$((i * 7 % 15 - 7))" | awk '{ print $1 / 4 }'
    i=$((i + 1))
done >actions
printf '2.5,-0.75\n' >state
expect 0 '' "$OPC" env trace pendulum --state state --actions actions --out ours.csv
expect 0 '' "$OPC" env trace "$served" --state state --actions actions --out theirs.csv
[ "$(wc -l <theirs.csv)" = 202 ] || wrong "not 200 steps" cat theirs.csv
paste -d, ours.csv theirs.csv | awk -F, '
    NR > 1 {
        for (k = 2; k <= 6; k++) {
            gap = $k - $(k + 6); gap = gap < 0 ? -gap : gap
            if (gap > max) max = gap
        }
    }
    END { print "largest difference over 200 steps:", max; exit !(NR == 202 && max <= 1e-6) }' ||
    wrong "they differ" head -n 3 ours.csv theirs.csv

# Everything else that opc asks of a task; the time limit is the one that Gymnasium has registered.
expect 0 '^  time limit   after 200 steps
^  engine       Python [0-9.]*, gymnasium 1.0.0$' "$OPC" env show "$served"
expect 0 'sound' "$OPC" env check "$served" --transitions 400
# Actions that are no numbers in a range.
expect 5 'TypeError: action_space = Discrete' "$OPC" env show "exec:$python -m opc.serve_env gymnasium:CartPole-v1"
