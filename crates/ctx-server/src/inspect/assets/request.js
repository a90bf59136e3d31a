// One request opened: what it is made of, what it does to the cached prefix, each entry and its fate.

import { ask, path, withQuery } from "./api.js";
import { openEntry } from "./entry.js";
import { progressOf } from "./session.js";
import { makeTable, pagedRows, remake, setCount, tableKeys } from "./table.js";
import { ACTIONS, COMPONENTS, STATES, entryName, failed, nothing, stateOf, word, working } from "./words.js";

const COLUMNS = [
  { name: "Entry", kind: "c-entry" },
  { name: "Begins", kind: "c-begins" },
  { name: "State", kind: "c-state" },
  { name: "Tokens", kind: "c-tokens", number: true },
  { name: "By", kind: "c-layer" },
  { name: "Why", kind: "c-why" },
];

export function showRequest(root, { id, number, signal }) {
  document.title = `Request ${number} · ctx inspector`;
  const view = { id, number, signal, root, request: null, table: null, paged: null, filter: { state: "", layer: "", q: "" } };
  root.append(working("Reading the request …"));
  open(view);
  return {
    back: sessionOf(view),
    keys: () => (view.request ? keysOf(view) : {}),
    // What was sent does not change; how many requests there are may.
    heard: (kind) => kind !== "sessions" && view.request && ask(urlOf(view, { count: 1 }), { signal }).then(
      (request) => writeSteps(view, request.requests), () => {}),
  };
}

function urlOf(view, asked) {
  return withQuery(path`sessions/${view.id}/requests/${view.number}`, asked);
}

function sessionOf(view) {
  return `#/s/${encodeURIComponent(view.id)}?r=${view.number}`;
}

async function open(view) {
  const { root, signal } = view;
  try {
    view.request = await ask(urlOf(view, {}), { signal, working: (progress) => root.replaceChildren(progressOf(progress)) });
    draw(view);
  } catch (error) {
    if (error.name !== "AbortError") root.replaceChildren(crumbs(view), failed(error, () => open(view)));
  }
}

function keysOf(view) {
  return {
    ...tableKeys(view.table),
    ArrowLeft: () => step(view, -1),
    ArrowRight: () => step(view, 1),
  };
}

function step(view, by) {
  const number = view.number + by;
  if (number >= 1 && number <= view.request.requests) location.hash = `#/s/${encodeURIComponent(view.id)}/r/${number}`;
}

// --- drawing ---

function crumbs(view) {
  return el("nav", { class: "crumbs", "aria-label": "Where you are" },
    el("a", { href: "#/" }, "Sessions"), " / ", el("a", { href: sessionOf(view) }, view.request ? view.request.title : "Session"));
}

function draw(view) {
  const { request, root } = view;
  root.replaceChildren(
    crumbs(view),
    el("div", { class: "bar" },
      el("h1", {}, `Request ${whole(request.number)}`),
      el("div", { class: "tools", id: "steps" })),
    factsOf(request),
    el("div", { class: "beside even" },
      el("section", { "aria-label": "What was sent" }, partsOf(request)),
      el("section", { "aria-label": "What it does to the provider's cache" }, prefixOf(request))),
    editsOf(request),
    entriesOf(view));
  writeSteps(view, request.requests);
}

function writeSteps(view, requests) {
  view.request.requests = requests;
  const to = (by, told) => {
    const button = el("button", { type: "button" }, told);
    const number = view.number + by;
    button.disabled = number < 1 || number > requests;
    button.addEventListener("click", () => step(view, by));
    return button;
  };
  byId("steps").replaceChildren(to(-1, "← Previous"), el("span", { class: "quiet" }, `of ${whole(requests)}`), to(1, "Next →"));
}

