"""Compacts messages with LangChain's SummarizationMiddleware and times it, for `cargo xtask bench`.

    python summarize.py FILE ROUNDS    FILE has a message of ctx-core as JSON on each line

The model answers at once. All else is LangChain's default, except that it compacts at 100,000 tokens.
"""

import json
import sys
import time
from importlib.metadata import version

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage


def text(blocks):
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def message(role, blocks):
    if role == "user":
        return HumanMessage(text(blocks))
    if role == "assistant":
        calls = [block for block in blocks if block["type"] == "toolCall"]
        return AIMessage(
            text(blocks),
            tool_calls=[{"id": call["id"], "name": call["name"], "args": call["arguments"]} for call in calls],
        )
    (result,) = blocks
    return ToolMessage(text(result["content"]), tool_call_id=result["callId"])


def main(file, rounds):
    with open(file, encoding="utf-8") as lines:
        messages = [message(line["role"], line["blocks"]) for line in map(json.loads, lines)]
    middleware = SummarizationMiddleware(FakeListChatModel(responses=["ok"]), trigger=("tokens", 100_000))
    times = []
    for _ in range(int(rounds)):
        start = time.process_time()
        update = middleware.before_model({"messages": messages}, runtime=None)
        times.append((time.process_time() - start) * 1e3)
    print(json.dumps({"version": version("langchain"), "cpuMs": times, "result": len(update["messages"])}))


if __name__ == "__main__":
    main(*sys.argv[1:])
