//! Gemini CLI.
//!
//! From google-gemini/gemini-cli, `packages/core/src/services/chatCompressionService.ts` (2026):
//!
//! - Compresses from 50 % of the window on (`DEFAULT_COMPRESSION_TOKEN_THRESHOLD`; 0.7 in the
//!   releases of 2025), before each request.
//! - Keeps the newest 30 % of the history (`COMPRESSION_PRESERVE_THRESHOLD`), measured in
//!   characters, starting at a user message. Without such a message, it cuts before the last user
//!   message there is, which may keep everything.
//! - Two calls: the summary, and one that checks it.
//! - Of tool output 50,000 tokens are kept, newest first
//!   (`COMPRESSION_FUNCTION_RESPONSE_TOKEN_BUDGET`); older output keeps its last 30 lines.
//!
//! Simplified: output beyond the 50,000 tokens is cleared instead of cut to 30 lines; the size of
//! the snapshot is not stated; after a failure it is tried again.

use super::{Ask, Clear, Input, Keep, KeepResults, Policy, Preset, Threshold, USUAL_SUMMARY};

pub(super) const PRESET: Preset = Preset {
    name: "gemini-cli",
    about: "from 50 % of the window on: the newest 30 % word for word, and a checked summary",
    source: "google-gemini/gemini-cli: packages/core/src/services/chatCompressionService.ts (2026)",
    simplified: "old tool output cleared, not cut to 30 lines; summary of 4,096 tokens, as none is stated",
    policy: Policy {
        trigger: Threshold::Share(0.5),
        clears: Some(Clear {
            trigger: Threshold::Share(0.5),
            keeps: KeepResults::Tokens { protect: 50_000, minimum: 0, turns: 0 },
            placeholder: "[Tool output truncated; the full output was saved to a file]",
        }),
        keeps: Keep::Share(0.3),
        summary: Some(Ask { tokens: USUAL_SUMMARY, calls: 2, input: Input::Fitted }),
        ..Policy::NOTHING
    },
};
