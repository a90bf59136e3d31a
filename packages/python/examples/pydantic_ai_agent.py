"""PydanticAI: an agent with the capability.

Run it with ``OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini python pydantic_ai_agent.py``.
"""

from ctxkeep.pydantic_ai import ContextCapability
from pydantic_ai import Agent
from turns import BIG, MODEL, WITH_CTX, hold

CAPABILITIES = [ContextCapability(window=16_000)] if WITH_CTX else []
AGENT = Agent(f"openai-chat:{MODEL}", capabilities=CAPABILITIES)
HISTORY = []


@AGENT.tool_plain
def read_file() -> str:
    """Reads the big file."""
    return BIG


def turn(words):
    result = AGENT.run_sync(words, message_history=HISTORY)
    HISTORY[:] = result.all_messages()
    return result.output


hold(turn)
