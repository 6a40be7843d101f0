#!/bin/sh
# SPDX-License-Identifier: MIT
# examples/embed.c: trains through the public headers and the shared library alone.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"

expect 0 '' "$CC" -std=c17 -Wall -Wextra -Werror -I"$SRC/include" -I"$BUILD/include" \
    -o "$work/embed" "$SRC/examples/embed.c" -L"$BUILD" -lopc
expect 0 '^epoch 3 .* 750 .*return [0-9]
^[^0-9]* [0-9]* steps$' env LD_LIBRARY_PATH="$BUILD" "$work/embed" \
    "$work/run"
[ -s "$work/run/result.json" ]
expect 2 "^embed: .*'opc resume $work/run'" env LD_LIBRARY_PATH="$BUILD" "$work/embed" "$work/run"
