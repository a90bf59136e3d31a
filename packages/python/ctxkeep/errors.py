"""The errors of this package."""

from typing import Any


class CtxError(Exception):
    """An error that ctx returned, or the reason why it returned nothing.

    ``kind`` is one of the kinds of docs/rpc.md, or one of ``gone`` and ``protocol``. ``hint`` says what
    to do next, or is None.
    """

    def __init__(self, message: str, kind: str = "protocol", hint: "str | None" = None) -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.kind, self.hint = kind, hint


class NotInstalled(CtxError):
    """The program ``ctx`` is not there, or cannot be started."""


class WrongVersion(CtxError):
    """The program answers, but is not ctx, or not a version that this package can use."""


class Gone(CtxError):
    """The process ended: during a call, or at its start, as its configuration is wrong or it is not ctx.

    The last three lines that it wrote to standard error are in the message.
    """


class Timeout(CtxError):
    """There was no answer in time: a compaction may wait for a model.

    ctx still works on the call, and later calls of the session wait for it.
    """


class InvalidMessage(CtxError):
    """A message cannot be written as JSON, or a message or an argument is not what ctx expects."""


class TooLarge(CtxError):
    """The system prompt, the tools or the newest message leave no room in the window.

    Or what is new since the last call is more than 64 MiB of JSON.
    """


LARGE = ("windowTooSmall", "systemPromptTooLarge", "overflow")
CLASSES = {"invalidInput": InvalidMessage, **dict.fromkeys(LARGE, TooLarge)}


def of_answer(error: Any) -> CtxError:
    """Returns the exception for the ``error`` of an answer."""
    data = error.get("data") or {}
    kind = data.get("kind", "protocol")
    return CLASSES.get(kind, CtxError)(error.get("message", "unknown error"), kind, data.get("hint"))
