//! Plain truncation: the oldest messages go until the request fits.
//!
//! No project's constants: it is what an agent without any policy writes first, a tenth of the window
//! kept free for the answer. A call goes with its results. Nothing stands for what went.

use super::{Checked, Keep, Policy, Preset, Threshold};

pub(super) const PRESET: Preset = Preset {
    name: "truncation",
    about: "the oldest messages go until the request is within 90 % of the window",
    source: "no project: the plainest policy there is",
    simplified: "nothing",
    policy: Policy {
        trigger: Threshold::Share(0.9),
        checked: Checked::EveryRequest,
        recovers: false,
        clears: None,
        keeps: Keep::UnderTrigger,
        summary: None,
    },
};
