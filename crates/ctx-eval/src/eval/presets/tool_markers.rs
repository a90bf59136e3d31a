//! The conversation word for word, tool output as markers.
//!
//! Its constants are not those of a project. Several tools rewrite transcripts by this rule: what
//! user and agent said and what the agent called stays, and each tool result becomes a marker, but
//! for the newest one, which the agent has not answered yet.

use super::{Clear, KeepResults, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "tool-markers",
    about: "at 80 % of the window: all that user and agent said stays, tool results become markers",
    source: "no project: the rule of tools that strip transcripts",
    simplified: "nothing",
    policy: Policy {
        clears: Some(Clear {
            trigger: Threshold::Share(0.8),
            keeps: KeepResults::Newest(1),
            placeholder: "[tool output]",
        }),
        ..Policy::NOTHING
    },
};
