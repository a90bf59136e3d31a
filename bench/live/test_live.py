"""Tests of live.py: the tasks, a run without a model, and requests to an endpoint on loopback."""

import contextlib
import io
import json
import os
import socket
import threading
import unittest
from unittest import mock

import live
import provider
import tasks

PRICES = ["--price-in", "1", "--price-cached", "0.1", "--price-out", "10"]


class Endpoint(provider.Handler):
    """Answers as the reader does. ``failures`` are statuses of the next answers."""

    failures, bodies, reader = [], [], live.Reader(16000)
    summary = "## Goal\n- Look at the services.\n## Progress\n### Done\n- [x] The tests pass.\n" * 3

    def do_POST(self):
        body = self.read()
        self.bodies.append(body)
        key = self.headers["Authorization"]
        status = 401 if key != "Bearer secret" else self.failures.pop(0) if self.failures else 200
        usage = {"prompt_tokens": 1000, "completion_tokens": 10}
        usage["prompt_tokens_details"] = {"cached_tokens": 400}
        kind, data = "application/json", json.dumps({"error": {"message": f"no: {key}"}}).encode()
        if status == 200 and body.get("stream"):
            choice = {"index": 0, "delta": {"content": self.summary}, "finish_reason": "stop"}
            chunk = {"choices": [choice], "usage": usage}
            kind, data = "text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        elif status == 200:
            asked = [message["content"] for message in body["messages"] if message["role"] == "user"][-1]
            self.reader.task = next(task for task in tasks.load() if task["question"] == asked)
            data = json.dumps({**json.loads(self.reader.ask(body)), "usage": usage}).encode()
        self.answer(status, data, kind)


