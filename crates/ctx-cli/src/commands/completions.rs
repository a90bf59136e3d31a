//! `ctx completions`.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Cli, Completions};

pub(crate) fn run(args: &Completions) -> anyhow::Result<ExitCode> {
    // `generate` panics if writing fails, and a reader may close the pipe early.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ctx", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
