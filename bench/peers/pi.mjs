// Runs one job with pi's own code and times it, for `cargo xtask bench`, with the node that npm installed.
//
//   node pi.mjs open FILE ROUNDS     open the session and rebuild its context, warm
//   node pi.mjs count FILE ROUNDS    the same, and estimate every message of the context
//   node pi.mjs status FILE          the same once, in a cold process
//   node pi.mjs append FILE ENTRIES  append that many user messages of 200 characters
//
// To be fair to pi, it imports only the two required modules, not the whole package.
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

const PACKAGE = path.join(
  path.dirname(fileURLToPath(import.meta.url)),
  "node_modules/@earendil-works/pi-coding-agent",
);
const load = (file) => import(pathToFileURL(path.join(PACKAGE, "dist/core", file)).href);
const { SessionManager } = await load("session-manager.js");
const { estimateTokens } = await load("compaction/compaction.js");

const [job, file, count = "1"] = process.argv.slice(2);

function cpuMs(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

function context() {
  return SessionManager.open(file).buildSessionContext().messages;
}

function tokens(messages) {
  return messages.reduce((sum, message) => sum + estimateTokens(message), 0);
}

function rounds(work) {
  const times = [];
  let result;
  for (let i = 0; i < Number(count); i++) {
    const start = process.cpuUsage();
    result = work();
    times.push(cpuMs(start));
  }
  return { cpuMs: times, result };
}

const jobs = {
  open: () => rounds(() => context().length),
  count: () => rounds(() => tokens(context())),
  status: () => {
    const messages = context();
    return { messages: messages.length, tokens: tokens(messages) };
  },
  append: () => {
    const session = SessionManager.open(file);
    const text = "x".repeat(200);
    const start = performance.now();
    for (let i = 0; i < Number(count); i++) {
      session.appendMessage({ role: "user", content: [{ type: "text", text }], timestamp: i });
    }
    return { usPerEntry: ((performance.now() - start) * 1000) / Number(count) };
  },
};

if (!(job in jobs) || !file) {
  console.error("usage: node pi.mjs open|count|status|append FILE [COUNT]");
  process.exit(2);
}
const { version } = JSON.parse(readFileSync(path.join(PACKAGE, "package.json"), "utf8"));
console.log(JSON.stringify({ version, node: process.version, ...jobs[job]() }));
