// The page of a replay: the session, a filter of its requests, and a dialog for a request.

const REPLAY_KEYS = [
  ["j k ↓ ↑", "next, previous row"],
  ["← →", "previous, next request"],
  ["n p", "next, previous request with edits"],
  ["+ −", "zoom the chart"],
  ["Enter", "open the request"],
  ["Esc", "close, or show all requests"],
  ["/", "search"],
  ["t", "dark, light, or as the system"],
  ["?", "list the keys"],
];

const FILTERS = {
  all: ["All requests", () => true],
  edits: ["Only requests with edits", (model, at) => model.edits[at] > 0],
  recalled: ["Only requests that recall", (model, at) => model.recalled[at] > 0],
  over: ["Only requests that do not fit", (model, at) => !model.fits[at]],
};

function start() {
  const report = readReport();
  const session = sessionOf(report);
  const page = { report, session, view: null, box: null, open: -1, filter: null, search: null, matches: null };
  writeHead(page);
  page.view = makeSession(session, {
    opened: (at) => show(page, at),
    compaction: (row, name) => (row.summary === undefined ? el("b", {}, name) : buttonOf(name, () => showCompaction(page, row), { class: "as-link" })),
    chartTools: [buttonOf("Open request", () => show(page, page.view.cursor), { id: "open-here" })],
    tableTools: filtersOf(page),
  });
  byId("view").append(...page.view.nodes);
  drawSession(page.view, session);
  startFrame(REPLAY_KEYS, () => (page.view.model.count ? { ...sessionKeys(page.view), Escape: () => clearFilter(page) } : {}));
  if (!page.view.model.count) return;
  moveCursor(page.view, page.view.model.count - 1, true);
  addEventListener("hashchange", () => openFromAddress(page));
  openFromAddress(page);
}

// Returns the report as a session of the inspector's API.
function sessionOf(report) {
  const recorded = new Map(report.recordedCompactions.map((one) => [one.id, {
    ...one, number: one.request === null ? null : one.request + 1, recorded: true, applied: false,
  }]));
  const applied = report.compactions.map((one) => {
    const { receipt } = one.details || {};
    const own = recorded.get(one.id);
    recorded.delete(one.id);
    return { ...one, number: one.request + 1, by: own ? own.by : one.stored ? "ctx" : "replay", recorded: Boolean(own), applied: true, receipt: receipt?.audit ? receipt : null };
  });
  return {
    ...report,
    requests: report.requests.map((request, at) => ({ ...request, number: at + 1, entry: request.entryId, at: request.timestamp })),
    compactions: [...recorded.values(), ...applied].sort((one, two) => (one.number ?? Infinity) - (two.number ?? Infinity)),
  };
}

function writeHead({ report }) {
  const { path, format, entries, messages, toolResults, bytes: size, badLines } = report.session;
  const name = fileOf(path);
  document.title = `${name} · ctx replay`;
  const facts = [format, plural(entries, "entry", "entries"), plural(messages, "message"), plural(toolResults, "tool result"), bytes(size)];
  byId("view").append(el("div", { class: "head" },
    el("h1", { id: "name" }, name),
    el("p", { class: "path" }, path === name ? "" : path),
    el("p", { class: "facts" }, facts.filter(Boolean).join(" · "),
      badLines ? el("span", { class: "no" }, ` · ${plural(badLines, "line")} could not be read`) : null)));
}

// --- one request ---

// Writes the opened request into the address, so that a link can open it.
function writeAddress(at) {
  try {
    history.replaceState(null, "", at >= 0 ? `#${at + 1}` : "#");
  } catch {
    // Some browsers refuse this for local files. Then there is no link to a request.
  }
}

function openFromAddress(page) {
  const at = Number(location.hash.slice(1)) - 1;
  if (Number.isInteger(at) && at >= 0 && at < page.view.model.count) show(page, at);
}

function show(page, at) {
  const { model } = page.view;
  const to = Math.max(0, Math.min(at, model.count - 1));
  moveCursor(page.view, to, true);
  writeAddress(to);
  page.open = to;
  if (!page.box) openRequest(page);
  const request = model.requests[to];
  const { edits = [], components = [] } = page.report.details[to] || {};
  const steps = el("div", { class: "tools" },
    buttonOf("← Previous", () => show(page, to - 1)), el("span", { class: "quiet" }, `of ${whole(model.count)}`), buttonOf("Next →", () => show(page, to + 1)));
  page.box.querySelector("h2").textContent = `Request ${whole(to + 1)}`;
  page.body.replaceChildren(...[
    steps,
    pairs([["Entry", request.entry, "id"], ...requestFigures(request, model.limit)]),
    components.length ? componentBars(components) : null,
    editSums(sumsOf(edits), request),
    model.edits[to] && !edits.length ? el("p", { class: "quiet" }, "This report does not contain the edits.") : null,
    edits.length ? editTable(edits) : null,
  ].filter(Boolean));
}

