// Tables. `columns` are {name, kind (a class), number (whether its cells are numbers)}.

// A short table: `cell(row)` returns the content of a cell, and the first cell is the heading of its row. If a
// column has `value(row)`, its heading sorts by that.
function shortTable({ kind, caption, columns, rows }) {
  const table = { columns, sort: null, down: false, body: el("tbody"), heads: [], show: (next) => showRows(table, next) };
  for (const column of columns) {
    const sorts = column.value && (() => {
      table.down = table.sort === column && !table.down;
      table.sort = column;
      showRows(table, table.rows);
    });
    table.heads.push(el("th", { scope: "col", class: classOf(column) }, sorts ? buttonOf(column.name, sorts) : column.name));
  }
  table.element = el("table", { class: `short ${kind}` }, caption ? el("caption", {}, ...[caption].flat()) : null,
    el("thead", {}, el("tr", {}, ...table.heads)), table.body);
  showRows(table, rows);
  return table;
}

function showRows(table, rows) {
  const { columns, sort, down } = table;
  table.rows = rows;
  table.heads.forEach((head, nth) => {
    if (columns[nth] === sort) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  const ordered = sort ? [...rows].sort((a, b) => compare(sort.value(a), sort.value(b), down)) : rows;
  table.body.replaceChildren(...ordered.map((row) => el("tr", { class: row.kind }, ...columns.map((column, nth) =>
    el(nth ? "td" : "th", { scope: nth ? null : "row", class: classOf(column) }, ...[column.cell(row)].flat())))));
}

// Missing values come last, in both directions.
function compare(one, two, down) {
  const missing = (n) => n === null || n === undefined;
  if (missing(one) || missing(two)) return missing(one) - missing(two);
  const order = typeof one === "string" ? one.localeCompare(two, "en") : one - two;
  return down ? -order : order;
}

// A table of any length. Only visible rows exist; two spacer rows replace the others. One row is the
// current one: keys move to another, and only the current row is in the tab order.

const AROUND = 8;

// Browsers limit the height of elements, to 17 million pixels or more. A higher table scrolls in
// larger steps.
const MOST_PX = 15_000_000;

// Maximum number of printed rows.
const MOST_PRINTED = 2_000;

for (const [name, isPrinting] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(name, () => {
    for (const box of document.querySelectorAll(".scroll")) box.dispatchEvent(new CustomEvent("print", { detail: isPrinting }));
  });
}

// `cells(at)` returns the contents of a row, or null until they are loaded; `need(from, to)` receives
// the visible range. `moved` and `opened` receive the current row.
function makeTable({ caption, columns, cells, need, moved, opened, kind }) {
  const body = el("tbody");
  const head = el("tr", {}, ...columns.map((column) =>
    el("th", { scope: "col", class: classOf(column) }, column.name)));
  const element = el("table", { class: `rows ${kind || ""}` },
    el("caption", { class: "hidden" }, caption),
    el("colgroup", {}, ...columns.map((column) => el("col", { class: column.kind }))),
    el("thead", {}, head), body);
  const table = {
    columns, cells, need, moved, opened, element, body,
    box: el("div", { class: "scroll" }, element),
    count: 0,
    current: -1,
    made: new Map(),
    above: spacer(),
    below: spacer(),
    queued: false,
    printing: false,
  };
  body.append(table.above, table.below);
  table.box.addEventListener("scroll", () => queue(table), { passive: true });
  table.box.addEventListener("print", (event) => {
    table.printing = event.detail;
    render(table);
  });
  table.sizes = new ResizeObserver(() => queue(table));
  table.sizes.observe(table.box);
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-at]");
    // Selecting text in a row must not open it.
    if (!row || !getSelection().isCollapsed) return;
    setCurrent(table, Number(row.dataset.at));
    if (table.opened) table.opened(table.current);
  });
  body.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr[data-at]");
    if (row) setCurrent(table, Number(row.dataset.at));
  });
  return table;
}

