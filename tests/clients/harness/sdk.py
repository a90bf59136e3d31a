"""The official SDKs of OpenAI and Anthropic: they must behave with ctx as with the provider itself, and a
growing conversation must continue."""

import json

from .judge import Run, judge, row
from .room import HERE, PYTHON, Room

NEEDS = ("openai==3.52.0", "anthropic==2.12.0")


# Words of a prompt, and its answer. Other prompts are answered by a summary.
CALL = {"name": "weather", "arguments": {"city": "Paris"}}
# Through ctx the model also has a tool of ctx, of which the client must see nothing.
RECALL = {"name": "ctx_recall", "arguments": {"query": "zebra"}}
RECALLS = {"CALL 5": [RECALL], "CALL 6": [RECALL, CALL], "CALL 7": [CALL, RECALL]}
STEPS = [
    *(
        {
            "when": {"newest": newest, "afterTool": False, "tool": "ctx_recall"},
            "reply": {"answer": {"text": "Let me look.", "calls": calls}},
        }
        for newest, calls in RECALLS.items()
    ),
    {"when": {"newest": "it rains in Paris"}, "reply": {"text": "it rains"}},
    {"when": {"newest": "no earlier message has these words"}, "reply": {"answer": {"calls": [CALL]}}},
    {"when": {"newest": "FAIL 401"}, "reply": {"error": {"kind": "unauthorized"}}},
    {"when": {"newest": "FAIL 429"}, "reply": {"error": {"kind": "rateLimited"}}},
    {"when": {"newest": "FAIL 500"}, "reply": {"error": {"kind": "serverError"}}},
    {"when": {"newest": "FAIL 529"}, "reply": {"error": {"kind": "overloaded"}}},
    {"when": {"newest": "CUT"}, "reply": {"text": "this breaks off " * 9}, "cut": {"afterEvents": 3}},
    {
        "when": {"newest": "CALL", "afterTool": False, "tool": "weather"},
        "reply": {"answer": {"calls": [CALL]}},
    },
    {"when": {"newest": "hello"}, "reply": {"text": "hello to you"}},
    {"when": {"afterTool": True}, "reply": {"text": "it rains"}},
]


class Sdk:
    name = "sdk"
    limit = 62_000
    window = 16_000
    turns = 24  # eight of each protocol
    fails_alone = True


def check():
    alone, told = held("alone", lambda _room, upstream: upstream)
    through, told_through = held("through", lambda room, up: room.serve(up, Sdk.window))
    faults = [words for words, holds in judge(Sdk, alone, through) if not holds]
    for name, result in told["checks"].items():
        if told_through["checks"][name] != result:
            faults.append(f"{name}: {told_through['checks'][name]} instead of {result}")
    recalls = sum(record["actions"].get("retrieval", 0) for record in through.records)
    if recalls != len(RECALLS) * len(told["growth"]):
        faults.append(f"ctx answered {recalls} calls of its tool")
    if faults:
        faults.append(f"see {alone.folder} and {through.folder}")
    return faults, row(Sdk.name, alone, through)


def held(mode, base):
    with Room(f"sdk-{mode}") as room:
        run = Run(folder=room.folder)
        upstream = room.provider(Sdk.limit, [{**step, "times": None} for step in STEPS])
        command = [PYTHON, HERE / "sdk_checks.py", base(room, upstream)]
        code, out, err = room.run(command, room.environment({}), "checks")
        if code != 0:
            raise RuntimeError(f"sdk_checks.py: code {code}: {err[-600:]}")
        told = json.loads(out)
        for name, (well, why) in told["growth"].items():
            left = Sdk.turns // len(told["growth"]) - well
            run.turns += [(True, "")] * well + [(False, f"{name}: {why}")] * left
        run.requests = room.requests()
        run.records = room.records()
        return run, told
