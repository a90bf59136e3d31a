// An opened request: what it is made of, and what was done to it.

// A request may carry thousands of edits. Each layer shows some and offers the rest.
const EDITS_SHOWN = 100;

function manifestOf(model, at) {
  const edits = editsOf(model, at);
  const components = (model.details[at] && model.details[at].components) || [];
  const box = el("div", { class: "manifest" }, manifestFacts(model, at));
  if (components.length) box.append(componentBars(components));
  for (const [layer, group] of editsByLayer(edits)) box.append(layerEdits(layer, group));
  if (!edits.length) box.append(el("p", { class: "quiet" }, withoutEdits(model, at)));
  return box;
}

function withoutEdits(model, at) {
  if (model.edits[at]) return "The edits themselves are not in this report.";
  if (model.sent[at] < model.raw[at]) return "No edit was made for this request. Those made before it stay in force.";
  return "Nothing is left out of this request.";
}

function manifestFacts(model, at) {
  const request = model.requests[at];
  const list = el("dl", { class: "pairs" });
  const pair = (name, value, kind) =>
    list.append(el("div", {}, el("dt", {}, name), el("dd", { class: kind }, value)));
  pair("Entry", request.entryId || NOTHING, "id");
  pair("Time", clock(request.timestamp));
  pair("Raw", whole(request.rawTokens));
  pair("Sent", whole(request.sentTokens));
  pair("Cached", `${whole(request.cachedTokens)} (${percent(model.cached[at], model.sent[at])})`);
  pair(request.fits === false ? "Over the limit by" : "Left free", whole(Math.abs(model.limit - model.sent[at])));
  if (model.sent[at] < model.raw[at]) pair("Left out so far", whole(model.raw[at] - model.sent[at]));
  if (model.recalled[at]) pair("Recalled", whole(request.recalledTokens));
  pair("Cost", dollars(request.costUsd));
  return list;
}

function componentBars(components) {
  const total = components.reduce((sum, part) => sum + (part.tokens || 0), 0);
  const table = el("table", { class: "components" }, el("caption", {}, "What was sent"));
  const head = el("tr", {}, th("Part"), th("", "bar-cell"), th("Tokens", "num"), th("Share", "num"));
  const body = el("tbody");
  for (const part of components) {
    const share = total > 0 ? (100 * (part.tokens || 0)) / total : 0;
    const bar = share > 0 ? el("span", { class: "share", style: `width:${share.toFixed(2)}%` }) : null;
    body.append(el("tr", { class: part.tokens ? null : "quiet" },
      el("th", { scope: "row" }, String(part.name)),
      el("td", { class: "bar-cell", "aria-hidden": "true" }, bar),
      el("td", { class: "num" }, whole(part.tokens)),
      el("td", { class: "num" }, percent(part.tokens || 0, total))));
  }
  table.append(el("thead", {}, head), body);
  return table;
}

function th(text, kind) {
  return el("th", { scope: "col", class: kind }, text);
}

function editsByLayer(edits) {
  const groups = new Map();
  for (const edit of edits) {
    if (!groups.has(edit.layer)) groups.set(edit.layer, []);
    groups.get(edit.layer).push(edit);
  }
  return groups;
}

function layerEdits(layer, edits) {
  const removed = edits.reduce((sum, edit) => sum + (edit.before || 0) - (edit.after || 0), 0);
  const told = `${plural(edits.length, "edit")} · ${tokensRemoved(removed)}`;
  const caption = el("caption", {}, el("b", {}, String(layer)), el("span", { class: "quiet" }, told));
  const head = el("tr", {},
    th("Entry", "c-entry"),
    th("Action", "c-action"),
    th("Before", "num c-size"),
    th("After", "num c-size"),
    th("Reason", "c-reason"));
  const body = el("tbody");
  const table = el("table", { class: "edits" }, caption, el("thead", {}, head), body);
  const box = el("div", { class: "layer" }, table);
  showMore(box, body, edits, 0);
  return box;
}

function showMore(box, body, edits, from) {
  const to = Math.min(edits.length, from + (from ? 10 : 1) * EDITS_SHOWN);
  for (let nth = from; nth < to; nth += 1) {
    const same = nth > 0 && edits[nth].reason === edits[nth - 1].reason;
    body.append(editRow(edits[nth], same));
  }
  if (to === edits.length) return;
  const more = el("button", { type: "button" }, `Show more (${whole(edits.length - to)} left)`);
  more.addEventListener("click", () => {
    more.remove();
    showMore(box, body, edits, to);
  });
  box.append(more);
}

// A layer tends to give one reason many times over; only the first is worth reading.
function editRow(edit, same) {
  const reason = same
    ? el("td", { class: "c-reason same" }, "the same")
    : el("td", { class: "c-reason" }, String(edit.reason || ""));
  return el("tr", {},
    el("td", { class: "id c-entry" }, String(edit.entry)),
    el("td", { class: "c-action" }, String(edit.action)),
    el("td", { class: "num c-size" }, whole(edit.before)),
    el("td", { class: "num c-size" }, `→ ${whole(edit.after)}`),
    reason);
}

function tokensRemoved(n) {
  return n >= 0 ? `${plural(n, "token")} removed` : `${plural(-n, "token")} added`;
}
