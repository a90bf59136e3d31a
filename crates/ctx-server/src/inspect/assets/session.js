// One session: what each request carried, against what it would have carried.

import { compactionAt, requestAt, sessionAt, stay } from "./address.js";
import { ask, path, withQuery } from "./api.js";
import { makeOver } from "./entry.js";
import { makeRequests } from "./requests.js";
import { MAKERS, SOURCES, agoOf, failed, nothing, say, troubleOf, word, working } from "./words.js";

const SCALES = [
  ["window", "Window", "The axis ends a little above the window"],
  ["linear", "Linear", "The axis holds the largest request"],
  ["log", "Log", "Each step is ten times the one below"],
];

// A cursor that runs through a session must not be read out, nor written into the address, at every step.
const REST_MS = 250;

export function showSession(root, { id, query, entry, signal }) {
  const view = { id, session: null, model: null, chart: null, table: null, cursor: 0, unseen: 0, resting: 0, asked: cursorIn(query), root, signal };
  document.title = "Session · ctx inspector";
  view.over = makeOver({ session: id, address: (entry) => addressOf(view, entry), step: async () => null });
  root.append(working("Reading the session …"));
  signal.addEventListener("abort", () => clearTimeout(view.resting), { once: true });
  load(view, false).then(() => entry && view.model && view.over.show(entry));
  return {
    back: "#/",
    keys: () => (view.model && view.model.count ? keysOf(view) : {}),
    goto: ({ query, entry }) => {
      if (!view.model || !view.model.count) return;
      moveTo(view, cursorIn(query) ?? view.model.count - 1, true);
      view.over.show(entry);
    },
    heard: (kind) => kind !== "sessions" && view.session && load(view, true),
  };
}

// The request under the cursor, as the address has it; where it has none that is the newest.
function cursorIn(query) {
  const number = Number(query.get("r"));
  return Number.isInteger(number) && number > 0 ? number - 1 : null;
}

async function load(view, isUpdate) {
  const url = path`sessions/${view.id}`;
  try {
    // What was there stays there while a session only grows.
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

// Whether what was known of a session still holds.
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

// The session as a report of a replay has it: the functions that all pages share read that.
function reportOf(session) {
  const { requests, limit } = session;
  const sum = (of) => requests.reduce((all, request) => all + (of(request) || 0), 0);
  const priced = requests.some((request) => typeof request.costUsd === "number");
  const sentTokens = sum((request) => request.sentTokens);
  const cached = requests.some((request) => typeof request.cachedTokens === "number");
  return {
    ...session,
    requests: requests.map((request) => ({ ...request, entryId: request.entry, timestamp: request.at })),
    compactions: session.compactions.filter((one) => one.applied && one.number).map((one) => ({ request: one.number - 1 })),
    totals: session.totals || {
      requests: requests.length,
      compactions: session.compactions.filter((one) => one.applied).length,
      rawTokens: sum((request) => request.rawTokens),
      sentTokens,
      overflowsWithout: requests.filter((request) => request.rawTokens > limit).length,
      overflowsWith: requests.filter((request) => !request.fits).length,
      recalledTokens: sum((request) => request.recalledTokens),
      recalls: requests.filter((request) => request.recalledTokens > 0).length,
      costWithUsd: priced ? sum((request) => request.costUsd) : null,
      prefixReuse: cached && sentTokens > 0 ? sum((request) => request.cachedTokens) / sentTokens : null,
    },
  };
}

// --- drawing ---

function draw(view, session, isUpdate) {
  const following = !isUpdate || view.cursor >= view.session.requests.length - 1;
  // Who scrolled the table away reads there.
  const inSight = !isUpdate || !view.table || view.table.seesCursor();
  const added = isUpdate ? session.requests.length - view.session.requests.length : 0;
  view.session = session;
  view.model = buildModel(reportOf(session));
  if (!isUpdate) makeFrame(view);
  writeHead(view);
  for (const id of ["totals", "settings", "layers"]) byId(id).replaceChildren();
  writeTotals(view.model);
  byId("lede").hidden = !view.model.count;
  writeCompactionList(view);
  byId("chart-and-table").hidden = !view.model.count;
  byId("no-requests").hidden = view.model.count > 0;
  if (!view.model.count) return;
  if (!view.chart) makeChart(view);
  view.chart.model = view.model;
  const seesAll = view.chart.lo === 0 && view.chart.hi >= view.model.count - added;
  if (seesAll || view.chart.hi > view.model.count) setView(view.chart, 0, view.model.count);
  else drawChart(view.chart);
  view.table.update(view.model);
  if (!following) view.unseen += added;
  if (isUpdate && added > 0) say(`${plural(added, "more request")}`);
  const newest = view.model.count - 1;
  moveTo(view, isUpdate ? (following ? newest : view.cursor) : view.asked ?? newest, inSight);
}

function makeFrame(view) {
  const scales = SCALES.map(([value, name, title]) => el("label", {},
    el("input", { type: "radio", name: "scale", value }), el("span", { title }, name)));
  const zoomOut = el("button", { type: "button", id: "zoom-out", hidden: "" }, "Whole session");
  const newer = el("button", { type: "button", id: "newer", hidden: "", title: "The key End goes there too" });
  newer.addEventListener("click", () => moveTo(view, view.model.count - 1, true));
  view.root.replaceChildren(
    el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: "#/" }, "Sessions")),
    el("div", { class: "head" }, el("h1", { id: "name" }), el("p", { id: "path", class: "path" }), el("p", { id: "facts", class: "facts" })),
    el("div", { id: "warnings" }),
    el("section", { "aria-label": "Totals" },
      el("p", { id: "lede", class: "lede" }),
      el("dl", { id: "totals", class: "totals" }),
      el("dl", { id: "settings", class: "settings" }),
      el("dl", { id: "layers", class: "layers" })),
    el("div", { id: "no-requests", hidden: "" }, nothing("This session holds no answer of a model, so there is no request to show.")),
    el("div", { id: "chart-and-table", class: "beside" },
      el("section", { class: "chart-section", "aria-labelledby": "chart-title" },
        el("div", { class: "bar" }, el("h2", { id: "chart-title" }, "Tokens per request"),
          el("div", { class: "tools" }, newer, zoomOut,
            el("fieldset", { class: "segments" }, el("legend", { class: "hidden" }, "Scale of the token axis"), ...scales))),
        el("dl", { id: "readout", class: "readout" }),
        el("div", { id: "chart", class: "chart", tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-labelledby": "chart-title", "aria-describedby": "chart-keys" }, plot()),
        el("p", { id: "chart-keys", class: "keys" },
          key(["←", "→"], "move"), key(["n", "p"], "with edits"), key(["+", "−"], "or drag to zoom"), key(["Enter"], "open"))),
      el("section", { class: "requests-section", "aria-labelledby": "rows-title" }, el("h2", { id: "rows-title" }, "Requests"))),
    el("section", { id: "compactions", "aria-labelledby": "compactions-title" }, el("h2", { id: "compactions-title" }, "Compactions"), el("div", { id: "compaction-list" })));
  view.table = makeRequests({
    moved: (at) => moveTo(view, at, false),
    opened: (at) => openRequest(view, at),
  });
  view.root.querySelector(".requests-section").append(view.table.box);
}

function plot() {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ id: "plot", "aria-hidden": "true", focusable: "false" })) svg.setAttribute(name, value);
  return svg;
}

