import type { CallModelInputFilter, CallModelInputFilterArgs } from "@openai/agents";

import type { AdapterOptions } from "../src/index.js";

/** Sends the items that fit. `session` is a function of the filter's arguments, such as its `context`. */
export function contextFilter(
  options: AdapterOptions<CallModelInputFilterArgs<any>>,
): CallModelInputFilter<any>;
