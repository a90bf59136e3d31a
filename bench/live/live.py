"""Ten tasks that need a detail which was cut before, with and without ctx; and the tables of replay and eval.

docs/live.md says how to run it. Without a key: ``live.py --offline``.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packages/python"))
import tasks  # noqa: E402
from provider import Provider, Refused, Relay, Stopped, answer_of  # noqa: E402

from ctxkeep import ContextKeeper, CtxError  # noqa: E402

ARMS = ("full", "truncate", "summary", "ctx")
ROUNDS = 6  # requests for one answer
FATAL = (0, 401, 403, 404)


def tool(name, text, field):
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {
        "type": "object", "properties": {field: {"type": "string"}}, "required": [field]}}}  # fmt: skip


# As in `ctx serve`.
CTX_TOOLS = [
    tool("ctx_expand", "Returns an earlier message or tool result of this conversation word for word, if it "
         "was shortened or replaced by a summary. The id stands after `e:` in a summary.", "id"),
    tool("ctx_recall", "Finds earlier messages of this conversation that left the context, by words that "
         "stand in them. Returns excerpts with their ids, oldest first.", "query"),
]  # fmt: skip


def text_of(message):
    calls = "".join(call["function"]["arguments"] for call in message.get("tool_calls") or ())
    content = message.get("content") or ""
    return (content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)) + calls


def size(messages):
    return sum(len(text_of(message)) // 4 + 4 for message in messages)


class Reader:
    """Stands for a model: finds the values of a task in the request, or asks ctx for them."""

    def __init__(self, window):
        self.window, self.totals, self.task = window, [0, 0, 0, 0, 0.0], {}

    def ask(self, body):
        messages, task = body["messages"], self.task
        prompt = size(messages) + len(json.dumps(body["tools"])) // 4
        if prompt > self.window:
            raise Refused(400, f"the prompt has {prompt} tokens, the window {self.window}")
        self.totals = [a + b for a, b in zip(self.totals, (1, prompt, 0, 0, 0.0))]
        asked = max(n for n, message in enumerate(messages) if message["role"] == "user")
        text = "\n".join(text_of(message) for n, message in enumerate(messages) if n != asked)
        text = re.sub(r"\(was [^)]*\)", "", text)  # an outdated value that ctx marks as such
        last = lambda name: [tasks.has(text, value) for value in task.get(name, [])]
        found, old = min(last("answer")), max(last("old"), default=-1)
        names = [tool["function"]["name"] for tool in body["tools"]]
        results = [message["content"] for message in messages[asked + 1 :] if message["role"] == "tool"]
        if found > old or old >= 0:
            answer = {"content": ", ".join(task["answer" if found > old else "old"])}
        elif "ctx_recall" in names and not results:
            answer = self.call("ctx_recall", {"query": task["question"]})
        elif "ctx_expand" in names and len(results) == 1 and (best := re.search(r"e:(\w+)", results[0])):
            answer = self.call("ctx_expand", {"id": best[1]})
        else:
            answer = {"content": "I do not know."}
        return json.dumps({"choices": [{"message": {"role": "assistant", **answer}}]}).encode()

    def call(self, name, arguments):
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"tool_calls": [{"id": f"{name}_1", "type": "function", "function": function}]}


def truncated(messages, limit):
    """Drops the oldest messages, except the system prompt, until the rest fits, and results without calls."""
    system, rest = messages[:1], messages[1:]
    while len(rest) > 1 and (size(system + rest) > limit or rest[0]["role"] == "tool"):
        rest = rest[1:]
    return system + rest


class Bench:
    def __init__(self, options, model, home, config):
        self.options, self.model = options, model
        writer = f"live/{options.summary_model}" if options.summary_model else "none"
        self.keeper = ContextKeeper(window=options.window, env={"CTX_HOME": home}, config=config,
                                    on_warning=lambda _: None, summaryModel=writer)  # fmt: skip

    def request(self, arm, task, messages, run):
        """Returns the messages and tools of the last request, and the tokens that are left for results."""
        window, names = self.options.window, [*tasks.TOOLS, *(CTX_TOOLS if arm == "ctx" else ())]
        if arm in ("full", "truncate"):
            sent = messages if arm == "full" else truncated(messages, window - min(20000, window // 4))
            return list(sent), names, window - size(sent)
        session = f"{task['id']}-{arm}"
        # ctx is called before every answer, as in an agent.
        ends = [n for n, message in enumerate(messages) if message["role"] == "assistant"] + [len(messages)]
        for end in ends:
            fitted = self.keeper.fit(messages[:end], session=session, tools=names)
            for made in fitted.compactions:
                receipt = made["details"]["receipt"]
                writer = receipt.get("model") or receipt["rung"]
                run["compactions"][writer] = run["compactions"].get(writer, 0) + 1
        sent = list(fitted.messages)
        if fitted.system_addition:
            sent[0] = {**sent[0], "content": sent[0]["content"] + "\n\n" + fitted.system_addition}
        return sent, names, window - fitted.tokens

    def answer(self, session, call, room):
        """Returns the result of a tool: as in `ctx serve`, in a third of the free window."""
        name, most = call["function"]["name"], max(1000, min(20000, room // 3) * 4)
        try:
            given = json.loads(call["function"]["arguments"] or "{}")
            if name == "ctx_recall":
                texts = self.keeper.session(session).recall(str(given["query"])) or ["nothing found"]
            elif name == "ctx_expand":
                found = self.keeper.session(session).expand(str(given["id"]))
                texts = [f"{key}: {value or 'unknown id'}" for key, value in found.items()]
            else:
                texts = ["The tools are not available any more. Answer from the conversation."]
        except (ValueError, KeyError, TypeError) as error:
            texts = [f"invalid arguments: {error!r}"]
        text = "\n\n".join(texts)
        return text if len(text) <= most else f"{text[:most]}\n[{len(text) - most} more do not fit]"

    def run(self, arm, task):
        began, before, model = time.monotonic(), self.model.totals, self.model
        run = {"task": task["id"], "kind": task["kind"], "arm": arm, "ok": False, "answer": None, "how": None,
               "error": None, "compactions": {}}  # fmt: skip
        try:
            model.task = task
            messages = tasks.conversation(task, self.options.window, self.options.seed)
            run["historyTokens"] = size(messages)
            sent, names, room = self.request(arm, task, messages, run)
            run["sentTokens"] = size(sent)
            body = {"model": self.options.model, "messages": sent, "tools": names}
            new = "api.openai.com" in self.options.base_url
            body["max_completion_tokens" if new else "max_tokens"] = self.options.max_output
            used = []
            for _ in range(ROUNDS):
                message = answer_of(model.ask(body))["choices"][0]["message"]
                calls = message.get("tool_calls") or []
                if not calls:
                    run["answer"] = (message.get("content") or "").strip()
                    break
                sent.append({"content": None, **{name: value for name, value in message.items() if value}})
                for call in calls:
                    used.append(call["function"]["name"])
                    result = self.answer(f"{task['id']}-{arm}", call, room)
                    room -= len(result) // 4
                    sent.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            stands = lambda name: [tasks.has(run["answer"] or "", value) >= 0 for value in task.get(name, [])]
            run["ok"] = all(stands("answer")) and not any(stands("wrong") + stands("old"))
            run["how"] = used[-1] if used else "request"
        except Refused as error:
            run["error"] = str(error)
            if error.status in FATAL:
                raise
        except (KeyError, IndexError, TypeError) as error:
            run["error"] = f"not a chat completion: {error!r}"
        names = ("requests", "promptTokens", "cachedTokens", "outputTokens", "costUsd")
        run.update(zip(names, (a - b for a, b in zip(model.totals, before))))
        run["seconds"] = round(time.monotonic() - began, 2)
        return run


def prices(options, name):
    """Returns a model's prices in USD per million tokens: given ones are for --model, and unknown models."""
    rows = json.loads((ROOT / "crates/ctx-model/data/models.json").read_text(encoding="utf-8"))
    row = next((row for row in rows if row["vintage"] == "today" and row["id"] == name), None)
    found = {"input": options.price_in, "cached": options.price_cached, "output": options.price_out}
    if row and (name != options.model or set(found.values()) == {None}):
        known = row["prices"]
        found = {"input": known["input"], "cached": known.get("cacheRead"), "output": known["output"]}
        note(f"prices of {name}: {row['source']}, {row['date']}")
    if found["cached"] is None:
        found["cached"] = found["input"]
    if None in found.values():
        sys.exit(f"unknown price of {name}: give --price-in and --price-out, USD per million tokens")
    return found


