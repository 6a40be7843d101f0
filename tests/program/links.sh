#!/bin/sh
# SPDX-License-Identifier: MIT
# Every relative link in the documents points to a file that exists, and every anchor to a heading of
# that file, by GitHub's rule for anchors. Links to other hosts are not followed. Paths of the tree and
# settings that the documents name in `code` exist, too.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"

# Prints "line target" for each link [text](target) and image outside of code.
links() { # FILE
    awk '
        /^ *```/ { code = !code; next }
        code || /^    / && !list { next }
        { list = list && !/^[^ ]/ || /^ *([-*]|[0-9]+\.) / }
        {
            line = $0
            gsub(/`[^`]*`/, "", line)
            while (match(line, /\]\([^)]*\)/)) {
                target = substr(line, RSTART + 2, RLENGTH - 3)
                sub(/ .*/, "", target)
                print FNR, target
                line = substr(line, RSTART + RLENGTH)
            }
        }' "$1"
}

# Prints the anchors of the headings of a file: lower case, no punctuation, hyphens for blanks. A second
# heading of the same words gets -1, a third -2.
anchors() { # FILE
    awk '
        /^ *```/ { code = !code; next }
        !code && /^#+ / {
            sub(/^#+ +/, "")
            text = tolower($0)
            gsub(/[^a-z0-9 _-]/, "", text)
            gsub(/ /, "-", text)
            if (text in seen)
                print text "-" seen[text]++
            else {
                print text
                seen[text] = 1
            }
        }' "$1"
}

# Prints what is wrong with the links of a file of this tree.
broken() { # TREE FILE
    links "$1/$2" | while read -r line target; do
        case $target in
        *://* | mailto:*) continue ;;
        '#'*) path=$2 anchor=${target#?} ;;
        *'#'*) path=$(dirname "$2")/${target%%#*} anchor=${target#*#} ;;
        *) path=$(dirname "$2")/$target anchor= ;;
        esac
        if [ ! -e "$1/$path" ]; then
            echo "$2:$line: $target does not exist"
        elif [ -n "$anchor" ] && ! anchors "$1/$path" | grep -qxF -e "$anchor"; then
            echo "$2:$line: $target: no such heading"
        fi
    done
}

# ---- the check finds what it is there for ------------------------------------------------------------
mkdir "$work/docs"
cat >"$work/a.md" <<'END'
# A heading, with `code` & more
[good](docs/b.md#second-part), [good](#a-heading-with-code--more), [far](https://example.org/x#y)
[twice](docs/b.md#twice-1) ![bad](missing.svg)

- [bad](docs/b.md#third)
  [bad](docs/c.md)

Below is code.

    [code](nowhere)
`[code](nowhere)`
END
# shellcheck disable=SC2016 # backticks of Markdown
printf '# B\n## Second part\n## Twice\n## Twice\n```sh\n# Third\n```\n[up](../a.md)\n' >"$work/docs/b.md"
broken "$work" a.md >"$work/said"
broken "$work" docs/b.md >>"$work/said"
cat >"$work/want" <<'END'
a.md:3: missing.svg does not exist
a.md:5: docs/b.md#third: no such heading
a.md:6: docs/c.md does not exist
END
cmp "$work/want" "$work/said" || wrong "found something else" links

# ---- the documents -----------------------------------------------------------------------------------
cd "$SRC"
: >"$work/said"
for file in *.md docs/*.md results/README.md results/*/README.md; do
    broken . "$file" >>"$work/said"
done
[ ! -s "$work/said" ] || wrong "broken links" links

# Paths in `code`, without patterns, that start with a folder of the tree.
# shellcheck disable=SC2016 # backticks of Markdown
for file in *.md docs/*.md results/README.md; do
    [ "$file" != CHANGELOG.md ] || continue # it names what was
    grep -no '`\(src\|include\|tests\|tools\|examples\|experiments\|cmake\|models\)/[A-Za-z0-9_./-]*`' "$file" |
        tr -d '`' | while IFS=: read -r line path; do
        case $path in
        *[A-Z]* | */my_*) ;; # stands for a name
        *) [ -e "$path" ] || echo "$file:$line: $path does not exist" ;;
        esac
    done >>"$work/said"
done
[ ! -s "$work/said" ] || wrong "no such paths" links

# Settings in `code`, as `section.name`, with or without a value.
# shellcheck disable=SC2016
"$OPC" config --markdown | sed -n 's/^| `\([a-z.0-9_]*\)` .*/\1/p' >"$work/settings"
sections=$(sed 's/\..*//' "$work/settings" | sort -u | tr '\n' '|' | sed 's/|$//; s/|/\\|/g')
for file in README.md docs/*.md results/README.md; do
    grep -no "\`\($sections\)\.[a-z_0-9]*[\` =]" "$file" | tr -d '` =' |
        while IFS=: read -r line setting; do
            case $setting in
            *.c | *.h | *.so | *.yaml | *.csv | *.json | opc.pc | opc.serve_env) ;; # a file
            *) grep -qxF "$setting" "$work/settings" || echo "$file:$line: no setting $setting" ;;
            esac
        done >>"$work/said"
done
[ ! -s "$work/said" ] || wrong "no such settings" links

# The map names every document.
for file in docs/*.md; do
    name=$(basename "$file")
    [ "$name" = README.md ] || grep -qF "$name" docs/README.md ||
        wrong "docs/README.md does not name $name" links
done

# No line of text is longer than 120 columns, so that a difference of two versions can be read. Tables,
# pictures, headings, code blocks and `code` that cannot be broken may be.
wide() { # FILE...
    LC_ALL=C awk '
        FNR == 1 { code = 0 }
        /^ *```/ { code = !code }
        code || /^ *\|/ || /^!\[/ || /^    / || /^<!--/ || /^#/ { next }
        {
            gsub(/[\200-\277]/, "") # a letter of several bytes is one column
            text = $0
            gsub(/`[^`]*`/, "", text)
            if (length($0) > 120 && length(text) > 20)
                printf "%s:%d: %d columns\n", FILENAME, FNR, length($0)
        }' "$@"
}
awk 'BEGIN { for (i = 0; i < 41; i++) printf "abc"; print ""; print "| " "a table |" }' >"$work/wide.md"
[ "$(wide "$work/wide.md")" = "$work/wide.md:1: 123 columns" ] || wrong "does not see long lines" wide
wide ./*.md docs/*.md results/README.md results/*/README.md >"$work/said"
[ ! -s "$work/said" ] || wrong "long lines" links
