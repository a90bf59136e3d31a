// The words for what the API names, and how states of the page are told.

// Each has a mark as well as a colour.
export const STATES = {
  kept: { word: "kept", mark: "●" },
  replaced: { word: "trimmed", mark: "◐" },
  dropped: { word: "dropped", mark: "○" },
  inserted: { word: "added", mark: "+" },
};

export const ACTIONS = { drop: "dropped", replace: "trimmed", insert: "added", pin: "pinned", move: "moved" };

export const COMPONENTS = {
  system: "system prompt",
  tools: "tools",
  summary: "summary",
  inserted: "recalled",
  history: "history",
  newest: "newest message",
  pending: "pending input",
};

export const ROLES = {
  system: "system",
  user: "user",
  assistant: "assistant",
  toolResult: "tool result",
  bashExecution: "command",
  custom: "injected",
  compactionSummary: "summary",
  branchSummary: "branch summary",
};

export const SOURCES = { proxy: "proxy", store: "session", file: "file" };

export const MAKERS = { ctx: "ctx", agent: "the agent", extension: "an extension", replay: "this replay" };

// Why a request does not begin as the one before it.
export const BREAKS = {
  compaction: "history became a summary",
  edit: "ctx edited what it had sent before",
  client: "the client changed what it had said before, its instructions, its tools or the model",
};

// How a summary was come by, where the model that was to write it did not; null where it did.
export function troubleOf(summarised) {
  const outcome = summarised ? summarised.outcome : "";
  const told = {
    unasked: "The model that was to write the summary could not be asked",
    failed: `The model that was to write the summary was asked ${plural(summarised?.calls ?? 0, "time")}, and no answer came`,
    unusable: `The model that was to write the summary was asked ${plural(summarised?.calls ?? 0, "time")}, and no answer could be used`,
  };
  if (!Object.hasOwn(told, outcome)) return null;
  const instead = summarised.rung === "hardPrune" ? "History was cut instead" : "It is extracted from the messages instead";
  return `${told[outcome]}${summarised.error ? `: ${summarised.error.replace(/[.\s]+$/, "")}` : ""}. ${instead}.`;
}

export function word(words, name) {
  return Object.hasOwn(words, name) ? words[name] : String(name ?? "");
}

export function stateOf(name) {
  const state = Object.hasOwn(STATES, name) ? STATES[name] : { word: String(name), mark: "·" };
  return el("span", { class: `state ${Object.hasOwn(STATES, name) ? name : ""}` },
    el("span", { class: "mark", "aria-hidden": "true" }, state.mark), " ", state.word);
}

// Who speaks in an entry, and its id; on a phone, where there is no column for it, how it begins.
export function entryName(role, id, begins) {
  return el("span", { class: "two" },
    el("span", {}, word(ROLES, role)),
    el("small", { class: "id" }, id),
    el("small", { class: "begins", dir: "auto" }, begins));
}

// A time as it is where the page is looked at; to hover over, which place that is, and the time in UTC.
export function timeOf(ms) {
  return timeElement(ms, clock(ms), (utc) => `${zone()} time; ${utc}`);
}

// A time as people speak of it, with the time itself to hover over.
export function agoOf(ms) {
  return timeElement(ms, ago(ms), () => `${clock(ms)}, ${zone()} time`);
}

// A transcript may hold a time that no calendar has.
function timeElement(ms, told, title) {
  if (clock(ms) === NOTHING) return NOTHING;
  const utc = new Date(ms).toISOString();
  return el("time", { datetime: utc, title: title(utc) }, told);
}

export function zone() {
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

// What a message says, in the direction in which it is written.
export function words(text, quiet) {
  return text ? el("span", { class: "words", dir: "auto" }, text) : el("span", { class: "quiet" }, quiet);
}

// --- states of a view ---

export function working(told) {
  return el("p", { class: "told", role: "status" }, told);
}

export function nothing(told, ...more) {
  return el("div", { class: "told empty" }, el("p", {}, told), ...more);
}

export function failed(error, again) {
  const box = el("div", { class: "told failed", role: "alert" },
    el("p", {}, el("b", {}, sentence(error.message))),
    error.hint ? el("p", {}, ...withCode(sentence(error.hint))) : null);
  if (again) {
    const button = el("button", { type: "button", class: "again" }, "Try again");
    button.addEventListener("click", again);
    box.append(button);
  }
  return box;
}

// What stands between backticks in a hint is code.
function withCode(text) {
  return text.split("`").map((part, nth) => (nth % 2 ? el("code", {}, part) : part));
}

export function sentence(text) {
  const told = String(text || "");
  const ends = /[.!?`]$/.test(told) ? "" : ".";
  return told ? told[0].toUpperCase() + told.slice(1) + ends : "";
}

// Says something to who cannot see the page change.
export function say(text) {
  byId("live").textContent = text;
}
