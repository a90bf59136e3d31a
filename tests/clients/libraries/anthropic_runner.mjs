// The tool runner of Anthropic's SDK, which continues message threads by default.

import { BASE, BIG, MODEL, hold, load } from "./turns.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const client = new Anthropic({ baseURL: BASE, apiKey: "dummy", maxRetries: 0 });
const tool = {
  name: "read_file",
  description: "Reads the big file.",
  input_schema: { type: "object", properties: {} },
  parse: (input) => input,
  run: () => BIG,
};
let history = [];

await hold(async (words) => {
  const messages = [...history, { role: "user", content: words }];
  const given = { model: MODEL, max_tokens: 64, tools: [tool], messages };
  const runner = client.beta.messages.toolRunner(given);
  let last;
  for await (const message of runner) {
    last = message;
    messages.push({ role: "assistant", content: message.content });
    const results = await runner.generateToolResponse();
    if (results) messages.push(results);
  }
  history = messages;
  return last.content.at(-1).text;
});
