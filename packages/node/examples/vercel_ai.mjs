// The Vercel AI SDK: an agent whose model has the middleware.
//
//     OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini node vercel_ai.mjs

import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, tool, wrapLanguageModel } from "ai";
import { contextMiddleware } from "ctxkeep/ai-sdk";
import { z } from "zod";

import { BIG, hold, MODEL, WITH_CTX } from "./turns.mjs";

const plain = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat(MODEL);
const middleware = contextMiddleware({ window: 16_000 });
const model = WITH_CTX ? wrapLanguageModel({ model: plain, middleware }) : plain;

const tools = {
  read_file: tool({
    description: "Reads the big file.",
    inputSchema: z.object({}),
    execute: () => BIG,
  }),
};

const messages = [];

await hold(async (words) => {
  messages.push({ role: "user", content: words });
  const stopWhen = isStepCount(4);
  const result = await generateText({ model, messages, tools, stopWhen, maxRetries: 0 });
  messages.push(...result.responseMessages);
  return result.text;
});
