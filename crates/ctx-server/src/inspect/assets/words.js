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
  system: "system",
  tools: "tools",
  summary: "summary",
  inserted: "recalled",
  history: "history",
  newest: "newest",
  pending: "pending",
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
    el("small", { class: "begins" }, begins));
}

// A time as people speak of it, with the time itself to hover over.
export function ago(ms) {
  if (typeof ms !== "number") return NOTHING;
  const seconds = (Date.now() - ms) / 1000;
  const units = [[60, "second"], [3600, "minute"], [86400, "hour"], [7 * 86400, "day"]];
  let size = 1;
  for (const [limit, unit] of units) {
    if (seconds < limit) return seconds < 5 ? "just now" : `${plural(Math.floor(seconds / size), unit)} ago`;
    size = limit;
  }
  return clock(ms).slice(0, 10);
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
    error.hint ? el("p", {}, sentence(error.hint)) : null);
  if (again) {
    const button = el("button", { type: "button" }, "Try again");
    button.addEventListener("click", again);
    box.append(button);
  }
  return box;
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
