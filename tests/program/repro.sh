#!/bin/sh
# SPDX-License-Identifier: MIT
# opc repro from outside: runs and exhibit from one file, runs shared by two, nothing done twice,
# incomplete figures that say so, failures that do not stop the others, and wrong input.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
mkdir files
cat >files/fig2.yaml <<END
title: Return over steps
include: $SRC/experiments/examples/smoke.yaml
train: {epochs: 6, random_steps: 60}
vary: {opc.transition: [corrected, replay], train.seed: 1..2}
figure: {panel: env.name, line: opc.transition, curve: {smooth: 1}}
tiers:
  smoke: {train.epochs: 2}
  small: {train.epochs: 3}
  endless: {train.epochs: 1000000}
END
cat >files/fig10.yaml <<END
title: The same runs again
runs: fig2
figure: {panel: opc.transition, line: env.name}
END
echo 'train.epochs: 3' >files/common.yaml # makes no exhibit
repro() {
    "$OPC" repro "$@" --experiments files
}

# ---- from nothing --------------------------------------------------------------------------------
expect 0 '^experiment .* core-hours  *title$
^fig2  *-, 0 of 4 runs  *0.01  *Return over steps$
^fig10  *-, 0 of 4 runs  *0.01  *The same runs again$
^tier small: about 1 core-hours ' repro list
! grep -q common "$work/said" || wrong "lists what makes no exhibit" repro list
[ ! -e repro-small ] || wrong "a list leaves a directory" repro list
expect 0 '^fig2: Return over steps; 4 .* 0 
replay_s2: .*([0-9] of 4 
^fig10: The same runs again; 4 .* 4 
^fig2  *made  *[0-9].*  0, 0, 0$
^fig10  *made ' repro all --tier smoke
[ "$(sed -n 's/^fig\([0-9]*\) .*/\1/p' "$work/said" | tr '\n' ' ')" = '2 10 2 10 ' ] ||
    wrong "not in natural order" repro all
for name in fig2 fig10; do
    for end in json csv; do
        [ -s repro-smoke/$name.$end ] || wrong "$name.$end is missing" repro all
    done
    grep -q '"caption": "[^"]* smoke; 4 of 4 [^"]* 1 to 2; 2 [^"]* 100 [^"]*; opc [0-9.]*\( ([0-9a-f]*\(-dirty\)*)\)*\."' \
        repro-smoke/$name.json || wrong "the caption of $name" cat repro-smoke/$name.json
    grep -q "\"command\": \"opc repro files/$name.yaml --tier smoke\"" repro-smoke/$name.json ||
        wrong "the command of $name does not find it" cat repro-smoke/$name.json
done
if without CAIRO; then # said before anything is computed
    expect 0 '^opc: warning: .*cairo.*libcairo2-dev
^fig2 -> repro-smoke/fig2.json and its tables$' repro fig2 --tier smoke --redraw
    [ "$(sed -n 1p "$work/said" | cut -c1-12)" = 'opc: warning' ] || wrong "said late" cat "$work/said"
else
    for end in svg pdf png; do
        [ -s repro-smoke/fig2.$end ] || wrong "fig2.$end is missing" repro all
    done
fi
[ ! -e repro-smoke/runs/fig10 ] || wrong "shared runs are run twice" repro all

# ---- runs of the same settings in two figures ----------------------------------------------------
mkdir more
cat >more/one.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
train: {epochs: 2, random_steps: 60}
opc.horizon: 10
vary: {opc.transition: [corrected, replay], train.seed: 1..2}
figure: {panel: env.name, line: opc.transition}
END
cat >more/two.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
train: {epochs: 2, random_steps: 60}
opc.transition: corrected
vary: {opc.horizon: [1, 10], train.seed: 1..2}
figure:
  line: opc.horizon
  claims: [{text: "Ten are like one.", alike: ["[10]", "[1]"], margin: 0.5}]
END
expect 0 '^tier small: .* core-hours' "$OPC" repro list --experiments more
expect 0 '^two: 4 runs, 2 of them done$
^  undecided  *Ten are like one' "$OPC" repro one two --experiments more --out both
[ "$(find both/runs/two -type l | wc -l)" = 2 ] || wrong "no run is shared" find both/runs
cp -r both/runs/two/*10*_s1/metrics.csv same.csv
cmp same.csv both/runs/one/corrected_s1/metrics.csv || wrong "another run" find both/runs
rm -r both/runs/one # what a link leads to is gone: it is made again
expect 0 '^two: .*2 of them done$' "$OPC" repro two --experiments more --out both --redraw
cmp same.csv both/runs/two/*10*_s1/metrics.csv || wrong "not made again" find both/runs

# ---- runs of which only the tables were kept --------------------------------------------------------
mkdir -p kept/two
expect 0 '^4 of 4 ' "$OPC" sweep more/two.yaml merge --out both/runs/two
cp both/runs/two/merged.csv both/runs/two/runs.csv both/runs/two/timing.csv kept/two
expect 0 '^two: 4 runs, 4 of them done, 4 of these from tables$
^two -> again/two.json' "$OPC" repro two --experiments more --out again --add kept --draw-only
for file in two.json two.csv two-runs.csv two-claims.csv; do
    cmp both/$file again/$file || wrong "another $file" find again
done
same=both/runs/two/horizon-10_s1
for file in metrics.csv timing.csv; do
    cmp $same/$file "again/${same#both/}/$file" || wrong "other rows" find again
done
expect 0 '^4 of 4 ' "$OPC" sweep more/two.yaml merge --out again/runs/two
for file in merged.csv runs.csv timing.csv; do
    cmp both/runs/two/$file again/runs/two/$file || wrong "other tables" find again
done
# A probe looks into models, which tables do not have: its runs are made, and those of the curves are no such runs.
mkdir probes
{ sed '/^figure:/,$d' more/two.yaml; echo 'probe: {analysis: probe_states, samples: 2, horizon: 2, references: 1}'; } \
    >probes/two.yaml
expect 2 'warning: two looks into the models of its runs, which the tables in kept do not have
none of the 4 runs is complete' "$OPC" repro two --experiments probes --out models --add kept --draw-only
# Older tables have no timing.csv.
mkdir -p untimed/two
cp kept/two/merged.csv kept/two/runs.csv untimed/two
expect 0 '^two: 4 runs, 4 of them done, 4 of these from tables$' "$OPC" repro two --experiments more --out eighth \
    --add untimed --draw-only
if [ ! -e "eighth/${same#both/}/metrics.csv" ] || [ -e "eighth/${same#both/}/timing.csv" ]; then
    wrong "time out of nothing" find eighth
fi
# Another experiment finds its own among them, by their settings: in the tables, or as any run is borrowed.
expect 0 '^one: 4 runs, 2 of them done, 2 of these from tables$' "$OPC" repro one --experiments more --out fifth \
    --add kept --draw-only
expect 0 '^one: 4 runs, 2 of them done, 2 of these from tables$' "$OPC" repro one --experiments more --out sixth \
    --add kept/two --draw-only
expect 0 '^2 runs are complete in what was added, 2 are left$' "$OPC" sweep more/one.yaml status --out seventh \
    --add kept/two
expect 0 '^one: 4 runs, 2 of them done$' "$OPC" repro one --experiments more --out again
cmp both/two.json again/two.json
expect 2 '^opc: evaluate: .* no policy: it was restored from a table$' "$OPC" evaluate \
    "again/${same#both/}"
# twice, because the first leaves a folder for checkpoints
for _ in 1 2; do
    expect 3 ' no checkpoint to go on from; ' "$OPC" resume "again/${same#both/}"
    expect 2 '^opc: resume: .* no checkpoint to go on from; ' "$OPC" resume "again/${same#both/}" \
        train.epochs=9
done
[ -e "again/${same#both/}/result.json" ] || wrong "its result is gone" ls "again/${same#both/}"
expect 0 '^two  *made, 4 of 4 runs ' "$OPC" repro list --experiments more --out again
# A part of them: the others are missing, and nothing is run.
{ head -n 1 kept/two/merged.csv; grep '^\[1\],2,' kept/two/merged.csv; } >part.csv
mkdir -p part/two
mv part.csv part/two/merged.csv
expect 0 '^two: 4 runs, 1 of them done, 1 of these from tables$' "$OPC" repro two --experiments more --out third \
    --add part --draw-only
grep -q 'INCOMPLETE: 1 of 4 runs' third/two.json || wrong "the caption" cat third/two.json
expect 2 'none of the 4 runs is complete' "$OPC" repro two --experiments more --out fourth --draw-only
expect 2 'no directory nowhere' "$OPC" repro two --experiments more --add nowhere
expect 2 "'list' shows what is in OUT" "$OPC" repro list --add kept

# What made the runs is in the caption: several commits, another version, and tables that tell neither.
made_by() { # OUT VERSION,REVISION of each run
    out=$1
    shift
    awk -v OFS=, -F, -v list="$*" 'NR > 1 { split(list, made, " "); split(made[NR - 1], one, ",")
        $(NF - 2) = one[1]; $(NF - 1) = one[2] } { print }' kept/two/runs.csv >made.csv
    cp made.csv kept/two/runs.csv
    expect 0 '^two -> ' "$OPC" repro two --experiments more --out "$out" --add kept --draw-only
}
version=$("$OPC" --version | sed 's/opc \([0-9.]*\).*/\1/')
made_by ninth "$version,0123456789ab" "$version,ba9876543210-dirty" "$version,0123456789ab" "$version,ffffffffffff"
grep -q "; opc $version (3 revisions: 0123456, ba98765-dirty, \.\.\.)\.\"" ninth/two.json ||
    wrong "the caption" cat ninth/two.json
expect 0 "^made by opc $version (3 revisions: 0123456, ba98765-dirty, \.\.\.); this is opc $version" \
    "$OPC" sweep more/two.yaml status --out ninth/runs/two
made_by tenth 0.0.7,0123456789ab , "$version," ,
grep -q "; opc $version (runs: 0.0.7 (0123456), unknown, $version)\.\"" tenth/two.json ||
    wrong "the caption" cat tenth/two.json
expect 0 '^made by opc 0.0.7 (0123456), unknown, .*; this is ' "$OPC" sweep more/two.yaml merge --out tenth/runs/two
expect 0 '^4 runs are complete in what was added, 0 are left$
^made by opc 0.0.7 (0123456), unknown, ' "$OPC" sweep more/two.yaml status --out seventh --add kept/two

# ---- what is up to date --------------------------------------------------------------------------
cp -p repro-smoke/fig2.json before
expect 0 '^fig2 .*up to date
^fig10  *up to date ' repro all --tier smoke
[ -z "$(find repro-smoke/fig2.json -newer before)" ] || wrong "made again" repro all
expect 0 '^fig2  *made, 4 of 4 runs ' repro list --tier smoke
expect 0 '^fig2 -> repro-smoke/fig2.json' repro fig2 --tier smoke --redraw
[ -n "$(find repro-smoke/fig2.json -newer before)" ] || wrong "not made again" repro --redraw
cmp repro-smoke/fig2.json before
# A run that is newer, or a file that has changed, is a reason.
touch repro-smoke/runs/fig2/replay_s1/result.json
expect 0 '^fig10  *made, out of date, ' repro list --tier smoke
expect 0 '^fig2 -> ' repro fig2 --tier smoke
sed -i 's/smooth: 1/smooth: 3/' files/fig2.yaml
expect 0 '^fig2 -> ' repro files/fig2.yaml --tier smoke
expect 0 '^fig2 .*up to date' repro fig2 --tier smoke
# So is what it says of itself: a run that was missing may have been made elsewhere, before it was drawn.
sed -i 's/"missing": 0,/"missing": 1,/' repro-smoke/fig2.json
expect 0 '^fig2  *made, out of date, 4 of 4 runs ' repro list --tier smoke
expect 0 '^fig2 -> ' repro fig2 --tier smoke
# Other settings are foreign, and nothing is overwritten.
sed -i 's/smoke: {train.epochs: 2}/smoke: {train.epochs: 2, opc.horizon: 2}/' files/fig2.yaml
expect 2 '^opc: repro: .*fig2/corrected_s1 .*foreign: opc.horizon.*\[5\].*\[2\] ' repro fig2 \
    --tier smoke
sed -i 's/, opc.horizon: 2//' files/fig2.yaml

# ---- stopped: what is complete is drawn and says so; the same command goes on ------------------------
cat >files/fig3.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
train: {epochs: 2, random_steps: 60}
opc.transition: replay
vary: {train.seed: 1..2}
when: [{match: {train.seed: 2}, set: {train.epochs: 1000000}}]
figure: {panel: env.name}
tiers: {small: {}, smoke: {sac.batch_size: 32}}
END
"$OPC" repro fig3 --experiments files --jobs 2 >stop.said 2>&1 &
pid=$!
until [ -e repro-small/runs/fig3/s1/result.json ] && [ -e repro-small/runs/fig3/s2/checkpoints/a.opc ]
do sleep 0.02; done
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 75 ] || wrong "exit status $status instead of 75" cat stop.said
grep -q '"caption": "[^"]* small; INCOMPLETE: 1 of 2 [^"]* 1 (of 1 to 2); 2 epochs x 100 [^"]*; opc ' \
    repro-small/fig3.json || wrong "the caption" cat repro-small/fig3.json
