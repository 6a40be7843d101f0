#!/bin/sh
# SPDX-License-Identifier: MIT
# opc plot: groups of runs, the three formats, the same bytes each time, a published curve beside runs,
# and wrong input.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml
for seed in 1 2; do
    for transition in corrected learned; do
        "$OPC" train "$smoke" train.seed=$seed opc.transition=$transition train.epochs=2 --quiet \
            --out runs/$transition-$seed
    done
done
"$OPC" train "$smoke" env.name=pendulum train.epochs=1 --quiet --out runs/other

if without CAIRO; then
    # The numbers are there without cairo, too.
    expect 1 '^cartpole  *OPC  *2 
curves.csv$
^opc: plot: .*curves.svg.*libcairo2-dev' "$OPC" plot runs
    [ -s curves.csv ]
    exit 0
fi

for format in svg pdf png; do
    expect 0 '^cartpole  *OPC  *2 
^cartpole  *MBPO([*])  *2 
^pendulum  *OPC  *1 ' "$OPC" plot runs -o one.$format
    "$OPC" plot runs -o two.$format >/dev/null
    cmp one.$format two.$format
done
head -c 200 one.svg | grep -q '<svg'
head -c 4 one.pdf | grep -q '%PDF'
head -c 8 one.png | od -An -tx1 | grep -q '89 50 4e 47'

# The numbers of the picture are beside it, and a file of somebody else is left alone.
grep -q '^task,kind,runs,env_steps,median,low,high$' one.csv || wrong "other columns" cat one.csv
[ "$(grep -c '^cartpole,OPC,2,' one.csv)" = 2 ] || wrong "not its two points" cat one.csv
echo mine >mine.csv
expect 0 'mine.svg and mine-curves.csv$' "$OPC" plot runs -o mine.svg
[ "$(cat mine.csv)" = mine ]
echo mine >mine-curves.csv
expect 2 '^opc: plot: mine-curves.csv .*-o' "$OPC" plot runs -o mine.svg
# Lines get other names, and other bands around them.
expect 0 '^cartpole  *our method  *2 
^cartpole  *MBPO([*])  *2 ' "$OPC" plot runs -o named.svg --label 'OPC=our method'
grep -q '^cartpole,our method,2,' named.csv
expect 2 "^opc: plot: --label: .*'OPD'.*'OPC', 'MBPO([*])'" "$OPC" plot runs --label OPD=ours
expect 2 "^opc: plot: --label: .*'OPC'" "$OPC" plot runs --label 'MBPO(*)=OPC'
expect 2 '^opc: plot: --label ours .*OLD=NEW' "$OPC" plot runs --label ours
band() { # BAND: the last point of OPC: middle, low, high
    "$OPC" plot runs/corrected-1 runs/corrected-2 -o band.svg --band "$1" >/dev/null
    sed -n '$s/^[^,]*,[^,]*,[^,]*,[^,]*,//p' band.csv | tr , ' '
}
a=$("$OPC" plot runs/corrected-1 -o band.svg >/dev/null && sed -n '$s/^.*,200,\([^,]*\),.*/\1/p' band.csv)
b=$("$OPC" plot runs/corrected-2 -o band.svg >/dev/null && sed -n '$s/^.*,200,\([^,]*\),.*/\1/p' band.csv)
for band in quartiles interval std range none; do
    echo "$band $a $b $(band $band)"
done | awk '
    { low = $2 < $3 ? $2 : $3; high = $2 < $3 ? $3 : $2; mean = (low + high) / 2; half = (high - low) / 2
      by = $1 == "quartiles" ? half / 2 : $1 == "std" ? half * sqrt(2) : $1 == "none" ? 0 : half
      wrong = ($4 - mean) ^ 2 + ($5 - mean + by) ^ 2 + ($6 - mean - by) ^ 2
      if (NF != 6 || high == low || wrong > 1e-9) { print "WRONG: band", $0; bad = 1 } }
    END { exit bad || NR != 5 }'
# A method has its colour in every picture, whatever is drawn beside it: OPC is blue (0, 114, 178).
blue() {
    grep -q 'rgb(0%, *44.7%, *69.8%)' "$1" || wrong "OPC is not blue" ls "$1"
}
blue named.svg
"$OPC" plot runs/corrected-1 -o alone.svg >/dev/null
blue alone.svg
"$OPC" plot runs/learned-1 -o other.svg >/dev/null
! grep -q 'rgb(0%, *44.7%, *69.8%)' other.svg || wrong "MBPO has its blue" ls other.svg

