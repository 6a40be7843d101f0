#!/bin/sh
# SPDX-License-Identifier: MIT
# ./dev from outside: its help, wrong input, and what it says when it cannot do its work.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
dev=$SRC/dev
unset DEBIAN_FRONTEND

expect 0 '^usage: ./dev
^  demo 
^  test ' "$dev" help
expect 0 '^usage: ./dev' "$dev"
for command in deps build demo test lint format fuzz; do
    expect 0 "^\\./dev $command" "$dev" "$command" --help
    expect 0 "^\\./dev $command" "$dev" help "$command"
done
expect 2 "^dev: .*'tset'.*'./dev help'" "$dev" tset
expect 2 "^dev: build: .*'fast'" "$dev" build fast
expect 2 "^dev: deps: .*'all'" "$dev" deps all
expect 2 "^dev: demo.*'now'" "$dev" demo now
expect 2 "^dev: format: .*'--quick'" "$dev" format --quick
expect 2 "^dev: fuzz: --seconds = 'soon'" "$dev" fuzz --seconds soon
expect 2 "^dev: fuzz: .*'nothing'.*fuzz_nothing.c" "$dev" fuzz nothing
expect 0 '^libmujoco-dev$
^libcmocka-dev$' "$dev" deps test --list

# A machine without our packages, played by stand-ins for id, dpkg-query, sudo and apt-get. The
# stand-ins write down how they were called.
mkdir "$work/bin" "$work/tools"
for tool in sh cat dirname sed tr env cksum grep mkdir rm; do
    ln -s "$(command -v $tool)" "$work/tools/$tool"
done
stand_in() { # NAME LINES
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
bare() { # COMMAND...
    PATH=$work/bin:$work/tools "$@"
}
stand_in dpkg-query 'echo "installed gcc"; echo "not-installed cmake"; exit 1'
stand_in id 'echo 1000'
by_hand='apt-get update && apt-get install -y --no-install-recommends g++'
expect 1 "^dev: .*g++ .*cmake.*libmujoco-dev
sudo.*$by_hand" bare "$dev" build
! grep -q ' gcc ' "$work/said" || wrong "asks for a package that is there" "$dev" build

called="printf '%s %s %s\\n' \"\${0##*/}\" \"\${DEBIAN_FRONTEND:-asks}\" \"\$*\" >>$work/calls"
stand_in apt-get "$called; case \$* in *install*) exit 100 ;; esac"
stand_in sudo "$called; [ \"\$1\" != -n ] || shift; exec \"\$@\""
expect 1 "^dev: [^ ]* g++
network.*$by_hand" bare "$dev" build
expect 0 '^sudo asks -n apt-get .*update$
^sudo asks -n env DEBIAN_FRONTEND=noninteractive apt-get .*install
^apt-get noninteractive .*install -y --no-install-recommends g++' cat "$work/calls"
rm "$work/calls"
stand_in id 'echo 0'
expect 1 "network.*$by_hand" bare "$dev" build
expect 0 '^apt-get asks .*update$
^apt-get noninteractive .*install -y' cat "$work/calls"
! grep -q sudo "$work/calls" || wrong "calls sudo as root" "$dev" build

# With everything installed nothing is asked of apt; a build folder nobody can write to is named,
# and so is the way out when CMake objects.
rm "$work/calls"
# shellcheck disable=SC2016 # for the stand-in to expand
stand_in dpkg-query 'for p; do echo "installed $p"; done'
stand_in cmake 'echo "CMake says no" >&2; exit 1'
mkdir "$work/copy"
cp "$dev" "$SRC/CMakePresets.json" "$work/copy"
expect 1 "CMake says no
build/configure.log.*'rm -r build'" bare "$work/copy/dev" build
rm -r "$work/copy/build"
: >"$work/copy/build"
expect 1 "^dev: .*$work/copy/build[^/]" bare "$work/copy/dev" build
[ ! -e "$work/calls" ] || wrong "calls apt-get with nothing missing" "$dev" build
