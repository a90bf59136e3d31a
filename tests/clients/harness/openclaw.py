"""OpenClaw's gateway with the context engine of ctx, and with its own, alone and through the proxy."""

import json
import socket
import time

from .clients import Client
from .judge import Run, judge, row
from .pi import PACKAGE, installed, packed
from .room import CTX, MODULES, NODE, NODE_NEEDS, Room, free_port, reading

NEEDS = ("openclaw@2026.9.6", NODE_NEEDS)
START_SECONDS = 180
# Log lines of a turn that ran without the engine of ctx, whatever the exit code.
FELL_BACK = "the request goes out with OpenClaw's own messages"
QUIET = ("DISABLE_BONJOUR", "NO_AUTO_UPDATE", "SKIP_CHANNELS", "SKIP_CRON", "NO_RESPAWN")
ENVIRONMENT = {f"OPENCLAW_{name}": 1 for name in QUIET}
COMMAND = [NODE, MODULES / "openclaw/openclaw.mjs"]
AGENT = [*COMMAND, "agent", "--agent", "main", "--session-key", "agent:main:t1", "--json", "--message"]
NOT_OURS = ("degraded to", "assemble failed", "bootstrap failed", "quarantine", FELL_BACK)


class OpenClaw:
    name = "openclaw"
    tool = ("read", {"path": "big.txt"})
    limit = 62_000
    window = 20_000
    turns = 4
    fails_alone = False  # its own engine compacts after each refusal


class OpenClawCompaction(Client):
    """OpenClaw as it compacts by itself through the proxy, with its own engine."""

    name = "openclaw-compaction"
    needs = NEEDS
    tool = OpenClaw.tool
    limit = 0
    window = 200_000
    turns = 8
    # Its quality guard wants these sections, and words of the newest message.
    summary = """## Decisions
For BIGREAD a big file of the workspace is read in each turn.

## Open TODOs
None.

## Constraints/Rules
None.

## Pending user asks
None.

## Exact identifiers
big.txt"""

    def settings(self, room, base):
        self.port = free_port()
        settings_of = settings(room, base, self.port, window=40_000)
        settings_of["agents"]["defaults"]["compaction"] = {"keepRecentTokens": 6_000}
        room.write(".openclaw/openclaw.json", settings_of)
        return ENVIRONMENT


def turns(client, room, environment):
    """Runs a command for each turn. Returns whether it is well, and what was seen."""
    gateway(room, environment, client.port)
    for turn in range(1, client.turns + 1):
        code, out, err = room.run([*AGENT, client.prompt(turn)], environment, f"turn{turn}")
        yield client.is_well(turn, code, out), f"code {code} {(out + err)[-160:]!r}"


def check():
    alone, _, _ = held("legacy", "legacy", OpenClaw.turns)
    through, log, calls = held("ctx", "ctx", OpenClaw.turns, is_installed=True)
    faults = [words for words, holds in judge(OpenClaw, alone, through) if not holds]
    faults += [f"the gateway's log says {words!r}" for words in NOT_OURS if words in log]
    keys = [c["params"]["advancementKey"] for c in calls if c["method"] == "commit_turn"]
    if len(keys) != OpenClaw.turns or len(set(keys)) != len(keys):
        faults.append(f"{OpenClaw.turns} turns were committed as {keys}")
    if not any(c["method"] == "compact" for c in calls) or '"compacted": true' not in through.said:
        faults.append(f"a compaction that is asked for: {through.said[-300:]!r}")
    # Without ctx the turn continues, and the log says so.
    broken, log, _ = held("broken", "ctx", 1, program="/nonexistent/ctx")
    if not broken.turns[0][0] or FELL_BACK not in log:
        faults.append(f"without the binary: {broken.turns} {FELL_BACK in log}")
    if faults:
        faults.append(f"see {through.folder}")
    return faults, row(OpenClaw.name, alone, through)


def held(mode, engine, turns, program=None, is_installed=False):
    """Returns the run, the gateway's log, and the calls that reached ctx."""
    with Room(f"openclaw-{mode}") as room:
        run, told = Run(folder=room.folder), room.folder / "rpc.jsonl"
        upstream = room.provider(OpenClaw.limit, reading(*OpenClaw.tool))
        tap = room.write("tap", f'#!/bin/sh\ntee -a "{told}" | "{CTX}" "$@"\n')
        tap.chmod(0o755)
        port = free_port()
        config = {"program": program or str(tap), "window": OpenClaw.window}
        config["home"] = str(room.folder / "ctx")
        environment = room.environment(ENVIRONMENT)
        plugins = {"entries": {"ctx": {"config": config}}}
        if not is_installed:
            plugins = {
                "allow": ["ctx"],
                "load": {"paths": [str(PACKAGE)]},
                "slots": {"contextEngine": engine},
                "entries": {"ctx": {"enabled": True, "config": config}},
            }
        room.write(".openclaw/openclaw.json", {**settings(room, upstream, port), "plugins": plugins})
        if is_installed:
            source = [f"npm-pack:{packed(room)}", "--force", "--accept-capabilities"]
            installed(room, [*COMMAND, "plugins", "install", *source], environment)
        log = gateway(room, environment, port)
        for turn in range(1, turns + 1):
            code, out, err = room.run([*AGENT, f"BIGREAD {turn}"], environment, f"turn{turn}")
            ok = code == 0 and "DONE" in out
            run.turns.append((ok, "" if ok else f"turn {turn}: code {code} {(out + err)[-160:]!r}"))
        if engine == "ctx":
            said = ["sessions", "compact", "agent:main:t1", "--json", "--token", "test"]
            _, out, err = room.run([*COMMAND, *said], environment, "compact")
            run.said = out + err
        run.requests = room.requests()
        lines = told.read_text().splitlines() if told.exists() else []
        return run, log.read_text(errors="replace"), [json.loads(line) for line in lines]


def settings(room, upstream, port, window=200_000):
    model = {
        "id": "fake-model",
        "name": "Fake",
        "reasoning": False,
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": window,
        "maxTokens": 4096,
    }
    provider = {
        "baseUrl": f"{upstream}/v1",
        "apiKey": "dummy",
        "api": "openai-completions",
        "models": [model],
    }
    defaults = {"workspace": str(room.work), "skipBootstrap": True}
    defaults["model"] = {"primary": "fake/fake-model"}
    auth = {"mode": "token", "token": "test"}
    return {
        "gateway": {"mode": "local", "bind": "loopback", "port": port, "auth": auth},
        "update": {"checkOnStart": False},
        "agents": {"defaults": defaults},
        "models": {"mode": "merge", "providers": {"fake": provider}},
    }


def gateway(room, environment, port):
    """Starts it, and returns the path of its log once it is listening."""
    log = room.folder / "gateway.log"
    process = room.spawn([*COMMAND, "gateway", "run"], environment, log)
    late = time.monotonic() + START_SECONDS
    while time.monotonic() < late and process.poll() is None:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return log
        time.sleep(0.2)
    raise RuntimeError(f"the gateway does not start: {log.read_text(errors='replace')[-2000:]}")
