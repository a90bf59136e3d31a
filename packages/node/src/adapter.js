// What all adapters share.

import { createHash } from "node:crypto";

import { ContextKeeper } from "./index.js";

/**
 * Returns a function that fits messages for a call of the framework: its keeper is `keeper`, or a new
 * one with the other options. Its conversation is `session`, or what `session` or else `byDefault` returns
 * for the call; without any, it is found by the first message of the user.
 */
export function fitter({ keeper, session, ...options }, format, byDefault = () => undefined) {
  const kept = keeper ?? new ContextKeeper({ format, ...options });
  const named = (call) => (typeof session === "function" ? session(call) : session) ?? byDefault(call);
  return (call, messages, more) =>
    kept.fitOrKeep(messages, { session: named(call) ?? opening(messages), ...more });
}

function opening(messages) {
  const first = messages.find(({ role }) => role === "user");
  // Parts may have fields that differ from call to call.
  const text = [first?.content].flat().map((part) => part?.text ?? String(part)).join("\n");
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