# A run that goes on is drawn as far as it is; a line that is being written is left out.
cp -r runs/corrected-1 half
printf '3,300,' >>half/metrics.csv
expect 2 '^opc: plot: .*smooth = 4' "$OPC" plot half --smooth 4
expect 0 '^cartpole  *OPC  *1 ' "$OPC" plot half --of train_return --over total_steps --smooth 3 \
    --title 'half a run'

# However often it is named, a run is one.
expect 0 '^cartpole  *OPC  *1 ' "$OPC" plot half ./half "$work/half/"
# The logs of a sweep lie beside its runs, and 'sweep/*' names them, too.
touch half.log
expect 0 '^opc: warning: 1 .*files
^cartpole  *OPC  *1 ' "$OPC" plot half half.log
expect 2 '^opc: plot: .*half.log' "$OPC" plot half.log
# One that has got nowhere is told and does not count; if there is no other, that is an error.
cp -r half none
sed -i 1q none/metrics.csv
expect 2 '^opc: plot: .*none.*eval_return.*env_steps' "$OPC" plot none
expect 0 '^opc: warning: .*none.*eval_return
^cartpole  *OPC  *1 ' "$OPC" plot half none
cp -r none none-2
sed -i 's/seed: 1/seed: 2/' none-2/config.yaml
expect 0 '^cartpole  *OPC  *1 ' "$OPC" plot half none none-2
expect 2 '^opc: plot: .*directories' "$OPC" plot
expect 2 '^opc: plot: .*nowhere' "$OPC" plot nowhere
mkdir empty
expect 2 '^opc: plot: .*empty.*config.yaml' "$OPC" plot empty
expect 2 "^opc: plot: .*runs/.*/metrics.csv.*'eval_retrn'.*'eval_return'" "$OPC" plot runs --of eval_retrn
expect 2 '^opc: plot: .*x.gif.*.svg, .pdf.*.png' "$OPC" plot runs -o x.gif
expect 2 '^opc: plot: .*nowhere/x.svg: No such file' "$OPC" plot runs -o nowhere/x.svg

# ---- tables of a merge -------------------------------------------------------------------------
# The directory that opc sweep merge wrote is drawn like its runs, to the byte of the numbers, also when
# nothing is left but its tables.
cat >two.yaml <<END
include: $smoke
vary: {opc.transition: [corrected, learned], train.seed: 1..2}
train.epochs: 2
END
expect 0 '' "$OPC" sweep two.yaml run --out swept --jobs 1 --threads 1
expect 0 '' "$OPC" sweep two.yaml merge --out swept
mkdir tables
cp swept/merged.csv swept/runs.csv swept/timing.csv tables
for over in env_steps total_steps minutes; do
    "$OPC" plot swept -o swept.svg --over $over --band std >/dev/null
    expect 0 '^cartpole  *OPC  *2 
^cartpole  *MBPO([*])  *2 ' "$OPC" plot tables -o tables.svg --over $over --band std
    cmp swept.csv tables.csv
    cmp swept.svg tables.svg
done
# A run has taken as long as runs.csv says; without timing.csv nobody knows.
"$OPC" plot tables --over minutes --only opc.transition=corrected --only train.seed=2 -o tables.svg >/dev/null
[ "$(tail -n 1 tables.csv | cut -d, -f4)" = "$(awk -F, '$1 == "corrected" && $2 == 2 { print $10 }' swept/runs.csv)" ] ||
    wrong "other minutes" cat tables.csv swept/runs.csv
cp -r swept untimed
rm untimed/corrected_s1/timing.csv
expect 0 '^opc: warning: untimed/corrected_s1: no timing.csv .*left out$
^cartpole  *OPC  *1 
^cartpole  *MBPO([*])  *2 ' "$OPC" plot untimed --over minutes -o untimed.svg
expect 2 '^opc: plot: untimed/corrected_s1: no timing.csv .*merge again' "$OPC" plot untimed/corrected_s1 --over minutes
expect 0 '^cartpole  *OPC  *2 ' "$OPC" plot tables tables/ "$work/tables" -o tables.svg
# Beside other runs a line says which tables it is of: what does not vary is not in them.
expect 0 '^cartpole  *OPC, tables  *2 
^cartpole  *OPC  *1 ' "$OPC" plot tables runs/corrected-1 -o tables.svg
expect 2 "tables/merged.csv has no column 'eval_retrn'; it has epoch, env_steps, total_steps, eval_return, " \
    "$OPC" plot tables --of eval_retrn
