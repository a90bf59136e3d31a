#!/usr/bin/env bash
# Two hosts share a session on PostgreSQL: one is killed in the middle of a conversation, the other goes on.
# Needs PostgreSQL 15 or newer (its folder in $CTX_POSTGRES_BIN, in /usr/lib/postgresql or in $PATH), and ctx in
# $PATH or in $CTX. Nothing stays behind.
set -euo pipefail

ctx=${CTX:-ctx}
folder=$(mktemp -d)
chmod 755 "$folder"
port=$((20000 + RANDOM % 20000))

programs=${CTX_POSTGRES_BIN:-$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)}
programs=${programs:-$(dirname "$(command -v initdb || echo missing/initdb)")}
if [ ! -x "$programs/initdb" ]; then
    echo "PostgreSQL is not installed: set CTX_POSTGRES_BIN to the folder with initdb" >&2
    exit 1
fi

# The server refuses to run as root.
as_server() {
    if [ "$(id -u)" = 0 ]; then
        (cd / && setpriv --reuid 65534 --regid 65534 --clear-groups "$programs/$1" "${@:2}")
    else
        "$programs/$1" "${@:2}"
    fi
}

first=
stop() {
    [ -z "$first" ] || kill -9 "$first" 2>/dev/null || true
    as_server pg_ctl stop -s -m immediate -D "$folder/server/data" 2>/dev/null || true
    rm -rf "$folder"
}
trap stop EXIT

mkdir "$folder/server"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/server"
as_server initdb --username=postgres --auth=trust --encoding=UTF8 --no-sync -D "$folder/server/data" >"$folder/initdb"
as_server pg_ctl start -s -w -D "$folder/server/data" -l "$folder/server/log" \
    -o "-p $port -h 127.0.0.1 -k $folder/server"

owner="postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable"
"$ctx" store migrate --url "$owner"
"$programs/psql" -X -q "$owner" -c "create role ctx login in role ctx_app"
export CTX_STORE_URL="postgres://ctx@127.0.0.1:$port/postgres?sslmode=disable"
"$ctx" store check

echo "--- the first host talks, and holds the session"
mkfifo "$folder/input"
CTX_HOME="$folder/first" "$ctx" chat --demo --session shared <"$folder/input" >"$folder/first.out" 2>&1 &
first=$!
exec 3>"$folder/input"
echo "The deploy port is 7431. Remember it." >&3
until CTX_HOME="$folder/first" "$ctx" store status --tenant default 2>/dev/null | grep -q "is held by"; do
    kill -0 "$first"
done
until grep -q "7431" < <(CTX_HOME="$folder/copy" "$ctx" store export --quiet -o "$folder/copy" >/dev/null 2>&1
    cat "$folder"/copy/agents/*/sessions/*.jsonl 2>/dev/null); do
    kill -0 "$first"
done
"$ctx" store status

echo "--- the first host is killed"
kill -9 "$first"
wait "$first" 2>/dev/null || true
first=
exec 3>&-

echo "--- the second host goes on"
began=$(date +%s)
CTX_HOME="$folder/second" "$ctx" chat --demo --session shared -p "Which port did I tell you?" >"$folder/second.out"
took=$(($(date +%s) - began))
cat "$folder/second.out"

session=$(ls "$folder"/second/agents/*/sessions/*.jsonl)
if grep -q "The deploy port is 7431" "$session" && grep -q "Which port did I tell you" "$session"; then
    "$ctx" check "$session"
    echo "two hosts, one session: the second host went on after $took s"
else
    echo "the second host does not have what the first one was told" >&2
    exit 1
fi
