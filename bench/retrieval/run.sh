#!/bin/sh
# Compares the recall of ctx with that of alternatives, on the same conversations in one run:
# tantivy (en_stem) and SQLite FTS5 (porter, OR), one message per document; and MiniLM if
# sentence-transformers and a model are installed.
#
#   bench/retrieval/run.sh                       ctx without a model
#   bench/retrieval/run.sh --model DIR           also with the model in DIR (config.json,
#                                                tokenizer.json, model.safetensors)
#   bench/retrieval/run.sh --split held-out      only conversations on which no constant was chosen
#
# Needs python3 and cargo. The data is not in the repository, and must not be added: set CTX_DATA to a
# folder with locomo/*.json and beam/N/. CTX_BIN names an existing ctx binary; --model requires the
# feature `transformer`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${CTX_DATA:?set CTX_DATA to a folder with locomo/*.json and beam/N/}"

venv=${CTX_BENCH_VENV:-"$here/.venv"}
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet tantivy
fi
if [ -z "${CTX_BIN:-}" ]; then
    (cd "$here/../.." && cargo build --release --quiet -p ctx-cli --features transformer)
    CTX_BIN=${CARGO_TARGET_DIR:-"$here/../../target"}/release/ctx
fi
export CTX_BIN CTX_DATA
exec "$venv/bin/python" "$here/compare.py" "$@"
