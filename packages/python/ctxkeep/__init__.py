"""Keeps the conversations of an agent inside the window of its model, with ctx.

>>> from ctxkeep import ContextKeeper
>>> with ContextKeeper(window=32_000) as keeper:
...     fitted = keeper.fit([{"role": "user", "content": "Hello"}])
...     fitted.messages
[{'role': 'user', 'content': 'Hello'}]
"""

from .errors import CtxError, Gone, InvalidMessage, NotInstalled, Timeout, TooLarge, WrongVersion
from .keeper import ContextKeeper, Fitted, Session

__all__ = ["ContextKeeper", "CtxError", "Fitted", "Gone", "InvalidMessage", "NotInstalled", "Session",
           "Timeout", "TooLarge", "WrongVersion"]  # fmt: skip
