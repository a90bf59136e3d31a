// What a page says of a session as a whole, and of the request under the cursor. The elements it writes
// to are found by their ids.

function writeTotals(model) {
  const totals = model.report.totals || {};
  byId("lede").textContent = ledeOf(model, totals);
  const list = byId("totals");
  const add = (name, value, note) => list.append(totalOf(name, value, note));
  const change = (told, before, after) => fromTo(told(before), told(after));
  const { rawTokens, sentTokens, costWithoutUsd, costWithUsd, prefixReuse } = totals;
  const reuse = typeof prefixReuse === "number" ? percent(prefixReuse, 1) : NOTHING;
  const recalls = totals.recalls ? `, ${plural(totals.recalls, "recall")}` : "";
  add("Requests", whole(totals.requests), plural(totals.compactions || 0, "compaction") + recalls);
  add(`Over ${whole(model.limit)} tokens`, change(whole, totals.overflowsWithout, totals.overflowsWith), "without ctx, with ctx");
  add("Tokens", change(short, rawTokens, sentTokens), saving(rawTokens, sentTokens));
  // Of what a provider was really asked, only what went out has a price.
  const isPaid = typeof costWithUsd === "number" && typeof costWithoutUsd !== "number";
  const cost = isPaid ? dollars(costWithUsd) : change(dollars, costWithoutUsd, costWithUsd);
  add("Cost", cost, isPaid ? "by the usage that the provider reported" : saving(costWithoutUsd, costWithUsd));
  add("Prefix reuse", reuse, "of the sent tokens were cached");
  writeSettings(model.report);
  writeLayers(model.report.layers || {});
  writeMemory(totals);
}

function ledeOf(model, totals) {
  if (!model.count) return "This session holds no model request.";
  const without = totals.overflowsWithout || 0;
  const remaining = totals.overflowsWith || 0;
  const kept = model.window - model.limit;
  const room = `a window of ${whole(model.window)} tokens${kept ? `, ${whole(kept)} of them kept for the answer` : ""}`;
  if (!without && !remaining) return `Every request fits ${room}, with and without ctx.`;
  const requests = plural(model.count, "request");
  const still = `With ctx, ${whole(remaining)} still ${remaining === 1 ? "does" : "do"} not.`;
  return [
    `With nothing ever left out, ${whole(without)} of ${requests} would not have fitted ${room}.`,
    remaining ? still : "With ctx, all of them do.",
  ].join(" ");
}

function fromTo(before, after) {
  return [before, el("span", { class: "to", "aria-label": "to" }, " → "), el("b", {}, after)];
}

function totalOf(name, value, note) {
  const parts = Array.isArray(value) ? value : [el("b", {}, value)];
  const figure = el("dd", { class: "figure" }, ...parts);
  return el("div", {}, el("dt", {}, name), figure, el("dd", { class: "note" }, note));
}

function saving(before, after) {
  if (typeof before !== "number" || typeof after !== "number") return "no price is known for this model";
  if (!(before > 0) || before === after) return "no difference";
  return after < before ? `${percent(before - after, before)} less` : `${percent(after - before, before)} more`;
}

// Figures of another engine are not those of the one that was selected.
function engineOf(report) {
  const all = report.requests.length;
  if (!report.standIn || report.engineAnswered >= all) return report.engine;
  return `${report.engine} (made ${whole(report.engineAnswered)} of ${plural(all, "request")}, ${report.standIn} the others)`;
}

function writeSettings(report) {
  const settings = {
    Window: whole(report.window),
    Reserve: whole(report.reserve),
    Engine: engineOf(report),
    Profile: report.profile,
    Model: report.model,
    Counter: report.counter,
  };
  for (const [name, value] of Object.entries(settings)) {
    if (value) byId("settings").append(el("div", {}, el("dt", {}, name), el("dd", {}, String(value))));
  }
}

// Each removal counts once here. A request's row tells what it did to that request and those after.
function writeLayers(layers) {
  for (const [layer, did] of Object.entries(layers)) {
    const parts = [["left out", did.dropped], ["shortened", did.replaced], ["added", did.inserted]];
    const told = parts.filter(([, n]) => n > 0).map(([verb, n]) => `${plural(n, "message")} ${verb}`);
    told.push(tokensRemoved(did.tokensRemoved || 0));
    byId("layers").append(el("div", {}, el("dt", {}, layer), el("dd", {}, told.join(" · "))));
  }
}

// What long-term memory is for: what was left out comes back when it is asked for.
function writeMemory(totals) {
  if (!totals.recalls && !totals.trimmedMessages) return;
  const told = [
    `recalled ${plural(totals.recalledTokens || 0, "token")} for ${plural(totals.recalls || 0, "request")}`,
    `trimmed ${plural(totals.trimmedMessages || 0, "message")}`,
  ];
  const box = el("div", { class: "memory" }, el("dt", {}, "recall"), el("dd", {}, told.join(" · ")));
  byId("layers").append(box);
}

// --- the cursor ---

// The readout is the legend too: each value stands by the colour it has in the chart.
function writeReadout(model, at) {
  const request = model.requests[at];
  const pair = (kind, name, value) => el("div", { class: kind }, el("dt", {}, name), el("dd", {}, value));
  byId("readout").replaceChildren(
    pair("k-request", "Request", whole(at + 1)),
    pair("k-raw", "Raw", whole(request.rawTokens)),
    pair("k-sent", "Sent", whole(request.sentTokens)),
    pair("k-cached", "Cached", `${whole(request.cachedTokens)} (${percent(model.cached[at], model.sent[at])})`),
    pair("k-edits", "Edits", model.edits[at] ? whole(model.edits[at]) : "none"),
    pair("k-cost", "Cost", dollars(request.costUsd)),
    pair("k-time", "Time", clock(request.timestamp)));
}

function nextEdited(model, from, direction) {
  let at = from + direction;
  while (at >= 0 && at < model.count && !model.edits[at]) at += direction;
  return at >= 0 && at < model.count ? at : from;
}
