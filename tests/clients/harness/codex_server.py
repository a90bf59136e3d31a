"""Codex as its desktop and editor clients run it: `codex app-server`, JSON-RPC over stdio."""

import json
import subprocess
import threading

from . import proxied
from .clients import PLANTED, Codex, CodexCompaction
from .judge import complaints
from .room import MODULES, TURN_SECONDS

COMPACT = "/compact"
# With a provider of its own, Codex keeps the last 20,000 tokens of the user's messages: less than this text.
PASTED = "A line of a long log that the user pastes.\n" * 2_400
# The third and the fifth turn are commands to compact.
TURNS = (f"BIGREAD 1. {PLANTED}", f"BIGREAD 2\n{PASTED}", COMPACT, "BIGREAD 4", COMPACT, "BIGREAD 6")


class CodexCompactCommand(CodexCompaction):
    """Codex with `openai_base_url`, whose user asks for compactions. The provider cannot compact."""

    name = "codex-compact-command"
    turns = len(TURNS)
    fails_alone = True

    def provider(self, base):
        return f'openai_base_url = "{base}/v1"\nmodel_context_window = 200000\n'


class CodexCompactCommandChat(CodexCompactCommand):
    """The same with a server that has chat completions only."""

    name = "codex-compact-command-chat"
    has_responses = False


class CodexCompactCommandOwn(CodexCompactCommand):
    """Codex with a provider of its own in its settings, whose model it asks for a summary."""

    name = "codex-compact-command-own"
    fails_alone = False
    provider = Codex.provider
    summary = "The user has a big file of the workspace read, and nothing else was asked for."


class CodexCompactCommandOwnChat(CodexCompactCommandOwn):
    """The same with a server that has chat completions only."""

    name = "codex-compact-command-own-chat"
    fails_alone = True
    has_responses = False


ALL = (CodexCompactCommand, CodexCompactCommandChat, CodexCompactCommandOwn, CodexCompactCommandOwnChat)


class AppServer:
    """A process of `codex app-server` with one thread."""

    def __init__(self, room, environment):
        with open(room.folder / "app-server.err", "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [str(MODULES / ".bin/codex"), "app-server"],
                cwd=room.work,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        room.processes.append(self.process)
        self.log = open(room.folder / "app-server.jsonl", "w", encoding="utf-8")
        self.number = 0
        self.early = []  # notifications that came before the answer to a request
        self.ask("initialize", {"clientInfo": {"name": "harness", "version": "1"}})
        self.send({"method": "initialized"})
        start = {"cwd": str(room.work), "approvalPolicy": "never", "sandbox": "danger-full-access"}
        self.thread = self.ask("thread/start", start)["thread"]["id"]

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("codex app-server ended")
        self.log.write(line)
        self.log.flush()
        return json.loads(line)

    def ask(self, method, params):
        """Returns the result of a request."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while (message := self.receive()).get("id") != self.number or "method" in message:
            self.early.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def turn(self, text):
        """Runs a turn, or the command to compact, until it has ended. Returns its status and what it said."""
        watch = threading.Timer(TURN_SECONDS, self.process.kill)
        watch.start()
        self.early = []
        try:
            if text == COMPACT:
                self.ask("thread/compact/start", {"threadId": self.thread})
            else:
                say = [{"type": "text", "text": text}]
                self.ask("turn/start", {"threadId": self.thread, "input": say})
            return self.ended()
        finally:
            watch.cancel()

    def ended(self):
        said = []
        while True:
            message = self.early.pop(0) if self.early else self.receive()
            method, params = message.get("method"), message.get("params") or {}
            if method == "item/completed":
                item = params["item"]
                said.append(item["type"] if item["type"] == "contextCompaction" else item.get("text") or "")
            if method == "error" and not params.get("willRetry"):
                said.append(json.dumps(params["error"]))
            if method == "turn/completed":
                return params["turn"]["status"], " ".join(said)


def check(client):
    """Returns the failed checks, and the row of the table."""
    return proxied.check(client, turns, judge)


def turns(_client, room, environment):
    """Runs the turns. Returns whether each is well, and what was seen."""
    server = AppServer(room, environment)
    for text in TURNS:
        status, said = server.turn(text)
        mark = "contextCompaction" if text == COMPACT else "DONE"
        yield status == "completed" and mark in said, f"{status} {said[-160:]!r}"


def judge(client, alone, through):
    """Returns the checks of a run, and whether each passes."""
    if client.fails_alone:
        yield "without ctx: a turn fails", alone.well() < client.turns
    yield f"every turn is well ({complaints(through)})", through.well() == client.turns
    for turn in (n for n, text in enumerate(TURNS, 1) if TURNS[n - 2] == COMPACT):
        asks = lambda r: any(f"BIGREAD {turn}" in text for _, text in r["newest"])
        first = next((r for r in through.requests if asks(r) and not r["refusal"]), None)
        holds = first is not None and PLANTED in json.dumps(first["body"])
        yield f"the prompt of turn {turn}, after a compaction, has the planted rule", holds
    # Requests for summaries have no tools.
    prompts = lambda run: [r for r in run.requests if r["body"].get("tools") and not r["refusal"]]
    lacks = lambda run: [r["number"] for r in prompts(run) if PLANTED not in json.dumps(r["body"])]
    if not client.fails_alone:
        yield "without ctx: prompts lack the planted rule", bool(lacks(alone))
    yield f"each prompt has the planted rule (not {lacks(through)})", bool(prompts(through)) and not lacks(through)
