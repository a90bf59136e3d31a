"""Clients with the hooks of ctx, without a proxy."""

import json
import shutil

from . import codex_server
from .clients import PLANTED, ClaudeCompaction, GeminiCompaction, OpenCodeCompaction
from .judge import complaints, row
from .proxied import commands, held
from .room import CTX, ROOT

INTEGRATIONS = ROOT / "integrations"


class Hooked:
    """A client whose model forgets the planted rule when it compacts."""

    hooked = False
    summary_asks = ("TEXT ONLY", "<state_snapshot>", "anchored summary", "CONTEXT CHECKPOINT COMPACTION")
    late = 0  # prompts after a compaction that cannot have the rule

    def settings(self, room, base):
        self.room = room
        environment = super().settings(room, base)
        if not self.hooked:
            return environment
        self.hook(room)
        path = f"{CTX.parent}:{room.environment({})['PATH']}"
        return {**environment, "PATH": path, "CTX_HOME": room.folder / "ctx"}

    def copied(self, room, name, to):
        shutil.copytree(INTEGRATIONS / name, room.home / to, dirs_exist_ok=True)


class ClaudeHooks(Hooked, ClaudeCompaction):
    name = "claude-hooks"

    def hook(self, room):
        """The plugin is loaded from its folder, without a marketplace."""

    def command(self, turn):
        plugin = ["--plugin-dir", INTEGRATIONS / "claude-code"] if self.hooked else []
        command = super().command(turn)
        return [command[0], *plugin, *command[1:]]


class CodexHooks(Hooked, codex_server.CodexCompactCommandOwn):
    name = "codex-hooks"

    def hook(self, room):
        self.copied(room, "codex", ".codex")


class GeminiHooks(Hooked, GeminiCompaction):
    """It compresses at the beginning of a turn, after its hook for the prompt."""

    name = "gemini-hooks"

    def hook(self, room):
        self.copied(room, "gemini-cli", ".gemini/extensions/ctx")


class OpenCodeHooks(Hooked, OpenCodeCompaction):
    name = "opencode-hooks"

    def hook(self, room):
        self.copied(room, "opencode", ".config/opencode/plugins")


ALL = (ClaudeHooks, CodexHooks, GeminiHooks, OpenCodeHooks)


def check(client):
    """Returns the failed checks, and the row of the table."""
    turns = codex_server.turns if isinstance(client, CodexHooks) else commands

    def run(mode):
        client.hooked = mode == "hooks"
        return held(client, turns, mode, lambda _room, upstream: upstream)

    alone, hooked = run("alone"), run("hooks")
    faults = [words for words, holds in judge(client, alone, hooked) if not holds]
    faults += [f"see {alone.folder} and {hooked.folder}"] if faults else []
    return faults, row(client.name, alone, hooked)


def judge(client, alone, hooked):
    """Returns the checks, and whether each passes."""
    yield f"without hooks: every turn is well ({complaints(alone)})", alone.well() == client.turns
    yield "without hooks: prompts lack the planted rule", bool(lacking(client, alone))
    yield f"every turn is well ({complaints(hooked)})", hooked.well() == client.turns
    yield f"prompts have the planted rule (not {lacking(client, hooked)})", not lacking(client, hooked)


def lacking(client, run):
    """Returns the numbers of the prompts without the rule."""
    asks = lambda r: any(ask in json.dumps(r["newest"]) for ask in client.summary_asks)
    prompts = [r for r in run.requests if r["body"].get("tools") and not asks(r)]
    return [r["number"] for r in prompts if PLANTED not in json.dumps(r["body"])]
