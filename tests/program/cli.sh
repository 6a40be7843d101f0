#!/bin/sh
# SPDX-License-Identifier: MIT
# The program from outside: what it says about itself, and what it answers to wrong input.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"

version=$(sed -n 's/^project(opc VERSION \([0-9.]*\).*/\1/p' "$SRC/CMakeLists.txt")
expect 0 "^opc $version\( ([0-9a-f]*\(-dirty\)*)\)*\$" "$OPC" --version
for way in '' --help -h help; do
    # shellcheck disable=SC2086 # '' is no argument at all
    expect 0 '^usage: opc SUBCOMMAND
^  doctor  *[a-z]
^  75  ' "$OPC" $way
done

# Each subcommand explains itself, the same in both ways, within 80 columns and with its options.
for command in $("$OPC" --help | sed -n '/^usage/,/^exit/s/^  \([a-z]*\)  .*/\1/p'); do
    "$OPC" "$command" --help >"$work/one"
    "$OPC" help "$command" >"$work/two"
    cmp "$work/one" "$work/two"
    expect 0 "^usage: opc $command
^  --help" "$OPC" "$command" --help
    awk 'length > 80 {print FILENAME ": too wide: " $0; bad = 1} END {exit bad}' "$work/one"
done

# Wrong input: exit status 2, what is wrong and where there is more, nothing on standard output.
expect 2 "^opc: .*'docter'.*'doctor'" "$OPC" docter
expect 2 "^opc: .*'xyzzy'.*'opc --help'" "$OPC" xyzzy
expect 2 "^opc: .*''" "$OPC" ''
expect 2 "^opc: .* --nonsense.*'opc --help'" "$OPC" --nonsense
expect 2 "^opc: doctor: .* --nonsense.*'opc doctor --help'" "$OPC" doctor --nonsense
expect 2 '^opc: doctor: .* -x' "$OPC" doctor -x
expect 2 "^opc: doctor: .*'now'" "$OPC" doctor now
expect 2 '^opc: help: .* --mann.* --man[^n]' "$OPC" help --mann
expect 2 '^opc: help: --man = maybe ' "$OPC" help --man=maybe
expect 2 '^opc: help: .* 2' "$OPC" help doctor doctor
expect 2 '^opc: bench: --threads = x ' "$OPC" bench --threads x
expect 2 '^opc: bench: --threads = 0 .*\[1, ' "$OPC" bench --threads=0
expect 2 '^opc: bench: --threads = 1e99 .*\[1, ' "$OPC" bench --threads 1e99
expect 2 '^opc: bench: --seconds = soon ' "$OPC" bench --seconds soon
expect 2 '^opc: bench: .*--seconds.*value' "$OPC" bench --seconds
expect 2 '^opc: bench: .* --treads.* --threads' "$OPC" bench --treads 2
expect 2 "^opc: bench: .*'gem'.*gemm" "$OPC" bench gem
expect 2 '^opc: OPC_BACKEND: .*abacus' env OPC_BACKEND=abacus "$OPC" doctor
[ -z "$("$OPC" docter 2>/dev/null)" ]

# A block to paste: the version first, then one line per fact.
expect 0 "^opc $version\$
^  build  *[A-Z]
^  processors  .*[0-9] of [0-9]
^  features  *[a-z0-9]
^  kernels  *[a-z0-9]
^  memory  *[0-9.]* .B, [0-9.]* .B 
^  mujoco  *[0-9n]
^  bullet  *[0-9n]
^  cairo  *[0-9n]
^  libyaml  *[0-9]
^  jansson  *[0-9]
^  models  *[0-9]" "$OPC" doctor
if without MUJOCO; then
    expect 0 '^  mujoco  *not
apt-get install libmujoco-dev
OPC_WITH_MUJOCO=ON' "$OPC" doctor
fi

# Output that cannot be written is an error; a reader that leaves early is not our business.
expect 1 '^opc: .*: No space left' sh -c "'$OPC' --help >/dev/full"
expect 1 '^opc: .*: Bad file descriptor' sh -c "'$OPC' --help >&-"
expect 0 '' sh -c "'$OPC' --help | true"
# A stream that is closed is not the next file that is opened.
expect 1 '^opc: .*: Bad file descriptor' sh -c "'$OPC' train \
    '$SRC/experiments/examples/smoke.yaml' --out '$work/closed' --threads 1 <&- >&-"
! grep -q '^ *1  *100 ' "$work/closed/log.txt" || wrong "the table is in the log" cat "$work/closed/log.txt"
[ -s "$work/closed/result.json" ]
# Options stand where the usage has them, whatever the environment says about it.
expect 0 '' env POSIXLY_CORRECT=1 "$OPC" config eval --markdown
# An option that means nothing to what is done is not dropped.
expect 2 '^opc: env: .*--json.*list' "$OPC" env list --json
expect 2 '^opc: env: .*--out.*check' "$OPC" env check cartpole -o x
expect 2 '^opc: bench: .*--states.*sac' "$OPC" bench sac --states 5
expect 2 '^opc: config: .*--markdown.*YAML' \
    "$OPC" config "$SRC/experiments/examples/smoke.yaml" --markdown
