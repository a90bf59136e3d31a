"""Prints queries from labelled conversations for `cargo run -p ctx-memory --example auto_recall`: some
that an archive can answer, and some that it cannot. CTX_DATA is that of run.sh."""

import json
import random
import sys

import compare

ASKED_EACH = 60


def archives():
    for name, source, texts, questions in compare.locomo():
        turns = []
        for text in texts:
            speaker, said = text.split(": ", 1)
            turns.append({"speaker": speaker, "role": "user", "time": 0, "text": said})
        yield f"L{name}", turns, questions, []
    for name, source, texts, questions in compare.beam():
        with open(f"{source}/chat.json") as file:
            chat = json.load(file)
        messages = [m for batch in chat for group in batch["turns"] for m in group]
        turns = [{"speaker": None, "role": m["role"], "time": 0, "text": m["content"]} for m in messages]
        said = [(n, m["content"][:2000]) for n, m in enumerate(messages) if m["role"] == "user"]
        last = [
            ("\n".join(text for _, text in said[at - 2 : at + 1]), said[at - 2][0])
            for at in range(10, len(said), 6)
        ]
        yield f"B{name}", turns, questions, last[-30:]


def main():
    random.seed(1)
    every = list(archives())
    queries = []

    def ask(kind, archive, text, upto=None, evidence=()):
        asked = {"kind": kind, "archive": archive, "text": text, "upto": upto}
        queries.append({**asked, "evidence": sorted(evidence)})

    for name, _, questions, last in every:
        for text, evidence in random.sample(questions, min(ASKED_EACH, len(questions))):
            ask("1 questions to their own archive", name, text, None, evidence)
        for text, upto in last:
            ask("2 last three user messages, to what was said before", name, text, upto)
        for other, _, theirs, messages in every:
            if other == name:
                continue
            same = other[0] == name[0]
            to = "another archive of the same kind" if same else "an archive of another kind"
            for text, _ in random.sample(theirs, 6):
                ask(f"{5 if same else 3} questions to {to}", name, text)
            for text, _ in random.sample(messages, min(3, len(messages))):
                ask(f"{6 if same else 4} last three user messages, to {to}", name, text)
    json.dump({"archives": {name: turns for name, turns, _, _ in every}, "queries": queries}, sys.stdout)


if __name__ == "__main__":
    main()
