//! How other agents handle a full window, as data: their documented constants, and a small
//! interpreter.
//!
//! A preset is not a port. It is the policy that a project documents: when it acts, what it keeps
//! verbatim, what it clears, and how large a summary it requests from a model. Each file names the
//! source of its constants and the simplifications. All presets share these rules:
//!
//! - sizes are those of the report's counter. The rivals themselves use the usage that the provider
//!   reported last, if they have it;
//! - the summary is written by the extractive summariser of this project, *without* audit and
//!   repair, as large as the rival lets its model write, but at most a quarter of what it replaces.
//!   A model's own summary may keep more or less, and may invent;
//! - tool calls stay with their results, and the newest user message and the call in progress stay,
//!   whatever the constants: no provider would accept the request otherwise.

mod apply;
mod claude_code;
mod clear_tool_uses;
mod codex;
mod cut;
mod gemini_cli;
mod goose;
mod mask_observations;
mod openclaw;
mod opencode;
mod pi;
mod results;
#[cfg(test)]
mod tests;
mod tool_markers;
mod truncation;

use ctx_core::{Error, ErrorKind, Result, Tokens};
use serde::Serialize;

pub(super) use apply::{PresetContext, act, squeeze};

/// The layer name of presets' edits in manifests.
pub(super) const LAYER: &str = "preset";

/// The summary size assumed for a rival that states none.
const USUAL_SUMMARY: u32 = 4_096;

/// Another agent's policy.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preset {
    /// Its name in the report.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The source of the constants.
    pub source: &'static str,
    /// What was simplified.
    pub simplified: &'static str,
    #[serde(skip)]
    policy: Policy,
}

/// What a preset does, and when.
#[derive(Clone, Copy, Debug)]
struct Policy {
    /// History is compacted from this size on.
    trigger: Threshold,
    /// When the size is checked.
    checked: Checked,
    /// Whether it also compacts when the provider refused the request as too long.
    recovers: bool,
    /// Tool results that are cleared first.
    clears: Option<Clear>,
    /// What stays verbatim.
    keeps: Keep,
    /// The summary that replaces the rest; `None` replaces it by nothing.
    summary: Option<Ask>,
}

impl Policy {
    /// Does nothing: the values of what a project does not do.
    const NOTHING: Self = Self {
        trigger: Threshold::Never,
        checked: Checked::EveryRequest,
        recovers: false,
        clears: None,
        keeps: Keep::Newest,
        summary: None,
    };
}

/// A size relative to the window, or absolute.
#[derive(Clone, Copy, Debug)]
enum Threshold {
    /// A share of the window.
    Share(f64),
    /// The window less this many tokens.
    Below(u32),
    /// This many tokens.
    Tokens(u32),
    /// Never.
    Never,
}

/// When a size is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checked {
    /// Before each request.
    EveryRequest,
    /// Before the first request after a message of the user, not between tool calls.
    NewTurn,
}

/// How old tool results are cleared.
#[derive(Clone, Copy, Debug)]
struct Clear {
    trigger: Threshold,
    keeps: KeepResults,
    placeholder: &'static str,
}

/// Which tool results are not cleared.
#[derive(Clone, Copy, Debug)]
enum KeepResults {
    /// This many of the newest results.
    Newest(usize),
    /// The newest results up to `protect` tokens, and all of the newest `turns`. Nothing is cleared
    /// unless it frees more than `minimum`.
    Tokens { protect: u32, minimum: u32, turns: usize },
}

/// What a compaction keeps verbatim.
#[derive(Clone, Copy, Debug)]
enum Keep {
    /// The newest user message and the call in progress only.
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
#[derive(Clone, Copy, Debug)]
struct Ask {
    /// The maximum length of the answer.
    tokens: u32,
    /// The number of calls it takes.
    calls: u32,
    /// The input of the model.
    input: Input,
}

/// The input of a summary call.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// Everything, with tool results truncated to this many characters. If that exceeds the window,
    /// the call fails.
    All {
        /// `None` leaves them whole.
        results: Option<u32>,
    },
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

/// All presets, in the order of the report.
pub const ALL: [Preset; 11] = [
    codex::PRESET,
    opencode::PRESET,
    goose::PRESET,
    gemini_cli::PRESET,
    claude_code::PRESET,
    clear_tool_uses::PRESET,
    mask_observations::PRESET,
    tool_markers::PRESET,
    pi::PRESET,
    openclaw::PRESET,
    truncation::PRESET,
];

impl Preset {
    /// Returns the preset of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`]; it lists the known ones.
    pub fn find(name: &str) -> Result<Self> {
        ALL.into_iter().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<_> = ALL.iter().map(|preset| preset.name).collect();
            Error::new(ErrorKind::NotFound, format!("unknown preset '{name}'"))
                .with("known", known.join(", "))
                .hint("set --preset to a known name, or omit it for all presets")
        })
    }
}
