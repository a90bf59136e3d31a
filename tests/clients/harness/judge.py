"""Checks a run by the requests that the provider received."""

import json
import re
from dataclasses import dataclass, field

# Texts that only ctx writes.
MARKS = re.compile(
    r"\[tool result elided: aggregate tool-result budget"
    r"|\[Old tool result content cleared\]"
    r"|\[truncated: output exceeded context limit\]"
    r"|\[e:[0-9a-f]{8}"
)
# A summary changes the beginning of the prompt; between two summaries most of it is cached.
CACHED_AT_LEAST = 0.5


@dataclass
class Run:
    """One run of a client: its turns, and what the provider received meanwhile."""

    turns: list = field(default_factory=list)  # (whether it is well, what is wrong with it)
    requests: list = field(default_factory=list)
    folder: object = None
    said: str = ""  # what a last command of its own said
    records: list = field(default_factory=list)  # what `ctx serve` noted of each request
    kept: list = field(default_factory=list)  # what must hold of its sessions, and whether it does

    def well(self):
        return sum(ok for ok, _ in self.turns)

    def refused(self):
        """Returns the prompts refused as too long."""
        return [r for r in self.requests if (r["refusal"] or "").startswith("too long")]

    def invalid(self):
        """Returns the prompts in an invalid format: calls without results, roles in the wrong order."""
        refused = self.refused()
        return [r for r in self.requests if r["refusal"] and r not in refused]

    def marked(self):
        return [r for r in self.requests if MARKS.search(json.dumps(r["body"]))]

    def largest(self):
        return max((r["tokens"] for r in self.requests), default=0)

    def noted(self, what):
        return sum(record[what] for record in self.records)

    def cached_share(self):
        """The cached share of the prompts after the first, up to the first refused prompt."""
        tokens = cached = 0
        for request in self.requests[1:]:
            if request["refusal"]:
                break
            tokens += request["tokens"]
            cached += request["cached"]
        return cached / tokens if tokens else 0.0


def judge(client, alone, through):
    """Returns the checks, and whether each passes."""
    refused = alone.refused()
    yield "without ctx: prompts are refused", bool(refused)
    if client.fails_alone:
        yield "without ctx: the last turn fails", not alone.turns[-1][0]
    yield "without ctx: nothing of ours is in a prompt", not alone.marked()
    yield f"every turn is well ({complaints(through)})", through.well() == client.turns
    yield "no prompt is refused", not through.refused()
    invalid = [r["refusal"] for r in through.invalid()]
    yield f"every prompt is one that a provider takes {invalid[:2]}", not invalid
    yield "ctx had a part in it", bool(through.marked())
    # The last turn has at least as much to send as the first refused one.
    first = min((r["tokens"] for r in refused), default=0)
    late = [r["tokens"] for r in through.requests[-2:] if not r["refusal"]]
    yield f"fewer tokens than the client sent ({late} of {first})", bool(late) and max(late) < first
    if through.records:
        yield "the proxy's own figures say so too", through.noted("sentTokens") < through.noted("rawTokens")
    yield from alone.kept
    yield from through.kept
    share, before = through.cached_share(), alone.cached_share()
    words = f"what is read from the cache does not collapse ({share:.0%} of {before:.0%})"
    yield words, share >= CACHED_AT_LEAST * before


def judge_compactions(client, alone, through, planted):
    """Returns the checks of a client that asks its provider for compactions."""
    yield "without ctx: the last turn fails", not alone.turns[-1][0]
    yield f"every turn is well ({complaints(through)})", through.well() == client.turns
    refusals = [r["refusal"] for r in through.requests if r["refusal"]]
    asked = [refusal for refusal in refusals if "compaction_trigger" in refusal]
    # Without the Responses API, no provider is asked.
    is_asked = len(refusals) == len(asked) == client.has_responses
    yield f"only one prompt is refused, which asks for a compaction ({refusals[:2]})", is_asked
    compactions = sum(1 for record in through.records if record.get("compaction"))
    yield f"ctx compacts twice or more ({compactions})", compactions >= 2
    yield "ctx had a part in it", bool(through.marked())
    # Requests for summaries have no tools.
    prompts = [r for r in through.requests if r["body"].get("tools")]
    without = [r["number"] for r in prompts if planted not in json.dumps(r["body"])]
    yield f"each prompt has the planted rule (not {without})", bool(prompts) and not without


def judge_summaries(client, alone, through, planted):
    """Returns the checks of a client that asks its own model for summaries."""
    # Requests for summaries have no tools, or end in the instruction.
    asks = ("TEXT ONLY", "<state_snapshot>", "# USER")
    has_tools = lambda r: r["body"].get("tools") or not client.tool
    is_prompt = lambda r: has_tools(r) and not any(ask in json.dumps(last(r["body"])) for ask in asks)
    lacks = lambda run: [r["number"] for r in run.requests if is_prompt(r) and planted not in json.dumps(r["body"])]
    yield f"without ctx: every turn is well ({complaints(alone)})", alone.well() == client.turns
    yield "without ctx: prompts lack the planted rule", bool(lacks(alone))
    yield f"every turn is well ({complaints(through)})", through.well() == client.turns
    yield f"each prompt has the planted rule (not {lacks(through)})", not lacks(through)
    receipts = [r for r in through.records if (r.get("compaction") or {}).get("details")]
    yield "the summary of the client has a receipt", bool(receipts)


def last(body):
    """Returns the last message of a prompt."""
    return (body.get("messages") or body.get("contents") or body.get("input") or [""])[-1]


def complaints(run):
    return "; ".join(why for ok, why in run.turns if not ok)[:300] or "all"


def row(name, alone, through):
    """Returns a row of the table."""
    both = lambda value: f"{value(alone) if alone else '-'} / {value(through)}"
    return [
        name,
        both(lambda run: f"{run.well()} of {len(run.turns)}"),
        both(lambda run: len(run.refused())),
        both(lambda run: run.largest()),
        both(lambda run: f"{run.cached_share():.0%}"),
        f"{through.noted('rawTokens')} > {through.noted('sentTokens')}" if through.records else "-",
    ]


HEAD = ["client", "turns well", "refused", "largest prompt", "from the cache", "tokens in > out"]


def table(rows, head=HEAD):
    rows = [head, *rows]
    widths = [max(len(row[n]) for row in rows) for n in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