function openRequest(page) {
  page.body = el("div", {});
  page.box = openDialog("Request", "entry", page.body);
  page.box.addEventListener("close", () => {
    page.box = null;
    writeAddress(-1);
  });
  page.box.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) show(page, page.open + by);
  });
}

function sumsOf(edits) {
  const sums = new Map();
  for (const { layer, action, before, after, reason } of edits) {
    const name = JSON.stringify([layer, action]);
    const sum = sums.get(name) || { layer, action, edits: 0, before: 0, after: 0, reasons: [] };
    sums.set(name, { ...sum, edits: sum.edits + 1, before: sum.before + before, after: sum.after + after });
    if (reason && sum.reasons.length < 5 && !sum.reasons.includes(reason)) sum.reasons.push(reason);
  }
  return [...sums.values()];
}

function editTable(edits) {
  const table = makeTable({
    caption: "The edits, in their order.",
    kind: "edit-list",
    columns: [{ name: "Entry", kind: "c-entry" }, { name: "Layer", kind: "c-layer" }, { name: "Action", kind: "c-action" },
      { name: "Before", kind: "c-size", number: true }, { name: "After", kind: "c-size", number: true }, { name: "Why", kind: "c-why" }],
    cells: (at) => {
      const { entry, layer, action, before, after, reason } = edits[at];
      return [el("span", { class: "id" }, entry), layer, word(ACTIONS, action), whole(before), whole(after), el("span", { title: reason }, reason)];
    },
  });
  queueMicrotask(() => setCount(table, edits.length));
  return table.box;
}

function showCompaction(page, row) {
  const box = openDialog(`Compaction before request ${whole(row.number)}`, "entry",
    el("p", { class: "facts" }, compactionHead(row)),
    row.receipt ? receiptOf(row.receipt) : el("p", { class: "quiet" }, "No receipt: ctx did not make this compaction."),
    summaryOf(row.summary),
    el("div", { class: "tools" }, buttonOf(`Open request ${whole(row.number)}`, () => {
      box.close();
      show(page, row.number - 1);
    })));
}

// --- filter and search ---

function filtersOf(page) {
  page.filter = el("select", {}, ...Object.entries(FILTERS).map(([value, [name]]) => el("option", { value }, name)));
  page.search = el("input", { type: "search", placeholder: "Entry id, or #request", autocomplete: "off", spellcheck: "false" });
  page.matches = el("p", { class: "matches", role: "status" });
  page.filter.addEventListener("change", () => applyFilter(page));
  page.search.addEventListener("input", () => applyFilter(page));
  const largestOf = (kind, column) => buttonOf(`Largest ${kind}`, () => show(page, largest(page.view.model[column])));
  return [page.matches, field("Which requests", page.filter), field("Search by entry id or request number", page.search),
    largestOf("full history", "raw"), largestOf("with ctx", "sent")];
}

function applyFilter(page) {
  const { model, table, cursor } = page.view;
  const query = page.search.value.trim().toLowerCase();
  const passes = FILTERS[page.filter.value][1];
  const kept = [];
  for (let at = 0; at < model.count; at += 1) if (passes(model, at) && matchesQuery(page, at, query)) kept.push(at);
  table.update(model, kept.length === model.count ? null : kept);
  table.follow(cursor, true);
  page.matches.textContent = kept.length === model.count ? "" : `${whole(kept.length)} of ${plural(model.count, "request")}`;
}

function matchesQuery({ report, view }, at, query) {
  if (!query) return true;
  if (/^#\d+$/.test(query)) return at + 1 === Number(query.slice(1));
  const named = (id) => String(id || "").toLowerCase().includes(query);
  return named(view.model.requests[at].entry) || (report.details[at]?.edits || []).some((edit) => named(edit.entry));
}

function clearFilter(page) {
  page.filter.value = "all";
  page.search.value = "";
  applyFilter(page);
}

start();
