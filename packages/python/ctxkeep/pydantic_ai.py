"""PydanticAI: a capability of an agent.

    Agent(model, capabilities=[ContextCapability(window=32_000)])
"""

from dataclasses import replace
from itertools import groupby

from pydantic_ai import messages as types
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)

from .keeper import ContextKeeper
from .messages import restored

# What may be dropped: answers, and parts of requests. Other parts, such as system prompts, are always sent.
TALK = (ModelResponse, UserPromptPart, types.BaseToolReturnPart, types.CompactionPart)
TALK += (types.RetryFeedbackPart, types.RetryPromptPart)


class ContextCapability(AbstractCapability):
    """Sends the messages that fit. The message history is not changed."""

    def __init__(self, model=None, *, keeper=None, session=None, **options):
        """``session`` is a function of the ``RunContext`` that returns the id of the conversation; by
        default it is its ``conversation_id``."""
        self.keeper = keeper or ContextKeeper(model, **options)
        self._session = session or (lambda run: run.conversation_id or "default")

    async def prepare_model_request(self, ctx, request_context):
        messages, params = request_context.messages, request_context.model_request_parameters
        if messages and isinstance(messages[-1], ModelResponse):  # the provider continues its answer
            return request_context
        entries = list(_entries(messages))
        talk = [entry for entry in entries if isinstance(entry[1], TALK)]
        held = [entry for entry in entries if not isinstance(entry[1], TALK)]
        given = [_openai(place, piece) for place, piece in talk]
        instructions = params.instruction_parts or []
        standing = [*instructions, *(piece for _, piece in held)]
        tools = [*params.function_tools, *params.output_tools]
        tools = [[tool.name, tool.description, tool.parameters_json_schema] for tool in tools]
        system = "\n\n".join(str(getattr(part, "content", "")) for part in standing)
        fitted = await self.keeper.afit_or_keep(given, session=self._session(ctx), system=system, tools=tools)
        if fitted is None:
            return request_context
        if fitted.system_addition:
            added = types.InstructionPart(content=fitted.system_addition, dynamic=True)
            params = replace(params, instruction_parts=[*instructions, added])
        sent = _joined(messages, restored(talk, given, fitted, _changed), held)
        return replace(request_context, messages=list(sent), model_request_parameters=params)


def _entries(messages):
    """Yields the answers and the parts of the requests, each with its place."""
    for at, message in enumerate(messages):
        pieces = [message] if isinstance(message, ModelResponse) else message.parts or [None]
        yield from (((at, n), piece) for n, piece in enumerate(pieces))


def _joined(messages, sent, held):
    """Yields the messages: PydanticAI's own where all their parts are unchanged."""
    entries, after = [], (len(messages), 0)
    for place, piece in reversed(sent):
        after = place or after
        entries.append((after, piece))
    key = lambda entry: (entry[0][0], isinstance(entry[1], (ModelRequest, ModelResponse)))
    for (at, is_whole), group in groupby(sorted([*held, *reversed(entries)], key=lambda entry: entry[0]), key):
        pieces = [piece for _, piece in group if piece is not None]
        is_same = not is_whole and [*map(id, messages[at].parts)] == [*map(id, pieces)]
        yield from pieces if is_whole else [messages[at] if is_same else replace(messages[at], parts=pieces)]


def _openai(place, piece):
    """Returns a message for chat completions."""
    made = {"id": f"{place[0]}.{place[1]}", "role": "user", "content": [_json(item) for item in _items(piece)]}
    if getattr(piece, "tool_name", None):
        return made | {"role": "tool", "tool_call_id": piece.tool_call_id}
    if not isinstance(piece, ModelResponse):
        return made
    calls = [part for part in piece.parts if isinstance(part, ToolCallPart)]
    functions = [{"name": call.tool_name, "arguments": call.args_as_json_str()} for call in calls]
    calls = [{"type": "function", "id": call.tool_call_id, "function": f} for call, f in zip(calls, functions)]
    thinking = "\n".join(part.content for part in piece.parts if isinstance(part, ThinkingPart))
    more = {"tool_calls": calls, "reasoning_content": thinking}
    return made | {"role": "assistant"} | {key: value for key, value in more.items() if value}


def _items(piece):
    if isinstance(piece, ModelResponse):
        return [part for part in piece.parts if not isinstance(part, (ThinkingPart, ToolCallPart))]
    if isinstance(piece, types.BaseToolReturnPart):
        return [piece.model_response_str(wrap_if_error=False), *piece.files]
    return piece.content if isinstance(piece, UserPromptPart) and type(piece.content) is not str else [piece.content]


def _json(item):
    """Returns an item as a part of a content for chat completions."""
    item = getattr(item, "content", None) or item
    if isinstance(item, (types.BinaryContent, types.FileUrl)):
        return {"type": "image_url", "image_url": {"url": getattr(item, "data_uri", None) or item.url}}
    return {"type": "text", "text": item if isinstance(item, str) else repr(item)}


def _changed(entry, new):
    """Returns an entry with new content and calls, and with all else that it has."""
    is_answer = new["role"] == "assistant"
    place, old = entry or (None, ModelResponse([]) if is_answer else UserPromptPart([]))
    known = [(_json(item), item) for item in _items(old)]
    text, content = TextPart if is_answer else str, new.get("content") or []
    parts = [_json(content)] if isinstance(content, str) else content
    own = [next((item for made, item in known if made == part), None) or text(part.get("text", "")) for part in parts]
    if is_answer:
        left = {call["id"]: call["function"]["arguments"] for call in new.get("tool_calls") or ()}
        thinks = lambda part: isinstance(part, ThinkingPart) and ("reasoning_content" in new or not part.content)
        calls = [part for part in old.parts if isinstance(part, ToolCallPart) and part.tool_call_id in left]
        calls = [replace(part, args=left[part.tool_call_id]) for part in calls]
        return place, replace(old, parts=[*filter(thinks, old.parts), *own, *calls])
    own = "\n".join(own) if all(isinstance(item, str) for item in own) else own
    made = replace(old, content=own) if getattr(old, "tool_name", None) else UserPromptPart(own)
    return place, made if entry else ModelRequest([made])
