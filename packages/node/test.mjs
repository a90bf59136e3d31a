// node --test packages/node/test.mjs      ($CTX_BIN names the binary)
// bun test ./packages/node/test.mjs

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { performance } from "node:perf_hooks";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import {
  ContextKeeper,
  CtxError,
  Gone,
  InvalidMessage,
  NotInstalled,
  Timeout,
  TooLarge,
  WrongVersion,
} from "./src/index.js";
import register from "./integrations/openclaw/index.js";

const folder = mkdtempSync(join(tmpdir(), "ctxkeep-"));
const keepers = [];
after(async () => {
  await Promise.all(keepers.map((keeper) => keeper.close()));
  rmSync(folder, { recursive: true, force: true });
});

const env = { CTX_HOME: join(folder, "home") };
const BINARY = process.env.CTX_BIN ?? "ctx";

/** Writes a program, which notes the pid of each start: the binary, or another shell command. */
function noted(name, command = `exec "${BINARY}" "$@"`) {
  const [program, pids] = [join(folder, name), join(folder, `${name}.pids`)];
  writeFileSync(program, `#!/bin/sh\nnote() { echo "$1" >> "${pids}"; }\nnote $$\n${command}\n`);
  chmodSync(program, 0o755);
  return { program, pids: () => readFileSync(pids, "utf8").trim().split("\n").map(Number) };
}

async function ended(pid) {
  for (let n = 0; n < 100; n += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    await sleep(50);
  }
  return false;
}

function started(options) {
  const warned = [];
  const onWarning = (text) => text.includes("low context window") || warned.push(text);
  const keeper = new ContextKeeper({ window: 40_000, env, onWarning, ...options });
  keepers.push(keeper);
  return { keeper, warned };
}

const said = (n, size = 1) => [
  { role: "user", content: `question ${n} \u2028 with a separator that JSON allows ` },
  { role: "assistant", content: `answer ${n} ${"and more of it ".repeat(size)}` },
];
const conversation = (turns, size) => Array.from({ length: turns }, (_, n) => said(n, size)).flat();

