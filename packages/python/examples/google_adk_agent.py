"""Google ADK: an app with the plugin.

Run it with ``GOOGLE_API_KEY=KEY MODEL=gemini-2.5-flash python google_adk_agent.py``.
"""

import asyncio

from ctxkeep.google_adk import ContextPlugin
from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part
from turns import BIG, MODEL, WITH_CTX, hold


def read_file() -> str:
    """Reads the big file."""
    return BIG


AGENT = Agent(name="reader", model=Gemini(model=MODEL), tools=[read_file])
PLUGINS = [ContextPlugin(window=16_000)] if WITH_CTX else []
RUNNER = InMemoryRunner(app=App(name="reading", root_agent=AGENT, plugins=PLUGINS))
RUNNER.auto_create_session = True


async def answer(words):
    message = Content(role="user", parts=[Part(text=words)])
    said = ""
    async for event in RUNNER.run_async(user_id="me", session_id="1", new_message=message):
        if event.is_final_response() and event.content:
            said = "".join(part.text or "" for part in event.content.parts)
    return said


LOOP = asyncio.new_event_loop()
hold(lambda words: LOOP.run_until_complete(answer(words)))
