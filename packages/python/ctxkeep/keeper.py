"""Keeps conversations inside the window of their model."""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextvars
import json
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from .errors import CtxError, InvalidMessage, Timeout
from .process import Child, forking, start

T = TypeVar("T")
# What to make of objects of types that JSON does not have.
TYPES: Any = ((type, str), (Mapping, dict), (Sequence, list),
              ((set, frozenset), lambda value: sorted(value, key=repr)))  # fmt: skip
_keepers: weakref.WeakSet[ContextKeeper] = weakref.WeakSet()
# In the thread of an asynchronous call, warnings are kept for the task.
_say: contextvars.ContextVar[Any] = contextvars.ContextVar("say", default=lambda warn, text: warn(text))


class Fitted:
    """The result of ``fit``.

    ``messages`` is the list to send: unchanged messages are the caller's own objects. ``own`` says where
    each comes from: ``(index, None)`` for an unchanged one, ``(None, message)`` for another. ``changed``
    is whether ``messages`` differs from the given list. ``system_addition`` is text to append to the
    system prompt, or None. ``tokens`` is the size of the request with its system prompt and tools, and
    ``limit`` is the most that it can be. ``unchanged_prefix`` is the number of tokens at the beginning
    that equal those of the last request. ``ids`` are names of messages, for ``Session.expand``. ``acted``
    names the layers of ctx that changed something; ``edits`` and ``compactions`` say what, with the
    fields of docs/rpc.md. ``warnings`` are texts for the user: ``on_warning`` is called with each.
    """

    def __init__(self, answer: dict[str, Any], messages: list[Any]) -> None:
        """``answer`` is that of ctx for the messages."""
        sent = answer["messages"]
        self.own: list[tuple[int | None, Any]] = [(m, None) if type(m) is int else (None, m) for m in sent]
        self.messages: list[Any] = [new if at is None else messages[at] for at, new in self.own]
        self.changed: bool = sent != list(range(len(messages)))
        self.system_addition: str | None = answer.get("systemPromptAddition")
        self.tokens: int = answer["tokens"]
        self.limit: int = answer["limit"]
        self.unchanged_prefix: int = answer["unchangedPrefix"]
        self.ids: list[str] = answer["ids"]
        self.acted: list[str] = answer["acted"]
        self.edits: list[dict[str, Any]] = answer.get("edits", [])
        self.compactions: list[dict[str, Any]] = answer.get("compactions", [])
        self.warnings: list[str] = answer.get("warnings", [])


def _copied(item: Any) -> Any:
    """Returns a value as JSON has it, with the same strings. Later changes of the value do not reach it."""
    kind = type(item)
    if kind is dict and all(type(key) is str for key in item):
        return {key: _copied(each) for key, each in item.items()}
    if kind is list or kind is tuple:
        return [_copied(each) for each in item]
    return item if kind is str else json.loads(json.dumps(item, default=_json), parse_constant=lambda _: None)


