#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/bullet from a directory of recorded traces of the original tasks.

usage: tools/golden_bullet.py RECORDED

RECORDED holds <Class>.csv (t, a0.., reward, terminated, obs0.., q_*, qd_*, ...), the model tables
models/<robot>_links.csv and _shapes.csv, and random_policy_stats.csv. What is kept: the tables and
statistics as they are; the actions, which are the same for all tasks but for their number; the
initial state of each task; and t, reward, terminated, o0.. of every row, with the state behind it on
every tenth. Observations that the original rounds to float are written with the ten digits that
takes to be within 1e-9; ant's 84 zeros are left out. tests/test_env_bullet.c reads them.
"""
import csv
import pathlib
import struct
import sys

TASKS = {
    "inverted_pendulum": "InvertedPendulumMuJoCoEnv",
    "inverted_pendulum_rs": "InvertedPendulumPyBulletEnv",
    "inverted_pendulum_roboschool": "RoboschoolInvertedPendulum",
    "hopper": "HopperMuJoCoEnv",
    "hopper_rs": "HopperPyBulletEnv",
    "walker2d": "Walker2DMuJoCoEnv",
    "walker2d_rs": "Walker2DPyBulletEnv",
    "half_cheetah": "HalfCheetahMuJoCoEnv",
    "half_cheetah_rs": "HalfCheetahPyBulletEnv",
    "ant": "AntMuJoCoEnv",
    "ant_rs": "AntPyBulletEnv",
}
ANT_OBS = 27


def columns(header, prefix):
    return [i for i, name in enumerate(header) if name.startswith(prefix)]


def short(text):
    """The fewest digits that give the same number again, where a float is meant as one."""
    x = float(text)
    if struct.unpack("f", struct.pack("f", x))[0] == x:
        return "%.10g" % x
    return repr(x)


def write(path, rows):
    path.write_text("".join(",".join(row) + "\n" for row in rows))


def copy(table, folder):
    (folder / table.name).write_text(table.read_text())  # line ends become ours


def trace(source, target, actions):
    header, *rows = csv.reader(source.open())
    acts = [i for i, name in enumerate(header) if name[0] == "a" and name[1:].isdigit()]
    obs = columns(header, "obs")[: ANT_OBS if "AntMuJoCo" in source.name else None]
    state = columns(header, "q_") + columns(header, "qd_")
    reward, terminated = header.index("reward"), header.index("terminated")
    kept = [["t", "reward", "terminated"] + ["o%d" % i for i in range(len(obs))]]
    for row in rows:
        line = [row[0], row[reward] or "0", row[terminated] or "0"] + [short(row[i]) for i in obs]
        if int(row[0]) % 10 == 0:
            line += [repr(float(row[i])) for i in state]
        kept.append(line)
    write(target / "trace.csv", kept)
    write(target / "state.csv", [[repr(float(rows[0][i])) for i in state]])
    for row in rows[1:]:
        mine = [repr(float(row[i])) for i in acts]
        known = actions.setdefault(int(row[0]), [])
        if known[: len(mine)] != mine[: len(known)]:
            sys.exit(f"{source}: other actions than the other tasks in row {row[0]}")
        if len(mine) > len(known):
            actions[int(row[0])] = mine


def main(recorded, golden):
    actions = {}
    for task, source in TASKS.items():
        (golden / task).mkdir(parents=True, exist_ok=True)
        trace(recorded / f"{source}.csv", golden / task, actions)
    write(golden / "actions.csv", [actions[t] for t in sorted(actions)])
    (golden / "models").mkdir(exist_ok=True)
    for table in sorted((recorded / "models").glob("*.csv")):
        copy(table, golden / "models")
    copy(recorded / "random_policy_stats.csv", golden)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent.parent / "tests/golden/bullet")
