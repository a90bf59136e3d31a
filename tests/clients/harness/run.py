"""Clients started by `ctx run`, for this run only: no server runs, and their files stay as they are."""

from .clients import Claude, Codex
from .judge import Run, row
from .openclaw import AGENT, OpenClawCompaction
from .openclaw import COMMAND as OPENCLAW
from .pi import PiCompaction
from .room import CTX, MODULES, PI, Room, reading


class Started:
    """A client whose two turns go through ctx, which knows a client by the name of its program."""

    limit = 0
    turns = 2
    summary = ""
    file = ""  # the configuration that `ctx setup` would edit


class ClaudeRun(Started, Claude):
    name = "claude-run"


class CodexRun(Started, Codex):
    name = "codex-run"
    file = ".codex/config.toml"


class PiRun(Started, PiCompaction):
    name = "pi-run"
    file = ".pi/agent/models.json"

    def command(self, turn):
        return [PI / ".bin/pi", *super().command(turn)[2:]]


class OpenClawRun(Started, OpenClawCompaction):
    """Without its gateway."""

    name = "openclaw-run"
    file = ".openclaw/openclaw.json"

    def command(self, turn):
        return [MODULES / ".bin/openclaw", *AGENT[len(OPENCLAW) : -1], "--local", "--message", self.prompt(turn)]


ALL = (ClaudeRun, CodexRun, PiRun, OpenClawRun)


def is_summary(request):
    return any(text.startswith("You summarise conversations") for _, text in request["newest"])


def check(client):
    """Returns the failed checks, and the row of the table."""
    with Room(client.name) as room:
        base = room.provider(client.limit, reading(*client.tool))
        environment = room.environment({**client.settings(room, base), "CTX_HOME": room.folder / "ctx"})
        file = room.home / client.file
        before = file.read_bytes() if client.file else b""
        run = Run(folder=room.folder)
        for turn in range(1, client.turns + 1):
            code, out, err = room.run([CTX, "run", "--", *client.command(turn)], environment, f"turn{turn}")
            ok = client.is_well(turn, code, out)
            run.turns.append((ok, "" if ok else f"turn {turn}: code {code} {(out + err)[-300:]!r}"))
        # ctx asks for summaries in the background.
        run.requests = [request for request in room.requests() if not is_summary(request)]
        sent, recorded = len(run.requests), len(room.records())
        faults = [why for ok, why in run.turns if not ok]
        if sent < client.turns or recorded != sent:
            faults.append(f"the provider received {sent} requests, and ctx recorded {recorded}")
        if client.file and file.read_bytes() != before:
            faults.append(f"{client.file} was changed")
        return faults, row(client.name, run, run)
