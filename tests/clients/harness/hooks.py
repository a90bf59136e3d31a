"""Clients with the hooks of ctx, without a proxy."""

import json
import shutil

from .clients import PLANTED, ClaudeCompaction, Codex, GeminiCompaction, OpenCodeCompaction
from .codex_server import PASTED, CodexCompactCommandOwn
from .judge import complaints, row
from .proxied import commands, held
from .room import CTX, ROOT

INTEGRATIONS = ROOT / "integrations"


class Hooked:
    """A client whose model forgets the planted rule when it compacts."""

    hooked = False
    summary_asks = ("TEXT ONLY", "<state_snapshot>", "anchored summary", "CONTEXT CHECKPOINT COMPACTION")

    def is_too_early(self, body):
        """Whether a prompt is after a compaction, and before the first hook that adds to the context."""
        return False

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


class CodexHooks(Hooked, Codex):
    """Codex compacts by itself. It keeps the last 20,000 tokens of the user's messages: less than a paste."""

    name = "codex-hooks"
    limit = 0
    summary = CodexCompactCommandOwn.summary

    def hook(self, room):
        self.copied(room, "codex", ".codex")

    def provider(self, base):
        return "model_auto_compact_token_limit = 40000\n" + super().provider(base)

    def prompt(self, turn):
        return super().prompt(turn) + (f"\n{PASTED}" if turn == 2 else "")

    def command(self, turn):
        command = super().command(turn)
        trust = ["--dangerously-bypass-hook-trust"] if self.hooked else []
        return [*command[:2], *trust, *command[2:]]


class GeminiHooks(Hooked, GeminiCompaction):
    """It compresses at the beginning of a turn, after its hook for the prompt."""

    name = "gemini-hooks"

    def hook(self, room):
        self.copied(room, "gemini-cli", ".gemini/extensions/ctx")

    def is_too_early(self, body):
        return "BIGREAD 2" in body and "BIGREAD 3" not in body


class OpenCodeHooks(Hooked, OpenCodeCompaction):
    """With a plugin, opencode installs a package for it, and waits until that has failed."""

    name = "opencode-hooks"

    def settings(self, room, base):
        return {**super().settings(room, base), "NPM_CONFIG_OFFLINE": "true", "NPM_CONFIG_FETCH_RETRIES": 0}

    def hook(self, room):
        path = room.home / ".config/opencode/opencode.json"
        plugin = (INTEGRATIONS / "opencode/ctx.js").as_uri()
        room.write(path, {**json.loads(path.read_text()), "plugin": [plugin]})


ALL = (ClaudeHooks, CodexHooks, GeminiHooks, OpenCodeHooks)


def check(client):
    """Returns the failed checks, and the row of the table."""

    def run(mode):
        client.hooked = mode == "hooks"
        return held(client, commands, mode, lambda _room, upstream: upstream)

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
    bodies = ((r["number"], json.dumps(r["body"])) for r in prompts)
    return [number for number, body in bodies if PLANTED not in body and not client.is_too_early(body)]
