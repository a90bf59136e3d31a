// The chart of arms: a share against tokens, one mark per arm, with its name beside it.

const PLOT = { left: 46, right: 14, top: 14, bottom: 28, label: 16 };

// `marks` are {name, kind, x, y, stuck, told}; `x` in tokens, `y` a share. `goal` is a target share, if there is one.
function drawMarks(svg, marks, goal) {
  const width = Math.max(280, Math.floor(svg.parentNode.clientWidth));
  const height = Math.round(Math.min(460, Math.max(300, width * 0.42)));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const box = { x0: PLOT.left, x1: width - PLOT.right, y0: PLOT.top, y1: height - PLOT.bottom };
  const most = Math.max(1, ...marks.map((mark) => mark.x)) * 1.06;
  const scale = {
    x: (n) => box.x0 + (n / most) * (box.x1 - box.x0),
    y: (share) => box.y1 - share * (box.y1 - box.y0),
  };
  drawAxes(svg, box, scale, most);
  const line = goal ? { y: scale.y(goal), name: `${Math.round(goal * 100)}\u00a0% is the goal` } : null;
  if (line) svgNode(svg, "path", { class: "goal", d: `M${box.x0} ${line.y}H${box.x1}` });
  const placed = placeNames(marks, box, scale, line);
  if (line) svgNode(svg, "text", { class: "goal-name", x: box.x0 + 6, y: line.y + 15 }, line.name);
  for (const { mark, x, y, textX, textY, anchor } of placed) {
    if (Math.abs(textY - y) > 6) {
      svgNode(svg, "path", { class: "lead", d: `M${x} ${y}L${anchor === "end" ? textX + 3 : textX - 3} ${textY}` });
    }
    const told = svgNode(svg, "g", {});
    svgNode(told, "title", {}, `${mark.name}: ${mark.told}`);
    drawShape(told, mark.kind, x, y);
    const kind = mark.stuck ? "name stuck" : "name";
    svgNode(told, "text", { class: kind, x: textX, y: textY + 4, "text-anchor": anchor }, mark.name);
  }
}

function drawAxes(svg, box, scale, most) {
  const grid = svgNode(svg, "g", { class: "grid" });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) gridLine(grid, box, scale.y(share), `${Math.round(share * 100)}\u00a0%`);
  for (const n of linearTicks(most, Math.max(3, (box.x1 - box.x0) / 110))) {
    svgNode(grid, "path", { d: `M${scale.x(n)} ${box.y1}v5` });
    svgNode(grid, "text", { x: scale.x(n), y: box.y1 + 20, "text-anchor": "middle" }, short(n));
  }
}

// Kinds differ in shape and in colour.
function drawShape(parent, kind, x, y) {
  if (kind === "preset") {
    svgNode(parent, "rect", { class: `dot ${kind}`, x: x - 5, y: y - 5, width: 10, height: 10 });
  } else if (kind === "recorded") {
    svgNode(parent, "path", { class: `dot ${kind}`, d: `M${x} ${y - 7}l7 7l-7 7l-7-7z` });
  } else {
    svgNode(parent, "circle", { class: `dot ${kind}`, cx: x, cy: y, r: 6 });
  }
}

// Names are placed right of their marks, or left if they do not fit, and moved down until they overlap
// no mark, no other name and neither the goal line nor its label. At the foot of the chart they are
// moved up instead.
function placeNames(marks, box, scale, goal) {
  const spots = marks.map((mark) => ({ mark, x: scale.x(mark.x), y: scale.y(mark.y) }));
  spots.sort((one, two) => one.y - two.y || one.x - two.x);
  const taken = spots.map((spot) => ({ from: spot.x - 7, to: spot.x + 7, y: spot.y, spot }));
  if (goal) {
    taken.push({ from: box.x0, to: box.x0 + goal.name.length * 6.6 + 12, y: goal.y + 11 });
    // A line needs half the distance of a name.
    taken.push({ from: box.x0, to: box.x1, y: goal.y, room: PLOT.label * 0.6 });
  }
  return spots.map((spot) => {
    const width = spot.mark.name.length * 6.6 + 4;
    const sides = [["start", spot.x + 11], ["end", spot.x - 11]].map(([anchor, textX]) => {
      const from = anchor === "end" ? textX - width : textX;
      return { anchor, textX, from, to: from + width, textY: freeY(taken, spot, from, from + width, box) };
    });
    const inside = sides.filter((side) => side.from >= box.x0 && side.to <= box.x1);
    const far = (side) => Math.abs(side.textY - spot.y);
    const best = (inside.length ? inside : sides).reduce((one, two) => (far(two) < far(one) ? two : one));
    taken.push({ from: best.from, to: best.to, y: best.textY });
    return { ...spot, ...best };
  });
}

function freeY(taken, spot, from, to, box) {
  const isFree = (y) => !taken.some((other) => other.spot !== spot
    && Math.abs(other.y - y) < (other.room || PLOT.label) && from < other.to && other.from < to);
  for (let step = 0; step < 30; step += 1) {
    for (const y of [spot.y + step * 4, spot.y - step * 4]) {
      if (y >= box.y0 && y <= box.y1 && isFree(y)) return y;
    }
  }
  return spot.y;
}
