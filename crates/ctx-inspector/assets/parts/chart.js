// The chart of requests: the tokens of each arm. Requests are grouped into at most one bucket per pixel
// column. The x axis is the request, not the time, because pauses of a session are irrelevant.

const CHART = { left: 52, right: 10, top: 30, bottom: 48, gap: 8, strip: 12, zoomFloor: 8 };

function createChart(model, hooks) {
  const box = byId("chart");
  const chart = {
    model,
    hooks,
    box,
    svg: byId("plot"),
    lo: 0,
    hi: Math.max(1, model.count),
    scale: firstScale(model),
    cursor: 0,
    width: 0,
    height: 0,
    press: null,
  };
  chart.layers = chartLayers(chart.svg);
  new ResizeObserver(() => resizeChart(chart)).observe(box);
  listenToPointer(chart);
  resizeChart(chart);
  return chart;
}

// On a linear axis, a full history far above the window would flatten the other arms.
function firstScale(model) {
  return model.raw[largest(model.raw)] > 3 * model.window ? "window" : "linear";
}

function chartLayers(svg) {
  const layers = {};
  const names = "grid cached sentArea compactedBefore compacted raw rawOff recorded sent limit window edits labels over";
  for (const name of names.split(" ")) {
    const tag = name === "grid" || name === "labels" ? "g" : "path";
    layers[name] = svgNode(svg, tag, { class: name });
  }
  layers.picked = svgNode(svg, "rect", { class: "picked" });
  layers.cursor = svgNode(svg, "path", { class: "cursor" });
  layers.dotRecorded = svgNode(svg, "circle", { class: "dot-recorded", r: 3.5 });
  layers.dotRaw = svgNode(svg, "circle", { class: "dot-raw", r: 4 });
  layers.dotSent = svgNode(svg, "circle", { class: "dot-sent", r: 4 });
  return layers;
}

function resizeChart(chart) {
  const width = Math.max(240, Math.floor(chart.box.clientWidth));
  const height = Math.round(Math.min(400, Math.max(260, Math.min(320, width * 0.5), width * 0.36)));
  if (width === chart.width && height === chart.height) return;
  chart.width = width;
  chart.height = height;
  chart.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  drawChart(chart);
}

function setScale(chart, scale) {
  chart.scale = scale;
  drawChart(chart);
}

function setView(chart, lo, hi) {
  const count = Math.max(1, chart.model.count);
  const span = Math.min(count, Math.max(CHART.zoomFloor, Math.round(hi - lo)));
  chart.lo = Math.min(Math.max(0, Math.round(lo)), count - span);
  chart.hi = chart.lo + span;
  drawChart(chart);
  chart.hooks.viewed(span < count);
}

function zoomChart(chart, factor) {
  const span = chart.hi - chart.lo;
  const share = (chart.cursor + 0.5 - chart.lo) / span;
  const next = Math.max(CHART.zoomFloor, span * factor);
  setView(chart, chart.cursor + 0.5 - share * next, chart.cursor + 0.5 + (1 - share) * next);
}

// --- geometry ---

function drawChart(chart) {
  const { model, lo, hi, width, height } = chart;
  chart.plot = {
    x0: CHART.left,
    x1: width - CHART.right,
    y0: CHART.top,
    y1: height - CHART.bottom,
  };
  const plotWidth = Math.max(1, chart.plot.x1 - chart.plot.x0);
  const buckets = bucketize(model, lo, Math.min(hi, model.count), Math.floor(plotWidth));
  chart.axis = tokenAxis(chart, buckets);
  drawGrid(chart);
  drawSeries(chart, buckets, plotWidth / Math.max(1, buckets.count));
  drawBounds(chart, buckets);
  drawCursor(chart);
}

