#!/usr/bin/env bash
# Builds the container image of a release with buildah, and runs it. Nothing is downloaded: the base of
# the Dockerfile's first stage is made of this machine's static busybox. Needs root, buildah and
# busybox-static.
#   image.sh RELEASE SESSION
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { printf 'failed: %s\n' "$*" >&2 && exit 1; }
[ "$#" -eq 2 ] || fail "usage: image.sh RELEASE SESSION"
release=$(realpath "$1") session=$(realpath "$2")
version=$(basename "$release"/ctxkeep-[0-9]*.tgz .tgz) && version=${version#ctxkeep-}

store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
export BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs "$@"; }

base=$(sed -n 's/^FROM .*\(docker.io[^ ]*\) AS files$/\1/p' install/Dockerfile)
container=$(buildah from scratch)
mkdir -p "$store/base/bin"
cp "$(command -v busybox)" "$store/base/bin/"
for program in sh sha256sum tar gzip mkdir chmod cp chown; do
    ln -s busybox "$store/base/bin/$program"
done
buildah copy --quiet "$container" "$store/base" / >/dev/null
buildah commit --quiet "$container" "$base" >/dev/null

buildah bud --pull-never --file install/Dockerfile --build-arg "VERSION=$version" --tag ctx "$release" >"$store/log" 2>&1 ||
    { cat "$store/log" >&2 && fail "buildah bud"; }
container=$(buildah from --pull-never localhost/ctx)
files=$(buildah mount "$container")
found=$(cd "$files" && find . -type f | LC_ALL=C sort | xargs)
[ "$found" = './LICENSE-APACHE ./LICENSE-MIT ./THIRD-PARTY.txt ./ctx' ] || fail "the image contains $found"
[ "$(stat --format %u "$files/data")" = 65532 ] || fail "/data belongs to another user"
size=$(du -sh "$files" | cut -f 1)
user=$(buildah inspect --format '{{.OCIv1.Config.User}}' "$container")
[ "$user" = 65532:65532 ] || fail "the image runs as '$user'"
run() { buildah run --volume "$session:/tmp/session.jsonl:ro" "$container" -- /ctx "$@"; }
[ "$(run --version)" = "ctx $version" ] || fail "the image prints '$(run --version)'"
run replay /tmp/session.jsonl >"$store/report"
grep -q '^model requests' "$store/report" || fail "replay in the image prints no report"
echo "ok: image of $size, runs as $user"
