// The table of requests beside the chart: the same cursor, the same numbers.

import { makeTable, reveal, seesCurrent, setCount, setCurrent, tableKeys } from "./table.js";

const COLUMNS = [
  { name: "Request", kind: "c-number" },
  { name: "Raw", kind: "c-raw", number: true },
  { name: "Sent", kind: "c-sent", number: true },
  { name: "Cached", kind: "c-cached", number: true },
  { name: "Edits", kind: "c-edits", number: true },
];

export function makeRequests({ moved, opened }) {
  const shown = { model: null, quiet: false };
  const table = makeTable({
    caption: "Requests with their tokens: raw, sent, from the cache, and the edits made for each. The button of a row opens it.",
    kind: "requests",
    columns: COLUMNS,
    cells: (at) => cellsOf(shown.model, at),
    moved: (at) => shown.quiet || moved(at),
    opened,
  });
  return {
    box: table.box,
    keys: () => tableKeys(table),
    update: (model) => {
      shown.model = model;
      setCount(table, model.count);
    },
    // The chart's cursor leads, and the table follows; it scrolls there where that is wanted.
    follow: (at, scrolls) => {
      shown.quiet = true;
      setCurrent(table, at);
      shown.quiet = false;
      if (scrolls) reveal(table, at);
    },
    seesCursor: () => seesCurrent(table),
  };
}

function cellsOf(model, at) {
  const request = model.requests[at];
  const over = model.fits[at] ? null : el("span", { class: "no" }, " over");
  const compacted = model.compacted[at] ? el("span", { class: "edited", title: "compacted here" }, " ◆", el("span", { class: "hidden" }, "compacted here")) : null;
  const outcome = request.outcome && request.outcome !== "ok" ? el("span", { class: "no" }, ` ${request.outcome}`) : null;
  return [
    el("span", {}, el("span", { class: "hidden" }, "Request "), whole(at + 1), compacted, over, outcome),
    el("span", { class: model.raw[at] > model.limit ? "beyond" : null }, whole(request.rawTokens)),
    el("b", {}, whole(request.sentTokens)),
    typeof request.cachedTokens === "number" ? percent(model.cached[at], model.sent[at]) : NOTHING,
    model.edits[at] ? whole(model.edits[at]) : "",
  ];
}
