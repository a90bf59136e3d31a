// Mastra: an input processor.
//
//     new Agent({ ..., inputProcessors: [new ContextProcessor({ window: 32_000 })] })

import { fitter } from "../src/adapter.js";
import { fittedPrompt } from "./ai-sdk.js";

/**
 * Changes the prompt of one call, not the messages that the agent stores. By default the conversation
 * is the thread of the agent's memory.
 */
export class ContextProcessor {
  id = "ctxkeep";
  name = "ctxkeep";
  #fit;

  constructor(options) {
    this.#fit = fitter(options, "ai-sdk", ({ messageList }) => messageList?.get.all.db().at(0)?.threadId);
  }

  async processLLMRequest(call) {
    return { prompt: await fittedPrompt(this.#fit, call, call.prompt, { signal: call.abortSignal }) };
  }
}
