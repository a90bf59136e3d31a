// Puts a view into the page for each address, and gives it the keys.

import { place, whenThere } from "./address.js";
import { ask } from "./api.js";
import { openKeys } from "./dialogs.js";
import { listen } from "./live.js";
import { failed } from "./words.js";
import { showCompaction } from "./compaction.js";
import { showMemory } from "./memory.js";
import { showRequest } from "./request.js";
import { showSession } from "./session.js";
import { showSessions } from "./sessions.js";

const THEMES = ["auto", "light", "dark"];

const page = { server: null, shown: null, view: null, hush: null, leaving: null };

async function start() {
  listenToTheme();
  byId("keys").addEventListener("click", openKeys);
  byId("skip").addEventListener("click", () => byId("view").focus());
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", route);
  begin();
}

async function begin() {
  try {
    page.server = await ask("server");
  } catch (error) {
    byId("view").replaceChildren(failed(error, begin));
    return;
  }
  route();
}

// --- addresses ---

// What is shown at an address: its tab, what shows it, what that is asked, and a name by which another
// address is known to be the same view.
function viewOf({ kind, id, what, which, query, entry }) {
  const asked = { id, query, entry };
  if (kind === "memory") return { tab: "memory", show: showMemory, asked: { query }, name: "memory" };
  if (kind !== "s" || !id) return { tab: "sessions", show: showSessions, asked: { query }, name: "sessions" };
  const name = [what, id, which].join("\n");
  if (what === "r") return { tab: "sessions", show: showRequest, asked: { ...asked, number: Number(which) }, name };
  if (what === "c") return { tab: "sessions", show: showCompaction, asked: { ...asked, compaction: which }, name };
  return { tab: "sessions", show: showSession, asked, name: `s\n${id}` };
}

function route() {
  if (!page.server) return;
  const { tab, show, asked, name } = viewOf(place());
  if (name === page.shown && page.view.goto) {
    page.view.goto(asked);
    return;
  }
  leave();
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const root = byId("view");
  root.replaceChildren();
  scrollTo(0, 0);
  // Who cannot see that the view is another is taken to it.
  if (page.view) root.focus({ preventScroll: true });
  page.leaving = new AbortController();
  page.shown = name;
  page.view = show(root, { ...asked, server: page.server, signal: page.leaving.signal }) || {};
  page.hush = listen(asked.id, heard);
}

function leave() {
  if (page.leaving) page.leaving.abort();
  if (page.hush) page.hush();
  for (const box of document.querySelectorAll("dialog")) box.close();
}

function heard(kind) {
  if (kind === "hello") return;
  if (kind === "again") {
    comeBack();
    return;
  }
  if (page.view.heard) page.view.heard(kind);
}

// The server was gone. One of another version has another page; one that was started otherwise may let
// write, or not any more.
async function comeBack() {
  try {
    const server = await ask("server");
    if (server.version !== page.server.version) location.reload();
    Object.assign(page.server, server);
  } catch {
    // It went away again, and is waited for.
    return;
  }
  const again = byId("view").querySelector(".failed .again");
  if (again) again.click();
  else if (page.view.heard) page.view.heard("again");
}

// --- keys ---

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  const { target, key } = event;
  const inField = target.matches("input:not([type=radio]), select, textarea");
  if (inField) {
    if (key === "Escape") target.blur();
    else if (key === "Enter" || key === "ArrowDown") fromField(event);
    return;
  }
  if (target.matches("input[type=radio]") && key.startsWith("Arrow")) return;
  // Enter and the space bar press what is focused.
  if (key === "Enter" && target.matches("a, button, summary")) return;
  const keys = { ...everywhere(), ...(page.view && page.view.keys ? page.view.keys() : {}) };
  if (!Object.hasOwn(keys, key)) return;
  event.preventDefault();
  whenThere(keys[key]);
}

// From the search into what it found.
function fromField(event) {
  const keys = page.view && page.view.keys ? page.view.keys() : {};
  // A form is sent by Enter.
  const isSent = event.key === "Enter" && event.target.form;
  if (event.target.type !== "search" || !keys.j || isSent) return;
  event.preventDefault();
  keys.j();
}

function everywhere() {
  return {
    "?": openKeys,
    t: nextTheme,
    s: () => (location.hash = "#/"),
    m: () => (location.hash = "#/memory"),
    "/": () => {
      const field = document.querySelector("main input[type=search]");
      if (field) field.select();
    },
    Escape: () => page.view && page.view.back && (location.hash = page.view.back),
  };
}

// --- dark and light ---

function listenToTheme() {
  byId("theme").addEventListener("click", nextTheme);
  setTheme(remembered());
}

function remembered() {
  try {
    const kept = localStorage.getItem("ctx-theme");
    return THEMES.includes(kept) ? kept : "auto";
  } catch {
    return "auto";
  }
}

function nextTheme() {
  const now = THEMES.indexOf(document.documentElement.dataset.theme);
  setTheme(THEMES[(now + 1) % THEMES.length]);
}

function setTheme(theme) {
  const root = document.documentElement;
  root.dataset.theme = theme;
  root.style.colorScheme = theme === "auto" ? "light dark" : theme;
  const [mark, told] = { auto: ["◑", "Auto"], light: ["○", "Light"], dark: ["●", "Dark"] }[theme];
  byId("theme").replaceChildren(mark, el("span", { class: "label" }, ` ${told}`));
  byId("theme").setAttribute("aria-label", `Colours: ${theme}. Change`);
  try {
    localStorage.setItem("ctx-theme", theme);
  } catch {
    // Where nothing is kept it is chosen again the next time.
  }
}

start();
