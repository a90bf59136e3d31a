//! The arguments of `ctx eval compact`.

use std::path::PathBuf;

use clap::Args;
use ctx_config::Profile;

use super::{Page, names};

/// Cuts each session at several places, lets each arm compact the history before the cut, and looks
/// up in the request afterwards what the agent needed next. docs/bench.md specifies what is counted
/// and how a program enters with --candidate-cmd.
#[derive(Debug, Args)]
pub(crate) struct EvalCompact {
    /// Transcripts, folders of them, ids, or - for one from stdin [default: the newest session of the
    /// current folder]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<PathBuf>,
    /// A small run: 2 cuts, and a budget of 10 %
    #[arg(long)]
    pub(crate) quick: bool,
    /// The number of places at which each session is cut [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) cuts: Option<u8>,
    /// The tokens of a request after compaction, in percent of the history [default: 30,10,5]
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', value_parser = percent)]
    pub(crate) budgets: Vec<f64>,
    /// The numbers of compactions before each cut
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,3,5,10")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) rounds: Vec<u8>,
    /// The model, for its window and prices [default: the one in the transcript]
    #[arg(long, short, value_name = "NAME", value_parser = names::models(), hide_possible_values = true)]
    pub(crate) model: Option<String>,
    /// Only these profiles of ctx; the first is the reference [default: all]
    #[arg(long = "profile", short, value_name = "P", value_delimiter = ',', value_parser = names::profiles())]
    pub(crate) profiles: Vec<Profile>,
    /// Include these engines, under the configured profile
    #[arg(long = "engine", short, value_name = "ID", value_delimiter = ',', value_parser = names::engines())]
    pub(crate) engines: Vec<String>,
    /// Only these presets of other agents [default: all]
    #[arg(long = "preset", value_name = "NAME", value_delimiter = ',', value_parser = names::presets())]
    pub(crate) presets: Vec<String>,
    /// Include the first profile with summaries by this model, as provider/model. It is called for
    /// each compaction, and its provider bills them
    #[arg(long, value_name = "NAME")]
    pub(crate) summary_model: Option<String>,
    /// Include a program that writes summaries: its name and arguments, separated by spaces
    #[arg(long, value_name = "COMMAND")]
    pub(crate) candidate_cmd: Option<String>,
    /// The time that the program has for one summary
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) candidate_seconds: u64,
    /// Statements to plant, as JSONL; `none` plants none [default: the built-in ones]
    #[arg(long, value_name = "FILE")]
    pub(crate) planted: Option<PathBuf>,
    /// Write all requests and labels to a new folder, one JSONL file per session
    #[arg(long, value_name = "DIR")]
    pub(crate) export: Option<PathBuf>,
    /// Show the N cuts at which the reference lost most, and what it lost
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) show: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) page: Page,
}

/// Parses a budget.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse().ok();
    let percent = percent.filter(|percent| (1.0..=90.0).contains(percent));
    percent.ok_or_else(|| "give percentages from 1 to 90, such as 30,10,5".to_owned())
}
