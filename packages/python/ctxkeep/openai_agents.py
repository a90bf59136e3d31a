"""OpenAI Agents SDK: a filter for the input of each model call.

    config = RunConfig(call_model_input_filter=ContextFilter(window=32_000))
    await Runner.run(agent, "Hello", session=session, run_config=config)
"""

from dataclasses import replace

from .keeper import ContextKeeper
from .messages import opening


class ContextFilter:
    """Sends the items that fit. The items in the session of the SDK are not changed."""

    def __init__(self, model=None, *, keeper=None, session=None, **options):
        """``session`` is a session of the SDK, the id of the conversation, or a function of ``CallModelData``
        that returns it; by default it is found by the first message of the user. A ``keeper`` for several
        filters has the format ``responses``."""
        self.keeper = keeper or ContextKeeper(model, format="responses", **options)
        self._session = session if callable(session) else lambda data: getattr(session, "session_id", session)

    async def __call__(self, data):
        given = data.model_data
        fitted = await self.keeper.afit_or_keep(
            messages=given.input,
            session=self._session(data) or opening(given.input),
            system=given.instructions,
            tools=_tools(data.agent),
        )
        if fitted is None:
            return given
        parts = (given.instructions, fitted.system_addition)
        instructions = "\n\n".join(part for part in parts if part) or None
        return replace(given, input=fitted.messages, instructions=instructions)


def _tools(agent):
    """Returns the definitions of the agent's functions and handoffs."""
    described = [(tool.name, tool.description, tool.params_json_schema) for tool in agent.tools
                 if hasattr(tool, "params_json_schema")]  # fmt: skip
    for handoff in agent.handoffs:
        if hasattr(handoff, "tool_name"):
            described.append((handoff.tool_name, handoff.tool_description, handoff.input_json_schema))
    return [{"type": "function", "name": name, "description": text, "parameters": schema}
            for name, text, schema in described]  # fmt: skip
