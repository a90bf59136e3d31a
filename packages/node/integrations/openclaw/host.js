// What outlives a turn: the process of ctx, and what OpenClaw's calls say about its sessions.

import { ContextKeeper } from "../../src/index.js";
import { once } from "../../src/warnings.js";

export class Host {
  log = console;
  /** The size of the model's window, by session. */
  windows = new Map();
  /** The id of a session, by its key; a subagent's key has the session that started it. */
  #ids = new Map();
  #keeper;

  constructor({ program, home, engine, window, timeoutSeconds }) {
    this.window = window;
    this.#keeper = new ContextKeeper({
      format: "pi",
      model: null, // Each request names its own.
      engine,
      program,
      env: home ? { CTX_HOME: home } : {},
      timeout: timeoutSeconds && timeoutSeconds * 1000,
      maxSessions: 64,
      onWarning: once((text) => this.log.warn(`ctx: ${text}`)),
    });
  }

  /** Records what a call says about its session: the size of the window, and the key. */
  note({ sessionId, sessionKey, runtimeContext, runtimeSettings }) {
    const { maxOutputTokens, promptTokenBudget } = runtimeSettings?.limits ?? {};
    const whole = maxOutputTokens == null ? promptTokenBudget : undefined;
    const window = runtimeContext?.tokenBudget ?? whole;
    if (window > 0) remember(this.windows, sessionId, window);
    if (sessionKey) remember(this.#ids, sessionKey, sessionId);
  }

  /** Returns the session of a call, which is noted. */
  session(given) {
    this.note(given);
    return this.#keeper.session(given.sessionId);
  }

  /** Makes a call of ctx that has no answer. */
  async tell(given, method, params) {
    try {
      await this.session(given).tell(method, params);
    } catch (error) {
      this.failed(`${method} failed`, error);
    }
  }

  failed(what, error) {
    this.log.error(`ctx: ${what}: ${error.message}`);
  }

  /** Announces a subagent to the session that starts it. Returns the function that takes this back. */
  async prepareSubagentSpawn({ parentSessionKey, childSessionKey, parentSessionId, ttlMs }) {
    const sessionId = parentSessionId ?? this.#ids.get(parentSessionKey);
    if (!sessionId) return undefined;
    this.#ids.set(childSessionKey, sessionId);
    const child = { parentSessionKey, childSessionKey, ttlMs };
    await this.tell({ sessionId }, "prepare_subagent_spawn", child);
    return { rollback: () => this.tell({ sessionId }, "rollback_subagent_spawn", child) };
  }

  async onSubagentEnded({ childSessionKey, reason }) {
    const sessionId = this.#ids.get(childSessionKey);
    this.#ids.delete(childSessionKey);
    if (sessionId) await this.tell({ sessionId }, "on_subagent_ended", { childSessionKey, reason });
  }
}

function remember(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > 1_000) map.delete(map.keys().next().value);
}
