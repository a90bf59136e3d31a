// Puts a view into the page for each address, and gives it the keys.

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

const page = { server: { writes: false, agents: [] }, view: null, hush: null, leaving: null };

async function start() {
  listenToTheme();
  byId("keys").addEventListener("click", openKeys);
  byId("skip").addEventListener("click", () => byId("view").focus());
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", route);
  try {
    page.server = await ask("server");
  } catch (error) {
    byId("view").replaceChildren(failed(error, () => location.reload()));
    return;
  }
  route();
}

// --- addresses ---

// `#/`, `#/memory?q=`, `#/s/ID`, `#/s/ID/r/N`, `#/s/ID/c/C`.
function place() {
  const [way, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = way.split("/").map(decoded);
  return { parts, query: new URLSearchParams(query) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function viewOf({ parts, query }) {
  const [kind, id, what, which] = parts;
  if (kind === "memory") return ["memory", showMemory, { query }];
  if (kind !== "s" || !id) return ["sessions", showSessions, {}];
  if (what === "r") return ["sessions", showRequest, { id, number: Number(which), query }];
  if (what === "c") return ["sessions", showCompaction, { id, compaction: which }];
  return ["sessions", showSession, { id, number: Number(query.get("r")) || 0 }];
}

function route() {
  leave();
  const [tab, show, asked] = viewOf(place());
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
  page.view = show(root, { ...asked, server: page.server, signal: page.leaving.signal }) || {};
  page.hush = listen(asked.id, (kind) => page.view.heard && page.view.heard(kind));
}

function leave() {
  if (page.leaving) page.leaving.abort();
  if (page.hush) page.hush();
  for (const box of document.querySelectorAll("dialog")) box.close();
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
  keys[key]();
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
  byId("theme").textContent = { auto: "◑ Auto", light: "○ Light", dark: "● Dark" }[theme];
  byId("theme").setAttribute("aria-label", `Colours: ${theme}. Change`);
  try {
    localStorage.setItem("ctx-theme", theme);
  } catch {
    // Where nothing is kept it is chosen again the next time.
  }
}

start();
