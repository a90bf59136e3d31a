"""Hermes agent: a context engine, ``context.engine: ctxkeep`` in its configuration.

    def register(ctx):  # of a plugin
        ctx.register_context_engine(CtxEngine())
"""

import contextlib

from agent.context_engine import ContextEngine
from agent.model_metadata import estimate_messages_tokens_rough

from .errors import CtxError
from .keeper import ContextKeeper


class CtxEngine(ContextEngine):
    """Compacts the conversation when Hermes asks for it. The window is the one that Hermes knows."""

    name = "ctxkeep"

    def __init__(self, keeper=None, **options):
        self.keeper = keeper or ContextKeeper(**{"window": 128_000, **options})
        self._session = "default"

    def __deepcopy__(self, memo):
        # Each agent has an engine of its own, and all have one process of ctx.
        own = type(self)(self.keeper)
        own.__dict__.update(self.__dict__)
        return own

    def on_session_start(self, session_id, **_):
        self._session = session_id

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage.get("prompt_tokens", 0)
        self.last_completion_tokens = usage.get("completion_tokens", 0)
        self.last_total_tokens = usage.get("total_tokens", 0)

    def should_compress(self, prompt_tokens=None):
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return 0 < self.threshold_tokens <= tokens

    def compress(self, messages, current_tokens=None, focus_topic=None, force=False):
        # The mark of a stored message would keep Hermes from storing it in the next session.
        given = [{key: value for key, value in message.items() if key != "_db_persisted"} for message in messages]
        # The system prompt and the tools, which Hermes does not give.
        rest = max(0, (current_tokens or 0) - estimate_messages_tokens_rough(messages))
        options = {"session": self._session, "window": self.context_length or None, "pending_tokens": rest}
        fitted = self.keeper.fit_or_keep(given, **options)
        if fitted and (force or not fitted.changed):
            with contextlib.suppress(CtxError):
                self.keeper.session(self._session).compact(instructions=focus_topic)
            fitted = self.keeper.fit_or_keep(given, **options)
        if fitted is None or not fitted.changed:
            return messages
        self.compression_count += 1
        return fitted.messages


def register(ctx):
    """The entry point of a plugin of Hermes."""
    ctx.register_context_engine(CtxEngine())
