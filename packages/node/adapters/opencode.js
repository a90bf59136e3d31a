// opencode, and clients with its plugins: a server plugin.
//
//     { "plugin": ["ctxkeep"] }        with options: [["ctxkeep", { "window": 128000 }]]

import { ContextKeeper } from "../src/index.js";
import { once } from "../src/warnings.js";
import { converted, restored } from "./opencode-messages.js";

// The tokens of system prompt and tools, until a provider has counted them.
const UNCOUNTED = 10_000;

/** Fits the messages of each request; opencode stores all of them. Options: those of `ContextKeeper`. */
export const ContextPlugin = async ({ client }, options = {}) => {
  const onWarning = once((message) => {
    client.app.log({ body: { service: "ctx", level: "warn", message } }).catch(() => {});
  });
  // By session: those that opencode compacts now, the last request, what an engine adds to the system prompt.
  const [compacting, requests, additions] = [new Set(), new Map(), new Map()];
  let [keeper, providers] = [options.keeper];

  const limitOf = async ({ providerID, modelID }) => {
    providers ??= client.config.providers().then(({ data }) => data.providers).catch(() => []);
    return (await providers).find(({ id }) => id === providerID)?.models[modelID]?.limit;
  };

  const fit = async (messages) => {
    const info = messages.findLast(({ info }) => info.role === "user")?.info;
    // What opencode is about to summarise by itself stays as it is.
    if (!info || compacting.delete(info.sessionID)) return;
    const session = info.sessionID;
    const model = options.model ?? info.model.modelID;
    const window = options.window ?? windowOf(await limitOf(info.model));
    const pendingTokens = uncounted(messages, requests.get(session));
    keeper ??= new ContextKeeper({ model, onWarning, ...options, format: "ai-sdk" });
    const given = messages.flatMap(converted);
    const sent = given.map(({ message }) => message);
    const fitted = await keeper.fitOrKeep(sent, { session, model, window, pendingTokens });
    if (!fitted) return;
    const counted = fitted.tokens - pendingTokens;
    requests.set(session, { last: messages.at(-1).info.id, counted, pendingTokens });
    additions.set(session, fitted.systemAddition);
    messages.splice(0, messages.length, ...restored(fitted, given, info));
  };

  return {
    "experimental.session.compacting": async ({ sessionID }) => void compacting.add(sessionID),
    // An error would end the turn.
    "experimental.chat.messages.transform": (_, { messages }) => {
      return fit(messages).catch((error) => onWarning(`the request is made without ctx: ${error.message}`));
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (additions.get(sessionID)) system.push(additions.get(sessionID));
    },
    dispose: async () => keeper?.close(),
  };
};

/** Returns the window that opencode leaves to a prompt: when that is full, it compacts by itself. */
function windowOf({ context, input, output } = {}) {
  const answer = Math.min(output || 32_000, 32_000);
  if (input) return input - Math.min(answer, 20_000);
  return context ? context - answer : undefined;
}

/** Returns the size of what ctx does not see: the provider's count of the last request, less its messages. */
function uncounted(messages, request) {
  const last = messages.findIndex(({ info }) => info.id === request?.last);
  // Of a conversation that another process began, the first request.
  const at = request ? last + 1 : messages.findIndex(({ info }) => info.role === "assistant");
  const { tokens, summary } = messages[at]?.info ?? {};
  const reported = tokens && !summary ? tokens.input + tokens.cache.read + tokens.cache.write : 0;
  if (reported === 0) return request?.pendingTokens ?? UNCOUNTED;
  const before = messages.slice(0, at).flatMap(converted).map(({ message }) => JSON.stringify(message));
  return Math.max(0, reported - (request?.counted ?? Math.ceil(before.join().length / 4)));
}
