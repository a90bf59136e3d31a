// node --test integrations/openclaw/test.mjs      ($CTX_BIN names the binary)
//
// The calls and their order are those of a gateway; `tests/clients/run.sh openclaw` runs a real one.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import register from "./index.js";

const folder = mkdtempSync(join(tmpdir(), "ctx-openclaw-"));
after(() => rmSync(folder, { recursive: true }));
const WINDOW = 40_000;
const RESERVE = 10_000;
const SYSTEM = 5_000;

function host(config = {}) {
  const log = [];
  const logger = { warn: (line) => log.push(line), error: (line) => log.push(`error ${line}`) };
  let factory;
  const pluginConfig = { home: join(folder, "home"), ...config };
  register({ pluginConfig, logger, registerContextEngine: (_id, made) => (factory = made) });
  return { engine: () => factory({ config: {} }), log };
}

const at = (sessionId, more) => ({ sessionId, sessionKey: `agent:main:${sessionId}`, ...more });
const model = { requested: "m", resolved: "m", provider: "fake" };

/** The first request of a turn. */
function first(sessionId, messages, prompt) {
  const tokenBudget = WINDOW - RESERVE - SYSTEM - Math.ceil(prompt.length / 4);
  const limits = { promptTokenBudget: tokenBudget, maxOutputTokens: RESERVE };
  const runtimeSettings = { model, limits };
  return at(sessionId, { messages, prompt, tokenBudget, model: "m", runtimeSettings, runtimeContext: undefined });
}

/** A request in the middle of a turn that has added this number of tokens. */
function later(sessionId, messages, prompt, added) {
  const limits = { promptTokenBudget: WINDOW, maxOutputTokens: null };
  const runtimeSettings = { model, limits };
  return at(sessionId, { messages, prompt, tokenBudget: WINDOW - added, model: "m", runtimeSettings });
}

function turn(n, characters = 20_000) {
  const call = { type: "toolCall", id: `call-${n}`, name: "read", arguments: { n } };
  const result = { toolCallId: call.id, toolName: "read", isError: false };
  const text = `line of ${n}\n`.repeat(characters / 10);
  return [
    { role: "user", content: `question ${n}`, timestamp: n },
    { role: "assistant", content: [{ type: "text", text: "I look." }, call], stopReason: "toolUse" },
    { role: "toolResult", ...result, content: [{ type: "text", text }] },
    { role: "assistant", content: [{ type: "text", text: `answer ${n}` }], stopReason: "stop" },
  ];
}

/** Runs a whole turn like the host. Returns the last messages sent to the model, and the history. */
async function held(engine, id, history, n) {
  const messages = turn(n);
  await engine.bootstrap(at(id, { runtimeContext: { tokenBudget: WINDOW } }));
  await engine.assemble(first(id, history, `question ${n}`));
  const again = await engine.assemble(later(id, history, `question ${n}`, 5_100));
  await engine.commitTurn(at(id, { advancementKey: `turn-${n}`, messages }));
  await engine.maintain(at(id, {}));
  await engine.dispose();
  return { seen: again.messages, history: [...history, ...messages] };
}

test("both fields without which OpenClaw runs its own engine are declared", () => {
  const { info, commitTurn } = host().engine();
  assert.equal(info.transcriptSemantics.currentTurnFence, "before-current-turn-entry-v1");
  assert.equal(info.transcriptSemantics.turnAdvancementIdempotency, "atomic-idempotent-v1");
  assert.equal(typeof commitTurn, "function");
});

test("a session longer than the window fits, with a new engine for each turn", async () => {
  const { engine, log } = host();
  let state = { history: [], seen: [] };
  for (let n = 0; n < 9; n += 1) state = await held(engine(), "long", state.history, n);
  const size = JSON.stringify(state.seen).length / 4;
  assert.ok(JSON.stringify(state.history).length / 4 > WINDOW, "the history alone exceeds the window");
  assert.ok(size < WINDOW - RESERVE - SYSTEM - 5_100, `${size} tokens are sent`);
  const calls = state.seen.flatMap((m) => (m.role === "assistant" ? m.content : [])).filter((b) => b.id);
  const results = state.seen.filter((m) => m.role === "toolResult");
  assert.deepEqual(calls.map((c) => c.id), results.map((r) => r.toolCallId));
  assert.deepEqual(log, []);
});

test("the prompt, which the host adds, is not returned", async () => {
  const { engine } = host();
  const history = turn(1, 100);
  const made = await engine().assemble(first("prompt", history, "question 2"));
  assert.deepEqual(made.messages, history);
});

test("messages of a later request do not replace the history", async () => {
  const { engine } = host();
  const one = engine();
  const history = [...turn(1, 100), ...turn(2, 100)];
  await one.assemble(first("shown", history, "question 3"));
  const made = await one.assemble(later("shown", history.slice(4), "question 3", 100));
  assert.equal(made.messages.length, history.length);
});

test("an overflow causes a compaction, and the next attempt contains the summary", async () => {
  const { engine } = host();
  const one = engine();
  const history = [1, 2, 3, 4].flatMap((n) => turn(n));
  await one.bootstrap(at("overflow", { runtimeContext: { tokenBudget: WINDOW } }));
  await one.assemble(first("overflow", history, "question 5"));
  const runtimeContext = { trigger: "overflow", attempt: 1, maxAttempts: 3, tokenBudget: WINDOW };
  const made = await one.compact(at("overflow", { force: true, currentTokenCount: 41_000, runtimeContext }));
  assert.ok(made.ok && made.compacted, made.reason);
  assert.ok(made.result.tokensAfter < made.result.tokensBefore);
  const next = await one.assemble(first("overflow", history, "question 5"));
  assert.ok(next.messages.length < history.length);
  assert.ok(next.messages.some((m) => m.role === "compactionSummary" && m.summary === made.result.summary));
});

test("a session that ctx has not seen is not compacted, and the result says why", async () => {
  const made = await host().engine().compact(at("unseen", { force: true }));
  assert.equal(made.compacted, false);
  assert.match(made.reason, /has not seen/);
});

test("subagents are announced to the engine of the session that starts them", async () => {
  const { engine, log } = host();
  const one = engine();
  await one.assemble(first("parent", turn(1, 100), "question 2"));
  const child = { parentSessionKey: "agent:main:parent", childSessionKey: "agent:main:child" };
  const spawned = await one.prepareSubagentSpawn({ ...child, ttlMs: 1_000 });
  await spawned.rollback();
  await one.prepareSubagentSpawn(child);
  await one.onSubagentEnded({ childSessionKey: child.childSessionKey, reason: "completed" });
  assert.deepEqual(log, []);
});

test("without ctx the host's own messages are sent, and each time the log says so", async () => {
  const { engine, log } = host({ program: join(folder, "none") });
  const history = turn(1, 100);
  const one = engine();
  const made = await one.assemble(first("none", history, "question 2"));
  assert.equal(made.messages, history);
  assert.equal(made.promptAuthority, "preassembly_may_overflow");
  const committed = await one.commitTurn(at("none", { advancementKey: "t", messages: turn(2, 100) }));
  assert.equal(committed.status, "committed");
  await one.assemble(first("none", history, "question 3"));
  const failures = log.filter((line) => /^error ctx: the request goes out with OpenClaw's own/.test(line));
  assert.equal(failures.length, 2);
});
