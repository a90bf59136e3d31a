#!/usr/bin/env python3
"""A fake model provider for clients that are real. Standard library only, loopback only.

    provider.py --log F.jsonl [--limit-chars N] [--tool NAME --arguments JSON]

It prints its URL, and ends when its standard input does. It has the model call a tool when the user's newest words hold BIGREAD, and say DONE when the result
has come. It refuses prompts of more than so many characters in the provider's own words, and prompts
whose calls and results do not belong together. Words for tests of single requests: CALL (the first
tool), FAIL 429 (that status), CUT (a stream that breaks off). Every request is one line of the log.
"""

import argparse
import json
import os
import re
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import protocols
from prompt import text_of

PER_TOKEN = 4
SUMMARY = """## Goal
- Read the big file as often as the user asks (BIGREAD).

## Progress
### Done
- [x] The file was read; its lines are lorem ipsum, numbered.

## Next Steps
1. Read the file again when asked.
"""


@dataclass
class Reply:
    n: int
    text: str = ""
    calls: list = field(default_factory=list)
    input: int = 0
    cached: int = 0

    @property
    def output(self):
        return (len(self.text) + len(str(self.calls))) // PER_TOKEN


class Model:
    """Decides what is answered, and remembers prompts as a prompt cache does."""

    def __init__(self, given):
        self.given = given
        self.lock = threading.Lock()
        self.prompts = []
        self.count = 0

    def record(self, **what):
        with self.lock, open(self.given.log, "a", encoding="utf-8") as log:
            log.write(json.dumps(what) + "\n")

    def cached(self, flat):
        """The longest beginning that an earlier prompt has too."""
        with self.lock:
            best = max((len(os.path.commonprefix([flat, old])) for old in self.prompts), default=0)
            self.prompts = [*self.prompts[-15:], flat]
            return best

    def number(self):
        with self.lock:
            self.count += 1
            return self.count

    def reply(self, prompt, n):
        newest = prompt.newest()
        words = " ".join(turn.text for turn in newest if not turn.results)
        if any(turn.results for turn in newest):
            return Reply(n, f"DONE {n}")
        if "BIGREAD" in words and self.given.tool in prompt.tools:
            return Reply(n, "Reading.", [(self.given.tool, json.loads(self.given.arguments))])
        if "CALL" in words and prompt.tools:
            return Reply(n, "", [(prompt.tools[0], {"city": "Paris"})])
        if not prompt.tools and re.search("summar", (prompt.system + words).lower()):
            return Reply(n, SUMMARY)
        return Reply(n, f"PLAIN {n}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        listed = [{"id": "fake-model", "object": "model", "created": 0, "owned_by": "fake"}]
        self.whole(200, {"object": "list", "data": listed})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            return self.whole(400, {"error": {"message": "not JSON"}})
        if self.path.split("?")[0].endswith(("/count_tokens", ":countTokens")):
            tokens = len(text_of(body.get("messages") or body.get("contents"))) // PER_TOKEN
            return self.whole(200, {"input_tokens": tokens, "totalTokens": tokens})
        speaks = protocols.route(self.path)
        if speaks is None:
            return self.whole(404, {"error": {"message": f"nothing at {self.path}"}})
        return self.complete(speaks, body)

    def complete(self, speaks, body):
        model, given = self.model, self.model.given
        n = model.number()
        try:
            prompt = speaks.read(body)
            faults = list(prompt.faults())
        except (KeyError, TypeError, ValueError) as error:
            kind = type(error).__name__
            model.record(n=n, protocol=speaks.NAME, outcome="invalid", faults=[kind], body=body)
            return self.whole(400, speaks.error(f"malformed request: {kind}", "invalid_request_error"))
        flat = prompt.flat()
        told = {
            "n": n,
            "protocol": speaks.NAME,
            "chars": len(flat),
            "turns": len(prompt.turns),
            "tools": len(prompt.tools),
            "tokens": len(flat) // PER_TOKEN,
            "body": body,
        }
        if faults:
            model.record(**told, outcome="invalid", faults=faults)
            return self.whole(400, speaks.error(faults[0], "invalid_request_error"))
        if given.limit_chars and len(flat) > given.limit_chars:
            model.record(**told, outcome="refused")
            return self.whole(*speaks.too_long(len(flat) // PER_TOKEN, given.limit_chars // PER_TOKEN))
        words = " ".join(turn.text for turn in prompt.newest())
        if failure := re.search(r"FAIL (\d+)", words):
            model.record(**told, outcome="failed")
            return self.whole(int(failure[1]), speaks.error("as it was asked for", "api_error"))
        cached = model.cached(flat) // PER_TOKEN
        reply = model.reply(prompt, n)
        reply.input, reply.cached = told["tokens"], cached
        said = "call" if reply.calls else reply.text.split()[0]
        model.record(**told, outcome="answered", cached=cached, said=said)
        if not speaks.streams(body, self.path):
            return self.whole(200, speaks.whole(reply, body))
        events = list(speaks.events(reply, body, protocols.halves))
        return self.stream(events[: len(events) // 2] if "CUT" in words else events, "CUT" in words)

    def whole(self, status, answer):
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, events, is_cut):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in events:
            event = (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event.encode()), event.encode()))
            self.wfile.flush()
        if is_cut:
            self.close_connection = True
            self.connection.close()
        else:
            self.wfile.write(b"0\r\n\r\n")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--log", required=True)
    options.add_argument("--limit-chars", type=int)
    options.add_argument("--tool")
    options.add_argument("--arguments", default="{}")
    Handler.model = Model(options.parse_args())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
