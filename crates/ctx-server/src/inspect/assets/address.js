// The address says what is looked at, so that it can be reloaded, left by the back button, and sent to
// somebody: `#/?q=&order=`, `#/memory?q=`, `#/s/ID?r=N`, `#/s/ID/r/N?state=&layer=&q=`,
// `#/s/ID/c/C?part=&fate=`. `/e/ENTRY` behind any of a session's is an entry that is open there.

import { withQuery } from "./api.js";

export function place() {
  const [way, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [kind, id, ...parts] = way.split("/").map(decoded);
  const over = parts.length % 2 === 0 && parts.at(-2) === "e" ? parts.splice(-2) : [];
  const [what, which] = parts;
  return { kind, id, what, which, entry: over[1] || null, query: new URLSearchParams(query) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function hashOf(parts, query) {
  return withQuery(`#/${parts.map(encodeURIComponent).join("/")}`, query || {});
}

export function sessionsAt(query) {
  return hashOf([""], query);
}

export function sessionAt(id, query, entry) {
  return hashOf(["s", id, ...over(entry)], query);
}

export function requestAt(id, number, query, entry) {
  return hashOf(["s", id, "r", number, ...over(entry)], query);
}

export function compactionAt(id, compaction, query, entry) {
  return hashOf(["s", id, "c", compaction, ...over(entry)], query);
}

function over(entry) {
  return entry ? ["e", entry] : [];
}

// Another address for what is looked at already: the back button does not stop at it.
export function stay(hash) {
  if (location.hash !== hash) history.replaceState(history.state, "", hash);
}

// Something comes over the view; the back button takes it away.
export function putOver(hash) {
  history.pushState({ isOver: true }, "", hash);
}

// It goes away again.
export function takeAway(hash) {
  if (!history.state || !history.state.isOver) {
    stay(hash);
    return;
  }
  going = new Promise((gone) => addEventListener("popstate", gone, { once: true })).then(() => (going = null));
  history.back();
}

// The browser goes back in its own time; what is done next must not be undone by that.
let going = null;

export function whenThere(act) {
  if (going) going.then(act);
  else act();
}
