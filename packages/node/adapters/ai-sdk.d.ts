import type { LanguageModelMiddleware, PrepareStepFunction } from "ai";

import type { AdapterOptions } from "../src/index.js";

type TransformCall = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0];

/**
 * A middleware for `wrapLanguageModel`: the model gets the messages that fit. By default the
 * conversation is `providerOptions.ctxkeep.session` of the call.
 */
export function contextMiddleware(options: AdapterOptions<TransformCall>): LanguageModelMiddleware;

/**
 * Returns a `prepareStep` for `generateText`, `streamText` and agents, for models without the middleware.
 * It does not see the tools: the option `tools` counts their schemas.
 */
export function contextStep(
  options: AdapterOptions<Parameters<PrepareStepFunction<any>>[0]>,
): PrepareStepFunction<any>;