def table(rows):
    widths = [max(len(str(row[n])) for row in rows) for n in range(len(rows[0]))]
    line = lambda row: "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |"
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(rows[0]), rule, *map(line, rows[1:])])


def total(runs, arm):
    mine = [run for run in runs if run["arm"] == arm]
    sums = {name: sum(run[name] for run in mine) for name in
            ("requests", "promptTokens", "cachedTokens", "outputTokens", "costUsd", "seconds")}  # fmt: skip
    return {"runs": len(mine), "succeeded": sum(run["ok"] for run in mine), **sums}


def cell(run):
    if not run or run["error"]:
        return "error" if run else "-"
    return "no" if not run["ok"] else "yes" if run["how"] == "request" else f"yes, by {run['how']}"


def print_tables(report):
    runs, arms = report["runs"], report["arms"]
    by = {(run["task"], run["arm"]): run for run in runs}
    rows = [("task", "kind of detail", *arms)]
    rows += [(task, kind, *(cell(by.get((task, arm))) for arm in arms))
             for task, kind in {run["task"]: run["kind"] for run in runs}.items()]  # fmt: skip
    print(table(rows) + "\n")
    rows = [("arm", "succeeded", "requests", "tokens in", "cached", "out", "dollars", "seconds")]
    for arm, sums in arms.items():
        numbers = [f"{sums[name]:,}" for name in ("requests", "promptTokens", "cachedTokens", "outputTokens")]
        rows.append((arm, f"{sums['succeeded']} of {sums['runs']}", *numbers, f"{sums['costUsd']:.4f}",
                     f"{sums['seconds']:.0f}"))  # fmt: skip
    print(table(rows))
    for arm, said in {run["arm"]: run["error"] for run in reversed(runs) if run["error"]}.items():
        print(f"\n{arm}: {said}")


