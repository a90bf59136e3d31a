"""Checks how the official SDKs use a base URL; prints JSON. Run with the Python that has them.

    sdk_checks.py URL

Each check is a name and its result, without numbers that differ between runs. `growth` is the number of
successful turns of a growing conversation, for each protocol.
"""

import json
import re
import sys

import anthropic
import openai

BASE = sys.argv[1]
OPENAI = openai.OpenAI(base_url=f"{BASE}/v1", api_key="dummy", max_retries=0)
ANTHROPIC = anthropic.Anthropic(base_url=BASE, api_key="dummy", max_retries=0)
MODEL = "fake-model"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
RESPONSES_TOOLS = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
MESSAGES_TOOLS = [{"name": "weather", "input_schema": SCHEMA}]
RESULT = "it rains in Paris, and it will rain tomorrow\n" * 230
TURNS = 8


def asked(words):
    return [{"role": "user", "content": words}]


def chat(words, **more):
    return OPENAI.chat.completions.create(model=MODEL, messages=asked(words), **more)


def messages(words, **more):
    return ANTHROPIC.messages.create(model=MODEL, max_tokens=64, messages=asked(words), **more)


def chat_whole():
    answer = chat("hello")
    return answer.choices[0].message.content, answer.usage.prompt_tokens > 0


def chat_stream():
    chunks = list(chat("hello", stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    return text, chunks[-1].usage.prompt_tokens > 0


def chat_tool():
    call = chat("CALL", tools=CHAT_TOOLS).choices[0].message.tool_calls[0]
    return call.function.name, call.function.arguments


def chat_helper():
    with OPENAI.chat.completions.stream(model=MODEL, messages=asked("CALL"), tools=CHAT_TOOLS) as s:
        kinds = sorted({event.type for event in s})
        message = s.get_final_completion().choices[0].message
    return kinds, message.tool_calls[0].function.arguments


def responses_whole():
    answer = OPENAI.responses.create(model=MODEL, input="hello")
    return answer.output_text, answer.usage.input_tokens > 0


def responses_helper():
    with OPENAI.responses.stream(model=MODEL, input="CALL", tools=RESPONSES_TOOLS) as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_response()
    return kinds, answer.output[-1].arguments


def messages_whole():
    answer = messages("hello", system="Be brief.")
    return answer.content[0].text, answer.stop_reason, answer.usage.input_tokens > 0


def messages_stream():
    return [event.type for event in messages("hello", stream=True)]


def messages_helper():
    given = {"model": MODEL, "max_tokens": 64, "tools": MESSAGES_TOOLS}
    with ANTHROPIC.messages.stream(messages=asked("CALL"), **given) as stream:
        kinds = sorted({event.type for event in stream})
        answer = stream.get_final_message()
    return kinds, answer.content[-1].input, answer.stop_reason


def count_tokens():
    return ANTHROPIC.messages.count_tokens(model=MODEL, messages=asked("x" * 400)).input_tokens


def models():
    return [model.id for model in OPENAI.models.list()]


def failing(ask, *statuses):
    """Returns the SDK's exception for each status, which depends on status and body."""

    def check():
        said = []
        for status in statuses:
            try:
                ask(f"FAIL {status}")
                said.append("no error")
            except (openai.APIStatusError, anthropic.APIStatusError) as error:
                said.append([type(error).__name__, error.status_code, error.body])
        return said

    return check


def cut():
    try:
        return "no error", len(list(chat("CUT, a stream that breaks off", stream=True)))
    except Exception as error:  # SDK and HTTP library each have their own
        return type(error).__name__


def grown(turn):
    """Returns the number of successful turns in a history that grows until it no longer fits."""
    history = []
    for n in range(TURNS):
        history += asked(f"CALL {n}")
        try:
            turn(history)
            turn(history)
        except (openai.BadRequestError, anthropic.BadRequestError) as error:
            return n, type(error).__name__
    return TURNS, "well"


def chat_turn(history):
    said = OPENAI.chat.completions.create(model=MODEL, messages=history, tools=CHAT_TOOLS)
    said = said.choices[0].message
    history.append(said.model_dump(exclude_none=True))
    for call in said.tool_calls or []:
        assert call.function.name == "weather", call
        history.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})


def responses_turn(history):
    given = {"model": MODEL, "input": history, "tools": RESPONSES_TOOLS, "store": False}
    with OPENAI.responses.stream(**given) as stream:
        answer = stream.get_final_response()
    for item in answer.output:
        history.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
        if item.type == "function_call":
            assert item.name == "weather", item
            output = {"type": "function_call_output", "call_id": item.call_id, "output": RESULT}
            history.append(output)


def messages_turn(history):
    given = {"model": MODEL, "max_tokens": 64, "tools": MESSAGES_TOOLS, "messages": history}
    with ANTHROPIC.messages.stream(**given) as stream:
        answer = stream.get_final_message()
    history.append({"role": "assistant", "content": [b.model_dump() for b in answer.content]})
    uses = [block for block in answer.content if block.type == "tool_use"]
    assert all(use.name == "weather" for use in uses), uses
    results = [{"type": "tool_result", "tool_use_id": u.id, "content": RESULT} for u in uses]
    if results:
        history.append({"role": "user", "content": results})


CHECKS = {
    "chat": chat_whole,
    "chat, streamed": chat_stream,
    "chat, a tool": chat_tool,
    "chat, the helper's stream": chat_helper,
    "chat, errors": failing(chat, 401, 429, 500),
    "chat, a cut stream": cut,
    "responses": responses_whole,
    "responses, the helper's stream": responses_helper,
    "messages": messages_whole,
    "messages, streamed": messages_stream,
    "messages, the helper's stream": messages_helper,
    "messages, errors": failing(messages, 401, 429, 529),
    "count_tokens": count_tokens,
    "models": models,
}
GROWTH = {"chat": chat_turn, "responses": responses_turn, "messages": messages_turn}


def said(check):
    """Returns the text without the numbers that a provider increments."""
    try:
        return re.sub(r"(_|\b)\d+\b", "#", json.dumps(check()))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


results = {name: said(check) for name, check in CHECKS.items()}
print(json.dumps({"checks": results, "growth": {n: grown(turn) for n, turn in GROWTH.items()}}))
