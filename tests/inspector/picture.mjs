// The picture for the README.

import assert from "node:assert/strict";
import { copyFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { go, openPage } from "./browser.mjs";

const MOST_BYTES = 300_000;

export async function picture(run, server) {
  const page = await openPage(run, { theme: "light", width: 1280 });
  await go(page, server, "#/", ".sessions tr[data-at]");
  await page.locator(".sessions .opener", { hasText: "growing" }).click();
  await page.waitForSelector("#chart .sent[d]");
  const box = await page.locator("#plot").boundingBox();
  await page.mouse.move(box.x + box.width * 0.62, box.y + box.height * 0.5);
  const path = join(run.out, "inspector.png");
  await page.screenshot({ path });
  assert.ok(statSync(path).size < MOST_BYTES, `the picture has ${statSync(path).size} bytes`);
  if (process.env.CTX_UPDATE_DOCS) copyFileSync(path, join(import.meta.dirname, "../../docs/inspector.png"));
  await page.close();
}
