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
expect 0 "^linear1d  *1  *1  *60  the paper's 1-D example
^cartpole  *4  *1  *1000  balance" "$OPC" env list
expect 0 '^cartpole?angle=sincos - balance a pole
^  observation  5: cart position
^  angles       cosine o1, sine o2
^  action       1 in \[-1, 1\]: force
^  reward       1 on every step
^  termination  |position| > 2.4 or |angle| > 0.2
^  time limit   after 1000 steps
^  reset        all four uniform
^  engine       none' "$OPC" env show 'cartpole?angle=sincos'
expect 0 '^pendulum is sound
^  played       2000 random steps
^  reward       imagined agrees with step to' "$OPC" env check pendulum --transitions 2000
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

# Wrong input: exit status 2 and a message that helps.
expect 2 "^opc: env: no environment is called 'cartpoel'; did you mean cartpole?\$" \
    "$OPC" env show cartpoel
expect 2 "^opc: env: no environment is called 'tetris'; 'opc env list' shows them\$" \
    "$OPC" env check tetris
expect 2 "^opc: env: cartpole has no argument 'mass'; it knows angle\$" \
    "$OPC" env show 'cartpole?mass=3'
expect 2 '^opc: env: linear1d: A = x is not a number' "$OPC" env show 'linear1d?A=x'
expect 2 '^opc: env: say what to do: list, show, check, bench, trace or render$' "$OPC" env
expect 2 '^opc: env: say what to do: ' "$OPC" env lst
expect 2 "^opc: env: list takes no name; 'opc env show x' explains one\$" "$OPC" env list x
expect 2 "^opc: env: show: name an environment; 'opc env list' shows them\$" "$OPC" env show
expect 2 "^opc: env: 'b' is one word too many\$" "$OPC" env show a b
expect 2 '^opc: env: unknown option --actionz=two; did you mean --actions?$' \
    "$OPC" env trace linear1d --actionz=two
expect 2 '^opc: env: -o needs a value: ' "$OPC" env trace linear1d -o
expect 2 '^opc: env: name the file of actions to play: --actions FILE$' "$OPC" env trace linear1d
expect 2 '^opc: env: wide:1: 2 numbers, but an action has 1$' \
    "$OPC" env trace linear1d --actions wide
expect 2 '^opc: env: wide:1: 2 numbers, but the full state has 1$' \
    "$OPC" env trace linear1d --actions two --state wide
expect 2 '^opc: env: two has 2 lines; a state is one line$' \
    "$OPC" env trace linear1d --actions two --state two
printf '1\nnan\n' >nan
printf 'a0\n1\n' >header
printf '1\n\n2\n' >gap
printf '1\0002\n' >zero
expect 2 '^opc: env: nan:2: nan will not do; every number must be finite$' \
    "$OPC" env trace linear1d --actions nan
printf '1%080d\n' 0 >long # cut after 63 digits it would be another number
expect 0 '^0,0,0,1e+80$' "$OPC" env trace linear1d --actions two --state long
expect 2 "^opc: env: header:1: 'a0' is not a number; write numbers, separated by commas, without a header line\$" \
    "$OPC" env trace linear1d --actions header
expect 2 "^opc: env: gap:2: '' is not a number" "$OPC" env trace linear1d --actions gap
expect 2 '^opc: env: zero is not a text file$' "$OPC" env trace linear1d --actions zero
expect 1 '^opc: env: cannot read nowhere: No such file' \
    "$OPC" env trace linear1d --actions nowhere
expect 1 '^opc: env: cannot write nowhere/x.csv: No such file' \
    "$OPC" env trace linear1d --actions two --out nowhere/x.csv
expect 1 'No space left' sh -c "'$OPC' env trace linear1d --actions two >/dev/full"
echo kept >all.csv
expect 2 'cannot write /dev/stdout: what the program prints goes there' \
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
    expect 0 '^  full state   12 numbers: all positions, then all velocities
^  engine       Bullet [0-9]
^  model        bullet/hopper.robot, CRC-32C [0-9a-f]\{8\}$' "$OPC" env show bullet:hopper
    expect 0 '^  angles       cosine o2, sine o3
^  arguments    constants=pybullet|roboschool (pybullet): numbers of' \
        "$OPC" env show bullet:inverted_pendulum_rs
    for task in inverted_pendulum 'inverted_pendulum?angle=sincos' inverted_pendulum_rs \
        'inverted_pendulum_rs?angle=raw' hopper; do
        expect 0 "^bullet:$task is sound
