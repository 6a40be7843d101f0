# SPDX-License-Identifier: MIT
"""opc for Python: model-based reinforcement learning with on-policy corrections (docs/python.md).

    opc.Env("mujoco:hopper")                environments, with Gymnasium's functions
    opc.train(config, on_epoch=...)         a training run; opc.read_run, opc.evaluate, opc.Policy.load
    opc.Ensemble, opc.rollout               a dynamics model, and rollouts through it by eq. 2, 3 and 5

`python3 -m opc.serve_env MODULE:CLASS` makes an environment that is written in Python a task of the program
`opc` (docs/env-process.md). Only Python's standard library is needed; where numpy can be imported, results are
its arrays, and else lists. What fails in the library is raised as opc.Error.
"""
from __future__ import annotations

import importlib

__version__ = "0.1.0"

# Where each name is. They are imported when they are first asked for, so that opc.serve_env, which plays an
# environment for the program `opc`, needs no library.
_HOMES = {"Code": "_library", "Error": "_library",
          "Box": "env", "Env": "env",
          "Config": "run", "Epoch": "run", "Policy": "run", "Returns": "run", "Run": "run", "evaluate": "run",
          "read_run": "run", "train": "run",
          "Ensemble": "model", "Episodes": "model", "Fit": "model", "Trajectory": "model", "rollout": "model"}
__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'opc' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"opc.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__ + ["__version__"])
