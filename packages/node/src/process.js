// One process of `ctx rpc`: JSON-RPC 2.0 over its pipes, one object per line.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";

import { Gone, NotInstalled, Timeout, TooLarge, WrongVersion, ofAnswer } from "./errors.js";

// Bytes of a call; characters without an answer, of a program that may not be ctx, and of ctx; milliseconds
// of a timer.
const [MOST_CALL, MOST_FIRST, MOST_ANSWER, MOST_TIMEOUT] = [2 ** 26, 2 ** 16, 2 ** 28, 2 ** 31 - 1];

/** Returns the path of ctx: the one installed with this package, or the one on the PATH. */
function findProgram() {
  const name = process.platform === "win32" ? "ctx.exe" : "ctx";
  try {
    return createRequire(import.meta.url).resolve(`@ctxkeep/${process.platform}-${process.arch}/bin/${name}`);
  } catch {
    return name;
  }
}

/** Starts on first use, and again after it ended. */
export class Process {
  #options;
  #running;
  #starts = 0;
  #calls = 0;

  constructor({ program, env, timeout = 300_000 }) {
    this.#options = { program, env, timeout: Math.min(timeout, MOST_TIMEOUT) };
  }

  /** The number of the current or next process. A new process has no sessions of an old one. */
  get generation() {
    return this.#running ? this.#starts : this.#starts + 1;
  }

  /** Calls a method, and returns its result. */
  call(method, params) {
    this.#running ??= this.#start();
    return this.#send(this.#running, method, params);
  }

  /** Closes the pipe: ctx finishes running calls and exits. */
  async close() {
    const child = this.#running?.child;
    this.#running = undefined;
    if (!child?.pid || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    child.stdin.end();
    setTimeout(() => child.kill("SIGKILL"), 10_000).unref();
    await once(child, "exit");
  }

  #start() {
    this.#starts += 1;
    const { program = process.env.CTX_BIN || findProgram(), env, timeout } = this.#options;
    const hint = "install the version of ctx that belongs to this package, or set CTX_BIN to its path";
    const missing = (why) => new NotInstalled(`cannot start ${program}: ${why.message}`, "notFound", hint);
    let child;
    try {
      child = spawn(program, ["rpc"], { env: { ...process.env, ...env }, windowsHide: true });
    } catch (error) {
      throw missing(error);
    }
    const running = { child, timeout, waiting: new Map() };
    const ended = (error) => {
      if (this.#running === running) this.#running = undefined;
      for (const settle of running.waiting.values()) settle(error);
    };
    child.on("error", (error) => ended(missing(error)));
    // Too many files are open: the event says so.
    if (!child.stdin) return running;
    // Only a session keeps node alive. When node has ended, the pipe is closed, and ctx ends too.
    for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref?.();
    const refuse = (text) => {
      ended(new WrongVersion(text, "capability", hint));
      child.stdout.destroy();
      child.kill("SIGKILL");
    };
    let [most, noise, rest, said] = [MOST_FIRST, 0, "", ""];
    // `readline` would also split at U+2028, which may occur unescaped in JSON.
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      const pieces = chunk.split("\n");
      pieces[0] = rest + pieces[0];
      rest = pieces.pop();
      noise += chunk.length;
      for (const line of pieces) if (answered(running.waiting, line)) noise = rest.length;
      if (noise > most) refuse(`${program} is not ctx: it wrote ${noise} characters without an answer`);
    });
    child.stderr.setEncoding("utf8").on("data", (chunk) => (said = (said + chunk).slice(-MOST_FIRST)));
    // Writing to a process that has ended fails here; "close" says why.
    child.stdin.on("error", () => {});
    child.on("close", (code, signal) => {
      // An error, and its hint.
      const last = said.split("\n").filter((line) => line.trim()).slice(-3).join("; ");
      ended(new Gone(`ctx rpc ended with ${signal ?? `code ${code}`}${last && `: ${last}`}`, "gone"));
    });
    const check = (server) => {
      if (!server?.methods?.includes?.("fit")) refuse(`ctx ${server?.version} is too old for this package`);
      most = MOST_ANSWER;
    };
    this.#send(running, "initialize", { client: "ctxkeep" }).then(check, () => {});
    return running;
  }

  #send({ child, timeout, waiting }, method, params) {
    const id = ++this.#calls;
    return new Promise((resolve, reject) => {
      const line = JSON.stringify({ jsonrpc: "2.0", id, method, params });
      if (Buffer.byteLength(line) > MOST_CALL) {
        throw new TooLarge("the new messages are over 64 MiB", "overflow", "call `fit` when there are fewer");
      }
      const late = `ctx did not answer ${method} within ${timeout} ms`;
      const hint = "give a longer timeout: a compaction may wait for a model";
      const timer = setTimeout(() => settle(new Timeout(late, "timeout", hint)), timeout).unref();
      const settle = (error, result) => {
        clearTimeout(timer);
        waiting.delete(id);
        error ? reject(error) : resolve(result);
      };
      waiting.set(id, settle);
      child.stdin?.write(`${line}\n`);
    });
  }
}

/** Settles the call that a line answers, or all if ctx could not read one. Returns whether it is one. */
function answered(waiting, line) {
  try {
    const { id, result, error } = JSON.parse(line);
    const calls = id === null && error ? [...waiting.values()] : [waiting.get(id)];
    for (const settle of calls) settle?.(result ? undefined : ofAnswer(error ?? {}), result);
    return id !== undefined;
  } catch {
    return false; // Not JSON, so not an answer.
  }
}
