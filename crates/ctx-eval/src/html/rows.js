// The table of requests. Only the rows on the screen exist; two spacer rows stand for the others.
// The page itself scrolls, so that a phone has one thing to scroll and not two.

const ROWS_AROUND = 10;
const ROWS_PRINTED = 2000;

function createRows(model, hooks) {
  const rows = {
    model,
    hooks,
    table: byId("rows"),
    body: byId("body"),
    order: [],
    open: -1,
    detail: null,
    detailHeight: 0,
    rowHeight: 34,
    cursor: 0,
    made: new Map(),
    above: el("tr", { class: "spacer", "aria-hidden": "true" }, el("td")),
    below: el("tr", { class: "spacer", "aria-hidden": "true" }, el("td")),
    printing: false,
    queued: false,
  };
  rows.body.append(rows.above, rows.below);
  rows.measure = new ResizeObserver(() => measureDetail(rows));
  const queue = () => queueRender(rows);
  addEventListener("scroll", queue, { passive: true });
  addEventListener("resize", queue);
  addEventListener("beforeprint", () => printRows(rows, true));
  addEventListener("afterprint", () => printRows(rows, false));
  return rows;
}

function setOrder(rows, order) {
  rows.order = order;
  rows.table.setAttribute("aria-rowcount", order.length + 1);
  renderRows(rows);
}

