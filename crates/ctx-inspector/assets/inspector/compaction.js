// One compaction: its receipt, its summary, what it removed and where that is now, and undo.

import { compactionAt, crumbs, requestAt, sessionAt, stay } from "./address.js";
import { Refused, ask, path, post, withQuery } from "./api.js";
import { makeOver } from "./entry.js";
import { progressOf } from "./session.js";

const FATES = {
  "": "All facts",
  lost: "Lost",
  summary: "In the summary",
  kept: "In kept messages",
};

const MARKS = { lost: "✕ lost", summary: "✓ summary", kept: "✓ kept" };

// The token is kept in memory, until the page is closed.
let token = null;

export function showCompaction(root, { id, compaction, query, entry, server, signal }) {
  document.title = "Compaction · ctx inspector";
  const view = { id, compaction, server, signal, root, session: null, diff: null, table: null, paged: null, ...listIn(query), said: "" };
  view.over = makeOver({
    session: id,
    address: (entry) => compactionAt(id, compaction, { part: view.part === "facts" ? null : view.part, fate: view.fate }, entry),
    step: async (by) => (view.table ? (await rowBeside(view.table, view.paged, by))?.entry : null),
  });
  root.append(working("Reading the compaction …"));
  open(view).then(() => entry && view.diff && view.over.show(entry));
  return {
    back: sessionOf(view),
    keys: () => ({ ...(view.table ? tableKeys(view.table) : {}), ...keysOf() }),
    goto: (asked) => view.diff && go(view, asked),
    heard: (kind) => kind !== "sessions" && look(view),
  };
}

// The selected list: all facts, those of one fate, or messages.
function listIn(query) {
  const fate = query.get("fate") || "";
  const part = query.get("part") === "removed" ? "removed" : "facts";
  return { part, fate: part === "facts" && Object.hasOwn(FATES, fate) ? fate : "" };
}

function go(view, { query, entry }) {
  const { part, fate } = listIn(query);
  if (part !== view.part || fate !== view.fate) {
    document.querySelector(`input[name=diff][value="${part}/${fate}"]`).checked = true;
    choose(view, part, fate);
  }
  view.over.show(entry);
}

function keysOf() {
  return {
    f: () => document.querySelector("input[name=diff]:checked")?.focus(),
    u: () => document.querySelector(".bar .act")?.click(),
  };
}

function sessionOf(view) {
  return sessionAt(view.id);
}

async function open(view) {
  const { root, signal } = view;
  try {
    const row = await read(view, (progress) => root.replaceChildren(progressOf(progress)));
    view.diff = await ask(diffUrl(view, { part: view.part, fate: view.fate }), { signal });
    draw(view, row);
  } catch (error) {
    if (error.name !== "AbortError") root.replaceChildren(crumbs(sessionOf(view), view.session?.title), failed(error, () => open(view)));
  }
}

async function read(view, working) {
  const far = Number.MAX_SAFE_INTEGER;
  view.session = await ask(withQuery(path`sessions/${view.id}`, { from: far }), { signal: view.signal, working });
  const row = view.session.compactions.find((one) => one.id === view.compaction);
  if (!row) throw new Refused(404, { message: "unknown compaction", hint: "the session may have been rewritten; it lists its compactions" });
  return row;
}

// Reads the compaction again, which another client may have undone. If nothing changed, the page stays
// as it is, because the user may be reading it.
async function look(view) {
  if (!view.diff || document.querySelector("dialog[open]")) return;
  try {
    if (JSON.stringify(await read(view)) !== view.drawn) await open(view);
  } catch (error) {
    if (error.name !== "AbortError") open(view);
  }
}

function diffUrl(view, asked) {
  return withQuery(path`sessions/${view.id}/compactions/${view.compaction}/diff`, asked);
}

// --- drawing ---

