//! `ctx completions`.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;

pub(crate) fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    // `generate` panics if writing fails, and a reader may close the pipe early.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ctx", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
