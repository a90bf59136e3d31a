// Values of messages as JSON has them: what ctx gets, while the caller keeps its own objects.

import { InvalidMessage } from "./errors.js";

const isObject = (value) => typeof value === "object" && value !== null;
// JSON leaves these out of objects, and has null for them in lists.
const isLeftOut = (value) => value === undefined || typeof value === "function" || typeof value === "symbol";

/** Returns one value as JSON has it; the parts of an object or array are still those of the caller. */
function plain(value) {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "bigint") return String(value);
  if (!isObject(value)) return value;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return Buffer.from(value.buffer ?? value, value.byteOffset, value.byteLength).toString("base64");
  }
  return typeof value.toJSON === "function" ? value.toJSON() : value;
}

function copy(value, texts, name) {
  const given = plain(value);
  if (typeof given === "string" && isObject(value)) texts?.set(given, { ...texts.get(given), [name]: value });
  if (!isObject(given)) return given;
  if (Array.isArray(given)) return Array.from(given, (x) => (isLeftOut(x) ? null : copy(x, texts, name)));
  const fields = Object.entries(given).filter(([, item]) => !isLeftOut(item));
  return Object.fromEntries(fields.map(([key, item]) => [key, copy(item, texts, key)]));
}

/**
 * Returns a copy of a value that later changes of the value do not reach. `texts` receives the caller's
 * bytes and URLs, by their text and the name of their field.
 */
export function copied(value, texts) {
  try {
    return copy(value, texts);
  } catch (error) {
    const hint = "messages are plain objects, lists, strings and numbers";
    throw new InvalidMessage(`a message cannot be written as JSON: ${error.message}`, "invalidInput", hint);
  }
}

/** Whether a value still equals its copy. This is called for all messages, so it makes no objects. */
export function same(one, value) {
  if (one === value) return true;
  if (Array.isArray(one) && Array.isArray(value)) return sameList(one, value);
  const given = plain(value);
  if (!isObject(one) || !isObject(given)) return one === given || (one === null && isLeftOut(given));
  if (Array.isArray(one) || Array.isArray(given)) return Array.isArray(given) && sameList(one, given);
  let more = 0;
  for (const key in given) {
    const item = given[key];
    if (isLeftOut(item)) continue;
    if (one[key] !== item && !same(one[key], item)) return false;
    more += 1;
  }
  for (const _ in one) more -= 1;
  return more === 0;
}

function sameList(one, list) {
  return one.length === list.length && one.every((item, n) => same(item, list[n]));
}

/** Puts the caller's own bytes and URLs in place of their texts. */
export function revive(value, texts, name) {
  for (const [key, item] of Object.entries(value)) {
    const field = Array.isArray(value) ? name : key;
    if (isObject(item)) revive(item, texts, field);
    else value[key] = texts.get(item)?.[field] ?? item;
  }
}
