// The table of requests beside the chart, with the same cursor and numbers.

function makeRequests(model, { moved, opened }) {
  // The columns do not change, even if a later model has other values.
  const { hasRecorded } = model;
  const shown = { model, order: null, quiet: false };
  const requestOf = (row) => (shown.order ? shown.order[row] : row);
  const count = (name, kind) => ({ name, kind, number: true });
  const table = makeTable({
    caption: "Requests with their tokens (recorded, full history, with ctx, cached) and the number of edits. The button of a row opens the request.",
    kind: "requests",
    columns: [
      { name: "Request", kind: "c-number" },
      ...(hasRecorded ? [count(ARMS.recorded, "c-recorded")] : []),
      count(ARMS.full, "c-raw"),
      count(ARMS.with, "c-sent"),
      count("Cached", "c-cached"),
      count("Edits", "c-edits"),
    ],
    cells: (row) => requestCells(shown.model, requestOf(row), hasRecorded),
    moved: (row) => shown.quiet || moved(requestOf(row)),
    opened: (row) => opened(requestOf(row)),
  });
  return {
    box: table.box,
    keys: () => tableKeys(table),
    focus: () => focusCurrent(table),
    // `order` are the requests to list, ascending; null lists all.
    update: (next, order = null) => {
      if (order !== shown.order) table.current = -1;
      Object.assign(shown, { model: next, order });
      setCount(table, order ? order.length : next.count);
    },
    // Moves to the chart's cursor, and scrolls to it if `scrolls`.
    follow: (at, scrolls) => {
      const row = shown.order ? shown.order.indexOf(at) : at;
      shown.quiet = true;
      setCurrent(table, row);
      shown.quiet = false;
      if (scrolls && row >= 0) reveal(table, row);
    },
    seesCursor: () => seesCurrent(table),
  };
}

function requestCells(model, at, hasRecorded) {
  const request = model.requests[at];
  const mark = (kind, title) => el("span", { class: kind, title }, " ◆", el("span", { class: "hidden" }, title));
  const over = (tokens) => (tokens > model.limit ? "beyond" : null);
  return [
    el("span", {}, el("span", { class: "hidden" }, "Request "), whole(at + 1),
      model.compactedBefore[at] ? mark("of-recorded", "the agent compacted here") : null,
      model.compacted[at] ? mark("edited", "compacted here with ctx") : null,
      model.fits[at] ? null : el("span", { class: "no" }, " over"),
      request.outcome && request.outcome !== "ok" ? el("span", { class: "no" }, ` ${request.outcome}`) : null),
    ...(hasRecorded ? [el("span", { class: over(model.recorded[at]) }, whole(request.recordedTokens))] : []),
    el("span", { class: over(model.raw[at]) }, whole(request.rawTokens)),
    el("b", {}, whole(request.sentTokens)),
    typeof request.cachedTokens === "number" ? percent(model.cached[at], model.sent[at]) : NOTHING,
    model.edits[at] ? whole(model.edits[at]) : "",
  ];
}
