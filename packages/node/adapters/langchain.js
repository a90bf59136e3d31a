// LangChain: a middleware for `createAgent`.
//
//     createAgent({ model, tools, middleware: [contextMiddleware({ window: 32_000 })] })

import { coerceMessageLikeToMessage } from "@langchain/core/messages";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { createMiddleware } from "langchain";

import { fitter } from "../src/adapter.js";

const ROLES = { human: "user", ai: "assistant" };
// Parts of some providers that repeat `tool_calls`.
const CALLS = ["tool_use", "tool_call", "function_call", "functionCall", "input_json_delta"];

/**
 * Sends the messages that fit. The messages in the state of the agent are not changed. By default the
 * conversation is the thread of the checkpointer.
 */
export function contextMiddleware(options) {
  const fit = fitter(options, "openai", ({ messages, runtime }) => {
    // A subagent that is a tool has the thread of its caller.
    const thread = runtime?.configurable?.thread_id;
    return thread && [thread, messages[0]?.id].filter(Boolean).join("/");
  });
  return createMiddleware({
    name: "ContextMiddleware",
    async wrapModelCall(request, handler) {
      const { messages, systemMessage, tools, runtime } = request;
      const fitted = await fit(request, messages.map(openai), {
        system: systemMessage?.text,
        tools: tools.map((tool) => convertToOpenAITool(tool)),
        signal: runtime?.signal,
      });
      if (!fitted) return handler(request);
      const changes = { messages: fitted.restored(messages, coerceMessageLikeToMessage) };
      const addition = fitted.systemAddition;
      if (addition) changes.systemMessage = systemMessage.concat(`\n\n${addition}`);
      return handler({ ...request, ...changes });
    },
  });
}

/** Returns a message in the format of chat completions. */
function openai(message) {
  const { content, name, tool_call_id, tool_calls = [], invalid_tool_calls = [] } = message;
  const made = { role: ROLES[message.type] ?? message.role ?? message.type, content };
  if (Array.isArray(content)) made.content = content.filter((part) => !CALLS.includes(part.type));
  if (name) made.name = name;
  if (tool_call_id) made.tool_call_id = tool_call_id;
  const calls = [...tool_calls, ...invalid_tool_calls];
  if (calls.length > 0) made.tool_calls = calls.map(call);
  return made;
}

function call({ id, name, args }) {
  const text = typeof args === "string" ? args : JSON.stringify(args ?? {});
  return { id, type: "function", function: { name, arguments: text } };
}
