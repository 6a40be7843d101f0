# SPDX-License-Identifier: MIT
"""What a task costs as a program instead of as a plugin: python3 tests/speed/exec.py [TURNS].

Trains on a task of 1 ms a step (slow.c) in both forms, in turns, and prints the median ratios of processor time
(opc and its children) and of wall-clock time; then the steps per second of a trivial child in C. It needs a build
(./dev build). docs/performance.md has the numbers; this is no test, because a busy machine decides. With
OPC_ENV_AFFINITY=0 in the environment, the child runs where the kernel puts it.
"""
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SRC = HERE.parent.parent
SETTINGS = """
train: {epochs: 1, steps_per_epoch: 400, random_steps: 200, updates_per_step: 2}
opc: {transition: corrected, horizon: 3, transitions: 1000}
model: {members: 2, elites: 2, hidden: [16, 16], weight_decay: 1e-5, max_epochs: 5}
sac: {policy_hidden: [16], critic_hidden: [16], batch_size: 32}
eval.episodes: 1
"""


def compile_c(source, out, *flags):
    subprocess.run(["cc", "-std=gnu17", "-O2", *flags, "-o", out, source, "-lm"], check=True)


def cost(name, out):
    """Processor and wall-clock seconds of a run."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([SRC / "build/opc", "train", "slow.yaml", f"env.name={name}", "--threads", "1", "--quiet",
                    "--out", out], check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - begin)


def main():
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        includes = [f"-I{SRC / 'include'}", f"-I{SRC / 'build/include'}"]
        compile_c(HERE / "slow.c", "slow", "-DCHILD")
        compile_c(HERE / "slow.c", "slow.so", "-fPIC", "-shared", *includes)
        compile_c(SRC / "examples/sliding.c", "sliding")
        pathlib.Path("slow.yaml").write_text(SETTINGS)
        ratios = []
        for i in range(turns):
            plugin, program = cost("./slow.so", f"plugin{i}"), cost("exec:./slow", f"program{i}")
            ratios.append([b / a for a, b in zip(plugin, program)])
            print(f"plugin {plugin[0]:.2f} s ({plugin[1]:.2f} s by the clock), "
                  f"program {program[0]:.2f} s ({program[1]:.2f} s)", flush=True)
        for what, column in zip(("processor time", "wall-clock time"), zip(*ratios)):
            print(f"{what}: program / plugin = {statistics.median(column):.3f} "
                  f"({min(column):.3f} to {max(column):.3f})")
        same = pathlib.Path("plugin0/metrics.csv").read_bytes() == pathlib.Path("program0/metrics.csv").read_bytes()
        print("both have the same bytes" if same else "the runs differ")
        subprocess.run([SRC / "build/opc", "env", "bench", "exec:./sliding", "--seconds", "2"], check=True)


main()
