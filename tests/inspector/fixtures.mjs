// A home with sessions, a hostile transcript, and one of 100,000 entries.

import { execFileSync } from "node:child_process";
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// Any script in it that runs sets `window.hit`.
export const HOSTILE = "<script>window.hit=1</script><img src=x onerror=\"window.hit=1\">'\"><svg onload=window.hit=1> \u202e</textarea></script>${window.hit=1}";

const START = Date.parse("2026-03-11T18:04:00Z");

export function ctx(run, ...args) {
  return execFileSync(run.bin, args, { env: run.env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

// Writes a home whose main agent has two sessions, one of them compacted, and a memory.
export function makeHome(run) {
  const sessions = join(run.home, "agents", "main", "sessions");
  mkdirSync(sessions, { recursive: true, mode: 0o700 });
  const ids = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
  const keys = ["agent:main:main", "agent:main:review"];
  const sources = ["fix-flaky-test.jsonl", "claude-code.jsonl"];
  const store = {};
  ids.forEach((id, at) => {
    const file = join(sessions, `${id}.jsonl`);
    ctx(run, "convert", join(run.examples, sources[at]), "--to", "ctx", "-o", file);
    store[keys[at]] = { sessionId: id, updatedAt: Date.now() - at * 3600e3, displayName: at ? "Review of the pauses" : "The flaky test" };
  });
  writeFileSync(join(sessions, "sessions.json"), JSON.stringify(store), { mode: 0o600 });
  const first = join(sessions, `${ids[0]}.jsonl`);
  ctx(run, "compact", first, "--window", "64k", "--force");
  // The session continues after the compaction.
  let leaf = JSON.parse(readFileSync(first, "utf8").trim().split("\n").at(-1)).id;
  for (let n = 100; n < 104; n += 1) {
    const more = exchange(leaf, n);
    appendFileSync(first, more.text);
    leaf = more.leaf;
  }
  ctx(run, "memory", "ingest", first);
  const growing = join(run.dir, "growing.jsonl");
  copyFileSync(join(run.examples, "fix-flaky-test.jsonl"), growing);
  return { first, growing };
}

function line(value) {
  return JSON.stringify(value) + "\n";
}

function message(n, parentId, role, content, more = {}) {
  const at = START + (n % 0x10000000) * 1000;
  return { type: "message", id: `${n.toString(16).padStart(8, "0")}`, parentId, timestamp: new Date(at).toISOString(), message: { role, content, timestamp: at, ...more } };
}

// Returns an exchange for the end of a transcript in pi's format.
export function exchange(parentId, n) {
  const question = message(0xf0000000 + 2 * n, parentId, "user", [{ type: "text", text: `One more question, number ${n}` }]);
  const answer = message(0xf0000001 + 2 * n, question.id, "assistant", [{ type: "text", text: `And its answer, number ${n}` }], usage());
  return { text: line(question) + line(answer), leaf: answer.id };
}

function usage() {
  return { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5", stopReason: "stop", usage: { input: 10, output: 10, cacheRead: 0, cacheWrite: 0, totalTokens: 20, cost: { total: 0 } } };
}

// Writes a transcript with markup wherever it may contain text: ids, names of tools, arguments, models, the
// file's name.
export function writeHostile(dir) {
  const folder = join(dir, "hostile");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "<img src=x onerror=window.hit=1>.jsonl");
  let text = line({ type: "session", version: 3, id: HOSTILE, timestamp: new Date(START).toISOString(), cwd: HOSTILE });
  text += line({ type: "model_change", id: "m", parentId: null, timestamp: new Date(START).toISOString(), provider: HOSTILE, modelId: HOSTILE });
  text += line({ type: "session_info", id: "i", parentId: "m", timestamp: new Date(START).toISOString(), name: HOSTILE });
  let parent = "i";
  for (let n = 0; n < 120; n += 1) {
    const id = `${HOSTILE}${n}`;
    const call = { type: "toolCall", id: `call${HOSTILE}${n}`, name: HOSTILE, arguments: { [HOSTILE]: HOSTILE } };
    const entries = [
      ["user", [{ type: "text", text: `${HOSTILE} please look at ${"a long text ".repeat(40)}` }], {}],
      ["assistant", [{ type: "thinking", thinking: HOSTILE }, { type: "text", text: HOSTILE }, call], { ...usage(), model: HOSTILE, provider: HOSTILE }],
      ["toolResult", [{ type: "text", text: `${HOSTILE}\n${"output of it ".repeat(120)}` }], { toolCallId: call.id, toolName: HOSTILE, isError: n % 3 === 0 }],
    ];
    for (const [role, content, more] of entries) {
      const entry = { ...message(n, parent, role, content, more), id: `${id}-${role}` };
      text += line(entry);
      parent = entry.id;
    }
  }
  writeFileSync(file, text);
  return file;
}

export const ARABIC = "مرحبا بالعالم، هذا نص يكتب من اليمين إلى اليسار ويحتوي على اسم ملف lease.rs في وسطه. ".repeat(4).trim();
export const WORD = "Donaudampfschifffahrtsgesellschaftskapitaensmuetze".repeat(30);
export const LONG_WORD = 5_000_000;

// Writes a transcript of right-to-left text, a word of 1,500 letters, and five megabytes without a space.
export function writeStrange(dir) {
  const file = join(dir, `${"a-very-long-name-without-spaces-".repeat(6)}.jsonl`);
  let text = line({ type: "session", version: 3, id: "strange", timestamp: new Date(START).toISOString(), cwd: "/" });
  let parent = null;
  [ARABIC, `${WORD} ${WORD}`, "x".repeat(LONG_WORD), "I see."].forEach((content, n) => {
    const entry = message(n, parent, n % 2 ? "assistant" : "user", [{ type: "text", text: content }], n % 2 ? { ...usage(), model: WORD } : {});
    text += line(entry);
    parent = entry.id;
  });
  writeFileSync(file, text);
  return file;
}

export const SESSIONS = 1_000;

// Writes a home of many small sessions.
export function writeMany(dir) {
  const home = join(dir, "many");
  const sessions = join(home, "agents", "main", "sessions");
  mkdirSync(sessions, { recursive: true, mode: 0o700 });
  const store = {};
  for (let n = 0; n < SESSIONS; n += 1) {
    const id = `session-${n}`;
    const head = line({ type: "session", version: 3, id, timestamp: new Date(START).toISOString(), cwd: "/" });
    writeFileSync(join(sessions, `${id}.jsonl`), head + exchange(null, n).text, { mode: 0o600 });
    store[`agent:main:s${n}`] = { sessionId: id, updatedAt: START + n * 60e3, displayName: `Session number ${n}` };
  }
  writeFileSync(join(sessions, "sessions.json"), JSON.stringify(store), { mode: 0o600 });
  return home;
}

// Writes a transcript of many short messages.
export function writeLarge(dir, entries) {
  const file = join(dir, "large.jsonl");
  const parts = [line({ type: "session", version: 3, id: "large", timestamp: new Date(START).toISOString(), cwd: "/" })];
  let parent = null;
  for (let n = 0; n < entries; n += 1) {
    const isAnswer = n % 2 === 1;
    const entry = message(n, parent, isAnswer ? "assistant" : "user", [{ type: "text", text: `Entry number ${n} of many` }], isAnswer ? usage() : {});
    parts.push(line(entry));
    parent = entry.id;
  }
  writeFileSync(file, parts.join(""));
  return file;
}
