#!/bin/sh
# Times ctx against pi on the same sessions, in one run, and writes the table to docs/benchmarks.md.
#
#   bench/peers/run.sh            everything: takes several minutes
#   bench/peers/run.sh --quick    fewer rounds and no 96 MB session: a quick test
#
# Needs npm, python3 and cargo. The base session is $CTX_DATA/pi/before-compaction.jsonl if it exists,
# else the one in examples/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"

if [ ! -x node_modules/.bin/node ] || [ ! -d node_modules/@earendil-works/pi-coding-agent ]; then
    npm install --no-audit --no-fund --no-package-lock --loglevel=error >&2
fi
if ! node_modules/.bin/node --version >/dev/null 2>&1; then
    echo "npm did not install the node binary: its install scripts may be disabled." >&2
    echo "hint: run 'npm rebuild node' in bench/peers" >&2
    exit 1
fi

cargo build --release --quiet -p ctx-cli
cargo build --release --quiet -p ctx-session --example open_context --example append_entries
exec python3 compare.py "$@"