/** Returns a keeper whose calls are noted: `fits` are the parameters of `fit` that ctx received. */
function watched(name, options) {
  const log = join(folder, `${name}.lines`);
  // tee writes to its output first: a call is noted before it is answered.
  const command = `mkfifo "$0.$$"; "${BINARY}" "$@" < "$0.$$" & note $!; tee "$0.$$" >> "${log}"; wait`;
  const { program, pids } = noted(name, command);
  const calls = () =>
    readFileSync(log, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  const fits = () =>
    calls()
      .filter(({ method }) => method === "fit")
      .map(({ params }) => params);
  const keeps = () => fits().map(({ keep }) => keep);
  /** Does something while ctx is stopped. */
  const stopped = async (work) => {
    process.kill(pids()[1], "SIGSTOP");
    try {
      return await work();
    } finally {
      process.kill(pids()[1], "SIGCONT");
    }
  };
  return { ...started({ program, timeout: 3000, ...options }), calls, fits, keeps, stopped };
}

test("unchanged messages are the caller's own objects", async () => {
  const { keeper } = started();
  const messages = conversation(3);
  const fitted = await keeper.fit(messages);
  assert.deepEqual(fitted.own, [0, 1, 2, 3, 4, 5]);
  assert.ok(fitted.messages.every((message, n) => message === messages[n]));
  assert.equal(fitted.changed, false);
  assert.ok(fitted.tokens > 0 && fitted.tokens < fitted.limit);
});

test("only what is new is sent, and a changed old message is noticed", async () => {
  const { keeper, keeps, fits } = watched("keeps");
  const messages = [{ role: "user", content: [{ type: "text", text: "one" }] }, ...conversation(2)];
  const more = { system: "You help.", tools: [{ type: "function", function: { name: "read" } }] };
  await keeper.fit(messages, more);
  messages.push(...said(9));
  // Copies, as some frameworks make for each call.
  await keeper.fit(structuredClone(messages), more);
  messages[0].content[0].text = "another";
  const fitted = await keeper.fit(messages, { ...more, system: "You help more." });
  assert.deepEqual(keeps(), [0, 5, 0]);
  assert.equal(fitted.messages[0], messages[0]);
  messages.length = 3;
  await keeper.fit(messages, more);
  delete messages[0].content[0].text;
  messages[1].extra = undefined;
  await keeper.fit(messages.slice(1), more);
  assert.deepEqual(keeps(), [0, 5, 0, 3, 0]);
  const prompts = fits().map(({ systemPrompt }) => systemPrompt);
  assert.deepEqual(prompts, ["You help.", undefined, "You help more.", "You help.", undefined]);
  assert.deepEqual(
    fits().map(({ tools }) => tools !== undefined),
    [true, false, false, false, false],
  );
  assert.deepEqual(fits()[1].messages, said(9));
});

test("a conversation that does not fit is made to fit, with whole pairs of calls and results", async () => {
  const { keeper } = started({ window: 16_000 });
  const session = keeper.session("long");
  const messages = [];
  let edits = 0;
  for (let n = 0; n < 12; n += 1) {
    const call = { id: `c${n}`, type: "function", function: { name: "read", arguments: "{}" } };
    messages.push({ role: "user", content: `read ${n}` });
    messages.push({ role: "assistant", content: null, tool_calls: [call] });
    messages.push({ role: "tool", tool_call_id: `c${n}`, content: "line of the file\n".repeat(700) });
    const before = structuredClone(messages);
    const fitted = await session.fit(messages);
    assert.deepEqual(messages, before);
    assert.ok(fitted.tokens <= fitted.limit, `${fitted.tokens} of ${fitted.limit}`);
    const calls = fitted.messages.flatMap((message) => message.tool_calls ?? []).map(({ id }) => id);
    assert.deepEqual(
      fitted.messages.filter(({ role }) => role === "tool").map((m) => m.tool_call_id),
      calls,
    );
    assert.equal(calls.at(-1), `c${n}`);
    edits += session.manifest.length;
  }
  assert.ok(edits > 0);
  const { messages: count } = await session.status();
  assert.equal(count, 36);
});

test("a compaction can be undone, and its messages read", async () => {
  const { keeper } = started();
  const session = keeper.session("compacted");
  const messages = [{ role: "user", content: "the password is swordfish" }, ...conversation(60, 40)];
  await session.fit(messages);
  const { compacted, reason } = await session.compact({ instructions: "keep names" });
  assert.ok(compacted, reason);
  assert.ok(session.receipt.summary.length > 0);
  const short = await session.fit(messages);
  assert.ok(short.messages.length < messages.length);
  const original = await session.expand(["00000000", "00000001"]);
  assert.match(original["00000000"], /swordfish/);
  assert.match(original["00000001"], /question 0/);
  assert.match((await session.recall("swordfish")).join(), /swordfish/);
  const many = Array.from({ length: 20 }, (_, n) => n.toString(16).padStart(8, "0"));
  assert.deepEqual(Object.keys(await session.expand(many)), many);
  assert.deepEqual(Object.keys(await session.expand(`[e:${many.join(", e:")}]`)), many);
  assert.equal(await session.undo(), true);
  assert.equal((await session.fit(messages)).messages.length, messages.length);
  assert.equal(await session.undo(), false);
  assert.ok((await session.usage(20_000)) > 0);
});

// Paths of Windows: with a drive, a share, a device, forward slashes, a blank, and a dot too many.
const WINDOWS = [
  String.raw`C:\Users\Ann Lee\src\net\retry.rs`,
  String.raw`\\build-7\share\logs\new.txt`,
  String.raw`\\?\D:\a\very\deep.json`,
  "D:/work/api/table.ts",
  String.raw`C:\temp\x64` + "\\",
  String.raw`..\..\secrets.env`,
  String.raw`\Device\NUL`,
  "C:relative.txt",
];

/** A turn that reads a file. The arguments are JSON, or what models write in its place. */
const reads = (path, n, size) => {
  const args = n % 2 ? `{"path": "${path}"}` : JSON.stringify({ path });
  const call = { id: path, type: "function", function: { name: "read", arguments: args } };
  return [
    { role: "user", content: `Read ${path}, and never change it.` },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: path, content: `${path}(7,1): error\r\n`.repeat(size / 30) },
    { role: "assistant", content: [{ type: "text", text: `I read \`${path}\`.` }] },
  ];
};

