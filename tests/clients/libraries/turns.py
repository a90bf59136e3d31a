"""Eight turns of one conversation, each reading a big file with a tool.

    python NAME.py BASE_URL [RULE]

The first turn also states the rule. A library's script gives `hold` a function that holds one turn and answers the model's last words. It
prints a line of JSON for each turn: whether it was well, and what was said.
"""

import json
import sys

BASE = sys.argv[1]
MODEL = "fake-model"
TURNS = 8
BIG = "".join(f"line {n} of the big file lorem ipsum dolor sit amet\n" for n in range(240))


RULE = " ".join(sys.argv[2:])


def hold(turn):
    for number in range(1, TURNS + 1):
        words = f"BIGREAD {number}. {RULE}" if RULE and number == 1 else f"BIGREAD {number}"
        try:
            said = turn(words)
        except Exception as error:  # each library has its own; what counts is that the turn failed
            said = f"{type(error).__name__}: {error}"
        print(json.dumps({"ok": "DONE" in said, "said": said[:300]}), flush=True)