// Where a request stands in the order, or where it would.
function rankOf(order, at) {
  let low = 0, high = order.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isListed(rows, at) {
  return rows.order[rankOf(rows.order, at)] === at;
}

function openRank(rows) {
  return rows.open >= 0 && isListed(rows, rows.open) ? rankOf(rows.order, rows.open) : -1;
}

// The top of a row below the top of the table's body, with an opened manifest above it counted.
function topOf(rows, rank) {
  const opened = openRank(rows);
  const extra = opened >= 0 && rank > opened ? rows.detailHeight : 0;
  return rank * rows.rowHeight + extra;
}

function rankAt(rows, y) {
  const height = rows.rowHeight;
  const opened = openRank(rows);
  const plain = Math.floor(y / height);
  if (opened < 0 || plain <= opened) return plain;
  return Math.max(opened, Math.floor((y - rows.detailHeight) / height));
}

function queueRender(rows) {
  if (rows.queued) return;
  rows.queued = true;
  requestAnimationFrame(() => {
    rows.queued = false;
    renderRows(rows);
  });
}

function renderRows(rows) {
  measureTable(rows);
  const count = rows.order.length;
  const top = -rows.body.getBoundingClientRect().top;
  let first = Math.max(0, Math.min(count, rankAt(rows, top) - ROWS_AROUND));
  let end = Math.min(count, Math.max(first, rankAt(rows, top + innerHeight) + 1 + ROWS_AROUND));
  if (rows.printing) [first, end] = [0, Math.min(count, ROWS_PRINTED)];
  const opened = openRank(rows);
  const total = topOf(rows, count);
  const below = end === count ? 0 : total - topOf(rows, end);
  const above = topOf(rows, first);
  const nodes = [];
  for (let rank = first; rank < end; rank += 1) {
    nodes.push(rowAt(rows, rank));
    if (rank === opened) nodes.push(rows.detail);
  }
  // In this order the table is never shorter than it will be. If it were, and the browser laid it
  // out half way (it does when a focused row goes), the reader would be taken back up.
  const wanted = new Set(nodes);
  insertRows(rows, nodes, wanted);
  setSpacer(rows.above, rows.printing ? 0 : above);
  setSpacer(rows.below, rows.printing ? 0 : below);
  removeRows(rows, wanted);
}

// A narrow page has higher rows and fewer columns. A cell that spans more columns than there are
// would add empty ones.
function measureTable(rows) {
  rows.rowHeight = parseFloat(getComputedStyle(rows.table).getPropertyValue("--row")) || 34;
  const shown = [...rows.table.tHead.rows[0].cells].filter((cell) => cell.offsetWidth > 0).length;
  for (const row of [rows.above, rows.below, rows.detail]) if (row) row.firstChild.colSpan = shown;
}

function setSpacer(spacer, height) {
  spacer.hidden = height <= 0;
  spacer.firstChild.style.height = `${height}px`;
}

// Rows that stay on the screen are not touched, so that focus and selection stay with them.
function insertRows(rows, nodes, wanted) {
  let next = rows.above.nextSibling;
  for (const node of nodes) {
    while (next !== rows.below && !wanted.has(next)) next = next.nextSibling;
    if (node === next) next = next.nextSibling;
    else rows.body.insertBefore(node, next);
  }
}

function removeRows(rows, wanted) {
  for (const [at, row] of rows.made) {
    if (wanted.has(row)) continue;
    row.remove();
    rows.made.delete(at);
  }
  if (rows.detail && !wanted.has(rows.detail)) rows.detail.remove();
}

function rowAt(rows, rank) {
  const at = rows.order[rank];
  let row = rows.made.get(at);
  if (!row) {
    row = makeRow(rows, at);
    rows.made.set(at, row);
  }
  row.setAttribute("aria-rowindex", rank + 2);
  row.classList.toggle("here", at === rows.cursor);
  row.classList.toggle("open", at === rows.open);
  row.querySelector("button").setAttribute("aria-expanded", at === rows.open);
  return row;
}

function makeRow(rows, at) {
  const { model } = rows;
  const request = model.requests[at];
  const number = whole(at + 1);
  const button = el("button", { type: "button", class: "opener", "aria-label": `Request ${number}` }, number);
  const full = model.window > 0 ? Math.min(100, (100 * model.sent[at]) / model.window) : 0;
  const level = el("span", { class: "level", style: `width:${full.toFixed(1)}%`, "aria-hidden": "true" });
  const fits = model.fits[at] ? el("span", { class: "yes" }, "✓ fits") : el("span", { class: "no" }, "✕ over");
  const cell = (kind, ...children) => el("td", { class: kind }, ...children);
  const row = el("tr", { class: "request" },
    el("th", { scope: "row", class: "c-number" }, button),
    cell("c-time", clock(request.timestamp)),
    cell(model.raw[at] > model.limit ? "c-raw num beyond" : "c-raw num", whole(request.rawTokens)),
    cell("c-sent num", whole(request.sentTokens), el("span", { class: "track" }, level)),
    cell("c-cached num", percent(model.cached[at], model.sent[at])),
    cell("c-fits", fits),
    cell("c-cost num", dollars(request.costUsd)),
    actionsCell(model, at));
  row.addEventListener("click", () => {
    // Somebody who selects text in a row does not want it opened.
    if (getSelection().isCollapsed) rows.hooks.toggled(at);
  });
  return row;
}

function actionsCell(model, at) {
  const actions = Object.entries(model.requests[at].actions || {});
  const recalled = model.recalled[at] ? [`recalled ${plural(model.recalled[at], "token")}`] : [];
  const told = [...actions.map(([layer, n]) => `${layer} ${whole(n)}`), ...recalled].join(", ");
  const count = model.edits[at] ? whole(model.edits[at]) : "";
  return el("td", { class: "c-actions", title: told || null },
    el("span", { class: "wide" }, told),
    el("span", { class: "narrow" }, count));
}

// --- opening and moving ---

// `at` is opened, or everything is closed with -1. What the reader looks at stays where it is.
function openRow(rows, at, keep = at) {
  const before = isListed(rows, keep) ? topOf(rows, rankOf(rows.order, keep)) : 0;
  if (rows.detail) {
    rows.measure.disconnect();
    rows.detail.remove();
  }
  rows.open = at;
  rows.detail = null;
  rows.detailHeight = 0;
  if (at >= 0) {
    rows.detail = el("tr", { class: "detail" }, el("td", {}, manifestOf(rows.model, at)));
    renderRows(rows);
    rows.measure.observe(rows.detail);
    measureDetail(rows);
  }
  const after = isListed(rows, keep) ? topOf(rows, rankOf(rows.order, keep)) : 0;
  if (after !== before) scrollBy(0, after - before);
  renderRows(rows);
}

function measureDetail(rows) {
  if (!rows.detail || !rows.detail.isConnected) return;
  const height = rows.detail.getBoundingClientRect().height;
  if (height === rows.detailHeight) return;
  rows.detailHeight = height;
  queueRender(rows);
}

function markRow(rows, at) {
  rows.cursor = at;
  for (const [made, row] of rows.made) row.classList.toggle("here", made === at);
}

// Scrolls as little as shows the row, or to a fixed place when `toTop` is set.
function revealRow(rows, at, toTop) {
  const rank = rankOf(rows.order, at);
  const y = rows.body.getBoundingClientRect().top + topOf(rows, rank);
  const head = rows.table.tHead.offsetHeight;
  const low = innerHeight - rows.rowHeight * 2;
  if (toTop) scrollBy(0, y - head - rows.rowHeight);
  else if (y < head) scrollBy(0, y - head);
  else if (y > low) scrollBy(0, y - low);
  renderRows(rows);
}

function focusRow(rows, at) {
  const row = rows.made.get(at);
  if (row) row.querySelector("button").focus({ preventScroll: true });
}

// Paper does not scroll: the rows are all there, up to a number somebody would still print.
function printRows(rows, printing) {
  rows.printing = printing;
  rows.hooks.printed(printing && rows.order.length > ROWS_PRINTED ? ROWS_PRINTED : 0);
  renderRows(rows);
}