def commands(options, home, config, provider):
    """Runs `ctx replay` and `ctx eval compact` with summaries by the model, within the same limit."""
    file, made = Path(home) / "live.json5", []
    file.write_text(json.dumps(config), encoding="utf-8")
    sessions = options.sessions or sorted(map(str, (ROOT / "examples").glob("*.jsonl")))
    last = ["--summary-model", f"live/{options.summary_model or options.model}", "--config", str(file)]
    for words in (["replay", *sessions, "--window", str(options.window)],
                  ["eval", "compact", *sessions, "--quick", "--profile", "openclaw"]):  # fmt: skip
        if provider.stopped:
            break
        note(f"ctx {' '.join(words)}")
        command = [os.environ.get("CTX_BIN", "ctx"), *words, *last, *(["--json"] if options.json else [])]
        ran = subprocess.run(command, env={**os.environ, "CTX_HOME": home}, stdout=subprocess.PIPE, text=True)
        made.append({"command": words, "exitCode": ran.returncode, "output": ran.stdout,
                     "notMade": provider.stopped, "costUsd": provider.totals[4]})  # fmt: skip
        if not options.json:
            print(f"\n{ran.stdout}", flush=True)
            if provider.stopped:
                print(f"{provider.stopped} calls could pass the limit: there ctx summarised without it")
        note(f"${provider.totals[4]:.4f} so far")
    return made


def note(text):
    print(text, file=sys.stderr, flush=True)


def at_least(least, kind=float):
    """Returns a type of a flag: a number that is not smaller, and not infinite."""

    def number(text):
        value = kind(text)
        if not least <= value < math.inf:
            raise argparse.ArgumentTypeError(f"{text} is not a number from {least} on")
        return value

    return number


