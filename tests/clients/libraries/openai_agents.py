"""OpenAI's Agents SDK, over responses, with its session in a database."""

import openai
from agents import Agent, OpenAIResponsesModel, Runner, SQLiteSession, function_tool
from agents import set_tracing_disabled
from turns import BASE, BIG, MODEL, hold

set_tracing_disabled(True)
CLIENT = openai.AsyncOpenAI(base_url=f"{BASE}/v1", api_key="dummy", max_retries=0)
SESSION = SQLiteSession("turns")


@function_tool
def read_file() -> str:
    """Reads the big file."""
    return BIG


AGENT = Agent(
    name="reader",
    model=OpenAIResponsesModel(model=MODEL, openai_client=CLIENT),
    tools=[read_file],
)

hold(lambda words: Runner.run_sync(AGENT, words, session=SESSION).final_output)
