"""ctx as a compaction method of compactbench (PyPI `compactbench`)."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from compactbench.compactors import Compactor  # noqa: E402
from compactbench.contracts import CompactionArtifact  # noqa: E402

import ctx_run  # noqa: E402

# The most characters of an artifact's summary.
MOST_CHARS = 8_000
# The share of the characters that is left of a chat.
USUAL_SHARE = 0.3


class CtxCompactor(Compactor):
    """The summary of ctx with the messages it keeps, as the artifact's text. No model is called."""

    name = "ctx"
    version = "1"

    async def compact(self, transcript, config=None, previous_artifact=None):
        messages = [{"role": turn.role.value, "content": turn.content} for turn in transcript.turns]
        size = sum(len(message["content"]) for message in messages)
        share = (config or {}).get("share", USUAL_SHARE)
        text = ctx_run.within(messages, min(MOST_CHARS, int(size * share)), render)
        if text is None:
            text = "\n".join(message["content"] for message in messages)
        return CompactionArtifact(
            summaryText=text[:MOST_CHARS],
            selectedSourceTurnIds=[turn.id for turn in transcript.turns],
            methodMetadata={"method": self.name, "version": self.version, "calls": 0},
        )


def render(summary, kept):
    return "\n".join([summary, *(f"{message['role']}: {message['content']}" for message in kept)])
