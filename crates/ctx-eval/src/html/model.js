"use strict";
// The report as columns, and how its values are written. Everything in the report comes from a
// transcript and is not to be trusted: it reaches the page as text nodes only.

function readReport() {
  return JSON.parse(document.getElementById("report").textContent);
}

// Columns of numbers keep a chart of 100,000 requests quick; the requests themselves are only
// touched for the rows on the screen.
function buildModel(report) {
  const requests = report.requests || [];
  const count = requests.length;
  const model = {
    report,
    requests,
    details: report.details || [],
    count,
    window: report.window || 0,
    limit: Math.max(0, (report.window || 0) - (report.reserve || 0)),
    raw: new Float64Array(count),
    sent: new Float64Array(count),
    cached: new Float64Array(count),
    fits: new Uint8Array(count),
    edits: new Uint32Array(count),
  };
  requests.forEach((request, at) => {
    model.raw[at] = request.rawTokens || 0;
    model.sent[at] = request.sentTokens || 0;
    model.cached[at] = Math.min(request.cachedTokens || 0, model.sent[at]);
    model.fits[at] = request.fits === false ? 0 : 1;
    model.edits[at] = Object.values(request.actions || {}).reduce((sum, n) => sum + n, 0);
  });
  return model;
}

function editsOf(model, at) {
  const detail = model.details[at];
  return (detail && detail.edits) || [];
}

// Positions of the requests that pass the filter and the search, ascending.
function select(model, filter, query) {
  const kept = [];
  const passes = filterTest(model, filter);
  const matches = searchTest(model, query.trim().toLowerCase());
  for (let at = 0; at < model.count; at += 1) {
    if (passes(at) && matches(at)) kept.push(at);
  }
  return kept;
}

function filterTest(model, filter) {
  if (filter === "edits") return (at) => model.edits[at] > 0;
  if (filter === "over") return (at) => !model.fits[at];
  return () => true;
}

function searchTest(model, query) {
  if (!query) return () => true;
  if (/^#\d+$/.test(query)) return (at) => at + 1 === Number(query.slice(1));
  const named = (id) => String(id || "").toLowerCase().includes(query);
  return (at) => named(model.requests[at].entryId) || editsOf(model, at).some((edit) => named(edit.entry));
}

function largest(column) {
  let found = 0;
  for (let at = 1; at < column.length; at += 1) if (column[at] > column[found]) found = at;
  return found;
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
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function byId(id) {
  return document.getElementById(id);
}
