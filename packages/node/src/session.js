// One conversation, and what `fit` returns for it.

import { copied, revive, same } from "./plain.js";

/**
 * The result of `fit`.
 *
 * `messages` are the messages to send: unchanged ones are the caller's own objects. `own` has for each
 * its index in the caller's list, or undefined for a new message. `changed` is whether the messages to
 * send differ from the given ones.
 */
export class Fitted {
  constructor({ messages: sent, systemPromptAddition: systemAddition, engine: _, ...more }, given, texts) {
    this.own = sent.map((message) => (typeof message === "number" ? message : undefined));
    if (texts.size > 0) revive(sent, texts);
    this.messages = sent.map((message, n) => given[this.own[n]] ?? message);
    Object.assign(this, { systemAddition, edits: [], compactions: [], warnings: [] }, more);
    this.changed = this.acted.length > 0 || this.compactions.length > 0;
  }

  /** Returns a framework's messages: its own where they are unchanged, and `made` of the new ones. */
  restored(messages, made) {
    return this.messages.map((message, n) => messages[this.own[n]] ?? made(message));
  }
}

/** One conversation. Its calls are made one after the other. */
export class Session {
  manifest = [];
  /** The number of calls that are not answered yet. */
  calls = 0;
  #shared;
  #queue = Promise.resolve();
  #opened;
  #sent = nothing();

  /** `shared` has the process `ctx`, the parameters of `open`, and the function that receives warnings. */
  constructor(id, shared) {
    this.id = id;
    this.#shared = shared;
  }

  /** Returns the messages to send for a conversation: all of them, if they fit. */
  fit(messages, { signal, ...options } = {}) {
    const given = [...messages];
    return this.#queued(async () => {
      const fitted = new Fitted(await this.#again(() => this.#fit(given, options)), given, this.#sent.texts);
      this.manifest = fitted.edits;
      this.receipt = fitted.compactions.at(-1) ?? this.receipt;
      return fitted;
    }, signal);
  }

  async #fit(messages, { ids, system, tools, pendingTokens, ...settings }) {
    await this.#open(settings);
    const had = this.#sent;
    const isSent = (at) => had.ids[at] === ids?.[at] && same(had.messages[at], messages[at]);
    let keep = 0;
    while (keep < had.messages.length && isSent(keep)) keep += 1;
    const texts = keep > 0 ? had.texts : new Map();
    const fresh = messages.slice(keep).map((message) => copied(message, texts));
    const sizes = Object.entries({ systemPrompt: system, tools });
    const news = copied(Object.fromEntries(sizes.filter(([name, size]) => !same(had.sizes[name], size))));
    // Until ctx has answered, it is unknown what it has.
    this.#sent = nothing();
    const params = { keep, messages: fresh, ids: ids?.slice(keep), pendingTokens, ...news };
    const answer = await this.#call("fit", params);
    const sent = [...had.messages.slice(0, keep), ...fresh];
    this.#sent = { messages: sent, ids: [...(ids ?? [])], sizes: { ...had.sizes, ...news }, texts };
    return answer;
  }

  /** Sends the conversation without making a request. Returns the id of each message. */
  sync(messages, { ids, isHeartbeat, ...settings } = {}) {
    const params = { messages: [...messages], ids, isHeartbeat };
    const work = async () => {
      await this.#open(settings);
      return (await this.#call("sync", copied(params))).ids;
    };
    return this.#queued(() => this.#again(work));
  }

  /** Compacts the conversation as it was sent last; the next request has the summary. */
  compact({ instructions, force = true, signal, ...options } = {}) {
    return this.#queued(async () => {
      const answer = await this.#call("compact", { ...options, force, customInstructions: instructions });
      if (answer.compacted) this.receipt = answer.result;
      return answer;
    }, signal);
  }

  /** Undoes the last compaction. Returns whether there was one. */
  async undo() {
    return (await this.#asked("undo")).undone;
  }

  /** Returns the original text of messages by id, as a summary names them. */
  async expand(ids) {
    const all = [ids].flat().join(" ").match(/[^\s[\],;#]+/g) ?? [];
    const texts = {};
    // ctx answers for at most 8 at once.
    while (all.length > 0) {
      const { messages } = await this.#asked("expand", { id: all.splice(0, 8).join(" ") });
      for (const { id, text } of messages) texts[id] = text;
    }
    return texts;
  }

  /** Returns excerpts of messages that the last request does not have. */
  async recall(query) {
    return (await this.#asked("recall", { query })).found;
  }

  /** Reports the provider's count for the last request, which corrects ctx's counts. */
  async usage(promptTokens) {
    return (await this.#asked("usage", { promptTokens })).calibration;
  }

  /** Returns how full the conversation is. */
  status() {
    return this.#asked("status");
  }

  /** Makes any other call of docs/rpc.md, if ctx has the conversation; otherwise does nothing. */
  tell(method, params) {
    return this.#queued(async () => (this.#isOpen ? this.#call(method, params) : undefined));
  }

  /** Ends the session in ctx. */
  async close() {
    await this.#queued(() => this.#close());
  }

  #asked(method, params) {
    return this.#queued(() => this.#call(method, params));
  }

  // A call that the caller gives up is still awaited by the next one.
  #queued(work, signal) {
    this.calls += 1;
    const done = this.#queue.then(() => signal?.throwIfAborted()).then(work);
    this.#queue = done.catch(() => {}).then(() => (this.calls -= 1));
    return awaited(done, signal);
  }

  /** Repeats work once after the process ended, or lost the conversation: all is sent again. */
  #again(work) {
    return work().catch((error) => {
      // What `open` refused, it would refuse again.
      const isLost = this.#isOpen && ["conflict", "notFound"].includes(error.kind);
      if (!isLost && error.kind !== "gone") throw error;
      if (error.kind === "notFound") this.#opened = undefined;
      return work();
    });
  }

  get #isOpen() {
    return this.#opened?.generation === this.#shared.ctx.generation;
  }

  async #open(more) {
    const settings = { ...this.#shared.settings, ...copied(more) };
    if (this.#isOpen && same(this.#opened.settings, settings)) return;
    await this.#close();
    this.#sent = nothing();
    const { generation } = this.#shared.ctx;
    await this.#call("open", settings).catch(async (error) => {
      if (error.kind !== "conflict") throw error;
      // An earlier `open` was given up, or ctx still ends one that it refused.
      await this.#call("close").catch(() => {});
      await this.#call("open", settings);
    });
    this.#opened = { generation, settings: copied(settings) };
  }

  async #close() {
    const isOpen = this.#isOpen;
    this.#opened = undefined;
    if (isOpen) await this.#call("close");
  }

  async #call(method, params) {
    const answer = await this.#shared.ctx.call(method, { sessionId: this.id, ...params });
    for (const text of answer.warnings ?? []) this.#shared.warn(text);
    return answer;
  }
}

/** What the last `fit` sent: messages, their ids, and the system prompt and the tools. */
const nothing = () => ({ messages: [], ids: [], sizes: {}, texts: new Map() });

/** Returns a promise that keeps node alive until it is settled, which the signal does too. */
function awaited(promise, signal) {
  const timer = setInterval(() => {}, 2 ** 30);
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal?.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal?.removeEventListener("abort", abort));
    if (signal?.aborted) abort();
  }).finally(() => clearInterval(timer));
}
