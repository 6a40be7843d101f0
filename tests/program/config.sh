#!/bin/sh
# SPDX-License-Identifier: MIT
# opc config: its pages, the document made from them, and every file under experiments/.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"

expect 0 '^train  *[A-Z]
^record ' "$OPC" config --list
expect 0 '^train - 
^  epochs  *int  *100  *1 \.\. 1000000  *[a-z]' "$OPC" config train
expect 0 '^sac - 
^opc - 
^  transition  *choice  *corrected ' "$OPC" config
# shellcheck disable=SC2016 # the back quotes are Markdown's
expect 0 '^## model$
^| `model.members` | int | `7` ' "$OPC" config model --markdown
expect 2 "^opc: config: .*'modle'.*'model'" "$OPC" config modle
expect 2 "^opc: config: .*'xyzzy'.*'opc config --list'" "$OPC" config xyzzy
expect 2 "^opc: config: .*'sac'" "$OPC" config train sac

# The document's reference is what the program prints.
"$OPC" config --markdown >"$work/pages"
sed '1,/^<!-- opc config --markdown -->$/d' "$SRC/docs/configuration.md" >"$work/document"
cmp "$work/pages" "$work/document" || {
    echo "docs/configuration.md is out of date; put the output of 'opc config --markdown' below its"
    echo "last comment"
    exit 1
}

# Every experiment is valid (those of opc ilc are for ilc.sh), and what it resolves to is read back to the same.
count=0
for file in $(find "$SRC/experiments" -name '*.yaml' | sort); do
    case $file in */common.yaml | */experiments/ilc/*) continue ;; esac
    varied=$(sed -n '/^vary:/,/^[a-z]/{
        s/^  \([a-z_.]*\): \[\(\[[^]]*\]\).*/\1=\2/p
        s/^  \([a-z_.]*\): \[\{0,1\}\([^],.[][^],.]*\).*/\1=\2/p
    }' "$file" | tr -d ' ') # the first value of each, which may be a list itself
    # Which recordings are references is stated, here or in what it includes, and not left to the default.
    if grep -q '^include:\|transition: \(corrected\|learned\)' "$file"; then
        from=$file
        until grep -q reference_epochs "$from"; do
            next=$(sed -n 's/^include: //p' "$from")
            case $next in
            '' | sac/* | ppo/*) break ;;
            esac
            from=$(dirname "$from")/$next
        done
        grep -q 'reference_epochs\|^ *\(opc\.\)*transition: replay$' "$from" ||
            wrong "$file does not state opc.reference_epochs" cat "$file"
    fi
    # shellcheck disable=SC2086 # one word for each setting
    "$OPC" config "$file" $varied >"$work/one.yaml"
    "$OPC" config "$work/one.yaml" >"$work/two.yaml"
    cmp "$work/one.yaml" "$work/two.yaml"
    count=$((count + 1))
done
[ $count -ge 15 ]
for task in half_cheetah hopper walker2d ant_truncated_obs; do
    for engine in mujoco bullet; do
        for transition in corrected learned replay; do
            expect 0 "^  transitions: 100000\$" "$OPC" config \
                "$SRC/experiments/paper/table1_economical.yaml" env.name=$engine:$task \
                opc.transition=$transition
        done
    done
done
