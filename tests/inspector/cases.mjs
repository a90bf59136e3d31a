// Cases run once: live sessions, undo, a hostile transcript, a very long one.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";

import { check, go, openPage, serve, text, until } from "./browser.mjs";
import { HOSTILE, exchange, writeHostile, writeLarge } from "./fixtures.mjs";

const ENTRIES = 100_000;

// The page of a live session shows new requests, but does not move a user who reads elsewhere; it reports
// a server that stops, and reconnects when it is back.
export async function live(run, about) {
  const server = await serve(run, about.growing, "--window", "64k");
  const page = await openPage(run, { theme: "light", width: 1280 });
  await go(page, server, `#/s/${server.session}`, "#chart .sent[d]");
  await until(page, "the page listens", () => document.querySelector("#link").textContent === "Live");
  const count = Number(await page.getAttribute(".requests", "aria-rowcount")) - 1;
  let leaf = JSON.parse(readFileSync(about.growing, "utf8").trim().split("\n").at(-1)).id;
  let made = 0;
  const grow = async () => {
    const more = exchange(leaf, made);
    appendFileSync(about.growing, more.text);
    leaf = more.leaf;
    made += 1;
    await until(page, "the new request is shown", (wanted) => Number(document.querySelector(".requests").getAttribute("aria-rowcount")) === wanted + 1, count + made);
  };
  const cursor = async () => Number((await text(page, "#readout .k-request dd")).replace(",", ""));
  await grow();
  await grow();
  assert.equal(await cursor(), count + 2, "the cursor follows");
  const scrolled = () => page.locator(".requests-section .scroll").evaluate((box) => box.scrollTop);
  assert.ok(await scrolled() > 100, "and so does the table");

  // A user who scrolled the table, or reads an earlier request, stays there.
  await page.locator(".requests-section .scroll").evaluate((box) => (box.scrollTop = 60));
  await grow();
  assert.deepEqual([await scrolled(), await cursor()], [60, count + 3]);
  await page.focus("#chart");
  await page.keyboard.press("p");
  const earlier = await cursor();
  await page.locator(".requests-section .scroll").evaluate((box) => (box.scrollTop = 60));
  await page.evaluate(() => scrollTo(0, 200));
  await grow();
  await grow();
  assert.deepEqual([await scrolled(), await cursor(), await page.evaluate(() => scrollY)], [60, earlier, 200]);
  assert.equal(await text(page, "#newer"), "2 more requests ↓");
  await check(run, page, "live-away");
  await page.click("#newer");
  assert.equal(await cursor(), count + 5);
  assert.equal(await page.isVisible("#newer"), false);

  // A user who reads about a compaction stays there too.
  await page.locator("#compaction-list a").first().click();
  await page.waitForSelector(".facts-list tr[data-at]");
  await page.locator(".scroll").evaluate((box) => (box.scrollTop = 70));
  const drawn = [];
  page.on("request", (request) => /\/diff/.test(request.url()) && drawn.push(request.url()));
  for (let n = 0; n < 2; n += 1) {
    const looked = page.waitForResponse((answer) => /sessions\/[^/]+\?from=/.test(answer.url()) && answer.status() === 200);
    const more = exchange(leaf, made);
    appendFileSync(about.growing, more.text);
    leaf = more.leaf;
    made += 1;
    await looked;
  }
  assert.deepEqual([await page.locator(".scroll").evaluate((box) => box.scrollTop), drawn], [70, []]);
  await page.keyboard.press("Escape");
  await page.waitForSelector("#chart .sent[d]");

  page.expects = /ERR_CONNECTION|ERR_INCOMPLETE|Failed to load/;
  assert.deepEqual(await server.stop(), { code: 0, signal: null }, "Ctrl-C ends the server cleanly");
  await until(page, "the page reports the loss", () => document.querySelector("#link").textContent === "Reconnecting");
  assert.match(await text(page, "#lost"), /has not answered since \d\d:\d\d:\d\d/);
  await check(run, page, "lost");
  // Content that is not loaded cannot be shown until the server is back.
  await page.keyboard.press("Enter");
  await page.waitForSelector("main .failed");
  assert.match(await text(page, "main .failed"), /does not answer/);
  await check(run, page, "lost-request");
  const again = await serve(run, about.growing, "--window", "64k", "--listen", `127.0.0.1:${server.port}`);
  assert.equal(again.session, server.session);
  await until(page, "the page listens again", () => document.querySelector("#link").textContent === "Live");
  await page.waitForSelector(".entries tr[data-at]");
  assert.equal(await page.isVisible("#lost"), false);
  page.expects = null;
  await check(run, page, "live");
  await page.close();
}