# ---- some of the runs --------------------------------------------------------------------------
expect 0 '^pendulum  *OPC  *1 ' "$OPC" plot runs --only 'env.name=pend*' -o only.svg
! grep -q cartpole only.csv || wrong "another task" cat only.csv
# All patterns have to be met, by run directories and by tables; a value may be written as in a file, and a
# setting have its other name.
for dir in swept tables; do
    expect 0 '^cartpole  *MBPO([*])  *1 ' "$OPC" plot $dir --only opc.transition=learned --only train.seed=2 \
        -o only.svg
    ! grep -q OPC only.csv || wrong "another method" cat only.csv
    cp only.svg $dir-only.svg
done
cmp swept-only.svg tables-only.svg
expect 0 '^cartpole  *OPC  *2 ' "$OPC" plot swept --only 'opc.rollout_length=[5]' --only train.epochs=2e0 \
    --only 'env.id=cart?ole'
# A line is not named by what all drawn runs have.
window=$SRC/results/reference-window
expect 0 '^bullet:hopper  *OPC  *3 
^bullet:hopper  *MBPO([*])  *3 ' "$OPC" plot "$window" --only opc.reference_epochs=1 --only data.retain=50 -o only.svg
[ "$(cut -d, -f2 only.csv | sort -u | tr '\n' ' ')" = 'MBPO(*) OPC kind ' ] || wrong "other lines" cat only.csv
# What nothing matches is told with a value that there is, of the run that comes nearest.
expect 2 "^opc: plot: no run has env.name=hopper; env.name is 'cartpole' in runs/corrected-1$" \
    "$OPC" plot runs --only env.name=hopper
expect 2 "no run has opc.transition=learned and train.seed=7; train.seed is '1' in tables/merged.csv: learned, 1$" \
    "$OPC" plot tables --only opc.transition=learned --only train.seed=7
expect 2 "^opc: plot: --only: opc has no setting 'transitoin'; .*'transition'" "$OPC" plot runs --only opc.transitoin=x
expect 2 "^opc: plot: --only: .*'tsak'" "$OPC" plot runs --only tsak=x
expect 2 "^opc: plot: --only: 'pendulum' is not KEY=PATTERN" "$OPC" plot runs --only pendulum
# The default of what tables do not tell is not taken for theirs.
expect 0 '^opc: warning: tables/merged.csv does not tell data.retain.* left out
^cartpole  *OPC  *1 ' "$OPC" plot tables runs/corrected-1 --only data.retain=2
for value in 50 '*'; do
    expect 2 'no run has data.retain=.*; tables/merged.csv does not tell data.retain$' "$OPC" plot tables \
        --only "data.retain=$value"
done
# What is committed can be drawn.
for merged in "$SRC"/results/*/merged.csv "$SRC"/results/*/*/merged.csv; do
    expect 0 '' "$OPC" plot "${merged%/*}" -o committed.svg
done
expect 0 '^mujoco:hopper  *SAC  *2  *1412 ' "$OPC" plot "$SRC/results/learning" \
    --only opc.past_ratio=0 -o committed.svg

# ---- beside a published curve --------------------------------------------------------------------
# Two runs of 211 and 222 steps, the random ones included, beside a line from 0 +- 1 to 400 +- 41.
cat >curves.csv <<END
source,env,method,env_steps,mean,std,seeds
them/there,CartPole,"MBPO, theirs",0,0,1,5
them/there,CartPole,"MBPO, theirs",400,400,41,5
them/there,Hopper,SAC,5000,1,1,8
END
for seed in 1 2; do
    cp -r runs/corrected-$seed beside-$seed
    {
        echo epoch,env_steps,total_steps,eval_return
        echo 1,100,1$seed$seed,10$seed
        echo 2,200,2$seed$seed,20$seed
    } >beside-$seed/metrics.csv
