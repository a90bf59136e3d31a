// The entries of pi's session file that messages are from.

/** Returns the messages that pi would send, and the entry of each. */
export function projection(manager) {
  const parts = manager.buildSessionProjection().entries.flatMap((entry) =>
    entry.messages.map((message) => ({ message, source: entry.sourceEntry.id })),
  );
  const sent = parts.filter(({ message }) => message.role !== "system");
  return { sources: sent.map(({ source }) => source), messages: sent.map(({ message }) => message) };
}

/** Returns the entry ids if pi sends its session's messages: summaries then cite entries of its file. */
export function entryIds(manager, messages) {
  const known = projection(manager);
  const isSame = ({ role, timestamp }, n) =>
    role === known.messages[n]?.role && timestamp === known.messages[n]?.timestamp;
  return messages.every(isSame) ? firsts(known.sources.slice(0, messages.length)) : undefined;
}

/** Returns the source of each message; null for all but the first message of an entry. */
export function firsts(sources) {
  const seen = new Set();
  return sources.map((source) => {
    if (seen.has(source)) return null;
    seen.add(source);
    return source;
  });
}