function factsOf(request) {
  const list = el("dl", { class: "pairs" });
  const pair = (name, value, kind) => value !== null && value !== undefined &&
    list.append(el("div", {}, el("dt", {}, name), el("dd", { class: kind }, value)));
  const left = request.limit - request.sentTokens;
  pair("Time", clock(request.at));
  pair("Raw", whole(request.rawTokens));
  pair("Sent", whole(request.sentTokens), "strong");
  pair("Provider counted", request.promptTokens === undefined ? null : whole(request.promptTokens));
  pair("Cached", typeof request.cachedTokens === "number" ? `${whole(request.cachedTokens)} (${percent(request.cachedTokens, request.sentTokens)})` : NOTHING);
  pair(left < 0 ? "Over the limit by" : "Left free", whole(Math.abs(left)), left < 0 ? "no" : null);
  if (request.sentTokens < request.rawTokens) pair("Left out so far", whole(request.rawTokens - request.sentTokens));
  if (request.recalledTokens) pair("Recalled", whole(request.recalledTokens));
  if (typeof request.costUsd === "number") pair("Cost", dollars(request.costUsd));
  if (request.outcome) pair("Outcome", [request.outcome, request.status].filter(Boolean).join(" "), request.outcome === "ok" ? null : "no");
  if (request.attempts > 1) pair("Sent", plural(request.attempts, "time"));
  if (typeof request.millis === "number") pair("Took", `${request.millis.toFixed(1)} ms more`);
  pair("Answered by", request.entry || null, "id");
  return list;
}

function partsOf(request) {
  if (!request.components.length) return nothing("What this request was made of was not kept.");
  return componentBars(request.components.map((part) => ({ ...part, name: word(COMPONENTS, part.name) })));
}

// The part that the provider still holds, and what had to be sent anew.
function prefixOf(request) {
  const { unchangedPrefix: same, sentTokens: sent, number } = request;
  const share = sent > 0 ? Math.min(100, (100 * same) / sent) : 0;
  const fresh = Math.max(0, sent - same);
  const told = number === 1
    ? "This is the first request: all of it is new to the provider."
    : same === 0
      ? `Nothing at its beginning is as it was in request ${whole(number - 1)}: the provider reads all of it anew.`
      : `The first ${plural(same, "token")} are those of request ${whole(number - 1)}, which the provider's cache may hold. ${plural(fresh, "token")} behind them ${fresh === 1 ? "is" : "are"} new, or stand elsewhere than before.`;
  return el("div", { class: "prefix" },
    el("h2", {}, "Cached prefix"),
    el("div", { class: "meter", role: "img", "aria-label": `${percent(same, sent)} of the request is as before` },
      el("span", { class: "same", style: `width:${share.toFixed(2)}%` })),
    el("p", { class: "meter-ends", "aria-hidden": "true" },
      el("span", {}, `as before ${whole(same)}`), el("span", {}, `new ${whole(fresh)}`)),
    el("p", { class: "note" }, told));
}

function editsOf(request) {
  const section = el("section", { "aria-label": "Edits for this request" });
  if (!request.edits.length) {
    const told = request.sentTokens < request.rawTokens
      ? "No edit was made for this request. Those made before it stay in force."
      : "Nothing is left out of this request.";
    section.append(el("h2", {}, "Edits for this request"), el("p", { class: "quiet" }, told));
    return section;
  }
  const head = ["Layer", "Did", "Entries", "Before", "After", "Why"];
  const kinds = [null, null, "num", "num", "num", "c-reason"];
  section.append(el("h2", {}, "Edits for this request"), el("div", { class: "wide-scroll", tabindex: "0", role: "region", "aria-label": "Edits by layer" },
    el("table", { class: "sums" },
      el("thead", {}, el("tr", {}, ...head.map((name, at) => el("th", { scope: "col", class: kinds[at] }, name)))),
      el("tbody", {}, ...request.edits.map((sum) => el("tr", {},
        el("th", { scope: "row" }, sum.layer),
        el("td", {}, word(ACTIONS, sum.action)),
        el("td", { class: "num" }, whole(sum.edits)),
        el("td", { class: "num" }, whole(sum.before)),
        el("td", { class: "num" }, whole(sum.after)),
        el("td", { class: "c-reason" }, sum.reasons.join("; "))))))));
  return section;
}

// --- entries ---

