"""The model reads a cut tool result with `ctx_expand` in a session of a client, which sees nothing of it."""

import json
import re

from .clients import Claude, Gemini, OpenCode
from .judge import Run, complaints, row
from .room import Room, reading

LINES = 90  # of the file
MOST_TURNS = 15  # until a result is cut
# A copy of the file, and the id of the result with that copy: in the note of a shortened result, in a summary.
NOTED = re.compile(r"copy (\d+) .*ctx_expand with id ([0-9a-f]+) returns", re.DOTALL)
CITED = re.compile(r"copy (\d+) line \d+ [^\[\]]*\[e:([0-9a-f]{8})\]")
TOOL = "ctx_expand"
NAMES = (b"ctx_expand", b"ctx_recall")
# The model calls the tool alone, after a call of the client's tool, and before one.
ALONE, AFTER, BEFORE = "EXPAND ALONE", "EXPAND AFTER", "EXPAND BEFORE"


class Retrieval:
    """A client behind ctx. Its file is another one in each turn, so that each result is recognised."""

    limit = 0
    asks = (ALONE, AFTER, BEFORE)
    has_ids = True  # calls have ids, so that ctx's result can be put beside that of the client
    said = {}  # the prompts that do not ask for the file, by turn

    def prompt(self, turn):
        return self.said.get(turn, f"BIGREAD {turn}")


class ClaudeRetrieval(Retrieval, Claude):
    name = "claude-retrieval"


class GeminiRetrieval(Retrieval, Gemini):
    name = "gemini-retrieval"
    asks = (ALONE, AFTER)
    has_ids = False


class OpenCodeRetrieval(Retrieval, OpenCode):
    name = "opencode-retrieval"


ALL = (ClaudeRetrieval, GeminiRetrieval, OpenCodeRetrieval)


def check(client):
    """Returns the failed checks, and the row of the table."""
    with Room(client.name) as room:
        run = Run(folder=room.folder)
        faults = [words for words, holds in checks(client, room, run) if not holds]
        run.records = room.records()
    if faults:
        faults.append(f"see {run.folder}")
    return faults, row(client.name, None, run)


def checks(client, room, run):
    """Runs the turns; returns the checks, and whether each passes."""
    client.settings(room, "")
    upstream = room.provider(client.limit, reading(*client.tool))
    environment = room.environment(client.settings(room, room.serve(upstream, client.window)))
    found = None
    while not found and len(run.turns) < MOST_TURNS:
        take(client, room, run, environment)
        run.requests = [request for request in room.requests() if request["tools"]]
        found = cut(run.requests)
    yield f"a result is cut, and its id is in the prompt, after {len(run.turns)} turns", bool(found)
    if not found:
        return
    text, identifier = found
    room.rescript(script(client, identifier))
    client.said = dict(enumerate(client.asks, len(run.turns) + 1))
    for _ in (*client.asks, "a turn as before"):
        take(client, room, run, environment)
    asked = [request for request in room.requests() if request["tools"]]
    run.requests += asked
    yield f"every turn is well ({complaints(run)})", run.well() == len(run.turns)
    yield "no prompt is refused", not any(request["refusal"] for request in run.requests)
    for words in client.asks:
        at = next(n for n, request in enumerate(asked) if words in newest(request))
        # A result beside that of the client's tool stays in later prompts, and such results have an eighth of the
        # window: of the second one, only a part comes.
        part = text[:800] if words == BEFORE else text
        before, after = ([times(request, part) for request in asked[at : at + 2]] + [0, 0])[:2]
        if words == ALONE or client.has_ids:
            yield f"{words}: the next prompt has the original text once more", after == before + 1
        if words != BEFORE:
            yield f"{words}: its prompt has neither the text nor a call of ctx's tool", not (before or calls(asked[at]))
    answered = sum(record["actions"].get("retrieval", 0) for record in room.records())
    yield f"ctx answered {answered} calls", answered == len(client.asks)
    files = [file for file in room.home.rglob("*") if file.is_file()]
    stored = [file for file in files if ALONE.encode() in file.read_bytes()]
    yield "the client stores its session", bool(stored)
    seen = [file.name for file in files if any(name in file.read_bytes() for name in NAMES)]
    yield f"the client has nothing of ctx's tools in its files {seen}", not seen


def take(client, room, run, environment):
    """Runs a turn, with a new copy of the file."""
    turn = len(run.turns) + 1
    copy = (f"copy {turn} line {n} of the big file lorem ipsum dolor sit amet\n" for n in range(LINES))
    (room.work / "big.txt").write_text("".join(copy))
    code, out, err = room.run(client.command(turn), environment, f"turn{turn}")
    ok = client.is_well(turn, code, out)
    run.turns.append((ok, "" if ok else f"turn {turn}: code {code} {(out + err)[-160:]!r}"))


def script(client, identifier):
    """Returns the script of a model that calls the tool when asked."""
    expand = {"name": TOOL, "arguments": {"id": identifier}}
    read = {"name": client.tool[0], "arguments": client.tool[1]}
    asked = lambda words, calls: {
        "when": {"newest": words, "afterTool": False, "tool": TOOL},
        "reply": {"answer": {"text": "Let me look.", "calls": calls}},
        "times": None,
    }
    both = [asked(AFTER, [read, expand]), asked(BEFORE, [expand, read])]
    return [asked(ALONE, [expand]), *both, *reading(*client.tool)]


def copy_in(requests, turn):
    """Returns the result of the client's tool in that turn, as the provider received it, line by line."""
    whole = re.compile(rf"copy {turn} line 0 .*copy {turn} line {LINES - 1} of the big file[^\n]*", re.DOTALL)
    found = (whole.search(text) for request in requests for text in strings(request["body"]))
    return next(match[0] for match in found if match)


def cut(requests):
    """Returns a result that the last prompt does not have, and its id, which that prompt has."""
    last = requests[-1]
    if TOOL not in last["tools"]:
        return None
    own = list(strings(last["body"]))
    cited = [pair for pattern in (NOTED, CITED) for text in own for pair in pattern.findall(text)]
    texts = ((copy_in(requests, int(turn)), identifier) for turn, identifier in cited)
    return next(((text, identifier) for text, identifier in texts if not times(last, text)), None)


def newest(request):
    return "\n".join(text for _, text in request["newest"])


def times(request, text):
    """Returns how many strings of a prompt contain the text."""
    return sum(text in own for own in strings(request["body"]))


def calls(request):
    """Returns the number of calls of ctx's tool in a prompt."""
    body = {key: value for key, value in request["body"].items() if key != "tools"}
    return sum(text == TOOL for text in strings(body))


def strings(value):
    """Returns all strings in JSON."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(part)
