"""A chat-completions endpoint with a limit in dollars, and an address on loopback where ctx finds it."""

import http.client
import json
import secrets
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# After these, the provider has nothing of the request.
UNSENT = (ValueError, http.client.InvalidURL, ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
RETRIED = (429, 500, 502, 503, 504, 529)


class Stopped(Exception):
    """The next request could cost more than what is left."""


class Refused(Exception):
    """The provider gave no answer. ``status`` is 0 if the connection failed, ``sent`` whether it has the request."""

    def __init__(self, status, text, sent=True):
        self.status, self.text, self.sent = status, text, sent
        hint = {401: "is the key right?", 403: "may this key use this model?", 0: "is --base-url right?",
                404: "are --base-url and --model right?"}.get(status)  # fmt: skip
        said = f"the provider answered {status or 'nothing'}: {' '.join(text.split())[:300]}"
        super().__init__(f"{said} ({hint})" if hint else said)


def answer_of(data):
    """Returns the answer as JSON; of a stream, the part with the usage."""
    text = data.decode(errors="replace").strip()
    if text.startswith("{"):
        return json.loads(text)
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:") and "[DONE]" not in line]
    return next((part for part in map(json.loads, reversed(lines)) if part.get("usage")), {})


class Provider:
    """Makes requests as long as none can pass the limit. ``prices`` are USD per million tokens, by model."""

    def __init__(self, url, key, prices, limit, wait=2.0):
        self.url, self.key, self.prices, self.limit, self.wait = url, key, prices, limit, wait
        # Requests, prompt tokens, cached ones among them, output tokens, dollars.
        self.totals = [0, 0, 0, 0, 0.0]
        self.reserved, self.stopped = 0.0, 0
        self._lock = threading.Lock()

    def cost(self, model, prompt, cached, output):
        parts = ((prompt - cached, "input"), (cached, "cached"), (output, "output"))
        return sum(tokens * self.prices[model][name] for tokens, name in parts) / 1e6

    def most(self, body):
        """Returns the most that a request can cost: two bytes per token, none cached, the longest answer."""
        limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        prompt = len(json.dumps(body, ensure_ascii=False).encode()) // 2
        return self.cost(body["model"], prompt, 0, body.setdefault(limit, 4000))

    def ask(self, body):
        """Returns the provider's answer as bytes."""
        most = self.most(body)
        with self._lock:
            left = self.limit - self.totals[4] - self.reserved
            if most > left:
                self.stopped += 1
                raise Stopped(f"the next request can cost ${most:.4f}, and ${left:.4f} are left")
            self.reserved += most
        used, paid = (0, 0, 0), most  # Without an answer or its usage, nobody knows the cost.
        try:
            data = self._retry(body)
            usage = answer_of(data).get("usage") or {}
            details = usage.get("prompt_tokens_details") or {}
            cached = details.get("cached_tokens") or 0
            used = usage.get("prompt_tokens", 0), cached, usage.get("completion_tokens", 0)
            paid = self.cost(body["model"], *used) if usage else most
            return data
        except Refused as error:
            paid = 0.0 if error.status or not error.sent else most
            raise
        except ValueError as error:
            raise Refused(200, f"not JSON: {error}") from None
        finally:
            with self._lock:
                self.reserved -= most
                self.totals = [a + b for a, b in zip(self.totals, (1, *used, paid))]

    def _retry(self, body):
        try:
            return self._send(body)
        except Refused as error:
            if error.status == 400 and "max_completion_tokens" in error.text and "max_tokens" in body:
                body["max_completion_tokens"] = body.pop("max_tokens")
            elif error.status in RETRIED:
                time.sleep(self.wait)
            else:
                raise
            return self._send(body)

    def _send(self, body):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        data = json.dumps(body, ensure_ascii=False).encode(errors="replace")
        try:
            request = urllib.request.Request(f"{self.url.rstrip('/')}/chat/completions", data, headers)
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            text = error.read(10000).decode(errors="replace")
            raise Refused(error.code, self._without_key(text)) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            raise Refused(0, self._without_key(str(error)), not isinstance(cause, UNSENT)) from None

    def _without_key(self, text):
        return text.replace(self.key, "KEY") if self.key else text


class Handler(BaseHTTPRequestHandler):
    """Answers requests with JSON, and logs nothing."""

    def read(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status, data, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def serve(handler):
    """Starts a server on loopback. Returns it, and its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/v1"


class Relay:
    """The provider at an address on loopback, for the summaries of ctx: the same limit holds for them."""

    def __init__(self, provider):
        token = secrets.token_hex(16)

        class Summaries(Handler):
            def do_POST(self):
                body = self.read()
                status, data = 401, b"{}"
                if self.headers["Authorization"] == f"Bearer {token}":
                    try:
                        status, data = 200, provider.ask(body)
                    except (Stopped, Refused) as error:
                        status = getattr(error, "status", 0) or 402
                        data = json.dumps({"error": {"message": str(error)}}).encode()
                kind = "application/json" if data[:1] == b"{" else "text/event-stream"
                self.answer(status, data, kind)

        self._server, self.url = serve(Summaries)
        self.token = token

    def config(self, model):
        """Returns the configuration of ctx for summaries by ``live/MODEL``."""
        own = {"baseUrl": self.url, "api": "openai-completions", "apiKey": self.token,
               "models": [{"id": model, "contextWindow": 128000}]}  # fmt: skip
        return {"models": {"providers": {"live": own}}}
