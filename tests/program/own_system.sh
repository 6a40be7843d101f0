#!/bin/sh
# SPDX-License-Identifier: MIT
# Every command of docs/own-system.md works: its ```sh blocks are one script, which runs in a copy of examples.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool python3 "$CC"
! without CAIRO || exit 77 # the page draws
mkdir "$work/bin"
ln -s "$OPC" "$work/bin/opc"
cp -R "$SRC/examples" "$SRC/python" "$work"
cd "$work/examples"
awk '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$SRC/docs/own-system.md" >../page.sh
[ "$(grep -c '^opc ' ../page.sh)" -ge 9 ] || wrong "its commands are not found" cat ../page.sh
PATH=$work/bin:$PATH sh -eux ../page.sh >"$work/said" 2>&1 </dev/null || wrong "a command fails" docs/own-system.md
! grep -q 'Sanitizer\|runtime error\|core dumped' "$work/said" || wrong "crashed" docs/own-system.md
# Returns of the page's training, where the processor has fused multiply-adds, all of which give the same.
awk '/ \| / && $1 ~ /^[0-9]+$/ { print $1, $2, $3 }' "$SRC/docs/own-system.md" >"$work/expected"
awk '/ \| / && $1 ~ /^[0-9]+$/ { print $1, $2, $3 }' "$work/said" >"$work/returns"
[ "$(wc -l <"$work/expected")" -ge 4 ] || wrong "its returns are not found" cat "$work/expected"
! "$OPC" doctor | grep -q 'kernels.*(.*fused multiply-add)' ||
    ! grep -vxF -f "$work/returns" "$work/expected" >"$work/differ" ||
    wrong "prints other returns than docs/own-system.md" cat "$work/differ"
for line in 'is sound$' '^8 episodes, 1200 steps .* log.opc$' 'no random ones follow$' 'runs/logged.html$'; do
    grep -q -e "$line" "$work/said" || wrong "does not say: $line" docs/own-system.md
done
