// The page of an evaluation: a selection of sessions, a chart, tables and notes.

const CANDIDATES = {
  none: "full history",
  profile: "with ctx, a profile",
  engine: "with ctx, an engine",
  preset: "another agent's policy",
  recorded: "recorded",
};

// The share of required facts that a compaction should keep.
const GOAL = 0.95;

// --- the tables ---

function candidate(of) {
  return {
    name: "Candidate",
    value: (row) => nameOf(of(row)),
    cell: (row) => {
      const [name, kind, why] = [nameOf(of(row)), word(CANDIDATES, of(row).kind), of(row).failed];
      return [name, kind === name ? "" : el("span", { class: "kind" }, kind), why ? el("span", { class: "why" }, why) : ""];
    },
  };
}

function nameOf({ kind, name }) {
  return kind === "none" ? CANDIDATES.none : name;
}

function tables(page) {
  const most = (of) => Math.max(1e-9, ...rowsOf(page).map((row) => row[of] || 0));
  const once = (of) => ({ once: found }) => of(found);
  page.replay = shortTable({
    kind: "figures",
    caption: el("span", { class: "hidden" }, "One row per candidate. A heading sorts by its column."),
    rows: [],
    columns: [
      candidate((row) => row),
      figure("Requests", (row) => row.requests, whole),
      figure("Sent", (row) => row.sentTokens, short, { share: (row) => row.sentTokens / most("sentTokens") }),
      figure("Cached", (row) => row.prefixReuse, exactPercent),
      figure("Cost", (row) => row.costUsd, dollars, { share: (row) => row.costUsd / most("costUsd") }),
      figure("Calls", (row) => row.calls, whole),
      figure("Cuts", (row) => row.cuts, whole),
      figure("Ratio", (row) => row.compressionRatio, (n) => n.toFixed(2)),
      figure("Coverage", (row) => row.coverage, exactPercent, { share: (row) => row.coverage }),
      figure("Ungrounded", (row) => row.ungrounded, whole, { fault: true }),
      figure("Wedges", (row) => row.wedges, whole, { fault: true }),
      figure("Est. error", (row) => row.estimateError, exactPercent),
    ],
  });
  page.once = shortTable({
    kind: "figures",
    caption: el("span", { class: "hidden" }, "One row per candidate. A heading sorts by its column."),
    rows: [],
    columns: [
      candidate(once((found) => found)),
      figure("Tokens before", once((found) => found.tokensBefore), whole),
      figure("Tokens left", once((found) => found.tokensAfter), whole),
      figure("Of before", once(leftOf), exactPercent, { share: once(leftOf) }),
      figure("Facts", once((found) => found.facts), whole),
      figure("Kept", once((found) => found.coverage), (n, row) => keptOf(n, row.once), { share: once((found) => found.coverage) }),
      figure("Ungrounded", once((found) => found.ungrounded), whole, { fault: true }),
    ],
  });
  // The smallest results come first, so that neighbours are comparable.
  page.once.sort = page.once.columns[3];
  const side = (arm, of) => [
    { name: `Tokens, ${arm}`, number: true, cell: (found) => whole(found[of].tokens) },
    { name: `Kept, ${arm}`, number: true, cell: (found) => exactPercent(found[of].inSummary) },
    { name: `Ungrounded, ${arm}`, kind: "wrapped", cell: (found) => ungroundedOf(found[of].ungrounded) },
  ];
  page.equal = shortTable({
    kind: "figures",
    rows: [],
    columns: [
      { name: "Compaction", kind: "id wrapped", cell: (found) => found.entryId },
      { name: "Messages", number: true, cell: (found) => whole(found.messages) },
      { name: "Facts", number: true, cell: (found) => whole(found.facts) },
      ...side("recorded", "recorded"),
      ...side("with ctx", "ctx"),
    ],
  });
  for (const [id, table] of [["equal", page.equal], ["replay", page.replay], ["once", page.once]]) {
    byId(`${id}-table`).append(table.element);
    tellOfMore(byId(`${id}-table`));
  }
}

function leftOf(once) {
  return once.tokensBefore > 0 ? once.tokensAfter / once.tokensBefore : null;
}

function keptOf(n, once) {
  return once.reached < once.sessions ? `(${exactPercent(n)})` : exactPercent(n);
}

function ungroundedOf(list) {
  return el("span", { class: list.length ? "no" : null }, list.length ? `${whole(list.length)}: ${list.join(", ")}` : whole(0));
}

// --- the page ---

function start() {
  const report = readReport();
  const page = { report, which: -1, axis: "replay" };
  startFrame([["t", "dark, light, or as the system"], ["?", "list the keys"]], () => ({}));
  writeHead(report);
  writeWhich(page);
  tables(page);
  writeNotes(report);
  byId("which").addEventListener("change", (event) => {
    page.which = Number(event.target.value);
    show(page);
  });
  byId("axes").append(segments("axis", "What the chart shows", AXES, page.axis, (axis) => {
    page.axis = axis;
    show(page);
  }));
  new ResizeObserver(() => draw(page)).observe(byId("chart"));
  show(page);
}

const AXES = [
  ["replay", "Replay", "Coverage at each cut of the replay, against all tokens sent"],
  ["once", "Compacted once", "Coverage of the session compacted once, against its remaining tokens"],
];

// Returns the rows of all sessions, or of one, each with the candidate's single compaction as `once`.
function rowsOf(page) {
  const part = page.which < 0 ? page.report : page.report.sessions[page.which];
  const once = (row) => (part.once || []).find((other) => other.kind === row.kind && other.name === row.name);
  return (part.rows || []).map((row) => ({ ...row, once: once(row) }));
}

