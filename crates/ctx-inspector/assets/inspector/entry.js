// The text of an entry: as recorded, and as sent.

import { putOver, stay, takeAway, whenThere } from "./address.js";
import { ask, path, withQuery } from "./api.js";

const PARTS = {
  text: "text",
  thinking: "thinking",
  toolCall: "call",
  toolResult: "result",
  image: "image",
  bash: "command",
  opaque: "as recorded",
};

// Longer text is split into pieces, so that the browser lays out only the visible ones.
const PIECE = 20_000;

// The dialog of an entry over a view, in sync with the address. `address(entry)` returns the view's
// address with the entry; `step(by)` moves in the view's list, and returns the entry there or null.
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
    // If the view changed, its address did too.
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
  const list = pairs([
    ["Entry", entry.entry, "id"],
    ["Time", entry.at === null ? null : timeOf(entry.at)],
    ...(fate ? [
      ["State", stateOf(fate.state)],
      ["Tokens", fate.state === "kept" ? whole(fate.tokens) : `${whole(fate.before)} → ${whole(fate.tokens)}`],
      ["By", fate.layer],
      ["Why", fate.reason],
    ] : []),
  ]);
  const shown = [
    entry.sent ? shownOf(over, "As sent", "sent", entry.sent) : null,
    entry.recorded ? shownOf(over, entry.sent ? "As recorded" : "Text", "recorded", entry.recorded) : null,
  ].filter(Boolean);
  return [
    list,
    entry.note ? el("p", { class: "warning" }, sentence(entry.note)) : null,
    shown.length ? el("div", { class: shown.length > 1 ? "both" : "" }, ...shown) : nothing("The text of this entry is not stored."),
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
  if (!shown.parts.length) box.append(el("p", { class: "quiet" }, "Empty message."));
  if (shown.cut) {
    const all = buttonOf("Show all", () => load(over, true), { class: "whole" });
    box.append(el("p", { class: "rest" }, el("span", { class: "quiet" }, `${plural(shown.cut, "more character")} are not shown.`), " ", all));
  }
  return box;
}

// Pieces end at line breaks, if possible.
function pieces(text) {
  if (text.length <= 5 * PIECE) return [text];
  const found = [];
  for (let from = 0; from < text.length;) {
    const line = text.slice(from, from + PIECE).lastIndexOf("\n") + 1;
    let end = Math.min(text.length, from + (line || PIECE));
    // Keep surrogate pairs together.
    if (end < text.length && (text.charCodeAt(end) & 0xfc00) === 0xdc00) end += 1;
    found.push(el("span", { class: "piece" }, text.slice(from, end)));
    from = end;
  }
  return found;
}

// --- copying ---

function copyButton(over, title, form, shown) {
  const button = buttonOf("Copy", async () => {
    try {
      const all = shown.cut ? (await ask(urlOf(over, true)))[form] : shown;
      await copy(textOf(all), over.box);
      button.textContent = "Copied";
      say("Copied");
    } catch {
      button.textContent = "Not copied";
      say("Not copied: the browser refused.");
    }
  }, { class: "copy", "aria-label": `Copy: ${title}` });
  return button;
}

function textOf(shown) {
  return shown.parts.map((part) => {
    const name = part.kind === "toolCall" || part.kind === "bash" ? part.name : null;
    return [name, part.text].filter(Boolean).join("\n");
  }).filter(Boolean).join("\n\n");
}

// A page of another machine without HTTPS has no clipboard API. Then a selection is copied instead.
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
