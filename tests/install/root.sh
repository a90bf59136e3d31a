#!/usr/bin/env bash
# Installs the files of a release in a minimal Debian without a compiler and without a network, and
# replays a session of Claude Code: each within 30 s from the start of the installation. Needs root,
# and debootstrap, which downloads the Debian into CACHE the first time.
#   root.sh RELEASE SESSION CACHE
set -euo pipefail
fail() { printf 'failed: %s\n' "$*" >&2 && exit 1; }
[ "$#" -eq 3 ] || fail "usage: root.sh RELEASE SESSION CACHE"
[ "$(id -u)" = 0 ] || fail "root.sh needs root, for chroot"
release=$(realpath "$1") session=$(realpath "$2") root=$3
version=$(basename "$release"/ctxkeep-[0-9]*.tgz .tgz) && version=${version#ctxkeep-}

if [ ! -e "$root/ready" ]; then
    rm -rf "$root" && mkdir -p "$root"
    debootstrap --variant=minbase bookworm "$root" >"$root.log" || fail "debootstrap, see $root.log"
    DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -qq --no-install-recommends \
        python3-pip python3-venv npm >>"$root.log" 2>&1 || fail "apt-get, see $root.log"
    touch "$root/ready"
fi

# Runs a script of sh in the root, whose /tmp is empty, without a network.
# shellcheck disable=SC2016 # The shell inside expands it.
inside() {
    unshare --mount --net --pid --fork sh -euc '
        mount -t tmpfs none "$1/tmp"
        mkdir "$1/tmp/release" "$1/tmp/home"
        mount --bind -o ro "$2" "$1/tmp/release"
        cp "$3" "$1/tmp/session.jsonl"
        mount -t proc proc "$1/proc"
        exec chroot "$1" env -i HOME=/tmp/home PATH=/usr/local/bin:/usr/bin:/bin sh -euc "$4"
    ' sh "$root" "$release" "$session" "$1"
}
for program in cc gcc c++ g++ clang cargo rustc; do
    inside "! command -v $program" || fail "$program is in the root"
done
installs() {
    local name=$1 began=${EPOCHREALTIME/./} took
    inside "$2; \"\$ctx\" replay /tmp/session.jsonl" >"$root.log" 2>&1 || { tail "$root.log" >&2 && fail "$name"; }
    took=$(((${EPOCHREALTIME/./} - began) / 10000))
    grep -q '^model requests' "$root.log" || fail "$name: replay prints no report, see $root.log"
    printf 'ok: %s, installed and replayed in %d.%02d s\n' "$name" $((took / 100)) $((took % 100))
    [ "$took" -lt 3000 ] || fail "$name: takes over 30 s"
}
installs tarball 'CTX_BASE_URL=file:///tmp/release sh /tmp/release/install.sh; ctx=/tmp/home/.local/bin/ctx'
installs wheel "python3 -m venv /tmp/venv; ctx=/tmp/venv/bin/ctx
    /tmp/venv/bin/pip install --quiet --no-index /tmp/release/ctxkeep-$version-*.whl"
installs npm "ctx=/tmp/npm/bin/ctx
    npm install --global --prefix /tmp/npm --offline --no-audit --no-fund --loglevel=error \
        /tmp/release/ctxkeep-$version.tgz /tmp/release/ctxkeep-linux-x64-$version.tgz"
