// Every view opened and used, in one theme and width.

import assert from "node:assert/strict";

import { check, go, text, until } from "./browser.mjs";

export async function everyView(run, page, server, about) {
  await sessions(run, page, server);
  const id = await session(run, page, about.store);
  await request(run, page, server, id);
  await compaction(run, page, server, id);
  await memory(run, page, server);
  await missing(run, page, server, id);
}

async function sessions(run, page, server) {
  await go(page, server, "#/", ".sessions tr[data-at]");
  const titles = await page.locator(".sessions tr[data-at] b").allTextContents();
  assert.deepEqual(titles.sort(), ["Review of the pauses", "The flaky test", "growing.jsonl"]);
  await check(run, page, "sessions");
  await page.keyboard.press("/");
  await page.keyboard.type("nothing is called so");
  await page.waitForSelector(".empty");
  await check(run, page, "sessions-empty");
  await page.fill("input[type=search]", "flaky");
  await until(page, "one session is found", () => document.querySelectorAll(".sessions tr[data-at]").length === 1);
}

async function session(run, page) {
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#chart .sent[d]");
  const id = decodeURIComponent(new URL(page.url()).hash.split("/")[2].split("?")[0]);
  assert.equal(await text(page, "#name"), "The flaky test");
  // The cursor starts at the newest request; the table follows it.
  const number = () => text(page, "#readout .k-request dd");
  const last = await number();
  await page.focus("#chart");
  await page.keyboard.press("ArrowLeft");
  const before = await number();
  assert.equal(Number(before), Number(last) - 1);
  assert.match(await text(page, ".requests tr.here th"), new RegExp(`^Request ${before}\\b`));
  await page.keyboard.press("n");
  await page.keyboard.press("p");
  await page.keyboard.press("+");
  assert.ok(await page.isVisible("#zoom-out"));
  await page.click("#zoom-out");
  await page.locator("input[value=log]").check({ force: true });
  await page.locator("input[value=window]").check({ force: true });
  const box = await page.locator("#plot").boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height * 0.5);
  assert.notEqual(await number(), before);
  assert.ok(await page.locator("#chart .compacted[d^=M]").count(), "the compaction is marked");
  assert.ok(Number(await page.getAttribute(".requests", "aria-rowcount")) > 20);
  await until(page, "the page listens", () => document.querySelector("#link").textContent === "Live");
  await check(run, page, "session");
  return id;
}

async function request(run, page, server, id) {
  // With keys: from the chart to the request under the cursor.
  await page.focus("#chart");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".entries tr[data-at]");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#chart .sent[d]");
  const last = Number(await page.getAttribute(".requests", "aria-rowcount")) - 1;
  await go(page, server, `#/s/${encodeURIComponent(id)}/r/${last}`, ".entries tr[data-at]");
  const parts = await page.locator(".components tbody th").allTextContents();
  assert.deepEqual(parts, ["system prompt", "tools", "summary", "recalled", "history", "newest message", "pending input"]);
  await check(run, page, "request");
  const all = Number(await page.getAttribute(".entries", "aria-rowcount")) - 1;
  await page.selectOption("#state", "dropped");
  await until(page, "fewer entries are listed", (before) => document.querySelector(".entries").getAttribute("aria-rowcount") - 1 < before, all);
  const states = new Set(await page.locator(".entries td.c-state").allTextContents());
  for (const state of states) assert.match(state, /dropped/);
  await page.selectOption("#state", "");
  await until(page, "all are listed again", (before) => document.querySelector(".entries").getAttribute("aria-rowcount") - 1 === before, all);
  await page.fill("#entry-search", "no entry holds this");
  await page.waitForSelector("#entry-list .empty");
  await page.fill("#entry-search", "");
  await page.waitForSelector(".entries tr[data-at]");
  await page.evaluate(() => document.activeElement.blur());
  for (const key of ["j", "j", "k", "End", "Home", "ArrowDown"]) await page.keyboard.press(key);
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open] .part pre");
  await check(run, page, "entry");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  await page.keyboard.press("ArrowLeft");
  await until(page, "the request before is shown", (n) => location.hash.endsWith(`/r/${n}`), last - 1);
  await page.waitForSelector(".entries tr[data-at]");
}

async function compaction(run, page, server, id) {
  await go(page, server, `#/s/${encodeURIComponent(id)}`, "#compaction-list a");
  await page.locator("#compaction-list li", { hasText: "facts kept" }).last().locator("a").click();
  await page.waitForSelector(".facts-list tr[data-at]");
  assert.match(await text(page, ".receipt"), /Must be kept/);
  await check(run, page, "compaction");
  await page.locator("input[value='facts/summary']").check({ force: true });
  await until(page, "only those in the summary are listed", () =>
    [...document.querySelectorAll(".facts-list .fate")].every((fate) => fate.textContent === "✓ summary"));
  await page.locator("input[value='removed/']").check({ force: true });
  await page.waitForSelector(".removed-list tr[data-at]");
  await page.locator(".removed-list .opener").first().click();
  await page.waitForSelector("dialog[open] .part pre");
  await page.keyboard.press("Escape");
  await check(run, page, "compaction-messages");
}

async function memory(run, page, server) {
  await page.keyboard.press("m");
  await page.waitForSelector("#memory-search");
  await check(run, page, "memory-empty");
  await page.fill("#memory-search", "redelivery test flaky");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".hit");
  const parts = await page.locator(".hit").first().locator("dt").allTextContents();
  assert.deepEqual(parts, ["score", "words", "meaning", "speaker", "age"]);
  await check(run, page, "memory");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("j");
  assert.ok(await page.evaluate(() => document.activeElement.matches(".hit")));
  // From a hit to its message.
  const said = (await page.locator(".hit:focus .about").textContent()).match(/e:(\S+)/)[1];
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open] .part pre");
  assert.deepEqual([await text(page, "#name"), await text(page, "dialog .pairs dd.id")], ["The flaky test", said]);
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  await page.goBack();
  await page.waitForSelector(".hit");
  await page.fill("#memory-search", "qqzzxx");
  await page.locator("button[type=submit]").click();
  await page.waitForSelector("#results .hit, #results .empty");
}

async function missing(run, page, server, id) {
  page.expects = /404/;
  await go(page, server, "#/s/nobody", ".failed");
  assert.match(await text(page, ".failed"), /[Uu]nknown session/);
  await check(run, page, "missing");
  await go(page, server, `#/s/${encodeURIComponent(id)}/r/999999`, ".failed");
  assert.match(await text(page, ".failed"), /[Uu]nknown request/);
  await go(page, server, "#/s/..%2F..%2Fetc%2Fpasswd", ".failed");
  page.expects = null;
  await page.keyboard.press("?");
  await page.waitForSelector("dialog.help");
  await check(run, page, "keys");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  await page.keyboard.press("s");
  await page.waitForSelector(".sessions tr[data-at]");
}
