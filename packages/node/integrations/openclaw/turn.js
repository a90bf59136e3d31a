// The engine interface of OpenClaw. One instance is created per turn and discarded after it, so it has
// only the state of the turn.

import { createRequire } from "node:module";

import { compaction, isLater, opening, pending } from "./request.js";

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
    this.#host.note(given);
    return { bootstrapped: true };
  }

  async assemble(given) {
    const session = this.#host.session(given);
    // OpenClaw calls this before each model request. Later calls get the result of the first one, not
    // the history, and OpenClaw appends the turn's own messages itself.
    if (!this.#first || !isLater(given)) this.#first = opening(given, this.#host, this.#context);
    const { history, settings, prompt } = this.#first;
    try {
      const pendingTokens = pending(this.#first, given);
      const fitted = await session.fit(history, { ...settings, pendingTokens });
      // The host adds the prompt itself. Other messages, such as recalled ones, are kept.
      const added = prompt ? history.length - 1 : -1;
      const messages = fitted.messages.filter((_, n) => fitted.own[n] !== added);
      return { messages, estimatedTokens: fitted.tokens, systemPromptAddition: fitted.systemAddition };
    } catch (error) {
      // Logged for each failure, which would otherwise look like a request made by ctx.
      this.#host.failed("the request goes out with OpenClaw's own messages", error);
      const { messages } = given;
      // The host then checks the size itself, as it does without an engine.
      const promptAuthority = "preassembly_may_overflow";
      return { messages, estimatedTokens: Math.ceil(JSON.stringify(messages).length / 4), promptAuthority };
    }
  }

  async commitTurn(given) {
    await this.#end(given, [...(this.#first?.given.messages ?? []), ...given.messages]);
    return { status: "committed" };
  }

  // Instead of `commitTurn`, in a turn without a durable transcript.
  async afterTurn(given) {
    await this.#end(given, given.messages);
  }

  // The messages of a turn come with its end.
  async ingest() {
    return { ingested: false };
  }

  async compact(given) {
    this.#first = undefined;
    try {
      const made = await this.#host.session(given).tell("compact", compaction(given));
      const unseen = "ctx has not seen this session since it started; the next message sends it";
      const { ok = true, compacted = false, reason = unseen, result } = made ?? {};
      if (!compacted || !result) return { ok, compacted: false, reason };
      // Entry ids belong to ctx, and the host keeps its whole transcript: return only summary and sizes.
      const { summary, tokensBefore, tokensAfter } = result;
      return { ok, compacted, reason, result: { summary, tokensBefore, tokensAfter } };
    } catch (error) {
      this.#host.failed("the session was not compacted", error);
      return { ok: false, compacted: false, reason: `ctx: ${error.message}` };
    }
  }

  async maintain(given) {
    await this.#host.tell(given, "maintain");
    return { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
  }

  prepareSubagentSpawn(given) {
    return this.#host.prepareSubagentSpawn(given);
  }

  onSubagentEnded(given) {
    return this.#host.onSubagentEnded(given);
  }

  /** Sends the messages of a turn, and ends it. A turn that began in another process is sent later. */
  async #end(given, messages) {
    const { isHeartbeat, advancementKey } = given;
    const session = this.#host.session(given);
    try {
      if (this.#first) await session.sync(messages, { isHeartbeat, ...this.#first.settings });
      if (advancementKey) await session.tell("commit_turn", { advancementKey });
      await session.tell("after_turn");
    } catch (error) {
      this.#host.failed("the turn was not committed; the next request sends it again", error);
    }
  }
}
