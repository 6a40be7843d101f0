#!/bin/sh
# SPDX-License-Identifier: MIT
# opc env: what it lists and explains, traces against recorded ones, films, and wrong input.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
unset OPC_MODELS OPC_GL
cd "$work" # models are compiled in: any directory will do

# Rows of a trace against a recording, where rows may have only t, reward and terminated.
same_trace() { # RECORDED TRACE
    awk -F, '
        FNR == NR { for (i = 1; i <= NF; i++) want[FNR, i] = $i; n[FNR] = NF; next }
        FNR == 1 { if ($0 != header($0) || NF != n[1]) bad("header: " $0); next }
        {
            for (i = 1; i <= n[FNR] && i <= NF; i++) {
                gap = $i - want[FNR, i]; size = want[FNR, i] < 0 ? -want[FNR, i] : want[FNR, i]
                if (gap > 1e-9 * (1 + size) || -gap > 1e-9 * (1 + size))
                    bad("row " $1 ", column " i ": " $i " instead of " want[FNR, i])
            }
            rows++
        }
        function header(line,    text, i) {
            text = "t,reward,terminated"
            for (i = 0; i < NF - 3; i++) text = text ",o" i
            return text
        }
        NF != n[1] { bad("row " $1 " has " NF " columns") }
        function bad(text) { print text; wrong = 1 }
        END { if (rows != 201) bad(rows " rows"); exit wrong }
    ' "$1" "$2"
}

# ---- without an engine -------------------------------------------------------------------------------
expect 0 '^linear1d  *1  *1  *60  [a-z]
^cartpole  *4  *1  *1000  [a-z]' "$OPC" env list
expect 0 '^cartpole?angle=sincos - [a-z]
^  observation  5: [a-z]
^  angles       .*o1, .*o2$
^  action       1 in \[-1, 1\]: [a-z]
^  reward       1 
^  termination  .* > 2.4 .* > 0.2
^  time limit   .* 1000 
^  reset        .* \[-0.05, 0.05\]
^  engine       none' "$OPC" env show 'cartpole?angle=sincos'
expect 0 '^pendulum .*sound
^  played       2000 
^  reward       .*[0-9]e[-+]' "$OPC" env check pendulum --transitions 2000
expect 0 '^{"work": "env", "env": "cartpole", .*"ratio": .*}$' \
    "$OPC" env bench cartpole --json --seconds 0.01

printf '0.5\n-0.25\n' >two
printf 't,reward,terminated,o0\n0,0,0,1\n1,1.9151695967140057e-174,0,1.5\n2,0,0,1.25\n' >want
"$OPC" env trace linear1d --actions two >got
cmp want got
"$OPC" env trace linear1d --actions two --out file.csv >nothing
cmp want file.csv
[ ! -s nothing ]
"$OPC" env trace linear1d --actions two -o again.csv
cmp want again.csv
printf '2\r\n' >state # a line end of another system
printf '0, 0\n' >wide
"$OPC" env trace linear1d --actions two --state state | grep -q '^2,0,0,2.25$'

# Wrong input: exit status 2, and what is wrong.
expect 2 "^opc: env: .*'cartpoel'.*cartpole" "$OPC" env show cartpoel
expect 2 "^opc: env: .*'tetris'.*'opc env list'" "$OPC" env check tetris
expect 2 "^opc: env: .*cartpole.*'mass'.*angle" "$OPC" env show 'cartpole?mass=3'
expect 2 '^opc: env: .*linear1d: A = x ' "$OPC" env show 'linear1d?A=x'
expect 2 '^opc: env: .*list, show, check, bench, trace.*render' "$OPC" env
expect 2 "^opc: env: .*'lst'.*'list'" "$OPC" env lst
expect 2 "^opc: env: .*'xyzzy'.*list, show, check, bench, trace.*render" "$OPC" env xyzzy
expect 2 "^opc: env: .*list.*'opc env show x'" "$OPC" env list x
expect 2 "^opc: env: .*show: .*'opc env list'" "$OPC" env show
expect 2 "^opc: env: .*'b'" "$OPC" env show a b
expect 2 '^opc: env: .* --actionz=two.* --actions' "$OPC" env trace linear1d --actionz=two
expect 2 '^opc: env: -o .*value' "$OPC" env trace linear1d -o
expect 2 '^opc: env: .*--actions FILE' "$OPC" env trace linear1d
expect 2 '^opc: env: .*wide:1: 2 .*action.* 1' "$OPC" env trace linear1d --actions wide
expect 2 '^opc: env: .*wide:1: 2 .*state.* 1' "$OPC" env trace linear1d --actions two --state wide
expect 2 '^opc: env: .*two.* 2 .*state' "$OPC" env trace linear1d --actions two --state two
printf '1\nnan\n' >nan
printf 'a0\n1\n' >header
printf '1\n\n2\n' >gap
printf '1\0002\n' >zero
expect 2 '^opc: env: .*nan:2: nan ' "$OPC" env trace linear1d --actions nan
printf '1%080d\n' 0 >long # cut after 63 digits it would be another number
expect 0 '^0,0,0,1e+80$' "$OPC" env trace linear1d --actions two --state long
expect 2 "^opc: env: .*header:1: 'a0'" "$OPC" env trace linear1d --actions header
expect 2 "^opc: env: .*gap:2: ''" "$OPC" env trace linear1d --actions gap
expect 2 '^opc: env: .*zero.*text' "$OPC" env trace linear1d --actions zero
expect 2 '^opc: env: .*nowhere: ' "$OPC" env trace linear1d --actions nowhere
expect 2 '^opc: env: .*nowhere: ' "$OPC" env trace linear1d --actions two --state nowhere
expect 2 '^opc: train: .*nowhere.yaml: ' "$OPC" train nowhere.yaml --out new
expect 2 '^opc: env: .*nowhere/x.csv: No such file' \
    "$OPC" env trace linear1d --actions two --out nowhere/x.csv
