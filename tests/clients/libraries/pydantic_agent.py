"""PydanticAI, over chat completions."""

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from turns import BASE, BIG, MODEL, hold

CLIENT = AsyncOpenAI(base_url=f"{BASE}/v1", api_key="dummy", max_retries=0)
AGENT = Agent(OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=CLIENT)))
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
