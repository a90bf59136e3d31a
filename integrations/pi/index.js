// An extension of pi: `ctx rpc` makes the messages of each request, and the compactions.

import { Ctx } from "../shared/rpc.mjs";
import { Sessions } from "../shared/session.mjs";

export default function (pi) {
  const said = new Set();
  let host;
  const warn = (text) => {
    if (said.has(text)) return;
    said.add(text);
    if (host?.hasUI) host.ui.notify(`ctx: ${text}`, "warning");
    else console.error(`ctx: ${text}`);
  };
  const ctx = new Ctx({ say: warn });
  const sessions = new Sessions(ctx, warn);
  const current = () => sessions.of(host.sessionManager.getSessionId());
  let addition;

  pi.on("context", async (event, context) => {
    host = context;
    addition = undefined;
    try {
      const { messages } = event;
      const history = { messages, ids: ids(context.sessionManager, messages) };
      const made = await current().request(settings(pi, context), history);
      addition = made.systemPromptAddition;
      return { messages: made.messages };
    } catch (error) {
      warn(`this request goes out as pi made it: ${error.message}`);
      return undefined;
    }
  });

  pi.on("context_with_system", (event) => {
    const [system, ...rest] = event.messages;
    if (!addition || system?.role !== "system") return undefined;
    const content =
      typeof system.content === "string"
        ? `${system.content}\n\n${addition}`
        : [...system.content, { type: "text", text: addition }];
    return { messages: [{ ...system, content }, ...rest] };
  });

  pi.on("message_end", async ({ message }, context) => {
    host = context;
    const used = message.role === "assistant" && message.stopReason !== "error" && message.usage;
    const promptTokens = used && used.input + used.cacheRead + used.cacheWrite;
    if (promptTokens > 0) await quietly(current().tell("usage", { promptTokens }));
  });

  pi.on("agent_end", async (_event, context) => {
    host = context;
    const advancementKey = context.sessionManager.getLeafId();
    if (!advancementKey) return;
    const session = current();
    await quietly(session.tell("commit_turn", { advancementKey }));
    await quietly(session.tell("after_turn"));
    await quietly(session.tell("maintain"));
  });

  pi.on("session_before_compact", async (event, context) => {
    host = context;
    try {
      const { sources, messages } = projection(context.sessionManager);
      const history = { messages, ids: once(sources) };
      const made = await current().compact(settings(pi, context), history, {
        force: true,
        trigger: event.reason ?? "manual",
        customInstructions: event.customInstructions,
      });
      const { result } = made;
      if (!made.compacted || !result?.summary || made.kept === undefined) {
        warn(`pi compacts this session itself: ${made.reason ?? "ctx removed no messages"}`);
        return undefined;
      }
      const details = { engine: "ctx", ...result.details };
      const firstKeptEntryId = sources[made.kept];
      const { tokensBefore } = event.preparation;
      return { compaction: { summary: result.summary, firstKeptEntryId, tokensBefore, details } };
    } catch (error) {
      warn(`pi compacts this session itself: ${error.message}`);
      return undefined;
    }
  });

  pi.registerCommand("ctx", {
    description: "Show how full the context is, as counted by ctx",
    handler: async (_args, context) => {
      host = context;
      try {
        const status = await current().tell("status");
        context.ui.notify(status ? words(status) : "ctx has not seen this session yet", "info");
      } catch (error) {
        context.ui.notify(`ctx: ${error.message}`, "error");
      }
    },
  });

  pi.on("session_shutdown", () => ctx.end());

  async function quietly(call) {
    await call.catch((error) => warn(error.message));
  }
}

function settings(pi, { model, getSystemPrompt }) {
  const active = new Set(pi.getActiveTools());
  const tools = pi.getAllTools().filter((tool) => active.has(tool.name));
  return {
    format: "pi",
    provider: model?.provider,
    model: model?.id,
    window: model?.contextWindow,
    systemPrompt: getSystemPrompt(),
    tools: tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
  };
}

/** Returns the messages that pi would send, and the entry of each. */
function projection(manager) {
  const parts = manager.buildSessionProjection().entries.flatMap((entry) =>
    entry.messages.map((message) => ({ message, source: entry.sourceEntry.id })),
  );
  const sent = parts.filter(({ message }) => message.role !== "system");
  return { sources: sent.map(({ source }) => source), messages: sent.map(({ message }) => message) };
}

/** Returns the entry ids if pi sends its session's messages: summaries then cite entries of its file. */
function ids(manager, messages) {
  const known = projection(manager);
  const same = (message, n) =>
    message.role === known.messages[n]?.role && message.timestamp === known.messages[n]?.timestamp;
  return messages.every(same) ? once(known.sources.slice(0, messages.length)) : undefined;
}

/** Returns the source of each message; null for all but the first message of an entry. */
function once(sources) {
  const seen = new Set();
  return sources.map((source) => {
    if (seen.has(source)) return null;
    seen.add(source);
    return source;
  });
}

function words({ tokens, limit, window, engine, compactions, messages }) {
  const share = Math.round((100 * tokens) / limit);
  return (
    `${tokens} of ${limit} tokens (${share} %; window ${window}) in ${messages} messages; ` +
    `engine ${engine.id}, ${engine.state}; ${compactions} compactions`
  );
}
