/** Keeps the conversations of an agent inside the window of its model, with ctx. */

/** The format of messages: chat completions, the Responses API, and so on. */
export type Format = "openai" | "responses" | "anthropic" | "gemini" | "ai-sdk" | "pi";

export interface KeeperOptions {
  /** The model, for its window; null if each call of `fit` names it. */
  model?: string | null;
  /** The window of the model in tokens: needed only for a model that ctx does not know. */
  window?: number;
  /** Default: `openai`; each adapter has its own. */
  format?: Format;
  /** The binary; default: `$CTX_BIN`, else the one that came with the package, else `ctx` on the PATH. */
  program?: string;
  /** Additional environment variables, such as `CTX_HOME`. */
  env?: Record<string, string>;
  /** The timeout of a call in milliseconds; default: 300,000; at most 2,147,483,647. */
  timeout?: number;
  /** The least recently used conversations without a call are closed beyond this number; default: 1,000. */
  maxSessions?: number;
  /** Called with warnings for the user; by default each is a warning of the process, once. */
  onWarning?: (text: string) => void;
  /** Further parameters of `open` in docs/rpc.md, such as `config`, `summaryModel`, `agent`, `tools`. */
  [parameter: string]: unknown;
}

/** Parameters of `open` in docs/rpc.md that differ from those of the keeper: the session is opened again. */
export interface OpenOptions {
  model?: string;
  provider?: string;
  window?: number;
  /** The tokens kept free for the answer. */
  reserveTokens?: number;
}

export interface FitOptions extends OpenOptions {
  /** The caller's own id of each message, or null; summaries cite them. */
  ids?: (string | null)[];
  /** The system prompt: counted, and not changed. */
  system?: unknown;
  /** The schemas of the tools: counted, and not changed. */
  tools?: unknown;
  /** The size of what the caller adds to the request. */
  pendingTokens?: number;
  signal?: AbortSignal;
}

export interface SessionOption {
  /** The id of the conversation, as text; default: `default`. */
  session?: string | number | bigint;
}

export interface Edit {
  entry: string;
  layer: string;
  action: string;
  before: number;
  after: number;
  reason: string;
  [field: string]: unknown;
}

export interface Compaction {
  summary: string;
  firstKeptEntryId?: string;
  tokensBefore: number;
  tokensAfter?: number;
  details?: unknown;
  [field: string]: unknown;
}

export class Fitted<M = object> {
  /** The messages to send. Unchanged ones are the caller's own objects. */
  messages: M[];
  /** For each message its index in the caller's list, or undefined for a new message. */
  own: (number | undefined)[];
  ids: string[];
  /** Text to append to the system prompt. */
  systemAddition?: string;
  /** The size of the request, and its maximum. */
  tokens: number;
  limit: number;
  /** The tokens at the beginning that equal those of the request before. */
  unchangedPrefix: number;
  /** What changed something in this request, and the changes. */
  acted: string[];
  edits: Edit[];
  compactions: Compaction[];
  warnings: string[];
  /** Whether the messages to send differ from the given ones. */
  changed: boolean;
  /** Returns a framework's messages: its own where they are unchanged, and `made` of the new ones. */
  restored<T>(messages: readonly T[], made: (message: M) => T): T[];
}

export class Session {
  readonly id: string;
  /** The last compaction. */
  receipt?: Compaction;
  /** The changes of the last request. */
  manifest: Edit[];
  /**
   * Returns the messages to send for a conversation: all of them, if they fit. `messages` is the whole
   * conversation, oldest first. Only what changed since the last call is sent to ctx.
   */
  fit<M extends object>(messages: Iterable<M>, options?: FitOptions): Promise<Fitted<M>>;
  /** Sends the whole conversation without making a request. Returns the id of each message. */
  sync(
    messages: Iterable<object>,
    options?: OpenOptions & { ids?: (string | null)[]; isHeartbeat?: boolean },
  ): Promise<string[]>;
  /** Compacts the conversation as it was sent last; the next request has the summary. */
  compact(options?: {
    instructions?: string;
    force?: boolean;
    tokenBudget?: number;
    trigger?: "manual" | "overflow" | "threshold";
    signal?: AbortSignal;
  }): Promise<{
    ok: boolean;
    compacted: boolean;
    reason?: string;
    result?: Compaction;
    [field: string]: unknown;
  }>;
  /** Undoes the last compaction. Returns whether there was one. */
  undo(): Promise<boolean>;
  /** Returns the original text of messages by id, as a summary names them. */
  expand(ids: string | string[]): Promise<Record<string, string | null>>;
  /** Returns excerpts of messages that the last request does not have. */
  recall(query: string): Promise<string[]>;
  /** Reports the provider's count for the last request, which corrects ctx's counts. */
  usage(promptTokens: number): Promise<number>;
  /** Returns how full the conversation is; see `status` in docs/rpc.md. */
  status(): Promise<{ tokens: number; limit: number; messages: number; [field: string]: unknown }>;
  /** Makes any other call of docs/rpc.md, if ctx has the conversation; otherwise returns undefined. */
  tell(method: string, params?: object): Promise<any>;
  /** Ends the session in ctx. */
  close(): Promise<void>;
}

export class ContextKeeper implements AsyncDisposable {
  constructor(options: KeeperOptions);
  /** Returns the conversation with that id. */
  session(id?: string | number | bigint): Session;
  /** Returns the messages to send; see `Session.fit`. */
  fit<M extends object>(messages: Iterable<M>, options?: FitOptions & SessionOption): Promise<Fitted<M>>;
  /** Like `fit`, but returns undefined, with a warning, if ctx fails: the messages stay as they are. */
  fitOrKeep<M extends object>(
    messages: Iterable<M>,
    options?: FitOptions & SessionOption,
  ): Promise<Fitted<M> | undefined>;
  /** Ends the process. The next call starts another one. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The options of an adapter: a keeper, or those of a new one. */
export type AdapterOptions<Call> = Omit<KeeperOptions, "format"> & {
  keeper?: ContextKeeper;
  /** The id of the conversation, or a function that returns it for a call of the framework. */
  session?: string | ((call: Call) => string | undefined);
};

/** An error that ctx returned, or the reason why it returned nothing. */
export class CtxError extends Error {
  constructor(message: string, kind?: string, hint?: string);
  /** One of the kinds of docs/rpc.md. */
  readonly kind: string;
  /** What to do next. */
  readonly hint?: string;
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
