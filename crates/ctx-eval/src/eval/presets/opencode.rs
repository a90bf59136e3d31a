//! opencode.
//!
//! From sst/opencode, `packages/opencode/src/session/compaction.ts` and `overflow.ts` (2026):
//!
//! - Old tool output is pruned: walking back, the newest two turns and then 40,000 tokens of output
//!   are protected (`PRUNE_PROTECT`); what is older is cleared if that frees more than 20,000
//!   (`PRUNE_MINIMUM`). Placeholder `[Old tool result content cleared]`.
//! - Compacts when the request reaches the window less the longest answer (32,000 at most) less a
//!   buffer of 20,000 (`COMPACTION_BUFFER`), after any step.
//! - Keeps the newest turns within a quarter of that budget, 2,000 to 15,000 tokens
//!   (`MIN_`/`MAX_PRESERVE_RECENT_TOKENS`), splitting a turn if none fits whole. The summary has
//!   4,096 tokens (`SUMMARY_OUTPUT_TOKENS`); tool output is truncated to 2,000 characters for it.
//!
//! Simplified: pruning is on, as in the 1.x releases of 2025; later ones require
//! `compaction.prune`. It runs before each request and not once after a turn. No tool is exempt.

use super::{Ask, Checked, Clear, Input, Keep, KeepResults, Policy, Preset, Threshold};

/// The longest answer, and the buffer.
const ROOM: Threshold = Threshold::Below(32_000 + 20_000);

pub(super) const PRESET: Preset = Preset {
    name: "opencode",
    about: "clears tool output beyond 40,000 tokens; at window - 52,000 a summary and the newest turns",
    source: "sst/opencode: packages/opencode/src/session/compaction.ts, overflow.ts (2026)",
    simplified: "pruning on and before each request; answers of 32,000 tokens reserved; no exempt tools",
    policy: Policy {
        trigger: ROOM,
        checked: Checked::EveryRequest,
        recovers: true,
        clears: Some(Clear {
            trigger: Threshold::Tokens(0),
            keeps: KeepResults::Tokens { protect: 40_000, minimum: 20_000, turns: 2 },
            placeholder: "[Old tool result content cleared]",
        }),
        keeps: Keep::Turns { share: 0.25, least: 2_000, most: 15_000, room: ROOM },
        summary: Some(Ask { tokens: 4_096, calls: 1, input: Input::All { results: Some(2_000) } }),
    },
};
