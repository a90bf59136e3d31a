//! Observation masking: all tool results but the newest 10 are replaced by a placeholder.
//!
//! From "The Complexity Trap" (arXiv 2508.21433, 2025-08), whose agent keeps the newest 10
//! observations and masks the others before each request; calls and the agent's text stay. Nothing
//! is summarised. SWE-agent's `LastNObservations` is the same rule with another number.

use super::{Clear, KeepResults, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "mask-observations",
    about: "before each request: replaces all tool results but the newest 10 by a placeholder",
    source: "arXiv 2508.21433, The Complexity Trap (2025-08): observation masking, M = 10",
    simplified: "the placeholder does not say how many lines were omitted",
    policy: Policy {
        clears: Some(Clear {
            trigger: Threshold::Tokens(0),
            keeps: KeepResults::Newest(10),
            placeholder: "[old output omitted]",
        }),
        ..Policy::NOTHING
    },
};