test("messages with paths of Windows are the caller's own, and outlive a compaction", async () => {
  const { keeper } = started({ window: 16_000 });
  const messages = WINDOWS.flatMap((path, n) => reads(path, n, 6000));
  const before = structuredClone(messages);
  const session = keeper.session(String.raw`C:\work\..\..\session`);
  for (let n = 1; n <= WINDOWS.length; n += 1) {
    const { messages: sent, tokens, limit } = await session.fit(messages.slice(0, n * 4));
    assert.ok(tokens <= limit, `${tokens} of ${limit}`);
    const calls = sent.flatMap((message) => message.tool_calls ?? []);
    assert.deepEqual(
      sent.filter(({ role }) => role === "tool").map((message) => message.tool_call_id),
      calls.map(({ id }) => id),
    );
    for (const call of calls) assert.deepEqual(call, before[WINDOWS.indexOf(call.id) * 4 + 1].tool_calls[0]);
  }
  assert.ok((await session.compact()).compacted);
  const { messages: sent } = await session.fit(messages);
  assert.ok(sent.length < messages.length);
  assert.deepEqual(messages, before);
  const kept = sent.filter((message) => messages.includes(message)).map(({ content }) => content);
  for (const rule of WINDOWS.map((path) => `Read ${path}, and never change it.`)) {
    assert.ok(session.receipt.summary.includes(rule) || kept.includes(rule), rule);
  }
  for (const [n, path] of WINDOWS.entries()) {
    const id = (n * 4).toString(16).padStart(8, "0");
    assert.equal((await session.expand(id))[id].split(path).length, 2, path);
  }
  assert.match((await session.recall(WINDOWS[0])).join(), /retry\.rs/);
  assert.equal(await session.undo(), true);
});

test("ctx and its home may lie in folders with such names", async () => {
  // Elsewhere, a backslash is a letter as any other.
  const names = [String.raw`C:\Program Files`, String.raw`bin\my ctx.exe`];
  const [home, name] = process.platform === "win32" ? ["Program Files", "my ctx.exe"] : names;
  mkdirSync(join(folder, home));
  const program = join(folder, home, name);
  const folders = ["", ...process.env.PATH.split(delimiter)];
  copyFileSync(folders.map((at) => join(at, BINARY)).find((file) => existsSync(file)), program);
  const { keeper } = started({ program, env: { CTX_HOME: join(folder, home, "home of Ann") } });
  assert.equal((await keeper.fit(said(1))).changed, false);
  const none = String.raw`C:\Program Files\none\ctx.exe`;
  const failed = await started({ program: none }).keeper.fit(said(1)).catch((error) => error);
  assert.ok(failed instanceof NotInstalled && failed.message.includes(none), failed);
});

test("a process killed in mid-call is replaced, and gets the whole conversation", async () => {
  const { program, pids } = noted("killed");
  const { keeper } = started({ program });
  await keeper.fit(conversation(1));
  const messages = conversation(2000, 20);
  const asked = keeper.fit(messages);
  setTimeout(() => process.kill(pids()[0], "SIGKILL"), 5);
  assert.equal((await asked).messages.length > 0, true);
  assert.equal(pids().length, 2);
  process.kill(pids()[1], "SIGKILL");
  assert.equal((await keeper.fit(conversation(3))).messages.length, 6);
  assert.equal(pids().length, 3);
  assert.equal((await keeper.session().status()).messages, 6);
});

