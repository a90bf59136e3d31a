"""Prints what the client itself costs: for a conversation of 200,000 tokens, without ctx and its pipes, and
for 1,000 conversations with one process of ctx.

CTX_BIN=target/debug/ctx python3 packages/python/tests/client_cost.py
"""

import json
import statistics
import sys
import time
import tracemalloc
from concurrent.futures import Future
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ctxkeep import ContextKeeper


class Server:
    """Takes and gives JSON as the process does, at once."""

    ended = None
    length = 0
    spent = 0.0  # Seconds that are not the client's.

    def send(self, method, params):
        begun = time.perf_counter()
        json.dumps(params, ensure_ascii=False).encode()
        self.length = params.get("keep", 0) + len(params.get("messages", ()))
        ids = [f"{n:08x}" for n in range(self.length)]
        answer = {"messages": list(range(self.length)), "ids": ids, "tokens": 1, "limit": 1,
                  "unchangedPrefix": 0, "acted": []}  # fmt: skip
        line = json.dumps(answer)
        self.spent += time.perf_counter() - begun
        future = Future()
        future.set_result(json.loads(line) if method == "fit" else {})
        return future

    def end(self):
        pass

    stop = end


for count in (200, 800, 4000):
    text = "word " * (200_000 * 4 // count // 5)
    history = [{"role": "user", "content": [{"type": "text", "text": f"{n} {text}"}]} for n in range(count)]
    keeper, server = ContextKeeper(window=1_000_000), Server()
    keeper._child = server
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    keeper.fit(history[:-200])
    kept = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    times = []
    for n in range(count - 199, count + 1):
        messages, server.spent = history[:n], 0.0
        begun = time.perf_counter()
        keeper.fit(messages)
        times.append(time.perf_counter() - begun - server.spent)
    median, most = statistics.median(times) * 1000, max(times) * 1000
    memory = f"{(kept[0] - before) / 1e6:.1f} MB kept, {(kept[1] - before) / 1e6:.1f} MB at most"
    keeper._child = None
    print(f"{count} messages: fit {median:.2f} ms (median), {most:.2f} ms (most); {memory}")

texts = [[f"{n} {at} " + "word " * 400 for at in range(20)] for n in range(1000)]
histories = [[{"role": "user", "content": text} for text in each] for each in texts]
tracemalloc.start()
with ContextKeeper(window=32_000) as keeper:
    keeper.fit(histories[0])
    before, begun = tracemalloc.get_traced_memory()[0], time.perf_counter()
    for count in (18, 19, 20):
        for n, history in enumerate(histories):
            fitted = keeper.fit(history[:count], session=n)
            assert fitted.messages == history[:count]
    seconds, kept = time.perf_counter() - begun, tracemalloc.get_traced_memory()
    memory = f"{(kept[0] - before) / 1e6:.1f} MB kept, {(kept[1] - before) / 1e6:.1f} MB at most"
    print(f"1,000 conversations of 20 messages: {seconds / 3000 * 1000:.2f} ms for each fit; {memory}")
