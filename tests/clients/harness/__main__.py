"""python -m harness [--ci] [CLIENT ...]"""

import sys

from . import clients, codex_server, hooks, libraries, openclaw, opencode_plugin, pi, proxied, retrieval, run
from . import sdk
from .judge import table
from .room import CTX, MODULES, NODE, NODE_NEEDS, PROVIDER, PYTHON

COMMANDS = (
    clients.Codex,
    clients.CodexCompaction,
    clients.CodexChat,
    *codex_server.ALL,
    clients.Gemini,
    clients.GeminiCompaction,
    clients.Qwen,
    clients.QwenCompaction,
    clients.OpenCode,
    clients.OpenCodeCompaction,
    clients.Claude,
    clients.ClaudeCompaction,
    clients.AiderCompaction,
    pi.PiCompaction,
    openclaw.OpenClawCompaction,
    *retrieval.ALL,
    *hooks.ALL,
    *opencode_plugin.ALL,
    *run.ALL,
)
PROXIED = {c.name: c for c in COMMANDS}
ALL = ["sdk", *PROXIED, "pi", "openclaw", *libraries.ALL]
CI = ["sdk", "codex", "codex-compaction", "gemini", "gemini-compaction", "pi", "anthropic-runner", "vercel-ai"]
SKIPPED = 77


def missing(name):
    """Returns the npm or pip packages that the client needs."""
    if name == "sdk":
        return [] if PYTHON.exists() else list(sdk.NEEDS)
    if name in libraries.ALL:
        return libraries.Library(name).missing()
    if name.startswith("claude"):
        return [] if clients.CLAUDE.exists() else ["@anthropic-ai/claude-code (yourself)"]
    if name.startswith("aider"):
        return [] if clients.AIDER.exists() else list(PROXIED[name].needs)
    if name.startswith("pi"):
        return [] if pi.CLI.exists() else list(pi.NEEDS)
    if name.startswith(("gemini", "qwen")) and not NODE.exists():
        return [*PROXIED[name].needs, NODE_NEEDS]
    packages = openclaw.NEEDS if name == "openclaw" else PROXIED[name].needs
    return [p for p in packages if not (MODULES / p.rpartition("@")[0] / "package.json").exists()]


def check(name):
    if PROXIED.get(name) in codex_server.ALL:
        return codex_server.check(PROXIED[name]())
    if name == openclaw.OpenClawCompaction.name:
        return proxied.check(PROXIED[name](), openclaw.turns)
    if PROXIED.get(name) in hooks.ALL:
        return hooks.check(PROXIED[name]())
    if PROXIED.get(name) in opencode_plugin.ALL:
        return opencode_plugin.check(PROXIED[name]())
    if PROXIED.get(name) in run.ALL:
        return run.check(PROXIED[name]())
    if PROXIED.get(name) in retrieval.ALL:
        return retrieval.check(PROXIED[name]())
    if name in PROXIED:
        return proxied.check(PROXIED[name]())
    if name in libraries.ALL:
        return libraries.check(name)
    return {"sdk": sdk, "pi": pi, "openclaw": openclaw}[name].check()


def main(arguments):
    for binary in (CTX, PROVIDER):
        if not binary.exists():
            print(f"no binary at {binary}: see tests/clients/README.md", file=sys.stderr)
            return 2
    names = [a for a in arguments if not a.startswith("-")] or (CI if "--ci" in arguments else ALL)
    if unknown := [name for name in names if name not in ALL]:
        print(f"no such client: {unknown}; there are {ALL}", file=sys.stderr)
        return 2
    rows, failed, skipped = [], [], []
    for name in names:
        if lacks := missing(name):
            print(f"{name}: skipped, not installed: {' '.join(lacks)}", flush=True)
            skipped.append(name)
            continue
        print(f"{name}: runs", flush=True)
        try:
            faults, row = check(name)
        except (OSError, RuntimeError, ValueError, KeyError, StopIteration) as error:
            faults, row = [f"{type(error).__name__}: {error}"], [name, *["-"] * 5]
        rows.append(row)
        for fault in faults:
            print(f"{name}: FAILED: {fault}", flush=True)
        failed += [name] if faults else []
    print(f"\nwithout ctx / with ctx\n{table(rows)}")
    print(f"\n{len(rows) - len(failed)} well, {len(failed)} failed, {len(skipped)} skipped")
    if failed:
        return 1
    return SKIPPED if skipped and ("--ci" in arguments or not rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
