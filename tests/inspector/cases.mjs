// What is tried once: live sessions, undo, a hostile transcript, one that is very long.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";

import { check, go, openPage, serve, text, until } from "./browser.mjs";
import { HOSTILE, exchange, writeHostile, writeLarge } from "./fixtures.mjs";

const ENTRIES = 100_000;

// A page of a session that goes on shows what comes; a server that comes back is heard again.
export async function live(run, about) {
  const server = await serve(run, about.growing, "--window", "64k");
  const page = await openPage(run, { theme: "light", width: 1280 });
  await go(page, server, `#/s/${server.session}`, "#chart .sent[d]");
  await until(page, "somebody listens", () => document.querySelector("#link").textContent === "Live");
  const count = Number(await page.getAttribute(".requests", "aria-rowcount"));
  let leaf = JSON.parse(readFileSync(about.growing, "utf8").trim().split("\n").at(-1)).id;
  for (let n = 0; n < 2; n += 1) {
    const more = exchange(leaf, n);
    appendFileSync(about.growing, more.text);
    leaf = more.leaf;
    await until(page, "the new request is shown", (wanted) => Number(document.querySelector(".requests").getAttribute("aria-rowcount")) === wanted, count + 1 + n);
  }
  assert.equal(Number((await text(page, "#readout .k-request dd")).replace(",", "")), count + 1, "the cursor follows");
  page.expects = /ERR_CONNECTION|ERR_INCOMPLETE|Failed to load/;
  assert.deepEqual(await server.stop(), { code: 0, signal: null }, "Ctrl-C ends it well");
  await until(page, "the loss is told", () => document.querySelector("#link").textContent === "Reconnecting");
  const again = await serve(run, about.growing, "--window", "64k", "--listen", `127.0.0.1:${server.port}`);
  assert.equal(again.session, server.session);
  await until(page, "it is heard again", () => document.querySelector("#link").textContent === "Live");
  page.expects = null;
  await check(run, page, "live");
  await page.close();
}

// A compaction is taken back by who has the token, and put in force again.
export async function undo(run, server) {
  const page = await openPage(run, { theme: "light", width: 1280 });
  await go(page, server, "#/", ".sessions tr[data-at]");
  await page.locator(".sessions .opener", { hasText: "The flaky test" }).click();
  await page.waitForSelector("#compaction-list a");
  const reading = page.url();
  const open = async () => {
    await page.locator("#compaction-list li", { hasText: "facts kept" }).last().locator("a").click();
    await page.waitForSelector(".facts-list");
  };
  await open();
  assert.equal(await page.locator(".bar .act").count(), 0, "without a token nothing is offered");
  assert.match(await text(page, ".readonly"), /only reads/);
  const refused = await page.evaluate(async (hash) => {
    const [, id, , compaction] = hash.replace(/^#\//, "").split("/");
    const answer = await fetch(`api/sessions/${id}/compactions/${compaction}/undo`, { method: "POST" });
    return [answer.status, (await answer.json()).error.kind];
  }, new URL(page.url()).hash).finally(() => (page.expects = null));
  assert.deepEqual(refused, [403, "forbidden"]);
  page.troubles = page.troubles.filter((text) => !/403/.test(text));

  const writing = await serve(run, "--token", "open-sesame");
  const at = new URL(page.url()).hash;
  await page.goto(writing.base);
  await go(page, writing, at, ".bar .act");
  await page.click(".bar .act");
  page.expects = /403/;
  await page.fill("#token-field", "a-guess-of-mine");
  await check(run, page, "undo-asks");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#undone .failed");
  page.expects = null;
  await page.click(".bar .act");
  await page.fill("#token-field", "open-sesame");
  await page.locator("dialog .act").click();
  await until(page, "it is undone", () => document.querySelector("#undone")?.textContent === "The compaction is undone.");
  await until(page, "it can be put in force", () => document.querySelector(".bar .act")?.textContent === "Put in force again");
  await check(run, page, "undone");
  await page.click(".bar .act");
  await page.locator("dialog .act").click();
  await until(page, "it is in force again", () => document.querySelector("#undone")?.textContent === "The compaction is in force again.");
  assert.ok(reading);
  await page.close();
}

// Markup in every field is shown, and does nothing.
export async function hostile(run) {
  const file = writeHostile(run.dir);
  const server = await serve(run, file, "--window", "16k", "--profile", "memory-context");
  const page = await openPage(run, { theme: "dark", width: 1280 });
  await go(page, server, "#/", ".sessions tr[data-at]");
  await check(run, page, "hostile-sessions");
  await go(page, server, `#/s/${server.session}`, "#chart .sent[d]");
  assert.match(await text(page, "#settings"), /<script>window.hit=1<\/script>/);
  await check(run, page, "hostile-session");
  await page.focus("#chart");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".entries tr[data-at]");
  assert.ok((await text(page, ".entries tbody")).includes(HOSTILE.slice(0, 40)));
  await check(run, page, "hostile-request");
  await page.locator(".entries .opener").nth(2).click();
  await page.waitForSelector("dialog[open] .part pre");
  await check(run, page, "hostile-entry");
  await page.keyboard.press("Escape");
  // That profile trims instead of compacting.
  const compacted = await serve(run, file, "--window", "16k");
  await go(page, compacted, `#/s/${compacted.session}`, "#compaction-list a");
  await page.locator("#compaction-list a").first().click();
  await page.waitForSelector("#diff-list table, #diff-list .empty");
  await check(run, page, "hostile-compaction");
  page.expects = /404/;
  await go(page, server, `#/s/${encodeURIComponent(HOSTILE)}`, ".failed");
  await go(page, server, `#/memory?q=${encodeURIComponent(HOSTILE)}`, "#results *");
  await check(run, page, "hostile-memory");
  await page.close();
}

// However long the session, the page holds what is seen of it and no more.
export async function large(run) {
  const file = writeLarge(run.dir, ENTRIES);
  const server = await serve(run, file, "--window", "200k");
  const page = await openPage(run, { theme: "light", width: 1280 });
  page.setDefaultTimeout(120_000);
  await go(page, server, `#/s/${server.session}`, "#chart .sent[d]");
  const requests = ENTRIES / 2;
  assert.equal(Number(await page.getAttribute(".requests", "aria-rowcount")), requests + 1);
  const nodes = () => page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok((await nodes()) < 3_000, `${await nodes()} elements`);
  await check(run, page, "large");
  await go(page, server, `#/s/${server.session}/r/${requests}`, ".entries tr[data-at]");
  // The heading, each message before the last answer, and what was added to them.
  const rows = Number(await page.getAttribute(".entries", "aria-rowcount"));
  assert.ok(rows >= ENTRIES && rows < ENTRIES + 10, `${rows} rows`);
  await page.locator(".entries .opener").first().focus();
  await page.keyboard.press("End");
  await until(page, "the last entry is there", (last) => document.querySelector(".entries tr.here td.c-begins")?.textContent.includes(`Entry number ${last} `), ENTRIES - 2);
  await page.evaluate(() => (document.querySelector(".scroll").scrollTop /= 2));
  await until(page, "the middle comes", () => [...document.querySelectorAll(".entries td.c-begins")].some((cell) => /Entry number [45]\d{4} /.test(cell.textContent)));
  assert.ok((await nodes()) < 3_000, `${await nodes()} elements`);
  await check(run, page, "large-request");
  await page.close();
}
