//! pi 0.73.1.
//!
//! From `@mariozechner/pi-coding-agent` 0.73.1 (2026-05), `core/compaction`:
//!
//! - Compacts over the window less 16,384 (`reserveTokens`), checked before a new prompt and not
//!   between tool calls; when the provider refuses a request, it compacts and tries once more.
//! - Keeps 20,000 recent tokens (`keepRecentTokens`); the cut may split a turn, and is never before
//!   a tool result. If no message after the 20,000th token may begin the kept part, everything is
//!   kept (#7201, #9740).
//! - The summary has at most 0.8 of the reserve, 13,107 tokens. Its input holds tool results of
//!   2,000 characters each and is otherwise unbounded (#8371): when it exceeds the window, the call
//!   fails.
//!
//! Simplified: one summary, and one call, where pi makes two in parallel for a split turn.

use super::{Ask, Checked, Input, Keep, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "pi-0.73.1",
    about: "over the window - 16,384, before a prompt: 20,000 recent tokens and a summary",
    source: "@mariozechner/pi-coding-agent 0.73.1: core/compaction (2026-05)",
    simplified: "one summary for a split turn, not two",
    policy: Policy {
        trigger: Threshold::Below(16_384),
        checked: Checked::NewTurn,
        recovers: true,
        clears: None,
        keeps: Keep::Recent(20_000),
        summary: Some(Ask { tokens: 13_107, calls: 1, input: Input::All { results: Some(2_000) } }),
    },
};
