// The engine interface of OpenClaw. One instance is created per turn and discarded after it, so it has
// only the state of the turn.

import { createRequire } from "node:module";

import { hostWindow, note, pending, reserve } from "./budget.js";

const { version } = createRequire(import.meta.url)("../../package.json");

export class Turn {
  #host;
  #context;
  /** The first request of the turn: the whole history, and its budget. */
  #first;

  /** Without both of these and `commitTurn`, OpenClaw silently runs `legacy`. */
  info = {
    id: "ctx",
    name: "ctx",
    version,
    ownsCompaction: true,
    transcriptSemantics: {
      currentTurnFence: "before-current-turn-entry-v1",
      turnAdvancementIdempotency: "atomic-idempotent-v1",
    },
  };

  constructor(host, context) {
    this.#host = host;
    this.#context = context;
  }

  async bootstrap(given) {
    note(this.#host, given);
    return { bootstrapped: true };
  }

  async assemble(given) {
    note(this.#host, given);
    // OpenClaw calls this before each model request. Later calls get the result of the first one, not
    // the history, and OpenClaw appends the turn's own messages itself.
    if (!this.#first || !isLater(given)) this.#first = this.#begin(given);
    const { history, settings, prompt } = this.#first;
    try {
      const pendingTokens = pending(this.#first, given);
      const fitted = await this.#session(given).fit(history, { ...settings, pendingTokens });
      // The host adds the prompt itself. Other messages, such as recalled ones, are kept.
      const added = prompt ? history.length - 1 : -1;
      const messages = fitted.messages.filter((_, n) => fitted.own[n] !== added);
      return { messages, estimatedTokens: fitted.tokens, systemPromptAddition: fitted.systemAddition };
    } catch (error) {
      // Logged for each failure, which would otherwise look like a request made by ctx.
      this.#failed("the request goes out with OpenClaw's own messages", error);
      const { messages } = given;
      // The host then checks the size itself, as it does without an engine.
      const promptAuthority = "preassembly_may_overflow";
      return { messages, estimatedTokens: Math.ceil(JSON.stringify(messages).length / 4), promptAuthority };
    }
  }

  async commitTurn(given) {
    note(this.#host, given);
    await this.#end(given, [...(this.#first?.given.messages ?? []), ...given.messages]);
    return { status: "committed" };
  }

  // Instead of `commitTurn`, in a turn without a durable transcript.
  async afterTurn(given) {
    note(this.#host, given);
    await this.#end(given, given.messages);
  }

  // The messages of a turn come with its end.
  async ingest() {
    return { ingested: false };
  }

  async compact(given) {
    note(this.#host, given);
    this.#first = undefined;
    const { customInstructions, force = false, runtimeContext } = given;
    const { attempt, maxAttempts } = runtimeContext ?? {};
    const trigger = runtimeContext?.trigger === "overflow" ? "overflow" : "manual";
    const params = { customInstructions, force, trigger, ...(attempt && { attempt, maxAttempts }) };
    try {
      const made = await this.#session(given).tell("compact", params);
      const unseen = "ctx has not seen this session since it started; the next message sends it";
      const { ok = true, compacted = false, reason = unseen, result } = made ?? {};
      if (!compacted || !result) return { ok, compacted: false, reason };
      // Entry ids belong to ctx, and the host keeps its whole transcript: return only summary and sizes.
      const { summary, tokensBefore, tokensAfter } = result;
      return { ok, compacted, reason, result: { summary, tokensBefore, tokensAfter } };
    } catch (error) {
      this.#failed("the session was not compacted", error);
      return { ok: false, compacted: false, reason: `ctx: ${error.message}` };
    }
  }

  async maintain(given) {
    note(this.#host, given);
    await this.#tell(given, "maintain");
    return { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
  }

  async prepareSubagentSpawn({ parentSessionKey, childSessionKey, parentSessionId, ttlMs }) {
    const { keys } = this.#host;
    const sessionId = parentSessionId ?? keys.get(parentSessionKey);
    if (!sessionId) return undefined;
    keys.set(childSessionKey, sessionId);
    const child = { parentSessionKey, childSessionKey, ttlMs };
    await this.#tell({ sessionId }, "prepare_subagent_spawn", child);
    return { rollback: () => this.#tell({ sessionId }, "rollback_subagent_spawn", child) };
  }

  async onSubagentEnded({ childSessionKey, reason }) {
    const { keys } = this.#host;
    const sessionId = keys.get(childSessionKey);
    keys.delete(childSessionKey);
    if (sessionId) await this.#tell({ sessionId }, "on_subagent_ended", { childSessionKey, reason });
  }

  #begin(given) {
    const { messages, model, prompt: content } = given;
    // Memory searches with the user's newest message, so ctx must get it.
    const prompt = content ? { role: "user", content, timestamp: Date.now() } : undefined;
    const window = hostWindow(given, this.#host, this.#context);
    const settings = {
      model,
      provider: given.runtimeSettings?.model?.provider ?? undefined,
      window: window && Math.min(window, this.#host.window ?? Infinity),
      reserveTokens: reserve(given),
    };
    return { given, history: prompt ? [...messages, prompt] : messages, prompt, window, settings };
  }

  /** Sends the messages of a turn, and ends it. A turn that began in another process is sent later. */
  async #end(given, messages) {
    const { isHeartbeat, advancementKey } = given;
    const session = this.#session(given);
    try {
      if (this.#first) await session.sync(messages, { isHeartbeat, ...this.#first.settings });
      if (advancementKey) await session.tell("commit_turn", { advancementKey });
      await session.tell("after_turn");
    } catch (error) {
      this.#failed("the turn was not committed; the next request sends it again", error);
    }
  }

  #session({ sessionId }) {
    return this.#host.keeper.session(sessionId);
  }

  async #tell(given, method, params) {
    try {
      await this.#session(given).tell(method, params);
    } catch (error) {
      this.#failed(`${method} failed`, error);
    }
  }

  #failed(what, error) {
    this.#host.log.error(`ctx: ${what}: ${error.message}`);
  }
}

/** Whether a request is a later one of its turn or retry: only the first has `maxOutputTokens`. */
function isLater(given) {
  const { limits } = given.runtimeSettings ?? {};
  return limits ? limits.maxOutputTokens == null : !("runtimeContext" in given);
}
