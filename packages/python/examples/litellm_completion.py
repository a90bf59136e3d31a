"""LiteLLM: the loop of an agent, with the callback's completion.

Run it with ``OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini python litellm_completion.py``.
"""

import litellm
from ctxkeep.litellm import ContextCallback
from turns import BIG, MODEL, WITH_CTX, hold

PARAMETERS = {"type": "object", "properties": {}}
FUNCTION = {"name": "read_file", "description": "Reads the big file.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": FUNCTION}]
HISTORY = []

completion = ContextCallback(window=16_000).completion if WITH_CTX else litellm.completion


def turn(words):
    HISTORY.append({"role": "user", "content": words})
    while True:
        answer = completion(model=f"openai/{MODEL}", messages=HISTORY, tools=TOOLS, max_retries=0)
        message = answer.choices[0].message
        HISTORY.append(message)
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            HISTORY.append({"role": "tool", "tool_call_id": call.id, "content": BIG})


hold(turn)
