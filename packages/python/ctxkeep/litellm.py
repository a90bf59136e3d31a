"""LiteLLM: a callback for its proxy, its router and ``acompletion``, and ``completion`` itself.

    litellm.callbacks = [ContextCallback(window=32_000)]
    await litellm.acompletion(model=..., messages=messages)
"""

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes

from .keeper import ContextKeeper
from .messages import extended, opening


class ContextCallback(CustomLogger):
    """Sends the messages that fit, in chat completions. Those of the caller, given by name, are not changed."""

    def __init__(self, model=None, *, keeper=None, session=None, **options):
        """``session`` is a function of the arguments of a call that returns the id of the conversation; by
        default it is LiteLLM's session id, or is found by the first message of the user."""
        super().__init__()
        self.keeper = keeper or ContextKeeper(model, **options)
        self._session = session or _session_of

    async def async_pre_call_deployment_hook(self, kwargs, call_type):
        if call_type is not CallTypes.acompletion or not kwargs.get("messages"):
            return kwargs
        return _fitted(kwargs, await self.keeper.afit_or_keep(**self._given(kwargs)))

    def completion(self, model, messages, **kwargs):
        """``litellm.completion``, for which LiteLLM calls no hook that can change the messages."""
        kwargs = {"model": model, "messages": messages, **kwargs}
        return litellm.completion(**_fitted(kwargs, self.keeper.fit_or_keep(**self._given(kwargs))))

    def _given(self, kwargs):
        return {
            "messages": kwargs["messages"],
            "session": self._session(kwargs) or opening(kwargs["messages"]),
            "tools": kwargs.get("tools") or kwargs.get("functions"),
        }


def _session_of(kwargs):
    found = [kwargs.get("litellm_session_id")]
    found += [(kwargs.get(name) or {}).get("session_id") for name in ("metadata", "litellm_metadata")]
    return next((str(identifier) for identifier in found if identifier), None)


def _fitted(kwargs, fitted):
    if fitted is None:
        return kwargs
    return {**kwargs, "messages": extended(fitted.messages, fitted.system_addition)}