def _json(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    for kind, convert in TYPES:
        if isinstance(value, kind):
            return convert(value)
    for name in ("model_dump", "to_dict", "dict", "tolist", "isoformat"):
        if callable(dump := getattr(value, name, None)):
            return dump(mode="json", exclude_none=True) if name == "model_dump" else dump()
    return {name: getattr(value, name) for name in getattr(value, "__dataclass_fields__", ())} or str(value)


def _kept(old: Any, value: Any) -> Any:
    """Returns the copy ``old`` if the value is still the same, or else a new copy."""
    with suppress(Exception):  # Some types refuse to be compared.
        if old == value:
            return old
    try:
        new = _copied(value)
    except Exception as error:
        raise InvalidMessage(f"this cannot be written as JSON: {error!r}", "invalidInput") from error
    return old if old == new else new


def _present(**named: Any) -> dict[str, Any]:
    return {name: value for name, value in named.items() if value is not None}


# The sizes that ctx begins with.
NOTHING: Any = {"systemPrompt": "", "tools": []}


class Session:
    """One conversation of a ``ContextKeeper``. Its calls are made one after the other, from any thread.

    ``id`` is its id. ``receipt`` is its last compaction, or None. ``manifest`` are the edits of the last
    ``fit``. docs/rpc.md has the fields of both. All methods raise ``Timeout`` and ``Gone``, and all but
    ``fit`` and ``close`` a ``CtxError`` of the kind ``notFound`` if ctx does not have the conversation:
    before the first ``fit``, and after the process or the session ended.
    """

    def __init__(self, keeper: ContextKeeper, identifier: str) -> None:
        """``ContextKeeper.session`` makes sessions."""
        self.id, self._keeper, self._lock = identifier, keeper, threading.Lock()
        self.receipt: dict[str, Any] | None = None
        self.manifest: list[dict[str, Any]] = []
        # The last call: ctx may still work on it.
        self._running: Any = None
        self._child: Any = None
        self._leave()

    def _leave(self) -> None:
        """Tells ctx to forget the conversation, which may be open by a call that was given up."""
        if self._child is not None:
            with suppress(CtxError):
                self._running = self._child.send("close", {"sessionId": self.id})
        self._child = None
        # The settings, once it is open, and the messages and sizes that ctx has.
        self._opened: Any = None
        self._sent: list[Any] = []
        self._sizes: Any = NOTHING
        self._unsaid: list[str] = []

    def fit(self, messages: Iterable[Any], *, ids: Iterable[str | None] | None = None, system: Any = None,
            tools: Any = None, model: str | None = None, window: int | None = None,
            pending_tokens: int | None = None) -> Fitted:  # fmt: skip
        """Returns the messages to send for a conversation: all of them, if they fit.

        ``messages`` is the whole conversation, oldest first, in the format of the keeper. Only what
        changed since the last call is sent to ctx; that ``1`` became ``True`` is not noticed. ``ids`` are
        the caller's ids of the messages, one or None for each, in any format but ``responses``: ctx uses
        them in place of its own. ``expand`` cannot read those with blanks or one of ``[],;#``, and those
        that begin with ``e:``. A message with another id than before has changed. ``system`` is the system
        prompt and ``tools`` are the tool schemas: both are counted, and not changed. ``pending_tokens`` is
        the size of what the caller adds to the request. ``model`` and ``window`` replace those of the
        keeper; with others than in the last call, the conversation starts from the beginning. If the
        process ends, another one is started once, and gets all messages.

        Raises a ``CtxError``. After any error, the next call sends all messages.
        """
        messages = list(messages)
        names = [None for _ in messages] if ids is None else list(ids)
        if len(names) != len(messages):
            raise InvalidMessage(f"{len(names)} ids for {len(messages)} messages", "invalidInput")
        listed = [list(pair) for pair in zip(messages, names)]
        given = _present(model=model, window=window, systemPrompt=system, tools=tools)
        settings = {**NOTHING, **self._keeper._settings, **given}
        sizes = {name: settings.pop(name) for name in NOTHING}
        with self._turn(self._keeper._timeout):
            self._keeper.session(self.id)
            try:
                fitted = self._ask(messages, listed, settings, sizes, pending_tokens)
            except CtxError as error:
                if error.kind not in ("gone", "conflict", "notFound"):
                    raise
                self._leave()
                fitted = self._ask(messages, listed, settings, sizes, pending_tokens)
        self._keeper._said(fitted.warnings)
        return fitted

    def _ask(self, messages: list[Any], listed: list[Any], settings: Any, sizes: Any, pending: Any) -> Fitted:
        settings = _kept(self._opened, settings)
        if settings is not self._opened or self._child.ended:
            self._leave()
            self._unsaid, self._opened = self._call("open", settings).get("warnings", []), settings
        keep = min(len(self._sent), len(listed))
        if _kept(old := self._sent[:keep], listed[:keep]) is not old:
            keep = next((at for at in range(keep) if _kept(old[at], listed[at]) is not old[at]), 0)
        fresh, sizes = [_kept(..., pair) for pair in listed[keep:]], _kept(self._sizes, sizes)
        ids = [name for _, name in fresh] if any(name for _, name in fresh) else None
        params = _present(keep=keep, messages=[each for each, _ in fresh], ids=ids, pendingTokens=pending)
        params.update((name, size) for name, size in sizes.items() if size != self._sizes.get(name))
        # Until ctx has answered, it is unknown what it has: after an error, all is sent again.
        self._sent, self._sizes = [], {}
        answer = self._call("fit", params)
        self._sent, self._sizes = old[:keep] + fresh, sizes
        fitted = Fitted(answer, messages)
        fitted.warnings, self._unsaid = [*self._unsaid, *fitted.warnings], []
        self.manifest, self.receipt = fitted.edits, [self.receipt, *fitted.compactions][-1]
        return fitted

    def _call(self, method: str, params: dict[str, Any]) -> Any:
        try:
            # ctx never has two calls of a session: those that were given up would pile up.
            if self._running is not None:
                self._running.exception(max(0.0, self._until - time.monotonic()))
            self._child = self._child or self._keeper._running()
            self._running = self._child.send(method, {"sessionId": self.id, **params})
            return self._running.result(max(0.0, self._until - time.monotonic()))
        except TimeoutError:
            raise Timeout(f"ctx did not answer {method} in time", "timeout", "give more time") from None

    @contextmanager
    def _turn(self, seconds: float) -> Iterator[None]:
        lock, until = self._lock, time.monotonic() + seconds
        if not lock.acquire(timeout=seconds):
            raise Timeout("ctx still works on an earlier call of this session", "timeout")
        try:
            self._until = until
            yield
        finally:
            lock.release()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls another method of docs/rpc.md, such as ``commit_turn``, and returns its answer.

        ``params`` are its fields, by their names there, without ``sessionId``; None is for an absent one.
        Those that open and close a conversation, or give it messages, are for ``fit`` and ``close``.
        """
        with self._turn(self._keeper._timeout):
            if not self._opened or self._child.ended:
                raise CtxError("ctx does not have this conversation", "notFound", "call `fit` first")
            answer: dict[str, Any] = self._call(method, _kept(..., _present(**params)))
        self._keeper._said(answer.get("warnings", []))
        return answer

    def compact(self, *, instructions: str | None = None, force: bool = True,
                token_budget: int | None = None) -> dict[str, Any]:  # fmt: skip
        """Compacts the conversation of the last ``fit``; the next one has the summary.

        ``instructions`` say what the summary is for. With ``force``, a short conversation is compacted
        too. ``token_budget`` is the most that the conversation has afterwards, in tokens. Returns the
        answer of ``compact`` in docs/rpc.md.
        """
        answer = self.call("compact", customInstructions=instructions, force=force, tokenBudget=token_budget)
        self.receipt = answer["result"] if answer.get("compacted") else self.receipt
        return answer

    def undo(self) -> bool:
        """Undoes the last compaction. Returns whether there was one."""
        return bool(self.call("undo")["undone"])

    def expand(self, ids: str | Iterable[str]) -> dict[str, str | None]:
        """Returns the original texts of messages by id, as a summary names them; None for an unknown id.

        A string is sent as it is, and ctx reads up to eight ids in it; of others there can be more.
        """
        names = [ids] if isinstance(ids, str) else list(ids)
        answers = [self.call("expand", id=" ".join(names[at : at + 8])) for at in range(0, len(names), 8)]
        return {found["id"]: found["text"] for answer in answers for found in answer["messages"]}

    def recall(self, query: str) -> list[str]:
        """Returns excerpts of messages with words of the query that the last request does not have."""
        return list(self.call("recall", query=query)["found"])

    def usage(self, prompt_tokens: int) -> float:
        """Reports the provider's count for the last request: all of its input, cached or not.

        It corrects ctx's later counts. Returns the factor, between 0.25 and 4.
        """
        return float(self.call("usage", promptTokens=prompt_tokens)["calibration"])

    def status(self) -> dict[str, Any]:
        """Returns how full the conversation is, with the fields of docs/rpc.md."""
        return self.call("status")

    def close(self) -> None:
        """Tells ctx to forget the conversation, and does not wait. The next ``fit`` starts it again."""
        with self._turn(self._keeper._timeout):
            self._leave()


class ContextKeeper(AbstractContextManager["ContextKeeper"], AbstractAsyncContextManager["ContextKeeper"]):
    """Keeps conversations inside the window of their model, by one process of ``ctx rpc``.

    The process starts with the first call, and again after it ended. Threads and event loops can use one
    keeper together; after a fork, each process has a ctx of its own. ``with`` and ``async with`` end the
    process; the latter does so without blocking the event loop, also if its task is cancelled.
    """

    _child: Child | None = None

    def __init__(self, model: str | None = None, *, format: str = "openai", window: int | None = None,
                 program: str | os.PathLike[str] | Sequence[str] | None = None,
                 env: Mapping[str, str] | None = None, timeout: float = 300.0, max_sessions: int = 1000,
                 on_warning: Callable[[str], object] | None = None, **options: Any) -> None:  # fmt: skip
        """Does not start the process yet.

        ``model`` is the name of the model; ``window`` is its window in tokens, for a model that ctx does
        not know. ``format`` is the format of the messages: ``openai``, ``responses``, ``anthropic``,
        ``gemini``, ``ai-sdk`` or ``pi``. ``program`` is the path of ctx, or a command as a list; by
        default it is ``$CTX_BIN``, or the installed one. ``env`` are variables for it, besides those of
        this process. ``timeout`` is the most seconds that a call takes. ``max_sessions`` is the most
        conversations that ctx has open. ``on_warning`` gets texts for the user; by default, they are
        Python warnings. ``options`` are further fields of ``open`` in docs/rpc.md, such as ``config`` or
        ``summaryModel``.

        Raises ``ValueError`` without a model and a window.
        """
        if model is None and window is None:
            raise ValueError("give a model, or the window of one that ctx does not know")
        self._settings = _present(model=model, window=window, format=format, **options)
        self._most, self._warn, self._command = max_sessions, on_warning or _warn, (program, env, timeout)
        self._timeout = min(timeout, threading.TIMEOUT_MAX)
        self._lock, self._starting = threading.Lock(), threading.Lock()
        # The sessions that are open, the least recently used one first, and all that the caller holds.
        self._recent: dict[str, Session] = {}
        self._all: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()
        _keepers.add(self)

    def session(self, identifier: object = "default") -> Session:
        """Returns the conversation with that id, as text. It does not wait for ctx.

        The least recently used ones over ``max_sessions`` are closed in ctx.
        """
        name = str(identifier)
        with self._lock:
            session = self._recent.pop(name, None) or self._all.get(name) or Session(self, name)
            self._all[name] = self._recent[name] = session
            for old in list(self._recent.values())[:-1] if len(self._recent) > self._most else ():
                with suppress(Timeout), old._turn(0.0):
                    old._leave()
                    del self._recent[old.id]
                    break
        return session

    def fit(self, messages: Iterable[Any], *, session: object = "default", **options: Any) -> Fitted:
        """Returns the messages to send; ``options`` and errors are those of ``Session.fit``."""
        return self.session(session).fit(messages, **options)

    async def afit(self, messages: Iterable[Any], **options: Any) -> Fitted:
        """``fit`` for asyncio and trio. A cancelled call ends in the background, and the next one waits."""
        return await _in_thread(lambda: self.fit(messages, **options))

    def fit_or_keep(self, messages: Iterable[Any], **options: Any) -> Fitted | None:
        """Like ``fit``, but returns None, with a warning, if ctx fails: the messages stay as they are."""
        try:
            return self.fit(messages, **options)
        except CtxError as error:
            self._said([f"ctx failed, the request is made without it: {error}"])
            return None

    async def afit_or_keep(self, messages: Iterable[Any], **options: Any) -> Fitted | None:
        """``fit_or_keep`` for asyncio and trio."""
        return await _in_thread(lambda: self.fit_or_keep(messages, **options))

    def close(self) -> None:
        """Ends the process, after the running calls, or after ten seconds. The next call starts another."""
        with self._starting:
            if self._child is not None:
                self._child.end()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aexit__(self, *_: object) -> None:
        await _in_thread(self.close)

    def __del__(self) -> None:
        if self._child is not None:
            self._child.stop()

    def _running(self) -> Child:
        with self._starting:
            if self._child is None or self._child.ended is not None:
                self._child = start(*self._command)
            return self._child

    def _said(self, texts: list[str]) -> None:
        for text in texts:
            _say.get()(self._warn, text)


def _warn(text: str) -> None:
    """Warns at the line that called this package, or called an adapter in it."""
    level, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "ctxkeep":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


async def _in_thread(work: Callable[[], T]) -> T:
    """Runs work that waits in a thread. Neither a cancelled task nor the end of Python waits for it."""
    heard: list[Any] = []
    done, context = Future[T](), contextvars.copy_context()
    context.run(_say.set, lambda *said: heard.append(said))
    try:
        soon, event = asyncio.get_running_loop().call_soon_threadsafe, asyncio.Event()
    except RuntimeError:
        trio = sys.modules["trio"]
        soon, event = trio.lowlevel.current_trio_token().run_sync_soon, trio.Event()

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised in the task
            done.set_exception(error)
        with suppress(RuntimeError):  # The loop has ended.
            soon(event.set)

    threading.Thread(target=run, daemon=True).start()
    await event.wait()
    for warn, text in heard:
        warn(text)
    return done.result()


def _forked() -> None:
    forking.release()
    for keeper in list(_keepers):
        keeper._lock, keeper._starting = threading.Lock(), threading.Lock()
        if keeper._child is not None:
            keeper._child.after_fork()
        for session in list(keeper._all.values()):
            session._lock, session._running = threading.Lock(), None


def _close_all() -> None:
    for keeper in list(_keepers):
        keeper.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=forking.acquire, after_in_parent=forking.release, after_in_child=_forked)
