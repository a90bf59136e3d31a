"""Agent libraries: a short program for each, which runs eight turns."""

import json
import re

from .clients import PLANTED, Client
from .judge import Run, judge, judge_compactions, row
from .room import HERE, MODULES, NODE, NODE_NEEDS, PYTHON, Room, reading

# Its script, and its pip or npm packages.
ALL = {
    "anthropic-runner": ("anthropic_runner.py", ["anthropic==2.12.0"]),
    "anthropic-runner-js": ("anthropic_runner.mjs", ["@anthropic-ai/sdk@1.12.0"]),
    "langchain": ("langchain_agent.py", ["langchain==1.4.7", "langchain-openai==1.7.3"]),
    "openai-agents": ("openai_agents.py", ["openai-agents==0.24.0"]),
    "openai-agents-compaction": ("openai_agents_compaction.py", ["openai-agents==0.24.0"]),
    "pydantic-ai": ("pydantic_agent.py", ["pydantic-ai-slim[openai]==2.68.0"]),
    "vercel-ai": ("vercel_ai.mjs", ["ai@7.0.173", "@ai-sdk/openai@4.0.118"]),
}


class Library(Client):
    tool = ("read_file", {})

    def __init__(self, name):
        self.name = name
        self.script, self.needs = ALL[name]
        if name.endswith("-compaction"):
            self.limit, self.window, self.compacts = 0, 200_000, True
            self.has_responses = False  # its requests for a compaction are no prompts

    def is_node(self):
        return self.script.endswith(".mjs")

    def missing(self):
        if self.is_node():
            lacks = [p for p in self.needs if not (MODULES / npm_name(p) / "package.json").exists()]
            return [*lacks, *([] if NODE.exists() else [NODE_NEEDS])]
        packages = PYTHON.parent.parent / "lib"
        return [p for p in self.needs if not any(packages.glob(f"*/site-packages/{pip_name(p)}-*"))]

    def command(self, base):
        script = HERE / "libraries" / self.script
        if self.is_node():
            return [NODE, script, base, MODULES.parent]
        return [PYTHON, script, base, *([PLANTED] if self.compacts else [])]


def npm_name(package):
    return package.rpartition("@")[0]


def pip_name(package):
    return re.split(r"[\[=]", package)[0].replace("-", "_")


def check(name):
    library = Library(name)
    alone = held(library, "alone", lambda _room, upstream: upstream)
    through = held(library, "through", lambda room, up: room.serve(up, library.window))
    runs = (library, alone, through)
    checks = judge_compactions(*runs, PLANTED) if library.compacts else judge(*runs)
    faults = [words for words, holds in checks if not holds]
    if faults:
        faults.append(f"see {alone.folder} and {through.folder}")
    return faults, row(name, alone, through)


def held(library, mode, base):
    with Room(f"{library.name}-{mode}") as room:
        run = Run(folder=room.folder)
        upstream = room.provider(library.limit, reading(*library.tool))
        code, out, err = room.run(library.command(base(room, upstream)), room.environment({}), "turns")
        told = [json.loads(line) for line in out.splitlines()]
        if len(told) != library.turns:
            raise RuntimeError(f"{library.script}: code {code}, {len(told)} turns: {err[-600:]}")
        for number, turn in enumerate(told, 1):
            run.turns.append((turn["ok"], f"turn {number}: {turn['said']!r}"))
        run.requests = room.requests()
        run.records = room.records()
        return run