function entriesOf(view) {
  const { request } = view;
  view.paged = pagedRows((from, count) => loadEntries(view, from, count), (error) => {
    if (error) byId("matching").textContent = error.message;
    else remake(view.table);
  });
  view.paged.reset(request.entries, request.matching);
  view.table = makeTable({
    caption: "Entries of the request, oldest first, with what became of each. The button of a row opens its text.",
    kind: "entries",
    columns: COLUMNS,
    need: (from, to) => view.paged.need(from, to),
    cells: (at) => {
      const entry = view.paged.at(at);
      return entry ? entryCells(entry) : null;
    },
    opened: (at) => {
      const entry = view.paged.at(at);
      if (entry) openEntry(view.id, entry.entry, view.number);
    },
  });
  const section = el("section", { "aria-labelledby": "entries-title" },
    el("div", { class: "bar" },
      el("div", { class: "titled" }, el("h2", { id: "entries-title" }, "Entries"), el("p", { id: "matching", class: "matches", role: "status" })),
      filtersOf(view)),
    el("div", { id: "entry-list" }, view.table.box));
  // It is measured when it is in the page.
  queueMicrotask(() => showEntries(view, request));
  return section;
}

function filtersOf(view) {
  const { request } = view;
  const option = (value, told) => el("option", { value }, told);
  const state = el("select", { id: "state" }, option("", "Every state"),
    ...Object.entries(STATES).filter(([name]) => request.states[name]).map(([name, { word: told }]) => option(name, `${told} (${whole(request.states[name])})`)),
    request.states.changed ? option("changed", `edited for this request (${whole(request.states.changed)})`) : null);
  const layer = el("select", { id: "layer" }, option("", "Every layer"),
    ...Object.entries(request.layers).map(([name, n]) => option(name, `${name} (${whole(n)})`)));
  const search = el("input", { type: "search", id: "entry-search", placeholder: "Id, role or reason", autocomplete: "off", spellcheck: "false" });
  let waiting = 0;
  const apply = () => {
    view.filter = { state: state.value, layer: layer.value, q: search.value.trim() };
    filter(view);
  };
  state.addEventListener("change", apply);
  layer.addEventListener("change", apply);
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  const field = (name, control) => el("label", { class: "field" }, el("span", { class: "hidden" }, name), control);
  return el("div", { class: "tools" }, field("State", state), field("Layer", layer), field("Search entries", search));
}

async function filter(view) {
  const asked = view.filter;
  try {
    const request = await ask(urlOf(view, { ...asked }), { signal: view.signal });
    if (asked !== view.filter) return;
    view.paged.reset(request.entries, request.matching);
    view.table.current = -1;
    view.table.box.scrollTop = 0;
    showEntries(view, request);
  } catch (error) {
    if (error.name !== "AbortError") byId("matching").textContent = error.message;
  }
}

async function loadEntries(view, from, count) {
  const request = await ask(urlOf(view, { ...view.filter, from, count }), { signal: view.signal });
  return { rows: request.entries, total: request.matching };
}

function showEntries(view, request) {
  const { states } = request;
  const all = ["kept", "replaced", "dropped", "inserted"].reduce((sum, name) => sum + (states[name] || 0), 0);
  const total = all;
  byId("matching").textContent = request.matching === total
    ? plural(total, "entry", "entries")
    : `${whole(request.matching)} of ${plural(total, "entry", "entries")}`;
  const list = byId("entry-list");
  if (!request.matching) list.replaceChildren(nothing("No entry matches. Choose another state, layer or search."));
  else if (view.table.box.parentNode !== list) list.replaceChildren(view.table.box);
  setCount(view.table, request.matching);
}

function entryCells(entry) {
  const goes = entry.state === "dropped" ? "–" : whole(entry.tokens);
  const tokens = entry.state === "kept" || entry.state === "inserted"
    ? whole(entry.tokens)
    : el("span", {}, el("s", { class: "quiet" }, whole(entry.before)), ` ${goes}`);
  return [
    entryName(entry.role, entry.entry, entry.begins),
    entry.begins || el("span", { class: "quiet" }, "no text"),
    el("span", {}, stateOf(entry.state), entry.changed ? el("span", { class: "now", title: "edited for this request" }, " now") : null),
    tokens,
    entry.layer || "",
    entry.reason || "",
  ];
}
