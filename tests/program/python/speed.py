# SPDX-License-Identifier: MIT
"""A step of opc.Env, in turns with opc_env_step alone, called through ctypes with the same actions: the task is the
first argument, seconds the second. Prints the median processor time of both."""
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
    action = env.action_space.sample()
    for block, times in took.items():
        env.reset(seed=episode)
        begin = time.thread_time()
        block(action)
        times.append((time.thread_time() - begin) / BLOCK)
    episode += 1
c, python = (sorted(times)[len(times) // 2] for times in took.values())
print(f"{name}: {c * 1e6:.2f} us in C, {python * 1e6:.2f} us with opc.Env: {c / python:.2f} of the speed of C")
