//! How other agents handle a full window, as data: their documented constants, and a small
//! interpreter.
//!
//! A preset is not a port. It is the policy that a project documents: when it acts, what it keeps
//! verbatim, what it clears, and how large a summary it requests from a model. `data/presets.toml`
//! has the constants, with their sources and the simplifications. All presets share these rules:
//!
//! - sizes are counted by the report's counter. The other agents themselves use the usage that the
//!   provider reported last, if they have it;
//! - the extractive summariser of this project writes the summary, *without* audit and repair. It
//!   is as large as the agent allows, but at most a quarter of the replaced messages. A model's own
//!   summary may keep more or less, and may invent;
//! - tool calls stay with their results. The newest user message and the call in progress stay in
//!   all cases, because no provider would accept the request without them.

mod apply;
mod cut;
mod results;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use ctx_core::{Error, ErrorKind, Result, Tokens};
use serde::{Deserialize, Serialize};

pub(super) use apply::{PresetContext, act, squeeze};

/// The layer name of presets' edits in manifests.
pub(super) const LAYER: &str = "preset";

/// Another agent's policy.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preset {
    /// Its name in the report.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The source of the constants.
    pub source: &'static str,
    /// The simplifications.
    pub simplified: &'static str,
    #[serde(skip_serializing)]
    policy: Policy,
}

/// The actions of a preset, and their conditions. By default it does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, bound(deserialize = "'de: 'static"))]
struct Policy {
    /// History is compacted above this size.
    trigger: Threshold,
    /// When the size is checked.
    checked: Checked,
    /// Whether it also compacts when the provider refused the request as too long.
    recovers: bool,
    /// Tool results that are cleared first.
    clears: Option<Clear>,
    /// The messages that stay verbatim.
    keeps: Keep,
    /// The summary that replaces the rest. `None`: no compaction; only `Keep::UnderTrigger` then
    /// drops anything.
    summary: Option<Ask>,
}

/// A size relative to the window, or absolute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Threshold {
    /// A share of the window.
    Share(f64),
    /// The window minus this many tokens.
    Below(u32),
    /// This many tokens.
    Tokens(u32),
    /// No size: it is never exceeded.
    #[default]
    Never,
}

/// When a size is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Checked {
    /// Before each request.
    #[default]
    EveryRequest,
    /// Before the first request after a message of the user, not between tool calls.
    NewTurn,
}

/// How old tool results are cleared.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clear {
    trigger: Threshold,
    keeps: KeepResults,
    placeholder: &'static str,
}

/// Which tool results are not cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum KeepResults {
    /// This many of the newest results.
    Newest(usize),
    /// The newest results up to `protect` tokens, and all of the newest `turns`. Nothing is cleared
    /// unless it frees more than `minimum`.
    Tokens { protect: u32, minimum: u32, turns: usize },
}

/// The messages that a compaction keeps verbatim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Keep {
    /// The newest user message and the call in progress only.
    #[default]
    Newest,
    /// Messages of the user up to this many tokens, newest first. They are put into the summary
    /// message.
    UserMessages(u32),
    /// The newest messages up to this many tokens; the cut may be inside a turn. If no message may
    /// begin the kept part, everything is kept and no progress is made.
    Recent(u32),
    /// The newest share of the history, starting at a user message.
    Share(f64),
    /// The newest turns within a share of `room`, bounded by `least` and `most`.
    Turns { share: f64, least: u32, most: u32, room: Threshold },
    /// As much as stays under the trigger, without a summary.
    UnderTrigger,
}

/// The summary that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// The maximum length of the answer.
    tokens: u32,
    /// The number of calls it takes.
    calls: u32,
    /// The input of the model.
    input: Input,
}

/// The input of a summary call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Input {
    /// Everything, with tool results truncated to this many characters. If that exceeds the window,
    /// the call fails.
    All { results: u32 },
    /// Shortened until it fits.
    Fitted,
}

impl Threshold {
    /// Returns the size in a window.
    fn of(self, window: Tokens) -> Tokens {
        match self {
            Self::Share(share) => window.scale(share),
            // In a small window, at most half of it is kept free.
            Self::Below(free) => window - Tokens(free).min(window.scale(0.5)),
            Self::Tokens(tokens) => Tokens(tokens),
            Self::Never => Tokens(u32::MAX),
        }
    }
}

/// `data/presets.toml`. The bound is needed because the texts of a preset are slices of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
struct File {
    preset: Vec<Preset>,
}

/// All presets, in the order of the report.
pub static ALL: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("../../../data/presets.toml"))
        .expect("a test parses the table");
    file.preset
});

impl Preset {
    /// Returns the preset of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`]; it lists the known ones.
    pub fn find(name: &str) -> Result<Self> {
        ALL.iter().copied().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<_> = ALL.iter().map(|preset| preset.name).collect();
            Error::new(ErrorKind::NotFound, format!("unknown preset '{name}'"))
                .with("known", known.join(", "))
                .hint("set --preset to a known name, or omit it for all presets")
        })
    }
}
