"use strict";
// Formats values and makes elements. All data comes from transcripts and is untrusted: it is added to the
// page as text nodes only.

// Returns the data of a page that is a file.
function readReport() {
  return JSON.parse(byId("report").textContent);
}

// --- numbers ---

const wholeNumber = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const shortNumber = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const NOTHING = "–";

function whole(n) {
  return typeof n === "number" ? wholeNumber.format(n) : NOTHING;
}

function short(n) {
  return typeof n === "number" ? shortNumber.format(n) : NOTHING;
}

function plural(n, one, many) {
  return `${whole(n)} ${n === 1 ? one : many || one + "s"}`;
}

// A share just below 100 % or just above 0 % is never rounded to 100 % or 0 %.
function percent(part, total) {
  if (!(total > 0)) return NOTHING;
  const share = (100 * part) / total;
  if (share > 99 && share < 100) return "99 %";
  if (share > 0 && share < 1) return "< 1 %";
  return `${Math.round(share)} %`;
}

// A share with a decimal, after a non-breaking space.
function exactPercent(n) {
  return typeof n === "number" ? `${(100 * n).toFixed(1)}\u00a0%` : NOTHING;
}

// The width of a bar, for a share of 0 to 1.
function widthOf(share) {
  return `width:${(100 * Math.max(0, Math.min(1, share || 0))).toFixed(2)}%`;
}

function dollars(n) {
  if (typeof n !== "number") return NOTHING;
  if (n < 0) return `-${dollars(-n)}`;
  if (n >= 100000) return `$${short(n)}`;
  if (n === 0 || n >= 100) return `$${whole(n)}`;
  if (n < 0.0001) return "< $0.0001";
  return `$${n.toFixed(n >= 1 ? 2 : n >= 0.01 ? 3 : 4)}`;
}

function bytes(n) {
  if (typeof n !== "number") return NOTHING;
  const units = ["bytes", "kB", "MB", "GB"];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1000;
    unit += 1;
  }
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

function clock(ms) {
  const date = typeof ms === "number" ? new Date(ms) : null;
  if (!date || Number.isNaN(date.getTime())) return NOTHING;
  const two = (n) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function fileOf(path) {
  const text = String(path || "session");
  return text.split(/[\\/]/).filter(Boolean).pop() || text;
}

function sentence(text) {
  const given = String(text || "");
  const end = /[.!?`]$/.test(given) ? "" : ".";
  return given ? given[0].toUpperCase() + given.slice(1) + end : "";
}

// --- elements ---

// Strings among the children become text nodes, so they are never parsed as markup.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    // A policy that forbids inline style also forbids this attribute, even if a script sets it.
    if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function byId(id) {
  return document.getElementById(id);
}

function buttonOf(text, act, attributes) {
  const button = el("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", act);
  return button;
}

// Radio buttons in a row: `choices` are [value, name, title].
function segments(name, legend, choices, chosen, changed) {
  const labels = choices.map(([value, text, title]) => {
    const radio = el("input", { type: "radio", name, value });
    radio.checked = value === chosen;
    radio.addEventListener("change", () => changed(value));
    return el("label", {}, radio, el("span", { title }, text));
  });
  return el("fieldset", { class: "segments" }, el("legend", { class: "hidden" }, legend), ...labels);
}

// A control with a label for screen readers only.
function field(name, control) {
  return el("label", { class: "field" }, el("span", { class: "hidden" }, name), control);
}

// Names with values: `rows` are [name, value, kind]. Rows without a value are omitted.
function pairs(rows, kind = "pairs") {
  const given = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: kind }, ...given.map(([name, value, of]) =>
    el("div", { class: kind === "readout" ? of : null }, el("dt", {}, name), el("dd", { class: kind === "readout" ? null : of }, value))));
}

// Announces a text to screen readers.
function say(text) {
  byId("live").textContent = text;
}

// --- the frame ---

const THEMES = { auto: ["◑", "Auto"], light: ["○", "Light"], dark: ["●", "Dark"] };

// `list` are [keys, meaning] for the dialog of the keys. `keys()` returns the action of each key in the current
// view; `run` runs an action.
function startFrame(list, keys, run = (act) => act()) {
  const everywhere = {
    "?": () => openKeys(list),
    t: nextTheme,
    "/": () => document.querySelector("main input[type=search]")?.select(),
  };
  byId("skip").addEventListener("click", () => byId("view").focus());
  byId("theme").addEventListener("click", nextTheme);
  byId("keys").addEventListener("click", everywhere["?"]);
  document.addEventListener("keydown", (event) => onKey(event, { ...everywhere, ...keys() }, run));
  let kept = null;
  try {
    kept = localStorage.getItem("ctx-theme");
  } catch {
    // Some browsers refuse storage to local files.
  }
  setTheme(Object.hasOwn(THEMES, kept || "") ? kept : "auto");
}

function onKey(event, keys, run) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const { target, key } = event;
  let act = Object.hasOwn(keys, key) ? keys[key] : null;
  if (target.matches("input:not([type=radio]), select, textarea")) {
    // In a search field, these keys move to the results. In a form, Enter submits it.
    const leaves = target.type === "search" && (key === "ArrowDown" || (key === "Enter" && !target.form));
    act = key === "Escape" ? () => target.blur() : leaves ? keys.j : null;
  }
  if (!act || (target.matches("input[type=radio]") && key.startsWith("Arrow"))) return;
  // Enter and Space activate the focused element.
  if (key === "Enter" && target.matches("a, button, summary")) return;
  event.preventDefault();
  run(act);
}

function nextTheme() {
  const themes = Object.keys(THEMES);
  setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]);
}

function setTheme(theme) {
  const root = document.documentElement;
  root.dataset.theme = theme;
  root.style.colorScheme = theme === "auto" ? "light dark" : theme;
  const [mark, name] = THEMES[theme];
  byId("theme").replaceChildren(mark, el("span", { class: "label" }, ` ${name}`));
  byId("theme").setAttribute("aria-label", `Colours: ${theme}. Change`);
  try {
    localStorage.setItem("ctx-theme", theme);
  } catch {
    // Without storage, the choice ends with the page.
  }
}

// --- dialogs ---

// A dialog with a title; Esc, its button, or a click outside closes it.
function openDialog(title, kind, ...children) {
  const id = `dialog-${kind}`;
  const box = el("dialog", { class: kind, "aria-labelledby": id },
    el("div", { class: "dialog-head" }, el("h2", { id }, title), buttonOf("Close", () => box.close(), { class: "plain close" })),
    ...children);
  box.addEventListener("click", (event) => event.target === box && box.close());
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

function openKeys(keys) {
  const list = el("dl", { class: "key-list" });
  for (const [names, meaning] of keys) {
    list.append(el("dt", {}, ...names.split(" ").flatMap((key) => [el("kbd", {}, key), " "])), el("dd", {}, meaning));
  }
  openDialog("Keys", "help", list);
}
