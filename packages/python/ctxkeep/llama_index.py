"""LlamaIndex: a function calling agent.

    ContextAgent(tools=tools, llm=llm, keeper=ContextKeeper(window=32_000))
"""

import contextvars
import functools
import json
import uuid

from llama_index.core.agent.utils import generate_structured_response
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import ChatMessage

from .keeper import ContextKeeper
from .messages import restored

SESSION = "ctxkeep_session"
ROLES = {"chatbot": "assistant", "model": "assistant"}
# The conversation whose answer the task makes.
_answered = contextvars.ContextVar("answered", default=None)


class ContextAgent(FunctionAgent):
    """Sends the messages that fit. Those in the memory are not changed.

    A memory that drops messages itself needs a high ``token_limit``. The id of the conversation is the
    ``session_id`` of the memory; without one it is kept in the ``Context`` of the run.
    """

    keeper: ContextKeeper = Field(exclude=True)

    def __init__(self, *given, output_cls=None, **named):
        super().__init__(*given, **named)
        if output_cls is not None:
            # LlamaIndex would ask for the object with all messages of the memory.
            self.structured_output_fn = functools.partial(self._object, output_cls)

    async def take_step(self, ctx, llm_input, tools, memory):
        steps = await ctx.store.get(self.scratchpad_key, default=[])
        messages = [*llm_input, *steps]
        given = [_openai(message) for message in messages]
        fitted = await self.keeper.afit_or_keep(
            given,
            session=await self._session(ctx, memory),
            tools=[tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools],
        )
        if fitted is None:
            return await super().take_step(ctx, llm_input, tools, memory)
        sent = _with_addition(restored(messages, given, fitted, _changed), fitted.system_addition)
        # What the agent adds in this step follows the steps that it has made.
        await ctx.store.set(self.scratchpad_key, [])
        added = []
        try:
            output = await super().take_step(ctx, sent, tools, memory)
            added = await ctx.store.get(self.scratchpad_key, default=[])
        finally:
            await ctx.store.set(self.scratchpad_key, [*steps, *added])
        return output

    async def finalize(self, ctx, output, memory):
        _answered.set(await self._session(ctx, memory))
        return await super().finalize(ctx, output, memory)

    async def _object(self, output_cls, messages):
        system = [ChatMessage(role="system", content=self.system_prompt)] if self.system_prompt else []
        messages = [*system, *messages]
        given = [_openai(message) for message in messages]
        fitted = await self.keeper.afit_or_keep(given, session=_answered.get() or "default")
        if fitted is not None:
            messages = _with_addition(restored(messages, given, fitted, _changed), fitted.system_addition)
        return await generate_structured_response(messages, self.llm, output_cls)

    async def _session(self, ctx, memory):
        own = getattr(memory, "session_id", None) or await ctx.store.get(SESSION, default=None)
        if own is None:
            own = str(uuid.uuid4())
            await ctx.store.set(SESSION, own)
        return f"{own}/{self.name}"


def _openai(message):
    calls = [_json(block) for block in message.blocks if isinstance(block, ToolCallBlock)]
    calls = calls or [_dict(call) for call in message.additional_kwargs.get("tool_calls") or ()]
    parts = [_json(block) for block in message.blocks if not isinstance(block, ToolCallBlock)]
    is_text = all(part["type"] == "text" for part in parts)
    more = {"tool_call_id": message.additional_kwargs.get("tool_call_id"), "tool_calls": calls}
    role = ROLES.get(message.role.value, message.role.value)
    content = (message.content or "") if is_text else parts
    return {"role": role, "content": content, **{key: value for key, value in more.items() if value}}


def _json(block):
    """Returns a block as a part or a call of OpenAI."""
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolCallBlock):
        arguments = block.tool_kwargs if isinstance(block.tool_kwargs, str) else json.dumps(block.tool_kwargs)
        function = {"name": block.tool_name, "arguments": arguments}
        return {"type": "function", "id": block.tool_call_id or "", "function": function}
    if isinstance(block, ImageBlock):
        url = str(block.url or block.path)
        if isinstance(block.image, bytes):
            url = f"data:{block.image_mimetype};base64,{block.image.decode()}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": block.block_type, **block.model_dump(mode="json", exclude_none=True, fallback=str)}


def _dict(call):
    return call if isinstance(call, dict) else call.model_dump()


def _changed(message, new):
    """Returns the message with new content and calls, and with all else that it has."""
    content, calls = new.get("content") or [], new.get("tool_calls") or []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    known = [(_json(block), block) for block in message.blocks] if message else []
    own = lambda part: next((block for was, block in known if was == part), None)
    blocks = [own(part) or _block(part) for part in [*parts, *calls]]
    if message is None:
        named = {"tool_call_id": new["tool_call_id"]} if "tool_call_id" in new else {}
        return ChatMessage(role=new["role"], blocks=blocks, additional_kwargs=named)
    more, left = dict(message.additional_kwargs), {call["id"] for call in calls}
    kept = [call for call in more.pop("tool_calls", None) or () if _dict(call)["id"] in left]
    more.update({"tool_calls": kept} if kept else {})
    return message.model_copy(update={"blocks": blocks, "additional_kwargs": more})


def _block(part):
    if part["type"] == "function":
        function = part["function"]
        named = {"tool_name": function["name"], "tool_kwargs": function["arguments"]}
        return ToolCallBlock(tool_call_id=part["id"], **named)
    return TextBlock(text=part["text"] if part["type"] == "text" else json.dumps(part))


def _with_addition(messages, text):
    if not text:
        return messages
    added = TextBlock(text=text)
    if messages and messages[0].role == "system":
        return [messages[0].model_copy(update={"blocks": [*messages[0].blocks, added]}), *messages[1:]]
    return [ChatMessage(role="system", blocks=[added]), *messages]
