// User actions: links, copying, filters, keys, unusual texts, many sessions, other time zones.

import assert from "node:assert/strict";

import { check, go, openPage, serve, text, until } from "./browser.mjs";
import { ARABIC, LONG_WORD, SESSIONS, WORD, writeMany, writeStrange } from "./fixtures.mjs";

const hashOf = (page) => new URL(page.url()).hash;
const noDialog = (page) => page.waitForSelector("dialog", { state: "detached" });

// The URL contains the current view: reloading and going back restore it.
export async function links(run, server) {
  const page = await openPage(run, { theme: "light", width: 1280 });
  const id = encodeURIComponent(server.session);
  await go(page, server, `#/s/${id}`, "#chart .sent[d]");
  await page.focus("#chart");
  for (let n = 0; n < 3; n += 1) await page.keyboard.press("ArrowLeft");
  const number = Number(await text(page, "#readout .k-request dd"));
  await until(page, "the address has the request", (n) => location.hash.endsWith(`?r=${n}`), number);
  await page.reload();
  await page.waitForSelector("#chart .sent[d]");
  assert.equal(Number(await text(page, "#readout .k-request dd")), number, "a reload keeps the cursor");
  await page.focus("#chart");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".entries tr[data-at]");
  await page.goBack();
  await page.waitForSelector("#chart .sent[d]");
  assert.equal(Number(await text(page, "#readout .k-request dd")), number, "so does going back");

  // Filters, and an open entry.
  await page.goForward();
  await page.waitForSelector(".entries tr[data-at]");
  await page.keyboard.press("f");
  assert.equal(await page.evaluate(() => document.activeElement.id), "state");
  await page.selectOption("#state", "replaced");
  await page.selectOption("#layer", "tool-guard");
  await until(page, "both are in the address", () => /state=replaced&layer=tool-guard/.test(location.hash));
  await until(page, "the list is filtered", () => [...document.querySelectorAll(".entries td.c-state")].every((cell) => /trimmed/.test(cell.textContent)));
  const filtered = hashOf(page);
  await page.locator(".entries .opener").first().click();
  await page.waitForSelector("dialog[open] .part pre");
  const entry = await text(page, "dialog .pairs dd.id");
  assert.ok(hashOf(page).includes(`/e/${entry}?`), hashOf(page));
  await page.keyboard.press("j");
  await until(page, "the next entry is shown", (was) => document.querySelector("dialog .pairs dd.id")?.textContent !== was, entry);
  await page.keyboard.press("k");
  await until(page, "the one before is back", (was) => document.querySelector("dialog .pairs dd.id")?.textContent === was, entry);
  await page.reload();
  await page.waitForSelector("dialog[open] .part pre");
  assert.equal(await text(page, "dialog .pairs dd.id"), entry, "a reload opens it again");
  assert.equal(await text(page, ".entries tr.here small.id"), entry, "its row is current");
  await page.goBack();
  await noDialog(page);
  assert.equal(hashOf(page), filtered);
  assert.equal(await page.inputValue("#state"), "replaced");
  await page.goForward();
  await page.waitForSelector("dialog[open] .part pre");
  await page.keyboard.press("Escape");
  await noDialog(page);
  await until(page, "the address no longer has an entry", (at) => location.hash === at, filtered);

  // The text of the search.
  await page.goto(`${server.base}#/s/${id}/r/${number}?q=redelivery_happens_once`);
  await page.reload();
  await page.waitForSelector(".entries tr[data-at]");
  assert.equal(await page.inputValue("#entry-search"), "redelivery_happens_once");
  const [found, all] = (await text(page, "#matching")).match(/\d+/g).map(Number);
  assert.ok(found > 0 && found < all, `${found} of ${all}`);

  // The list of sessions.
  await page.goto(`${server.base}#/?q=flaky&order=title`);
  await page.reload();
  await page.waitForSelector(".sessions tr[data-at]");
  assert.deepEqual([await page.inputValue("input[type=search]"), await page.locator(".tools select").inputValue()], ["flaky", "title"]);
  await page.close();
}

// The button and the key copy the whole text of an entry.
export async function copying(run) {
  const strange = writeStrange(run.dir);
  const server = await serve(run, strange, "--window", "200k");
  const page = await openPage(run, { theme: "light", width: 360 });
  await run.browser.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(server.base).origin });
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  await go(page, server, `#/s/${server.session}`, "#readout .k-request");
  assert.equal(await page.locator("#name").evaluate((name) => name.scrollWidth <= name.clientWidth), true);
  await check(run, page, "strange-session");
  await go(page, server, `#/s/${server.session}/r/2`, ".entries tr[data-at]");
  await check(run, page, "strange-request");

  const open = async (nth) => {
    await page.locator(".entries .opener").nth(nth).click();
    await page.waitForSelector("dialog[open] .part pre");
  };
  const close = async () => {
    await page.keyboard.press("Escape");
    await noDialog(page);
  };
  // A summary replaced the messages that do not fit. It is before the newest message.
  await open(0);
  assert.equal(await page.locator("dialog .part pre").first().textContent(), ARABIC);
  await check(run, page, "strange-rtl");
  await page.keyboard.press("c");
  await until(page, "it is copied", () => document.querySelector(".copy").textContent === "Copied");
  assert.equal(await clipboard(), ARABIC);
  await close();

  // Five megabytes without a space: a part is shown, all of it is copied, and a button shows the rest.
  await open(3);
  const recorded = page.locator("dialog .shown").last();
  const shown = () => recorded.locator("pre").evaluate((pre) => pre.textContent.length);
  assert.match(await recorded.locator("h3").textContent(), /As recorded/);
  assert.ok(await shown() < LONG_WORD / 10, `${await shown()} characters are shown at first`);
  assert.match(await recorded.locator(".rest").textContent(), /4,900,000 more characters are not shown/);
  await check(run, page, "strange-long");
  await recorded.locator(".copy").click();
  await until(page, "it is copied", () => [...document.querySelectorAll(".copy")].at(-1).textContent === "Copied");
  assert.equal((await clipboard()).length, LONG_WORD);
  await recorded.locator(".whole").click();
  await until(page, "all of it is shown", (length) => [...document.querySelectorAll("dialog .part pre")].at(-1)?.textContent.length === length, LONG_WORD);
  assert.equal(await page.locator("dialog .rest").count(), 0);
  await close();
  await open(1);
  assert.ok((await page.locator("dialog .part pre").first().textContent()).includes(WORD));
  await close();

  // The beginning of right-to-left text is on the right, and visible.
  await page.setViewportSize({ width: 1280, height: 860 });
  const cell = page.locator(".entries .words").first();
  assert.equal(await cell.evaluate((words) => getComputedStyle(words).direction), "rtl");
  await check(run, page, "strange-wide");
  await page.close();
}