test("a process that always ends is an error that says why, after one repetition", async () => {
  const { program, pids } = noted("ends", 'echo "out of cheese" >&2; exit 3');
  const { keeper, warned } = started({ program });
  const failed = await keeper.fit(said(1)).catch((error) => error);
  assert.ok(failed instanceof Gone);
  assert.match(failed.message, /code 3: out of cheese/);
  assert.equal(pids().length, 2);
  assert.equal(await keeper.fitOrKeep(said(1)), undefined);
  assert.match(warned.join(), /the request is made without it: .*out of cheese/);
});

test("a missing binary is an error that names it", async () => {
  const { keeper } = started({ program: join(folder, "none") });
  const failed = await keeper.fit(said(1)).catch((error) => error);
  assert.ok(failed instanceof NotInstalled);
  assert.match(failed.message, /none.*CTX_BIN/);
});

test("a binary that cannot be run for another reason is one too", async () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  const programs = [join(file, "ctx"), ""].map((program) => ({ program }));
  const variables = ["\0", "x".repeat(1 << 20)].map((LONG) => ({ env: { LONG } }));
  for (const options of [...programs, ...variables]) {
    const { keeper, warned } = started(options);
    await assert.rejects(keeper.fit(said(1)), NotInstalled);
    assert.equal(await keeper.fitOrKeep(said(1)), undefined);
    assert.match(warned.join(), /cannot start/);
  }
});

test("a broken configuration is named with its hint", async () => {
  const home = mkdtempSync(join(folder, "broken-"));
  writeFileSync(join(home, "ctx.json5"), "{ nonsense: 1 }");
  const { keeper } = started({ env: { CTX_HOME: home } });
  await assert.rejects(keeper.fit(said(1)), /unknown key 'nonsense'.*known keys/);
});

test("what refuses a session is said each time", async () => {
  const { keeper } = started({ model: "nonesuch", window: undefined });
  for (let n = 0; n < 20; n += 1) await assert.rejects(keeper.fit(said(1)), /unknown model/);
});

test("a program that is not ctx is refused, and ended", async () => {
  // No line, other lines, and the calls themselves.
  for (const [n, command] of ["cat /dev/zero", "yes", "cat"].entries()) {
    const { program, pids } = noted(`other-${n}`, `exec ${command}`);
    const { keeper } = started({ program, timeout: 5000 });
    await assert.rejects(keeper.fit(said(1)), n < 2 ? WrongVersion : CtxError);
    await keeper.close();
    assert.ok(await ended(pids()[0]));
  }
});

test("a line that ctx cannot read is an error at once", async () => {
  const first = '{"jsonrpc":"2.0","id":1,"result":{"methods":["fit"]}}';
  const second = '{"jsonrpc":"2.0","id":null,"error":{"message":"no","data":{"kind":"invalidInput"}}}';
  const { program } = noted("unread", `read a; echo '${first}'; read b; echo '${second}'; read c`);
  await assert.rejects(started({ program, timeout: 5000 }).keeper.fit(said(1)), InvalidMessage);
});

test("messages over 64 MiB are refused before they are sent", async () => {
  const { keeper } = started({ timeout: 20_000 });
  await keeper.fit(said(1));
  const large = [{ role: "user", content: "x".repeat(2 ** 26) }];
  await assert.rejects(keeper.fit(large), { name: "TooLarge", message: /64 MiB/ });
  assert.equal((await keeper.fit(said(1))).messages.length, 2);
});

test("a binary of another version is refused, and ended", async () => {
  const answer = '{"jsonrpc":"2.0","id":1,"result":{"version":"0.0.9","methods":["open","assemble"]}}';
  const { program, pids } = noted("old", `read line; echo '${answer}'; exec sleep 60`);
  const { keeper } = started({ program, timeout: 5000 });
  const failed = await keeper.fit(said(1)).catch((error) => error);
  assert.ok(failed instanceof WrongVersion, String(failed));
  assert.match(failed.message, /0\.0\.9/);
  assert.ok(await ended(pids()[0]));
});

