#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/mujoco from a directory of recorded traces of the original tasks.

usage: tools/golden_mujoco.py RECORDED

RECORDED/<task>/ holds model.csv and trace_<start>.csv (t, a0.., reward, terminated, o0..). What is
kept: the compiled model as it is; the actions, which the starts nominal and perturbed share; the
perturbed initial state; and per start the reward and termination of every row, with the observation
on every fifth. tests/test_env_mujoco.c reads them.
"""
import csv
import math
import pathlib
import shutil
import sys

KEPT = {0, 1, 2, 3} | set(range(5, 201, 5))

# Amplitudes of the perturbed start: qpos0[k] + cq sin(1 + 2 k), cv cos(1 + 3 k).
START = {
    "inverted_pendulum": (0.01, 0.01),
    "inverted_double_pendulum": (0.1, 0.1),
    "hopper": (0.005, 0.005),
    "walker2d": (0.005, 0.005),
    "half_cheetah": (0.1, 0.1),
    "ant": (0.1, 0.1),
    "ant_contact": None,  # the states and actions of ant
    "swimmer": (0.1, 0.1),
    "reacher": (0.1, 0.005),
    "humanoid_truncated_obs": (0.01, 0.01),
}


def field(model, name):
    return [float(row[2]) for row in model if row[0] == name]


def perturbed(task, model, cq, cv):
    q = [q0 + cq * math.sin(1 + 2 * k) for k, q0 in enumerate(field(model, "qpos0"))]
    v = [cv * math.cos(1 + 3 * k) for k in range(int(field(model, "nv")[0]))]
    if task == "reacher":
        q[2:], v[2:] = [-0.12, 0.07], [0.0, 0.0]
    return q + v


def write(path, rows):
    path.write_text("".join(",".join(row) + "\n" for row in rows))


def main(recorded, golden):
    for task, amplitudes in START.items():
        source, target = recorded / task, golden / task
        target.mkdir(parents=True, exist_ok=True)
        if amplitudes:
            shutil.copyfile(source / "model.csv", target / "model.csv")
            model = list(csv.reader((source / "model.csv").open()))
            state = perturbed(task, model, *amplitudes)
            write(target / "perturbed_state.csv", [["%.17g" % x for x in state]])
        for trace in sorted(source.glob("trace_*.csv")):
            start = trace.stem.removeprefix("trace_")
            header, *rows = csv.reader(trace.open())
            reward = header.index("reward")
            short = [[row[0]] + row[reward:] for row in rows]
            write(target / f"{start}.csv", [["t"] + header[reward:]] +
                  [row if int(row[0]) in KEPT else row[:3] for row in short])
            if amplitudes and start != "perturbed":
                name = "actions.csv" if start == "nominal" else f"{start}_actions.csv"
                write(target / name, [row[1:reward] for row in rows[1:]])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent.parent / "tests/golden/mujoco")
