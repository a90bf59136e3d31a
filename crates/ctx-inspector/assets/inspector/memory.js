// Searches memory, and shows the parts of each hit's score.

import { sessionAt } from "./address.js";
import { ask, withQuery } from "./api.js";

// The parts of a score: key in the API, name, tooltip.
const PARTS = [
  ["lexical", "words", "how well the words match, relative to the best hit"],
  ["vector", "meaning", "how similar the vectors are, relative to all hits"],
  ["speaker", "speaker", "weight of the role of its author"],
  ["decay", "age", "share that its age leaves"],
];

export function showMemory(root, { query, server, signal }) {
  document.title = "Memory · ctx inspector";
  const agents = server.agents;
  const results = el("div", { id: "results" });
  root.append(el("h1", {}, "Memory"));
  if (!agents.length) {
    root.append(nothing("No agent has an archive yet.",
      el("p", {}, "Memory requires the engine ", el("code", {}, "memory-context"), "; ", el("code", {}, "ctx memory ingest FILE"), " archives a transcript.")));
    return { back: "#/" };
  }
  const search = el("input", { type: "search", placeholder: "What was said", autocomplete: "off", spellcheck: "false", id: "memory-search" });
  const session = el("input", { type: "search", placeholder: "All sessions", autocomplete: "off", spellcheck: "false" });
  const agent = el("select", {}, ...agents.map((name) => el("option", { value: name }, name)));
  search.value = query.get("q") || "";
  session.value = query.get("session") || "";
  agent.value = agents.includes(query.get("agent")) ? query.get("agent") : agents.includes("main") ? "main" : agents[0];
  const form = el("form", { class: "memory-form", role: "search" },
    el("label", { class: "grow" }, "Search", search),
    el("label", {}, "Agent", agent),
    el("label", {}, "Session", session),
    el("button", { type: "submit", class: "act" }, "Search"));
  let run = 0;
  const find = async () => {
    const asked = { q: search.value.trim(), agent: agent.value, session: session.value.trim() };
    history.replaceState(null, "", withQuery("#/memory", asked));
    if (!asked.q) {
      results.replaceChildren(nothing("Enter words to search for. Each hit shows the parts of its score."));
      return;
    }
    run += 1;
    const mine = run;
    results.replaceChildren(working("Searching …"));
    try {
      const [found, { sessions }] = await Promise.all([
        ask(withQuery("memory", asked), { signal }),
        ask("sessions", { signal }).catch(() => ({ sessions: [] })),
      ]);
      const known = new Map(sessions.map((session) => [session.sessionId, session.id]));
      if (mine === run) show(results, found, known);
    } catch (error) {
      if (error.name !== "AbortError" && mine === run) results.replaceChildren(failed(error, find));
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    find();
  });
  agent.addEventListener("change", find);
  root.append(form, results);
  find();
  return {
    back: "#/",
    keys: () => keysOf(results),
    goto: ({ query }) => {
      [search.value, session.value] = [query.get("q") || "", query.get("session") || ""];
      if (agents.includes(query.get("agent"))) agent.value = query.get("agent");
      find();
    },
  };
}

function keysOf(results) {
  const move = (steps) => () => {
    const hits = [...results.querySelectorAll(".hit")];
    if (!hits.length) return;
    const at = hits.indexOf(document.activeElement.closest(".hit"));
    const next = hits[Math.max(0, Math.min(hits.length - 1, at + steps))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const open = () => document.activeElement.closest(".hit")?.querySelector("a")?.click();
  return { Enter: open, j: move(1), k: move(-1), ArrowDown: move(1), ArrowUp: move(-1) };
}

// `known` are the API ids of sessions that can be opened, by their session ids.
function show(results, found, known) {
  const warnings = found.warnings.map((text) => el("p", { class: "warning" }, text));
  if (!found.hits.length) {
    results.replaceChildren(...warnings, nothing("No hits. Try other words."));
    return;
  }
  const count = el("p", { class: "matches", role: "status" }, `${plural(found.hits.length, "hit")}, best first`);
  results.replaceChildren(count, ...warnings, el("ol", { class: "hits" }, ...found.hits.map((hit) => hitOf(hit, known.get(hit.session)))));
}

function hitOf(hit, session) {
  const parts = el("dl", { class: "parts" });
  const row = (name, value, share, title) => parts.append(el("div", { title },
    el("dt", {}, name),
    el("dd", {}, el("span", { class: "meter", "aria-hidden": "true" }, el("span", { class: "same", style: widthOf(share) })), value)));
  row("score", score(hit.score), hit.score, "how well it matches, 0 to 1");
  for (const [part, name, title] of PARTS) row(name, score(hit.parts[part]), hit.parts[part], title);
  const about = [clock(hit.timestamp), hit.session, hit.entry ? `e:${hit.entry}` : null, plural(hit.tokens, "token"),
    `BM25 ${score(hit.parts.bm25)}`, `cosine ${score(hit.parts.cosine)}`];
  const there = session ? el("a", { href: sessionAt(session, {}, hit.entry) }, hit.entry ? "Open in its session" : "Open its session") : null;
  return el("li", { class: "hit", tabindex: "0" },
    el("div", { class: "hit-text" },
      el("p", { class: "part-kind" }, word(ROLES, hit.role)),
      el("p", { class: "said", dir: "auto" }, hit.text),
      el("p", { class: "about id" }, about.filter(Boolean).join(" · ")),
      there),
    parts);
}

function score(n) {
  return typeof n === "number" ? n.toFixed(3) : NOTHING;
}
