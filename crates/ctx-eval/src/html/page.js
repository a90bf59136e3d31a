// Puts the parts together: totals, the one cursor that chart and table share, filter, keys.

function start() {
  const model = buildModel(readReport());
  const page = { model, cursor: 0, chart: null, rows: null, inRows: false, spoken: 0 };
  writeHead(model);
  writeTotals(model);
  page.rows = createRows(model, {
    toggled: (at) => toggle(page, at),
    printed: (cut) => writeMatches(page, cut),
  });
  page.chart = createChart(model, {
    moved: (at) => moveTo(page, at),
    opened: (at) => show(page, at),
    viewed: (zoomed) => (byId("zoom-out").hidden = !zoomed),
  });
  writeCompactions(model, (at) => show(page, at));
  listenToControls(page);
  listenToKeys(page);
  applyFilter(page);
  moveTo(page, 0);
  openFromAddress(page);
}

// --- head ---

function writeHead(model) {
  const session = model.report.session || {};
  const path = String(session.path || "session");
  const name = path.split(/[\\/]/).filter(Boolean).pop() || path;
  document.title = `${name} · ctx replay`;
  byId("name").textContent = name;
  byId("path").textContent = path === name ? "" : path;
  const facts = [
    session.format,
    plural(session.entries || 0, "entry", "entries"),
    plural(session.messages || 0, "message"),
    plural(session.toolResults || 0, "tool result"),
    bytes(session.bytes),
  ];
  byId("facts").textContent = facts.filter(Boolean).join(" · ");
  if (session.badLines) {
    const told = `${plural(session.badLines, "line")} could not be read`;
    byId("facts").append(" · ", el("span", { class: "no" }, told));
  }
}

// --- the cursor ---

function moveTo(page, at) {
  if (!page.model.count) return;
  page.cursor = Math.max(0, Math.min(at, page.model.count - 1));
  moveChartCursor(page.chart, page.cursor);
  markRow(page.rows, page.cursor);
  writeReadout(page.model, page.cursor);
  speak(page);
}

// A cursor that runs through a session must not be read out at every step.
function speak(page) {
  clearTimeout(page.spoken);
  page.spoken = setTimeout(() => {
    const { model, cursor } = page;
    byId("live").textContent = [
      `Request ${whole(cursor + 1)}: raw ${whole(model.raw[cursor])}`,
      `sent ${whole(model.sent[cursor])} tokens`,
      model.fits[cursor] ? "fits" : "does not fit",
      plural(model.edits[cursor], "edit"),
    ].join(", ");
  }, 250);
}

function toggle(page, at) {
  const opening = page.rows.open !== at;
  openRow(page.rows, opening ? at : -1, at);
  moveTo(page, at);
  focusRow(page.rows, at);
  writeAddress(opening ? at : -1);
}

// Opens a request from outside the table, whatever the filter hides.
function show(page, at) {
  if (!page.model.count) return;
  if (!isListed(page.rows, at)) clearFilter(page);
  openRow(page.rows, at);
  moveTo(page, at);
  revealRow(page.rows, at, true);
  focusRow(page.rows, at);
  writeAddress(at);
}

// The opened request stands in the address, so that a link can point to it.
function writeAddress(at) {
  try {
    history.replaceState(null, "", at >= 0 ? `#${at + 1}` : "#");
  } catch {
    // Some browsers refuse this for local files. Nothing but the link is lost.
  }
}

function openFromAddress(page) {
  const at = Number(location.hash.slice(1)) - 1;
  if (Number.isInteger(at) && at >= 0 && at < page.model.count) show(page, at);
}

// --- filter and search ---

function applyFilter(page) {
  setOrder(page.rows, select(page.model, byId("filter").value, byId("search").value));
  writeMatches(page, 0);
}

function clearFilter(page) {
  byId("filter").value = "all";
  byId("search").value = "";
  applyFilter(page);
}

function writeMatches(page, cut) {
  const shown = page.rows.order.length;
  const { count } = page.model;
  let told = shown === count ? "" : `${whole(shown)} of ${plural(count, "request")}`;
  if (count && !shown) told = "No request matches. Esc shows all of them again.";
  if (cut) told = `The first ${whole(cut)} of ${plural(shown, "request")} are printed.`;
  byId("matches").textContent = told;
}

