"""LangGraph: a graph with a checkpointer, whose model node is preceded by the hook.

Run it with ``OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini python langgraph_agent.py``.
"""

from ctxkeep import ContextKeeper
from ctxkeep.langgraph import pre_model_hook
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.prebuilt import create_react_agent
from turns import BIG, MODEL, WITH_CTX, hold


@tool
def read_file() -> str:
    """Reads the big file."""
    return BIG


AGENT = create_react_agent(
    ChatOpenAI(model=MODEL, max_retries=0),
    [read_file],
    pre_model_hook=pre_model_hook(ContextKeeper(window=16_000), tools=[read_file]) if WITH_CTX else None,
    checkpointer=MemorySaver(),
)
THREAD = {"configurable": {"thread_id": "1"}}


def turn(words):
    state = AGENT.invoke({"messages": [{"role": "user", "content": words}]}, THREAD)
    return state["messages"][-1].text


hold(turn)
