#!/bin/sh
# SPDX-License-Identifier: MIT
# Exhibits under results/: each was made from a file that the program of today still reads. One that is
# stale names settings that do not exist any more, and nobody could repeat it.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool python3
cd "$work"

# The file of each exhibit takes the place of the one that is there now, so that what it includes is found. Exhibits
# of one name (results/fit has several) go into trees of their own.
python3 - "$SRC" >told <<'END'
import json, pathlib, shutil, sys

source = pathlib.Path(sys.argv[1])
for path in sorted((source / "results").glob("**/*.json")):
    exhibit = json.loads(path.read_text())
    if not exhibit.get("config"):
        continue
    name = exhibit["name"] + ".yaml"
    folders = [f for f in ("experiments", "experiments/paper") if (source / f / name).exists()]
    if len(folders) != 1:
        sys.exit("%s: %d files are called %s" % (path, len(folders), name))
    tree = 0
    while pathlib.Path("%d/of-%s" % (tree, exhibit["name"])).exists():
        tree += 1
    if not pathlib.Path(str(tree)).exists():
        shutil.copytree(source / "experiments", "%d/experiments" % tree)
    pathlib.Path(str(tree), folders[0], name).write_text(exhibit["config"])
    pathlib.Path("%d/of-%s" % (tree, exhibit["name"])).write_text(str(path))
    print("%d/%s" % (tree, folders[0]), exhibit["name"], path.relative_to(source))
END
[ "$(wc -l <told)" -gt 15 ] || wrong 'too few exhibits' cat told

stale=
while read -r folder name path; do
    [ -e "$folder/listed" ] ||
        "$OPC" repro list --experiments "$folder" --draw-only -o none >"$folder/listed" 2>&1 </dev/null ||
        wrong "cannot list $folder" cat "$folder/listed"
    grep -q "^$name " "$folder/listed" || wrong "$name is not listed" cat "$folder/listed"
    if grep "^$name .*cannot be made" "$folder/listed"; then
        stale="$stale $path"
    fi
done <told
[ -z "$stale" ] || wrong "stale, to be drawn or made again:$stale" cat told
