"""Tests of the client of ``ctx rpc``.

CTX_BIN=target/debug/ctx python3 packages/python/tests/test_client.py
"""

import asyncio
import collections
import contextlib
import copy
import dataclasses
import datetime
import enum
import gc
import importlib.util
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import types
import unittest
import urllib.request
import warnings
from pathlib import Path, PureWindowsPath

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ctxkeep.keeper as keeper_module
import ctxkeep.process as process_module
from ctxkeep import (
    ContextKeeper,
    CtxError,
    Gone,
    InvalidMessage,
    NotInstalled,
    Timeout,
    TooLarge,
    WrongVersion,
)

try:
    import trio
except ImportError:
    trio = None

ROOT = Path(__file__).resolve().parents[1]
GUNICORN = importlib.util.find_spec("gunicorn")
HOME = tempfile.TemporaryDirectory(prefix="ctx-client-")
os.environ["CTX_HOME"] = HOME.name
HANG = 30.0  # Seconds after which a test fails that waits for something that does not come.

# A server that shows what it has: `acted` are the messages of the session as JSON, `edits` what was sent,
# and `limit` the number of open sessions. HOLD in a call makes it wait for the test.
FAKE = r"""
import json, os, socket, sys
mode, lists, methods = sys.argv[1], {}, ["initialize", "open", "fit", "close"]
def give(number, **what):
    print(json.dumps({"jsonrpc": "2.0", "id": number, **what}), flush=True)
def fail(number, kind):
    give(number, error={"code": -32000, "message": kind, "data": {"kind": kind}})
for line in sys.stdin:
    call = json.loads(line)
    number, method, params = call["id"], call["method"], call["params"]
    name = params.get("sessionId")
    if mode == "silent":
        continue
    if "HOLD" in line:
        with socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))) as gate:
            gate.recv(1)
    if method == "initialize":
        give(number, result={"version": "0.0.1", "methods": methods[: 2 if mode == "old" else None]})
    elif method == "open":
        if name in lists:
            fail(number, "conflict")
        else:
            lists[name] = []
            give(number, result={"warnings": [params["agent"]] if "agent" in params else []})
    elif name not in lists:
        fail(number, "notFound")
    elif method == "close":
        del lists[name]
        give(number, result={"closed": True})
    elif method == "fit":
        have, keep = lists[name], params["keep"]
        text = json.dumps(params["messages"])
        if "DIE" in text and not os.path.exists(os.environ["MARK"]):
            open(os.environ["MARK"], "w").close()
            print("thread panicked", file=sys.stderr, flush=True)
            os._exit(3)
        if "UNREADABLE" in text:
            fail(None, "corrupt")
            continue
        if keep > len(have):
            lists[name] = []
            fail(number, "conflict")
            continue
        have[keep:] = params.pop("messages")
        if "REFUSED" in text:
            lists[name] = []
            fail(number, "upstream")
            continue
        warn = ["a warning"] if "WARN" in text else []
        give(number, result={"messages": list(range(len(have))), "ids": [], "tokens": len(have),
            "limit": len(lists), "unchangedPrefix": keep, "acted": [json.dumps(m) for m in have],
            "edits": [params], "warnings": warn})
"""


