#!/bin/sh
# Compares the speed of ctx with SQLite FTS5 and tantivy: searching, adding and opening, with the same
# texts and questions in one run.
#
#   bench/retrieval/speed.sh                                20,000 segments of 150 words
#   CTX_BENCH_SEGMENTS=1000000 bench/retrieval/speed.sh     a million: takes an hour and 4 GB
#
# Needs python3 and cargo.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${CTX_BENCH_VENV:-"$here/.venv"}
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet tantivy
fi
"$venv/bin/python" "$here/speed.py"
cd "$here/../.."
cargo bench --quiet -p ctx-memory --bench store
cargo bench --quiet -p ctx-memory --bench turn
