#!/bin/sh
# SPDX-License-Identifier: MIT
# What a training looks like on terminals of 40 to 200 columns: no line is wider, no number is cut, the only
# control codes are those that redraw the last line, and none at all where there is no terminal.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool python3
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml
escape=$(printf '\033')
: >"$work/said" # for `wrong`

screen() { # COLUMNS COMMAND...: what is shown, a line for each state of a line; \r\n is a newline
    columns=$1
    shift
    got=0
    TERM=xterm python3 "$SRC/tests/program/terminal.py" "$columns" "$@" >raw || got=$?
    [ $got = 0 ] || wrong "exit status $got on $columns columns" cat raw
    sed "s/\r\$//; s/$escape\[K//g" raw | tr '\r' '\n'
}

# A bar is whole parts: share, time left (rough: ~, a bound: >), epoch and phase, return, steps, error.
number='-\{0,1\}[0-9][0-9.e+-]*'
time="\(?\|[>~]\{0,1\}[0-9][0-9.]* [a-z]*\( [0-9]* [a-z]*\)*\)"
fit="fit pass [0-9]*\(, held-out error $number\(, about [0-9]* %\)\{0,1\}\)\{0,1\}"
phase="\($fit\|[a-z]* [0-9]* %\)"
value="\(-\|$number\)"
more="\(, return $value\(, [0-9]* steps\(, model error $value\)\{0,1\}\)\{0,1\}\)\{0,1\}"
part="^\[[#.]*\] *[0-9]* %\(, $time left\(, epoch [0-9]*/[0-9]*: $phase$more\)\{0,1\}\)\{0,1\}\$"
for columns in 40 60 80 100 200; do
    screen $columns "$OPC" train "$smoke" train.epochs=25 model.max_epochs=20 --threads 1 --out on$columns >shown
    awk -v max="$columns" 'length($0) > max { print "WIDER: " $0; bad = 1 } END { exit bad }' shown ||
        wrong "lines are wider than $columns" cat shown
    ! grep -q "$escape" shown || wrong "other control codes" cat -v shown
    grep '^\[' shown >bars || wrong "no bar on $columns columns" cat shown
    ! grep -v "$part" bars || wrong "a bar is cut within a part" cat bars
done
# On a wide one all of it is there: the fit tells how far it is, and the first epoch how long the run takes.
screen 200 "$OPC" train "$smoke" train.epochs=2 train.updates_per_step=10 model.max_epochs=3000 model.patience=3000 \
    --threads 1 --out slow >shown
grep '^\[' shown >bars
! grep -v "$part" bars || wrong "a bar is cut within a part" cat bars
grep -q "~[0-9.]* [a-z]* left\|>[0-9.]* [a-z]* left" bars || wrong "no estimate in the first epoch" cat bars
grep -q "fit pass [0-9]*, held-out error [0-9.e-]*, about [0-9]* %" bars || wrong "the fit is silent" cat bars
# The table says which error it has, and leaves out what does not fit.
screen 80 "$OPC" train "$smoke" opc.transition=learned --out narrow >shown
grep -q '^  *real  *eq\. 2$' shown || wrong "which error?" cat shown
screen 100 "$OPC" train "$smoke" --out wide >shown
grep -q '^  *real  *eq\. 5 | seconds:$' shown || wrong "which error?" cat shown

# Without a terminal, or on one that cannot redraw: lines alone. There are no colours to be turned off.
"$OPC" train "$smoke" --out piped >shown 2>&1
! grep -q "$escape\|$(printf '\r')" shown || wrong "control codes in a pipe" cat -v shown
TERM=dumb python3 "$SRC/tests/program/terminal.py" 80 "$OPC" train "$smoke" --out dumb >shown
! grep -q "$escape" shown || wrong "control codes on a dumb terminal" cat -v shown
for command in "config sac" "env list" "doctor" "help train"; do
    # shellcheck disable=SC2086 # words
    NO_COLOR=1 TERM=xterm python3 "$SRC/tests/program/terminal.py" 60 "$OPC" $command >shown
    ! grep -q "$escape" shown || wrong "colours in $command" cat -v shown
done
