// The Vercel AI SDK: a middleware of a model, and a `prepareStep`.
//
//     wrapLanguageModel({ model, middleware: contextMiddleware({ window: 32_000 }) })

import { fitter } from "../src/adapter.js";

/**
 * A middleware for `wrapLanguageModel`: the model gets the messages that fit. By default the
 * conversation is `providerOptions.ctxkeep.session` of the call.
 */
export function contextMiddleware(options) {
  const fit = fitter(options, "ai-sdk", ({ params }) => params.providerOptions?.ctxkeep?.session);
  return {
    specificationVersion: "v4",
    async transformParams(call) {
      const { prompt, tools, abortSignal: signal } = call.params;
      return { ...call.params, prompt: await fittedPrompt(fit, call, prompt, { tools, signal }) };
    },
  };
}

/** Returns a `prepareStep` for `generateText`, `streamText` and agents. */
export function contextStep(options) {
  const fit = fitter(options, "ai-sdk");
  const runs = new WeakMap();
  return async (step) => {
    const { stepNumber, messages, initialMessages, initialInstructions } = step;
    // What an earlier step returned is at the beginning of the messages of this one.
    const before = stepNumber > 0 ? runs.get(initialMessages) : undefined;
    const isCarried = before?.sent.every((message, at) => message === messages[at]);
    const all = isCarried ? [...before.all, ...messages.slice(before.sent.length)] : messages;
    const system = systemMessages(initialInstructions);
    const fitted = await fit(step, all, { system: textOf(system) });
    const sent = fitted?.messages ?? all;
    const addition = fitted?.systemAddition;
    runs.set(initialMessages, { all, sent, isAdded: addition !== undefined });
    if (addition === undefined && !before?.isAdded) return { messages: sent };
    return { messages: sent, instructions: [...system, ...systemMessages(addition)] };
  };
}

/** Returns the prompt to send in place of this one. */
export async function fittedPrompt(fit, call, prompt, more) {
  const isSystem = ({ role }) => role === "system";
  const first = prompt.findIndex((message) => !isSystem(message));
  const system = prompt.slice(0, Math.max(first, 0));
  const fitted = await fit(call, prompt.slice(system.length), { ...more, system: textOf(system) });
  if (!fitted) return prompt;
  return [...system, ...systemMessages(fitted.systemAddition), ...fitted.messages];
}

function systemMessages(instructions = []) {
  return [instructions].flat().map((given) => {
    return typeof given === "string" ? { role: "system", content: given } : given;
  });
}

function textOf(system) {
  return system.map(({ content }) => content).join("\n\n");
}
