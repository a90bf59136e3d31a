// The list of sessions: search, sort, open.

import { sessionAt, sessionsAt, stay } from "./address.js";
import { ask } from "./api.js";

const ORDERS = {
  recent: ["Most recent", (a, b) => (b.lastAt || 0) - (a.lastAt || 0)],
  title: ["Name", (a, b) => a.title.localeCompare(b.title)],
  size: ["Largest file", (a, b) => (b.bytes || 0) - (a.bytes || 0)],
  sent: ["Largest request", (a, b) => (b.sentTokens || 0) - (a.sentTokens || 0)],
  requests: ["Most requests", (a, b) => (b.requests || 0) - (a.requests || 0)],
};

const COLUMNS = [
  { name: "Session", kind: "c-title" },
  { name: "Model", kind: "c-model" },
  { name: "Newest request", kind: "c-full", number: true },
  { name: "Requests", kind: "c-count", number: true },
  { name: "Size", kind: "c-size", number: true },
  { name: "Last active", kind: "c-ago", number: true },
];

// The search is kept while a session is open.
const kept = { q: "", order: "recent", open: "" };

function orderIn(query) {
  const order = query.get("order");
  return { q: query.get("q") || "", order: Object.hasOwn(ORDERS, order) ? order : "recent" };
}

export function showSessions(root, { query, signal }) {
  document.title = "Sessions · ctx inspector";
  const view = { all: [], shown: [] };
  if ([...query].length) Object.assign(kept, orderIn(query));
  const search = el("input", { type: "search", placeholder: "Name, project, agent, path or model", autocomplete: "off", spellcheck: "false" });
  search.value = kept.q;
  const order = el("select", {}, ...Object.entries(ORDERS).map(([name, [text]]) => el("option", { value: name }, text)));
  order.value = kept.order;
  const count = el("p", { class: "matches", role: "status" });
  const saved = el("p", { class: "lede", hidden: true });
  const table = makeTable({
    caption: "Sessions. The button of a row opens it.",
    kind: "sessions",
    columns: COLUMNS,
    cells: (at) => cellsOf(view.shown[at]),
    opened: (at) => (location.hash = sessionAt(view.shown[at].id)),
    moved: (at) => (kept.open = view.shown[at].id),
  });
  const content = el("div", {}, working("Looking for sessions …"));
  root.append(
    el("div", { class: "bar" },
      el("div", { class: "titled" }, el("h1", {}, "Sessions"), count),
      el("div", { class: "tools" },
        field("Search sessions", search), field("Order", order))),
    saved, content);

  // Not after a reload: the address may be that of a session just opened.
  const setAddress = () => stay(sessionsAt({ q: kept.q, order: kept.order === "recent" ? null : kept.order }));
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (s) => [s.title, s.project, s.path, s.model, s.agent, s.source].join("\n").toLowerCase();
    view.shown = view.all.filter((s) => words.every((part) => text(s).includes(part)));
    view.shown.sort(ORDERS[order.value][1]);
    const all = plural(view.all.length, "session");
    count.textContent = view.shown.length === view.all.length ? all : `${whole(view.shown.length)} of ${all}`;
    if (!view.all.length) content.replaceChildren(withoutSessions());
    else if (!view.shown.length) content.replaceChildren(nothing("No session matches. Clear the search to list all."));
    else if (table.box.parentNode !== content) content.replaceChildren(table.box);
    table.current = view.shown.findIndex((s) => s.id === kept.open);
    setCount(table, view.shown.length);
  };
  const apply = () => {
    [kept.q, kept.order] = [search.value, order.value];
    setAddress();
    show();
  };
  let isFirst = true;
  const load = async () => {
    try {
      view.all = (await ask("sessions", { signal })).sessions;
      show();
      // After going back, scroll to the session that was open.
      if (isFirst && table.current >= 0) reveal(table, table.current);
      isFirst = false;
      const [total] = (await ask("stats", { signal })).totals;
      saved.hidden = !total;
      if (total) saved.textContent = `Proxy, measured: ${savedOf(total)}`;
    } catch (error) {
      if (error.name !== "AbortError") content.replaceChildren(failed(error, load));
    }
  };
  search.addEventListener("input", apply);
  order.addEventListener("change", apply);
  setAddress();
  load();
  return {
    keys: () => tableKeys(table),
    goto: ({ query }) => {
      Object.assign(kept, orderIn(query));
      [search.value, order.value] = [kept.q, kept.order];
      apply();
    },
    heard: () => load(),
  };
}

function cellsOf(session) {
  const where = session.path || session.agent || "";
  const whose = session.source === "file" && session.agent ? session.agent : word(SOURCES, session.source);
  const full = session.window > 0 ? (session.sentTokens || 0) / session.window : 0;
  const tokens = typeof session.sentTokens === "number"
    ? [whole(session.sentTokens), session.window ? el("span", { class: "quiet wide" }, ` of ${short(session.window)}`) : null]
    : [el("span", { class: "quiet", title: "A session is replayed when it is opened" }, "not opened yet")];
  return [
    el("span", { class: "two" },
      el("b", {}, el("bdi", {}, session.title)), " ",
      el("span", { class: "badge" }, whose),
      el("small", { class: "path", title: where }, el("bdi", { dir: "ltr" }, session.project ? `${session.project} · ${session.sessionId}` : where))),
    session.model || NOTHING,
    el("span", {}, ...tokens.filter(Boolean),
      full ? el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "level", style: widthOf(full) })) : null),
    typeof session.requests === "number" ? whole(session.requests) : NOTHING,
    bytes(session.bytes ?? undefined),
    agoOf(session.lastAt),
  ];
}

function withoutSessions() {
  return nothing("There are no sessions yet.",
    el("p", {}, "Run an agent through ctx: ", el("code", {}, "ctx run -- claude"), ". Or name a transcript: ", el("code", {}, "ctx inspect FILE"), "."));
}