function draw(view, row) {
  const { diff, root } = view;
  view.drawn = JSON.stringify(row);
  const before = row.number ? `before request ${whole(row.number)}` : "after the last request";
  const open = row.number
    ? el("a", { class: "button", href: requestAt(view.id, row.number) }, `Open request ${whole(row.number)}`)
    : null;
  const parts = [
    crumbs(sessionOf(view), view.session?.title),
    el("div", { class: "bar" },
      el("h1", {}, `Compaction ${before}`, row.undone ? el("span", { class: "badge" }, "undone") : null),
      el("div", { class: "tools" }, open, undoOf(view, row))),
    el("p", { class: "facts" }, compactionHead(row), row.receipt ? "" : ` · by ${word(MAKERS, row.by)}`),
    troubleOf(row.summarised) ? el("p", { class: "warning" }, troubleOf(row.summarised)) : null,
    undoNote(view, row),
    row.receipt ? receiptOf(row.receipt) : el("p", { class: "quiet" }, "No receipt: ctx did not make this compaction."),
    el("section", { "aria-labelledby": "summary-title" },
      el("h2", { id: "summary-title" }, "The summary"),
      summaryOf(diff.summary, (line) => why(view, line)),
      el("p", { id: "why", class: "note", role: "status" })),
    diffOf(view),
  ];
  root.replaceChildren(...parts.filter(Boolean));
}

// Opens the message that a line of the summary comes from.
async function why(view, line) {
  const url = withQuery(path`sessions/${view.id}/compactions/${view.compaction}/why`, { line });
  const note = byId("why");
  try {
    const { lines } = await ask(url, { signal: view.signal });
    const source = lines[0]?.sources[0];
    note.textContent = !source ? "Nothing in the original messages supports this line."
      : source.support === "cited" ? "The line cites this message, but its words are not in it." : "";
    if (source) view.over.open(source.entry);
  } catch (error) {
    if (error.name !== "AbortError") note.replaceChildren(failed(error));
  }
}

function diffOf(view) {
  const { diff } = view;
  const tokens = plural(diff.removedTokens, "token");
  const count = (fate) => diff.fates[fate] || 0;
  const all = count("lost") + count("summary") + count("kept");
  const choice = (value, name, n) => {
    const [part, fate] = value.split("/");
    const radio = el("input", { type: "radio", name: "diff", value });
    radio.checked = part === view.part && (fate || "") === view.fate;
    radio.addEventListener("change", () => choose(view, part, fate || ""));
    return el("label", {}, radio, el("span", {}, `${name} (${whole(n)})`));
  };
  const section = el("section", { "aria-labelledby": "diff-title" },
    el("div", { class: "bar" }, el("h2", { id: "diff-title" }, "What was removed"),
      el("p", { class: "matches" }, `${plural(diff.removedMessages, "message")}, ${tokens}`)),
    el("fieldset", { class: "segments wrap" }, el("legend", { class: "hidden" }, "Listed"),
      choice("facts/", FATES[""], all),
      ...["lost", "summary", "kept"].map((fate) => choice(`facts/${fate}`, FATES[fate], count(fate))),
      choice("removed/", "Messages", diff.removedMessages)),
    el("div", { id: "diff-list" }));
  queueMicrotask(() => list(view, diff));
  return section;
}

async function choose(view, part, fate) {
  Object.assign(view, { part, fate });
  stay(view.over.address(null));
  try {
    const diff = await ask(diffUrl(view, { part, fate }), { signal: view.signal });
    if (part === view.part && fate === view.fate) list(view, diff);
  } catch (error) {
    if (error.name !== "AbortError") byId("diff-list").replaceChildren(failed(error));
  }
}

function list(view, diff) {
  const isFacts = view.part === "facts";
  const rowsOf = (page) => (isFacts ? page.facts : page.removed) || [];
  if (!diff.matching) {
    view.table = null;
    const note = isFacts && diff.note ? sentence(diff.note) : isFacts ? "No facts." : "No message was removed.";
    byId("diff-list").replaceChildren(nothing(note));
    return;
  }
  const load = async (from, count) => {
    const page = await ask(diffUrl(view, { part: view.part, fate: view.fate, from, count }), { signal: view.signal });
    return { rows: rowsOf(page), total: page.matching };
  };
  const paged = pagedRows(load, (error) => (error ? say(error.message) : remake(view.table)));
  paged.reset(rowsOf(diff), diff.matching);
  view.paged = paged;
  view.table = isFacts ? factTable(view, paged) : removedTable(view, paged);
  byId("diff-list").replaceChildren(view.table.box);
  setCount(view.table, diff.matching);
}

