// The report as columns.

// Columns of numbers keep a chart of 100,000 requests quick; the requests themselves are only
// touched for the rows on the screen.
function buildModel(report) {
  const requests = report.requests || [];
  const count = requests.length;
  const model = {
    report,
    requests,
    details: report.details || [],
    count,
    window: report.window || 0,
    limit: Math.max(0, (report.window || 0) - (report.reserve || 0)),
    raw: new Float64Array(count),
    sent: new Float64Array(count),
    cached: new Float64Array(count),
    fits: new Uint8Array(count),
    edits: new Uint32Array(count),
    recalled: new Float64Array(count),
    compacted: new Uint8Array(count),
  };
  requests.forEach((request, at) => {
    model.raw[at] = request.rawTokens || 0;
    model.sent[at] = request.sentTokens || 0;
    model.cached[at] = Math.min(request.cachedTokens || 0, model.sent[at]);
    model.recalled[at] = request.recalledTokens || 0;
    model.fits[at] = request.fits === false ? 0 : 1;
    model.edits[at] = Object.values(request.actions || {}).reduce((sum, n) => sum + n, 0);
  });
  for (const { request } of report.compactions || []) if (request < count) model.compacted[request] = 1;
  return model;
}

function editsOf(model, at) {
  const detail = model.details[at];
  return (detail && detail.edits) || [];
}

// Positions of the requests that pass the filter and the search, ascending.
function select(model, filter, query) {
  const kept = [];
  const passes = filterTest(model, filter);
  const matches = searchTest(model, query.trim().toLowerCase());
  for (let at = 0; at < model.count; at += 1) {
    if (passes(at) && matches(at)) kept.push(at);
  }
  return kept;
}

function filterTest(model, filter) {
  if (filter === "edits") return (at) => model.edits[at] > 0;
  if (filter === "recalled") return (at) => model.recalled[at] > 0;
  if (filter === "over") return (at) => !model.fits[at];
  return () => true;
}

function searchTest(model, query) {
  if (!query) return () => true;
  if (/^#\d+$/.test(query)) return (at) => at + 1 === Number(query.slice(1));
  const named = (id) => String(id || "").toLowerCase().includes(query);
  return (at) => named(model.requests[at].entryId) || editsOf(model, at).some((edit) => named(edit.entry));
}

function largest(column) {
  let found = 0;
  for (let at = 1; at < column.length; at += 1) if (column[at] > column[found]) found = at;
  return found;
}
