// Display texts for the names in the data, and for the states of a view.

// The arms of every comparison, as the terminal names them.
const ARMS = { recorded: "Recorded", full: "Full history", with: "With ctx" };

// Each state has a mark as well as a colour.
const STATES = {
  kept: { word: "kept", mark: "●" },
  replaced: { word: "trimmed", mark: "◐" },
  dropped: { word: "dropped", mark: "○" },
  inserted: { word: "added", mark: "+" },
};

const ACTIONS = { drop: "dropped", replace: "trimmed", insert: "added", pin: "pinned", move: "moved" };

const COMPONENTS = {
  system: "system prompt",
  tools: "tools",
  summary: "summary",
  inserted: "recalled",
  history: "history",
  newest: "newest message",
  pending: "pending input",
};

const ROLES = {
  system: "system",
  user: "user",
  assistant: "assistant",
  toolResult: "tool result",
  bashExecution: "command",
  custom: "injected",
  compactionSummary: "summary",
  branchSummary: "branch summary",
};

const SOURCES = { proxy: "proxy", store: "session", file: "file" };

const MAKERS = { ctx: "ctx", agent: "the agent", extension: "an extension", replay: "this replay" };

// The causes of cache breaks, after "because".
const BREAKS = {
  compaction: "a summary replaced history",
  edit: "ctx edited messages that it had already sent",
  client: "the client changed earlier messages, its instructions, its tools or the model",
};

// Returns why the configured model did not write a summary; null if it did.
function troubleOf(summarised) {
  const outcome = summarised ? summarised.outcome : "";
  const calls = plural(summarised?.calls ?? 0, "call");
  const troubles = {
    unasked: "No model was called for the summary",
    failed: `The summary model failed in ${calls}`,
    unusable: `The summary model gave no usable answer in ${calls}`,
  };
  if (!Object.hasOwn(troubles, outcome)) return null;
  const instead = summarised.rung === "hardPrune" ? "History was cut without a summary" : "The summary is extractive instead";
  return `${troubles[outcome]}${summarised.error ? `: ${summarised.error.replace(/[.\s]+$/, "")}` : ""}. ${instead}.`;
}

function word(words, name) {
  return Object.hasOwn(words, name) ? words[name] : String(name ?? "");
}

function stateOf(name) {
  const state = Object.hasOwn(STATES, name) ? STATES[name] : { word: String(name), mark: "·" };
  return el("span", { class: `state ${Object.hasOwn(STATES, name) ? name : ""}` },
    el("span", { class: "mark", "aria-hidden": "true" }, state.mark), " ", state.word);
}

// Role and id of an entry. On phones, which have no column for it, the beginning of its text replaces the id.
function entryName(role, id, begins) {
  return el("span", { class: "two" },
    el("span", {}, word(ROLES, role)),
    el("small", { class: "id" }, id),
    el("small", { class: "begins", dir: "auto" }, begins));
}

// A time in the local time zone, with the zone and the UTC time as a tooltip.
function timeOf(ms) {
  return timeElement(ms, clock(ms), (utc) => `${zone()} time; ${utc}`);
}

// A relative time, with the exact time as a tooltip.
function agoOf(ms) {
  return timeElement(ms, ago(ms), () => `${clock(ms)}, ${zone()} time`);
}

// A transcript may contain an invalid time.
function timeElement(ms, text, title) {
  if (clock(ms) === NOTHING) return NOTHING;
  const utc = new Date(ms).toISOString();
  return el("time", { datetime: utc, title: title(utc) }, text);
}

function zone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "local";
}

function ago(ms) {
  const seconds = (Date.now() - ms) / 1000;
  const units = [[60, "second"], [3600, "minute"], [86400, "hour"], [7 * 86400, "day"]];
  let size = 1;
  for (const [limit, unit] of units) {
    if (seconds < limit) return seconds < 5 ? "just now" : `${plural(Math.floor(seconds / size), unit)} ago`;
    size = limit;
  }
  return clock(ms).slice(0, 10);
}

// The text of a message, in its writing direction.
function words(text, quiet) {
  return text ? el("span", { class: "words", dir: "auto" }, text) : el("span", { class: "quiet" }, quiet);
}

// --- states of a view ---

function working(text) {
  return el("p", { class: "told", role: "status" }, text);
}

function nothing(text, ...more) {
  return el("div", { class: "told empty" }, el("p", {}, text), ...more);
}

function failed(error, again) {
  const box = el("div", { class: "told failed", role: "alert" },
    el("p", {}, el("b", {}, sentence(error.message))),
    error.hint ? el("p", {}, ...withCode(sentence(error.hint))) : null);
  if (again) box.append(buttonOf("Try again", again, { class: "again" }));
  return box;
}

// Backticks in a hint mark code.
function withCode(text) {
  return text.split("`").map((part, nth) => (nth % 2 ? el("code", {}, part) : part));
}
