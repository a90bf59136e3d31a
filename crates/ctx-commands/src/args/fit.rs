//! Arguments that several commands share.

use clap::Args;
use ctx_config::Profile;
use ctx_core::CounterKind;

use super::names;

/// What the context is fitted to.
#[derive(Debug, Default, Args)]
pub(crate) struct Fit {
    /// The model's window in tokens; 32k and 1M are understood [default: the model's]
    #[arg(long, short, value_name = "N")]
    pub(crate) window: Option<String>,
    /// The engine [default: the configured one, else legacy]
    #[arg(long, short, value_name = "ID", value_parser = names::engines())]
    pub(crate) engine: Option<String>,
    /// The agent, which may have its own engine [default: the one of the session]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// The profile that sets the defaults [default: from the config]
    #[arg(long, short, value_name = "P", value_parser = names::profiles())]
    pub(crate) profile: Option<Profile>,
    /// How tokens are counted [default: the profile's]
    #[arg(long, short, value_name = "C", value_parser = names::counters())]
    pub(crate) counter: Option<CounterKind>,
    /// The model, for its window and prices; it also writes summaries, if the command needs any and
    /// models.providers has it [default: the one in the transcript]
    #[arg(long, short, value_name = "NAME", value_parser = names::models(), hide_possible_values = true)]
    pub(crate) model: Option<String>,
    /// Whether long-term memory is on, its block before the newest message.
    #[arg(skip)]
    pub(crate) memory: bool,
}

/// Which model writes summaries, if a command needs any.
#[derive(Debug, Args)]
pub(crate) struct Summaries {
    /// The model that writes summaries, as provider/model, or `none` for the extractive summariser
    /// [default: agents.defaults.compaction.model, else `none`]
    #[arg(long, value_name = "NAME")]
    pub(crate) summary_model: Option<String>,
}
