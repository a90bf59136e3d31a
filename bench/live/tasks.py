"""The tasks as conversations: what tasks.json plants, in invented work of a coding agent."""

import json
import random
import re
from pathlib import Path

SYSTEM = "You are a coding agent in the repository of harbor, a set of services. Answer in short."
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
RUN = {"name": "run", "description": "Runs a command in the repository.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": RUN}]
SERVICES = "ledger gateway inventory orders payment billing search mailer scheduler reports catalog".split()
PARTS = "sync cache retry queue batch cursor router limits codec audit index session shard window".split()
VERBS = "load merge pick send close open count drain flush check read write plan split join rank".split()
NOUNS = "event record account page token worker key order batch shard item user row message offset".split()
PEOPLE = "Mara Tomas Yuki Priya Anders Lucia Femi Nadia Oskar Wen Clara Idris".split()
FAMILIES = "Lindqvist Moreau Tanaka Iyer Holm Ferrari Adeyemi Haddad Novak Zhou Weber Rahman".split()
COMMANDS = {
    "code": "cat services/{service}/{part}.py",
    "grep": "grep -rn {verb} services",
    "listing": "ls -lR services",
    "log": "harborctl logs {service} --last 10m",
    "tests": "pytest services/{service}",
}
LINES = {
    "grep": "services/{service}/{part}.py:{number}:    {noun} = self.{name}({noun}s, limit={more})",
    "listing": "-rw-r--r-- 1 dev dev {size:6} May {day:2} 10:{second:02} services/{service}/{part}.py",
    "log": "09:{minute:02}:{second:02} {level} {service}.{part} {name} shard={day} took={number}ms id={hash}",
    "tests": "services/{service}/{part}.py::test_{name}_{noun} PASSED in 0.{number:03}s",
    "owners": "services/{service}-{part}/   {person} {family}   {noun} reviews",
}
CODE = '''    def {name}(self, {noun}s, limit={number}):
        """{verb}s each {noun} of the {part} that is not done yet."""
        found = [self.{other}({noun}) for {noun} in {noun}s if not {noun}.done]
        if len(found) > limit:  # at most {day} at a time
            raise {noun}_error(f"{{len(found)}} {noun}s in the {part}")
        return sorted(found, key=lambda {noun}: {noun}.id)
'''
REQUESTS = (
    "Look at {part} in {service}: why is it slow when there are many of them?",
    "Rename `{name}` to `{name}_once` in {service} and run its tests.",
    "The {service} drops a {noun} now and then. Find where.",
    "Add a test for {part} of {service}, the empty {noun} above all.",
    "Does the timeout of the {service} client also hold while it waits for a {noun}?",
    "Clean up {part} in {service}; nothing that callers see may change.",
    "Which port, folder or database does {service} use for its {part} in the tests?",
)
REPORTS = (
    "{service} reads each {noun} twice in its {part}; I removed the second time.",
    "The tests of {service} pass. `{name}` had no test, so I wrote one.",
    "The {part} of {service} is fine. The time goes into `{name}`, which sorts on each call.",
    "Done: {part} in {service} has one function less, and its callers are unchanged.",
)


class Filler:
    """Invented texts of tools and people, the same for the same seed. A file always has the same text."""

    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        name = lambda: f"{self.random.choice(VERBS)}_{self.random.choice(NOUNS)}"
        self.names = {service: [name() for _ in range(8)] for service in SERVICES}

    def words(self, by=None, service=None, part=None):
        by = by or self.random
        service = service or by.choice(SERVICES)
        names = self.names[service]
        lists = {"part": PARTS, "verb": VERBS, "noun": NOUNS, "name": names, "other": names, "person": PEOPLE,
                 "family": FAMILIES, "level": ("INFO", "DEBUG", "WARN")}  # fmt: skip
        limits = {"number": 900, "more": 500, "day": 29, "minute": 60, "second": 60, "size": 90000}
        word = {name: by.choice(words) for name, words in lists.items()}
        word.update({name: by.randrange(1, limit) for name, limit in limits.items()})
        word.update(service=service, part=part or word["part"], hash=f"{by.randrange(16**8):08x}")
        return word

    def text(self, kind, lines):
        made = [LINES[kind].format(**self.words()) for _ in range(lines)]
        return "\n".join(sorted(made) if kind == "log" else made)

    def call(self):
        """Returns a command and its output."""
        word, kind = self.words(), self.random.choice(list(COMMANDS))
        command = COMMANDS[kind].format(**word)
        if kind != "code":
            return command, self.text(kind, self.random.randint(25, 110))
        own = random.Random(f"{self.seed} {command}")
        code = [CODE.format(**self.words(own, word["service"], word["part"])) for _ in range(8)]
        return command, "\n".join(code)

    def exchange(self):
        """Returns a request of the user, some calls and their results, and a report."""
        word, calls = self.words(), [self.call() for _ in range(self.random.randint(2, 5))]
        said = self.random.choice(REQUESTS).format(**word), self.random.choice(REPORTS).format(**word)
        return {"user": said[0], "calls": calls, "assistant": said[1]}

    def planted(self, plant):
        """Returns what tasks.json plants, the result of a call amid lines of a kind."""
        text = plant.get("result", "")
        if "around" in plant:
            before, after = (self.text(plant["around"], plant["lines"] // 2) for _ in "ab")
            text = f"{before}\n{text}\n{after}"
        return {**plant, "calls": [(plant["call"], text)] if "call" in plant else []}


def load():
    return json.loads(Path(__file__).with_name("tasks.json").read_text(encoding="utf-8"))


def has(text, value):
    """Returns where the value stands in the text last, as a word of its own, or -1."""
    pattern = rf"(?<![\w-]){re.escape(value)}(?![\w-])"
    return max((found.start() for found in re.finditer(pattern, text, re.IGNORECASE)), default=-1)


def conversation(task, window, seed=1):
    """Returns the messages of a task: its number of windows, with four characters per token."""
    filler, size, number = Filler(f"{seed} {task['id']}"), 0, 0
    messages = [{"role": "system", "content": SYSTEM}]
    values = task["answer"] + task.get("wrong", []) + task.get("old", [])
    plants, total = list(task["plant"]), task["windows"] * window * 4
    while size < total:
        if plants and size >= plants[0]["at"] * total:
            part = filler.planted(plants.pop(0))
        else:
            part = filler.exchange()
            if any(has(json.dumps(part), value) >= 0 for value in values):
                continue
        new = [{"role": "user", "content": part["user"]}]
        for command, result in part["calls"]:
            number += 1
            function = {"name": "run", "arguments": json.dumps({"command": command})}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            new.append({"role": "assistant", "content": None, "tool_calls": [call]})
            new.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        new.append({"role": "assistant", "content": part["assistant"]})
        messages, size = messages + new, size + sum(len(json.dumps(message)) for message in new)
    return [*messages, {"role": "user", "content": task["question"]}]
