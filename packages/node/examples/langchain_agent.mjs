// LangChain: an agent with the middleware.
//
//     OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini node langchain_agent.mjs

import { ChatOpenAI } from "@langchain/openai";
import { contextMiddleware } from "ctxkeep/langchain";
import { createAgent, tool } from "langchain";
import { z } from "zod";

import { BIG, hold, MODEL, WITH_CTX } from "./turns.mjs";

const readFile = tool(() => BIG, {
  name: "read_file",
  description: "Reads the big file.",
  schema: z.object({}),
});

const agent = createAgent({
  model: new ChatOpenAI({
    model: MODEL,
    maxRetries: 0,
    configuration: { baseURL: process.env.OPENAI_BASE_URL },
  }),
  tools: [readFile],
  middleware: WITH_CTX ? [contextMiddleware({ window: 16_000 })] : [],
});

let history = [];

await hold(async (words) => {
  const { messages } = await agent.invoke({ messages: [...history, { role: "user", content: words }] });
  history = messages;
  return messages.at(-1).text;
});
