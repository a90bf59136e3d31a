"""OpenAI's Agents SDK, over responses, with a session that is compacted by the provider."""

import openai
from agents import Agent, OpenAIResponsesCompactionSession, OpenAIResponsesModel
from agents import Runner, SQLiteSession, function_tool, set_tracing_disabled
from turns import BASE, BIG, hold

MODEL = "gpt-5"  # it refuses others
set_tracing_disabled(True)
CLIENT = openai.AsyncOpenAI(base_url=f"{BASE}/v1", api_key="dummy", max_retries=0)
SESSION = OpenAIResponsesCompactionSession("turns", SQLiteSession("turns"), client=CLIENT, model=MODEL)


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
