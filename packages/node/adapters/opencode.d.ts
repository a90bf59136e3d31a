import type { Plugin } from "@opencode-ai/plugin";

/**
 * A plugin for opencode and clients with its plugins. Its options are those of `ContextKeeper`; by default
 * the window is what opencode leaves to prompts of the model in use. The conversation is opencode's session.
 */
export const ContextPlugin: Plugin;
