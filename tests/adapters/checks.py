"""What an adapter must leave as it is: streams, objects, parallel conversations and cancelled calls.

    python checks.py NAME         # prints a line of JSON for each check, which harness/behaviour.py judges

The provider reads the word that it is told: a file with that word in each line.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time
import urllib.request
from pathlib import Path

from pydantic import BaseModel

MODEL = "fake-model"
WINDOW = 16_000
TURNS = 5  # after the first one: more than the window has
PARALLEL = 8
HELD = threading.Event()  # the file was read whose answer the provider keeps


def read_file(name: str) -> str:
    """Reads the big file."""
    if name == "HOLD":
        HELD.set()
    return "".join(f"line {n} of {name} lorem ipsum dolor sit amet\n" for n in range(240))


class Facts(BaseModel):
    """What the file is."""

    title: str
    lines: int


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FUNCTION = {"name": "read_file", "description": "Reads the big file.", "parameters": SCHEMA}


def user(words):
    return {"role": "user", "content": words}


class LangChain:
    def __init__(self, is_on):
        from langchain.agents import create_agent
        from langchain_core.tools import tool
        from langchain_openai import ChatOpenAI

        middleware = []
        if is_on:
            from ctxkeep.langchain import ContextMiddleware

            middleware = [ContextMiddleware(window=WINDOW)]
        model = ChatOpenAI(model=MODEL, max_retries=0)
        make = lambda **more: create_agent(model, [tool(read_file)], middleware=middleware, **more)
        self.agent, self.typed = make(), make(response_format=Facts)

    def conversation(self, word):
        return []

    async def say(self, talk, words):
        talk[:] = (await self.agent.ainvoke({"messages": [*talk, user(words)]}))["messages"]
        return talk[-1].text

    async def stream(self, talk, words):
        async for chunk, _ in self.agent.astream({"messages": [*talk, user(words)]}, stream_mode="messages"):
            yield chunk.text

    async def object(self, talk, words):
        return (await self.typed.ainvoke({"messages": [*talk, user(words)]}))["structured_response"]


class LangGraph:
    def __init__(self, is_on):
        from langchain_core.tools import tool
        from langchain_openai import ChatOpenAI
        from langgraph.checkpoint.memory import MemorySaver
        from langgraph.graph import StateGraph
        from langgraph.prebuilt import create_react_agent
        from langgraph.prebuilt.chat_agent_executor import AgentState

        tools, model = [tool(read_file)], ChatOpenAI(model=MODEL, max_retries=0)
        hook = None
        if is_on:
            from ctxkeep import ContextKeeper
            from ctxkeep.langgraph import pre_model_hook

            hook = pre_model_hook(ContextKeeper(window=WINDOW), tools=tools)
        memory = MemorySaver()
        self.agent = create_react_agent(model, tools, pre_model_hook=hook, checkpointer=memory)

        # A graph of its own, as `response_format` makes a request after the last one of the agent.
        class State(AgentState):
            llm_input_messages: list
            facts: Facts

        typed = model.with_structured_output(Facts)
        graph = StateGraph(State)
        graph.add_node("hook", hook or (lambda state: {"llm_input_messages": state["messages"]}))
        graph.add_node("model", lambda state: {"facts": typed.invoke(state["llm_input_messages"])})
        graph.set_entry_point("hook")
        graph.add_edge("hook", "model")
        self.typed = graph.compile()

    def conversation(self, word):
        return {"configurable": {"thread_id": word}}

    async def say(self, talk, words):
        return (await self.agent.ainvoke({"messages": [user(words)]}, talk))["messages"][-1].text

    async def stream(self, talk, words):
        async for chunk, about in self.agent.astream(
            {"messages": [user(words)]}, talk, stream_mode="messages"
        ):
            if about["langgraph_node"] == "agent":
                yield chunk.text

    async def object(self, talk, words):
        messages = (await self.agent.aget_state(talk)).values["messages"]
        return (await self.typed.ainvoke({"messages": [*messages, user(words)]}, talk))["facts"]


class LlamaIndex:
    def __init__(self, is_on):
        from llama_index.core.agent.workflow import AgentStream, FunctionAgent
        from llama_index.llms.openai_like import OpenAILike

        llm = OpenAILike(
            model=MODEL,
            api_base=os.environ["OPENAI_BASE_URL"],
            api_key=os.environ["OPENAI_API_KEY"],
            is_chat_model=True,
            is_function_calling_model=True,
            max_retries=0,
        )
        kept = {}
        if is_on:
            from ctxkeep import ContextKeeper
            from ctxkeep.llama_index import ContextAgent as FunctionAgent

            kept = {"keeper": ContextKeeper(window=WINDOW)}
        self.agent = FunctionAgent(tools=[read_file], llm=llm, **kept)
        self.typed = FunctionAgent(tools=[read_file], llm=llm, output_cls=Facts, **kept)
        self.delta = AgentStream

    def conversation(self, word):
        from llama_index.core.memory import Memory

        return Memory.from_defaults(session_id=word, token_limit=1_000_000)

    async def say(self, talk, words):
        return str(await self.agent.run(words, memory=talk))

    async def stream(self, talk, words):
        run = self.agent.run(words, memory=talk)
        async for event in run.stream_events():
            if isinstance(event, self.delta):
                yield event.delta
        await run

    async def object(self, talk, words):
        return (await self.typed.run(words, memory=talk)).get_pydantic_model(Facts)


class GoogleAdk:
    def __init__(self, is_on):
        from google.adk.agents import Agent
        from google.adk.apps import App
        from google.adk.models import Gemini
        from google.adk.runners import InMemoryRunner
        from google.adk.sessions import InMemorySessionService

        plugins = []
        if is_on:
            from ctxkeep.google_adk import ContextPlugin

            plugins = [ContextPlugin(window=WINDOW)]
        sessions = InMemorySessionService()

        def runner(**more):
            agent = Agent(name="reader", model=Gemini(model=MODEL), tools=[read_file], **more)
            made = InMemoryRunner(app=App(name="reading", root_agent=agent, plugins=plugins))
            made.session_service, made.auto_create_session = sessions, True
            return made

        self.agent, self.typed = runner(), runner(output_schema=Facts)

    def conversation(self, word):
        return word

    async def events(self, runner, talk, words, mode="NONE"):
        from google.adk.agents.run_config import RunConfig, StreamingMode
        from google.genai.types import Content, Part

        message, config = (
            Content(role="user", parts=[Part(text=words)]),
            RunConfig(streaming_mode=StreamingMode[mode]),
        )
        async for event in runner.run_async(
            user_id="me", session_id=talk, new_message=message, run_config=config
        ):
            text = "".join(part.text or "" for part in event.content.parts or ()) if event.content else ""
            yield event, text

    async def say(self, talk, words):
        return [
            text async for event, text in self.events(self.agent, talk, words) if event.is_final_response()
        ][-1]

    async def stream(self, talk, words):
        async for event, text in self.events(self.agent, talk, words, "SSE"):
            if event.partial:
                yield text

    async def object(self, talk, words):
        said = [
            text async for event, text in self.events(self.typed, talk, words) if event.is_final_response()
        ]
        return Facts.model_validate_json(said[-1])


class Hermes:
    object = None

    def __init__(self, is_on):
        from tools.registry import registry

        read = lambda arguments, **_: read_file(arguments["name"])
        registry.register("read_file", "reading", FUNCTION, read, override=True)
        self.engine = None
        if is_on:
            from ctxkeep.hermes import CtxEngine

            self.engine = CtxEngine()
            self.engine.update_model(MODEL, WINDOW)

    def conversation(self, word):
        import copy

        from run_agent import AIAgent

        agent = AIAgent(
            base_url=os.environ["OPENAI_BASE_URL"],
            api_key=os.environ["OPENAI_API_KEY"],
            model=MODEL,
            enabled_toolsets=["reading"],
            quiet_mode=True,
            skip_context_files=True,
            skip_memory=True,
        )
        agent.compression_enabled = self.engine is not None
        if self.engine:
            agent.context_compressor = copy.deepcopy(self.engine)
            agent.context_compressor.on_session_start(agent.session_id)
        return {"agent": agent, "history": []}

    def turn(self, talk, words, **more):
        result = talk["agent"].run_conversation(words, conversation_history=list(talk["history"]), **more)
        talk["history"] = result["messages"]
        return result["final_response"]

    async def say(self, talk, words):
        return await asyncio.to_thread(self.turn, talk, words)

    async def stream(self, talk, words):
        chunks = []
        await asyncio.to_thread(self.turn, talk, words, stream_callback=chunks.append)
        for chunk in chunks:
            yield chunk or ""

    async def cancel(self, talk, words):
        threading.Thread(target=lambda: when_held(talk["agent"].interrupt)).start()
        return "interrupted" in (await self.say(talk, words)).lower()


class OpenAIAgents:
    def __init__(self, is_on):
        from agents import Agent, RunConfig, Runner, function_tool, set_tracing_disabled

        set_tracing_disabled(True)
        filtered = None
        if is_on:
            from ctxkeep.openai_agents import ContextFilter

            filtered = ContextFilter(window=WINDOW)
        make = lambda **more: Agent(name="Reader", model=MODEL, tools=[function_tool(read_file)], **more)
        self.agent, self.typed = make(), make(output_type=Facts)
        self.runner, self.config = Runner, RunConfig(call_model_input_filter=filtered)

    def conversation(self, word):
        from agents import SQLiteSession

        return SQLiteSession(word)

    async def say(self, talk, words):
        return (await self.runner.run(self.agent, words, session=talk, run_config=self.config)).final_output

    async def stream(self, talk, words):
        result = self.runner.run_streamed(self.agent, words, session=talk, run_config=self.config)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                yield event.data.delta

    async def object(self, talk, words):
        return (await self.runner.run(self.typed, words, session=talk, run_config=self.config)).final_output


class PydanticAI:
    def __init__(self, is_on):
        from pydantic_ai import Agent

        capabilities = []
        if is_on:
            from ctxkeep.pydantic_ai import ContextCapability

            capabilities = [ContextCapability(window=WINDOW)]
        make = lambda **more: Agent(
            f"openai-chat:{MODEL}", tools=[read_file], capabilities=capabilities, **more
        )
        self.agent, self.typed = make(), make(output_type=Facts)

    def conversation(self, word):
        return []

    async def say(self, talk, words):
        result = await self.agent.run(words, message_history=talk)
        talk[:] = result.all_messages()
        return result.output

    async def stream(self, talk, words):
        async with self.agent.run_stream(words, message_history=talk) as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                yield text

    async def object(self, talk, words):
        return (await self.typed.run(words, message_history=talk)).output


class LiteLLM:
    def __init__(self, is_on):
        import litellm

        litellm.callbacks = []
        if is_on:
            from ctxkeep.litellm import ContextCallback

            litellm.callbacks = [ContextCallback(window=WINDOW)]
        tools = [{"type": "function", "function": FUNCTION}]
        common = {"model": f"openai/{MODEL}", "tools": tools, "max_retries": 0}
        self.ask = lambda messages, **more: litellm.acompletion(messages=messages, **common, **more)

    def conversation(self, word):
        return []

    async def say(self, talk, words):
        talk.append(user(words))
        while True:
            message = (await self.ask(talk)).choices[0].message
            talk.append(message)
            if not message.tool_calls:
                return message.content
            for call in message.tool_calls:
                text = read_file(**json.loads(call.function.arguments))
                talk.append({"role": "tool", "tool_call_id": call.id, "content": text})

    async def stream(self, talk, words):
        async for chunk in await self.ask([*talk, user(words)], stream=True):
            yield chunk.choices[0].delta.content or "" if chunk.choices else ""

    async def object(self, talk, words):
        answer = await self.ask([*talk, user(words)], response_format=Facts)
        return Facts.model_validate_json(answer.choices[0].message.content)


class MiniSweAgent:
    stream = object = None

    def __init__(self, is_on):
        import litellm
        from minisweagent.models.litellm_model import LitellmModel

        class Reader(LitellmModel):
            def _query(self, messages, **kwargs):
                tools = [{"type": "function", "function": FUNCTION}]
                return litellm.completion(self.config.model_name, messages, tools=tools, max_retries=0)

            def _parse_actions(self, response):
                calls = response.choices[0].message.tool_calls or []
                return [{"tool_call_id": call.id, **json.loads(call.function.arguments)} for call in calls]

        self.model = Reader(model_name=f"openai/{MODEL}", cost_tracking="ignore_errors")
        if is_on:
            from ctxkeep.mini_swe_agent import ContextModel

            self.model = ContextModel(self.model, window=WINDOW)

    def conversation(self, word):
        from minisweagent.agents.default import DefaultAgent

        return DefaultAgent(self.model, Files(), system_template="", instance_template="")

    def turn(self, talk, words):
        talk.add_messages(talk.model.format_message(role="user", content=words))
        while talk.step():
            pass
        return talk.messages[-1]["content"]

    async def say(self, talk, words):
        return await asyncio.to_thread(self.turn, talk, words)

    async def cancel(self, talk, words):
        # Ctrl+C is how it is interrupted. Python misses a signal that arrives just before it begins to wait for
        # the answer, so whoever sees no effect presses it again.
        ended = threading.Event()

        def press():
            os.kill(os.getpid(), signal.SIGINT)
            while not ended.wait(5):
                os.kill(os.getpid(), signal.SIGINT)

        # A program that was started in the background ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=when_held, args=(press,)).start()
        try:
            self.turn(talk, words)
        except KeyboardInterrupt:
            return True
        finally:
            ended.set()
        return False


class Files:
    """The environment of mini-swe-agent: it has one command."""

    def execute(self, action, cwd=""):
        return {"output": read_file(action["name"]), "returncode": 0, "exception_info": ""}

    def get_template_vars(self, **kwargs):
        return kwargs


def when_held(act):
    """Calls ``act`` while the provider keeps its answer: a request that it has numbered, but not logged."""
    HELD.wait()
    is_kept = False
    while not is_kept:
        time.sleep(0.1)
        urllib.request.urlopen(f"{os.environ['OPENAI_BASE_URL']}/models").read()
        lines = Path(os.environ["PROVIDER_LOG"]).read_text().split("\n")[:-1]
        is_kept = max(json.loads(line)["number"] for line in lines) > len(lines)
    act()


async def cancelled(adapter, talk, words):
    """Cancels a turn while the provider keeps its answer; returns whether it ended by that."""
    if hasattr(adapter, "cancel"):
        return await adapter.cancel(talk, words)
    task = asyncio.create_task(adapter.say(talk, words))
    await asyncio.to_thread(when_held, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


def tell(check, value, is_on=True):
    print(json.dumps({"check": check, "ctx": is_on, "value": value}), flush=True)


async def long(adapter, word, first=None):
    """Returns a conversation that is longer than the window, and its last answer."""
    talk = adapter.conversation(word)
    said = [await adapter.say(talk, f"BIGREAD {each}") for each in (first or word, *[word] * TURNS)]
    return talk, said[-1]


async def main(make):
    for is_on in (False, True):
        adapter, word = make(is_on), f"talk-{'on' if is_on else 'off'}"
        talk, _ = await long(adapter, word)
        if adapter.object:
            tell("object", (await adapter.object(talk, f"OBJECT {word}")).model_dump(), is_on)
        if adapter.stream:
            tell("stream", [text async for text in adapter.stream(talk, f"STREAM {word}") if text], is_on)
    # Every other one begins with the same words.
    talks = [long(adapter, f"talk-{n}", "same" if n % 2 else None) for n in range(PARALLEL)]
    tell("parallel", [said for _, said in await asyncio.gather(*talks)])
    talk, _ = await long(adapter, "talk-held")
    tell(
        "cancel",
        [await cancelled(adapter, talk, "BIGREAD HOLD"), await adapter.say(talk, "BIGREAD talk-held")],
    )


ADAPTERS = {
    "langchain": LangChain,
    "langgraph": LangGraph,
    "llama-index": LlamaIndex,
    "google-adk": GoogleAdk,
    "hermes": Hermes,
    "openai-agents": OpenAIAgents,
    "pydantic-ai": PydanticAI,
    "litellm": LiteLLM,
    "mini-swe-agent": MiniSweAgent,
}
if __name__ == "__main__":
    # `asyncio.run` would handle Ctrl+C itself.
    asyncio.new_event_loop().run_until_complete(main(ADAPTERS[sys.argv[1]]))
