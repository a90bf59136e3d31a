// The errors of this package.

/** An error that ctx returned, or the reason why it returned nothing. */
export class CtxError extends Error {
  /**
   * @param {string} message
   * @param {string} [kind] one of the kinds of docs/rpc.md
   * @param {string} [hint] what to do next
   */
  constructor(message, kind = "protocol", hint) {
    super(hint ? `${message} (${hint})` : message);
    Object.assign(this, { name: new.target.name, kind, hint });
  }
}

/** The program `ctx` cannot be started. */
export class NotInstalled extends CtxError {}

/** The program `ctx` speaks another protocol than this package. */
export class WrongVersion extends CtxError {}

/** The process ended during a call. */
export class Gone extends CtxError {}

/** The process did not answer within the deadline. */
export class Timeout extends CtxError {}

/** A message is not JSON, or not a message of the format. */
export class InvalidMessage extends CtxError {}

/** The system prompt, the tools or the newest message leave no room, or new messages are over 64 MiB. */
export class TooLarge extends CtxError {}

const TOO_LARGE = ["windowTooSmall", "systemPromptTooLarge", "overflow"];

/** Returns the exception for the `error` of an answer. */
export function ofAnswer({ message = "unknown error", data }) {
  const kind = data?.kind ?? "protocol";
  if (kind === "invalidInput") return new InvalidMessage(message, kind, data.hint);
  return new (TOO_LARGE.includes(kind) ? TooLarge : CtxError)(message, kind, data?.hint);
}
