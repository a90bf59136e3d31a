// What stands over the page: the keys, a question, the token, an entry.

const KEYS = [
  ["j k ↓ ↑", "next, previous row"],
  ["PgUp PgDn Home End", "far in a table"],
  ["Enter", "open what is current"],
  ["Esc", "back, or close"],
  ["← →", "previous, next request"],
  ["n p", "next, previous request with edits (in a session)"],
  ["+ −", "zoom the chart"],
  ["j k c", "next, previous entry; copy its text (where one is open)"],
  ["/", "search"],
  ["f", "what is listed (in a request or a compaction)"],
  ["u", "undo a compaction, where its page is open"],
  ["s m", "sessions, memory"],
  ["t", "dark, light, as the system has it"],
  ["?", "these keys"],
];

// A dialog with a title; it goes away with Esc, its button, or a click beside it.
export function openDialog(title, kind, ...children) {
  const id = `dialog-${kind}`;
  const close = el("button", { type: "button", class: "plain close" }, "Close");
  const box = el("dialog", { class: kind, "aria-labelledby": id },
    el("div", { class: "dialog-head" }, el("h2", { id }, title), close),
    ...children);
  close.addEventListener("click", () => box.close());
  box.addEventListener("click", (event) => event.target === box && box.close());
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

export function openKeys() {
  const list = el("dl", { class: "key-list" });
  for (const [keys, told] of KEYS) {
    const caps = keys.split(" ").flatMap((key) => [el("kbd", {}, key), " "]);
    list.append(el("dt", {}, ...caps), el("dd", {}, told));
  }
  openDialog("Keys", "help", list);
}

// Asks, and gives whether the answer was yes. With `token` it asks for the server's token as well,
// and gives what was entered.
export function confirmation(title, told, yes, { token } = {}) {
  return new Promise((answer) => {
    const field = el("input", { type: "password", autocomplete: "off", required: "", id: "token-field" });
    const act = el("button", { type: "submit", class: "act" }, yes);
    const form = el("form", { method: "dialog" },
      el("p", {}, told),
      token ? el("label", { class: "token" }, "Token of the server", field,
        el("span", { class: "note" }, "It was started with it: --token TOKEN, or $CTX_SERVER_TOKEN. The page forgets it when it is closed.")) : null,
      el("div", { class: "tools" }, act));
    const box = openDialog(title, "question", form);
    let given = null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      given = token ? field.value : true;
      box.close();
    });
    box.addEventListener("close", () => answer(given));
    (token ? field : act).focus();
  });
}