test("a process that does not answer is a timeout, after which everything is sent again", async () => {
  const { keeper, keeps, stopped, calls } = watched("stopped");
  await keeper.fit(said(0));
  // The second one is opened by ctx without an answer in time.
  const fits = () => [keeper.fit(conversation(2)), keeper.fit(said(1), { session: "other" })];
  const failed = await stopped(() => Promise.all(fits().map((fit) => fit.catch((error) => error))));
  assert.ok(
    failed.every((error) => error instanceof Timeout),
    String(failed),
  );
  assert.match(failed[0].message, /fit within 3000 ms/);
  assert.equal((await keeper.fit(conversation(2))).messages.length, 4);
  assert.equal((await keeper.fit(said(1), { session: "other" })).messages.length, 2);
  assert.deepEqual(keeps(), [0, 2, 0, 0]);
  const opens = calls().filter(({ method }) => method === "open");
  assert.deepEqual(
    opens.map(({ params }) => params.sessionId),
    ["default", "other", "other", "other"],
  );
});

test("after an error of ctx the next call sends everything", async () => {
  const { keeper, keeps } = watched("errors", { format: "ai-sdk" });
  const messages = conversation(2);
  await keeper.fit(messages);
  await assert.rejects(keeper.fit([...messages, { content: "nobody's" }]), InvalidMessage);
  assert.equal((await keeper.fit(messages)).messages.length, 4);
  assert.deepEqual(keeps(), [0, 4, 0]);
  const loop = { role: "user", content: [] };
  loop.content.push(loop);
  await assert.rejects(keeper.fit([loop]), InvalidMessage);
  await keeper.fit(messages, { system: "short" });
  await assert.rejects(keeper.fit(messages, { system: "x".repeat(400_000) }), TooLarge);
  assert.equal((await keeper.fit(messages, { system: "short" })).messages.length, 4);
});

test("calls of one session are made one after the other", async () => {
  const { keeper, keeps } = watched("order");
  const fits = [1, 2, 3].map((turns) => keeper.fit(conversation(turns)));
  assert.deepEqual(
    (await Promise.all(fits)).map(({ messages }) => messages.length),
    [2, 4, 6],
  );
  assert.deepEqual(keeps(), [0, 2, 4]);
});

test("another window opens the session again, another system prompt or no value do not", async () => {
  const { keeper, calls } = watched("window", { engine: undefined });
  await keeper.fit(said(1), { system: "It is 10:00.", model: undefined });
  await keeper.fit(said(1), { system: "It is 10:01.", tools: [] });
  const { limit } = await keeper.fit(said(1), { window: 80_000 });
  assert.equal(limit, 60_000);
  assert.deepEqual(
    calls().map(({ method }) => method),
    ["initialize", "open", "fit", "fit", "close", "open", "fit"],
  );
});

test("a call that is given up does not disturb the next one", async () => {
  const { keeper, keeps, stopped } = watched("aborted");
  const messages = conversation(2);
  await keeper.fit(messages);
  const reason = new Error("enough");
  const controller = new AbortController();
  const { signal } = controller;
  const [first, second] = [[...messages, ...said(2)], said(7)].map((all) => keeper.fit(all, { signal }));
  controller.abort(reason);
  await assert.rejects(first, reason);
  await assert.rejects(second, reason);
  await assert.rejects(keeper.fitOrKeep(messages, { signal }), reason);
  assert.equal((await keeper.fit(conversation(3))).messages.length, 6);
  await stopped(async () => {
    const third = keeper.fit(conversation(4), { signal: AbortSignal.timeout(300) });
    await assert.rejects(third, { name: "TimeoutError" });
  });
  assert.equal((await keeper.fit(conversation(5))).messages.length, 10);
  // The first two were not sent, as their turn had not come.
  assert.deepEqual(keeps(), [0, 4, 6, 8]);
});

