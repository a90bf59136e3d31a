//! Anthropic's context editing, `clear_tool_uses_20250919`.
//!
//! From <https://docs.claude.com/en/docs/build-with-claude/context-editing> (2025-09 to 2026-05):
//! once the prompt exceeds 100,000 input tokens (`trigger`), the oldest tool results are replaced by a
//! placeholder, all but the newest 3 (`keep`); calls stay (`clear_tool_inputs` false), nothing has to
//! be freed at least (`clear_at_least` not set), no tool is exempt. Nothing is summarised.
//!
//! Simplified: the API applies the edit anew to each request, from the whole history; here what was
//! cleared stays cleared, which costs no cache a second time. In a window under 125,000 tokens the
//! trigger is 80 % of it, or the default would never be met.

use super::{Checked, Clear, Keep, KeepResults, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "clear-tool-uses",
    about: "over 100,000 tokens: all tool results but the newest 3 give way to a placeholder",
    source: "docs.claude.com: context editing, clear_tool_uses_20250919 defaults (2025-09)",
    simplified: "cleared results stay cleared; trigger at most 80 % of the window",
    policy: Policy {
        trigger: Threshold::Never,
        checked: Checked::EveryRequest,
        recovers: false,
        clears: Some(Clear {
            trigger: Threshold::Tokens(100_000),
            keeps: KeepResults::Newest(3),
            placeholder: "[Tool result cleared]",
        }),
        keeps: Keep::Newest,
        summary: None,
    },
};