// A home with many sessions: the list contains only its visible part, and a search works without the server.
export async function many(run) {
  const server = await serve({ ...run, env: { ...run.env, CTX_HOME: writeMany(run.dir) } });
  const page = await openPage(run, { theme: "dark", width: 1280 });
  await go(page, server, "#/", ".sessions tr[data-at]");
  assert.equal(Number(await page.getAttribute(".sessions", "aria-rowcount")), SESSIONS + 1);
  const rows = () => page.locator(".sessions tr[data-at]").count();
  assert.ok(await rows() < 60, `${await rows()} rows`);
  await check(run, page, "many");
  await page.keyboard.press("End");
  await until(page, "the last is in sight", (last) => {
    const row = document.querySelector(".sessions tr.here");
    const box = document.querySelector(".scroll").getBoundingClientRect();
    return row?.dataset.at === String(last) && row.getBoundingClientRect().bottom <= box.bottom + 1;
  }, SESSIONS - 1);
  // The page also reloads the list when a session was replayed in the background.
  let release;
  const found = new Promise((done) => (release = done));
  await page.route("**/api/**", (route) => found.then(() => route.continue()));
  await page.fill("input[type=search]", "number 777");
  await until(page, "one is found", () => document.querySelectorAll(".sessions tr[data-at]").length === 1);
  release();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#readout .k-request");
  assert.equal(await text(page, "#name"), "Session number 777");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".sessions tr[data-at]");
  assert.equal(await page.inputValue("input[type=search]"), "number 777", "the search is still there");
  await page.close();
}

// Times are in the user's time zone, which is shown.
export async function zones(run, server) {
  const page = await openPage(run, { theme: "light", width: 1280 });
  const zone = await run.browser.newCDPSession(page);
  await zone.send("Emulation.setTimezoneOverride", { timezoneId: "Asia/Kolkata" });
  await go(page, server, `#/s/${encodeURIComponent(server.session)}/r/1`, ".pairs time");
  const time = page.locator(".pairs time").first();
  const utc = new Date(await time.getAttribute("datetime"));
  const there = new Date(utc.getTime() + 5.5 * 3600e3).toISOString().slice(0, 19).replace("T", " ");
  assert.equal(await time.textContent(), there);
  assert.match(await time.getAttribute("title"), /^Asia\/(Kolkata|Calcutta) time; .*Z$/);
  await page.close();
}

// The tab key visits all controls in document order, with visible focus.
export async function focus(run, server) {
  const page = await openPage(run, { theme: "light", width: 1280 });
  for (const [hash, there, all] of [
    ["#/", ".sessions tr[data-at]", ["skip", "mark", "nav", "nav", "theme", "keys", "search", "select", "opener"]],
    [`#/s/${encodeURIComponent(server.session)}`, "#chart .sent[d]", ["skip", "mark", "nav", "nav", "theme", "keys", "link", "radio", "chart", "opener"]],
    [`#/s/${encodeURIComponent(server.session)}/r/112`, ".entries tr[data-at]", ["skip", "mark", "nav", "nav", "theme", "keys", "link", "link", "button", "button", "region", "select", "select", "search", "opener"]],
  ]) {
    await page.goto(`${server.base}${hash}`);
    await page.reload();
    await page.waitForSelector(there);
    const gone = [];
    for (let n = 0; n < all.length; n += 1) {
      await page.keyboard.press("Tab");
      gone.push(await page.evaluate(() => {
        const it = document.activeElement;
        const outline = (of) => getComputedStyle(of).outlineStyle !== "none";
        if (!outline(it) && !(it.type === "radio" && outline(it.nextElementSibling))) return `${it.outerHTML.slice(0, 80)} shows no focus`;
        if (["skip", "theme", "keys", "chart"].includes(it.id)) return it.id;
        if (it.matches(".mark")) return "mark";
        if (it.matches("[data-view]")) return "nav";
        if (it.matches(".opener")) return "opener";
        if (it.matches("a")) return "link";
        if (it.matches("[role=region]")) return "region";
        return it.matches("input") ? it.type : it.localName;
      }));
    }
    assert.deepEqual(gone, all, hash);
  }
  // Closing an entry returns the focus to its row.
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open] .part pre");
  await page.keyboard.press("Escape");
  await noDialog(page);
  assert.ok(await page.evaluate(() => document.activeElement.matches(".entries .opener")));
  await page.close();
}
