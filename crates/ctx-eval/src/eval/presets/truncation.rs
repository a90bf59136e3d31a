//! Plain truncation: drops the oldest messages until the request fits.
//!
//! Its constants are not those of a project: an agent without any policy does this first, keeping a
//! tenth of the window free for the answer. A call is dropped with its results. Nothing replaces
//! the dropped messages.

use super::{Keep, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "truncation",
    about: "drops the oldest messages until the request is within 90 % of the window",
    source: "no project: the simplest policy",
    simplified: "nothing",
    policy: Policy { trigger: Threshold::Share(0.9), keeps: Keep::UnderTrigger, ..Policy::NOTHING },
};
