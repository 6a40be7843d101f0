# SPDX-License-Identifier: MIT
"""SAC of Stable-Baselines3 on a task of opc, as a learning curve that opc plot draws behind runs.

    export PYTHONPATH=../python          # from a clone; installed, opc is found
    pip install stable-baselines3        # with PyTorch, gymnasium and numpy
    python3 sb3_sac.py mujoco:hopper --steps 60000 --seeds 3 --out sb3.csv
    opc plot RUN --published sb3.csv --published-task hopper --published-method "SB3 SAC"

Every --every (1000) steps the policy plays --episodes (10) episodes without noise, each from the start of its own
seed, and their mean return is a point: so does `opc train`. A row of the file is the mean of these points over seeds
and their standard deviation. Steps count from the first one on the environment, the random ones included. The file
is written after each seed; rows that it has of other tasks and methods stay.
"""
import argparse
import csv
import os
import statistics
import sys

COLUMNS = ["source", "env", "method", "env_steps", "mean", "std", "seeds"]


def read_arguments(words=None):
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("task", help="a name of `opc env list`")
    p.add_argument("--out", default="sb3.csv", help="file to write (%(default)s)")
    p.add_argument("--env", help="name in the column env (the task's, without the engine)")
    p.add_argument("--method", default="SB3 SAC", help="name in the column method (%(default)s)")
    p.add_argument("--steps", type=int, default=60000, help="of each seed, the random ones included (%(default)s)")
    p.add_argument("--random-steps", type=int, default=1000, help="before learning starts (%(default)s)")
    p.add_argument("--seeds", type=int, default=3, help="how many: 1 to this (%(default)s)")
    p.add_argument("--every", type=int, default=1000, help="steps between evaluations (%(default)s)")
    p.add_argument("--episodes", type=int, default=10, help="of an evaluation (%(default)s)")
    p.add_argument("--hidden", type=int, nargs="*", default=[256, 256], help="units of policy and critics")
    args = p.parse_args(words)
    for name in ("steps", "seeds", "every", "episodes"):
        if getattr(args, name) < 1:
            p.error(f"--{name.replace('_', '-')} is at least 1")
    if args.steps < args.every:
        p.error(f"--steps {args.steps} ends before the first evaluation, after {args.every}")
    args.env = args.env or args.task.split("?")[0].split(":")[-1]
    return args


def play(env, model, first_seed, episodes):
    """The mean return of so many episodes of the policy without noise."""
    total = 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=first_seed + episode)
        done = False
        while not done:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += reward
            done = terminated or truncated
    return total / episodes


def train(args, seed):
    """The points of one seed: mean returns after --every, 2 --every, ... steps."""
    from gymnasium.wrappers import TimeLimit
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor

    import opc

    def make():
        env = opc.Env(args.task)
        return env if env.steps else TimeLimit(env, 1000)  # a task without an end gets one

    points, test = [], make()

    class Evaluate(BaseCallback):
        def _on_step(self):
            if self.num_timesteps % args.every == 0:
                # Starts of evaluations are none of training's, and others at each evaluation.
                start = 1000000 * seed + 1000 * (len(points) + 1)
                points.append(play(test, self.model, start, args.episodes))
                print(f"seed {seed}: {self.num_timesteps} steps, return {points[-1]:.1f}", flush=True)
            return True

    model = SAC("MlpPolicy", Monitor(make()), seed=seed, learning_starts=args.random_steps, device="cpu",
                policy_kwargs={"net_arch": args.hidden})
    model.learn(args.steps, callback=Evaluate())
    return points


def write(args, seeds, version):
    """The curve over the seeds so far in place of an earlier one of this task and method."""
    rows = []
    if os.path.exists(args.out):
        with open(args.out, newline="") as file:
            rows = [row for row in csv.DictReader(file) if (row["env"], row["method"]) != (args.env, args.method)]
    for i, values in enumerate(zip(*seeds)):
        rows.append(dict(zip(COLUMNS, [f"stable-baselines3 {version} on opc's {args.task}", args.env, args.method,
                                       (i + 1) * args.every, f"{statistics.fmean(values):.2f}",
                                       f"{statistics.pstdev(values):.2f}", len(values)])))
    with open(args.out + ".part", "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    os.replace(args.out + ".part", args.out)


def main():
    args = read_arguments()
    try:
        from stable_baselines3 import __version__
    except ImportError as missing:
        sys.exit(f"{missing}: pip install stable-baselines3")
    seeds = []
    for seed in range(1, args.seeds + 1):
        seeds.append(train(args, seed))
        write(args, seeds, __version__)
        print(f"{args.out}: {len(seeds)} of {args.seeds} seeds", flush=True)


if __name__ == "__main__":
    main()
