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

// --- the chart: coverage against tokens, one mark per candidate, with its name beside it ---

const PLOT = { left: 46, right: 14, top: 14, bottom: 28, label: 16 };

// `marks` are {name, kind, x, y, stuck, title}: `x` in tokens, `y` a share. `goal` is the target share.
function drawMarks(svg, marks, goal) {
  const width = Math.max(280, Math.floor(svg.parentNode.clientWidth));
  const height = Math.round(Math.min(460, Math.max(300, width * 0.42)));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const box = { x0: PLOT.left, x1: width - PLOT.right, y0: PLOT.top, y1: height - PLOT.bottom };
  const most = Math.max(1, ...marks.map((mark) => mark.x)) * 1.06;
  const scale = {
    x: (n) => box.x0 + (n / most) * (box.x1 - box.x0),
    y: (share) => box.y1 - share * (box.y1 - box.y0),
  };
  drawAxes(svg, box, scale, most);
  const line = { y: scale.y(goal), name: `${Math.round(goal * 100)}\u00a0% is the goal` };
  svgNode(svg, "path", { class: "goal", d: `M${box.x0} ${line.y}H${box.x1}` });
  const placed = placeNames(marks, box, scale, line);
  svgNode(svg, "text", { class: "goal-name", x: box.x0 + 6, y: line.y + 15 }, line.name);
  for (const { mark, x, y, textX, textY, anchor } of placed) {
    if (Math.abs(textY - y) > 6) {
      svgNode(svg, "path", { class: "lead", d: `M${x} ${y}L${anchor === "end" ? textX + 3 : textX - 3} ${textY}` });
    }
    const group = svgNode(svg, "g", {});
    svgNode(group, "title", {}, `${mark.name}: ${mark.title}`);
    drawShape(group, mark.kind, x, y);
    const kind = mark.stuck ? "name stuck" : "name";
    svgNode(group, "text", { class: kind, x: textX, y: textY + 4, "text-anchor": anchor }, mark.name);
  }
}

function drawAxes(svg, box, scale, most) {
  const grid = svgNode(svg, "g", { class: "grid" });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) gridLine(grid, box, scale.y(share), `${Math.round(share * 100)}\u00a0%`);
  for (const n of linearTicks(most, Math.max(3, (box.x1 - box.x0) / 110))) {
    svgNode(grid, "path", { d: `M${scale.x(n)} ${box.y1}v5` });
    svgNode(grid, "text", { x: scale.x(n), y: box.y1 + 20, "text-anchor": "middle" }, short(n));
  }
}

// Kinds differ in shape and in colour.
function drawShape(parent, kind, x, y) {
  if (kind === "preset") {
    svgNode(parent, "rect", { class: `dot ${kind}`, x: x - 5, y: y - 5, width: 10, height: 10 });
  } else if (kind === "recorded") {
    svgNode(parent, "path", { class: `dot ${kind}`, d: `M${x} ${y - 7}l7 7l-7 7l-7-7z` });
  } else {
    svgNode(parent, "circle", { class: `dot ${kind}`, cx: x, cy: y, r: 6 });
  }
}

// Places each name right or left of its mark, inside the chart if possible, and moves it down or up
// until it overlaps no mark, no other name and neither the goal line nor its label.
function placeNames(marks, box, scale, goal) {
  const spots = marks.map((mark) => ({ mark, x: scale.x(mark.x), y: scale.y(mark.y) }));
  spots.sort((one, two) => one.y - two.y || one.x - two.x);
  const taken = spots.map((spot) => ({ from: spot.x - 7, to: spot.x + 7, y: spot.y, spot }));
  taken.push({ from: box.x0, to: box.x0 + goal.name.length * 6.6 + 12, y: goal.y + 11 });
  // A line needs half the distance of a name.
  taken.push({ from: box.x0, to: box.x1, y: goal.y, room: PLOT.label * 0.6 });
  return spots.map((spot) => {
    const width = spot.mark.name.length * 6.6 + 4;
    const sides = [["start", spot.x + 11], ["end", spot.x - 11]].map(([anchor, textX]) => {
      const from = anchor === "end" ? textX - width : textX;
      return { anchor, textX, from, to: from + width, textY: freeY(taken, spot, from, from + width, box) };
    });
    const inside = sides.filter((side) => side.from >= box.x0 && side.to <= box.x1);
    const far = (side) => Math.abs(side.textY - spot.y);
    const best = (inside.length ? inside : sides).reduce((one, two) => (far(two) < far(one) ? two : one));
    taken.push({ from: best.from, to: best.to, y: best.textY });
    return { ...spot, ...best };
  });
}

function freeY(taken, spot, from, to, box) {
  const isFree = (y) => !taken.some((other) => other.spot !== spot
    && Math.abs(other.y - y) < (other.room || PLOT.label) && from < other.to && other.from < to);
  for (let step = 0; step < 30; step += 1) {
    for (const y of [spot.y + step * 4, spot.y - step * 4]) {
      if (y >= box.y0 && y <= box.y1 && isFree(y)) return y;
    }
  }
  return spot.y;
}

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

// A column of numbers. `share(row)` is the length of the bar in its cell, 0 to 1.
function figure(name, value, tell, { fault, share } = {}) {
  const cell = (row) => {
    const n = value(row);
    const missing = n === null || n === undefined;
    const part = share ? share(row) : 0;
    return [el("span", { class: fault && n > 0 ? "no" : null }, missing ? NOTHING : tell(n, row)),
      ...(part > 0 ? [el("span", { class: "share", style: widthOf(part) })] : [])];
  };
  return { name, number: true, kind: share ? "with-bar" : null, value, cell };
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
    hintAtScrolling(byId(`${id}-table`));
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

// Shows a hint if a table is wider than the page.
function hintAtScrolling(scrolled) {
  const more = scrolled.parentNode.querySelector(".more");
  const observer = new ResizeObserver(() => (more.hidden = scrolled.scrollWidth <= scrolled.clientWidth + 1));
  observer.observe(scrolled);
  observer.observe(scrolled.firstElementChild);
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