function listenToControls(page) {
  const { chart } = page;
  let pending = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(() => applyFilter(page), 120);
  });
  byId("filter").addEventListener("change", () => applyFilter(page));
  byId("largest-raw").addEventListener("click", () => show(page, largest(page.model.raw)));
  byId("largest-sent").addEventListener("click", () => show(page, largest(page.model.sent)));
  byId("zoom-out").addEventListener("click", () => setView(chart, 0, page.model.count));
  byId("open-here").addEventListener("click", () => show(page, page.cursor));
  for (const radio of document.querySelectorAll("input[name=scale]")) {
    radio.checked = radio.value === chart.scale;
    radio.addEventListener("change", () => setScale(chart, radio.value));
  }
  addEventListener("hashchange", () => openFromAddress(page));
}

// --- keys ---

function listenToKeys(page) {
  document.addEventListener("focusin", (event) => (page.inRows = byId("body").contains(event.target)));
  document.addEventListener("pointerdown", (event) => (page.inRows = byId("body").contains(event.target)));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !page.model.count) return;
    // Arrows choose among radio buttons, and letters among options; these keep them.
    if (event.target.matches("input[type=radio]") && event.key.startsWith("Arrow")) return;
    const inField = event.target.matches("input[type=search], select");
    const act = inField ? keyInField(page, event) : keyOnPage(page, event);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function keyInField(page, event) {
  if (event.target.id !== "search") return null;
  if (event.key === "Escape") return () => leaveSearch(page);
  if (event.key === "Enter" && page.rows.order.length) return () => show(page, page.rows.order[0]);
  return null;
}

// Back from a search, the reader finds the request it led to among its neighbours.
function leaveSearch(page) {
  const filtered = page.rows.order.length < page.model.count;
  clearFilter(page);
  byId("search").blur();
  if (!filtered) return;
  revealRow(page.rows, page.cursor, false);
  focusRow(page.rows, page.cursor);
}

function keyOnPage(page, event) {
  const { key, target } = event;
  const { chart } = page;
  const onChart = chart.box.contains(target);
  const inRows = page.inRows && (target === document.body || byId("body").contains(target));
  const anywhere = {
    "/": () => byId("search").select(),
    Escape: () => stepBack(page),
    n: () => moveAndReveal(page, nextEdited(page.model, page.cursor, 1)),
    p: () => moveAndReveal(page, nextEdited(page.model, page.cursor, -1)),
    ArrowRight: () => moveAndReveal(page, page.cursor + 1),
    ArrowLeft: () => moveAndReveal(page, page.cursor - 1),
  };
  const here = {
    Enter: () => show(page, page.cursor),
    "+": () => zoomChart(chart, 0.5),
    "=": () => zoomChart(chart, 0.5),
    "-": () => zoomChart(chart, 2),
  };
  if (Object.hasOwn(anywhere, key)) return anywhere[key];
  if (onChart && Object.hasOwn(here, key)) return here[key];
  return onChart || inRows ? keyToMove(page, key, inRows) : null;
}

function keyToMove(page, key, inRows) {
  const aScreen = Math.floor(innerHeight / page.rows.rowHeight) - 3;
  const aTenth = Math.round((page.chart.hi - page.chart.lo) / 10);
  const far = Math.max(1, inRows ? aScreen : aTenth);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: far, PageUp: -far, Home: -Infinity, End: Infinity };
  if (!Object.hasOwn(steps, key)) return null;
  return () => (inRows ? moveInRows(page, steps[key]) : moveTo(page, page.cursor + steps[key]));
}

// In the table the cursor goes from row to row as listed, not from request to request.
function moveInRows(page, steps) {
  const { order } = page.rows;
  if (!order.length) return;
  const rank = Math.max(0, Math.min(order.length - 1, rankOf(order, page.cursor) + steps));
  moveTo(page, order[rank]);
  revealRow(page.rows, order[rank], false);
  focusRow(page.rows, order[rank]);
}

function moveAndReveal(page, at) {
  moveTo(page, at);
  if (!page.inRows || !isListed(page.rows, page.cursor)) return;
  revealRow(page.rows, page.cursor, false);
  focusRow(page.rows, page.cursor);
}

// Esc undoes one thing: the opened row, then the filter, then the zoom.
function stepBack(page) {
  if (page.rows.open >= 0) toggle(page, page.rows.open);
  else if (page.rows.order.length < page.model.count) leaveSearch(page);
  else setView(page.chart, 0, page.model.count);
}

start();
