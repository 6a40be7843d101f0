# SPDX-License-Identifier: MIT
"""PETS here and in mbrl-lib: build/venv-mbrl/bin/python tests/speed/planning.py [--published] [TURNS].

Plans single steps of equal size on one core, in turns: `opc bench plan`, and the planner of mbrl-lib with PyTorch
(GaussianMLP, OneDTransitionRewardModel, ModelEnv, TrajectoryOptimizerAgent with CEMOptimizer). Both have 17
observations, 6 actions, 5 members of four layers of 200 with swish, one reward output, normalised inputs and
particles that keep their member; weights are random. --published takes the half-cheetah of the authors of PETS
(some seconds a plan) instead of the economical setting. Prints times and ratios. It needs a build (./dev build) and
the packages of `./dev venv mbrl`. docs/performance.md has the numbers; this is no test, because a busy machine decides.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import types

SRC = pathlib.Path(__file__).resolve().parent.parent.parent
OBS, ACT, MEMBERS, LAYERS, WIDTH = 17, 6, 5, 4, 200
# As in src/cli/bench/bench_plan.c.
ECONOMICAL = {"population": 200, "elites": 20, "particles": 5, "horizon": 25, "iterations": 3, "seconds": 3.0}
PUBLISHED = {"population": 500, "elites": 50, "particles": 20, "horizon": 30, "iterations": 5, "seconds": 10.0}

try:
    import gymnasium
    import numpy
    import torch

    from mbrl.models import GaussianMLP, ModelEnv, OneDTransitionRewardModel
    from mbrl.planning import TrajectoryOptimizerAgent
except ImportError as error:
    sys.exit(f"planning.py: {error}. './dev venv mbrl' makes build/venv-mbrl with mbrl-lib and PyTorch, from PyPI; "
             "then run build/venv-mbrl/bin/python tests/speed/planning.py")


def mbrl_agent(size):
    """The planner of mbrl-lib at this size."""
    network = GaussianMLP(OBS + ACT, OBS + 1, "cpu", num_layers=LAYERS, ensemble_size=MEMBERS, hid_size=WIDTH,
                          propagation_method="fixed_model", activation_fn_cfg={"_target_": "torch.nn.SiLU"})
    model = OneDTransitionRewardModel(network, target_is_delta=True, normalize=True, learned_rewards=True,
                                      num_elites=MEMBERS)
    model.set_elite(range(MEMBERS))
    box = gymnasium.spaces.Box
    spaces = types.SimpleNamespace(observation_space=box(-numpy.inf, numpy.inf, (OBS,)), action_space=box(-1, 1, (ACT,)))
    # nothing is terminal, as in opc bench plan
    env = ModelEnv(spaces, model, lambda actions, obs: torch.zeros(len(obs), 1, dtype=torch.bool))
    cem = {"_target_": "mbrl.planning.CEMOptimizer", "num_iterations": size["iterations"],
           "elite_ratio": size["elites"] / size["population"], "population_size": size["population"], "alpha": 0.1,
           "device": "cpu", "lower_bound": "???", "upper_bound": "???", "return_mean_elites": True}
    from omegaconf import OmegaConf
    agent = TrajectoryOptimizerAgent(OmegaConf.create(cem), [-1.0] * ACT, [1.0] * ACT,
                                     planning_horizon=size["horizon"])
    agent.set_trajectory_eval_fn(
        lambda obs, actions: env.evaluate_action_sequences(actions, initial_state=obs, num_particles=size["particles"]))
    return agent


def mbrl_times(agent, seconds):
    """Seconds of single plans, for about this long; at least two plans."""
    times, obs = [], numpy.zeros(OBS)
    while sum(times) < seconds or len(times) < 2:
        begin = time.perf_counter()
        agent.act(obs)
        times.append(time.perf_counter() - begin)
    return times


def opc_times(published, seconds):
    """Best and median seconds of a plan by `opc bench plan`, and its share of the peak."""
    command = [SRC / "build/opc", "bench", "plan", "--threads", "1", "--seconds", str(seconds), "--json"]
    out = subprocess.run(command + ["--published"] * published, check=True, capture_output=True, text=True).stdout
    line = json.loads(out.splitlines()[-1])
    return line["best_ms"] / 1e3, line["median_ms"] / 1e3, line["roofline_fraction"]


def main():
    arguments = sys.argv[1:]
    published = "--published" in arguments
    turns = [int(word) for word in arguments if word != "--published"] or [5]
    size = PUBLISHED if published else ECONOMICAL
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core, also for the child
    torch.set_num_threads(1)
    import mbrl
    print(f"mbrl {mbrl.__version__}, PyTorch {torch.__version__}, one core; " +
          ", ".join(f"{name} {value}" for name, value in size.items() if name != "seconds"))
    agent = mbrl_agent(size)
    agent.act(numpy.zeros(OBS))  # warm up
    ours, theirs, ratios = [], [], []
    for _ in range(turns[0]):
        best, median, share = opc_times(published, size["seconds"])
        times = mbrl_times(agent, size["seconds"])
        ours.append(best)
        theirs.append(min(times))
        ratios.append(statistics.median(times) / median)
        print(f"opc {best:.4f} s at best, median {median:.4f} s ({100 * share:.1f} % of the peak); "
              f"mbrl-lib {min(times):.4f} s, median {statistics.median(times):.4f} s", flush=True)
    print(f"mbrl-lib / opc: best {min(theirs) / min(ours):.2f} ({min(theirs):.4f} s / {min(ours):.4f} s), medians of a "
          f"turn {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


main()