class Live(unittest.TestCase):
    def setUp(self):
        server, self.url = provider.serve(Endpoint)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        Endpoint.failures, Endpoint.bodies = [], []

    def run_live(self, names, arms, *more, key="secret"):
        """Returns the exit code and the report."""
        out, err = io.StringIO(), io.StringIO()
        online = [] if "--offline" in more else ["--base-url", self.url, "--model", "fake", *PRICES]
        work = ["--only", "tasks", "--json", "--tasks", names, "--arms", arms]
        with mock.patch.dict(os.environ, OPENAI_API_KEY=key), mock.patch("time.sleep"):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = live.main([*work, *online, *more])
        self.assertNotIn(key, out.getvalue() + err.getvalue())
        return code, json.loads(out.getvalue())

    def test_the_details_stand_only_where_they_are_planted(self):
        loaded = tasks.load()
        self.assertEqual(len(loaded), 10)
        self.assertEqual(tasks.conversation(loaded[0], 16000), tasks.conversation(loaded[0], 16000))
        for task in loaded:
            messages = tasks.conversation(task, 16000)
            self.assertGreater(live.size(messages), 3 * 16000)
            for value in task["answer"] + task.get("wrong", []) + task.get("old", []):
                places = [n for n, said in enumerate(messages) if tasks.has(live.text_of(said), value) >= 0]
                self.assertEqual(len(places), 1, f"{task['id']}: {value}")
                self.assertLess(places[0], len(messages) / 2)

    def test_without_a_model(self):
        code, report = self.run_live("port,timeout", "truncate,ctx", "--offline")
        self.assertEqual(code, 0)
        ok = {(run["task"], run["arm"]): run["ok"] for run in report["runs"]}
        self.assertEqual(ok, {("port", "truncate"): False, ("port", "ctx"): True,
                              ("timeout", "truncate"): False, ("timeout", "ctx"): True})  # fmt: skip

    def test_usage_and_cost(self):
        code, report = self.run_live("port", "truncate,ctx")
        made = len(Endpoint.bodies)
        self.assertEqual((code, report["arms"]["ctx"]["succeeded"]), (0, 1))
        self.assertEqual(sum(run["cachedTokens"] for run in report["runs"]), 400 * made)
        self.assertAlmostEqual(report["costUsd"], made * (600 * 1 + 400 * 0.1 + 10 * 10) / 1e6)
        for body in Endpoint.bodies:
            calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
            results = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
            self.assertEqual(calls, results)

    def test_the_limit(self):
        # A request of some 12,000 tokens can cost $0.044 at most, and costs $0.00074.
        code, report = self.run_live("port,path,error,owner", "truncate", "--max-dollars", "0.046")
        self.assertEqual((code, 0 < len(report["runs"]) < 4), (3, True))
        self.assertIn("can cost", report["stopped"])
        self.assertEqual(len(Endpoint.bodies), len(report["runs"]))
        self.assertEqual(self.run_live("port", "truncate", "--max-dollars", "0.001")[1]["costUsd"], 0)

    def test_a_model_writes_the_summaries_within_the_limit(self):
        for limit, writers in (("1", {"live/fake"}), ("0.01", {"extractive"})):
            Endpoint.bodies = []
            more = ["--summary-model", "fake", "--max-dollars", limit]
            _, report = self.run_live("port", "ctx", *more)
            self.assertLess(report["costUsd"], float(limit))
            if report["runs"]:
                run = report["runs"][0]
                self.assertEqual(set(run["compactions"]), writers)
                self.assertEqual(run["requests"], len(Endpoint.bodies))
            else:
                self.assertEqual(Endpoint.bodies, [])

    def test_failures(self):
        Endpoint.failures = [429]
        self.assertEqual(self.run_live("port", "truncate")[1]["runs"][0]["error"], None)
        Endpoint.failures = [500, 503]
        code, report = self.run_live("port,path", "truncate")
        self.assertEqual((code, len(report["runs"])), (0, 2))
        self.assertIn("503", report["runs"][0]["error"])
        Endpoint.bodies = []
        code, report = self.run_live("port,path", "truncate", key="no-such-key")
        self.assertEqual((code, len(report["runs"]), len(Endpoint.bodies)), (1, 0, 1))
        self.assertIn("is the key right?", report["stopped"])

    def test_prices(self):
        options = live.parse(["--model", "gpt-4o-mini", "--price-in", "1", "--price-out", "2"])
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(live.prices(options, "gpt-4o-mini"), {"input": 1, "cached": 1, "output": 2})
            self.assertNotEqual(live.prices(options, "gpt-4o"), {"input": 1, "cached": 1, "output": 2})
            self.assertEqual(live.prices(options, "unknown"), {"input": 1, "cached": 1, "output": 2})
        with self.assertRaisesRegex(SystemExit, "unknown price"):
            live.main(["--model", "no-such-model"])

    def test_flags_are_checked(self):
        model = ["--model", "fake"]
        wrong = [[*model, "--base-url", url] for url in ("notaurl", "ftp://a", "http://", "http://a:b", "https:a")]
        wrong += [[*model, "--max-dollars", value] for value in ("nan", "-1", "inf", "x")]
        wrong += [[*model, f"--price-{name}", value] for name in ("in", "cached", "out") for value in ("-1", "nan")]
        wrong += [[*model, "--max-output", "0"], [*model, "--window", "999"], [*model, "--window", "-16000"]]
        wrong += [["--offline", "--only", "tables"], ["--offline", "--arms", "ctx,full"], []]
        for words in wrong:
            with self.subTest(words), contextlib.redirect_stderr(io.StringIO()) as said:
                with mock.patch.dict(os.environ, MODEL=""), self.assertRaises(SystemExit) as raised:
                    live.parse(words)
                self.assertEqual(raised.exception.code, 2)
                self.assertIn("error: ", said.getvalue())
        options = live.parse([*model, "--max-dollars", "0", "--window", "1000", "--max-output", "1"])
        self.assertEqual((options.max_dollars, options.window, options.max_output), (0, 1000, 1))
        self.assertEqual(live.parse(["--offline", "--base-url", "unused"]).arms, ["truncate", "summary", "ctx"])

    def test_a_request_that_was_not_sent_costs_nothing(self):
        prices = {"fake": {"input": 1, "cached": 1, "output": 1}}
        body = {"model": "fake", "messages": []}
        with socket.create_server(("127.0.0.1", 0)) as closed:
            unused = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
            dropped = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
            cases = [("notaurl", "k"), ("http://a:b", "k"), (unused, "k"), (self.url, "a\nb"), (self.url, "\u20ac")]
            for url, key, is_paid in [*((*case, False) for case in cases), (dropped, "k", True)]:
                made = provider.Provider(url, key, prices, 1.0)
                with self.subTest(url=url, key=key):
                    with self.assertRaisesRegex(provider.Refused, "is --base-url right") as raised:
                        made.ask({**body})
                    self.assertEqual((raised.exception.status, made.totals[4] > 0), (0, is_paid))
        self.assertEqual(Endpoint.bodies, [])

    def test_a_stream_has_its_usage_at_the_end(self):
        data = b'data: {"choices": []}\n\ndata: {"usage": {"prompt_tokens": 7}}\n\ndata: [DONE]\n'
        self.assertEqual(provider.answer_of(data)["usage"]["prompt_tokens"], 7)


if __name__ == "__main__":
    unittest.main()
