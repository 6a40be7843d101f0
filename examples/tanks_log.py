# SPDX-License-Identifier: MIT
"""Writes log.csv: eight episodes of the two tanks under a controller that is not good, as an installation may have
logged them. docs/own-system.md trains with it.

    python3 tanks_log.py
"""
import csv

from tanks import Tanks

COLUMNS = ["episode", "time", "observation_0", "observation_1", "observation_2", "action_0", "reward", "terminated"]

plant, rows, returns = Tanks(), [], []
for episode in range(8):
    state, _ = plant.reset(seed=episode)
    integral, terminated, step, total = 0.0, False, 0, 0.0
    while step < plant.steps and not terminated:
        error = state[2] - state[1]
        integral += plant.dt * error
        volts = min(max(3.0 + 15.0 * error + 0.1 * integral, plant.low[0]), plant.high[0])
        following, reward, terminated, _, _ = plant.step([volts])
        # A line for each state, with the action that was applied in it and what that step brought,
        rows.append([episode, step * plant.dt, *state, volts, reward, int(terminated)])
        state, step, total = following, step + 1, total + reward
    rows.append([episode, step * plant.dt, *state, "", "", ""])  # and one more for the last state.
    returns.append(total)
with open("log.csv", "w", newline="") as file:
    csv.writer(file).writerows([COLUMNS, *rows])
print(f"{len(returns)} episodes, mean return {sum(returns) / len(returns):.1f} -> log.csv")