done
set -- "$OPC" plot beside-1 beside-2 --published curves.csv --published-task CartPole
rm -f beside.csv
# At 211 steps run 1 has 201 and run 2 is 89 of 100 on its way from 102 to 202: 191 and 196 on average.
# Published: 211 +- 1 + 40 * 211 / 400 = 22.1.
expect 0 '^cartpole  *OPC  *2 
^task      method  total_steps  runs    mean     min     max  published_mean  published_std  published_seeds  deviations$
^cartpole  OPC             211     2  196.00  191.00  201.00          211.00          22.10                5       -0.68$
-> beside.csv$' "$@" --published-method 'MBPO, theirs' --table beside.csv -o beside.svg
cat >want.csv <<END
task,method,total_steps,runs,mean,min,max,published_mean,published_std,published_seeds,deviations
cartpole,OPC,211,2,196.00,191.00,201.00,211.00,22.10,5,-0.68
END
cmp want.csv beside.csv
# In grey and dashed, and before the blue of OPC, which then covers it.
grep -n -o 'stroke:rgb(55%,55%,55%).*dasharray\|fill:rgb(55%,55%,55%)\|[a-z]*:rgb(0%,44.7%,69.8%)' beside.svg |
    head -n 4 | sed 's/^[0-9]*:\([a-z]*\):rgb(\([0-9]*\).*/\1 \2/' >colours
printf 'fill 55\nstroke 55\nfill 0\nstroke 0\n' | cmp - colours

# Several methods: the first looks the same, the second has another grey; the table is about the first.
cat >>curves.csv <<END
us/here,CartPole,SAC,0,0,1,1
us/here,CartPole,SAC,400,40,1,1
END
expect 0 '^cartpole  *OPC  *211 .* 211.00  *22.10  *5  *-0.68$' "$@" --published-method 'MBPO, theirs' --published-method SAC \
    --table both.csv -o two.svg
cmp want.csv both.csv
grep -q 'stroke:rgb(55%,55%,55%).*dasharray' two.svg || wrong "no first grey" ls two.svg
grep -q 'stroke:rgb(29%,29%,29%).*dasharray' two.svg || wrong "no second grey" ls two.svg
! grep -q 'rgb(29%,29%,29%)' beside.svg || wrong "a second grey for one curve" ls beside.svg
expect 2 "the published method 'SAC' is named twice" "$@" --published-method SAC --published-method SAC
sed -i '/^us/d' curves.csv

expect 2 "curves.csv has no task 'Cartpole'; it has CartPole, Hopper$" "$OPC" plot beside-1 \
    --published curves.csv --published-task Cartpole --published-method SAC
expect 2 "curves.csv has no method 'SAC' for CartPole; it has MBPO, theirs$" "$@" --published-method SAC
expect 2 '--published curves.csv has many curves; choose with --published-task' "$@"
expect 2 '--published curves.csv has many curves' "$OPC" plot beside-1 --published curves.csv \
    --published-method SAC
for lonely in published-task published-method table; do
    expect 2 "--$lonely is about a published curve; name its file with --published" "$OPC" plot beside-1 \
        --$lonely x
done
expect 2 '--over env_steps: published curves are over total_steps; drop --over or --published' "$@" \
    --published-method 'MBPO, theirs' --over env_steps
expect 2 '--of q: published curves are of eval_return; drop --of or --published' "$@" \
    --published-method 'MBPO, theirs' --of q
expect 2 'a published curve is of one task, but these runs are of 2 (cartpole, pendulum)' "$OPC" plot runs \
    --published curves.csv --published-task CartPole --published-method 'MBPO, theirs'
expect 2 'the table compares one line with the published curve, .*(OPC on cartpole, MBPO([*]) on cartpole' \
    "$@" runs/learned-1 --published-method 'MBPO, theirs' --table none.csv
[ ! -e none.csv ] || wrong "a refused table is written" "$@"
# A table that is there is updated, and a file of another kind is left alone.
expect 0 '^cartpole  *one run' "$OPC" plot beside-1 --label 'OPC=one run' --published curves.csv \
    --published-task CartPole --published-method 'MBPO, theirs' --table both.csv -o third.svg
head -n 2 both.csv | cmp want.csv -
[ "$(wc -l <both.csv)" -gt 2 ] || wrong "no new rows" cat both.csv
cp curves.csv other.csv
expect 2 '^opc: plot: --table other.csv: the file is there and is not a table of this option' \
    "$@" --published-method 'MBPO, theirs' --table other.csv
cmp curves.csv other.csv
# Those we compare with can be read.
expect 2 "'MBPO (official curves)' begins after 5000 steps and the runs end after 222" "$OPC" plot beside-1 \
    beside-2 --published "$SRC/results/published/curves.csv" --published-task Hopper \
    --published-method 'MBPO (official curves)'
