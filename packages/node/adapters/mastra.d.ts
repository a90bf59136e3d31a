import type { ProcessLLMRequestArgs, ProcessLLMRequestResult, Processor } from "@mastra/core/processors";

import type { AdapterOptions } from "../src/index.js";

/**
 * An input processor, which changes the prompt of one call, not the messages that the agent stores. By
 * default the conversation is the thread of the agent's memory. It does not see the tools: the option
 * `tools` counts their schemas.
 */
export class ContextProcessor implements Processor<"ctxkeep"> {
  constructor(options: AdapterOptions<ProcessLLMRequestArgs>);
  readonly id: "ctxkeep";
  readonly name: "ctxkeep";
  processLLMRequest(call: ProcessLLMRequestArgs): Promise<ProcessLLMRequestResult>;
}
