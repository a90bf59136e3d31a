//! OpenAI Codex CLI.
//!
//! - Compacts at 90 % of the window: `auto_compact_token_limit()` is `context_window * 9 / 10`
//!   (openai/codex, `codex-rs/protocol/src/openai_models.rs`, 2026), checked between tool calls
//!   too.
//! - Keeps messages of the user verbatim, newest first, up to 20,000 tokens
//!   (`COMPACT_USER_MESSAGE_MAX_TOKENS`, `codex-rs/core/src/compact.rs`, 2025-12); the one that
//!   does not fit is truncated. Assistant messages, calls and results are dropped.
//! - Its summary is one answer of the session's model, of no stated size; when the call does not
//!   fit, the oldest messages are omitted from it.
//!
//! Simplified: the server-side compaction that OpenAI's own models get by default is not public and
//! is not modelled; the kept messages and the summary after them are one message.

use super::{Ask, Input, Keep, Policy, Preset, Threshold, USUAL_SUMMARY};

pub(super) const PRESET: Preset = Preset {
    name: "codex",
    about: "at 90 % of the window: user messages up to 20,000 tokens word for word, and a summary",
    source: "openai/codex: codex-rs/core/src/compact.rs (2025-12), codex-rs/protocol/src/openai_models.rs (2026)",
    simplified: "local compaction only, not the provider's own; summary of 4,096 tokens, as none is stated",
    policy: Policy {
        trigger: Threshold::Share(0.9),
        keeps: Keep::UserMessages(20_000),
        summary: Some(Ask { tokens: USUAL_SUMMARY, calls: 1, input: Input::Fitted }),
        ..Policy::NOTHING
    },
};
