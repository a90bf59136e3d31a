// The page of the bench of compactions: the choice of sessions and setting, a chart, tables.

const BENCH_ARMS = {
  engine: "with ctx, or an engine",
  preset: "another agent's policy",
  rule: "a simple rule",
  candidate: "a program",
  recorded: "recorded",
};

// Marks and colours of the chart are those of an evaluation.
const LOOKS = { engine: "engine", preset: "preset", rule: "none", candidate: "profile", recorded: "recorded" };

const HANDLES = ["path", "name", "hash", "flag", "quoted", "error", "number"];

function start() {
  const report = readReport();
  const settings = (report.arms[0]?.cells || []).map(({ budget, rounds }) => ({ budget, rounds }));
  const page = { report, settings, which: -1, at: Math.max(0, settings.findIndex(isShown(report))) };
  startFrame([["t", "dark, light, as the system has it"], ["?", "these keys"]], () => ({}));
  writeHead(report);
  writeChoices(page);
  writeTables(page);
  writeText(report);
  new ResizeObserver(() => draw(page)).observe(byId("chart"));
  show(page);
}

// The setting shown first: the middle budget, after one compaction.
function isShown({ budgets, rounds }) {
  return (setting) => setting.budget === budgets[Math.floor(budgets.length / 2)] && setting.rounds === rounds[0];
}

function nameOfSetting({ budget, rounds }) {
  const most = budget === null ? "where the agents compacted, at most their tokens" : `${Math.round(budget * 100)}\u00a0% of the tokens`;
  return `${most}, ${plural(rounds, "compaction")}`;
}

// Returns the arms of all sessions, or of one, each with its figures in the chosen setting.
function rowsOf(page) {
  const part = page.which < 0 ? page.report : page.report.sessions[page.which];
  const setting = page.settings[page.at];
  const isOf = (other) => other.budget === setting.budget && other.rounds === setting.rounds;
  const rows = part.arms.map((arm) => ({ ...arm, cell: arm.cells.find(isOf) }));
  const found = (arm, measure) => page.which < 0
    && page.report.differences.find((it) => it.arm === arm && it.measure === measure && isOf(it));
  return rows.filter((row) => row.cell).map((row) => (
    { ...row, strict: found(row.name, "strict"), planted: found(row.name, "planted") }));
}

function show(page) {
  const rows = rowsOf(page);
  draw(page);
  page.tables.forEach((table) => table.show(rows));
  byId("planted-section").hidden = !rows.some((row) => row.cell.planted.statements.of);
}

// --- head and text ---

function writeHead(report) {
  const names = report.sessions.map((each) => fileOf(each.session.path));
  const title = names.length === 1 ? names[0] : plural(names.length, "transcript");
  document.title = `${title} · ctx eval compact`;
  byId("name").textContent = title;
  byId("path").textContent = names.join(" · ");
  const cuts = report.sessions.reduce((sum, each) => sum + each.cuts.length, 0);
  byId("lede").textContent = `${plural(cuts, "cut")} of real sessions: the history before each is compacted, and the request `
    + "afterwards is searched for what the agent needed next, for planted statements and for changed files. "
    + "The labels are not those of ctx's own audit.";
  byId("settings").append(...pairs([
    ["Reference", report.reference],
    ["Budgets", report.budgets.map((budget) => `${Math.round(budget * 100)}\u00a0%`).join(", ")],
    ["Compactions", report.rounds.join(", ")],
    ["Statements", whole(report.statements)],
  ]).children);
}

function writeChoices(page) {
  const choose = (id, names, chosen, take) => {
    byId(id).append(...names.map(([value, name]) => el("option", { value }, name)));
    byId(id).value = chosen;
    byId(id).parentNode.hidden = names.length < 2;
    byId(id).addEventListener("change", (event) => {
      take(Number(event.target.value));
      show(page);
    });
  };
  const sessions = page.report.sessions.map((each, at) => [at, fileOf(each.session.path)]);
  choose("which", sessions.length > 1 ? [[-1, "All transcripts"], ...sessions] : [], -1, (at) => (page.which = at));
  choose("setting", page.settings.map((setting, at) => [at, nameOfSetting(setting)]), page.at, (at) => (page.at = at));
}

function writeText(report) {
  byId("needed-note").textContent = `Differences are those of ${report.reference} less the arm, over all transcripts.`;
  for (const loss of report.worst) {
    const lost = Object.entries(loss.lost).map(([kind, names]) => `${kind}: ${names.join(" | ")}`);
    const more = [["files", loss.files], ["planted", loss.statements]].filter(([, list]) => list.length);
    const lines = [...lost, ...more.map(([name, list]) => `${name}: ${list.join(" | ")}`)];
    const title = `${fileOf(loss.session)}: ${loss.strict.kept} of ${loss.strict.of}`;
    byId("worst").append(el("div", {}, el("dt", {}, title, el("br"), el("span", { class: "from" }, nameOfSetting(loss))),
      el("dd", {}, ...lines.flatMap((line) => [line, el("br")]))));
  }
  byId("worst-section").hidden = !report.worst.length;
  for (const preset of report.presets) {
    byId("presets").append(el("div", {}, el("dt", {}, preset.name),
      el("dd", {}, preset.about, el("br"), el("span", { class: "from" }, preset.source))));
  }
  byId("presets-section").hidden = !report.presets.length;
}

