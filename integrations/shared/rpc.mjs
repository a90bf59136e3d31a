// A client of `ctx rpc`: JSON-RPC 2.0 over a child process's pipes, one object per line.
// The integrations share it. Standard library of Node only.

import { spawn } from "node:child_process";

/** An error that ctx returned, or the reason why it returned nothing. */
export class CtxError extends Error {
  /**
   * @param {string} message
   * @param {string} kind one of the kinds of docs/rpc.md; `gone` if the process ended
   * @param {string} [hint] what to do next
   */
  constructor(message, kind, hint) {
    super(hint ? `${message} (${hint})` : message);
    this.name = "CtxError";
    this.kind = kind;
  }
}

/** One process of `ctx rpc`: started on first use, and restarted if it has ended. */
export class Ctx {
  #program;
  #env;
  #timeout;
  #say;
  #running;
  #starts = 0;

  /**
   * @param {object} [options]
   * @param {string} [options.program] the binary; default: `$CTX_BIN`, else `ctx` on the PATH
   * @param {Record<string, string>} [options.env] additional environment variables, such as `CTX_HOME`
   * @param {number} [options.timeout] timeout of a call, in milliseconds; default: 300,000,
   *   as a compaction may call a model several times
   * @param {(line: string) => void} [options.say] called with messages for the user
   */
  constructor({ program, env = {}, timeout = 300_000, say = () => {} } = {}) {
    this.#program = program || process.env.CTX_BIN || "ctx";
    this.#env = env;
    this.#timeout = timeout;
    this.#say = say;
  }

  /** The number of the current or next process. A new process has no sessions of an earlier one. */
  get generation() {
    return this.#running ? this.#starts : this.#starts + 1;
  }

  /** Calls a method, and returns its result. */
  call(method, params) {
    this.#running ??= this.#start();
    return this.#running.call(method, params);
  }

  /** Closes the pipe: ctx finishes running calls and exits. The next call starts another process. */
  end() {
    this.#running?.end();
    this.#running = undefined;
  }

  #start() {
    this.#starts += 1;
    const running = new Running(this.#program, this.#env, this.#timeout, this.#say, () => {
      if (this.#running === running) this.#running = undefined;
    });
    return running;
  }
}

/** One running process, and the calls that wait for it. */
class Running {
  #child;
  #waiting = new Map();
  #calls = 0;
  #timeout;
  #ended;
  #last = "";

  constructor(program, env, timeout, say, ended) {
    this.#timeout = timeout;
    this.#ended = ended;
    this.#child = spawn(program, ["rpc"], {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    const gone = (why) => this.#gone(why);
    this.#child.on("error", (error) => gone(`${program} rpc does not run: ${error.message}`));
    this.#child.on("close", (code, signal) => {
      const last = this.#last && `: ${this.#last}`;
      gone(`${program} rpc ended with ${signal ?? `code ${code}`}${last}`);
    });
    // Writing to a process that has ended fails here; "close" handles it.
    this.#child.stdin.on("error", () => {});
    lines(this.#child.stdout, (line) => this.#answered(line));
    lines(this.#child.stderr, (line) => {
      if (!line.trim()) return;
      this.#last = line;
      say(line);
    });
    this.#hold(false);
  }

  call(method, params) {
    const id = ++this.#calls;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#settle(id);
        reject(new CtxError(`ctx did not answer ${method} within ${this.#timeout} ms`, "timeout"));
      }, this.#timeout);
      timer.unref();
      this.#waiting.set(id, { resolve, reject, timer });
      this.#hold(true);
      this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  }

  end() {
    this.#child.stdin.end();
  }

  #answered(line) {
    let answer;
    try {
      answer = JSON.parse(line);
    } catch {
      return; // Not JSON, so not an answer.
    }
    const call = this.#settle(answer.id);
    if (!call) return;
    if (!answer.error) {
      call.resolve(answer.result);
      return;
    }
    const { message, data } = answer.error;
    call.reject(new CtxError(message, data?.kind ?? "protocol", data?.hint));
  }

  #settle(id) {
    const call = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (call) clearTimeout(call.timer);
    if (this.#waiting.size === 0) this.#hold(false);
    return call;
  }

  #gone(why) {
    this.#ended();
    for (const id of [...this.#waiting.keys()]) {
      this.#settle(id)?.reject(new CtxError(why, "gone"));
    }
  }

  // The host may exit while ctx is idle, but not while a call is pending. When the host has exited,
  // the pipe is closed, and ctx ends too.
  #hold(held) {
    const { stdin, stdout, stderr } = this.#child;
    for (const handle of [this.#child, stdin, stdout, stderr]) {
      if (held) handle.ref?.();
      else handle.unref?.();
    }
  }
}

// `readline` would also split at U+2028, which may occur unescaped in JSON.
function lines(stream, take) {
  let parts = [];
  stream.setEncoding("utf8");
  stream.on("data", (chunk) => {
    const pieces = chunk.split("\n");
    for (const piece of pieces.slice(0, -1)) {
      take(parts.join("") + piece);
      parts = [];
    }
    if (pieces.at(-1)) parts.push(pieces.at(-1));
  });
}
