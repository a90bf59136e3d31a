// Warnings for the user.

/** Returns a function that passes each text on once. */
export function once(warn) {
  const seen = new Set();
  return (text) => {
    if (!seen.has(text)) warn(text);
    seen.add(text);
  };
}