expect 0 '^fig3  *made, out of date, 1 of 2 runs  *[0-9.]*  *$' repro list
# Nothing complete, nothing drawn.
"$OPC" repro fig2 --tier endless --experiments files -o endless >stop.said 2>&1 &
pid=$!
await $pid endless/runs/fig2/corrected_s1/checkpoints/a.opc
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 75 ] || wrong "exit status $status instead of 75" cat stop.said
[ ! -e endless/fig2.json ] || wrong "a figure of nothing" cat stop.said
rm files/fig3.yaml

# ---- failures: the others go on ----------------------------------------------------------------------
sed 's/^vary: {/vary: {env.name: [cartpole, nosuch], /' files/fig2.yaml >files/fig1.yaml
printf 'figure: {panel: env.name}\nvary: {train.seed: []}\n' >files/fig4.yaml
expect 1 '^opc: fig1: 4 of 8 .*nosuch_corrected_s1 .* 2)
^opc: fig4: files/fig4.yaml:2: train.seed 
^fig1  *FAILED  *[0-9].*  0, 0, 0$
^fig2  *up to date
^fig4  *FAILED 
^fig10  *made 
^opc: repro: 2 of 4 .*: fig1, fig4$' repro all --tier smoke
grep -q 'INCOMPLETE: 4 of 8 ' repro-smoke/fig1.json
# A panel without runs stays, so that what the title says of the panels is true.
without CAIRO || grep -q 'no runs yet' repro-smoke/fig1.svg || wrong 'no empty panel' ls repro-smoke
expect 0 '^fig4  .*  files/fig4.yaml:2: train.seed ' repro list

