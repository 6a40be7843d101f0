#!/bin/sh
# SPDX-License-Identifier: MIT
# Every source file is as clang-format would leave it, and every file names its licence.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool clang-format
cd "$SRC"

expect 0 '' ./dev format --check

for file in $(find src include tests -type f \( -name '*.[ch]' -o -name '*.cpp' \)) dev \
    .ci/run CMakeLists.txt $(find tests -name '*.sh'); do
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: MIT' || {
        echo "$file: no SPDX line at its top"
        exit 1
    }
done
