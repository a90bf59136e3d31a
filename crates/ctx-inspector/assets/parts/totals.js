// The totals of a session by arm, and the figures of the request under the cursor.

// The rows are those of `ctx replay` in a terminal.
function armsTable(model) {
  const { session } = model;
  const { recorded } = session;
  const totals = session.totals || {};
  const most = (column) => (model.count ? column[largest(column)] : 0);
  const rate = (share) => (typeof share === "number" ? percent(share, 1) : NOTHING);
  const row = (name, format, [own, full, ours], no) => ({ name, format, own, full, ours, no });
  const { rawTokens, sentTokens, costWithoutUsd, costWithUsd, prefixReuse } = totals;
  const rows = [
    row("Requests", whole, [recorded?.requests, totals.requests, totals.requests]),
    row(`Over ${whole(model.limit)} tokens`, whole, [recorded?.overLimit, totals.overflowsWithout, totals.overflowsWith], true),
    row("Largest request", whole, [recorded?.largest, most(model.raw), most(model.sent)]),
    row("Prompt tokens", whole, [recorded?.tokens, rawTokens, sentTokens]),
    row("Cache hit rate", rate, [recorded && recorded.cachedTokens / Math.max(1, recorded.tokens), undefined, prefixReuse]),
    row("Compactions", whole, [recorded?.compactions, 0, model.compacted.reduce((sum, mark) => sum + mark, 0)]),
    row("Cost", dollars, [recorded?.costUsd, costWithoutUsd, costWithUsd]),
  ];
  const arm = (kind, value) => ({
    name: el("span", { class: "arm" }, ARMS[kind]),
    kind: `k-${kind}`,
    number: true,
    cell: (one) => el("span", { class: one.no && kind === "with" && value(one) > 0 ? "no" : null }, one.format(value(one))),
  });
  return shortTable({
    kind: "arms",
    caption: el("span", { class: "hidden" }, "The figures of each arm"),
    rows,
    columns: [
      { name: "", cell: ({ name }) => name },
      ...(recorded ? [arm("recorded", ({ own }) => own)] : []),
      arm("full", ({ full }) => full),
      arm("with", ({ ours }) => ours),
    ],
  }).element;
}

function writeTotals(model) {
  const { session } = model;
  byId("lede").textContent = ledeOf(model);
  byId("totals").replaceChildren(armsTable(model));
  byId("source").textContent = sourceOf(session);
  byId("settings").replaceChildren(...settingsOf(session).children);
  byId("layers").replaceChildren(...layersOf(session).children);
}

function ledeOf(model) {
  if (!model.count) return "This session contains no model request.";
  const { recorded, totals = {} } = model.session;
  const kept = model.window - model.limit;
  const window = `a window of ${whole(model.window)} tokens${kept ? `, ${whole(kept)} of them reserved for the answer` : ""}`;
  const arms = [["recorded", recorded?.overLimit, recorded?.requests], ["full history", totals.overflowsWithout, model.count],
    ["with ctx", totals.overflowsWith, model.count]].filter(([, over]) => typeof over === "number");
  const lede = arms.some(([, over]) => over > 0)
    ? `Requests that do not fit ${window}: ${arms.map(([name, over, all]) => `${name} ${whole(over)} of ${whole(all)}`).join("; ")}.`
    : `Every request fits ${window}: ${arms.map(([name]) => name).join(", ")}.`;
  const own = recorded?.compactions;
  return own ? `${lede} The agent itself compacted ${own === 1 ? "once" : plural(own, "time")}.` : lede;
}

