// Vercel's AI SDK, over responses.

import { BASE, BIG, MODEL, hold, load } from "./turns.mjs";

const { generateText, stepCountIs, tool, jsonSchema } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const model = createOpenAI({ baseURL: `${BASE}/v1`, apiKey: "dummy" })(MODEL);
const inputSchema = jsonSchema({ type: "object", properties: {} });
const read_file = tool({ description: "Reads the big file.", inputSchema, execute: () => BIG });
let history = [];

await hold(async (words) => {
  const messages = [...history, { role: "user", content: words }];
  const given = { model, messages, tools: { read_file }, stopWhen: stepCountIs(4), maxRetries: 0 };
  // Messages stored by OpenAI are referenced, not sent: ctx cannot edit them.
  const store = { openai: { store: false } };
  const result = await generateText({ ...given, providerOptions: store });
  history = [...messages, ...result.responseMessages];
  return result.text;
});
