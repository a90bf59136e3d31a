// How much room OpenClaw leaves for the history, in the numbers of ctx.

/** Characters of a prompt for a token, as OpenClaw estimates it. */
const PER_TOKEN = 4;

/** What the host keeps free for the answer. */
export function reserve({ runtimeSettings }) {
  return runtimeSettings?.limits?.maxOutputTokens ?? undefined;
}

/** The model's window: as the host said before, as it is configured, or as the budget has it. */
export function hostWindow(given, host, { config } = {}) {
  const { sessionId, tokenBudget, runtimeSettings } = given;
  const { provider, resolved } = runtimeSettings?.model ?? {};
  const models = config?.models?.providers?.[provider]?.models ?? [];
  const model = models.find(({ id }) => id === (resolved ?? given.model));
  const budget = tokenBudget && tokenBudget + (reserve(given) ?? 0);
  return host.windows.get(sessionId) ?? model?.contextTokens ?? model?.contextWindow ?? budget;
}

/**
 * What a request holds besides history and prompt: the system prompt, and what the turn has added.
 *
 * The budget of a turn's first request is the window less reserve, system prompt and prompt. That of a
 * later one is the window less what the turn has added so far, the prompt included.
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
