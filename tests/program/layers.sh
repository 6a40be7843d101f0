#!/bin/sh
# SPDX-License-Identifier: MIT
# Reads every #include of src and include, and fails on one that points up or sideways between the
# layers, or at a third party outside the one file that may know it.
set -eu

# The picture of docs/architecture.md: a file may include its own layer and those of lower rank. A
# sub-folder is a layer of its own.
cat_rules() {
    cat <<'END'
rank base 0
rank base/format 1
rank base/process 1
rank num 2
rank num/solve 3
rank env 4
rank env/builtin 5
rank env/mujoco 5
rank env/bullet 5
rank data 5
rank model 5
rank opc 6
rank agent 7
rank run/config 8
rank run/files 9
rank run/real 10
rank run 11
rank sweep 12
rank plot 12
rank study/exhibit 13
rank study/curves 14
rank study/probe 14
rank study/example 14
rank study/ilc 14
rank study/report 14
rank study/export 14
rank study/dataset 14
rank study 15
rank web 16
rank cli/console 16
rank cli/bench 18
rank cli/env 17
rank cli/sweep 17
rank cli 19
apart env data
apart env model
public version base
public sized base
public log base
public pool base
public err base
public mem base
public rng base
public env env
public episodes data
public imagined data
public predictor model
public ensemble model
public transition opc
public transition_type opc
public rollout opc
public agent agent
public policy run/config
public config run/config
public train run/config
public ilc run
public opc run
only mujoco/ src/env/mujoco/mujoco.c src/env/mujoco/render.c
only EGL/ src/env/mujoco/render.c
only GL/ src/env/mujoco/render.c
only LinearMath/ src/env/bullet/shim.cpp
only bt src/env/bullet/shim.cpp
only Bullet src/env/bullet/shim.cpp
only yaml.h src/run/config/yaml.c
only jansson.h src/run/files/json.c
only cairo src/plot/draw.c
only microhttpd.h src/web/http.c
only dlfcn.h src/env/mujoco/render.c src/env/plugin.c
word pthread_create src/base/pool.c
cpp src/env/bullet/shim.cpp
END
    # What C and POSIX bring, and glibc's few: everything else is a third party and needs a line.
    for header in assert complex ctype errno fenv float inttypes limits locale math setjmp signal \
        stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath \
        time aio dirent fcntl fnmatch ftw getopt glob langinfo libgen netdb poll pthread pwd regex \
        sched semaphore spawn strings syslog termios unistd wordexp immintrin emmintrin arm_neon \
        features; do
        echo "system $header.h"
    done
    for header in sys/ netinet/ arpa/ gnu/ sanitizer/; do
        echo "system $header"
    done
}

