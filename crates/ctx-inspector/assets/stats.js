// The page of what was saved: a table for each origin of figures.

const ORIGINS = { measured: "Measured", simulated: "Simulated" };

const GROUPS = { day: "Day", project: "Project", client: "Client", model: "Model" };

function start() {
  const report = readReport();
  startFrame([["t", "dark, light, or as the system"], ["?", "list the keys"]], () => ({}));
  byId("origins").append(...report.totals.map((total) => sectionOf(report, total)));
  if (!report.totals.length) byId("origins").append(nothing("There are no requests."));
}

function sectionOf(report, total) {
  const rows = report.rows.filter((row) => row.origin === total.origin);
  const table = el("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": word(ORIGINS, total.origin) },
    tableOf(report, rows).element);
  const more = el("p", { class: "note more", hidden: true }, "The table continues to the right: scroll sideways.");
  const section = el("section", {}, el("h2", {}, word(ORIGINS, total.origin)), el("p", { class: "lede" }, savedOf(total)), table, more);
  tellOfMore(table);
  return section;
}

function tableOf(report, rows) {
  const most = Math.max(1, ...rows.map((row) => row.tokensSaved));
  const name = (row) => row.key || "unknown";
  return shortTable({
    kind: "figures",
    caption: el("span", { class: "hidden" }, "A heading sorts by its column."),
    rows,
    columns: [
      { name: word(GROUPS, report.by), value: name, cell: name },
      figure("Requests", (row) => row.requests, whole),
      figure("Before", (row) => row.tokensBefore, whole),
      figure("After", (row) => row.tokensAfter, whole),
      figure("Saved", (row) => row.tokensSaved, whole, { share: (row) => row.tokensSaved / most }),
      figure("USD saved", (row) => row.savedUsd, dollars),
      figure("Cache hits", (row) => row.cacheHitRate, exactPercent),
      figure("Compactions", (row) => row.compactions, whole),
      figure("Facts kept", (row) => row.factsKept, exactPercent),
      figure("Overflows avoided", (row) => row.overflowsAvoided, whole),
      figure("Recovered", (row) => row.recoveries, whole),
      figure("Expanded", (row) => row.expansions, whole),
      figure("Failed", (row) => row.failed, whole, { fault: true }),
    ],
  });
}

start();
