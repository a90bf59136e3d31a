// The address identifies the view, for reloading, the back button and links: `#/?q=&order=`,
// `#/memory?q=`, `#/s/ID?r=N`, `#/s/ID/r/N?state=&layer=&q=`, `#/s/ID/c/C?part=&fate=`. In a
// session's address, `/e/ENTRY` before the query opens that entry.

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

// Replaces the address of the current view, without a step for the back button.
export function stay(hash) {
  if (location.hash !== hash) history.replaceState(history.state, "", hash);
}

// Opens an overlay; the back button closes it.
export function putOver(hash) {
  history.pushState({ isOver: true }, "", hash);
}

// Closes the overlay.
export function takeAway(hash) {
  if (!history.state || !history.state.isOver) {
    stay(hash);
    return;
  }
  going = new Promise((gone) => addEventListener("popstate", gone, { once: true })).then(() => (going = null));
  history.back();
}

// Going back is asynchronous. Later changes wait until it is done.
let going = null;

export function whenThere(act) {
  if (going) going.then(act);
  else act();
}

// The links back: to the sessions, and from a part of a session to the session.
export function crumbs(session, title) {
  const to = session ? [" / ", el("a", { href: session }, title || "Session")] : [];
  return el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: "#/" }, "Sessions"), ...to);
}
