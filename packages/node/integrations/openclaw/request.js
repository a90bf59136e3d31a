// What OpenClaw asks for, as parameters of ctx: requests, with their budget for the history, and compactions.

/** Characters per token of a prompt, as estimated by OpenClaw. */
const PER_TOKEN = 4;

/** Returns what ctx gets of the first request of a turn: the whole history with the prompt, and settings. */
export function opening(given, host, context) {
  const { messages, model, prompt: content } = given;
  // Memory searches with the user's newest message, so ctx must get it.
  const prompt = content ? { role: "user", content, timestamp: Date.now() } : undefined;
  const window = hostWindow(given, host, context);
  const settings = {
    model,
    provider: given.runtimeSettings?.model?.provider ?? undefined,
    window: window && Math.min(window, host.window ?? Infinity),
    reserveTokens: reserve(given),
  };
  return { given, history: prompt ? [...messages, prompt] : messages, prompt, window, settings };
}

/** Whether a request is a later one of its turn or retry: only the first has `maxOutputTokens`. */
export function isLater(given) {
  const { limits } = given.runtimeSettings ?? {};
  return limits ? limits.maxOutputTokens == null : !("runtimeContext" in given);
}

/**
 * Returns the tokens of a request besides history and prompt: system prompt and messages of the turn.
 *
 * The budget of a turn's first request is the window minus reserve, system prompt and prompt. The budget
 * of a later request is the window minus the messages of the turn so far, including the prompt.
 */
export function pending(first, given) {
  const { tokenBudget } = first.given;
  const prompt = first.prompt ? Math.ceil(first.prompt.content.length / PER_TOKEN) : 0;
  const free = (first.window ?? 0) - (reserve(first.given) ?? 0) - prompt;
  const system = tokenBudget === undefined ? 0 : Math.max(0, free - tokenBudget);
  if (given === first.given) return system;
  const whole = given.runtimeSettings?.limits?.promptTokenBudget;
  const added = whole && given.tokenBudget ? whole - given.tokenBudget : prompt;
  return system + Math.max(0, added - prompt);
}

/** Returns the parameters of a compaction. */
export function compaction({ customInstructions, force = false, runtimeContext }) {
  const { attempt, maxAttempts } = runtimeContext ?? {};
  const trigger = runtimeContext?.trigger === "overflow" ? "overflow" : "manual";
  return { customInstructions, force, trigger, ...(attempt && { attempt, maxAttempts }) };
}

/** Returns the model's window: as reported by the host, as configured, or derived from the budget. */
function hostWindow(given, { windows }, { config } = {}) {
  const { sessionId, tokenBudget, runtimeSettings } = given;
  const { provider, resolved } = runtimeSettings?.model ?? {};
  const models = config?.models?.providers?.[provider]?.models ?? [];
  const model = models.find(({ id }) => id === (resolved ?? given.model));
  const budget = tokenBudget && tokenBudget + (reserve(given) ?? 0);
  return windows.get(sessionId) ?? model?.contextTokens ?? model?.contextWindow ?? budget;
}

/** Returns the host's reserve for the answer. */
function reserve({ runtimeSettings }) {
  return runtimeSettings?.limits?.maxOutputTokens ?? undefined;
}
