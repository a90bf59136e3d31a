// The picture for the README: a session with compactions, trimmed tool results and recalls.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { check, go, openPage, serve, text } from "./browser.mjs";

const MOST_BYTES = 300_000;

// Memory recalls what matches a later message, and old tool results are trimmed.
const CONFIG = { agents: { defaults: { memoryContext: { enabled: true }, contextPruning: { mode: "turn-age", turns: 3 } } } };

export async function picture(run) {
  const home = join(run.dir, "story");
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(join(home, "ctx.json5"), JSON.stringify(CONFIG), { mode: 0o600 });
  const transcript = join(home, "fix-flaky-test.jsonl");
  copyFileSync(join(run.examples, "fix-flaky-test.jsonl"), transcript);
  const server = await serve({ ...run, env: { ...run.env, CTX_HOME: home } }, transcript, "--window", "48k", "--profile", "pi");
  const page = await openPage(run, { theme: "light", width: 1280 });
  // Hides the folder of this run.
  await page.route(/api\/sessions\/[^/]+$/, async (route) => {
    const response = await route.fetch();
    const session = await response.json();
    return route.fulfill({ response, json: { ...session, path: "~/tidemark/fix-flaky-test.jsonl" } });
  });
  await go(page, server, `#/s/${server.session}`, "#chart .sent[d]");
  for (const layer of ["compaction", "memory", "pruning"]) assert.match(await text(page, "#layers"), new RegExp(layer));
  assert.match(await text(page, "#layers"), /recalled [\d,]+ tokens/);
  assert.ok(await page.locator("#compaction-list a").count() > 0);
  const box = await page.locator("#plot").boundingBox();
  await page.mouse.move(box.x + box.width * 0.62, box.y + box.height * 0.3);
  await check(run, page, "story");
  const path = join(run.out, "inspector.png");
  await page.screenshot({ path, fullPage: true });
  assert.ok(statSync(path).size < MOST_BYTES, `the picture has ${statSync(path).size} bytes`);
  if (process.env.CTX_UPDATE_DOCS) copyFileSync(path, join(import.meta.dirname, "../../docs/inspector.png"));
  await page.close();
}
