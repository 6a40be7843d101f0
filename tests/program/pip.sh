#!/bin/sh
# SPDX-License-Identifier: MIT
# pip install ./python, in a clone: scikit-build-core (from PyPI, or else skipped) builds the library into the
# package, which then needs neither PYTHONPATH to this tree nor OPC_LIBRARY.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
if grep -q '^OPC_SANITIZE:STRING=.' "$BUILD/CMakeCache.txt"; then
    echo "skipped: the package has a library of its own, which the other build tests"
    exit 77
fi
venv || exit 0
unset OPC_LIBRARY PYTHONPATH
cd "$work"
find "$SRC/python" ! -name '*.pyc' ! -name __pycache__ | sort >before
# Without optimisation and third parties, because all that is asked for is that it builds. The CMake of the
# system is taken, and no compiler cache is needed.
if ! "$python" -m pip install --quiet --no-deps --target site "$SRC/python" --config-settings=cmake.build-type=Debug \
    --config-settings=cmake.define.OPC_WITH_MUJOCO=OFF --config-settings=cmake.define.OPC_WITH_BULLET=OFF --config-settings=cmake.define.OPC_WITH_CAIRO=OFF \
    >said 2>&1; then
    if grep -qi 'connection\|No matching distribution\|retries' said; then
        echo "skipped: PyPI cannot be reached"
        exit 0
    fi
    wrong 'it does not build' pip install ./python
fi
# Nothing is left in the tree, the library is the package's own, and it works.
find "$SRC/python" ! -name '*.pyc' ! -name __pycache__ | sort >after
cmp before after || wrong 'pip left something in the tree' diff before after
export PYTHONPATH="$work/site"
expect 0 "^$work/site/opc/.*libopc.so" "$python" -c \
    'import opc; from opc import _library; opc.Env("pendulum").reset(seed=1); print(_library.lib._name)'
cat >short.py <<'END'
import opc
opc.train({"env.name": "pendulum", "train.epochs": 1, "train.steps_per_epoch": 50, "train.random_steps": 50,
           "train.updates_per_step": 1, "opc.transitions": 100, "model.hidden": "8,8", "model.members": 2,
           "model.elites": 2, "model.weight_decay": 1e-5, "model.max_epochs": 1, "eval.episodes": 1}, out="run")
print(len(opc.read_run("run")["epoch"]), "epoch")
END
expect 0 '^1 epoch' "$python" short.py