test("bytes and URLs are sent as text, and returned as they are", async () => {
  const { keeper, fits, keeps } = watched("bytes");
  const bytes = new Uint8Array([1, 2, 3, 250]);
  const url = new URL("https://example.org/a.png");
  const other = [1n, NaN, undefined, () => 1, new Date(0), null, { left: undefined }];
  const file = (data) => ({ type: "file", mediaType: "image/png", data });
  const parts = [file(bytes), file(Buffer.from(bytes)), file(bytes.buffer.slice(0)), file(url), file(other)];
  const messages = [{ role: "user", content: parts }, ...conversation(1)];
  const fitted = await keeper.fit(messages);
  assert.equal(fitted.messages[0].content[0].data, bytes);
  const sent = fits()[0].messages[0].content;
  const text = Buffer.from(bytes).toString("base64");
  assert.deepEqual(
    sent.map(({ data }) => data),
    [text, text, text, url.href, ["1", null, null, null, "1970-01-01T00:00:00.000Z", null, {}]],
  );
  await keeper.fit(messages);
  bytes[0] = 9;
  await keeper.fit(messages);
  assert.deepEqual(keeps(), [0, 3, 0]);
});

test("a message that ctx shortens has the caller's bytes and URLs", async () => {
  const { keeper } = started({ window: 16_000, format: "ai-sdk" });
  const url = new URL("https://example.org/a.png");
  const result = (n, value) => ({
    role: "tool",
    content: [
      { type: "tool-result", toolCallId: `c${n}`, toolName: "read", output: { type: "text", value } },
    ],
    providerOptions: { own: { url, bytes: new Uint8Array([n]) } },
  });
  const call = (n) => ({
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: `c${n}`, toolName: "read", input: {} }],
  });
  const messages = Array.from({ length: 8 }, (_, n) => [
    { role: "user", content: `read ${n}` },
    call(n),
    result(n, "line of the file\n".repeat(500)),
  ]).flat();
  const { messages: sent, own } = await keeper.fit(messages);
  const changed = sent.filter((message, n) => own[n] === undefined && message.providerOptions);
  assert.ok(changed.length > 0);
  assert.ok(changed.every(({ providerOptions }) => providerOptions.own.url === url));
  assert.ok(changed.every(({ providerOptions }) => providerOptions.own.bytes instanceof Uint8Array));
});

test("an answer that is not JSON is not one, and U+2028 does not end a line", async () => {
  const { program } = noted("noise", `echo "hello"; exec "${BINARY}" "$@"`);
  const { keeper } = started({ program, window: 16_000 });
  const text = "a line \u2028 of it ".repeat(10_000);
  const call = { id: "c", type: "function", function: { name: "read", arguments: "{}" } };
  const messages = [
    { role: "user", content: "read" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: text },
  ];
  const { messages: sent, own } = await keeper.fit(messages);
  assert.equal(own.at(-1), undefined);
  assert.match(sent.at(-1).content, /\u2028/);
});

test("other calls are made only while ctx has the conversation", async () => {
  const { keeper } = started();
  const session = keeper.session("told");
  assert.equal(await session.tell("maintain"), undefined);
  await session.fit(said(1));
  assert.equal((await session.tell("status")).messages, 2);
  await session.close();
  assert.equal(await session.tell("status"), undefined);
});

