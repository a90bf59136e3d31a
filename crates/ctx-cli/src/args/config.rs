//! What can be asked of the configuration.

use std::path::PathBuf;

use clap::Subcommand;
use ctx_core::Profile;

use super::names;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print every key in force, defaults included
    Show {
        /// Show a profile's defaults under the file's keys
        #[arg(long, short, value_name = "P", value_parser = names::profiles())]
        profile: Option<Profile>,
        /// Print JSON (the output is JSON either way; this is for scripts that pass it everywhere)
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the configuration
    Schema {
        /// Print JSON (the output is JSON either way)
        #[arg(long)]
        json: bool,
    },
    /// Check a configuration file
    Check {
        /// The file [default: the one in force]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