function factTable(view, paged) {
  return makeTable({
    caption: "Facts of the removed messages, most important first, and where each is now.",
    kind: "facts-list",
    columns: [{ name: "Fact", kind: "c-fact" }, { name: "Kind", kind: "c-kind" }, { name: "Now", kind: "c-now" }, { name: "Where", kind: "c-where" }],
    need: paged.need,
    cells: (at) => {
      const fact = paged.at(at);
      if (!fact) return null;
      const where = fact.survives.in === "summary" ? fact.survives.line : fact.survives.in === "kept" ? `in ${fact.survives.entry}` : "in the transcript only";
      return [
        words(fact.text),
        word(KINDS, fact.kind),
        el("span", { class: fact.survives.in === "lost" ? "fate lost" : "fate" }, word(MARKS, fact.survives.in)),
        words(where),
      ];
    },
    opened: (at) => paged.at(at) && view.over.open(paged.at(at).entry),
  });
}

function removedTable(view, paged) {
  return makeTable({
    caption: "Removed messages, oldest first. The button of a row opens the text.",
    kind: "removed-list",
    columns: [{ name: "Entry", kind: "c-entry" }, { name: "Begins", kind: "c-begins" }, { name: "Tokens", kind: "c-tokens", number: true }],
    need: paged.need,
    cells: (at) => {
      const message = paged.at(at);
      if (!message) return null;
      return [
        entryName(message.role, message.entry, message.begins),
        words(message.begins, "no text"),
        whole(message.tokens),
      ];
    },
    opened: (at) => paged.at(at) && view.over.open(paged.at(at).entry),
  });
}

// --- undo ---

function undoOf(view, row) {
  if (!row.canUndo || !view.server.writes) return null;
  return buttonOf(row.undone ? "Put in force again" : "Undo", () => undo(view, row), { class: "act" });
}

function undoNote(view, row) {
  const note = row.by === "agent" || row.by === "extension"
    ? ["The agent made this compaction. The replayed requests ignore it: they contain all messages."]
    : !row.stored
    ? ["The replay made this compaction. Nothing is stored, so there is nothing to undo."]
    : !row.canUndo
      ? ["This compaction cannot be undone."]
      : view.server.writes
        ? null
        : ["This server is read-only. To undo compactions here, start it with a token of your choice: ",
          el("code", {}, "--token TOKEN"), ", or ", el("code", {}, "$CTX_SERVER_TOKEN"), "."];
  return note ? el("p", { class: "note readonly" }, ...note) : el("p", { id: "undone", role: "status" }, view.said);
}

async function undo(view, row) {
  const title = row.undone ? "Put this compaction in force again?" : "Undo this compaction?";
  const effect = row.undone
    ? "From the next request on, the summary replaces its messages again."
    : "From the next request on, the messages are sent instead of the summary. Nothing is deleted: the compaction can be put in force again.";
  const given = await confirmation(title, effect, row.undone ? "Put in force" : "Undo", { token: token === null });
  if (given === null) return;
  if (token === null) token = given;
  const box = byId("undone");
  try {
    const done = await post(path`sessions/${view.id}/compactions/${row.id}/undo`, token);
    view.said = !done.undone ? sentence(done.reason || "nothing was done") : done.redone ? "The compaction is in force again." : "The compaction is undone.";
    say(view.said);
    await open(view);
  } catch (error) {
    if (error.status !== 403) {
      box.replaceChildren(failed(error));
      return;
    }
    token = null;
    box.replaceChildren(failed(new Refused(403, {
      message: "Wrong token: nothing was changed",
      hint: "Enter the token that the server was started with: --token TOKEN, or $CTX_SERVER_TOKEN",
    })));
  }
}

// Asks for a confirmation. Returns true, or with `token` the server's token that the user entered;
// null if the user closed the dialog.
function confirmation(title, text, yes, { token } = {}) {
  return new Promise((answer) => {
    const field = el("input", { type: "password", autocomplete: "off", required: "", id: "token-field" });
    const act = el("button", { type: "submit", class: "act" }, yes);
    const form = el("form", { method: "dialog" },
      el("p", {}, text),
      token ? el("label", { class: "token" }, "Token of the server", field,
        el("span", { class: "note" }, "As given to the server: --token TOKEN, or $CTX_SERVER_TOKEN. The page does not store it.")) : null,
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
