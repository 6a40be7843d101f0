#!/bin/sh
# SPDX-License-Identifier: MIT
# What takes minutes on a real Slurm (label cluster; ./dev test --cluster): Figure 4 in its smallest tier, with
# tasks that are warned and queued again, a node that dies, the controller killed and restarted, runs and
# tasks killed at random. It ends with the bytes of the local figure. The figures printed are those of
# docs/cluster.md.
# shellcheck source=tests/program/cluster/lib
. "$SRC/tests/program/cluster/lib"
cd "$work"
figure() { # OUT OPTIONS...
    out=$1
    shift
    "$OPC" repro fig4 --tier smoke $longer -o "$out" --experiments "$SRC/experiments/paper" "$@"
}
sweep() { # ACTION OPTIONS...
    action=$1
    shift
    "$OPC" sweep "$SRC/experiments/paper/fig4.yaml" "$action" --tier smoke $longer -o there/runs/fig4 "$@"
}
now() {
    date +%s
}
log() { # WHAT SINCE
    printf '%-60s %4d s\n' "$1" "$(($(now) - $2))"
}
# So many epochs that there is something to disturb for two minutes, on this machine.
longer=train.epochs=5
since=$(date +%s%3N)
expect 0 'made' figure quick
epochs=$((5 * 100000 / ($(date +%s%3N) - since)))
[ $epochs -ge 10 ] || epochs=10
longer=train.epochs=$epochs
echo "$epochs epochs for each of 16 runs"
since=$(now)
expect 0 'made' figure here
log 'the figure on this machine' "$since"
start_cluster
# An administrator: a job that was starting when the controller died leaves its node drained.
while sleep 1; do
    for node in $(sinfo -h -N -o '%N %t' 2>/dev/null | sed -n 's/ drain.*//p; s/ drng.*//p'); do
        scontrol update "nodename=$node" state=resume 2>/dev/null || :
    done
done &

# The process of a task's batch script, which is opc.
process_of() { # JOB_TASK
    id=$(squeue -h -j "$1" -o %A 2>/dev/null)
    for process in /proc/[0-9]*; do
        { tr '\0' ' ' <"$process/cmdline" | grep -q ' work --launcher' &&
            tr '\0' '\n' <"$process/environ" | grep -qx "SLURM_JOB_ID=$id" &&
            echo "${process#/proc/}" && return; } 2>/dev/null
    done
}
# Finds a task that has started a run: $task is its number, $worker its process.
found_worker() {
    for task in $(squeue -h -t R -o %i); do
        worker=$(process_of "$task")
        [ -n "$worker" ] && [ -n "$(cat /proc/"$worker"/task/*/children 2>/dev/null)" ] && return 0
    done
    return 1
}
is_again() { # JOB_TASK STATE
    [ "$(squeue -h -j "$1" -o %T)" = "$2" ]
}

since=$(now)
began=$since
expect 0 'submitted 16 runs' figure there --launcher slurm --pack 2 --jobs 2
eventually found_worker
log 'submitted, and the first task runs' "$since"

# ---- runs and tasks killed at random ---------------------------------------------------------------------------------------
kills=0
for delay in 0.7 1.3 0.4 0.9 0.6 1.1; do
    sleep $delay
    [ $kills -lt 4 ] || break
    found_worker || continue
    case $kills in
    1) victim=$worker ;;
    *) victim=$(cat /proc/"$worker"/task/*/children 2>/dev/null | cut -d' ' -f1) ;;
    esac
    if [ -n "$victim" ] && kill -9 "$victim" 2>/dev/null; then
        kills=$((kills + 1))
    fi
done
echo "$kills processes killed"
[ $kills -ge 3 ] || wrong "too few" squeue

# ---- warned before the end of its time: Slurm sends SIGUSR1 to the process of the script ---------------------
eventually found_worker
first=$task
since=$(now)
kill -USR1 "$worker"
eventually is_again "$first" PENDING
log 'SIGUSR1: saved and queued again' "$since"

# ---- SIGTERM to the process itself -------------------------------------------------------------------------------
eventually found_worker
term=$(now)
kill -TERM "$worker"
eventually is_again "$task" PENDING
log 'SIGTERM: saved and queued again' "$term"
eventually is_again "$first" RUNNING
log 'SIGUSR1: runs again' "$since"

# ---- the controller is killed, and comes back ------------------------------------------------------------------------
since=$(now)
kill -9 "$controller"
wait "$controller" 2>/dev/null || :
expect 0 'warning: squeue refused
16 runs in there/runs/fig4' sweep status
start_controller
log 'controller killed and restarted' "$since"
expect 0 '16 runs in there/runs/fig4' sweep status
! grep -q warning "$work/said" || wrong "does not answer" sweep status

# ---- a node dies with everything on it ---------------------------------------------------------------------------------
eventually found_worker
moved=$task
node=$(squeue -h -j "$moved" -o %N)
tree() { # PID
    echo "$1"
    # shellcheck disable=SC2013 # one line of words
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        tree "$child"
    done
}
# slurmstepd is no child of slurmd, but the parent of the worker
step=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$worker/status")
since=$(now)
# shellcheck disable=SC2046
kill -9 $(tree "$(cat "$D/$node.pid")") $(tree "$step") 2>/dev/null || :
eventually sh -c "sinfo -h -N -n $node -o %t | grep -q ^down"
log 'node killed: Slurm has noticed' "$since"
eventually is_again "$moved" RUNNING
log 'node killed: the task runs on the other one' "$since"
[ "$(squeue -h -j "$moved" -o %N)" != "$node" ] || wrong "runs where it cannot" squeue
start_node "$node"

# ---- and the bytes are those of the local figure -------------------------------------------------------------------------------
# Tasks whose worker was killed are gone from the queue; the same command submits what is missing.
tries=0
until figure there --launcher slurm --wait >"$work/said" 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 5 ] || wrong "does not end" figure there
done
for file in here/fig4*; do
    cmp "$file" "there/${file#here/}"
done
for run in here/runs/fig4/*/; do
    for file in metrics.csv policy.opc result.json; do
        cmp "$run$file" "there${run#here}$file"
    done
done
log 'all of it' "$began"

# ---- the end of its time, as Slurm itself tells it --------------------------------------------------------------------------------
cat >endless.yaml <<END
include: $SRC/experiments/examples/smoke.yaml
train.epochs: 1000000
END
since=$(now)
expect 0 'submitted 1 run' "$OPC" sweep endless.yaml run -o long --launcher slurm --time 1
waits_again() {
    [ "$(squeue -h -o %r)" = BeginTime ]
}
eventually test -s long/run/checkpoints/a.opc
eventually waits_again
log 'a limit of one minute: saved and queued again' "$since"
grep -q '"state": "stopped"' long/run/status.json || wrong "was not stopped in order" cat long/run/status.json
expect 0 '^run  *queued .*(BeginTime)$' "$OPC" sweep endless.yaml status -o long
