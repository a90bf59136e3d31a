//! `ctx completions`.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Cli, Completions};

pub(crate) fn run(args: &Completions) -> anyhow::Result<ExitCode> {
    clap_complete::generate(args.shell, &mut Cli::command(), "ctx", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}