function classOf(column) {
  return [column.kind, column.number ? "num" : null].filter(Boolean).join(" ") || null;
}

function spacer() {
  return el("tr", { class: "spacer", "aria-hidden": "true" }, el("td"));
}

// Sets the number of rows. Existing rows are rebuilt, as their content may change.
function setCount(table, count) {
  table.count = count;
  if (table.current >= count) table.current = count - 1;
  table.element.setAttribute("aria-rowcount", count + 1);
  remake(table);
}

function remake(table) {
  const focused = table.body.contains(document.activeElement);
  // Remove the old rows last: otherwise the table shrinks for a moment, and a scroll position at its
  // end is lost.
  const old = [...table.made.values()];
  table.made.clear();
  render(table);
  for (const row of old) row.remove();
  if (focused) focusCurrent(table);
}

function queue(table) {
  if (table.queued) return;
  table.queued = true;
  requestAnimationFrame(() => {
    table.queued = false;
    render(table);
  });
}

function rowHeight(table) {
  return parseFloat(getComputedStyle(table.element).getPropertyValue("--row")) || 34;
}

// The scroll position. `top` is in pixels of the full table; `shift` is the offset from the
// position of the box.
function scrolled(table) {
  const height = rowHeight(table);
  const { box, count } = table;
  const view = box.clientHeight - table.element.tHead.offsetHeight;
  const all = count * height;
  const real = Math.min(all, MOST_PX);
  const scale = real < all ? (all - view) / Math.max(1, real - view) : 1;
  const top = box.scrollTop * scale;
  return { height, view, real, scale, top, shift: top - box.scrollTop };
}

function render(table) {
  const { count } = table;
  const { height, view, real, top, shift } = scrolled(table);
  const first = Math.max(0, Math.ceil(shift / height), Math.floor(top / height) - AROUND);
  const last = Math.min(count, Math.floor((real + shift) / height), Math.ceil((top + view) / height) + AROUND);
  const end = table.printing ? Math.min(count, MOST_PRINTED) : last;
  const from = table.printing ? 0 : Math.min(first, end);
  // Missing rows are requested here, and rebuilt when they are loaded.
  if (table.need && end > from) table.need(from, end);
  const wanted = new Set();
  let next = table.above.nextSibling;
  for (let at = from; at < end; at += 1) {
    const row = rowAt(table, at);
    wanted.add(row);
    if (row === next) next = next.nextSibling;
    else table.body.insertBefore(row, next);
  }
  // Narrow pages hide columns: a spacer must not span more columns than are visible.
  const shown = [...table.element.tHead.rows[0].cells].filter((cell) => cell.offsetWidth > 0).length;
  for (const one of [table.above, table.below]) one.firstChild.colSpan = Math.max(1, shown);
  setHeight(table.above, from * height - shift);
  setHeight(table.below, table.printing ? 0 : real - (end * height - shift));
  for (const [at, row] of table.made) {
    if (wanted.has(row)) continue;
    row.remove();
    table.made.delete(at);
  }
}

function setHeight(spacer, height) {
  spacer.hidden = height <= 0;
  spacer.firstChild.style.height = `${height}px`;
}

function rowAt(table, at) {
  const made = table.made.get(at);
  if (made) return made;
  const contents = table.cells(at);
  const isCurrent = at === table.current;
  const row = el("tr", { "data-at": at, "aria-rowindex": at + 2, class: isCurrent ? "here" : null });
  table.columns.forEach((column, nth) => {
    const content = contents ? contents[nth] : nth === 0 ? "…" : "";
    const inside = nth === 0 ? el("button", {
      type: "button",
      class: "opener",
      tabindex: isCurrent || (table.current < 0 && at === 0) ? "0" : "-1",
    }, content) : content;
    row.append(el(nth === 0 ? "th" : "td", { scope: nth === 0 ? "row" : null, class: classOf(column) }, inside));
  });
  table.made.set(at, row);
  return row;
}

// --- moving ---

