"""Google ADK: a plugin for an app or a runner.

    App(name="app", root_agent=agent, plugins=[ContextPlugin("gemini-2.5-flash")])
"""

import json

from google.adk.plugins.base_plugin import BasePlugin
from google.genai.types import Content

from .keeper import ContextKeeper


class ContextPlugin(BasePlugin):
    """Sends the contents that fit. The events of the session are not changed."""

    def __init__(self, model=None, *, keeper=None, session=None, name="ctxkeep", **options):
        """``session`` is a function of the ``CallbackContext`` that returns the id of the conversation;
        by default each agent has one of its own in each session of ADK, as each has its own contents."""
        super().__init__(name)
        self.keeper = keeper or ContextKeeper(model, format="gemini", **options)
        self._session = session or _session_of

    async def before_model_callback(self, *, callback_context, llm_request):
        contents, config = llm_request.contents, llm_request.config
        fitted = await self.keeper.afit_or_keep(
            [_json(content) for content in contents],
            session=self._session(callback_context),
            system=_text(config.system_instruction),
            tools=config.tools,
        )
        if fitted is None:
            return
        llm_request.contents = [contents[at] if new is None else _content(new) for at, new in fitted.own]
        if fitted.system_addition:
            llm_request.append_instructions([fitted.system_addition])


def _session_of(context):
    session = context.session
    return json.dumps([session.app_name, session.user_id, session.id, context.agent_name])


def _text(instruction):
    if hasattr(instruction, "parts"):
        return "\n".join(part.text for part in instruction.parts or () if part.text)
    return instruction if isinstance(instruction, str) else None


def _json(content):
    return content.model_dump(mode="json", by_alias=True, exclude_none=True, fallback=str)


def _content(new):
    # Only from JSON, bytes are read as base64.
    return Content.model_validate_json(json.dumps(new))
