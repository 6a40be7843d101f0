#!/bin/sh
# SPDX-License-Identifier: MIT
# The public API is whole: what the shared library exports is declared in include/opc, each function
# with its contract in a comment directly above it; what is declared is exported; headers stand alone
# in C and C++; plans, options and reports start with their size.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool nm

# ---- what headers declare ------------------------------------------------------------------------
# Prints "NAME documented|bare FILE:LINE" for each function after OPC_API.
declared() { # HEADER...
    # shellcheck disable=SC2016 # the dollars are awk's
    awk '
        FNR == 1 { comment = 0; pending = "" }
        pending != "" { text = text " " $0 }
        /^(extern )?OPC_API / { pending = FILENAME ":" FNR; text = $0; above = comment }
        pending != "" && text ~ /;/ {
            sub(/;.*/, "", text); sub(/\(.*/, "", text); sub(/^.*[ *]/, "", text)
            print text, above ? "documented" : "bare", pending
            pending = ""; comment = 0; next
        }
        pending == "" { comment = /^(\/\*| \*).*\*\/$/ || /^ \*\/$/ }
    ' "$@"
}

# The check checked.
cat >"$work/some.h" <<'END'
/* It has one. */
OPC_API int opc_good(int a,
                     int b);
OPC_API void opc_bad(void); /* not above */

struct s {
    int x; /* a member */
};
OPC_API const char *opc_worse(int i);
END
[ "$(declared "$work/some.h" | cut -d' ' -f1,2 | tr '\n' ' ')" = \
    'opc_good documented opc_bad bare opc_worse bare ' ] || wrong 'not what was declared' \
    declared "$work/some.h"

declared "$SRC"/include/opc/*.h >"$work/declared"
bare=$(awk '$2 == "bare" && $1 != "opc_env_plugin" {print $3 ": " $1}' "$work/declared")
[ -z "$bare" ] || {
    echo "WRONG: exported functions without a comment directly above:"
    echo "$bare"
    exit 1
}

# ---- what the library exports --------------------------------------------------------------------
# A plugin has opc_env_plugin; we have none.
nm -D --defined-only "$BUILD/libopc.so" | awk '{print $3}' | sort >"$work/exported"
cut -d' ' -f1 "$work/declared" | grep -v '^opc_env_plugin$' | sort >"$work/names"
difference=$(diff "$work/names" "$work/exported" || true)
[ -z "$difference" ] || {
    echo "WRONG: declared with OPC_API (<) and exported (>) differ:"
    echo "$difference"
    exit 1
}
[ -z "$(uniq -d "$work/names")" ] || wrong 'declared twice' uniq -d "$work/names"

# ---- headers -------------------------------------------------------------------------------------
for header in "$SRC"/include/opc/*.h "$BUILD/include/opc/version.h"; do
    name=${header##*/}
    printf "#include <opc/%s>\nextern int alone;\n" "$name" >"$work/alone.h"
    for language in c:c17 c++:c++17; do
        expect 0 '' "$CC" -x "${language%:*}" -std="${language#*:}" -Wall -Wextra -Wpedantic -Werror \
            -I"$SRC/include" -I"$BUILD/include" -fsyntax-only "$work/alone.h"
    done
    # opc.h has all of them but what only authors of transition models need
    case $name in
    opc.h | transition_type.h) ;;
    *) grep -q "^#include \"opc/$name\"" "$SRC/include/opc/opc.h" || wrong "opc.h lacks $name" true ;;
    esac
done

# ---- sizes ---------------------------------------------------------------------------------------
unsized=$(awk '/^struct opc_[a-z_]*(_plan|_options|_report|_args|_shape|_feed|_evaluation) \{/ {
        name = $2; getline; if ($0 !~ /^    size_t size;/) print FILENAME ": struct " name }' \
    "$SRC"/include/opc/*.h)
[ -z "$unsized" ] || {
    echo "WRONG: these do not start with size_t size:"
    echo "$unsized"
    exit 1
}
echo "$(wc -l <"$work/exported") exported functions, each with its contract"
