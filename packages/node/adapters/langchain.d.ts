import type { AgentMiddleware } from "langchain";

import type { AdapterOptions } from "../src/index.js";

type ModelCall = Parameters<NonNullable<AgentMiddleware["wrapModelCall"]>>[0];

/**
 * A middleware for `createAgent`, which sends the messages that fit. The messages in the state of the
 * agent are not changed. By default the conversation is the thread of the checkpointer.
 */
export function contextMiddleware(options: AdapterOptions<ModelCall>): AgentMiddleware;