expect 2 '^opc: help: .*--man.*--completion' "$OPC" help --man train

# The manual page and the completion come from the same tables.
expect 0 '^\.TH OPC 1
^\.SS opc doctor
\\-\\-completion
^\.SH EXIT STATUS' "$OPC" help --man
"$OPC" help --completion >"$work/completion"
expect 0 '^doctor$' bash -c ". '$work/completion'; COMP_WORDS=(opc doc); COMP_CWORD=1; _opc;
    printf '%s\n' \"\${COMPREPLY[@]}\""
offer() { # WORD...: what is offered for the last one
    bash -c ". '$work/completion'; COMP_WORDS=(opc \"\$@\"); COMP_CWORD=\$#; _opc;
        printf '%s\n' \"\${COMPREPLY[@]}\"" offer "$@"
}
mkdir "$work/tab"
touch "$work/tab/smoke.yaml"
(
    cd "$work/tab"
    offer train '' >"$work/offered"
    offer sweep s >>"$work/offered"
    offer train x --out s >>"$work/offered"
)
[ "$(cat "$work/offered")" = "$(printf 'smoke.yaml\nstatus\nsmoke.yaml\nsmoke.yaml')" ] ||
    wrong "completion offers otherwise" cat "$work/offered"
expect 0 '^--man$
^--completion$' bash -c ". '$work/completion'; COMP_WORDS=(opc help --); COMP_CWORD=2; _opc;
    printf '%s\n' \"\${COMPREPLY[@]}\""

# Values: tasks, settings and their choices, of options, too. The line is as bash hands it over, whose words
# end at '=' and ':'.
bash_line() { # LINE
    bash -c ". '$work/completion'; COMP_LINE=\$1 COMP_POINT=\${#1}
        read -ra COMP_WORDS <<<\"\$(sed 's/[=:]/ & /g' <<<\"\$1\")\"; COMP_CWORD=\$((\${#COMP_WORDS[@]} - 1)); _opc
        printf '%s\n' \"\${COMPREPLY[@]}\"" line "$1" | sort | tr '\n' ' '
}
[ "$(bash_line 'opc train x opc.transition=l')" = 'learned ' ] || wrong "bash: choices" bash_line opc
[ "$(bash_line 'opc resume x record.ten')" = 'record.tensorboard= ' ] || wrong "bash: settings" bash_line opc
[ "$(bash_line 'opc plot x --band q')" = 'quartiles ' ] || wrong "bash: values of options" bash_line opc
[ "$(bash_line 'opc env show cartp')" = 'cartpole ' ] || wrong "bash: tasks" bash_line opc
without MUJOCO || [ "$(bash_line 'opc train x env.name=mujoco:hop')" = 'hopper ' ] || wrong "bash: colons" bash_line opc

# The other shells do the same, asked as a user would: zsh through its own completion in a pseudo-terminal.
need_tool zsh fish
"$OPC" help --completion --shell fish >"$work/opc.fish"
fish_line() { # LINE
    (cd "$work/tab" && HOME=$work XDG_CONFIG_HOME=$work fish --no-config -c \
        "source '$work/opc.fish'; complete -C '$1'" | cut -f1 | sort | tr '\n' ' ')
}
[ "$(fish_line 'opc doc')" = 'doctor ' ] || wrong "fish: subcommands" fish_line opc
[ "$(fish_line 'opc train x opc.transition=l')" = 'opc.transition=learned ' ] || wrong "fish: choices" fish_line opc
[ "$(fish_line 'opc plot x --band q')" = 'quartiles ' ] || wrong "fish: values of options" fish_line opc
[ "$(fish_line 'opc env show cartp')" = 'cartpole ' ] || wrong "fish: tasks" fish_line opc
mkdir "$work/functions"
"$OPC" help --completion --shell zsh >"$work/functions/_opc"
cat >"$work/zsh" <<'END'
# Types a line and a tab into an interactive zsh and prints the line as it is then.
zmodload zsh/zpty
zpty z "cd $2; zsh -f -i"
zpty -w z "PS1= fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; setopt nobeep; unsetopt zle_bracketed_paste"
zpty -w z 'show() { print -r "<$BUFFER>"; zle kill-buffer; }; zle -N show; bindkey "^X" show; print ready'
while zpty -r z got; do [[ $got == ready* ]] && break; done
zpty -w -n z "$3"$'\t\C-x'
while zpty -r z got; do [[ $got == *'<'*'>'* ]] && break; done
got=${got##*<}
print -r -- ${got%%>*}
zpty -d z
END
zsh_line() { # LINE
    zsh -f "$work/zsh" "$work/functions" "$work/tab" "$1"
}
[ "$(zsh_line 'opc doc')" = 'opc doctor ' ] || wrong "zsh: subcommands" zsh_line 'opc doc'
[ "$(zsh_line 'opc train x opc.transition=l')" = 'opc train x opc.transition=learned ' ] || wrong "zsh: choices" zsh_line opc
[ "$(zsh_line 'opc plot x --band q')" = 'opc plot x --band quartiles ' ] || wrong "zsh: values of options" zsh_line opc
[ "$(zsh_line 'opc env show cartp')" = 'opc env show cartpole ' ] || wrong "zsh: tasks" zsh_line opc
