// An entry opened to its text: as it was recorded, and as it went out.

import { ask, path, withQuery } from "./api.js";
import { openDialog } from "./dialogs.js";
import { ROLES, failed, nothing, sentence, stateOf, word, working } from "./words.js";

const PARTS = {
  text: "text",
  thinking: "thinking",
  toolCall: "calls",
  toolResult: "gave",
  image: "image",
  bash: "ran",
  opaque: "as recorded",
};

export async function openEntry(session, id, number) {
  const body = el("div", { class: "entry-body" }, working("Reading the entry …"));
  const box = openDialog("Entry", "entry", body);
  const left = new AbortController();
  box.addEventListener("close", () => left.abort());
  try {
    const url = withQuery(path`sessions/${session}/entries/${id}`, { request: number });
    const entry = await ask(url, { signal: left.signal });
    box.querySelector("h2").textContent = word(ROLES, entry.role);
    body.replaceChildren(...contentOf(entry));
  } catch (error) {
    if (error.name !== "AbortError") body.replaceChildren(failed(error));
  }
}

function contentOf(entry) {
  const { fate } = entry;
  const list = el("dl", { class: "pairs" });
  const pair = (name, value, kind) => list.append(el("div", {}, el("dt", {}, name), el("dd", { class: kind }, value)));
  pair("Entry", entry.entry, "id");
  if (entry.at !== null) pair("Time", clock(entry.at));
  if (fate) {
    pair("State", stateOf(fate.state));
    pair("Tokens", fate.state === "kept" ? whole(fate.tokens) : `${whole(fate.before)} → ${whole(fate.tokens)}`);
    if (fate.layer) pair("By", fate.layer);
    if (fate.reason) pair("Why", fate.reason);
  }
  const shown = [
    entry.sent ? shownOf("As it went out", entry.sent) : null,
    entry.recorded ? shownOf(entry.sent ? "As it was recorded" : "Text", entry.recorded) : null,
  ].filter(Boolean);
  return [
    list,
    entry.note ? el("p", { class: "warning" }, sentence(entry.note)) : null,
    shown.length ? el("div", { class: shown.length > 1 ? "both" : "" }, ...shown) : nothing("No text of this entry is kept."),
  ].filter(Boolean);
}

function shownOf(title, shown) {
  const box = el("section", { class: "shown" },
    el("h3", {}, title, " ", el("span", { class: "quiet" }, plural(shown.tokens, "token"))));
  for (const part of shown.parts) {
    const failed = part.isError ? el("span", { class: "no" }, " failed") : null;
    box.append(el("div", { class: "part" },
      el("p", { class: "part-kind" }, word(PARTS, part.kind), part.name ? ` ${part.name}` : "", failed),
      part.text ? el("pre", { tabindex: "0", role: "region", "aria-label": `${title}: ${word(PARTS, part.kind)}` }, part.text) : null));
  }
  if (!shown.parts.length) box.append(el("p", { class: "quiet" }, "It is empty."));
  if (shown.cut) box.append(el("p", { class: "quiet" }, `${plural(shown.cut, "more character")} are not shown.`));
  return box;
}
