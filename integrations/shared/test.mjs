// node --test integrations/shared/test.mjs      ($CTX_BIN names the binary)

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Ctx } from "./rpc.mjs";
import { Sessions } from "./session.mjs";

const folder = mkdtempSync(join(tmpdir(), "ctx-rpc-"));
after(() => rmSync(folder, { recursive: true }));
const env = { CTX_HOME: join(folder, "home") };
const settings = { window: 40_000, format: "pi" };

/** Wraps the binary in a script that runs the shell command `first`, records its pid, and starts it. */
function noted(name, first = "") {
  const [program, pids] = [join(folder, name), join(folder, `${name}.pids`)];
  const binary = process.env.CTX_BIN ?? "ctx";
  writeFileSync(program, `#!/bin/sh\n${first}\necho $$ >> "${pids}"\nexec "${binary}" "$@"\n`);
  chmodSync(program, 0o755);
  return { program, pids: () => readFileSync(pids, "utf8").trim().split("\n").map(Number) };
}

function started(name, more = {}) {
  const { program, pids } = noted(name);
  const warned = [];
  const ctx = new Ctx({ program, env, ...more });
  const sessions = new Sessions(ctx, (text) => warned.push(text), more.most);
  return { ctx, sessions, pids, warned };
}

const said = (n) => [
  { role: "user", content: `question ${n} \u2028 with a separator that JSON allows` },
  { role: "assistant", content: [{ type: "text", text: `answer ${n}` }] },
];

test("one process serves all sessions of a host", async () => {
  const { ctx, sessions, pids } = started("one");
  const asked = ["a", "b", "c"].map((id) => sessions.of(id).request(settings, { messages: said(id) }));
  const texts = (await Promise.all(asked)).map((made) => made.messages[1].content[0].text);
  assert.deepEqual(texts, ["answer a", "answer b", "answer c"]);
  assert.equal(pids().length, 1);
  ctx.end();
});

test("unchanged messages are the host's own objects", async () => {
  const { ctx, sessions } = started("own");
  const messages = [...said(1), ...said(2)];
  const made = await sessions.of("a").request(settings, { messages });
  assert.ok(made.messages.every((message, n) => message === messages[n]));
  assert.deepEqual(made.from, [0, 1, 2, 3]);
  ctx.end();
});

test("a killed process is replaced, and gets the whole history", async () => {
  const { ctx, sessions, pids, warned } = started("killed");
  const session = sessions.of("a");
  await session.request(settings, { messages: said(1) });
  process.kill(pids()[0], "SIGKILL");
  const made = await session.request(settings, { messages: [...said(1), ...said(2)] });
  assert.equal(made.messages.length, 4);
  assert.equal(pids().length, 2);
  assert.ok(warned.length <= 1, "at most one warning, if the call was sent before the exit was noticed");
  assert.equal((await session.tell("status")).messages, 4);
  ctx.end();
});

test("a call without an open session does nothing", async () => {
  const { sessions } = started("nobody");
  assert.equal(await sessions.of("a").tell("maintain"), undefined);
});

test("a missing binary is an error that names it", async () => {
  const sessions = new Sessions(new Ctx({ program: join(folder, "none") }), () => {});
  const asked = sessions.of("a").request(settings, { messages: said(1) });
  await assert.rejects(asked, { kind: "gone", message: /none rpc does not run: .*ENOENT/ });
});

test("a process that ends at once is an error with its message", async () => {
  const { program } = noted("broken", 'echo "error: no such thing" >&2; exit 3');
  const sessions = new Sessions(new Ctx({ program, env }), () => {});
  const asked = sessions.of("a").request(settings, { messages: said(1) });
  await assert.rejects(asked, { kind: "gone", message: /code 3: error: no such thing/ });
});

test("an answer that is late is an error", async () => {
  const { program } = noted("deaf", "exec sleep 60");
  const deaf = new Ctx({ program, timeout: 50 });
  await assert.rejects(deaf.call("initialize", {}), { kind: "timeout" });
  deaf.end();
});

test("errors of ctx keep their kind and hint", async () => {
  const { ctx, sessions } = started("kinds");
  const asked = sessions.of("a").request({ window: 1_000 }, { messages: said(1) });
  await assert.rejects(asked, { name: "CtxError", kind: "windowTooSmall" });
  await assert.rejects(ctx.call("status", { sessionId: "x" }), { kind: "notFound", message: /`open`/ });
  ctx.end();
});

test("a system prompt that changes a little does not lose the session, another window does", async () => {
  const { ctx, sessions } = started("settings");
  const session = sessions.of("a");
  const opened = async (more) => {
    await session.request({ ...settings, ...more }, { messages: said(1) });
    return (await session.tell("status")).window;
  };
  assert.equal(await opened({ systemPrompt: "It is 10:00." }), 40_000);
  await session.tell("append", { messages: said(2) });
  assert.equal(await opened({ systemPrompt: "It is 10:01." }), 40_000);
  assert.equal(await opened({ systemPrompt: "It is 10:01.", window: 50_000 }), 50_000);
  ctx.end();
});

test("sessions beyond the limit are closed, the oldest first", async () => {
  const { ctx, sessions } = started("many", { most: 2 });
  for (const id of ["a", "b", "c"]) await sessions.of(id).request(settings, { messages: said(id) });
  assert.equal(sessions.known("a"), undefined);
  await sessions.of("b").tell("status");
  await assert.rejects(ctx.call("status", { sessionId: "a" }), { kind: "notFound" });
  ctx.end();
});

test("an idle host ends, and ctx with it", () => {
  const { program, pids } = noted("ends");
  const host = `import { Ctx } from ${JSON.stringify(new URL("./rpc.mjs", import.meta.url))};
    await new Ctx({ program: ${JSON.stringify(program)} }).call("initialize", {});`;
  const given = { env: { ...process.env, ...env }, timeout: 20_000 };
  const ran = spawnSync(process.execPath, ["--input-type=module", "-e", host], given);
  assert.equal(ran.status, 0, String(ran.stderr));
  // The pipe is closed now; ctx needs a moment to notice.
  execFileSync("sh", ["-c", `while kill -0 ${pids()[0]} 2>/dev/null; do :; done`], { timeout: 20_000 });
});
