#!/bin/sh
# SPDX-License-Identifier: MIT
# opc sweep from outside: run, killed and run again against undisturbed, workers killed, Ctrl-C,
# two at a time, foreign directories, failures, status, merge and wrong input.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"

cat >a.yaml <<END
title: a small sweep
include: $SRC/experiments/examples/smoke.yaml
train: {epochs: 8, random_steps: 60}
vary:
  opc.transition: [corrected, replay]
  train.seed: 1..2
skip:
  - {opc.transition: replay, train.seed: 2}
tiers:
  tiny: {train.epochs: 2}
  endless: {train: {epochs: 1000000}, vary: {train.seed: [1]}}
END
all='corrected_s1 corrected_s2 replay_s1'

same() { # OUT: its runs are those of the undisturbed sweep
    for run in $all; do
        for file in metrics.csv policy.opc result.json; do
            cmp "ref/$run/$file" "$1/$run/$file" || wrong "$run/$file differs" same "$1"
        done
    done
}

# ---- undisturbed -----------------------------------------------------------------------------------
expect 0 '^corrected_s2  missing  *-  *-  *-$
^3 .*ref: 3 missing$' "$OPC" sweep a.yaml status -o ref
[ ! -e ref ] || wrong "status makes a directory" "$OPC" sweep
expect 0 '^1 .*ref: 1 missing$' "$OPC" sweep a.yaml status -o ref --only 'repl*1'
expect 2 "^opc: sweep: .*a.yaml.*'x\*'.*'opc sweep a.yaml status'" \
    "$OPC" sweep a.yaml run -o ref --only 'x*'
expect 0 'replay_s1: .*(1 of 1 
 part$' "$OPC" sweep a.yaml run -o part --only replay_s1
