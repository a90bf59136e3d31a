// What an adapter must leave as it is: streams, objects, parallel conversations and cancelled calls.
//
//     node checks.mjs NAME         // prints a line of JSON for each check, which harness/behaviour.py judges
//
// The provider reads the word that it is told: a file with that word in each line.

import { readFileSync } from "node:fs";

import { z } from "zod";

const MODEL = "fake-model";
const OPTIONS = { window: 16_000 };
const TURNS = 5; // after the first one: more than the window has
const PARALLEL = 8;
const baseURL = process.env.OPENAI_BASE_URL;
const FACTS = z.object({ title: z.string(), lines: z.number() }).meta({ title: "Facts" });
const INPUT = z.object({ name: z.string() });
const description = "Reads the big file.";

let held; // is called when the file was read whose answer the provider keeps

function readFile({ name }) {
  if (name === "HOLD") held();
  return Array.from({ length: 240 }, (_, n) => `line ${n} of ${name} lorem ipsum dolor sit amet\n`).join("");
}

const user = (content) => ({ role: "user", content });

async function vercel(isOn) {
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { generateText, isStepCount, Output, streamText, tool, wrapLanguageModel } = await import("ai");
  const { contextMiddleware } = await import("ctxkeep/ai-sdk");
  const plain = createOpenAI({ baseURL }).chat(MODEL);
  const model = isOn ? wrapLanguageModel({ model: plain, middleware: contextMiddleware(OPTIONS) }) : plain;
  const tools = { read_file: tool({ description, inputSchema: INPUT, execute: readFile }) };
  const common = { model, tools, stopWhen: isStepCount(4), maxRetries: 0 };
  return {
    conversation: () => [],
    async say(talk, words, abortSignal) {
      talk.push(user(words));
      const result = await generateText({ ...common, messages: talk, abortSignal });
      talk.push(...result.responseMessages);
      return result.text;
    },
    stream: (talk, words) => streamText({ ...common, messages: [...talk, user(words)] }).textStream,
    async object(talk, words) {
      const output = Output.object({ schema: FACTS });
      return (await generateText({ ...common, messages: [...talk, user(words)], output })).output;
    },
  };
}

async function langchain(isOn) {
  const { ChatOpenAI } = await import("@langchain/openai");
  const { createAgent, tool } = await import("langchain");
  const { contextMiddleware } = await import("ctxkeep/langchain");
  const model = new ChatOpenAI({ model: MODEL, maxRetries: 0, configuration: { baseURL } });
  const tools = [tool(readFile, { name: "read_file", description, schema: INPUT })];
  const middleware = isOn ? [contextMiddleware(OPTIONS)] : [];
  const make = (more) => createAgent({ model, tools, middleware, ...more });
  const [agent, typed] = [make(), make({ responseFormat: FACTS })];
  return {
    conversation: () => ({ messages: [] }),
    async say(talk, words, signal) {
      const messages = [...talk.messages, user(words)];
      talk.messages = (await agent.invoke({ messages }, { signal })).messages;
      return talk.messages.at(-1).text;
    },
    async *stream(talk, words) {
      const messages = [...talk.messages, user(words)];
      const chunks = await agent.stream({ messages }, { streamMode: "messages" });
      for await (const [chunk] of chunks) yield chunk.text;
    },
    async object(talk, words) {
      return (await typed.invoke({ messages: [...talk.messages, user(words)] })).structuredResponse;
    },
  };
}

async function openaiAgents(isOn) {
  const { Agent, Runner, tool } = await import("@openai/agents");
  const { contextFilter } = await import("ctxkeep/openai-agents");
  const tools = [tool({ name: "read_file", description, parameters: INPUT, execute: readFile })];
  const common = { name: "reader", model: MODEL, modelSettings: { store: false }, tools };
  const make = (more) => new Agent({ ...common, ...more });
  const [agent, typed] = [make(), make({ outputType: FACTS })];
  const callModelInputFilter = isOn ? contextFilter(OPTIONS) : undefined;
  const runner = new Runner({ tracingDisabled: true, callModelInputFilter });
  return {
    conversation: () => ({ history: [] }),
    async say(talk, words, signal) {
      const result = await runner.run(agent, [...talk.history, user(words)], { signal });
      talk.history = result.history;
      return result.finalOutput;
    },
    async *stream(talk, words) {
      yield* (await runner.run(agent, [...talk.history, user(words)], { stream: true })).toTextStream();
    },
    async object(talk, words) {
      return (await runner.run(typed, [...talk.history, user(words)])).finalOutput;
    },
  };
}

