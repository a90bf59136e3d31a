//! The arguments of `ctx config`.

use std::path::PathBuf;

use clap::Subcommand;
use ctx_config::Profile;

use super::names;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print every effective key, defaults included
    Show {
        /// Show a profile's defaults, overridden by the file's keys
        #[arg(long, short, value_name = "P", value_parser = names::profiles())]
        profile: Option<Profile>,
        /// Print JSON (the output is always JSON; for scripts that pass this flag everywhere)
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the configuration
    Schema {
        /// Print JSON (the output is always JSON)
        #[arg(long)]
        json: bool,
    },
    /// Check a configuration file
    Check {
        /// The file [default: the active one]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
