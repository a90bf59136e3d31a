// OpenAI Agents: a runner with the filter.
//
//     OPENAI_API_KEY=KEY MODEL=gpt-5.4-mini node openai_agents.mjs

import { Agent, Runner, tool } from "@openai/agents";
import { contextFilter } from "ctxkeep/openai-agents";
import { z } from "zod";

import { BIG, hold, MODEL, WITH_CTX } from "./turns.mjs";

const agent = new Agent({
  name: "reader",
  model: MODEL,
  modelSettings: { store: false },
  tools: [
    tool({
      name: "read_file",
      description: "Reads the big file.",
      parameters: z.object({}),
      execute: () => BIG,
    }),
  ],
});

const runner = new Runner({
  tracingDisabled: true,
  callModelInputFilter: WITH_CTX ? contextFilter({ window: 16_000 }) : undefined,
});

let history = [];

await hold(async (words) => {
  const result = await runner.run(agent, [...history, { role: "user", content: words }]);
  history = result.history;
  return result.finalOutput;
});
