// Mastra: an agent with the processor.
//
//     OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini node mastra_agent.mjs

import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { ContextProcessor } from "ctxkeep/mastra";
import { z } from "zod";

import { BIG, hold, MODEL, WITH_CTX } from "./turns.mjs";

const agent = new Agent({
  id: "reader",
  name: "reader",
  instructions: "You read files.",
  model: createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat(MODEL),
  maxRetries: 0,
  tools: {
    read_file: createTool({
      id: "read_file",
      description: "Reads the big file.",
      inputSchema: z.object({}),
      execute: async () => BIG,
    }),
  },
  inputProcessors: WITH_CTX ? [new ContextProcessor({ window: 16_000 })] : [],
});

const messages = [];

await hold(async (words) => {
  messages.push({ role: "user", content: words });
  const result = await agent.generate(messages, { maxSteps: 4 });
  messages.push(...result.response.messages);
  return result.text;
});
