// Puts the evaluation on the page: which sessions, the chart, the table, the words.

const KINDS = { none: "nothing left out", profile: "profile of ctx", engine: "engine", preset: "another agent's policy", recorded: "the agent itself" };

// What a compaction has to keep.
const GOAL = 0.95;

const COLUMNS = [
  { name: "Candidate", value: (row) => row.name, first: true },
  { name: "Requests", value: (row) => row.requests, told: whole },
  { name: "Sent", value: (row) => row.sentTokens, told: short, bar: (row, most) => row.sentTokens / most.sent },
  { name: "Cached", value: (row) => row.prefixReuse, told: (n) => shareOf(n) },
  { name: "Cost", value: (row) => row.costUsd, told: dollars, bar: (row, most) => row.costUsd / most.cost },
  { name: "Calls", value: (row) => row.calls, told: whole },
  { name: "Cuts", value: (row) => row.cuts, told: whole },
  { name: "Ratio", value: (row) => row.compressionRatio, told: (n) => (typeof n === "number" ? n.toFixed(2) : NOTHING) },
  { name: "Coverage", value: (row) => row.coverage, told: (n) => shareOf(n), bar: (row) => row.coverage },
  { name: "Invented", value: (row) => row.ungrounded, told: whole, fault: true },
  { name: "Wedges", value: (row) => row.wedges, told: whole, fault: true },
  { name: "Est. error", value: (row) => row.estimateError, told: (n) => shareOf(n) },
  { name: "Once", value: (row) => row.once && row.once.coverage, told: (n) => shareOf(n), bar: (row) => row.once && row.once.coverage },
];

function shareOf(n) {
  return typeof n === "number" ? `${(100 * n).toFixed(1)} %` : NOTHING;
}

function start() {
  const report = readReport();
  const page = { report, which: -1, axis: "replay", sort: 0, down: false };
  COLUMNS.find((column) => column.name === "Once").name = `At ${Math.round(report.compactTo * 100)} %`;
  writeHead(report);
  writeWhich(page);
  writeColumns(page);
  writeNotes(report);
  byId("which").addEventListener("change", (event) => {
    page.which = Number(event.target.value);
    show(page);
  });
  for (const radio of document.querySelectorAll("input[name=axis]")) {
    radio.checked = radio.value === page.axis;
    radio.addEventListener("change", () => {
      page.axis = radio.value;
      show(page);
    });
  }
  new ResizeObserver(() => draw(page)).observe(byId("chart"));
  show(page);
}

// The rows of all sessions, or of one, each with its session compacted once.
function rowsOf(page) {
  const part = page.which < 0 ? page.report : page.report.sessions[page.which];
  const once = (row) => (part.once || []).find((other) => other.kind === row.kind && other.name === row.name);
  return (part.rows || []).map((row) => ({ ...row, once: once(row) }));
}

function show(page) {
  draw(page);
  writeRows(page);
  writeRecorded(page);
}

// --- head and words ---

function fileOf(path) {
  return String(path || "session").split(/[\\/]/).filter(Boolean).pop() || String(path);
}

function writeHead(report) {
  const sessions = report.sessions || [];
  const names = sessions.map((each) => fileOf(each.session.path));
  const title = names.length === 1 ? names[0] : `${plural(names.length, "transcript")}`;
  document.title = `${title} · ctx eval`;
  byId("name").textContent = title;
  byId("facts").textContent = names.length === 1 ? sessions[0].session.path : names.join(" · ");
  byId("lede").textContent = ledeOf(report);
  const windows = [...new Set(sessions.map((each) => whole(each.window)))].join(", ");
  const models = [...new Set(sessions.map((each) => each.model).filter(Boolean))].join(", ");
  for (const [name, value] of Object.entries({ Window: windows, Counter: report.counter, Model: models })) {
    if (value) byId("settings").append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  }
}

function ledeOf(report) {
  const rows = report.rows || [];
  const nothing = rows.find((row) => row.kind === "none");
  const words = [];
  if (nothing && nothing.requests) {
    const over = nothing.wedges ? `${whole(nothing.wedges)} are larger than the window` : "all fit the window";
    words.push(`With nothing ever left out, of ${plural(nothing.requests, "request")} ${over}.`);
  }
  const known = (report.once || []).filter((row) => typeof row.coverage === "number");
  const of = (kind) => {
    const rows = known.filter((row) => (row.kind === "preset") === (kind === "preset")).map((row) => row.coverage);
    return rows.length ? `${shareOf(Math.min(...rows))} to ${shareOf(Math.max(...rows))}` : null;
  };
  const told = [["ctx", of("profile")], ["other agents' policies", of("preset")]].filter(([, range]) => range);
  if (told.length) {
    const ranges = told.map(([who, range]) => `${range} under ${who}`).join(", ");
    words.push(`Compacted once to ${Math.round(report.compactTo * 100)} %, of what must not be lost is kept: ${ranges}.`);
  }
  return words.join(" ");
}

function writeWhich(page) {
  const sessions = page.report.sessions || [];
  const select = byId("which");
  select.append(el("option", { value: -1 }, "All transcripts"));
  sessions.forEach((each, at) => select.append(el("option", { value: at }, fileOf(each.session.path))));
  select.parentNode.hidden = sessions.length < 2;
}

