#!/bin/sh
# SPDX-License-Identifier: MIT
# The tables of the documents are what the CSV files under results/ say: `./dev tables --check`. First
# the tool itself, on a document of its own.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"

tables() { # DOCUMENT: on standard output
    awk -v at=. -f "$SRC/tools/tables.awk" "$1"
}
cat >runs.csv <<'END'
task,method,steps,score,hidden,note
hopper,MBPO(*),60000,1655.974,"[64, 64]",
cheetah,OPC,1500,-12345678.5,"say ""yes""",seen
hopper,OPC,999,,"[128, 128]",x
END
printf 'verdict,other\nsupported,a\nundecided,b\nsupported,c\n' >a.csv
printf 'verdict,other\nundecided,d\n' >b.csv
cat >document.md <<'END'
Before.

<!-- table runs.csv
| task = {task:code} | method = {method} | steps = {steps:n} | score = {score:n2} ({steps:n})
| width = {hidden} | missing = {other?} | only task=hopper|cheetah -->
old text
| that | goes |
<!-- end -->
Between.
<!-- table a.csv, the first, with a comma
b.csv, the second
| name = {label} | yes = {count verdict=supported} | open = {count verdict=undecided} -->
<!-- end -->
<!-- table runs.csv | task = {task} | note = {note} | only method=OPC | only task=h.* -->
<!-- end -->
<!-- table a.csv, one / 5 / 0.2
b.csv, two
| name = {label} | other = {other} | seeds = {label 2} | hours = {label 3} -->
<!-- end -->
After.
END
cat >want.md <<'END'
Before.

<!-- table runs.csv
| task = {task:code} | method = {method} | steps = {steps:n} | score = {score:n2} ({steps:n})
| width = {hidden} | missing = {other?} | only task=hopper|cheetah -->
| task | method | steps | score | width | missing |
|---|---|---|---|---|---|
| `hopper` | MBPO(\*) | 60,000 | 1,655.97 (60,000) | [64, 64] | |
| `cheetah` | OPC | 1,500 | -12,345,678.50 (1,500) | say "yes" | |
| `hopper` | OPC | 999 | (999) | [128, 128] | |
<!-- end -->
Between.
<!-- table a.csv, the first, with a comma
b.csv, the second
| name = {label} | yes = {count verdict=supported} | open = {count verdict=undecided} -->
| name | yes | open |
|---|---|---|
| the first, with a comma | 2 | 1 |
| the second | | 1 |
<!-- end -->
<!-- table runs.csv | task = {task} | note = {note} | only method=OPC | only task=h.* -->
| task | note |
|---|---|
| hopper | x |
<!-- end -->
<!-- table a.csv, one / 5 / 0.2
b.csv, two
| name = {label} | other = {other} | seeds = {label 2} | hours = {label 3} -->
| name | other | seeds | hours |
|---|---|---|---|
| one | a | 5 | 0.2 |
| one | b | 5 | 0.2 |
| one | c | 5 | 0.2 |
| two | d | | |
<!-- end -->
After.
END
tables document.md >got.md
diff want.md got.md
tables got.md | cmp want.md - # a second time changes nothing

# What is wrong is named with its line.
printf '<!-- table runs.csv | a = {nothing} -->\n<!-- end -->\n' >bad.md
expect 1 "^bad.md:1: .*'nothing'.*runs.csv" tables bad.md
printf 'x\n<!-- table nowhere.csv | a = {a} -->\n<!-- end -->\n' >bad.md
expect 1 '^bad.md:2: .*nowhere.csv' tables bad.md
printf '<!-- table runs.csv | a = {task:roman} -->\n<!-- end -->\n' >bad.md
expect 1 "^bad.md:1: .*'roman'" tables bad.md
printf '<!-- table runs.csv | {task} -->\n<!-- end -->\n' >bad.md
expect 1 "^bad.md:1: .*HEADING" tables bad.md
printf '\n<!-- table runs.csv | a = {task} -->\n' >bad.md
expect 1 '^bad.md:2: .*end' tables bad.md
printf '<!-- end -->\n' >bad.md
expect 1 '^bad.md:1: .*without' tables bad.md

# ---- our documents -----------------------------------------------------------------------------------
cd "$SRC"
expect 0 '' ./dev tables --check
expect 2 "'--chek'" ./dev tables --chek
grep -q '^<!-- table ' README.md results/README.md || wrong "no document has a table" true
