#!/usr/bin/env bash
# Runs three commands of ctx.exe under wine, in a home that is empty. Needs wine and MinGW.
#   wine.sh CTX_EXE SESSION
set -euo pipefail
fail() { printf 'failed: %s\n' "$*" >&2 && exit 1; }
[ "$#" -eq 2 ] || fail "usage: wine.sh CTX_EXE SESSION"
session=$(realpath "$2")
shim=$(realpath "$(dirname "$0")/bcryptprimitives.c")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../../Cargo.toml" | head -1)

work=$(mktemp -d)
run() { env -i PATH="$PATH" HOME="$work" WINEPREFIX="$work/wine" WINEDEBUG=-all "$@"; }
trap 'run wineserver --kill || true; rm -rf "$work"' EXIT
cp "$1" "$work/ctx.exe"
cd "$work"
x86_64-w64-mingw32-gcc -shared -o bcryptprimitives.dll "$shim" -ladvapi32
ctx() { run wine ctx.exe "$@" 2>"$work/errors" || { tail "$work/errors" >&2 && fail "ctx.exe $*"; }; }
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
