// Shared by the charts: elements of SVG, and axes.

// The namespace is read from an element, so that a page contains no URL at all.
function svgRoot(attributes) {
  return withAttributes(document.createElementNS(byId("plain-svg").namespaceURI, "svg"), attributes);
}

function svgNode(parent, tag, attributes, text) {
  const node = withAttributes(document.createElementNS(parent.namespaceURI, tag), attributes);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function withAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const factor = [1, 2, 2.5, 5, 10].find((f) => f * power >= rough) || 10;
  return factor * power;
}

function linearTicks(max, wanted) {
  const step = niceStep(max / wanted);
  const ticks = [];
  for (let n = 0; n <= max; n += step) ticks.push(n);
  return ticks;
}

// A horizontal line of the grid, with its name on the left.
function gridLine(grid, { x0, x1 }, y, name) {
  svgNode(grid, "path", { d: `M${x0} ${y}H${x1}` });
  svgNode(grid, "text", { x: x0 - 8, y: y + 4, "text-anchor": "end" }, name);
}
