// Measures `fit` on a long conversation that grows by one turn, and the part of it that the client takes:
// finding what changed, and copying it.
//
//     node packages/node/bench.mjs [MESSAGES] [TOKENS] [TURNS]      default: 2000 200000 200
//
// $CTX_BIN names the binary, which should be a release build.

import { performance } from "node:perf_hooks";

import { Process } from "./src/process.js";
import { Session } from "./src/session.js";

const [count = 2_000, tokens = 200_000, turns = 200] = process.argv.slice(2).map(Number);
// A turn has four messages, and a token about four characters.
const size = Math.ceil((tokens / count) * 4 * 4);

function turn(n) {
  const read = { name: "read", arguments: `{"path":"${n}"}` };
  const call = { id: `call-${n}`, type: "function", function: read };
  const answer = `answer ${n} ${"with words ".repeat(size / 55)}`;
  return [
    { role: "user", content: `question ${n} ${"and more of it ".repeat(size / 150)}` },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: call.id, content: "line of the file\n".repeat((size * 0.7) / 17) },
    { role: "assistant", content: [{ type: "text", text: answer }] },
  ];
}

let waited = 0;
const ctx = new Process({});
const timed = {
  get generation() {
    return ctx.generation;
  },
  async call(method, params) {
    const from = performance.now();
    const answer = await ctx.call(method, params);
    waited = performance.now() - from;
    return answer;
  },
};
const settings = { format: "openai", window: tokens * 3 };
const session = new Session("bench", { ctx: timed, settings, warn: console.error });

const messages = Array.from({ length: count / 4 }, (_, n) => turn(n)).flat();
const { tokens: counted } = await session.fit(messages);
const [all, client] = [[], []];
for (let n = 0; n < turns; n += 1) {
  messages.push(...turn(count + n));
  // Some frameworks copy the messages for each call.
  const given = structuredClone(messages);
  const from = performance.now();
  const { own } = await session.fit(given);
  all.push(performance.now() - from);
  client.push(all.at(-1) - waited);
  if (own.length !== messages.length) throw new Error("messages were cut: the window is too small");
}
await ctx.close();

console.log(`${count} messages, ${counted} tokens, and ${turns} turns of 4 messages`);
for (const [name, times] of [["fit", all], ["client", client]]) {
  const sorted = times.sort((a, b) => a - b);
  const at = (share) => sorted[Math.floor(share * sorted.length)].toFixed(2);
  console.log(`${name.padEnd(6)}  p50 ${at(0.5)} ms  p99 ${at(0.99)} ms`);
}
