// The entries of a request with their states. The filter is in the address.

import { requestAt, stay } from "./address.js";
import { ask, path, withQuery } from "./api.js";

const COLUMNS = [
  { name: "Entry", kind: "c-entry" },
  { name: "Begins", kind: "c-begins" },
  { name: "State", kind: "c-state" },
  { name: "Tokens", kind: "c-tokens", number: true },
  { name: "By", kind: "c-layer" },
  { name: "Why", kind: "c-why" },
];

export function filterIn(query) {
  const of = (name) => query.get(name) || "";
  return { state: of("state"), layer: of("layer"), q: of("q") };
}

export function urlOf(view, asked) {
  return withQuery(path`sessions/${view.id}/requests/${view.number}`, asked);
}

export function entriesOf(view) {
  const { request } = view;
  view.paged = pagedRows((from, count) => loadEntries(view, from, count), (error) => {
    if (error) byId("matching").textContent = error.message;
    else remake(view.table);
  });
  view.paged.reset(request.entries, request.matching);
  view.table = makeTable({
    caption: "Entries of the request, oldest first, with their states. The button of a row opens its text.",
    kind: "entries",
    columns: COLUMNS,
    need: (from, to) => view.paged.need(from, to),
    cells: (at) => {
      const entry = view.paged.at(at);
      return entry ? entryCells(entry) : null;
    },
    opened: (at) => {
      const entry = view.paged.at(at);
      if (entry) view.over.open(entry.entry);
    },
  });
  const section = el("section", { "aria-labelledby": "entries-title" },
    el("div", { class: "bar" },
      el("div", { class: "titled" }, el("h2", { id: "entries-title" }, "Entries"), el("p", { id: "matching", class: "matches", role: "status" })),
      filtersOf(view)),
    el("div", { id: "entry-list" }, view.table.box));
  // The table can be measured only when it is in the page.
  queueMicrotask(() => showEntries(view, request));
  return section;
}

function filtersOf(view) {
  const { request } = view;
  const option = (value, text) => el("option", { value }, text);
  const state = el("select", { id: "state" }, option("", "Every state"),
    ...Object.entries(STATES).filter(([name]) => request.states[name]).map(([name, { word: text }]) => option(name, `${text} (${whole(request.states[name])})`)),
    request.states.changed ? option("changed", `edited for this request (${whole(request.states.changed)})`) : null);
  const layer = el("select", { id: "layer" }, option("", "Every layer"),
    ...Object.entries(request.layers).map(([name, n]) => option(name, `${name} (${whole(n)})`)));
  const search = el("input", { type: "search", id: "entry-search", placeholder: "Text, id, role or reason", autocomplete: "off", spellcheck: "false" });
  // A filter without matches in another request stays selected.
  const choose = (select, value) => {
    if (value && ![...select.options].some((one) => one.value === value)) select.append(option(value, `${value} (0)`));
    select.value = value;
  };
  const write = () => {
    choose(state, view.filter.state);
    choose(layer, view.filter.layer);
    search.value = view.filter.q;
  };
  view.controls = { write };
  write();
  let waiting = 0;
  const apply = () => {
    clearTimeout(waiting);
    if (view.signal.aborted) return;
    view.filter = { state: state.value, layer: layer.value, q: search.value.trim() };
    stay(requestAt(view.id, view.number, view.filter));
    filter(view);
  };
  state.addEventListener("change", apply);
  layer.addEventListener("change", apply);
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 150);
  });
  return el("div", { class: "tools" }, field("State", state), field("Layer", layer), field("Search entries", search));
}

export async function filter(view) {
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
  const total = ["kept", "replaced", "dropped", "inserted"].reduce((sum, name) => sum + (states[name] || 0), 0);
  byId("matching").textContent = request.matching === total
    ? plural(total, "entry", "entries")
    : `${whole(request.matching)} of ${plural(total, "entry", "entries")}`;
  const list = byId("entry-list");
  if (!request.matching) list.replaceChildren(nothing("No entry matches. Choose another state, layer or search."));
  else if (view.table.box.parentNode !== list) list.replaceChildren(view.table.box);
  setCount(view.table, request.matching);
  if (typeof request.place !== "number") return;
  setCurrent(view.table, request.place);
  reveal(view.table, request.place);
}

function entryCells(entry) {
  const goes = entry.state === "dropped" ? NOTHING : whole(entry.tokens);
  const tokens = entry.state === "kept" || entry.state === "inserted"
    ? whole(entry.tokens)
    : el("span", {}, el("s", { class: "quiet" }, whole(entry.before)), ` ${goes}`);
  return [
    entryName(entry.role, entry.entry, entry.begins),
    words(entry.begins, "no text"),
    el("span", {}, stateOf(entry.state), entry.changed ? el("span", { class: "now", title: "edited for this request" }, " now") : null),
    tokens,
    entry.layer || "",
    entry.reason || "",
  ];
}
