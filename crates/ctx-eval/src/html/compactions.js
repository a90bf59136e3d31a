// The compactions, each with its receipt, its audit and the summary that was stored.

const KINDS = {
  pinned: "pinned instructions",
  ask: "the open ask",
  constraint: "constraints",
  decision: "decisions",
  question: "open questions",
  failure: "causes of failures",
  personal: "personal details",
  errorCode: "errors",
  path: "paths",
  url: "URLs",
  id: "ids and hashes",
  number: "numbers",
  codeName: "names in code",
};

function writeCompactions(model, show) {
  const compactions = model.report.compactions || [];
  byId("compactions").hidden = compactions.length === 0;
  for (const compaction of compactions) byId("compaction-list").append(compactionOf(compaction, show));
}

function compactionOf(compaction, show) {
  const receipt = (compaction.details || {}).receipt;
  const number = whole(compaction.request + 1);
  const head = el("summary", {},
    el("b", {}, `Before request ${number}`), " ",
    el("span", {}, compactionHead(compaction, receipt)));
  const opener = el("button", { type: "button" }, `Open request ${number}`);
  opener.addEventListener("click", () => show(compaction.request));
  const box = el("details", { class: "compaction" }, head);
  // A long session has hundreds of summaries; each is made when somebody looks at it.
  box.addEventListener("toggle", () => {
    if (!box.open || box.childElementCount > 1) return;
    if (receipt) box.append(receiptOf(receipt));
    box.append(el("pre", { class: "summary", tabindex: "0" }, compaction.summary || "(no summary)"), opener);
  });
  return box;
}

function compactionHead(compaction, receipt) {
  const before = whole(compaction.tokensBefore);
  const parts = [compaction.tokensAfter === null ? `${before} tokens before it` : `${before} → ${whole(compaction.tokensAfter)} tokens`];
  if (receipt) {
    parts.push(plural(receipt.messages, "message"), `by ${writerOf(receipt)}`);
    parts.push(`${percent(receipt.audit.coverage, 1)} of ${plural(receipt.audit.facts, "fact")} kept`);
  }
  return parts.join(" · ");
}

function writerOf(receipt) {
  const name = {
    model: receipt.model || "a model",
    withoutOversized: `${receipt.model || "a model"}, large messages left out`,
    extractive: "the extractive summariser",
    hardPrune: "nobody: history was cut",
  }[receipt.rung] || receipt.rung;
  return receipt.emergency ? `${name} (emergency)` : name;
}

function receiptOf(receipt) {
  const { audit } = receipt;
  const facts = {
    "Stands for": `${receipt.firstEntryId} to ${receipt.lastEntryId}`,
    "Kept from": receipt.firstKeptEntryId + (receipt.splitTurn ? " (inside a turn)" : ""),
    Summary: `${whole(receipt.summaryTokens)} tokens${receipt.model ? `, ${receipt.strategy}` : ""}`,
    Calls: receipt.calls.length ? callsOf(receipt) : "none",
    "Invented (nothing says it)": audit.ungrounded.length ? audit.ungrounded.join(", ") : "nothing",
    Notes: receipt.notes.join("; "),
  };
  const list = el("dl", { class: "settings" });
  for (const [name, value] of Object.entries(facts)) {
    if (value) list.append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  }
  return el("div", { class: "receipt" }, list, auditTable(audit));
}

function callsOf(receipt) {
  const failed = receipt.calls.filter((call) => !call.ok).length;
  const cost = receipt.costUsd === undefined ? "cost unknown" : dollars(receipt.costUsd);
  return `${whole(receipt.calls.length)}, ${whole(failed)} failed, ${cost}`;
}

function auditTable(audit) {
  const row = (name, facts, kept, repaired) => {
    const lost = Math.max(0, facts - kept - repaired);
    const cells = [facts, kept, repaired, lost].map((n) => el("td", { class: "num" }, whole(n)));
    return el("tr", {}, el("th", { scope: "row" }, name), ...cells);
  };
  const head = ["Must be kept", "Facts", "Kept", "Repaired", "Lost"];
  const rows = Object.entries(KINDS)
    .filter(([kind]) => audit.kinds[kind])
    .map(([kind, name]) => {
      const { facts, kept, repaired } = audit.kinds[kind];
      return row(name, facts, kept, repaired);
    });
  return el("table", { class: "audit" },
    el("thead", {}, el("tr", {}, ...head.map((name, at) => el("th", { scope: "col", class: at ? "num" : "" }, name)))),
    el("tbody", {}, ...rows, row("all", audit.facts, audit.kept, audit.repaired)));
}
