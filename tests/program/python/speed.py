# SPDX-License-Identifier: MIT
"""Steps per second of opc.Env in turns with the C loop, which calls nothing but opc_env_step: the task is the
first argument, seconds the second. Prints both, and what Python adds to a step."""
import sys
import time

import opc
from opc._library import lib

name, seconds = sys.argv[1], float(sys.argv[2])
env = opc.Env(name)
BLOCK = 100


def block_of_c(action):
    """The function of C alone, with arguments that are ready."""
    env._action_view[:] = action
    step, arguments = lib.opc_env_step, env._arguments
    for _ in range(BLOCK):
        step(*arguments)


def block_of_python(action):
    for _ in range(BLOCK):
        env.step(action)


took = {block_of_c: [], block_of_python: []}
end = time.perf_counter() + seconds
episode = 0
while time.perf_counter() < end:
    for block, times in took.items():
        env.reset(seed=episode)
        action = env.action_space.sample()
        begin = time.thread_time()
        block(action)
        times.append((time.thread_time() - begin) / BLOCK)
    episode += 1
c, python = (sorted(times)[len(times) // 2] for times in took.values())
print(f"{name}: {c * 1e6:.2f} us in C, {python * 1e6:.2f} us with opc.Env: {c / python:.2f} of the speed of C")
