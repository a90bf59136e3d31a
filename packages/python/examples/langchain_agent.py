"""LangChain: an agent with the middleware.

Run it with ``OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini python langchain_agent.py``.
"""

from ctxkeep.langchain import ContextMiddleware
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from turns import BIG, MODEL, WITH_CTX, hold

HISTORY = []


@tool
def read_file() -> str:
    """Reads the big file."""
    return BIG


MIDDLEWARE = [ContextMiddleware(window=16_000)] if WITH_CTX else []
AGENT = create_agent(ChatOpenAI(model=MODEL, max_retries=0), [read_file], middleware=MIDDLEWARE)


def turn(words):
    messages = [*HISTORY, {"role": "user", "content": words}]
    HISTORY[:] = AGENT.invoke({"messages": messages})["messages"]
    return HISTORY[-1].text


hold(turn)
