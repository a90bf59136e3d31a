#!/usr/bin/env bash
# Runs the adapters of ctxkeep in their frameworks, against a fake provider: the examples without ctx and with
# it, and checks.py or checks.mjs.
#
#   tests/adapters/run.sh [NAME ...]     default: all; installs what is missing into target/clients
#   tests/adapters/run.sh --ci           three of them
#   tests/adapters/run.sh --installed DIR [NAME ...]
#                                        the examples, with the packages that `cargo xtask dist --wheel --npm`
#                                        wrote to DIR, which are installed offline
#
# ctx and the provider are built, unless $CTX_BIN and $CTX_PROVIDER name them. Exit code: 0 if all passed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=(cargo build --quiet --locked --manifest-path "$root/Cargo.toml")
if [ "${1-}" = --installed ]; then
    set -- "$1" "$(realpath "$2")" "${@:3}"
elif [ -z "${CTX_BIN-}" ]; then
    "${build[@]}" -p ctx-cli
fi
[ -n "${CTX_PROVIDER-}" ] || "${build[@]}" -p ctx-testkit --features provider --example provider
cd "$root/tests/clients"
exec python3 -m harness.run_adapters "$@"