[ "$(ls part)" = "$(printf 'replay_s1\nreplay_s1.log')" ] || wrong "runs others, too" "$OPC" sweep
expect 0 'corrected_s1$
replay_s1: return [0-9.]* (
 3 .*ref$' "$OPC" sweep a.yaml run -o ref --jobs 2
# Each is what 'opc train' makes of it.
expect 0 '' "$OPC" train a.yaml opc.transition=replay train.seed=1 --out alone --quiet
cmp alone/metrics.csv ref/replay_s1/metrics.csv
cmp alone/config.yaml ref/replay_s1/config.yaml
[ ! -e ref/.queue ] || wrong "leaves its queue behind" "$OPC" sweep

# What is done is not done again.
find ref -type f ! -name .lock -exec ls -l --time-style=full-iso {} + >before
expect 0 ' 3 .*ref$' "$OPC" sweep a.yaml run -o ref
[ "$(wc -l <"$work/said")" = 1 ] || wrong "does something" "$OPC" sweep
find ref -type f ! -name .lock -exec ls -l --time-style=full-iso {} + >after
cmp before after
expect 0 '^replay_s1  *done  *8/8  *[0-9.]*  *[0-9.]* m*s$
^3 .*ref, .*: 3 done$' "$OPC" sweep a.yaml status -o ref

# Killed between its last epoch and its result, a run has nothing left to do and says what it ended with.
cp -r ref late
rm late/replay_s1/result.json
expect 0 "replay_s1 .* 8 of 8\$
replay_s1: return $(sed -n 's/.*"eval_return": \([0-9]*\).*/\1/p' ref/replay_s1/result.json)" \
    "$OPC" sweep a.yaml run -o late
same late

# ---- merge -----------------------------------------------------------------------------------------
expect 0 '^3 of 3 .* 3 .*: 24 .* -> ref/merged.csv$' "$OPC" sweep a.yaml merge -o ref
head -n 1 ref/merged.csv | grep -q '^opc.transition,train.seed,complete,epoch,env_steps,.*,entropy$'
[ "$(grep -c '^corrected,2,1,' ref/merged.csv)" = 8 ]
awk -F, '{print NF}' ref/merged.csv | sort -u | wc -l | grep -qx 1
# What they end with, over seeds, is what the metrics.csv of the runs say.
ends() { # RUN: the mean of its last five evaluations
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_return") at = i; next }
             $at != "" { v[n++] = $at }
             END { for (i = n - 5; i < n; i++) sum += v[i]; printf "%.17g\n", sum / 5 }' \
        "ref/$1/metrics.csv"
}
head -n 1 ref/table.csv |
    grep -qx task,method,reference_epochs,seeds,env_steps,median,low,high,minutes
awk -F, -v a="$(ends corrected_s1)" -v b="$(ends corrected_s2)" -v c="$(ends replay_s1)" '
    function near(x, y) { return x - y < 0.006 && y - x < 0.006 }
    NR == 2 { opc = $2 == "OPC" && $4 == 2 && near($6, (a + b) / 2) && near($7, a < b ? a : b) &&
                    near($8, a < b ? b : a) }
    NR == 3 { sac = $2 == "SAC" && $4 == 1 && near($6, c) && near($7, c) && near($8, c) }
    END { exit !(NR == 3 && opc && sac) }' ref/table.csv || wrong "another table" cat ref/table.csv
expect 0 '^task  *method  *reference_epochs  *seeds  *env_steps  *median  *low  *high  *minutes$
^cartpole  *OPC  *0  *2  *[0-9]*  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$
^cartpole  *SAC  *1  *[0-9]*
-> ref/table.csv$' "$OPC" sweep a.yaml merge -o ref
expect 2 "^opc: sweep: .*nowhere.*'opc sweep a.yaml run'" "$OPC" sweep a.yaml merge -o nowhere
# A row for each run, which the table is computed from; minutes and commit are those of its directory.
head -n 1 ref/runs.csv | grep -qx 'opc.transition,train.seed,complete,method,task,epochs,env_steps,total_steps,score,minutes,version,revision,settings'
awk -F, -v a="$(ends corrected_s1)" -v b="$(ends corrected_s2)" -v c="$(ends replay_s1)" '
    function near(x, y) { return x - y < 1e-9 && y - x < 1e-9 }
    NR == 2 { one = $1 $2 $3 $4 $5 $6 == "corrected11OPCcartpole8" && near($9, a) && $10 > 0 }
    NR == 3 { two = $1 $2 $3 $4 $5 $6 == "corrected21OPCcartpole8" && near($9, b) && $10 > 0 }
    NR == 4 { three = $1 $2 $3 $4 $5 $6 == "replay11SACcartpole8" && near($9, c) && $10 > 0 }
    END { exit !(NR == 4 && one && two && three) }' ref/runs.csv || wrong "another table" cat ref/runs.csv
revision=$(sed -n 's/.*"revision": "\([^"]*\)".*/\1/p' ref/replay_s1/meta.json)
[ "$(tail -n 1 ref/runs.csv | cut -d, -f12)" = "$revision" ]
tail -n +2 ref/runs.csv | cut -d, -f13 | grep -cx "0x[0-9a-f]\{8\}" | grep -qx 3

# What each phase of each epoch cost: every timing.csv, below the values that vary.
{
    echo "opc.transition,train.seed,complete,$(head -n 1 ref/replay_s1/timing.csv)"
    for run in corrected,1 corrected,2 replay,1; do
        tail -n +2 "ref/$(echo $run | sed s/,/_s/)/timing.csv" | sed "s/^/$run,1,/"
    done
} >want
cmp want ref/timing.csv

# Runs of an earlier merge: into an empty place, beside some runs, and into the same place.
same_tables() { # DIR: it has the tables of ref
    for file in merged.csv runs.csv table.csv timing.csv; do
        cmp "ref/$file" "$1/$file" || wrong "$file differs" same_tables "$1"
    done
}
expect 0 '^3 .* ref$
^3 of 3 .* 3 .*: 24 .* -> again/merged.csv$
-> again/runs.csv$
-> again/timing.csv$
-> again/table.csv$' "$OPC" sweep a.yaml merge -o again --add ref
same_tables again
# A table.csv of opc plot --table is another table, and stays.
cp -r again compared
echo 'task,method,total_steps,runs,mean,min,max,published_mean,published_std,published_seeds,deviations' |
    tee compared/table.csv >comparison.csv
expect 0 '^opc: warning: compared/table.csv is a table of opc plot --table and stays' \
    "$OPC" sweep a.yaml merge -o compared --add compared
cmp comparison.csv compared/table.csv
cp -r part beside # has replay_s1
expect 0 '^2 .* ref$' "$OPC" sweep a.yaml merge -o beside --add ref
cmp ref/merged.csv beside/merged.csv
cp -r ref lost
rm -r lost/corrected_s1 lost/replay_s1/result.json
expect 0 '^2 .* lost$' "$OPC" sweep a.yaml merge -o lost --add lost
same_tables lost
# Without runs.csv all but what the rows do not tell; from two places.
mkdir old1 old2
grep -v '^corrected,1' ref/merged.csv >old1/merged.csv
grep -v '^replay' ref/merged.csv >old2/merged.csv
expect 0 '^2 .* old1$
^1 .* old2$' "$OPC" sweep a.yaml merge -o joined --add old1 --add old2
cmp ref/merged.csv joined/merged.csv
cut -d, -f1-9 ref/runs.csv >want && cut -d, -f1-9 joined/runs.csv | cmp want -
cut -d, -f10-12 joined/runs.csv | tail -n +2 | sort -u | grep -qx ,,
# Nothing tells their time, and a table that does would be of other runs.
[ ! -e joined/timing.csv ] || wrong "time out of nothing" cat joined/timing.csv
echo old >joined/timing.csv
expect 0 'joined/timing.csv .*removed$' "$OPC" sweep a.yaml merge -o joined --add old1 --add old2
[ ! -e joined/timing.csv ] || wrong "the time of other runs" cat joined/timing.csv
# A run has a timing.csv of its own.
expect 2 '^opc: sweep: ref/replay_s1 is one run;' "$OPC" sweep a.yaml merge -o ref/replay_s1 --add ref
# Other numbers of a run that is complete here are said, and not used.
mkdir other
sed 's/^\(replay,1,1,8,[^,]*,[^,]*\),[^,]*/\1,-7/' ref/merged.csv >other/merged.csv
expect 0 '^opc: warning: replay_s1: .*other' "$OPC" sweep a.yaml merge -o ref --add other
same_tables again
[ "$(grep -c warning "$work/said")" = 1 ] || wrong "names others, too" "$OPC" sweep
# What is of another experiment changes nothing.
sed 's/^replay,1/replay,2/' ref/merged.csv >other/merged.csv
expect 2 '^opc: sweep: other/merged.csv:18: .*replay.* 2 .*a.yaml' "$OPC" sweep a.yaml merge -o new --add other
cut -d, -f2- ref/merged.csv >other/merged.csv
expect 2 "^opc: sweep: other/merged.csv .*a.yaml.*'opc.transition'" "$OPC" sweep a.yaml merge -o new --add other
expect 2 '^opc: sweep: .*nowhere/merged.csv.*--add' "$OPC" sweep a.yaml merge -o new --add nowhere
[ ! -e new ] || wrong "a refused merge leaves a directory" ls new

# run and status leave out what an added table has complete: nothing is computed for it.
expect 0 '^3 .* added, 0 ' "$OPC" sweep a.yaml run -o rest --add ref
[ ! -e rest ] || wrong "computes what was added" ls rest
grep -v '^corrected' ref/merged.csv >old2/merged.csv # replay_s1 alone
expect 0 '^1 .* added, 2 .*
^corrected_s1 .*missing
^2 runs in rest' "$OPC" sweep a.yaml status -o rest --add old2
expect 0 '^1 .* added, 2 ' "$OPC" sweep a.yaml run -o rest --add old2 --only corrected_s2
if [ -e rest/replay_s1 ] || [ -e rest/corrected_s1 ]; then
    wrong "runs more than is left" ls rest
fi
cmp ref/corrected_s2/metrics.csv rest/corrected_s2/metrics.csv
expect 2 "^opc: sweep: .*'replay" "$OPC" sweep a.yaml run -o rest --add old2 --only 'replay*'
expect 0 '^1 .* old2$' "$OPC" sweep a.yaml merge -o rest --add old2 --at 100
[ "$(head -n 1 rest/table-100.csv)" = "$(head -n 1 rest/table.csv)" ]
expect 2 '^opc: sweep: .*--at.*run.*merge' "$OPC" sweep a.yaml run -o rest --at 100

# A table is not replaced by nothing, nor by a part of it.
cp ref/merged.csv merged
expect 2 '^opc: sweep: .*ref/merged.csv' "$OPC" sweep a.yaml merge -o ref opc.horizon=7
expect 2 '^opc: sweep: .*--only.*merge' "$OPC" sweep a.yaml merge -o ref --only 'c*'
cmp merged ref/merged.csv

# ---- kill -9 of the sweep, its workers left to themselves --------------------------------------------
for sign in config.yaml metrics.csv policy.opc; do # of the first run: begun, learning, done
    while :; do # until the kill has not come too late
        rm -rf killed
        "$OPC" sweep a.yaml run -o killed --jobs 1 >/dev/null 2>&1 &
        pid=$!
        await $pid killed/corrected_s1/$sign
        kill -9 $pid 2>/dev/null || :
        wait $pid 2>/dev/null || :
        [ -e killed/replay_s1/result.json ] || break
    done
    expect 0 ' 3 .*killed$' "$OPC" sweep a.yaml run -o killed --jobs 2
    same killed
done

# ---- kill -9 of a worker -----------------------------------------------------------------------------
"$OPC" sweep a.yaml run -o hurt --jobs 1 >hurt.said 2>&1 &
pid=$!
await $pid hurt/corrected_s1/.lock
kill -9 "$(cut -d' ' -f1 hurt/corrected_s1/.lock)"
wait $pid || wrong "a killed worker ends the sweep" "$OPC" sweep
grep -q 'corrected_s1 .* 137; .*(1 of 3)' hurt.said
same hurt

# ---- nohup: a terminal that goes away changes nothing --------------------------------------------------
(trap '' HUP && exec "$OPC" sweep a.yaml run -o hung --jobs 1 >hung.said 2>&1) &
pid=$!
await $pid hung/corrected_s1/.lock
kill -HUP $pid
wait $pid || wrong "SIGHUP ends what ignores it" cat hung.said
same hung

# ---- Ctrl-C, a second sweep, looking on ----------------------------------------------------------------
"$OPC" sweep a.yaml run --tier endless -o long --jobs 2 >long.said 2>&1 &
pid=$!
until [ -e long/corrected_s1/checkpoints/a.opc ] && [ -e long/replay_s1/checkpoints/a.opc ]; do
    sleep 0.02
done
expect 2 "^opc: sweep: .*long.*'status'" "$OPC" sweep a.yaml run --tier endless -o long
expect 0 '^corrected_s1  *running  *[0-9]*/1000000 
^2 .*long, .*: 2 running$' "$OPC" sweep a.yaml status --tier endless -o long
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 75 ] || wrong "exit status $status instead of 75" kill -INT
grep -q '^opc: sweep: .* 0 of 2 ' long.said
expect 0 '^2 .*long, .*: 2 interrupted$' "$OPC" sweep a.yaml status --tier endless -o long
grep -q '"state": "stopped"' long/corrected_s1/status.json
expect 0 '^2 of 2 .* 0 .*
long/table.csv' "$OPC" sweep a.yaml merge --tier endless -o long
[ ! -e long/table.csv ] || wrong "writes an empty table" "$OPC" sweep

