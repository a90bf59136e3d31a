"""Compacts a chat with `ctx compact --json`, for the adapters in this folder.

The program is $CTX_BIN, or `ctx` on the path. Nothing is stored, and no model is called unless the
configuration of ctx names one.
"""

import json
import os
import subprocess

CHARS_PER_TOKEN = 4
# ctx compacts no request to fewer tokens than this.
LEAST_TOKENS = 256
# A rendered message has a role that ctx does not count, so a first target may be a little too large.
TRIES = 8


class CtxFailed(Exception):
    """ctx did not compact; the message is what it printed."""


def compact(messages, target):
    """Returns the summary, and the messages kept after it, of a chat as [{"role", "content"}].

    `target` is in tokens. Returns None if ctx finds nothing to gain.
    """
    program = os.environ.get("CTX_BIN", "ctx")
    flags = ["--dry-run", "--force", "--json", "--quiet", "--target", str(max(target, LEAST_TOKENS))]
    try:
        ran = subprocess.run(
            [program, "compact", "-", *flags],
            input=json.dumps(messages), capture_output=True, text=True, check=False,
        )
    except OSError as error:
        raise CtxFailed(f"cannot run {program!r}: {error}; set CTX_BIN") from error
    if ran.returncode != 0:
        raise CtxFailed(ran.stderr.strip())
    result = json.loads(ran.stdout)["result"]
    if result is None:
        return None
    # A chat has no ids. ctx numbers its messages from 0, in hexadecimal.
    place = {f"{at:08x}": at for at in range(len(messages))}
    first = place[result["firstKeptEntryId"]]
    kept = [place[entry] for entry in result.get("staying", []) if place[entry] < first]
    kept += range(first, len(messages))
    # A message that is too long is kept in a shorter form.
    forms = {it["key"]["entry"]: it["form"]["replaced"] for it in result.get("projections", [])}
    return result["summary"], [shown(messages[at], forms.get(f"{at:08x}")) for at in kept]


def shown(message, form):
    """Returns a message with the text that ctx sends of it."""
    if form is None:
        return message
    texts = [block["text"] for block in form["blocks"] if block["type"] == "text"]
    return {**message, "content": "\n".join(texts)}


def within(messages, most_chars, render):
    """Returns the rendered result of at most `most_chars`, if ctx reaches it.

    `render(summary, kept)` returns the text. The last attempt is returned even if it is longer.
    """
    text, target = None, most_chars // CHARS_PER_TOKEN
    for _ in range(TRIES):
        done = compact(messages, target)
        if done is None:
            break
        text = render(*done)
        if len(text) <= most_chars or target <= LEAST_TOKENS:
            break
        target -= max(8, (len(text) - most_chars) // CHARS_PER_TOKEN)
    return text
