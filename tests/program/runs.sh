#!/bin/sh
# SPDX-License-Identifier: MIT
# opc runs: what it lists, filters and sorts. And what holds for every command that looks at runs: a run that came
# from elsewhere starts no code.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml

# ---- a directory of runs -----------------------------------------------------------------------------
for seed in 1 2; do
    "$OPC" train "$smoke" train.seed=$seed --quiet --threads 1 --out "all/opc/s$seed"
done
"$OPC" train "$smoke" opc.transition=learned train.epochs=2 --quiet --threads 1 --out all/mbpo
cp -r all/mbpo all/cut
rm all/cut/result.json
sed 's/"done"/"failed"/; s/"why": null/"why": "the disk is full"/' all/mbpo/status.json >all/cut/status.json
touch all/notes.txt all/opc/s1.log

expect 0 '^run  *state  *task  *method  *seed  *epoch  *return  *best  *steps 
^all/cut  *failed  *cartpole  *MBPO(\*)  *1  *2/2 .*the disk is full$
^all/opc/s2  *done  *cartpole  *OPC  *2  *3/3 
^4 of 4 runs, 3 done, 1 failed$' "$OPC" runs all
[ "$(sed -n 's/^\(all[^ ]*\) .*/\1/p' said | tr '\n' ' ')" = 'all/cut all/mbpo all/opc/s1 all/opc/s2 ' ] ||
    wrong "the order is not that of the names" "$OPC" runs all
chosen() { # what is chosen, on one line
    "$OPC" runs all "$@" --paths | tr '\n' ' '
}
[ "$(chosen --state failed)" = 'all/cut ' ]
[ "$(chosen --name 's?')" = 'all/opc/s1 all/opc/s2 ' ]
[ "$(chosen opc.transition=corrected train.seed=2)" = 'all/opc/s2 ' ]
[ "$(chosen 'opc.transition=l*' --state 'done')" = 'all/mbpo ' ]
[ "$(chosen sac.lr=3e-4 | wc -w)" = "$(chosen sac.learning_rate=0.0003 | wc -w)" ]
[ -z "$(chosen opc.transition=replay)" ]
[ "$(chosen --sort epoch --limit 2)" = 'all/opc/s1 all/opc/s2 ' ]
# The largest return comes first.
"$OPC" runs all --sort best --json | sed 's/.*"best_return": \([-0-9.e]*\),.*/\1/' >returns
sort -gr returns | cmp - returns
expect 0 '^{"run": "all/opc/s1", "state": "done", "why": "", "task": "cartpole", "method": "OPC", "seed": 1, .*"host": "..*", ' \
    "$OPC" runs all --json --name s1
# A file of settings that was edited by hand, or is of an older version, is read as well.
sed -i '1i # a comment' all/opc/s1/config.yaml
[ "$(chosen opc.transition=corrected)" = 'all/opc/s1 all/opc/s2 ' ]

expect 2 '^opc: runs: .*opc runs DIR' "$OPC" runs
expect 2 'nowhere' "$OPC" runs nowhere
expect 2 "'transitio'.*'transition'" "$OPC" runs all opc.transitio=x
expect 2 '^opc: runs: --state = finished ' "$OPC" runs all --state finished

# ---- a run from elsewhere starts no code -------------------------------------------------------------
mkdir -p foreign
cp -r all/opc/s2 foreign/program
cp -r all/opc/s2 foreign/plugin
sed -i "s|  name: cartpole|  name: \"exec:touch $work/started\"|" foreign/program/config.yaml
printf 'void opc_start(void) __attribute__((constructor));\nint system(const char *);\n' >evil.c
printf 'void opc_start(void) { if (system("touch %s/started")) return; }\n' "$work" >>evil.c
"${CC:-cc}" -shared -fPIC -o evil.so evil.c
sed -i "s|  name: cartpole|  name: $work/evil.so|" foreign/plugin/config.yaml
# The trap works: a command that plays the task springs it.
"$OPC" evaluate foreign/plugin --episodes 1 >/dev/null 2>&1 || true
[ -e started ] || wrong "the plugin starts nothing" ls -l
rm started
"$OPC" evaluate foreign/program --episodes 1 >/dev/null 2>&1 || true
[ -e started ] || wrong "the program is not started" ls -l
rm started
untouched() { # COMMAND...: succeeds and starts nothing
    expect 0 '' "$@"
    [ ! -e started ] || wrong "it starts the task's code" "$@"
}
untouched "$OPC" runs foreign
untouched "$OPC" runs foreign 'env.name=*'
untouched "$OPC" status foreign
untouched "$OPC" status foreign/program
without CAIRO || untouched "$OPC" plot foreign -o foreign.svg
