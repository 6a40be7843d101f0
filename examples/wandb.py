# SPDX-License-Identifier: MIT
"""Sends the rows of a run to Weights & Biases, those that are there and each new one, until the run ends.

    opc train FILE record.json_lines=true --out RUN
    python3 wandb.py RUN [--project NAME]       # meanwhile or afterwards; --dry-run prints the rows instead
"""
import argparse, json, os, sys, time

parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parse.add_argument("run", help="run directory")
parse.add_argument("--project", default="opc")
parse.add_argument("--dry-run", action="store_true", help="print the rows; wandb need not be installed")
args = parse.parse_args()
name, settings = os.path.basename(os.path.abspath(args.run)), {}
for line in open(os.path.join(args.run, "config.yaml")):  # "section:" and "  name: value", no more
    if not line.startswith(" "):
        section = line.strip(": \n")
    else:
        settings[section + "." + line.split(":")[0].strip()] = line.split(":", 1)[1].strip()

first, log = 0, lambda row, step: print(step, json.dumps(row), flush=True)
if not args.dry_run:
    here = os.path.dirname(os.path.abspath(__file__))  # "import wandb" must not find this file
    sys.path = [path for path in sys.path if os.path.abspath(path) != here]
    import wandb
    sent = wandb.init(project=args.project, name=name, id=name, config=settings, resume="allow")
    first, log = sent.step, lambda row, step: sent.log(row, step=step)  # it has the earlier ones

at, state = 0, "running"  # bytes read; a run that is resumed writes the same rows in the same places
while state == "running":
    state = json.load(open(os.path.join(args.run, "status.json")))["state"]  # before the last rows are read
    with open(os.path.join(args.run, "metrics.jsonl"), "rb") as file:
        file.seek(at)
        lines = file.read().rpartition(b"\n")[0]  # whole ones
    at += len(lines) + (len(lines) > 0)
    for row in map(json.loads, lines.splitlines()):
        if row["env_steps"] >= first:
            log({key: value for key, value in row.items() if value is not None}, row["env_steps"])
    time.sleep(1 if state == "running" else 0)
