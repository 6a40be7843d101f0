#!/bin/sh
# SPDX-License-Identifier: MIT
# opc report: a page of exhibits with pictures cairo drew, wrong input, and what a browser makes of
# the page.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"

# ---- exhibits --------------------------------------------------------------------------------------
if without CAIRO; then
    cat >curves.svg <<'END'
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="600pt"
 height="300pt" viewBox="0 0 600 300"><defs><symbol id="glyph0-0"><path d="M 0 0 L 40 0 L 0 40 Z"/>
</symbol><clipPath id="clip1"><rect width="300" height="300"/></clipPath></defs>
<g id="surface1" clip-path="url(#clip1)"><use xlink:href="#glyph0-0" x="10" y="10"/></g></svg>
END
else
    "$OPC" train "$SRC/experiments/examples/smoke.yaml" train.epochs=2 --quiet --out run
    "$OPC" plot run -o curves.svg >/dev/null
fi
exhibit() { # DIR NAME TITLE VERDICT
    mkdir -p "$1"
    cp curves.svg "$1/$2.svg"
    cp curves.svg "$1/$2-again.svg"
    printf 'task,return\n"a, <b>",%s\n' 1 20.25 300 >"$1/$2.csv"
    cat >"$1/$2.json" <<END
{"name": "$2", "title": "$3", "tier": "smoke", "caption": "one seed\nof \"five\"",
 "version": "0.1.0", "command": "opc repro $2 --tier smoke", "config": "a: <b> & c\n",
 "pictures": [{"file": "$2", "title": "curves"}, {"file": "$2-again", "title": "again"}],
 "tables": [{"file": "$2.csv", "title": "ends"}],
 "claims": [{"claim": "a < b", "measured": "1 & 2", "verdict": "$4"}],
 "notes": ["not <all> of it"]}
END
}
exhibit all fig10 'ten' supported
exhibit all fig9 'nine' 'not supported'
exhibit all/more table1 'A <script>alert(1)</script> \"title\" & more' undecided
exhibit all/more summary 'named as a part of the page' supported

expect 0 '^4 .* 2 supported, 1 not supported, 1 undecided -> page.html$' \
    "$OPC" report all -o page.html --title 'All & <everything>'
cp -r all copy
expect 0 '' "$OPC" report copy -o again.html --title 'All & <everything>'
cmp page.html again.html
# A title is above its picture.
grep -A 1 '^<figure>$' page.html | grep -q '^<figcaption>again</figcaption>$' ||
    wrong "the title is not the first of its figure" grep -n -A 2 '<figure>' page.html

# ---- wrong input -----------------------------------------------------------------------------------
expect 2 '^opc: report: .*directories' "$OPC" report
expect 2 '^opc: report: .*nowhere' "$OPC" report all nowhere
mkdir empty
exhibit looked-at/probe states 'of a run' supported
touch looked-at/config.yaml
expect 0 '^1 .* 1 supported.* -> run.html$' "$OPC" report looked-at -o run.html
expect 2 "^opc: report: .*empty.*'opc repro'.*'opc probe'" "$OPC" report empty
[ ! -e report.html ]
expect 2 '^opc: report: .*nowhere/page.html: No such file' "$OPC" report all -o nowhere/page.html

cp -r all lacking
rm lacking/fig9.svg lacking/more/table1.csv
expect 1 '^opc: warning: fig9: .*lacking/fig9.svg
^opc: warning: table1: .*lacking/more/table1.csv
^opc: report: .*lacking.html.* 2 of 12 ' \
    "$OPC" report lacking -o lacking.html
grep -q '</strong> <code>fig9.svg</code>' lacking.html
grep -q '</strong> <code>table1.csv</code>' lacking.html

cp -r all broken
printf '{"name": "fig9",\n "claims": [}' >broken/fig9.json
expect 3 'broken/fig9.json:2:' "$OPC" report broken -o broken.html
[ ! -e broken.html ]

# ---- in a browser ----------------------------------------------------------------------------------
need_tool chromium ffmpeg
browse() { # PAGE ARGUMENTS...
    page=$1
    shift
    rm -rf profile
    mkdir profile
    chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$work/profile" --hide-scrollbars "$@" "file://$work/$page" 2>said ||
        wrong 'the browser failed' chromium "$page" "$@"
}

# The page as it is.
browse page.html --dump-dom >dom.html
for name in fig9 fig10 table1 summary-2; do
    grep -q "<article id=\"$name\"" dom.html
