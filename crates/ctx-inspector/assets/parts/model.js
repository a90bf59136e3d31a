// A session as columns.
//
// A session is an object as the inspector's API returns it: `requests[]` with `number`, `entry`, `at` and the tokens
// of the three arms; `compactions[]`, `recorded`, `calibration`, `totals`, `layers`, and the settings.

// The layers whose edits replace or drop history permanently.
const COMPACTION_LAYERS = ["compaction", "hard-prune"];

// Typed arrays keep a chart of 100,000 requests fast. The request objects are read only for visible rows.
function buildModel(session) {
  const { requests } = session;
  const count = requests.length;
  const model = {
    session,
    requests,
    count,
    window: session.window || 0,
    limit: Math.max(0, (session.window || 0) - (session.reserve || 0)),
    recorded: new Float64Array(count),
    raw: new Float64Array(count),
    sent: new Float64Array(count),
    cached: new Float64Array(count),
    fits: new Uint8Array(count),
    edits: new Uint32Array(count),
    recalled: new Float64Array(count),
    compacted: new Uint8Array(count),
    compactedBefore: new Uint8Array(count),
  };
  requests.forEach((request, at) => {
    model.recorded[at] = request.recordedTokens || 0;
    model.raw[at] = request.rawTokens || 0;
    model.sent[at] = request.sentTokens || 0;
    model.cached[at] = Math.min(request.cachedTokens || 0, model.sent[at]);
    model.recalled[at] = request.recalledTokens || 0;
    model.fits[at] = request.fits === false ? 0 : 1;
    model.compacted[at] = COMPACTION_LAYERS.some((layer) => Object.hasOwn(request.actions || {}, layer)) ? 1 : 0;
    model.edits[at] = Object.values(request.actions || {}).reduce((sum, n) => sum + n, 0);
  });
  // A compaction after the last request is marked at that request.
  for (const row of session.compactions) {
    const at = Math.min(row.number ? row.number : count, count) - 1;
    if (at >= 0 && row.recorded) model.compactedBefore[at] = 1;
    if (at >= 0 && row.applied) model.compacted[at] = 1;
  }
  model.hasRecorded = model.recorded.some((tokens) => tokens > 0);
  return model;
}

function largest(column) {
  let found = 0;
  for (let at = 1; at < column.length; at += 1) if (column[at] > column[found]) found = at;
  return found;
}
