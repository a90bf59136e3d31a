"""The tool runner of Anthropic's SDK, which continues message threads by default."""

import anthropic
from turns import BASE, BIG, MODEL, hold

CLIENT = anthropic.Anthropic(base_url=BASE, api_key="dummy", max_retries=0)
HISTORY = []


@anthropic.beta_tool
def read_file() -> str:
    """Reads the big file."""
    return BIG


def turn(words):
    messages = [*HISTORY, {"role": "user", "content": words}]
    given = {"model": MODEL, "max_tokens": 64, "tools": [read_file], "messages": messages}
    runner = CLIENT.beta.messages.tool_runner(**given)
    for message in runner:
        messages.append({"role": "assistant", "content": message.content})
        if results := runner.generate_tool_call_response():
            messages.append(results)
    HISTORY[:] = messages
    return message.content[-1].text


hold(turn)
