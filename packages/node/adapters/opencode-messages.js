// opencode's messages, as those of the AI SDK and back.

// What opencode sends for these parts.
const SAID = { compaction: "What did we do so far?", subtask: "The following tool was executed by the user" };

/** Returns the AI SDK's messages for one of opencode's. Each result of a tool is one. */
export function converted(of) {
  const { info, parts } = of;
  const content = parts.flatMap(info.role === "user" ? ofUser : ofAssistant);
  // opencode does not send failed answers.
  if (content.length === 0 || (info.error && info.error.name !== "MessageAbortedError")) return [];
  const results = parts.filter(({ type }) => type === "tool");
  return [
    { of, message: { role: info.role, content } },
    ...results.map((part) => ({ of, part, message: { role: "tool", content: [resultOf(part)] } })),
  ];
}

function ofUser({ type, text = SAID[type], ignored, mime, url, filename }) {
  if (text && !ignored) return { type: "text", text };
  // The text of files and folders is in parts of its own.
  const isSent = type === "file" && mime !== "text/plain" && mime !== "application/x-directory";
  return isSent ? { type, mediaType: mime, data: url, filename } : [];
}

function ofAssistant({ type, text, metadata, callID, tool, state }) {
  if (type === "text" && text) return { type, text };
  if (type === "reasoning") return { type, text, providerOptions: metadata };
  return type === "tool" ? { type: "tool-call", toolCallId: callID, toolName: tool, input: state.input } : [];
}

function resultOf({ callID, tool, state: { output, error = "interrupted", metadata, attachments = [] } }) {
  const text = output ?? ((metadata?.interrupted && metadata.output) || error);
  const value = [{ type: "text", text }, ...attachments.flatMap(ofUser)];
  const written = value.length > 1 ? { type: "content", value } : { type: "text", value: text };
  return { type: "tool-result", toolCallId: callID, toolName: tool, output: written };
}

/** Returns opencode's messages to send: its own, copies with shortened results, and new texts. */
export function restored({ messages, own }, given, like) {
  const [sent, results] = [new Set(), new Map()];
  let next = 0;
  messages.forEach((message, n) => {
    const isOf = (one, at) => at >= next && callOf(one.message) && callOf(one.message) === callOf(message);
    const at = own[n] ?? given.findIndex(isOf);
    if (at < 0) return sent.add(inserted(message, like));
    next = at + 1;
    const { of, part } = given[at];
    sent.add(of);
    if (part) results.set(part, own[n] === undefined ? shortened(part, message) : part);
  });
  return [...sent].map((of) => {
    const parts = of.parts.flatMap((part) => (part.type === "tool" ? (results.get(part) ?? []) : part));
    const isSame = parts.length === of.parts.length && parts.every((part, n) => part === of.parts[n]);
    return isSame ? of : { ...of, parts };
  });
}

function callOf({ role, content }) {
  const { toolCallId } = [content].flat().find((part) => part.toolCallId) ?? {};
  return toolCallId && `${role} ${toolCallId}`;
}

function shortened(part, { content: [{ output: { value } }] }) {
  const text = typeof value === "string" ? value : value.map((piece) => piece.text ?? "").join("\n");
  const attachments = typeof value === "string" ? [] : part.state.attachments;
  const metadata = { ...part.state.metadata, output: text };
  // opencode reads the field that belongs to the status.
  return { ...part, state: { ...part.state, output: text, error: text, metadata, attachments } };
}

function inserted({ role, content }, like) {
  const [id, sessionID] = [`${like.id}c`, like.sessionID];
  const parts = content.map(({ type, text, mediaType: mime, data: url }) => {
    return { id, messageID: id, sessionID, synthetic: true, type, text, mime, url };
  });
  return { info: { ...like, id, role }, parts };
}
