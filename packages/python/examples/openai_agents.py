"""OpenAI Agents SDK: an agent with a session, and the filter.

Run it with ``OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini python openai_agents.py``.
"""

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from ctxkeep.openai_agents import ContextFilter
from turns import BIG, MODEL, WITH_CTX, hold

set_tracing_disabled(True)


@function_tool
def read_file() -> str:
    """Reads the big file."""
    return BIG


AGENT = Agent(name="Reader", model=MODEL, tools=[read_file])
SESSION = SQLiteSession("1")
FILTER = ContextFilter(window=16_000, session=SESSION) if WITH_CTX else None
CONFIG = RunConfig(call_model_input_filter=FILTER)


def turn(words):
    return Runner.run_sync(AGENT, words, session=SESSION, run_config=CONFIG).final_output


hold(turn)
