//! OpenClaw's safeguard mode, its default.
//!
//! From npm `openclaw` 2026.4.23 (`docs/concepts/compaction.md` and `dist`):
//!
//! - Compacts over the window less a reserve of 16,384, raised to the floor of 20,000; the runner
//!   checks it outside of the tool loop, and when the provider refuses a request.
//! - Keeps 20,000 recent tokens (`keepRecentTokens`), calls and results together.
//! - The summary has at most 0.8 of the reserve in tokens and 16,000 characters
//!   (`MAX_COMPACTION_SUMMARY_CHARS`), which is less. Its input is chunked, tool results are
//!   truncated to 2,000 characters, and messages over half of the window are omitted. Two parts of
//!   at least four messages are summarised and merged: three calls.
//!
//! Simplified: the quality guard and its retry, the turns, tool failures and workspace rules that
//! are appended to the summary, and the silent turn before it are not modelled. This project's
//! profile `openclaw`, which uses the same numbers with audit and repair, is a row of its own.

use super::{Ask, Checked, Input, Keep, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "openclaw-safeguard",
    about: "over the window - 20,000, outside of the tool loop: 20,000 recent tokens and a summary",
    source: "openclaw 2026.4.23: docs/concepts/compaction.md, dist (2026-04)",
    simplified: "no quality guard, no appended sections, no memory flush",
    policy: Policy {
        trigger: Threshold::Below(20_000),
        checked: Checked::NewTurn,
        recovers: true,
        clears: None,
        keeps: Keep::Recent(20_000),
        summary: Some(Ask { tokens: 4_000, calls: 3, input: Input::Fitted }),
    },
};
