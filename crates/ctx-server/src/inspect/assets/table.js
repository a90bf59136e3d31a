// A table of any length. Only the rows in sight exist; two spacer rows stand for the others. One row
// is current: keys move it, and it alone is in the order of tabs.

const AROUND = 8;

// Browsers draw nothing below some height: 17 million pixels in one, 33 in others. A table that would
// be higher is scrolled in larger steps.
const MOST_PX = 15_000_000;

// `columns`: name, kind (a class), and whether it holds numbers. `cells(at)`: the contents of a row,
// or null while it is not known; `need(from, to)` hears which rows are looked at. `moved` and `opened`
// hear of the current row.
export function makeTable({ caption, columns, cells, need, moved, opened, kind }) {
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
  };
  body.append(table.above, table.below);
  table.box.addEventListener("scroll", () => queue(table), { passive: true });
  table.sizes = new ResizeObserver(() => queue(table));
  table.sizes.observe(table.box);
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-at]");
    // Somebody who selects text in a row does not want it opened.
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
  return column.number ? `${column.kind} num` : column.kind;
}

function spacer() {
  return el("tr", { class: "spacer", "aria-hidden": "true" }, el("td"));
}

// How many rows there are. Rows that were made are made anew, as they may hold something else.
export function setCount(table, count) {
  table.count = count;
  if (table.current >= count) table.current = count - 1;
  table.element.setAttribute("aria-rowcount", count + 1);
  remake(table);
}

export function remake(table) {
  const focused = table.body.contains(document.activeElement);
  // The old rows go last: without any the table is lower for a moment, and one that is scrolled to
  // its end does not stay there.
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

// Where the table is scrolled to. `top` is in pixels of a table that has them all, `shift` how far that
// is from where the box is scrolled to.
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
  const end = Math.min(count, Math.floor((real + shift) / height), Math.ceil((top + view) / height) + AROUND);
  const from = Math.min(first, end);
  // Rows that are asked for now are made anew when they come.
  if (table.need && end > from) table.need(from, end);
  const wanted = new Set();
  let next = table.above.nextSibling;
  for (let at = from; at < end; at += 1) {
    const row = rowAt(table, at);
    wanted.add(row);
    if (row === next) next = next.nextSibling;
    else table.body.insertBefore(row, next);
  }
  // A narrow page has fewer columns, and a cell that spans more would add empty ones.
  const shown = [...table.element.tHead.rows[0].cells].filter((cell) => cell.offsetWidth > 0).length;
  for (const one of [table.above, table.below]) one.firstChild.colSpan = Math.max(1, shown);
  setHeight(table.above, from * height - shift);
  setHeight(table.below, real - (end * height - shift));
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

export function setCurrent(table, at) {
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

export function reveal(table, at) {
  const { height, view, scale, top } = scrolled(table);
  const row = at * height;
  if (row < top) table.box.scrollTop = row / scale;
  else if (row + height > top + view) table.box.scrollTop = (row + height - view) / scale;
  render(table);
}

// Whether the current row is in sight.
export function seesCurrent(table) {
  const { height, view, top } = scrolled(table);
  const row = table.current * height;
  return row + height > top && row < top + view;
}

export function focusCurrent(table) {
  const row = table.made.get(table.current);
  if (row) row.querySelector(".opener").focus({ preventScroll: true });
}

export function moveBy(table, steps) {
  if (!table.count) return;
  const from = table.current < 0 && steps > 0 ? -1 : table.current;
  const at = Math.max(0, Math.min(table.count - 1, from + steps));
  setCurrent(table, at);
  reveal(table, at);
  focusCurrent(table);
}

// The keys that move in a table, and open its row.
export function tableKeys(table) {
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

// Asks for pages of rows as they are looked at. `load(from, count)` gives `{ rows, total }`.
export function pagedRows(load, changed) {
  const paged = { pages: new Map(), asked: new Set(), total: 0, run: 0 };
  paged.at = (at) => {
    const page = paged.pages.get(Math.floor(at / PAGE));
    return page ? page[at % PAGE] : undefined;
  };
  // A row, once it is there.
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

// Moves to the row before or after the current one, and gives what it holds once that is there.
export async function rowBeside(table, paged, by) {
  const at = table.current + by;
  if (at < 0 || at >= table.count) return null;
  setCurrent(table, at);
  reveal(table, at);
  return paged.row(at);
}