# ---- wrong input -------------------------------------------------------------------------------------
expect 2 "^opc: repro: .*'all'.*'opc repro list'" repro
expect 2 "^opc: repro: .*'fig22'.*files.*'fig2'" repro fig22
expect 2 "^opc: repro: .*'all'.*'fig2'" repro all fig2
expect 2 "^opc: repro: .*files/fig2.yaml:6: .*'smokes'.*'smoke'" repro fig2 --tier smokes
expect 2 "^opc: repro: .*files/common.yaml.*'probe'.*'figure'" repro common
expect 2 '^opc: repro: .*nowhere' "$OPC" repro all --experiments nowhere
expect 2 '^opc: repro: .*experiments/paper.*--experiments DIR' "$OPC" repro list
expect 0 '^fig2 .*up to date' "$OPC" repro files/fig2.yaml --tier smoke
expect 0 '^fig2 .*up to date' repro fig2.yaml --tier smoke
expect 2 '^opc: repro: .* 4 ' repro list --tier smokes
printf 'probe: {cells: 3}\n' >files/fig5.yaml
expect 2 'files/fig5.yaml:1: .*{analysis: NAME}' repro fig5
printf 'probe: {analysis: learning_curve}\n' >files/fig5.yaml
expect 2 "files/fig5.yaml: .*'learning_curve'.*'learning_curves'" repro fig5
printf 'probe: {analysis: learning_curves, xyzzy: 1}\nvary: {train.seed: 1..2}\n' >files/fig5.yaml
expect 2 "files/fig5.yaml: learning_curves: line 1: .*'xyzzy'" repro fig5
# Before anything is run:
printf 'figure: {panel: env.nam}\nvary: {train.seed: 1..2}\n' >files/fig5.yaml
expect 2 "files/fig5.yaml: figure: .*'nam'.*'name'" repro fig5
printf 'figure: {pannel: env.name}\nvary: {train.seed: 1..2}\n' >files/fig5.yaml
expect 2 "files/fig5.yaml: figure: line 1: .*'pannel'.*'panel'" repro fig5
[ ! -e repro-small/runs/fig5 ] || wrong 'has run something' ls repro-small/runs/fig5
cat >files/fig5.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
train: {epochs: 1, random_steps: 60}
opc.transition: replay
figure: {panel: env.name}
END
expect 0 '^fig5 -> ' repro fig5
grep -q '"caption": "1 of 1 ' repro-small/fig5.json ||
    wrong 'a tier of a file that has none' cat repro-small/fig5.json
