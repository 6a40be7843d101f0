#!/bin/sh
# SPDX-License-Identifier: MIT
# What `cmake --install` leaves behind is enough for another project: through pkg-config against
# both libraries, and through find_package.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
need_tool cmake ninja pkg-config nm

prefix=$work/usr
expect 0 '' cmake --install "$BUILD" --prefix "$prefix"
lib=$(dirname "$(find "$prefix" -name libopc.a)")

expect 0 '^opc [0-9]' "$prefix/bin/opc" --version
for file in share/man/man1/opc.1 share/bash-completion/completions/opc \
    share/zsh/site-functions/_opc share/fish/vendor_completions.d/opc.fish include/opc/err.h \
    include/opc/version.h share/opc/models/hopper.xml share/opc/results/published/curves.csv share/doc/opc/LICENSE \
    share/doc/opc/docs/experiments.md share/doc/opc/examples/embed.c; do
    [ -s "$prefix/$file" ] || {
        echo "not installed: $file"
        exit 1
    }
done
# No installed document links to a file that is not installed.
find "$prefix/share/doc/opc" -name '*.md' | while read -r file; do
    grep -o '](\([^)#: ]*\)[)#]' "$file" | sed 's/^](//; s/[)#]$//' | while read -r target; do
        [ -z "$target" ] || [ -e "$(dirname "$file")/$target" ] || echo "$file: $target is not installed"
    done
done >"$work/said"
[ ! -s "$work/said" ] || wrong "links that lead nowhere" cat "$work/said"

# The experiments are found from anywhere.
(cd "$work" && expect 0 "^experiment " "$prefix/bin/opc" repro list &&
    expect 0 "name: cartpole" "$prefix/bin/opc" config experiments/examples/smoke.yaml &&
    expect 0 '' "$prefix/bin/opc" train experiments/examples/smoke.yaml train.epochs=1 --out once &&
    expect 0 ' missing$' "$prefix/bin/opc" sweep experiments/paper/fig4.yaml status &&
    expect 0 '' "$prefix/bin/opc" ilc experiments/ilc/linear.yaml --quiet)
[ "$(cd "$prefix/include/opc" && ls)" = "$( (cd "$SRC/include/opc" && ls && echo version.h) |
    sort)" ]

# Only what is public leaves the shared library.
nm -D --defined-only "$lib/libopc.so" | awk '$3 !~ /^opc_/ {print "exported: " $3; bad = 1}
    END {exit bad}'
[ -e "$lib/libopc.so.0" ]

cat >"$work/user.c" <<'END'
#include <opc/err.h>
#include <opc/rng.h>
#include <opc/version.h>
#include <stdio.h>

int main(void)
{
    struct opc_err err;
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 0, 0);
    opc_fail(&err, OPC_EUSER, "opc %s says %u", OPC_VERSION, (unsigned)opc_rng_bits(&rng) % 1u);
    puts(err.text);
    return opc_exit_status(OPC_OK);
}
END
# Every public header stands alone, in C and in C++.
for header in "$prefix"/include/opc/*.h; do
    echo "#include <opc/${header##*/}>" >"$work/alone.h"
    expect 0 '' "$CC" -std=c17 -Wall -Werror -I"$prefix/include" -fsyntax-only -x c "$work/alone.h"
    expect 0 '' "$CC" -std=c++17 -Wall -Werror -I"$prefix/include" -fsyntax-only -x c++ "$work/alone.h"
done

PKG_CONFIG_PATH=$lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # pkg-config prints lists
{
    expect 0 '' "$CC" -o "$work/shared" "$work/user.c" $(pkg-config --cflags --libs opc)
    expect 0 '^opc [0-9.]* says 0$' env LD_LIBRARY_PATH="$lib" "$work/shared"
    expect 0 '' "$CC" -o "$work/static" "$work/user.c" $(pkg-config --cflags opc) \
        $(pkg-config --static --libs opc | sed "s|-lopc|-l:libopc.a|")
    expect 0 '^opc [0-9.]* says 0$' "$work/static"
}

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(opc 0.1 REQUIRED)
add_executable(shared ../user.c)
target_link_libraries(shared opc::opc)
add_executable(static ../user.c)
target_link_libraries(static opc::static)
END
expect 0 '' cmake -G Ninja -S "$work/project" -B "$work/project/build" \
    -D CMAKE_C_COMPILER="$CC" -D CMAKE_PREFIX_PATH="$prefix"
expect 0 '' cmake --build "$work/project/build"
expect 0 '^opc [0-9.]* says 0$' "$work/project/build/shared"
expect 0 '^opc [0-9.]* says 0$' "$work/project/build/static"

# All of it can be taken away again, and nothing else is.
touch "$prefix/bin/other"
expect 0 '' cmake --build "$BUILD" --target uninstall
[ "$(find "$prefix" -type f)" = "$prefix/bin/other" ] || wrong "left behind" find "$prefix" -type f
[ -z "$(find "$prefix" -name opc)" ] || wrong "empty folders are left" find "$prefix"
expect 1 'install_manifest' cmake --build "$BUILD" --target uninstall
