"""Hermes agent: an agent with the context engine.

Run it with ``OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini python hermes_agent.py``.
"""

import os

from run_agent import AIAgent
from tools.registry import registry
from turns import BIG, MODEL, WITH_CTX, hold

PARAMETERS = {"type": "object", "properties": {}}
SCHEMA = {"name": "read_file", "description": "Reads the big file.", "parameters": PARAMETERS}
registry.register("read_file", "reading", SCHEMA, lambda arguments, **_: BIG, override=True)
AGENT = AIAgent(
    base_url=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    api_key=os.environ["OPENAI_API_KEY"],
    model=MODEL,
    enabled_toolsets=["reading"],
    quiet_mode=True,
    skip_context_files=True,
    skip_memory=True,
)
AGENT.compression_enabled = WITH_CTX
if WITH_CTX:
    from ctxkeep.hermes import CtxEngine

    AGENT.context_compressor = CtxEngine()
    AGENT.context_compressor.update_model(MODEL, 16_000)
    AGENT.context_compressor.on_session_start(AGENT.session_id)
HISTORY = []


def turn(words):
    result = AGENT.run_conversation(words, conversation_history=list(HISTORY))
    HISTORY[:] = result["messages"]
    return result["final_response"]


hold(turn)
