// Converts OpenClaw's budget for the history to the values of ctx.

/** Characters per token of a prompt, as estimated by OpenClaw. */
const PER_TOKEN = 4;

/** Records the size of the window, and the key of each session. */
export function note({ windows, keys }, { sessionId, sessionKey, runtimeContext, runtimeSettings }) {
  const { maxOutputTokens, promptTokenBudget } = runtimeSettings?.limits ?? {};
  const whole = maxOutputTokens == null ? promptTokenBudget : undefined;
  const window = runtimeContext?.tokenBudget ?? whole;
  if (window > 0) remember(windows, sessionId, window);
  if (sessionKey) remember(keys, sessionKey, sessionId);
}

function remember(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > 1_000) map.delete(map.keys().next().value);
}

/** Returns the host's reserve for the answer. */
export function reserve({ runtimeSettings }) {
  return runtimeSettings?.limits?.maxOutputTokens ?? undefined;
}

/** Returns the model's window: as reported by the host, as configured, or derived from the budget. */
export function hostWindow(given, host, { config } = {}) {
  const { sessionId, tokenBudget, runtimeSettings } = given;
  const { provider, resolved } = runtimeSettings?.model ?? {};
  const models = config?.models?.providers?.[provider]?.models ?? [];
  const model = models.find(({ id }) => id === (resolved ?? given.model));
  const budget = tokenBudget && tokenBudget + (reserve(given) ?? 0);
  return host.windows.get(sessionId) ?? model?.contextTokens ?? model?.contextWindow ?? budget;
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
