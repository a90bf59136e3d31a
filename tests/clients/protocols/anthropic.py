"""Anthropic messages."""

import json

from prompt import Prompt, Turn, text_of

NAME = "messages"


def read(body):
    prompt = Prompt(text_of(body.get("system")))
    prompt.starts_with_user = True
    prompt.tools = [t.get("name") for t in body.get("tools") or []]
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "system":
            prompt.system += text_of(blocks)
            continue
        turn = Turn(message["role"])
        for block in blocks:
            kind = block["type"]
            if kind == "tool_use":
                turn.calls.append(block["id"])
                turn.text += json.dumps(block["input"])
            elif kind == "tool_result":
                turn.results.append(block["tool_use_id"])
                turn.text += text_of(block.get("content"))
            elif kind in ("text", "thinking"):
                turn.text += text_of(block)
        prompt.turns.append(turn)
    return prompt


def streams(body, _path):
    return bool(body.get("stream"))


def usage(reply):
    fresh = reply.input - reply.cached
    cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": reply.cached}
    return {"input_tokens": fresh, "output_tokens": reply.output, **cached}


def blocks(reply):
    made = [{"type": "text", "text": reply.text}] if reply.text else []
    for k, (name, arguments) in enumerate(reply.calls):
        made.append({"type": "tool_use", "id": f"toolu_{reply.n}_{k}", "name": name, "input": arguments})
    return made


def whole(reply, body):
    return {
        "id": f"msg_{reply.n}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks(reply),
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": usage(reply),
    }


def events(reply, body, halves):
    def event(kind, **fields):
        return kind, json.dumps({"type": kind, **fields})

    all_of_it = whole(reply, body)
    begun = {**all_of_it, "content": [], "stop_reason": None}
    yield event("message_start", message={**begun, "usage": {**usage(reply), "output_tokens": 1}})
    for at, block in enumerate(blocks(reply)):
        said = block["type"] == "text"
        empty = {**block, **({"text": ""} if said else {"input": {}})}
        yield event("content_block_start", index=at, content_block=empty)
        for piece in halves(block["text"] if said else json.dumps(block["input"])):
            kind, field = ("text_delta", "text") if said else ("input_json_delta", "partial_json")
            yield event("content_block_delta", index=at, delta={"type": kind, field: piece})
        yield event("content_block_stop", index=at)
    ended = {"stop_reason": all_of_it["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": reply.output})
    yield event("message_stop")


def too_long(tokens, limit):
    return 400, error(f"prompt is too long: {tokens} tokens > {limit} maximum", "invalid_request_error")


def error(words, kind, _code=None):
    return {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_fake"}
