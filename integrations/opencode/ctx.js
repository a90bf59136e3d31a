// Puts back what opencode's compactions lost, and recalls earlier sessions. It needs `ctx` on the search
// path, or its path in $CTX_BIN.

import { spawn } from "node:child_process";

/** Sends an event to `ctx hook`. Returns the text for the context; an error is logged and changes nothing. */
const hook = (event, log) =>
  new Promise((done) => {
    const child = spawn(process.env.CTX_BIN ?? "ctx", ["hook"], { timeout: 20_000 });
    let [said, failed] = ["", ""];
    child.stdout.on("data", (data) => (said += data));
    child.stderr.on("data", (data) => (failed += data));
    child.stdin.on("error", () => {});
    child.on("error", (error) => (failed += error.message));
    child.on("close", (code) => {
      if (code !== 0) log(`ctx hook: ${failed}`);
      done(said && code === 0 ? JSON.parse(said).hookSpecificOutput?.additionalContext : undefined);
    });
    child.stdin.end(JSON.stringify(event));
  });

export const ctx = async ({ client }) => {
  const log = (message) => client.app.log({ body: { service: "ctx", level: "warn", message } }).catch(() => {});
  // The losses of each summary, by the id of its message: a request must not differ from the one before.
  const lost = new Map();
  const part = (like, text) => ({ ...like, id: `${like.id}c`, type: "text", synthetic: true, text });

  return {
    "experimental.session.compacting": async ({ sessionID }) => {
      await hook({ hook_event_name: "session.compacting", session_id: sessionID }, log);
    },
    "experimental.chat.messages.transform": async (_, { messages }) => {
      const summary = messages.findLast(({ info }) => info.summary === true && info.finish && !info.error);
      if (!summary) return;
      const { id, sessionID } = summary.info;
      if (!lost.has(id)) lost.set(id, hook({ hook_event_name: "session.compacted", session_id: sessionID }, log));
      const [text, last] = [await lost.get(id), summary.parts.findLast(({ type }) => type === "text")];
      if (text && last) summary.parts.push(part({ id: last.id, messageID: id, sessionID }, text));
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const prompt = parts.flatMap(({ type, synthetic, text }) => (type === "text" && !synthetic ? [text] : []));
      const event = { hook_event_name: "chat.message", session_id: sessionID, prompt: prompt.join("\n") };
      const [text, last] = [await hook(event, log), parts.at(-1)];
      if (text && last) parts.push(part({ id: last.id, messageID: message.id, sessionID }, text));
    },
  };
};
