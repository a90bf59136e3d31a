// The inspector in a browser: every view opened and used, dark and light, on a desktop and on a phone.
//
//     node inspector.mjs CTX EXAMPLES MODULES OUT [only]
//
// CTX is the program, EXAMPLES the folder of sample sessions, MODULES a folder in which `npm ci` ran with
// this folder's package files, and OUT the folder of the screenshots. `only` runs the step with that name.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { closeBrowser, openBrowser, openPage, serve } from "./browser.mjs";
import { hostile, large, live, openLarge, undo } from "./cases.mjs";
import { makeHome } from "./fixtures.mjs";
import { picture } from "./picture.mjs";
import { proxied } from "./proxied.mjs";
import { copying, focus, links, many, zones } from "./tries.mjs";
import { everyView } from "./views.mjs";

const [bin, examples, modules, out, only] = process.argv.slice(2);
const dir = mkdtempSync(join(tmpdir(), "ctx-inspector-home-"));
const home = join(dir, "home");
const run = {
  bin: resolve(bin),
  examples: resolve(examples),
  modules: resolve(modules),
  out: resolve(out),
  chromium: process.env.CTX_CHROMIUM || "/usr/bin/chromium",
  dir,
  home,
  env: { PATH: process.env.PATH, HOME: dir, CTX_HOME: home, NO_COLOR: "1" },
  servers: [],
  seen: 0,
  faults: [],
};

async function main() {
  mkdirSync(run.out, { recursive: true });
  const about = makeHome(run);
  await openBrowser(run);
  const server = await serve(run, about.growing, "--window", "64k");
  const isSelected = (name) => !only || only === name;
  const opened = isSelected("large") ? openLarge(run) : null;
  const steps = {
    views: async () => {
      for (const theme of ["dark", "light"]) {
        for (const width of [1280, 360]) {
          const page = await openPage(run, { theme, width });
          await everyView(run, page, server, about);
          await page.close();
        }
      }
    },
    links: () => links(run, server),
    copying: () => copying(run),
    many: () => many(run),
    zones: () => zones(run, server),
    focus: () => focus(run, server),
    hostile: () => hostile(run),
    undo: () => undo(run, server),
    live: () => live(run, about),
    proxied: () => proxied(run),
    picture: () => picture(run),
    large: () => large(run, opened),
  };
  for (const [name, step] of Object.entries(steps)) {
    if (!isSelected(name)) continue;
    await step();
    assert.deepEqual(run.faults, [], `${name}: axe`);
    console.log(`${name}: ok`);
  }
}

let code = 0;
try {
  await main();
  console.log(`${run.seen} views checked`);
} catch (error) {
  console.error(error);
  code = 1;
}
await closeBrowser(run).catch(() => {});
await Promise.all(run.servers.map((server) => server.stop()));
rmSync(dir, { recursive: true, force: true });
process.exit(code);
