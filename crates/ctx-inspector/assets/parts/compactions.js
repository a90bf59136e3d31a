// Compactions: their list, and the receipt, the audit and the summary of one.

const KINDS = {
  pinned: "pinned instructions",
  ask: "open request",
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

// The compactions of a session. `opener(row, name)` returns the element that opens one.
function compactionList(rows, opener) {
  return el("ul", { class: "links" }, ...rows.map((row) => {
    const trouble = troubleOf(row.summarised);
    const about = [compactionHead(row), row.receipt ? null : `by ${word(MAKERS, row.by)}`,
      row.undone ? "undone" : row.applied ? null : "recorded, not part of this replay"];
    return el("li", {}, opener(row, row.number ? `Before request ${whole(row.number)}` : "After the last request"), " ",
      el("span", { class: "quiet" }, about.filter(Boolean).join(" · ")),
      trouble ? el("span", { class: "no", title: trouble }, " · no summary by a model") : null);
  }));
}

function compactionHead({ tokensBefore, tokensAfter, receipt }) {
  const before = whole(tokensBefore);
  const parts = [typeof tokensAfter !== "number" ? `${before} tokens before` : `${before} → ${whole(tokensAfter)} tokens`];
  if (receipt) {
    parts.push(plural(receipt.messages, "message"), `by ${writerOf(receipt)}`);
    parts.push(`${percent(receipt.audit.coverage, 1)} of ${plural(receipt.audit.facts, "fact")} kept`);
  }
  return parts.join(" · ");
}

function writerOf(receipt) {
  const name = {
    model: receipt.model || "a model",
    withoutOversized: `${receipt.model || "a model"}, large messages dropped`,
    extractive: "the extractive summariser",
    hardPrune: "a cut without a summary",
  }[receipt.rung] || receipt.rung;
  return receipt.emergency ? `${name} (emergency)` : name;
}

function receiptOf(receipt) {
  const { audit } = receipt;
  const facts = pairs([
    ["Replaces", `${receipt.firstEntryId} to ${receipt.lastEntryId}`],
    ["Kept from", receipt.firstKeptEntryId + (receipt.splitTurn ? " (inside a turn)" : "")],
    ["Summary", `${whole(receipt.summaryTokens)} tokens${receipt.model ? `, ${receipt.strategy}` : ""}`],
    ["Calls", receipt.calls.length ? callsOf(receipt) : "none"],
    ["Unsupported claims", audit.ungrounded.length ? audit.ungrounded.join(", ") : "none"],
    ["Notes", receipt.notes.join("; ")],
  ], "settings");
  return el("div", { class: "receipt", "aria-label": "Receipt", role: "group" }, facts, auditTable(audit));
}

function callsOf(receipt) {
  const failed = receipt.calls.filter((call) => !call.ok).length;
  const cost = receipt.costUsd === undefined ? "cost unknown" : dollars(receipt.costUsd);
  return `${whole(receipt.calls.length)}, ${whole(failed)} failed, ${cost}`;
}

function auditTable(audit) {
  const kinds = Object.entries(KINDS).filter(([kind]) => audit.kinds[kind]);
  const rows = [...kinds.map(([kind, name]) => ({ name, of: audit.kinds[kind] })), { name: "all", of: audit }];
  const column = (name, value) => ({ name, number: true, cell: ({ of }) => whole(value(of)) });
  return shortTable({
    kind: "audit",
    rows,
    columns: [
      { name: "Must be kept", cell: ({ name }) => name },
      column("Facts", (of) => of.facts),
      column("Kept", (of) => of.kept),
      column("Repaired", (of) => of.repaired),
      column("Lost", (of) => Math.max(0, of.facts - of.kept - of.repaired)),
    ],
  }).element;
}

// The text of a summary. With `opened(line)`, a line opens the message that it comes from.
function summaryOf(text, opened) {
  const lines = !opened ? [text] : text.split("\n").flatMap((line) => [/^#|^\s*$/.test(line) ? line : lineOf(line, opened), "\n"]);
  return text
    ? el("pre", { class: "summary", tabindex: "0", role: "region", "aria-label": "The summary" }, ...lines)
    : el("p", { class: "quiet" }, "No summary: history was cut.");
}

function lineOf(line, opened) {
  const box = el("span", { class: "line", role: "button", tabindex: "0" }, line);
  box.addEventListener("click", () => getSelection().isCollapsed && opened(line));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.stopPropagation();
    opened(line);
  });
  return box;
}
