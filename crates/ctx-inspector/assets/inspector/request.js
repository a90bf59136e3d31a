// One request: its components, its cached prefix, and the state of each entry.

import { crumbs, requestAt, sessionAt } from "./address.js";
import { ask } from "./api.js";
import { entriesOf, filter, filterIn, urlOf } from "./entries.js";
import { makeOver } from "./entry.js";
import { progressOf } from "./session.js";

export function showRequest(root, { id, number, query, entry, signal }) {
  document.title = `Request ${number} · ctx inspector`;
  const view = { id, number, signal, root, request: null, table: null, paged: null, filter: filterIn(query), controls: null };
  view.over = makeOver({
    session: id,
    number,
    address: (entry) => requestAt(id, number, view.filter, entry),
    step: async (by) => (await rowBeside(view.table, view.paged, by))?.entry,
  });
  root.append(working("Reading the request …"));
  open(view, entry);
  return {
    back: sessionOf(view),
    keys: () => (view.request ? keysOf(view) : {}),
    goto: (asked) => view.request && go(view, asked),
    // A sent request never changes, but the number of requests may.
    heard: (kind) => kind !== "sessions" && view.request && ask(urlOf(view, { count: 1 }), { signal }).then(
      (request) => writeSteps(view, request.requests), () => {}),
  };
}

function sessionOf(view) {
  return sessionAt(view.id, { r: view.number });
}

async function open(view, entry) {
  const { root, signal, filter } = view;
  try {
    const working = (progress) => root.replaceChildren(progressOf(progress));
    view.request = await ask(urlOf(view, { ...filter, entry }), { signal, working });
    draw(view);
    if (entry) view.over.show(entry);
  } catch (error) {
    if (error.name !== "AbortError") root.replaceChildren(crumbs(sessionOf(view), view.request?.title), failed(error, () => open(view, entry)));
  }
}

// The same request at another address: another filter, or another open entry.
function go(view, { query, entry }) {
  const asked = filterIn(query);
  if (JSON.stringify(asked) !== JSON.stringify(view.filter)) {
    view.filter = asked;
    view.controls.write();
    filter(view);
  }
  view.over.show(entry);
}

function keysOf(view) {
  return {
    ...tableKeys(view.table),
    ArrowLeft: () => step(view, -1),
    ArrowRight: () => step(view, 1),
    f: () => byId("state").focus(),
  };
}

// Another request with the same filter.
function step(view, by) {
  const number = view.number + by;
  if (number >= 1 && number <= view.request.requests) location.hash = requestAt(view.id, number, view.filter);
}

// --- drawing ---

function draw(view) {
  const { request, root } = view;
  root.replaceChildren(
    crumbs(sessionOf(view), view.request?.title),
    el("div", { class: "bar" },
      el("h1", {}, `Request ${whole(request.number)}`),
      el("div", { class: "tools", id: "steps" }, ...stepsOf(view))),
    factsOf(request),
    el("div", { class: "beside even" },
      el("section", { "aria-label": "What was sent" }, partsOf(request)),
      el("section", { "aria-label": "Cached prefix" }, prefixOf(request))),
    editSums(request.edits, request),
    entriesOf(view));
  writeSteps(view, request.requests);
}

function stepsOf(view) {
  const to = (by, name) => buttonOf(name, () => step(view, by));
  view.steps = { previous: to(-1, "← Previous"), count: el("span", { class: "quiet" }), next: to(1, "Next →") };
  return Object.values(view.steps);
}

function writeSteps(view, requests) {
  view.request.requests = requests;
  view.steps.previous.disabled = view.number <= 1;
  view.steps.next.disabled = view.number >= requests;
  view.steps.count.textContent = `of ${whole(requests)}`;
}

function factsOf(request) {
  return pairs([
    ...requestFigures(request, request.limit),
    ["Outcome", request.outcome && [request.outcome, request.status].filter(Boolean).join(" "), request.outcome === "ok" ? null : "no"],
    ["Sent again", request.attempts > 1 ? plural(request.attempts - 1, "time") : null],
    ["Added by ctx", typeof request.millis === "number" ? `${request.millis.toFixed(1)} ms` : null],
    ["Answered by", request.entry, "id"],
  ]);
}

function partsOf(request) {
  if (!request.components.length) return nothing("The components of this request are not stored.");
  return componentBars(request.components);
}

// The unchanged beginning of the request, which the provider's cache may contain, and the rest.
function prefixOf(request) {
  const { unchangedPrefix: same, sentTokens: sent, number } = request;
  const fresh = Math.max(0, sent - same);
  const note = number === 1
    ? "This is the first request: all of it is new to the provider."
    : same === 0
      ? `It differs from request ${whole(number - 1)} from the first token on: the provider's cache cannot be used.`
      : `The first ${plural(same, "token")} ${same === 1 ? "is" : "are"} as in request ${whole(number - 1)}, so the provider's cache may contain them. The other ${plural(fresh, "token")} ${fresh === 1 ? "is" : "are"} new or moved.`;
  const lost = request.prefixBreak;
  const why = lost ? `Cache break: ${plural(lost.tokens, "token")} of the previous request ${lost.tokens === 1 ? "is" : "are"} not sent again, because ${word(BREAKS, lost.cause)}.` : null;
  return el("div", { class: "prefix" },
    el("h2", {}, "Cached prefix"),
    el("div", { class: "meter", role: "img", "aria-label": `${percent(same, sent)} of the request is as before` },
      el("span", { class: "same", style: widthOf(sent > 0 ? same / sent : 0) })),
    el("p", { class: "meter-ends", "aria-hidden": "true" },
      el("span", {}, `as before ${whole(same)}`), el("span", {}, `new ${whole(fresh)}`)),
    el("p", { class: "note" }, note),
    why ? el("p", { class: "note" }, why) : null);
}
