"use strict";
// How a page reads its data, and how values are written. All data comes from transcripts and is not to
// be trusted: it reaches the page as text nodes only.

function readReport() {
  return JSON.parse(document.getElementById("report").textContent);
}

// --- words and numbers ---

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

// A share that is not quite all, or not quite nothing, is never rounded to it.
function percent(part, total) {
  if (!(total > 0)) return NOTHING;
  const share = (100 * part) / total;
  if (share > 99 && share < 100) return "99 %";
  if (share > 0 && share < 1) return "< 1 %";
  return `${Math.round(share)} %`;
}

function dollars(n) {
  if (typeof n !== "number") return NOTHING;
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

// --- elements ---

// Strings among the children become text nodes, so nothing in them is ever read as markup.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    // A policy that refuses inline style refuses the attribute too, wherever it comes from.
    if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function byId(id) {
  return document.getElementById(id);
}
