#!/bin/sh
# SPDX-License-Identifier: MIT
# opc bench: every line of --json is one object with the promised fields and sane numbers, and the
# table says the same in columns.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"

"$OPC" bench gemm --batch 48 --seconds 0.01 --json >"$work/json"
awk '
    function field(name) {
        if (!match($0, "\"" name "\": *[^,}]*")) {
            print "no " name " in: " $0
            bad = 1
            return 0
        }
        text = substr($0, RSTART, RLENGTH)
        sub(/^[^:]*: */, "", text)
        return text
    }
    !/^\{.*\}$/ { print "no JSON object: " $0; bad = 1; next }
    {
        field("work"); field("obs"); field("act"); field("hidden"); field("gflops")
        if (field("batch") != 48 && field("work") ~ /gemm/) { print "batch: " $0; bad = 1 }
        if (field("threads") != 1) { print "threads: " $0; bad = 1 }
        if (field("best_ms") + 0 > field("median_ms") + 0) { print "best > median: " $0; bad = 1 }
        if (field("per_s") + 0 <= 0) { print "per_s: " $0; bad = 1 }
        if (field("roofline_fraction") + 0 < 0) { print "roofline_fraction: " $0; bad = 1 }
        lines++
    }
    END { exit bad || lines < 3 }
' "$work/json"

expect 0 '^machine .* %$
^work .*GFLOP/s
^gemm .* %$' "$OPC" bench gemm --seconds 0.01 --threads 2
expect 0 '^plan of a real step  *1000 .* %$' "$OPC" bench plan --seconds 0.01 --obs 3 --act 1 --hidden 8
expect 0 '^plan of a real step  *10000 .* %$' "$OPC" bench plan --published --seconds 0.01 --obs 3 --act 1 --hidden 8
expect 2 'published' "$OPC" bench gemm --published
expect 1 '^opc: .*standard output' sh -c "'$OPC' bench gemm --seconds 0.01 >/dev/full"
