// Shows the view of the address, and passes keys and events to it.

import { place, whenThere } from "./address.js";
import { ask } from "./api.js";
import { listen } from "./live.js";
import { showCompaction } from "./compaction.js";
import { showMemory } from "./memory.js";
import { showRequest } from "./request.js";
import { showSession } from "./session.js";
import { showSessions } from "./sessions.js";

const KEYS = [
  ["j k ↓ ↑", "next, previous row"],
  ["PgUp PgDn Home End", "move by pages, or to the first or last row"],
  ["Enter", "open the current row"],
  ["Esc", "back, or close"],
  ["← →", "previous, next request"],
  ["n p", "next, previous request with edits (in a session)"],
  ["+ −", "zoom the chart"],
  ["j k c", "next, previous entry; copy its text (in an opened entry)"],
  ["/", "search"],
  ["f", "filter the list (in a request or a compaction)"],
  ["u", "undo (in a compaction)"],
  ["s m", "sessions, memory"],
  ["t", "dark, light, or as the system"],
  ["?", "list the keys"],
];

const page = { server: null, shown: null, view: null, hush: null, leaving: null };

async function start() {
  startFrame(KEYS, keysNow, whenThere);
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

// Returns the view of an address: its tab, its function, its parameters, and a name, which is equal
// for all addresses of one view.
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
  // Screen readers follow the focus to the new view.
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

// The server is back, perhaps restarted: another version has another page, and other options may
// allow or forbid writes.
async function comeBack() {
  try {
    const server = await ask("server");
    if (server.version !== page.server.version) location.reload();
    Object.assign(page.server, server);
  } catch {
    // The connection was lost again: wait for the next reconnect.
    return;
  }
  const again = byId("view").querySelector(".failed .again");
  if (again) again.click();
  else if (page.view.heard) page.view.heard("again");
}

// --- keys ---

function keysNow() {
  return {
    s: () => (location.hash = "#/"),
    m: () => (location.hash = "#/memory"),
    Escape: () => page.view && page.view.back && (location.hash = page.view.back),
    ...(page.view && page.view.keys ? page.view.keys() : {}),
  };
}

start();