async function mastra(isOn) {
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { Agent } = await import("@mastra/core/agent");
  const { createTool } = await import("@mastra/core/tools");
  const { ContextProcessor } = await import("ctxkeep/mastra");
  const execute = async (given) => readFile(given);
  const agent = new Agent({
    id: "reader",
    name: "reader",
    instructions: "You read files.",
    model: createOpenAI({ baseURL }).chat(MODEL),
    maxRetries: 0,
    tools: { read_file: createTool({ id: "read_file", description, inputSchema: INPUT, execute }) },
    inputProcessors: isOn ? [new ContextProcessor(OPTIONS)] : [],
  });
  return {
    conversation: () => [],
    async say(talk, words, abortSignal) {
      talk.push(user(words));
      const result = await agent.generate(talk, { maxSteps: 4, abortSignal });
      talk.push(...result.response.messages);
      return result.text;
    },
    async *stream(talk, words) {
      yield* (await agent.stream([...talk, user(words)], { maxSteps: 4 })).textStream;
    },
    async object(talk, words) {
      const structuredOutput = { schema: FACTS };
      return (await agent.generate([...talk, user(words)], { maxSteps: 4, structuredOutput })).object;
    },
  };
}

/** Cancels a turn while the provider keeps its answer; returns whether it ended by that. */
async function cancelled(adapter, talk, words) {
  const control = new AbortController();
  const reading = new Promise((resolve) => (held = resolve));
  const turn = adapter.say(talk, words, control.signal).then(
    (said) => !said,
    (error) => control.signal.aborted && /abort/i.test(`${error.name} ${error.message}`),
  );
  await reading;
  // The provider numbers a request when it comes, and logs it when it is answered.
  for (let isKept = false; !isKept; ) {
    await (await fetch(`${baseURL}/models`)).text();
    const lines = readFileSync(process.env.PROVIDER_LOG, "utf8").split("\n").slice(0, -1);
    isKept = lines.some((line) => JSON.parse(line).number > lines.length);
  }
  control.abort();
  return turn;
}

function tell(check, value, isOn = true) {
  console.log(JSON.stringify({ check, ctx: isOn, value }));
}

/** Returns a conversation that is longer than the window, and its last answer. */
async function long(adapter, word, first = word) {
  const talk = adapter.conversation(word);
  let said = await adapter.say(talk, `BIGREAD ${first}`);
  for (let turn = 0; turn < TURNS; turn += 1) said = await adapter.say(talk, `BIGREAD ${word}`);
  return { talk, said };
}

const ADAPTERS = { "vercel-ai": vercel, "langchain-js": langchain, "openai-agents-js": openaiAgents, mastra };
let adapter;

for (const isOn of [false, true]) {
  adapter = await ADAPTERS[process.argv[2]](isOn);
  const word = isOn ? "talk-on" : "talk-off";
  const { talk } = await long(adapter, word);
  tell("object", await adapter.object(talk, `OBJECT ${word}`), isOn);
  const chunks = [];
  for await (const text of adapter.stream(talk, `STREAM ${word}`)) if (text) chunks.push(text);
  tell("stream", chunks, isOn);
}
// Every other one begins with the same words.
const begun = (n) => long(adapter, `talk-${n}`, n % 2 ? "same" : undefined);
const talks = await Promise.all(Array.from({ length: PARALLEL }, (_, n) => begun(n)));
tell("parallel", talks.map(({ said }) => said));
const { talk } = await long(adapter, "talk-held");
const isCancelled = await cancelled(adapter, talk, "BIGREAD HOLD");
tell("cancel", [isCancelled, await adapter.say(talk, "BIGREAD talk-held")]);