# A worker whose sweep is gone stops by itself; the lock tells when it has.
"$OPC" sweep a.yaml run --tier endless -o long --jobs 2 >/dev/null 2>&1 &
pid=$!
until "$OPC" sweep a.yaml status --tier endless -o long | grep -q ' 2 running'; do sleep 0.02; done
kill -9 $pid
wait $pid 2>/dev/null || :
until "$OPC" sweep a.yaml status --tier endless -o long | grep -q ' 2 interrupted'; do
    sleep 0.02
done

# ---- foreign -------------------------------------------------------------------------------------------
cp -r ref kept
expect 2 '^opc: sweep: .*ref/corrected_s1 .*foreign: opc.horizon.*\[5\].*\[4\].*(2 .*--out' \
    "$OPC" sweep a.yaml run -o ref opc.horizon=4 opc.transitions=2000 --jobs 1
expect 2 '^opc: sweep: .*ref/corrected_s1 .*foreign: train.epochs.* 8 .* 2 ' "$OPC" sweep a.yaml run --tier tiny -o ref
expect 0 '^corrected_s1  *foreign.*  train.epochs.* 8 .* 2 ' \
    "$OPC" sweep a.yaml status --tier tiny -o ref
expect 2 '^opc: warning: 3 foreign 
^opc: sweep: .*ref/merged.csv' "$OPC" sweep a.yaml merge --tier tiny -o ref
rm ref/merged.csv kept/merged.csv
diff -r kept ref || wrong "a foreign run was touched" diff
# More epochs are gone on with, and give what a longer sweep gives.
expect 0 'corrected_s1 .* 8 of 9$' "$OPC" sweep a.yaml run -o kept train.epochs=9
expect 0 '' "$OPC" train a.yaml opc.transition=corrected train.seed=2 train.epochs=9 --out nine --quiet
cmp nine/metrics.csv kept/corrected_s2/metrics.csv
# Another version is said, and counts; so is another commit of this one.
sed -i 's/"opc": "[^"]*"/"opc": "0.0.7"/' ref/replay_s1/meta.json
expect 0 '^opc: warning: ref/replay_s1 .* 0.0.7' "$OPC" sweep a.yaml run -o ref
expect 0 '^made by opc .*0.0.7' "$OPC" sweep a.yaml status -o ref
"$OPC" sweep a.yaml status -o ref --json | grep -q '"run": "ref/replay_s1".*"version": "0.0.7", "revision": "' ||
    wrong "no version" "$OPC" sweep a.yaml status -o ref --json
