"""LangChain: a middleware for ``create_agent``.

    create_agent(model, tools, middleware=[ContextMiddleware(window=32_000)])
"""

from langchain.agents.middleware import AgentMiddleware

from .keeper import ContextKeeper
from .langgraph import changed, conversation, extended, params_of, pre_model_hook
from .messages import restored

__all__ = ["ContextMiddleware", "pre_model_hook"]


class ContextMiddleware(AgentMiddleware):
    """Sends the messages that fit. The messages in the state of the agent are not changed."""

    def __init__(self, model=None, *, keeper=None, session=None, **options):
        """``session`` is a function of the ``ModelRequest`` that returns the id of the conversation; by
        default it is the thread of the checkpointer, and the first message in it."""
        super().__init__()
        self.keeper = keeper or ContextKeeper(model, **options)
        self._session = session or _session_of

    def wrap_model_call(self, request, handler):
        given = self._given(request)
        return handler(_fitted(request, given, self.keeper.fit_or_keep(**given)))

    async def awrap_model_call(self, request, handler):
        given = self._given(request)
        return await handler(_fitted(request, given, await self.keeper.afit_or_keep(**given)))

    def _given(self, request):
        system, session = request.system_message, self._session(request)
        return params_of(request.messages, session, system.text if system else None, request.tools)


def _session_of(request):
    execution = getattr(request.runtime, "execution_info", None)
    return conversation(execution.thread_id if execution else None, request.messages)


def _fitted(request, given, fitted):
    if fitted is None:
        return request
    changes = {"messages": restored(request.messages, given["messages"], fitted, changed)}
    if fitted.system_addition:
        changes["system_message"] = extended(request.system_message, fitted.system_addition)
    return request.override(**changes)