function writeNotes(report) {
  for (const note of report.notes || []) byId("notes").append(el("li", {}, note));
  for (const preset of report.presets || []) {
    const from = el("dd", {}, preset.about, el("br"), el("span", { class: "from" }, preset.source), el("br"),
      el("span", { class: "from" }, `simplified: ${preset.simplified}`));
    byId("presets").append(el("div", {}, el("dt", {}, preset.name), from));
  }
  byId("presets-section").hidden = !(report.presets || []).length;
}

// --- chart ---

function draw(page) {
  const rows = rowsOf(page);
  const once = page.axis === "once";
  const marks = rows.map((row) => (once ? markOnce(row) : markOf(row))).filter(Boolean);
  drawMarks(byId("plot"), marks, GOAL);
  byId("y-name").textContent = "Must-keep facts of what was left out that still stand in the request";
  byId("x-name").textContent = once ? "Tokens after" : "Tokens sent";
  const left = rows.filter((row) => !marks.some((mark) => mark.row === row)).map((row) => row.name);
  byId("left-out").textContent = left.length ? `Not in the chart, because nothing was left out or no fact was in it: ${left.join(", ")}.` : "";
  const kinds = [...new Set(marks.map((mark) => mark.kind))];
  byId("legend").replaceChildren(...kinds.map(legendOf));
}

function markOf(row) {
  if (typeof row.coverage !== "number") return null;
  return { row, name: row.name, kind: row.kind, x: row.sentTokens, y: row.coverage, stuck: row.wedges > 0 };
}

function markOnce(row) {
  if (!row.once || typeof row.once.coverage !== "number") return null;
  const stuck = row.once.reached < row.once.sessions;
  return { row, name: row.name, kind: row.kind, x: row.once.tokensAfter, y: row.once.coverage, stuck };
}

function legendOf(kind) {
  const item = el("li", { class: "chart" });
  const svg = document.createElementNS(byId("plot").namespaceURI, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("style", "display: inline-block; width: 12px; height: 12px");
  drawShape(svg, kind, 8, 8);
  item.append(svg, KINDS[kind] || kind);
  return item;
}

// --- table ---

function writeColumns(page) {
  COLUMNS.forEach((column, at) => {
    const button = el("button", { type: "button" }, column.name);
    button.addEventListener("click", () => {
      page.down = page.sort === at + 1 ? !page.down : false;
      page.sort = at + 1;
      writeRows(page);
    });
    const kind = column.first ? null : "num";
    byId("head").append(el("th", { scope: "col", class: kind }, button));
  });
}

// The report's own order until a heading is pressed.
function sorted(page, rows) {
  if (!page.sort) return rows;
  const { value } = COLUMNS[page.sort - 1];
  const missing = (n) => n === null || n === undefined;
  const compare = (one, two) => (typeof one === "string" ? one.localeCompare(two, "en") : one - two);
  return [...rows].sort((a, b) => {
    const [one, two] = [value(a), value(b)];
    if (missing(one) || missing(two)) return missing(one) - missing(two);
    return page.down ? compare(two, one) : compare(one, two);
  });
}

function writeRows(page) {
  const rows = rowsOf(page);
  const most = {
    sent: Math.max(1, ...rows.map((row) => row.sentTokens || 0)),
    cost: Math.max(1e-9, ...rows.map((row) => row.costUsd || 0)),
  };
  [...byId("head").children].forEach((head, at) => {
    if (page.sort === at + 1) head.setAttribute("aria-sort", page.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  const made = sorted(page, rows).map((row) =>
    el("tr", { class: row.kind }, ...COLUMNS.map((column) => cellOf(column, row, most))));
  byId("body").replaceChildren(...made);
}

function cellOf(column, row, most) {
  const value = column.value(row);
  if (column.first) {
    const why = row.failed || (row.once && row.once.failed);
    const kind = el("span", { class: "kind" }, KINDS[row.kind] || row.kind);
    return el("th", { scope: "row" }, value, kind, why ? el("span", { class: "why" }, why) : null);
  }
  const text = value === null || value === undefined ? NOTHING : column.told(value);
  const fault = column.fault && value > 0 ? " no" : "";
  const cell = el("td", { class: `num${fault}${column.bar ? " with-bar" : ""}` }, text);
  const share = column.bar ? column.bar(row, most) : null;
  if (share > 0) cell.append(el("span", { class: "share", style: `width: ${(100 * Math.min(1, share)).toFixed(1)}%` }));
  return cell;
}

function writeRecorded(page) {
  const sessions = page.report.sessions || [];
  const part = page.which < 0 ? sessions : [sessions[page.which]];
  const found = part.flatMap((each) => each.recorded || []);
  byId("recorded-section").hidden = !found.length;
  byId("recorded").replaceChildren(...found.map(recordedRow));
}

function recordedRow(found) {
  const num = (text, kind) => el("td", { class: kind ? `num ${kind}` : "num" }, text);
  const invented = (list) => el("td", { class: list.length ? "wrapped no" : "wrapped" }, list.length ? list.join(", ") : "none");
  const side = (figures) => [num(whole(figures.tokens)), num(shareOf(figures.inSummary)), invented(figures.ungrounded)];
  const id = el("th", { scope: "row", class: "id wrapped" }, found.entryId);
  return el("tr", {}, id, num(whole(found.messages)), num(whole(found.facts)), ...side(found.recorded), ...side(found.ctx));
}

start();
