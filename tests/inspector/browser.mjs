// A browser, a server under test, and the checks of every view.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };

// Packages are in `modules`, not in this folder.
export async function openBrowser(run) {
  const from = createRequire(join(run.modules, "node_modules", "of-the-test.js"));
  const { chromium } = from("playwright-core");
  run.axe = readFileSync(from.resolve("axe-core/axe.min.js"), "utf8");
  run.profile = mkdtempSync(join(tmpdir(), "ctx-inspector-"));
  run.browser = await chromium.launchPersistentContext(run.profile, {
    executablePath: run.chromium,
    args: FLAGS,
    headless: true,
    deviceScaleFactor: 1,
    reducedMotion: "reduce",
  });
}

export async function closeBrowser(run) {
  await run.browser?.close();
  if (run.profile) rmSync(run.profile, { recursive: true, force: true });
}

// Starts `ctx inspect`, and returns its address.
export async function serve(run, ...args) {
  const port = args.includes("--listen") ? [] : ["--port", "0"];
  const { address, stop } = await start(run, "inspect", ...port, ...args);
  const url = new URL(address.url);
  return { base: `${url.origin}/`, port: url.port, session: address.session, stop };
}

// Starts a server of ctx, and reads its address. `stop` sends the signal of Ctrl-C.
export async function start(run, command, ...args) {
  const child = spawn(run.bin, [command, ...args, "--json"], { env: run.env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "", errors = "";
  child.stderr.on("data", (text) => (errors += text));
  const ended = new Promise((done) => child.on("exit", (code, signal) => done({ code, signal })));
  const stop = async () => {
    child.kill("SIGINT");
    return ended;
  };
  run.servers.push({ stop });
  const address = await new Promise((found, failed) => {
    child.stdout.on("data", (text) => {
      output += text;
      try {
        found(JSON.parse(output));
      } catch {
        // The output is incomplete.
      }
    });
    ended.then(() => failed(new Error(`ctx ${command} ended: ${errors}`)));
  });
  return { address, stop };
}

// A page whose console is monitored: any error there fails the test, except those in `expects`.
export async function openPage(run, { theme, width }) {
  const page = await run.browser.newPage();
  await page.setViewportSize({ width, height: width < 500 ? 780 : 860 });
  await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
  page.troubles = [];
  page.expects = null;
  const trouble = (text) => {
    if (!page.expects || !page.expects.test(text)) page.troubles.push(text);
  };
  page.on("console", (line) => line.type() === "error" && trouble(`console: ${line.text()}`));
  page.on("pageerror", (error) => trouble(`error: ${error.stack}`));
  page.on("dialog", (dialog) => {
    trouble(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.shot = `${theme}-${width}`;
  // For development of the page: loads its files from a folder instead of from the program.
  const assets = process.env.CTX_INSPECTOR_ASSETS;
  if (assets) {
    await page.route(/\/assets\/|\/$/, async (route) => {
      const name = new URL(route.request().url()).pathname.split("/").at(-1) || "index.html";
      const file = join(assets, name);
      if (!existsSync(file)) return route.continue();
      const response = await route.fetch();
      const headers = { ...response.headers(), "content-type": TYPES[extname(name)] };
      return route.fulfill({ status: 200, headers, body: readFileSync(file) });
    });
  }
  return page;
}

// Navigates within the page, and waits for an element.
export async function go(page, server, hash, selector) {
  const url = `${server.base}${hash}`;
  if (page.url().startsWith(server.base)) await page.evaluate((to) => (location.hash = to), hash.replace(/^#?/, "#"));
  else await page.goto(url);
  await page.waitForSelector(selector);
}

// Checks a view: no injected script ran, no errors were logged, axe finds nothing serious, and the page is
// not wider than its window.
export async function check(run, page, name) {
  // An overlay covers the window, not the whole page.
  const fullPage = !(await page.$("dialog[open]"));
  await page.screenshot({ path: join(run.out, `${name}-${page.shot}.png`), fullPage });
  assert.equal(await page.evaluate(() => window.hit), undefined, `${name}: a script of the transcript ran`);
  assert.deepEqual(page.troubles, [], `${name} (${page.shot})`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${name} (${page.shot}): the page is ${wide} pixels too wide`);
  if (!(await page.evaluate(() => typeof window.axe))?.startsWith("object")) await page.evaluate(run.axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => ({
      id: one.id, nodes: one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)}: ${node.failureSummary}`),
    }));
  });
  for (const one of found) run.faults.push(`${name} (${page.shot}): ${one.id}: ${one.nodes.join(" | ")}`);
  run.seen += 1;
}

export async function text(page, selector) {
  return (await page.textContent(selector)).trim();
}

// Waits until a condition holds, without any action on the page.
export async function until(page, what, probe, argument) {
  await page.waitForFunction(probe, argument, { timeout: 60_000 }).catch((error) => {
    throw new Error(`${what}: ${error.message.split("\n")[0]}`);
  });
}
