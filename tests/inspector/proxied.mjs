// Conversations of `ctx serve`: one is compacted while the model that should write its summary fails.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { check, go, openPage, start, text, until } from "./browser.mjs";

const MOST_TURNS = 60;
const SAID = "The lease of a job ends when its holder says so or its time is over. ".repeat(24);

// A provider that answers questions, but refuses to write summaries.
async function provider() {
  const server = createServer((request, answer) => {
    let body = "";
    request.on("data", (text) => (body += text));
    request.on("end", () => {
      const prompt = JSON.stringify(JSON.parse(body).messages.at(-1).content);
      const isQuestion = /^"Question \d+:/.test(prompt);
      answer.writeHead(isQuestion ? 200 : 500, { "content-type": "application/json" });
      answer.end(JSON.stringify(isQuestion
        ? { id: "a", object: "chat.completion", model: "gpt-4o", choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: SAID } }], usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 } }
        : { error: { message: "the writer has no ink", type: "server_error" } }));
    });
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

export async function proxied(run) {
  const upstream = await provider();
  const home = join(run.dir, "proxy");
  mkdirSync(home, { recursive: true });
  // The request waits for the model.
  writeFileSync(join(home, "ctx.json5"), "{ server: { backgroundRatio: 1 } }");
  const { address } = await start({ ...run, env: { ...run.env, CTX_HOME: home } }, "serve",
    "--listen", "127.0.0.1:0", "--upstream", upstream.url, "--window", "16k");
  const ask = async (path, options) => {
    const answer = await fetch(`${address.url}${path}`, options);
    assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
    return answer.json();
  };
  const messages = [{ role: "system", content: "You know a queue." }];
  let session = null;
  for (let turn = 1; turn <= MOST_TURNS && !session?.compactions; turn += 1) {
    messages.push({ role: "user", content: `Question ${turn}: what of src/lease.rs? ${SAID}` });
    const done = await ask("/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer of-a-test" },
      body: JSON.stringify({ model: "gpt-4o", messages }),
    });
    messages.push(done.choices[0].message);
    [session] = (await ask("/api/sessions")).sessions;
  }
  upstream.stop();
  assert.equal(session.compactions, 1, "it was compacted");
  const server = { base: `${address.url}/` };
  const page = await openPage(run, { theme: "dark", width: 1280 });
  await go(page, server, "#/", ".sessions tr[data-at]");
  await page.locator(".sessions .opener").first().click();
  await page.waitForSelector("#compaction-list a");
  assert.match(await text(page, "#compaction-list"), /no summary by a model/);
  await check(run, page, "proxied-session");
  await page.locator("#compaction-list a").first().click();
  await page.waitForSelector("#diff-list table, #diff-list .empty");
  assert.match(await text(page, "main > .warning"), /failed in \d+ calls?: .*no ink.*extractive instead/s);
  await check(run, page, "proxied-compaction");
  await page.locator(".bar .button").click();
  await page.waitForSelector(".entries tr[data-at]");
  assert.match(await text(page, ".prefix"), /not sent again, because a summary replaced history/);
  await check(run, page, "proxied-request");
  await page.locator(".entries .opener").first().click();
  await until(page, "an entry is opened", () => document.querySelector("dialog[open] .part pre"));
  await page.close();
}
