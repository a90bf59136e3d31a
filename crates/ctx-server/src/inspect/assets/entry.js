// An entry opened to its text: as it was recorded, and as it went out.

import { putOver, stay, takeAway, whenThere } from "./address.js";
import { ask, path, withQuery } from "./api.js";
import { openDialog } from "./dialogs.js";
import { ROLES, failed, nothing, say, sentence, stateOf, timeOf, word, working } from "./words.js";

const PARTS = {
  text: "text",
  thinking: "thinking",
  toolCall: "calls",
  toolResult: "gave",
  image: "image",
  bash: "ran",
  opaque: "as recorded",
};

// Text longer than this is shown piece by piece, and the browser lays out those in sight alone.
const PIECE = 20_000;

// The entry that stands over a view, in step with the address. `address(entry)` is that of the view
// with it; `step(by)` moves to a neighbour in the view's list, and gives its id or null.
export function makeOver({ session, number, address, step }) {
  const over = { session, number, address, entry: null, box: null, body: null, loading: null };
  over.show = (entry) => show(over, entry);
  over.open = (entry) => whenThere(() => {
    putOver(address(entry));
    over.show(entry);
  });
  over.next = async (by) => {
    const entry = await step(by);
    if (!entry || !over.box) return;
    over.entry = entry;
    stay(address(entry));
    load(over);
  };
  return over;
}

function show(over, entry) {
  const { address } = over;
  if (entry === over.entry) return;
  const { box, loading } = over;
  if (loading) loading.abort();
  Object.assign(over, { entry, box: null });
  if (box) box.close();
  if (!entry) return;
  over.body = el("div", { class: "entry-body" });
  over.box = openDialog("Entry", "entry", over.body);
  const mine = over.box;
  mine.addEventListener("close", () => {
    if (over.box !== mine) return;
    over.loading.abort();
    // Where the view changed, the address is another already.
    if (location.hash !== address(over.entry)) return;
    const { entry: left } = over;
    Object.assign(over, { entry: null, box: null });
    if (left) takeAway(address(null));
  });
  mine.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { j: () => over.next(1), k: () => over.next(-1), c: () => mine.querySelector(".copy")?.click() };
    if (Object.hasOwn(keys, event.key)) keys[event.key]();
  });
  load(over);
}

async function load(over, whole) {
  if (over.loading) over.loading.abort();
  over.loading = new AbortController();
  const { box, body, loading } = over;
  if (!whole) body.replaceChildren(working("Reading the entry …"));
  try {
    const entry = await ask(urlOf(over, whole), { signal: loading.signal });
    box.querySelector("h2").textContent = word(ROLES, entry.role);
    body.replaceChildren(...contentOf(over, entry));
  } catch (error) {
    if (error.name !== "AbortError") body.replaceChildren(failed(error, () => load(over, whole)));
  }
}

function urlOf(over, whole) {
  return withQuery(path`sessions/${over.session}/entries/${over.entry}`, { request: over.number, whole });
}

function contentOf(over, entry) {
  const { fate } = entry;
  const list = el("dl", { class: "pairs" });
  const pair = (name, value, kind) => list.append(el("div", {}, el("dt", {}, name), el("dd", { class: kind }, value)));
  pair("Entry", entry.entry, "id");
  if (entry.at !== null) pair("Time", timeOf(entry.at));
  if (fate) {
    pair("State", stateOf(fate.state));
    pair("Tokens", fate.state === "kept" ? whole(fate.tokens) : `${whole(fate.before)} → ${whole(fate.tokens)}`);
    if (fate.layer) pair("By", fate.layer);
    if (fate.reason) pair("Why", fate.reason);
  }
  const shown = [
    entry.sent ? shownOf(over, "As it went out", "sent", entry.sent) : null,
    entry.recorded ? shownOf(over, entry.sent ? "As it was recorded" : "Text", "recorded", entry.recorded) : null,
  ].filter(Boolean);
  return [
    list,
    entry.note ? el("p", { class: "warning" }, sentence(entry.note)) : null,
    shown.length ? el("div", { class: shown.length > 1 ? "both" : "" }, ...shown) : nothing("No text of this entry is kept."),
  ].filter(Boolean);
}

function shownOf(over, title, form, shown) {
  const box = el("section", { class: "shown" },
    el("div", { class: "shown-head" },
      el("h3", {}, title, " ", el("span", { class: "quiet" }, plural(shown.tokens, "token"))),
      copyButton(over, title, form, shown)));
  for (const part of shown.parts) {
    const failed = part.isError ? el("span", { class: "no" }, " failed") : null;
    box.append(el("div", { class: "part" },
      el("p", { class: "part-kind" }, word(PARTS, part.kind), part.name ? ` ${part.name}` : "", failed),
      part.text ? el("pre", { tabindex: "0", role: "region", "aria-label": `${title}: ${word(PARTS, part.kind)}` }, ...pieces(part.text)) : null));
  }
  if (!shown.parts.length) box.append(el("p", { class: "quiet" }, "It is empty."));
  if (shown.cut) {
    const all = el("button", { type: "button", class: "whole" }, "Show all of it");
    all.addEventListener("click", () => load(over, true));
    box.append(el("p", { class: "rest" }, el("span", { class: "quiet" }, `${plural(shown.cut, "more character")} are not shown.`), " ", all));
  }
  return box;
}

// Pieces end where a line does, if there is one that ends.
function pieces(text) {
  if (text.length <= 5 * PIECE) return [text];
  const found = [];
  for (let from = 0; from < text.length;) {
    const line = text.slice(from, from + PIECE).lastIndexOf("\n") + 1;
    let end = Math.min(text.length, from + (line || PIECE));
    // Halves of one character stay together.
    if (end < text.length && (text.charCodeAt(end) & 0xfc00) === 0xdc00) end += 1;
    found.push(el("span", { class: "piece" }, text.slice(from, end)));
    from = end;
  }
  return found;
}

// --- copying ---

function copyButton(over, title, form, shown) {
  const button = el("button", { type: "button", class: "copy", "aria-label": `Copy: ${title}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      const all = shown.cut ? (await ask(urlOf(over, true)))[form] : shown;
      await copy(textOf(all), over.box);
      button.textContent = "Copied";
      say("Copied");
    } catch {
      button.textContent = "Not copied";
      say("The browser did not allow to copy.");
    }
  });
  return button;
}

function textOf(shown) {
  return shown.parts.map((part) => {
    const name = part.kind === "toolCall" || part.kind === "bash" ? part.name : null;
    return [name, part.text].filter(Boolean).join("\n");
  }).filter(Boolean).join("\n\n");
}

// A page that is not of this machine has no clipboard, but for what is selected.
async function copy(text, within) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = el("textarea", { class: "hidden", readonly: "" });
  field.value = text;
  within.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("refused");
}
