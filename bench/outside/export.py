"""Writes statements of the compaction conformance kit as JSONL, for `ctx eval compact --planted`.

    pip install compaction-conformance-kit==0.8.0
    python export.py --seeds 1-6 > planted.jsonl

Each line has the fields that docs/bench.md describes. The kit (MIT) is imported, not copied. Its labels
("SAFETY RULE: ") are removed, because a user would not write them; --labels keeps them.
"""

import argparse
import json
import re
import sys

from compaction_kit.canaries import seeded_canaries
from compaction_kit.generated import build_generated_session
from compaction_kit.semantic_corpus import build_semantic_heldout_session, build_semantic_session

LABEL = re.compile(r"^(SAFETY RULE|HARD CONSTRAINT|FACT|GOAL STATE|USER PREFERENCE): ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1-6", help="such as 1-6 or 1,3,5")
    parser.add_argument("--labels", action="store_true", help="keep the kit's labels")
    given = parser.parse_args()
    say = (lambda text: text) if given.labels else (lambda text: LABEL.sub("", text))
    lines = list(seeded(say))
    for seed in seeds_of(given.seeds):
        lines += generated(seed, say)
        lines += semantic(f"semantic-{seed}", build_semantic_session(seed), say)
        lines += semantic(f"heldout-{seed}", build_semantic_heldout_session(seed), say)
    for line in lines:
        print(json.dumps(line, ensure_ascii=False))
    print(f"{len(lines)} statements", file=sys.stderr)


def seeds_of(text):
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def statement(name, canary, say, initial=None):
    line = {"set": name, "id": canary.id, "type": canary.type.value, "text": say(canary.content)}
    line["required"] = list(canary.required_tokens)
    if initial is not None:
        line["superseded"] = list(canary.superseded_tokens)
        line["initial"] = say(initial)
    return line


def seeded(say):
    return [statement("seeded", canary, say) for canary in seeded_canaries()]


def generated(seed, say):
    session, canaries = build_generated_session(seed)
    name, turns = f"generated-{seed}", session.turns
    lines, initial = [], set()
    for canary in canaries:
        before = None
        if canary.superseded_tokens:
            # The old value is said two turns earlier: the statement, and the agent's answer.
            at = session.canary_positions[canary.id] - 2
            initial.add(at)
            before = turns[at].text
        lines.append(statement(name, canary, say, before))
    for at, turn in enumerate(turns[:-1]):
        is_noted = turn.role == "user" and turns[at + 1].text == "Noted."
        if is_noted and at not in initial and turn.canary_id is None:
            text = say(turn.text)
            lines.append({"set": name, "id": f"distractor-{at}", "type": "distractor", "text": text, "required": [text]})
    return lines


def semantic(name, built, say):
    _, canaries, meta = built
    pairs = dict(meta["distinct_pairs"])
    pairs.update({two: one for one, two in pairs.items()})
    lines = []
    for canary in canaries:
        line = statement(name, canary, say, meta["initial_statements"].get(canary.id))
        if canary.id in pairs:
            line["pair"] = pairs[canary.id]
        lines.append(line)
    return lines


if __name__ == "__main__":
    main()
