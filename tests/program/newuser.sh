#!/bin/sh
# SPDX-License-Identifier: MIT
# As somebody with a simulator of their own goes through it: a class of 37 lines of Python is trained on with one
# command, beats random actions, and its policy leaves as a C header with the same actions.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
debian=/usr/bin/python3
[ -x $debian ] || debian=python3
need_tool $debian
cp "$SRC/examples/tanks.py" "$SRC/examples/tanks.yaml" "$work"
cd "$work"
PYTHONPATH=$SRC/python
PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
[ "$(wc -l <tanks.py)" -le 40 ] || wrong 'more than 40 lines' wc -l tanks.py

# The command of tanks.yaml; smaller networks and fewer epochs, to be quick.
expect 0 '' "$OPC" train tanks.yaml train.epochs=4 sac.policy_hidden=32,32 sac.critic_hidden=32,32 sac.batch_size=64 \
    sac.learning_rate=1e-3 model.hidden=32,32 --quiet --out run

# Where a task does not repeat itself, the error of the model is not known; the screen says what "-" means, once, and
# the log has no "nan".
cat >shaken.py <<'END'
import random
from tanks import Tanks


class Shaken(Tanks):
    def step(self, action):
        state, *rest = super().step(action)
        return [x + random.gauss(0, 0.01) for x in state], *rest
END
expect 0 "^(-: the model.s error is not known" "$OPC" train "$SRC/experiments/examples/smoke.yaml" \
    env.name="exec:$debian -m opc.serve_env shaken:Shaken" --threads 1 --out shaken
[ "$(grep -c '^(-: ' said)" = 1 ] || wrong 'explains it more than once' cat said
! grep -i 'nan' shaken/log.txt || wrong 'the log has nan' cat shaken/log.txt

# The random phase is in the recording: four episodes of at most 150 steps.
expect 0 '' "$OPC" data export run -o run.csv
cat >compare.py <<'END'
import csv

rewards = {}
for row in csv.DictReader(open("run.csv")):
    rewards.setdefault(int(row["episode"]), []).append(float(row["reward"] or 0))
episodes, steps = [], 0
for episode in sorted(rewards):
    if steps < 600:
        episodes.append(sum(rewards[episode]))
        steps += len(rewards[episode]) - 1
random_return = sum(episodes) / len(episodes)
policy_return = float(list(csv.DictReader(open("run/metrics.csv")))[-1]["eval_return"])
print(f"random actions: {random_return:.1f}, the policy: {policy_return:.1f}")
assert policy_return > random_return + 40
END
expect 0 'random actions: -*[0-9.]*, the policy: [0-9.]*' $debian compare.py
sed 's/^/tanks: /' said

# The header, compiled, in states of the recording, against the policy in opc.
expect 0 '' "$OPC" export run -o policy.h
cat >policy.c <<'END'
#include "policy.h"
int test(void)
{
    return policy_self_test();
}
void act(const float *observation, float *action)
{
    policy(observation, action);
}
END
expect 0 '' "$CC" -std=c99 -pedantic -Wall -Wextra -Werror -O2 -fPIC -shared -o policy.so policy.c
if grep -q '^OPC_SANITIZE:STRING=.' "$BUILD/CMakeCache.txt"; then
    exit 0 # Python cannot load a sanitized library
fi
OPC_LIBRARY=$BUILD/libopc.so
export OPC_LIBRARY
cat >same.py <<'END'
import csv
import ctypes
import opc

c, policy = ctypes.CDLL("./policy.so"), opc.Policy.load("run")
assert c.test() == 0
worst = 0
for i, row in enumerate(csv.DictReader(open("run.csv"))):
    if i % 7 == 0:
        observation = [float(row[f"observation_{k}"]) for k in range(3)]
        action = (ctypes.c_float * 1)()
        c.act((ctypes.c_float * 3)(*observation), action)
        worst = max(worst, abs(action[0] - policy(observation)[0]))
assert worst <= 16 * 2 ** -23 * 10, worst
print("the same actions, within", worst, "of 10 volts")
END
expect 0 '^the same actions' $debian same.py
sed 's/^/tanks: /' said
