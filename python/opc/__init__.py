# SPDX-License-Identifier: MIT
"""opc for Python: model-based reinforcement learning with on-policy corrections.

`python3 -m opc.serve_env MODULE:CLASS` makes an environment that is written in Python a task of the
program `opc` (docs/env-process.md). Only Python's standard library is needed.
"""

__version__ = "0.1.0"