^  termination  imagined agrees with step" "$OPC" env check "bullet:$task" --transitions 500
    done
    expect 0 '^bullet:walker2d  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$' \
        "$OPC" env bench bullet:walker2d --seconds 0.05
    expect 2 "^opc: env: no environment is called 'bullet:hoper'; did you mean bullet:hopper?\$" \
        "$OPC" env show bullet:hoper
    expect 2 '^opc: env: bullet:ant?angle=raw: there is no angle in its observation' \
        "$OPC" env show 'bullet:ant?angle=raw'
    expect 2 '^opc: env: two:1: 1 numbers, but an action has 3$' \
        "$OPC" env trace bullet:hopper --actions two

    printf '0,0,0,1e7,0,0,0,0,0,0,0,0\n' >wild
    cut -d, -f1-3 "$golden/actions.csv" >actions
    expect 2 '^opc: env: bullet:hopper: start: number 4 of the state is 1e+07; below 1e6 would do$' \
        "$OPC" env trace bullet:hopper --state wild --actions actions --out no.csv
    [ ! -e no.csv ]

    mkdir -p robots/bullet
    expect 1 '^opc: env: bullet:hopper: OPC_MODELS=robots (unset it to use the models compiled in): cannot' \
        env OPC_MODELS=robots "$OPC" env show bullet:hopper
    sed 's/^    com 0 0 1.25$/    com 0 0 high/' "$SRC/models/bullet/hopper.robot" >robots/bullet/hopper.robot
    expect 2 "bullet/hopper.robot:27: 'high' is not a number; com takes 3\$" \
        env OPC_MODELS=robots "$OPC" env show bullet:hopper
}
if without BULLET; then
    expect 1 '^opc: env: bullet:hopper needs Bullet, which this build lacks; install libbullet-dev' \
        "$OPC" env show bullet:hopper
else
    bullet
fi

if without MUJOCO; then
    expect 1 '^opc: env: mujoco:hopper needs MuJoCo, which this build lacks; install libmujoco-dev' \
        "$OPC" env show mujoco:hopper
    expect 1 '^opc: env: pictures need MuJoCo, which this build lacks' \
        "$OPC" env render pendulum -o x.png
    without BULLET || expect 1 '^opc: env: pictures need MuJoCo, which this build lacks' \
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
expect 0 '^mujoco:inverted_double_pendulum is sound
^  termination  imagined agrees with step; exceptions: ' \
    "$OPC" env check mujoco:inverted_double_pendulum --transitions 1000
expect 0 '^mujoco:reacher  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$' \
    "$OPC" env bench mujoco:reacher --seconds 0.05
expect 2 "^opc: env: no environment is called 'hopper'; did you mean mujoco:hopper?\$" \
    "$OPC" env show hopper
expect 2 '^opc: env: two:1: 1 numbers, but an action has 3$' \
    "$OPC" env trace mujoco:hopper --actions two

# A state that the engine would silently replace: exit status 5, and no file.
printf '0,1.25,0,0,0,0,0,0,0,0,1e12,0\n' >wild
expect 5 '^opc: env: mujoco:hopper: step 1: the simulation failed: .* velocity 4$' \
    "$OPC" env trace mujoco:hopper --state wild --actions "$golden/hopper/actions.csv" --out no.csv
[ ! -e no.csv ]
[ ! -e MUJOCO_LOG.TXT ]

mkdir models
expect 1 '^opc: env: mujoco:hopper: OPC_MODELS=models (unset it to use the models compiled in): cannot' \
    env OPC_MODELS=models "$OPC" env show mujoco:hopper
echo '<mujoco><worldbody>' >models/hopper.xml
expect 2 'hopper.xml: not a model MuJoCo [0-9.]* can use: XML parse error' \
    env OPC_MODELS=models "$OPC" env show mujoco:hopper
cp "$SRC/models/walker2d.xml" models/hopper.xml
expect 2 'hopper.xml describes 9 position coordinates, but the task is made for 6$' \
    env OPC_MODELS=models "$OPC" env show mujoco:hopper
expect 0 '^mujoco:walker2d  *-  *-  *-  cannot be opened: ' env OPC_MODELS=models "$OPC" env list

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
expect 0 '^wrote hopper.png$' "$OPC" env render mujoco:hopper -o hopper.png --steps 5 --size 96x64
looks_like hopper.png png,96,64
expect 0 '^wrote reach.mp4: 6 pictures$' "$OPC" env render mujoco:reacher -o reach.mp4 --steps 10 \
    --size 64x48 --actions zero