// Returns which figures are reported, and how the others are estimated.
function sourceOf({ recorded, calibration, counter, source, requests }) {
  if (source === "proxy") return "With ctx is what was sent. Full history is what the client sent to ctx.";
  const estimate = calibration
    ? `${whole(calibration.constant)} tokens of system prompt and tools + ${calibration.factor.toFixed(2)} × ${counter}, fitted to ${plural(calibration.requests, "reported request")}, off by ${exactPercent(calibration.medianError)} (median)`
    : recorded ? "the reported usage does not match the messages" : null;
  if (!estimate) return "Every figure is estimated: the transcript has no usage reported by the provider.";
  return [
    `Recorded is what the provider reported${recorded && recorded.requests !== requests.length ? ", of all branches" : ""}; the rest is estimated: ${estimate}.`,
    calibration && !calibration.constantApplied ? "That prompt does not fit into this window: full history and with ctx omit it, so compare only these two with each other." : "",
  ].join(" ").trim();
}

// Returns the engine, and the share of a fallback engine if it answered instead.
function engineOf({ requests, engine, engineAnswered, standIn }) {
  const all = requests.length;
  if (!standIn || engineAnswered >= all) return engine;
  return `${engine} (made ${whole(engineAnswered)} of ${plural(all, "request")}, ${standIn} the others)`;
}

function settingsOf(session) {
  return pairs([
    ["Window", session.window && whole(session.window)],
    ["Reserve", session.reserve && whole(session.reserve)],
    ["Engine", engineOf(session)],
    ["Profile", session.profile],
    ["Model", session.model],
    ["Counter", session.counter],
  ]);
}

// Here each removal counts once. The rows of requests show its effect on every later request.
function layersOf({ layers, totals = {} }) {
  const rows = Object.entries(layers || {}).map(([layer, sums]) => {
    const parts = [["dropped", sums.dropped], ["truncated", sums.replaced], ["inserted", sums.inserted]];
    const edits = parts.filter(([, n]) => n > 0).map(([verb, n]) => `${plural(n, "message")} ${verb}`);
    return [layer, [...edits, tokensRemoved(sums.tokensRemoved || 0)].join(" · ")];
  });
  // Long-term memory: dropped messages are recalled when they are needed.
  if (totals.recalls || totals.trimmedMessages) {
    rows.push(["recall", [
      `recalled ${plural(totals.recalledTokens || 0, "token")} for ${plural(totals.recalls || 0, "request")}`,
      `trimmed ${plural(totals.trimmedMessages || 0, "message")}`,
    ].join(" · ")]);
  }
  return pairs(rows);
}

function tokensRemoved(n) {
  return n >= 0 ? `${plural(n, "token")} removed` : `${plural(-n, "token")} added`;
}

// --- the cursor ---

// The readout is also the legend: each value is shown with its colour in the chart.
function readoutOf(model, at) {
  const request = model.requests[at];
  return pairs([
    ["Request", whole(at + 1), "k-request"],
    model.hasRecorded ? [ARMS.recorded, whole(request.recordedTokens), "k-recorded"] : ["", null],
    [ARMS.full, whole(request.rawTokens), "k-full"],
    [ARMS.with, whole(request.sentTokens), "k-with"],
    ["Cached", `${whole(request.cachedTokens)} (${percent(model.cached[at], model.sent[at])})`, "k-cached"],
    ["Edits", model.edits[at] ? whole(model.edits[at]) : "none", "k-edits"],
    ["Cost", dollars(request.costUsd), "k-cost"],
    ["Time", clock(request.at), "k-time"],
  ], "readout");
}

// Returns the text for screen readers.
function spokenOf(model, at) {
  return [
    `Request ${whole(at + 1)}: ${model.hasRecorded ? `recorded ${whole(model.recorded[at])}, ` : ""}full history ${whole(model.raw[at])}`,
    `with ctx ${whole(model.sent[at])} tokens`,
    model.fits[at] ? "fits" : "does not fit",
    plural(model.edits[at], "edit"),
  ].join(", ");
}

function nextEdited(model, from, direction) {
  let at = from + direction;
  while (at >= 0 && at < model.count && !model.edits[at]) at += direction;
  return at >= 0 && at < model.count ? at : from;
}