test("the ids of messages are those of the caller, and only new ones are sent", async () => {
  const { keeper, fits, keeps, calls } = watched("ids");
  const session = keeper.session("ids");
  const messages = conversation(2);
  const ids = ["one", null, "three", null];
  const { ids: sent } = await session.fit(messages, { ids });
  assert.deepEqual([sent[0], sent[2]], ["one", "three"]);
  messages.push(...said(2));
  ids.push("five", null);
  assert.equal((await session.fit(messages, { ids })).ids[4], "five");
  assert.deepEqual(fits()[1].ids, ["five", null]);
  // A message with another id is another one.
  ids[4] = "six";
  assert.equal((await session.fit(messages, { ids })).ids[4], "six");
  assert.deepEqual(keeps(), [0, 4, 4]);
  await assert.rejects(session.fit(messages, { ids: ["short"] }), InvalidMessage);
  // Another list in between does not change what the next request has.
  const known = await session.sync(messages.slice(0, 2), { ids: ["one", null] });
  assert.deepEqual([known[0], known.length], ["one", 2]);
  assert.equal((await session.fit(messages, { ids })).messages.length, 6);
  assert.equal((await session.expand("three")).three.includes("question 1"), true);
  assert.equal(calls().filter(({ method }) => method === "open").length, 1);
});

test("1,000 sessions share a process, and the oldest are closed", async () => {
  const { program, pids } = noted("many");
  const { keeper, warned } = started({ program, maxSessions: 600 });
  const fits = Array.from({ length: 1000 }, (_, n) => keeper.fit(said(n), { session: `s${n}` }));
  const fitted = await Promise.all(fits);
  assert.ok(fitted.every(({ messages }, n) => messages[0].content === said(n)[0].content));
  assert.equal(pids().length, 1);
  assert.equal((await keeper.fit([...said(0), ...said(1)], { session: "s0" })).messages.length, 4);
  assert.equal((await keeper.session("s999").status()).messages, 2);
  await assert.rejects(keeper.session("s1").status(), { kind: "notFound" });
  assert.deepEqual(warned, []);
});

test("a session with calls is not closed", async () => {
  const { keeper, calls } = watched("busy", { maxSessions: 1 });
  const both = (n) => ["a", "b"].map((session) => keeper.fit(conversation(n), { session }));
  const fits = [1, 2, 3].flatMap(both);
  const lengths = (await Promise.all(fits)).map(({ messages }) => messages.length);
  assert.deepEqual(lengths, [2, 2, 4, 4, 6, 6]);
  const made = () => calls().map(({ method, params }) => method + (params.sessionId ?? ""));
  assert.deepEqual(made().filter((call) => /open|close/.test(call)), ["opena", "openb"]);
  await keeper.fit(said(1), { session: "c" });
  await keeper.fit(said(1), { session: "d" });
  assert.deepEqual(made().filter((call) => /close/.test(call)), ["closea", "closeb", "closec"]);
});

/** Runs a program with the keeper of another binary in a process of its own. */
function runs(program, source) {
  const begin = `
    import { ContextKeeper } from ${JSON.stringify(new URL("./src/index.js", import.meta.url).href)};
    const program = ${JSON.stringify(program)};
    const keeper = new ContextKeeper({ window: 40_000, program, onWarning() {} });`;
  const options = { encoding: "utf8", env: { ...process.env, ...env }, timeout: 20_000 };
  const ran = spawnSync(process.execPath, ["--input-type=module", "--eval", begin + source], options);
  assert.equal(ran.status, 0, ran.stderr);
  return ran.stdout.trim();
}

test("node ends while ctx is idle, and ctx ends with it", async () => {
  const { program, pids } = noted("idle");
  const source = 'console.log((await keeper.fit([{ role: "user", content: "hello" }])).tokens > 0);';
  assert.equal(runs(program, source), "true");
  assert.ok(await ended(pids()[0]));
});

test("a call that is given up does not keep node from its end", () => {
  const { program } = noted("silent", "exec cat > /dev/null");
  const source = `
    const signal = AbortSignal.timeout(100);
    setTimeout(() => {}, 200);
    await keeper.fit([], { signal }).catch(({ name }) => console.log(name));`;
  assert.equal(runs(program, source), "TimeoutError");
});

test("a timeout may be longer than a timer of node", async () => {
  for (const timeout of [Infinity, 1e10]) await started({ timeout }).keeper.fit(said(1));
});

