// One session, which may grow.

import { compactionAt, crumbs, requestAt, sessionAt, stay } from "./address.js";
import { ask, path, withQuery } from "./api.js";
import { makeOver } from "./entry.js";

export function showSession(root, { id, query, entry, signal }) {
  const view = { id, root, signal, session: null, shown: null, newer: null, unseen: 0, asked: cursorIn(query) };
  document.title = "Session · ctx inspector";
  view.over = makeOver({ session: id, address: (entry) => addressOf(view, entry), step: async () => null });
  root.append(working("Reading the session …"));
  signal.addEventListener("abort", () => clearTimeout(view.shown?.resting), { once: true });
  const count = () => (view.shown ? view.shown.model.count : 0);
  load(view, false).then(() => entry && view.shown && view.over.show(entry));
  return {
    back: "#/",
    keys: () => (count() ? sessionKeys(view.shown) : {}),
    goto: ({ query, entry }) => {
      if (!count()) return;
      moveCursor(view.shown, cursorIn(query) ?? count() - 1, true);
      view.over.show(entry);
    },
    heard: (kind) => kind !== "sessions" && view.session && load(view, true),
  };
}

// The request under the cursor according to the address; null means the newest.
function cursorIn(query) {
  const number = Number(query.get("r"));
  return Number.isInteger(number) && number > 0 ? number - 1 : null;
}

async function load(view, isUpdate) {
  const url = path`sessions/${view.id}`;
  try {
    // While a session only grows, the loaded requests stay valid.
    const known = isUpdate ? view.session.requests.length : 0;
    let session = await ask(withQuery(url, { from: known || null }), {
      signal: view.signal,
      working: (progress) => isUpdate || view.root.replaceChildren(progressOf(progress)),
    });
    if (isUpdate && !grew(view.session, session)) session = await ask(url, { signal: view.signal });
    else if (isUpdate) session.requests = view.session.requests.concat(session.requests);
    draw(view, session, isUpdate);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (isUpdate) say(error.message);
    else view.root.replaceChildren(failed(error, () => load(view, false)));
  }
}

// Whether the known part of a session is still valid.
function grew(before, after) {
  const ids = (session) => session.compactions.map((one) => `${one.id} ${one.undone}`).join();
  return after.from === before.requests.length && ids(before) === ids(after);
}

export function progressOf(progress) {
  const box = working("Replaying the session …");
  if (progress && progress.total) {
    box.append(
      el("progress", { max: progress.total, value: progress.done, "aria-label": "Replayed" }),
      el("span", { class: "quiet" }, `${whole(progress.done)} of ${plural(progress.total, "message")}`));
  }
  return box;
}

// Returns the totals of a conversation of the proxy, which has no replay.
function totalsOf({ requests, limit }) {
  const sum = (of) => requests.reduce((all, request) => all + (of(request) || 0), 0);
  const some = (of) => requests.some((request) => typeof of(request) === "number");
  const sentTokens = sum((request) => request.sentTokens);
  return {
    requests: requests.length,
    rawTokens: sum((request) => request.rawTokens),
    sentTokens,
    overflowsWithout: requests.filter((request) => request.rawTokens > limit).length,
    overflowsWith: requests.filter((request) => !request.fits).length,
    recalledTokens: sum((request) => request.recalledTokens),
    recalls: requests.filter((request) => request.recalledTokens > 0).length,
    costWithUsd: some((request) => request.costUsd) ? sum((request) => request.costUsd) : null,
    prefixReuse: some((request) => request.cachedTokens) && sentTokens > 0 ? sum((request) => request.cachedTokens) / sentTokens : null,
  };
}

// --- drawing ---

function draw(view, session, isUpdate) {
  const before = view.shown;
  const following = !isUpdate || before.cursor >= view.session.requests.length - 1;
  // Do not scroll the table if the user scrolled away from the cursor.
  const inSight = !isUpdate || !before.table || before.table.seesCursor();
  const added = isUpdate ? session.requests.length - view.session.requests.length : 0;
  view.session = session;
  if (!isUpdate) makeFrame(view);
  writeHead(view);
  drawSession(view.shown, { ...session, totals: session.totals || totalsOf(session) }, added);
  const { model, cursor } = view.shown;
  if (!model.count) return;
  if (!following) view.unseen += added;
  if (isUpdate && added > 0) say(`${plural(added, "more request")}`);
  const newest = model.count - 1;
  moveCursor(view.shown, isUpdate ? (following ? newest : cursor) : view.asked ?? newest, inSight);
}

function makeFrame(view) {
  view.newer = buttonOf("", () => moveCursor(view.shown, view.shown.model.count - 1, true), { id: "newer", hidden: "", title: "Also the key End" });
  view.shown = makeSession(view.session, {
    opened: (at) => openRequest(view, at),
    rested: () => writeAddress(view),
    moved: () => writeUnseen(view),
    compaction: (row, name) => el("a", { href: compactionAt(view.id, row.id) }, name),
    chartTools: [view.newer],
  });
  view.root.replaceChildren(
    crumbs(),
    el("div", { class: "head" }, el("h1", { id: "name" }), el("p", { id: "path", class: "path" }), el("p", { id: "facts", class: "facts" })),
    el("div", { id: "warnings" }),
    ...view.shown.nodes);
}

function writeHead(view) {
  const { session } = view;
  document.title = `${session.title} · ctx inspector`;
  byId("name").textContent = session.title;
  byId("path").textContent = session.path || "";
  const facts = [
    word(SOURCES, session.source),
    session.format,
    session.agent ? `agent ${session.agent}` : null,
    typeof session.messages === "number" ? plural(session.messages, "message") : null,
    session.bytes ? bytes(session.bytes) : null,
  ];
  byId("facts").replaceChildren(facts.filter(Boolean).map((one) => `${one} · `).join(""), "last active ", agoOf(session.lastAt));
  byId("warnings").replaceChildren(...session.warnings.map((text) => el("p", { class: "warning" }, text)));
}

// --- the cursor ---

function writeUnseen(view) {
  if (view.shown.cursor === view.shown.model.count - 1) view.unseen = 0;
  view.newer.hidden = view.unseen === 0;
  view.newer.textContent = `${plural(view.unseen, "more request")} ↓`;
}

function addressOf(view, entry) {
  const { cursor, model } = view.shown;
  return sessionAt(view.id, cursor === model.count - 1 ? {} : { r: cursor + 1 }, entry);
}

function writeAddress(view) {
  stay(addressOf(view, view.over.entry));
}

function openRequest(view, at) {
  moveCursor(view.shown, at, false);
  writeAddress(view);
  location.hash = requestAt(view.id, at + 1);
}
