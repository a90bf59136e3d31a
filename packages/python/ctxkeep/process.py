"""One process of ``ctx rpc``: JSON-RPC 2.0 over its pipes, one object per line."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import os
import queue
import shutil
import sysconfig
import threading
from concurrent.futures import Future
from subprocess import PIPE, Popen
from typing import Any

from .errors import CtxError, Gone, NotInstalled, TooLarge, WrongVersion, of_answer

# Bytes of a call, of the first answer, and of another one: a program that is not ctx may never end a line.
MOST_CALL, MOST_FIRST, MOST_ANSWER = 64 << 20, 1 << 16, 1 << 30
# Held while a process starts: a fork of this process at that moment would keep the pipes open.
forking = threading.Lock()


class Child:
    """A running process, its threads, and its calls without an answer."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        # The reason why the process takes no more calls.
        self.ended: CtxError | None = None
        self._lock, self._numbers = threading.Lock(), itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._last: list[str] = []
        # Ctrl+C is for the program that uses this one, and Windows is to open no window.
        more: Any = {"env": env, "stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "start_new_session": True}
        with forking:
            self._popen: Any = Popen(command, 0, creationflags=0x08000200 if os.name == "nt" else 0, **more)
        self._to_kill = [self._popen.pid]
        threads = [threading.Thread(target=run, daemon=True) for run in (self._write, self._note, self._read)]
        _, self._noter, self._reader = threads
        for thread in threads:
            thread.start()

    def send(self, method: str, params: dict[str, Any]) -> Future[Any]:
        """Sends a call, and returns a future of its result. Does not wait for the process."""
        future, number = Future[Any](), next(self._numbers)
        call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        # A lone surrogate becomes a question mark.
        line = json.dumps(call, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        if len(line) > MOST_CALL:
            raise TooLarge("the new messages are over 64 MiB", "overflow", "call `fit` when there are fewer")
        with self._lock:
            if self.ended is not None:
                raise copy.copy(self.ended)
            self._waiting[number] = future
            self._lines.put(line + b"\n")
        return future

    def _write(self) -> None:
        # After an error, the reader reports why the process ended.
        with contextlib.suppress(OSError), io.BufferedWriter(self._popen.stdin) as pipe:
            while (line := self._lines.get()) is not None:
                pipe.write(line)
                pipe.flush()
                del line

    def _note(self) -> None:
        with io.BufferedReader(self._popen.stderr) as lines:
            while line := lines.readline(MOST_FIRST):
                self._last = [*self._last, *filter(None, [line.decode(errors="replace").strip()])][-3:]

    def _read(self) -> None:
        most, error = MOST_FIRST, None
        with io.BufferedReader(self._popen.stdout, MOST_FIRST) as lines:
            # A shorter line without its end is the last one of a process that was killed.
            while (line := lines.readline(most)).endswith(b"\n") or len(line) == most:
                try:
                    answer = json.loads(line)
                    refused = of_answer(answer["error"]) if "error" in answer else None
                    self._settle(answer["id"], answer.get("result"), refused)
                except Exception:  # noqa: BLE001 - of what is not JSON-RPC, anything can be wrong
                    error = WrongVersion(f"{self._popen.args!r} is not ctx: it wrote {line[:80]!r}")
                    break
                most = MOST_ANSWER
        self._kill()
        why = f"{self._popen.args[0]} ended with code {self._popen.wait()}"
        self._lines.put(None)
        self._noter.join(1.0)
        with self._lock:
            self.ended = self.ended or error or Gone("\n".join([why, *self._last]), "gone")
        self._settle(None, None, self.ended)

    def _settle(self, number: int | None, result: Any, error: CtxError | None) -> None:
        """Ends a call; without a number all of them, as if ctx could not read one."""
        with self._lock:
            for each in list(self._waiting) if number is None else [number]:
                future = self._waiting.pop(each, Future())
                future.set_result(result) if error is None else future.set_exception(copy.copy(error))

    def _kill(self) -> None:
        """Kills the process and those that it started: once, as later its number may be another's."""
        with self._lock, contextlib.suppress(IndexError, OSError):
            getattr(os, "killpg", os.kill)(self._to_kill.pop(), 9)

    def stop(self) -> None:
        """Closes the pipe: the process finishes its calls, and ends."""
        self.ended = self.ended or Gone("ctx was closed during the call", "cancelled")
        self._lines.put(None)

    def end(self, seconds: float = 10.0) -> None:
        """Closes the pipe, waits for the end, and kills the process if it does not come."""
        self.stop()
        self._reader.join(seconds)
        self._kill()
        self._reader.join(10.0)

    def after_fork(self) -> None:
        """Leaves the process to the parent of this one."""
        self.ended, self._lock = Gone("ctx belongs to the parent of this process", "gone"), threading.Lock()
        self._popen.returncode, self._to_kill = 0, []
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            pipe.close()


def start(program: Any, env: Any, timeout: float) -> Child:
    """Starts the program: by default ``$CTX_BIN``, the one installed beside Python, or one on the PATH."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    found = program or os.environ.get("CTX_BIN") or shutil.which("ctx", path=path) or "ctx"
    command = [os.fspath(found)] if isinstance(found, (str, os.PathLike)) else [*found]
    try:
        child = Child([*command, "rpc"], {**os.environ, **(env or {})})
    except (OSError, RuntimeError, ValueError) as error:
        hint = "install it with `pip install ctxkeep`, or set CTX_BIN to its path"
        raise NotInstalled(f"cannot start {command[0]}: {error}", "notFound", hint) from error
    try:
        server = child.send("initialize", {"client": "ctxkeep"}).result(min(timeout, 30.0))
        if not isinstance(server, dict) or "fit" not in server.get("methods", ()):
            raise WrongVersion(f"{command[0]} is too old for ctxkeep", "capability", "install a newer ctx")
    except BaseException:
        child.end(0)
        raise
    return child