cp ref/corrected_s1/meta.json meta.json
sed -i 's/"revision": [^,}]*/"revision": "0123456789ab"/' ref/corrected_s1/meta.json
expect 0 '^opc: warning: ref/corrected_s1 (and 1 more) .* (0123456), 0.0.7' "$OPC" sweep a.yaml run -o ref
expect 0 '^made by opc .*0123456.*0.0.7' "$OPC" sweep a.yaml merge -o ref
sed -i '/"opc": /d; /"revision": /d' ref/corrected_s1/meta.json
expect 0 '^opc: warning: ref/corrected_s1 .* unknown, 0.0.7' "$OPC" sweep a.yaml run -o ref
mv meta.json ref/corrected_s1/meta.json

# ---- failures: the others go on ------------------------------------------------------------------------
sed 's/^vary:/vary:\n  env.name: [nosuch, cartpole]/' a.yaml >fail.yaml
expect 1 "^opc: warning: nosuch_corrected_s1 .* 2 (fail/nosuch_corrected_s1.log): .*env.name: .*'nosuch'
^opc: sweep: 3 of 6 .*: nosuch_corrected_s1 (.* 2), .*fail\$" \
    "$OPC" sweep fail.yaml run --tier tiny -o fail
expect 0 "^nosuch_replay_s1  *failed  .*env.name: .*'nosuch'
^6 .*fail, .*: 3 done, 3 failed\$" "$OPC" sweep fail.yaml status --tier tiny -o fail

# ---- wrong input ---------------------------------------------------------------------------------------
expect 2 "^opc: sweep: [^']*opc sweep FILE.yaml run|status|merge" "$OPC" sweep a.yaml
printf 'probe: {analysis: theory}\n' >computed.yaml
expect 2 "^opc: sweep: .*computed.yaml.*'opc repro'" "$OPC" sweep computed.yaml status
expect 2 "^opc: sweep: .*'walk'.*run|status|merge" "$OPC" sweep a.yaml walk
expect 2 "^opc: sweep: a.yaml:9: .*'tinny'.*'tiny'" "$OPC" sweep a.yaml run --tier tinny
expect 2 '^opc: sweep: .*train.seed.*a.yaml:6 ' "$OPC" sweep a.yaml run train.seed=1
expect 2 "^opc: sweep: .*'locale'.*'local'" "$OPC" sweep a.yaml run --launcher locale -o x
expect 2 '^opc: sweep: .*ref/replay_s1 .*--out DIR' "$OPC" sweep a.yaml run -o ref/replay_s1
expect 2 '^opc: sweep: .*nowhere.yaml' "$OPC" sweep nowhere.yaml run
[ ! -e x ] || wrong "a refused sweep leaves a directory" "$OPC" sweep
