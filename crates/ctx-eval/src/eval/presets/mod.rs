//! What other agents do with a full window, as data: their documented constants, and a small
//! interpreter.
//!
//! A preset is no port. It is the policy that a project states: when it acts, what it keeps word for
//! word, what it clears, and how large a summary it asks a model for. Each file says where its
//! constants come from and what was simplified. What all of them share:
//!
//! - size is what the report's counter says. The rivals themselves go by the usage that the provider
//!   reported last, where they have it;
//! - the summary is written by the extractive summariser of this project, *without* audit and
//!   repair, as large as the rival lets its model write, but never over a quarter of what it stands
//!   for. A model's own summary may keep more or less, and may invent;
//! - tool calls and their results stay together, the newest user message and the call in progress
//!   stay, whatever the constants say: no provider would take the request otherwise.

mod apply;
mod claude_code;
mod clear_tool_uses;
mod codex;
mod cut;
mod gemini_cli;
mod goose;
mod openclaw;
mod opencode;
mod pi;
mod results;
#[cfg(test)]
mod tests;
mod truncation;

use ctx_core::{Error, ErrorKind, Result, Tokens};
use serde::Serialize;

pub(super) use apply::{Moment, act, squeeze};

/// The name that edits of presets have in manifests.
pub(super) const LAYER: &str = "preset";

/// What a rival that names no size is taken to write.
const USUAL_SUMMARY: u32 = 4_096;

/// Another agent's policy.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preset {
    /// Its name in the report.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where the constants come from.
    pub source: &'static str,
    /// What was left away.
    pub simplified: &'static str,
    #[serde(skip)]
    policy: Policy,
}

/// What a preset does, and when.
#[derive(Clone, Copy, Debug)]
struct Policy {
    /// The size from which on history is compacted.
    trigger: Threshold,
    /// When the size is looked at.
    checked: Checked,
    /// Whether it also compacts when the provider refused the request as too long.
    recovers: bool,
    /// Tool results that are cleared first.
    clears: Option<Clear>,
    /// What stays word for word.
    keeps: Keep,
    /// What stands for the rest; nothing does where it is `None`.
    summary: Option<Ask>,
}

/// A size that the window has to do with, or has not.
#[derive(Clone, Copy, Debug)]
enum Threshold {
    /// A share of the window.
    Share(f64),
    /// The window less so many tokens.
    Below(u32),
    /// So many tokens.
    Tokens(u32),
    /// Never.
    Never,
}

/// When a size is looked at.
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
    /// The newest so many.
    Newest(usize),
    /// The newest up to so many tokens, and all of the newest turns; nothing is cleared unless it
    /// frees more than `minimum`.
    Tokens { protect: u32, minimum: u32, turns: usize },
}

/// What a compaction keeps word for word.
#[derive(Clone, Copy, Debug)]
enum Keep {
    /// The newest user message and the call in progress only.
    Newest,
    /// Messages of the user up to so many tokens, newest first. They stand in the summary.
    UserMessages(u32),
    /// The newest messages up to so many tokens; the cut may lie inside a turn. Where no message may
    /// begin the kept part, everything is kept: there was no progress.
    Recent(u32),
    /// The newest share of the history, from a user message on.
    Share(f64),
    /// The newest turns within a share of the room, which is bounded.
    Turns { share: f64, least: u32, most: u32, room: Threshold },
    /// As much as stays under the trigger: nothing stands for what goes.
    UnderTrigger,
}

/// The summary that is asked for.
#[derive(Clone, Copy, Debug)]
struct Ask {
    /// The longest answer.
    tokens: u32,
    /// How many calls it takes.
    calls: u32,
    /// What the model is given.
    input: Input,
}

/// How much a summary call carries.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// Everything, with tool results cut to so many characters. Where that is over the window, the
    /// call fails.
    All {
        /// `None` leaves them whole.
        results: Option<u32>,
    },
    /// Shortened until it fits.
    Fitted,
}

impl Threshold {
    /// The size in a window.
    fn of(self, window: Tokens) -> Tokens {
        match self {
            Self::Share(share) => window.scale(share),
            // In a window smaller than what is kept free of it, half of it is.
            Self::Below(free) => window - Tokens(free).min(window.scale(0.5)),
            Self::Tokens(tokens) => Tokens(tokens),
            Self::Never => Tokens(u32::MAX),
        }
    }
}

/// All presets, in the order of the report.
pub const ALL: [Preset; 9] = [
    codex::PRESET,
    opencode::PRESET,
    goose::PRESET,
    gemini_cli::PRESET,
    claude_code::PRESET,
    clear_tool_uses::PRESET,
    pi::PRESET,
    openclaw::PRESET,
    truncation::PRESET,
];

impl Preset {
    /// The preset of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`]; it lists the known ones.
    pub fn find(name: &str) -> Result<Self> {
        ALL.into_iter().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<_> = ALL.iter().map(|preset| preset.name).collect();
            Error::new(ErrorKind::NotFound, format!("no preset '{name}'"))
                .with("known", known.join(", "))
                .hint("give --preset one of the known names, or leave it out for all of them")
        })
    }
}
