"""OpenAI chat completions."""

import json

from prompt import Prompt, Turn, text_of

NAME = "chat"


def read(body):
    prompt = Prompt(tools=[t.get("function", t).get("name") for t in body.get("tools") or []])
    for message in body["messages"]:
        role, text = message["role"], text_of(message.get("content"))
        if role in ("system", "developer"):
            prompt.system += text
        elif role == "tool":
            prompt.turns.append(Turn("tool", text, results=[message["tool_call_id"]]))
        else:
            calls = message.get("tool_calls") or []
            for call in calls:
                json.loads(call["function"]["arguments"])
                text += call["function"]["arguments"]
            prompt.turns.append(Turn(role, text, calls=[call["id"] for call in calls]))
    return prompt


def streams(body, _path):
    return bool(body.get("stream"))


def usage(reply):
    return {
        "prompt_tokens": reply.input,
        "completion_tokens": reply.output,
        "total_tokens": reply.input + reply.output,
        "prompt_tokens_details": {"cached_tokens": reply.cached},
    }


def calls(reply):
    return [
        {
            "id": f"call_{reply.n}_{k}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for k, (name, arguments) in enumerate(reply.calls)
    ]


def finish(reply):
    return "tool_calls" if reply.calls else "stop"


def whole(reply, body):
    message = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": finish(reply), "logprobs": None}
    head = {"id": f"chatcmpl-{reply.n}", "object": "chat.completion", "created": 1_700_000_000}
    return {**head, "model": body["model"], "choices": [choice], "usage": usage(reply)}


def events(reply, body, halves):
    head = {"id": f"chatcmpl-{reply.n}", "object": "chat.completion.chunk", "created": 1_700_000_000}
    head["model"] = body["model"]

    def chunk(delta, end=None):
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        return None, json.dumps({**head, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for part in halves(reply.text):
        yield chunk({"content": part})
    for k, call in enumerate(calls(reply)):
        arguments = call["function"]["arguments"]
        begun = {**call, "index": k, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [begun]})
        for part in halves(arguments):
            yield chunk({"tool_calls": [{"index": k, "function": {"arguments": part}}]})
    yield chunk({}, finish(reply))
    if (body.get("stream_options") or {}).get("include_usage"):
        yield None, json.dumps({**head, "choices": [], "usage": usage(reply)})
    yield None, "[DONE]"


def too_long(tokens, limit):
    words = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted "
        f"in {tokens} tokens. Please reduce the length of the messages."
    )
    return 400, error(words, "invalid_request_error", "context_length_exceeded")


def error(words, kind, code=None):
    return {"error": {"message": words, "type": kind, "param": None, "code": code}}
