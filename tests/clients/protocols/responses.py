"""OpenAI responses."""

import json

from prompt import Prompt, Turn, text_of

from . import chat

NAME = "responses"
error = chat.error
streams = chat.streams


def read(body):
    prompt = Prompt(text_of(body.get("instructions")))
    prompt.is_in_items = True
    prompt.tools = [t.get("name") or t.get("type") for t in body.get("tools") or []]
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] in ("system", "developer"):
            prompt.system += text_of(item["content"])
        elif kind == "message":
            prompt.turns.append(Turn(item["role"], text_of(item["content"])))
        elif kind in ("function_call", "custom_tool_call"):
            text = str(item.get("arguments", item.get("input")))
            prompt.turns.append(Turn("assistant", text, calls=[item["call_id"]]))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            prompt.turns.append(Turn("tool", text_of(item["output"]), results=[item["call_id"]]))
    return prompt


def usage(reply):
    return {
        "input_tokens": reply.input,
        "input_tokens_details": {"cached_tokens": reply.cached},
        "output_tokens": reply.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input + reply.output,
    }


def items(reply):
    made = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        made.append({
            "type": "message",
            "id": f"msg_{reply.n}",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        })
    for k, (name, arguments) in enumerate(reply.calls):
        made.append({
            "type": "function_call",
            "id": f"fc_{reply.n}_{k}",
            "call_id": f"call_{reply.n}_{k}",
            "status": "completed",
            "name": name,
            "arguments": json.dumps(arguments),
        })
    return made


def whole(reply, body, status="completed"):
    done = status == "completed"
    return {
        "id": f"resp_{reply.n}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": body["model"],
        "output": items(reply) if done else [],
        "usage": usage(reply) if done else None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }


def events(reply, body, halves):
    number = 0

    def event(kind, **fields):
        nonlocal number
        number += 1
        return kind, json.dumps({"type": kind, "sequence_number": number - 1, **fields})

    yield event("response.created", response=whole(reply, body, "in_progress"))
    for at, item in enumerate(items(reply)):
        place = {"output_index": at, "item_id": item["id"]}
        said = item["type"] == "message"
        begun = {**item, "status": "in_progress", **({"content": []} if said else {"arguments": ""})}
        yield event("response.output_item.added", output_index=at, item=begun)
        if said:
            part, place["content_index"] = item["content"][0], 0
            yield event("response.content_part.added", **place, part={**part, "text": ""})
            for piece in halves(part["text"]):
                yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
            yield event("response.output_text.done", **place, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **place, part=part)
        else:
            for piece in halves(item["arguments"]):
                yield event("response.function_call_arguments.delta", **place, delta=piece)
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield event("response.function_call_arguments.done", **place, **done)
        yield event("response.output_item.done", output_index=at, item=item)
    yield event("response.completed", response=whole(reply, body))


def too_long(_tokens, _limit):
    words = (
        "Your input exceeds the context window of this model. Please adjust your input and try again."
    )
    return 400, error(words, "invalid_request_error", "context_length_exceeded")