// --- tables ---

function writeTables(page) {
  const arm = {
    name: "Arm",
    value: (row) => row.name,
    cell: (row) => [row.compared ? row.name : `(${row.name})`, el("span", { class: "kind" }, word(BENCH_ARMS, row.kind)),
      row.cell.failed ? el("span", { class: "why" }, row.cell.failed) : ""],
  };
  const share = (name, of, bar) => figure(name, (row) => of(row.cell)?.share, exactPercent, bar ? { share: (row) => of(row.cell)?.share } : {});
  const less = (measure) => ({
    name: "Reference less it",
    number: true,
    value: (row) => row[measure]?.difference,
    cell: (row) => pointsOf(row[measure]),
  });
  const tokens = figure("Tokens", (row) => row.cell.tokens / Math.max(1, row.cell.histories), whole);
  const kind = (name) => share(name[0].toUpperCase() + name.slice(1), (cell) => cell.strict.kinds[name]);
  const table = (id, columns) => {
    const made = shortTable({
      kind: "figures",
      caption: el("span", { class: "hidden" }, "One row an arm. A heading sorts by its column."),
      rows: [],
      columns: [arm, ...columns],
    });
    byId(id).append(made.element);
    tellOfMore(byId(id));
    return made;
  };
  page.tables = [
    table("needed-table", [
      share("Strict", (cell) => cell.strict.present, true), less("strict"),
      share("Within reach", (cell) => cell.strict.withinReach), share("All used", (cell) => cell.loose.present), tokens,
      ...HANDLES.map(kind),
    ]),
    table("planted-table", [
      share("Kept", (cell) => cell.planted.statements, true), less("planted"),
      figure("Old beside new", (row) => row.cell.planted.staleBesideNew, (n, row) => `${whole(n)} of ${whole(row.cell.planted.updates.of)}`, { fault: true }),
      share("Pairs", (cell) => cell.planted.pairs), share("Distractors", (cell) => cell.planted.distractors),
      ...[...new Set(page.report.arms.flatMap((each) => each.cells.flatMap((cell) => Object.keys(cell.planted.types))))].sort()
        .map((type) => share(type.replace("_", " "), (cell) => cell.planted.types[type])),
      figure("Receipt", (row) => row.cell.receipt.receipts && row.cell.receipt.coverage / row.cell.receipt.receipts || null, exactPercent),
      figure("Off by", (row) => row.cell.receipt.receipts && row.cell.receipt.gap / row.cell.receipt.receipts || null, exactPercent),
    ]),
    table("work-table", [
      share("Files named", (cell) => cell.files, true), share("Open todos", (cell) => cell.todos), tokens,
      figure("Cost", (row) => row.cell.costUsd, dollars),
      figure("ms", (row) => row.cell.millis / Math.max(1, row.cell.compactions), whole),
      figure("Wedges", (row) => row.cell.wedges, whole, { fault: true }),
      figure("Failures", (row) => row.cell.failures, whole, { fault: true }),
    ]),
  ];
}

// A difference in points, with its interval.
function pointsOf(found) {
  if (!found) return NOTHING;
  const points = (share) => `${share > 0 ? "+" : ""}${(100 * share).toFixed(1)}`;
  const range = found.low === null ? "" : ` [${points(found.low)} ${points(found.high)}]`;
  return el("span", { class: found.difference < 0 ? "no" : null }, points(found.difference) + range);
}

// --- chart ---

function draw(page) {
  const marks = rowsOf(page).filter((row) => row.cell.strict.present.of).map((row) => ({
    name: row.name,
    kind: LOOKS[row.kind],
    x: row.cell.tokens / Math.max(1, row.cell.histories),
    y: row.cell.strict.present.share,
    stuck: row.cell.wedges > 0,
    told: `${exactPercent(row.cell.strict.present.share)} of ${whole(row.cell.strict.present.of)} handles`,
    arm: row.kind,
  }));
  drawMarks(byId("plot"), marks);
  const kinds = [...new Set(marks.map((mark) => mark.arm))];
  byId("legend").replaceChildren(...kinds.map((kind) => {
    const svg = svgRoot({ viewBox: "0 0 16 16" });
    drawShape(svg, LOOKS[kind], 8, 8);
    return el("li", { class: "chart" }, svg, word(BENCH_ARMS, kind));
  }));
}

start();
