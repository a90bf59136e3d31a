// Puts the evaluation on the page: which sessions, the chart, the table, the words.

const KINDS = { none: "nothing left out", profile: "profile of ctx", engine: "engine", preset: "another agent's policy", recorded: "the agent itself" };

// What a compaction has to keep.
const GOAL = 0.95;

function start() {
  const report = readReport();
  const page = { report, which: -1, axis: "replay", tables: tables() };
  writeHead(report);
  writeWhich(page);
  for (const table of page.tables) writeColumns(table, () => writeRows(table, rowsOf(page)));
  writeNotes(report);
  byId("which").addEventListener("change", (event) => {
    page.which = Number(event.target.value);
    show(page);
  });
  for (const radio of document.querySelectorAll("input[name=axis]")) {
    radio.checked = radio.value === page.axis;
    radio.addEventListener("change", () => {
      page.axis = radio.value;
      show(page);
    });
  }
  new ResizeObserver(() => draw(page)).observe(byId("chart"));
  for (const scrolled of document.querySelectorAll(".scrolled")) tellOfMore(scrolled);
  show(page);
}

// The rows of all sessions, or of one, each with its session compacted once.
function rowsOf(page) {
  const part = page.which < 0 ? page.report : page.report.sessions[page.which];
  const once = (row) => (part.once || []).find((other) => other.kind === row.kind && other.name === row.name);
  return (part.rows || []).map((row) => ({ ...row, once: once(row) }));
}

function show(page) {
  draw(page);
  for (const table of page.tables) writeRows(table, rowsOf(page));
  writeRecorded(page);
}

// --- head and words ---

function fileOf(path) {
  return String(path || "session").split(/[\\/]/).filter(Boolean).pop() || String(path);
}

function writeHead(report) {
  const sessions = report.sessions || [];
  const names = sessions.map((each) => fileOf(each.session.path));
  const title = names.length === 1 ? names[0] : `${plural(names.length, "transcript")}`;
  document.title = `${title} · ctx eval`;
  byId("name").textContent = title;
  byId("path").textContent = names.length === 1 ? sessions[0].session.path : names.join(" · ");
  byId("lede").textContent = ledeOf(report);
  const windows = [...new Set(sessions.map((each) => whole(each.window)))].join(", ");
  const models = [...new Set(sessions.map((each) => each.model).filter(Boolean))].join(", ");
  for (const [name, value] of Object.entries({ Window: windows, Counter: report.counter, Model: models })) {
    if (value) byId("settings").append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  }
}

// The comparison at equal size comes first. What else is compared is not of one size, so it is named
// here and its figures are left to the table, beside the sizes.
function ledeOf(report) {
  const equal = report.equalSize;
  const words = [];
  if (equal && equal.facts) {
    const kept = (part) => `${shareOf(part.kept / equal.facts)} (${whole(part.tokens)}\u00a0tokens)`;
    words.push(`Of ${plural(equal.facts, "fact")} that must not be lost, ${plural(equal.summaries, "summary", "summaries")} `
      + `that the agent's own model wrote keep ${kept(equal.recorded)}, and ctx's of the same messages in no more tokens `
      + `${kept(equal.ctx)}, by ctx's own audit.`);
  }
  const nothing = (report.rows || []).find((row) => row.kind === "none");
  if (nothing && nothing.requests) words.push(`With nothing ever left out, ${overOf(nothing)}.`);
  if ((report.presets || []).length) {
    words.push("Other agents' policies are stand-ins made from documented constants, with ctx's summariser in the "
      + "place of their models, and judged by ctx's own audit.");
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
  byId("once-note").textContent = `Each session to ${most} of its tokens at most, by each candidate's own rule. What is left differs `
    + "in size, and so do the facts in what is gone: a share kept compares only with one of like size. In brackets where not every "
    + "session got there. Judged by ctx's own audit.";
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
  byId("y-name").textContent = "Must-keep facts of what was left out that still stand in the request";
  byId("x-name").textContent = once ? "Tokens left" : "Tokens sent";
  const left = rows.filter((row) => !marks.some((mark) => mark.row === row)).map((row) => row.name);
  byId("left-out").textContent = left.length ? `Not in the chart, because nothing was left out or no fact was in it: ${left.join(", ")}.` : "";
  const kinds = [...new Set(marks.map((mark) => mark.kind))];
  byId("legend").replaceChildren(...kinds.map(legendOf));
}

function markOf(row) {
  if (typeof row.coverage !== "number") return null;
  return { row, name: row.name, kind: row.kind, x: row.sentTokens, y: row.coverage, stuck: row.wedges > 0,
    told: `${shareOf(row.coverage)} kept, ${whole(row.sentTokens)} tokens sent` };
}

function markOnce(row) {
  if (!row.once || typeof row.once.coverage !== "number") return null;
  const stuck = row.once.reached < row.once.sessions;
  const told = `${shareOf(row.once.coverage)} of ${plural(row.once.facts, "fact")} kept, ${whole(row.once.tokensAfter)} tokens left`;
  return { row, name: row.name, kind: row.kind, x: row.once.tokensAfter, y: row.once.coverage, stuck, told };
}

function legendOf(kind) {
  const item = el("li", { class: "chart" });
  const svg = document.createElementNS(byId("plot").namespaceURI, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("style", "display: inline-block; width: 12px; height: 12px");
  drawShape(svg, kind, 8, 8);
  item.append(svg, KINDS[kind] || kind);
  return item;
}

start();