class Gate:
    """Lets a test know that the server is in a call with HOLD, and lets it go on."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(HANG)
        self.held = []
        self.port = str(self.listener.getsockname()[1])

    def entered(self):
        held = self.listener.accept()[0]
        held.settimeout(HANG)
        self.held.append(held)
        return held

    def close(self):
        for each in (self.listener, *self.held):
            each.close()


def user(text):
    return {"role": "user", "content": text}


def turns(count, size=4000):
    """Turns of an agent that reads a file."""
    out = []
    for n in range(count):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        out += [
            user(f"read file {n} zebra{n}"),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} of a file\n" * (size // 17)},
            {"role": "assistant", "content": f"it has {n}"},
        ]
    return out


def in_threads(*works):
    """Runs works at the same time, and raises the first error."""
    errors = []

    def run(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


class Case(unittest.TestCase):
    def keeper(self, *args, **options):
        options.setdefault("window", 32_000)
        keeper = ContextKeeper(*args, **options)
        self.addCleanup(keeper.close)
        return keeper

    def fake(self, mode="good", **options):
        self.gate = Gate()
        self.addCleanup(self.gate.close)
        self.mark = Path(HOME.name, f"mark-{self.gate.port}")
        env = {"PORT": self.gate.port, "MARK": str(self.mark)}
        return self.keeper(program=[sys.executable, "-c", FAKE, mode], env=env, **options)

    def has(self, fitted, messages):
        """The server has these messages, and gave them all back."""
        self.assertEqual([json.loads(text) for text in fitted.acted], messages)
        self.assertEqual(len(fitted.messages), len(messages))


class Fits(Case):
    def test_messages_that_fit_are_the_callers_own_objects(self):
        keeper, messages = self.keeper(), [user("Hello")]
        first = keeper.fit(messages)
        messages += [{"role": "assistant", "content": "Hi"}, user("How are you?")]
        second = keeper.fit(tuple(messages))
        self.assertTrue(all(a is b for a, b in zip(second.messages, messages)))
        self.assertEqual(second.own, [(0, None), (1, None), (2, None)])
        self.assertFalse(first.changed or second.changed)
        self.assertGreater(second.unchanged_prefix, 0)
        self.assertEqual((len(second.ids), second.limit), (3, 24_000))

    def test_a_long_conversation_is_cut_undone_and_read_again(self):
        keeper, messages = self.keeper(window=16_000, on_warning=str), turns(14)
        session = keeper.session("long")
        for n in range(1, 15):
            fitted = session.fit(messages[: n * 4])
            self.assertLessEqual(fitted.tokens, fitted.limit)
        self.assertTrue(fitted.changed)
        for (at, new), message in zip(fitted.own, fitted.messages):
            self.assertIs(message, new if at is None else messages[at])
        self.assertIn("read file 13", str(fitted.messages))
        self.assertIsNotNone(session.receipt)
        self.assertIn("zebra0", " ".join(session.recall("zebra0")))
        self.assertIn("zebra0", session.expand(["00000000"])["00000000"])
        self.assertIsNone(session.expand("nonsense")["nonsense"])
        self.assertTrue(session.undo())
        self.assertFalse(session.undo())
        self.assertEqual(session.status()["messages"], 56)
        self.assertGreater(session.usage(9000), 0.25)
        self.assertTrue(session.compact(instructions="keep names")["compacted"])
        self.assertIn("summary", session.receipt)

    def test_only_what_changed_is_sent_and_every_change_is_noticed(self):
        keeper, messages = self.fake(), [user("a"), user(["b", {"c": 1}]), user("d")]
        self.assertEqual(keeper.fit(messages).unchanged_prefix, 0)
        copied, keeper_module._copied = keeper_module._copied, None
        try:
            self.assertEqual(keeper.fit(messages, system="").unchanged_prefix, 3, "nothing is copied again")
        finally:
            keeper_module._copied = copied
        messages[1]["content"][1]["c"] = 2
        fitted = keeper.fit(messages)
        self.assertEqual(fitted.unchanged_prefix, 1)
        self.has(fitted, messages)
        fitted = keeper.fit(messages[:1])
        self.assertEqual(fitted.unchanged_prefix, 1)
        self.has(fitted, messages[:1])
        fitted = keeper.fit([user("another conversation"), *messages[1:]])
        self.assertEqual(fitted.unchanged_prefix, 0)
        self.has(fitted, [user("another conversation"), *messages[1:]])
        self.has(keeper.fit([]), [])

    def test_the_system_prompt_and_the_tools_are_sent_when_they_change(self):
        keeper, tools = self.fake(), [{"name": "read"}]

        def sent(**options):
            return keeper.fit([user("a")], **options).edits[0]

        self.assertNotIn("systemPrompt", sent())
        self.assertEqual(sent(system="s", tools=tools)["tools"], tools)
        self.assertNotIn("tools", sent(system="s", tools=tools))
        tools[0]["name"] = "write"
        self.assertEqual(sent(system="s", tools=tools)["tools"], tools)
        after = sent()
        self.assertEqual((after["systemPrompt"], after["tools"]), ("", []))
        with self.assertRaises(CtxError):
            keeper.fit([user("REFUSED")], system="other")
        self.assertEqual(sent()["systemPrompt"], "", "after an error ctx may have the other one")
        self.assertEqual(sent(pending_tokens=7)["pendingTokens"], 7)

    def test_only_the_ids_of_new_messages_are_sent(self):
        keeper, messages = self.fake(), [user("a"), user("b"), user("c")]

        def sent(count, *ids):
            fitted = keeper.fit(messages[:count], ids=ids)
            self.has(fitted, messages[:count])
            return fitted.unchanged_prefix, fitted.edits[0].get("ids")

        self.assertEqual(sent(2, "x", None), (0, ["x", None]))
        self.assertEqual(sent(2, "x", None), (2, None))
        self.assertEqual(sent(3, "x", None, "z"), (2, ["z"]))
        self.assertEqual(sent(3, "x", "y", "z"), (1, ["y", "z"]), "another id is a change")
        self.assertEqual(sent(3, None, None, None), (0, None))
        self.assertEqual(keeper.fit(messages).unchanged_prefix, 3)

    def test_ids_are_those_of_the_answer(self):
        keeper, messages = self.keeper(), [user("Hello"), {"role": "assistant", "content": "Hi"}]
        self.assertEqual(keeper.fit(messages, ids=["m-1", "m-2"]).ids, ["m-1", "m-2"])
        messages.append(user("And?"))
        fitted = keeper.fit(messages, ids=iter(["m-1", "m-2", "m-3"]))
        self.assertEqual(fitted.ids, ["m-1", "m-2", "m-3"])
        self.assertIn("And?", keeper.session().expand("m-3")["m-3"])
        self.assertEqual(keeper.fit(messages, ids=["m-1", "n-2", "m-3"]).ids, ["m-1", "n-2", "m-3"])
        for wrong in (["more", "than", "the", "messages"], ["fewer"], []):
            with self.assertRaisesRegex(InvalidMessage, f"{len(wrong)} ids for 3 messages"):
                keeper.fit(messages, ids=wrong)
        self.assertEqual(keeper.fit(messages, ids=None).messages, messages)

    def test_any_number_of_ids_is_expanded(self):
        session = self.keeper().session("ids")
        names = session.fit([user(f"zebra {n}") for n in range(20)]).ids
        found = session.expand(iter([*names, "nonsense"]))
        self.assertEqual([*found], [*names, "nonsense"])
        self.assertTrue(all(f"zebra {n}" in found[name] for n, name in enumerate(names)))
        self.assertEqual(len(session.expand(" ".join(names))), 8)
        self.assertEqual(session.expand([]), {})

    def test_other_methods_of_the_protocol_can_be_called(self):
        session = self.keeper().session("turns")
        with self.assertRaises(CtxError) as raised:
            session.call("after_turn")
        self.assertEqual(raised.exception.kind, "notFound")
        session.fit([user("Hello")])
        self.assertEqual(session.call("commit_turn", advancementKey="turn-1"), {"ok": True})
        for method in ("after_turn", "maintain"):
            self.assertEqual(session.call(method), {"ok": True})
        child = {"childSessionKey": "child"}
        self.assertEqual(session.call("prepare_subagent_spawn", **child, ttlMs=None), {"ok": True})
        self.assertEqual(session.call("on_subagent_ended", **child, reason="completed"), {"ok": True})
        with self.assertRaises(CtxError):
            session.call("no_such_method")
        with self.assertRaises(InvalidMessage):
            session.call("commit_turn", advancementKey={(): 1})

    def test_another_window_starts_the_conversation_anew(self):
        keeper, messages = self.keeper(), turns(2)
        self.assertEqual(keeper.fit(messages).limit, 24_000)
        self.assertEqual(keeper.fit(messages, window=64_000).limit, 48_000)
        with self.assertRaises(TooLarge):
            keeper.fit(messages, window=100)
        self.assertEqual(keeper.fit(messages).limit, 24_000)

    def test_errors_have_their_classes_and_a_hint(self):
        keeper = self.keeper()
        with self.assertRaises(CtxError) as raised:
            keeper.session("new").undo()
        self.assertEqual(raised.exception.kind, "notFound")
        with self.assertRaises(TooLarge) as raised:
            keeper.fit([user("x" * 400_000)], system="y" * 400_000)
        self.assertIn(raised.exception.kind, ("overflow", "systemPromptTooLarge"))
        self.assertEqual(keeper.fit([user("x")]).tokens > 0, True)
        with self.assertRaises(ValueError):
            ContextKeeper()


@dataclasses.dataclass
class Data:
    role: str
    content: str


class Model:
    def __init__(self, **fields):
        self.fields = fields

    def model_dump(self, mode, exclude_none):
        return {key: value for key, value in self.fields.items() if value is not None or not exclude_none}


class Role(str, enum.Enum):
    USER = "user"


class Array:
    """Refuses to be compared, as an array of numpy does."""

    def __eq__(self, other):
        raise ValueError("the truth value is ambiguous")

    def tolist(self):
        return [1, 2]


class Shapes(Case):
    def test_objects_of_frameworks_are_sent_as_json(self):
        now = datetime.datetime(2026, 1, 2, 3, 4, 5)
        cases = [
            (Data("user", "x"), user("x")),
            (Model(role="user", content="x", refusal=None), user("x")),
            (collections.OrderedDict(role="user", content=None), user(None)),
            (types.MappingProxyType(user("x")), user("x")),
            ({"role": Role.USER, "content": b"\x00\xff"}, user("AP8=")),
            (user((1, 2.5, {3})), user([1, 2.5, [3]])),
            (user(now), user(now.isoformat())),
            (user([math.nan, math.inf, 1.0, True]), user([None, None, 1.0, True])),
            (user(Array()), user([1, 2])),
            (user({1: "a", Role.USER: "b"}), user({"1": "a", "user": "b"})),
            (user("lone \ud800"), user("lone ?")),
            (user(collections.deque([1])), user([1])),
            (user(Data), user(str(Data))),
            ("text", "text"),
            (None, None),
        ]
        keeper = self.fake()
        for given, expected in cases:
            fitted = keeper.fit([given])
            self.has(fitted, [expected])
            self.assertIs(fitted.messages[0], given)
            self.assertEqual(keeper.fit([given]).unchanged_prefix, 1, "it did not change")

    def test_what_json_cannot_have_is_refused_and_the_next_call_works(self):
        keeper, cycle = self.fake(), []
        cycle.append(cycle)
        broken = Model()
        broken.model_dump = lambda: None  # Takes no arguments.
        keeper.fit([user("a")])
        for bad in (cycle, broken, 10**5000 if hasattr(sys, "set_int_max_str_digits") else cycle):
            with self.assertRaises(InvalidMessage):
                keeper.fit([user("a"), user(bad)])
            self.has(keeper.fit([user("a"), user("b")]), [user("a"), user("b")])

    def test_ctx_takes_what_the_client_sends(self):
        keeper, deep = self.keeper(), []
        for _ in range(150):
            deep = [deep]
        for content in ("lone \ud800", [math.nan], None, b"\xff", "a\r\n\u2028b", 10**300):
            given = [user("x"), user(content)]
            self.assertIs(keeper.fit(given).messages[1], given[1])
        with contextlib.suppress(CtxError):  # What matters is that there is an answer.
            keeper.fit([{**user("x"), "deep": deep}])
        self.assertEqual(len(keeper.fit([user("x")]).messages), 1)

    def test_sixty_megabytes_are_sent_and_more_is_refused(self):
        keeper, big = self.fake(), "y" * 60_000_000
        self.assertEqual(keeper.fit([user(big)]).messages[0]["content"], big)
        with self.assertRaises(TooLarge):
            keeper.fit([user(big + "y" * 8_000_000)])
        self.has(keeper.fit([user("small")]), [user("small")])


# Paths of Windows: with a drive, a share, a device, forward slashes, a blank, and a dot too many.
WINDOWS = [
    r"C:\Users\Ann Lee\src\net\retry.rs",
    r"\\build-7\share\logs\new.txt",
    r"\\?\D:\a\very\deep.json",
    "D:/work/api/table.ts",
    "C:\\temp\\x64\\",
    r"..\..\secrets.env",
    r"\Device\NUL",
    "C:relative.txt",
]


class WindowsPaths(Case):
    def reads(self, path, size):
        """A turn that reads a file. The arguments are JSON, or what models write in its place."""
        arguments = json.dumps({"path": path}) if len(path) % 2 else f'{{"path": "{path}"}}'
        call = {"id": path, "type": "function", "function": {"name": "read", "arguments": arguments}}
        return [
            user(f"Read {path}, and never change it."),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": path, "content": f"{path}(7,1): error\r\n" * (size // 30)},
            {"role": "assistant", "content": [{"type": "text", "text": f"I read `{path}`."}]},
        ]

    def test_messages_with_paths_are_the_callers_own(self):
        messages = [each for path in WINDOWS for each in self.reads(path, 300)]
        messages.append(user([PureWindowsPath(path) for path in WINDOWS]))
        before = copy.deepcopy(messages)
        fitted = self.keeper().fit(messages)
        self.assertTrue(all(a is b for a, b in zip(fitted.messages, messages)))
        for format in ("anthropic", "responses", "gemini", "ai-sdk", "pi"):
            parts = {"role": "user", "parts": [{"text": path} for path in WINDOWS]}
            given = parts if format == "gemini" else user("\n".join(WINDOWS))
            fitted = self.keeper(format=format).fit([given])
            self.assertIs(fitted.messages[0], given)
        self.assertEqual(messages, before)

    def test_paths_outlive_a_compaction_letter_by_letter(self):
        keeper = self.keeper(window=16_000, on_warning=str)
        messages = [each for path in WINDOWS for each in self.reads(path, 6000)]
        session = keeper.session(r"C:\work\..\..\session")
        for n in range(1, len(WINDOWS) + 1):
            fitted = session.fit(messages[: n * 4])
            self.assertLessEqual(fitted.tokens, fitted.limit)
            calls = [call for each in fitted.messages for call in each.get("tool_calls") or ()]
            results = [each["tool_call_id"] for each in fitted.messages if each["role"] == "tool"]
            self.assertEqual([call["id"] for call in calls], results)
            for call in calls:
                self.assertIn(call, [c for m in messages for c in m.get("tool_calls") or ()])
        self.assertTrue(session.compact()["compacted"])
        fitted = session.fit(messages)
        self.assertLess(len(fitted.messages), len(messages))
        kept = [each["content"] for each in fitted.messages if each in messages]
        for rule in (f"Read {path}, and never change it." for path in WINDOWS):
            self.assertTrue(rule in session.receipt["summary"] or rule in kept, rule)
        for n, path in enumerate(WINDOWS):
            name = f"{n * 4:08x}"
            self.assertEqual(session.expand(name)[name].count(path), 1, path)
        self.assertIn("retry.rs", " ".join(session.recall(WINDOWS[0])))
        self.assertTrue(session.undo())

    def test_ctx_and_its_home_may_lie_in_such_folders(self):
        binary, home = Path(shutil.which(os.environ.get("CTX_BIN", "ctx"))).resolve(), Path(HOME.name)
        folder = home / (r"Program Files" if os.name == "nt" else r"C:\Program Files")
        folder.mkdir()
        program = folder / ("my ctx.exe" if os.name == "nt" else r"bin\my ctx.exe")
        try:
            os.link(binary, program)
        except OSError:
            shutil.copy(binary, program)
        keeper = self.keeper(program=program, env={"CTX_HOME": str(folder / "home of Ann")})
        self.assertEqual(keeper.fit([user("a")]).messages, [user("a")])
        with self.assertRaises(NotInstalled) as raised:
            self.keeper(program=PureWindowsPath(r"C:\Program Files\none\ctx.exe")).fit([user("a")])
        self.assertIn(r"C:\Program Files\none\ctx.exe", str(raised.exception))


class Starts(Case):
    def fails(self, error, *command, **options):
        keeper = self.keeper(program=command, timeout=HANG, **options)
        begun = time.monotonic()
        with self.assertRaises(error) as raised:
            keeper.fit([user("a")])
        self.assertLess(time.monotonic() - begun, HANG / 2, "it hangs")
        return str(raised.exception)

    def python(self, code):
        return [sys.executable, "-c", code]

    def test_a_program_that_is_not_there_or_dies_says_so(self):
        self.assertIn("CTX_BIN", self.fails(NotInstalled, os.path.join(HOME.name, "nothing")))
        code = "import sys; sys.exit('a line\\nno such subcommand')"
        self.assertIn("a line\nno such subcommand", self.fails(Gone, *self.python(code)))
        self.assertIn("ended with code 0", self.fails(Gone, *self.python("")))

    def test_a_broken_configuration_is_named_with_its_hint(self):
        home = tempfile.TemporaryDirectory(dir=HOME.name)
        self.addCleanup(home.cleanup)
        Path(home.name, "ctx.json5").write_text("{ broken")
        with self.assertRaisesRegex(Gone, "(?s)code 1\nerror: .*ctx.json5.*\nhint: "):
            self.keeper(env={"CTX_HOME": home.name}).fit([user("a")])

    @unittest.skipUnless(hasattr(os, "killpg"), "no process groups on this system")
    def test_what_a_script_started_ends_with_it(self):
        children, real = [], process_module.Child
        process_module.Child = lambda *args: children.append(real(*args)) or children[-1]
        self.addCleanup(setattr, process_module, "Child", real)
        for more in ("", "; true"):  # With the second, a shell does not replace itself by its last command.
            begun = time.monotonic()
            with self.assertRaises(Timeout):
                self.keeper(program=["sh", "-c", f"sleep 1000{more}"], timeout=0.3).fit([user("a")])
            self.assertLess(time.monotonic() - begun, 5.0)
            # `sleep` has closed its output, and the shell was waited for.
            self.assertFalse(children[-1]._reader.is_alive())
            self.assertEqual(children[-1]._popen.returncode, -signal.SIGKILL)

    def test_the_last_line_is_there_though_standard_error_is_read_late(self):
        real = process_module.Child._note

        def late(child):
            threading.Event().wait(0.2)
            real(child)

        process_module.Child._note = late
        self.addCleanup(setattr, process_module.Child, "_note", real)
        self.assertIn("no such", self.fails(Gone, *self.python("import sys; sys.exit('no such subcommand')")))

    def test_a_program_that_is_not_ctx_is_refused(self):
        self.assertIn("hello", self.fails(WrongVersion, *self.python("print('hello'); input(); input()")))
        echo = "import sys\nfor line in sys.stdin: print(line, flush=True)"
        self.fails(WrongVersion, *self.python(echo))
        self.fails(WrongVersion, *self.python("import sys\nwhile True: sys.stdout.write('x' * 999)"))
        self.fails(WrongVersion, *self.python("print('[1]'); input(); input()"))

    def test_an_older_ctx_is_refused(self):
        with self.assertRaises(WrongVersion):
            self.fake("old").fit([user("a")])

    def test_a_program_that_does_not_answer_times_out(self):
        with self.assertRaises(Timeout):
            self.fake("silent", timeout=0.3).fit([user("a")])

    def test_many_threads_start_one_process(self):
        keeper, started, real = self.fake(), [], process_module.Child

        def child(*args):
            started.append(args)
            return real(*args)

        process_module.Child = child
        self.addCleanup(setattr, process_module, "Child", real)
        in_threads(*(lambda n=n: keeper.fit([user("a")], session=n) for n in range(16)))
        self.assertEqual(len(started), 1)

    def test_a_closed_or_killed_process_is_started_again(self):
        keeper = self.keeper()
        keeper.fit([user("a")])
        keeper.close()
        self.assertEqual(len(keeper.fit([user("a"), user("b")]).messages), 2)
        child = keeper._child
        child._popen.kill()
        child._reader.join(HANG)
        self.assertEqual(len(keeper.fit([user("a"), user("b"), user("c")]).messages), 3)
        keeper._child._popen.kill()  # Perhaps noticed, perhaps not.
        self.assertEqual(len(keeper.fit([user("a"), user("b"), user("d")]).messages), 3)

    def test_a_process_that_dies_in_a_call_is_replaced_once(self):
        keeper = self.fake()
        keeper.fit([user("a")])
        fitted = keeper.fit([user("a"), user("DIE")])
        self.has(fitted, [user("a"), user("DIE")])
        self.assertEqual(fitted.unchanged_prefix, 0)
        command, env = [sys.executable, "-c", FAKE, "good"], {"MARK": HOME.name + "/no/such"}
        keeper = self.keeper(program=command, env=env)
        with self.assertRaises(Gone) as raised:  # It dies again and again.
            keeper.fit([user("DIE")])
        self.assertIn("Error", str(raised.exception))

    def test_an_unread_call_is_an_error_and_not_a_timeout(self):
        keeper = self.fake(timeout=HANG)
        with self.assertRaises(CtxError) as raised:
            keeper.fit([user("UNREADABLE")])
        self.assertEqual(raised.exception.kind, "corrupt")
        self.has(keeper.fit([user("a")]), [user("a")])

    @unittest.skipUnless(hasattr(signal, "SIGSTOP"), "no SIGSTOP on this system")
    def test_a_process_that_reads_nothing_does_not_hang_the_client(self):
        keeper = self.fake(timeout=0.5)
        keeper.fit([user("a")])
        os.kill(keeper._child._popen.pid, signal.SIGSTOP)
        with self.assertRaises(Timeout):
            keeper.fit([user("x" * 1_000_000)])
        with self.assertRaises(Timeout):
            keeper.fit([user("b")], session="other")
        keeper._child.end(0.1)
        self.has(keeper.fit([user("c")]), [user("c")])

    def test_a_dropped_keeper_ends_its_process(self):
        keeper = self.fake()
        keeper.fit([user("a")])
        child = keeper._child
        self._cleanups.clear()
        self.addCleanup(self.gate.close)
        del keeper
        gc.collect()
        child._reader.join(HANG)
        self.assertEqual(child._popen.returncode, 0)


class Timeouts(Case):
    def test_after_a_timeout_the_next_call_waits_and_sends_everything(self):
        keeper = self.fake(timeout=0.5)
        keeper.fit([user("a")])
        with self.assertRaises(Timeout):
            keeper.fit([user("a"), user("HOLD")])
        held = self.gate.entered()
        with self.assertRaises(Timeout):
            keeper.fit([user("x"), user("y"), user("z")])
        self.assertEqual(len(keeper._child._waiting), 1, "calls pile up")
        held.send(b"x")
        self.settled(keeper)
        fitted = keeper.fit([user("a"), user("b")])
        self.has(fitted, [user("a"), user("b")])
        self.assertEqual(fitted.unchanged_prefix, 0)
        self.assertEqual(keeper.fit([user("a"), user("b")]).unchanged_prefix, 2)

    def settled(self, keeper):
        """Waits until ctx has answered the call that was given up."""
        running = keeper.session()._running
        if running is not None:
            with contextlib.suppress(CtxError):
                running.exception(HANG)

    def test_an_open_that_was_given_up_does_not_block_the_session(self):
        keeper = self.fake(timeout=0.5, agent="HOLD")
        with self.assertRaises(Timeout):
            keeper.fit([user("a")])
        self.gate.entered().send(b"x")
        self.settled(keeper)
        keeper._settings.pop("agent")
        self.has(keeper.fit([user("a")]), [user("a")])

    def test_threads_of_one_session_wait_no_longer_than_their_own_timeout(self):
        keeper, raised = self.fake(timeout=0.5), []
        keeper.fit([user("a")])

        def late():
            try:
                keeper.fit([user("HOLD")])
            except Timeout as error:
                raised.append(error)

        begun = time.monotonic()
        in_threads(*[late] * 6)
        self.assertLess(time.monotonic() - begun, 2.0)
        self.assertEqual(len(raised), 6)
        self.gate.entered().send(b"x")

    def test_a_close_ends_waiting_calls_and_no_new_process_starts_for_them(self):
        keeper, seen = self.fake(), []
        keeper.fit([user("a")])
        child = keeper._child

        def call():
            try:
                keeper.fit([user("HOLD")])
            except Gone as error:
                seen.append(error.kind)

        def close():
            self.gate.entered()
            child.end(0.1)

        in_threads(call, close)
        self.assertEqual(seen, ["cancelled"])
        self.assertIs(keeper._child, child)


class Many(Case):
    def test_threads_use_their_sessions_and_one_together(self):
        keeper = self.keeper()

        def own(name):
            messages = []
            for n in range(30):
                messages.append(user(f"{name} {n}"))
                self.assertEqual(len(keeper.fit(messages, session=name).messages), n + 1)
                self.assertEqual(len(keeper.fit([user(name)] * n, session="shared").messages), n)

        in_threads(*(lambda name=name: own(name) for name in "abcdefgh"))

    def test_a_thousand_sessions_and_the_least_recently_used_ones_are_closed(self):
        keeper = self.keeper(max_sessions=50)
        for n in range(1000):
            keeper.fit([user(f"session {n}")], session=n)
        self.assertEqual(len(keeper._recent), 50)
        held = keeper.session(3)
        self.assertEqual(held.fit([user("again")]).messages, [user("again")])
        self.assertIs(keeper.session("3"), held)
        fake = self.fake(max_sessions=5)
        old = fake.session("old")
        for n in range(40):
            last = fake.fit([user(f"{n}")], session=n % 8)
            self.has(last, [user(f"{n}")])
            self.assertLessEqual(last.limit, 6)
            if n % 10 == 0:
                self.has(old.fit([user("old"), user(f"{n}")]), [user("old"), user(f"{n}")])
        self.assertEqual(len(fake._recent), 5)

    def test_a_session_in_use_is_not_closed(self):
        keeper, fits = self.fake(max_sessions=1), []

        def release():
            held = self.gate.entered()
            keeper.session("other")
            open_ones = set(keeper._recent)
            held.send(b"x")
            self.assertEqual(open_ones, {"busy", "other"})

        in_threads(lambda: fits.append(keeper.fit([user("HOLD")], session="busy")), release)
        self.has(fits[0], [user("HOLD")])
        self.assertEqual(keeper.fit([user("b")], session="other").limit, 1)

    def test_the_client_keeps_little_for_a_long_conversation(self):
        keeper = self.fake()
        messages = [user("word " * 200 + str(n)) for n in range(800)]
        keeper.fit(messages[:1])
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        before = tracemalloc.get_traced_memory()[0]
        for n in range(10, 801, 10):
            keeper.fit(messages[:n])
        self.assertLess(tracemalloc.get_traced_memory()[0] - before, 20_000_000)
        self.assertLess(tracemalloc.get_traced_memory()[1] - before, 20_000_000)


class Asynchronous(Case):
    def test_a_cancelled_task_leaves_nothing_behind(self):
        keeper = self.fake()

        async def main():
            task = asyncio.ensure_future(keeper.afit([user("HOLD")]))
            held = await asyncio.get_running_loop().run_in_executor(None, self.gate.entered)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            held.send(b"x")
            fitted = await keeper.afit([user("HOLD"), user("b")])
            self.has(fitted, [user("HOLD"), user("b")])
            self.assertEqual(fitted.unchanged_prefix, 1)
            self.assertEqual(keeper._child._waiting, {})

        # If the second call sent everything again, its HOLD would make it hang.
        asyncio.run(asyncio.wait_for(main(), HANG))

    def test_two_loops_in_two_threads(self):
        keeper = self.keeper()

        async def main(name):
            calls = (keeper.afit_or_keep([user(f"{n}")] * n, session=name) for n in range(20))
            fits = await asyncio.gather(*calls)
            self.assertEqual([len(fitted.messages) for fitted in fits], list(range(20)))

        loops = [lambda: asyncio.run(main("a")), lambda: asyncio.run(main("b"))]
        in_threads(*loops, lambda: keeper.fit([user("x")]))

    def test_many_tasks_at_once(self):
        keeper = self.fake()

        async def main():
            return await asyncio.gather(*(keeper.afit([user("x")], session=n) for n in range(200)))

        self.assertEqual(len(asyncio.run(main())), 200)

    def test_async_with_ends_the_process_and_lets_other_tasks_run(self):
        keeper = self.fake()

        async def main():
            ticks = []

            async def tick():
                while True:
                    ticks.append(1)
                    await asyncio.sleep(0.01)

            async with keeper as entered:
                self.assertIs(entered, keeper)
                self.has(await keeper.afit([user("a")]), [user("a")])
                child, end = keeper._child, keeper._child.end
                ticking = asyncio.ensure_future(tick())
                # A process that takes its time to end.
                child.end = lambda: (threading.Event().wait(0.3), end())
                before = len(ticks)
            self.assertGreater(len(ticks) - before, 5)
            self.assertEqual(child._popen.returncode, 0)
            ticking.cancel()

        asyncio.run(asyncio.wait_for(main(), HANG))
        with keeper as entered:
            self.assertIs(entered, keeper)
            child = keeper.fit([user("b")]) and keeper._child
        self.assertEqual(child._popen.returncode, 0)

    def test_async_with_ends_the_process_of_a_cancelled_task(self):
        keeper = self.fake()

        async def work():
            async with keeper:
                await keeper.afit([user("a")])
                await asyncio.sleep(HANG * 2)

        async def main():
            task = asyncio.ensure_future(work())
            while keeper._child is None:
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(asyncio.wait_for(main(), HANG))
        keeper._child._reader.join(HANG)
        self.assertEqual(keeper._child._popen.returncode, 0)

    def test_the_end_of_python_does_not_wait_for_a_given_up_call(self):
        gate = Gate()
        self.addCleanup(gate.close)
        code = f"""
