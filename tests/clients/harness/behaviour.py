"""What an adapter must leave as it is in its framework: see tests/adapters/checks.py and checks.mjs."""

import json
import re

from .judge import MARKS
from .room import Room

TALKS = [f"talk-{n}" for n in range(8)]
FACTS = {"title": "big", "lines": 240}
WORDS = "This answer arrives in several pieces, and none of them may be lost. " * 4
# How frameworks ask for an object: by a tool with one of these names, or else by a format of the answer.
TOOLS = ("Facts", "final_result", "set_model_response")
# What ctx may change in a request.
MESSAGES = ("messages", "input", "instructions", "contents", "systemInstruction")


def script():
    """A model that reads the named file, never answers about the file HOLD, and gives objects and texts."""
    step = lambda reply, **when: {"when": when, "reply": reply, "times": None}
    calls = lambda tool, arguments: {"answer": {"calls": [{"name": tool, "arguments": arguments}]}}
    for tool in TOOLS:
        yield step(calls(tool, FACTS), newest="OBJECT", tool=tool)
    yield step({"text": json.dumps(FACTS)}, newest="OBJECT")
    yield step({"text": WORDS}, newest="STREAM")
    yield {**step({"text": "late"}, newest="of HOLD", afterTool=True), "wait": "forever", "times": 1}
    yield step({"text": "DONE"}, afterTool=True)
    for word in ("HOLD", "same", "talk-off", "talk-on", "talk-held", *TALKS):
        yield step(calls("read_file", {"name": word}), newest=f"BIGREAD {word}")


def check_behaviour(adapter):
    """Returns the faults of an adapter, and its cells of the table: object, stream, parallel, cancelled."""
    with Room(f"adapter-{adapter.name}-checks") as room:
        base = room.provider(None, list(script()))
        environment = adapter.environment(room, base, True) | {"PROVIDER_LOG": str(room.log)}
        code, out, err = room.run(adapter.command(adapter.checks(), adapter.name), environment, "checks")
        told = [json.loads(line) for line in out.splitlines() if line.startswith('{"check"')]
        said = {(line["check"], line["ctx"]): line["value"] for line in told}
        if code or ("cancel", True) not in said:
            return [f"checks: code {code} after {list(said)}: {err[-900:]}; see {room.folder}"], ["-"] * 4
        checks = list(judge(said, room.requests(), room.processes_of(room.folder / "ctx")))
        faults = [f"{part}: {words}" for part, words, holds in checks if not holds]
        failed = {part for part, _, holds in checks if not holds}
        parts = {part for part, _, _ in checks}
        cell = lambda part: "FAILED" if part in failed else "ok" if part in parts else "none"
        faults += [f"see {room.folder}"] if faults else []
        return faults, [cell(part) for part in ("object", "stream", "parallel", "cancel")]


def judge(said, requests, left):
    """Returns the checks: what they belong to, and whether each passes."""
    talks = {}
    for request in requests:
        words = frozenset(re.findall(r"talk-\w+", json.dumps(request["body"])))
        talks.setdefault(words, []).append(request)
    mixed = [sorted(words) for words in talks if len(words) > 1]
    yield "parallel", f"each request has one conversation ({mixed[:2]})", not mixed
    answers = said["parallel", True]
    yield "parallel", f"each conversation is answered ({answers})", answers == ["DONE"] * len(TALKS)
    for words in map(frozenset, ([talk] for talk in (*TALKS, "talk-on", "talk-held"))):
        yield "parallel", f"ctx had a part in {[*words]}", is_marked(talks.get(words, []))
    alone = talks[frozenset(["talk-off"])]
    yield "parallel", "without ctx: nothing of ours is in a prompt", not is_marked(alone)
    refused = [request["refusal"] for request in requests if request["refusal"]]
    yield "parallel", f"every prompt is one that a provider takes {refused[:2]}", not refused

    if ("object", True) in said:
        both = [said["object", is_on] for is_on in (False, True)]
        yield "object", f"it is the same without and with ctx ({both})", both == [FACTS, FACTS]
        yield from untouched("object", "OBJECT", talks)
    if ("stream", True) in said:
        both = [said["stream", is_on] for is_on in (False, True)]
        yield "stream", f"it comes in pieces ({both})", all(len(pieces) > 2 for pieces in both)
        is_same = ["".join(pieces) for pieces in both] == [WORDS, WORDS]
        yield "stream", f"its text is the same without and with ctx ({both})", is_same
        yield from untouched("stream", "STREAM", talks)

    is_cancelled, after = said["cancel", True]
    yield "cancel", "the turn ends when it is cancelled", is_cancelled
    yield "cancel", f"the next turn is answered ({after})", after == "DONE"
    kept = [request["outcome"] for request in requests if request["outcome"] != "sent"]
    yield "cancel", f"only the answer that was kept is not sent ({kept})", kept == ["abandoned"]
    yield "cancel", f"no process is left {left}", not left


def untouched(part, word, talks):
    """Returns the checks that ctx changes the messages of these requests, and nothing else."""
    of = lambda talk: [r for r in talks.get(frozenset([talk]), []) if word in json.dumps(r["newest"])]
    alone, through = of("talk-off"), of("talk-on")
    yield part, f"as many requests as without ctx ({len(through)})", len(alone) == len(through) > 0
    yield part, "ctx had a part in them", all(is_marked([request]) for request in through)
    rest = lambda request: {key: value for key, value in request["body"].items() if key not in MESSAGES}
    both = [[rest(request) for request in requests] for requests in (alone, through)]
    yield part, f"the rest of the requests is untouched ({both})", both[0] == both[1]


def is_marked(requests):
    return any(MARKS.search(json.dumps(request["body"])) for request in requests)
