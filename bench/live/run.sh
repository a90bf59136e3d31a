#!/bin/sh
# Ten tasks whose answer needs a detail that was cut before, with and without ctx, by a model of yours; then
# the tables of `ctx replay` and `ctx eval compact` with its summaries. docs/live.md describes them.
#
#   bench/live/run.sh --offline                     no key, no model: is the detail in reach?
#   OPENAI_API_KEY=... bench/live/run.sh --model gpt-5.4-mini --max-dollars 1
#
# Needs python3, and cargo unless CTX_BIN names an existing ctx binary.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${CTX_BIN:-}" ]; then
    (cd "$here/../.." && cargo build --release --quiet -p ctx-cli)
    CTX_BIN=${CARGO_TARGET_DIR:-"$here/../../target"}/release/ctx
fi
export CTX_BIN
exec python3 "$here/live.py" "$@"
