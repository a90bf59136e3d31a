// The engine interface of OpenClaw. One instance is created per turn and discarded after it, so it has
// only the state of the turn: sessions belong to the host and to the `ctx rpc` process.

import { createRequire } from "node:module";

import { hostWindow, pending, reserve } from "./budget.js";

const { version } = createRequire(import.meta.url)("./package.json");

/** Logged for each failure, which would otherwise look like a request made by ctx. */
const FELL_BACK = "the request goes out with OpenClaw's own messages";

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
    this.#note(given);
    return { bootstrapped: true };
  }

  async assemble(given) {
    this.#note(given);
    // OpenClaw calls this before each model request. Later calls get the result of the first one, not
    // the history, and OpenClaw appends the turn's own messages itself.
    const first = this.#first && isLater(given) ? this.#first : this.#begin(given);
    const { settings, history } = first;
    try {
      const more = { pendingTokens: pending(first, given) };
      const made = await this.#session(given).request(settings, { messages: history }, more);
      // The host adds the prompt itself. Other messages, such as recalled ones, are kept.
      const prompt = first.prompt ? history.length - 1 : undefined;
      const messages = made.messages.filter((_, n) => prompt === undefined || made.from[n] !== prompt);
      const { systemPromptAddition } = made;
      return { messages, estimatedTokens: made.tokens, systemPromptAddition };
    } catch (error) {
      this.#failed(FELL_BACK, error);
      const { messages } = given;
      // The host then checks the size itself, as it does without an engine.
      const promptAuthority = "preassembly_may_overflow";
      return { messages, estimatedTokens: Math.ceil(JSON.stringify(messages).length / 4), promptAuthority };
    }
  }

  async commitTurn(given) {
    this.#note(given);
    const { advancementKey, isHeartbeat } = given;
    try {
      const session = this.#session(given);
      // A turn that began in another process is sent with the next request.
      const messages = this.#first && [...this.#first.given.messages, ...given.messages];
      if (messages) await session.tell("sync", { messages, isHeartbeat });
      await session.tell("commit_turn", { advancementKey });
      await session.tell("after_turn");
    } catch (error) {
      this.#failed("the turn was not committed; the next request sends it again", error);
    }
    return { status: "committed" };
  }

  async compact(given) {
    this.#note(given);
    this.#first = undefined;
    const session = this.#host.sessions.known(given.sessionId);
    if (!session?.isOpen) {
      const reason = "ctx has not seen this session since it started; the next message sends it";
      return { ok: true, compacted: false, reason };
    }
    const { customInstructions, force, runtimeContext } = given;
    const overflow = runtimeContext?.trigger === "overflow";
    try {
      const { attempt, maxAttempts } = runtimeContext ?? {};
      const made = await session.compact(session.settings, undefined, {
        customInstructions,
        force: force ?? false,
        trigger: overflow ? "overflow" : "manual",
        ...(attempt ? { attempt, maxAttempts } : {}),
      });
      const { ok, compacted, reason, result } = made;
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
    this.#note(given);
    await this.#tell(given, "maintain");
    return { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
  }

  // Turns without a durable transcript use the next three methods.

  async ingest({ message, ...given }) {
    const { ingestedCount } = await this.ingestBatch({ ...given, messages: [message] });
    return { ingested: ingestedCount === 1 };
  }

  async ingestBatch(given) {
    this.#note(given);
    const { messages, isHeartbeat } = given;
    const answer = await this.#tell(given, "append", { messages, isHeartbeat });
    return { ingestedCount: answer ? messages.length : 0 };
  }

  async afterTurn(given) {
    this.#note(given);
    await this.#tell(given, "sync", { messages: given.messages, isHeartbeat: given.isHeartbeat });
    await this.#tell(given, "after_turn");
  }

  async prepareSubagentSpawn({ parentSessionKey, childSessionKey, parentSessionId, ttlMs }) {
    const sessionId = parentSessionId ?? this.#host.keys.get(parentSessionKey);
    if (!sessionId) return undefined;
    this.#host.keys.set(childSessionKey, sessionId);
    const child = { parentSessionKey, childSessionKey, ttlMs };
    await this.#tell({ sessionId }, "prepare_subagent_spawn", child);
    return { rollback: () => this.#tell({ sessionId }, "rollback_subagent_spawn", child) };
  }

  async onSubagentEnded({ childSessionKey, reason }) {
    const sessionId = this.#host.keys.get(childSessionKey);
    this.#host.keys.delete(childSessionKey);
    if (sessionId) await this.#tell({ sessionId }, "on_subagent_ended", { childSessionKey, reason });
  }

  async dispose() {
    this.#first = undefined;
  }

  #begin(given) {
    const { messages, prompt } = given;
    // Memory searches with the user's newest message, so ctx must get it.
    const asked = prompt ? { role: "user", content: prompt, timestamp: Date.now() } : undefined;
    const window = hostWindow(given, this.#host, this.#context);
    const { window: most = Infinity, engine } = this.#host.config;
    const settings = {
      format: "pi",
      engine,
      model: given.model,
      provider: given.runtimeSettings?.model?.provider ?? undefined,
      window: window === undefined ? undefined : Math.min(window, most),
      reserveTokens: reserve(given),
    };
    const history = asked ? [...messages, asked] : messages;
    this.#first = { settings, history, prompt: asked, window, given };
    return this.#first;
  }

  /** Records the size of the window, and the key of each session. */
  #note({ sessionId, sessionKey, runtimeContext, runtimeSettings }) {
    const { windows, keys } = this.#host;
    const { maxOutputTokens, promptTokenBudget } = runtimeSettings?.limits ?? {};
    const whole = maxOutputTokens == null ? promptTokenBudget : undefined;
    const window = runtimeContext?.tokenBudget ?? whole;
    if (window > 0) remember(windows, sessionId, window);
    if (sessionKey) remember(keys, sessionKey, sessionId);
  }

  #session({ sessionId }) {
    return this.#host.sessions.of(sessionId);
  }

  async #tell({ sessionId }, method, params) {
    try {
      return await this.#host.sessions.known(sessionId)?.tell(method, params);
    } catch (error) {
      this.#failed(`${method} failed`, error);
      return undefined;
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

function remember(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > 1_000) map.delete(map.keys().next().value);
}
