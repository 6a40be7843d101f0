#!/bin/sh
# SPDX-License-Identifier: MIT
# Tasks that are programs: examples/sliding.c and sliding.py through the commands, objects in Python
# through opc.serve_env, and programs that die while a run learns from them.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cp "$SRC/examples/sliding.py" "$SRC/examples/tanks.py" "$SRC/examples/tanks.yaml" "$work"
cd "$work"
"$CC" -std=c17 -Wall -Wextra -Werror -O2 -o sliding "$SRC/examples/sliding.c" -lm
cat >few.yaml <<END
env.name: exec:./sliding
train: {epochs: 2, steps_per_epoch: 100, random_steps: 100, updates_per_step: 1}
opc: {transition: corrected, horizon: 3, transitions: 300}
model: {members: 2, elites: 2, hidden: [8, 8], weight_decay: 1e-5, max_epochs: 2}
eval.episodes: 3
END

# ---- as any other task ---------------------------------------------------------------------------
expect 0 '^exec:./sliding?mass=2 - a block slides
^  full state   2
^  imagined     .*asked
^  model        sliding, CRC-32C [0-9a-f]*$' "$OPC" env show 'exec:./sliding?mass=2'
expect 0 '^exec:./sliding .*sound
^  reward       .*agrees' "$OPC" env check exec:./sliding --transitions 1000
expect 0 '^exec:./sliding  *[0-9]' "$OPC" env bench exec:./sliding --seconds 0.02
expect 0 'exec:COMMAND' "$OPC" env list
expect 0 '' "$OPC" train few.yaml --out run --threads 1 --quiet
expect 0 '' "$OPC" train few.yaml --out again --threads 2 --quiet
cmp run/metrics.csv again/metrics.csv
grep -q '"termination": "asked"' run/meta.json
grep -q '"model": "sliding"' run/meta.json
expect 0 '^3 .*epoch 2.*return -*[0-9]' "$OPC" evaluate run --episodes 3
expect 0 '' "$OPC" probe run states
cat >sweep.yaml <<END
include: few.yaml
vary: {env.name: ["exec:./sliding?mass=1", "exec:./sliding?mass=2"]}
END
expect 0 ' 2 .*sweep$' "$OPC" sweep sweep.yaml run --out sweep
[ "$(find sweep -name result.json | wc -l)" = 2 ] || wrong "not both ran" find sweep

# Resuming: to the same bytes, in the middle of an episode too, and with a warning about another program.
expect 0 '' "$OPC" train few.yaml train.reset_each_epoch=false train.epochs=3 --out long --quiet
expect 0 '' "$OPC" train few.yaml train.reset_each_epoch=false train.epochs=2 --out first --quiet
sed -i 's/^  epochs: 2$/  epochs: 3/' first/config.yaml
expect 0 '' "$OPC" resume first --quiet
cmp long/metrics.csv first/metrics.csv
sed -i 's/^  epochs: 2$/  epochs: 3/' run/config.yaml
echo >>sliding # the program still runs
expect 0 '^opc: warning: .*exec:./sliding' "$OPC" resume run --quiet

# ---- what is none --------------------------------------------------------------------------------
expect 5 '^opc: env: exec:./nothing: .*./nothing' "$OPC" env show exec:./nothing
expect 2 '^opc: env: exec:: ' "$OPC" env show exec:
expect 5 "'hello world'" "$OPC" env show 'exec:echo hello world'
expect 5 'status 3.*the cable is out' "$OPC" env check "exec:sh -c 'echo the cable is out >&2; exit 3'"
expect 2 "quote.*it's" "$OPC" env check "exec:echo it's"
OPC_ENV_DEADLINE=0.1
export OPC_ENV_DEADLINE
expect 5 '0.1 s' "$OPC" env check 'exec:sleep 100'
unset OPC_ENV_DEADLINE

# ---- programs that die while a run learns from them ------------------------------------------------
# Once in 250 steps of its life, and an episode has 200: the run is the same as with one that lives.
sed 's/static void step(double force)/static int age;\nstatic void step(double force)/
     s/^    v += DT/    if (++age == AGE) FAULT;\n    v += DT/' "$SRC/examples/sliding.c" >mortal.c
"$CC" -std=c17 -O2 -DAGE=250 "-DFAULT=abort()" -o mortal mortal.c -lm
expect 0 '^opc: warning: .*signal 6.*started again' "$OPC" train few.yaml env.name=exec:./mortal --out mortal1 --threads 1 --quiet
expect 0 '' "$OPC" train few.yaml --out immortal --threads 1 --quiet
cmp immortal/metrics.csv mortal1/metrics.csv
grep -q 'signal 6' mortal1/log.txt
# At the 130th step of its life no restart helps, because the episode is longer; the run is resumable.
"$CC" -std=c17 -O2 -DAGE=130 "-DFAULT=abort()" -o mortal mortal.c -lm
expect 5 'exec:./mortal: step [0-9]*: ./mortal was ended by signal 6.*3 restarts' \
    "$OPC" train few.yaml env.name=exec:./mortal --out mortal2 --threads 1 --quiet
