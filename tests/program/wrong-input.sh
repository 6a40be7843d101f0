#!/bin/sh
# SPDX-License-Identifier: MIT
# Wrong input: each command of wrong-input.txt ends with its documented exit status, says one thing in one line on
# standard error that names what was read, prints nothing else, and leaves nothing behind.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
mkdir "$work/here"
cd "$work/here"
smoke=$SRC/experiments/examples/smoke.yaml
printf 'include: %s\n' "$smoke" >smoke.yaml
mkdir dir dir.so
echo text >dir/file
echo text >file
echo junk >file.so
cp file film.mp4
: >empty.yaml
cp empty.yaml empty.csv
cp empty.yaml empty.opc
printf '\n  \n# nothing\n' >blank.yaml
truncate -s 3G huge.yaml
cp --sparse=always huge.yaml huge.opc
head -c 4000 "$OPC" >binary.yaml
printf 'train:\n\tepochs: 3\n' >tab.yaml
printf 'train: {epochs: 3} # gr\374n\n' >latin1.yaml
printf '\377\376t\000r\000a\000' >bom16.yaml
printf '{"env": {"name": "cartpole"}, "agent": {"type": "sac"}}\n' >json.yaml
printf -- '- train.epochs: 3\n' >list.yaml
echo hello >scalar.yaml
printf 'defaults:\n  - override /algorithm: mbpo\noverrides:\n  env: hopper\n' >hydra.yaml
printf 'services:\n  web:\n    image: nginx\n    ports: ["80:80"]\n' >docker.yaml
printf 'train.epochs: 3\ntrain.epochs: 4\n' >twice.yaml
printf 'a: &a {epochs: 3}\ntrain: *a\n' >anchor.yaml
printf 'train: *nowhere\n' >alias.yaml
(printf 'train: ' && printf '[%.0s' $(seq 500) && echo) >deep.yaml
printf 'train: {epochs: 3\n' >open.yaml
printf 'train.epochs: 3\n---\ntrain.epochs: 4\n' >many.yaml
printf 'include: nowhere.yaml\n' >includes.yaml
printf 'include: self.yaml\n' >self.yaml
printf 'train.epochs: "three"\n' >missing.yaml
printf 'train.epochs: 3\000\n' >nul.yaml
printf 'train:\r\n  epochs: three\r\n' >crlf.yaml
printf 'env_id: Hopper-v4\ntotal_timesteps: 100000\npolicy: MlpPolicy\n' >gym.yaml
printf 'HalfCheetahBulletEnv-v0:\n  n_timesteps: !!float 1e6\n  learning_rate: lin_7.3e-4\n' >sb3.yaml
printf 'train:\n  epochs: 3\n   seed: 4\n' >spaces.yaml
printf 'train\n  epochs: 3\n' >colon.yaml
printf 'train.epochs: 0\n' >'a b.yaml'
printf 'train.epochs: 0\n' >./-dash.yaml
printf 'include: smoke.yaml\nvary: {train.seed: 1..2}\n' >sweep.yaml
cp smoke.yaml novary.yaml
printf 'include: smoke.yaml\nvary: {train.sead: 1..2}\n' >badvary.yaml
printf 'include: smoke.yaml\nvary: {train.seed: []}\n' >emptyvary.yaml
printf 'include: smoke.yaml\nvary: {train.seed: 5..2}\n' >range.yaml
printf 'include: smoke.yaml\nvary: {train.seed: [1, 1]}\n' >doublevary.yaml
cp "$SRC/experiments/ilc/linear.yaml" ilc.yaml
printf 'a,b\nx,y\n' >words.csv
"$OPC" train smoke.yaml --quiet --out run
"$OPC" data export run -o steps.csv >/dev/null
awk -F, 'BEGIN { OFS = "," } NR == 3 { $3 = "nan" } { print }' steps.csv >nan.csv
awk 'NR == 3 { print $0 ",7"; next } { print }' steps.csv >ragged.csv
for name in damaged slotless hollow unreadable; do
    cp -r run $name
    rm $name/result.json
done
for file in checkpoints/a checkpoints/b policy; do
    printf 'x' | dd of=damaged/$file.opc bs=1 seek=300 conv=notrunc 2>/dev/null
done
rm slotless/checkpoints/[ab].opc
: >hollow/config.yaml
printf 'train: [\n' >unreadable/config.yaml
long=$(printf 'x%.0s' $(seq 5000))
byte=$(printf '\377')
export long byte # the commands of the table have them

opc() {
    "$OPC" "$@"
}

# Only the shell and opc run for a command: there are hundreds of them.
tab=$(printf '\t')
before=$(echo *)
n=0
while IFS=$tab read -r status fact command; do
    case $status in '#'*) continue ;; esac
    # What is missing in a small build has a message of its own.
    case $command in
    *opper* | *render*) ! without MUJOCO || continue ;;
    *plot* | *report*) ! without CAIRO || continue ;;
    esac
    n=$((n + 1))
    got=0
    (eval "$command") >../out 2>../said </dev/null || got=$?
    [ "$got" = "$status" ] || wrong "exit status $got instead of $status" "$command"
    last='' lines=0
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        'opc: warning: '*) ;;
        *) lines=$((lines + 1)) last=$line ;;
        esac
    done <../said
    case $last in
    *Sanitizer* | *"runtime error"* | *"core dumped"* | *"this is a bug"*) wrong "crashed" "$command" ;;
    "opc: "*"$fact"*) ;;
    *) wrong "does not say: $fact" "$command" ;;
    esac
    # ffmpeg speaks for itself.
    [ $lines = 1 ] || [ "$fact" = a.docx ] || wrong "says more than one thing" "$command"
    # opc repro names the experiment before it begins.
    [ ! -s ../out ] || [ "${command#opc repro fig2}" != "$command" ] || wrong "prints something" "$command"
done <"$SRC/tests/program/wrong-input.txt"
[ "$(echo *)" = "$before" ] || wrong "files were made" echo "$(echo *)"
[ $n -ge 300 ] || wrong "only $n commands" echo
