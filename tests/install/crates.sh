#!/usr/bin/env bash
# Builds the packed ctx-core and ctx-tool-guard as another project would, in $1, which is emptied, and
# lists what the other crates would ship.
#   crates.sh DIR
# Crates of the workspace come from their packages by [patch]: ctx-core is another project's name in the
# registry.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?usage: crates.sh DIR}
# ctx-tool-guard, and the crates of the workspace that it depends on.
mapfile -t packed < <(cargo tree --locked --package ctx-tool-guard --edges normal --prefix none |
    sed -n 's/^\(ctx-[a-z-]*\) .*/\1/p' | sort -u)
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log" >&2 && exit 1; }; }

rm -rf "$folder" && mkdir -p "$folder/src"
folder=$(realpath "$folder")
quietly cargo package --no-verify --exclude-lockfile --allow-dirty \
    --target-dir "$folder/target" "${packed[@]/#/--package=}"
for file in "$folder"/target/package/*.crate; do
    tar -xzf "$file" -C "$folder"
done
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
cat >"$folder/Cargo.toml" <<TOML
[package]
name = "packed"
edition = "2024"
[dependencies]
ctx-core = { version = "$version", features = ["o200k"] }
ctx-tool-guard = "$version"
[workspace]
exclude = ["ctx-*"]
# As in the workspace, so that crates that are built are not built again.
$(sed -n '/^\[profile\.dev\(\.package\)\?\]/,/^$/p' Cargo.toml)
[patch.crates-io]
$(printf '%s\n' "${packed[@]}" | sed "s/.*/& = { path = \"&-$version\" }/")
TOML
cat >"$folder/src/main.rs" <<'RUST'
use ctx_core::Layer;

fn main() {
    let guard = ctx_tool_guard::ToolGuard::new(ctx_tool_guard::Config::default());
    let counter: ctx_core::CounterKind = "o200k".parse().expect("a counter");
    println!("{} {counter}", guard.id());
}
RUST
cp Cargo.lock "$folder/"
quietly cargo build --manifest-path "$folder/Cargo.toml"
said=$(cargo run --quiet --manifest-path "$folder/Cargo.toml")
[ "$said" = "tool-guard o200k" ] || { echo "failed: the program of packed crates prints '$said'" >&2 && exit 1; }
echo "ok: ${packed[*]} are packed, unpacked and built"

for crate in crates/*/; do
    quietly cargo package --list --allow-dirty --package "$(basename "$crate")"
    for file in Cargo.toml README.md src/; do
        grep -q "^$file" "$folder/log" || { echo "failed: $crate does not ship $file" >&2 && exit 1; }
    done
done
echo "ok: each crate lists what it ships"
