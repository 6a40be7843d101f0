#!/bin/sh
# SPDX-License-Identifier: MIT
# Every command block of docs/tutorial.md, and after them of docs/extending.md, works: each ```sh block runs, in order,
# in a copy of the tree where build/opc is the program under test. A ```text block behind it is output: its returns are
# compared where the processor has fused multiply-adds, all of which give the same; times differ. KEEP=DIR in the
# environment keeps what each block printed.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool "$CC" cmp timeout
! without CAIRO || exit 77  # the tutorial draws,
! without BULLET || exit 77 # and makes Figure 4

tree=$work/tree
mkdir -p "$tree/build" "$tree/runs" "$work/blocks"
cp -R "$SRC/src" "$SRC/include" "$SRC/examples" "$SRC/experiments" "$tree"
ln -s "$OPC" "$tree/build/opc"

# A whole build takes minutes. This one compiles the files of src/opc and src/agent that are new or changed and links
# them before the objects of the build under test, which is what a method or an agent of one's own needs.
cat >"$tree/dev" <<'END'
#!/bin/sh
set -eu
[ "$*" = build ] || exit 2
objects=
for file in src/opc/*.c src/agent/*.c; do
    cmp -s "$file" "$SRC/$file" && continue
    object=build/$(basename "$file" .c).o
    "$CC" -std=c17 -O2 -ffp-contract=off -D_POSIX_C_SOURCE=200809L -Iinclude -Isrc \
        -I"$BUILD/include" -c "$file" -o "$object"
    objects="$objects $object"
done
[ -n "$objects" ] || exit 0
rm build/opc
# what the program alone is linked with
serve=
[ ! -e "$BUILD/CMakeFiles/opc_program.dir/src/web/http.c.o" ] || serve=-lmicrohttpd
# shellcheck disable=SC2046,SC2086 # these are lists
"$CC" -rdynamic -o build/opc $objects $(find "$BUILD/CMakeFiles/opc_program.dir" -name '*.o') \
    "$BUILD/libopc.a" $(sed -n 's/^Libs.private: //p' "$BUILD/opc.pc") $serve
END
chmod +x "$tree/dev"

awk -v to="$work/blocks" '
    /^```sh$/ { inside = 1; file = sprintf("%s/%02d.sh", to, ++n); print "# " FILENAME ":" FNR >file; next }
    /^```text$/ && file { inside = 1; sub(/sh$/, "txt", file); next }
    /^```/ { inside = 0; if (file ~ /txt$/) file = ""; next }
    inside { print >file }' "$SRC/docs/tutorial.md" "$SRC/docs/extending.md"

# What does not depend on the machine: the first columns of an epoch, the return of an episode, scores without minutes.
returns() { # FILE
    awk '
        / \| / && $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ { print $1, $2, $3, $4 }
        /^episode [0-9]/ { print $2, $3 }
        / (OPC|MBPO\(\*\)|SAC) +[0-9]/ && /[0-9.]+$/ { print $2, $3, $4, $5, $6, $7 }' "$1"
}
fused=$("$OPC" doctor | grep -c 'kernels.*(.*fused multiply-add)') || true

cd "$tree"
blocks=0 rows=0
for block in "$work"/blocks/*.sh; do
    status=0
    sh -eu "$block" >"$work/said" 2>&1 </dev/null || status=$?
    [ "$status" = 0 ] ||
        wrong "exit status $status" "$(sed -n "1s|^# $SRC/||p" "$block"):" \
            "$(sed 1d "$block")"
    ! grep -q 'Sanitizer\|runtime error\|core dumped' "$work/said" || wrong "crashed" "$block"
    expected=${block%.sh}.txt
    if [ "$fused" = 1 ] && [ -e "$expected" ]; then
        returns "$work/said" >"$work/returns"
        returns "$expected" >"$work/expected"
        ! grep -vxF -f "$work/returns" "$work/expected" >"$work/differ" ||
            wrong "prints other returns than docs/tutorial.md: $(head -n 1 "$work/differ")" cat "$block"
        rows=$((rows + $(wc -l <"$work/expected")))
    fi
    [ -z "${KEEP:-}" ] || cp "$work/said" "$KEEP/$(basename "$block" .sh).txt"
    blocks=$((blocks + 1))
done
[ "$fused" = 0 ] || [ "$rows" -ge 20 ] || wrong "only $rows returns were found" docs/tutorial.md
[ "$blocks" -ge 16 ] || wrong "only $blocks command blocks were found" docs/tutorial.md docs/extending.md
