"""Twelve turns of one conversation, each reading a big file with a tool, for the examples.

``MODEL`` is the model. ``OPENAI_BASE_URL`` is another provider than OpenAI, such as the fake one of
tests/adapters/run.sh (for Google ADK: ``GOOGLE_GEMINI_BASE_URL``). ``CTX=off`` runs an example without ctx.
"""

import json
import os

MODEL = os.environ.get("MODEL", "fake-model")
WITH_CTX = os.environ.get("CTX") != "off"
TURNS = 12
BIG = "".join(f"line {n} of the big file lorem ipsum dolor sit amet\n" for n in range(240))


def hold(turn):
    """Calls ``turn`` with the user's words, and prints whether the answer is the expected one."""
    for number in range(1, TURNS + 1):
        try:
            said = str(turn(f"BIGREAD {number}: read the big file with the tool, then answer DONE."))
        except Exception as error:  # each framework has its own; what counts is that the turn failed
            said = f"{type(error).__name__}: {error}"
        print(json.dumps({"ok": "DONE" in said, "said": said[:300]}), flush=True)
