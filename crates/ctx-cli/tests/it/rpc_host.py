#!/usr/bin/env python3
"""A host in Python, standard library only: drives an engine through `ctx rpc`.

    rpc_host.py CTX ENGINE [WINDOW]

It runs a conversation until its messages would fill the window three times. Before each answer, it
requests the messages that fit, and checks them. At the end, it compacts the session.
"""

import json
import subprocess
import sys


class Ctx:
    """One process of `ctx rpc`."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.calls = 0

    def __call__(self, method, **params):
        self.calls += 1
        call = {"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}
        self.process.stdin.write(json.dumps(call, ensure_ascii=False) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        assert answer["id"] == self.calls, "answers of one session come in the order of its calls"
        return answer["result"]

    def end(self):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        assert rest == "", f"nothing but answers goes to stdout: {rest!r}"
        return self.process.wait()


def turn(n):
    """A question and what the agent does to answer it."""
    calls = [f"call-{n}-{k}" for k in range(1 + n % 3)]
    yield {"role": "user", "content": f"Frage {n} ❓: what is in src/módulo_{n}.rs? 模块 🚀"}
    yield {
        "role": "assistant",
        "content": [{"type": "text", "text": f"I look at it ({n})."}]
        + [{"type": "toolCall", "id": c, "name": "read", "arguments": {"n": n}} for c in calls],
        "usage": {"input": 10 * n, "output": 5},
    }
    for call in calls:
        text = "".join(f"{line}: fn item_{n}_{line}() {{ /* ünïcode */ }}\n" for line in range(60))
        yield {
            "role": "toolResult",
            "toolCallId": call,
            "toolName": "read",
            "content": [{"type": "text", "text": text}],
            "isError": False,
        }
    yield {"role": "assistant", "content": [{"type": "text", "text": f"It holds items of {n}."}]}


def characters(messages):
    return sum(len(json.dumps(m.get("content", m.get("summary")))) for m in messages)


def check(request, newest):
    """Checks the messages of a request."""
    assert request["tokens"] <= request["limit"], f"{request['tokens']} > {request['limit']}"
    open_calls = []
    for message in request["messages"]:
        if message["role"] == "toolResult":
            assert message["toolCallId"] in open_calls, f"no call before {message['toolCallId']}"
            open_calls.remove(message["toolCallId"])
            continue
        assert not open_calls, f"calls without a result: {open_calls}"
        if message["role"] == "assistant":
            content = message["content"]
            open_calls = [b["id"] for b in content if b["type"] == "toolCall"]
    assert not open_calls, f"calls without a result: {open_calls}"
    assert newest in request["messages"], "the newest message of the user is not in the request"
    assert len(request["ids"]) == len(request["messages"]), "not every message has an id"


def main(program, engine, window):
    ctx = Ctx(program)
    hello = ctx("initialize", client={"name": "rpc_host.py"})
    assert hello["protocol"].startswith("1."), hello
    session = {"sessionId": "python"}
    opened = ctx("open", **session, engine=engine, window=window, systemPrompt="You read code.")
    assert opened["engine"]["id"] == engine, opened

    history, requests, acted, reused = [], 0, set(), 0
    while characters(history) < 3 * 4 * window:
        question, *work = turn(len(history))
        # A request before each answer: the first after the question, one after the results.
        for part in ([question], work[:-1], work[-1:]):
            history += part
            if len(history) % 2:
                synced = ctx("sync", **session, messages=history)
                assert synced["added"] == len(part), synced
            else:
                ctx("append", **session, messages=part)
            if part is work[-1:] or history[-1]["role"] == "assistant":
                ctx("after_turn", **session)
                continue
            request = ctx("assemble", **session, now=1_700_000_000_000 + requests)
            check(request, question)
            requests += 1
            acted.update(request["acted"])
            reused += request["unchangedPrefix"] > 0
            if requests % 7 == 0:
                ctx("usage", **session, promptTokens=int(request["tokens"] * 1.1))
        ctx("commit_turn", **session, advancementKey=f"turn-{len(history)}")
        ctx("maintain", **session)

    assert acted, "three times the window fits only if messages are dropped"
    before = ctx("assemble", **session)["tokens"]
    compacted = ctx("compact", **session, force=True, tokenBudget=window // 4)
    assert compacted["ok"], compacted
    # With the next question, the host sends its whole history.
    question, *_ = turn(len(history))
    history.append(question)
    ctx("sync", **session, messages=history)
    request = ctx("assemble", **session)
    check(request, question)
    assert not compacted["compacted"] or request["tokens"] < before, "it did not become smaller"
    status = ctx("status", **session)
    assert status["messages"] == len(history), status
    ctx("close", **session)
    code = ctx.end()
    told = {"engine": engine, "carrier": opened["engine"]["carrier"]}
    told.update(messages=len(history), requests=requests, reused=reused)
    told.update(acted=sorted(acted), before=before, after=request["tokens"], exit=code)
    print(json.dumps(told))
    return code


if __name__ == "__main__":
    given = sys.argv[1:] + ["32000"]
    sys.exit(main(given[0], given[1], int(given[2])))
