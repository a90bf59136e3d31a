"""LangChain: an agent on LangGraph, over chat completions."""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from turns import BASE, BIG, MODEL, hold

HISTORY = []


@tool
def read_file() -> str:
    """Reads the big file."""
    return BIG


AGENT = create_agent(
    ChatOpenAI(model=MODEL, base_url=f"{BASE}/v1", api_key="dummy", max_retries=0), [read_file]
)


def turn(words):
    messages = [*HISTORY, {"role": "user", "content": words}]
    HISTORY[:] = AGENT.invoke({"messages": messages})["messages"]
    return HISTORY[-1].text


hold(turn)
