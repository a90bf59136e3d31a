"""LlamaIndex: an agent that keeps its requests inside the window, with a memory that keeps everything.

Run it with ``OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini python llama_index_agent.py``.
"""

import asyncio
import os

from ctxkeep import ContextKeeper
from ctxkeep.llama_index import ContextAgent
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory
from llama_index.llms.openai_like import OpenAILike
from turns import BIG, MODEL, WITH_CTX, hold


def read_file() -> str:
    """Reads the big file."""
    return BIG


LLM = OpenAILike(
    model=MODEL,
    api_base=os.environ.get("OPENAI_BASE_URL"),
    api_key=os.environ["OPENAI_API_KEY"],
    is_chat_model=True,
    is_function_calling_model=True,
    max_retries=0,
)
KEPT = {"keeper": ContextKeeper(window=16_000)} if WITH_CTX else {}
AGENT = (ContextAgent if WITH_CTX else FunctionAgent)(tools=[read_file], llm=LLM, **KEPT)
MEMORY = Memory.from_defaults(session_id="1", token_limit=1_000_000)


async def answer(words):
    return await AGENT.run(words, memory=MEMORY)


LOOP = asyncio.new_event_loop()
hold(lambda words: LOOP.run_until_complete(answer(words)))