function key(keys, told) {
  return el("span", {}, ...keys.flatMap((one) => [el("kbd", {}, one), " "]), told);
}

function makeChart(view) {
  view.chart = createChart(view.model, {
    moved: (at) => moveTo(view, at, true),
    opened: (at) => openRequest(view, at),
    viewed: (zoomed) => (byId("zoom-out").hidden = !zoomed),
  });
  byId("zoom-out").addEventListener("click", () => setView(view.chart, 0, view.model.count));
  for (const radio of view.root.querySelectorAll("input[name=scale]")) {
    radio.checked = radio.value === view.chart.scale;
    radio.addEventListener("change", () => setScale(view.chart, radio.value));
  }
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
  byId("warnings").replaceChildren(...session.warnings.map((told) => el("p", { class: "warning" }, told)));
}

function writeCompactionList(view) {
  const { session } = view;
  byId("compactions").hidden = session.compactions.length === 0;
  byId("compaction-list").replaceChildren(el("ul", { class: "links" }, ...session.compactions.map((one) => {
    const before = one.number ? `Before request ${whole(one.number)}` : "After the last request";
    const href = compactionAt(view.id, one.id);
    const state = one.undone ? " · undone" : one.applied ? "" : " · not part of this replay";
    const by = one.receipt ? "" : ` · by ${word(MAKERS, one.by)}`;
    const trouble = troubleOf(one.summarised);
    return el("li", {}, el("a", { href }, before), " ",
      el("span", { class: "quiet" }, compactionHead(told(one), one.receipt) + by + state),
      trouble ? el("span", { class: "no", title: trouble }, " · no summary of a model") : null);
  })));
}

// What is not known of a compaction is absent here, and null in a report.
export function told(one) {
  return { ...one, tokensAfter: one.tokensAfter ?? null };
}

// --- the cursor ---

function moveTo(view, at, follow) {
  const newest = view.model.count - 1;
  view.cursor = Math.max(0, Math.min(at, newest));
  moveChartCursor(view.chart, view.cursor);
  writeReadout(view.model, view.cursor);
  view.table.follow(view.cursor, follow);
  if (view.cursor === newest) view.unseen = 0;
  byId("newer").hidden = view.unseen === 0;
  byId("newer").textContent = `${plural(view.unseen, "more request")} ↓`;
  clearTimeout(view.resting);
  view.resting = setTimeout(() => {
    say(spokenOf(view.model, view.cursor));
    writeAddress(view);
  }, REST_MS);
}

function addressOf(view, entry) {
  const isNewest = view.cursor === view.model.count - 1;
  return sessionAt(view.id, isNewest ? {} : { r: view.cursor + 1 }, entry);
}

function writeAddress(view) {
  stay(addressOf(view, view.over.entry));
}

function spokenOf(model, at) {
  return [
    `Request ${whole(at + 1)}: raw ${whole(model.raw[at])}`,
    `sent ${whole(model.sent[at])} tokens`,
    model.fits[at] ? "fits" : "does not fit",
    plural(model.edits[at], "edit"),
  ].join(", ");
}

function openRequest(view, at) {
  moveTo(view, at, false);
  writeAddress(view);
  location.hash = requestAt(view.id, at + 1);
}

function keysOf(view) {
  const move = (at) => () => moveTo(view, at, true);
  return {
    ...view.table.keys(),
    ArrowRight: move(view.cursor + 1),
    ArrowLeft: move(view.cursor - 1),
    n: move(nextEdited(view.model, view.cursor, 1)),
    p: move(nextEdited(view.model, view.cursor, -1)),
    "+": () => zoomChart(view.chart, 0.5),
    "=": () => zoomChart(view.chart, 0.5),
    "-": () => zoomChart(view.chart, 2),
    Enter: () => openRequest(view, view.cursor),
  };
}
