"""ctx as a compactor of the compaction conformance kit (PyPI `compaction-conformance-kit`)."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from compaction_kit.compacted import CompactedContext  # noqa: E402

import ctx_run  # noqa: E402

# Without a budget, the share of the characters that is left.
USUAL_SHARE = 0.3


class CtxCompactor:
    """The summary of ctx and the messages it keeps, as the kit's text."""

    name = "ctx"

    def compact(self, turns, round_num=1, budget_chars=None):
        messages = [{"role": turn.role, "content": turn.text} for turn in turns]
        size = sum(len(turn.text) for turn in turns)
        most = budget_chars or int(size * USUAL_SHARE)
        text = None
        # From round 2 on the kit passes the last text back as one turn, with nothing after it: there is
        # nothing to compact.
        if len(turns) > 1:
            text = ctx_run.within(messages, most, render)
        if text is None:
            text = "\n".join(turn.text for turn in turns)
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


def render(summary, kept):
    return "\n".join([summary, *(f"[{message['role']}] {message['content']}" for message in kept)])