function setCurrent(table, at) {
  if (at === table.current || at < 0 || at >= table.count) return;
  mark(table, table.current, false);
  table.current = at;
  mark(table, at, true);
  if (table.moved) table.moved(at);
}

function mark(table, at, on) {
  const row = table.made.get(at);
  if (!row) return;
  row.classList.toggle("here", on);
  row.querySelector(".opener").tabIndex = on ? 0 : -1;
}

function reveal(table, at) {
  const { height, view, scale, top } = scrolled(table);
  const row = at * height;
  if (row < top) table.box.scrollTop = row / scale;
  else if (row + height > top + view) table.box.scrollTop = (row + height - view) / scale;
  render(table);
}

// Whether the current row is visible.
function seesCurrent(table) {
  const { height, view, top } = scrolled(table);
  const row = table.current * height;
  return row + height > top && row < top + view;
}

function focusCurrent(table) {
  const row = table.made.get(table.current);
  if (row) row.querySelector(".opener").focus({ preventScroll: true });
}

function moveBy(table, steps) {
  if (!table.count) return;
  const from = table.current < 0 && steps > 0 ? -1 : table.current;
  const at = Math.max(0, Math.min(table.count - 1, from + steps));
  setCurrent(table, at);
  reveal(table, at);
  focusCurrent(table);
}

// Returns the keys that move in a table and open the current row.
function tableKeys(table) {
  const screen = () => Math.max(1, Math.floor(table.box.clientHeight / rowHeight(table)) - 2);
  return {
    j: () => moveBy(table, 1),
    k: () => moveBy(table, -1),
    ArrowDown: () => moveBy(table, 1),
    ArrowUp: () => moveBy(table, -1),
    PageDown: () => moveBy(table, screen()),
    PageUp: () => moveBy(table, -screen()),
    Home: () => moveBy(table, -Infinity),
    End: () => moveBy(table, Infinity),
    Enter: () => table.current >= 0 && table.opened && table.opened(table.current),
  };
}

// --- rows that come in pages ---

const PAGE = 200;
const KEPT_PAGES = 40;

// Loads pages of rows on demand. `load(from, count)` returns `{ rows, total }`.
function pagedRows(load, changed) {
  const paged = { pages: new Map(), asked: new Set(), total: 0, run: 0 };
  paged.at = (at) => {
    const page = paged.pages.get(Math.floor(at / PAGE));
    return page ? page[at % PAGE] : undefined;
  };
  // Returns a row; loads it first if it is missing.
  paged.row = async (at) => {
    if (paged.at(at) === undefined) await fetchPage(paged, Math.floor(at / PAGE), load, changed);
    return paged.at(at);
  };
  paged.need = (from, to) => {
    for (let page = Math.floor(from / PAGE); page * PAGE < to; page += 1) {
      if (!paged.pages.has(page)) fetchPage(paged, page, load, changed);
    }
  };
  paged.reset = (page, total) => {
    paged.run += 1;
    paged.pages = new Map([[0, page]]);
    paged.asked.clear();
    paged.total = total;
  };
  return paged;
}

async function fetchPage(paged, page, load, changed) {
  if (paged.asked.has(page)) return;
  paged.asked.add(page);
  const { run } = paged;
  try {
    const { rows, total } = await load(page * PAGE, PAGE);
    if (run !== paged.run) return;
    if (paged.pages.size >= KEPT_PAGES) paged.pages.delete(paged.pages.keys().next().value);
    paged.pages.set(page, rows);
    paged.total = total;
    changed();
  } catch (error) {
    if (error.name !== "AbortError") changed(error);
  } finally {
    if (run === paged.run) paged.asked.delete(page);
  }
}

// Moves by `by` rows, and returns the row there when it is loaded; null beyond the ends.
async function rowBeside(table, paged, by) {
  const at = table.current + by;
  if (at < 0 || at >= table.count) return null;
  setCurrent(table, at);
  reveal(table, at);
  return paged.row(at);
}