// The maximum of each bucket is drawn: a single request above the window must not vanish among its
// neighbours. The cached share is a mean, because misses are rare and narrow.
function bucketize(model, lo, hi, columns) {
  const span = Math.max(0, hi - lo);
  const count = Math.min(span, columns);
  const buckets = { count, over: [], cached: [] };
  const maxima = ["recorded", "raw", "sent", "edits", "compacted", "compactedBefore"];
  for (const name of maxima) buckets[name] = [];
  for (let b = 0; b < count; b += 1) {
    const from = lo + Math.floor((b * span) / count);
    const to = lo + Math.floor(((b + 1) * span) / count);
    for (const name of maxima) {
      let most = 0;
      for (let at = from; at < to; at += 1) most = Math.max(most, model[name][at]);
      buckets[name].push(most);
    }
    let cached = 0, isOver = false;
    for (let at = from; at < to; at += 1) {
      cached += model.cached[at];
      isOver = isOver || !model.fits[at];
    }
    buckets.cached.push(cached / (to - from));
    buckets.over.push(isOver);
  }
  return buckets;
}

function tokenAxis(chart, buckets) {
  const { window } = chart.model;
  const most = (column) => column.reduce((a, b) => Math.max(a, b), 0);
  const top = Math.max(most(buckets.raw), most(buckets.recorded), most(buckets.sent), window, 1);
  const { y0, y1 } = chart.plot;
  if (chart.scale === "log") {
    const least = buckets.sent.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), top);
    const low = Math.floor(Math.log10(Math.max(1, Math.min(least, window || least))));
    const high = Math.max(low + 1, Math.log10(top * 1.15));
    const y = (n) => y1 - (y1 - y0) * Math.max(0, (Math.log10(Math.max(n, 1)) - low) / (high - low));
    return { y, max: Infinity, ticks: logTicks(low, high) };
  }
  const clipped = chart.scale === "window" && window > 0;
  const max = clipped ? Math.max(window, most(buckets.recorded), most(buckets.sent)) * 1.22 : top * 1.08;
  const y = (n) => y1 - ((y1 - y0) * Math.min(n, max)) / max;
  return { y, max, ticks: linearTicks(max, Math.max(4, Math.round((y1 - y0) / 56))) };
}

function logTicks(low, high) {
  const factors = high - low > 3.5 ? [1] : high - low > 1.8 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let power = low; power <= high; power += 1) {
    for (const f of factors) if (Math.log10(f) + power <= high) ticks.push(f * 10 ** power);
  }
  return ticks;
}

// Returns the left edge of a request's slot.
function slotX(chart, at) {
  const { x0, x1 } = chart.plot;
  return x0 + ((at - chart.lo) / (chart.hi - chart.lo)) * (x1 - x0);
}

// Returns the request at a screen x.
function requestAt(chart, x) {
  const { x0, x1 } = chart.plot;
  const at = chart.lo + Math.floor(((x - x0) / (x1 - x0)) * (chart.hi - chart.lo));
  return Math.max(chart.lo, Math.min(at, chart.hi - 1, chart.model.count - 1));
}

// --- drawing ---

function drawGrid(chart) {
  const { grid } = chart.layers;
  const { x0, x1, y1 } = chart.plot;
  grid.replaceChildren();
  for (const tick of chart.axis.ticks) gridLine(grid, chart.plot, chart.axis.y(tick), short(tick));
  const span = chart.hi - chart.lo;
  const step = Math.max(1, Math.ceil(niceStep(span / Math.max(2, (x1 - x0) / 90))));
  const first = Math.max(1, Math.ceil((chart.lo + 1) / step)) * step;
  const ticks = first > chart.lo + 1 && first - chart.lo > step * 0.6 ? [chart.lo + 1] : [];
  for (let number = first; number <= chart.hi; number += step) ticks.push(number);
  for (const number of ticks) {
    const x = slotX(chart, number - 0.5);
    const place = { x, y: y1 + CHART.gap + CHART.strip + 20, "text-anchor": x > x1 - 24 ? "end" : "middle" };
    svgNode(grid, "text", place, whole(number));
  }
}

