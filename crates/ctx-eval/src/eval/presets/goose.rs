//! goose.
//!
//! From block/goose, `crates/goose/src/context_mgmt/mod.rs` (2026-01):
//!
//! - Compacts over 80 % of the window (`DEFAULT_COMPACTION_THRESHOLD`,
//!   `GOOSE_AUTO_COMPACT_THRESHOLD`), checked after a user message, and when the provider refused a
//!   request as too long.
//! - All that the agent sees becomes one summary; the newest message of the user is kept. When the
//!   summary call does not fit, tool responses are omitted from the middle: 10, 20, 50, then 100 %.
//!
//! Simplified: the source states no size of the summary, so 4,096 tokens are assumed; the
//! background summaries of single tool calls are off, as in that version. The call in progress is
//! kept; goose mentions it in the summary instead.

use super::{Ask, Checked, Input, Policy, Preset, Threshold, USUAL_SUMMARY};

pub(super) const PRESET: Preset = Preset {
    name: "goose",
    about: "over 80 % of the window, when the user speaks: a summary of everything",
    source: "block/goose: crates/goose/src/context_mgmt/mod.rs (2026-01)",
    simplified: "summary of 4,096 tokens, as none is stated; no background summaries of tool calls",
    policy: Policy {
        trigger: Threshold::Share(0.8),
        checked: Checked::NewTurn,
        recovers: true,
        summary: Some(Ask { tokens: USUAL_SUMMARY, calls: 1, input: Input::Fitted }),
        ..Policy::NOTHING
    },
};