import asyncio, os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from ctxkeep import ContextKeeper
import ctxkeep.process
keeper = ContextKeeper(window=32000, program=[sys.executable, "-c", {FAKE!r}, "good"])
ctxkeep.process.Child.end.__defaults__ = (0.1,)
async def main():
    task = asyncio.ensure_future(keeper.afit([dict(role="user", content="HOLD")]))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    task.cancel()
asyncio.run(main())
"""
        command = [sys.executable, "-c", code]
        env = {**os.environ, "PORT": gate.port}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as child:
            gate.entered()
            _, errors = child.communicate(b"go\n", timeout=HANG)
        self.assertEqual((child.returncode, errors), (0, b""))

    @unittest.skipIf(trio is None, "trio is not installed")
    def test_trio(self):
        keeper = self.fake()

        async def main():
            with trio.fail_after(HANG):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(keeper.afit, [user("HOLD")])
                    held = await trio.to_thread.run_sync(self.gate.entered)
                    nursery.cancel_scope.cancel()
            held.send(b"x")
            with trio.fail_after(HANG):
                self.has(await keeper.afit_or_keep([user("HOLD"), user("b")]), [user("HOLD"), user("b")])

        trio.run(main)

    @unittest.skipIf(trio is None, "trio is not installed")
    def test_trio_async_with(self):
        keeper = self.fake()

        async def main():
            with trio.fail_after(HANG):
                async with keeper as entered:
                    self.assertIs(entered, keeper)
                    await keeper.afit([user("a")])
                    child = keeper._child
                self.assertEqual(child._popen.returncode, 0)
                with trio.CancelScope() as scope:
                    async with keeper:
                        await keeper.afit([user("b")])
                        scope.cancel()
                        await trio.sleep_forever()

        trio.run(main)
        keeper._child._reader.join(HANG)
        self.assertEqual(keeper._child._popen.returncode, 0, "the cancelled one ends too")


class Warnings(Case):
    def test_warnings_are_those_of_the_callers_line(self):
        keeper = self.fake(agent="opened")

        async def asynchronous():
            return await keeper.afit([user("WARN 2")])

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            fitted = keeper.fit([user("WARN")])
            asyncio.run(asynchronous())
            keeper.fit_or_keep([user("REFUSED")])
        self.assertEqual(fitted.warnings, ["opened", "a warning"])
        texts = [str(warning.message) for warning in seen]
        self.assertEqual(texts[:3], ["opened", "a warning", "a warning"])
        self.assertIn("without it", texts[3])
        self.assertEqual({warning.filename for warning in seen}, {__file__})

    def test_if_ctx_fails_the_messages_stay_as_they_are(self):
        said = []
        keeper = self.keeper(program=os.path.join(HOME.name, "nothing"), on_warning=said.append)
        self.assertIsNone(keeper.fit_or_keep([user("a")]))
        self.assertIsNone(asyncio.run(keeper.afit_or_keep([user("a")])))
        self.assertEqual(len(said), 2)


@unittest.skipUnless(hasattr(os, "fork"), "no fork on this system")
class Forks(Case):
    def in_child(self, work):
        """Runs work in a copy of this process, and returns its text."""
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                os.write(write, work().encode())
            except BaseException as error:  # noqa: BLE001
                os.write(write, repr(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        return pid, open(read)

    def test_a_copy_of_the_process_has_a_ctx_of_its_own(self):
        keeper = self.fake(timeout=HANG)
        messages = [user("a"), user("b")]
        keeper.fit(messages)
        mine = keeper._child._popen.pid

        def work():
            fitted = keeper.fit(messages)
            pid = keeper._child._popen.pid
            keeper.close()
            return f"{fitted.unchanged_prefix} {len(fitted.acted)} {pid != mine}"

        pid, output = self.in_child(work)
        with output:
            self.assertEqual(output.read(), "0 2 True")
        os.waitpid(pid, 0)
        self.assertEqual(keeper.fit(messages).unchanged_prefix, 2, "the parent's goes on")

    def test_a_copy_made_during_a_call_works(self):
        keeper = self.fake(timeout=HANG)
        keeper.fit([user("a")])

        def fork():
            held = self.gate.entered()
            pid, output = self.in_child(lambda: str(len(keeper.fit([user("b"), user("c")]).acted)))
            with output:
                self.assertEqual(output.read(), "2")
            os.waitpid(pid, 0)
            held.send(b"x")

        in_threads(lambda: keeper.fit([user("HOLD")]), fork)

    def test_a_copy_does_not_keep_the_parents_ctx_alive(self):
        keeper = self.fake()
        keeper.fit([user("a")])
        read, write = os.pipe()
        pid, output = self.in_child(lambda: os.read(read, 1).decode())
        child = keeper._child
        begun = time.monotonic()
        keeper.close()
        self.assertLess(time.monotonic() - begun, 5.0)
        self.assertEqual(child._popen.returncode, 0)
        os.write(write, b"x")
        with output:
            self.assertEqual(output.read(), "x")
        os.waitpid(pid, 0)
        os.close(read)
        os.close(write)

    @unittest.skipIf(GUNICORN is None, "gunicorn is not installed")
    def test_each_worker_of_a_preloaded_server_has_a_ctx_of_its_own(self):
        folder = tempfile.TemporaryDirectory(dir=HOME.name)
        self.addCleanup(folder.cleanup)
        Path(folder.name, "app.py").write_text(APP)
        options = ["--preload", "--workers=2", "--bind=127.0.0.1:0"]
        command = [sys.executable, "-m", "gunicorn", *options, "app:app"]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": folder.name}
        with subprocess.Popen(command, cwd=folder.name, env=env, stderr=subprocess.PIPE, text=True) as server:
            killer = threading.Timer(HANG, server.kill)  # Its workers end when they miss it.
            killer.start()
            try:
                lines = iter(server.stderr.readline, "")
                listening = next((line for line in lines if "Listening at: " in line), "")
                self.assertTrue(listening, "it does not start")
                reading = threading.Thread(target=lambda: [*lines], daemon=True)
                reading.start()
                address, workers = listening.split("Listening at: ")[1].split()[0], {}
                for n in range(1, 1000):
                    with urllib.request.urlopen(address, timeout=HANG) as answer:
                        worker, child, master, length = map(int, answer.read().split())
                    self.assertEqual(workers.setdefault(worker, child), child, "one ctx for all requests")
                    self.assertNotEqual(child, master)
                    self.assertEqual(length, 3)
                    if len(workers) == 2 and n > 20:
                        break
                self.assertEqual(len(set(workers.values())), 2)
                server.terminate()
                self.assertEqual(server.wait(HANG), 0)
                reading.join(HANG)
            finally:
                killer.cancel()
                server.kill()
        for child in (*workers.values(), master):
            self.ends(child)

    def ends(self, pid):
        until = time.monotonic() + HANG
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < until:
                os.kill(pid, 0)
                time.sleep(0.01)
            self.fail("a process of ctx is left")


# Answers with its process, its ctx, the ctx of the process that loaded it, and the length of a `fit`.
APP = """
import os
from ctxkeep import ContextKeeper

keeper = ContextKeeper(window=32000)
keeper.fit([dict(role="user", content="before the fork")])
MASTER = keeper._child._popen.pid


def app(environ, start_response):
    messages = [dict(role="user", content=text) for text in ("before the fork", "a", "b")]
    fitted = keeper.fit(messages)
    start_response("200 OK", [("Content-Type", "text/plain")])
    numbers = os.getpid(), keeper._child._popen.pid, MASTER, len(fitted.messages)
    return [" ".join(map(str, numbers)).encode()]
"""


def setUpModule():
    if GUNICORN is None:
        print("gunicorn is not installed: its test is skipped", file=sys.stderr)
    if trio is None:
        print("trio is not installed: its test is skipped", file=sys.stderr)


def tearDownModule():
    HOME.cleanup()


if __name__ == "__main__":
    unittest.main()
