// A session: its totals, its requests in a chart and a table with one cursor, its compactions.

const SCALES = [
  ["window", "Window", "The axis ends a little above the window"],
  ["linear", "Linear", "The axis ends above the largest request"],
  ["log", "Log", "Logarithmic axis"],
];

// The cursor is announced, and written into the address, when it has rested for so long.
const REST_MS = 250;

// `opened` receives the request to open; `moved` is called when the cursor moves, and `rested` when it has
// rested. `compaction(row, name)` returns the element that opens a compaction. `chartTools` and `tableTools`
// are added beside the headings.
function makeSession(session, { opened, moved = () => {}, rested = () => {}, compaction, chartTools = [], tableTools = [] }) {
  const view = { opened, moved, rested, compaction, model: buildModel(session), chart: null, table: null, cursor: 0, resting: 0 };
  const zoomOut = buttonOf("Whole session", () => setView(view.chart, 0, view.model.count), { id: "zoom-out", hidden: "" });
  const key = (keys, text) => el("span", {}, ...keys.flatMap((one) => [el("kbd", {}, one), " "]), text);
  view.nodes = [
    el("section", { "aria-label": "Totals" },
      el("p", { id: "lede", class: "lede" }),
      el("div", { class: "beside even" },
        el("div", { id: "totals" }),
        el("div", {}, el("dl", { id: "settings", class: "settings" }), el("dl", { id: "layers", class: "layers" }))),
      el("p", { id: "source", class: "note" })),
    el("div", { id: "no-requests", hidden: "" }, nothing("This session contains no answer of a model, so there is no request to show.")),
    el("div", { id: "chart-and-table", class: "beside" },
      el("section", { class: "chart-section", "aria-labelledby": "chart-title" },
        el("div", { class: "bar" }, el("h2", { id: "chart-title" }, "Tokens per request"),
          el("div", { class: "tools" }, ...chartTools, zoomOut,
            segments("scale", "Scale of the token axis", SCALES, firstScale(view.model), (scale) => setScale(view.chart, scale)))),
        el("div", { id: "readout" }),
        el("div", { id: "chart", class: "chart", tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-labelledby": "chart-title", "aria-describedby": "chart-keys" },
          svgRoot({ id: "plot", "aria-hidden": "true", focusable: "false" })),
        el("p", { id: "chart-keys", class: "keys" },
          key(["←", "→"], "move"), key(["n", "p"], "with edits"), key(["+", "−"], "or drag to zoom"), key(["Enter"], "open"))),
      el("section", { class: "requests-section", "aria-labelledby": "rows-title" },
        el("div", { class: "bar" }, el("h2", { id: "rows-title" }, "Requests"),
          tableTools.length ? el("div", { class: "tools" }, ...tableTools) : null))),
    el("section", { id: "compactions", "aria-labelledby": "compactions-title" },
      el("h2", { id: "compactions-title" }, "Compactions"), el("div", { id: "compaction-list" })),
  ];
  return view;
}

// Draws everything except the cursor. `view.nodes` must be in the page. `added` is the number of new requests.
function drawSession(view, session, added = 0) {
  const model = buildModel(session);
  view.model = model;
  writeTotals(model);
  byId("lede").hidden = !model.count;
  byId("compactions").hidden = session.compactions.length === 0;
  byId("compaction-list").replaceChildren(compactionList(session.compactions, view.compaction));
  byId("chart-and-table").hidden = !model.count;
  byId("no-requests").hidden = model.count > 0;
  if (!model.count) return;
  if (!view.chart) makeParts(view);
  view.chart.model = model;
  const seesAll = view.chart.lo === 0 && view.chart.hi >= model.count - added;
  if (seesAll || view.chart.hi > model.count) setView(view.chart, 0, model.count);
  else drawChart(view.chart);
  view.table.update(model);
}

function makeParts(view) {
  view.table = makeRequests(view.model, {
    moved: (at) => moveCursor(view, at, false),
    opened: view.opened,
  });
  document.querySelector(".requests-section").append(view.table.box);
  view.chart = createChart(view.model, {
    moved: (at) => moveCursor(view, at, true),
    opened: view.opened,
    viewed: (zoomed) => (byId("zoom-out").hidden = !zoomed),
  });
}

function moveCursor(view, at, scrolls) {
  view.cursor = Math.max(0, Math.min(at, view.model.count - 1));
  moveChartCursor(view.chart, view.cursor);
  byId("readout").replaceChildren(readoutOf(view.model, view.cursor));
  view.table.follow(view.cursor, scrolls);
  view.moved();
  clearTimeout(view.resting);
  view.resting = setTimeout(() => {
    say(spokenOf(view.model, view.cursor));
    view.rested();
  }, REST_MS);
}

function sessionKeys(view) {
  const move = (at) => () => moveCursor(view, at, true);
  return {
    ...view.table.keys(),
    ArrowRight: move(view.cursor + 1),
    ArrowLeft: move(view.cursor - 1),
    n: move(nextEdited(view.model, view.cursor, 1)),
    p: move(nextEdited(view.model, view.cursor, -1)),
    "+": () => zoomChart(view.chart, 0.5),
    "=": () => zoomChart(view.chart, 0.5),
    "-": () => zoomChart(view.chart, 2),
    Enter: () => view.opened(view.cursor),
  };
}