test("a closed keeper starts another process", async () => {
  const { program, pids } = noted("closed");
  const { keeper } = started({ program });
  await keeper.fit(said(1));
  await keeper[Symbol.asyncDispose]();
  assert.throws(() => process.kill(pids()[0], 0), { code: "ESRCH" });
  assert.equal((await keeper.fit(conversation(2))).messages.length, 4);
  assert.equal(pids().length, 2);
});

test("a keeper needs a model or a window", () => {
  assert.throws(() => new ContextKeeper(), TypeError);
  for (const window of [NaN, null, Infinity]) assert.throws(() => new ContextKeeper({ window }), TypeError);
});

test("the id of a session is any value, as text", async () => {
  const { keeper } = started();
  await keeper.fit(said(1), { session: 7 });
  assert.equal((await keeper.session("7").status()).messages, 2);
  assert.equal(keeper.session(null), keeper.session());
});

/** Returns a function that frees unused memory. */
function collector() {
  if (globalThis.Bun) return () => globalThis.Bun.gc(true);
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}

test("a long conversation costs little memory and time", async () => {
  const { keeper } = started({ window: 400_000 });
  const collect = collector();
  const used = () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const messages = conversation(1000, 50);
  const before = used();
  let { tokens } = await keeper.fit(messages);
  const times = [];
  for (let n = 0; n < 20; n += 1) {
    messages.push(...said(1000 + n, 50));
    const from = performance.now();
    ({ tokens } = await keeper.fit(messages));
    times.push(performance.now() - from);
  }
  const grown = (used() - before) / 1e6;
  const p50 = times.sort((a, b) => a - b)[times.length / 2];
  console.log(
    `${tokens} tokens, ${messages.length} messages: p50 of fit ${p50.toFixed(1)} ms, ${grown.toFixed(2)} MB`,
  );
  assert.ok(tokens > 180_000, `${tokens}`);
  assert.ok(grown < 5, `${grown} MB`);
});

// OpenClaw: a gateway makes these calls in this order; `tests/clients/run.sh openclaw` runs a real one.

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
  const given = { messages, prompt, tokenBudget, model: "m", runtimeSettings };
  return at(sessionId, { ...given, runtimeContext: undefined });
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
  return { seen: again.messages, history: [...history, ...messages] };
}

test("OpenClaw: both fields without which it runs its own engine are declared", () => {
  const { info, commitTurn } = host().engine();
  assert.equal(info.transcriptSemantics.currentTurnFence, "before-current-turn-entry-v1");
  assert.equal(info.transcriptSemantics.turnAdvancementIdempotency, "atomic-idempotent-v1");
  assert.equal(typeof commitTurn, "function");
});

test("OpenClaw: a session longer than the window fits, with a new engine for each turn", async () => {
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

test("OpenClaw: the prompt, which the host adds, is not returned", async () => {
  const { engine } = host();
  const history = turn(1, 100);
  const made = await engine().assemble(first("prompt", history, "question 2"));
  assert.deepEqual(made.messages, history);
});

test("OpenClaw: messages of a later request do not replace the history", async () => {
  const { engine } = host();
  const one = engine();
  const history = [...turn(1, 100), ...turn(2, 100)];
  await one.assemble(first("shown", history, "question 3"));
  const made = await one.assemble(later("shown", history.slice(4), "question 3", 100));
  assert.equal(made.messages.length, history.length);
});

test("OpenClaw: an overflow causes a compaction, and the next attempt contains the summary", async () => {
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

test("OpenClaw: a session that ctx has not seen is not compacted, and the result says why", async () => {
  const made = await host().engine().compact(at("unseen", { force: true }));
  assert.equal(made.compacted, false);
  assert.match(made.reason, /has not seen/);
});

test("OpenClaw: subagents are announced to the engine of the session that starts them", async () => {
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

test("OpenClaw: without ctx the host's own messages are sent, and each time the log says so", async () => {
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