def is_address(url):
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def parse(arguments):
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--offline", action="store_true", help="no model: a program looks whether the detail is in reach")
    add("--model", default=os.environ.get("MODEL"), help="the name of the model [default: $MODEL]")
    add("--base-url", default=os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1",
        help="chat completions [default: $OPENAI_BASE_URL, else OpenAI's]")  # fmt: skip
    add("--key-env", default="OPENAI_API_KEY", metavar="NAME", help="with the key [default: %(default)s]")
    add("--summary-model", metavar="NAME", help="it writes the summaries in the tasks too")
    add("--window", type=at_least(1000, int), default=16000, help="in tokens [default: %(default)s]")
    add("--arms", default="truncate,summary,ctx", help=f"of {', '.join(ARMS)} [default: %(default)s]")
    add("--tasks", help="their names, separated by commas [default: all]")
    add("--only", choices=("tasks", "tables"), help="leave out the tables of replay and eval, or the tasks")
    add("--sessions", nargs="+", metavar="PATH", help="for the tables [default: examples/*.jsonl]")
    add("--max-dollars", type=at_least(0), default=1.0, help="the limit [default: %(default)s]")
    add("--max-output", type=at_least(1, int), default=2000, help="tokens of an answer [default: %(default)s]")
    for name in ("in", "cached", "out"):
        add(f"--price-{name}", type=at_least(0), metavar="USD", help="per million [default: ctx's catalogue]")
    add("--seed", type=int, default=1, help="of the invented work [default: %(default)s]")
    add("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    options.arms = options.arms.split(",")
    known = {task["id"]: task for task in tasks.load()}
    wanted = options.tasks.split(",") if options.tasks else list(known)
    if set(wanted) - set(known) or set(options.arms) - set(ARMS):
        parser.error("unknown task or arm")
    options.tasks = [known[name] for name in wanted]
    if not options.offline and not options.model:
        parser.error("give --model, or --offline")
    if not options.offline and not is_address(options.base_url):
        parser.error(f"--base-url: {options.base_url!r} is not an address such as https://api.openai.com/v1")
    if options.offline and options.only == "tables":
        parser.error("--only tables needs a model: give --model in place of --offline")
    if options.offline and "full" in options.arms:
        parser.error("the arm full needs a model with a larger window: give --model in place of --offline")
    return options


def main(arguments=None):
    options = parse(arguments)
    report = {"offline": options.offline, "model": options.model, "window": options.window,
              "maxDollars": options.max_dollars, "prices": None, "stopped": None, "runs": []}  # fmt: skip
    config, code = {}, 0
    if options.offline:
        model = Reader(options.window)
    else:
        names = {options.model, options.summary_model or options.model}
        report["prices"] = {name: prices(options, name) for name in sorted(names)}
        note(f"USD per million tokens: {report['prices']}")
        key = os.environ.get(options.key_env, "")
        model = Provider(options.base_url, key, report["prices"], options.max_dollars)
        config = Relay(model).config(options.summary_model or options.model)
    with tempfile.TemporaryDirectory() as home:
        bench = Bench(options, model, home, config)
        try:
            for task in options.tasks if options.only != "tables" else ():
                for arm in options.arms:
                    run = bench.run(arm, task)
                    report["runs"].append(run)
                    note(f"{task['id']}, {arm}: {run['error'] or cell(run)}, ${model.totals[4]:.4f} so far")
        except (Stopped, Refused, CtxError, KeyboardInterrupt) as error:
            report["stopped"], code = str(error) or "interrupted", 3 if isinstance(error, Stopped) else 1
        bench.keeper.close()
        report["arms"] = {arm: total(report["runs"], arm) for arm in options.arms}
        if report["runs"] and not options.json:
            print_tables(report)
        try:
            if not code and not options.offline and options.only != "tasks":
                report["tables"] = commands(options, home, config, model)
        except KeyboardInterrupt:
            report["stopped"], code = "interrupted", 1
    report["costUsd"] = model.totals[4]
    if options.json:
        print(json.dumps(report, indent=1, ensure_ascii=False))
    if report["stopped"]:
        note(f"stopped: {report['stopped']}")
    return code


if __name__ == "__main__":
    sys.exit(main())
