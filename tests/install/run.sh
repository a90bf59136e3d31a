#!/usr/bin/env bash
# Installs the files of a release into clean folders, and runs what was installed.
#   run.sh           builds the static binary first, which takes long, and runs all parts
#   run.sh --quick   packs target/debug/ctx, and runs the part `here`
#   run.sh PART...   of here, crates, root, image, wine: with the static binary
# $CTX_BINARY is a binary to pack instead, $CTX_EXE one for Windows, and $CTX_DATA a folder with recorded
# sessions. The parts download nothing, except for the Debian of `root`, once.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
example=$PWD/examples/fix-flaky-test.jsonl
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

fail() { printf 'failed: %s\n' "$*" >&2 && exit 1; }
# Runs a command without this environment: its home is $work/NAME.
clean() {
    local home=$work/$1
    mkdir -p "$home" && shift
    env -i HOME="$home" PATH="${clean_path:-/usr/local/bin:/usr/bin:/bin}" "$@"
}
# Runs a binary that was installed.
runs() {
    local said
    said=$(clean "$1" "$2" --version)
    [ "$said" = "ctx $version" ] || fail "$1: $2 --version prints '$said'"
    clean "$1" "$2" replay "$example" --window 32000 >"$work/replay-$1"
    grep -q '^model requests' "$work/replay-$1" || fail "$1: replay prints no report"
    echo "ok: $1, $2"
}

target=$(cargo metadata --format-version 1 --no-deps --locked |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
dist() { cargo xtask dist --out "$@"; }
parts=("$@") binary=${CTX_BINARY:-}
[ "$#" -gt 0 ] || parts=(here crates root image wine)
if [ "${1:-}" = --quick ]; then
    parts=(here) binary=${binary:-$target/debug/ctx}
    [ -x "$binary" ] || cargo build --locked --package ctx-cli
fi
if [ -n "$binary" ]; then
    strip -o "$work/ctx" "$binary" && binary=$work/ctx
else
    dist "$work/first"
    binary=$target/x86_64-unknown-linux-musl/dist/ctx
    ! ldd "$binary" 2>/dev/null | grep -q '=>' || fail "$binary is not static"
fi
files=$work/first
[ -d "$files" ] || dist "$files" --binary "$binary"
dist "$work/second" --binary "$binary" >/dev/null
diff -r "$files" "$work/second" || fail "the same binary gives other files"
(cd "$files" && sha256sum --quiet --check ./*.sha256) || fail "a checksum is wrong"
echo "ok: the same binary gives the same files, with their checksums"

refused() {
    local name=$1 says=$2
    shift 2
    ! clean "$name" env "$@" sh "$files/install.sh" >"$work/said" 2>&1 || fail "$name: is installed"
    grep -q "$says" "$work/said" || fail "$name: says '$(cat "$work/said")'"
    [ -z "$(ls -A "$work/$name")" ] || fail "$name: leaves files"
    echo "ok: $name"
}

# In clean folders of this machine.
here() {
    local install=(env "CTX_BASE_URL=file://$files" sh "$files/install.sh")
    clean tarball "${install[@]}"
    runs tarball "$work/tarball/.local/bin/ctx"
    clean tarball "${install[@]}" >/dev/null || fail "install.sh does not replace an older binary"
    [ "$(ls -A "$work/tarball/.local/bin")" = ctx ] || fail "install.sh leaves other files"

    python3 -m venv "$work/venv"
    clean wheel "$work/venv/bin/pip" install --quiet --no-index --no-deps "$files"/ctxkeep-*.whl
    clean wheel "$work/venv/bin/pip" check
    runs wheel "$work/venv/bin/ctx"
    runs wheel "$work/venv/bin/ctxkeep"
    python3 -m zipfile --test "$files"/ctxkeep-*.whl >/dev/null

    # The packages of other systems are optional, and offline they cannot be found.
    clean_path=$(dirname "$(command -v node)"):/usr/local/bin:/usr/bin:/bin
    clean npm npm install --global --prefix "$work/npm" --offline --no-audit --no-fund --loglevel=error \
        "$files/ctxkeep-$version.tgz" "$files/ctxkeep-linux-x64-$version.tgz"
    runs npm "$work/npm/bin/ctx"
    runs npm "$work/npm/bin/ctxkeep"
    unset clean_path

    # An archive with one other byte, a folder without a release, and no folder.
    cp -r "$files" "$work/forged"
    printf x >>"$work/forged/ctx-$version-x86_64-unknown-linux-musl.tar.gz"
    refused wrong-checksum 'the checksum of .* nothing is installed' "CTX_BASE_URL=file://$work/forged"
    refused no-release 'cannot download' "CTX_BASE_URL=file://$work"
    refused no-address 'set CTX_BASE_URL' A=
}
crates() { CARGO_TARGET_DIR=$target tests/install/crates.sh "$target/packed-crates"; }
root() { tests/install/root.sh "$files" "$session" "$target/install-root"; }
image() { tests/install/image.sh "$files" "$session"; }
wine() {
    local exe=$target/x86_64-pc-windows-gnu
    exe=${CTX_EXE:-$(find "$exe/dist/ctx.exe" "$exe/debug/ctx.exe" 2>/dev/null | head -1)}
    [ -n "$exe" ] || fail "wine: set CTX_EXE, or build with 'cargo xtask dist --target x86_64-pc-windows-gnu'"
    tests/install/wine.sh "$exe" "$session"
}

# A long session of Claude Code.
session=$(find "${CTX_DATA:-../shared/data}/claude-code" -name '*.jsonl' -printf '%s %p\n' 2>/dev/null |
    sort -n | tail -1 | cut -d ' ' -f 2-)
session=${session:-examples/claude-code.jsonl}
for part in "${parts[@]}"; do
    "$part"
done
