#!/bin/sh
# SPDX-License-Identifier: MIT
# examples/embed.c and examples/eq5.c: programs that use the public headers and the shared library
# alone.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"

for example in embed eq5; do
    expect 0 '' "$CC" -std=c17 -Wall -Wextra -Werror -I"$SRC/include" -I"$BUILD/include" \
        -o "$work/$example" "$SRC/examples/$example.c" -L"$BUILD" -lopc -lm
    # public headers only
    ! grep '^#include' "$SRC/examples/$example.c" | grep -v '<opc/\|<[a-z]*\.h>' ||
        wrong "includes more" "$example"
done
LD_LIBRARY_PATH=$BUILD
export LD_LIBRARY_PATH

# ---- embed: trains on an environment of its own, then acts with the policy file alone ------------------
expect 0 '^epoch 3 .* 600 .*return -*[0-9]
^policy.opc: 2 .* 1 ' "$work/embed" "$work/run"
[ -s "$work/run/result.json" ]
expect 2 "^embed: .*'opc resume $work/run'" "$work/embed" "$work/run"

# ---- eq5: exact with the recorded actions, and nearer with others --------------------------------------
expect 0 '^eq. 5, corrected *recorded *0$' "$work/eq5"
awk '$3 == "learned" || $3 == "corrected" { d[$3, $4] = $5; rows++ }
    END { exit !(rows == 4 && d["learned", "recorded"] > 0.01 &&
                 d["corrected", "changed"] > 0 &&
                 d["corrected", "changed"] < d["learned", "changed"]) }' "$work/said" ||
    wrong 'eq. 5 is not nearer than eq. 2' "$work/eq5"
