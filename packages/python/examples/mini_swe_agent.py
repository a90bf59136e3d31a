"""mini-swe-agent: its agent, step by step, with a tool for the big file in place of bash.

Run it with ``OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini python mini_swe_agent.py``.
"""

import litellm
from ctxkeep.mini_swe_agent import ContextModel
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel
from turns import MODEL, WITH_CTX, hold

PARAMETERS = {"type": "object", "properties": {}}
FUNCTION = {"name": "read_file", "description": "Reads the big file.", "parameters": PARAMETERS}
COMMAND = "for n in $(seq 240); do echo line $n of the big file lorem ipsum dolor sit amet; done"


class Reader(LitellmModel):
    def _query(self, messages, **kwargs):
        tools = [{"type": "function", "function": FUNCTION}]
        return litellm.completion(self.config.model_name, messages, tools=tools, max_retries=0)

    def _parse_actions(self, response):
        calls = response.choices[0].message.tool_calls or []
        return [{"command": COMMAND, "tool_call_id": call.id} for call in calls]


model = Reader(model_name=f"openai/{MODEL}", cost_tracking="ignore_errors")
model = ContextModel(model, window=16_000) if WITH_CTX else model
agent = DefaultAgent(model, LocalEnvironment(), system_template="", instance_template="")


def turn(words):
    agent.add_messages(model.format_message(role="user", content=words))
    while agent.step():
        pass
    return agent.messages[-1]["content"]


hold(turn)
