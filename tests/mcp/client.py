"""Tests `ctx mcp` with the official Python client, in both modes, over stdio and over HTTP.

Usage: client.py CTX MODE TRANSPORT   with MODE legacy, auto or 2026-07-28, and TRANSPORT stdio or http

$CTX_HOME is the home that crates/ctx-cli/tests/it/mcp.rs writes. Every tool is listed and called, and its
answers are compared with that home. Prints one JSON object; exits with 1 on any failure.
"""

import asyncio
import json
import os
import subprocess
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

KEY = "agent:main:main"
OTHER = "agent:main:explicit:other"
TOOLS = ["context_status", "expand", "recall", "remember", "search_sessions"]


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


async def call(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    check(not result.is_error, f"{name} {arguments}: {text(result)}")
    check(result.structured_content is not None, f"{name} answers without structured content")
    return text(result), result.structured_content


async def fails(client, name, kind, words, **arguments):
    result = await client.call_tool(name, arguments)
    check(result.is_error, f"{name} {arguments} should fail: {text(result)}")
    said = text(result)
    check("hint: " in said and words in said, f"{name} {arguments}: {said}")
    error = (result.structured_content or {}).get("error", {})
    check(error.get("kind") == kind, f"{name} {arguments}: {error}")


async def tools(client):
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    check(sorted(listed) == TOOLS, sorted(listed))
    for name, tool in listed.items():
        check(tool.description and tool.title, f"{name} is not described")
        check(tool.input_schema["type"] == "object" and tool.output_schema["type"] == "object", name)
        check(tool.annotations.read_only_hint == (name != "remember"), f"{name}: {tool.annotations}")
        check(tool.annotations.open_world_hint is False, f"{name}: {tool.annotations}")
    check(listed["remember"].annotations.idempotent_hint, "remember is not idempotent")


async def memory(client, mode, transport):
    fact = f"the harbour crane of {mode} {transport} is painted turquoise"
    question = f"what colour is the harbour crane of {mode} {transport}?"
    said, report = await call(client, "remember", text=f"{fact}", session=KEY)
    check(report["remembered"] and report["text"] == fact and not report["redacted"], report)
    said, report = await call(client, "remember", text=fact, session=KEY)
    check(not report["remembered"] and "Already known" in said, report)
    said, report = await call(client, "recall", query=question, session=KEY)
    check(fact in said and fact in report["block"] and report["factsUsed"] >= 1, report)
    # It is not visible in another session.
    said, report = await call(client, "recall", query=question, session=OTHER)
    check("turquoise" not in said and "turquoise" not in json.dumps(report["facts"]), report)
    # Messages of the transcript are recalled as well.
    said, report = await call(client, "recall", query="what is the lighthouse parrot called?", session=KEY)
    check("Quillon" in said and any("Quillon" in p["text"] for p in report["passages"]), report)
    check(report["tokens"] <= report["budget"] and report["memoryEnabled"], report)
    said, small = await call(client, "recall", query="what is the lighthouse parrot called?", session=KEY, budget=5)
    check(small["block"] is None and "budget" in said, small)
    secret = "sk-ant-api03-" + "Zx9Qw7Er5Ty3Ui1Op" * 5
    said, report = await call(client, "remember", text=f"the api key of {mode} {transport} is {secret}", session=KEY)
    check(report["redacted"] and secret not in said and secret not in report["text"], report)
    with open(os.path.join(os.environ["CTX_HOME"], "agents/main/memory/context/knowledge.jsonl")) as known:
        lines = known.read()
    check(fact in lines and secret not in lines, "wrong facts on disk")
    await fails(client, "remember", "invalidInput", "several facts", text="long " * 100)
    await fails(client, "remember", "invalidInput", "in words", text="...")
    # A fact stored without a session is recalled as well.
    await call(client, "remember", text=f"the ferry of {mode} {transport} leaves at noon")
    said, _ = await call(client, "recall", query=f"when does the ferry of {mode} {transport} leave?")
    check("leaves at noon" in said, said)


async def search(client):
    said, report = await call(client, "search_sessions", query="parrot lighthouse", session=KEY, limit=3)
    check(report["hits"] and "Quillon" in report["hits"][0]["text"], report)
    check(len(report["hits"]) <= 3 and all(hit["session"] == "s1" for hit in report["hits"]), report)
    check("[e:" in said, said)
    found, _ = await call(client, "expand", entry=report["hits"][0]["entry"], session=KEY)
    check("Quillon" in found, found)
    _, other = await call(client, "search_sessions", query="parrot lighthouse", session=OTHER)
    check(all("Quillon" not in hit["text"] for hit in other["hits"]), other)
    # An explicit search covers all sessions.
    _, everywhere = await call(client, "search_sessions", query="parrot lighthouse")
    check(any("Quillon" in hit["text"] for hit in everywhere["hits"]), everywhere)


async def context(client):
    said, report = await call(client, "context_status", session=KEY)
    want = json.loads(subprocess.run(
        [sys.argv[1], "status", report["session"]["path"], "--json"],
        check=True, capture_output=True, text=True).stdout)
    check(report == want, f"{report} is not {want}")
    check(report["compactions"] == 1 and report["session"]["messages"] > 0, report)
    check(KEY in said and "compactions: 1" in said, said)
    _, wide = await call(client, "context_status", session=KEY, window=1_000_000)
    check(wide["window"] == 1_000_000 and wide["usedShare"] < report["usedShare"], wide)
    return report["context"]["compaction"]


async def expand(client, compaction):
    said, report = await call(client, "expand", entry=compaction, session=KEY)
    check(len(report["messages"]) > 2, report)
    one = report["messages"][0]
    for cited in (one["entry"], f"[e:{one['entry']}]", f"e:{one['entry']}"):
        alone, single = await call(client, "expand", entry=cited, session=KEY)
        check([m["entry"] for m in single["messages"]] == [one["entry"]], single)
        check(alone.startswith(f"{one['role']} [e:{one['entry']}]"), alone)
    # The parts form the same text.
    whole, at = "", 0
    while at is not None:
        _, part = await call(client, "expand", entry=compaction, session=KEY, **{"from": at, "maxChars": 500})
        check(len(part["text"]) <= 500, part)
        whole, at = whole + part["text"], part["next"]
    _, long = await call(client, "expand", entry=compaction, session=KEY, maxChars=200_000)
    check(long["next"] is None and whole == long["text"] and "module 3" in whole, "the parts are not the whole")
    await fails(client, "expand", "notFound", "not found", entry="nobody", session=KEY)
    await fails(client, "expand", "invalidInput", "ends before", entry=one["entry"], session=KEY, **{"from": 10**9})


async def resources(client):
    listed = (await client.list_resources()).resources
    check([str(r.uri) for r in listed] == [f"ctx://session/{KEY}", f"ctx://session/{OTHER}"], listed)
    first = listed[0]
    check(first.size > 1000 and first.annotations.last_modified and first.mime_type == "text/plain", first)
    templates = (await client.list_resource_templates()).resource_templates
    check([t.uri_template for t in templates] == ["ctx://session/{key}/{from}"], templates)
    uri, pages, texts = str(first.uri), 0, ""
    while uri:
        page = (await client.read_resource(uri)).contents[0]
        texts, uri, pages = texts + page.text, page.meta.get("next"), pages + 1
    check(pages > 1 and "Quillon" in texts and "module 119" in texts, f"{pages} pages")
    for bad in ("ctx://session/..%2F..%2Fetc%2Fpasswd", "ctx://session/../../x", "ctx://session/nobody",
                "file:///etc/passwd", f"ctx://session/{KEY}/999999"):
        try:
            await client.read_resource(bad)
        except MCPError as error:
            check(error.error.code in (-32002, -32602), f"{bad}: {error.error}")
            check(error.error.data["hint"], f"{bad}: {error.error}")
        else:
            raise AssertionError(f"{bad} was read")


async def refusals(client):
    for name in ("recall", "search_sessions", "context_status", "expand"):
        given = {"recall": {"query": "parrot"}, "search_sessions": {"query": "parrot"}, "expand": {"entry": "a"}}
        for session in ("../../etc/passwd", "nobody", "/etc/passwd"):
            await fails(client, name, "notFound", KEY, session=session, **given.get(name, {}))
        await fails(client, name, "invalidInput", "too long", session="x" * 100_000, **given.get(name, {}))
    await fails(client, "context_status", "invalidInput", "missing session")
    await fails(client, "recall", "invalidInput", "schema", query=5)
    await fails(client, "recall", "invalidInput", "schema")
    await fails(client, "recall", "invalidInput", "schema", query="a", no_such_field=1)
    await fails(client, "recall", "invalidInput", "too long", query="x" * 1_000_000)
    try:
        await client.call_tool("no_such_tool", {})
    except MCPError as error:
        check(error.error.code == -32602 and "recall" in error.error.data["known"], error.error)
    else:
        raise AssertionError("an unknown tool was called")


async def both(server, mode, transport):
    async with Client(server, mode=mode) as client:
        await tools(client)
        await memory(client, mode, transport)
        await search(client)
        await expand(client, await context(client))
        await resources(client)
        await refusals(client)
        return client.protocol_version


def main():
    ctx, mode, transport = sys.argv[1:4]
    if transport == "stdio":
        server = StdioServerParameters(command=ctx, args=["mcp"], env=dict(os.environ))
        version = asyncio.run(both(server, mode, transport))
    else:
        serving = subprocess.Popen([ctx, "mcp", "--http", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        try:
            version = asyncio.run(both(serving.stdout.readline().strip(), mode, transport))
        finally:
            serving.terminate()
            serving.wait()
    print(json.dumps({"mode": mode, "transport": transport, "protocol": str(version)}))


if __name__ == "__main__":
    main()