function drawSeries(chart, buckets, step) {
  const { layers, plot, axis } = chart;
  const set = (name, d) => layers[name].setAttribute("d", d);
  const inside = buckets.raw.map((n) => (n <= axis.max ? n : null));
  const outside = buckets.raw.map((n) => (n > axis.max ? n : null));
  set("recorded", stepPath(buckets.recorded.map((n) => n || null), plot, step, axis.y));
  set("cached", areaPath(buckets.cached, plot, step, axis.y));
  set("sentArea", areaPath(buckets.sent, plot, step, axis.y));
  set("sent", stepPath(buckets.sent, plot, step, axis.y));
  set("raw", stepPath(inside, plot, step, axis.y));
  set("rawOff", stepPath(outside, plot, step, axis.y));
  set("edits", tickPath(buckets.edits, plot, step));
  set("over", overPath(buckets.over, plot, step));
  set("compacted", compactedPath(buckets.compacted, plot, step, plot.y1 - 4));
  set("compactedBefore", compactedPath(buckets.compactedBefore, plot, step, plot.y0 + 4));
  layers.edits.setAttribute("stroke-width", Math.min(4, Math.max(1.5, step * 0.7)));
}

// Steps, not slopes, because nothing is between two requests. `null` lifts the pen.
function stepPath(values, plot, step, y) {
  let d = "", last = null;
  values.forEach((value, b) => {
    const height = value === null ? null : y(value).toFixed(1);
    const x = (plot.x0 + b * step).toFixed(1);
    if (height !== last) {
      if (last !== null) d += `H${x}`;
      if (height !== null) d += last === null ? `M${x} ${height}` : `V${height}`;
    }
    last = height;
  });
  return last === null ? d : `${d}H${(plot.x0 + values.length * step).toFixed(1)}`;
}

function areaPath(values, plot, step, y) {
  const line = stepPath(values, plot, step, y);
  return line ? `${line}V${plot.y1}H${plot.x0}Z` : "";
}

// A tick for each bucket with edits, full height from a hundred edits on.
function tickPath(edits, plot, step) {
  const bottom = plot.y1 + CHART.gap + CHART.strip;
  const height = (n) => CHART.strip * Math.min(1, 0.4 + 0.3 * Math.log10(n));
  const x = (b) => (plot.x0 + (b + 0.5) * step).toFixed(1);
  const tick = (n, b) => (n > 0 ? `M${x(b)} ${bottom}v-${height(n).toFixed(1)}` : "");
  return edits.map(tick).join("");
}

function overPath(flags, plot, step) {
  const mark = (on, b) => (on ? `M${(plot.x0 + (b + 0.5) * step).toFixed(1)} ${plot.y0 - 2}l-4 -8h8z` : "");
  return flags.map(mark).join("");
}

// A vertical line at each compaction, with a lozenge: at its top for recorded ones, at its bottom for those with ctx.
function compactedPath(flags, plot, step, y) {
  const x = (b) => (plot.x0 + (b + 0.5) * step).toFixed(1);
  const mark = (on, b) => (on ? `M${x(b)} ${plot.y0}V${plot.y1}M${x(b)} ${y - 4}l4 4l-4 4l-4 -4z` : "");
  return flags.map(mark).join("");
}