expect 1 '^opc: .*: No space left' sh -c "'$OPC' env trace linear1d --actions two >/dev/full"
echo kept >all.csv
expect 2 '^opc: env: .*/dev/stdout' \
    sh -c "{ '$OPC' env trace linear1d --actions two -o /dev/stdout >>all.csv; } 2>&1"
[ "$(cat all.csv)" = kept ]

# ---- Bullet ------------------------------------------------------------------------------------------
golden=$SRC/tests/golden/bullet
bullet() {
    for task in hopper walker2d_rs; do
        columns=$([ $task = hopper ] && echo 1-3 || echo 1-6)
        cut -d, -f"$columns" "$golden/actions.csv" >actions
        "$OPC" env trace bullet:$task --actions actions --state "$golden/$task/state.csv" >got.csv
        same_trace "$golden/$task/trace.csv" got.csv
    done
    cut -d, -f1 "$golden/actions.csv" >actions
    "$OPC" env trace 'bullet:inverted_pendulum_rs?constants=roboschool' --actions actions \
        --state "$golden/inverted_pendulum_roboschool/state.csv" >got.csv
    same_trace "$golden/inverted_pendulum_roboschool/trace.csv" got.csv

    expect 0 '^bullet:ant_truncated_obs  *27  *8  *1000
^bullet:half_cheetah_rs  *26  *6  *1000
^bullet:inverted_pendulum  *4  *1  *1000' "$OPC" env list
    expect 0 '^  full state   12 
^  engine       Bullet [0-9]
^  model        bullet/hopper.robot, CRC-32C [0-9a-f]\{8\}$' "$OPC" env show bullet:hopper
    expect 0 '^  angles       .*o2, .*o3$
^  arguments    constants=pybullet|roboschool (pybullet): [a-z]' \
        "$OPC" env show bullet:inverted_pendulum_rs
    for task in inverted_pendulum 'inverted_pendulum?angle=sincos' inverted_pendulum_rs \
        'inverted_pendulum_rs?angle=raw' hopper; do
        expect 0 "^bullet:$task .*sound
^  termination  .* [0-9]" "$OPC" env check "bullet:$task" --transitions 500
    done
    expect 0 '^bullet:walker2d  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$' \
        "$OPC" env bench bullet:walker2d --seconds 0.05
    expect 2 "^opc: env: .*'bullet:hoper'.*bullet:hopper" "$OPC" env show bullet:hoper
    expect 2 "^opc: env: .*bullet:ant?angle=raw: .*'angle'" "$OPC" env show 'bullet:ant?angle=raw'
    expect 2 '^opc: env: .*two:1: 1 .*action.* 3' "$OPC" env trace bullet:hopper --actions two

    printf '0,0,0,1e7,0,0,0,0,0,0,0,0\n' >wild
    cut -d, -f1-3 "$golden/actions.csv" >actions
    expect 2 '^opc: env: .*bullet:hopper: .* 4 .* 1e+07.* 1e6 ' \
        "$OPC" env trace bullet:hopper --state wild --actions actions --out no.csv
    [ ! -e no.csv ]

    mkdir -p robots/bullet
    expect 2 '^opc: env: .*bullet:hopper: OPC_MODELS=robots.*robots/bullet/hopper.robot: No such file' \
        env OPC_MODELS=robots "$OPC" env show bullet:hopper
    sed 's/^    com 0 0 1.25$/    com 0 0 high/' "$SRC/models/bullet/hopper.robot" >robots/bullet/hopper.robot
    expect 2 "bullet/hopper.robot:27: 'high'.*com.*3" \
        env OPC_MODELS=robots "$OPC" env show bullet:hopper
}
if without BULLET; then
    expect 1 '^opc: env: .*bullet:hopper.*libbullet-dev' "$OPC" env show bullet:hopper