function show(page) {
  const rows = rowsOf(page);
  const sessions = page.report.sessions || [];
  const found = (page.which < 0 ? sessions : [sessions[page.which]]).flatMap((each) => each.recorded || []);
  draw(page);
  page.replay.show(rows);
  page.once.show(rows.filter((row) => row.once));
  page.equal.show(found);
  byId("recorded-section").hidden = !found.length;
}

// --- head and text ---

function writeHead(report) {
  const sessions = report.sessions || [];
  const names = sessions.map((each) => fileOf(each.session.path));
  const title = names.length === 1 ? names[0] : `${plural(names.length, "transcript")}`;
  document.title = `${title} · ctx eval`;
  byId("name").textContent = title;
  byId("path").textContent = names.length === 1 ? sessions[0].session.path : names.join(" · ");
  byId("lede").textContent = evalLedeOf(report);
  const windows = [...new Set(sessions.map((each) => whole(each.window)))].join(", ");
  const models = [...new Set(sessions.map((each) => each.model).filter(Boolean))].join(", ");
  byId("settings").append(...pairs([["Window", windows], ["Counter", report.counter], ["Model", models]]).children);
}

// The comparison at equal size comes first. In the others sizes differ, so their figures are only in
// the table, beside the sizes.
function evalLedeOf(report) {
  const equal = report.equalSize;
  const words = [];
  if (equal && equal.facts) {
    const kept = (part) => `${exactPercent(part.kept / equal.facts)} (${whole(part.tokens)}\u00a0tokens)`;
    words.push(`Of ${plural(equal.facts, "required fact")}, ${plural(equal.summaries, "summary", "summaries")} `
      + `by the agent's own model ${equal.summaries === 1 ? "keeps" : "keep"} ${kept(equal.recorded)}; ctx's of the same messages, in no more tokens, `
      + `${equal.summaries === 1 ? "keeps" : "keep"} ${kept(equal.ctx)}. ctx's own audit measures both.`);
  }
  const nothing = (report.rows || []).find((row) => row.kind === "none");
  if (nothing && nothing.requests) words.push(`With the full history, ${overOf(nothing)}.`);
  if ((report.presets || []).length) {
    words.push("Other agents' policies are modelled from documented constants, with ctx's summariser in "
      + "place of their models, and measured by ctx's own audit.");
  }
  return words.join(" ");
}

function overOf({ requests, wedges }) {
  if (requests === 1) return wedges ? "the one request is larger than the window" : "the one request fits the window";
  if (!wedges) return `all ${whole(requests)} requests fit the window`;
  if (wedges >= requests) return `all ${whole(requests)} requests are larger than the window`;
  return `${whole(wedges)} of ${whole(requests)} requests ${wedges === 1 ? "is" : "are"} larger than the window`;
}

function writeWhich(page) {
  const sessions = page.report.sessions || [];
  const select = byId("which");
  select.append(el("option", { value: -1 }, "All transcripts"));
  sessions.forEach((each, at) => select.append(el("option", { value: at }, fileOf(each.session.path))));
  select.parentNode.hidden = sessions.length < 2;
}

function writeNotes(report) {
  const most = `${Math.round(report.compactTo * 100)}\u00a0%`;
  byId("once-note").textContent = `Each candidate compacts each session once, by its own rule, to at most ${most} of the tokens. The remaining sizes differ, `
    + "and so do the dropped facts: compare shares only at similar sizes. A share is in brackets if not every "
    + "session reached that size. ctx's own audit measures the facts.";
  byId("once-section").hidden = !(report.once || []).length;
  for (const note of report.notes || []) byId("notes").append(el("li", {}, note));
  for (const preset of report.presets || []) {
    const from = el("dd", {}, preset.about, el("br"), el("span", { class: "from" }, preset.source), el("br"),
      el("span", { class: "from" }, `simplified: ${preset.simplified}`));
    byId("presets").append(el("div", {}, el("dt", {}, preset.name), from));
  }
  byId("presets-section").hidden = !(report.presets || []).length;
}

// --- chart ---

function draw(page) {
  const rows = rowsOf(page);
  const once = page.axis === "once";
  const marks = rows.map((row) => (once ? markOnce(row) : markOf(row))).filter(Boolean);
  drawMarks(byId("plot"), marks, GOAL);
  byId("y-name").textContent = "Required facts of dropped messages that are still in the request";
  byId("x-name").textContent = once ? "Tokens left" : "Tokens sent";
  const left = rows.filter((row) => !marks.some((mark) => mark.row === row)).map(nameOf);
  byId("left-out").textContent = left.length ? `Not in the chart, because they dropped nothing or no required fact: ${left.join(", ")}.` : "";
  const kinds = [...new Set(marks.map((mark) => mark.kind))];
  byId("legend").replaceChildren(...kinds.map(legendOf));
}

function markOf(row) {
  if (typeof row.coverage !== "number") return null;
  return { row, name: nameOf(row), kind: row.kind, x: row.sentTokens, y: row.coverage, stuck: row.wedges > 0,
    title: `${exactPercent(row.coverage)} kept, ${whole(row.sentTokens)} tokens sent` };
}

function markOnce(row) {
  if (!row.once || typeof row.once.coverage !== "number") return null;
  const stuck = row.once.reached < row.once.sessions;
  const title = `${exactPercent(row.once.coverage)} of ${plural(row.once.facts, "fact")} kept, ${whole(row.once.tokensAfter)} tokens left`;
  return { row, name: nameOf(row), kind: row.kind, x: row.once.tokensAfter, y: row.once.coverage, stuck, title };
}

function legendOf(kind) {
  const svg = svgRoot({ viewBox: "0 0 16 16" });
  drawShape(svg, kind, 8, 8);
  return el("li", { class: "chart" }, svg, word(CANDIDATES, kind));
}

start();
