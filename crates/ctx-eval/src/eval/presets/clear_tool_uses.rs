//! Anthropic's context editing, `clear_tool_uses_20250919`.
//!
//! From <https://docs.claude.com/en/docs/build-with-claude/context-editing> (2025-09 to 2026-05):
//! once the prompt exceeds 100,000 input tokens (`trigger`), the oldest tool results are replaced
//! by a placeholder, all but the newest 3 (`keep`). Calls stay (`clear_tool_inputs` false), no
//! minimum has to be freed (`clear_at_least` not set), and no tool is exempt. Nothing is
//! summarised.
//!
//! Simplified: the API applies the edit to each request again, from the whole history; here cleared
//! results stay cleared, which avoids a second cache break. In a window under 125,000 tokens the
//! trigger is 80 % of it, because the default would never be reached.

use super::{Clear, KeepResults, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "clear-tool-uses",
    about: "over 100,000 tokens: replaces all tool results but the newest 3 by a placeholder",
    source: "docs.claude.com: context editing, clear_tool_uses_20250919 defaults (2025-09)",
    simplified: "cleared results stay cleared; trigger at most 80 % of the window",
    policy: Policy {
        clears: Some(Clear {
            trigger: Threshold::Tokens(100_000),
            keeps: KeepResults::Newest(3),
            placeholder: "[Tool result cleared]",
        }),
        ..Policy::NOTHING
    },
};
