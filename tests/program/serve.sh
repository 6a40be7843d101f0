#!/bin/sh
# SPDX-License-Identifier: MIT
# opc serve: who gets in and who does not, a page that is clicked through in a browser while a run goes on, and that
# looking at a run changes nothing and starts no code.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"
smoke=$SRC/experiments/examples/smoke.yaml
if without MICROHTTPD; then
    mkdir runs
    expect 1 'libmicrohttpd-dev.*OPC_WITH_MICROHTTPD=ON' "$OPC" serve runs
    echo 'skipped: this build has no server'
    exit 77
fi
need_tool python3

# ---- wrong commands ----------------------------------------------------------------------------------
expect 2 'opc serve DIR' "$OPC" serve
expect 2 'nowhere' "$OPC" serve nowhere
mkdir runs
expect 2 'bind 0.0.0.0.*--i-know' "$OPC" serve runs --bind 0.0.0.0
expect 2 'somewhere is not an IPv4 address' "$OPC" serve runs --bind somewhere --i-know

# ---- runs: two seeds, one from elsewhere, one that goes on -------------------------------------------
for seed in 1 2; do
    "$OPC" train "$smoke" train.seed=$seed --quiet --threads 1 --out "runs/s$seed"
done
ln -s /etc/passwd runs/s1/link.csv
without CAIRO || "$OPC" plot runs/s1 -o runs/s1/curve.svg >/dev/null
without CAIRO || cp runs/s1/curve.svg runs/s2/curve.svg
cp -r runs/s1 'runs/<img src=x onerror=alert(1)>'
sed -i "s|  name: cartpole|  name: \"exec:touch $work/started\"|" runs/*onerror*/config.yaml

served() { # OPTIONS...: starts a server and waits for its address
    rm -f address
    "$OPC" serve runs "$@" >address 2>said &
    server=$!
    trap 'kill $server $(cat going.pid) 2>/dev/null || true; rm -rf "$work"' EXIT
    await $server address
    url=$(grep -o 'http://[^ ]*' address)
}
: >going.pid
served --bind localhost
case $url in http://127.0.0.1:*) ;; *) wrong "localhost is $url" cat address ;; esac
kill $server
wait $server || :
served
find runs -type f -exec cksum {} + | sort >before
python3 "$SRC/tests/program/serve/intruders.py" "$url" >said 2>&1 || wrong "somebody gets in" intruders.py
cat said
find runs -type f -exec cksum {} + | sort | cmp - before || wrong "the server writes" ls -lR runs
kill -0 $server

# ---- the page ----------------------------------------------------------------------------------------
# A run that goes on for as long as it is looked at; the result is that of one nobody looks at.
"$OPC" train "$smoke" train.seed=1 opc.transition=learned train.epochs=100000 --quiet --threads 1 --out runs/going \
    >/dev/null 2>&1 &
echo $! >going.pid
await "$(cat going.pid)" runs/going/metrics.csv
if command -v chromium >/dev/null && ! without CAIRO; then
    mkdir -p pictures
    python3 "$SRC/tests/program/serve/page.py" "$url" pictures >said 2>&1 || wrong "the page fails" page.py
    cat said
    [ "$(find pictures -name '*.png' -size +20k | wc -l)" = 4 ]
    [ -z "${KEEP:-}" ] || cp pictures/*.png "$KEEP"
else
    echo 'without chromium and cairo the page is not looked at; ./dev deps test installs both'
    [ "${MAY_SKIP:-0}" = 1 ]
fi
kill "$(cat going.pid)"
wait "$(cat going.pid)" || [ $? = 75 ]
rows=$(($(wc -l <runs/going/metrics.csv) - 1))
"$OPC" train "$smoke" train.seed=1 opc.transition=learned train.epochs=100000 --quiet --threads 1 --out alone \
    >/dev/null 2>&1 &
alone=$!
await $alone alone/metrics.csv
until [ "$(wc -l <alone/metrics.csv)" -gt 5 ]; do sleep 0.05; done
kill $alone
wait $alone || [ $? = 75 ]
[ "$rows" -ge 5 ]
head -n 6 alone/metrics.csv >alone.csv
head -n 6 runs/going/metrics.csv | cmp - alone.csv
[ ! -e started ] || wrong "looking at a run starts its code" "$OPC" serve

# ---- Ctrl-C ------------------------------------------------------------------------------------------
kill -INT $server
wait $server || wrong "the server ends with status $?" cat address