else
    bullet
fi

if without MUJOCO; then
    expect 1 '^opc: env: .*mujoco:hopper.*libmujoco-dev' "$OPC" env show mujoco:hopper
    expect 1 '^opc: env: .*MuJoCo.*libmujoco-dev' "$OPC" env render pendulum -o x.png
    without BULLET || expect 1 '^opc: env: .*MuJoCo.*libmujoco-dev' \
        "$OPC" env render bullet:hopper -o x.png
    exit 0
fi

# ---- MuJoCo ------------------------------------------------------------------------------------------
golden=$SRC/tests/golden/mujoco
"$OPC" env trace mujoco:hopper --actions "$golden/hopper/actions.csv" --out hopper.csv
same_trace "$golden/hopper/nominal.csv" hopper.csv
"$OPC" env trace mujoco:half_cheetah --actions "$golden/half_cheetah/actions.csv" \
    --state "$golden/half_cheetah/perturbed_state.csv" >cheetah.csv
same_trace "$golden/half_cheetah/perturbed.csv" cheetah.csv
"$OPC" env trace mujoco:humanoid --actions "$golden/humanoid_truncated_obs/actions.csv" |
    cut -d, -f1-48 >humanoid.csv
same_trace "$golden/humanoid_truncated_obs/nominal.csv" humanoid.csv

expect 0 '^mujoco:ant_truncated_obs  *27  *8  *1000
^mujoco:humanoid  *376  *17  *1000
^mujoco:reacher  *11  *2  *50' "$OPC" env list
expect 0 '^  engine       MuJoCo [0-9]
^  model        hopper.xml, CRC-32C [0-9a-f]\{8\}$' "$OPC" env show mujoco:hopper
expect 0 '^mujoco:inverted_double_pendulum .*sound
^  termination  .* [0-9]' \
    "$OPC" env check mujoco:inverted_double_pendulum --transitions 1000
expect 0 '^mujoco:reacher  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$' \
    "$OPC" env bench mujoco:reacher --seconds 0.05
expect 2 "^opc: env: .*'hopper'.*mujoco:hopper" "$OPC" env show hopper
expect 2 '^opc: env: .*two:1: 1 .*action.* 3' "$OPC" env trace mujoco:hopper --actions two

# A state that the engine would silently replace: exit status 5, and no file.
printf '0,1.25,0,0,0,0,0,0,0,0,1e12,0\n' >wild
expect 5 '^opc: env: .*mujoco:hopper: step 1: .*velocity 4' \
    "$OPC" env trace mujoco:hopper --state wild --actions "$golden/hopper/actions.csv" --out no.csv
[ ! -e no.csv ]
[ ! -e MUJOCO_LOG.TXT ]

mkdir models
expect 2 '^opc: env: .*mujoco:hopper: OPC_MODELS=models.*models/hopper.xml: No such file' \
    env OPC_MODELS=models "$OPC" env show mujoco:hopper
echo '<mujoco><worldbody>' >models/hopper.xml
expect 2 'hopper.xml: .*MuJoCo [0-9.]* .*XML parse error' \
    env OPC_MODELS=models "$OPC" env show mujoco:hopper
cp "$SRC/models/walker2d.xml" models/hopper.xml
expect 2 'OPC_MODELS=models .*hopper.xml.* 9 .* 6' env OPC_MODELS=models "$OPC" env show mujoco:hopper
expect 0 '^mujoco:walker2d  *-  *-  *-  .*models/walker2d.xml: No such file' env OPC_MODELS=models "$OPC" env list

