// One request opened: what it is made of, what it does to the cached prefix, each entry and its fate.

import { requestAt, sessionAt } from "./address.js";
import { ask } from "./api.js";
import { entriesOf, filter, filterIn, urlOf } from "./entries.js";
import { makeOver } from "./entry.js";
import { progressOf } from "./session.js";
import { rowBeside, tableKeys } from "./table.js";
import { ACTIONS, BREAKS, COMPONENTS, failed, nothing, timeOf, word, working } from "./words.js";

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
    // What was sent does not change; how many requests there are may.
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
    if (error.name !== "AbortError") root.replaceChildren(crumbs(view), failed(error, () => open(view, entry)));
  }
}

// The same request at another address: another filter, another entry that is open.
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

// Another request, looked at in the same way.
function step(view, by) {
  const number = view.number + by;
  if (number >= 1 && number <= view.request.requests) location.hash = requestAt(view.id, number, view.filter);
}

// --- drawing ---

function crumbs(view) {
  return el("nav", { class: "crumbs", "aria-label": "Where you are" },
    el("a", { href: "#/" }, "Sessions"), " / ", el("a", { href: sessionOf(view) }, view.request ? view.request.title : "Session"));
}

function draw(view) {
  const { request, root } = view;
  root.replaceChildren(
    crumbs(view),
    el("div", { class: "bar" },
      el("h1", {}, `Request ${whole(request.number)}`),
      el("div", { class: "tools", id: "steps" }, ...stepsOf(view))),
    factsOf(request),
    el("div", { class: "beside even" },
      el("section", { "aria-label": "What was sent" }, partsOf(request)),
      el("section", { "aria-label": "What it does to the provider's cache" }, prefixOf(request))),
    editsOf(request),
    entriesOf(view));
  writeSteps(view, request.requests);
}

function stepsOf(view) {
  const to = (by, told) => {
    const button = el("button", { type: "button" }, told);
    button.addEventListener("click", () => step(view, by));
    return button;
  };
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
  const list = el("dl", { class: "pairs" });
  const pair = (name, value, kind) => value !== null && value !== undefined &&
    list.append(el("div", {}, el("dt", {}, name), el("dd", { class: kind }, value)));
  const left = request.limit - request.sentTokens;
  pair("Time", timeOf(request.at));
  pair("Raw tokens", whole(request.rawTokens));
  pair("Sent tokens", whole(request.sentTokens), "strong");
  pair("Provider counted", request.promptTokens === undefined ? null : whole(request.promptTokens));
  pair("Cached tokens", typeof request.cachedTokens === "number" ? `${whole(request.cachedTokens)} (${percent(request.cachedTokens, request.sentTokens)})` : NOTHING);
  pair(left < 0 ? "Over the limit by" : "Left free", whole(Math.abs(left)), left < 0 ? "no" : null);
  if (request.sentTokens < request.rawTokens) pair("Left out so far", whole(request.rawTokens - request.sentTokens));
  if (request.recalledTokens) pair("Recalled", whole(request.recalledTokens));
  if (typeof request.costUsd === "number") pair("Cost", dollars(request.costUsd));
  if (request.outcome) pair("Outcome", [request.outcome, request.status].filter(Boolean).join(" "), request.outcome === "ok" ? null : "no");
  if (request.attempts > 1) pair("Sent again", plural(request.attempts - 1, "time"));
  if (typeof request.millis === "number") pair("Added by ctx", `${request.millis.toFixed(1)} ms`);
  pair("Answered by", request.entry || null, "id");
  return list;
}

function partsOf(request) {
  if (!request.components.length) return nothing("What this request was made of was not kept.");
  return componentBars(request.components.map((part) => ({ ...part, name: word(COMPONENTS, part.name) })));
}

// The part that the provider still holds, and what had to be sent anew.
function prefixOf(request) {
  const { unchangedPrefix: same, sentTokens: sent, number } = request;
  const share = sent > 0 ? Math.min(100, (100 * same) / sent) : 0;
  const fresh = Math.max(0, sent - same);
  const told = number === 1
    ? "This is the first request: all of it is new to the provider."
    : same === 0
      ? `Nothing at its beginning is as it was in request ${whole(number - 1)}: the provider reads all of it anew.`
      : `The first ${plural(same, "token")} are those of request ${whole(number - 1)}, which the provider's cache may hold. ${plural(fresh, "token")} behind them ${fresh === 1 ? "is" : "are"} new, or stand elsewhere than before.`;
  const lost = request.prefixBreak;
  const why = lost ? `${plural(lost.tokens, "token")} of what was sent before ${lost.tokens === 1 ? "is" : "are"} not sent again: ${word(BREAKS, lost.cause)}.` : null;
  return el("div", { class: "prefix" },
    el("h2", {}, "Cached prefix"),
    el("div", { class: "meter", role: "img", "aria-label": `${percent(same, sent)} of the request is as before` },
      el("span", { class: "same", style: `width:${share.toFixed(2)}%` })),
    el("p", { class: "meter-ends", "aria-hidden": "true" },
      el("span", {}, `as before ${whole(same)}`), el("span", {}, `new ${whole(fresh)}`)),
    el("p", { class: "note" }, told),
    why ? el("p", { class: "note" }, why) : null);
}

function editsOf(request) {
  const section = el("section", { "aria-label": "Edits for this request" });
  if (!request.edits.length) {
    const told = request.sentTokens < request.rawTokens
      ? "No edit was made for this request. Those made before it stay in force."
      : "Nothing is left out of this request.";
    section.append(el("h2", {}, "Edits for this request"), el("p", { class: "quiet" }, told));
    return section;
  }
  const head = ["Layer", "Did", "Entries", "Before", "After", "Why"];
  const kinds = [null, null, "num", "num", "num", "c-reason"];
  section.append(el("h2", {}, "Edits for this request"), el("div", { class: "wide-scroll", tabindex: "0", role: "region", "aria-label": "Edits by layer" },
    el("table", { class: "sums" },
      el("thead", {}, el("tr", {}, ...head.map((name, at) => el("th", { scope: "col", class: kinds[at] }, name)))),
      el("tbody", {}, ...request.edits.map((sum) => el("tr", {},
        el("th", { scope: "row" }, sum.layer),
        el("td", {}, word(ACTIONS, sum.action)),
        el("td", { class: "num" }, whole(sum.edits)),
        el("td", { class: "num" }, whole(sum.before)),
        el("td", { class: "num" }, whole(sum.after)),
        el("td", { class: "c-reason" }, sum.reasons.join("; "))))))));
  return section;
}
