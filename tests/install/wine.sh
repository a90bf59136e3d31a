#!/usr/bin/env bash
# Runs three commands of ctx.exe under wine, in a home that is empty.
#   wine.sh CTX_EXE SESSION
set -euo pipefail
fail() { printf 'failed: %s\n' "$*" >&2 && exit 1; }
[ "$#" -eq 2 ] || fail "usage: wine.sh CTX_EXE SESSION"
binary=$(realpath "$1") session=$(realpath "$2")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../../Cargo.toml" | head -1)

work=$(mktemp -d)
run() { env -i PATH="$PATH" HOME="$work" WINEPREFIX="$work/wine" WINEDEBUG=-all "$@"; }
trap 'run wineserver --kill || true; rm -rf "$work"' EXIT
cd "$work"
ctx() { run wine "$binary" "$@" 2>"$work/errors" || { tail "$work/errors" >&2 && fail "ctx.exe $*"; }; }
said=$(ctx --version | tr -d '\r')
[ "$said" = "ctx $version" ] || fail "ctx.exe --version prints '$said'"
ctx replay "Z:${session//\//\\}" >"$work/report"
grep -q '^model requests' "$work/report" || fail "replay prints no report"
ctx setup claude --mcp --dry-run >"$work/setup"
for part in ANTHROPIC_BASE_URL 'ctx.exe"'; do
    grep -q "$part" "$work/setup" || fail "setup prints '$(cat "$work/setup")'"
done
[ -z "$(find "$work/wine" -name '.claude*')" ] || fail "setup --dry-run writes files"
echo "ok: ctx.exe, three commands under $(wine --version 2>/dev/null)"
