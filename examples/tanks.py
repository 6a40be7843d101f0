# SPDX-License-Identifier: MIT
"""Two tanks: a pump fills the upper one, which drains into the lower one, whose level is to be held.

    export PYTHONPATH=../python          # from a clone; docs/env-process.md says what it is elsewhere
    opc env check 'exec:python3 -m opc.serve_env tanks:Tanks'
    opc train tanks.yaml --out run
"""
import math
import random


class Tanks:
    """hold the level of the lower of two tanks"""

    observations = 3  # levels of both tanks, and the wanted one
    low, high = [0.0], [10.0]  # volts of the pump
    steps, dt = 150, 2.0

    def __init__(self, wanted=0.0):
        self.wanted = wanted  # metres; 0: drawn anew for each episode

    def reset(self, seed):
        draw = random.Random(seed)
        self.h = [draw.uniform(0.05, 0.3), draw.uniform(0.05, 0.3)]
        self.goal = self.wanted or draw.uniform(0.1, 0.25)
        return self.h + [self.goal], {}

    def step(self, action):
        out1, out2 = (0.0015 * math.sqrt(19.62 * h) for h in self.h)  # Torricelli
        self.h[0] = max(0.0, self.h[0] + self.dt * (0.0008 * action[0] - out1))
        self.h[1] = max(0.0, self.h[1] + self.dt * (out1 - out2))
        reward = 1.0 - 10.0 * abs(self.h[1] - self.goal)
        return self.h + [self.goal], reward, self.terminal(None, None, self.h), False, {}

    def terminal(self, s, a, following):
        """A tank flows over."""
        return max(following[0], following[1]) > 0.6