looks_like reach.mp4 h264,64,48
expect 0 '^wrote swing.gif: ' "$OPC" env render pendulum --out swing.gif --steps 6 --size 64x48
looks_like swing.gif gif,64,48
if ! without BULLET; then
    expect 0 '^wrote ant.png$' "$OPC" env render bullet:ant -o ant.png --steps 5 --size 96x64
    looks_like ant.png png,96,64
    expect 0 '^wrote pole.png$' "$OPC" env render 'bullet:inverted_pendulum?angle=sincos' \
        -o pole.png --steps 5 --size 96x64
    [ "$(wc -c <pole.png)" -gt 1000 ]
fi
expect 0 '^wrote recorded.png$' "$OPC" env render mujoco:half_cheetah -o recorded.png --size 64x48 \
    --actions "$golden/half_cheetah/actions.csv" \
    --state "$golden/half_cheetah/perturbed_state.csv"
expect 0 '^wrote mesa.png$' env OPC_GL=osmesa "$OPC" env render mujoco:hopper -o mesa.png \
    --steps 5 --size 96x64
looks_like mesa.png png,96,64

mkdir bin # a PATH without ffmpeg
expect 0 '^wrote 3 pictures film-00001.png ...; install ffmpeg to get a film$' \
    env PATH="$work/bin" "$OPC" env render cartpole -o film.mp4 --steps 3 --size 64x48
looks_like film-00003.png png,64,48
[ ! -e film.mp4 ]

expect 1 '^opc: env: found no way to draw without a screen: .*; install libegl1' \
    env OPC_GL=none "$OPC" env render mujoco:hopper -o x.png
expect 2 '^opc: env: name the film or picture: -o film.mp4 or -o picture.png$' \
    "$OPC" env render mujoco:hopper
expect 2 "^opc: env: 'film': end the name in .mp4, .gif or .png\$" \
    "$OPC" env render mujoco:hopper -o film
expect 2 '^opc: env: --size = big is no size; write WIDTHxHEIGHT, as in 640x480$' \
    "$OPC" env render mujoco:hopper -o x.png --size big
expect 2 '^opc: env: a picture of 64 x 9 pixels; 16 to 4096 each way$' \
    "$OPC" env render mujoco:hopper -o x.png --size 64x9
expect 2 '^opc: env: 65 x 48: the sides of a film must be even numbers$' \
    "$OPC" env render mujoco:hopper -o x.mp4 --size 65x48
expect 2 '^opc: env: linear1d has nothing to see$' "$OPC" env render linear1d -o x.png
expect 2 '^opc: env: --size = 4294967360x48 is no size' \
    "$OPC" env render mujoco:hopper -o x.png --size 4294967360x48
expect 1 '^opc: env: cannot write nowhere/x.png: there is no folder nowhere$' \
    "$OPC" env render pendulum -o nowhere/x.png --steps 1 --size 64x48
expect 1 '^opc: env: cannot write nowhere/x.mp4: there is no folder nowhere$' \
    "$OPC" env render pendulum -o nowhere/x.mp4 --steps 40 --size 64x48
expect 1 '^opc: env: cannot make film.xyz, see above (.mp4 and .gif do in most places): ffmpeg ended early' \
    "$OPC" env render pendulum -o film.xyz --steps 40 --size 64x48
# Names that are no options and no protocols, whatever they look like; a folder called as a task is; and
# a folder of other models, which need not have our stage.
expect 0 '^wrote -a:b.mp4: ' "$OPC" env render pendulum --out=-a:b.mp4 --steps 6 --size 64x48
mkdir cartpole others
expect 0 '^wrote c.png$' "$OPC" env render cartpole -o c.png --steps 3 --size 64x48
expect 2 '^opc: env: .*there is no run in ./cartpole' "$OPC" env render ./cartpole -o c.png
expect 0 '^wrote c.png$' env OPC_MODELS=others "$OPC" env render pendulum -o c.png --steps 3 --size 64x48
"$OPC" env render pendulum -o x.mp4 --steps 1000000 --size 64x48 2>/dev/null &
pid=$!
await $pid x.part.mp4
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 75 ] || wrong "exit status $status instead of 75" kill -INT
[ -z "$(find . -name 'x.*' -o -name '*.part.*')" ]