mend() { "$CC" -std=c17 -O2 -DAGE=1000000000 "-DFAULT=abort()" -o mortal mortal.c -lm; }
mend
expect 0 '' "$OPC" resume mortal2 --threads 1 --quiet
cmp immortal/metrics.csv mortal2/metrics.csv
# The same of one that falls silent, claims a gigabyte, says NaN, prints or answers with another length.
faulty() { # FAULT MESSAGE
    rm -rf mortal3
    "$CC" -std=c17 -O2 -DAGE=130 "-DFAULT=$1" -o mortal mortal.c -lm
    OPC_ENV_DEADLINE=0.3
    export OPC_ENV_DEADLINE
    expect 5 "exec:./mortal: step [0-9]*: .*$2" \
        "$OPC" train few.yaml env.name=exec:./mortal --out mortal3 --threads 1 --quiet
    unset OPC_ENV_DEADLINE
    mend
    expect 0 '' "$OPC" resume mortal3 --threads 1 --quiet
    cmp immortal/metrics.csv mortal3/metrics.csv
}
faulty 'for (;;) getchar()' './mortal has not answered within 0.3 s.*3 restarts'
faulty 'fwrite("\0\0\0\100\3", 1, 5, stdout), fflush(stdout)' '1073741824 bytes'
faulty 'v = 0.0 / 0.0' 'nan, which is not finite'
faulty 'puts("a word"), fflush(stdout)' "'a word'"
faulty 'fwrite("\10\0\0\0\3\0\0\0\0\0\0\0\0", 1, 13, stdout), fflush(stdout)' '8 bytes where 40'

# No child is left behind, not even by a run that was killed: the end of their input ends them.
cat >noted.yaml <<'END'
include: few.yaml
env.name: exec:sh -c 'echo $$ >>pids; exec ./sliding'
END
"$OPC" train noted.yaml train.epochs=1000 --out killed --quiet &
pid=$!
await $pid killed/checkpoints/a.opc
kill -9 $pid
wait $pid || :
[ "$(wc -l <pids)" -ge 4 ] || wrong "evaluation has children of its own" cat pids
while read -r child; do
    while kill -0 "$child" 2>/dev/null; do
        sleep 0.05
    done
done <pids

# ---- Python --------------------------------------------------------------------------------------
need_tool python3
PYTHONPATH=$SRC/python
export PYTHONPATH
# The same task in another language, to the bit.
i=0
while [ $i -lt 60 ]; do
    echo "$((i % 7 - 3)).25"
    i=$((i + 1))
done >actions
printf '0.5,-0.25\n' >state
expect 0 '' "$OPC" env trace 'exec:./sliding?mass=2' --state state --actions actions --out c.csv
expect 0 '' "$OPC" env trace 'exec:python3 sliding.py?mass=2' --state state --actions actions --out python.csv
cmp c.csv python.csv
[ "$(wc -l <c.csv)" = 62 ]
expect 0 'sound' "$OPC" env check 'exec:python3 sliding.py' --transitions 300

# An object with Gymnasium's functions and no Gymnasium.
tanks='exec:python3 -m opc.serve_env tanks:Tanks'
expect 0 '^  model        Tanks' "$OPC" env show "$tanks?wanted=0.2"
expect 0 'sound' "$OPC" env check "$tanks" --transitions 400
expect 5 "No module named 'opc').*PYTHONPATH.*docs/env-process.md" env PYTHONPATH= "$OPC" env show "$tanks"
expect 0 '' "$OPC" train few.yaml "env.name=$tanks" --out tanks --quiet
grep -q '"engine": "Python' tanks/meta.json
expect 5 "TypeError.*'depth'" "$OPC" env show "$tanks?depth=1"
expect 5 "key=value" "$OPC" env show "$tanks?depth"
expect 5 'ModuleNotFoundError.*nowhere' "$OPC" env show 'exec:python3 -m opc.serve_env nowhere:X'
expect 5 'MODULE:CLASS' "$OPC" env show 'exec:python3 -m opc.serve_env tanks'
expect 5 'tanks has no Tank' "$OPC" env show 'exec:python3 -m opc.serve_env tanks:Tank'
cat >bad.py <<'END'
import sys, time


