// An extension of pi: ctx makes the messages of each request, and the compactions.

import { ContextKeeper } from "../src/index.js";
import { once } from "../src/warnings.js";
import { entryIds, firsts, projection } from "./pi-entries.js";

export default function (pi) {
  let host;
  let addition;
  const onWarning = once((text) => {
    if (host?.hasUI) host.ui.notify(`ctx: ${text}`, "warning");
    else console.error(`ctx: ${text}`);
  });
  // Each call names the model.
  const keeper = new ContextKeeper({ format: "pi", model: null, onWarning });
  const current = (context) => {
    host = context;
    return keeper.session(context.sessionManager.getSessionId());
  };
  const tell = async (context, method, params) => {
    try {
      return await current(context).tell(method, params);
    } catch (error) {
      return onWarning(error.message);
    }
  };

  pi.on("context", async ({ messages }, context) => {
    const given = { session: current(context).id, ids: entryIds(context.sessionManager, messages) };
    const fitted = await keeper.fitOrKeep(messages, { ...given, ...model(context), ...sizes(pi, context) });
    addition = fitted?.systemAddition;
    return fitted && { messages: fitted.messages };
  });

  pi.on("context_with_system", ({ messages: [system, ...rest] }) => {
    if (!addition || system?.role !== "system") return undefined;
    const { content: old } = system;
    const block = { type: "text", text: addition };
    const content = typeof old === "string" ? `${old}\n\n${addition}` : [...old, block];
    return { messages: [{ ...system, content }, ...rest] };
  });

  pi.on("message_end", async ({ message }, context) => {
    const used = message.role === "assistant" && message.stopReason !== "error" && message.usage;
    const promptTokens = used && used.input + used.cacheRead + used.cacheWrite;
    if (promptTokens > 0) await tell(context, "usage", { promptTokens });
  });

  pi.on("agent_end", async (_event, context) => {
    const advancementKey = context.sessionManager.getLeafId();
    if (!advancementKey) return;
    await tell(context, "commit_turn", { advancementKey });
    await tell(context, "after_turn");
    await tell(context, "maintain");
  });

  pi.on("session_before_compact", async ({ reason: trigger, customInstructions, preparation }, context) => {
    try {
      const session = current(context);
      const { sources, messages } = projection(context.sessionManager);
      const known = await session.sync(messages, { ids: firsts(sources), ...model(context) });
      const { result, reason } = await session.compact({ trigger, instructions: customInstructions });
      const firstKeptEntryId = sources[known.indexOf(result?.firstKeptEntryId)];
      if (!result?.summary || !firstKeptEntryId) throw new Error(reason ?? "ctx removed no messages");
      const details = { engine: "ctx", ...result.details };
      const { tokensBefore } = preparation;
      return { compaction: { summary: result.summary, firstKeptEntryId, tokensBefore, details } };
    } catch (error) {
      onWarning(`pi compacts this session itself: ${error.message}`);
      return undefined;
    }
  });

  pi.registerCommand("ctx", {
    description: "Show how full the context is, as counted by ctx",
    handler: async (_args, context) => {
      const status = await tell(context, "status");
      context.ui.notify(status ? words(status) : "ctx has not seen this session yet", "info");
    },
  });

  pi.on("session_shutdown", () => {
    keeper.close();
  });
}

function model({ model: used }) {
  return { provider: used?.provider, model: used?.id, window: used?.contextWindow };
}

/** Returns the system prompt and the active tools. */
function sizes(pi, { getSystemPrompt }) {
  const active = new Set(pi.getActiveTools());
  const tools = pi.getAllTools().filter(({ name }) => active.has(name));
  const schema = ({ name, description, parameters }) => ({ name, description, parameters });
  return { system: getSystemPrompt(), tools: tools.map(schema) };
}

function words({ tokens, limit, window, engine, compactions, messages }) {
  const share = Math.round((100 * tokens) / limit);
  return (
    `${tokens} of ${limit} tokens (${share} %; window ${window}) in ${messages} messages; ` +
    `engine ${engine.id}, ${engine.state}; ${compactions} compactions`
  );
}