# ---- pictures ----------------------------------------------------------------------------------------
need_tool ffmpeg ffprobe
looks_like() { # FILE CODEC,WIDTH,HEIGHT
    is=$(ffprobe -v error -select_streams v -show_entries stream=codec_name,width,height \
        -of csv=p=0 "$1")
    [ "$is" = "$2" ] || {
        echo "WRONG: $1 is $is instead of $2"
        exit 1
    }
}
expect 0 ' hopper.png$' "$OPC" env render mujoco:hopper -o hopper.png --steps 5 --size 96x64
looks_like hopper.png png,96,64
expect 0 'reach.mp4.* 6 ' "$OPC" env render mujoco:reacher -o reach.mp4 --steps 10 \
    --size 64x48 --actions zero
looks_like reach.mp4 h264,64,48
expect 0 'swing.gif.* 7 ' "$OPC" env render pendulum --out swing.gif --steps 6 --size 64x48
looks_like swing.gif gif,64,48
if ! without BULLET; then
    expect 0 ' ant.png$' "$OPC" env render bullet:ant -o ant.png --steps 5 --size 96x64
    looks_like ant.png png,96,64
    expect 0 ' pole.png$' "$OPC" env render 'bullet:inverted_pendulum?angle=sincos' \
        -o pole.png --steps 5 --size 96x64
    [ "$(wc -c <pole.png)" -gt 1000 ]
fi
expect 0 ' recorded.png$' "$OPC" env render mujoco:half_cheetah -o recorded.png --size 64x48 \
    --actions "$golden/half_cheetah/actions.csv" \
    --state "$golden/half_cheetah/perturbed_state.csv"
expect 0 ' mesa.png$' env OPC_GL=osmesa "$OPC" env render mujoco:hopper -o mesa.png \
    --steps 5 --size 96x64
looks_like mesa.png png,96,64

mkdir bin # a PATH without ffmpeg
expect 0 ' 3 .*film-00001.png.*ffmpeg' \
    env PATH="$work/bin" "$OPC" env render cartpole -o film.mp4 --steps 3 --size 64x48
looks_like film-00003.png png,64,48
[ ! -e film.mp4 ]

expect 1 '^opc: env: .*OPC_GL=none.*libegl1' \
    env OPC_GL=none "$OPC" env render mujoco:hopper -o x.png
expect 2 '^opc: env: .*-o film.mp4 .*-o picture.png' "$OPC" env render mujoco:hopper
expect 2 "^opc: env: .*'film'.*.mp4, .gif.*.png" "$OPC" env render mujoco:hopper -o film
expect 2 '^opc: env: --size = big.*WIDTHxHEIGHT' "$OPC" env render mujoco:hopper -o x.png --size big
expect 2 '^opc: env: .*64 x 9 .* 16 .* 4096 ' "$OPC" env render mujoco:hopper -o x.png --size 64x9
expect 2 '^opc: env: .*65 x 48.*even' "$OPC" env render mujoco:hopper -o x.mp4 --size 65x48
expect 2 '^opc: env: .*linear1d.*see' "$OPC" env render linear1d -o x.png
expect 2 '^opc: env: --size = 4294967360x48 .*WIDTHxHEIGHT' \
    "$OPC" env render mujoco:hopper -o x.png --size 4294967360x48
expect 2 '^opc: env: .*nowhere/x.png' \
    "$OPC" env render pendulum -o nowhere/x.png --steps 1 --size 64x48
expect 2 '^opc: env: .*nowhere/x.mp4' \
    "$OPC" env render pendulum -o nowhere/x.mp4 --steps 40 --size 64x48
expect 1 '^opc: env: .*film.xyz.*.gif.*ffmpeg.* 1' \
    "$OPC" env render pendulum -o film.xyz --steps 40 --size 64x48
# Names that are no options and no protocols, whatever they look like; a folder called as a task is; and
# a folder of other models, which need not have our stage.
expect 0 ' -a:b.mp4.* 7 ' "$OPC" env render pendulum --out=-a:b.mp4 --steps 6 --size 64x48
mkdir cartpole others
expect 0 ' c.png$' "$OPC" env render cartpole -o c.png --steps 3 --size 64x48
expect 2 '^opc: env: .*./cartpole.*config.yaml' "$OPC" env render ./cartpole -o c.png
expect 0 ' c.png$' env OPC_MODELS=others "$OPC" env render pendulum -o c.png --steps 3 --size 64x48
"$OPC" env render pendulum -o x.mp4 --steps 1000000 --size 64x48 2>/dev/null &
pid=$!
await $pid x.part.mp4
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 75 ] || wrong "exit status $status instead of 75" kill -INT
[ -z "$(find . -name 'x.*' -o -name '*.part.*')" ]