class Line:
    """a line"""
    observations, low, high, steps = 1, [-1], [1], 20

    def __init__(self, fault=""):
        self.fault = fault
        print("hello to everybody")  # not a frame, and harmless

    def reset(self, seed):
        if self.fault == "reset":
            raise OSError("the door is open")
        self.x, self.t = 0.0, 0
        return [self.x], {}

    def step(self, action):
        self.x, self.t = self.x + 0.1 * action[0], self.t + 1
        if self.t == 5 and self.fault == "raise":
            raise ZeroDivisionError("the gear is worn")
        if self.t == 5 and self.fault == "exit":
            sys.exit(4)
        if self.t == 5 and self.fault == "long":
            return [self.x, 1.0], 0.0, False, False, {}
        if self.t == 5 and self.fault == "nan":
            return [float("nan")], 0.0, False, False, {}
        if self.t == 5 and self.fault == "three":
            return [self.x], 0.0, False
        if self.t == 5 and self.fault == "word":
            return [self.x], "much", False, False, {}
        if self.fault == "old":
            return [self.x], -self.x ** 2, False, {}
        return [self.x], -self.x ** 2, abs(self.x) > 0.2 and self.fault == "ends", False, {}


class Judge(Line):
    def terminal_batch(self, s, a, following):
        if self.fault == "batch":
            return [False]
        raise KeyError("no such state")


class Nothing:
    def reset(self, seed):
        return [0.0]


class Bare(Nothing):
    low, high = [-1], [1]


class Uneven(Line):
    low, high = [-1], [1, 2]


class Endless(Line):
    low = [float("-inf")]
END
bad='exec:python3 -m opc.serve_env bad:Line'
expect 0 'sound' "$OPC" env check "$bad" --transitions 50
expect 0 'sound' "$OPC" env check "$bad?fault=old" --transitions 50
expect 0 'sound
^  termination  .*imagined states never end' "$OPC" env check "$bad?fault=ends" --transitions 50
expect 5 'step 5: .*ZeroDivisionError: the gear is worn' "$OPC" env check "$bad?fault=raise"
expect 5 'step 5: .*status 4' "$OPC" env check "$bad?fault=exit"
expect 5 'step 5: .*2 numbers where 1' "$OPC" env check "$bad?fault=long"
expect 5 'step 5: .*entry 0 of the observation is nan' "$OPC" env check "$bad?fault=nan"
expect 5 'reset: .*OSError: the door is open' "$OPC" env check "$bad?fault=reset"
expect 5 'step 5: .*3 values instead of 5' "$OPC" env check "$bad?fault=three"
expect 5 'step 5: .*ValueError.*much' "$OPC" env check "$bad?fault=word"
judge='exec:python3 -m opc.serve_env bad:Judge'
expect 5 "terminal: .*KeyError: 'no such state'" "$OPC" env check "$judge"
expect 5 'terminal: .*8 bytes where' "$OPC" env check "$judge?fault=batch"
expect 5 "terminal: .*KeyError: 'no such state'" "$OPC" train few.yaml "env.name=$judge" --out judge --quiet
for class in Nothing Bare; do
    expect 5 "TypeError: $class has no .*step.*observation_space (or observations)" "$OPC" env show "exec:python3 -m opc.serve_env bad:$class"
done
expect 5 'low has 1 .*high has 2' "$OPC" env show 'exec:python3 -m opc.serve_env bad:Uneven'
expect 5 '\[-inf, 1\]' "$OPC" env show 'exec:python3 -m opc.serve_env bad:Endless'
expect 5 'status 2.*--fast' "$OPC" env show 'exec:python3 -m opc.serve_env --fast bad:Line'
mkdir hidden
echo 'raise ImportError("hidden")' >hidden/gymnasium.py
expect 5 'ImportError' env PYTHONPATH="$work/hidden:$PYTHONPATH" \
    "$OPC" env show 'exec:python3 -m opc.serve_env gymnasium:Pendulum-v1'
expect 0 '^opc: warning: .*no terminal' "$OPC" train few.yaml "env.name=$bad?fault=ends" --out ends --quiet
grep -q '"termination": "never"' ends/meta.json
# Where it ends can be learned; resumed to the same bytes, and for any number of threads.
expect 0 '' "$OPC" train few.yaml "env.name=$bad?fault=ends" model.termination=learned \
    train.epochs=3 --out learned --threads 1 --quiet
expect 0 '' "$OPC" train few.yaml "env.name=$bad?fault=ends" model.termination=learned \
    --out short --threads 2 --quiet
grep -q '"termination": "learned"' learned/meta.json
grep -q 'termination: [0-9]* of [0-9]* recorded steps end the task; [0-9]* of them' learned/log.txt
sed -i 's/^  epochs: 2$/  epochs: 3/' short/config.yaml
expect 0 '' "$OPC" resume short --quiet
cmp learned/metrics.csv short/metrics.csv
head -2 learned/metrics.csv >two.csv
head -2 ends/metrics.csv | if cmp -s - two.csv; then
    wrong "rollouts go on as if nothing had been learned" cat learned/metrics.csv
fi
expect 2 'model.termination = learned .*train.agent = pets' "$OPC" train few.yaml "env.name=$bad" \
    train.agent=pets model.termination=learned --out x
grep -q 'hello to everybody' ends/log.txt
