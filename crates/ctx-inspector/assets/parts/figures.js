// Tables of figures, one row per arm.

// A column of numbers; `share` is that of its bar.
function figure(name, value, tell, { fault, share } = {}) {
  const cell = (row) => {
    const n = value(row);
    const missing = n === null || n === undefined;
    const part = share ? share(row) : 0;
    return [el("span", { class: fault && n > 0 ? "no" : null }, missing ? NOTHING : tell(n, row)),
      ...(part > 0 ? [el("span", { class: "share", style: widthOf(part) })] : [])];
  };
  return { name, number: true, kind: share ? "with-bar" : null, value, cell };
}

// Shows a hint if a table is wider than the page.
function tellOfMore(scrolled) {
  const more = scrolled.parentNode.querySelector(".more");
  const observer = new ResizeObserver(() => (more.hidden = scrolled.scrollWidth <= scrolled.clientWidth + 1));
  observer.observe(scrolled);
  observer.observe(scrolled.firstElementChild);
}

// Returns the sums of `ctx stats` in a sentence.
function savedOf({ requests, tokensBefore, tokensSaved, savedUsd, overflowsAvoided }) {
  const priced = typeof savedUsd === "number";
  const tokens = `${plural(Math.abs(tokensSaved), "token")} (${exactPercent(Math.abs(tokensSaved) / Math.max(1, tokensBefore))})`;
  const usd = priced ? ` and ${dollars(Math.abs(savedUsd))}` : "";
  const isSaved = (n) => !(n < 0);
  const lessOrMore = (n) => (isSaved(n) ? "less" : "more");
  const changed = isSaved(tokensSaved) && isSaved(savedUsd)
    ? `${tokens}${usd} saved`
    : `${tokens} ${lessOrMore(tokensSaved)}${priced ? `${usd} ${lessOrMore(savedUsd)}` : ""}`;
  const fitted = overflowsAvoided ? ` ${whole(overflowsAvoided)} were larger than the window before.` : "";
  return `${changed} in ${plural(requests, "request")}.${fitted}`;
}