// With the token, a compaction is undone and applied again.
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
  assert.equal(await page.locator(".bar .act").count(), 0, "without a token there is no undo");
  assert.match(await text(page, ".readonly"), /read-only.*--token TOKEN/);
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
  assert.match(await text(page, "#undone"), /Wrong token.*--token TOKEN/);
  await check(run, page, "undo-refused");
  page.expects = null;
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("u");
  await page.waitForSelector("#token-field");
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

// Markup in every field is shown as text, without effect.
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
  // The profile of the first server trims instead of compacting.
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

// Starts the server of a large session, which replays it while other cases run.
export function openLarge(run) {
  const file = writeLarge(run.dir, ENTRIES);
  return serve(run, file, "--window", "200k").then(async (server) => {
    await fetch(`${server.base}api/sessions/${server.session}`);
    return server;
  });
}

// However long the session, the page contains only its visible part.
export async function large(run, opened) {
  const server = await opened;
  const page = await openPage(run, { theme: "light", width: 1280 });
  page.setDefaultTimeout(600_000);
  const asked = [];
  page.on("request", (request) => request.url().includes("/requests/") && asked.push(request.url()));
  await go(page, server, `#/s/${server.session}`, "#chart .sent[d]");
  const requests = ENTRIES / 2;
  assert.equal(Number(await page.getAttribute(".requests", "aria-rowcount")), requests + 1);
  const nodes = () => page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok((await nodes()) < 3_000, `${await nodes()} elements`);
  await check(run, page, "large");
  await go(page, server, `#/s/${server.session}/r/${requests}`, ".entries tr[data-at]");
  // The heading, the messages before the last answer, and the summary that replaces the oldest of them.
  assert.equal(Number(await page.getAttribute(".entries", "aria-rowcount")), 1 + (ENTRIES - 1) + 1);
  await page.locator(".entries .opener").first().focus();
  await page.keyboard.press("End");
  await until(page, "the last entry is there", (last) => document.querySelector(".entries tr.here td.c-begins")?.textContent.includes(`Entry number ${last} `), ENTRIES - 2);
  const isSeen = () => page.evaluate(() => {
    const row = document.activeElement.closest(".entries tr.here")?.getBoundingClientRect();
    const box = document.querySelector(".scroll").getBoundingClientRect();
    return Boolean(row) && row.top >= box.top && row.bottom <= box.bottom + 1;
  });
  assert.ok(await isSeen(), "the last entry is visible, and has the focus");
  await page.keyboard.press("k");
  await page.keyboard.press("j");
  assert.ok(await isSeen());
  await page.evaluate(() => (document.querySelector(".scroll").scrollTop /= 2));
  await until(page, "the middle is loaded", () => [...document.querySelectorAll(".entries td.c-begins")].some((cell) => /Entry number [45]\d{4} /.test(cell.textContent)));
  assert.ok((await nodes()) < 3_000, `${await nodes()} elements`);
  assert.ok(await page.locator(".entries tr[data-at]").count() < 60);
  // The request itself, the last page of its entries, and one or two pages in the middle.
  assert.ok(asked.length <= 4, asked.join());
  await check(run, page, "large-request");
  await highest(page);
  await page.close();
}

// Browsers limit the height of an element: a table that would exceed it can still be scrolled to its end.
async function highest(page) {
  const seen = await page.evaluate(() => {
    const { makeTable, moveBy, setCount } = window;
    const made = makeTable({ caption: "Numbers", kind: "entries", columns: [{ name: "Number", kind: "c-entry" }], cells: (at) => [String(at)] });
    document.querySelector("#view").replaceChildren(made.box);
    setCount(made, 2_000_000);
    const rows = () => [...made.body.querySelectorAll("tr[data-at]")];
    const box = made.box.getBoundingClientRect();
    const inSight = (row) => row && row.getBoundingClientRect().top >= box.top - 1 && row.getBoundingClientRect().bottom <= box.bottom + 1;
    const there = [];
    for (const steps of [Infinity, -1, -1_000_000, 1, -Infinity, 5]) {
      moveBy(made, steps);
      there.push([made.current, Boolean(inSight(made.body.querySelector("tr.here"))), rows().length < 60]);
    }
    return there;
  });
  assert.deepEqual(seen, [1_999_999, 1_999_998, 999_998, 999_999, 0, 5].map((at) => [at, true, true]));
}
