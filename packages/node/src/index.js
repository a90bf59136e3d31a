// Keeps the conversations of an agent inside the window of its model, with ctx.

import { CtxError } from "./errors.js";
import { Process } from "./process.js";
import { Session } from "./session.js";
import { once } from "./warnings.js";

export * from "./errors.js";
export { Fitted, Session } from "./session.js";

/** Keeps conversations inside the window of their model, by one process of `ctx rpc`. */
export class ContextKeeper {
  #shared;
  #most;
  #sessions = new Map();

  /** See `index.d.ts`. Further options are parameters of `open` in docs/rpc.md. */
  constructor({ program, env, timeout, maxSessions = 1000, onWarning, format = "openai", ...settings } = {}) {
    // With the model null, each call names it.
    if (settings.model === undefined && !Number.isFinite(settings.window)) {
      throw new TypeError("give a model, or the window of one that ctx does not know");
    }
    const warn = onWarning ?? once((text) => process.emitWarning(text, "CtxWarning"));
    this.#shared = { ctx: new Process({ program, env, timeout }), settings: { format, ...settings }, warn };
    this.#most = maxSessions;
  }

  /** Returns the conversation with that id. The least recently used ones without a call are closed. */
  session(id) {
    const name = String(id ?? "default");
    const session = this.#sessions.get(name) ?? new Session(name, this.#shared);
    this.#sessions.delete(name);
    for (const [oldest, left] of this.#sessions) {
      if (this.#sessions.size < this.#most) break;
      if (left.calls > 0) continue;
      this.#sessions.delete(oldest);
      left.close().catch((error) => this.#shared.warn(error.message));
    }
    this.#sessions.set(name, session);
    return session;
  }

  /** Returns the messages to send; see `Session.fit`. */
  fit(messages, { session, ...options } = {}) {
    return this.session(session).fit(messages, options);
  }

  /** Like `fit`, but returns undefined, with a warning, if ctx fails: the messages stay as they are. */
  async fitOrKeep(messages, options) {
    try {
      return await this.fit(messages, options);
    } catch (error) {
      if (!(error instanceof CtxError)) throw error;
      this.#shared.warn(`ctx failed, the request is made without it: ${error.message}`);
      return undefined;
    }
  }

  /** Ends the process. The next call starts another one. */
  close() {
    return this.#shared.ctx.close();
  }

  [Symbol.asyncDispose] = () => this.close();
}