grep -q '"command": "opc repro files/fig5.yaml"' repro-small/fig5.json
expect 0 '^fig5 .*up to date' repro fig5
printf 'runs: fig99\nfigure: {panel: env.name}\n' >files/fig5.yaml
expect 2 'files/fig5.yaml: runs: .*fig99.yaml' repro fig5

# ---- kept runs, drawn without the file that they began with -------------------------------------------
expect 2 '^opc: repro: train.prefill: .*ten.opc' "$OPC" repro "$SRC/experiments/prefill.yaml" \
    --add "$SRC/results" -o kept
expect 0 '^prefill -> kept/prefill.json' "$OPC" repro "$SRC/experiments/prefill.yaml" \
    --add "$SRC/results" --draw-only -o kept
without CAIRO || cmp kept/prefill.svg "$SRC/results/prefill/prefill.svg"

# ---- the table of the documents ----------------------------------------------------------------------
# Core-hours in docs/experiments.md are those of the list: of every experiment that has runs, and of all.
# shellcheck disable=SC2016 # for awk to expand
"$OPC" repro list --tier small --experiments "$SRC/experiments/paper" -o none |
    awk '$2 == "-," { sub(/\+$/, "", $7); print $1, $7 } $1 == "tier" { print "all", $4 }' | sort >listed
# shellcheck disable=SC2016
sed -n 's/^All of tier `small` is about \([0-9]*\) core-hours.*/all \1/p
    s/^| \(`.*`\) | .* | [0-9][^|]* | \([0-9.]*\)[^|]* |$/\1 \2/p' "$SRC/docs/experiments.md" |
    tr -d '\140,' | awk '{ for (i = 1; i < NF; i++) print $i, $NF }' | sort >told
[ "$(wc -l <listed)" -gt 10 ] || wrong 'no list' cat listed
diff told listed >said || wrong 'docs/experiments.md has other core-hours than opc repro list' diff told listed
