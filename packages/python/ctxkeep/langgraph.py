"""LangGraph: a hook for the model node of a graph.

    create_react_agent(model, tools, pre_model_hook=pre_model_hook(ContextKeeper(window=32_000)))
"""

import json

from langchain_core.messages import (
    AIMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from .messages import restored

# The types of content blocks that repeat a call.
CALLS = ("tool_use", "function_call", "tool_call")


def pre_model_hook(keeper, session=None, *, system=None, tools=None):
    """Returns a ``pre_model_hook`` for ``create_react_agent`` of LangGraph, or a node for other graphs.

    It sets ``llm_input_messages``. ``session`` is a function of the state and the ``RunnableConfig`` that
    returns the id of the conversation. ``system`` and ``tools`` are those of the model: they are counted.
    With ``stream_mode="messages"``, LangGraph also streams new messages of this node, such as a summary; the
    middleware for ``create_agent`` does not have a node.
    """

    def given(state, config):
        messages = state["messages"] if isinstance(state, dict) else state.messages
        thread = config.get("configurable", {}).get("thread_id")
        name = session(state, config) if session else conversation(thread, messages)
        return messages, params_of(messages, name, system, tools)

    def answer(messages, params, fitted):
        if fitted is None:
            return {"llm_input_messages": messages}
        sent = restored(messages, params["messages"], fitted, changed)
        if fitted.system_addition:
            first = sent.pop(0) if sent and isinstance(sent[0], SystemMessage) else None
            sent.insert(0, extended(first, fitted.system_addition))
        return {"llm_input_messages": sent}

    def hook(state, config: RunnableConfig):
        messages, params = given(state, config)
        return answer(messages, params, keeper.fit_or_keep(**params))

    async def ahook(state, config: RunnableConfig):
        messages, params = given(state, config)
        return answer(messages, params, await keeper.afit_or_keep(**params))

    return RunnableLambda(hook, ahook, name="pre_model_hook")


def conversation(thread, messages):
    """An agent called by a tool of another one has the same thread, but other messages."""
    return f"{thread or ''}/{messages[0].id or ''}" if messages else str(thread)


def params_of(messages, session, system, tools):
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    made = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in tools or ()]
    openai = [_openai(message, answered) for message in messages]
    return {"messages": openai, "session": session, "system": system, "tools": made}


def _openai(message, answered):
    try:
        made = convert_to_openai_messages(message, include_id=True)
    except (ValueError, TypeError, KeyError):  # content that OpenAI does not have
        made = convert_to_openai_messages(message.model_copy(update={"content": message.text}), include_id=True)
    # The result of an invalid call must not lose its call.
    for call in message.invalid_tool_calls if isinstance(message, AIMessage) else ():
        if call["id"] in answered:
            function = {"name": call["name"] or "", "arguments": call["args"] or ""}
            made.setdefault("tool_calls", []).append({"type": "function", "id": call["id"], "function": function})
    return made


def changed(message, new):
    """Returns the message with new content and calls, and with all else that it has."""
    if message is None:
        return convert_to_messages([new])[0]
    content = new.get("content") or ""
    if not isinstance(message, AIMessage):
        return message.model_copy(update={"content": content})
    left = {call["id"]: call["function"]["arguments"] for call in new.get("tool_calls") or ()}
    if not isinstance(content, str):
        is_left = lambda block: block.get("type") not in CALLS or block.get("call_id", block.get("id")) in left
        content = [block for block in content if is_left(block)]
    calls = [{**call, "args": json.loads(left[call["id"]])} for call in message.tool_calls if call["id"] in left]
    invalid = [call for call in message.invalid_tool_calls if call["id"] in left]
    more = {key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"}
    update = {"content": content, "tool_calls": calls, "invalid_tool_calls": invalid, "additional_kwargs": more}
    return message.model_copy(update=update)


def extended(system, text):
    if system is None:
        return SystemMessage(text)
    content = system.content
    both = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return system.model_copy(update={"content": both})
