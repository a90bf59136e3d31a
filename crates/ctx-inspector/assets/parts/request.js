// One request: its figures, its components, and the edits made for it.

function requestFigures(request, limit) {
  const left = limit - request.sentTokens;
  const cached = typeof request.cachedTokens === "number"
    ? `${whole(request.cachedTokens)} (${percent(request.cachedTokens, request.sentTokens)})` : NOTHING;
  const given = (n, format) => (typeof n === "number" ? format(n) : null);
  return [
    ["Time", timeOf(request.at)],
    [ARMS.recorded, given(request.recordedTokens, whole)],
    [ARMS.full, whole(request.rawTokens)],
    [ARMS.with, whole(request.sentTokens), "strong"],
    ["Provider counted", given(request.promptTokens, whole)],
    ["Cached", cached],
    [left < 0 ? "Over the limit by" : "Left free", whole(Math.abs(left)), left < 0 ? "no" : null],
    ["Dropped so far", request.sentTokens < request.rawTokens ? whole(request.rawTokens - request.sentTokens) : null],
    ["Recalled", request.recalledTokens ? whole(request.recalledTokens) : null],
    ["Cost", given(request.costUsd, dollars)],
  ];
}

function componentBars(components) {
  const total = components.reduce((sum, part) => sum + (part.tokens || 0), 0);
  const bar = ({ tokens }) => (tokens > 0 && total > 0 ? el("span", { class: "share", style: widthOf(tokens / total), "aria-hidden": "true" }) : null);
  return shortTable({
    kind: "components",
    caption: "What was sent",
    rows: components.map((part) => ({ ...part, kind: part.tokens ? null : "quiet" })),
    columns: [
      { name: "Part", cell: ({ name }) => word(COMPONENTS, name) },
      { name: "", kind: "bar-cell", cell: bar },
      { name: "Tokens", number: true, cell: ({ tokens }) => whole(tokens) },
      { name: "Share", number: true, cell: ({ tokens }) => percent(tokens || 0, total) },
    ],
  }).element;
}

// `sums`: the edits made for a request, by layer and action.
function editSums(sums, request) {
  const section = el("section", { "aria-label": "Edits for this request" }, el("h2", {}, "Edits for this request"));
  if (!sums.length) {
    section.append(el("p", { class: "quiet" }, request.sentTokens < request.rawTokens
      ? "No edits were made for this request. Earlier edits stay in effect."
      : "No edits."));
    return section;
  }
  section.append(el("div", { class: "wide-scroll", tabindex: "0", role: "region", "aria-label": "Edits by layer" }, shortTable({
    kind: "sums",
    rows: sums,
    columns: [
      { name: "Layer", cell: ({ layer }) => String(layer) },
      { name: "Action", cell: ({ action }) => word(ACTIONS, action) },
      { name: "Entries", number: true, cell: ({ edits }) => whole(edits) },
      { name: "Before", number: true, cell: ({ before }) => whole(before) },
      { name: "After", number: true, cell: ({ after }) => whole(after) },
      { name: "Why", kind: "c-reason", cell: ({ reasons }) => reasons.join("; ") },
    ],
  }).element));
  return section;
}
