#!/bin/sh
# SPDX-License-Identifier: MIT
# The package opc: its mirror of the headers, what it promises, and the examples of docs/python.md, under
# Debian's Python, without numpy and (from PyPI, or else skipped) with it.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
debian=/usr/bin/python3
[ -x $debian ] || debian=python3
need_tool $debian
if grep -q '^OPC_SANITIZE:STRING=.' "$BUILD/CMakeCache.txt"; then
    echo "skipped: Python cannot load a sanitized library"
    exit 77
fi
parts=$SRC/tests/program/python
OPC_LIBRARY=$BUILD/libopc.so
PYTHONPATH=$SRC/python
PYTHONDONTWRITEBYTECODE=1
export OPC_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE
cd "$work"

expect 0 ' structs and .* functions are as in the headers' \
    $debian "$parts/mirror.py" "$CC" "$work" "$SRC/include" "$BUILD/include"

# One version everywhere.
version=$(sed -n 's/^#define OPC_VERSION "\(.*\)"/\1/p' "$BUILD/include/opc/version.h")
expect 0 "^$version\$" $debian -c 'import opc; print(opc.__version__)'
expect 0 '' grep -q "^version = \"$version\"\$" "$SRC/python/pyproject.toml"

# The examples: the first to the third block of Python in docs/python.md.
awk '/^```python$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > ("example" n ".py") }' "$SRC/docs/python.md"
[ "$(echo example*.py)" = 'example1.py example2.py example3.py' ] || wrong 'not three examples' ls

# Everything with this interpreter. A module numpy that cannot be imported hides the real one.
all() { # PYTHON PATTERN
    rm -rf runs
    mkdir runs
    (
        cd runs
        expect 0 "$2
^OK" "$1" "$parts/check.py" "$SRC/experiments/examples/smoke.yaml"
        expect 0 '^3 observations, 200 steps of 0.05 s, return -[0-9]' "$1" ../example1.py
        rm -rf run
        expect 0 '^epoch 3 of 3: return [0-9]
^best return [0-9.]* after 300 steps
^the policy balances for [0-9]' "$1" ../example2.py
        expect 0 '^recorded  eq. 5 distance 0.000$' "$1" ../example3.py
        awk '/eq. 2/ { two[$1] = $5 } /eq. 5/ { five[$1] = $5 }
            END { exit !(two["recorded"] > 0.01 && five["changed"] > 0 && five["changed"] < two["changed"]) }' \
            "$work/said" || wrong 'eq. 5 is not nearer than eq. 2' "$1" example3.py
    ) || exit 1
}
mkdir hidden
echo 'raise ImportError("hidden")' >hidden/numpy.py
PYTHONPATH=$work/hidden:$PYTHONPATH all $debian '^numpy: None  Gymnasium: None$'

# A run that was trained from Python has the bytes of `opc train`.
expect 0 '' "$OPC" train "$SRC/experiments/examples/smoke.yaml" --out runs/program
cmp runs/program/metrics.csv runs/whole/metrics.csv
cmp runs/program/policy.opc runs/whole/policy.opc

# From which starts its policy fails, which is most of them after so short a run.
expect 0 '^start 1: ends after [0-9]* steps; [0-9]* of 5 openings save it
^[0-9]* of 4 starts fail, [0-9]* of them with every opening' $debian "$SRC/examples/starts.py" runs/whole 4 5
expect 1 '^usage: python3 starts.py RUN' $debian "$SRC/examples/starts.py" runs/whole four
# Its packages are not here; that is said, and so is a wrong number before it.
sb3=$SRC/examples/sb3_sac.py
expect 0 '[-][-]random-steps' $debian "$sb3" --help
expect 2 'steps 500 .*1000' $debian "$sb3" pendulum --steps 500
expect 2 '[-][-]seeds' $debian "$sb3" pendulum --seeds 0
expect 1 'pip install stable-baselines3' $debian "$sb3" pendulum --out none.csv

# Installed: the library is found from the package.
expect 0 '' cmake --install "$BUILD" --prefix "$work/usr"
expect 0 "$work/usr/lib" env -u OPC_LIBRARY PYTHONPATH="$work/usr/share/opc/python" $debian -c \
    'import opc; from opc import _library; opc.Env("pendulum").reset(seed=1); print(_library.lib._name)'
# In the source tree, and where there is none.
if [ -e "$SRC/build/libopc.so.0" ]; then
    expect 0 "^$SRC/build/libopc.so.0$" env -u OPC_LIBRARY $debian -c \
        'from opc import _library; print(_library.candidates()[0])'
fi
expect 1 'ImportError.*OPC_LIBRARY=' env OPC_LIBRARY=/nowhere/libopc.so $debian -c 'import opc; opc.Env'
# A library that lacks a function of the package is refused before it is called.
echo 'int opc_nothing;' | "$CC" -shared -fPIC -x c -o older.so -
expect 1 'ImportError: .*older.so has no opc_.*older' env OPC_LIBRARY="$work/older.so" $debian -c 'import opc; opc.Env'
# Serving an environment needs no library.
expect 0 'MODULE:CLASS' env OPC_LIBRARY=/nowhere/libopc.so $debian -m opc.serve_env --help

# With numpy and Gymnasium, whose own check passes.
venv || exit 0
all "$python" '^numpy: [0-9.]*  Gymnasium: [0-9.]*$'
cat >checked.py <<'END'
import sys, warnings
from gymnasium.utils.env_checker import check_env
import opc
# What it only recommends: bounds of observations that are not infinite, actions within [-1, 1].
warnings.simplefilter("ignore")
for name in sys.argv[1:]:
    check_env(opc.Env(name), skip_render_check=True)
    print("checked", name)
END
names='pendulum cartpole'
without MUJOCO || names="$names mujoco:hopper"
# shellcheck disable=SC2086
expect 0 '^checked pendulum$
^checked cartpole$' "$python" checked.py $names