function drawBounds(chart, buckets) {
  const { layers, plot, axis, model } = chart;
  const { window, limit } = model;
  layers.labels.replaceChildren();
  const line = (name, n) => layers[name].setAttribute("d", n > 0 ? `M${plot.x0} ${axis.y(n)}H${plot.x1}` : "");
  line("window", window);
  line("limit", limit === window ? 0 : limit);
  const label = (x, y, anchor, kind, text) =>
    svgNode(layers.labels, "text", { x, y, "text-anchor": anchor, class: kind }, text);
  const names = [`window ${whole(window)}`, `less reserve ${whole(limit)}`];
  // A label fits between the two lines, unless the scale brings them too close.
  const apart = axis.y(limit) - axis.y(window) > 18;
  const upper = apart || limit === window ? names[0] : names.join(", ");
  if (window > 0) label(plot.x1, axis.y(window) - 6, "end", "on-window", upper);
  if (window > 0 && apart) label(plot.x1, axis.y(limit) - 6, "end", "on-limit", names[1]);
  const peak = buckets.raw.reduce((a, b) => Math.max(a, b), 0);
  if (peak > axis.max) label(plot.x1, plot.y0 - 16, "end", "on-raw", `full history up to ${short(peak)} ↑`);
  label(plot.x0 - 8, plot.y1 + CHART.gap + CHART.strip, "end", "on-strip", "edits");
  label(plot.x0 - 8, plot.y1 + CHART.gap + CHART.strip + 20, "end", "on-strip", "request");
  label(plot.x0 - 8, plot.y0 - 16, "end", "on-strip", "tokens");
}

function drawCursor(chart) {
  const { layers, plot, axis, model, cursor } = chart;
  const shown = model.count > 0 && cursor >= chart.lo && cursor < chart.hi;
  for (const name of ["cursor", "dotRecorded", "dotRaw", "dotSent"]) {
    layers[name].setAttribute("visibility", shown ? "visible" : "hidden");
  }
  if (!shown) return;
  if (!model.recorded[cursor]) layers.dotRecorded.setAttribute("visibility", "hidden");
  const x = slotX(chart, cursor + 0.5);
  layers.cursor.setAttribute("d", `M${x} ${plot.y0}V${plot.y1 + CHART.gap + CHART.strip}`);
  for (const [dot, column] of [[layers.dotRecorded, model.recorded], [layers.dotRaw, model.raw], [layers.dotSent, model.sent]]) {
    dot.setAttribute("cx", x);
    dot.setAttribute("cy", axis.y(column[cursor]));
  }
}

// If the cursor leaves a zoomed view, the view follows.
function moveChartCursor(chart, at) {
  chart.cursor = at;
  const span = chart.hi - chart.lo;
  if (at < chart.lo || at >= chart.hi) setView(chart, at - span / 2, at + span / 2);
  else drawCursor(chart);
}

// --- pointer ---

// A mouse hovers, drags a range and clicks. A finger only moves the cursor, because a drag must still
// scroll the page.
function listenToPointer(chart) {
  const { box } = chart;
  const xOf = (event) => event.clientX - box.getBoundingClientRect().left;
  box.addEventListener("pointermove", (event) => {
    if (chart.press !== null) drawPicked(chart, xOf(event));
    if (chart.model.count) chart.hooks.moved(requestAt(chart, xOf(event)));
  });
  box.addEventListener("pointerdown", (event) => {
    if (!chart.model.count || event.button !== 0) return;
    if (event.pointerType === "mouse") {
      chart.press = xOf(event);
      box.setPointerCapture(event.pointerId);
    }
    chart.hooks.moved(requestAt(chart, xOf(event)));
  });
  box.addEventListener("pointerup", (event) => releasePointer(chart, xOf(event)));
  box.addEventListener("pointercancel", () => releasePointer(chart, chart.press));
}

function drawPicked(chart, x) {
  const { plot, layers, press } = chart;
  const from = Math.max(plot.x0, Math.min(press, x));
  const to = Math.min(plot.x1, Math.max(press, x));
  const width = Math.abs(press - x) > 4 ? Math.max(0, to - from) : 0;
  const place = { x: from, y: plot.y0, width, height: plot.y1 - plot.y0 };
  for (const [name, value] of Object.entries(place)) layers.picked.setAttribute(name, value);
}

function releasePointer(chart, x) {
  const { press } = chart;
  if (press === null) return;
  chart.press = null;
  chart.layers.picked.setAttribute("width", 0);
  if (Math.abs(press - x) <= 4) {
    chart.hooks.opened(requestAt(chart, x));
    return;
  }
  const from = requestAt(chart, Math.min(press, x));
  setView(chart, from, requestAt(chart, Math.max(press, x)) + 1);
}
