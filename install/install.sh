#!/bin/sh
# Installs ctx: downloads the archive of this system, verifies its checksum, and copies the binary.
#   CTX_INSTALL_DIR  the folder of the binary [default: ~/.local/bin]
#   CTX_BASE_URL     the folder of the release: https://, http:// or file://
#   CTX_VERSION      the version in that folder
set -eu

version="${CTX_VERSION:-@VERSION@}"
base="${CTX_BASE_URL:-@BASE_URL@}"
folder="${CTX_INSTALL_DIR:-${HOME:?is not set}/.local/bin}"

fail() {
    printf 'error: %s\n' "$1" >&2
    [ "$#" -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

target() {
    case "$(uname -s) $(uname -m)" in
        "Linux x86_64" | "Linux amd64") echo x86_64-unknown-linux-musl ;;
        "Linux aarch64" | "Linux arm64") echo aarch64-unknown-linux-musl ;;
        "Darwin x86_64") echo x86_64-apple-darwin ;;
        "Darwin arm64") echo aarch64-apple-darwin ;;
        *) fail "there is no archive for $(uname -s) on $(uname -m)" \
            "build ctx with 'cargo install --path crates/ctx-cli' in a clone of its repository" ;;
    esac
}

# Only a loopback server may be without TLS; whatever answers, the checksum comes from the same place.
download() {
    case "$1" in
        file://*) cp "${1#file://}" "$2" ;;
        https://* | http://127.0.0.1:* | http://localhost:*)
            if command -v curl >/dev/null 2>&1; then
                curl --fail --silent --show-error --location --output "$2" "$1"
            elif command -v wget >/dev/null 2>&1; then
                wget --quiet --output-document="$2" "$1"
            else
                fail "neither curl nor wget is installed" "install one of them"
            fi ;;
        *) fail "'$base' is not the URL of a folder" "set CTX_BASE_URL to the https:// URL of the release" ;;
    esac || fail "cannot download $1" "check the connection, CTX_BASE_URL and CTX_VERSION"
}

checksum() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# All of it runs at the end: a script that was cut short while it was downloaded does nothing.
main() {
    target=$(target)
    name="ctx-$version-$target"
    work=$(mktemp -d)
    new="$folder/.ctx.$$"
    trap 'rm -rf "$work" "$new"' EXIT
    trap 'exit 1' INT TERM HUP
    download "$base/$name.tar.gz" "$work/archive"
    download "$base/$name.tar.gz.sha256" "$work/sha256"
    expected=$(cut -d ' ' -f 1 "$work/sha256")
    found=$(checksum "$work/archive")
    [ "$found" = "$expected" ] || fail "the checksum of $name.tar.gz is $found, not $expected; nothing is installed" \
        "download again; if it stays wrong, do not use this archive"
    tar -xzf "$work/archive" -C "$work"
    mkdir -p "$folder"
    cp "$work/$name/ctx" "$new"
    chmod 755 "$new"
    said=$("$new" --version) || fail "$name does not run on this system; nothing is installed"
    mv -f "$new" "$folder/ctx"
    echo "installed $said as $folder/ctx"
    case ":${PATH:-}:" in
        *":$folder:"*) echo "$folder is on PATH: run 'ctx help'" ;;
        *) echo "$folder is not on PATH; add it: export PATH=\"$folder:\$PATH\"" ;;
    esac
}
main
