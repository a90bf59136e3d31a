#!/usr/bin/env python3
"""A context engine as a process that needs only the standard library of Python.

Each line on stdin is a call: {"id", "verb", "params"}. Each is answered by a line on stdout: {"id", "ok"} or
{"id", "error"}. Nothing else may be printed to stdout; stderr is free. This engine answers `assemble` with
the full list of `messages`, by id: all rows, or the newest whole groups that fit the budget.
"""
import json
import sys

PROTOCOL = "1.0"


class Failure(Exception):
    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def hello(params):
    theirs = params.get("protocol", "")
    if theirs.split(".")[0] != PROTOCOL.split(".")[0]:
        raise Failure("protocol", f"the host speaks protocol {theirs}, this engine {PROTOCOL}")
    # Without "remembers" the host sends all rows each time; without "contents", only their sizes.
    return {"protocol": PROTOCOL, "id": "python-echo", "name": "Python echo", "version": "0.1.0",
            "contents": False, "remembers": False, "verbs": []}


def assemble(params):
    rows = params.get("update", {}).get("added", [])
    room = params.get("budget", {}).get("messages", 0)
    room -= sum(row.get("tokens", 0) for row in rows if row.get("keep"))
    groups = {}
    for row in rows:
        groups.setdefault(row.get("group"), []).append(row)
    kept = set()
    for group, members in reversed(groups.items()):
        room -= sum(row.get("tokens", 0) for row in members if not row.get("keep"))
        if room < 0:
            break
        kept.add(group)
    # The host keeps protected rows, and so their groups.
    kept.update(row.get("group") for row in rows if row.get("keep"))
    return {"messages": [{"id": row["id"]} for row in rows if row.get("group") in kept]}


VERBS = {
    "hello": hello,
    "assemble": assemble,
    "ingest": lambda params: {"ingested": True},
    "compact": lambda params: {"ok": False, "compacted": False, "reason": "left to the host"},
    "dispose": lambda params: {},
}


def answer(line):
    call = {}
    try:
        call = json.loads(line)
        if "cancel" in call:
            return None  # a cancel is always too late: each call is answered before the next line is read
        if call.get("verb") not in VERBS:
            raise Failure("unsupported", f"unknown verb '{call.get('verb')}'")
        return {"id": call.get("id", 0), "ok": VERBS[call["verb"]](call.get("params") or {})}
    except Exception as error:  # an error is an answer, too
        of = call.get("id", 0) if isinstance(call, dict) else 0
        kind = getattr(error, "kind", "badRequest")
        return {"id": of, "error": {"kind": kind, "message": str(error)}}


for line in sys.stdin.buffer:
    reply = answer(line) if line.strip() else None
    if reply is not None:
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
