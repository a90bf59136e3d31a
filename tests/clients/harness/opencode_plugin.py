"""The plugin of ctxkeep in opencode and Kilo, without a proxy: twelve turns in a window that they fill."""

import json
import sqlite3
import time
import urllib.request

from .clients import OpenCode
from .judge import CACHED_AT_LEAST, Run, complaints, row
from .room import CTX, MODULES, ROOT, TURN_SECONDS, Room, forgetting, free_port, reading

PACKAGE = ROOT / "packages/node"  # a folder is loaded like a package of npm
START_SECONDS = 60


class OpenCodePlugin(OpenCode):
    """One server runs the turns, as in the terminal interface; another one takes over at `restart`."""

    name = "opencode-plugin"
    program = MODULES / "opencode-linux-x64/bin/opencode"
    files = "opencode"
    turns = 12
    restart = 7
    context = 40_000
    window = context - 4096  # tokens that opencode leaves to a prompt
    limit = window * 4
    ctx = ""  # the program; without one there is no plugin
    summary = "## Objective\n- The user has a big file read."

    def settings(self, room, base):
        environment = super().settings(room, base)
        config = json.loads((room.home / ".config/opencode/opencode.json").read_text())
        plugin = {"plugin": [PACKAGE.as_uri()]} if self.ctx else {}
        room.write(f".config/{self.files}/{self.files}.json", {**config, **plugin})
        offline = {"NPM_CONFIG_OFFLINE": "true", "NPM_CONFIG_FETCH_RETRIES": 0}
        return {**environment, **offline, "CTX_BIN": self.ctx, "CTX_HOME": room.folder / "ctx"}

    def ask(self, turn):
        """Runs a turn of its session. Returns whether it is well, and what was seen."""
        if turn == 1:
            self.session = self.post("/session", {"title": "t"})["id"]
        try:
            parts = [{"type": "text", "text": f"BIGREAD {turn}"}]
            answer = json.dumps(self.post(f"/session/{self.session}/message", {"parts": parts}))
        except OSError as error:
            return False, f"turn {turn}: {error}"
        ok = "DONE" in answer
        return ok, "" if ok else f"turn {turn}: {answer[-160:]}"

    def post(self, path, body):
        data, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, kind)
        with urllib.request.urlopen(request, timeout=TURN_SECONDS) as answer:
            return json.loads(answer.read())

    def serve(self, room, environment, turn):
        """Starts its server in place of the one before."""
        if turn > 1:
            self.stop(room)
        port, log = free_port(), room.folder / f"serve{turn}.log"
        self.url = f"http://127.0.0.1:{port}"
        command = [self.program, "serve", "--port", port, "--print-logs", "--log-level", "WARN"]
        room.spawn(command, environment, log)
        late = time.monotonic() + START_SECONDS
        while "listening" not in log.read_text(errors="replace"):
            if time.monotonic() > late:
                raise RuntimeError(f"{self.name} does not start: see {log}")
            time.sleep(0.2)

    def stop(self, room):
        server = room.processes.pop()
        server.terminate()
        server.wait(START_SECONDS)

    def results(self, room):
        """Returns the sizes of the results that it stores."""
        files = (room.home / f".local/share/{self.files}").glob("*.db")
        query = "SELECT length(json_extract(data, '$.state.output')) FROM part"
        with sqlite3.connect(f"file:{next(files)}?mode=ro", uri=True) as database:
            return [size for (size,) in database.execute(query) if size]


class KiloPlugin(OpenCodePlugin):
    """Kilo is a fork of opencode, with its plugins."""

    name = "kilo-plugin"
    needs = ("@kilocode/cli-linux-x64@7.7.7",)
    program = MODULES / "@kilocode/cli-linux-x64/bin/kilo"
    files = "kilo"

    def settings(self, room, base):
        quiet = {"KILO_DISABLE_AUTOUPDATE": 1, "KILO_DISABLE_MODELS_FETCH": 1, "KILO_TELEMETRY_LEVEL": "off"}
        return {**super().settings(room, base), **quiet}


ALL = (OpenCodePlugin, KiloPlugin)


def check(client):
    """Returns the failed checks, and the row of the table."""
    alone, kept = held(client, "alone", ""), held(client, "plugin", CTX)
    broken = held(client, "broken", "/missing/ctx", turns=2)
    faults = [words for words, holds in judge(client, alone, kept, broken) if not holds]
    faults += [f"see {alone.folder}, {kept.folder} and {broken.folder}"] if faults else []
    return faults, row(client.name, alone, kept)


def held(client, mode, ctx, turns=0):
    """Runs its turns with that program of ctx; without one, it has no plugin."""
    client.ctx = ctx
    with Room(f"{client.name}-{mode}") as room:
        run = Run(folder=room.folder)
        upstream = room.provider(client.limit, [*forgetting(client.summary), *reading(*client.tool)])
        environment = room.environment(client.settings(room, upstream))
        for turn in range(1, (turns or client.turns) + 1):
            if turn in (1, client.restart):
                client.serve(room, environment, turn)
            run.turns.append(client.ask(turn))
        client.stop(room)
        run.requests = room.requests()
        sizes = client.results(room)
        run.kept.append((f"its session has all results {sizes}", sizes == [max(sizes)] * len(run.turns)))
        left = room.processes_of(room.folder / "ctx")
        run.kept.append((f"no process is left {left}", not left))
        logs = "".join(log.read_text(errors="replace") for log in room.folder.glob("serve*.log"))
        run.said = "\n".join(line for line in logs.splitlines() if "the request is made without" in line)
        return run


def judge(client, alone, kept, broken):
    """Returns the checks, and whether each passes."""
    # A request for a summary has no tools.
    compactions = lambda run: [r["number"] for r in run.requests if not r["body"].get("tools")]
    yield "without the plugin: it compacts by itself", bool(compactions(alone))
    yield "without the plugin: nothing of ours is in a prompt", not alone.marked()
    yield f"every turn is well ({complaints(kept)})", kept.well() == client.turns
    yield f"it does not compact by itself {compactions(kept)}", not compactions(kept)
    refusals = [r["refusal"] for r in kept.requests if r["refusal"]]
    yield f"no prompt is refused {refusals[:2]}", not refusals
    largest = kept.largest()
    yield f"each prompt is in the window ({largest} of {client.window})", largest <= client.window
    yield f"calls have their results {unpaired(kept)}", not unpaired(kept)
    yield "ctx had a part in it", bool(kept.marked())
    yield f"ctx does not warn ({kept.said[:300]})", not kept.said
    yield from kept.kept
    share, before = kept.cached_share(), alone.cached_share()
    words = f"what is read from the cache does not collapse ({share:.0%} of {before:.0%})"
    yield words, share >= CACHED_AT_LEAST * before
    all_well = broken.well() == len(broken.turns)
    yield f"without the program: every turn is well ({complaints(broken)})", all_well
    yield "without the program: nothing of ours is in a prompt", not broken.marked()
    yield f"without the program: one warning ({broken.said[:300]})", len(broken.said.splitlines()) == 1


def unpaired(run):
    """Returns the prompts whose calls and results differ."""
    found = []
    for request in run.requests:
        messages = request["body"]["messages"]
        calls = [call["id"] for message in messages for call in message.get("tool_calls") or []]
        results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        found += [request["number"]] if calls != results else []
    return found
