// Sessions of a host in `ctx rpc`: opened on first use, and reopened if ctx was restarted or the host's
// settings changed.

/** The maximum change in size of system prompt and tools, in characters, without reopening. */
const SLACK = 4_000;

/** The sessions of one host process; the least recently used are closed beyond `most`. */
export class Sessions {
  #ctx;
  #warn;
  #most;
  #known = new Map();

  /**
   * @param {import("./rpc.mjs").Ctx} ctx
   * @param {(text: string) => void} warn called with warnings for the user
   * @param {number} [most]
   */
  constructor(ctx, warn, most = 64) {
    this.#ctx = ctx;
    this.#warn = warn;
    this.#most = most;
  }

  /** Returns the session of an id. */
  of(id) {
    const session = this.#known.get(id) ?? new Session(this.#ctx, id, this.#warn);
    this.#known.delete(id);
    this.#known.set(id, session);
    if (this.#known.size > this.#most) this.close(this.#known.keys().next().value);
    return session;
  }

  /** Returns the session of an id, if this process has seen it. */
  known(id) {
    return this.#known.get(id);
  }

  /** Closes a session. */
  close(id) {
    const session = this.#known.get(id);
    this.#known.delete(id);
    session?.close().catch((error) => this.#warn(error.message));
  }
}

/** One session. Its calls are made in sequence. */
class Session {
  #ctx;
  #id;
  #warn;
  #opened;
  #queue = Promise.resolve();

  constructor(ctx, id, warn) {
    this.#ctx = ctx;
    this.#id = id;
    this.#warn = warn;
  }

  /** Whether the current ctx process has the session open. */
  get isOpen() {
    return this.#opened !== undefined && this.#opened.generation === this.#ctx.generation;
  }

  /** The parameters with which it was opened. */
  get settings() {
    return this.#opened?.settings;
  }

  /**
   * Assembles the messages of the next request from the whole history. Unchanged messages are returned
   * as the host's own objects; `from` contains the index of each in the history.
   *
   * @param {object} settings the parameters of `open`
   * @param {{messages: object[], ids?: (string | null)[]}} history
   * @param {object} [more] more parameters of `assemble`
   */
  request(settings, { messages, ids: named }, more = {}) {
    return this.#inTurn(settings, async () => {
      const { ids } = await this.#call("sync", { messages, ids: named });
      const made = await this.#call("assemble", more);
      const at = new Map(ids.map((id, index) => [id, index]));
      const from = made.ids.map((id) => at.get(id));
      const sent = made.messages.map((message, index) => {
        const own = messages[from[index]];
        return own && JSON.stringify(own) === JSON.stringify(message) ? own : message;
      });
      return { ...made, messages: sent, from };
    });
  }

  /**
   * Compacts the history. `kept` of the result is the index of the first kept message, if known.
   *
   * @param {object} settings the parameters of `open`
   * @param {{messages: object[], ids?: (string | null)[]} | undefined} history `undefined`: the
   *   messages sent so far
   * @param {object} options parameters of `compact`
   */
  compact(settings, history, options) {
    return this.#inTurn(settings, async () => {
      const ids = history && (await this.#call("sync", history)).ids;
      const made = await this.#call("compact", options);
      const kept = ids?.indexOf(made.result?.firstKeptEntryId) ?? -1;
      return { ...made, kept: kept < 0 ? undefined : kept };
    });
  }

  /** Makes any other call if the session is open; otherwise does nothing. */
  tell(method, params = {}) {
    return this.#queued(async () => (this.isOpen ? this.#call(method, params) : undefined));
  }

  close() {
    return this.tell("close");
  }

  #inTurn(settings, work) {
    return this.#queued(async () => {
      try {
        await this.#open(settings);
        return await work();
      } catch (error) {
        // The process ended: send everything to a new one, once.
        if (error.kind !== "gone") throw error;
        this.#warn(error.message);
        await this.#open(settings);
        return await work();
      }
    });
  }

  #queued(work) {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  async #open(settings) {
    if (this.isOpen && !differs(this.#opened.settings, settings)) return;
    if (this.isOpen) await this.#call("close", {});
    this.#opened = undefined;
    const generation = this.#ctx.generation;
    await this.#call("open", settings);
    this.#opened = { generation, settings };
  }

  async #call(method, params) {
    const answer = await this.#ctx.call(method, { sessionId: this.#id, ...params });
    for (const warning of answer.warnings ?? []) this.#warn(warning);
    return answer;
  }
}

// Whether a session must be reopened. Edits persist while it is open, and the prompt cache depends on
// them, so a small change of the system prompt, such as the current time, does not reopen it.
function differs(one, other) {
  const { systemPrompt: a, tools: b, ...rest } = one;
  const { systemPrompt: c, tools: d, ...others } = other;
  const size = (prompt, tools) => JSON.stringify([prompt, tools]).length;
  return JSON.stringify(rest) !== JSON.stringify(others) || Math.abs(size(a, b) - size(c, d)) > SLACK;
}