# Prints what is wrong in the tree at $1, one finding per line; nothing when all is well.
findings() (
    cd "$1"
    cat_rules >"$work/rules"
    # shellcheck disable=SC2016 # the dollars are awk's
    find src include -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) | sort |
        xargs awk '
        FILENAME == ARGV[1] {
            if ($1 == "rank") rank[$2] = $3
            if ($1 == "public") public[$2] = $3
            if ($1 == "apart") apart[$2, $3] = apart[$3, $2] = 1
            if ($1 == "system") system_header[$2] = 1
            if ($1 == "cpp") cpp = $2
            if ($1 == "only" || $1 == "word") {
                allowed = ""
                for (i = 3; i <= NF; i++) allowed = allowed " " $i
                if ($1 == "only") only[$2] = allowed " "
                else word[$2] = allowed " "
            }
            next
        }
        function bad(text) { print FILENAME ":" FNR ": " text }
        function starts(text, prefix) { return substr(text, 1, length(prefix)) == prefix }
        FNR == 1 {
            n = split(FILENAME, part, "/")
            installed = part[1] == "include"
            file = part[n]; sub(/\.[a-z]+$/, "", file)
            layer = installed ? public[file] : n > 3 ? part[2] "/" part[3] : part[2]
            if (n > 4) bad("folders go one level down")
            if (installed && layer == "")
                bad("this public header has no layer: add it to tests/program/layers.sh")
            else if (!(layer in rank)) bad("there is no layer " layer)
            if (FILENAME ~ /\.cpp$/ && FILENAME != cpp) bad("C++ belongs in " cpp)
        }
        {
            for (w in word)
                if (index($0, w "(") && !index(word[w], " " FILENAME " "))
                    bad(w " belongs in" word[w])
        }
        !/^[ \t]*#[ \t]*include/ { next }
        /"/ { # ours
            split($0, piece, "\""); name = piece[2]
            slash = index(name, "/")
            folder = name; sub(/\/[^\/]*$/, "", folder)
            rest = substr(name, length(folder) + 2); sub(/\.[a-z]+$/, "", rest)
            if (!slash) { bad("write \"layer/" name "\""); next }
            if (folder == "opc" && rest in public) target = public[rest]
            else {
                target = folder
                if (installed) { bad("a public header includes " name ", not installed"); next }
            }
            if (!(target in rank)) { bad(name " is in no layer"); next }
            if (target != layer && (rank[target] >= rank[layer] || (layer, target) in apart))
                bad(layer " may not include " name ", which is " \
                    (rank[target] > rank[layer] ? "above" : "beside") " it (" target ")")
            next
        }
        { # the systems and third parties
            name = $0; sub(/^[^<]*</, "", name); sub(/>.*/, "", name)
            owner = ""
            for (o in only) if (starts(name, o)) owner = o
            if (owner != "") {
                if (!index(only[owner], " " FILENAME " ")) bad("<" name "> belongs in" only[owner])
                next
            }
            if (FILENAME == cpp && name !~ /\./) next # the library of C++
            for (s in system_header) if (name == s || (s ~ /\/$/ && starts(name, s))) next
            bad("<" name "> is unknown: a third party gets one file and a line in layers.sh")
        }
        ' "$work/rules"
)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- the check checked: a tree with one fault of each kind -------------------------------------------
plant() { # FILE TEXT
    mkdir -p "$work/tree/$(dirname "$1")"
    printf '%s\n' "$2" >"$work/tree/$1"
}
caught() { # PATTERN
    printf '%s\n' "$found" | grep -q "$1" || {
        echo "layers.sh did not catch: $1"
        exit 1
    }
}
plant src/num/good.c '#include "base/text.h"
#include "opc/err.h"
#include <math.h>
#include <sys/stat.h>'
plant src/env/bullet/shim.cpp '#include <vector>'
plant src/study/curves/good.c '#include "study/exhibit/table.h"
#include "plot/figure.h"
#include "study/curves/curves.h"'
plant src/opc/good.c '#include "opc/private.h"
#include "opc/transition.h"
#include "model/ensemble.h"'
plant include/opc/err.h '#include <stdarg.h>'
found=$(findings "$work/tree")
[ -z "$found" ] || {
    echo "layers.sh objects to a tree without faults: $found"
    exit 1
}
plant src/base/up.c '#include "num/gemm.h"'
plant src/data/side.c '  #  include "env/env.h"'
plant src/model/public.c '#include "opc/episodes.h"'
plant src/plot/sweep.c '#include "sweep/sweep.h"'
plant src/study/exhibit/up.c '#include "study/curves/curves.h"'
plant src/study/probe/side.c '#include "study/curves/curves.h"'
plant src/study/probe/deep/file.c 'int x;'
plant src/num/flat.c '#include "gemm.h"'
plant src/num/where.c '#include "nowhere/gemm.h"'
plant src/agent/engine.c '#include <mujoco/mujoco.h>'
plant src/agent/other.c '#include <glib.h>'
plant src/agent/thread.c 'int x = pthread_create(&t, 0, f, 0);'
plant src/agent/other.cpp '#include <math.h>'
plant src/misc/file.c 'int x;'
plant include/opc/rng.h '#include "base/text.h"'
plant include/opc/stray.h 'int x;'
found=$(findings "$work/tree")
caught 'src/base/up.c:1: .*num/gemm.h.* above'
caught 'src/data/side.c:1: .*env/env.h.* beside'
caught 'src/model/public.c:1: .*opc/episodes.h.* beside'
caught 'src/plot/sweep.c:1: .*sweep/sweep.h.* beside'
caught 'src/study/exhibit/up.c:1: .*study/curves/curves.h.* above'
caught 'src/study/probe/side.c:1: .*study/curves/curves.h.* beside'
caught 'src/study/probe/deep/file.c:1: .*level'
caught 'src/num/flat.c:1: .*"layer/gemm.h"'
caught 'src/num/where.c:1: .*nowhere/gemm.h'
caught 'src/agent/engine.c:1: <mujoco/mujoco.h> .* src/env/mujoco/mujoco.c'
caught 'src/agent/other.c:1: <glib.h> .*layers.sh'
caught 'src/agent/thread.c:1: pthread_create .* src/base/pool.c'
caught 'src/agent/other.cpp:1: C++ .* src/env/bullet/shim.cpp'
caught 'src/misc/file.c:1: .* misc$'
caught 'include/opc/rng.h:1: .*base/text.h'
caught 'include/opc/stray.h:1: .*layers.sh'
[ "$(printf '%s\n' "$found" | wc -l)" = 16 ] || {
    echo "layers.sh found more than was planted: $found"
    exit 1
}

# ---- our tree ----------------------------------------------------------------------------------------
found=$(findings "$SRC")
[ -z "$found" ] || {
    printf '%s\n' "$found"
    exit 1
}
echo "$(find "$SRC/src" "$SRC/include" -type f -name '*.[ch]' | wc -l) files, every include points down"