done
[ "$(grep -o '<article id="[^"]*"' dom.html | tr -d '\n')" = \
    '<article id="fig9"<article id="fig10"<article id="table1"<article id="summary-2"' ]
twice=$(grep -o ' id="[^"]*"' dom.html | sort | uniq -d)
[ -z "$twice" ] || {
    echo "ids that occur twice: $twice"
    exit 1
}
if grep -qi 'https\?://\|<script\|<link\|<iframe\|@import' page.html dom.html; then
    echo 'the page refers to something outside'
    exit 1
fi

# A copy that may run a script, which tells what the browser sees at the width of a phone.
cat >measure.js <<'END'
const hrefs = [...document.querySelectorAll("use, a")].map(e => e.getAttribute("href"));
const urls = [...document.querySelector("main").innerHTML.matchAll(/url\(([^)]*)\)/g)].map(m => m[1]);
const lost = hrefs.concat(urls).filter(h => !document.getElementById(h.slice(1)));
const flat = [...document.querySelectorAll(".picture svg")].filter(
    s => s.getBoundingClientRect().height < 50 || s.getBBox().width < 1);
const level = [...document.querySelectorAll("h1, h2, h3")].map(h => +h.tagName[1]);
const jump = level.some((l, i) => i && l > level[i - 1] + 1);
const root = document.documentElement;
document.title = `seen: ${document.querySelectorAll(".picture svg").length} pictures, ` +
    `${flat.length} flat, ${hrefs.length && urls.length ? lost.length : "no references"} lost, ` +
    `headings ${jump ? "jump" : "in order"}, ` +
    `page ${root.scrollWidth > root.clientWidth ? "too wide" : "fits"} in ${root.clientWidth}`;
END
{
    sed '/http-equiv/d; /<\/body>/,$d' page.html
    echo '<script>'
    cat measure.js
    echo '</script></body></html>'
} >measured.html
browse measured.html --window-size=500,900 --dump-dom >dom.html
grep -o '<title>seen: [^<]*' dom.html || true
grep -q '<title>seen: 8 pictures, 0 flat, 0 lost, headings in order, page fits in 500<' dom.html

# By day and by night it is not blank, and the two differ.
for scheme in day night; do
    setting=1
    [ $scheme = day ] || setting=0
    browse page.html --blink-settings=preferredColorScheme=$setting --window-size=1200,1600 \
        --screenshot="$work/$scheme.png" >/dev/null
    ffmpeg -v error -i $scheme.png -f rawvideo -pix_fmt gray -y $scheme.raw
    [ "$(wc -c <$scheme.raw)" = $((1200 * 1600)) ]
    # the share of every grey level: text and pictures leave none with all, and many with some
    od -An -v -tu1 -w1 $scheme.raw | sort -n | uniq -c | sort -rn >$scheme.levels
    [ "$(wc -l <$scheme.levels)" -gt 50 ]
    [ "$(awk 'NR == 1 { print $1 }' $scheme.levels)" -lt $((1200 * 1600 * 98 / 100)) ]
done
[ "$(awk 'NR == 1 { print $2 }' day.levels)" -gt 200 ]
[ "$(awk 'NR == 1 { print $2 }' night.levels)" -lt 60 ]

# ---- a plain run -------------------------------------------------------------------------------------------
expect 0 '' "$OPC" train "$SRC/experiments/examples/smoke.yaml" --quiet --out plain
printf 'a film' >plain/film.gif
expect 0 '^1 exhibit, ' "$OPC" report plain -o plain.html
for fact in 'OPC on cartpole' '<h1[^>]*>Training runs' 'data:image/gif;base64,YSBmaWxt"' 'eq\. 2' 'transition: corrected'; do
    grep -q "$fact" plain.html || wrong "the page lacks $fact" ls plain/report
done
[ "$(grep -o '<svg' plain.html | wc -l)" = 2 ] || wrong "not returns and errors" ls plain/report
sed -n 2p plain/report/plain-state.csv | grep -q '^3,300,' || wrong "the state" cat plain/report/plain-state.csv
cp plain.html first.html
expect 0 '' "$OPC" report plain -o plain.html
cmp plain.html first.html
# Stopped before its first epoch, there is nothing to show.
cp -r plain begun
sed -i 1q begun/metrics.csv
expect 2 'begun has no complete epoch' "$OPC" report begun -o plain.html
