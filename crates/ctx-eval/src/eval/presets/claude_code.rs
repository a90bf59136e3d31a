//! Claude Code's auto-compact.
//!
//! - Compacts at the window less 33,000 tokens: 20,000 for the summary and a buffer of 13,000 (as
//!   shown to users by `/context` since early 2026, claudefa.st "Context Buffer"; 45,000 before).
//!   Recorded sessions agree: compact boundaries with `preTokens` 155,301 to 156,176 (January 2026)
//!   and 167,979 (February 2026) in a window of 200,000.
//! - Everything becomes one summary, in one call; a request that the provider refuses as too long
//!   is compacted and tried again.
//!
//! Simplified: the recently read files, plan and skills that Claude Code attaches again after a
//! compaction are not modelled; the clearing of old tool results is the preset `clear-tool-uses`.

use super::{Ask, Input, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "claude-code",
    about: "at the window - 33,000: a summary of everything",
    source: "preTokens of recorded compact boundaries (2026-01, 2026-02); claudefa.st, Context Buffer (2026-01)",
    simplified: "no files, plans or skills attached again; no clearing of tool results before",
    policy: Policy {
        trigger: Threshold::Below(33_000),
        recovers: true,
        summary: Some(Ask { tokens: 20_000, calls: 1, input: Input::Fitted }),
        ..Policy::NOTHING
    },
};
