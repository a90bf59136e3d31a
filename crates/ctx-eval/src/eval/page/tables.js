// The tables: what the replay found, what compacting once found, and the agent's own summaries.

// No space that a line could break at stands before the sign.
function shareOf(n) {
  return typeof n === "number" ? `${(100 * n).toFixed(1)}\u00a0%` : NOTHING;
}

const REPLAY = [
  { name: "Candidate", value: (row) => row.name, first: true, why: (row) => row.failed },
  { name: "Requests", value: (row) => row.requests, told: whole },
  { name: "Sent", value: (row) => row.sentTokens, told: short, bar: (row, most) => row.sentTokens / most.sent },
  { name: "Cached", value: (row) => row.prefixReuse, told: shareOf },
  { name: "Cost", value: (row) => row.costUsd, told: dollars, bar: (row, most) => row.costUsd / most.cost },
  { name: "Calls", value: (row) => row.calls, told: whole },
  { name: "Cuts", value: (row) => row.cuts, told: whole },
  { name: "Ratio", value: (row) => row.compressionRatio, told: (n) => (typeof n === "number" ? n.toFixed(2) : NOTHING) },
  { name: "Coverage", value: (row) => row.coverage, told: shareOf, bar: (row) => row.coverage },
  { name: "Ungrounded", value: (row) => row.ungrounded, told: whole, fault: true },
  { name: "Wedges", value: (row) => row.wedges, told: whole, fault: true },
  { name: "Est. error", value: (row) => row.estimateError, told: shareOf },
];

const ONCE = [
  { name: "Candidate", value: ({ once }) => once.name, first: true, why: ({ once }) => once.failed },
  { name: "Tokens before", value: ({ once }) => once.tokensBefore, told: whole },
  { name: "Tokens left", value: ({ once }) => once.tokensAfter, told: whole },
  { name: "Of before", value: ({ once }) => leftOf(once), told: shareOf, bar: ({ once }) => leftOf(once) },
  { name: "Facts", value: ({ once }) => once.facts, told: whole },
  { name: "Kept", value: ({ once }) => once.coverage, told: (n, { once }) => keptOf(n, once), bar: ({ once }) => once.coverage },
  { name: "Ungrounded", value: ({ once }) => once.ungrounded, told: whole, fault: true },
];

// Compacted once, the smallest come first: neighbours are those that may be compared.
function tables() {
  return [
    { id: "replay", columns: REPLAY, sort: 0, down: false, has: () => true },
    { id: "once", columns: ONCE, sort: 4, down: false, has: (row) => row.once },
  ];
}

function leftOf(once) {
  return once.tokensBefore > 0 ? once.tokensAfter / once.tokensBefore : null;
}

function keptOf(n, once) {
  return once.reached < once.sessions ? `(${shareOf(n)})` : shareOf(n);
}

function writeColumns(table, redraw) {
  table.columns.forEach((column, at) => {
    const button = el("button", { type: "button" }, column.name);
    button.addEventListener("click", () => {
      table.down = table.sort === at + 1 ? !table.down : false;
      table.sort = at + 1;
      redraw();
    });
    byId(`${table.id}-head`).append(el("th", { scope: "col", class: column.first ? null : "num" }, button));
  });
}

// The report's own order until a heading is pressed, where a table has no order of its own.
function sorted(table, rows) {
  if (!table.sort) return rows;
  const { value } = table.columns[table.sort - 1];
  const missing = (n) => n === null || n === undefined;
  const compare = (one, two) => (typeof one === "string" ? one.localeCompare(two, "en") : one - two);
  return [...rows].sort((a, b) => {
    const [one, two] = [value(a), value(b)];
    if (missing(one) || missing(two)) return missing(one) - missing(two);
    return table.down ? compare(two, one) : compare(one, two);
  });
}

function writeRows(table, all) {
  const rows = all.filter(table.has);
  const most = {
    sent: Math.max(1, ...rows.map((row) => row.sentTokens || 0)),
    cost: Math.max(1e-9, ...rows.map((row) => row.costUsd || 0)),
  };
  [...byId(`${table.id}-head`).children].forEach((head, at) => {
    if (table.sort === at + 1) head.setAttribute("aria-sort", table.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  const made = sorted(table, rows).map((row) =>
    el("tr", { class: row.kind }, ...table.columns.map((column) => cellOf(column, row, most))));
  byId(`${table.id}-body`).replaceChildren(...made);
}

function cellOf(column, row, most) {
  const value = column.value(row);
  if (column.first) {
    const why = column.why(row);
    const kind = el("span", { class: "kind" }, KINDS[row.kind] || row.kind);
    return el("th", { scope: "row" }, value, kind, why ? el("span", { class: "why" }, why) : null);
  }
  const text = value === null || value === undefined ? NOTHING : column.told(value, row);
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
  const num = (text) => el("td", { class: "num" }, text);
  const ungrounded = (list) => el("td", { class: list.length ? "wrapped no" : "wrapped" },
    list.length ? `${whole(list.length)}: ${list.join(", ")}` : whole(0));
  const side = (figures) => [num(whole(figures.tokens)), num(shareOf(figures.inSummary)), ungrounded(figures.ungrounded)];
  const id = el("th", { scope: "row", class: "id wrapped" }, found.entryId);
  return el("tr", {}, id, num(whole(found.messages)), num(whole(found.facts)), ...side(found.recorded), ...side(found.ctx));
}

// Says so where a table is wider than the page.
function tellOfMore(scrolled) {
  const more = scrolled.parentNode.querySelector(".more");
  const tell = () => {
    more.hidden = scrolled.scrollWidth <= scrolled.clientWidth + 1;
  };
  const observer = new ResizeObserver(tell);
  observer.observe(scrolled);
  observer.observe(scrolled.querySelector("table"));
}
